// Reads the values of a configuration file by their schemas. The checks read a file that may be wrong as far as it can be
// read: any key may be absent, and a value of the wrong kind, which validation has reported, is empty. So one run finds
// every mistake, and the compiler knows the keys that the checks read. Settings are made of a validated file: quantities
// become numbers, and references what was read from the secrets and files that they name, wherever they are in the file.
// A new key needs nothing here.

import { isObject } from '../../protocol/jsonrpc.js';
import type { FilePath } from '../diagnostics.js';
import {
  MEANING,
  type Meaning,
  type Resolved,
  requireDurationMs,
  requireRate,
  requireSizeBytes,
  type Schema,
  type Typed,
} from './definitions.js';

type KeyOf<Value> = Value extends unknown ? keyof Value : never;
type MemberOf<Value, Key> = Value extends unknown
  ? Key extends keyof Value
    ? Exclude<Value[Key], undefined>
    : never
  : never;

/** What can be read of a value: the keys that any shape of a union has, and any text for enumerated texts. */
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

type FoundMeaning = {
  readonly path: FilePath;
  readonly meaning: Meaning;
  readonly value: unknown;
};

/** Every value that stands for something else, with its path. The shape of the values may be wrong. */
export function findMeanings(
  schema: Schema,
  value: unknown,
  path: FilePath = [],
): readonly FoundMeaning[] {
  const meaning = schema[MEANING];
  if (meaning !== undefined) return [{ path, meaning, value }];
  return membersOf(schema, value).flatMap(([key, member, below]) =>
    findMeanings(member, below, [...path, key]),
  );
}

/** The text that was read for a path: of a secret, or of a file. */
type ContentAt = (path: FilePath) => string;

/**
 * A validated value as settings have it.
 *
 * @throws Error if a quantity or a reference was not checked before.
 */
export function resolveMeanings<Value>(
  schema: Typed<Value>,
  value: unknown,
  contentAt: ContentAt = noContent,
): Resolved<Value> {
  return resolveValue(schema, value, [], contentAt) as Resolved<Value>;
}

function noContent(): never {
  throw new Error('this file refers to no other');
}

function resolveValue(
  schema: Schema,
  value: unknown,
  path: FilePath,
  contentAt: ContentAt,
): unknown {
  const meaning = schema[MEANING];
  if (meaning !== undefined) return resolveMeaning(meaning, value, () => contentAt(path));
  const members = membersOf(schema, value).map(([key, member, below]) => {
    const name = member[MEANING] === 'duration' ? `${key}Ms` : key;
    return [name, resolveValue(member, below, [...path, key], contentAt)] as const;
  });
  if (Array.isArray(value)) return members.map(([, member]) => member);
  return isObject(value) ? Object.fromEntries(members) : value;
}

function resolveMeaning(meaning: Meaning, value: unknown, content: () => string): unknown {
  switch (meaning) {
    case 'duration':
      return requireDurationMs(String(value));
    case 'size':
      return typeof value === 'number' ? value : requireSizeBytes(String(value));
    case 'rate':
      return requireRate(String(value));
    case 'header-name':
      return String(value).toLowerCase();
    default:
      return content();
  }
}

const ANYTHING: Schema = {};

/** The items of a list or the members of a map, each with its schema; those of unions with that of any shape. */
export function membersOf(
  schema: Schema,
  value: unknown,
): readonly (readonly [string | number, Schema, unknown])[] {
  if (Array.isArray(value)) {
    const items = schemaOf(schema['items']);
    return value.map((item: unknown, index) => [index, items, item]);
  }
  if (!isObject(value)) return [];
  const shapes = [schema, ...((schema['oneOf'] ?? []) as readonly Schema[])];
  const known = new Map(shapes.flatMap((shape) => Object.entries(shape['properties'] ?? {})));
  return Object.entries(value).map(([key, member]) => {
    return [key, schemaOf(known.get(key) ?? schema['additionalProperties']), member];
  });
}

function schemaOf(schema: unknown): Schema {
  return isObject(schema) ? schema : ANYTHING;
}
