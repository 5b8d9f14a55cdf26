// Splits a reading of a text into sentences of classified words. Marks what the grammar says beyond single words:
// compounds, double negation, paths, addresses and identifiers. Linear; never judges.

import { baseOf, CLASS, classesOf, classesOfPair } from './lexicon.js';

/** One word: its base form, its classes and its span in the reading. */
export type Token = {
  readonly base: string;
  /** Whether it stands in its base form, as a verb in the imperative does. */
  readonly isBase: boolean;
  mask: number;
  /** Whether it is a verb that is denied: `do not send`. */
  isDenied?: true;
  /** What begins the clause after it: `do not show it unless the user asks`. */
  condition?: string;
  readonly start: number;
  readonly end: number;
};

/** A sentence or an independent clause. `mask` has the classes of all its words. */
export type Sentence = {
  readonly tokens: readonly Token[];
  readonly mask: number;
  /** The words that it has. */
  readonly bases: ReadonlySet<string>;
  /** Position in the text. The first sentence of a description says what a tool does, in the imperative. */
  readonly index: number;
};

/** The names that a definition itself declares: its own, and those of its parameters. */
export type OwnNames = { readonly name: string; readonly parameters: ReadonlySet<string> };

const SEPARATOR = /[\s"'`,()<>[\]{}|*“”‘’«»!?;:#=+]/;
const BREAK = /[.!?;\n•]/;
/** Words that begin a clause with a condition of its own. */
const CLAUSE_STARTS: ReadonlySet<string> = new Set(['unless', 'until', 'if', 'but', 'however', 'otherwise']);
const MAX_TOKENS_PER_SENTENCE = 400;

/** Nouns after which the noun before is an attribute: a `user id` is no user, a `token count` no token. */
const HEADS: ReadonlySet<string> = new Set(
  'id name type count limit list url group role profile account interface agent table object policy size length format manager library management identifier metadata usage field attribute setting preference title email uri arn status key pool directory admin space story flow guide manual rotation expiration scanning alert detection update template change version thread'.split(
    ' ',
  ),
);

const STORE_PARTS = [
  '.ssh',
  'id_rsa',
  'id_ed25519',
  '.aws/',
  '/etc/passwd',
  '/etc/shadow',
  '.netrc',
  '.npmrc',
  '.pypirc',
  'kubeconfig',
  '.kube/',
  'mcp.json',
  '.pem',
  '.git-credentials',
  '.docker/config',
  '.gnupg',
  'wallet.dat',
  'claude_desktop_config',
  '.config/gcloud',
  '/proc/self',
  '.cursor/',
  '/root/',
  '169.254.169.254',
  'application_default_credentials',
  '.vault',
  'credentials.json',
];
/** A file, and neither `process.env` nor `os.environ`. */
const ENV_FILE = /(?<![a-z])\.env(?![a-z]|\.(?:example|sample|template))|\.\w{1,20}_history\b/;
const STORE_TERMS = /(?:credential|secret|password|private|token|id_rsa|passwd)/;

/** The sentences of a text, in order. `first` is the index of the first: only a description begins with 0. */
export function sentencesOf(text: string, own: OwnNames, first = 0): readonly Sentence[] {
  const sentences: Sentence[] = [];
  const tokens: Token[] = [];
  const topic = topicOf(own);
  const close = (): void => {
    if (tokens.length === 0) return;
    sentences.push(toSentence(tokens.splice(0), first + sentences.length, topic));
  };
  for (let at = 0; at < text.length; ) {
    if (SEPARATOR.test(text.charAt(at)) && !isWordStart(text, at)) {
      if (endsSentence(text, at)) close();
      at++;
      continue;
    }
    const end = tokenEnd(text, at);
    const trimmed = trimEnd(text, at, end);
    if (trimmed > at) addTokens(text, at, trimmed, own, tokens, close);
    if (isBroken(text, at, trimmed, end) || tokens.length >= MAX_TOKENS_PER_SENTENCE) close();
    at = end;
  }
  close();
  return sentences;
}

/** Whether a mark at the end of a word ends the sentence, rather than an abbreviation. */
function isBroken(text: string, start: number, trimmed: number, end: number): boolean {
  if (!BREAK.test(text.slice(trimmed, end))) return false;
  return trimmed - start > 4 || !/^(?:e\.g|i\.e|vs|incl|resp)$/i.test(text.slice(start, trimmed));
}

/** Whether the separator begins a word: `*.pem`, `+13241234123`. */
function isWordStart(text: string, at: number): boolean {
  const next = text.charAt(at + 1);
  return text[at] === '*' ? next === '.' : text[at] === '+' && /\d/.test(next);
}

/** Whether the separator ends a sentence: a mark, a blank line, or a line that begins a list item or a heading. */
function endsSentence(text: string, at: number): boolean {
  const unit = text.charAt(at);
  if (unit === '!' || unit === '?') return /^.(?:\s|$)/s.test(text.slice(at, at + 2));
  if (unit !== '\n') return unit === ';';
  return /^\n[ \t]{0,40}(?:\n|[-*•#>|]|\d{1,3}[.)]|[\w.'"`-]{1,40}(?: ?\([^)\n]{0,40}\))?:\s)/.test(
    text.slice(at, at + 130),
  );
}

const URL_START = /^(?:[a-z][a-z0-9+.-]{1,12}:\/\/|www\.)/i;

function tokenEnd(text: string, start: number): number {
  const isUrl = URL_START.test(text.slice(start, start + 20));
  let end = start + 1;
  while (end < text.length) {
    const unit = text.charAt(end);
    if (isUrl ? /[\s"'`<>|\\)]/.test(unit) : SEPARATOR.test(unit) && !isApostrophe(text, end)) break;
    end++;
  }
  return end;
}

function isApostrophe(text: string, at: number): boolean {
  return /['’]/.test(text.charAt(at)) && /[a-z]/i.test(text.charAt(at - 1)) && /[a-z]/i.test(text.charAt(at + 1));
}

function trimEnd(text: string, start: number, end: number): number {
  let last = end;
  if (/^[.\u2026]+$/.test(text.slice(start, end))) return start;
  while (last > start + 1 && /[.…\-_/\\]/.test(text.charAt(last - 1))) last--;
  return last;
}

function addTokens(text: string, start: number, end: number, own: OwnNames, tokens: Token[], close: () => void): void {
  const raw = text.slice(start, end);
  const lower = raw.toLowerCase().replaceAll('’', "'");
  const isSlot = isQuotedSlot(text, start, end, tokens);
  const special = specialClass(raw, lower, own, isSlot);
  if (special !== undefined) {
    tokens.push({ base: lower, isBase: true, mask: special, start, end });
    return;
  }
  const base = baseOf(lower);
  if (beginsClause(base, tokens)) {
    const before = tokens.at(-1);
    if (before !== undefined) before.condition = base;
    close();
  } else if (isUnmarkedStart(text, start, raw, base, tokens)) close();
  const isKnown = classesOf(base) !== 0;
  if (isKnown || !/[-/\\]/.test(lower)) {
    tokens.push({ base, isBase: base === lower, mask: classesOf(base), start, end });
    return;
  }
  addParts(lower, start, tokens);
}

/** Whether a condition of its own begins; `even if` and `it would be kind if` go on. */
function beginsClause(base: string, tokens: readonly Token[]): boolean {
  if (!CLAUSE_STARTS.has(base) || /^(?:even|as)$/.test(tokens.at(-1)?.base ?? '')) return false;
  return base !== 'if' || !tokens.slice(-MAX_WISH).some((token) => token.base === 'would');
}

/** The words that may stand between `would` and `if` in a wish, such as `it would be very kind of you if`. */
const MAX_WISH = 6;

function addParts(lower: string, start: number, tokens: Token[]): void {
  let at = start;
  for (const part of lower.split(/[-/\\]/)) {
    const partBase = baseOf(part);
    const token = { base: partBase, isBase: partBase === part, mask: classesOf(partBase) };
    if (part !== '') tokens.push({ ...token, start: at, end: at + part.length });
    at += part.length + 1;
  }
}

const STARTING =
  CLASS.order |
  CLASS.must |
  CLASS.negation |
  CLASS.every |
  CLASS.override |
  CLASS.disclose |
  CLASS.model |
  CLASS.carry |
  CLASS.read |
  CLASS.call |
  CLASS.change |
  CLASS.execute |
  CLASS.consent;
/** After these words a capital begins a name. */
const WITHIN: ReadonlySet<string> = new Set(
  'the a an of to in on for with by and or via from into this that your our any all each new'.split(' '),
);
/** Further words that begin an order. */
const STARTING_BASES: ReadonlySet<string> = new Set(
  'whatever convince connect approve query grant take treat do note from make since should escalate delete merge'.split(
    ' ',
  ),
);

function isStarting(base: string): boolean {
  return (classesOf(base) & STARTING) !== 0 || STARTING_BASES.has(base);
}

/** Whether a capital begins a sentence although no mark ends the one before: `Adds numbers Before you`. */
function isUnmarkedStart(text: string, start: number, raw: string, base: string, tokens: readonly Token[]): boolean {
  const before = tokens.at(-1);
  if (before === undefined || WITHIN.has(before.base) || !/^[A-Z][a-z]/.test(raw) || !isStarting(base)) {
    return false;
  }
  return (
    /[a-z0-9)\]]\s{1,40}$/.test(text.slice(Math.max(0, start - 42), start)) &&
    /^[a-z0-9]/.test(text.slice(before.start))
  );
}

const SLOT_BEFORE: ReadonlySet<string> = new Set(
  'as in into to under via through fill set called named parameter field argument option the key'.split(' '),
);

/** Whether the word is quoted where the name of a parameter stands: pass it as `hint`. */
function isQuotedSlot(text: string, start: number, end: number, tokens: readonly Token[]): boolean {
  const open = text.charAt(start - 1);
  const isQuoted = /["'`\u2018\u201c]/.test(open) && /["'`\u2019\u201d]/.test(text.charAt(end));
  return isQuoted && SLOT_BEFORE.has(tokens.at(-1)?.base ?? '');
}

/** The classes of addresses, paths and identifiers; `undefined` for an ordinary word. */
function specialClass(raw: string, lower: string, own: OwnNames, isSlot: boolean): number | undefined {
  if (URL_START.test(lower)) return CLASS.address | classesOfPlaceholder(lower);
  if (/^\+\d{7,15}$/.test(lower)) return CLASS.address;
  if (/^[^@\s]{1,80}@[^@\s]{1,80}\.[a-z]{2,16}$/.test(lower)) return CLASS.address;
  if (isStore(lower)) return CLASS.store;
  if (own.parameters.has(raw) && raw !== lower.replace(/[_A-Z]/g, '')) return CLASS.parameter;
  if (raw === own.name) return CLASS.tool;
  const slot = isSlot ? CLASS.parameter : 0;
  if (!/[a-z0-9]_[a-z0-9]|[a-z][A-Z][a-z]/.test(raw)) return slot || undefined;
  return classesOf(lower) || CLASS.name | slot | (classesOfParts(raw) & ~CLASS.context);
}

/** What a placeholder in a URL is to be filled with: `?q={conversation}`. */
function classesOfPlaceholder(url: string): number {
  const placeholders = url.match(/(?:[{<[$]|%7b)[^}>\]&/]{0,200}/g) ?? [];
  return classesOfParts(placeholders.join('_').replace(/[^a-z]+/g, '_'));
}

function isStore(lower: string): boolean {
  if (!/[./~_]/.test(lower) || lower.endsWith('.pub')) return false;
  if (STORE_PARTS.some((part) => lower.includes(part)) || ENV_FILE.test(lower)) return true;
  return /^(?:~|\.{0,2}\/|\/|[a-z]:\\|%|\*\.?\*?)/.test(lower) && STORE_TERMS.test(lower);
}

const COUNTED: ReadonlySet<string> = new Set(['estimate', 'count', 'total', 'usage', 'max', 'limit']);

/** What the parts of an identifier say of secrets and context: `list_env_vars` names environment variables. */
function classesOfParts(raw: string): number {
  const parts = raw
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[_.]/)
    .map(baseOf);
  let mask = 0;
  for (const [at, part] of parts.entries()) {
    mask |= classesOf(part) | classesOfPair(part, parts[at + 1] ?? '');
  }
  // What a name counts is not what it names.
  if (parts.some((part) => COUNTED.has(part))) mask &= ~CLASS.secret;
  return mask & (CLASS.secret | CLASS.context | CLASS.store);
}

const HEAD_MASK = CLASS.human | CLASS.secret | CLASS.context | CLASS.tool;

/** Words that tell the `token` of a login from that of a model, a page or a currency. */
const LOGIN: ReadonlySet<string> = new Set(
  'access auth authentication authorization bearer api session refresh secret credential password key login oauth sso github gitlab slack npm aws'.split(
    ' ',
  ),
);
/** Words that tell the `transcript` of the session from that of a meeting or a video. */
const SESSION: ReadonlySet<string> = new Set('session conversation chat'.split(' '));

function toSentence(tokens: readonly Token[], index: number, topic: Topic): Sentence {
  exceptWhenBeside(LOGIN, 'token', CLASS.secret, tokens);
  exceptWhenBeside(SESSION, 'transcript', CLASS.context, tokens);
  markPairs(tokens);
  markOfMany(tokens);
  markNegations(tokens);
  markNouns(tokens);
  markDenied(tokens);
  markReferences(tokens);
  markTopic(tokens, topic);
  let mask = 0;
  for (const token of tokens) mask |= token.mask;
  return { tokens, mask, bases: new Set(tokens.map(({ base }) => base)), index };
}

/** Takes a class from a word that is in it only in the company of others. */
function exceptWhenBeside(company: ReadonlySet<string>, base: string, mask: number, tokens: readonly Token[]): void {
  if (tokens.some((token) => company.has(token.base))) return;
  for (const token of tokens) if (token.base === base) token.mask &= ~mask;
}

function markPairs(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1];
    if (next !== undefined) markPair(token, next, tokens[at + 2]);
  }
}

function markPair(token: Token, next: Token, afterNext: Token | undefined): void {
  if (token.base === 'log' && next.base === 'in') token.mask = 0;
  const pair = classesOfPair(token.base, next.base);
  if (pair !== 0) {
    const isMany = next.base === 'prompt' && !next.isBase;
    token.mask = isMany || isAttribute(pair, afterNext) ? 0 : pair;
    next.mask = token.mask;
  } else if (isAttribute(token.mask, next)) {
    token.mask &= ~HEAD_MASK;
  }
}

const OF_MANY: ReadonlySet<string> = new Set(
  'a an one each per another same new existing saved save stored customer specific given'.split(' '),
);

/** A conversation among many is a thing that a server keeps, and the one `in this conversation` says when. */
function markOfMany(tokens: readonly Token[]): void {
  const isAll = tokens.some(({ base }) => base === 'everything');
  for (const [at, token] of tokens.entries()) {
    if (token.base !== 'conversation' && token.base !== 'chat') continue;
    const before = tokens[at - 1];
    const isTime = !isAll && isDuring(tokens, at);
    if (isTime && before !== undefined) before.mask &= ~CLASS.context;
    if (isTime || isOfMany(token, before) || tokens[at + 1]?.base === 'with') {
      token.mask &= ~CLASS.context;
    }
  }
}

function isOfMany({ base, isBase }: Token, before: Token | undefined): boolean {
  return base === 'conversation' && (!isBase || OF_MANY.has(before?.base ?? ''));
}

function isDuring(tokens: readonly Token[], at: number): boolean {
  return THIS.has(tokens[at - 1]?.base ?? '') && DURING.has(tokens[at - 2]?.base ?? '');
}

const THIS: ReadonlySet<string> = new Set('this the current our same'.split(' '));
const DURING: ReadonlySet<string> = new Set('in during within throughout for per'.split(' '));

function isAttribute(mask: number, next: Token | undefined): boolean {
  return (mask & HEAD_MASK) !== 0 && next !== undefined && HEADS.has(next.base);
}

/** `Never proceed without asking` demands to ask: two negations in one clause cancel each other. */
function markNegations(tokens: readonly Token[]): void {
  const negations = tokens.filter((token) => (token.mask & CLASS.negation) !== 0);
  const without = negations.findIndex((token, at) => at > 0 && token.base === 'without');
  if (without < 0) return;
  for (const token of negations) token.mask &= ~CLASS.negation;
}

/** After these a word is a noun, whatever else it may be: `the report`, `an alert`. */
const ARTICLES: ReadonlySet<string> = new Set(['the', 'a', 'an', 'your', 'their', 'its']);
const NOMINAL = CLASS.read | CLASS.carry | CLASS.change | CLASS.disclose;

function markNouns(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    const isNoun = ARTICLES.has(tokens[at - 1]?.base ?? '');
    if (isNoun || (!token.isBase && /^(?:alert|report)$/.test(token.base))) token.mask &= ~NOMINAL;
  }
}

