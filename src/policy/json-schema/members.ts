// Finds members of a value that its schema does not describe or declare. What a rule reads must be described: a
// member that is not, or that only looks like one that is read, could mean something else to the upstream than to the
// rule. Conservative: an open schema (`true`, `{}`) describes no names; alternatives are taken together. Whatever is
// read or not, an object whose schema has `properties` is closed: its members must be declared by a schema that holds
// for it, as if `unevaluatedProperties: false` stood there; an object without `properties`, or with an explicit
// opening, takes any member. A name that a schema requires is declared by it.
// Source: JSON Schema 2020-12 core §10.2, §10.3 and §11.3; docs/reference/arguments.md; docs/reference/design.md,
// "Bytes".

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { pointerTo } from '../../text/json-members.js';
import { isAmbiguousWith } from '../conditions.js';
import type { ArgumentReads } from '../definitions.js';
import type { LinearRegex } from '../patterns.js';
import { appliedInPlace, isNode, referencedBy, type Schema, type SchemaCopy, type SchemaNode } from './sanitizer.js';

/** Schemas that one search may apply to values; beyond this number, nothing counts as described or declared. */
const MAX_VISITS = 200_000;

/** The steps that are left of a budget. */
export type Meter = { steps: number };

/** Tells which alternatives hold. */
export type Evaluation = {
  /** A full budget. */
  meter(): Meter;
  /** Whether a value satisfies one schema of the document; false where the budget is spent. */
  holds(schema: Schema, value: Json, meter: Meter): boolean;
};

/** What finds the schemas that apply to the parts of a value. */
export type MemberSearch = {
  readonly copy: SchemaCopy;
  readonly patterns: ReadonlyMap<string, LinearRegex>;
  readonly evaluator: Evaluation;
  /** Schemas that apply nothing else in place. */
  readonly plain: ReadonlySet<SchemaNode>;
  /** The work of the alternatives that are tried. */
  readonly meter: Meter;
  visits: number;
};

export function startSearch(
  { copy, patterns, evaluator }: Pick<MemberSearch, 'copy' | 'patterns' | 'evaluator'>,
  plain: ReadonlySet<SchemaNode>,
): MemberSearch {
  return { copy, patterns, evaluator, plain, meter: evaluator.meter(), visits: 0 };
}

/** Whether a search has taken more work than it may. */
export function isSpent({ visits, meter }: MemberSearch): boolean {
  return visits > MAX_VISITS || meter.steps < 0;
}

/** The schemas that apply nothing else in place. */
export function plainSchemas({ nodes }: SchemaCopy): ReadonlySet<SchemaNode> {
  return new Set([...nodes.keys()].filter((node) => !appliesInPlace(node)));
}

/** Returns the pointer (RFC 6901) of the first member that no schema declares. */
type FindUndeclared = (value: Json) => string | undefined;

/** Makes the search for a schema; undefined for a schema that itself says of every object which members it takes. */
export function createUndeclaredSearch(
  parts: Pick<MemberSearch, 'copy' | 'patterns' | 'evaluator'>,
): FindUndeclared | undefined {
  const { copy } = parts;
  if (!reachableSchemas(copy).some((node) => mayLackDeclarations(copy, node))) return undefined;
  const plain = plainSchemas(copy);
  const top = [copy.root];
  const shape = isNode(copy.root) ? shapeOf(copy, copy.root, true, plain) : 'unknown';
  return (value) => {
    if (isPlainlyDeclared(value, shape)) return undefined;
    const search = startSearch(parts, plain);
    const found = searchUndeclared(value, top, true, search);
    return isSpent(search) ? '' : found;
  };
}

/**
 * What is declared by a schema that applies nothing else in place, so that nearly every call is checked by looking up
 * its names. `any`: nothing can be undeclared. `unknown`: only the search can tell.
 */
type Shape =
  | 'any'
  | 'unknown'
  | {
      readonly members: ReadonlyMap<string, Shape>;
      /** Of members that have no entry; undefined if there may be none. */
      readonly others: Shape | undefined;
      readonly items: Shape;
    };

