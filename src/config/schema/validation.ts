// Reads a YAML file that an operator wrote (text/yaml.ts has what is accepted), validates it against a JSON Schema
// of the configuration, fills in its defaults, and describes each mistake in one sentence with a suggestion. Checks
// the shape only. Never quotes a value, except a short one where an enumerated value is expected: a misplaced secret
// must not reach a log. docs/reference/configuration.md; JSON Schema draft 2020-12.

import type { Static, TSchema } from '@sinclair/typebox';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { pointerTo, stepsOf } from '../../text/json-members.js';
import { nearestCandidate } from '../../text/wording.js';
import { type Locate, readYaml, type YamlLimits } from '../../text/yaml.js';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  type PathDiagnostic,
  type ReportDiagnostic,
} from '../diagnostics.js';
import { decodeUtf8 } from '../files.js';
import {
  NAME_PATTERN,
  NAME_TITLE,
  NOT_AVAILABLE,
  readDurationMs,
  readPauseMs,
  readPeriodMs,
  readRate,
  readSizeBytes,
  type Schema,
  SECRET_TITLE,
  suggestQuantity,
} from './declarations.js';

type DiagnosticText = {
  readonly message: string;
  readonly suggestion?: string | undefined;
  readonly rule?: PathDiagnostic['rule'];
  readonly at?: PathDiagnostic['at'];
  /** Appended to the path of the error. */
  readonly member?: string;
};

/** The keywords of a schema. */
type Keywords = Readonly<Record<string, unknown>>;

type DescribeError = (error: ErrorObject, schema: Keywords) => DiagnosticText | undefined;

const QUOTABLE_VALUE = /^[A-Za-z0-9_.-]{1,32}$/;
const MAX_QUOTED_KEY = 64;

/** The diagnostic of a validator error; none for errors that only repeat others. */
function describeSchemaError(error: ErrorObject): readonly PathDiagnostic[] {
  // Errors inside `propertyNames` are followed by an error of the keyword itself, which has the position.
  if (error.propertyName !== undefined && error.keyword !== 'propertyNames') return [];
  const describe = DESCRIPTIONS.get(error.keyword) ?? describeOther;
  const text = describe(error, (error.parentSchema ?? {}) as Keywords);
  if (text === undefined) return [];
  const { message, suggestion, rule = 'wrong-value', at = 'value', member } = text;
  const path = [...pathOf(error), ...(member === undefined ? [] : [member])];
  return [{ path, at, severity: 'error', rule, message, suggestion }];
}

const DESCRIPTIONS: ReadonlyMap<string, DescribeError> = new Map<string, DescribeError>([
  ['additionalProperties', describeUnknownKey],
  ['required', describeMissingKey],
  ['type', describeType],
  ['enum', describeEnum],
  ['const', describeConst],
  ['discriminator', describeTag],
  ['propertyNames', describeName],
  ['minItems', () => ({ message: 'this list must not be empty' })],
  ['minLength', (_, schema) => ({ message: `expected ${nounOf(schema)}, found empty text` })],
  ['minProperties', describeEmptyMap],
  ['maxProperties', (_, schema) => ({ message: `expected ${nounOf(schema)}, not both` })],
  ['uniqueItems', () => ({ message: 'this list names something twice' })],
  ['x-not-available', describeNotAvailable],
  ['if', () => undefined],
]);

function describeOther(error: ErrorObject, schema: Keywords): DiagnosticText {
  const suggestion = suggestUnit(schema, error.data);
  return { message: `expected ${nounOf(schema)}`, suggestion };
}

function describeUnknownKey(error: ErrorObject, schema: Keywords): DiagnosticText {
  const key = String(error.params['additionalProperty']);
  const known = Object.keys((schema['properties'] ?? {}) as object);
  const owner = schema['title'];
  const quoted = quote(key);
  return {
    message:
      typeof owner === 'string' && !owner.includes(',') ? `${owner} has no key ${quoted}` : `unknown key ${quoted}`,
    suggestion: nearestCandidate(key, known) ?? findNestedKey(key, schema),
    rule: 'unknown-key',
    at: 'key',
    member: key,
  };
}

