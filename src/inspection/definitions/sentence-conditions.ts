// What a row can ask of a whole sentence (`#later`, `#commanded` in sentence-patterns.ts): where it stands, whether it commands,
// obliges or only describes, and of whom. `first` is the position of the first word that the pattern found.

import { CLASS, LISTS, learnBases } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

type Condition = (sentence: Sentence, first: number) => boolean;

const { call, carry, change, every, execute, human, model, must, name, negation, order } = CLASS;
const { parameter, read, secret, tool } = CLASS;

function isIn(list: string): (token: Token | undefined) => boolean {
  const bases = new Set((LISTS[list] ?? '').split(' '));
  learnBases([...bases]);
  return (token) => token !== undefined && bases.has(token.base);
}

function hasClass(token: Token | undefined, mask: number): boolean {
  return ((token?.mask ?? 0) & mask) !== 0;
}

const isLead = isIn('lead');
const isFreeLead = isIn('free-lead');
const isLeadIn = isIn('lead-in');
const isStepOfWork = isIn('step-of-work');
const isOfCall = isIn('of-call');
const isDetail = isIn('detail');
const isConsent = isIn('consents');
const ACTION = read | carry | execute | call;
const LEADS = must | order | negation | model | every;

/** Whether the sentence says when it applies: before, after, whenever or for every call of a tool. */
export function isFramed({ tokens }: Sentence): boolean {
  return tokens.some(({ mask }, at) => {
    if ((mask & (order | every)) === 0) return false;
    return tokens.slice(at + 1, at + 7).some((token) => hasClass(token, call | tool | name) || isStepOfWork(token));
  });
}

/** Whether the sentence orders something: it obliges, says when it applies, or is a later imperative. */
export function isOrder(sentence: Sentence): boolean {
  if ((sentence.mask & must) !== 0 || isFramed(sentence)) return true;
  const [first, second] = sentence.tokens;
  const verb = isLead(first) ? second : first;
  return sentence.index > 0 && verb?.isBase === true && hasClass(verb, ACTION);
}

/** Whether a verb that acts stands where the imperative does: at the beginning, or after `and`, in a later sentence. */
export function hasCommand({ tokens, index }: Sentence): boolean {
  if (index === 0) return false;
  return tokens.some((token, at) => {
    const before = tokens[at - 1];
    return (before === undefined || isFreeLead(before)) && token.isBase && hasClass(token, ACTION | change);
  });
}

/** Whether the sentence begins with a name that it explains: `force: do not ask`. */
function isLabelled({ tokens: [first, second] }: Sentence): boolean {
  if (first === undefined || second === undefined || isLead(first)) return false;
  return !hasClass(first, LEADS) && second.start - first.end > 1;
}

/**
 * Whether the word is a verb that commands: at the beginning of a clause in a sentence after the one that says what the
 * tool does. An option that is described does not command: `force: skip the check`, `set it to skip the check`.
 */
function isCommanded(sentence: Sentence, at: number): boolean {
  const token = sentence.tokens[at];
  const before = sentence.tokens[at - 1];
  if (token === undefined || sentence.index === 0 || !token.isBase || isLabelled(sentence)) return false;
  return before === undefined || isLeadIn(before) || token.start - before.end > 1;
}

/** After these a verb says what is done, or what may be done. */
const NO_IMPERATIVE = /^(?:to|is|are|be|been|was|were|can|could|may|might|will|would|it|they|which|that)$/;

/** Whether one of two words before it denies the word: `does not read`. */
function isDeniedBefore({ tokens }: Sentence, at: number): boolean {
  return tokens.slice(Math.max(0, at - 2), at).some((token) => hasClass(token, negation));
}

/**
 * Whether it says of the product, rather than of the call, that people are not shown something: `is not shown to users`.
 * One that holds until something happens, or unless it does, keeps nothing from anybody either.
 */
