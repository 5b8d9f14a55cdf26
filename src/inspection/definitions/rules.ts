// Lists what a definition must not demand of the model that reads it, in classes of meaning: who is addressed, what
// is demanded, of what, and where it would go. English only.

import { COMBINATIONS, isFile, isOfSecret, isUnabridged } from './combinations.js';
import { CONDUCT } from './conduct.js';
import {
  beginsWithGerund,
  beginsWithNegation,
  type Demand,
  demands,
  either,
  findAll,
  has,
  is,
  isCommanded,
  isDenied,
  isFramed,
  isImperative,
  isJoined,
  isLabelled,
  isLimited,
  isOrder,
  isQuestion,
  type Match,
  type Step,
} from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence } from './sentences.js';
import { SUPERLATIVES, TRIGGERS } from './triggers.js';

const {
  address,
  answer,
  call,
  carry,
  change,
  conceal,
  consent,
  context,
  covert,
  disclose,
  disparage,
  every,
  human,
  know,
  model,
  must,
  name,
  negation,
  order,
  override,
  parameter,
  read,
  remote,
  rule,
  secret,
  standing,
  store,
  tool,
} = CLASS;

const SOURCE = store | context;
const OUTSIDE = address | remote;
const DESTINATION = parameter | OUTSIDE | answer;
const VALUABLE = SOURCE | OUTSIDE | secret;

const isLeftOut: Step = (token) =>
  (token.isBase && /^(?:skip|bypass|suppress|omit|disable)$/.test(token.base)) ||
  (token.base === 'without' && (token.mask & negation) !== 0);
/** As a verb: a tool may well `require no confirmation`. */
const isRequest: Step = ({ base, isBase }) =>
  (isBase && /^(?:ask|confirm|request|seek|wait|prompt)$/.test(base)) || base === 'ask';
const isProceeding = is('proceed continue go merge execute run complete finish');
const isWithout: Step = ({ base, mask }) => base === 'without' && (mask & negation) !== 0;
const isGoingOn = has('proceed continue ahead');
/** Not what a tool itself ignores: `ignores other filters`. */
const isSetAside: Step = ({ mask, isBase }) => (mask & override) !== 0 && isBase;
const isBinding = is('previous prior earlier preceding your safety security system ethical developer original');
const isTelling = is(
  'tell inform notify alert reveal disclose say announce acknowledge warn divulge advise admit discuss',
);
/** The one for whom the model works, rather than whoever gets to see what a tool publishes. */
const isUser = is('user human operator person developer administrator them they');
/** How something is shown is a matter of form: `do not mention internal ids to the user`. */
const isDetail = is('id identifier uuid name raw internal technical json jargon minor');

function isOfForm({ tokens }: Sentence, verb: number): boolean {
  const object = tokens.slice(verb, verb + 7);
  return object.some(isDetail) && !object.some(({ base }) => base === 'it' || base === 'this');
}
/** Not `mention` with a person as its object, as in a comment; not what is shown, which is a matter of form. */
const isDeniedDisclosure: Step = (token) => token.isDenied === true && isTelling(token);
const isNotShown: Step = ({ mask, isDenied }) => isDenied === true && (mask & disclose) !== 0;
const isDone = is('this that it step call upload request existence presence');
/** To learn, or to be told; not what the user says. */
const isLearning: Step = ({ base, mask, isBase }) =>
  ((mask & know) !== 0 && !/^(?:see|visible)$/.test(base)) || ((mask & disclose) !== 0 && !isBase);
/** A token is what a login hands out to be passed on. */
const isBareSecret: Step = ({ base, mask }) =>
  (mask & secret) !== 0 && (mask & name) === 0 && !/^(?:access|auth|bearer|cookie|refresh|session|token)$/.test(base);