/** Where the map below has a key of this name, or one that ends in it, if only one does: `limits.requestTimeout`. */
function findNestedKey(key: string, schema: Keywords): string | undefined {
  const suffix = key.toLowerCase();
  const paths = nestedKeys(schema, MAX_NESTED).filter((path) => {
    const name = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
    return name === suffix || (suffix.length >= MIN_SUFFIX && name.endsWith(suffix));
  });
  return paths.length === 1 ? paths[0] : undefined;
}

const MAX_NESTED = 2;
const MIN_SUFFIX = 4;

function nestedKeys(schema: Keywords, depth: number): readonly string[] {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Keywords>);
  return properties.flatMap(([owner, below]) => [
    ...Object.keys((below['properties'] ?? {}) as object).map((key) => `${owner}.${key}`),
    ...(depth > 1 ? nestedKeys(below, depth - 1).map((path) => `${owner}.${path}`) : []),
  ]);
}

function describeMissingKey(error: ErrorObject): DiagnosticText {
  const key = String(error.params['missingProperty']);
  return { message: `the key "${key}" is missing`, rule: 'missing-key', at: 'key' };
}

function describeType(error: ErrorObject, schema: Keywords): DiagnosticText {
  if (error.data === null && error.instancePath === '') {
    return { message: `the file is empty; expected ${nounOf(schema)}` };
  }
  return {
    message: `expected ${nounOf(schema)}, found ${nounOfValue(error.data)}${quotingAdvice(schema, error.data)}`,
    suggestion: suggestForType(schema, error.data),
    rule: isSecret(schema) ? 'secret' : 'wrong-value',
  };
}

function describeEnum(error: ErrorObject): DiagnosticText {
  const options = (error.params['allowedValues'] as readonly unknown[]).map(String);
  const value = error.data;
  const list = options.join(', ');
  if (typeof value !== 'string' || !QUOTABLE_VALUE.test(value)) {
    return { message: `expected one of ${list}` };
  }
  return {
    message: `"${value}" is not one of ${list}`,
    suggestion: nearestCandidate(value, options),
  };
}

function describeConst({ data, params }: ErrorObject): DiagnosticText {
  const isBare = typeof data === 'number' || typeof data === 'boolean';
  const found = isBare ? String(data) : nounOfValue(data);
  return { message: `expected ${String(params['allowedValue'])}, found ${found}` };
}

function describeTag(error: ErrorObject, schema: Keywords): DiagnosticText {
  const tag = String(error.params['tag']);
  const shapes = (schema['oneOf'] ?? []) as readonly Record<string, Record<string, unknown>>[];
  const options = shapes.map((shape) => {
    const property = shape['properties']?.[tag] as Record<string, unknown> | undefined;
    return String(property?.['const']);
  });
  const value = error.params['tagValue'];
  if (value === undefined) {
    return { message: `the key "${tag}" is missing`, rule: 'missing-key', at: 'key' };
  }
  if (typeof value !== 'string' || !QUOTABLE_VALUE.test(value)) {
    return { message: `expected one of ${options.join(', ')}`, member: tag };
  }
  return {
    message: `"${value}" is not one of ${options.join(', ')}`,
    suggestion: nearestCandidate(value, options),
    member: tag,
  };
}

function describeName(error: ErrorObject): DiagnosticText {
  const name = String(error.params['propertyName']);
  const noun = (error.schema as { title?: string }).title ?? 'a name';
  const folded = name.toLowerCase().replace(/[^a-z0-9_-]+/g, '-');
  const isName = noun === NAME_TITLE && new RegExp(NAME_PATTERN).test(folded);
  const suggestion = isName ? folded : undefined;
  return { message: `${quote(name)} is not ${noun}`, suggestion, at: 'key', member: name };
}

