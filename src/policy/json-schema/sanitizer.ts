// Makes the vetted copy of a JSON Schema: only known keywords, at positions where schemas belong. Schemas
// come from hostile upstreams, so whatever could fetch, name globally, run asynchronously or mean something
// to the validator alone is not copied. Also refuses schemas that apply an unbounded number of subschemas at
// one position of a value, by loops that never advance or combinations that multiply. Decides nothing about
// values.
// Source: JSON Schema 2020-12 core §7.1, §8, §10 and §10.2, draft-07; MCP, JSON Schema usage (no network
// references, bounded complexity).

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';

/** Maximum size of a schema, in characters of its JSON text. */
const MAX_SCHEMA_CHARS = 256 * 1024;
/** Maximum nesting of schemas within schemas. */
const MAX_SCHEMA_DEPTH = 32;
/** Maximum number of schemas within one schema. */
const MAX_SUBSCHEMAS = 2000;
/** Maximum number of `pattern` and `patternProperties` expressions in one schema. */
const MAX_SCHEMA_PATTERNS = 100;
/** Maximum number of values in one `enum`. */
const MAX_ENUM_VALUES = 2000;

export type Dialect = '2020-12' | 'draft-07';

/** A schema whose members are all known keywords. Children are schema nodes too. */
export type SchemaNode = { [keyword: string]: unknown };
export type Schema = SchemaNode | boolean;

export type SchemaCopy = {
  readonly dialect: Dialect;
  readonly root: Schema;
  readonly nodes: readonly SchemaNode[];
  readonly patterns: readonly string[];
  /** Names that the schema itself declares under `properties`. */
  readonly names: ReadonlySet<string>;
};

type CopyResult =
  | { readonly ok: true; readonly copy: SchemaCopy }
  | { readonly ok: false; readonly why: string };

type KeywordKind = 'plain' | 'schema' | 'list' | 'map';

function kinds(kind: KeywordKind, names: string): readonly (readonly [string, KeywordKind])[] {
  return names.split(' ').map((name) => [name, kind] as const);
}

const KEYWORDS: ReadonlyMap<string, KeywordKind> = new Map([
  ...kinds('plain', 'type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum'),
  ...kinds('plain', 'maxLength minLength pattern format maxItems minItems uniqueItems maxContains'),
  ...kinds('plain', 'minContains maxProperties minProperties required dependentRequired $ref'),
  ...kinds('schema', 'additionalProperties unevaluatedProperties unevaluatedItems items contains'),
  ...kinds('schema', 'not if then else propertyNames additionalItems'),
  ...kinds('list', 'allOf anyOf oneOf prefixItems'),
  ...kinds('map', 'properties patternProperties $defs definitions dependentSchemas dependencies'),
]);

/**
 * Keywords that would let one part of a schema change the meaning of another by name. `$anchor` alone only
 * names a position: it is dropped, and a `$ref` that uses the name is refused (2020-12 core §8.2.2).
 */
const REFUSED = ['$dynamicAnchor', '$dynamicRef', '$recursiveAnchor', '$recursiveRef'];

const DIALECTS: ReadonlyMap<string, Dialect> = new Map([
  ['https://json-schema.org/draft/2020-12/schema', '2020-12'],
  ['http://json-schema.org/draft-07/schema', 'draft-07'],
]);

class SchemaRefusal extends Error {}

type Copying = {
  readonly dialect: Dialect;
  readonly nodes: SchemaNode[];
  readonly patterns: string[];
  readonly names: Set<string>;
  subschemas: number;
};

/** Copies and vets a schema. Errors are sentences that quote nothing of it. */
export function copySchema(schema: JsonObject | boolean): CopyResult {
  try {
    return { ok: true, copy: copyRoot(schema) };
  } catch (error) {
    // Serializing or walking a value that is nested too deep throws a RangeError.
    const why = error instanceof SchemaRefusal ? error.message : 'the schema could not be read';
    return { ok: false, why };
  }
}

