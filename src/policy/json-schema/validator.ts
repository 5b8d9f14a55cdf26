// Compiles JSON Schemas of upstreams and policies into bounded checks by Ajv: no fetch, no backtracking, and
// a budget to which every schema that is applied and every character that a pattern reads is charged. A check
// that exceeds it is abandoned and counts as an error. Checks are synchronous, so the budget of the running
// check is one number. Never coerces, never fills in defaults, never logs.
// Source: ajv, "Security considerations"; JSON Schema 2020-12 and draft-07; MCP, JSON Schema usage.

import {
  _,
  Ajv,
  type AnySchema,
  type ErrorObject,
  type KeywordCxt,
  type Options,
  type ValidateFunction,
} from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import type { CompiledSchema, SchemaError, UndeclaredMember } from '../definitions.js';
import { compileLinear, type LinearRegex, toRe2Syntax } from '../patterns.js';
import {
  type Alternatives,
  createUndeclaredSearch,
  findAlternatives,
  findUndescribed,
  type Holds,
} from './members.js';
import {
  copySchema,
  type Dialect,
  findUnboundedReach,
  type SchemaCopy,
  type SchemaNode,
} from './sanitizer.js';

/** Maximum number of errors that one check reports. */
const MAX_SCHEMA_ERRORS = 8;
/** Maximum length of a name of the schema that an error repeats, in characters. */
const MAX_NAME_CHARS = 64;

const UNPRINTABLE = /[^\x20-\x7e]/g;

