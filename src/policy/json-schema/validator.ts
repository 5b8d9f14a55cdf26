// Compiles JSON Schemas of upstreams and policies into bounded checks: no fetch, no backtracking, and a budget to which
// everything is charged. A check that exceeds it is abandoned and counts as an error. `format` is an annotation unless
// the operator asks for more, and a pattern that RE2 cannot express is left out where that can only accept more. Never
// coerces, never logs, never changes the value that it checks.
// Source: JSON Schema 2020-12 core §7 and validation §7.2; MCP, JSON Schema usage.

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { pointerOf, pointerTo } from '../../text/json-members.js';
import type { CompiledSchema, SchemaError, SchemaOptions, UndeclaredMember } from '../definitions.js';
import { compileLinear, type LinearRegex, toRe2Syntax } from '../patterns.js';
import { findCoercions } from './coercion.js';
import { createDefaults } from './defaults.js';
import { createEvaluator, type Failure, type Outcome } from './evaluator.js';
import { appliedAtTop, createUndeclaredSearch, findUndescribed, isProperty } from './members.js';
import {
  type CompileError,
  copySchema,
  findUnboundedReach,
  isNode,
  type SchemaCopy,
  type SchemaNode,
  schemasThatMayFail,
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
 * The failures of one check as sentences, at most eight, each once: the position in the value, by the schema's
 * own names, and what is expected. Never quotes a value, nor a member name that the schema does not declare:
 * those come from the wire.
 */
function describeErrors(failures: readonly Failure[], names: ReadonlySet<string>): readonly SchemaError[] {
  const schemaErrors = new Map<string, SchemaError>();
  for (const failure of failures) {
    if (schemaErrors.size === MAX_SCHEMA_ERRORS) break;
    const { keyword, missing, undeclared } = failure;
    const schemaError = {
      pointer: maskPointer(pointerOf(failure.path), names),
      keyword,
      message: describe(failure),
      ...(missing === undefined ? {} : { missing: printable(missing) }),
      ...(undeclared === undefined ? {} : { undeclared }),
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
  ['maxContains', 'has too many items of one kind, the most is'],
  ['multipleOf', 'must be a multiple of'],
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

function describe({ keyword, limit, types, format, missing }: Failure): string {
  const limited = WITH_LIMIT.get(keyword);
  if (limited !== undefined) return `${limited} ${limit}`;
  if (types !== undefined) return `must be ${types.join(' or ')}`;
  if (missing !== undefined) return `lacks the member "${printable(missing)}"`;
  if (format !== undefined) return `must be a valid ${printable(format)}`;
  return FIXED.get(keyword) ?? 'does not satisfy the schema';
}

function printable(name: string): string {
  return name.replace(UNPRINTABLE, '?').slice(0, MAX_NAME_CHARS);
}

type SchemaResult =
  | {
      readonly ok: true;
      readonly schema: CompiledSchema;
      /** Patterns that are not checked, because RE2 cannot express them, with their pointers in the schema. */
      readonly unchecked: readonly CompileError[];
    }
  | ({ readonly ok: false } & CompileError);

const NO_ERRORS: readonly SchemaError[] = Object.freeze([]);
const UNCHECKABLE: readonly SchemaError[] = Object.freeze([
  Object.freeze({ pointer: '', keyword: 'unchecked', message: 'takes too much work to check' }),
]);

/**
 * Compiles a schema, or says why it cannot be used: in a sentence that quotes nothing of it, with the pointer to the
 * place. Its parts are compiled when they are first needed, and whether it can be used is known without that: of
 * thousands of tools few are called.
 */
export function compileSchema(schema: JsonObject | boolean, options: SchemaOptions = {}): SchemaResult {
  const copied = copySchema(schema);
  if (!copied.ok) return copied;
  const { copy } = copied;
  const unbounded = findUnboundedReach(copy);
  if (unbounded !== undefined) return { ok: false, ...unbounded };
  const compiled = compilePatterns(copy);
  if ('why' in compiled) return { ok: false, ...compiled };
  const { patterns, unchecked } = compiled;
  const assertsFormats = options.formats === 'assertion';
  const mayLackDefaults = options.defaults === 'may-be-absent';
  const evaluator = createEvaluator(copy, { assertsFormats, mayLackDefaults, patterns });
  const parts = { copy, patterns, evaluator };
  const findUndeclared = createUndeclaredSearch(parts);
  const fillDefaults = mayLackDefaults ? createDefaults(parts) : undefined;
  const evaluate = (value: Json): Outcome => {
    const outcome = evaluator.evaluate(value);
    if (outcome === 'valid' || fillDefaults === undefined || !evaluator.requiresDefaults) return outcome;
    const without = evaluator.evaluate(value, true);
    if (without === 'valid') return 'valid';
    const filled = isObject(value) ? fillDefaults(value, 'required') : undefined;
    return filled !== undefined && filled !== value && evaluator.evaluate(filled) === 'valid'
      ? 'valid'
      : // What may be absent is not what is wrong.
        without;
  };
  return {
    ok: true,
    unchecked,
    schema: {
      check(value: Json): readonly SchemaError[] {
        const outcome = evaluate(value);
        if (outcome === 'valid') return NO_ERRORS;
        return outcome === 'exhausted' ? UNCHECKABLE : describeErrors(outcome, copy.names);
      },
      firstUndescribed: (value, reads) => findUndescribed(copy, patterns, value, reads),
      firstUndeclared: findUndeclared && ((value) => described(findUndeclared(value), copy.names)),
      withDefaults: fillDefaults && ((value) => fillDefaults(value, 'all')),
      declares: (name) => isProperty(appliedAtTop(copy), name),
      coercions: (value) => (evaluate(value) === 'valid' ? [] : findCoercions(parts, value)),
    },
  };
}

function described(pointer: string | undefined, names: ReadonlySet<string>): UndeclaredMember | undefined {
  return pointer === undefined ? undefined : { pointer, shown: maskPointer(pointer, names) };
}

type CompiledPatterns = {
  readonly patterns: ReadonlyMap<string, LinearRegex>;
  readonly unchecked: readonly CompileError[];
};

/**
 * The patterns of a schema. One that RE2 cannot express is removed from the copy where its absence can only accept more;
 * as the name of a member, and under what may refuse by accepting, the schema cannot be used without it.
 */
function compilePatterns(copy: SchemaCopy): CompiledPatterns | CompileError {
  const patterns = new Map<string, LinearRegex>();
  const unchecked: CompileError[] = [];
  let mayFail: ReadonlySet<SchemaNode> | undefined;
  for (const [node, pointer] of copy.nodes) {
    const inNames = firstCompileError(namePatternsOf(node, pointer), patterns);
    if (inNames !== undefined) return inNames;
    const { pattern } = node;
    if (typeof pattern !== 'string') continue;
    const compileError = firstCompileError([[pattern, pointerTo(pointer, 'pattern')]], patterns);
    if (compileError === undefined) continue;
    mayFail ??= schemasThatMayFail(copy);
    if (mayFail.has(node)) return compileError;
    delete node['pattern'];
    unchecked.push(compileError);
  }
  return { patterns, unchecked };
}

type WrittenPattern = readonly [pattern: string, pointer: string];

function namePatternsOf({ patternProperties }: SchemaNode, pointer: string): readonly WrittenPattern[] {
  const names = isNode(patternProperties) ? Object.keys(patternProperties) : [];
  return names.map((name) => [name, pointerTo(pointerTo(pointer, 'patternProperties'), name)]);
}

/** Compiles patterns, each once; returns why the first of them cannot be. */
function firstCompileError(
  written: readonly WrittenPattern[],
  patterns: Map<string, LinearRegex>,
): CompileError | undefined {
  for (const [pattern, pointer] of written) {
    if (patterns.has(pattern)) continue;
    const compiled = compileLinear(toRe2Syntax(pattern));
    if (!compiled.ok) return { why: `in a pattern of the schema, ${compiled.why}`, pointer };
    patterns.set(pattern, compiled.regex);
  }
  return undefined;
}