const DENIABLE = CLASS.read | CLASS.carry | CLASS.change | CLASS.execute;
const VERB = DENIABLE | CLASS.call | CLASS.disclose | CLASS.consent | CLASS.know | CLASS.override;
/** How many words may stand between a negation and its verb: `must not ever be sent`. */
const MAX_DENIAL = 7;
const BETWEEN =
  /^(?:be|been|being|have|to|ever|it|under|any|no|circumstance|in|way|at|point|time|by|all|mean|explicitly|directly|also|or|nor|allowed|should|must|may|supposed|permitted|meant|required|need|bother|even|from|please|\w{2,20}ly)$/;

/** A verb that is denied demands nothing: `do not include or send passwords`. To tell somebody may still be denied. */
function markDenied(tokens: readonly Token[]): void {
  for (const [at, { base, mask }] of tokens.entries()) {
    if ((mask & CLASS.negation) === 0 || /^(?:nothing|none|nobody|no-one)$/.test(base)) continue;
    if (base === 'no' && tokens[at + 1]?.base !== 'circumstance') continue;
    let verb = verbAfter(tokens, at);
    while (verb > 0) {
      const denied = tokens[verb];
      if (denied !== undefined) {
        denied.mask &= ~DENIABLE;
        denied.isDenied = true;
      }
      verb = alternativeAt(tokens, verb + 1);
    }
  }
}

