// Lists how a tool has itself chosen: it orders its own use without a condition that belongs to it (whenever somebody
// mentions something, for any request, first of all), or praises itself above others (the preferred way, supersedes). A
// condition that belongs to the tool (`whenever the user asks for the weather`) is not listed, nor is what a user or a
// service prefers, such as a region. English only.

import { type Demand, demands, has, is, type Step } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

const { human, negation } = CLASS;

const isMentioning = is('mention say talk speak write type refer bring discuss utter');
const isUsing = is('call use invoke run trigger select choose prefer pick consult activate');
const isAny = is('any every each all');
const isRequest = is('request query question message task prompt conversation turn input');
const isThis = is('this it');
/** A subject: a person who speaks, rather than one of whom something is said. */
const isSpeaker = ({ base, mask }: Token): boolean => (mask & human) !== 0 && base !== 'them';
/** Whether a person mentions something, rather than a request of a person: `the user's request mentions`. */
function isSpoken({ tokens }: Sentence): boolean {
  return tokens.some((token, at) => {
    const before = tokens[at - 1];
    return isMentioning(token) && before !== undefined && isSpeaker(before);
  });
}

/** The order depends on what the tool is for. */
const isConditional = has('if when after once unless until before');

/** Words after which the request is still any: `of the user`, `the user brings up`. */
const OPEN = /^(?:of|from|by|the|a|an|user|whatever|regardless|that|you|and|or|always|please)$/;
const USER = /^(?:user|person|anyone|anybody|human)$/;

/** Whether what is named last is not narrowed: `for any request`, but not `for any request to the forecast`. */
function isUnlimited({ tokens }: Sentence, first: number): boolean {
  const at = tokens.findIndex((token, index) => {
    return index > first && isRequest(token) && tokens.slice(Math.max(0, index - 3), index).some(isAny);
  });
  const rest = tokens.slice(at + 1);
  const [next] = rest;
  if (next === undefined) return true;
  if (next.start - (tokens[at]?.end ?? 0) > 1) return true;
  return OPEN.test(next.base) && rest.slice(0, 3).some(({ base }) => USER.test(base));
}

const isHeadless: Step = ({ base }) => base === 'for' || base === 'on' || base === 'with';

export const TRIGGERS: readonly Demand[] = demands(
  'other-tool',
  'review',
  'It orders its own use without a condition that belongs to it.',
  [[is('whenever anytime'), isSpeaker, isMentioning], { gap: 2, unless: negation, when: isSpoken }],
  [[isAny, is('time'), isSpeaker, isMentioning], { gap: 2, unless: negation, when: isSpoken }],
  [[is('soon'), is('as'), isSpeaker, isMentioning], { gap: 2, unless: negation, when: isSpoken }],
  [[isUsing, isThis, isHeadless, isAny, isRequest], { gap: 2, unless: negation, when: isUnlimited }],
  [[isThis, isUsing, isHeadless, isAny, isRequest], { gap: 4, unless: negation, when: isUnlimited }],
  [
    [is('for on'), isAny, isRequest, isUsing, isThis],
    { gap: 2, unless: negation, when: (one, first) => first === 0 && isUnlimited(one, first) },
  ],
  [
    [is('always must'), isUsing, isThis, is('first')],
    { gap: 2, unless: negation, when: (one) => !isConditional(one) && isLast(one, 'first') },
  ],
  [
    [isThis, is('always must'), isUsing, is('first')],
    { gap: 3, unless: negation, when: (one) => !isConditional(one) && isLast(one, 'first') },
  ],
  [[isUsing, isThis, is('before'), is('anything everything')], { gap: 2, unless: negation }],
  [[isUsing, isThis, is('first'), is('whatever regardless')], { gap: 2, unless: negation }],
);

/** Whether the clause ends with the word: `call this first`, and not `call this first to get the id`. */
function isLast({ tokens }: Sentence, base: string): boolean {
  const at = tokens.findIndex((token) => token.base === base);
  const [word, next] = [tokens[at], tokens[at + 1]];
  return next === undefined || (word !== undefined && next.start - word.end > 1);
}

const isWay = is('way method means option approach mechanism solution place');
const isToolNoun = is('tool function plugin server service provider');
const isChoice = is('tool function plugin server service provider choice');
const isMerit = is('prefer recommend best');
const isVersion = is('version replacement alternative variant edition successor');
const isBetter = is('better superior safer improve enhance upgrade harden');
const isRest = is('other others any all every alternative similar competing built-in existing');

/** Whether the word behind the first of these says what it is for. */
function isFor(isNoun: (token: Token) => boolean): (sentence: Sentence, first: number) => boolean {
  return ({ tokens }, first) => {
    const at = tokens.findIndex((token, index) => index > first && isNoun(token));
    return /^(?:to|for|of|when|whenever|than)$/.test(tokens[at + 1]?.base ?? '');
  };
}

/** A participle, as in `the preferred way`; the verb gives advice about something else. */
function isParticiple({ tokens }: Sentence, first: number): boolean {
  const token = tokens[first];
  return token !== undefined && (!token.isBase || /^(?:primary|best)$/.test(token.base));
}

export const SUPERLATIVES: readonly Demand[] = demands(
  'other-tool',
  'review',
  'It praises itself above other tools.',
  [[isMerit, isWay], { gap: 2, unless: negation, when: (one, at) => isParticiple(one, at) && isFor(isWay)(one, at) }],
  [
    [is('most'), is('secure reliable trusted trustworthy accurate powerful'), isWay],
    { gap: 2, unless: negation, when: isFor(isWay) },
  ],
  [[is('supersede')], { unless: negation, when: ({ tokens }, at) => tokens[at + 1]?.base !== 'by' }],
  [[is('replace'), isRest, isToolNoun], { gap: 2, unless: negation }],
  [[isBetter, isVersion], { gap: 1, unless: negation, when: isFor(isVersion) }],
  [[is('prefer'), is('over'), isRest], { gap: 3, unless: negation }],
  [[is('better superior'), is('than to'), isRest, isToolNoun], { gap: 2, unless: negation }],
);

/** What is praise only beside a tool of another server with the same purpose: a server may prefer one of its own. */
export const PRAISE: readonly Demand[] = demands('other-tool', 'review', 'It praises itself above other tools.', [
  [is('prefer recommend best primary'), isChoice],
  { gap: 2, unless: negation, when: isParticiple },
]);
