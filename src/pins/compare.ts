// Classifies the difference between two definitions, so that a reviewer knows what to look at first. It
// decides nothing: any difference hides the definition, whatever its class. Pure.
// docs/contract.md §5 (classes of a drift); JSON Schema 2020-12, applicator and validation vocabularies.

import type { PinKind } from '../policy/definitions.js';
import type { Json } from '../protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../protocol/jsonrpc.js';
import { unseenCharacters } from '../text/escaping.js';

/** Phrases of instructions to a model, in lower case with single spaces. */
const INSTRUCTION_PHRASES = [
  'ignore previous',
  'ignore all previous',
  'ignore the above',
  'disregard',
  'forget your',
  'system prompt',
  'you must',
  'you should always',
  'always call',
  'always use',
  'before using',
  'before calling',
  'before any other',
  'first call',
  'first read',
  'do not tell',
  "don't tell",
  'do not mention',
  "don't mention",
  'do not inform',
  'without asking',
  'without telling',
  'without informing',
  'secretly',
  'silently',
  'instead of',
  'side note',
  'important:',
  '<important',
  '<system',
  '<instructions',
  '[system',
  'assistant:',
  'api key',
  'password',
  'private key',
  'credentials',
  '.ssh',
  '.env',
  'id_rsa',
  'base64',
] as const;

const URL_PATTERN =
  /(?:https?:\/\/|www\.|javascript:|data:|file:\/\/|mailto:)[^\s"'<>)\]}]{1,200}/g;
const ENCODED_RUN = /[A-Za-z0-9+/]{80,4000}/g;
const SPACE_RUN = /\s+/g;

/**
 * The cues of every string and key of a value, each once. A cue is content that addresses a model or leads out
 * of a text: instructions, hidden characters, URLs. Cues only label a difference, so a missed one costs a
 * label. Linear time: literal search over case-folded text, and two patterns without nested repetition.
 */
export function findCues(value: Json): ReadonlySet<string> {
  const cues = new Set<string>();
  const open: Json[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next === 'string') addCues(next, cues);
    if (typeof next !== 'object' || next === null) continue;
    for (const [key, child] of Object.entries(next)) {
      addCues(key, cues);
      open.push(child);
    }
  }
  return cues;
}

function addCues(text: string, cues: Set<string>): void {
  for (const character of unseenCharacters(text)) {
    cues.add(`unseen:${(character.codePointAt(0) ?? 0).toString(16)}`);
  }
  const folded = text.normalize('NFKC').toLowerCase().replace(SPACE_RUN, ' ');
  for (const phrase of INSTRUCTION_PHRASES)
    if (folded.includes(phrase)) cues.add(`order:${phrase}`);
  for (const [address] of folded.matchAll(URL_PATTERN)) cues.add(`address:${address}`);
  for (const [run] of text.matchAll(ENCODED_RUN)) cues.add(`encoded:${run.slice(0, 40)}`);
}

/** Keywords that describe and do not validate. */
const DESCRIPTIVE_KEYWORDS = new Set([
  '$comment',
  'default',
  'deprecated',
  'description',
  'examples',
  'readOnly',
  'title',
  'writeOnly',
]);
/** Keywords about the schema's own notation. */
const NOTATION = new Set(['$schema']);
const SCHEMA_MAPS = new Set(['$defs', 'definitions', 'properties', 'patternProperties']);
/** Keywords whose lists are unordered. */
const UNORDERED = new Set(['enum', 'required', 'type']);
const LOWER_BOUNDS = new Set([
  'minimum',
  'exclusiveMinimum',
  'minLength',
  'minItems',
  'minProperties',
  'minContains',
]);
const UPPER_BOUNDS = new Set([
  'maximum',
  'exclusiveMaximum',
  'maxLength',
  'maxItems',
  'maxProperties',
  'maxContains',
]);
const LITERALS = new Set(['const', 'default', 'examples', 'enum']);

type SchemaChange = { readonly isWidened: boolean; readonly isNarrowed: boolean };

const NOTHING: SchemaChange = { isWidened: false, isNarrowed: false };
const WIDER: SchemaChange = { isWidened: true, isNarrowed: false };
const NARROWER: SchemaChange = { isWidened: false, isNarrowed: true };
const BOTH: SchemaChange = { isWidened: true, isNarrowed: true };

/**
 * How the set of values that a schema accepts differs. Describing a member that was not described before is a
 * widening; unknown keywords count as both wider and narrower.
 */
function compareSchemas(before: Json | undefined, after: Json | undefined): SchemaChange {
  const [a, b] = [asSchema(before), asSchema(after)];
  if (JSON.stringify(a) === JSON.stringify(b)) return NOTHING;
  if (a === false) return WIDER;
  if (b === false) return NARROWER;
  return join([...new Set([...Object.keys(a), ...Object.keys(b)])].map(keywordIn(a, b)));
}

