// Compares what two JSON Schemas accept, for a reviewer: whether the new one may accept something that the old one
// refuses (widened), and the reverse (narrowed). Errs towards both: "not widened" is said only of what was proved
// keyword by keyword, and a keyword that is not known, or whose effect depends on others, counts as both. Pure.
// JSON Schema 2020-12, core, applicator, unevaluated and validation vocabularies.

import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';

/** The dialect of MCP, which a schema without `$schema` has (MCP 2025-11-25, tools, data types). */
export const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords that describe and do not validate. */
export const DESCRIPTIVE = new Set([
  '$comment',
  'default',
  'deprecated',
  'description',
  'examples',
  'readOnly',
  'title',
  'writeOnly',
]);
const SCHEMA_MAPS = new Set([
  '$defs',
  'definitions',
  'dependentSchemas',
  'patternProperties',
  'properties',
]);
const SCHEMAS = new Set([
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
 * A schema in normal form: keys sorted, unordered lists sorted, the usual dialect removed and, unless `keepDescriptive`,
 * descriptive keywords removed.
 */
export function normalizeSchema(schema: Json, keepDescriptive: boolean): Json {
  if (Array.isArray(schema)) return schema.map((one) => normalizeSchema(one, keepDescriptive));
  if (!isObject(schema)) return schema;
  const kept = Object.keys(schema).filter(
    (key) =>
      (keepDescriptive || !DESCRIPTIVE.has(key)) && !(key === '$schema' && isDialect(schema[key])),
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
    return Object.fromEntries(
      names.map((name) => [name, normalizeSchema(value[name] ?? null, keepDescriptive)]),
    );
  }
  return SCHEMAS.has(key) ? normalizeSchema(value, keepDescriptive) : sortMembers(value);
}

function sortValues(values: readonly Json[]): Json[] {
  return values
    .map((value) => JSON.stringify(value))
    .sort()
    .map((text) => JSON.parse(text) as Json);
}

type SchemaChange = { readonly isWidened: boolean; readonly isNarrowed: boolean };

const NOTHING: SchemaChange = { isWidened: false, isNarrowed: false };
const WIDER: SchemaChange = { isWidened: true, isNarrowed: false };
const NARROWER: SchemaChange = { isWidened: false, isNarrowed: true };
const BOTH: SchemaChange = { isWidened: true, isNarrowed: true };

/**
 * How the set of values that a schema accepts differs; an absent schema accepts all. Describing a parameter that was not
 * described before is a widening, whatever was accepted before under its name: callers learn of it only now.
 */
export function compareSchemas(before: Json | undefined, after: Json | undefined): SchemaChange {
  const [a, b] = [asSchema(before), asSchema(after)];
  if (isEqual(a, b)) return NOTHING;
  const [one, other] = [expandReferences(a), expandReferences(b)];
  return one === undefined || other === undefined ? BOTH : compare(one, other);
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
    if (SCHEMAS.has(key)) return expand(value, open);
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

function join(changes: readonly SchemaChange[]): SchemaChange {
  return {
    isWidened: changes.some((change) => change.isWidened),
    isNarrowed: changes.some((change) => change.isNarrowed),
  };
}

function compareValues(before: Json | undefined, after: Json | undefined): SchemaChange {
  return compare(asSchema(before), asSchema(after));
}

const MEMBER_KEYWORDS = ['properties', 'patternProperties', 'additionalProperties'];
const ITEM_KEYWORDS = ['items', 'prefixItems'];

function compare(a: Schema, b: Schema): SchemaChange {
  if (isEqual(a, b)) return NOTHING;
  if (a === undefined || b === undefined) return BOTH;
  if (a === false) return WIDER;
  if (b === false) return NARROWER;
  const keywords = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  // What these refuse depends on what every keyword beside them looked at.
  if (keywords.some((keyword) => keyword.startsWith('unevaluated'))) return BOTH;
  const grouped = new Set([...MEMBER_KEYWORDS, ...ITEM_KEYWORDS]);
  const single = keywords.filter((keyword) => !grouped.has(keyword));
  return join([
    compareMembers(a, b),
    compareItems(a, b),
    ...single.map((keyword) => {
      const [one, other] = [ownMember(a, keyword), ownMember(b, keyword)];
      return isEqual(one, other) ? NOTHING : compareKeyword(keyword, one, other);
    }),
  ]);
}

/** Parameters. One that is not described is accepted as the patterns and `additionalProperties` say. */
function compareMembers(a: JsonObject, b: JsonObject): SchemaChange {
  const [before, after] = [a['properties'] ?? {}, b['properties'] ?? {}];
  const [patterns, laterPatterns] = [a['patternProperties'] ?? {}, b['patternProperties'] ?? {}];
  if (!isObject(before) || !isObject(after)) return isEqual(before, after) ? NOTHING : BOTH;
  if (!isEqual(patterns, laterPatterns)) return BOTH;
  const hasPatterns = isObject(patterns) && Object.keys(patterns).length > 0;
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const additional = compareValues(a['additionalProperties'], b['additionalProperties']);
  return join([
    additional,
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

function compareItems(a: JsonObject, b: JsonObject): SchemaChange {
  const areFirstEqual = isEqual(a['prefixItems'], b['prefixItems']);
  const [items, laterItems] = [a['items'], b['items']];
  if (areFirstEqual && isEqual(items, laterItems)) return NOTHING;
  if (!areFirstEqual || Array.isArray(items) || Array.isArray(laterItems)) return BOTH;
  return compareValues(items, laterItems);
}

const LOWER_BOUNDS = new Set([
  'exclusiveMinimum',
  'minItems',
  'minLength',
  'minProperties',
  'minimum',
]);
const UPPER_BOUNDS = new Set([
  'exclusiveMaximum',
  'maxItems',
  'maxLength',
  'maxProperties',
  'maximum',
]);
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
  if (keyword === 'required') return compareRequired(a, b);
  if (!REFUSING.has(keyword)) return BOTH;
  if (a === undefined) return NARROWER;
  if (b === undefined) return WIDER;
  return COMPARED.get(keyword)?.(a, b) ?? BOTH;
}

function compareRequired(a: Json | undefined, b: Json | undefined): SchemaChange {
  const { isWidened, isNarrowed } = compareAlternatives(listOf(a ?? []), listOf(b ?? []));
  // The more names are required, the fewer values are accepted.
  return { isWidened: isNarrowed, isNarrowed: isWidened };
}

/** Lists of schemas of the same length, one by one. */
function compareEach(a: Json, b: Json): SchemaChange | undefined {
  if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return undefined;
  return join(a.map((one: Json, index) => compareValues(one, b[index])));
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