function isDescribed(sentence: Sentence): boolean {
  const { tokens, mask, bases } = sentence;
  if (/^(?:until|unless)$/.test(tokens.at(-1)?.condition ?? '')) return true;
  const at = tokens.findIndex((token) => hasClass(token, negation));
  const before = tokens[at - 1];
  const isPassive = /^(?:aren't|isn't|won't|can't|cannot)$/.test(tokens[at]?.base ?? '');
  const isAfterBe = /^(?:are|is|be|will|can|may|might|could)$/.test(before?.base ?? '') && !bases.has('supposed');
  return (isPassive || isAfterBe) && (mask & must) === 0 && !tokens.some(isOfCall);
}

const OUTCOME = /^(?:error|succeed|succeeded|success|complete|completed|answer|stack)$/;

/** Whether it says what the user is not to be told because it is not so: `never tell the user a field is missing`. */
function isCorrection({ tokens }: Sentence, verb: number): boolean {
  const object = tokens.findIndex((token, at) => at > verb && hasClass(token, human));
  const next = tokens[object + 1]?.base ?? '';
  const after = tokens.slice(object + 1);
  const isDenied = next === 'that' && after.slice(1, 5).some((token) => hasClass(token, negation));
  return /^(?:a|an|to|there|they|no)$/.test(next) || after.some(({ base }) => OUTCOME.test(base)) || isDenied;
}

/** Whether how something is shown is a matter of form: `do not mention internal ids to the user`. */
function isOfForm({ tokens }: Sentence, verb: number): boolean {
  const object = tokens.slice(verb, verb + 7);
  return object.some(isDetail) && !object.some(({ base }) => base === 'it' || base === 'this');
}

/** Whether it is a secret that is to be kept: `do not disclose these credentials`. */
function isOfSecret({ tokens }: Sentence): boolean {
  return tokens.some(
    ({ base }, at) => /^(?:this|that|these|those|the)$/.test(base) && hasClass(tokens[at + 1], secret),
  );
}

/** Whether what is not to be asked is a question of its own, rather than whether to go on: `which version to use`. */
function isQuestion({ tokens }: Sentence, from: number): boolean {
  if (tokens.some(isConsent)) return false;
  const asked = tokens.findIndex((token, at) => at > from && hasClass(token, human));
  return /^(?:to|for|which|what|about|whether|how)$/.test(tokens[asked + 1]?.base ?? '');
}

/** One, as a subject: `models` and `agents` are more often what a tool lists. */
function isModelNamed({ base, isBase }: Token): boolean {
  return isBase && /^(?:assistant|agent|model|llm|ai|chatbot|claude|gpt)$/.test(base);
}

/** Whether the one who has to do it stands before the verb: `you must`, `the model has to`. */
function isObliged({ tokens }: Sentence, at: number): boolean {
  return tokens.slice(Math.max(0, at - 3), at).some((token) => hasClass(token, must | model));
}

/** Whether the word is the subject of its clause: not `any address the user previously approved`. */
function beginsClause({ tokens }: Sentence, at: number): boolean {
  const start = /^(?:the|your)$/.test(tokens[at - 1]?.base ?? '') ? at - 1 : at;
  const [before, subject] = [tokens[start - 1], tokens[start]];
  if (before === undefined || subject === undefined) return true;
  return /^(?:and|as|because|for|since|that)$/.test(before.base) || subject.start - before.end > 1;
}

const isAny = isIn('any');
const isRequest = isIn('request');
const isMentioning = isIn('mentioning');
/** Words after which the request is still any: `of the user`, `the user brings up`. */
const OPEN = /^(?:of|from|by|the|a|an|user|whatever|regardless|that|you|and|or|always|please)$/;
const USER = /^(?:user|person|anyone|anybody|human)$/;

/** Whether what is named last is not narrowed: `for any request`, but not `for any request to the forecast`. */
function isUnlimited({ tokens }: Sentence, first: number): boolean {
  const at = tokens.findIndex(
    (token, index) => index > first && isRequest(token) && tokens.slice(Math.max(0, index - 3), index).some(isAny),
  );
  const [next, ...rest] = tokens.slice(at + 1);
  if (next === undefined || next.start - (tokens[at]?.end ?? 0) > 1) return true;
  return OPEN.test(next.base) && [next, ...rest.slice(0, 2)].some(({ base }) => USER.test(base));
}