function describeEmptyMap(_: ErrorObject, schema: Keywords): DiagnosticText {
  if (isSecret(schema)) {
    return { message: `expected ${nounOf(schema)}, found an empty map`, rule: 'secret' };
  }
  return { message: 'this map must not be empty' };
}

function describeNotAvailable(error: ErrorObject, { [NOT_AVAILABLE]: place }: Keywords): DiagnosticText {
  const path = pathOf(error);
  const key = quote(String(path.at(-1) ?? ''));
  const message = `${key} ${String(place).replaceAll('<name>', String(path.at(-2)))}`;
  return { message, rule: 'unknown-key', at: 'key' };
}

function isSecret(schema: Keywords): boolean {
  return schema['title'] === SECRET_TITLE;
}

const TYPE_NOUNS: ReadonlyMap<unknown, string> = new Map([
  ['object', 'a map'],
  ['array', 'a list'],
  ['string', 'text'],
  ['boolean', 'true or false'],
  ['integer', 'a whole number'],
  ['number', 'a number'],
]);

function nounOf(schema: Keywords): string {
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

/** Quotes make text of a number, and their absence a number of text. */
function quotingAdvice(schema: Keywords, value: unknown): string {
  const types = [schema['type']].flat();
  const isNumber = types.includes('integer') || types.includes('number');
  if (isNumber && typeof value === 'string' && /^-?[0-9]+$/.test(value)) {
    return '; remove the quotes';
  }
  const isBare = typeof value === 'number' || typeof value === 'boolean';
  const isPlainText = types.includes('string') && schema['format'] === undefined;
  return isBare && isPlainText ? '; put it into quotes' : '';
}

function suggestForType(schema: Keywords, value: unknown): string | undefined {
  if (schema['type'] === 'boolean' && typeof value === 'string') return suggestFlag(value);
  if ([schema['type']].flat().includes('array') && typeof value === 'string' && QUOTABLE_VALUE.test(value)) {
    return `[${value}]`;
  }
  return suggestUnit(schema, value);
}

function suggestFlag(flag: string): string | undefined {
  if (/^(yes|y|on)$/i.test(flag)) return 'true';
  if (/^(no|n|off)$/i.test(flag)) return 'false';
  return nearestCandidate(flag, ['true', 'false']);
}

function suggestUnit(schema: Keywords, value: unknown): string | undefined {
  const kind = /^sallyport-(duration|size|rate)$/.exec(
    String(schema['format']).replace(/period|pause/, 'duration'),
  )?.[1];
  return kind === undefined ? undefined : suggestQuantity(kind as 'duration' | 'size' | 'rate', value);
}

/** A key as a JSON string, truncated; control characters are escaped. */
export function quote(key: string): string {
  return JSON.stringify(key.length > MAX_QUOTED_KEY ? `${key.slice(0, MAX_QUOTED_KEY)}…` : key);
}

/** Reports a reference to a name that the file does not define. `at`: whether the name is a key or a value. */
export function checkName(
  path: FilePath,
  kind: 'upstream' | 'issuer' | 'inspection profile',
  name: string,
  known: readonly string[],
  report: ReportDiagnostic,
  at: 'key' | 'value' = 'value',
): void {
  if (known.includes(name)) return;
  const suggestion = nearestCandidate(name, known);
  report(path, `unknown ${kind} ${quote(name)}${listOf(known, suggestion)}`, 'unknown-name', { at, suggestion });
}

const MAX_LISTED_NAMES = 8;

/** The names there are, where none is near and they are few. */
function listOf(known: readonly string[], suggestion: string | undefined): string {
  const isShown = suggestion === undefined && known.length > 0 && known.length <= MAX_LISTED_NAMES;
  return isShown ? `; the gateway file has ${known.map(quote).join(', ')}` : '';
}

function pathOf(error: ErrorObject): FilePath {
  return pathTo(error.instancePath);
}

function pathTo(pointer: string): FilePath {
  return stepsOf(pointer).map((step) => (/^(0|[1-9][0-9]*)$/.test(step) ? Number(step) : step));
}

const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  useDefaults: true,
  discriminator: true,
  strictTypes: false,
  allowUnionTypes: true,
  ownProperties: true,
  // INVARIANT: ajv optimizes no code. For that it makes a thousand objects whose first member is the name of a variable,
  // and V8 then has no room for further hidden classes of plain objects, which makes all code slow that reads them
  // (docs/reference/performance.md).
  code: { optimize: false },
});
ajv.addKeyword({ keyword: NOT_AVAILABLE, validate: () => false, errors: false });
ajv.addFormat('sallyport-duration', (text: string) => readDurationMs(text) !== undefined);
ajv.addFormat('sallyport-pause', (text: string) => readPauseMs(text) !== undefined);
ajv.addFormat('sallyport-period', (text: string) => readPeriodMs(text) !== undefined);
ajv.addFormat('sallyport-size', (text: string) => readSizeBytes(text) !== undefined);
ajv.addFormat('sallyport-rate', (text: string) => readRate(text) !== undefined);

