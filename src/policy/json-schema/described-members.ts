// Finds members of a value that its schema does not describe. What a rule reads must be described: a member
// that is not, or that only looks like one that is read, could mean something else to the upstream than to
// the rule. Members that no rule reads may occur in objects that the schema leaves open. Conservative: an
// open schema (`true`, `{}`) describes no names; alternatives are taken together.
// Source: JSON Schema 2020-12 core §10.3; ARCHITECTURE.md, "Bytes".

import type { Json } from '../../protocol/jsonrpc.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { pointerTo } from '../../text/json-pointer.js';
import { isAmbiguousWith } from '../conditions.js';
import type { ArgumentReads } from '../definitions.js';
import type { LinearRegex } from '../patterns.js';
import type { Schema, SchemaCopy, SchemaNode } from './sanitizer.js';
import { appliedInPlace, isNode } from './sanitizer.js';
import { isProperty, namedSchemas } from './undeclared-members.js';

/** Maximum number of pairs of a value and a schema that one search visits; past it nothing counts as described. */
const MAX_VISITS = 200_000;

type Search = {
  readonly root: Schema;
  readonly patterns: ReadonlyMap<string, LinearRegex>;
  visits: number;
};

/** Maximum number of names cached as described per schema; its patterns can match any number of names. */
const MAX_REMEMBERED = 256;
const MAX_REMEMBERED_CHARS = 64;

/** The cache key of the search in which every member is read. */
const ALL_READS = {};

/**
 * Members of the root with a scalar value that were found described, by what was read of them: for such a
 * member the name decides everything.
 */
const rememberedOf = new WeakMap<SchemaCopy, WeakMap<object, Set<string>>>();

function isRemembered(copy: SchemaCopy, reads: object, value: Json): boolean {
  const remembered = rememberedOf.get(copy)?.get(reads);
  if (remembered === undefined || !isObject(value)) return false;
  for (const name of Object.keys(value)) {
    if (!isPlain(value[name]) || !remembered.has(name)) return false;
  }
  return true;
}

function isPlain(value: Json | undefined): boolean {
  return typeof value !== 'object' || value === null;
}

function remember(copy: SchemaCopy, reads: object, value: Json): void {
  if (!isObject(value)) return;
  const ofCopy = rememberedOf.get(copy) ?? new WeakMap<object, Set<string>>();
  const remembered = ofCopy.get(reads) ?? new Set();
  for (const name of Object.keys(value)) {
    const isShort = name.length <= MAX_REMEMBERED_CHARS && remembered.size < MAX_REMEMBERED;
    if (isShort && isPlain(value[name])) remembered.add(name);
  }
  rememberedOf.set(copy, ofCopy.set(reads, remembered));
}

/**
 * Pointer (RFC 6901) of the first member that is read and not described, or that could be taken for one that
 * is read. Without `reads`, every member is read.
 */
export function findUndescribed(
  copy: SchemaCopy,
  patterns: ReadonlyMap<string, LinearRegex>,
  value: Json,
  reads?: ArgumentReads,
): string | undefined {
  const known = reads ?? ALL_READS;
  if (isRemembered(copy, known, value)) return undefined;
  const state = { root: copy.root, patterns, visits: 0 };
  const found =
    reads === undefined
      ? search(value, [copy.root], '', state)
      : searchRead(value, [copy.root], reads, '', state);
  if (found === undefined) remember(copy, known, value);
  return found;
}

function search(
  value: Json,
  schemas: readonly Schema[],
  pointer: string,
  state: Search,
): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const applied = appliedSchemas(schemas, state);
  state.visits += applied.length;
  if (state.visits > MAX_VISITS) return pointer;
  return isObject(value)
    ? searchObject(value, applied, pointer, state)
    : searchArray(value as readonly Json[], applied, pointer, state);
}

/** Like `search`, for the members that are read only. */
function searchRead(
  value: Json,
  schemas: readonly Schema[],
  reads: ArgumentReads,
  pointer: string,
  state: Search,
): string | undefined {
  if (reads.readsAll) return search(value, schemas, pointer, state);
  if (typeof value !== 'object' || value === null) return undefined;
  if (isObject(value) ? reads.members.size === 0 : reads.items === undefined) return undefined;
  const applied = appliedSchemas(schemas, state);
  state.visits += applied.length;
  if (state.visits > MAX_VISITS) return pointer;
  return isObject(value)
    ? searchReadMembers(value, applied, reads, pointer, state)
    : searchReadItems(value as readonly Json[], applied, reads, pointer, state);
}

