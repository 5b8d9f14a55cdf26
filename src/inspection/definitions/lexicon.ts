// Reads the words of a definition as classes of meaning: who is addressed, what is demanded, of what, and where it
// would go. Rules over definitions compare classes, so that a paraphrase is read like the original. English only.

/** Classes of meaning, as bits of a mask. */
export const CLASS = {
  /** The model that reads the definition. */
  model: 1 << 0,
  /** The person for whom the model works. */
  human: 1 << 1,
  negation: 1 << 2,
  /** To let somebody know. */
  disclose: 1 << 3,
  /** To keep from somebody. */
  conceal: 1 << 4,
  /** Without being noticed. */
  covert: 1 << 5,
  /** To ask for approval, and what is asked for. */
  consent: 1 << 6,
  /** To obtain content. */
  read: 1 << 7,
  /** To move content to somewhere. */
  carry: 1 << 8,
  /** Secrets and personal data. */
  secret: 1 << 9,
  /** A file or store in which secrets are kept, by its path or name. */
  store: 1 << 10,
  /** What the model has been told: the conversation, its instructions. */
  context: 1 << 11,
  /** A parameter, an argument, a field. */
  parameter: 1 << 12,
  /** What the model writes. */
  answer: 1 << 13,
  /** A URL or an e-mail address. */
  address: 1 << 14,
  /** A place outside: a third party, a remote server. */
  remote: 1 << 15,
  /** To set aside. */
  override: 1 << 16,
  /** What binds the model: instructions, rules, checks. */
  rule: 1 << 17,
  /** Which rules: previous, all, safety. */
  standing: 1 << 18,
  tool: 1 << 19,
  /** Every, any, all, when, whenever, always. */
  every: 1 << 20,
  /** Before, after, first, prior to. */
  order: 1 << 21,
  must: 1 << 22,
  /** Unsafe, deprecated, compromised. */
  disparage: 1 << 23,
  /** To use, call or invoke. */
  call: 1 << 24,
  /** To execute, and what is executed. */
  execute: 1 << 25,
  command: 1 << 26,
  /** To change what another call does. */
  change: 1 << 27,
  /** Already, pre-, automatically: said of an approval. */
  already: 1 << 28,
  /** Other, another, instead. */
  other: 1 << 29,
  /** To know or notice. */
  know: 1 << 30,
  /** An identifier that may be the name of another tool. */
  name: 1 << 31,
} as const;

/** The bit of a class by its name in capitals, as patterns spell it. */
export function classNamed(name: string): number {
  const mask = (CLASS as { readonly [name: string]: number })[name.toLowerCase()];
  if (mask === undefined) throw new Error(`no class is named ${name}`);
  return mask;
}

/** Words in their base form. A word may be in several classes. */
const LEXICON: readonly (readonly [number, string])[] = [
  [
    CLASS.model,
    'you your yours yourself assistant model llm llms ai agent claude gpt chatgpt copilot gemini chatbot bot',
  ],
  [
    CLASS.human,
    'user human operator customer person people anyone anybody somebody someone nobody them they owner viewer reader client caller',
  ],
  [
    CLASS.negation,
    "not never no-one dont don't doesn't doesnt cannot can't mustn't shouldn't needn't won't without avoid refrain nor neither nothing no none isn't aren't",
  ],
  [
    CLASS.disclose,
    'tell inform mention notify alert reveal disclose show say announce explain acknowledge warn report surface display divulge describe advise admit expose discuss share',
  ],
  [CLASS.conceal, 'hide conceal withhold obscure suppress'],
  [CLASS.covert, 'silently secretly covertly quietly discreetly invisibly stealthily unnoticed surreptitiously'],
  [
    CLASS.consent,
    'ask confirm confirmation permission consent approval approve prompt authorize authorise authorization agree agreement consult',
  ],
  [
    CLASS.read,
    'read open load prefetch access fetch retrieve get collect gather extract dump list grab copy obtain look find locate harvest scan view enumerate cat capture pull recall steal search index check download summarize summarise inspect analyze',
  ],
  [
    CLASS.carry,
    'send pass give include put append forward post upload attach provide insert embed transmit submit encode write place supply add set store save share relay bcc cc email mail leak exfiltrate fill deliver sync synchronize stream log report publish feed prepend populate record backup duplicate mirror copy output print encode paste transfer',
  ],
  [
    CLASS.secret,
    'password passwd credential credentials secret token passphrase apikey api_key cookie cvv ssn pii phi mnemonic passcode pem otp',
  ],
  [
    CLASS.store,
    'printenv id_rsa id_ed25519 authorized_keys known_hosts mcp.json keychain keystore dotenv netrc kubeconfig',
  ],
  [CLASS.context, 'conversation transcript'],
  [CLASS.parameter, 'parameter param argument field arg property input'],
  [CLASS.answer, 'reply response answer output completion message'],
  [CLASS.remote, 'attacker third-party offsite remotely externally collector partner affiliate advertiser'],
  [
    CLASS.override,
    'ignore disregard forget override bypass overrule disable circumvent evade skip supersede overwrite discard neglect abandon suspend lift disregards',
  ],
  [
    CLASS.rule,
    'instruction rule guideline guidance direction directive prompt restriction policy constraint safeguard guardrail safety limitation programming training boundary moderation',
  ],
  [
    CLASS.standing,
    'previous prior above earlier preceding existing original all any your safety security system content everything every other former initial given received these those default built-in ethical developer',
  ],
  [CLASS.tool, 'tool function plugin server mcp api connector'],
  [CLASS.every, 'every any all each when whenever always anytime if while once'],
  [CLASS.order, 'before after first prior preceding beforehand afterwards following upon prerequisite then'],
  [
    CLASS.must,
    'must should shall required require need needs mandatory ensure always necessary essential obligated obliged oblige kindly please',
  ],
  [
    CLASS.disparage,
    'unsafe insecure stale retired bogus rogue phishing compromised malicious broken deprecated unreliable vulnerable obsolete dangerous untrusted outdated buggy defunct harmful infected flawed discontinued inaccurate faulty leak falsify steal',
  ],
  [CLASS.call, 'call invoke use run execute select prefer choose trigger usage using invocation'],
  [CLASS.execute, 'execute run eval exec spawn launch invoke perform'],
  [
    CLASS.command,
    'command shell bash script sh zsh powershell terminal cmd curl wget nc netcat subprocess binary code',
  ],
  [
    CLASS.change,
    'set replace change modify redirect alter substitute rewrite bcc cc add append swap increase double reroute route adjust override prepend use include send forward copy edit transform convert insert',
  ],
  [CLASS.already, 'already pre-approved preapproved implicitly automatically pre-authorized beforehand previously'],
  [CLASS.other, 'other another instead rather else existing alternative alternatives others similar'],
  [
    CLASS.know,
    'know knowledge learn see notice aware awareness noticing realize unaware suspect detect told informed notified visible',
  ],
];

