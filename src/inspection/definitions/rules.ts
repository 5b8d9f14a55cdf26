// Lists what a definition must not demand of the model that reads it, in classes of meaning: who is addressed, what
// is demanded, of what, and where it would go. English only.

import { COMBINATIONS, isReading } from './combinations.js';
import {
  beginsWithGerund,
  beginsWithNegation,
  type Demand,
  demands,
  findAll,
  has,
  is,
  isCommanded,
  isDenied,
  isFramed,
  isImperative,
  isJoined,
  isLabelled,
  isOrder,
  isQuestion,
  type Match,
  type Step,
} from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence } from './sentences.js';

const {
  address,
  answer,
  call,
  carry,
  change,
  command,
  conceal,
  consent,
  context,
  covert,
  disclose,
  disparage,
  every,
  execute,
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
const VALUABLE = SOURCE | OUTSIDE | secret | name;

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
const isBinding = is(
  'previous prior earlier preceding your safety security system ethical developer original',
);
const isTelling = is(
  'tell inform notify alert reveal disclose say announce acknowledge warn divulge advise admit discuss share',
);
/** Not `mention` with a person as its object, as in a comment; not what is shown, which is a matter of form. */
const isDeniedDisclosure: Step = (token) => token.isDenied === true && isTelling(token);
const isNotShown: Step = ({ mask, isDenied }) => isDenied === true && (mask & disclose) !== 0;
const isDone = is('this that it step call upload request existence presence');
/** To learn, or to be told; not what the user says. */
const isLearning: Step = ({ mask, isBase }) =>
  (mask & know) !== 0 || ((mask & disclose) !== 0 && !isBase);
const isBareSecret: Step = ({ mask }) => (mask & secret) !== 0 && (mask & name) === 0;
/** Not what has been leaked before. */
const isMoving: Step = ({ base, mask, isBase }) =>
  (mask & carry) !== 0 && (isBase || base !== 'leak');
const isFilledUrl: Step = ({ mask }) => (mask & address) !== 0 && (mask & (context | secret)) !== 0;
const isTarget = is(
  'recipient destination amount account bcc cc receiver beneficiary payee address iban wallet',
);
const isAlteration = is(
  'change replace redirect modify substitute swap alter reroute rewrite set override',
);
const isAltering: Step = (token) => token.isBase && isAlteration(token);
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
const isKept: Step = (token) =>
  token.isDenied === true && (token.base === 'mention' || isTelling(token));

/** Whether it says what the user is not to be told because it is not so: `never tell the user a field is missing`. */
function isCorrection({ tokens }: Sentence, verb: number): boolean {
  const object = tokens.findIndex((token, at) => at > verb && (token.mask & human) !== 0);
  const next = tokens[object + 1]?.base ?? '';
  const isOfResult = tokens.slice(object + 1).some(({ base }) => OUTCOMES.has(base));
  return /^(?:a|an|to|there|they|no)$/.test(next) || isOfResult;
}

const isOfCall = has('this these it step call parameter upload access process');

/** Whether it says what to use to read something: `use get_page to fetch the transcript`. */
function isToRead({ tokens }: Sentence): boolean {
  return tokens.some(({ mask }, at) => (mask & read) !== 0 && tokens[at - 1]?.base === 'to');
}

/** Whether it says of the product, rather than of the call, that people are not shown something. */
function isDescribed({ tokens, mask, bases }: Sentence): boolean {
  const at = tokens.findIndex((token) => (token.mask & negation) !== 0);
  const before = tokens[at - 1];
  if (before?.base === 'do' && !before.isBase) return (mask & model) === 0;
  const isPassive = /^(?:aren't|isn't|won't|can't|cannot)$/.test(tokens[at]?.base ?? '');
  const isAfterBe =
    /^(?:are|is|be|will|can|may|might|could)$/.test(before?.base ?? '') && !bases.has('supposed');
  return (
    (isPassive || isAfterBe) && (mask & must) === 0 && !isOfCall({ tokens, mask, bases, index: 0 })
  );
}

const SECRECY: readonly Demand[] = [
  ...demands(
    'secrecy',
    'block',
    'It demands that something be kept from the user.',
    [
      [isDeniedDisclosure, human],
      { gap: 4, when: (one, first) => !isDescribed(one) && !isCorrection(one, first) },
    ],
    [
      [isNotShown, isDone, human],
      { gap: 4, when: (one, first) => !isDescribed(one) && !isCorrection(one, first) },
    ],
    [[isKept, is('it this these them anything')], { gap: 2, when: (one) => !isLabelled(one) }],
    [[disclose, is('nothing no-one nobody')], { gap: 2, when: isCommanded }],
    [
      [conceal, is('from'), isInFront],
      {
        gap: 8,
        when: (one, first) => isCommanded(one, first) || (isOfCall(one) && (one.mask & must) !== 0),
      },
    ],
    [
      [
        is('keep leave remain stay treat'),
        is('secret hidden conceal confidential private invisible silent quiet between'),
      ],
      { gap: 5, needs: [human | model], when: has('from between this') },
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
        when: (one, first) => !has('if when')(one) && !isJoined(one, first) && !isDescribed(one),
      },
    ],
    [
      [negation, isPerson, know | disclose],
      {
        gap: 4,
        when: (one) =>
          !isDescribed(one) && !isLabelled(one) && ((one.mask & must) !== 0 || isOfCall(one)),
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
          (isOrder(one) || beginsWithNegation(one)) &&
          !isQuestion(one, first),
      },
    ],
    [
      [isLeftOut, is('confirmation approval consent verification confirm')],
      {
        gap: 4,
        when: (one, first) =>
          one.tokens[first]?.base === 'without'
            ? one.index > 0 && !isLabelled(one) && isGoingOn(one)
            : isCommanded(one, first),
      },
    ],
    [[isProceeding, isWithout, consent], { gap: 4, when: isCommanded }],
  ),
];

