// Finds members of a value that its schema does not describe. What a rule reads must be described: a member
// that is not, or that only looks like one that is read, could mean something else to the upstream than to
// the rule. Members that no rule reads may occur in objects that the schema leaves open. Conservative: an
// open schema (`true`, `{}`) describes no names; alternatives are taken together.
// Source: JSON Schema 2020-12 core §10.3; ARCHITECTURE.md, "Bytes".

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { pointerTo } from '../../text/json-pointer.js';
import { isAmbiguousWith } from '../conditions.js';
import type { ArgumentReads } from '../definitions.js';
import type { LinearRegex } from '../patterns.js';
import {
  appliedInPlace,
  isNode,
  type Schema,
  type SchemaCopy,
  type SchemaNode,
} from './sanitizer.js';
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

/** What is read where everything is: every member, at any depth. */
const ALL_READS: ArgumentReads = {
  readsAll: true,
  members: new Map(),
  items: undefined,
  normalizedNames: new Set(),
  fullyRead: new Set(),
};

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
  reads: ArgumentReads = ALL_READS,
): string | undefined {
  if (isRemembered(copy, reads, value)) return undefined;
  const state = { root: copy.root, patterns, visits: 0 };
  const found = search(value, [copy.root], reads, '', state);
  if (found === undefined) remember(copy, reads, value);
  return found;
}

function search(
  value: Json,
  schemas: readonly Schema[],
  reads: ArgumentReads,
  pointer: string,
  state: Search,
): string | undefined {
  if (typeof value !== 'object' || value === null || readsNothing(value, reads)) return undefined;
  const applied = appliedSchemas(schemas, state);
  state.visits += applied.length;
  if (state.visits > MAX_VISITS) return pointer;
  return isObject(value)
    ? searchMembers(value, applied, reads, pointer, state)
    : searchItems(value as readonly Json[], applied, reads, pointer, state);
}

function readsNothing(value: Json, { readsAll, members, items }: ArgumentReads): boolean {
  return !readsAll && (isObject(value) ? members.size === 0 : items === undefined);
}

function searchMembers(
  value: JsonObject,
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  pointer: string,
  state: Search,
): string | undefined {
  for (const name of Object.keys(value)) {
    state.visits += applied.length;
    if (state.visits > MAX_VISITS) return pointer;
    const below = reads.readsAll ? reads : reads.members.get(name);
    const found =
      below === undefined
        ? findAmbiguousName(name, applied, reads)
        : searchMember(value[name] ?? null, name, applied, below, state);
    if (found !== undefined) return pointer + found;
  }
  return undefined;
}

function searchMember(
  member: Json,
  name: string,
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  state: Search,
): string | undefined {
  const at = pointerTo('', name);
  const describing = applied.flatMap((node) => memberSchemas(node, name, state));
  if (describing.length === 0 || state.visits > MAX_VISITS) return at;
  return search(member, describing, reads, at, state);
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

function searchItems(
  value: readonly Json[],
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  pointer: string,
  state: Search,
): string | undefined {
  const below = reads.readsAll ? reads : reads.items;
  if (below === undefined) return undefined;
  for (const [index, item] of value.entries()) {
    if (typeof item !== 'object' || item === null) continue;
    const describing = applied.flatMap((node) => itemSchemas(node, index));
    const found = search(item, describing, below, `${pointer}/${index}`, state);
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

function itemSchemas(node: SchemaNode, index: number): readonly Schema[] {
  const items = node['items'];
  const tuple = Array.isArray(items) ? items : node['prefixItems'];
  if (Array.isArray(tuple) && index < tuple.length) return [tuple[index] as Schema];
  const rest = Array.isArray(items) ? node['additionalItems'] : items;
  const found = [rest, node['unevaluatedItems'], node['contains']];
  return found.filter((schema) => isNode(schema)) as readonly Schema[];
}
