// Finds members of a value that no schema declares. An object whose schema has `properties` is described, and
// its members must be declared by a schema that holds for it, as if `unevaluatedProperties: false` stood there; an
// object without `properties`, or with an explicit opening, takes any member. Which alternatives hold is found
// with validators compiled once per schema; a schema without alternatives needs none.
// Source: JSON Schema 2020-12 core §10.2, §10.3 and §11.3; docs/contract.md §3 (`arguments`).

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { pointerTo } from '../../text/json-pointer.js';
import type { LinearRegex } from '../patterns.js';
import {
  isNode,
  resolveReference,
  type Schema,
  type SchemaCopy,
  type SchemaNode,
} from './sanitizer.js';

/** Alternatives of one schema that get a validator; the rest count as holding. */
const MAX_ALTERNATIVES = 100;
/** Schemas that one search may apply; past it, a member counts as undeclared. */
const MAX_VISITS = 200_000;

/** Whether a value satisfies a part of the schema. */
export type Holds = (value: Json) => boolean;

/** The alternatives of a schema whose outcome decides which members are declared, with their JSON pointers. */
export type Alternatives = ReadonlyMap<SchemaNode, string>;

type Search = {
  readonly copy: SchemaCopy;
  readonly patterns: ReadonlyMap<string, LinearRegex>;
  readonly holds: ReadonlyMap<SchemaNode, Holds>;
  /** Schemas that apply nothing else in place. */
  readonly plain: ReadonlySet<SchemaNode>;
  visits: number;
};

/** Returns the pointer (RFC 6901) of the first member that no schema declares. */
type FindUndeclared = (value: Json) => string | undefined;