function shapeOf(copy: SchemaCopy, node: SchemaNode, isTop: boolean, plain: ReadonlySet<SchemaNode>): Shape {
  if (!inPlace(copy, node).some(declaresAnything)) return 'any';
  const { properties, additionalProperties: others, items } = node;
  if (!plain.has(node) || UNSHAPED.some((keyword) => keyword in node)) return 'unknown';
  const below = (schema: unknown): Shape => (isNode(schema) ? shapeOf(copy, schema, false, plain) : 'any');
  const members = Object.entries(isNode(properties) ? properties : {});
  const isOpen = !isDescribing(node, isTop) || isOpening(node);
  const ofOthers = isOpen ? below(others) : 'any';
  const required = [...requiredNames(node)].map((name): [string, Shape] => [name, ofOthers]);
  return {
    members: new Map([...required, ...members.map(([name, schema]): [string, Shape] => [name, below(schema)])]),
    others: isOpen ? below(others) : undefined,
    items: below(items),
  };
}

const UNSHAPED = ['patternProperties', 'unevaluatedProperties', 'prefixItems', 'unevaluatedItems'];

function isPlainlyDeclared(value: Json | undefined, shape: Shape): boolean {
  if (shape === 'any' || typeof value !== 'object' || value === null) return true;
  if (shape === 'unknown') return false;
  if (Array.isArray(value)) {
    const { items } = shape;
    return items === 'any' || value.every((item: Json) => isPlainlyDeclared(item, items));
  }
  const object = value as JsonObject;
  for (const name of Object.keys(object)) {
    const member = shape.members.get(name) ?? shape.others;
    if (member === undefined || !isPlainlyDeclared(object[name], member)) return false;
  }
  return true;
}

const IN_PLACE_KEYWORDS = [
  ...['$ref', '$dynamicRef', '$recursiveRef', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas'],
];

function appliesInPlace(node: SchemaNode): boolean {
  return IN_PLACE_KEYWORDS.some((keyword) => keyword in node);
}

/** The keywords by which a schema declares members, or leaves them open. */
const MEMBER_KEYWORDS = ['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties'];
const ITEM_KEYWORDS = ['items', 'prefixItems', 'unevaluatedItems', 'contains'];
const BRANCH_LISTS = ['anyOf', 'oneOf'];

function declaresAnything(node: SchemaNode): boolean {
  return [...MEMBER_KEYWORDS, ...ITEM_KEYWORDS].some((keyword) => keyword in node);
}

/** A schema and all that it applies in place, whatever the value, references resolved. */
function inPlace(copy: SchemaCopy, schema: SchemaNode): readonly SchemaNode[] {
  const closed = new Set<SchemaNode>([schema]);
  for (const node of closed) for (const next of appliedAnyway(copy, node)) closed.add(next);
  return [...closed];
}

/** All schemas that may apply to the value as a whole. */
export function appliedAtTop(copy: SchemaCopy): readonly SchemaNode[] {
  return isNode(copy.root) ? inPlace(copy, copy.root) : [];
}

function appliedAnyway(copy: SchemaCopy, node: SchemaNode): readonly SchemaNode[] {
  return appliedInPlace(copy, node, true).filter(isNode);
}

function schemasIn(list: unknown): readonly unknown[] {
  return Array.isArray(list) ? list : [];
}

/** Every schema that may apply to a value or to a part of it. */
function reachableSchemas(copy: SchemaCopy): readonly SchemaNode[] {
  const reached = new Set<SchemaNode>(isNode(copy.root) ? [copy.root] : []);
  for (const node of reached) {
    const members = ['properties', 'patternProperties'].flatMap((keyword) => {
      const map = node[keyword];
      return isNode(map) ? Object.values(map) : [];
    });
    const others = [...MEMBER_KEYWORDS.slice(2), ...ITEM_KEYWORDS].flatMap((keyword) => {
      const value = node[keyword];
      return Array.isArray(value) ? (value as unknown[]) : [value];
    });
    for (const next of [...members, ...others, ...appliedAnyway(copy, node)]) {
      if (isNode(next)) reached.add(next);
    }
  }
  return [...reached];
}

/** True for a schema of a described object that does not say itself which other members it takes. */
function mayLackDeclarations(copy: SchemaCopy, node: SchemaNode): boolean {
  const isTop = node === copy.root;
  return inPlace(copy, node).some((one) => isDescribing(one, isTop)) && !isDecided(copy, node);
}

/** True if the schema itself, or what it always applies, closes or opens every object. */
function isDecided(copy: SchemaCopy, schema: SchemaNode): boolean {
  const always = new Set<SchemaNode>([schema]);
  for (const node of always) {
    if (MEMBER_KEYWORDS.slice(1).some((keyword) => keyword in node)) return true;
    for (const next of [...schemasIn(node['allOf']), ...referencedBy(copy, node)]) {
      if (isNode(next)) always.add(next);
    }
  }
  return false;
}

/** An empty `properties` describes the arguments as a whole, which then have no members, but no object in them. */
function isDescribing({ properties }: SchemaNode, isTop: boolean): boolean {
  return isNode(properties) && (isTop || Object.keys(properties).length > 0);
}

function isOpening(node: SchemaNode): boolean {
  if (isNode(node['patternProperties'])) return true;
  return ['additionalProperties', 'unevaluatedProperties'].some(
    (keyword) => node[keyword] !== undefined && node[keyword] !== false,
  );
}

/** Pointers are relative to the value, and made only where one is returned. `isTop`: the arguments as a whole. */
function searchUndeclared(
  value: Json,
  schemas: readonly Schema[],
  isTop: boolean,
  state: MemberSearch,
): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const applied = applicable(value, schemas, state);
  return isObject(value)
    ? searchUndeclaredMembers(value, applied, isTop, state)
    : searchUndeclaredItems(value as readonly Json[], applied, state);
}

