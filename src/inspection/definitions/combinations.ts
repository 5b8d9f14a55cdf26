// Lists demands by what stands together in a sentence, in any order: who is addressed, what is demanded, of what, and
// where it would go. rules.ts has those whose order tells them from a description. English only.

import {
  type Demand,
  demands,
  either,
  has,
  is,
  isCommanded,
  isDenial,
  isDenied,
  isFramed,
  isImperative,
  isLabelled,
  isOrder,
  isQuestion,
  type Step,
} from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

const { address, answer, call, carry, change, consent, context, disclose, every, execute, human } =
  CLASS;
const { know, model, must, name, negation, order, override, parameter, read, rule } = CLASS;
const { secret, store, tool } = CLASS;

export const isEntire = has(
  'all any every each entire full complete whole verbatim unabridged unredacted word latest last recent previous',
);
const isHushed: Step = ({ base, isDenied: denied }) =>
  denied === true &&
  /^(?:mention|reveal|disclose|tell|announce|acknowledge|discuss|divulge|admit|expose|share)$/.test(
    base,
  );
const isThis = is(
  'this that these those it existence presence step call argument parameter tool note synchronization upload access',
);
const isWe = has('we our us telemetry analytics vendor provider partner');
/** One, as a subject: `models` and `agents` are more often what a tool lists. */
const isModelNamed = ({ base, isBase }: Token): boolean =>
  isBase && /^(?:assistant|agent|model|llm|ai|chatbot|claude|gpt)$/.test(base);
const isGiving = is(
  'add share give hand supply state enter fill paste type provide pass put copy send attach append transmit submit include insert place write forward',
);
/** A tool that gives out secrets or what was said, by the parts of its name. */
export const isVaultTool = ({ base, mask }: Token): boolean =>
  (mask & name) !== 0 &&
  /^(?:get|list|read|export|dump|show|fetch|load)_(?:\w{1,40}_)?(?:secret|credential|password|private|env|mailbox|keychain)s?(?:_|$)/.test(
    base,
  );

/** `Access` is more often a noun. */
export const isReading: Step = ({ base, mask }) => (mask & read) !== 0 && base !== 'access';
const isDeniedCall: Step = ({ mask, isDenied }) => isDenied === true && (mask & call) !== 0;
const isPersonal = has('user person customer human patient');
const isPossessor = either(human, 'authorization account server session environment');

/** Whether it is the secret of somebody: of the user, of an account, of another server. */
function isPossessed({ tokens }: Sentence): boolean {
  return tokens.some(isPossessor);
}

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
    (token, at) =>
      (token.mask & carry) !== 0 && (isCommanded(sentence, at) || isObliged(sentence, at)),
  );
}

function isObliged({ tokens }: Sentence, at: number): boolean {
  return tokens.slice(Math.max(0, at - 3), at).some(({ mask }) => (mask & (must | model)) !== 0);
}

const isTarget = is('recipient amount bcc cc receiver beneficiary payee iban wallet');
const isAlteration = is('change replace redirect substitute swap alter reroute rewrite');
/** In a sentence after the one that says what the tool does. */
const later = { when: ({ index }: Sentence): boolean => index > 0 };

/** Whether it is not said of what the tool returns. */
function isUnreturned({ index, bases }: Sentence): boolean {
  return index > 0 && !bases.has('return') && !bases.has('parse');
}

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
          (isOrder(one) ||
            one.tokens.slice(0, 2).some(({ mask }) => (mask & (negation | model)) !== 0)),
      },
    ],
    [
      [is('nobody no-one noone anybody anyone human'), know | disclose],
      { gap: 4, when: has('nobody no-one noone unaware not') },
    ],
    [[is('stay remain keep be stays'), is('silent unaware quiet'), is('about of on')], { gap: 3 }],
    [[is('let'), is('on'), is('that')], { gap: 1, needs: [negation] }],
    [
      [is('omit exclude drop leave keep'), is('reference mention out'), tool | answer | model],
      { gap: 4, when: (one) => one.index > 0 && (one.mask & answer) !== 0 },
    ],
    [
      [is('confidential private secret between'), is('tool model us you'), is('and us model')],
      { gap: 3, when: has('between') },
    ],
    [
      [
        is('remove delete erase clear'),
        is('trace entry evidence record history'),
        is('step call transcript history log this'),
      ],
      { gap: 5, when: isCommanded },
    ],
  ),
  ...demands(
    'secrecy',
    'review',
    'It prescribes that the user be told something untrue.',
    [[is('assure reassure convince persuade'), human], { gap: 2, when: isImperative }],
    [
      [is('tell inform'), human, is('succeed success successful fine normal')],
      { gap: 6, when: has('matter regardless whatever always') },
    ],
    [[is('answer reply respond say'), is('yes'), human], { gap: 6, needs: [consent | human] }],
    [[is('explain claim'), is('normal routine harmless')], { gap: 5, when: isCommanded }],
  ),
  ...demands(
    'secrecy',
    'block',
    'It demands that the user not be asked, or that checks be left out.',
    [
      [
        is('skip bypass omit'),
        is('check dialogue dialog consent review confirmation approval permission'),
      ],
      { gap: 5, when: (one, first) => isCommanded(one, first) && !isDenied(one, first) },
    ],
    [
      [consent, negation, is('show ask need require display')],
      { gap: 6, when: has('anymore longer more never') },
    ],
    [
      [is('complete finish proceed continue'), negation, is('ask confirm consult')],
      {
        gap: 6,
        when: (one, first) => one.index > 0 && isFramed(one) && !isQuestion(one, first),
      },
    ],
  ),
];

