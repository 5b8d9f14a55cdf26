// Whether a changed JSON Schema accepts more, accepts less, or only reads otherwise.
// Names a difference for a reviewer; it decides nothing. What it does not know counts as both.
// JSON Schema 2020-12, applicator and validation vocabularies.

import { isObject, type Json, type JsonObject } from '../mcp/message.js';

/** Keywords that tell a reader something and refuse nothing. */
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
/** Keywords that only say how the schema is written. */
const NOTATION = new Set(['$schema']);
const SCHEMA_MAPS = new Set(['$defs', 'definitions', 'properties', 'patternProperties']);
/** Lists whose order means nothing. */
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

export type SchemaChange = { readonly isWidened: boolean; readonly isNarrowed: boolean };

const NOTHING: SchemaChange = { isWidened: false, isNarrowed: false };
const WIDER: SchemaChange = { isWidened: true, isNarrowed: false };
const NARROWER: SchemaChange = { isWidened: false, isNarrowed: true };
const BOTH: SchemaChange = { isWidened: true, isNarrowed: true };

/** How what a schema accepts differs. A member that was not described before is a widening. */
export function compareSchemas(before: Json | undefined, after: Json | undefined): SchemaChange {
  const [a, b] = [asSchema(before), asSchema(after)];
  if (JSON.stringify(a) === JSON.stringify(b)) return NOTHING;
  if (a === false) return WIDER;
  if (b === false) return NARROWER;
  return join([...new Set([...Object.keys(a), ...Object.keys(b)])].map(keywordIn(a, b)));
}

/**
 * A schema written in one way: keys sorted, lists without order sorted, notation removed, and, where
 * `keepTelling` is false, also what only tells.
 */
export function normalizeSchema(schema: Json, keepDescriptive: boolean): Json {
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

/** The same value with the members of each object in one order. */
export function sortMembers(value: Json): Json {
  if (Array.isArray(value)) return value.map(sortMembers);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortMembers(value[key] ?? null)]),
  );
}

/** An own member, never one that every object inherits: names come over the wire. */
export function memberOf(object: JsonObject, name: string): Json | undefined {
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

/** `type` and `enum`: more alternatives accept more, and no list accepts all. */
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
