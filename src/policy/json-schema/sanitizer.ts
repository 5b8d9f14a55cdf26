// Makes the vetted copy of a JSON Schema: only known keywords, in the form of the newest dialect, at positions where
// schemas belong, with every reference resolved inside the document. Schemas come from hostile upstreams, so nothing is
// fetched, and a schema that is too large, or that applies an unbounded number of subschemas at one position of a
// value, is refused. Decides nothing about values.
// Source: JSON Schema 2020-12 core §7, §8 and §10; 2019-09 core §8.2.4; draft-07, -06 and -04 core §8 and validation
// §6; MCP, JSON Schema usage (no network references, bounded complexity).

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { pointerTo, stepsOf } from '../../text/json-members.js';
import { resolveReference } from '../uris.js';

/** Maximum size of a schema, in characters of its JSON text. */
const MAX_SCHEMA_CHARS = 256 * 1024;
/** Maximum nesting of schemas within schemas. */
const MAX_SCHEMA_DEPTH = 128;
/** Maximum number of schemas within one schema. */
const MAX_SUBSCHEMAS = 2000;
/** Maximum number of different expressions under `pattern` and `patternProperties` in one schema. */
const MAX_SCHEMA_PATTERNS = 100;

/** The dialects that are read, the newest first. */
const DIALECTS = ['2020-12', '2019-09', 'draft-07', 'draft-06', 'draft-04'] as const;

type Dialect = (typeof DIALECTS)[number];

/** The place of a dialect in time: a larger number is a newer one. */
const AGE: { readonly [dialect in Dialect]: number } = {
  'draft-04': 4,
  'draft-06': 6,
  'draft-07': 7,
  '2019-09': 8,
  '2020-12': 9,
};

/** A schema whose members are all known keywords. Children are schema nodes too. */
export type SchemaNode = { [keyword: string]: unknown };
export type Schema = SchemaNode | boolean;

/** Where `$dynamicRef` leads: to its target, or to the anchor of this name in the outermost resource that has one. */
export type DynamicReference = { readonly initial: Schema; readonly anchor: string };

export type SchemaCopy = {
  /** Whether the schema, apart from parts that name another dialect, is read by the newest one. */
  readonly isOfNewestDialect: boolean;
  readonly root: Schema;
  /** All schemas that are objects, with their pointers in the schema as it was written. */
  readonly nodes: ReadonlyMap<SchemaNode, string>;
  /** Where `$ref` leads. */
  readonly references: ReadonlyMap<SchemaNode, Schema>;
  readonly dynamicReferences: ReadonlyMap<SchemaNode, DynamicReference>;
  /** The schemas with a dynamic anchor, by resource and name. */
  readonly dynamicAnchors: ReadonlyMap<string, ReadonlyMap<string, SchemaNode>>;
  /** The resource (core §4.3.5) that a schema belongs to; absent if the document is one resource. */
  readonly resources: ReadonlyMap<SchemaNode, string> | undefined;
  /** Schemas whose `contains` leaves the items that it matched unevaluated, as in 2019-09. */
  readonly leavesContained: ReadonlySet<SchemaNode>;
  /** Names that the schema itself declares under `properties` or `required`. */
  readonly names: ReadonlySet<string>;
};

/** Why a schema cannot be used: a sentence that quotes nothing of it, and the pointer to the place in it. */
export type CompileError = { readonly why: string; readonly pointer: string };

type CopyResult = { readonly ok: true; readonly copy: SchemaCopy } | ({ readonly ok: false } & CompileError);

type KeywordKind = 'plain' | 'schema' | 'list' | 'map';

/** The dialects that have a keyword: from the first to the last, by age. */
type KeywordRow = { readonly kind: KeywordKind; readonly since: number; readonly until: number };

function rows(kind: KeywordKind, since: Dialect, names: string): [string, KeywordRow][] {
  const row = { kind, since: AGE[since], until: AGE['2020-12'] };
  return names.split(' ').map((name) => [name, row]);
}

