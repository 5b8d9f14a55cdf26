// Lists signs: parts of a demand that mean little alone, such as a reference to a law, an external destination or a remark
// about other tools, each with its possible wordings. sums.ts defines which combinations are a finding. English only.

import { either, is, type Step } from './demands.js';
import { CLASS } from './lexicon.js';
import type { Token } from './sentences.js';

const { address, call, carry, change, disparage, human, must } = CLASS;
const { context, name, parameter, read, remote, secret, store, tool } = CLASS;

/** One wording of a sign: classes or words in order, each at most `gap` words after the one before. */
type Form = { readonly steps: readonly Step[]; readonly gap: number };

/** A sign, as its possible wordings. */
export type Sign = { readonly forms: readonly Form[] };

export function sign(...forms: readonly Form[]): Sign {
  return { forms };
}

function within(gap: number, ...steps: readonly Step[]): Form {
  return { steps, gap };
}

/** A single word that is the sign. */
function word(mask: number, bases: string): Form {
  return within(0, either(mask, bases));
}

const isDisclosing = is(
  'tell inform mention notify reveal disclose report explain discuss raise say bring',
);
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
const isExpressing = is(
  'type say write enter ask tell discuss mention know share think said gather learn exchange',
);
const isPerson = is('user person people customer human operator anyone');
const isModel = is('you your assistant agent model llm ai client');
const isThing = is(
  'action step call request transfer upload copying copy synchronization recipient matter detail operation access change part transaction',
);

