// Declares the keys of configuration files (names, quantities, secret references, maps), and reads the values of a
// file by these declarations. Each declaration is a JSON Schema (draft 2020-12) and, for the compiler, the type of
// the key's value in a validated file with its defaults filled in. `title` is the noun used in diagnostics and on the
// reference page; `x-not-available` marks what is accepted by the reader but refused. Quantities are read as they are
// written (durations such as `30s`, sizes such as `1MiB`, rates such as `60/min`): one spelling of each is accepted,
// and for similar spellings the right one is suggested. docs/reference/configuration.md: a number without a unit is an
// error and never interpreted. What validation has accepted is read once more by its declaration: quantities become
// numbers, and references what was read from the secrets and files that they name. A new key needs nothing in that
// reading.

import { type SchemaOptions, type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { isObject, type Json } from '../../protocol/jsonrpc.js';
import type { FilePath } from '../diagnostics.js';

/** The meaning of a key's value, for the gateway only: a symbol does not appear in the JSON Schema that is published. */
export const MEANING: unique symbol = Symbol('meaning');
export type Meaning = 'duration' | 'size' | 'rate' | 'header-name' | 'file-content' | SecretUse;
export type SecretUse =
  | 'gateway-key'
  | 'listener-key'
  | 'tls-key'
  | 'client-key'
  | 'client-secret'
  | 'header-value'
  | 'actor-token'
  | 'break-glass-token'
  | 'signer-key'
  | 'store-url'
  | 'webhook-url'
  | 'webhook-secret';

/** A JSON Schema, as what walks and publishes it sees it. */
export type Schema = { readonly [keyword: string]: unknown; readonly [MEANING]?: Meaning };

/** The keywords that a declaration adds to those of its type. */
type More = SchemaOptions & { readonly [MEANING]?: Meaning };

/** A text that is converted: a duration, a size, a rate or a reference to a secret. */
type Written<Sense extends Meaning> = string & { readonly [MEANING]: Sense };
export type Size = Written<'size'>;
export type SecretReference = { readonly env: string } | { readonly file: string };

/**
 * What becomes of a parsed value in the settings: quantities are numbers, secrets are read, and the key of a
 * duration says that it is in milliseconds.
 */
export type Resolved<Value> =
  Value extends Written<'duration' | 'size'>
    ? number
    : Value extends Written<'rate'>
      ? { readonly count: number; readonly windowMs: number }
      : Value extends SecretReference
        ? string
        : Value extends readonly (infer Item)[]
          ? readonly Resolved<Item>[]
          : Value extends object
            ? {
                readonly [Key in keyof Value as ResolvedKey<Key, Value[Key]>]: Resolved<Value[Key]>;
              }
            : Value;
type ResolvedKey<Key, Value> = [Extract<Value, Written<'duration'>>] extends [never]
  ? Key & PropertyKey
  : `${Key & string}Ms`;

/** The settings of what a schema declares. */
export type SettingsOf<Declaration extends TSchema> = Resolved<Static<Declaration>>;

/** The keyword for what is recognized and refused: the sentence that says where it belongs. */
export const NOT_AVAILABLE = 'x-not-available';

export const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

export const NAME_PATTERN = '^[a-z0-9][a-z0-9_-]{0,62}$';
export const NAME_TITLE = 'a name of lower-case letters, digits, - and _';
/** RFC 6749 §3.3. */
export const SCOPE_PATTERN = '^[\\x21\\x23-\\x5B\\x5D-\\x7E]{1,256}$';

export function text(description: string, more?: More) {
  return Type.String({ minLength: 1, description, ...more });
}

export function oneOfStrings<const Options extends readonly string[]>(
  description: string,
  options: Options,
  more?: More,
) {
  return Type.Unsafe<Options[number]>({ type: 'string', enum: options, description, ...more });
}

/** The one value that a key may have. */
export function literal<const Value extends Json>(value: Value, description: string, more?: More) {
  return Type.Unsafe<Value>({ const: value, ...more, description });
}

/** The value that selects this shape of a union. */
export function tag<const Value extends string>(value: Value) {
  return Type.Unsafe<Value>({ const: value });
}

export function flag(description: string, fallback: boolean) {
  return Type.Boolean({ description, default: fallback });
}

export function count(
  description: string,
  { min, max }: { readonly min: number; readonly max: number },
  fallback?: number,
) {
  const title = `a whole number from ${min} to ${max}`;
  const bounds = { title, minimum: min, maximum: max, description };
  return Type.Integer(fallback === undefined ? bounds : { ...bounds, default: fallback });
}

/** `fallback` is left out of a duration whose default depends on its use. */
export function duration(description: string, fallback?: string) {
  return quantity('duration', 'a duration such as 30s, 5m or 1h', DURATION_PATTERN, description, fallback);
}

/** A duration that may be none at all. */
export function pause(description: string, fallback: string) {
  const title = 'a duration such as 5s or 1m, or 0s';
  return { ...quantity('duration', title, PAUSE_PATTERN, description, fallback), format: 'sallyport-pause' };
}

/** A duration of any length, which no timer waits for. */
export function period(description: string) {
  const title = 'a duration such as 12h or 90d';
  return { ...duration(description), title, format: 'sallyport-period' };
}

export function size(description: string, fallback: string) {
  return quantity('size', 'a size such as 64KiB or 1MiB', SIZE_PATTERN, description, fallback);
}

export function rate(description: string) {
  return quantity('rate', 'a rate such as 60/min', RATE_PATTERN, description);
}

function quantity<Sense extends 'duration' | 'size' | 'rate'>(
  meaning: Sense,
  title: string,
  pattern: string,
  description: string,
  fallback?: string,
) {
  const keywords = { type: 'string', title, format: `sallyport-${meaning}`, pattern, description, [MEANING]: meaning };
  return Type.Unsafe<Written<Sense>>(fallback === undefined ? keywords : { ...keywords, default: fallback });
}

export function list<Item extends TSchema>(description: string, items: Item, more?: More) {
  return Type.Unsafe<readonly Static<Item>[]>({ type: 'array', items, description, ...more });
}

export function scopeList(description: string, more?: More) {
  const scope = Type.String({ title: 'an OAuth scope', pattern: SCOPE_PATTERN });
  return list(description, scope, { uniqueItems: true, ...more });
}

export function textList(description: string, more?: More) {
  return list(description, Type.String({ minLength: 1, title: 'text' }), { uniqueItems: true, ...more });
}

/** An object with a fixed set of keys. A key that has a default, or is optional, may be left out. */
export function record<Keys extends TProperties>(description: string, keys: Keys, more?: More): TObject<Keys> {
  const declared: TSchema = Type.Object(keys, { description, additionalProperties: false, ...more });
  const { required: all = [], ...rest } = declared as TSchema & { readonly required?: readonly string[] };
  const required = all.filter((key) => keys[key]?.['default'] === undefined);
  return (required.length === 0 ? rest : { ...rest, required }) as TObject<Keys>;
}

/** An object whose keys are names chosen by the operator. */
export function named<Value extends TSchema>(description: string, values: Value, more?: More) {
  return Type.Unsafe<Readonly<Record<string, Static<Value>>>>({
    type: 'object',
    description,
    propertyNames: { title: NAME_TITLE, pattern: NAME_PATTERN },
    additionalProperties: values,
    ...more,
  });
}

export const SECRET_TITLE = 'a secret reference, {env: NAME} or {file: PATH}';

/** A reference to a secret. A literal in its position is an error that is never quoted. */
export function secret(description: string, use: SecretUse) {
  return Type.Unsafe<SecretReference>({
    type: 'object',
    title: SECRET_TITLE,
    description,
    properties: {
      env: { type: 'string', minLength: 1, description: 'Name of an environment variable.' },
      file: { type: 'string', minLength: 1, description: 'Path of a file, relative to this one.' },
    },
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 1,
    [MEANING]: use,
  });
}

/** A key that is recognized and refused because it has another place. `message` names it, as the second half of a sentence. */
export function moved(message: string) {
  return Type.Optional(Type.Unsafe<never>({ description: `Moved: ${message}.`, [NOT_AVAILABLE]: message }));
}

/** One of several shapes, selected by the value of one key. */
export function union<Shapes extends readonly TSchema[]>(
  key: string,
  description: string,
  shapes: readonly [...Shapes],
  more?: More,
) {
  return Type.Unsafe<Static<Shapes[number]>>({
    type: 'object',
    description,
    required: [key],
    discriminator: { propertyName: key },
    oneOf: shapes,
    ...more,
  });
}

export const NETWORK = oneOfStrings(
  'Which addresses the host name may resolve to: `public` addresses only, `private` ranges as well, or `loopback` only. With `loopback` and a public `publicUrl` (a sidecar), a control is `degraded`.',
  ['public', 'private', 'loopback'],
  { default: 'public' },
);

export const PLAINTEXT = oneOfStrings(
  'With `accepted`, plain http is possible in a private network: needs `network: private`, and public addresses are then refused. Nothing is encrypted and the server is not authenticated, so a control is `degraded`.',
  ['accepted'],
);

/** A schema that `sallyport schema` prints. */
export function published<Declaration extends TSchema>(id: string, schema: Declaration): Declaration {
  return { $schema: DIALECT, $id: id, ...schema };
}

/** The name of a unit, how many of the smallest unit it has, and other spellings of it. */
type Unit = readonly [name: string, factor: number, spellings: RegExp];

const TIMES: readonly Unit[] = [
  ['ms', 1, /^(ms|msec|millis|milliseconds?)$/i],
  ['s', 1000, /^(s|sec|secs|seconds?)$/i],
  ['m', 60_000, /^(m|min|mins|minutes?)$/i],
  ['h', 3_600_000, /^(h|hr|hrs|hours?)$/i],
  ['d', 86_400_000, /^(d|days?)$/i],
];
const SIZES: readonly Unit[] = [
  ['B', 1, /^(b|bytes?)$/i],
  ['KiB', 1024, /^(k|kb|ki|kib)$/i],
  ['MiB', 1024 ** 2, /^(m|mb|mi|mib)$/i],
  ['GiB', 1024 ** 3, /^(g|gb|gi|gib)$/i],
];
const WINDOWS = TIMES.slice(1).map(([name, ...rest]): Unit => [name === 'm' ? 'min' : name, ...rest]);

function patternOf(units: readonly Unit[], separator = ''): string {
  return `^[1-9][0-9]{0,8}${separator}(${units.map(([name]) => name).join('|')})$`;
}

/** Regular expressions, shared with the published JSON Schemas. */
const DURATION_PATTERN = patternOf(TIMES);
const NO_TIME = '0s';
const PAUSE_PATTERN = `${DURATION_PATTERN}|^${NO_TIME}$`;
export const SIZE_PATTERN = patternOf(SIZES);
const RATE_PATTERN = patternOf(WINDOWS, '/');

/** Platform timers overflow beyond 2^31-1 ms; 24 days stay below that. */
const MAX_DURATION_MS = 24 * 24 * 60 * 60 * 1000;
/** Larger bodies could not be held as one string. */
const MAX_SIZE_BYTES = 256 * 1024 * 1024;

/** Milliseconds of a duration such as `30s`; `undefined` if the text is not a duration or too long a one. */
export function readDurationMs(text: string): number | undefined {
  return readQuantity(text, DURATION_PATTERN, TIMES, MAX_DURATION_MS);
}

/** A century: longer than anything is kept. */
const MAX_PERIOD_MS = 36_525 * 24 * 60 * 60 * 1000;

/** The same for a duration that no timer waits for. */
export function readPeriodMs(text: string): number | undefined {
  return readQuantity(text, DURATION_PATTERN, TIMES, MAX_PERIOD_MS);
}

/** The same for a duration that may be `0s`. */
export function readPauseMs(text: string): number | undefined {
  return text === NO_TIME ? 0 : readDurationMs(text);
}

/** Bytes of a size such as `1MiB`; `undefined` if the text is not a size or too large a one. */
export function readSizeBytes(text: string): number | undefined {
  return readQuantity(text, SIZE_PATTERN, SIZES, MAX_SIZE_BYTES);
}

/** A rate such as `60/min` as a count per window, or `undefined` if the text is not a rate. */
export function readRate(text: string): { count: number; windowMs: number } | undefined {
  if (!new RegExp(RATE_PATTERN).test(text)) return undefined;
  const [count, name] = text.split('/');
  const [, windowMs = 0] = WINDOWS.find((unit) => unit[0] === name) ?? [];
  return { count: Number(count), windowMs };
}

function readQuantity(text: string, pattern: string, units: readonly Unit[], max: number): number | undefined {
  if (!new RegExp(pattern).test(text)) return undefined;
  const name = text.replace(/^[0-9]+/, '');
  const [, factor = 0] = units.find((unit) => unit[0] === name) ?? [];
  const quantity = Number.parseInt(text, 10) * factor;
  return quantity <= max ? quantity : undefined;
}

const UNITS = { duration: TIMES, size: SIZES, rate: WINDOWS };
const DEFAULT_UNITS = { duration: 's', size: 'B', rate: 'min' };

/** The correct spelling for a misspelled duration, size or rate, if it can be recognized. */
export function suggestQuantity(kind: keyof typeof UNITS, written: unknown): string | undefined {
  // A map has no text of its own, and may have a member in the place of `toString`.
  if (typeof written !== 'string' && typeof written !== 'number') return undefined;
  const parts = /^([1-9][0-9]{0,8})(?:\s*(?:\/|per)?\s*([A-Za-z]{1,12}))?$/.exec(String(written));
  if (parts === null) return undefined;
  const [, count, spelling] = parts;
  const unit =
    spelling === undefined ? DEFAULT_UNITS[kind] : UNITS[kind].find(([, , spellings]) => spellings.test(spelling))?.[0];
  const meant = `${count}${kind === 'rate' ? '/' : ''}${unit}`;
  // What is written like this is wrong for another reason, such as its size.
  return unit === undefined || meant === String(written) ? undefined : meant;
}

/** The content of what a value refers to: a secret, or a file. */
export type ReadContent = (path: FilePath, meaning: 'file-content' | SecretUse, reference: unknown) => string;

/**
 * A validated value as settings have it.
 *
 * @throws Error if a quantity was not checked before.
 */
export function resolveMeanings<Declaration extends TSchema>(
  schema: Declaration,
  value: unknown,
  read: ReadContent = noContent,
): SettingsOf<Declaration> {
  return resolveValue(schema, value, [], read) as SettingsOf<Declaration>;
}

function noContent(): never {
  throw new Error('this file refers to no other');
}

function resolveValue(schema: Schema, value: unknown, path: FilePath, read: ReadContent): unknown {
  const meaning = schema[MEANING];
  if (meaning !== undefined) return resolveMeaning(meaning, value, path, read);
  const members = membersOf(schema, value).map(([key, member, below]) => {
    const name = member[MEANING] === 'duration' ? `${key}Ms` : key;
    return [name, resolveValue(member, below, [...path, key], read)] as const;
  });
  if (Array.isArray(value)) return members.map(([, member]) => member);
  return isObject(value) ? Object.fromEntries(members) : value;
}

function resolveMeaning(meaning: Meaning, value: unknown, path: FilePath, read: ReadContent): unknown {
  switch (meaning) {
    case 'duration':
      return checked(readPauseMs(String(value)) ?? readPeriodMs(String(value)));
    case 'size':
      return typeof value === 'number' ? value : checked(readSizeBytes(String(value)));
    case 'rate':
      return checked(readRate(String(value)));
    case 'header-name':
      return String(value).toLowerCase();
    default:
      return read(path, meaning, value);
  }
}

function checked<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('a quantity was not checked before use');
  return value;
}

const ANYTHING: Schema = {};

/** What a map has under a name that somebody chose, which may be that of a member that every object inherits. */
export function memberOf<Value>(map: { readonly [name: string]: Value } | undefined, name: string): Value | undefined {
  return map !== undefined && Object.hasOwn(map, name) ? map[name] : undefined;
}

/** The items of a list or the members of a map, each with its schema; those of unions with that of any shape. */
function membersOf(schema: Schema, value: unknown): readonly (readonly [string | number, Schema, unknown])[] {
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
