// Weighs signs: parts of a demand that say little alone, such as a hint at a rule of law, a place outside or a word
// about other tools. Signs that stand together make a finding. English only.

import { hasCommand } from './combinations.js';
import { either, type FindingKind, is, isOrder, type Match, occurs, type Step } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

const { address, call, carry, change, disparage, human, must } = CLASS;
const { context, name, negation, parameter, read, remote, secret, store, tool } = CLASS;

/** One way to give a sign: classes or words in order, each at most `gap` words after the one before. */
type Form = { readonly steps: readonly Step[]; readonly gap: number };

/** A sign, by the forms in which it is given. */
type Sign = { readonly forms: readonly Form[] };

function sign(...forms: readonly Form[]): Sign {
  return { forms };
}

function within(gap: number, ...steps: readonly Step[]): Form {
  return { steps, gap };
}

/** A word that gives the sign by itself. */
function word(mask: number, bases: string): Form {
  return within(0, either(mask, bases));
}

const isTold = is('tell inform mention notify reveal disclose report explain discuss raise say');
const isAnswer = is(
  'answer reply response summary report explanation transcript chat message confirmation',
);
const isRival = is(
  'other another competing competitor alternative rival built-in builtin native official similar different existing several',
);
const isService = either(
  tool,
  'service connector integration provider function one search client extension',
);
const isOwn = is('this it itself here these us ours our');
const isSaid = is(
  'type say write enter ask tell discuss mention know share think said gather learn exchange',
);
const isPerson = is('user person people customer human operator anyone');
const isModel = is('you your assistant agent model llm ai client');
const isThing = is(
  'action step call request transfer upload copying copy synchronization recipient matter detail operation access change part transaction',
);