const isObtaining = is(
  'read open load prefetch fetch retrieve get collect gather extract dump grab obtain find search steal harvest',
);
/** Not what has been leaked before. */
const isMoving: Step = ({ base, mask, isBase }) => (mask & carry) !== 0 && (isBase || base !== 'leak');
/** Not with a key, which an endpoint may well take. */
const isFilledUrl: Step = ({ mask }) => (mask & address) !== 0 && (mask & context) !== 0;
/** `Reads ~/.kube/config` says what a tool does. */
const isReadByOrder: Step = ({ base, mask, isBase }) => (mask & read) !== 0 && (isBase || base === 'load');
const isTarget = is('recipient destination amount account bcc cc receiver beneficiary payee address iban wallet');
const isTransfer = is(
  'send forward upload share stream sync synchronize transmit post store report copy leak exfiltrate submit log mirror save deliver email record relay push transfer backup',
);

const OUTCOMES: ReadonlySet<string> = new Set([
  'error',
  'succeed',
  'succeeded',
  'success',
  'complete',
  'completed',
  'answer',
  'stack',
]);

const isPerson = is('user human person people operator customer anybody anyone somebody');
const isInFront = is('user human person people operator anybody anyone anyone them somebody');
const isKept: Step = (token) => token.isDenied === true && (token.base === 'mention' || isTelling(token));

/** Whether it says what the user is not to be told because it is not so: `never tell the user a field is missing`. */
function isCorrection({ tokens }: Sentence, verb: number): boolean {
  const object = tokens.findIndex((token, at) => at > verb && (token.mask & human) !== 0);
  const next = tokens[object + 1]?.base ?? '';
  const after = tokens.slice(object + 1);
  const isOfResult =
    after.some(({ base }) => OUTCOMES.has(base)) ||
    (next === 'that' && after.slice(1, 5).some(({ mask }) => (mask & negation) !== 0));
  return /^(?:a|an|to|there|they|no)$/.test(next) || isOfResult;
}

const isOfCall = has('this these it step call parameter upload access process');

/** Whether it says what to use to read something: `use get_page to fetch the transcript`. */
function isToRead({ tokens }: Sentence): boolean {
  return tokens.some(({ mask }, at) => (mask & read) !== 0 && tokens[at - 1]?.base === 'to');
}

/** Whether it says of the product, rather than of the call, that people are not shown something. */
function isDescribed(sentence: Sentence): boolean {
  if (isLimited(sentence, 'until unless')) return true;
  const { tokens, mask, bases } = sentence;
  const at = tokens.findIndex((token) => (token.mask & negation) !== 0);
  const before = tokens[at - 1];
  if (before?.base === 'do' && !before.isBase) return (mask & model) === 0;
  const isPassive = /^(?:aren't|isn't|won't|can't|cannot)$/.test(tokens[at]?.base ?? '');
  const isAfterBe = /^(?:are|is|be|will|can|may|might|could)$/.test(before?.base ?? '') && !bases.has('supposed');
  return (isPassive || isAfterBe) && (mask & must) === 0 && !isOfCall({ tokens, mask, bases, index: 0 });
}

/** Whether the user has decided about it before: `skip the confirmation if the user agreed`. */
function isConditional(sentence: Sentence): boolean {
  return isLimited(sentence, 'if unless until') || namesTime(sentence);
}
const namesTime = has('when');