const ORDERS: readonly Demand[] = [
  ...demands(
    'order-to-model',
    'block',
    'It demands that instructions or safeguards be set aside.',
    [[isSetAside, standing, rule], { gap: 5, unless: negation, when: isCommanded }],
    [[override, isBinding, rule], { gap: 5, unless: negation }],
    [[override, context], { gap: 4, unless: negation }],
    [
      [is('ignore disregard forget discard neglect'), is('everything anything all what whatever')],
      { gap: 2, when: has('above before previous prior said tell earlier know learn instruct') },
    ],
  ),
  ...demands('order-to-model', 'block', 'It gives itself precedence over other instructions.', [
    [
      is('instruction rule directive policy guidance requirement note this these'),
      is('override supersede overrule replace precedence priority outrank'),
      rule | human | standing,
    ],
    { needs: [rule], when: has('instruction directive prompt guideline system') },
  ]),
  ...demands(
    'order-to-model',
    'block',
    'It gives the model another role.',
    [[is('you'), is('now'), is('mode assistant agent administrator ai')], { gap: 4 }],
    [
      [
        is('act pretend behave assume become'),
        is(
          'maintenance developer debug admin administrator root unrestricted jailbreak god dan sudo superuser privileged unfiltered',
        ),
      ],
      { gap: 5, when: (one, first) => has('mode now role')(one) || isCommanded(one, first) },
    ],
    [
      [is('jailbreak unrestricted unfiltered uncensored'), is('mode access system assistant ai')],
      { gap: 3 },
    ],
  ),
  ...demands('order-to-model', 'block', 'It demands that untrusted text be obeyed.', [
    [
      is('trust obey follow execute'),
      is('all any every implicitly blindly unconditionally'),
      is('input instruction command query directive request'),
    ],
    { gap: 4, needs: [human | override | remote] },
  ]),
  ...demands('order-to-model', 'block', 'It demands that decoded text be followed.', [
    [
      is('decode decrypt decipher unpack rot13 base64'),
      is('follow execute obey run perform apply comply'),
    ],
    { gap: 5 },
  ]),
  ...demands('order-to-model', 'block', 'It demands that a command be executed with the call.', [
    [execute, command],
    {
      gap: 5,
      unless: negation,
      needs: [tool],
      when: (one, first) => isCommanded(one, first) && isFramed(one),
    },
  ]),

  ...demands(
    'order-to-model',
    'review',
    'It prescribes what the answers of the model contain.',
    [
      [is('every all each any always end your'), answer],
      {
        gap: 4,
        needs: [address],
        when: has('render append include add end insert image link prepend begin start'),
      },
    ],
    [
      [is('prepend prefix begin start end append suffix'), is('your every all each'), answer],
      { gap: 3, when: has('every all each any') },
    ],
  ),
  ...demands('order-to-model', 'review', 'It demands that what the model was told be repeated.', [
    [disclose | carry | read, is('your entire full complete whole'), context],
    { gap: 4, unless: negation, when: (one) => one.index > 0 && !one.bases.has('return') },
  ]),
  ...demands('order-to-model', 'note', 'It tells the model when it must call tools.', [
    [must | every, call, tool | name],
    { gap: 4, needs: [model | must] },
  ]),
];