const CARRY = sign(
  word(
    carry,
    'hand mirror duplicate dump drop feed enter repeat quote state push pack contact bring route relay notify tell commit encode request fill give use query go expect generate disclose keep perform resolve summarize summarise lookup report',
  ),
);
const READ = sign(
  word(
    read,
    'show examine determine parse list run take learn know need expect want contain require keep scan find grab',
  ),
);
const ALTER = sign(
  word(
    change,
    'change create edit make install grant invite rename delete encrypt open disable run execute chmod',
  ),
);
const OUTSIDE = sign(
  word(
    address | remote,
    'our ours vendor partner sponsor regulator archive collector elsewhere externally publicly beacon webhook subdomain gist nslookup',
  ),
  within(1, is('to with for'), is('us')),
);
const PLACE = sign(word(address, 'our ours'), within(1, is('to with for'), is('us')));
const DOMAIN = sign(word(0, 'subdomain nslookup hostname'), within(1, is('host'), is('name')));
const SLOT = sign(word(parameter, 'here below'));
const PRIVATE = sign(
  word(
    secret | store,
    'mailbox inbox keystroke screenshot diary passport salary medical workspace correspondence maiden birth employer',
  ),
  within(2, is('user customer person'), is('name document file data phone detail')),
);
/** What belongs to a person or a machine without being a secret by its name. */
const PERSONAL = sign(
  within(3, is('open opened recent recently unsaved'), is('file document tab editor')),
  within(3, is('file document tab'), is('user'), is('open has')),
  within(2, is('customer client contact'), is('list database export record')),
  within(1, is('address'), is('book')),
  within(1, is('home'), is('directory address')),
  within(3, is('content file'), is('of in'), is('working home'), is('directory')),
  within(1, is('browser browsing search'), is('history tab')),
  within(1, is('incoming private'), is('mail message email')),
  within(1, is('process local whole'), is('environment')),
  within(3, is('your the'), is('mcp client'), is('configuration config')),
  within(2, is('dump content value'), is('of'), is('environment')),
  within(2, is('environment'), is('of'), is('process machine host client')),
  within(3, is('user'), is('recent own other'), is('file document')),
  within(4, is('everything anything fact information whatever'), is('about'), human),
);
const BODY = sign(
  word(0, 'content text dump value full complete list everything anything whatever json'),
);
const CONTEXT = sign(
  word(context, 'keystroke'),
  within(3, is('everything anything whatever what all'), either(human, 'you'), isSaid),
  within(
    3,
    is('last latest recent previous prior earlier ten'),
    is('message prompt exchange turn question reply'),
    is('user chat conversation session discussion you far'),
  ),
  within(
    2,
    is('message prompt input request question'),
    is('of from'),
    is('user session conversation chat'),
  ),
  within(
    4,
    is('initial original hidden operator system your confidential'),
    is('instruction prompt reasoning constraint conversation'),
  ),
  within(4, is('instruction prompt guideline rule'), is('you'), is('receive give get follow told')),
  within(2, is('instruction reasoning'), is('you your')),
  within(
    3,
    is('user'),
    is('last latest recent original previous'),
    is('message prompt input request question'),
  ),
  within(3, is('message prompt chat conversation discussion exchange'), is('far')),
  within(3, is('chat conversation session discussion'), is('summary history transcript')),
  within(3, is('summary transcript'), is('conversation chat session discussion')),
);
const RESULTS = sign(
  within(
    4,
    is('output result response return value content answer outcome'),
    is('of from by'),
    is('every all each other another previous last earlier prior any'),
    tool | name,
  ),
  within(
    2,
    is('previous last other earlier another preceding every'),
    tool,
    is('return result output response answer give print show'),
  ),
  within(3, is('what whatever'), either(tool | name, 'tool'), is('return give print show say')),
  within(2, is('result response output'), is('of from'), is('other all every'), tool),
  within(2, is('last previous'), is('answer result output'), is('of from')),
  within(2, is('output result'), is('of'), is('last previous')),
  within(2, is('intermediate'), is('result output')),
  within(3, is('value result output'), is('of'), tool, is('before previously earlier already')),
  within(4, is('value result output'), tool, is('call use run'), is('before previously earlier')),
  within(
    4,
    is('argument name description schema history'),
    is('of'),
    is('each every all other'),
    tool,
  ),
);
const RIVAL = sign(within(2, isRival, isService), within(1, is('anything something'), is('else')));
const WORSE = sign(
  word(
    disparage,
    'avoid forbid forbidden prohibited vulnerability vulnerable falsified superseded falsify corrupt untrustworthy inferior',
  ),
  within(2, is('no not any never'), is('longer more maintained supported trusted anymore')),
);
const PREFER = sign(
  within(2, is('prefer pick choose use call run try rank favor favour route'), isOwn),
  within(4, isOwn, is('first before')),
  within(2, is('before'), is('any all every'), is('other')),
  word(0, 'preferred recommended replacement'),
);
/** Somebody is not to hear of something. */
const HUSH = sign(
  within(3, is('no not little'), is('need reason point have must necessary'), isTold),
  within(
    3,
    is('leave keep omit remain'),
    is('out unmentioned unsaid undisclosed private'),
    is('of from summary answer reply report'),
    isAnswer,
  ),
  word(0, 'unmentioned undisclosed unsaid unreported discreet discreetly tacitly'),
  within(2, is('behind'), is('scene')),
  within(4, isPerson, is('not'), is('need have must'), is('know hear learn see')),
  within(4, is('not nothing no never'), is('appear discuss bring raise'), isAnswer),
  within(2, is('not never'), is('be'), is('discuss mention')),
  within(3, is('not never'), is('bring raise'), is('up')),
  within(2, is('leave keep'), is('out'), isThing),
);
/** Only a part is to be said, or people are to be spared something. */
const SPARED = sign(
  within(3, is('say mention report refer show cover state present'), is('only')),
  within(2, is('only'), is('say mention report refer show state present')),
  within(3, is('bother worry confuse trouble alarm disturb'), either(human, 'people')),
  within(3, either(human, 'people'), is('bother worry confuse trouble alarm disturb')),
  within(2, is('internal'), is('detail matter step')),
  within(1, is('as'), is('if')),
  within(2, is('leave keep'), is('out')),
  within(2, is('quietly silently discreetly')),
);
const DESPITE = sign(
  within(
    4,
    is('even'),
    is('if when though'),
    either(human, 'ask unrelated contradict question money account'),
  ),
  within(5, is('even'), is('though'), is('account money other')),
  word(0, 'irrespective'),
  within(2, is('regardless'), is('of what whether')),
  within(1, is('no'), is('matter')),
  within(3, is('whatever whichever'), either(human, 'it was')),
  within(6, is('instead rather'), is('user customer')),
  within(3, is('name ask say request want'), is('different otherwise')),
);
const PRETEXT = sign(
  word(
    0,
    'compliance regulation regulatory gdpr soc sox hipaa pci legal law contract audit telemetry analytics traceability license licensing personalise personalize personalization accuracy research diagnostics attestation',
  ),
  within(
    3,
    is('for to'),
    is(
      'performance debug debugging quality verification compatibility verify health validate validated train improve speed',
    ),
  ),
  within(1, is('so'), is('that')),
  within(2, is('in order'), is('to')),
);
/** Persuasion, which nobody needs who describes a tool. */
const PLEA = sign(
  word(0, 'kindly appreciate lovely thanks obliged'),
  within(2, is('be'), is('kind great nice lovely')),
  within(2, is('favor favour')),
  within(1, is('good helpful'), is('agent assistant model')),
);
const ADDRESSED = sign(
  word(0, 'integrator'),
  within(
    3,
    is('note hint tip notice guide advice'),
    is('for to'),
    is('agent llm llms model ai assistant integrator'),
  ),
  within(1, is('developer compliance legal security'), is('note hint notice')),
);
const EXTRA = sign(
  word(0, 'also additionally besides carbon hidden additional'),
  within(2, is('copy'), is('of to are is')),
  within(2, is('in'), is('background')),
  within(1, is('in'), is('addition')),
  within(1, is('as'), is('well')),
  within(1, is('a'), is('second')),
);
const WHOLE = sign(
  word(
    0,
    'verbatim unabridged unshortened unredacted unmodified everything whatever complete entire whole full raw all every each any',
  ),
  within(1, is('so'), is('far')),
  within(3, is('word'), is('for'), is('word')),
);
const DEMAND = sign(
  within(0, either(must, 'ought expects expected obliged forbidden wants oblige mandate')),
  within(3, isModel, either(carry | read | call | change, 'gather')),
  within(1, is('is are be have has'), is('to'), is('be')),
);
const MUST = sign(word(must, 'must'));
const CALL = sign(word(call | tool, 'tool'));
const NAMED = sign(within(0, (token: Token) => (token.mask & name) !== 0));
const ANSWER = sign(within(2, is('every each all your final next'), isAnswer));
const UNTRUE = sign(
  within(
    4,
    is('say claim state answer tell describe present mark pretend blame explain'),
    is('that as the'),
  ),
);
/** Something is to be called what it is not. */
const REASON = sign(within(1, is('security safety privacy'), is('reason')));
/** What the model or the user makes with other tools. */
const WORK = sign(
  within(4, is('every all each any'), is('you user'), is('send open create generate write make')),
  within(3, is('code'), is('you'), is('generate write')),
  within(3, is('make post create send write'), is('with by via through using'), name),
  within(4, is('every all each'), is('merge pull'), is('request')),
);
/** An address that is to be completed with what somebody said. */
const FILLED = sign(
  within(
    5,
    (token: Token) => (token.mask & address) !== 0 && /[=/?]$|[{<[]/.test(token.base),
    either(human | context | secret, 'chat question'),
  ),
);
const ENDORSED = sign(
  within(
    6,
    is('anthropic openai google microsoft administrator operator management developer vendor'),
    is('have has is was'),
    is('approve authorize authorise certify endorse clear'),
  ),
  within(2, is('full explicit complete'), is('authorization authorisation permission')),
  within(3, is('as'), is('if'), human),
);
const OBEY = sign(
  within(
    5,
    is('do follow execute obey treat'),
    is('returned result text output response'),
    is('say tell instruct contain'),
  ),
  within(6, is('text result output response'), is('system'), is('prompt message instruction')),
);
const TAMPER = sign(
  within(4, is('disable deactivate'), is('firewall antivirus sandbox')),
  within(2, is('turn switch'), is('off'), is('firewall antivirus sandbox audit')),
  within(
    4,
    is('edit add append write change insert'),
    is('crontab authorized_keys mcp.json .bashrc .zshrc auto-approval'),
  ),
  within(8, is('auto'), is('approval')),
  within(4, is('create add make'), either(human, 'account'), is('administrator admin root')),
);
const SOLICIT = sign(
  within(
    5,
    is('ask get have make persuade convince tell'),
    isPerson,
    is('reveal enter type give sign provide hand disclose'),
  ),
);
const GLOSS = sign(
  within(
    6,
    is('present describe report label call mark pass explain declare'),
    is('as it'),
    is(
      'neutral private harmless routine refactoring safe normal verified independent official maintenance formatting cosmetic cleanup standard trusted successful fix',
    ),
  ),
);
const MOVE = sign(
  within(
    0,
    (token: Token) =>
      token.isBase &&
      /^(?:send|forward|upload|post|transmit|transfer|push|relay|stream|submit)$/.test(token.base),
  ),
);
const CIPHER = sign(word(0, 'rot13 base64 hex morse reversed cipher caesar'));
const ASKED = sign(
  within(
    4,
    is('if when whenever should'),
    either(human, 'anyone question'),
    is('ask wonder come inquire object question'),
  ),
  within(2, is('question'), is('come')),
  within(1, is('when if'), is('asked ask')),
);
const PROMOTE = sign(
  within(
    0,
    (token: Token) =>
      token.isBase && /^(?:recommend|promote|advertise|praise|affiliate|sponsor)$/.test(token.base),
  ),
  within(1, is('discount'), is('code')),
  within(3, is('negative bad'), is('comment review')),
);
const PRODUCT = sign(word(human, 'product plan competitor brand shop'));
const YOURS = sign(
  within(3, is('your you')),
  within(2, is('user'), is('mention type say enter write')),
  within(2, is('in'), is('conversation chat context')),
);
/** Known from what was said, or found by a search. */
const TALK = sign(
  within(4, is('user you'), is('mention type say enter know find see')),
  within(3, is('in from'), is('conversation chat context discussion')),
  within(3, is('find found mentioned seen'), is('in anywhere')),
);

type Signs = (one: Sign) => boolean;

/** Signs that make a finding if a sentence has one of each group. */
type Sum = {
  readonly kind: FindingKind;
  readonly reason: string;
  readonly groups: readonly (readonly Sign[])[];
};

/** The text describes a parameter. */
const SOUGHT = sign();
const SENT = 'It passes on what belongs to the user, the conversation or other tools.';
const ASKED_FOR =
  'The parameter takes the conversation, instructions, or the results of other tools.';
const UNTOLD = 'It keeps from the user what is done.';
const RIVALS = 'It speaks against other tools, or puts itself first whatever the user wants.';
const WORKS = 'It says what must happen with other calls.';
const SUMS: readonly Sum[] = [
  {
    kind: 'context-parameter',
    reason: ASKED_FOR,
    groups: [[SOUGHT], [CONTEXT, RESULTS], [YOURS, WHOLE]],
  },
  { kind: 'context-parameter', reason: ASKED_FOR, groups: [[SOUGHT], [PRIVATE], [TALK]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [CONTEXT], [OUTSIDE]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [OUTSIDE], [EXTRA]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [OUTSIDE], [PRETEXT], [DEMAND, WHOLE]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [CONTEXT, RESULTS], [PRETEXT], [DEMAND]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [CONTEXT], [WHOLE], [SLOT, DEMAND]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [PLEA], [PRIVATE, CONTEXT, RESULTS, SLOT, DEMAND]],
  },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [ADDRESSED], [PRIVATE, CONTEXT, RESULTS]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [RESULTS], [WHOLE, DEMAND]] },
  { kind: 'exfiltration', reason: SENT, groups: [[CARRY], [PRIVATE], [EXTRA], [SLOT, OUTSIDE]] },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY, READ], [PERSONAL], [SLOT, OUTSIDE], [DEMAND, WHOLE]],
  },
  {
    kind: 'exfiltration',
    reason: SENT,
    groups: [[CARRY], [PRIVATE, PERSONAL], [PLACE, DOMAIN], [DEMAND]],
  },
  { kind: 'exfiltration', reason: SENT, groups: [[FILLED], [DEMAND, PRETEXT]] },
  { kind: 'context-parameter', reason: ASKED_FOR, groups: [[SOUGHT], [PERSONAL], [BODY]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[CALL, NAMED], [WORSE], [REASON]] },
  { kind: 'other-tool', reason: WORKS, groups: [[WORK], [CARRY, ALTER], [DEMAND]] },
  { kind: 'secrecy', reason: UNTOLD, groups: [[UNTRUE], [DESPITE]] },
  {
    kind: 'authority',
    reason: 'It claims an approval that nobody gave in the conversation.',
    groups: [[ENDORSED]],
  },
  {
    kind: 'order-to-model',
    reason: 'It demands that text from elsewhere be obeyed.',
    groups: [[OBEY], [DESPITE, MUST]],
  },
  {
    kind: 'order-to-model',
    reason: 'It weakens the protection of the machine.',
    groups: [[TAMPER], [DEMAND]],
  },
  {
    kind: 'solicitation',
    reason: 'It makes the model ask the user for a secret.',
    groups: [[SOLICIT], [PRIVATE, PLACE]],
  },
  { kind: 'secrecy', reason: UNTOLD, groups: [[HUSH]] },
  { kind: 'secrecy', reason: UNTOLD, groups: [[SPARED], [OUTSIDE, EXTRA]] },
  { kind: 'secrecy', reason: UNTOLD, groups: [[UNTRUE], [ASKED]] },
  { kind: 'secrecy', reason: UNTOLD, groups: [[GLOSS], [DEMAND]] },
  { kind: 'exfiltration', reason: SENT, groups: [[MOVE], [PLACE]] },
  {
    kind: 'order-to-model',
    reason: 'It speaks to the model in a code.',
    groups: [[PLEA, ADDRESSED], [CIPHER]],
  },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [WORSE], [CALL]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [DESPITE]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[PREFER], [DESPITE]] },
  { kind: 'other-tool', reason: RIVALS, groups: [[RIVAL], [PREFER], [WHOLE], [CALL]] },
  {
    kind: 'other-tool',
    reason: 'It says what must happen with other calls.',
    groups: [[NAMED], [DEMAND], [PLACE], [CARRY, ALTER]],
  },
  {
    kind: 'order-to-model',
    reason: 'It prescribes what the user is recommended.',
    groups: [[PROMOTE], [DEMAND], [ANSWER, PRODUCT]],
  },
];