/** Replaces every segment of a pointer that is neither an index nor a name of the schema by `*`. */
function maskPointer(pointer: string, names: ReadonlySet<string>): string {
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

/**
 * The errors of one check as sentences, at most eight, each once: the position in the value, by the schema's
 * own names, and what is expected. Never quotes a value, nor a member name that the schema does not declare:
 * those come from the wire.
 */
function describeErrors(
  errors: readonly ErrorObject[],
  names: ReadonlySet<string>,
): readonly SchemaError[] {
  const schemaErrors = new Map<string, SchemaError>();
  for (const error of errors) {
    if (schemaErrors.size === MAX_SCHEMA_ERRORS) break;
    const missing = missingMember(error);
    const schemaError = {
      pointer: maskPointer(error.instancePath, names),
      keyword: error.keyword,
      message: describe(error),
      ...(missing === undefined ? {} : { missing }),
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

function missingMember({ keyword, params }: ErrorObject): string | undefined {
  const isMissing = keyword === 'required' || keyword === 'dependentRequired';
  return isMissing ? printable(String(params['missingProperty'])) : undefined;
}

function describe(error: ErrorObject): string {
  const params = error.params as { readonly [name: string]: unknown };
  const limited = WITH_LIMIT.get(error.keyword);
  if (limited !== undefined) return `${limited} ${Number(params['limit'])}`;
  if (error.keyword === 'type') return `must be ${typeNames(params['type'])}`;
  const missing = missingMember(error);
  if (missing !== undefined) return `lacks the member "${missing}"`;
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

/** A longer text has none of the asserted formats. */
const MAX_FORMAT_CHARS = 2048;

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const TIME =
  /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:[zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const EMAIL = /^[^\s@"<>]{1,64}@[^\s@"<>.]+(?:\.[^\s@"<>.]+)*$/;
const URI = /^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>"{}|\\^`]*$/;
const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;

function isDate(text: string): boolean {
  const parts = DATE.exec(text);
  if (parts === null) return false;
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  const date = new Date(Date.UTC(2000, month - 1, day));
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
}

function isDateTime(text: string): boolean {
  const separator = text[10];
  return (
    (separator === 'T' || separator === 't' || separator === ' ') &&
    isDate(text.slice(0, 10)) &&
    TIME.test(text.slice(11))
  );
}

function short(check: (text: string) => boolean): (text: string) => boolean {
  return (text) => text.length <= MAX_FORMAT_CHARS && check(text);
}

/**
 * The few formats that are asserted: those whose syntax is simple. Every other format is an annotation. Each
 * check is linear in the text, whose length is bounded first.
 * Source: JSON Schema 2020-12 validation §7.3; RFC 3339 §5.6; RFC 4122 §3; RFC 3986.
 */
const SCHEMA_FORMATS: { readonly [format: string]: (text: string) => boolean } = {
  date: short(isDate),
  time: short((text) => TIME.test(text)),
  'date-time': short(isDateTime),
  email: short((text) => EMAIL.test(text)),
  uri: short((text) => URI.test(text)),
  uuid: short((text) => UUID.test(text)),
  ipv4: short((text) => IPV4.test(text)),
};

/** Maximum number of steps of one check; a step is one schema applied at one position. */
const MAX_CHECK_STEPS = 1_000_000;
/** The cost of a character that a pattern reads: RE2 in this language takes up to 0.4 µs for each. */
const STEPS_PER_PATTERN_CHAR = 4;
/** The cost of a value that is compared with others, because it is sorted and serialized for that. */
const STEPS_PER_COMPARED_VALUE = 8;
/** Strings shorter than this cost no more than a step. */
const FREE_STRING_CHARS = 1024;
/** An instance keeps the code that it generated, so it is replaced after this many schemas. */
const SCHEMAS_PER_INSTANCE = 200;

const COST = 'sallyport-cost';

/** `exhausted`: the budget was exceeded or the value could not be walked. */
type Outcome = 'valid' | 'exhausted' | readonly ErrorObject[];

class BudgetSpent extends Error {}

let remainingSteps = 0;

function charge(steps: number, value?: unknown): void {
  const isLong = typeof value === 'string' && value.length > FREE_STRING_CHARS;
  remainingSteps -= isLong ? steps + value.length / 16 : steps;
  if (remainingSteps < 0) throw new BudgetSpent();
}

type Validators = {
  readonly validate: (value: Json) => Outcome;
  /** One for each of the alternatives. */
  readonly alternatives: ReadonlyMap<SchemaNode, Holds>;
};

/** Under which a schema is known to its instance while it is compiled, so that its parts can be. */
const ROOT_KEY = 'root';

/** Compiles the vetted copy and these parts of it; `undefined` if the validator cannot be made. */
function compileValidator(
  copy: SchemaCopy,
  patterns: ReadonlyMap<string, LinearRegex>,
  alternatives: Alternatives,
): Validators | undefined {
  for (const node of copy.nodes) node[COST] = weigh(node);
  const ajv = instanceFor(copy.dialect);
  currentPatterns = patterns;
  const parts: string[] = [];
  try {
    ajv.addSchema(copy.root as AnySchema, ROOT_KEY);
    const compilePart = (pointer: string): ((value: Json) => Outcome) => {
      const key = `${ROOT_KEY}#${pointer}`;
      parts.push(key);
      return checkedBy(ajv.getSchema(key));
    };
    const validate = checkedBy(ajv.getSchema(ROOT_KEY));
    const holds = [...alternatives].map(([node, pointer]) => {
      const check = compilePart(pointer);
      return [node, (value: Json) => check(value) === 'valid'] as const;
    });
    return { validate, alternatives: new Map(holds) };
  } catch {
    return undefined;
  } finally {
    currentPatterns = new Map();
    for (const key of [...parts, ROOT_KEY]) ajv.removeSchema(key);
    if (typeof copy.root === 'object') ajv.removeSchema(copy.root);
    for (const node of copy.nodes) delete node[COST];
  }
}

function checkedBy(validate: ValidateFunction | undefined): (value: Json) => Outcome {
  if (validate === undefined) throw new Error('a part of the schema was not compiled');
  return (value) => {
    remainingSteps = MAX_CHECK_STEPS;
    try {
      return validate(value) ? 'valid' : [...(validate.errors ?? [])];
    } catch {
      return 'exhausted';
    } finally {
      validate.errors = null;
    }
  };
}

/** One for the schema itself and one for everything that it lists, one level deep. */
function weigh(node: SchemaNode): number {
  let weight = 1;
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) weight += value.length;
    else if (typeof value === 'object' && value !== null) weight += Object.keys(value).length;
  }
  return weight;
}

let currentPatterns: ReadonlyMap<string, LinearRegex> = new Map();

/** Ajv caches expressions by `toString()`, so no two patterns may have the same text. */
function chargedRegex(pattern: string): { test(text: string): boolean; toString(): string } {
  const regex = currentPatterns.get(pattern);
  return {
    test(text) {
      charge(1 + text.length * STEPS_PER_PATTERN_CHAR);
      if (regex === undefined) throw new BudgetSpent();
      return regex.test(text);
    },
    toString: () => pattern,
  };
}

/**
 * INVARIANT: ajv optimizes no code. For that it makes a thousand objects whose first member is the name of a variable,
 * and V8 then has no room for further hidden classes of plain objects: each object that a literal makes gets one of its
 * own, which makes all code slow that reads it (docs/reference/performance.md).
 */
const CODE = { optimize: false } as const;

const OPTIONS: Options = {
  strict: false,
  validateSchema: false,
  validateFormats: true,
  formats: SCHEMA_FORMATS,
  allErrors: false,
  inlineRefs: false,
  ownProperties: true,
  unicodeRegExp: false,
  logger: false,
  code: { ...CODE, regExp: Object.assign(chargedRegex, { code: 'chargedRegex' }) },
};

type Instance = { readonly ajv: Ajv | Ajv2020; used: number };

const instances = new Map<Dialect, Instance>();

function instanceFor(dialect: Dialect): Ajv | Ajv2020 {
  const known = instances.get(dialect);
  if (known !== undefined && known.used < SCHEMAS_PER_INSTANCE) {
    known.used += 1;
    return known.ajv;
  }
  const ajv = createInstance(dialect);
  instances.set(dialect, { ajv, used: 1 });
  return ajv;
}

function createInstance(dialect: Dialect): Ajv | Ajv2020 {
  const ajv = dialect === '2020-12' ? new Ajv2020(OPTIONS) : new Ajv(OPTIONS);
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isWanted: boolean, items: readonly Json[]) => !isWanted || areUnique(items),
  });
  ajv.addKeyword({
    keyword: COST,
    schemaType: 'number',
    code(context: KeywordCxt) {
      const charged = context.gen.scopeValue('func', { ref: charge });
      context.gen.code(_`${charged}(${context.schema}, ${context.data})`);
    },
  });
  runFirst(ajv, COST);
  return ajv;
}

/** Moves a keyword to the front: the cost is charged before any other keyword of the same schema runs. */
function runFirst(ajv: Ajv | Ajv2020, keyword: string): void {
  for (const group of ajv.RULES.rules) {
    const index = group.rules.findIndex((rule) => rule.keyword === keyword);
    if (index === -1) continue;
    const [rule] = group.rules.splice(index, 1);
    if (rule !== undefined) ajv.RULES.rules.unshift({ rules: [rule] });
    return;
  }
}

/** Ajv compares every item with every other; this takes one pass. */
function areUnique(items: readonly Json[]): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = sortedText(item);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

function sortedText(value: Json): string {
  charge(STEPS_PER_COMPARED_VALUE, value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedText).join()}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${sortedText(member)}`).join()}}`;
}

const metaInstances = new Map<Dialect, Ajv | Ajv2020>();

const INVALID = 'the schema is not a valid JSON Schema';
/** Keywords that an error may name; other segments of its pointer are names of the schema's author. */
const KEYWORD =
  /\/(type|required|enum|minimum|maximum|min[A-Z]\w+|max[A-Z]\w+|pattern|format|multipleOf)$/;

/** Checks against the dialect's own meta-schema, whose patterns are fixed and whose work is linear. */
function findSchemaError(copy: SchemaCopy): string | undefined {
  if (typeof copy.root === 'boolean') return undefined;
  let meta = metaInstances.get(copy.dialect);
  if (meta === undefined) {
    const options: Options = { strict: false, logger: false, validateFormats: false, code: CODE };
    meta = copy.dialect === '2020-12' ? new Ajv2020(options) : new Ajv(options);
    metaInstances.set(copy.dialect, meta);
  }
  if (meta.validateSchema(copy.root) === true) return undefined;
  const errors = meta.errors ?? [];
  const found = errors.find(({ keyword }) => keyword === 'enum') ?? errors[0];
  const [, keyword] = KEYWORD.exec(found?.instancePath ?? '') ?? [];
  if (found === undefined || keyword === undefined) return INVALID;
  const allowed: unknown = found.params['allowedValues'];
  const what = Array.isArray(allowed) ? `must be one of ${allowed.join(', ')}` : describe(found);
  return `${INVALID}: "${keyword}" ${what}`;
}

type SchemaResult =
  | { readonly ok: true; readonly schema: CompiledSchema }
  | { readonly ok: false; readonly why: string };

const NO_ERRORS: readonly SchemaError[] = Object.freeze([]);
const UNCHECKABLE: readonly SchemaError[] = Object.freeze([
  Object.freeze({ pointer: '', keyword: 'unchecked', message: 'takes too much work to check' }),
]);

/** Refuses every value: of a schema for which no validator can be made. */
const NO_VALIDATOR: Validators = { validate: () => 'exhausted', alternatives: new Map() };

/**
 * Compiles a schema, or says in a sentence that quotes nothing of it why it cannot be used. Compilation takes
 * milliseconds per hundred properties: keep it off the request path.
 */
export function compileSchema(schema: JsonObject | boolean): SchemaResult {
  const prepared = prepare(schema);
  if (!prepared.ok) return prepared;
  return prepared.compile() === NO_VALIDATOR ? { ok: false, why: INVALID } : prepared;
}

/**
 * Like `compileSchema`, but the validator is made at the first check: of thousands of tools few are called, and whether
 * a schema can be used is known without it. Where it cannot be made after all, every value is refused.
 */
export function prepareSchema(schema: JsonObject | boolean): SchemaResult {
  return prepare(schema);
}

type Prepared = Extract<SchemaResult, { readonly ok: true }> & { compile(): Validators };

function prepare(
  schema: JsonObject | boolean,
): Prepared | Extract<SchemaResult, { readonly ok: false }> {
  const copied = copySchema(schema);
  if (!copied.ok) return copied;
  const { copy } = copied;
  const unbounded = findUnboundedReach(copy);
  if (unbounded !== undefined) return { ok: false, why: unbounded };
  const patterns = compilePatterns(copy);
  if (typeof patterns === 'string') return { ok: false, why: patterns };
  const error = findSchemaError(copy);
  if (error !== undefined) return { ok: false, why: error };
  const alternatives = findAlternatives(copy);
  let validators: Validators | undefined;
  const compile = (): Validators => {
    validators ??= compileValidator(copy, patterns, alternatives) ?? NO_VALIDATOR;
    return validators;
  };
  const holds = new Map(
    [...alternatives.keys()].map((node): [SchemaNode, Holds] => [
      node,
      (value) => compile().alternatives.get(node)?.(value) === true,
    ]),
  );
  const findUndeclared = createUndeclaredSearch(copy, patterns, holds);
  return {
    ok: true,
    compile,
    schema: {
      check(value: Json): readonly SchemaError[] {
        const outcome = (validators ?? compile()).validate(value);
        if (outcome === 'valid') return NO_ERRORS;
        return outcome === 'exhausted' ? UNCHECKABLE : describeErrors(outcome, copy.names);
      },
      firstUndescribed: (value, reads) => findUndescribed(copy, patterns, value, reads),
      firstUndeclared: findUndeclared && ((value) => described(findUndeclared(value), copy.names)),
    },
  };
}

function described(
  pointer: string | undefined,
  names: ReadonlySet<string>,
): UndeclaredMember | undefined {
  return pointer === undefined ? undefined : { pointer, shown: maskPointer(pointer, names) };
}

function compilePatterns(copy: SchemaCopy): ReadonlyMap<string, LinearRegex> | string {
  const patterns = new Map<string, LinearRegex>();
  for (const pattern of copy.patterns) {
    const compiled = compileLinear(toRe2Syntax(pattern));
    if (!compiled.ok) return `in a pattern of the schema, ${compiled.why}`;
    patterns.set(pattern, compiled.regex);
  }
  return patterns;
}
