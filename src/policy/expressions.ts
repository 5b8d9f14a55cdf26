// `when:` expressions in CEL: compiled and vetted once, evaluated on the facts of one question.
// An evaluation that fails, or that does not end in true or false, is an error and a value; nothing throws.
// Numbers of arguments are doubles. Source: CEL language definition; contract §4, laws 5 and 7.

import { type CelInput, celEnv, celMap, isCelError, parse, plan } from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import type { Json, JsonObject } from '../mcp/message.js';
import { type ExpressionReads, vetExpression } from './expression-vetting.js';
import { compileLinear, type LinearRegex } from './linear-regex.js';
import type { Principal } from './principal.js';

/** Longest expression, in characters. */
export const MAX_EXPRESSION_CHARS = 2048;
/** Most bytes of arguments, as JSON text in UTF-8, that an expression sees. */
export const MAX_ARGUMENT_BYTES = 16 * 1024;
/** Most values in the arguments that an expression sees, nested ones counted. */
export const MAX_ARGUMENT_VALUES = 2000;

export type Holding = 'holds' | 'fails' | 'error';

/** What a question offers to expressions. Prepared at most once a question, when first needed. */
export type ExpressionFacts = {
  readonly principal: Principal;
  readonly upstream: string;
  /** Name of the tool or prompt; empty for resources and templates. */
  readonly name: string;
  /** From the pin only (law 7). */
  readonly annotations: JsonObject;
  readonly args: JsonObject;
  /** The normal form; undefined where the target is no resource, and reading it is an error. */
  readonly uri: string | undefined;
};

export type Expression = {
  readonly reads: ExpressionReads;
  evaluate(facts: ExpressionFacts): Holding;
};

export type ExpressionResult =
  | { readonly ok: true; readonly expression: Expression }
  | { readonly ok: false; readonly why: string; readonly suggestion?: string };

const STRING_FUNCTIONS = new Set(['lowerAscii', 'upperAscii', 'trim']);

/** Patterns are literals of policies, vetted at compilation; this only saves compiling them again. */
const compiledPatterns = new Map<string, LinearRegex>();
const MAX_COMPILED_PATTERNS = 500;

function regexFor(pattern: string): LinearRegex {
  const known = compiledPatterns.get(pattern);
  if (known !== undefined) return known;
  const compiled = compileLinear(pattern);
  if (!compiled.ok) throw new Error(compiled.why);
  if (compiledPatterns.size >= MAX_COMPILED_PATTERNS) compiledPatterns.clear();
  compiledPatterns.set(pattern, compiled.regex);
  return compiled.regex;
}

const environment = celEnv({
  funcs: strings.filter((func) => STRING_FUNCTIONS.has(func.name)),
  re2: { compile: regexFor },
});

/** Parses, vets and plans an expression. Errors are sentences for the author of the policy. */
export function compileExpression(text: string): ExpressionResult {
  if (text.length > MAX_EXPRESSION_CHARS) {
    return { ok: false, why: `the expression is longer than ${MAX_EXPRESSION_CHARS} characters` };
  }
  try {
    const parsed = parse(text);
    const vetting = vetExpression(parsed.expr);
    if (!vetting.ok) return vetting;
    const run = plan(environment, parsed) as (bindings: Bindings) => unknown;
    return {
      ok: true,
      expression: { reads: vetting.reads, evaluate: (facts) => evaluate(run, facts) },
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it does not parse';
    return { ok: false, why: `the expression is not valid CEL: ${why}` };
  }
}

function evaluate(run: (bindings: Bindings) => unknown, facts: ExpressionFacts): Holding {
  try {
    const outcome = run(bindingsOf(facts));
    if (isCelError(outcome) || typeof outcome !== 'boolean') return 'error';
    return outcome ? 'holds' : 'fails';
  } catch {
    return 'error';
  }
}

type Bindings = { [variable: string]: CelInput };

const bindingsByFacts = new WeakMap<ExpressionFacts, Bindings>();
const mapsByPrincipal = new WeakMap<Principal, CelInput>();

/** Throws where the arguments exceed what expressions may see, each time anew. */
function bindingsOf(facts: ExpressionFacts): Bindings {
  const known = bindingsByFacts.get(facts);
  if (known !== undefined) return known;
  const bindings: Bindings = Object.create(null) as Bindings;
  bindings['args'] = argumentsMap(facts.args);
  bindings['principal'] = principalMap(facts.principal);
  bindings['tool'] = toMap({
    upstream: facts.upstream,
    name: facts.name,
    annotations: facts.annotations,
  });
  if (facts.uri !== undefined) bindings['uri'] = facts.uri;
  bindingsByFacts.set(facts, bindings);
  return bindings;
}

const encoder = new TextEncoder();

function argumentsMap(args: JsonObject): CelInput {
  const text = JSON.stringify(args);
  const isTooLarge =
    text.length > MAX_ARGUMENT_BYTES ||
    (text.length * 3 > MAX_ARGUMENT_BYTES && encoder.encode(text).length > MAX_ARGUMENT_BYTES);
  if (isTooLarge) throw new Error('the arguments are larger than expressions may see');
  return toMap(args);
}

function principalMap(principal: Principal): CelInput {
  const known = mapsByPrincipal.get(principal);
  if (known !== undefined) return known;
  const { issuer, subject, client, scopes, claims } = principal;
  // Unknown groups are absent, so that whatever reads them is an error and not an answer (law 5).
  const groups = principal.areGroupsUnknown === true ? {} : { groups: principal.groups };
  const map = toMap({ issuer, subject, client, ...groups, scopes, claims: claims as JsonObject });
  mapsByPrincipal.set(principal, map);
  return map;
}

function toMap(value: JsonObject): CelInput {
  return convert(value, { values: 0 });
}

/**
 * JSON as CEL values. The library's own conversion reads members such as `constructor` and `$typeName`
 * of plain objects as marks of its own, so none is handed over: objects become maps here.
 */
function convert(value: Json, count: { values: number }): CelInput {
  count.values += 1;
  if (count.values > MAX_ARGUMENT_VALUES) throw new Error('more values than expressions may see');
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => convert(item, count));
  const members = new Map<string, CelInput>();
  for (const [name, member] of Object.entries(value)) members.set(name, convert(member, count));
  const map = celMap(members);
  // The library takes a member that is null for absent; to policies it is present.
  Object.defineProperty(map, 'has', {
    value: (key: unknown) => typeof key === 'string' && members.has(key),
  });
  return map;
}
