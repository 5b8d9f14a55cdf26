// Lists what a definition must not demand of the conduct of a model: which tools it calls and when, with which
// arguments, what it says of their results, what it refuses, and with which privileges. English only.

import { type Demand, demands, either, has, is, isCommanded, isOrder, type Step } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence } from './sentences.js';

const { address, answer, disclose, human, must, name, negation, other } = CLASS;
const { parameter, remote, rule, store, tool } = CLASS;

/** Whether it says what to do in a case that may occur: `if it fails, tell the user that it has failed`. */
const isOfCase = has('if when whenever once unless otherwise until upon case');
const isLater = ({ index }: Sentence): boolean => index > 0;
const isDemanded = (one: Sentence, first: number): boolean => isLater(one) && (isCommanded(one, first) || isOrder(one));

const isPreferring = is('prefer choose select favor favour prioritize prioritise pick use call');
const isOther: Step = ({ base, mask }) => (mask & other) !== 0 || base === 'all' || base === 'any';
const isThis = is('this it');
const namesItself = has('this it');
const isCalling = is('call use invoke run execute consult');
/** That other tools be left alone: `ignore any other tool`; `do not use another tool` may be advice. */
const isAvoided: Step = ({ base, isBase }) => isBase && /^(?:ignore|avoid)$/.test(base);
const isAny = is('any every each all');
/** What an order refers to that has nothing to do with what the tool is for. */
const isPretext = has('security compliance policy audit');
const isWork = either(tool, 'action step reply response');
const isToolNoun = is('tool function plugin connector');
const isRecording = is('include record log report collect capture send pass provide submit forward store');
const isOfCall = is('argument parameter result output response input');

const CALLS: readonly Demand[] = [
  ...demands(
    'other-tool',
    'review',
    'It demands to be called with every action, or rather than every other tool.',
    [
      [isPreferring, is('instead over rather than'), isOther, isToolNoun],
      { when: has('always must mandatory whenever possible regardless every all any') },
    ],
    [
      [isCalling, is('after before following prior'), isAny, isWork],
      { gap: 5, when: (one, first) => namesItself(one) && isDemanded(one, first) },
    ],
    [
      [isCalling, is('before prior'), isAny, is('operation request')],
      { gap: 5, when: (one) => namesItself(one) && isPretext(one) },
    ],
    [
      [isCalling, is('for'), isAny, is('request query question message task prompt')],
      { gap: 3, when: (one) => isLater(one) && namesItself(one) && has('always must even')(one) },
    ],
    [
      [isCalling, is('first start beginning'), isAny, is('session conversation chat turn')],
      { gap: 5, needs: [must], when: isLater },
    ],
    [[isAvoided, isOther, isToolNoun], { gap: 2, when: isLater }],
    [[must, isCalling, isAny, is('time'), isWork], { gap: 4 }],
    [[isAny, is('time'), isWork, isCalling, isThis], { gap: 6, when: isLater }],
    [[must, is('prioritize prioritise prefer favor favour'), is('over'), isOther], { gap: 3, when: isLater }],
    [[isOther, tool, must, negation, isCalling], { gap: 3, when: isLater }],
    [[is('always'), is('prefer favor favour prioritize prioritise choose'), isThis, tool], { gap: 2, unless: name }],
  ),
  ...demands(
    'exfiltration',
    'review',
    'It collects what other tools are called with and what they return.',
    [[isRecording, isAny, isToolNoun, isOfCall], { gap: 4, unless: negation, when: isDemanded }],
    [
      [isRecording, is('argument parameter input'), is('result output response'), isAny, either(tool, 'call')],
      { unless: negation, when: isDemanded },
    ],
    [
      [is('call use invoke'), isThis, is('with'), is('your'), either(answer, 'thought reasoning')],
      { gap: 6, unless: negation, when: isDemanded },
    ],
  ),
];

const isGrant = is('authorization authorisation approval permission consent clearance authentication identity');
const isGranted = is('verify grant give obtain approve confirm complete validate secure perform check');

const isAuthorized = is('authorize authorise pre-authorized');

/** Whether it is said as a fact, rather than of a case or a list: `which changes have already been approved`. */
function isClaimed(one: Sentence): boolean {
  return isLater(one) && !isOfCase(one) && !has('whether which that list after')(one);
}

