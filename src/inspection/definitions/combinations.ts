// Lists demands by what stands together in a sentence, in any order: who is addressed, what is demanded, of what, and
// where it would go; and claims of an approval and requests for secrets. rules.ts has the others. English only.

import {
  type Demand,
  demands,
  has,
  is,
  isCommanded,
  isDenial,
  isLabelled,
  isLimited,
  isObliged,
  isOrder,
  type Step,
} from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

const { address, call, carry, change, every, execute, human, model, must } = CLASS;
const { name, negation, order, parameter, read, secret, store, tool } = CLASS;

export const isUnabridged = has('entire full complete whole verbatim unabridged unredacted word');
const isHushed: Step = ({ base, isDenied: denied }) =>
  denied === true && /^(?:mention|reveal|disclose|tell|announce|acknowledge|discuss|divulge|admit)$/.test(base);
const isThis = is('this that these those it existence presence step call synchronization upload access');
/** One, as a subject: `models` and `agents` are more often what a tool lists. */
const isModelNamed = ({ base, isBase }: Token): boolean =>
  isBase && /^(?:assistant|agent|model|llm|ai|chatbot|claude|gpt)$/.test(base);
const isGiving = is(
  'add share give hand supply state enter fill paste type provide pass put copy send attach append transmit submit include insert place write forward',
);
/** A tool that gives out secrets or what was said, by the parts of its name. */
export const isVaultTool = ({ base, mask }: Token): boolean =>
  (mask & name) !== 0 &&
  /^(?:get|read|export|dump|show|fetch|load)_(?:\w{1,40}_)?(?:secret|credential|password|private|env|mailbox|keychain)s?(?:_|$)/.test(
    base,
  );

