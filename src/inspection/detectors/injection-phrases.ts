// Phrases and structures by which a text addresses a model instead of a reader: phrases over normalized words,
// and imitations of conversation roles. Each phrase names literal anchors and the words that must occur near one,
// so that the prefilter can exclude it. text-sanitizer.ts looks for them. A cue is evidence, not proof.

/** A word that a phrase requires, and the words of which one must occur near it. */
export type CueAnchor = { readonly text: string; readonly companion: RegExp | undefined };

export type Cue = {
  readonly kind: string;
  /** Matched on lower-case words with one blank between them and no other signs. Only bounded repeats. */
  readonly phrase: RegExp;
  readonly anchors: readonly CueAnchor[];
};

function createCue(kind: string, anchors: string, companionSource: string, source: string): Cue {
  const companion = companionSource === '' ? undefined : new RegExp(companionSource, 'i');
  return {
    kind,
    phrase: new RegExp(`\\b(?:${source})\\b`),
    anchors: anchors.split(' ').map((text) => ({ text, companion })),
  };
}

const FEW = '(?: [a-z0-9]{1,24}){0,4}';
const RULES =
  'instructions?|rules?|guidelines?|directives?|prompts?|restrictions?|policies|constraints|programming|training|commands';
const OLD = 'previous|prior|above|earlier|preceding|existing|original|safety|security|all|any|your|system|content';
const CARRY =
  'send|post|forward|upload|submit|transmit|leak|exfiltrate|append|include|pass|collect|streamed|put|extract|indexes';
const VALUABLES =
  'api keys?|passwords?|credentials|tokens|secrets|environment variables|system prompt|chat history|private keys?|private information|conversation|full email body|last message|clipboard|private data';

const OVERRIDES: readonly Cue[] = [
  createCue(
    'override',
    'ignore disregard forget overrid overrule bypass',
    'instruct|rule|guideline|directive|prompt|restrict|polic|constraint|programming|training|command',
    `(?:ignore|disregard|forget|override|bypass|overrule)${FEW} (?:${OLD})${FEW} (?:${RULES})|(?:ignore|disregard|forget|override|bypass|overrule) (?:${OLD}) (?:${RULES})`,
  ),
  createCue(
    'override',
    'ignore disregard forget',
    'everything|anything|all',
    '(?:ignore|disregard|forget) (?:everything|anything|all of|all)(?: that)?(?: was)?(?: you)? (?:above|before|previous|prior|said)',
  ),
  createCue(
    'override',
    'bypass disable',
    'filter|safety|security',
    `(?:bypass|disables?)${FEW} (?:content filter(?:s|ing)?|safety|security (?:checks?|policies|restrictions))`,
  ),
  createCue('override', 'override', 'system|admin|developer', '(?:system|admin|developer|user|policy) override'),
  createCue(
    'override',
    'instruction directive',
    'new|updated|real|hidden|secret|actual|important|metadata',
    '(?:new|updated|real|actual|important) (?:system )?instructions? (?:is|are|for you|to follow|begin|below)|(?:hidden|metadata|secret|system) (?:override )?(?:instruction|directive)s?|important system instructions?',
  ),
];

const ROLES: readonly Cue[] = [
  createCue(
    'role',
    'developer maintenance debug admin jailbreak root unrestricted dan god',
    'you|pretend|act|enter',
    '(?:you are now|you are|pretend to be|act as|enter)(?: in| an?)? (?:dan|developer mode|maintenance mode|debug mode|admin mode|god mode|jailbreak|system administrator|root|unrestricted)',
  ),
  createCue('role', 'jailbreak unrestricted', '', 'jailbreak mode|unrestricted (?:system|mode|ai|assistant|emergency)'),
  createCue('role', 'trust', 'input', 'trust (?:all|any) user input'),
];

const CONCEALMENTS: readonly Cue[] = [
  createCue(
    'concealment',
    'tell inform mention notify alert reveal disclos show',
    'not|n.?t\\b|never|without',
    '(?:not|don t|dont|never|without) (?:tell|telling|inform|informing|mention|mentioning|notify|notifying|alert|alerting|reveal|revealing|disclose|disclosing|show)(?: it| this| that| anything)?(?: to)? (?:(?:the |your |this )?(?:users?|humans?|anyone|anybody|operator)|it\\b|this\\b)',
  ),
  createCue(
    'concealment',
    'ask confirm',
    'not|n.?t\\b|never|without',
    '(?:do not|don t|never|without) ask(?:ing)?(?: for)? (?:the |your )?(?:users?|humans?|confirmation|permission)|never (?:ask )?confirm',
  ),
  createCue(
    'concealment',
    'secretly silently covertly',
    '',
    '(?:secretly|silently|covertly) (?:send|call|execute|run|forward|upload|include|append|add|copy|read|collect|post)',
  ),
];