/** Whether the clause ends with `first`: `call this first`, and not `call this first to get the id`. */
function endsWithFirst({ tokens }: Sentence): boolean {
  const at = tokens.findIndex(({ base }) => base === 'first');
  const [word, next] = [tokens[at], tokens[at + 1]];
  return next === undefined || (word !== undefined && next.start - word.end > 1);
}

export const CONDITIONS: { readonly [name: string]: Condition } = {
  /** Not the first sentence, which says what the tool does. */
  later: ({ index }) => index > 0,
  order: isOrder,
  framed: isFramed,
  labelled: isLabelled,
  /** The word that was found first commands. */
  commanded: isCommanded,
  /** It is an imperative, wherever it stands in a later sentence. */
  imperative: ({ tokens, index }, at) =>
    index > 0 && tokens[at]?.isBase === true && !NO_IMPERATIVE.test(tokens[at - 1]?.base ?? ''),
  denied: isDeniedBefore,
  described: isDescribed,
  correction: isCorrection,
  form: isOfForm,
  'own-secret': isOfSecret,
  question: isQuestion,
  /** Another subject or verb follows the word: `private to the user and not shared`. */
  joined: ({ tokens }, at) => /^(?:and|or|but|that)$/.test(tokens[at + 1]?.base ?? ''),
  'negation-first': ({ tokens }) => tokens.slice(0, 2).some((token) => hasClass(token, negation)),
  'addressed-first': ({ tokens }) => tokens.slice(0, 2).some((token) => hasClass(token, negation | model)),
  'one-negation': ({ tokens }) => tokens.filter((token) => hasClass(token, negation)).length === 1,
  /** It lists what something is for: `looking for configuration files`. */
  'gerund-first': ({ tokens: [first] }) =>
    first !== undefined && !first.isBase && first.end - first.start > first.base.length + 1,
  /** It ends with how nobody notices it. */
  'covert-last': ({ tokens }) => tokens.slice(-2).some((token) => hasClass(token, CLASS.covert)),
  /** It says what to use to read something: `use get_page to fetch the transcript`. */
  'to-read': ({ tokens }) => tokens.some((token, at) => hasClass(token, read) && tokens[at - 1]?.base === 'to'),
  /** A parameter is named after a secret: `provide the password parameter`. */
  'secret-parameter': ({ tokens }) =>
    tokens.some((token, at) => hasClass(token, secret) && hasClass(tokens[at + 1], parameter)),
  /** It obliges, is a later imperative, or names the model as the one who acts. */
  demand: (sentence) => isOrder(sentence) || hasCommand(sentence) || sentence.tokens.some(isModelNamed),
  /** It commands to pass something on. */
  carrying: (sentence) =>
    sentence.tokens.some(
      (token, at) => hasClass(token, carry) && (isCommanded(sentence, at) || isObliged(sentence, at)),
    ),
  'clause-first': beginsClause,
  /** The word that was found first begins the sentence. */
  'at-start': (_sentence, first) => first === 0,
  /** A verb in its base form follows: `should always return`, not `always returns`. */
  'plain-next': ({ tokens }, at) => tokens[at + 1]?.isBase === true,
  /** It forbids: `do check the permissions` does not. */
  prohibiting: ({ tokens }, at) => hasClass(tokens[at], negation) || hasClass(tokens[at + 1], negation),
  /** It begins with a heading that names a duty: `AUDIT POLICY: all orders are`. */
  'duty-first': ({ tokens }) =>
    tokens.slice(0, 2).some(({ base }) => /^(?:compliance|audit|regulatory|legal|regulation|retention)$/.test(base)),
  /** A person mentions something, rather than a request of a person: `the user's request mentions`. */
  spoken: ({ tokens }) =>
    tokens.some((token, at) => {
      const before = tokens[at - 1];
      return isMentioning(token) && hasClass(before, human) && before?.base !== 'them';
    }),
  unlimited: isUnlimited,
  'first-last': endsWithFirst,
};