/** The schemas that hold for a value: those given, and what they apply in place. */
export function applicable(value: Json, schemas: readonly Schema[], state: MemberSearch): readonly SchemaNode[] {
  const given = schemas.filter(isNode);
  state.visits += given.length;
  if (given.every((node) => state.plain.has(node))) return given;
  const applied = new Set(given);
  for (const node of applied) {
    if (state.plain.has(node)) continue;
    state.visits += 1;
    for (const next of appliedTo(value, node, state)) if (isNode(next)) applied.add(next);
  }
  return [...applied];
}

/** What a schema applies in place to a value that satisfies it. */
function appliedTo(value: Json, node: SchemaNode, state: MemberSearch): readonly unknown[] {
  const branches = BRANCH_LISTS.flatMap((keyword) => schemasIn(node[keyword]));
  return [
    ...referencedBy(state.copy, node),
    ...schemasIn(node['allOf']),
    ...branches.filter((branch) => holds(branch, value, state)),
    ...('if' in node ? testedSchemas(value, node, state) : []),
    ...dependentSchemas(value, node),
  ];
}

function testedSchemas(value: Json, node: SchemaNode, state: MemberSearch): readonly unknown[] {
  const { if: test } = node;
  return holds(test, value, state) ? [test, node['then']] : [node['else']];
}

function dependentSchemas(value: Json, node: SchemaNode): readonly unknown[] {
  if (!isObject(value)) return [];
  const { dependentSchemas: map } = node;
  const named = isNode(map) ? Object.entries(map) : [];
  return named.flatMap(([name, schema]) => (Object.hasOwn(value, name) ? [schema] : []));
}

function holds(schema: unknown, value: Json, { evaluator, meter }: MemberSearch): boolean {
  return isNode(schema) ? evaluator.holds(schema, value, meter) : schema === true;
}

function searchUndeclaredMembers(
  value: JsonObject,
  applied: readonly SchemaNode[],
  isTop: boolean,
  state: MemberSearch,
): string | undefined {
  const isClosed = applied.some((node) => isDescribing(node, isTop)) && !applied.some(isOpening);
  for (const name of Object.keys(value)) {
    const member = value[name] ?? null;
    if (typeof member !== 'object' && (!isClosed || isProperty(applied, name))) continue;
    state.visits += applied.length;
    const found = searchUndeclaredMember(member, name, applied, isClosed, state);
    if (found !== undefined) return pointerTo('', name) + found;
  }
  return undefined;
}