function copyRoot(schema: JsonObject | boolean): SchemaCopy {
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS) {
    throw new SchemaRefusal(`the schema is larger than ${MAX_SCHEMA_CHARS} characters`);
  }
  const copying: Copying = {
    dialect: readDialect(schema),
    nodes: [],
    patterns: [],
    names: new Set(),
    subschemas: 0,
  };
  const root = copyNode(schema, 0, copying);
  return { ...copying, root };
}

function readDialect(schema: JsonObject | boolean): Dialect {
  const named = isObject(schema) ? schema['$schema'] : undefined;
  if (named === undefined) return '2020-12';
  const dialect = typeof named === 'string' ? DIALECTS.get(named.replace(/#$/, '')) : undefined;
  if (dialect === undefined) throw new SchemaRefusal('the dialect of the schema is not supported');
  return dialect;
}

function copyNode(schema: Json | undefined, depth: number, copying: Copying): Schema {
  copying.subschemas += 1;
  if (copying.subschemas > MAX_SUBSCHEMAS) {
    throw new SchemaRefusal(`the schema has more than ${MAX_SUBSCHEMAS} subschemas`);
  }
  if (depth > MAX_SCHEMA_DEPTH) {
    throw new SchemaRefusal(`the schema is nested deeper than ${MAX_SCHEMA_DEPTH}`);
  }
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema)) throw new SchemaRefusal('a subschema is neither an object nor a boolean');
  refuseNaming(schema, depth);
  const node: SchemaNode = {};
  copying.nodes.push(node);
  if (copying.dialect === 'draft-07' && schema['$ref'] !== undefined) {
    // Draft-07 §8.3: everything beside $ref is ignored, but what it points into must be kept.
    node['$ref'] = schema['$ref'];
    for (const keyword of ['definitions', '$defs'])
      copyKeyword(node, keyword, schema, depth, copying);
    return node;
  }
  for (const keyword of Object.keys(schema)) copyKeyword(node, keyword, schema, depth, copying);
  return node;
}