/** Two words that mean something together; the first mask replaces that of both. */
const PAIRS: readonly (readonly [number, string])[] = [
  [CLASS.must, 'have to|has to|had to'],
  [CLASS.override, 'set aside|put aside|push aside|no attention|no heed'],
  [CLASS.carry, 'hand over|pass along|pass on|send over|hand out'],
  [
    CLASS.secret,
    'api key|secret key|access key|encryption key|signing key|private information|private data|sensitive data|sensitive information|personal data|personal information|confidential information|confidential data|credit card|card number|environment variable|env variable|env var|bank account|account number|session cookie|authorization header|refresh token|session token|time code|verification code|medical data|health data|recovery code|aws key|cloud key|bearer token|user data|api token|access token|auth token|private message|location history|browsing history|social security|health record|ssh config|env file|pin code|pin number',
  ],
  [
    CLASS.context,
    'system prompt|chat history|thought process|latest chat|user prompt|message so|chain thought|conversation history|previous message|user last|this chat|full chat|entire chat|whole chat|current chat|your chat|chat transcript|chat record|chat content|session history|prior message|previous prompt|original prompt|your instruction|system instruction|system message|your context|conversation context|chat log|context window|previous conversation|chat context|tool history|our discussion|our conversation|our chat|our exchange|this exchange|preceding dialogue|developer message|initial prompt|hidden chain|hidden reasoning|earlier message',
  ],
  [
    CLASS.remote,
    'third party|remote server|remote endpoint|external server|external endpoint|external service|our server|our team|our account|our wallet|our endpoint|our service|our analytics|analytics service|logging endpoint|logging server|collection server|monitoring service|via cloud|different domain|our security|our research|our backend|research team|security team|audit endpoint|partner company',
  ],
  [CLASS.conceal, 'keep secret|keep hidden|keep confidential|keep private'],
  [
    CLASS.store,
    'private key|ssh key|cloud metadata|metadata service|password file|wallet file|seed phrase|recovery phrase|id rsa|ssh directory|ssh folder|shell history|bash history|browser cookie|aws credential|etc passwd|etc shadow',
  ],
  [
    CLASS.rule,
    'safety check|security check|safety filter|content filter|security policy|security measure|safety measure|security control|security protocol',
  ],
  [CLASS.parameter, 'query string'],
  [CLASS.answer, 'next reply|next response|final answer|next message|next turn'],
];

