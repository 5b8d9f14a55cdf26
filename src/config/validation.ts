// Holds plain values to one of our JSON Schemas, fills in its defaults, and words each mistake.
// Judges shape only; what the parts mean together is judged elsewhere. Never quotes a value, except
// for a word where one of a few words belongs. JSON Schema draft 2020-12.

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { PathDiagnostic } from './fault.js';
import { describeSchemaError } from './schema-faults.js';
import { NOT_AVAILABLE, type Schema } from './schema-parts.js';
import { readDurationMs, readRate, readSizeBytes } from './units.js';

const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  useDefaults: true,
  discriminator: true,
  strictTypes: false,
  allowUnionTypes: true,
  ownProperties: true,
});
ajv.addKeyword({ keyword: NOT_AVAILABLE, validate: isAvailable, errors: false });
ajv.addFormat('sallyport-duration', (text: string) => readDurationMs(text) !== undefined);
ajv.addFormat('sallyport-size', (text: string) => readSizeBytes(text) !== undefined);
ajv.addFormat('sallyport-rate', (text: string) => readRate(text) !== undefined);

const compiled = new WeakMap<Schema, ValidateFunction>();

/**
 * The mistakes of a value under one of our own schemas. Fills the schema's defaults into the value.
 *
 * @throws Error where the schema itself is invalid, which tests exclude.
 */
export function validateShape(schema: Schema, value: unknown): readonly PathDiagnostic[] {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(schema);
    compiled.set(schema, validate);
  }
  if (validate(value)) return [];
  return onePerPlace((validate.errors ?? []).flatMap(describeAjvError));
}

function describeAjvError(error: ErrorObject): readonly PathDiagnostic[] {
  const diagnostic = describeSchemaError(error);
  return diagnostic === undefined ? [] : [diagnostic];
}

/** A value that is wrong in several ways is reported once: the first way says enough. */
function onePerPlace(diagnostics: readonly PathDiagnostic[]): readonly PathDiagnostic[] {
  const seen = new Set<string>();
  return diagnostics.filter((diagnostic) => {
    const isOfChild = diagnostic.rule === 'unknown-key' || diagnostic.rule === 'missing-key';
    const place = JSON.stringify([diagnostic.path, isOfChild ? diagnostic.message : '']);
    if (seen.has(place)) return false;
    seen.add(place);
    return true;
  });
}

function isAvailable(how: true | 'non-empty' | readonly unknown[], value: unknown): boolean {
  if (how === true) return false;
  if (how !== 'non-empty') return !how.includes(value);
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