const EXFILTRATIONS: readonly Cue[] = [
  createCue(
    'exfiltration',
    'api password credential token secret environment prompt history private conversation email message clipboard',
    'send|post|forward|upload|submit|transmit|leak|exfiltrat|append|includ|pass(?!w)|collect|stream|put|extract|index',
    `(?:${CARRY})${FEW} (?:${VALUABLES})`,
  ),
  createCue(
    'exfiltration',
    'api password credential token secret environment prompt history private conversation body message clipboard',
    'email',
    `email${FEW} (?:${VALUABLES})`,
  ),
  createCue(
    'exfiltration',
    'message conversation prompt',
    'user',
    'users? s? ?(?:last|previous|entire|full) (?:messages?|conversation|prompt)',
  ),
  createCue(
    'exfiltration',
    'value',
    'key|password|secret|token',
    `include the values? of${FEW} (?:key|password|secret|token)`,
  ),
  createCue(
    'exfiltration',
    'harvested stolen attacker',
    'credential|token|secret|controlled|send',
    '(?:harvested|stolen) (?:credentials|tokens|secrets)|controlled by (?:the|an) attacker',
  ),
  createCue(
    'exfiltration',
    'rsa passwd shadow credential ssh env',
    'read|cat|open|content|access|etc',
    `(?:read|cat|open|contents? of|access)${FEW} (?:id rsa|etc passwd|etc shadow|aws credentials|ssh config|env file)`,
  ),
  createCue('exfiltration', 'pem', 'env', 'matching (?:patterns )?env (?:and )?(?:pem|key)'),
  createCue(
    'exfiltration',
    'remote third',
    'sent|upload|forward|stream|shared|stored',
    `(?:sent|uploaded|forwarded|streamed|shared|stored)${FEW} (?:remote (?:server|endpoint)|third parties)`,
  ),
];

const TOOL_ORDERS: readonly Cue[] = [
  createCue(
    'tool-order',
    'using calling completing invoking executing returning',
    'before|after|when',
    `(?:before|after|when|whenever) (?:using|calling|completing|invoking|executing|returning) (?:this|any|the|other|results?)${FEW} (?:read|fetch|send|execute|run|include|pass|first call|you must)`,
  ),
  createCue('tool-order', 'must', 'call', '(?:every|all|any) calls? to [a-z0-9]{1,24}(?: [a-z0-9]{1,24}){0,2} must'),
  createCue(
    'tool-order',
    'tool',
    'always|replace|first',
    'always (?:prefer|choose|select) this tool|this tool replaces|first call this tool',
  ),
  createCue(
    'tool-order',
    'command',
    'execute|run|shell',
    '(?:execute|run)(?: the| this| any)?(?: following)? (?:bash |shell )?commands? (?:before|in the|requested)',
  ),
  createCue('tool-order', 'directly curl', 'pass|post', 'pass user input directly to|curl x post'),
  createCue(
    'tool-order',
    'answer repl response',
    'every|each',
    '(?:at the end of|append(?:ed)? to) (?:every|each|all)(?: of)?(?: your)? (?:answers?|reply|replies|responses?)',
  ),
  createCue(
    'encoded-order',
    'decode',
    'follow|execute|run|obey',
    '(?:decode|base64 decode)(?: this| it| the following)? and (?:follow|execute|run|obey)',
  ),
  createCue(
    'prompt-theft',
    'prompt',
    'reveal|print|repeat|output|show|disclose|leak',
    '(?:reveal|print|repeat|output|show|disclose|leak)(?: me)?(?: your| the)?(?: full| entire| complete| hidden)? (?:system prompt|hidden prompt)',
  ),
];

/** Phrases, matched on normalized words. */
export const PHRASES: readonly Cue[] = [...OVERRIDES, ...ROLES, ...CONCEALMENTS, ...EXFILTRATIONS, ...TOOL_ORDERS];

/** Structures, matched on folded lower-case text with its signs. */
export const STRUCTURES: readonly { readonly kind: string; readonly pattern: RegExp }[] = [
  { kind: 'fake-role', pattern: /<\/?(?:important|system|instructions?|admin|secret|hidden|sys)>/ },
  {
    kind: 'fake-role',
    pattern: /<\|(?:im_start|im_end|system|assistant|user|endoftext|begin_of_text|start_header_id)/,
  },
  {
    kind: 'fake-role',
    pattern: /\[\/?(?:inst|system|sys|admin|system override|hidden instruction|metadata directive)\]/,
  },
  { kind: 'fake-role', pattern: /<<\/?sys>>|\|\|\|[a-z_]{3,30}\|\|\|/ },
  {
    kind: 'fake-role',
    pattern: /(?:^|\n)[ \t#*]{0,8}(?:system|assistant)(?: override| message| prompt| directive){0,2}[ \t]{0,4}:/,
  },
  {
    kind: 'hidden-comment',
    pattern: /<!--[^>]{0,200}(?:instruction|important|ignore|assistant|tool|system|user)/,
  },
];

/** Anchors of the structures without `<` and `|`. */
export const STRUCTURE_ANCHORS: readonly CueAnchor[] = [
  { text: 'inst]', companion: undefined },
  { text: 'system', companion: /\[\/?system|system\]|system[a-z ]{0,24}[ \t\\]{0,8}:/i },
  { text: 'assistant', companion: /assistant[a-z ]{0,24}[ \t\\]{0,8}:/i },
  { text: 'sys]', companion: undefined },
  { text: 'admin]', companion: undefined },
  { text: 'instruction]', companion: undefined },
  { text: 'directive]', companion: undefined },
];