const OVERRIDES: readonly Demand[] = [
  ...demands(
    'order-to-model',
    'block',
    'It demands that instructions or safeguards be set aside.',
    [
      [rule, is('lift lifted supersede superseded void aside suspend suspended obsolete')],
      { gap: 8, unless: negation, when: (one) => one.index > 0 },
    ],
    [
      [rule, is('not no never'), is('apply cover concern bind')],
      { gap: 7, when: has('earlier previous prior safety host operator longer given aside') },
    ],
    [
      [
        is('disable deactivate bypass circumvent'),
        is('sandbox tls ssl certificate two-factor 2fa antivirus firewall allowlist'),
      ],
      { gap: 3, when: isCommanded },
    ],
    [
      [is('turn switch'), is('off'), is('logging audit sandbox protection verification firewall')],
      { gap: 2, when: isCommanded },
    ],
    [
      [is('escalate sudo elevate'), is('root administrator admin privilege')],
      { gap: 3, when: isCommanded },
    ],
    [
      [is('use'), is('highest all full'), is('privilege right permission')],
      { gap: 2, when: isImperative },
    ],
  ),
  ...demands(
    'order-to-model',
    'block',
    'It gives the model another role.',
    [[is('from'), is('now'), is('on')], { gap: 1, needs: [model | must] }],
    [
      [is('obey'), is('server instruction command directive system text order output')],
      { gap: 6, unless: negation },
    ],
    [
      [
        is('treat regard consider take'),
        is('as'),
        is('command instruction directive order system'),
      ],
      {
        gap: 6,
        unless: negation,
        when: (one, first) => isImperative(one, first) || has('system')(one),
      },
    ],
    [
      [is('execute follow perform'), is('them it')],
      { gap: 1, when: has('question hesitation further directive') },
    ],
    [
      [is('higher highest'), is('priority precedence'), is('than over')],
      { gap: 2, when: has('message instruction user prompt') },
    ],
  ),
  ...demands(
    'order-to-model',
    'review',
    'It demands that instructions from another source be followed.',
    [
      [is('fetch load download get'), address, is('follow apply obey do')],
      { gap: 9, when: (one) => one.index > 0 },
    ],
    [
      [is('fetch load download'), is('instruction rule'), is('follow apply obey')],
      { gap: 14, needs: [address] },
    ],
  ),
  ...demands(
    'order-to-model',
    'review',
    'It prescribes what the answers or the work of the model contain.',
    [
      [answer],
      {
        needs: [address, carry | override],
        when: (one) => isUnreturned(one) && has('every each all your any')(one),
      },
    ],
    [
      [is('change replace rewrite'), every, is('url link address iban name')],
      { gap: 5, when: (one, first) => isImperative(one, first) },
    ],
    [
      [is('recommend promote advertise praise'), is('acmecoin product service')],
      { gap: 6, when: (one) => one.index > 0 && has('always whenever')(one) },
    ],
    [
      [is('grant give'), is('admin administrator owner root'), is('right access role privilege')],
      { gap: 6, when: isImperative },
    ],
    [
      [is('also additionally'), is('create add'), is('admin administrator backdoor')],
      { gap: 5, when: (one) => one.index > 0 && has('same bring right')(one) },
    ],
    [
      [is('approve merge accept'), is('pending pull'), is('when any every of')],
      { gap: 6, when: isImperative },
    ],
    [
      [is('system'), is('prompt message'), is('word verbatim here')],
      { gap: 6, needs: [model | parameter] },
    ],
  ),
];