const KEYWORDS: ReadonlyMap<string, KeywordRow> = new Map([
  ...rows('plain', 'draft-04', 'type enum multipleOf maximum exclusiveMaximum minimum exclusiveMinimum'),
  ...rows('plain', 'draft-04', 'maxLength minLength pattern format maxItems minItems uniqueItems'),
  ...rows('plain', 'draft-04', 'maxProperties minProperties required $ref default'),
  ...rows('plain', 'draft-06', 'const'),
  ...rows('plain', '2019-09', 'maxContains minContains dependentRequired'),
  ...rows('plain', '2020-12', '$dynamicRef'),
  ['$recursiveRef', { kind: 'plain', since: AGE['2019-09'], until: AGE['2019-09'] }],
  ...rows('schema', 'draft-04', 'additionalProperties items not'),
  ['additionalItems', { kind: 'schema', since: AGE['draft-04'], until: AGE['2019-09'] }],
  ...rows('schema', 'draft-06', 'contains propertyNames'),
  ...rows('schema', 'draft-07', 'if then else'),
  ...rows('schema', '2019-09', 'unevaluatedProperties unevaluatedItems'),
  ...rows('list', 'draft-04', 'allOf anyOf oneOf'),
  ...rows('list', '2020-12', 'prefixItems'),
  // Newer dialects reserve `dependencies` for its former meaning (2019-09 validation, appendix A).
  ...rows('map', 'draft-04', 'properties patternProperties $defs definitions dependencies'),
  ...rows('map', '2019-09', 'dependentSchemas'),
]);

const DIALECT_URIS: ReadonlyMap<string, Dialect> = new Map([
  ['json-schema.org/draft/2020-12/schema', '2020-12'],
  ['json-schema.org/draft/2019-09/schema', '2019-09'],
  ['json-schema.org/draft-07/schema', 'draft-07'],
  ['json-schema.org/draft-06/schema', 'draft-06'],
  ['json-schema.org/draft-04/schema', 'draft-04'],
]);

const INVALID = 'the schema is not a valid JSON Schema';
const OUTSIDE = 'the schema refers to something outside itself';
const NOWHERE = 'a reference of the schema points to nothing';

class SchemaRefusal extends Error {
  readonly pointer: string;
  /** An older dialect may read the place. */
  readonly isOfDialect: boolean;
  constructor(why: string, pointer: string, isOfDialect = false) {
    super(why);
    this.pointer = pointer;
    this.isOfDialect = isOfDialect;
  }
}

/** The base of a schema without `$id`. Nothing is ever fetched from it. */
const NO_BASE = 'schema://root/';

/** Where a schema is, and what it inherits. */
type Place = {
  readonly pointer: string;
  readonly depth: number;
  readonly dialect: Dialect;
  /** The URI of the resource that it is part of, without a fragment. */
  readonly base: string;
};

type Copying = {
  readonly nodes: Map<SchemaNode, string>;
  readonly references: Map<SchemaNode, Schema>;
  readonly dynamicReferences: Map<SchemaNode, DynamicReference>;
  readonly dynamicAnchors: Map<string, Map<string, SchemaNode>>;
  readonly resourceOf: Map<SchemaNode, string>;
  readonly leavesContained: Set<SchemaNode>;
  readonly names: Set<string>;
  readonly patterns: Set<string>;
  /** Of each schema that was copied, by the object that it was read from: its copy and its place. */
  readonly copies: Map<JsonObject, { readonly node: SchemaNode; readonly place: Place }>;
  /** What a resource was read from, by its URI. */
  readonly roots: Map<string, JsonObject | boolean>;
  readonly anchors: Map<string, SchemaNode>;
  readonly unresolved: { readonly node: SchemaNode; readonly place: Place }[];
  subschemas: number;
};

/**
 * Copies and vets a schema by the dialect that it names, or by the newest that can read it. Errors are sentences that
 * quote nothing of it.
 */
export function copySchema(schema: JsonObject | boolean): CopyResult {
  try {
    if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS)
      throw new SchemaRefusal(`the schema is larger than ${MAX_SCHEMA_CHARS} characters`, '');
    const named = isObject(schema) ? schema['$schema'] : undefined;
    if (named !== undefined) return { ok: true, copy: copyRoot(schema, dialectOf(named, '')) };
    return copyByNewest(schema);
  } catch (error) {
    return failed(error);
  }
}

function failed(error: unknown): CopyResult {
  if (error instanceof SchemaRefusal) return { ok: false, why: error.message, pointer: error.pointer };
  // Serializing or walking a value that is nested too deep throws a RangeError.
  return { ok: false, why: 'the schema could not be read', pointer: '' };
}

function copyByNewest(schema: JsonObject | boolean): CopyResult {
  let first: unknown;
  for (const dialect of DIALECTS) {
    try {
      return { ok: true, copy: copyRoot(schema, dialect) };
    } catch (error) {
      first ??= error;
      if (!(error instanceof SchemaRefusal && error.isOfDialect)) return failed(error);
    }
  }
  return failed(first);
}