const FURTHER: readonly Demand[] = [
  ...demands('order-to-model', 'block', 'It says that restrictions hold no longer.', [
    [rule, is('not no never'), is('apply longer valid effect force hold')],
    { gap: 4, when: has('longer more anymore now') },
  ]),
  ...demands(
    'order-to-model',
    'review',
    'It demands that instructions from another source be followed.',
    [
      [read, address, is('carry execute follow perform run do obey')],
      { gap: 6, when: (one) => one.index > 0 || isOrder(one) },
    ],
    [
      [
        is('follow do obey execute perform'),
        is('instruction whatever command order directive'),
        is('output text result page response content say'),
      ],
      { when: has('even whatever without contradict unquestioningly blindly exactly') },
    ],
    [
      [
        is('apply remember follow use repeat'),
        is('future subsequent later'),
        is('conversation session interaction chat request'),
      ],
      { gap: 5, when: isImperative },
    ],
  ),

  ...demands(
    'exfiltration',
    'review',
    'It demands that the conversation or secrets be passed on.',
    [[SOURCE, carry, DESTINATION], { gap: 8, unless: negation, needs: [model] }],
    [[read, isBareSecret, isMoving], { gap: 8, when: (one) => one.index > 0 || isOrder(one) }],
    [[carry, human, secret, parameter | answer], { gap: 5, when: isImperative }],
    [[carry, store], { gap: 8, when: isImperative }],
    [[carry, context], { gap: 6, unless: negation, when: isImperative }],
    [[every, must, carry, address]],
  ),
  ...demands(
    'other-tool',
    'review',
    'It gives orders about calls of other tools.',
    [[every, answer | tool | call, must, carry | change, address], { gap: 7 }],
    [[isTarget, is('rather instead'), isPerson], { gap: 6 }],
  ),
];

const READS: readonly Demand[] = [
  ...demands(
    'sensitive-read',
    'block',
    'It demands that the model read a file in which secrets are kept.',
    [
      [read, store],
      {
        gap: 8,
        when: (one, first) =>
          !isDenied(one, first) &&
          !beginsWithGerund(one) &&
          (isOrder(one) || isImperative(one, first)),
      },
    ],
    [[store, isReading], { gap: 4, needs: [must | order], unless: negation }],
  ),
  ...demands('sensitive-read', 'review', 'It demands that the model collect secrets with a call.', [
    [is('also additionally'), read | carry, secret | SOURCE],
    { gap: 7, when: has('any all every private found') },
  ]),
  ...demands('sensitive-read', 'note', 'It names a place in which secrets are kept.', [[store]]),
];

