// Finds the strings in arguments that stand for a number, a boolean or JSON: where the schema admits no string, and the
// text is exactly one value of a type that it does admit. Nothing is lost: the text is put in as it is, and one that
// another reader would read differently stays a string. Changes nothing by itself.
// Source: RFC 8259; RFC 7493 §2.2; docs/reference/arguments.md.

import { hasInexactNumber, readJsonText } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import type { Coercion } from '../definitions.js';
import type { LinearRegex } from '../patterns.js';
import { isNode, referencedBy, type Schema, type SchemaCopy, type SchemaNode } from './sanitizer.js';

/** Strings with more characters stay what they are. */
const MAX_COERCED_CHARS = 256 * 1024;
/** Values in one of them. */
const MAX_COERCED_VALUES = 10_000;
/** Levels of objects and arrays in one of them. */
const MAX_COERCED_DEPTH = 32;
/** Strings of one call that are coerced. */
const MAX_COERCIONS = 100;
/** Schemas that may be looked at for one call. */
const MAX_VISITS = 100_000;

/** Types as bits, so that what several schemas admit together can be computed. */
const NULL = 1;
const BOOLEAN = 2;
const INTEGER = 4;
const FRACTION = 8;
const STRING = 16;
const ARRAY = 32;
const OBJECT = 64;
const ALL = 127;

const TYPE_BITS: ReadonlyMap<string, number> = new Map([
  ['null', NULL],
  ['boolean', BOOLEAN],
  ['integer', INTEGER],
  ['number', INTEGER | FRACTION],
  ['string', STRING],
  ['array', ARRAY],
  ['object', OBJECT],
]);

type Parts = {
  readonly copy: SchemaCopy;
  readonly patterns: ReadonlyMap<string, LinearRegex>;
};
type Path = readonly (string | number)[];
type Search = Parts & { visits: number };

/** The strings of a value that can be coerced; for a value that the schema does not admit as it is. */
export function findCoercions(parts: Parts, value: JsonObject): readonly Coercion[] {
  const search = { ...parts, visits: 0 };
  const found: Coercion[] = [];
  visit(value, [], search, found);
  return search.visits > MAX_VISITS ? [] : found;
}

function visit(value: Json, path: Path, search: Search, found: Coercion[]): void {
  if (found.length >= MAX_COERCIONS || search.visits > MAX_VISITS) return;
  if (typeof value === 'string') {
    const json = coerced(value, () => typesAt(search.copy.root, path, 0, search));
    if (json !== undefined) found.push({ path, json });
    return;
  }
  for (const [key, member] of membersIn(value)) visit(member, [...path, key], search, found);
}

function membersIn(value: Json): Iterable<readonly [string | number, Json]> {
  if (isObject(value)) return Object.entries(value);
  return Array.isArray(value) ? (value as readonly Json[]).entries() : [];
}

/** What may be JSON other than a string begins like this. */
const JSON_START = /^(?:-?\d|[tfn]|\s*[[{])/;

/** The text itself, if it is one value of a type that is admitted where strings are not. */
function coerced(text: string, admitted: () => number): string | undefined {
  if (text.length > MAX_COERCED_CHARS || !JSON_START.test(text)) return undefined;
  const types = admitted();
  if (types === 0 || (types & STRING) !== 0) return undefined;
  const caps = { maxDepth: MAX_COERCED_DEPTH, maxValues: MAX_COERCED_VALUES };
  const reading = readJsonText(text, caps);
  if (!reading.ok) return undefined;
  const { value } = reading;
  const isScalar = typeof value !== 'object' || value === null;
  if (isScalar && text.trim() !== text) return undefined;
  if (hasInexactNumber(text, { start: 0, end: text.length })) return undefined;
  return (types & typeOf(value)) === 0 ? undefined : text;
}

function typeOf(value: Json | undefined): number {
  if (value === null || value === undefined) return NULL;
  if (typeof value === 'number') return Number.isInteger(value) ? INTEGER : FRACTION;
  if (Array.isArray(value)) return ARRAY;
  return TYPE_BITS.get(typeof value) ?? 0;
}

/** The types that a schema admits at the end of a path; all of them where that cannot be told. */
function typesAt(schema: Schema, path: Path, depth: number, search: Search): number {
  if (!isNode(schema)) return schema ? ALL : 0;
  search.visits += 1;
  if (search.visits > MAX_VISITS) return ALL;
  const again = (other: Schema): number => typesAt(other, path, depth, search);
  const step = path[depth];
  const below = (): number =>
    childrenOf(schema, step ?? '', search)
      .map((child) => typesAt(child, path, depth + 1, search))
      .reduce(intersection, ALL);
  const own = step === undefined ? ownTypes(schema) : below();
  const { allOf, anyOf, oneOf } = schema;
  return [
    own,
    anyOfThem(referencedBy(search.copy, schema), again),
    ...listOf(allOf).map(again),
    anyOfThem(listOf(anyOf), again),
    anyOfThem(listOf(oneOf), again),
  ].reduce(intersection, ALL);
}

function intersection(one: number, other: number): number {
  return one & other;
}

function anyOfThem(schemas: readonly Schema[], typesOf: (schema: Schema) => number): number {
  return schemas.length === 0 ? ALL : schemas.map(typesOf).reduce((one, other) => one | other, 0);
}

function listOf(list: unknown): readonly Schema[] {
  return Array.isArray(list) ? list : [];
}

function ownTypes({ type, enum: listed, ...node }: SchemaNode): number {
  const named = type === undefined ? ALL : bitsOf(Array.isArray(type) ? type : [type]);
  const inEnum = Array.isArray(listed) ? bitsOfValues(listed) : ALL;
  return named & inEnum & ('const' in node ? bitsOfValues([node['const'] as Json]) : ALL);
}

function bitsOf(types: readonly unknown[]): number {
  return types.reduce<number>((bits, type) => bits | (TYPE_BITS.get(String(type)) ?? 0), 0);
}

function bitsOfValues(values: readonly Json[]): number {
  return values.reduce<number>((bits, value) => bits | typeOf(value), 0);
}

/** The schemas of a member or an item. */
function childrenOf(node: SchemaNode, step: string | number, search: Search): readonly Schema[] {
  return typeof step === 'number' ? itemsOf(node, step) : membersOf(node, step, search);
}

function itemsOf({ prefixItems, items }: SchemaNode, index: number): readonly Schema[] {
  const ofPlace = listOf(prefixItems)[index] ?? items;
  return ofPlace === undefined ? [] : [ofPlace as Schema];
}

function membersOf(node: SchemaNode, name: string, { patterns }: Search): readonly Schema[] {
  const { properties, patternProperties, additionalProperties } = node;
  const found: Schema[] = [];
  if (isNode(properties) && Object.hasOwn(properties, name)) found.push(properties[name] as Schema);
  for (const [pattern, schema] of Object.entries(isNode(patternProperties) ? patternProperties : {}))
    if (patterns.get(pattern)?.test(name) === true) found.push(schema as Schema);
  if (found.length > 0 || additionalProperties === undefined) return found;
  return [additionalProperties as Schema];
}