/**
 * A schema in normal form: keys sorted, unordered lists sorted, notation removed and, unless
 * `keepDescriptive`, descriptive keywords removed.
 */
function normalizeSchema(schema: Json, keepDescriptive: boolean): Json {
  if (!isObject(schema)) return schema;
  const members: Record<string, Json> = {};
  for (const key of Object.keys(schema).sort()) {
    if (NOTATION.has(key) || (!keepDescriptive && DESCRIPTIVE_KEYWORDS.has(key))) continue;
    members[key] = normalizeKeyword(key, schema[key] ?? null, keepDescriptive);
  }
  return members;
}

function normalizeKeyword(key: string, value: Json, keepDescriptive: boolean): Json {
  if (UNORDERED.has(key) && Array.isArray(value)) return sortValues(value.map(sortMembers));
  if (LITERALS.has(key)) return sortMembers(value);
  if (SCHEMA_MAPS.has(key) && isObject(value)) {
    const names = Object.keys(value).sort();
    return Object.fromEntries(
      names.map((name) => [name, normalizeSchema(value[name] ?? null, keepDescriptive)]),
    );
  }
  if (Array.isArray(value)) return value.map((item) => normalizeSchema(item, keepDescriptive));
  return normalizeSchema(value, keepDescriptive);
}

/** The same value with the members of each object sorted by name. */
export function sortMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortMembers(value[key] ?? null)]),
  );
}