function searchUndeclaredMember(
  member: Json,
  name: string,
  applied: readonly SchemaNode[],
  isClosed: boolean,
  state: MemberSearch,
): string | undefined {
  const declaring = applied.flatMap((node) => declaringMemberSchemas(node, name, state));
  if (isSpent(state)) return '';
  if (declaring.length === 0) return isClosed ? '' : undefined;
  return searchUndeclared(member, declaring, false, state);
}

/** True for a member that one of the schemas has under `properties`, or requires. */
export function isProperty(applied: readonly SchemaNode[], name: string): boolean {
  return applied.some(
    (node) => (isNode(node['properties']) && Object.hasOwn(node['properties'], name)) || requiredNames(node).has(name),
  );
}

const NO_NAMES: ReadonlySet<string> = new Set();
const requiredOf = new WeakMap<SchemaNode, ReadonlySet<string>>();

/** The names that a schema requires, always or beside other members. */
export function requiredNames(node: SchemaNode): ReadonlySet<string> {
  const { required, dependentRequired } = node;
  if (required === undefined && dependentRequired === undefined) return NO_NAMES;
  const known = requiredOf.get(node);
  if (known !== undefined) return known;
  const dependent = Object.values((dependentRequired ?? {}) as { [name: string]: readonly string[] });
  const names = new Set([...((required ?? []) as readonly string[]), ...dependent.flat()]);
  requiredOf.set(node, names);
  return names;
}

/** The schemas that a schema applies to a member of this name. */
export function declaringMemberSchemas(node: SchemaNode, name: string, state: MemberSearch): readonly Schema[] {
  const found = namedSchemas(node, name, state);
  if (found.length > 0) return found;
  const others = [node['additionalProperties'], node['unevaluatedProperties']].filter(
    (schema): schema is Schema => schema !== undefined && schema !== false,
  );
  return others.length === 0 && requiredNames(node).has(name) ? [true] : others;
}

/** The schemas that a schema has for a member of this name, or for a pattern that the name matches. */
function namedSchemas(
  node: SchemaNode,
  name: string,
  state: { readonly patterns: ReadonlyMap<string, LinearRegex>; visits: number },
): readonly Schema[] {
  const found: Schema[] = [];
  const { properties, patternProperties } = node;
  if (isNode(properties) && Object.hasOwn(properties, name)) found.push(properties[name] as Schema);
  if (isNode(patternProperties)) {
    for (const [pattern, schema] of Object.entries(patternProperties)) {
      state.visits += name.length;
      if (state.patterns.get(pattern)?.test(name) === true) found.push(schema as Schema);
    }
  }
  return found;
}

function searchUndeclaredItems(
  value: readonly Json[],
  applied: readonly SchemaNode[],
  state: MemberSearch,
): string | undefined {
  for (const [index, item] of value.entries()) {
    if (typeof item !== 'object' || item === null) continue;
    const describing = applied.flatMap((node) => itemSchemas(node, index));
    if (describing.length === 0) continue;
    // `contains` applies to the items that satisfy it: it adds declarations, and describes no item by itself.
    const contained = applied.flatMap(({ contains }) => (isNode(contains) ? [contains] : []));
    const found = searchUndeclared(item, [...describing, ...contained], false, state);
    if (found !== undefined) return `/${index}${found}`;
  }
  return undefined;
}

/** The schemas of an item by its place, or those of all further items and the others. */
export function itemSchemas(node: SchemaNode, index: number, ...others: readonly unknown[]): readonly Schema[] {
  const { prefixItems, items } = node;
  if (Array.isArray(prefixItems) && index < prefixItems.length) return [prefixItems[index] as Schema];
  return [items, node['unevaluatedItems'], ...others].filter(isNode);
}

type UndescribedSearch = {
  readonly copy: SchemaCopy;
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
  const state = { copy, patterns, visits: 0 };
  const found = searchUndescribed(value, [copy.root], reads, '', state);
  if (found === undefined) remember(copy, reads, value);
  return found;
}

