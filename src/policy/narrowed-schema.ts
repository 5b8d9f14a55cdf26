// What the rules of a caller leave of the arguments of a tool, said in its inputSchema: the allow rules that match
// are alternatives, and a property shows what all of them together admit. Only what is certain is shown: every
// argument object that the approved schema and one of the rules admit is admitted by the schema that is shown.
// Whatever cannot be said within properties stays as the upstream wrote it; nothing here decides about a call.
// Source: docs/reference/responses.md; JSON Schema 2020-12 validation §6.

import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { portablePattern } from './patterns.js';
import type { Principal } from './principal.js';
import { findCandidates, type PolicySet } from './rules.js';

/** A member to be set in the object at `path` of the definition, or removed if it has no value. */
export type SchemaEdit = {
  readonly path: readonly string[];
  readonly keyword: string;
  readonly value: Json | undefined;
};

type Scalar = string | number | boolean | null;
type RuleSchema = JsonObject | boolean;

/** Properties are narrowed to this depth: `inputSchema`, and two steps for each level. */
const MAX_PATH_STEPS = 9;
/** An enum with more values is not shown. */
const MAX_VALUES = 200;

const NOTHING: readonly SchemaEdit[] = Object.freeze([]);

/** The edits that narrow the definition of a tool for a caller; none if one rule allows it with any arguments. */
export function narrowInputSchema(
  policies: PolicySet,
  principal: Principal,
  upstream: string,
  definition: JsonObject,
): readonly SchemaEdit[] {
  const name = definition['name'];
  if (typeof name !== 'string') return NOTHING;
  const { allows } = findCandidates(policies, principal, upstream, 'tool', name);
  if (allows.length === 0 || allows.some(({ args }) => args.length === 0)) return NOTHING;
  const schema = definition['inputSchema'];
  if (!isObject(schema) || refersToProperties(schema)) return NOTHING;
  const edits: SchemaEdit[] = [];
  const alternatives = allows.map(({ args }) => ({
    properties: Object.fromEntries(args.map(({ name, written }) => [name, written])),
    required: args.map(({ name }) => name),
  }));
  narrowObject(schema, alternatives, ['inputSchema'], edits);
  return edits;
}

/** A schema that is used in a second place, by a reference into `properties`, would be narrowed there as well. */
export function refersToProperties(schema: Json): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  const ref = isObject(schema) ? schema['$ref'] : undefined;
  if (ref !== undefined && !(typeof ref === 'string' && /^#\/(?:\$defs|definitions)\//.test(ref))) {
    return true;
  }
  return Object.values(schema).some((member: Json) => refersToProperties(member));
}

/** Narrows a schema, and those of its properties, to what the alternatives together admit. */
function narrow(
  schema: Json | undefined,
  alternatives: readonly RuleSchema[],
  path: readonly string[],
  edits: SchemaEdit[],
): void {
  // Beside $ref nothing counts in draft-07, and `true` has no place for a keyword.
  if (!isObject(schema) || schema['$ref'] !== undefined || path.length > MAX_PATH_STEPS) return;
  const possible = alternatives.flatMap((one) => (one === false ? [] : [one === true ? {} : one]));
  if (possible.length === 0) return;
  // A list of values says all that ranges and patterns could say.
  if (!narrowValues(schema, possible, path, edits)) {
    narrowRanges(schema, possible, path, edits);
    narrowPattern(schema, possible, path, edits);
  }
  narrowObject(schema, possible, path, edits);
}

/** The values that a rule admits, if it lists them: those of `const` or `enum` that are no objects and no lists. */
function listedValues(rule: JsonObject): readonly Scalar[] | undefined {
  if (Object.hasOwn(rule, 'const')) return isScalar(rule['const']) ? [rule['const']] : undefined;
  const listed = rule['enum'];
  return Array.isArray(listed) && listed.every(isScalar) ? listed : undefined;
}

function isScalar(value: Json | undefined): value is Scalar {
  return value === null || (typeof value !== 'object' && value !== undefined);
}

function narrowValues(
  schema: JsonObject,
  alternatives: readonly JsonObject[],
  path: readonly string[],
  edits: SchemaEdit[],
): boolean {
  const lists = alternatives.flatMap((rule) => {
    const listed = listedValues(rule);
    return listed === undefined ? [] : [listed];
  });
  if (lists.length < alternatives.length || Object.hasOwn(schema, 'const')) return false;
  const own = schema['enum'];
  const values = [...new Set(lists.flat())].filter((value) => !Array.isArray(own) || own.includes(value));
  const [first = null] = values;
  if (values.length === 0 || values.length > MAX_VALUES) return false;
  edits.push(
    values.length === 1 && own === undefined
      ? { path, keyword: 'const', value: first }
      : { path, keyword: 'enum', value: values },
  );
  return true;
}

/** A pair of keywords that bound the same measure, and how the measure of a listed value is taken. */
type Range = {
  readonly lower: readonly string[];
  readonly upper: readonly string[];
  measure(value: Scalar): number | undefined;
};