/** An own member, never an inherited one: names come from upstreams. */
function memberOf(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function sortValues(values: readonly Json[]): Json[] {
  return values
    .map((value) => JSON.stringify(value))
    .sort()
    .map((text) => JSON.parse(text) as Json);
}

function asSchema(value: Json | undefined): JsonObject | false {
  if (value === false) return false;
  const schema = normalizeSchema(value ?? {}, false);
  return isObject(schema) ? schema : {};
}

function join(changes: readonly SchemaChange[]): SchemaChange {
  return {
    isWidened: changes.some((change) => change.isWidened),
    isNarrowed: changes.some((change) => change.isNarrowed),
  };
}

function keywordIn(before: JsonObject, after: JsonObject): (keyword: string) => SchemaChange {
  return (keyword) => {
    const [a, b] = [memberOf(before, keyword), memberOf(after, keyword)];
    if (JSON.stringify(a) === JSON.stringify(b)) return NOTHING;
    return compareKeyword(keyword, a, b);
  };
}

function compareKeyword(keyword: string, a: Json | undefined, b: Json | undefined): SchemaChange {
  if (keyword === 'properties') return compareProperties(a, b);
  if (keyword === 'required') return compareRequired(listOf(a), listOf(b));
  if (keyword === 'additionalProperties' || keyword === 'items') return compareSchemas(a, b);
  if (UNORDERED.has(keyword)) return compareAlternatives(a, b);
  if (LOWER_BOUNDS.has(keyword)) return compareBounds(a, b, -1);
  if (UPPER_BOUNDS.has(keyword)) return compareBounds(a, b, 1);
  if (keyword === 'x-mcp-header') return BOTH;
  if (a === undefined) return NARROWER;
  return b === undefined ? WIDER : BOTH;
}

function compareProperties(a: Json | undefined, b: Json | undefined): SchemaChange {
  const [before, after] = [isObject(a) ? a : {}, isObject(b) ? b : {}];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return join(
    names.map((name) => {
      if (!Object.hasOwn(before, name)) return WIDER;
      if (!Object.hasOwn(after, name)) return NARROWER;
      return compareSchemas(before[name], after[name]);
    }),
  );
}

function compareRequired(before: readonly string[], after: readonly string[]): SchemaChange {
  return {
    isWidened: before.some((name) => !after.includes(name)),
    isNarrowed: after.some((name) => !before.includes(name)),
  };
}

/** `type` and `enum`: more alternatives accept more values, and an absent list accepts all. */
function compareAlternatives(a: Json | undefined, b: Json | undefined): SchemaChange {
  if (a === undefined) return NARROWER;
  if (b === undefined) return WIDER;
  const [before, after] = [listOf(a), listOf(b)];
  return {
    isWidened: after.some((value) => !before.includes(value)),
    isNarrowed: before.some((value) => !after.includes(value)),
  };
}

function compareBounds(a: Json | undefined, b: Json | undefined, wider: -1 | 1): SchemaChange {
  if (a === undefined) return NARROWER;
  if (b === undefined) return WIDER;
  if (typeof a !== 'number' || typeof b !== 'number') return BOTH;
  return Math.sign(b - a) === wider ? WIDER : NARROWER;
}

function listOf(value: Json | undefined): readonly string[] {
  const values = Array.isArray(value) ? value : value === undefined ? [] : [value];
  return values.map((item) => JSON.stringify(item));
}

/** The classes of a difference, in the order in which a reviewer should look at them. */
export const CHANGES = [
  'new-cue',
  'input-widened',
  'description',
  'output',
  'annotations',
  'server',
  'input-narrowed',
  'new-tool',
  'removed',
  'notation-only',
  'server-version',
  // Only the digest is known: the definition was recorded from a page without its content.
  'unclassified',
] as const;

export type Change = (typeof CHANGES)[number];

/** Members of a definition that are shown to a person or a model. */
const DESCRIPTIVE_MEMBERS = [
  'title',
  'description',
  'arguments',
  'mimeType',
  'name',
  'uriTemplate',
  'contents',
];
const SCHEMAS = new Set(['inputSchema', 'outputSchema']);

/**
 * The classes of the difference, most serious first; empty if the definitions are equal.
 * `undefined` stands for an absent definition.
 */
export function compareDefinitions(
  kind: PinKind,
  before: JsonObject | undefined,
  after: JsonObject | undefined,
): readonly Change[] {
  if (before === undefined) return after === undefined ? [] : ['new-tool'];
  if (after === undefined) return ['removed'];
  if (JSON.stringify(sortMembers(before)) === JSON.stringify(sortMembers(after))) return [];
  const found = new Set<Change>();
  if (hasNewCue(before, after)) found.add('new-cue');
  if (hasDescriptiveDifference(before, after)) found.add('description');
  if (hasOtherDifference(kind, before, after)) found.add('annotations');
  if (kind === 'tool') addSchemaChanges(before, after, found);
  if (found.size === 0) found.add('notation-only');
  return CHANGES.filter((change) => found.has(change));
}

/** The same for the instructions of a server. */
export function compareTexts(
  before: string | undefined,
  after: string | undefined,
): readonly Change[] {
  if (before === after) return [];
  if (before === undefined) return ['new-tool'];
  if (after === undefined) return ['removed'];
  if (normalizeText(before) === normalizeText(after)) return ['notation-only'];
  return hasNewCue(before, after) ? ['new-cue', 'description'] : ['description'];
}

function hasNewCue(before: Json, after: Json): boolean {
  const known = findCues(before);
  for (const cue of findCues(after)) if (!known.has(cue)) return true;
  return false;
}

function hasDescriptiveDifference(before: JsonObject, after: JsonObject): boolean {
  if (
    DESCRIPTIVE_MEMBERS.some(
      (name) => descriptiveForm(before[name]) !== descriptiveForm(after[name]),
    )
  )
    return true;
  return schemaDescriptions(before['inputSchema']) !== schemaDescriptions(after['inputSchema']);
}

function descriptiveForm(value: Json | undefined): string {
  if (value === undefined) return '';
  return JSON.stringify(sortMembers(value), (_, part: unknown) =>
    typeof part === 'string' ? normalizeText(part) : part,
  );
}

/** The descriptive texts of a schema with their paths, in order, without what it accepts. */
function schemaDescriptions(schema: Json | undefined): string {
  const descriptions: string[] = [];
  collectDescriptions(normalizeSchema(schema ?? null, true), '', descriptions);
  return descriptions.join('\n');
}

const DESCRIBING_MEMBERS = new Set(['title', 'description', '$comment', 'default', 'examples']);

function collectDescriptions(value: Json, path: string, descriptions: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    const isName = path.endsWith('/properties') || path.endsWith('/$defs');
    if (!isName && DESCRIBING_MEMBERS.has(key))
      descriptions.push(`${path}/${key} ${descriptiveForm(child)}`);
    else collectDescriptions(child, `${path}/${key}`, descriptions);
  }
}

/** Compares all other members: annotations, `_meta`, icons, execution, and those of later revisions. */
function hasOtherDifference(kind: PinKind, before: JsonObject, after: JsonObject): boolean {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const name of names) {
    if (DESCRIPTIVE_MEMBERS.includes(name) || (kind === 'tool' && SCHEMAS.has(name))) continue;
    if (descriptiveForm(memberOf(before, name)) !== descriptiveForm(memberOf(after, name)))
      return true;
  }
  return false;
}

function addSchemaChanges(before: JsonObject, after: JsonObject, found: Set<Change>): void {
  const input = compareSchemas(before['inputSchema'], after['inputSchema']);
  if (input.isWidened) found.add('input-widened');
  if (input.isNarrowed) found.add('input-narrowed');
  if (outputForm(before) !== outputForm(after)) found.add('output');
}

function outputForm(definition: JsonObject): string {
  const schema = definition['outputSchema'];
  if (schema === undefined) return '';
  return isObject(schema)
    ? descriptiveForm(normalizeSchema(schema, true))
    : descriptiveForm(schema);
}

/** Normalizes white space and Unicode composition, which count as notation. */
function normalizeText(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim();
}
