// Compares two definitions, so that a reviewer knows what to look at first: the classes of their difference, and
// whether the new schema may accept something that the old one refuses (widened), or the reverse (narrowed), as the
// gateway reads schemas: described objects are closed, and defaults are filled in for rules. Pure, and decides nothing:
// any difference hides the definition, whatever its class. "Not widened" is said only of what was proved keyword by
// keyword; a keyword that is not known, or whose effect depends on others, counts as widened and narrowed.
// docs/reference/definitions.md#drift; JSON Schema 2020-12, core, applicator, unevaluated and validation vocabularies.

import type { PinKind } from '../policy/definitions.js';
import { isOfNewestDialect } from '../policy/json-schema/sanitizer.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { unseenCharacters } from '../text/escaping.js';

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
const DESCRIPTIVE_MEMBERS = ['title', 'description', 'arguments', 'mimeType', 'name', 'uriTemplate', 'contents'];
const TOOL_SCHEMAS = new Set(['inputSchema', 'outputSchema']);

/** The classes of the difference, most serious first; empty if the definitions are equal. */
export function compareDefinitions(kind: PinKind, before: JsonObject, after: JsonObject): readonly Change[] {
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
export function compareTexts(before: string, after: string): readonly Change[] {
  if (before === after) return [];
  if (normalizeText(before) === normalizeText(after)) return ['notation-only'];
  return hasNewCue(before, after) ? ['new-cue', 'description'] : ['description'];
}

function hasNewCue(before: Json, after: Json): boolean {
  const known = findCues(before);
  for (const cue of findCues(after)) if (!known.has(cue)) return true;
  return false;
}

function hasDescriptiveDifference(before: JsonObject, after: JsonObject): boolean {
  if (DESCRIPTIVE_MEMBERS.some((name) => descriptiveForm(before[name]) !== descriptiveForm(after[name]))) return true;
  return schemaDescriptions(before['inputSchema']) !== schemaDescriptions(after['inputSchema']);
}

function descriptiveForm(value: Json | undefined): string {
  if (value === undefined) return '';
  return JSON.stringify(sortMembers(value), (_, part: unknown) =>
    typeof part === 'string' ? normalizeText(part) : part,
  );
}

/** The descriptive texts of a schema in their places, without what it accepts. */
function schemaDescriptions(schema: Json | undefined): string {
  return JSON.stringify(onlyDescriptive(normalizeSchema(schema ?? null, true), false)) ?? '';
}

/** Keeps the places by nesting: a path beside each text would be as long as the names that lead there. */
function onlyDescriptive(value: Json, areNames: boolean): Json | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const kept: [string, Json][] = [];
  for (const [key, child] of Object.entries(value)) {
    const isText = !areNames && DESCRIPTIVE_KEYWORDS.has(key);
    const inner = isText
      ? descriptiveForm(child)
      : onlyDescriptive(child, !areNames && (key === 'properties' || key === '$defs'));
    if (inner !== undefined) kept.push([key, inner]);
  }
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Compares all other members: annotations, `_meta`, icons, execution, and those of later revisions. */
function hasOtherDifference(kind: PinKind, before: JsonObject, after: JsonObject): boolean {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const name of names) {
    if (DESCRIPTIVE_MEMBERS.includes(name) || (kind === 'tool' && TOOL_SCHEMAS.has(name))) continue;
    if (descriptiveForm(ownMember(before, name)) !== descriptiveForm(ownMember(after, name))) return true;
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
  return isObject(schema) ? descriptiveForm(normalizeSchema(schema, true)) : descriptiveForm(schema);
}

/** Normalizes white space and Unicode composition, which count as notation. */
function normalizeText(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim();
}

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

const URL_PATTERN = /(?:https?:\/\/|www\.|javascript:|data:|file:\/\/|mailto:)[^\s"'<>)\]}]{1,200}/g;
const ENCODED_RUN = /[A-Za-z0-9+/]{80,4000}/g;
const SPACE_RUN = /\s+/g;

/**
 * The cues of every string and key of a value, each once. A cue is content that addresses a model or leads out
 * of a text: instructions, hidden characters, URLs. Cues only label a difference, so a missed one costs a
 * label. Linear time: literal search over case-folded text, and two patterns without nested repetition.
 */
function findCues(value: Json): ReadonlySet<string> {
  const cues = new Set<string>();
  const open: Json[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // The address of the usual dialect leads nowhere.
    if (typeof next === 'string' && next !== DIALECT) addCues(next, cues);
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
  for (const phrase of INSTRUCTION_PHRASES) if (folded.includes(phrase)) cues.add(`order:${phrase}`);
  for (const [address] of folded.matchAll(URL_PATTERN)) cues.add(`address:${address}`);
  for (const [run] of text.matchAll(ENCODED_RUN)) cues.add(`encoded:${run.slice(0, 40)}`);
}

/** The dialect of MCP, which a schema without `$schema` has (MCP 2025-11-25, tools, data types). */
const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords that describe. A default also means something: what rules read, and what may be absent. */
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
const SCHEMA_MAPS = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties']);
const SUBSCHEMAS = new Set([
  'additionalProperties',
  'allOf',
  'anyOf',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'oneOf',
  'prefixItems',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
]);
/** Keywords whose lists are unordered. */
const UNORDERED = new Set(['enum', 'required', 'type']);

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

/**
 * A schema in normal form: keys sorted, unordered lists sorted, the usual dialect removed and, unless
 * `keepDescriptive`, descriptive keywords removed.
 */
function normalizeSchema(schema: Json, keepDescriptive: boolean): Json {
  if (Array.isArray(schema)) return schema.map((one) => normalizeSchema(one, keepDescriptive));
  if (!isObject(schema)) return schema;
  const kept = Object.keys(schema).filter(
    (key) =>
      (keepDescriptive || key === 'default' || !DESCRIPTIVE_KEYWORDS.has(key)) &&
      !(key === '$schema' && isDialect(schema[key])),
  );
  return Object.fromEntries(
    kept.sort().map((key) => [key, normalizeKeyword(key, schema[key] ?? null, keepDescriptive)]),
  );
}

function isDialect(value: Json | undefined): boolean {
  return value === DIALECT || value === `${DIALECT}#`;
}

function normalizeKeyword(key: string, value: Json, keepDescriptive: boolean): Json {
  if (UNORDERED.has(key) && Array.isArray(value)) return sortValues(value.map(sortMembers));
  if (SCHEMA_MAPS.has(key) && isObject(value)) {
    const names = Object.keys(value).sort();
    return Object.fromEntries(names.map((name) => [name, normalizeSchema(value[name] ?? null, keepDescriptive)]));
  }
  return SUBSCHEMAS.has(key) ? normalizeSchema(value, keepDescriptive) : sortMembers(value);
}

function sortValues(values: readonly Json[]): Json[] {
  return values
    .map((value) => JSON.stringify(value))
    .sort()
    .map((text) => JSON.parse(text) as Json);
}

type SchemaChange = { readonly isWidened: boolean; readonly isNarrowed: boolean };

const SAME: SchemaChange = { isWidened: false, isNarrowed: false };
const WIDER: SchemaChange = { isWidened: true, isNarrowed: false };
const NARROWER: SchemaChange = { isWidened: false, isNarrowed: true };
const BOTH: SchemaChange = { isWidened: true, isNarrowed: true };

/**
 * How the set of values that a schema accepts differs; an absent schema accepts all. Describing a parameter that was
 * not described before is a widening, whatever was accepted before under its name: callers learn of it only now.
 */
function compareSchemas(before: Json | undefined, after: Json | undefined): SchemaChange {
  const [a, b] = [asSchema(before), asSchema(after)];
  if (isEqual(a, b)) return SAME;
  // Older dialects do not have all keywords, and ignore what stands beside a reference.
  if (![before, after].every(isOfNewest)) return BOTH;
  const [one, other] = [expandReferences(a), expandReferences(b)];
  return one === undefined || other === undefined ? BOTH : compareNormalized(one, other);
}

function isOfNewest(schema: Json | undefined): boolean {
  return schema === undefined || (isSchema(schema) && isOfNewestDialect(schema));
}

function isSchema(value: Json): value is JsonObject | boolean {
  return isObject(value) || typeof value === 'boolean';
}

/** A boolean schema, or the keywords of one; `undefined` for what is no schema. */
type Schema = JsonObject | false | undefined;

function asSchema(value: Json | undefined): Schema {
  if (value === undefined || value === true) return {};
  if (value === false) return false;
  const schema = normalizeSchema(value, false);
  return isObject(schema) ? schema : undefined;
}

function isEqual(a: Json | undefined, b: Json | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

/** Beyond this, nested references count as not understood. */
const MAX_EXPANDED = 20_000;
/** What changes how references are resolved, or what keywords mean. */
const SCOPED = new Set([
  '$anchor',
  '$dynamicAnchor',
  '$dynamicRef',
  '$id',
  '$recursiveAnchor',
  '$recursiveRef',
  '$schema',
  '$vocabulary',
]);
const REFERENCE = /^#\/(\$defs|definitions)\/([^/%~]+)$/;

/**
 * The schema with the schema itself in place of each reference to one of its definitions; `undefined` where references
 * lead elsewhere, or back to themselves.
 */
function expandReferences(root: Schema): Schema {
  let left = MAX_EXPANDED;
  let isLost = root === undefined;

  function resolve(reference: Json): Json | undefined {
    const [, map = '', name = ''] = REFERENCE.exec(String(reference)) ?? [];
    const known = ownMember(root || {}, map);
    return isObject(known) ? ownMember(known, name) : undefined;
  }

  function expand(value: Json, open: readonly Json[]): Json {
    left -= 1;
    if (left < 0 || isLost) {
      isLost = true;
      return null;
    }
    if (Array.isArray(value)) return value.map((one) => expand(one, open));
    if (!isObject(value)) return value;
    const members = Object.entries(value).flatMap(([key, member]) => {
      if (SCOPED.has(key)) isLost = true;
      // Definitions refuse nothing by themselves.
      if (key === '$defs' || key === 'definitions') return [];
      return [[key, expandKeyword(key, member, open)] as const];
    });
    return Object.fromEntries(members);
  }

  function expandKeyword(key: string, value: Json, open: readonly Json[]): Json {
    if (key === '$ref') return follow(value, open);
    if (SUBSCHEMAS.has(key)) return expand(value, open);
    if (!SCHEMA_MAPS.has(key) || !isObject(value)) return value;
    const named = Object.entries(value).map(([name, one]) => [name, expand(one, open)] as const);
    return Object.fromEntries(named);
  }

  function follow(reference: Json, open: readonly Json[]): Json {
    const target = resolve(reference);
    if (target === undefined || open.includes(reference)) {
      isLost = true;
      return null;
    }
    return expand(target, [...open, reference]);
  }

  if (root === undefined || root === false) return root;
  const expanded = expand(root, []);
  return isLost ? undefined : (expanded as JsonObject);
}

function joinChanges(changes: readonly SchemaChange[]): SchemaChange {
  return {
    isWidened: changes.some((change) => change.isWidened),
    isNarrowed: changes.some((change) => change.isNarrowed),
  };
}

function compareValues(before: Json | undefined, after: Json | undefined): SchemaChange {
  return compareNormalized(asSchema(before), asSchema(after));
}

const MEMBER_KEYWORDS = ['properties', 'patternProperties', 'additionalProperties'];
const ITEM_KEYWORDS = ['items', 'prefixItems'];

function compareNormalized(a: Schema, b: Schema): SchemaChange {
  if (isEqual(a, b)) return SAME;
  if (a === undefined || b === undefined) return BOTH;
  if (a === false) return WIDER;
  if (b === false) return NARROWER;
  const keywords = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  // What these refuse depends on what every keyword beside them looked at.
  if (keywords.some((keyword) => keyword.startsWith('unevaluated'))) return BOTH;
  const grouped = new Set([...MEMBER_KEYWORDS, ...ITEM_KEYWORDS]);
  const single = keywords.filter((keyword) => !grouped.has(keyword) && keyword !== 'required');
  return joinChanges([
    compareMembers(a, b),
    compareItems(a, b),
    compareRequired(a, b),
    ...single.map((keyword) => {
      const [one, other] = [ownMember(a, keyword), ownMember(b, keyword)];
      return isEqual(one, other) ? SAME : compareKeyword(keyword, one, other);
    }),
  ]);
}

/** Parameters. One that is not described is accepted as the patterns and `additionalProperties` say. */
function compareMembers(a: JsonObject, b: JsonObject): SchemaChange {
  const [before, after] = [a['properties'] ?? {}, b['properties'] ?? {}];
  const [patterns, laterPatterns] = [a['patternProperties'] ?? {}, b['patternProperties'] ?? {}];
  if (!isObject(before) || !isObject(after)) return isEqual(before, after) ? SAME : BOTH;
  if (!isEqual(patterns, laterPatterns)) return BOTH;
  const hasPatterns = isObject(patterns) && Object.keys(patterns).length > 0;
  // What has no properties is open.
  if ('properties' in a !== 'properties' in b) return BOTH;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const additional = compareValues(a['additionalProperties'], b['additionalProperties']);
  return joinChanges([
    additional,
    compareOpenings(a, b),
    ...names.map((name) => {
      const isAdded = !Object.hasOwn(before, name);
      if (!isAdded && Object.hasOwn(after, name)) return compareValues(before[name], after[name]);
      if (hasPatterns) return BOTH;
      if (isAdded) return WIDER;
      // What was a parameter may be anything now, if other members are accepted.
      const { isWidened } = compareValues(before[name], b['additionalProperties']);
      return { isWidened, isNarrowed: true };
    }),
  ]);
}

/** An object that is described is closed, unless it says itself what else it takes. */
function compareOpenings(a: JsonObject, b: JsonObject): SchemaChange {
  const [was, is] = [a, b].map((schema) => 'additionalProperties' in schema);
  if (was === is) return SAME;
  return is ? opened(b['additionalProperties'], WIDER) : opened(a['additionalProperties'], NARROWER);
}

function opened(additional: Json | undefined, change: SchemaChange): SchemaChange {
  return additional === false ? SAME : change;
}

function compareItems(a: JsonObject, b: JsonObject): SchemaChange {
  const areFirstEqual = isEqual(a['prefixItems'], b['prefixItems']);
  const [items, laterItems] = [a['items'], b['items']];
  if (areFirstEqual && isEqual(items, laterItems)) return SAME;
  if (!areFirstEqual || Array.isArray(items) || Array.isArray(laterItems)) return BOTH;
  return compareValues(items, laterItems);
}

const LOWER_BOUNDS = new Set(['exclusiveMinimum', 'minItems', 'minLength', 'minProperties', 'minimum']);
const UPPER_BOUNDS = new Set(['exclusiveMaximum', 'maxItems', 'maxLength', 'maxProperties', 'maximum']);
/** Keywords that only ever refuse, whatever stands beside them: to add one narrows, to remove one widens. */
const REFUSING = new Set([
  'allOf',
  'anyOf',
  'const',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  'dependentRequired',
  'dependentSchemas',
  'enum',
  'format',
  'multipleOf',
  'not',
  'oneOf',
  'pattern',
  'propertyNames',
  'type',
  'uniqueItems',
  ...LOWER_BOUNDS,
  ...UPPER_BOUNDS,
  '$ref',
]);

/** Those that may declare members, and so make an object take more. */
const DECLARING = new Set(['allOf', 'anyOf', 'dependentRequired', 'dependentSchemas', 'oneOf', '$ref']);

type CompareKeyword = (a: Json, b: Json) => SchemaChange;

/** How the values of a keyword that both schemas have are compared; any other difference is not understood. */
const COMPARED: ReadonlyMap<string, CompareKeyword> = new Map<string, CompareKeyword>([
  ['propertyNames', compareValues],
  ['$ref', compareValues],
  ['type', (a, b) => compareAlternatives(typesOf(a), typesOf(b))],
  ['enum', (a, b) => compareAlternatives(listOf(a), listOf(b))],
  ['allOf', (a, b) => compareEach(a, b) ?? BOTH],
  ['anyOf', (a, b) => compareEach(a, b) ?? compareAlternatives(listOf(a), listOf(b))],
  ['uniqueItems', (a, b) => (a === true ? WIDER : b === true ? NARROWER : BOTH)],
  ...[...LOWER_BOUNDS].map((key) => [key, compareBounds(-1)] as const),
  ...[...UPPER_BOUNDS].map((key) => [key, compareBounds(1)] as const),
]);

function compareKeyword(keyword: string, a: Json | undefined, b: Json | undefined): SchemaChange {
  if (!REFUSING.has(keyword)) return BOTH;
  if ((a === undefined || b === undefined) && DECLARING.has(keyword)) return BOTH;
  if (a === undefined) return NARROWER;
  if (b === undefined) return WIDER;
  return COMPARED.get(keyword)?.(a, b) ?? BOTH;
}

function compareRequired(a: JsonObject, b: JsonObject): SchemaChange {
  const [before, after] = [listOf(a['required'] ?? []), listOf(b['required'] ?? [])];
  const { isWidened, isNarrowed } = compareAlternatives(before, after);
  const declared = new Set(Object.keys(b['properties'] ?? {}).map((name) => JSON.stringify(name)));
  const known = new Set(before);
  // A name that is only required is a parameter too.
  const isNew = after.some((name) => !known.has(name) && !declared.has(name));
  // The more names are required, the fewer values are accepted.
  return { isWidened: isNarrowed || isNew, isNarrowed: isWidened };
}

/** Lists of schemas of the same length, one by one. */
function compareEach(a: Json, b: Json): SchemaChange | undefined {
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return undefined;
  return joinChanges(a.map((one: Json, index) => compareValues(one, b[index])));
}

/** More alternatives accept more values. */
function compareAlternatives(before: readonly string[], after: readonly string[]): SchemaChange {
  const [known, left] = [new Set(before), new Set(after)];
  return {
    isWidened: after.some((value) => !known.has(value)),
    isNarrowed: before.some((value) => !left.has(value)),
  };
}

/** The types of a schema as JSON texts; a number may be an integer. */
function typesOf(value: Json): readonly string[] {
  const types = listOf(value);
  return types.includes('"number"') ? [...types, '"integer"'] : types;
}

function compareBounds(wider: -1 | 1): CompareKeyword {
  return (a, b) => {
    if (typeof a !== 'number' || typeof b !== 'number') return BOTH;
    return Math.sign(b - a) === wider ? WIDER : NARROWER;
  };
}

function listOf(value: Json): readonly string[] {
  const values = Array.isArray(value) ? value : [value];
  return values.map((item) => JSON.stringify(item));
}