function refuseNaming(schema: JsonObject, depth: number): void {
  if (REFUSED.some((keyword) => Object.hasOwn(schema, keyword))) {
    throw new SchemaRefusal('the schema uses dynamic anchors or references');
  }
  if (depth > 0 && schema['$id'] !== undefined)
    throw new SchemaRefusal('a subschema carries an $id');
  const ref = schema['$ref'];
  if (ref !== undefined && (typeof ref !== 'string' || !/^#(?:\/.*)?$/s.test(ref))) {
    throw new SchemaRefusal('the schema refers to something outside itself');
  }
}

function copyKeyword(
  node: SchemaNode,
  keyword: string,
  schema: JsonObject,
  depth: number,
  copying: Copying,
): void {
  const kind = KEYWORDS.get(keyword);
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
  if (kind === undefined || value === undefined) return;
  switch (kind) {
    case 'plain':
      node[keyword] = copyPlain(keyword, value, copying);
      return;
    case 'schema':
      node[keyword] =
        keyword === 'items' && Array.isArray(value)
          ? copyList(value, depth, copying)
          : copyNode(value, depth + 1, copying);
      return;
    case 'list':
      node[keyword] = copyList(value, depth, copying);
      return;
    case 'map':
      node[keyword] = copyMap(keyword, value, depth, copying);
  }
}

function copyPlain(keyword: string, value: Json, copying: Copying): Json {
  if (keyword === 'enum' && Array.isArray(value) && value.length > MAX_ENUM_VALUES) {
    throw new SchemaRefusal(`an enum has more than ${MAX_ENUM_VALUES} values`);
  }
  if (keyword === 'pattern') addPattern(value, copying);
  return value;
}

function addPattern(pattern: Json, copying: Copying): void {
  if (typeof pattern !== 'string') throw new SchemaRefusal('a pattern is not a string');
  copying.patterns.push(pattern);
  if (copying.patterns.length > MAX_SCHEMA_PATTERNS) {
    throw new SchemaRefusal(`the schema has more than ${MAX_SCHEMA_PATTERNS} patterns`);
  }
}

function copyList(value: Json, depth: number, copying: Copying): readonly Schema[] {
  if (!Array.isArray(value)) throw new SchemaRefusal('a keyword that lists schemas has no list');
  return value.map((member: Json) => copyNode(member, depth + 1, copying));
}

function copyMap(keyword: string, value: Json, depth: number, copying: Copying): SchemaNode {
  if (!isObject(value)) throw new SchemaRefusal('a keyword that names schemas has no object');
  const copied: SchemaNode = {};
  for (const name of Object.keys(value)) {
    // The validator would skip such a member silently.
    if (name === '__proto__') throw new SchemaRefusal('a property is named __proto__');
    if (keyword === 'patternProperties') addPattern(name, copying);
    if (keyword === 'properties') copying.names.add(name);
    const member = value[name];
    copied[name] =
      keyword === 'dependencies' && Array.isArray(member)
        ? member
        : copyNode(member, depth + 1, copying);
  }
  return copied;
}

/** Maximum number of schemas that may be applied at one position, each counted as often as it is reached. */
const MAX_APPLIED_IN_PLACE = 5000;

const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
const IN_PLACE_SCHEMAS = ['not', 'if', 'then', 'else'] as const;
const IN_PLACE_MAPS = ['dependentSchemas', 'dependencies'] as const;

/** True for a schema that is an object, not `true`, `false` or a list of names. */
export function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema that a local reference points to, or undefined. RFC 6901 §6, in a URI fragment. */
export function resolveReference(root: Schema, ref: string): Schema | undefined {
  let at: unknown = root;
  for (const segment of ref.split('/').slice(1)) {
    const key = decodeSegment(segment);
    if (key === undefined || typeof at !== 'object' || at === null) return undefined;
    if (!Object.hasOwn(at, key)) return undefined;
    at = (at as { readonly [key: string]: unknown })[key];
  }
  return typeof at === 'boolean' || isNode(at) ? at : undefined;
}

/** The schemas that one schema applies in place, references resolved. `not` is left out if `positive` is set. */
export function appliedInPlace(
  root: Schema,
  node: SchemaNode,
  positive: boolean,
): readonly Schema[] {
  const applied: Schema[] = [];
  const ref = node['$ref'];
  const target = typeof ref === 'string' ? resolveReference(root, ref) : undefined;
  if (target !== undefined) applied.push(target);
  for (const keyword of IN_PLACE_LISTS) {
    const list = node[keyword];
    if (Array.isArray(list)) applied.push(...(list as readonly Schema[]));
  }
  for (const keyword of IN_PLACE_SCHEMAS) {
    if (!(positive && keyword === 'not')) applied.push(...[node[keyword]].filter(isSchema));
  }
  for (const keyword of IN_PLACE_MAPS) {
    const map = node[keyword];
    if (isNode(map)) applied.push(...Object.values(map).filter(isSchema));
  }
  return applied;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'boolean' || isNode(value);
}

/** Why the number of schemas applied in place has no bound, or undefined if it has one. */
export function findUnboundedReach(copy: SchemaCopy): string | undefined {
  const counted = new Map<SchemaNode, number>();
  const open = new Set<SchemaNode>();
  // Infinity stands for a loop; it survives every sum.
  const count = (node: SchemaNode): number => {
    const known = counted.get(node);
    if (known !== undefined) return known;
    if (open.has(node)) return Number.POSITIVE_INFINITY;
    open.add(node);
    let total = 1;
    for (const applied of appliedInPlace(copy.root, node, false)) {
      total += isNode(applied) ? count(applied) : 1;
    }
    open.delete(node);
    counted.set(node, total);
    return total;
  };
  for (const node of copy.nodes) {
    const ref = node['$ref'];
    if (typeof ref === 'string' && resolveReference(copy.root, ref) === undefined) {
      return 'a reference of the schema points to nothing';
    }
  }
  for (const node of copy.nodes) {
    const total = count(node);
    if (total === Number.POSITIVE_INFINITY) return 'the schema refers to itself without end';
    if (total > MAX_APPLIED_IN_PLACE)
      return 'the combinations of the schema multiply past all bounds';
  }
  return undefined;
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}