/** Where the verb of a negation is; -1 if other words come first. */
function verbAfter(tokens: readonly Token[], negation: number): number {
  for (let at = negation + 1; at <= negation + MAX_DENIAL; at++) {
    const token = tokens[at];
    if (token === undefined || token.base === 'only') return -1;
    if ((token.mask & VERB) !== 0 && !BETWEEN.test(token.base)) return at;
    const isShort = token.base.length <= 3 && !/^(?:the|an?|for|all)$/.test(token.base);
    if (!isShort && !BETWEEN.test(token.base)) return -1;
  }
  return -1;
}

/** Where another verb is denied with the one before; -1 if none is. */
function alternativeAt(tokens: readonly Token[], at: number): number {
  const isJoined = /^(?:or|nor)$/.test(tokens[at]?.base ?? '');
  const next = isJoined ? at + 1 : at;
  const verb = tokens[next];
  if (verb === undefined || (verb.mask & DENIABLE) === 0) return -1;
  return isJoined || (verb.isBase && tokens[at - 1]?.isBase === true) ? next : -1;
}

/** Words before an address that is there to be read about. */
const REFERENCES: ReadonlySet<string> = new Set(
  'see documentation doc docs guide reference more learn visit example e.g format specification spec detail'.split(' '),
);

/** Whether it says where something is configured: `set the variable in your .env file`. */
function isSetIn(tokens: readonly Token[], at: number): boolean {
  if (((tokens[at]?.mask ?? 0) & CLASS.store) === 0) return false;
  const before = tokens.slice(Math.max(0, at - 6), at).map(({ base }) => base);
  const to = Math.max(before.lastIndexOf('in'), before.lastIndexOf('to'), before.lastIndexOf('into'));
  return to >= before.length - 2 && before.slice(0, to).some((base) => SETTING.has(base));
}