const SECRECY: readonly Demand[] = [
  ...demands(
    'secrecy',
    'block',
    'It demands that something be kept from the user.',
    [
      [isDeniedDisclosure, isUser],
      {
        gap: 4,
        when: (one, first) => !isDescribed(one) && !isCorrection(one, first) && !isOfForm(one, first),
      },
    ],
    [[isNotShown, isDone, isUser], { gap: 4, when: (one, first) => !isDescribed(one) && !isCorrection(one, first) }],
    [
      [isKept, is('it this these them anything')],
      { gap: 2, when: (one) => !isLabelled(one) && !isOfSecret(one) && !isDescribed(one) },
    ],
    [[disclose, is('nothing'), is('about of')], { gap: 2, when: isCommanded }],
    [
      [conceal, is('from'), isInFront],
      {
        gap: 8,
        when: (one, first) => isOfCall(one) && (isCommanded(one, first) || (one.mask & must) !== 0),
      },
    ],
    [
      [
        is('keep leave remain stay treat'),
        is('secret hidden conceal confidential private invisible silent quiet between'),
      ],
      { gap: 5, needs: [human | model], when: has('from between') },
    ],
  ),
  ...demands(
    'secrecy',
    'block',
    'It says that the user must not learn of something.',
    [
      [human, negation, isLearning],
      {
        gap: 4,
        when: (one, first) =>
          !has('if when')(one) && !isJoined(one, first) && one.tokens[first + 1]?.base !== 'that' && !isDescribed(one),
      },
    ],
    [
      [negation, isPerson, know | disclose],
      {
        gap: 4,
        when: (one) => !isDescribed(one) && !isLabelled(one) && ((one.mask & must) !== 0 || isOfCall(one)),
      },
    ],
  ),
  ...demands(
    'secrecy',
    'block',
    'It demands an action that nobody notices.',
    [[covert, carry | read | call], { gap: 3, needs: [VALUABLE], unless: negation }],
    [
      [carry | call, covert],
      {
        gap: 14,
        needs: [VALUABLE],
        unless: negation,
        when: ({ tokens }) => tokens.slice(-2).some(({ mask }) => (mask & covert) !== 0),
      },
    ],
  ),
  ...demands(
    'secrecy',
    'block',
    'It demands that the user not be asked, or that checks be left out.',
    [
      [negation, isRequest, human | consent],
      {
        gap: 4,
        when: (one, first) =>
          one.index > 0 &&
          !isLabelled(one) &&
          !isConditional(one) &&
          (isOrder(one) || beginsWithNegation(one)) &&
          !isQuestion(one, first),
      },
    ],
    [
      [isLeftOut, is('confirmation approval consent confirm')],
      {
        gap: 4,
        when: (one, first) =>
          !isConditional(one) &&
          (one.tokens[first]?.base === 'without'
            ? one.index > 0 && !isLabelled(one) && isGoingOn(one)
            : isCommanded(one, first)),
      },
    ],
    [
      [isProceeding, isWithout, consent],
      { gap: 4, when: (one, first) => !isConditional(one) && isCommanded(one, first) },
    ],
  ),
];

/** Not how a file of settings relates to another. */
const isFirmly = has('these this any all must');

const namesGuard = has('instruction guideline guardrail safeguard safety directive your');
const isIgnored = is('ignore disregard forget neglect bypass circumvent evade');

/** Not the rules that the tool is about: `disable all rules of the firewall`. */
function isOfModel(sentence: Sentence, verb: number): boolean {
  const token = sentence.tokens[verb];
  return namesGuard(sentence) || (token !== undefined && isIgnored(token));
}

const ORDERS: readonly Demand[] = [
  ...demands(
    'order-to-model',
    'block',
    'It demands that instructions or safeguards be set aside.',
    [
      [isSetAside, standing, rule],
      {
        gap: 5,
        unless: negation,
        when: (one, first) => isCommanded(one, first) && isOfModel(one, first),
      },
    ],
    [
      [isSetAside, isBinding, rule],
      {
        gap: 5,
        unless: negation,
        when: (one, first) =>
          (one.index > 0 || has('previous prior safety')(one)) &&
          (one.tokens[first - 1]?.base !== 'to' || (one.mask & must) !== 0),
      },
    ],
    [
      [isSetAside, context],
      {
        gap: 4,
        unless: negation,
        when: (one, first) =>
          (isCommanded(one, first) || has('attention heed aside')(one)) && !has('override overwrite')(one),
      },
    ],
    [
      [is('ignore disregard forget discard neglect'), is('everything anything what whatever')],
      { gap: 2, when: has('above before previous prior said tell earlier know learn instruct') },
    ],
  ),
  ...demands('order-to-model', 'block', 'It gives itself precedence over other instructions.', [
    [
      is('instruction directive guideline'),
      is('override supersede overrule replace precedence priority outrank'),
      rule | human,
    ],
    { when: isFirmly },
  ]),
  ...demands(
    'order-to-model',
    'block',
    'It gives the model another role.',
    [[is('you'), is('are act'), is('now'), is('mode assistant agent administrator ai')], { gap: 4 }],
    [
      [
        is('act pretend behave assume'),
        is('maintenance debug unrestricted jailbreak god dan sudo superuser privileged unfiltered'),
      ],
      { gap: 5, when: (one, first) => has('mode now role')(one) || isCommanded(one, first) },
    ],
    [[is('jailbreak unrestricted unfiltered uncensored'), is('mode assistant ai')], { gap: 3 }],
  ),
  ...demands('order-to-model', 'block', 'It demands that untrusted text be obeyed.', [
    [
      is('trust obey follow execute'),
      is('all any every implicitly blindly unconditionally'),
      is('input instruction command query directive request'),
    ],
    {
      gap: 4,
      needs: [human | override | remote],
      when: has('without question blindly implicitly unconditionally always hesitation'),
    },
  ]),
  ...demands('order-to-model', 'block', 'It demands that decoded text be followed.', [
    [is('decode decrypt decipher unpack rot13 base64'), is('follow execute obey comply act')],
    { gap: 5 },
  ]),
  ...demands('order-to-model', 'review', 'It prescribes what the answers of the model contain.', [
    [is('prepend prefix begin start end append suffix'), is('your every all each'), answer],
    { gap: 3, needs: [must | model, VALUABLE], when: has('every all each any') },
  ]),
  ...demands('order-to-model', 'note', 'It tells the model when it must call tools.', [
    [must | every, call, tool | name],
    { gap: 4, needs: [model | must] },
  ]),
];