/** Makes the search for a schema; undefined for a schema that itself says of every object which members it takes. */
export function createUndeclaredSearch(
  copy: SchemaCopy,
  patterns: ReadonlyMap<string, LinearRegex>,
  holds: ReadonlyMap<SchemaNode, Holds>,
): FindUndeclared | undefined {
  if (!reachableSchemas(copy).some((node) => mayLackDeclarations(copy, node))) return undefined;
  const plain = new Set(copy.nodes.filter((node) => !appliesInPlace(node)));
  const top = [copy.root];
  const shape = isNode(copy.root) ? shapeOf(copy, copy.root, true, plain) : 'unknown';
  return (value) =>
    isPlainlyDeclared(value, shape)
      ? undefined
      : search(value, top, true, { copy, patterns, holds, plain, visits: 0 });
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

function shapeOf(
  copy: SchemaCopy,
  node: SchemaNode,
  isTop: boolean,
  plain: ReadonlySet<SchemaNode>,
): Shape {
  if (!inPlace(copy, node).some(declaresAnything)) return 'any';
  const { properties, additionalProperties: others, items } = node;
  const isSimple = [...UNSHAPED, 'additionalItems'].every((keyword) => !(keyword in node));
  if (!plain.has(node) || !isSimple || Array.isArray(items)) return 'unknown';
  const below = (schema: unknown): Shape =>
    isNode(schema) ? shapeOf(copy, schema, false, plain) : 'any';
  const members = Object.entries(isNode(properties) ? properties : {});
  const isOpen = !isDescribing(node, isTop) || isOpening(node);
  return {
    members: new Map(members.map(([name, schema]) => [name, below(schema)])),
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
  ...['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'dependencies'],
];

function appliesInPlace(node: SchemaNode): boolean {
  return IN_PLACE_KEYWORDS.some((keyword) => keyword in node);
}

/** The keywords by which a schema declares members, or leaves them open. */
const MEMBER_KEYWORDS = [
  'properties',
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
];
const ITEM_KEYWORDS = ['items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'contains'];
const BRANCH_LISTS = ['anyOf', 'oneOf'];

/** The alternatives that need a validator: members of anyOf and oneOf, and `if`, where their outcome matters. */
export function findAlternatives(copy: SchemaCopy): Alternatives {
  const pointers = pointersOf(copy);
  const found = new Map<SchemaNode, string>();
  const matters = (schema: unknown): schema is SchemaNode =>
    isNode(schema) && inPlace(copy, schema).some(declaresAnything);
  for (const node of copy.nodes) {
    const branches = BRANCH_LISTS.flatMap((keyword) => schemasIn(node[keyword])).filter(matters);
    const { if: test } = node;
    const isTested = [test, node['then'], node['else']].some(matters);
    for (const branch of isTested && isNode(test) ? [...branches, test] : branches) {
      const pointer = pointers.get(branch);
      if (pointer !== undefined && found.size < MAX_ALTERNATIVES) found.set(branch, pointer);
    }
  }
  return found;
}

function declaresAnything(node: SchemaNode): boolean {
  return [...MEMBER_KEYWORDS, ...ITEM_KEYWORDS].some((keyword) => keyword in node);
}

/** The pointer of each schema within the copy, as a URI fragment. */
function pointersOf({ root, nodes }: SchemaCopy): ReadonlyMap<SchemaNode, string> {
  const known = new Set<unknown>(nodes);
  const pointers = new Map<SchemaNode, string>();
  const waiting: (readonly [unknown, string])[] = [[root, '']];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [value, pointer] = next;
    if (typeof value !== 'object' || value === null) continue;
    if (known.has(value)) pointers.set(value as SchemaNode, pointer);
    // The values of enum and const are no schemas, and none of `nodes` is among them.
    for (const [name, member] of Object.entries(value)) {
      waiting.push([member, pointerTo(pointer, encodeURIComponent(name))]);
    }
  }
  return pointers;
}

/** A schema and all that it applies in place, whatever the value, references resolved. */
function inPlace(copy: SchemaCopy, schema: SchemaNode): readonly SchemaNode[] {
  const closed = new Set<SchemaNode>([schema]);
  for (const node of closed) for (const next of appliedAnyway(copy, node)) closed.add(next);
  return [...closed];
}

function appliedAnyway(copy: SchemaCopy, node: SchemaNode): readonly SchemaNode[] {
  const lists = ['allOf', ...BRANCH_LISTS].flatMap((keyword) => schemasIn(node[keyword]));
  const single = [node['if'], node['then'], node['else'], referenceOf(copy, node)];
  const dependent = ['dependentSchemas', 'dependencies'].flatMap((keyword) => {
    const map = node[keyword];
    return isNode(map) ? Object.values(map) : [];
  });
  return [...lists, ...single, ...dependent].filter(isNode);
}

function referenceOf({ root }: SchemaCopy, node: SchemaNode): Schema | undefined {
  const ref = node['$ref'];
  return typeof ref === 'string' ? resolveReference(root, ref) : undefined;
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
    for (const next of [...schemasIn(node['allOf']), referenceOf(copy, node)]) {
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
function search(
  value: Json,
  schemas: readonly Schema[],
  isTop: boolean,
  state: Search,
): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const applied = applicable(value, schemas, state);
  return isObject(value)
    ? searchMembers(value, applied, isTop, state)
    : searchItems(value as readonly Json[], applied, state);
}

/** The schemas that hold for a value: those given, and what they apply in place. */
function applicable(value: Json, schemas: readonly Schema[], state: Search): readonly SchemaNode[] {
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
function appliedTo(value: Json, node: SchemaNode, state: Search): readonly unknown[] {
  const branches = BRANCH_LISTS.flatMap((keyword) => schemasIn(node[keyword]));
  return [
    referenceOf(state.copy, node),
    ...schemasIn(node['allOf']),
    ...branches.filter((branch) => holds(branch, value, state)),
    ...('if' in node ? testedSchemas(value, node, state) : []),
    ...dependentSchemas(value, node),
  ];
}

function testedSchemas(value: Json, node: SchemaNode, state: Search): readonly unknown[] {
  const { if: test } = node;
  return holds(test, value, state) ? [test, node['then']] : [node['else']];
}

function dependentSchemas(value: Json, node: SchemaNode): readonly unknown[] {
  if (!isObject(value)) return [];
  const maps = [node['dependentSchemas'], node['dependencies']].filter(isNode);
  const named = maps.flatMap((map) => Object.entries(map));
  return named.flatMap(([name, schema]) => (Object.hasOwn(value, name) ? [schema] : []));
}

/** Without a validator the outcome does not matter, or there are too many alternatives: it counts as holding. */
function holds(schema: unknown, value: Json, state: Search): boolean {
  if (!isNode(schema)) return schema === true;
  const validator = state.holds.get(schema);
  return validator === undefined || validator(value);
}

function searchMembers(
  value: JsonObject,
  applied: readonly SchemaNode[],
  isTop: boolean,
  state: Search,
): string | undefined {
  const isClosed = applied.some((node) => isDescribing(node, isTop)) && !applied.some(isOpening);
  for (const name of Object.keys(value)) {
    const member = value[name] ?? null;
    if (typeof member !== 'object' && (!isClosed || isProperty(applied, name))) continue;
    state.visits += applied.length;
    const found = searchMember(member, name, applied, isClosed, state);
    if (found !== undefined) return pointerTo('', name) + found;
  }
  return undefined;
}

function searchMember(
  member: Json,
  name: string,
  applied: readonly SchemaNode[],
  isClosed: boolean,
  state: Search,
): string | undefined {
  const declaring = applied.flatMap((node) => memberSchemas(node, name, state));
  if (state.visits > MAX_VISITS) return '';
  if (declaring.length === 0) return isClosed ? '' : undefined;
  return search(member, declaring, false, state);
}

/** True for a member that one of the schemas has under `properties`. */
export function isProperty(applied: readonly SchemaNode[], name: string): boolean {
  return applied.some(({ properties }) => isNode(properties) && Object.hasOwn(properties, name));
}

/** The schemas that a schema applies to a member of this name. */
function memberSchemas(node: SchemaNode, name: string, state: Search): readonly Schema[] {
  const found = namedSchemas(node, name, state);
  if (found.length > 0) return found;
  const others = [node['additionalProperties'], node['unevaluatedProperties']];
  return others.filter((schema): schema is Schema => schema !== undefined && schema !== false);
}

/** The schemas that a schema has for a member of this name, or for a pattern that the name matches. */
export function namedSchemas(
  { properties, patternProperties }: SchemaNode,
  name: string,
  state: { readonly patterns: ReadonlyMap<string, LinearRegex>; visits: number },
): readonly Schema[] {
  const found: Schema[] = [];
  if (isNode(properties) && Object.hasOwn(properties, name)) found.push(properties[name] as Schema);
  if (isNode(patternProperties)) {
    for (const [pattern, schema] of Object.entries(patternProperties)) {
      state.visits += name.length;
      if (state.patterns.get(pattern)?.test(name) === true) found.push(schema as Schema);
    }
  }
  return found;
}

function searchItems(
  value: readonly Json[],
  applied: readonly SchemaNode[],
  state: Search,
): string | undefined {
  for (const [index, item] of value.entries()) {
    if (typeof item !== 'object' || item === null) continue;
    const describing = applied.flatMap((node) => itemSchemas(node, index));
    if (describing.length === 0) continue;
    // `contains` applies to the items that satisfy it: it adds declarations, and describes no item by itself.
    const contained = applied.flatMap(({ contains }) => (isNode(contains) ? [contains] : []));
    const found = search(item, [...describing, ...contained], false, state);
    if (found !== undefined) return `/${index}${found}`;
  }
  return undefined;
}

function itemSchemas(node: SchemaNode, index: number): readonly Schema[] {
  const { items } = node;
  const tuple = Array.isArray(items) ? items : node['prefixItems'];
  if (Array.isArray(tuple) && index < tuple.length) return [tuple[index] as Schema];
  const rest = Array.isArray(items) ? node['additionalItems'] : items;
  return [rest, node['unevaluatedItems']].filter(isNode);
}