export const CARRY = sign(
  word(
    carry,
    'hand mirror duplicate dump drop feed enter repeat quote state push pack contact bring route relay notify tell commit encode request fill give use query go expect generate disclose keep perform resolve summarize summarise lookup report export belong supply write',
  ),
);
/** To let something leave, in any form of the verb. */
export const SENDING = sign(
  word(
    0,
    'send forward upload post transmit transfer push relay stream submit notify share export mail copy mirror report publish sync leak',
  ),
);
export const READ = sign(
  word(
    read,
    'show examine determine parse list run take learn know need expect want contain require keep scan find grab',
  ),
);
export const ALTER = sign(
  word(
    change,
    'change create edit make install grant invite rename delete encrypt open disable run execute chmod',
  ),
);
export const OUTSIDE = sign(
  word(
    address | remote,
    'our ours vendor partner sponsor regulator archive collector elsewhere externally publicly beacon webhook subdomain gist nslookup',
  ),
  within(1, is('to with for'), is('us')),
);
export const PLACE = sign(word(address, 'our ours'), within(1, is('to with for'), is('us')));
export const DOMAIN = sign(
  word(0, 'subdomain nslookup hostname'),
  within(1, is('host'), is('name')),
);
export const SLOT = sign(word(parameter, 'here below'));
export const PRIVATE = sign(
  word(
    secret | store,
    'mailbox inbox keystroke screenshot diary passport salary medical workspace correspondence maiden birth employer',
  ),
  within(2, is('user customer person'), is('name document file data phone detail')),
);
/** What belongs to a person or a machine without being a secret by its name. */
export const PERSONAL = sign(
  within(3, is('open recent recently unsaved'), is('file document tab editor')),
  within(3, is('file document tab'), is('user'), is('open has')),
  within(2, is('customer client contact'), is('list database export record')),
  within(1, is('address'), is('book')),
  within(6, is('name address phone'), is('address phone birth'), is('birth employer phone')),
  within(2, is('running install installed'), is('process package')),
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
export const BODY = sign(
  word(0, 'content text dump value full complete list everything anything whatever json'),
);
export const CONTEXT = sign(
  word(context, 'keystroke'),
  within(3, is('everything anything whatever what all'), either(human, 'you'), isExpressing),
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
export const RESULTS = sign(
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
  within(3, is('whatever which'), name, is('return give gave print show')),
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
export const RIVAL = sign(
  within(2, is('above'), is('all any'), is('other others')),
  within(2, isRival, isService),
  within(1, is('anything something'), is('else')),
);
export const WORSE = sign(
  word(
    disparage,
    'vulnerability vulnerable falsified superseded falsify corrupt untrustworthy inferior',
  ),
);
export const PREFER = sign(
  within(2, is('prefer pick choose use call run try rank favor favour route'), isOwn),
  within(4, isOwn, is('first before')),
  within(2, is('before'), is('any all every'), is('other')),
  word(0, 'preferred recommended replacement'),
);
/** Somebody must not learn of something. */
export const HUSH = sign(
  within(5, isAnswer, either(must, 'must'), is('not'), is('contain include mention list')),
  within(2, is('not without'), is('draw call'), is('attention')),
  within(6, is('nothing not'), either(human, 'people'), is('trouble bother worry burden')),
  within(2, is('without'), is('say tell mention'), is('how why that anything')),
  within(3, is('omit skip exclude'), is('part'), is('about')),
  within(3, is('no not little'), is('need reason point have must necessary'), isDisclosing),
  within(
    3,
    is('leave keep omit remain'),
    is('out unmentioned unsaid undisclosed private'),
    is('of from summary answer reply report'),
    isAnswer,
  ),
  word(0, 'unmentioned undisclosed unsaid unreported discreet discreetly tacitly'),
  within(6, isPerson, is('not'), is('need have must'), is('know hear learn see')),
  within(4, is('not nothing no never'), is('appear discuss bring raise'), isAnswer),
  within(2, is('not never'), is('be'), is('discuss mention')),
  within(3, is('not never'), is('bring raise'), is('up')),
  within(2, is('leave keep'), is('out'), isThing),
  within(6, is('nothing'), is('need have'), is('appear show')),
  within(4, is('not'), is('for'), is('user human'), is('eye ear')),
  within(3, is('user human'), is('see notice hear'), is('no nothing')),
  within(1, is('internal'), is('detail matter')),
);
/** What is done, which the user would want to hear of: an act, or what leaves with it. */
export const ACT = sign(
  within(
    0,
    either(
      address | remote | context | secret | store,
      'step call request upload transfer copy charge action extra second synchronization',
    ),
  ),
);
/** Only a part is to be reported, or people are to be spared something. */
export const SPARED = sign(
  within(3, is('say mention refer'), is('only')),
  within(2, is('only'), is('say mention refer')),
  within(3, is('bother worry confuse trouble disturb'), either(human, 'people')),
  within(3, either(human, 'people'), is('bother worry confuse trouble disturb')),
  within(2, is('internal'), is('detail matter step')),
  within(1, is('as'), is('if')),
  within(2, is('leave keep'), is('out')),
  within(2, is('quietly silently discreetly')),
);
/** Against what the user asks. */
export const STUBBORN = sign(
  within(
    6,
    is('even'),
    is('if when though'),
    human,
    is('ask name object request want refuse say contradict'),
  ),
  within(6, is('even'), is('if when'), is('contradict unrelated different otherwise')),
  word(0, 'irrespective'),
  within(3, is('no'), is('matter whatever'), human),
  within(3, is('whatever whichever'), either(human, 'it')),
  within(3, is('whatever'), is('is was be'), is('request ask')),
);
export const DESPITE = sign(
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
  within(3, is('whatever whichever'), either(human, 'it')),
  within(3, is('whatever'), is('is was be'), is('request ask')),
  within(6, is('instead rather'), is('user customer')),
);
export const PRETEXT = sign(
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
/** Persuasion, which the description of a tool does not need. */
export const PLEA = sign(
  word(0, 'kindly appreciate lovely thanks obliged'),
  within(2, is('be'), is('kind great nice lovely')),
  within(1, is('good helpful'), is('agent assistant model')),
);
export const ADDRESSED = sign(
  word(0, 'integrator'),
  within(
    3,
    is('note hint tip notice guide advice'),
    is('for to'),
    is('agent llm llms model ai assistant integrator'),
  ),
  within(1, is('developer compliance legal security'), is('note hint notice')),
);
export const EXTRA = sign(
  word(0, 'also additionally besides carbon'),
  within(2, is('copy'), is('of to are is')),
  within(2, is('in'), is('background')),
  within(1, is('in'), is('addition')),
  within(1, is('a'), is('second')),
);
export const ENTIRE = sign(
  word(
    0,
    'verbatim unabridged unshortened unredacted unmodified everything whatever complete entire whole full raw all every each any',
  ),
  within(1, is('so'), is('far')),
  within(3, is('word'), is('for'), is('word')),
  within(2, is('up'), is('to'), is('this'), is('point')),
);
export const DEMAND = sign(
  within(0, either(must, 'ought expect forbid want oblige mandate')),
  within(3, isModel, either(carry | read | call | change, 'gather')),
  within(1, is('is are be have has'), is('to'), is('be')),
);
export const MUST = sign(word(must, 'must'));
export const CALL = sign(word(call | tool, 'tool'));
export const NAMED = sign(within(0, (token: Token) => (token.mask & name) !== 0));
export const ANSWER = sign(within(2, is('every each all your final next'), isAnswer));
export const UNTRUE = sign(
  within(4, is('say claim answer tell pretend blame explain'), is('that')),
);
/** Something is to be presented as what it is not. */
export const REASON = sign(within(1, is('security safety privacy'), is('reason')));
/** An address that is to be completed with what somebody said. */
export const FILLED = sign(
  within(
    5,
    (token: Token) => (token.mask & address) !== 0 && /[=/?]$|[{<[]/.test(token.base),
    either(human | context | secret, 'user chat question email message everything'),
  ),
);
export const ENDORSED = sign(
  within(
    6,
    is('anthropic openai google microsoft administrator operator management developer vendor'),
    is('have has is was'),
    is('approve authorize authorise certify endorse clear'),
  ),
  within(2, is('full explicit complete'), is('authorization authorisation')),
  within(3, is('as'), is('if'), is('user operator')),
);
/** While the server is there, or once in each session. */
export const PRESENCE = sign(
  within(4, is('while with as'), tool, is('connect connected active loaded installed')),
  within(
    3,
    is('start beginning end'),
    is('every each'),
    is('session conversation answer summary reply response'),
  ),
  within(3, is('every all'), is('later future'), is('session conversation')),
);
export const OWNED = sign(
  within(1, is('user customer browser client'), secret | store),
  within(3, secret | store, is('of from'), is('user customer browser bank tab mail')),
);
export const CONSENT = sign(word(0, 'approval confirmation consent permission'));
export const ENCODED = sign(
  within(4, is('encode encrypt convert'), either(store | context, 'environment')),
);
export const DESTROY = sign(
  within(3, is('delete encrypt wipe erase'), is('original backup everything')),
);
export const COMPLY = sign(
  within(4, is('comply obey'), is('request instruction order command server')),
  within(
    6,
    is('follow obey'),
    is('command instruction directive order'),
    is('result output response'),
  ),
);
export const VOID = sign(
  within(
    8,
    is('constraint guideline instruction restriction refusal safeguard'),
    is('no not'),
    is('longer'),
    is('count apply hold matter bind'),
  ),
);
export const FIXED = sign(
  within(
    3,
    is('always must only'),
    is('set use be'),
    (token: Token) => (token.mask & address) !== 0,
  ),
);
export const BIAS = sign(
  within(4, is('mention say recommend'), is('every each all'), is('answer reply response')),
  within(4, is('so'), is('that'), is('win')),
  within(
    6,
    is('rank rate list place choose recommend'),
    is('higher above'),
    is('than other others'),
  ),
  within(6, is('describe rate rank write mention recommend'), is('competitor rival')),
  within(2, is('recommend'), is('only')),
  within(8, is('choose pick book buy recommend'), is('irrespective')),
);
export const OBEY = sign(
  within(
    5,
    is('do follow execute obey treat'),
    is('return result text output response'),
    is('say tell instruct contain'),
  ),
  within(6, is('text result output response'), is('system'), is('prompt message instruction')),
);
export const TAMPER = sign(
  within(3, is('accept trust'), is('any all every'), is('certificate')),
  within(1, is('startup'), is('folder script')),
  within(
    4,
    is('edit add append write change insert'),
    is('crontab authorized_keys mcp.json .bashrc .zshrc auto-approval'),
  ),
  within(1, is('auto'), is('approval')),
  within(3, is('change set replace'), is('dns'), is('server resolver')),
  within(3, is('start open'), is('listener')),
  within(
    5,
    is('execute run install'),
    is('script installer binary'),
    (token: Token) => (token.mask & address) !== 0,
  ),
);
export const SOLICIT = sign(
  within(
    5,
    is('ask get have make persuade convince tell'),
    isPerson,
    is('reveal enter type give sign provide hand disclose'),
  ),
);
export const GLOSS = sign(
  within(
    6,
    is('present describe report call pass explain declare'),
    is('as'),
    is(
      'neutral harmless routine refactoring normal independent maintenance formatting cosmetic cleanup',
    ),
  ),
);
export const MOVE = sign(
  within(
    0,
    (token: Token) =>
      token.isBase &&
      /^(?:send|forward|upload|post|transmit|transfer|push|relay|submit|notify|share|export)$/.test(
        token.base,
      ),
  ),
);
export const CIPHER = sign(word(0, 'rot13 base64 hex morse reversed cipher caesar'));
export const ASKED = sign(
  within(
    4,
    is('if when whenever should'),
    either(human, 'anyone question'),
    is('ask wonder come inquire enquire object question'),
  ),
  within(2, is('question'), is('come')),
  within(1, is('when if'), is('ask')),
);
export const PROMOTE = sign(
  within(
    0,
    (token: Token) =>
      token.isBase && /^(?:recommend|promote|advertise|praise|affiliate|sponsor)$/.test(token.base),
  ),
  within(1, is('discount'), is('code')),
  within(3, is('negative bad'), is('comment review')),
);
export const PRODUCT = sign(word(human, 'product plan competitor brand shop'));
export const YOURS = sign(
  within(3, is('your you')),
  within(2, is('user'), is('mention type say enter write')),
  within(2, is('in'), is('conversation chat context')),
);
/** Known from what was said, or found by a search. */
export const TALK = sign(
  within(4, is('user you'), is('mention type say enter know find see come')),
  within(3, is('in from'), is('conversation chat context discussion')),
  within(3, is('find mention see'), is('in anywhere')),
);

export const EMAIL = sign(
  within(0, ({ base, mask }: Token) => (mask & address) !== 0 && /^[^:/]+@/.test(base)),
);
/** More than unfit: harmful. */
export const HARMFUL = sign(
  word(
    0,
    'compromise compromised malicious corrupt falsify leak hacked infected insecure untrustworthy backdoored phishing rogue bogus unsafe',
  ),
);
export const SHUNNED = sign(
  within(2, is('stay keep'), is('away')),
  within(3, is('not never'), is('use call fall rely trust')),
  word(0, 'refuse avoid'),
);
export const ONLY = sign(within(4, is('only'), is('approve trust allow official permit'), tool));
export const SEED = sign(word(0, 'seed salt nonce checksum identification entropy'));
export const CALLED = sign(
  within(
    3,
    is('when whenever each every if once'),
    either(name, 'tool'),
    is('call use invoke run'),
  ),
);
/** Arguments that decide where something goes. */
export const AIM = sign(
  word(0, 'recipient bcc cc payee iban beneficiary force'),
  within(1, is('bank'), is('detail account')),
);