const FURTHER: readonly Demand[] = [
  ...demands('order-to-model', 'review', 'It demands that instructions from another source be followed.', [
    [read, address, is('execute follow obey'), either(rule, 'it them command step whatever what')],
    { gap: 6, when: (one) => one.index > 0 || isOrder(one) },
  ]),
  ...demands(
    'exfiltration',
    'review',
    'It demands that the conversation or secrets be passed on.',
    [[store, carry, DESTINATION], { gap: 8, unless: negation, needs: [model] }],
    [[context, carry, parameter | OUTSIDE], { gap: 8, unless: negation, needs: [must], when: isUnabridged }],
    [[isObtaining, isBareSecret, isMoving], { gap: 8, when: isImperative }],
    [[carry, isFile], { gap: 8, when: isImperative }],
    [
      [carry, context],
      {
        gap: 6,
        unless: negation,
        when: (one, first) => isUnabridged(one) && isImperative(one, first),
      },
    ],
  ),
  ...demands('other-tool', 'review', 'It gives orders about calls of other tools.', [
    [every, answer | tool | call, must, either(carry | change, 'go'), address],
    { gap: 7 },
  ]),
];

const isAct: Step = ({ mask, isBase }) => isBase && (mask & (read | carry)) !== 0;

const READS: readonly Demand[] = [
  ...demands(
    'sensitive-read',
    'block',
    'It demands that the model read a file in which secrets are kept.',
    [
      [isReadByOrder, store],
      {
        gap: 8,
        when: (one, first) =>
          !isDenied(one, first) &&
          !beginsWithGerund(one) &&
          (one.tokens.some(isFile) || (one.mask & human) !== 0 || isFramed(one)) &&
          ((one.tokens[first - 1]?.mask ?? 0) & name) === 0 &&
          (isOrder(one) || isImperative(one, first)),
      },
    ],
    [[isFile, read], { gap: 4, needs: [must | order], unless: negation }],
  ),
  ...demands('sensitive-read', 'review', 'It demands that the model collect secrets with a call.', [
    [is('also additionally'), isAct, secret | SOURCE],
    { gap: 7, when: has('any all every private found') },
  ]),
  ...demands('sensitive-read', 'note', 'It names a place in which secrets are kept.', [[store]]),
];

/** Whether a parameter is named after a secret: `provide the password parameter`. */
function takesSecret({ tokens }: Sentence): boolean {
  return tokens.some(({ mask }, at) => (mask & secret) !== 0 && ((tokens[at + 1]?.mask ?? 0) & parameter) !== 0);
}

