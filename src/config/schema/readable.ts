// What can be read of a file that may be wrong. Checks read it, so that one run of them finds every mistake and
// the compiler knows the keys that they read: a value of the wrong kind is an empty one, which validation has
// reported, and any key may be absent.

import type { Schema, Typed } from './definitions.js';
import { membersOf } from './meanings.js';

type KeyOf<Value> = Value extends unknown ? keyof Value : never;
type MemberOf<Value, Key> = Value extends unknown
  ? Key extends keyof Value
    ? Exclude<Value[Key], undefined>
    : never
  : never;

/** Of the shapes of a union, the keys of any; of enumerated texts, any text. */
export type Readable<Value> = [Value] extends [string]
  ? string
  : [Value] extends [readonly (infer Item)[]]
    ? readonly Readable<Item>[]
    : [Value] extends [object]
      ? { readonly [Key in KeyOf<Value>]?: Readable<MemberOf<Value, Key>> }
      : Value;

/** The readable part of a document, whose maps have no prototype. */
export function readable<Value>(schema: Typed<Value>, document: unknown): Readable<Value> {
  return readValue(schema, document) as Readable<Value>;
}

function readValue(schema: Schema, value: unknown): unknown {
  const types = [schema['type'] ?? []].flat();
  if (types.length > 0 && !types.includes(kindOf(value))) return emptyOf(types[0]);
  const members = membersOf(schema, value).map(
    ([key, member, below]) => [key, readValue(member, below)] as const,
  );
  if (Array.isArray(value)) return members.map(([, member]) => member);
  if (kindOf(value) !== 'object') return value;
  return Object.assign(Object.create(null), Object.fromEntries(members));
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' ? 'integer' : typeof value;
}

function emptyOf(type: unknown): unknown {
  if (type === 'string') return '';
  if (type === 'array') return [];
  return type === 'object' ? Object.create(null) : undefined;
}

/** The entries of a map that may be absent. */
export function entriesOf<Value>(
  map: { readonly [key: string]: Value } | undefined,
): readonly (readonly [string, NonNullable<Value>])[] {
  return Object.entries(map ?? {}) as [string, NonNullable<Value>][];
}

/** The texts of a list that may be absent, with their indexes, without empty ones. */
export function textsOf(
  list: readonly string[] | undefined,
): readonly (readonly [number, string])[] {
  return [...(list ?? []).entries()].filter(([, text]) => text !== '');
}
