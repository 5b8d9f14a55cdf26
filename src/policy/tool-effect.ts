// What a tool does, as far as its definition tells: whether it reads or writes, whether it runs code, runs commands,
// deletes or pays, and whether its name refers to secrets. Read from the words of its name, of its description and of its
// parameters. The annotations of MCP are claims of the server: one may raise the risk and never lowers it, and one that
// the words contradict is reported. A help for reviewers and a warning for authors of rules: no decision depends on it.
// docs/guides/reviewing-drift.md.

import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';

/** `unclear` is to be treated as writing. */
export type ToolEffect = 'reads' | 'writes' | 'unclear';

export type EffectReading = {
  readonly effect: ToolEffect;
  /** What tells it, in a few words; none if nothing does. */
  readonly because?: string;
  /** A claim of the annotations that the words contradict, in a clause. */
  readonly contradiction?: string;
};

/** Verbs that begin the names of tools that change something. */
export const CHANGING_VERBS = split(
  'create write update insert put post set add edit modify exec run move rename upload merge push',
);
/** Of those, what cannot be taken back, or leaves the server. */
export const GRAVE_VERBS = split(
  'delete remove drop destroy wipe purge send transfer pay execute deploy kill revoke terminate',
);
export const READING_VERBS = split('get list read search find fetch describe show count lookup view query');

const READS = setOf([
  ...READING_VERBS,
  ...split('check compare inspect explain summarize analyze calculate validate preview browse tail head watch stat'),
  ...split('status diff log info whoami ping help retrieve return lists gets reads returns'),
]);
const DELETES = setOf(split('delete remove destroy wipe purge drop erase truncate unlink uninstall rm clear'));
const EXECUTES = setOf(split('exec execute eval evaluate interpreter repl'));
const SHELLS = setOf(split('shell bash terminal powershell cmd ssh subprocess'));
const PAYS = setOf(split('pay payment payments payout refund charge purchase buy checkout withdraw'));
const WRITES = setOf([
  ...[...CHANGING_VERBS, ...GRAVE_VERBS, ...DELETES, ...EXECUTES, ...PAYS, ...SHELLS],
  ...split('save store append replace patch commit publish submit cancel close reopen start stop restart enable'),
  ...split('disable assign unassign approve reject invite grant reset rollback restore archive import install apply'),
  ...split('copy clone fork sync scale order book schedule reply forward click type press fill drag register'),
]);
const RUNS = setOf(split('run exec execute invoke start'));
/** What is run. */
const CODE = setOf(split('code script scripts python javascript js node sql notebook cell function'));
const COMMANDS = setOf(split('command commands cmd'));
/** Parameters that only something that writes has, or that carry what is executed. */
const WRITING_PARAMETERS = setOf(split('overwrite dryrun sql statement script command commands cmd shell'));

function split(text: string): readonly string[] {
  return text.split(' ');
}

function setOf(all: Iterable<string>): ReadonlySet<string> {
  return new Set(all);
}

/** The words of a name in snake, kebab or camel case, in lower case. */
function partsOf(name: string): readonly string[] {
  return name
    .slice(0, MAX_READ)
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
    .map((word) => word.toLowerCase());
}

/** Characters of a text that are read: a hostile one may be as long as a megabyte. */
const MAX_READ = 4_000;
const MAX_PARAMETERS = 500;

/** Whether a tool reads or writes. */
export function effectOf(name: string, definition: JsonObject): EffectReading {
  const read = textualEffect(name, definition);
  const annotations = annotationsIn(definition);
  const isReadOnly = annotations['readOnlyHint'] === true;
  const claim = ['destructiveHint', 'readOnlyHint'].find((one) => annotations[one] === (one === 'destructiveHint'));
  if (read.effect !== 'writes' && claim !== undefined && !isReadOnly)
    return { effect: 'writes', because: `annotation ${claim}: ${annotations[claim]}` };
  if (!isReadOnly) return read;
  const against = read.effect === 'writes' ? read.because : undefined;
  const isBoth = annotations['destructiveHint'] === true;
  if (against === undefined && !isBoth) return read;
  const contradiction = `readOnlyHint says that it only reads, against ${against ?? 'destructiveHint: true'}`;
  return {
    ...(isBoth && against === undefined ? { effect: 'writes', because: 'annotation destructiveHint: true' } : read),
    contradiction,
  };
}

/** What words tell, in the order in which they count: a word for writing anywhere outweighs one for reading. */
function textualEffect(name: string, definition: JsonObject): EffectReading {
  const named = namedEffect(name);
  if (named?.effect === 'writes') return named;
  const parameter = parametersOf(definition).find((one) => WRITING_PARAMETERS.has(partsOf(one).join('')));
  if (parameter !== undefined) return { effect: 'writes', because: `the parameter "${parameter}"` };
  const { description, title } = definition;
  for (const text of [description, title]) {
    const word = typeof text === 'string' ? writingWordIn(text) : undefined;
    if (word !== undefined) return { effect: 'writes', because: `"${word}" in its description` };
  }
  return named ?? (typeof description === 'string' ? openingEffect(description) : { effect: 'unclear' });
}

