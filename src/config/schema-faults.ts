// Words for what a JSON Schema validator found: one plain sentence, and what was perhaps meant.
// Never quotes a value from the file, save a short word where one of a few words belongs: a secret
// put in the wrong place must not reach a log.

import type { ErrorObject } from 'ajv/dist/2020.js';
import type { FilePath, PathFault } from './fault.js';
import { nearestWord } from './suggestion.js';
import { suggestQuantity } from './units.js';

type Words = {
  readonly message: string;
  readonly suggestion?: string | undefined;
  readonly rule?: PathFault['rule'];
  readonly at?: PathFault['at'];
  /** Appended to the path of the error. */
  readonly member?: string;
};

type Wording = (error: ErrorObject, schema: Readonly<Record<string, unknown>>) => Words | undefined;

const QUOTABLE_WORD = /^[A-Za-z0-9_.-]{1,32}$/;
const MAX_QUOTED_KEY = 64;

/** The fault that a validator's error stands for; `undefined` for errors that only repeat others. */
export function wordSchemaError(error: ErrorObject): PathFault | undefined {
  // Errors inside `propertyNames` are followed by one of the keyword itself, which has the place.
  if (error.propertyName !== undefined && error.keyword !== 'propertyNames') return undefined;
  const wording = WORDINGS.get(error.keyword) ?? wordOther;
  const words = wording(error, (error.parentSchema ?? {}) as Readonly<Record<string, unknown>>);
  if (words === undefined) return undefined;
  const path = pathOf(error);
  return {
    path: words.member === undefined ? path : [...path, words.member],
    at: words.at ?? 'value',
    severity: 'error',
    rule: words.rule ?? 'wrong-value',
    message: words.message,
    ...(words.suggestion === undefined ? {} : { suggestion: words.suggestion }),
  };
}

const WORDINGS: ReadonlyMap<string, Wording> = new Map<string, Wording>([
  ['additionalProperties', wordUnknownKey],
  ['required', wordMissingKey],
  ['type', wordType],
  ['enum', wordEnum],
  ['const', wordConst],
  ['discriminator', wordTag],
  ['propertyNames', wordName],
  ['minItems', () => ({ message: 'this list must not be empty' })],
  ['minLength', (_, schema) => ({ message: `expected ${nounOf(schema)}, found empty text` })],
  ['minProperties', wordEmptyMap],
  ['maxProperties', (_, schema) => ({ message: `expected ${nounOf(schema)}, not both` })],
  ['uniqueItems', () => ({ message: 'this list names something twice' })],
  ['x-not-available', wordNotAvailable],
  ['if', () => undefined],
]);

function wordOther(error: ErrorObject, schema: Readonly<Record<string, unknown>>): Words {
  const suggestion = suggestUnit(schema, error.data);
  return { message: `expected ${nounOf(schema)}`, suggestion };
}

function wordUnknownKey(error: ErrorObject, schema: Readonly<Record<string, unknown>>): Words {
  const key = String(error.params['additionalProperty']);
  const known = Object.keys((schema['properties'] ?? {}) as object);
  const owner = schema['title'];
  const quoted = quote(key);
  return {
    message:
      typeof owner === 'string' && !owner.includes(',')
        ? `${owner} has no key ${quoted}`
        : `unknown key ${quoted}`,
    suggestion: nearestWord(key, known),
    rule: 'unknown-key',
    at: 'key',
    member: key,
  };
}

function wordMissingKey(error: ErrorObject): Words {
  const key = String(error.params['missingProperty']);
  return { message: `the key "${key}" is missing`, rule: 'missing-key', at: 'key' };
}

function wordType(error: ErrorObject, schema: Readonly<Record<string, unknown>>): Words {
  return {
    message: `expected ${nounOf(schema)}, found ${nounOfValue(error.data)}`,
    suggestion: suggestForType(schema, error.data),
    rule: isSecret(schema) ? 'secret' : 'wrong-value',
  };
}

function wordEnum(error: ErrorObject): Words {
  const options = (error.params['allowedValues'] as readonly unknown[]).map(String);
  const word = error.data;
  const list = options.join(', ');
  if (typeof word !== 'string' || !QUOTABLE_WORD.test(word)) {
    return { message: `expected one of ${list}` };
  }
  return {
    message: `"${word}" is not one of ${list}`,
    suggestion: nearestWord(word, options),
  };
}

