// Building blocks of the JSON Schemas of configuration files: names, units, secret references, maps.
// `title` is the noun used in diagnostics and on the reference page; `x-not-available` marks what is
// accepted by the reader but refused. Data only, JSON Schema draft 2020-12.

import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import { DURATION_PATTERN, RATE_PATTERN, SIZE_PATTERN } from '../units.js';

export type Schema = JsonObject;

/** The keyword for what this version recognizes and refuses: `true`, `non-empty`, or the refused values. */
export const NOT_AVAILABLE = 'x-not-available';

export const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

const NAME_PATTERN = '^[a-z0-9][a-z0-9_-]{0,62}$';
/** RFC 6749 §3.3. */
export const SCOPE_PATTERN = '^[\\x21\\x23-\\x5B\\x5D-\\x7E]{1,256}$';

export function text(description: string, more: Schema = {}): Schema {
  return { type: 'string', minLength: 1, description, ...more };
}

export function oneOfStrings(
  description: string,
  options: readonly string[],
  more: Schema = {},
): Schema {
  return { type: 'string', enum: options, description, ...more };
}

export function flag(description: string, fallback: boolean): Schema {
  return { type: 'boolean', description, default: fallback };
}

export function count(
  description: string,
  bounds: { min: number; max: number },
  fallback?: number,
): Schema {
  return {
    type: 'integer',
    title: `a whole number from ${bounds.min} to ${bounds.max}`,
    minimum: bounds.min,
    maximum: bounds.max,
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
  };
}

export function duration(description: string, fallback?: string): Schema {
  return quantity('a duration such as 30s, 5m or 1h', 'duration', DURATION_PATTERN, {
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
  });
}

export function size(description: string, fallback?: string): Schema {
  return quantity('a size such as 64KiB or 1MiB', 'size', SIZE_PATTERN, {
    description,
    ...(fallback === undefined ? {} : { default: fallback }),
  });
}

export function rate(description: string): Schema {
  return quantity('a rate such as 60/min', 'rate', RATE_PATTERN, { description });
}

function quantity(title: string, format: string, pattern: string, more: Schema): Schema {
  return { type: 'string', title, format: `sallyport-${format}`, pattern, ...more };
}

export function scopeList(description: string, more: Schema = {}): Schema {
  const scope = { type: 'string', title: 'an OAuth scope', pattern: SCOPE_PATTERN };
  return { type: 'array', items: scope, uniqueItems: true, description, ...more };
}

export function textList(description: string, more: Schema = {}): Schema {
  const items = { type: 'string', minLength: 1, title: 'text' };
  return { type: 'array', items, uniqueItems: true, description, ...more };
}

/** An object with a fixed set of keys. */
export function record(
  description: string,
  properties: Readonly<Record<string, Schema>>,
  more: Schema = {},
): Schema {
  return { type: 'object', description, properties, additionalProperties: false, ...more };
}

/** An object whose keys are names chosen by the operator. */
export function named(description: string, values: Schema, more: Schema = {}): Schema {
  return {
    type: 'object',
    description,
    propertyNames: {
      title: 'a name of lower-case letters, digits, - and _',
      pattern: NAME_PATTERN,
    },
    additionalProperties: values,
    ...more,
  };
}

export function name(description: string): Schema {
  return text(description, {
    title: 'a name of lower-case letters, digits, - and _',
    pattern: NAME_PATTERN,
  });
}

/** A reference to a secret. A literal in its position is an error that is never quoted. */
export function secret(description: string): Schema {
  return {
    type: 'object',
    title: 'a secret reference, {env: NAME} or {file: PATH}',
    description,
    properties: {
      env: { type: 'string', minLength: 1, description: 'Name of an environment variable.' },
      file: { type: 'string', minLength: 1, description: 'Path of a file, relative to this one.' },
    },
    additionalProperties: false,
    minProperties: 1,
    maxProperties: 1,
  };
}

/** A key that is recognized and refused because this version does not implement it. */
export function unavailable(description: string, how: true | 'non-empty' = true): Schema {
  return { description: `Not available in this version. ${description}`, [NOT_AVAILABLE]: how };
}

/** One of several shapes, selected by the value of one key. */
export function union(tag: string, description: string, shapes: readonly Schema[]): Schema {
  const oneOf: readonly Json[] = shapes;
  return {
    type: 'object',
    description,
    required: [tag],
    discriminator: { propertyName: tag },
    oneOf,
  };
}

export function networkOf(fallback: boolean): Schema {
  return oneOfStrings(
    'Where the origin may resolve: `public` addresses only, also `private` ranges, or `loopback` only.',
    ['public', 'private', 'loopback'],
    fallback ? { default: 'public' } : {},
  );
}