/** The first verb decides, so that `list_deleted_files` reads; one after "and" or "or" is a second one. */
function namedEffect(name: string): EffectReading | undefined {
  const all = partsOf(name);
  const at = all.findIndex((word) => READS.has(word) || WRITES.has(word));
  const first = all[at];
  if (first === undefined) return undefined;
  const later = all.find((word, index) => index > at && WRITES.has(word) && /^(?:and|or)$/.test(all[index - 1] ?? ''));
  const written = WRITES.has(first) ? first : later;
  return written === undefined
    ? { effect: 'reads', because: `"${first}" in its name` }
    : { effect: 'writes', because: `"${written}" in its name` };
}

const NEGATION = /\b(?:not|never|no|nothing|without|cannot)\b|n't\b/i;
/** A verb behind one of these is something that the tool does. */
const SECOND_VERB = /\b(?:and|or|then|also|will|may|can|it|tool)[ \t]+([a-z]+)\b/gi;

/** A word by which a description says that the tool writes: one that opens a sentence, or a second verb of it. */
function writingWordIn(text: string): string | undefined {
  for (const sentence of text.slice(0, MAX_READ).split(/[.!?;:\n]+/)) {
    const [, first = ''] = /^[\s*#>-]*([A-Za-z]+)/.exec(sentence) ?? [];
    if (isWriting(first)) return first;
    if (NEGATION.test(sentence)) continue;
    for (const [, word = ''] of sentence.matchAll(SECOND_VERB)) if (isWriting(word)) return word;
  }
  return undefined;
}

function isWriting(word: string): boolean {
  return formsOf(word).some((form) => WRITES.has(form) && !AMBIGUOUS.has(form));
}

/** Words for writing that are nouns or adjectives as often: they count in a name, which has no room for more. */
const AMBIGUOUS = setOf(
  split(
    'post set type order book shell terminal cmd ssh log function close interpreter payment payments charge drop fill',
  ),
);

/** `Creates` is `create`, `copies` is `copy`. */
function formsOf(word: string): readonly string[] {
  const lower = word.toLowerCase();
  return [lower, lower.replace(/s$/, ''), lower.replace(/es$/, ''), lower.replace(/ies$/, 'y')];
}

function openingEffect(description: string): EffectReading {
  const [, first = ''] = /^[\s*#>-]*([A-Za-z]+)/.exec(description) ?? [];
  const isReading = formsOf(first).some((form) => READS.has(form));
  return isReading ? { effect: 'reads', because: `"${first}" in its description` } : { effect: 'unclear' };
}

/**
 * What a grant of this tool would allow that an author should name: one clause for each, such as "runs code". What only
 * reads by its name has none, whatever it is about.
 */
export function dangersOf(name: string, definition: JsonObject = {}): readonly string[] {
  const named = namedEffect(name)?.effect === 'reads' ? [] : namedDangers(partsOf(name), definition);
  const isClaimed = annotationsIn(definition)['destructiveHint'] === true && !named.includes('deletes');
  return isClaimed ? [...named, 'may destroy something by its annotation'] : named;
}

function namedDangers(all: readonly string[], definition: JsonObject): readonly string[] {
  const has = (set: ReadonlySet<string>): boolean => all.some((word) => set.has(word));
  const runs = has(RUNS);
  const isShell = has(SHELLS) || (runs && has(COMMANDS));
  const isCode = !isShell && (has(EXECUTES) || (runs && has(CODE)));
  const isMoney = has(PAYS) || (has(MOVES) && parametersOf(definition).some((one) => /amount/i.test(one)));
  const found = { 'runs commands': isShell, 'runs code': isCode, deletes: has(DELETES), pays: isMoney };
  return Object.entries(found).flatMap(([what, is]) => (is ? [what] : []));
}

const MOVES = setOf(['transfer', 'send']);

/** Words of a tool's name after which a reader should look at what it returns before granting it. */
const SENSITIVE_WORD =
  /^(?:env|environ|environment|secrets?|credentials?|creds?|passwords?|passwd|tokens?|keys?|apikeys?|keychain|vault)$/;

/** Whether a name refers to secrets or to the environment of the server. */
export function refersToSecrets(name: string): boolean {
  return partsOf(name).some((word) => SENSITIVE_WORD.test(word));
}

/** Whether a definition claims that the tool only reads. Absent, the hint is false (MCP, ToolAnnotations). */
export function claimsToRead(definition: JsonObject): boolean {
  return annotationsIn(definition)['readOnlyHint'] === true;
}

function annotationsIn(definition: JsonObject): JsonObject {
  const { annotations } = definition;
  return isObject(annotations) ? annotations : {};
}

function parametersOf({ inputSchema }: JsonObject): readonly string[] {
  return Object.keys(propertiesOf(inputSchema)).slice(0, MAX_PARAMETERS);
}

/** The members that a schema describes. */
export function propertiesOf(schema: Json | undefined): JsonObject {
  const properties = isObject(schema) ? schema['properties'] : undefined;
  return isObject(properties) ? properties : {};
}