/** `Make sure that ~/.netrc exists`. */
const isRequirement = has('exist present available configured');
const isOffered = has('optional optionally summary');
/** Not what is configured: `set`, `store`. */
const isHandedOver: Step = ({ base, mask }) =>
  (mask & carry) !== 0 && !/^(?:set|store|save|add|log|encode)$/.test(base);

const PRIVATE = secret | SOURCE | human | model;
const isContinuous = has('continuously');
const namesOutsider = has('party partner affiliate advertiser attacker credential password location history harvest');

const EXFILTRATIONS: readonly Demand[] = [
  ...demands(
    'exfiltration',
    'block',
    'It demands that the conversation or a file with secrets be passed on.',
    [
      [carry, store, DESTINATION],
      { gap: 9, unless: negation, when: (one) => one.index > 0 || (one.mask & OUTSIDE) !== 0 },
    ],
    [
      [carry, context, parameter | OUTSIDE],
      {
        gap: 9,
        unless: negation,
        when: (one) => !isOffered(one) && (one.index > 0 || (one.mask & OUTSIDE) !== 0),
      },
    ],
    [
      [call | carry, name | tool | address, SOURCE],
      {
        gap: 7,
        unless: negation,
        when: (one) =>
          (one.index > 0 || isOrder(one)) &&
          !isRequirement(one) &&
          !isToRead(one) &&
          ((one.mask & store) !== 0 || isUnabridged(one)),
      },
    ],
    [[isFilledUrl], { when: (one) => one.index > 0 || isOrder(one) }],
  ),
  ...demands(
    'exfiltration',
    'block',
    'It demands that secrets be passed on.',
    [[isHandedOver, isBareSecret, OUTSIDE], { gap: 9, unless: negation }],
    [
      [isHandedOver, isBareSecret, answer | parameter],
      {
        gap: 9,
        unless: negation,
        when: (one, first) =>
          !takesSecret(one) &&
          !one.bases.has('environment') &&
          isImperative(one, first) &&
          (isFramed(one) || isCommanded(one, first)),
      },
    ],
  ),
  ...demands('exfiltration', 'review', 'It says that content is sent to others.', [
    [isTransfer, remote],
    {
      unless: negation,
      when: (one) => isContinuous(one) || ((one.mask & PRIVATE) !== 0 && namesOutsider(one)),
    },
  ]),
];

/** A note that becomes a finding where the same text speaks of secrets or of the conversation. */
export const SENT_ELSEWHERE = 'It says that content is sent elsewhere.';
const TRANSFERS = demands('exfiltration', 'note', SENT_ELSEWHERE, [[isTransfer, remote], { unless: negation }]);

const isToolNoun = is('tool function plugin server connector');
const isQualified = has('may can that api plugin version');
const OTHER_TOOLS: readonly Demand[] = [
  ...demands(
    'other-tool',
    'block',
    'It changes the arguments of calls to another tool.',
    [[order | every, name, change], { gap: 7, needs: [address] }],
    [
      [order | every, call | tool, change, (token) => isTarget(token) || is('url path email to')(token)],
      { gap: 7, needs: [address] },
    ],
  ),
  ...demands(
    'other-tool',
    'review',
    'It calls other tools unsafe or replaced, so that this one is called.',
    [[is('supersede replace override obsolete'), is('all any every'), is('other'), isToolNoun]],
    [[is('other another alternative existing'), isToolNoun, disparage], { gap: 5, when: (one) => !isQualified(one) }],
  ),
  ...demands('other-tool', 'note', 'It speaks of another tool.', [[call, name], { gap: 4 }]),
];

const RULES: readonly Demand[] = [
  ...SECRECY,
  ...ORDERS,
  ...READS,
  ...EXFILTRATIONS,
  ...TRANSFERS,
  ...OTHER_TOOLS,
  ...FURTHER,
  ...COMBINATIONS,
  ...CONDUCT,
  ...TRIGGERS,
  ...SUPERLATIVES,
];

/** What the rules find in a sentence, at most one match a rule. */
export function findDemands(sentence: Sentence): readonly Match[] {
  return findAll(RULES, sentence);
}