const compiled = new WeakMap<Schema, ValidateFunction>();

type Validated =
  | {
      readonly isValid: true;
      /** A copy of the value with the defaults of the schema. */
      readonly value: unknown;
    }
  /** At least one diagnostic. */
  | { readonly isValid: false; readonly diagnostics: readonly [PathDiagnostic, ...PathDiagnostic[]] };

/**
 * Validates a value against one of the configuration's schemas. A misspelt key is reported once, not also as one that
 * is missing, and its value is validated as that of the key that was probably meant.
 *
 * @param at a JSON pointer to the value, for diagnostics.
 * @throws Error if the schema itself is invalid, which tests exclude.
 */
export function validateShape(schema: Schema, written: unknown, at = ''): Validated {
  // Defaults, which are filled in, would hide what is missing.
  const value: unknown = structuredClone(written);
  // A default of the whole value has no effect, and ajv refuses it at the root.
  const { default: _, ...root } = schema;
  const validate = compiled.get(schema) ?? ajv.compile(root);
  compiled.set(schema, validate);
  if (validate(value)) return { isValid: true, value };
  const errors = validate.errors ?? [];
  const misspelt = errors.flatMap((error) => findMisspelt(error, written));
  const meant = new Set(misspelt.map(({ map, key }) => JSON.stringify([map, key])));
  const own = errors
    .filter(({ instancePath, params }) => !meant.has(JSON.stringify([instancePath, params['missingProperty']])))
    .flatMap((error) => describeSchemaError({ ...error, instancePath: at + error.instancePath }));
  const below = misspelt.flatMap((one) => {
    const validated = validateShape(one.schema, one.value, at + one.pointer);
    return validated.isValid ? [] : validated.diagnostics;
  });
  const [first = unnamedError(at), ...others] = onePerPath([...own, ...below]);
  return { isValid: false, diagnostics: [first, ...others] };
}

/** Of a value whose errors all count as repetitions of others: it is not valid all the same. */
function unnamedError(at: string): PathDiagnostic {
  const message = 'this is not of the form that the schema describes';
  return { path: pathTo(at), at: 'value', severity: 'error', rule: 'wrong-value', message, suggestion: undefined };
}

type Misspelt = {
  /** JSON pointers to the map, and to the value under the misspelt key. */
  readonly map: string;
  readonly pointer: string;
  /** The key that was probably meant. */
  readonly key: string;
  readonly schema: Schema;
  readonly value: unknown;
};