const SETTING: ReadonlySet<string> = new Set([
  'set',
  'define',
  'configure',
  'store',
  'save',
  'add',
  'copy',
  'write',
  'put',
  'append',
]);

/** A link to documentation, or an example of one, is no place to send something to. */
function markReferences(tokens: readonly Token[]): void {
  for (const [at, token] of tokens.entries()) {
    if (isSetIn(tokens, at)) token.mask &= ~CLASS.store;
    if (token.mask !== CLASS.address) continue;
    const before = tokens.slice(Math.max(0, at - 5), at);
    if (before.some(({ base }) => REFERENCES.has(base))) token.mask = 0;
  }
}

/** What a tool is for, by the terms of its own name, and what it takes, by those of its parameters. */
type Topic = {
  readonly terms: ReadonlySet<string>;
  readonly taken: ReadonlySet<string>;
  readonly isTalk: boolean;
};

function topicOf({ name, parameters }: OwnNames): Topic {
  const terms = termsOf(name);
  const taken = new Set([...parameters].flatMap((parameter) => [...termsOf(parameter)]));
  return { terms, taken, isTalk: TALKS.some((word) => terms.has(word)) };
}

function termsOf(name: string): ReadonlySet<string> {
  const spaced = name
    .slice(0, MAX_NAME)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
  return new Set(spaced.split(/[^a-z]+/).map(baseOf));
}