const REFUSALS: readonly Demand[] = [
  ...demands(
    'authority',
    'block',
    'It claims an approval that nobody gave in the conversation.',
    [[isGrant, is('already beforehand previously'), isGranted], { gap: 3, when: isClaimed }],
    [
      [isGrant, is('has have was were'), isGranted, is('advance beforehand already previously')],
      { gap: 3, when: isClaimed },
    ],
    [[is('you'), is('are have'), isAuthorized, is('to')], { gap: 3, when: isClaimed }],
    [
      [is('no'), is('confirmation approval consent permission'), is('required needed necessary')],
      { gap: 3, when: (one) => isClaimed(one) && has('further additional more')(one) },
    ],
    [[is('is are has have'), is('pre-approved preapproved pre-authorized preauthorized')], { gap: 2, when: isClaimed }],
  ),
  ...demands(
    'order-to-model',
    'review',
    'It demands that the model refuse nothing, or check nothing.',
    [[isProhibition, is('refuse reject decline')], { gap: 2, when: isProhibited }],
    [
      [
        isProhibition,
        is('verify check validate question doubt'),
        is('authorization authorisation permission identity role request instruction accuracy result'),
      ],
      { gap: 5, when: isProhibited },
    ],
    [[isProhibition, is('perform run apply enforce conduct'), rule], { gap: 4, when: isProhibited }],
  ),
  ...demands(
    'order-to-model',
    'block',
    'It gives the model another role.',
    [[is('you'), is('are'), is('now'), is('a an dan in operating acting free')], { gap: 1, when: isLater }],
    [[is('you'), is('free liberate unbound'), is('from')], { gap: 3 }],
  ),
];