const RANGES: readonly Range[] = [
  {
    lower: ['minimum', 'exclusiveMinimum'],
    upper: ['maximum', 'exclusiveMaximum'],
    measure: (value) => (typeof value === 'number' ? value : undefined),
  },
  {
    lower: ['minLength'],
    upper: ['maxLength'],
    measure: (value) => (typeof value === 'string' ? [...value].length : undefined),
  },
  { lower: ['minItems'], upper: ['maxItems'], measure: () => undefined },
];

/** A bound and the keyword that says it: of two with one value, the exclusive keyword is the tighter one. */
type Bound = { readonly value: number; readonly keyword: string };

function narrowRanges(
  schema: JsonObject,
  alternatives: readonly JsonObject[],
  path: readonly string[],
  edits: SchemaEdit[],
): void {
  for (const { lower, upper, measure } of RANGES) {
    for (const [keywords, sign] of [
      [lower, 1],
      [upper, -1],
    ] as const) {
      const bounds = alternatives.map((rule) => boundOf(rule, keywords, sign, measure));
      const hull = loosest(bounds, sign);
      const own = tightest(schema, keywords, sign);
      if (hull === undefined || (own !== undefined && !isTighter(hull, own, sign))) continue;
      edits.push({ path, keyword: hull.keyword, value: hull.value });
    }
  }
}

/** `none`: the alternative admits no value of this measure at all. Undefined: it does not bound the measure. */
function boundOf(
  rule: JsonObject,
  keywords: readonly string[],
  sign: 1 | -1,
  measure: Range['measure'],
): Bound | 'none' | undefined {
  const written = tightest(rule, keywords, sign);
  const listed = listedValues(rule);
  const [keyword = ''] = keywords;
  if (listed === undefined) return written;
  const measures = listed.flatMap((value) => measure(value) ?? []);
  if (measures.length === 0) return 'none';
  const value = sign === 1 ? Math.min(...measures) : Math.max(...measures);
  const bound = { value, keyword };
  return written !== undefined && isTighter(written, bound, sign) ? written : bound;
}

function tightest(schema: JsonObject, keywords: readonly string[], sign: 1 | -1): Bound | undefined {
  let found: Bound | undefined;
  for (const keyword of keywords) {
    const value = schema[keyword];
    if (typeof value !== 'number') continue;
    const bound = { value, keyword };
    if (found === undefined || isTighter(bound, found, sign)) found = bound;
  }
  return found;
}

function isTighter(one: Bound, other: Bound, sign: 1 | -1): boolean {
  if (one.value !== other.value) return (one.value - other.value) * sign > 0;
  return one.keyword.startsWith('exclusive') && !other.keyword.startsWith('exclusive');
}

/** The bound that all alternatives keep; undefined if one of them keeps no bound, or no alternative has such values. */
function loosest(bounds: readonly (Bound | 'none' | undefined)[], sign: 1 | -1): Bound | undefined {
  let found: Bound | undefined;
  for (const bound of bounds) {
    if (bound === undefined) return undefined;
    if (bound === 'none') continue;
    if (found === undefined || isTighter(found, bound, sign)) found = bound;
  }
  return found;
}

/** A pattern is shown if it is that of every alternative, and if all readers of JSON Schema read it alike. */
function narrowPattern(
  schema: JsonObject,
  alternatives: readonly JsonObject[],
  path: readonly string[],
  edits: SchemaEdit[],
): void {
  const [pattern] = alternatives.map((rule) => rule['pattern']);
  if (typeof pattern !== 'string' || schema['pattern'] !== undefined) return;
  if (alternatives.some((rule) => rule['pattern'] !== pattern)) return;
  const value = portablePattern(pattern);
  if (value !== undefined) edits.push({ path, keyword: 'pattern', value });
}

/** Narrows the properties that the schema itself has, and requires what every alternative requires. */
function narrowObject(
  schema: JsonObject,
  alternatives: readonly JsonObject[],
  path: readonly string[],
  edits: SchemaEdit[],
): void {
  const properties = schema['properties'];
  if (!isObject(properties)) return;
  for (const [name, property] of Object.entries(properties)) {
    const schemas = alternatives.map((rule) => propertyOf(rule, name));
    if (schemas.some((one) => one === undefined)) continue;
    narrow(property, schemas as readonly RuleSchema[], [...path, 'properties', name], edits);
  }
  const own = stringsOf(schema['required']);
  const [first, ...others] = alternatives.map((rule) => stringsOf(rule['required']));
  const added = (first ?? []).filter(
    (name) =>
      !own.includes(name) &&
      Object.hasOwn(properties, name) &&
      !mayBeFilledIn(properties[name]) &&
      others.every((names) => names.includes(name)),
  );
  if (added.length > 0) {
    edits.push({ path, keyword: 'required', value: [...own, ...new Set(added)] });
  }
}

/** A rule that requires an argument is also met by its default. */
function mayBeFilledIn(property: Json | undefined): boolean {
  return isObject(property) && property['default'] !== undefined;
}

function propertyOf(rule: JsonObject, name: string): RuleSchema | undefined {
  const properties = rule['properties'];
  const own = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  return typeof own === 'boolean' || isObject(own) ? own : undefined;
}

function stringsOf(list: Json | undefined): readonly string[] {
  return Array.isArray(list) ? list.filter((one): one is string => typeof one === 'string') : [];
}