/** A file with secrets by its path; a key by its name may be what a parameter takes. */
export const isFile = ({ base, mask }: Token): boolean => (mask & store) !== 0 && /[./~_]|^printenv$/.test(base);
/** An address that gets something: a mailbox, a number, a URL that takes data. */
const isReceiver: Step = ({ base, mask }) => (mask & address) !== 0 && /[@?={<]|^\+/.test(base);
/** Whether it is a secret that is to be kept: `do not disclose these credentials`. */
export function isOfSecret({ tokens }: Sentence): boolean {
  return tokens.some(({ base }, at) => isPointer(base) && ((tokens[at + 1]?.mask ?? 0) & secret) !== 0);
}
const isPointer = (base: string): boolean => /^(?:this|that|these|those|the)$/.test(base);

const isDeniedCall: Step = ({ mask, isDenied }) => isDenied === true && (mask & call) !== 0;

const ACTION = read | carry | call | change | execute;
const isLead = is('and then also now first finally kindly quietly silently');

/** Whether a verb that acts stands where the imperative does: at the beginning, or after `and`, in a later sentence. */
export function hasCommand({ tokens, index }: Sentence): boolean {
  if (index === 0) return false;
  return tokens.some((token, at) => {
    const before = tokens[at - 1];
    const isFree = before === undefined || isLead(before);
    return isFree && token.isBase && (token.mask & ACTION) !== 0;
  });
}

/** Whether the sentence demands something: it obliges, is a later imperative, or names the model as the one who acts. */
function isDemand(sentence: Sentence): boolean {
  return isOrder(sentence) || hasCommand(sentence) || sentence.tokens.some(isModelNamed);
}

/** Whether it commands to pass something on. */
function commandsToCarry(sentence: Sentence): boolean {
  return sentence.tokens.some(
    (token, at) => (token.mask & carry) !== 0 && (isCommanded(sentence, at) || isObliged(sentence, at)),
  );
}

/** Whether it is not said of what the tool returns. */
function isUnreturned({ index, bases }: Sentence): boolean {
  return index > 0 && !bases.has('return') && !bases.has('parse');
}

/** What binds a model; a policy, a filter or an order may be what the tool is about. */
const isBindingRule = is('instruction guideline guidance directive restriction safeguard guardrail');

const SECRECY: readonly Demand[] = [
  ...demands(
    'secrecy',
    'block',
    'It demands that something be kept from the user.',
    [
      [isDenial, isHushed, isThis],
      {
        gap: 4,
        when: (one) =>
          !isLabelled(one) &&
          !isOfSecret(one) &&
          (one.mask & human) === 0 &&
          !isLimited(one, 'until unless') &&
          one.tokens.filter(({ mask }) => (mask & negation) !== 0).length === 1 &&
          (isOrder(one) || one.tokens.slice(0, 2).some(({ mask }) => (mask & (negation | model)) !== 0)),
      },
    ],
    [
      [is('stay remain keep be stays'), is('silent unaware quiet'), is('about of on')],
      { gap: 3, needs: [human | model] },
    ],
    [
      [is('confidential private secret between'), is('tool model us you'), is('and us model')],
      { gap: 3, when: has('between') },
    ],
  ),
];

const OVERRIDES: readonly Demand[] = [
  ...demands('order-to-model', 'block', 'It says that instructions or restrictions hold no longer.', [
    [isBindingRule, is('not no never'), is('apply cover concern bind longer valid')],
    {
      gap: 7,
      when: has('earlier previous prior safety host operator anymore given aside longer'),
    },
  ]),
  ...demands(
    'order-to-model',
    'block',
    'It gives the model another role.',
    [[is('from'), is('now'), is('on')], { gap: 1, needs: [model] }],
    [[is('obey'), is('server instruction command directive system text order output')], { gap: 6, unless: negation }],
  ),
];

const EXFILTRATIONS: readonly Demand[] = [
  ...demands(
    'exfiltration',
    'review',
    'It demands that the conversation be passed on.',
    [[isGiving, is('response output result answer'), is('each every all any'), tool], { gap: 4, needs: [model] }],
    [
      [isReceiver],
      {
        needs: [carry, every],
        when: (one) => commandsToCarry(one) && !has('example e.g such like')(one),
      },
    ],
  ),
  ...demands(
    'exfiltration',
    'review',
    'It demands that secrets be passed on.',
    [[isFile], { needs: [carry], unless: negation, when: (one) => one.index > 0 && isDemand(one) }],
    [[is('any every each all'), secret, human | model, is('come find encounter')], { gap: 4 }],
    [
      [isVaultTool],
      {
        unless: negation,
        when: (one) =>
          ((one.mask & (carry | order | parameter)) !== 0 || has('return output result value')(one)) &&
          (isDemand(one) || has('you take')(one)),
      },
    ],
    [[is('content contents'), store], { gap: 2, unless: negation, when: isUnreturned }],
  ),
];

const OTHER_TOOLS: readonly Demand[] = demands(
  'other-tool',
  'review',
  'It says how the tools of other servers must be used.',
  [[isDeniedCall, is('tool'), is('other another'), is('server')], { gap: 4 }],
);

/** Whether the word is the subject of its clause: not `any address the user previously approved`. */
function beginsClause({ tokens }: Sentence, at: number): boolean {
  const start = /^(?:the|your)$/.test(tokens[at - 1]?.base ?? '') ? at - 1 : at;
  const [before, subject] = [tokens[start - 1], tokens[start]];
  if (before === undefined || subject === undefined) return true;
  return isConjunction(before) || subject.start - before.end > 1;
}

const isConjunction = is('and as because for since that');

const AUTHORITY: readonly Demand[] = demands(
  'authority',
  'block',
  'It claims an approval that nobody gave in the conversation.',
  [[is('this it action call step'), is('pre-approved pre-authorized preapproved preauthorized')], { gap: 3 }],
  [
    [
      human | model,
      is('already implicitly previously beforehand hereby'),
      is('approve consent agree authorize authorise permit grant accept confirm verify permission'),
    ],
    {
      gap: 4,
      when: (one, first) => beginsClause(one, first) && !has('who whether if which list')(one),
    },
  ],
  [
    [
      is('administrator admin company compliance department management developer policy owner'),
      is('has have already had'),
      is('approve authorize authorise permit clear mandate'),
      is('this these it all full'),
    ],
    { gap: 3, unless: must },
  ],
);

const SOLICITATIONS: readonly Demand[] = demands(
  'solicitation',
  'review',
  'It makes the model ask the user for a secret.',
  [
    [is('ask request demand convince persuade'), human, is('for give provide enter'), secret],
    { gap: 4, unless: negation, when: (one) => !isLimited(one, 'if') },
  ],
);

export const COMBINATIONS: readonly Demand[] = [
  ...SECRECY,
  ...OVERRIDES,
  ...EXFILTRATIONS,
  ...OTHER_TOOLS,
  ...AUTHORITY,
  ...SOLICITATIONS,
];