function searchUndescribed(
  value: Json,
  schemas: readonly Schema[],
  reads: ArgumentReads,
  pointer: string,
  state: UndescribedSearch,
): string | undefined {
  if (typeof value !== 'object' || value === null || readsNothing(value, reads)) return undefined;
  const applied = appliedSchemas(schemas, state);
  state.visits += applied.length;
  if (state.visits > MAX_VISITS) return pointer;
  return isObject(value)
    ? searchUndescribedMembers(value, applied, reads, pointer, state)
    : searchUndescribedItems(value as readonly Json[], applied, reads, pointer, state);
}

function readsNothing(value: Json, { readsAll, members, items }: ArgumentReads): boolean {
  return !readsAll && (isObject(value) ? members.size === 0 : items === undefined);
}

function searchUndescribedMembers(
  value: JsonObject,
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  pointer: string,
  state: UndescribedSearch,
): string | undefined {
  for (const name of Object.keys(value)) {
    state.visits += applied.length;
    if (state.visits > MAX_VISITS) return pointer;
    const below = reads.readsAll ? reads : reads.members.get(name);
    const found =
      below === undefined
        ? findAmbiguousName(name, applied, reads)
        : searchUndescribedMember(value[name] ?? null, name, applied, below, state);
    if (found !== undefined) return pointer + found;
  }
  return undefined;
}

function searchUndescribedMember(
  member: Json,
  name: string,
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  state: UndescribedSearch,
): string | undefined {
  const at = pointerTo('', name);
  const describing = applied.flatMap((node) => describingMemberSchemas(node, name, state));
  if (describing.length === 0 || state.visits > MAX_VISITS) return at;
  return searchUndescribed(member, describing, reads, at, state);
}

/** A member that no rule reads, and that could be taken for one that is read. */
function findAmbiguousName(name: string, applied: readonly SchemaNode[], reads: ArgumentReads): string | undefined {
  return !isProperty(applied, name) && isAmbiguousWith(name, reads) ? pointerTo('', name) : undefined;
}

function searchUndescribedItems(
  value: readonly Json[],
  applied: readonly SchemaNode[],
  reads: ArgumentReads,
  pointer: string,
  state: UndescribedSearch,
): string | undefined {
  const below = reads.readsAll ? reads : reads.items;
  if (below === undefined) return undefined;
  for (const [index, item] of value.entries()) {
    if (typeof item !== 'object' || item === null) continue;
    const describing = applied.flatMap((node) => itemSchemas(node, index, node['contains']));
    const found = searchUndescribed(item, describing, below, `${pointer}/${index}`, state);
    if (found !== undefined) return found;
  }
  return undefined;
}

const appliedAtRoot = new WeakMap<SchemaNode, readonly SchemaNode[]>();

/** All schemas that apply in place, each once. Cached for the root schema, which every call needs. */
function appliedSchemas(schemas: readonly Schema[], state: UndescribedSearch): readonly SchemaNode[] {
  const { root } = state.copy;
  if (!isNode(root) || schemas.length !== 1 || schemas[0] !== root) return closeInPlace(schemas, state);
  const known = appliedAtRoot.get(root) ?? closeInPlace(schemas, state);
  appliedAtRoot.set(root, known);
  return known;
}

function closeInPlace(schemas: readonly Schema[], state: UndescribedSearch): readonly SchemaNode[] {
  const closed = new Set<SchemaNode>();
  const waiting = [...schemas];
  for (let schema = waiting.pop(); schema !== undefined; schema = waiting.pop()) {
    if (!isNode(schema) || closed.has(schema)) continue;
    closed.add(schema);
    waiting.push(...appliedInPlace(state.copy, schema, true));
  }
  return [...closed];
}

function describingMemberSchemas(node: SchemaNode, name: string, state: UndescribedSearch): readonly Schema[] {
  const found = namedSchemas(node, name, state);
  if (found.length > 0) return found;
  const others = [node['additionalProperties'], node['unevaluatedProperties']].filter(
    (schema): schema is SchemaNode => isNode(schema) && constrains(schema),
  );
  return others.length === 0 && requiredNames(node).has(name) ? [true] : others;
}

function constrains(schema: SchemaNode): boolean {
  for (const _keyword in schema) return true;
  return false;
}