/** An unknown key near one that the map does not have. */
function findMisspelt(error: ErrorObject, written: unknown): readonly Misspelt[] {
  if (error.keyword !== 'additionalProperties') return [];
  const map = error.instancePath;
  const name = String(error.params['additionalProperty']);
  const known = ((error.parentSchema as Keywords)['properties'] ?? {}) as Readonly<Record<string, Schema>>;
  const key = nearestCandidate(name, Object.keys(known));
  const schema = key === undefined ? undefined : known[key];
  const found = stepsOf(map).reduce((value, step) => (value as Record<string, unknown>)[step], written) as object;
  if (key === undefined || schema === undefined || Object.hasOwn(found, key)) return [];
  return [{ map, pointer: pointerTo(map, name), key, schema, value: (found as Record<string, unknown>)[name] }];
}

/** Reports a value that is wrong in several ways once, by the first error. */
function onePerPath(diagnostics: readonly PathDiagnostic[]): readonly PathDiagnostic[] {
  const seen = new Set<string>();
  return diagnostics.filter((diagnostic) => {
    const isOfChild = diagnostic.rule === 'unknown-key' || diagnostic.rule === 'missing-key';
    const pathKey = JSON.stringify([diagnostic.path, isOfChild ? diagnostic.message : '']);
    if (seen.has(pathKey)) return false;
    seen.add(pathKey);
    return true;
  });
}

export const MAX_FILE_BYTES = 1024 * 1024;
export const MAX_VALUES = 100_000;
const YAML_LIMITS: YamlLimits = { maxDepth: 64, maxValues: MAX_VALUES, isGenerated: false };

type YamlFile = { readonly value: unknown; readonly locate: Locate };

/**
 * The plain values of a YAML file. `source` is `undefined` if there is any error; `diagnostics` then has
 * the errors.
 */
export function readYamlFile(
  file: string,
  bytes: Uint8Array,
): { readonly source: YamlFile | undefined; readonly diagnostics: readonly Diagnostic[] } {
  const refuse = (message: string) => ({
    source: undefined,
    diagnostics: [fileDiagnostic(file, 'yaml', message)],
  });
  if (bytes.byteLength > MAX_FILE_BYTES) {
    return refuse(`the file is larger than ${MAX_FILE_BYTES} bytes`);
  }
  const text = decodeUtf8(bytes);
  if (text === undefined) return refuse('the file is not UTF-8 text');
  const reading = readYaml(text, YAML_LIMITS);
  if (reading.ok) return { source: reading, diagnostics: [] };
  const diagnostics = reading.mistakes.map((mistake): Diagnostic => {
    const { line, column, message } = mistake;
    return { file, line, column, severity: 'error', rule: 'yaml', message };
  });
  return { source: undefined, diagnostics };
}

type DocumentReading<Value> =
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[]; readonly written: unknown }
  | { readonly ok: true; readonly value: Value; readonly locate: Locate };

/** Reads a YAML file and validates it: its value with defaults, or every error of its shape and what is written. */
export function readDocument<Declaration extends TSchema>(
  schema: Declaration,
  file: string,
  bytes: Uint8Array,
): DocumentReading<Static<Declaration>> {
  const { source, diagnostics } = readYamlFile(file, bytes);
  if (source === undefined) return { ok: false, diagnostics, written: undefined };
  const { locate } = source;
  const validated = validateShape(schema, source.value);
  if (validated.isValid) return { ok: true, value: validated.value as Static<Declaration>, locate };
  const located = validated.diagnostics.map((one) => locateDiagnostic(file, locate, one));
  return { ok: false, diagnostics: located, written: source.value };
}

/** The value of one key of a file, with defaults, if its shape is right, whatever else is wrong in the file. */
export function readPart<Declaration extends TSchema>(
  schema: Declaration,
  file: unknown,
  key: string,
): Static<Declaration> | undefined {
  if (!isObject(file)) return undefined;
  const validated = validateShape(schema, file[key] ?? {});
  return validated.isValid ? (validated.value as Static<Declaration>) : undefined;
}

/** Gives a diagnostic that has a path its file, line and column. */
export function locateDiagnostic(file: string, locate: Locate, diagnostic: PathDiagnostic): Diagnostic {
  const { path, at, ...rest } = diagnostic;
  return { file, ...locate(path, at), ...rest };
}