const MAX_NAME = 128;
/** Tools with these terms in their name keep or hand over what is said. */
const TALKS = 'conversation chat memory remember session dialog transcript handoff agent'.split(' ');

/**
 * What a tool is for is no other's: `get_conversation` returns a conversation, and a secret that it declares as a
 * parameter is given to it in the open. Unless it leaves for elsewhere.
 */
function markTopic(tokens: readonly Token[], topic: Topic): void {
  if (tokens.some(({ mask }) => (mask & (CLASS.address | CLASS.remote)) !== 0)) return;
  for (const [at, token] of tokens.entries()) {
    if (isOwnName(token, topic)) token.mask = CLASS.tool;
    const own = ownClasses(token, topic);
    token.mask &= ~own;
    const next = tokens[at + 1];
    if (next === undefined || classesOfPair(token.base, next.base) === 0) continue;
    token.mask &= ~ownClasses(next, topic);
    next.mask &= ~own;
  }
}

/** Whether it is the name of a tool for the same secrets: `list_secrets` in the description of `get_secret`. */
function isOwnName({ base, mask }: Token, { terms }: Topic): boolean {
  if ((mask & CLASS.name) === 0) return false;
  const parts = base.split(/[_.]/).map(baseOf);
  return parts.some((part) => terms.has(part) && (classesOf(part) & OWN) !== 0);
}

/** The classes that a word is not in because the tool itself is named after it. */
function ownClasses({ base }: Token, { terms, taken, isTalk }: Topic): number {
  const talk = isTalk && !INSTRUCTIONS.test(base) ? CLASS.context : 0;
  return (terms.has(base) ? OWN : 0) | (taken.has(base) ? CLASS.secret : 0) | talk;
}

const OWN = CLASS.context | CLASS.secret | CLASS.store | CLASS.rule;
const INSTRUCTIONS = /^(?:system|prompt|instruction|developer|hidden|reasoning)$/;