function searchReadMembers(
  value: { readonly [member: string]: Json },
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  pointer: string,
  state: Search,
): string | undefined {
  for (const name of Object.keys(value)) {
    state.visits += applied.length;
    if (state.visits > MAX_VISITS) return pointer;
    const below = reads.members.get(name);
    const found =
      below === undefined
        ? findAmbiguousName(name, applied, reads)
        : searchReadMember(value[name] ?? null, name, applied, below, state);
    if (found !== undefined) return pointer + found;
  }
  return undefined;
}

function searchReadMember(
  member: Json,
  name: string,
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  state: Search,
): string | undefined {
  const at = pointerTo('', name);
  const describing = applied.flatMap((node) => memberSchemas(node, name, state));
  return describing.length === 0 ? at : searchRead(member, describing, reads, at, state);
}

/** A member that no rule reads, and that could be taken for one that is read. */
function findAmbiguousName(
  name: string,
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
): string | undefined {
  return !isProperty(applied, name) && isAmbiguousWith(name, reads)
    ? pointerTo('', name)
    : undefined;
}

function searchReadItems(
  value: readonly Json[],
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  pointer: string,
  state: Search,
): string | undefined {
  if (reads.items === undefined) return undefined;
  for (const [index, item] of value.entries()) {
    const describing = applied.flatMap((node) => itemSchemas(node, index));
    const found = searchRead(item, describing, reads.items, `${pointer}/${index}`, state);
    if (found !== undefined) return found;
  }
  return undefined;
}

const appliedAtRoot = new WeakMap<SchemaNode, readonly SchemaNode[]>();

/** All schemas that apply in place, each once. Cached for the root schema, which every call needs. */
function appliedSchemas(schemas: readonly Schema[], state: Search): readonly SchemaNode[] {
  const { root } = state;
  if (!isNode(root) || schemas.length !== 1 || schemas[0] !== root) return closure(schemas, state);
  const known = appliedAtRoot.get(root) ?? closure(schemas, state);
  appliedAtRoot.set(root, known);
  return known;
}

function closure(schemas: readonly Schema[], state: Search): readonly SchemaNode[] {
  const closed = new Set<SchemaNode>();
  const waiting = [...schemas];
  for (let schema = waiting.pop(); schema !== undefined; schema = waiting.pop()) {
    if (!isNode(schema) || closed.has(schema)) continue;
    closed.add(schema);
    waiting.push(...appliedInPlace(state.root, schema, true));
  }
  return [...closed];
}

function searchObject(
  value: { readonly [member: string]: Json },
  applied: readonly SchemaNode[],
  pointer: string,
  state: Search,
): string | undefined {
  for (const name of Object.keys(value)) {
    const member = value[name];
    const at = pointerTo(pointer, name);
    const describing = applied.flatMap((node) => memberSchemas(node, name, state));
    state.visits += applied.length;
    if (describing.length === 0 || state.visits > MAX_VISITS) return at;
    const found = member === undefined ? undefined : search(member, describing, at, state);
    if (found !== undefined) return found;
  }
  return undefined;
}

function memberSchemas(node: SchemaNode, name: string, state: Search): readonly Schema[] {
  const found = namedSchemas(node, name, state);
  if (found.length > 0) return found;
  const others = [node['additionalProperties'], node['unevaluatedProperties']];
  return others.filter((schema): schema is SchemaNode => isNode(schema) && constrains(schema));
}

function constrains(schema: SchemaNode): boolean {
  for (const _keyword in schema) return true;
  return false;
}

function searchArray(
  value: readonly Json[],
  applied: readonly SchemaNode[],
  pointer: string,
  state: Search,
): string | undefined {
  for (const [index, item] of value.entries()) {
    if (typeof item !== 'object' || item === null) continue;
    const describing = applied.flatMap((node) => itemSchemas(node, index));
    const found = search(item, describing, `${pointer}/${index}`, state);
    if (found !== undefined) return found;
  }
  return undefined;
}

function itemSchemas(node: SchemaNode, index: number): readonly Schema[] {
  const items = node['items'];
  const tuple = Array.isArray(items) ? items : node['prefixItems'];
  if (Array.isArray(tuple) && index < tuple.length) return [tuple[index] as Schema];
  const rest = Array.isArray(items) ? node['additionalItems'] : items;
  const found = [rest, node['unevaluatedItems'], node['contains']];
  return found.filter((schema) => isNode(schema)) as readonly Schema[];
}