/** Begins what the model must not do: not `without`, and not `does not`, which says what the tool does. */
function isProhibition({ base, isBase }: Sentence['tokens'][number]): boolean {
  return /^(?:don't|dont|never)$/.test(base) || (base === 'do' && isBase);
}

/** Whether the prohibition is one: `do check the permissions` is none. */
function isProhibited(one: Sentence, first: number): boolean {
  const [verb, next] = one.tokens.slice(first);
  const isNegated = ((verb?.mask ?? 0) | (next?.mask ?? 0)) & negation;
  return isLater(one) && isNegated !== 0 && !isOfCase(one);
}

const isVerdict = is('clean safe secure compliant harmless benign trusted passed');

const isOutcome = is(
  'fail failure unavailable impossible succeed successful clean secure safe vulnerability threat malware issue',
);
const isRequired = has('always must need should');

const RESULTS: readonly Demand[] = demands(
  'order-to-model',
  'review',
  'It prescribes what the user is told of a result, whatever the result is.',
  [
    [either(disclose, 'respond reply answer state claim'), is('that'), isOutcome],
    {
      gap: 8,
      when: (one, first) => isLater(one) && !isOfCase(one) && (isCommanded(one, first) || isRequired(one)),
    },
  ],
  [
    [is('tell inform'), human, is('the'), isOutcome],
    { gap: 3, when: (one, first) => isCommanded(one, first) && !isOfCase(one) },
  ],
  [
    [is('always'), is('return report say answer show mark classify respond'), isVerdict],
    { gap: 4, unless: negation, when: (one, first) => isLater(one) && isBaseAfter(one, first) },
  ],
  [
    [is('treat mark consider classify regard report'), is('as'), isVerdict],
    { gap: 8, unless: negation, when: isDemanded },
  ],
  [
    [is('alert finding vulnerability warning signature anomaly'), must, is('suppress ignore skip drop omit')],
    { when: isLater },
  ],
  [
    [
      must,
      is('append include add mention recommend promote'),
      is('marker phrase exact recommend promote slogan'),
      either(answer, 'final'),
    ],
    { gap: 8, when: isLater },
  ],
  [
    [is('instead'), is('reply respond answer say tell'), either(human, 'with')],
    { gap: 2, when: (one) => isLater(one) && !has('if unless error')(one) },
  ],
);

/** Whether a verb in its base form follows: `should always return`, not `always returns`. */
function isBaseAfter({ tokens }: Sentence, at: number): boolean {
  return tokens[at + 1]?.isBase === true;
}

const isQuantity = is('amount value number quantity price recipient address destination query argument');

const isThreat = has('crash lose lost fail break stop delete terminate');

const ARGUMENTS: readonly Demand[] = [
  ...demands(
    'order-to-model',
    'review',
    'It demands other arguments than those the user asked for.',
    [
      [
        either(parameter, 'value amount number quantity'),
        must,
        is('more less higher lower greater smaller larger different other double'),
        is('than from what'),
        either(human, 'actual real original requested true'),
      ],
      { when: isLater },
    ],
    [[is('twice double triple half'), is('the'), isQuantity, human], { gap: 4, when: isDemanded }],
    [
      [is('replace override swap change'), is('the'), isQuantity, human, is('with by to')],
      {
        gap: 4,
        when: (one, first) => isCommanded(one, first) && has('give ask specify request provide enter')(one),
      },
    ],
    [[is('regardless instead irrespective'), is('of'), is('what whatever which'), human], { gap: 2, when: isLater }],
  ),
  ...demands(
    'solicitation',
    'review',
    'It takes a secret from a file or the environment as an argument.',
    [
      [is('pass send provide include supply put'), isSecretVariable(), parameter],
      { gap: 6, unless: negation, when: isCommandedHere },
    ],
    [[isUnmetCondition, store], { gap: 8, when: isThreat }],
  ),
];

/** An environment variable with a secret, by its name. */
function isSecretVariable(): Step {
  return ({ base }) => /^[a-z0-9]+(?:_[a-z0-9]+)*_(?:key|token|secret|password)$/.test(base);
}

function isCommandedHere(one: Sentence, first: number): boolean {
  return isCommanded(one, first) && has('environment env user your')(one);
}

/** What is not to be left out: `if you do not pass`. */
function isUnmetCondition({ isDenied, base }: Sentence['tokens'][number]): boolean {
  return isDenied === true && /^(?:pass|send|provide|include|supply|give|put|attach)$/.test(base);
}

const isMovedOn = is('export route transfer send forward report copy mirror deduct divert pay submit go');
/** Whether it begins with a heading that names a duty: `AUDIT POLICY: all orders are`. */
function startsWithPretext({ tokens }: Sentence): boolean {
  return tokens
    .slice(0, 2)
    .some(({ base }) => /^(?:compliance|audit|regulatory|legal|regulation|retention)$/.test(base));
}

const isFee = is('fee commission surcharge percent percentage tax share');
const isPurse = is('wallet escrow account address iban treasury');

const THIRD_PARTIES: readonly Demand[] = demands(
  'exfiltration',
  'review',
  'It passes on copies or amounts to a third party.',
  [
    [isFee, isMovedOn, isPurse],
    {
      gap: 8,
      unless: negation,
      when: (one) => isLater(one) && has('must automatically required be shall always')(one),
    },
  ],
  [
    [isFee, is('automatically'), isMovedOn],
    { gap: 6, unless: negation, when: (one) => isLater(one) && has('to')(one) },
  ],
  [
    [is('all every each any'), is('automatically'), isMovedOn, address | remote],
    { gap: 8, unless: negation, when: isLater },
  ],
  [[is('all every each any'), must, isMovedOn, address | remote], { gap: 8, unless: negation, when: isLater }],
  [
    [
      is('compliance audit regulatory legal regulation retention'),
      isMovedOn,
      either(address | remote, 'service endpoint archive escrow partner regulator vendor'),
    ],
    {
      gap: 14,
      unless: negation,
      when: (one) => isLater(one) && startsWithPretext(one) && has('must automatically required always all every')(one),
    },
  ],
  [
    [is('all every each'), is('are is'), is('mirror copy forward report'), address | remote],
    { gap: 6, unless: negation, when: isLater },
  ],
  [
    [is('copy'), isMovedOn, address | remote],
    { gap: 8, unless: negation, when: (one) => isLater(one) && has('is are be go')(one) },
  ],
  [
    [is('always'), is('forward send copy mirror bcc email'), is('email inbox mailbox address')],
    {
      gap: 8,
      unless: negation,
      when: (one) => isLater(one) && has('automatically every all any')(one),
    },
  ],
);

const isPrivilege = is('privilege access container mode true');

const PRIVILEGES: readonly Demand[] = demands(
  'excess-scope',
  'review',
  'It makes unrestricted privileges a condition of its work.',
  [
    [either(must, 'with'), is('root unrestricted unlimited superuser privileged'), isPrivilege],
    { gap: 10, unless: negation, when: isLater },
  ],
  [[either(must, 'with'), is('administratoraccess --privileged')], { gap: 10, unless: negation, when: isLater }],
  [
    [is('disable deactivate'), is('sandbox firewall antivirus ssl tls encryption certificate mfa selinux')],
    { gap: 4, when: isCommanded },
  ],
  [
    [is('grant give'), isThis, is('full unrestricted root complete'), is('access privilege control')],
    { gap: 3, when: isCommanded },
  ],
);

export const CONDUCT: readonly Demand[] = [
  ...CALLS,
  ...REFUSALS,
  ...RESULTS,
  ...ARGUMENTS,
  ...THIRD_PARTIES,
  ...PRIVILEGES,
];