/** Lists of words that rows name with `@`, in their base form. */
export const LISTS: { readonly [name: string]: string } = {
  any: 'any every each all',
  calling: 'call use invoke run execute consult',
  case: 'if when whenever once unless otherwise until upon case',
  'claimed-outcome':
    'fail failure unavailable impossible succeed successful clean secure safe vulnerability threat malware issue',
  condition: 'if when after once unless until before',
  consents: 'confirm confirmation permission consent approval approve',
  /** How something is shown is a matter of form. */
  detail: 'id identifier uuid name raw internal technical json jargon minor',
  fee: 'fee commission surcharge percent percentage tax share',
  giving:
    'add share give hand supply state enter fill paste type provide pass put copy send attach append transmit submit include insert place write forward',
  grant: 'authorization authorisation approval permission consent clearance authentication identity',
  granted: 'verify grant give obtain approve confirm complete validate secure perform check',
  harmless: 'clean safe secure compliant harmless benign trusted passed',
  hushed: 'mention reveal disclose tell announce acknowledge discuss divulge admit',
  ignoring: 'ignore disregard forget neglect bypass circumvent evade',
  /** These may stand before the verb of an order. */
  lead: 'also then and now next finally first please always automatically additionally',
  'free-lead': 'and then also now first finally kindly quietly silently',
  'lead-in':
    'and then also now first finally please kindly must should shall you always just simply immediately quietly silently',
  /** A token is what a login hands out to be passed on. */
  login: 'access auth bearer cookie refresh session token',
  mentioning: 'mention say talk speak write type refer bring discuss utter',
  moved: 'export route transfer send forward report copy mirror deduct divert pay submit go',
  obtaining:
    'read open load prefetch fetch retrieve get collect gather extract dump grab obtain find search steal harvest',
  'of-call': 'this these it step call parameter upload access process',
  person: 'user human person people operator customer anybody anyone somebody',
  quantity: 'amount value number quantity price recipient address destination query argument',
  recording: 'include record log report collect capture send pass provide submit forward store',
  request: 'request query question message task prompt conversation turn input',
  rest: 'other others any all every alternative similar competing built-in existing',
  'step-of-work': 'return proceed complete finish respond answer start process continue generate perform provide',
  telling: 'tell inform notify alert reveal disclose say announce acknowledge warn divulge advise admit discuss',
  transfer:
    'send forward upload share stream sync synchronize transmit post store report copy leak exfiltrate submit log mirror save deliver email record relay push transfer backup',
  unabridged: 'entire full complete whole verbatim unabridged unredacted word',
  /** The one for whom the model works, rather than whoever gets to see what a tool publishes. */
  user: 'user human operator person developer administrator them they',
  using: 'call use invoke run trigger select choose prefer pick consult activate',
  version: 'version replacement alternative variant edition successor',
  way: 'way method means option approach mechanism solution place',
};

const singles = new Map<string, number>();
for (const [mask, tokens] of LEXICON) {
  for (const token of tokens.split(' ')) singles.set(token, (singles.get(token) ?? 0) | mask);
}

const pairs = new Map<string, number>();
for (const [mask, tokens] of PAIRS) for (const pair of tokens.split('|')) pairs.set(pair, mask);
const known = new Set([...singles.keys(), ...[...pairs.keys()].flatMap((pair) => pair.split(' '))]);

/** Makes words known, so that their inflected forms are read as them. */
export function learnBases(bases: readonly string[]): void {
  for (const base of bases) known.add(base);
}

/** The base forms to try for a word, nearest first. */
function candidates(token: string): readonly string[] {
  const found = [token];
  const bare = token.endsWith("'s") ? token.slice(0, -2) : token;
  if (bare !== token) found.push(bare);
  if (bare.endsWith('ies')) found.push(`${bare.slice(0, -3)}y`);
  if (bare.endsWith('s')) found.push(bare.slice(0, -1));
  if (/(?:s|x|z|ch|sh|o)es$/.test(bare)) found.push(bare.slice(0, -2));
  if (bare.endsWith('ied')) found.push(`${bare.slice(0, -3)}y`);
  if (bare.length > 4 && bare.endsWith('ed')) found.push(...stems(bare.slice(0, -2)));
  if (bare.length > 4 && bare.endsWith('ing')) found.push(...stems(bare.slice(0, -3)));
  return found;
}

/** The verb of `stopp`, `includ` and `send`. */
function stems(root: string): readonly string[] {
  const isDoubled = root.length > 2 && root.at(-1) === root.at(-2);
  return isDoubled ? [root, `${root}e`, root.slice(0, -1)] : [root, `${root}e`];
}

/** Irregular forms, by their base. */
const IRREGULAR: ReadonlyMap<string, string> = new Map([
  ['sent', 'send'],
  ['told', 'tell'],
  ['shown', 'show'],
  ['got', 'get'],
  ['ran', 'run'],
  ['hidden', 'conceal'],
  ['kept', 'keep'],
  ['written', 'write'],
  ['forgotten', 'forget'],
  ['overridden', 'override'],
  ['seen', 'see'],
  ['known', 'know'],
  ['stolen', 'steal'],
  ['chosen', 'choose'],
  ['fed', 'feed'],
]);

/** Singular words that end like a plural. */
const SINGULAR: ReadonlySet<string> = new Set(['this', 'does', 'thus', 'always', 'perhaps', 'various']);

/** The base form of a word as the lexicon spells it; the word itself where it is not in it. */
export function baseOf(token: string): string {
  const regular = IRREGULAR.get(token);
  if (regular !== undefined) return regular;
  for (const candidate of candidates(token)) if (known.has(candidate)) return candidate;
  return /[^s]s$/.test(token) && token.length > 3 && !SINGULAR.has(token) ? token.slice(0, -1) : token;
}

/** The classes of a base form. */
export function classesOf(base: string): number {
  return singles.get(base) ?? 0;
}

/** The classes of two base forms in a row; 0 where they mean nothing of their own. */
export function classesOfPair(first: string, second: string): number {
  return pairs.get(`${first} ${second}`) ?? 0;
}