function wordConst(error: ErrorObject): Words {
  return { message: `expected ${String(error.params['allowedValue'])}` };
}

function wordTag(error: ErrorObject, schema: Readonly<Record<string, unknown>>): Words {
  const tag = String(error.params['tag']);
  const shapes = (schema['oneOf'] ?? []) as readonly Record<string, Record<string, unknown>>[];
  const options = shapes.map((shape) => {
    const property = shape['properties']?.[tag] as Record<string, unknown> | undefined;
    return String(property?.['const']);
  });
  const word = error.params['tagValue'];
  if (word === undefined) {
    return { message: `the key "${tag}" is missing`, rule: 'missing-key', at: 'key' };
  }
  if (typeof word !== 'string' || !QUOTABLE_WORD.test(word)) {
    return { message: `expected one of ${options.join(', ')}`, member: tag };
  }
  return {
    message: `"${word}" is not one of ${options.join(', ')}`,
    suggestion: nearestWord(word, options),
    member: tag,
  };
}

function wordName(error: ErrorObject): Words {
  const name = String(error.params['propertyName']);
  const noun = (error.schema as { title?: string }).title ?? 'a name';
  return { message: `expected ${noun}`, at: 'key', member: name };
}

function wordEmptyMap(_: ErrorObject, schema: Readonly<Record<string, unknown>>): Words {
  if (isSecret(schema)) {
    return { message: `expected ${nounOf(schema)}, found an empty map`, rule: 'secret' };
  }
  return { message: 'this map must not be empty' };
}

function wordNotAvailable(error: ErrorObject, schema: Readonly<Record<string, unknown>>): Words {
  const isOfKey = !Array.isArray(schema['x-not-available']) && schema['const'] === undefined;
  const subject = isOfKey ? (pathOf(error).at(-1) ?? '') : error.data;
  return {
    message: `${quote(String(subject))} is not available in this version`,
    rule: 'not-available',
    at: isOfKey ? 'key' : 'value',
  };
}

function isSecret(schema: Readonly<Record<string, unknown>>): boolean {
  return String(schema['title']).startsWith('a secret reference');
}

const TYPE_NOUNS: ReadonlyMap<unknown, string> = new Map([
  ['object', 'a map'],
  ['array', 'a list'],
  ['string', 'text'],
  ['boolean', 'true or false'],
  ['integer', 'a whole number'],
  ['number', 'a number'],
]);

function nounOf(schema: Readonly<Record<string, unknown>>): string {
  const title = schema['title'];
  if (typeof title === 'string') return title;
  const types = [schema['type']].flat();
  return types.map((type) => TYPE_NOUNS.get(type) ?? String(type)).join(' or ');
}

function nounOfValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  if (typeof value === 'string') return 'text';
  return typeof value === 'number' ? 'a number' : 'true or false';
}

function suggestForType(
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
): string | undefined {
  if (schema['type'] === 'boolean' && typeof value === 'string') return suggestFlag(value);
  if (schema['type'] === 'array' && typeof value === 'string' && QUOTABLE_WORD.test(value)) {
    return `[${value}]`;
  }
  return suggestUnit(schema, value);
}

function suggestFlag(word: string): string | undefined {
  if (/^(yes|y|on)$/i.test(word)) return 'true';
  if (/^(no|n|off)$/i.test(word)) return 'false';
  return nearestWord(word, ['true', 'false']);
}

function suggestUnit(
  schema: Readonly<Record<string, unknown>>,
  value: unknown,
): string | undefined {
  const kind = /^sallyport-(duration|size|rate)$/.exec(String(schema['format']))?.[1];
  return kind === undefined
    ? undefined
    : suggestQuantity(kind as 'duration' | 'size' | 'rate', value);
}

/** A key as JSON text, cut: control characters in it are shown as escapes. */
export function quote(key: string): string {
  return JSON.stringify(key.length > MAX_QUOTED_KEY ? `${key.slice(0, MAX_QUOTED_KEY)}…` : key);
}

function pathOf(error: ErrorObject): FilePath {
  if (error.instancePath === '') return [];
  return error.instancePath
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^(0|[1-9][0-9]*)$/.test(step) ? Number(step) : step));
}