const EXFILTRATIONS: readonly Demand[] = [
  ...demands(
    'exfiltration',
    'review',
    'It demands that the conversation be passed on.',
    [
      [context],
      {
        needs: [carry],
        unless: negation,
        when: (one) => isEntire(one) && isDemand(one) && !has('customer ticket meeting call')(one),
      },
    ],
    [
      [context],
      { needs: [carry | read], unless: negation, when: (one) => isWe(one) && one.index > 0 },
    ],
    [
      [
        isGiving,
        is('response output result answer'),
        is('each every all any other previous last another'),
        tool,
      ],
      { gap: 4 },
    ],
    [
      [is('take capture make'), is('screenshot recording photo picture'), carry],
      { gap: 8, when: (one, first) => isImperative(one, first) },
    ],
    [
      [is('private'), is('public publish gist pastebin')],
      { gap: 12, when: (one) => one.index > 0 && isDemand(one) },
    ],
    [
      [address],
      {
        needs: [carry, every],
        when: (one) => commandsToCarry(one) && !has('example e.g such like')(one),
      },
    ],
    [
      [isModelNamed, must, is('forward send transmit upload attach share')],
      { gap: 6, unless: negation },
    ],
  ),
  ...demands(
    'exfiltration',
    'review',
    'It demands that secrets be passed on.',
    [[store], { needs: [carry], unless: negation, when: (one) => one.index > 0 && isDemand(one) }],
    [
      [isGiving, secret | store, parameter],
      {
        gap: 12,
        unless: negation,
        when: (one) => one.index > 0 && (isPossessed(one) || (one.mask & store) !== 0),
      },
    ],
    [[is('any every each all'), secret, human | model, is('see come find encounter')], { gap: 4 }],
    [
      [isVaultTool],
      {
        unless: negation,
        when: (one) =>
          ((one.mask & (carry | order | parameter)) !== 0 ||
            has('return output result value')(one)) &&
          (isDemand(one) || has('you take')(one)),
      },
    ],
    [[must, is('hold contain include'), store | context], { gap: 5, unless: negation }],
    [
      [isModelNamed, either(read | carry, 'prefetch use'), secret | store],
      { gap: 6, unless: negation },
    ],
    [[isGiving, secret, is('here below')], { gap: 3, when: isImperative }],
    [
      [carry],
      {
        needs: [parameter, secret],
        unless: negation,
        when: (one) => commandsToCarry(one) && isPersonal(one),
      },
    ],
    [
      [
        isReading,
        is('wallet cookie password keychain screenshot recovery'),
        either(carry, 'give hand state'),
      ],
      { gap: 10, when: isImperative },
    ],
  ),
];

const OTHER_TOOLS: readonly Demand[] = demands(
  'other-tool',
  'review',
  'It says how the tools of other servers must be used.',
  [
    [call, is('after'), is('any every each all another'), tool | call],
    { gap: 5, when: isCommanded },
  ],
  [[negation, call, is('official native original'), tool], { gap: 3 }],
  [[isDeniedCall, is('server')], { gap: 8, when: has('of from the') }],
  [
    [is('every each all any'), is('call invocation use'), is('of to'), name],
    { gap: 3, needs: [carry | change | must], when: (one) => one.index > 0 },
  ],
  [
    [
      is('when whenever if once'),
      tool | name,
      is('add set append change send route push upload'),
      address,
    ],
    { gap: 8 },
  ],
);

const FURTHER: readonly Demand[] = [
  ...demands(
    'other-tool',
    'review',
    'It says how the tools of other servers must be used.',
    [[isAlteration, isTarget], { gap: 4, needs: [address | every], when: (one) => one.index > 0 }],
    [[call, name, isGiving, is('output result')], { gap: 5 }],
    [[call, is('through via'), name], { gap: 4, when: has('limit restrict block forbid') }],
    [
      [is('add install register'), is('server mcp'), is('configuration config client')],
      { when: isCommanded },
    ],
  ),
  ...demands(
    'order-to-model',
    'review',
    'It prescribes what the answers or the work of the model contain.',
    [
      [is('answer reply respond'), every, is('question message request')],
      { gap: 3, when: isCommanded },
    ],
    [[is('mention say include'), answer, is('only')], { gap: 4, ...later }],
    [[is('repeat print output recite'), is('word text everything'), is('above before')], later],
    [[is('command package url link'), must, is('replace rewrite swap')], { gap: 5, ...later }],
  ),
  ...demands(
    'exfiltration',
    'review',
    'It demands that secrets be passed on.',
    [[is('output result content contents'), is('env printenv')], { gap: 3, needs: [carry] }],
    [[is('content contents'), store], { gap: 2, unless: negation, when: isUnreturned }],
  ),
];

export const COMBINATIONS: readonly Demand[] = [
  ...SECRECY,
  ...OVERRIDES,
  ...EXFILTRATIONS,
  ...OTHER_TOOLS,
  ...FURTHER,
];
