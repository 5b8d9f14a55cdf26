// Faults of validation as sentences: where in the value, by the schema's own names, and what is expected.
// Never quotes a value, nor a member name that the schema does not declare: those come from the wire.

import type { ErrorObject } from 'ajv';
import type { SchemaError } from './definition.js';

/** Most faults that one check reports. */
export const MAX_SCHEMA_ERRORS = 8;
/** Longest name of a schema that is repeated in a fault, in characters. */
const MAX_NAME_CHARS = 64;

const UNPRINTABLE = /[^\x20-\x7e]/g;

/** The pointer with every segment replaced by `*` that is neither an index nor a name of the schema. */
export function maskPointer(pointer: string, names: ReadonlySet<string>): string {
  if (pointer === '') return '';
  const masked = pointer
    .split('/')
    .slice(1)
    .map((segment) => {
      if (/^[0-9]{1,7}$/.test(segment)) return segment;
      const name = segment.replaceAll('~1', '/').replaceAll('~0', '~');
      return names.has(name) ? printable(segment) : '*';
    });
  return `/${masked.join('/')}`;
}

/** The faults of one check, at most eight, each said once. */
export function describeErrors(
  errors: readonly ErrorObject[],
  names: ReadonlySet<string>,
): readonly SchemaError[] {
  const schemaErrors = new Map<string, SchemaError>();
  for (const error of errors) {
    if (schemaErrors.size === MAX_SCHEMA_ERRORS) break;
    const schemaError = {
      pointer: maskPointer(error.instancePath, names),
      message: describe(error),
    };
    schemaErrors.set(`${schemaError.pointer} ${schemaError.message}`, schemaError);
  }
  return [...schemaErrors.values()];
}

const WITH_LIMIT: ReadonlyMap<string, string> = new Map([
  ['maximum', 'must be at most'],
  ['minimum', 'must be at least'],
  ['exclusiveMaximum', 'must be less than'],
  ['exclusiveMinimum', 'must be more than'],
  ['maxLength', 'has too many characters, the most is'],
  ['minLength', 'has too few characters, the least is'],
  ['maxItems', 'has too many items, the most is'],
  ['minItems', 'has too few items, the least is'],
  ['maxProperties', 'has too many members, the most is'],
  ['minProperties', 'has too few members, the least is'],
]);

const FIXED: ReadonlyMap<string, string> = new Map([
  ['enum', 'must be one of the listed values'],
  ['const', 'must be the one allowed value'],
  ['pattern', 'does not have the required form'],
  ['uniqueItems', 'must not have an item twice'],
  ['contains', 'lacks a required item'],
  ['anyOf', 'matches none of the alternatives'],
  ['oneOf', 'must match exactly one of the alternatives'],
  ['not', 'is of a form that is excluded'],
  ['if', 'does not satisfy a condition'],
  ['propertyNames', 'has a member with a name that is not allowed'],
  ['additionalProperties', 'has a member that is not allowed'],
  ['unevaluatedProperties', 'has a member that is not allowed'],
  ['additionalItems', 'has too many items'],
  ['unevaluatedItems', 'has too many items'],
  ['false schema', 'is not allowed'],
]);

function describe(error: ErrorObject): string {
  const params = error.params as { readonly [name: string]: unknown };
  const limited = WITH_LIMIT.get(error.keyword);
  if (limited !== undefined) return `${limited} ${Number(params['limit'])}`;
  if (error.keyword === 'type') return `must be ${typeNames(params['type'])}`;
  if (error.keyword === 'required' || error.keyword === 'dependentRequired') {
    return `lacks the member "${printable(String(params['missingProperty']))}"`;
  }
  if (error.keyword === 'format') return `must be a valid ${printable(String(params['format']))}`;
  if (error.keyword === 'multipleOf')
    return `must be a multiple of ${Number(params['multipleOf'])}`;
  return FIXED.get(error.keyword) ?? 'does not satisfy the schema';
}

function typeNames(type: unknown): string {
  const names: readonly unknown[] = Array.isArray(type) ? type : [type];
  return names.map(String).join(' or ');
}

function printable(name: string): string {
  return name.replace(UNPRINTABLE, '?').slice(0, MAX_NAME_CHARS);
}