const EXFILTRATIONS: readonly Demand[] = [
  ...demands(
    'exfiltration',
    'block',
    'It demands that the conversation or a file with secrets be passed on.',
    [
      [carry, SOURCE, DESTINATION],
      { gap: 9, unless: negation, when: (one) => one.index > 0 || (one.mask & OUTSIDE) !== 0 },
    ],
    [[carry, DESTINATION, SOURCE], { gap: 7, unless: negation, when: isOrder }],
    [
      [call | carry, name | tool | address, SOURCE],
      {
        gap: 7,
        unless: negation,
        when: (one) => (one.index > 0 || isOrder(one)) && !isToRead(one),
      },
    ],
    [[isFilledUrl], { when: (one) => one.index > 0 || isOrder(one) }],
  ),
  ...demands(
    'exfiltration',
    'block',
    'It demands that secrets be passed on.',
    [[carry | read, isBareSecret, OUTSIDE], { gap: 9, unless: negation }],
    [
      [carry, secret | store, answer | parameter],
      {
        gap: 9,
        unless: negation,
        when: (one) => (one.mask & (store | model)) !== 0 || (one.index > 0 && isFramed(one)),
      },
    ],
  ),
  ...demands(
    'exfiltration',
    'review',
    'It demands that the conversation or secrets be passed on.',
    [[carry, SOURCE], { unless: negation, when: isOrder }],
    [[parameter | name, is('contain hold carry be equal'), SOURCE], { gap: 5, needs: [must] }],
    [
      [
        carry,
        is('output result content response value'),
        name,
        parameter | address | answer | remote | context,
      ],
      { needs: [secret | SOURCE] },
    ],
  ),
  ...demands('exfiltration', 'review', 'It says that content is sent to others.', [
    [isTransfer, remote],
    {
      needs: [secret | SOURCE | human | model],
      unless: negation,
      when: has(
        'all any every also automatically continuously party partner affiliate advertiser attacker credential password location history harvest',
      ),
    },
  ]),
];

/** A note that becomes a finding where the same text speaks of secrets or of the conversation. */
export const SENT_ELSEWHERE = 'It says that content is sent elsewhere.';
const TRANSFERS = demands('exfiltration', 'note', SENT_ELSEWHERE, [
  [isTransfer, remote],
  { unless: negation },
]);

const isToolNoun = is('tool function plugin server connector');
const OTHER_TOOLS: readonly Demand[] = [
  ...demands(
    'other-tool',
    'block',
    'It changes the arguments of calls to another tool.',
    [[order | every, name, change], { gap: 7, needs: [address] }],
    [
      [
        order | every,
        call | tool,
        change,
        (token) => isTarget(token) || is('url path email to')(token),
      ],
      { gap: 7, needs: [address] },
    ],
  ),
  ...demands('other-tool', 'review', 'It gives orders about calls of other tools.', [
    [order | every, isAltering, isTarget],
    { gap: 7, needs: [call | name] },
  ]),
  ...demands(
    'other-tool',
    'review',
    'It calls other tools unsafe or replaced, so that this one is called.',
    [
      [is('supersede replace override obsolete'), is('all any every other existing'), isToolNoun],
      { gap: 2 },
    ],
    [[is('other another all any every'), isToolNoun, disparage], { gap: 5 }],
  ),
  ...demands('other-tool', 'note', 'It speaks of another tool.', [[call, name], { gap: 4 }]),
];

const AUTHORITY: readonly Demand[] = demands(
  'authority',
  'block',
  'It claims an approval that nobody gave in the conversation.',
  [
    [is('pre-approved pre-authorized preapproved preauthorized whitelisted')],
    { needs: [human | call] },
  ],
  [
    [
      human | model,
      is('already implicitly previously beforehand automatically fully hereby'),
      is('approve consent agree authorize authorise permit grant accept confirm verify permission'),
    ],
    { gap: 4, when: (one) => !has('who whether if which that list')(one) },
  ],
  [
    [
      is(
        'administrator admin company compliance department management developer policy regulator legal owner',
      ),
      is('has have already had'),
      is(
        'grant granted approve authorize authorise permit permitted clear cleared mandate mandated',
      ),
    ],
    { gap: 5 },
  ],
);

const SOLICITATIONS: readonly Demand[] = demands(
  'solicitation',
  'review',
  'It makes the model ask the user for a secret.',
  [
    [is('ask request prompt tell instruct demand convince persuade'), human, secret],
    { unless: negation },
  ],
);

const RULES: readonly Demand[] = [
  ...SECRECY,
  ...ORDERS,
  ...READS,
  ...EXFILTRATIONS,
  ...TRANSFERS,
  ...OTHER_TOOLS,
  ...AUTHORITY,
  ...SOLICITATIONS,
  ...FURTHER,
  ...COMBINATIONS,
];

/** What the rules find in a sentence, at most one match a rule. */
export function findDemands(sentence: Sentence): readonly Match[] {
  return findAll(RULES, sentence);
}
