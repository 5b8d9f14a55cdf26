// Defaults of a schema. A member that is required and has one may be absent, as Zod and Pydantic publish it, because the
// server fills it in; what a rule reads is then evaluated with the approved default filled in. Only copies are filled:
// the value that came is forwarded as it is.
// Source: JSON Schema 2020-12 validation §9.2; docs/reference/policies.md.

import { isDeepStrictEqual } from 'node:util';
import { shareExactNumbers } from '../../protocol/json/exact-numbers.js';
import { MAX_JSON_DEPTH } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import {
  applicable,
  declaringMemberSchemas,
  isSpent,
  itemSchemas,
  type MemberSearch,
  plainSchemas,
  requiredNames,
  startSearch,
} from './members.js';
import { appliedInPlace, isNode, referencedBy, type Schema, type SchemaCopy, type SchemaNode } from './sanitizer.js';

/** Maximum nesting to which defaults are filled in: a schema that refers to itself may have them without end. */
const MAX_FILLED_DEPTH = MAX_JSON_DEPTH;

/** The default of a schema, or of what it refers to. */
function defaultOf(copy: SchemaCopy, schema: unknown): Json | undefined {
  const seen = new Set<unknown>();
  for (let at: unknown = schema; isNode(at) && !seen.has(at); [at] = referencedBy(copy, at)) {
    seen.add(at);
    if (Object.hasOwn(at, 'default')) return at['default'] as Json;
  }
  return undefined;
}

/** Of each schema, the members that it requires and that have a default there or in a schema beside it. */
export function requiredWithDefault(copy: SchemaCopy): ReadonlyMap<SchemaNode, ReadonlySet<string>> {
  const found = new Map<SchemaNode, ReadonlySet<string>>();
  if (![...copy.nodes.keys()].some((node) => 'default' in node)) return found;
  const parents = parentsOf(copy);
  for (const node of copy.nodes.keys()) {
    const { required } = node;
    if (!Array.isArray(required) || required.length === 0) continue;
    const beside = appliedBeside(copy, topOf(node, parents));
    const names = (required as readonly string[]).filter((name) =>
      beside.some(({ properties }) => isNode(properties) && defaultOf(copy, ownOf(properties, name)) !== undefined),
    );
    if (names.length > 0) found.set(node, new Set(names));
  }
  return found;
}

function ownOf(map: SchemaNode, name: string): unknown {
  return Object.hasOwn(map, name) ? map[name] : undefined;
}

/** The schema that applies another one in place, where that is written inside it. */
function parentsOf(copy: SchemaCopy): ReadonlyMap<SchemaNode, SchemaNode> {
  const parents = new Map<SchemaNode, SchemaNode>();
  for (const node of copy.nodes.keys()) {
    const referenced = new Set(referencedBy(copy, node));
    for (const schema of appliedInPlace(copy, node, true)) {
      if (isNode(schema) && !referenced.has(schema)) parents.set(schema, node);
    }
  }
  return parents;
}

function topOf(node: SchemaNode, parents: ReadonlyMap<SchemaNode, SchemaNode>): SchemaNode {
  let top = node;
  for (let parent = parents.get(top); parent !== undefined; parent = parents.get(top)) top = parent;
  return top;
}

function appliedBeside(copy: SchemaCopy, top: SchemaNode): readonly SchemaNode[] {
  const all = new Set([top]);
  for (const node of all) for (const next of appliedInPlace(copy, node, true)) if (isNode(next)) all.add(next);
  return [...all];
}

/** `required`: only members that a schema requires are filled in. */
type Extent = 'all' | 'required';

/** Fills in the defaults of members that are absent; undefined if that takes too much work. */
export type FillDefaults = (value: JsonObject, extent: Extent) => JsonObject | undefined;

/** Undefined for a schema without defaults. */
export function createDefaults(parts: Pick<MemberSearch, 'copy' | 'patterns' | 'evaluator'>): FillDefaults | undefined {
  const { copy } = parts;
  if (![...copy.nodes.keys()].some((node) => 'default' in node)) return undefined;
  const plain = plainSchemas(copy);
  return (value, extent) => {
    const search = startSearch(parts, plain);
    const filled = fill(value, [copy.root], 0, { extent, search });
    return isSpent(search) ? undefined : (filled as JsonObject);
  };
}

type Filling = {
  readonly extent: Extent;
  readonly search: MemberSearch;
  /** The value is a default itself: a schema may have defaults in itself without end. */
  readonly isDefault?: boolean;
};