function dialectOf(named: Json, pointer: string): Dialect {
  const uri = typeof named === 'string' ? named.replace(/^https?:\/\//, '').replace(/#$/, '') : '';
  const dialect = DIALECT_URIS.get(uri);
  if (dialect === undefined)
    throw new SchemaRefusal('the dialect of the schema is not supported', pointerTo(pointer, '$schema'));
  return dialect;
}

/** Whether a schema is read by the newest dialect; false for one that cannot be used. */
export function isOfNewestDialect(schema: JsonObject | boolean): boolean {
  const copied = copySchema(schema);
  return copied.ok && copied.copy.isOfNewestDialect;
}

function copyRoot(schema: JsonObject | boolean, dialect: Dialect): SchemaCopy {
  const copying: Copying = {
    nodes: new Map(),
    references: new Map(),
    dynamicReferences: new Map(),
    dynamicAnchors: new Map(),
    resourceOf: new Map(),
    leavesContained: new Set(),
    names: new Set(),
    patterns: new Set(),
    copies: new Map(),
    roots: new Map([[NO_BASE, schema]]),
    anchors: new Map(),
    unresolved: [],
    subschemas: 0,
  };
  const root = copyNode(schema, { pointer: '', depth: 0, dialect, base: NO_BASE }, copying);
  resolveAll(copying);
  const { nodes, references, dynamicReferences, dynamicAnchors } = copying;
  const { leavesContained, names, resourceOf } = copying;
  const resources = new Set(resourceOf.values()).size > 1 ? resourceOf : undefined;
  return {
    isOfNewestDialect: dialect === DIALECTS[0],
    root,
    nodes,
    references,
    dynamicReferences,
    dynamicAnchors,
    resources,
    leavesContained,
    names,
  };
}

function copyNode(schema: Json | undefined, at: Place, copying: Copying): Schema {
  copying.subschemas += 1;
  if (copying.subschemas > MAX_SUBSCHEMAS)
    throw new SchemaRefusal(`the schema has more than ${MAX_SUBSCHEMAS} subschemas`, at.pointer);
  if (at.depth > MAX_SCHEMA_DEPTH)
    throw new SchemaRefusal(`the schema is nested deeper than ${MAX_SCHEMA_DEPTH}`, at.pointer);
  if (typeof schema === 'boolean') return schema;
  if (!isObject(schema)) throw new SchemaRefusal('a subschema is neither an object nor a boolean', at.pointer);
  const node: SchemaNode = {};
  const ref = ownOf(schema, '$ref');
  // Up to draft-07 everything beside $ref is ignored (draft-07 core §8.3), but what it points into must be kept.
  const isReference = ref !== undefined && AGE[at.dialect] <= AGE['draft-07'];
  const place = isReference ? at : enterResource(schema, node, at, copying);
  copying.nodes.set(node, place.pointer);
  copying.copies.set(schema, { node, place });
  copying.resourceOf.set(node, place.base);
  const keywords = isReference ? ['$ref', 'default', 'definitions', '$defs'] : Object.keys(schema);
  for (const keyword of keywords) copyKeyword(node, keyword, schema, place, copying);
  if (REFERENCES.some((keyword) => keyword in node)) copying.unresolved.push({ node, place });
  modernize(node, place, copying);
  return node;
}

const REFERENCES = ['$ref', '$dynamicRef', '$recursiveRef'];

function ownOf(schema: JsonObject, keyword: string): Json | undefined {
  return Object.hasOwn(schema, keyword) ? schema[keyword] : undefined;
}

/** Reads `$id` and the anchors of a schema; returns its place in the resource that it begins, or is part of. */
function enterResource(schema: JsonObject, node: SchemaNode, at: Place, copying: Copying): Place {
  const id = ownOf(schema, at.dialect === 'draft-04' ? 'id' : '$id');
  const place = typeof id === 'string' ? placeBy(id, schema, at, copying) : at;
  // Up to draft-07 an id that is a fragment is what `$anchor` is later.
  if (typeof id === 'string' && id.startsWith('#') && AGE[at.dialect] <= AGE['draft-07'])
    copying.anchors.set(`${at.base}${id}`, node);
  noteAnchors(schema, node, place, copying);
  return place;
}

/** The place of a schema with this id, which begins a resource of its own. */
function placeBy(id: string, schema: JsonObject, at: Place, copying: Copying): Place {
  if (id.startsWith('#')) return at;
  const { base } = uriOf(id, at.base);
  const named = at.depth === 0 ? undefined : ownOf(schema, '$schema');
  copying.roots.set(base, schema);
  return { ...at, base, dialect: named === undefined ? at.dialect : dialectOf(named, at.pointer) };
}

function noteAnchors(schema: JsonObject, node: SchemaNode, { dialect, base }: Place, copying: Copying): void {
  if (AGE[dialect] < AGE['2019-09']) return;
  const anchor = ownOf(schema, '$anchor');
  if (typeof anchor === 'string') copying.anchors.set(`${base}#${anchor}`, node);
  const isNew = dialect === '2020-12';
  // A recursive anchor is a dynamic one without a name.
  const isRecursive = ownOf(schema, '$recursiveAnchor') === true && copying.roots.get(base) === schema;
  const dynamic = isNew ? ownOf(schema, '$dynamicAnchor') : isRecursive ? '' : undefined;
  if (typeof dynamic !== 'string') return;
  if (isNew) copying.anchors.set(`${base}#${dynamic}`, node);
  const known = copying.dynamicAnchors.get(base) ?? new Map<string, SchemaNode>();
  copying.dynamicAnchors.set(base, known.set(dynamic, node));
}

/** A URI reference, resolved: the part before the fragment, and the fragment. */
function uriOf(ref: string, base: string): { readonly base: string; readonly fragment: string } {
  const hash = ref.indexOf('#');
  const [path, fragment] = hash === -1 ? [ref, ''] : [ref.slice(0, hash), ref.slice(hash + 1)];
  if (path === '') return { base, fragment };
  return { base: resolveReference(path, base), fragment };
}

function copyKeyword(node: SchemaNode, keyword: string, schema: JsonObject, at: Place, copying: Copying): void {
  const row = KEYWORDS.get(keyword);
  const value = ownOf(schema, keyword);
  if (row === undefined || value === undefined) return;
  const isContainer = keyword === '$defs' || keyword === 'definitions';
  if (!isContainer && (AGE[at.dialect] < row.since || AGE[at.dialect] > row.until)) return;
  const below = { ...at, pointer: pointerTo(at.pointer, keyword) };
  switch (row.kind) {
    case 'plain':
      node[keyword] = copyPlain(keyword, value, below, copying);
      return;
    case 'schema':
      node[keyword] =
        keyword === 'items' && Array.isArray(value)
          ? copyTuple(value, below, copying)
          : copyNode(value, { ...below, depth: at.depth + 1 }, copying);
      return;
    case 'list':
      node[keyword] = copyList(value, below, copying);
      return;
    case 'map':
      node[keyword] = copyMap(keyword, value, below, copying);
  }
}

const TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

/** What a plain keyword must have as its value, where it is not any value: what is wrong, or undefined. */
const FORMS: ReadonlyMap<string, (value: Json) => string | undefined> = new Map([
  ['type', wrongType],
  ['enum', expect('array', Array.isArray)],
  ['required', expect('array of strings', areStrings)],
  ['dependentRequired', expect('object of arrays of strings', areLists)],
  ['multipleOf', expect('number greater than 0', (value) => typeof value === 'number' && value > 0)],
  ...['maximum', 'minimum', 'exclusiveMaximum', 'exclusiveMinimum'].map(
    (keyword) => [keyword, expect('number', (value) => typeof value === 'number')] as const,
  ),
  ...['Length', 'Items', 'Contains', 'Properties']
    .flatMap((what) => [`min${what}`, `max${what}`])
    .map((keyword) => [keyword, expect('whole number, not negative', isCount)] as const),
  ['uniqueItems', expect('boolean', (value) => typeof value === 'boolean')],
  ...['pattern', 'format', '$ref', '$dynamicRef', '$recursiveRef'].map(
    (keyword) => [keyword, expect('string', (value) => typeof value === 'string')] as const,
  ),
]);

function expect(what: string, holds: (value: Json) => boolean): (value: Json) => string | undefined {
  const article = /^[aeiou]/.test(what) ? 'an' : 'a';
  return (value) => (holds(value) ? undefined : `must be ${article} ${what}`);
}

function wrongType(value: Json): string | undefined {
  const names: readonly Json[] = Array.isArray(value) ? value : [value];
  const isKnown = names.length > 0 && names.every((name) => TYPES.includes(String(name)));
  return isKnown ? undefined : `must be one of ${TYPES.join(', ')}`;
}

function areStrings(value: Json): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function areLists(value: Json): boolean {
  return isObject(value) && Object.values(value).every(areStrings);
}

function isCount(value: Json): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

function copyPlain(keyword: string, value: Json, at: Place, copying: Copying): Json {
  const isFlag = typeof value === 'boolean' && keyword.startsWith('exclusive');
  if (isFlag && at.dialect === 'draft-04') return value;
  const wrong = FORMS.get(keyword)?.(value);
  if (wrong !== undefined) throw new SchemaRefusal(`${INVALID}: "${keyword}" ${wrong}`, at.pointer, isFlag);
  if (keyword === 'pattern') addPattern(String(value), at, copying);
  if (keyword === 'required') for (const name of value as readonly string[]) copying.names.add(name);
  return value;
}

function addPattern(pattern: string, at: Place, { patterns }: Copying): void {
  patterns.add(pattern);
  if (patterns.size > MAX_SCHEMA_PATTERNS)
    throw new SchemaRefusal(`the schema has more than ${MAX_SCHEMA_PATTERNS} patterns`, at.pointer);
}

/** `items` as a list, which 2020-12 calls `prefixItems`. */
function copyTuple(value: Json, at: Place, copying: Copying): readonly Schema[] {
  if (at.dialect === '2020-12') throw new SchemaRefusal(`${INVALID}: "items" must be one schema`, at.pointer, true);
  return copyList(value, at, copying);
}

function copyList(value: Json, at: Place, copying: Copying): readonly Schema[] {
  if (!Array.isArray(value)) throw new SchemaRefusal('a keyword that lists schemas has no list', at.pointer);
  return value.map((member: Json, index) => {
    const pointer = pointerTo(at.pointer, String(index));
    return copyNode(member, { ...at, pointer, depth: at.depth + 1 }, copying);
  });
}

function copyMap(keyword: string, value: Json, at: Place, copying: Copying): SchemaNode {
  if (!isObject(value)) throw new SchemaRefusal('a keyword that names schemas has no object', at.pointer);
  const copied: SchemaNode = {};
  for (const name of Object.keys(value)) {
    const below = { ...at, pointer: pointerTo(at.pointer, name), depth: at.depth + 1 };
    // Assigning to this name would set the prototype.
    if (name === '__proto__') throw new SchemaRefusal('a property is named __proto__', below.pointer);
    if (keyword === 'patternProperties') addPattern(name, below, copying);
    if (keyword === 'properties') copying.names.add(name);
    const member = value[name];
    copied[name] =
      keyword === 'dependencies' && Array.isArray(member)
        ? copyDependency(member, below)
        : copyNode(member, below, copying);
  }
  return copied;
}

function copyDependency(names: Json, at: Place): Json {
  if (areStrings(names)) return names;
  throw new SchemaRefusal(`${INVALID}: "dependencies" must name strings or schemas`, at.pointer);
}

/** Writes what older dialects say in the words of 2020-12, so that every reader of the copy knows one dialect. */
function modernize(node: SchemaNode, { dialect }: Place, copying: Copying): void {
  modernizeItems(node);
  modernizeRanges(node);
  modernizeDependencies(node, copying);
  if (dialect === '2019-09') copying.leavesContained.add(node);
}

function modernizeItems(node: SchemaNode): void {
  const { items, additionalItems } = node;
  delete node['additionalItems'];
  if (!Array.isArray(items)) return;
  node['prefixItems'] = items;
  delete node['items'];
  if (additionalItems !== undefined) node['items'] = additionalItems;
}

function modernizeRanges(node: SchemaNode): void {
  for (const [exclusive, inclusive] of [
    ['exclusiveMaximum', 'maximum'],
    ['exclusiveMinimum', 'minimum'],
  ] as const) {
    const flag = node[exclusive];
    if (typeof flag !== 'boolean') continue;
    delete node[exclusive];
    if (!flag || node[inclusive] === undefined) continue;
    node[exclusive] = node[inclusive];
    delete node[inclusive];
  }
}

function modernizeDependencies(node: SchemaNode, copying: Copying): void {
  const { dependencies } = node;
  delete node['dependencies'];
  if (!isNode(dependencies)) return;
  const required: SchemaNode = { ...(node['dependentRequired'] as SchemaNode) };
  const schemas: SchemaNode = { ...(node['dependentSchemas'] as SchemaNode) };
  for (const [name, dependency] of Object.entries(dependencies)) {
    if (Array.isArray(dependency)) {
      required[name] = [...((required[name] as readonly string[] | undefined) ?? []), ...dependency];
      continue;
    }
    const other = schemas[name];
    if (other === undefined) {
      schemas[name] = dependency;
      continue;
    }
    const both: SchemaNode = { allOf: [other, dependency] };
    copying.nodes.set(both, copying.nodes.get(node) ?? '');
    schemas[name] = both;
  }
  if (Object.keys(required).length > 0) node['dependentRequired'] = required;
  if (Object.keys(schemas).length > 0) node['dependentSchemas'] = schemas;
}

/** Resolves every reference. What one points to may be a schema at a place that no keyword makes one. */
function resolveAll(copying: Copying): void {
  for (let next = copying.unresolved.pop(); next !== undefined; next = copying.unresolved.pop()) {
    const { node, place } = next;
    const { $ref } = node;
    if (typeof $ref === 'string') copying.references.set(node, targetOf($ref, place, '$ref', copying));
    for (const keyword of ['$dynamicRef', '$recursiveRef']) resolveDynamic(node, keyword, place, copying);
  }
}

function resolveDynamic(
  node: SchemaNode,
  keyword: string,
  place: Place,
  { references, dynamicReferences, ...copying }: Copying,
): void {
  const written = node[keyword];
  if (typeof written !== 'string') return;
  const initial = targetOf(written, place, keyword, { references, dynamicReferences, ...copying });
  const named = keyword === '$recursiveRef' ? '' : uriOf(written, place.base).fragment;
  const anchor = isDynamic(initial, named, copying) ? named : NO_ANCHOR;
  dynamicReferences.set(node, { initial, anchor });
}

/** No anchor has this name, so that the reference leads to its initial target. */
const NO_ANCHOR = '#';

/** Only a reference to a dynamic anchor is resolved by what led to it (2020-12 core §8.2.3.2). */
function isDynamic(initial: Schema, anchor: string, { dynamicAnchors }: Pick<Copying, 'dynamicAnchors'>): boolean {
  return [...dynamicAnchors.values()].some((anchors) => anchors.get(anchor) === initial);
}

function targetOf(ref: string, at: Place, keyword: string, copying: Copying): Schema {
  const pointer = pointerTo(at.pointer, keyword);
  const uri = uriOf(ref, at.base);
  const root = copying.roots.get(uri.base);
  if (root === undefined) throw new SchemaRefusal(OUTSIDE, pointer);
  const fragment = decodeFragment(uri.fragment);
  if (fragment === undefined) throw new SchemaRefusal(NOWHERE, pointer);
  if (fragment !== '' && !fragment.startsWith('/')) {
    const anchored = copying.anchors.get(`${uri.base}#${fragment}`);
    if (anchored === undefined) throw new SchemaRefusal(NOWHERE, pointer);
    return anchored;
  }
  return schemaAt(root, fragment, { ...at, pointer }, copying);
}

/** The schema at a pointer (RFC 6901) within a resource. */
function schemaAt(root: JsonObject | boolean, pointer: string, from: Place, copying: Copying): Schema {
  const top = isObject(root) ? copying.copies.get(root)?.place : undefined;
  let value: Json = root;
  let place = top ?? from;
  let written = top?.pointer ?? '';
  for (const step of stepsOf(pointer)) {
    const next = memberOf(value, step);
    if (next === undefined) throw new SchemaRefusal(NOWHERE, from.pointer);
    value = next;
    written = pointerTo(written, step);
    place = placeOf(value, copying) ?? place;
  }
  if (typeof value === 'boolean') return value;
  const known = isObject(value) ? copying.copies.get(value)?.node : undefined;
  if (known !== undefined) return known;
  const { base, dialect } = place;
  return copyNode(value, { base, dialect, pointer: written, depth: from.depth + 1 }, copying);
}

function memberOf(value: Json, step: string): Json | undefined {
  const isContainer = typeof value === 'object' && value !== null;
  return isContainer && Object.hasOwn(value, step) ? (value as JsonObject)[step] : undefined;
}

function placeOf(value: Json, { copies }: Copying): Place | undefined {
  return isObject(value) ? copies.get(value)?.place : undefined;
}

function decodeFragment(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

/** Maximum number of schemas that may be applied at one position, each counted as often as it is reached. */
const MAX_APPLIED_IN_PLACE = 5000;

const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
const IN_PLACE_SCHEMAS = ['not', 'if', 'then', 'else'] as const;

export function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schemas that a schema may apply by its references; a dynamic reference may lead to any anchor of its name. */
export function referencedBy(copy: SchemaCopy, node: SchemaNode): readonly Schema[] {
  const target = copy.references.get(node);
  const dynamic = copy.dynamicReferences.get(node);
  if (dynamic === undefined) return target === undefined ? NO_SCHEMAS : [target];
  const all = new Set<Schema>(target === undefined ? [] : [target]);
  all.add(dynamic.initial);
  for (const anchors of copy.dynamicAnchors.values()) {
    const anchored = anchors.get(dynamic.anchor);
    if (anchored !== undefined) all.add(anchored);
  }
  return [...all];
}

const NO_SCHEMAS: readonly Schema[] = [];

/** The schemas that one schema may apply in place, references resolved. `not` is left out if `positive` is set. */
export function appliedInPlace(copy: SchemaCopy, node: SchemaNode, positive: boolean): readonly Schema[] {
  const applied: Schema[] = [...referencedBy(copy, node)];
  for (const keyword of IN_PLACE_LISTS) {
    const list = node[keyword];
    if (Array.isArray(list)) applied.push(...(list as readonly Schema[]));
  }
  for (const keyword of IN_PLACE_SCHEMAS) {
    if (!(positive && keyword === 'not')) applied.push(...[node[keyword]].filter(isSchema));
  }
  const { dependentSchemas } = node;
  if (isNode(dependentSchemas)) applied.push(...Object.values(dependentSchemas).filter(isSchema));
  return applied;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'boolean' || isNode(value);
}

const BELOW_SCHEMAS = [
  ...['additionalProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['items', 'unevaluatedItems', 'contains'],
];

/** The schemas that one schema applies to the members, names and items of a value. */
function appliedBelow(node: SchemaNode): readonly Schema[] {
  const single: readonly unknown[] = BELOW_SCHEMAS.map((keyword) => node[keyword]);
  const maps = [node['properties'], node['patternProperties']].filter(isNode);
  const tuple: readonly unknown[] = Array.isArray(node['prefixItems']) ? node['prefixItems'] : [];
  return [...single, ...tuple, ...maps.flatMap((map) => Object.values(map))].filter(isSchema);
}

/**
 * The schemas that decide something by failing: those under `not`, `if`, `oneOf` and `contains`, and all that they
 * apply. A keyword that is left out there may refuse a value that the schema accepts.
 */
export function schemasThatMayFail(copy: SchemaCopy): ReadonlySet<SchemaNode> {
  const found = new Set<SchemaNode>();
  const waiting: unknown[] = [];
  for (const node of copy.nodes.keys()) {
    const { oneOf } = node;
    waiting.push(node['not'], node['if'], node['contains'], ...(Array.isArray(oneOf) ? oneOf : []));
  }
  while (waiting.length > 0) {
    const schema = waiting.pop();
    if (!isNode(schema) || found.has(schema)) continue;
    found.add(schema);
    waiting.push(...appliedInPlace(copy, schema, false), ...appliedBelow(schema));
  }
  return found;
}

/** Why the number of schemas applied in place has no bound, or undefined if it has one. */
export function findUnboundedReach(copy: SchemaCopy): CompileError | undefined {
  const counted = new Map<SchemaNode, number>();
  const open = new Set<SchemaNode>();
  // Infinity stands for a loop; it survives every sum.
  const count = (node: SchemaNode): number => {
    const known = counted.get(node);
    if (known !== undefined) return known;
    if (open.has(node)) return Number.POSITIVE_INFINITY;
    open.add(node);
    let total = 1;
    for (const applied of appliedInPlace(copy, node, false)) {
      total += isNode(applied) ? count(applied) : 1;
    }
    open.delete(node);
    counted.set(node, total);
    return total;
  };
  for (const [node, pointer] of copy.nodes) {
    const total = count(node);
    if (total === Number.POSITIVE_INFINITY) return { why: 'the schema refers to itself without end', pointer };
    if (total > MAX_APPLIED_IN_PLACE)
      return { why: 'the combinations of the schema multiply past all bounds', pointer };
  }
  return undefined;
}