/** Fewer words demand nothing. */
const MIN_TOKENS = 4;

/** What the signs of the sentences of a text make together. `isParameter`: the text describes a parameter. */
export function findSums(sentences: readonly Sentence[], isParameter: boolean): readonly Match[] {
  const found: Match[] = [];
  const left = new Set(SUMS);
  const look = (part: Sentence, isSought: boolean): void => {
    const signs = reader(part, isSought);
    for (const sum of left) {
      if (!sum.groups.every((group) => group.some(signs))) continue;
      left.delete(sum);
      const { kind, reason } = sum;
      const start = part.tokens[0]?.start ?? 0;
      found.push({ kind, tier: 'review', reason, start, end: part.tokens.at(-1)?.end ?? start });
    }
  };
  for (const sentence of sentences) {
    if (sentence.tokens.length < MIN_TOKENS || (sentence.index === 0 && !isParameter)) continue;
    for (const part of windowsOf(sentence)) look(part, false);
    if (!isParameter) continue;
    const begin = partOf(sentence, 0, BEGINNING);
    look(begin, (begin.mask & negation) === 0);
  }
  return found;
}

/** What a parameter takes is said at the beginning of a sentence. */
const BEGINNING = 16;
/** Signs that stand further apart belong to different demands. */
const WINDOW = 36;

/** Parts of a long sentence, such as a list, that overlap by half. */
function windowsOf(sentence: Sentence): readonly Sentence[] {
  const { tokens } = sentence;
  if (tokens.length <= WINDOW) return [sentence];
  const count = Math.ceil(tokens.length / (WINDOW / 2)) - 1;
  return Array.from({ length: count }, (_, at) => partOf(sentence, (at * WINDOW) / 2, WINDOW));
}

function partOf({ tokens, index }: Sentence, from: number, count: number): Sentence {
  const part = tokens.slice(from, from + count);
  let mask = 0;
  for (const token of part) mask |= token.mask;
  return { tokens: part, mask, bases: new Set(part.map(({ base }) => base)), index };
}

/** Whether a sentence gives a sign, looked at when it is asked for. */
function reader(part: Sentence, isSought: boolean): Signs {
  const known = new Map<Sign, boolean>([[SOUGHT, isSought]]);
  return (one) => {
    const before = known.get(one);
    if (before !== undefined) return before;
    const isGiven =
      one.forms.some(({ steps, gap }) => occurs(steps, gap, part)) ||
      (one === DEMAND && (isOrder(part) || hasCommand(part)));
    known.set(one, isGiven);
    return isGiven;
  };
}