/** The value itself if nothing is filled in. */
function fill(value: Json, schemas: readonly Schema[], depth: number, filling: Filling): Json {
  const { search, isDefault } = filling;
  if (typeof value !== 'object' || value === null || isSpent(search)) return value;
  if (depth > MAX_FILLED_DEPTH) return isDefault === true ? value : giveUp(value, search);
  if (!isObject(value)) {
    const applied = applicable(value, schemas, search);
    return applied.length === 0 ? value : fillItems(value as readonly Json[], applied, depth, filling);
  }
  // Which alternative holds may depend on a default of what always holds.
  const always = alwaysApplied(schemas, search);
  const known = fillAbsent(value, always, filling, (one) => one);
  const applied = applicable(known, schemas, search);
  return applied.length === 0 ? value : fillMembers(value, applied, depth, filling);
}

/** What is read of the value cannot be told. */
function giveUp<Value>(value: Value, search: MemberSearch): Value {
  search.visits = Number.POSITIVE_INFINITY;
  return value;
}

/** The schemas, and those that they apply to every value. */
function alwaysApplied(schemas: readonly Schema[], { copy }: MemberSearch): readonly SchemaNode[] {
  const all = new Set(schemas.filter(isNode));
  for (const node of all) {
    const { allOf } = node;
    for (const next of [...referencedBy(copy, node), ...(Array.isArray(allOf) ? allOf : [])])
      if (isNode(next)) all.add(next);
  }
  return [...all];
}

function fillItems(
  items: readonly Json[],
  applied: readonly SchemaNode[],
  depth: number,
  filling: Filling,
): readonly Json[] {
  let isChanged = false;
  const filled = items.map((item, index) => {
    if (typeof item !== 'object' || item === null) return item;
    const schemas = applied.flatMap((node) => itemSchemas(node, index));
    const after = fill(item, schemas, depth + 1, filling);
    if (after !== item) isChanged = true;
    return after;
  });
  if (!isChanged) return items;
  shareExactNumbers(items, filled);
  return filled;
}

function fillMembers(object: JsonObject, applied: readonly SchemaNode[], depth: number, filling: Filling): JsonObject {
  const { search } = filling;
  const added = new Map<string, Json>();
  for (const [name, member] of Object.entries(object)) {
    if (typeof member !== 'object' || member === null) continue;
    search.visits += applied.length;
    const schemas = applied.flatMap((node) => declaringMemberSchemas(node, name, search));
    const after = fill(member, schemas, depth + 1, filling);
    if (after !== member) added.set(name, after);
  }
  const below = (member: Json, schema: Schema): Json =>
    fill(member, [schema], depth + 1, { ...filling, isDefault: true });
  return fillAbsent(object, applied, filling, below, added);
}

/** Fills in what is absent. Where two schemas disagree about it, nobody knows what the server reads. */
function fillAbsent(
  object: JsonObject,
  applied: readonly SchemaNode[],
  filling: Filling,
  fillBelow: (value: Json, schema: Schema) => Json,
  added = new Map<string, Json>(),
): JsonObject {
  const { search } = filling;
  const written = new Map<string, Json>();
  for (const [name, schema] of absentMembers(object, applied, filling)) {
    const value = defaultOf(search.copy, schema);
    if (value === undefined) continue;
    const other = written.get(name);
    if (other === undefined) {
      written.set(name, value);
      added.set(name, fillBelow(value, schema));
    } else if (!isDeepStrictEqual(other, value)) return giveUp(object, search);
  }
  if (added.size === 0) return object;
  const filled = { ...object, ...Object.fromEntries(added) };
  shareExactNumbers(object, filled);
  return filled;
}

/** The members that the schemas declare by name and the object does not have. */
function absentMembers(
  object: JsonObject,
  applied: readonly SchemaNode[],
  { extent, search }: Filling,
): readonly (readonly [string, Schema])[] {
  const required = extent === 'required' ? requiredByAny(applied, search) : undefined;
  return applied.flatMap(({ properties }) => {
    if (!isNode(properties)) return [];
    const members = Object.entries(properties) as [string, Schema][];
    search.visits += members.length;
    return members.filter(([name]) => !Object.hasOwn(object, name) && (required === undefined || required.has(name)));
  });
}

/** What schemas require, also as alternatives: which of them holds may depend on the default. */
function requiredByAny(applied: readonly SchemaNode[], search: MemberSearch): ReadonlySet<string> {
  const all = new Set(applied.flatMap((node) => appliedBeside(search.copy, node)));
  search.visits += all.size;
  return new Set([...all].flatMap((node) => [...requiredNames(node)]));
}
