// Compiles `when:` expressions in CEL and evaluates them. An expression is vetted before it may run: which
// names it uses, what it reads, what it costs; the CEL library finds unknown names only while evaluating, so
// they are found here. An evaluation that fails, or does not end in true or false, is an error value; nothing
// throws. Numbers of arguments are doubles.
// Source: CEL language definition, "Macros" and "Standard definitions"; docs/contract.md, laws 5 and 7.

import { CelScalar, celEnv, celFunc, isCelError, parse, plan, unparse } from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import { BoundedMap } from '../state/bounds.js';
import { nearestCandidate } from '../text/wording.js';
import {
  ANY_ARGUMENT,
  ARGUMENT_TEXTS,
  type Bindings,
  bindingsOf,
  describeCelError,
  type ExpressionFacts,
  expandAnyArgument,
  isPathUnder,
  readFolder,
} from './cel-language.js';
import { ARITHMETIC, type Expr, findTypeError, literalText, type ToolFacts, unwind } from './cel-types.js';
import { hostOfUrl, isPublicUrl } from './hosts.js';
import { compileLinear, type LinearRegex } from './patterns.js';

export type ExpressionReads = {
  /** Paths into `args`; the empty path means all of them. A path ends where an index is not a literal name. */
  readonly argumentPaths: readonly (readonly string[])[];
  /** Those whose value is read. */
  readonly valuePaths: readonly (readonly string[])[];
  /** Paths whose presence alone is tested, by has() or `in`. */
  readonly testedPaths: readonly (readonly string[])[];
  /** Top-level arguments that are read without a test by has() or `in`. */
  readonly unguarded: readonly string[];
  /** Paths into `principal`. A path ends where an index is not a literal name. */
  readonly principalPaths: readonly (readonly string[])[];
  /** Those whose presence is tested, by has() or `in`. */
  readonly testedPrincipalPaths: readonly (readonly string[])[];
  /** The members of `tool` that are read. */
  readonly toolMembers: ReadonlySet<string>;
  readonly readsUri: boolean;
  /** The values of all arguments are read, whatever their names. */
  readonly readsAnyArgument: boolean;
  /** What inspection found in the arguments is read. */
  readonly readsFindings: boolean;
};

type Failure = { readonly ok: false; readonly why: string; readonly suggestion?: string };

type Vetting = { readonly ok: true; readonly reads: ExpressionReads } | Failure;

function failed(why: string, suggestion: string | undefined): Failure {
  return suggestion === undefined ? { ok: false, why } : { ok: false, why, suggestion };
}

const MEMBERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['principal', ['issuer', 'subject', 'client', 'groups', 'scopes', 'claims']],
  ['tool', ['upstream', 'name', 'annotations']],
]);
const VARIABLES = ['args', 'uri', 'principal', 'tool', 'findings'];
const TYPES = new Set('bool bytes double int list map null_type string type uint'.split(' '));
/** Operators of constant cost, or of a cost linear in operands that a comprehension may not repeat. */
const OPERATORS = new Set(
  '_&&_ _||_ !_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _+_ _-_ _*_ _/_ _%_ -_ _[_] _?_:_ @not_strictly_false'.split(' '),
);
const FUNCTIONS = new Set([
  ...'size contains startsWith endsWith matches lowerAscii upperAscii trim'.split(' '),
  ...'bool bytes double dyn int string type uint timestamp duration'.split(' '),
  ...'getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear'.split(' '),
  ...'getHours getMinutes getSeconds getMilliseconds @in'.split(' '),
]);

/** Functions whose names have a dot. */
const QUALIFIED_FUNCTIONS = ['path.under', 'url.host', 'url.isPublic'];
const QUALIFIERS = new Set(QUALIFIED_FUNCTIONS.map((name) => name.split('.')[0]));

const MAX_QUOTED_NAME = 64;

class VettingError extends Error {
  readonly suggestion: string | undefined;
  constructor(message: string, suggestion?: string) {
    super(message);
    this.suggestion = suggestion;
  }
}

/** A name that does not exist, with the nearest one that does, or all of them if none is near. */
function unknownOf(what: string, name: string, known: Iterable<string>): VettingError {
  const suggestion = nearestCandidate(name, known);
  const names = suggestion === undefined ? `; known: ${[...known].join(', ')}` : '';
  return new VettingError(`${what} ${JSON.stringify(name.slice(0, MAX_QUOTED_NAME))}${names}`, suggestion);
}

type ExpressionPosition = {
  readonly locals: ReadonlySet<string>;
  /** Inside a comprehension, including its range: another one may not begin here. */
  readonly isNested: boolean;
  /** In a part that is evaluated once for each element. */
  readonly isRepeated: boolean;
};

type CollectedReads = {
  readonly paths: (readonly string[])[];
  readonly values: (readonly string[])[];
  readonly tested: (readonly string[])[];
  readonly guarded: Set<string>;
  readonly principalPaths: (readonly string[])[];
  readonly testedPrincipalPaths: (readonly string[])[];
  readonly toolMembers: Set<string>;
  readsUri: boolean;
  readsAnyArgument: boolean;
  readsFindings: boolean;
};

/** Vets a parsed expression; errors are sentences for the author of the policy. */
function vetExpression(expr: Expr): Vetting {
  const findings: CollectedReads = {
    paths: [],
    values: [],
    tested: [],
    guarded: new Set(),
    principalPaths: [],
    testedPrincipalPaths: [],
    toolMembers: new Set(),
    readsUri: false,
    readsAnyArgument: false,
    readsFindings: false,
  };
  try {
    visit(expr, { locals: new Set(), isNested: false, isRepeated: false }, findings);
  } catch (error) {
    if (!(error instanceof VettingError)) return { ok: false, why: 'the expression is nested too deep' };
    return failed(error.message, error.suggestion);
  }
  const top = new Set(findings.paths.flatMap((path) => path.slice(0, 1)));
  const { principalPaths, testedPrincipalPaths, toolMembers, readsUri, readsAnyArgument, readsFindings } = findings;
  return {
    ok: true,
    reads: {
      argumentPaths: findings.paths,
      valuePaths: findings.values,
      testedPaths: findings.tested,
      unguarded: [...top].filter((name) => !findings.guarded.has(name)),
      principalPaths,
      testedPrincipalPaths,
      toolMembers,
      readsUri,
      readsAnyArgument,
      readsFindings,
    },
  };
}

function visit(expr: Expr | undefined, position: ExpressionPosition, findings: CollectedReads): void {
  const kind = expr?.exprKind;
  switch (kind?.case) {
    case 'identExpr':
    case 'selectExpr':
      if (expr !== undefined) visitChain(expr, position, findings);
      return;
    case 'callExpr':
      if (expr !== undefined) visitCall(expr, kind.value, position, findings);
      return;
    case 'listExpr':
      for (const element of kind.value.elements) visit(element, position, findings);
      return;
    case 'structExpr':
      visitMap(kind.value, position, findings);
      return;
    case 'comprehensionExpr':
      visitComprehension(kind.value, position, findings);
      return;
    case 'constExpr':
    case undefined:
  }
}

type Kinds = Expr['exprKind'];
type Call = Extract<Kinds, { case: 'callExpr' }>['value'];
type MapLiteral = Extract<Kinds, { case: 'structExpr' }>['value'];
type Comprehension = Extract<Kinds, { case: 'comprehensionExpr' }>['value'];

function visitMap(literal: MapLiteral, position: ExpressionPosition, findings: CollectedReads): void {
  if (literal.messageName !== '') throw new VettingError('an expression cannot create messages');
  for (const entry of literal.entries) {
    if (entry.keyKind.case === 'mapKey') visit(entry.keyKind.value, position, findings);
    visit(entry.value, position, findings);
  }
}

function visitComprehension(fold: Comprehension, position: ExpressionPosition, findings: CollectedReads): void {
  if (position.isNested) throw new VettingError('comprehensions (all, exists, map, filter) may not nest');
  visit(fold.iterRange, { ...position, isNested: true }, findings);
  const locals = new Set([fold.iterVar, fold.iterVar2, fold.accuVar].filter((name) => name !== ''));
  const inner: ExpressionPosition = { locals, isNested: true, isRepeated: true };
  for (const part of [fold.accuInit, fold.loopCondition, fold.loopStep, fold.result]) {
    visit(part, inner, findings);
  }
}

function visitChain(expr: Expr, position: ExpressionPosition, findings: CollectedReads): void {
  const { root, path, isTest } = unwind(expr);
  if (root.exprKind.case !== 'identExpr') {
    visit(root, position, findings);
    return;
  }
  const variableName = root.exprKind.value.name;
  if (position.locals.has(variableName) || TYPES.has(variableName)) return;
  // A leading dot names the variable of the environment even if a local one shadows it.
  const name = variableName.startsWith('.') ? variableName.slice(1) : variableName;
  if (name === ARGUMENT_TEXTS) {
    findings.readsAnyArgument = true;
    return;
  }
  if (!VARIABLES.includes(name)) {
    throw unknownOf('unknown name', name, VARIABLES);
  }
  if (name === 'findings') findings.readsFindings = true;
  readVariable(name, path, isTest, findings);
}

function readVariable(name: string, path: readonly string[], isTest: boolean, findings: CollectedReads): void {
  if (name === 'uri') findings.readsUri = true;
  if (name === 'args') readArgument(path, isTest, findings);
  const members = MEMBERS.get(name);
  if (members === undefined) return;
  const member = path[0];
  if (member === undefined) throw new VettingError(`name a member of ${name}: ${members.join(', ')}`);
  if (!members.includes(member)) {
    throw unknownOf(`${name} has no member`, member, members);
  }
  if (name === 'tool') findings.toolMembers.add(member);
  else findings.principalPaths.push(path);
  if (name === 'principal' && isTest) findings.testedPrincipalPaths.push(path);
}

function readArgument(path: readonly string[], isTest: boolean, findings: CollectedReads): void {
  findings.paths.push(path);
  (isTest ? findings.tested : findings.values).push(path);
  if (isTest && path[0] !== undefined) findings.guarded.add(path[0]);
}

function visitCall(expr: Expr, call: Call, position: ExpressionPosition, findings: CollectedReads): void {
  if (call.function === ANY_ARGUMENT && call.target === undefined) {
    const why = expandAnyArgument(expr);
    if (why !== undefined) throw new VettingError(why);
    visit(expr, position, findings);
    return;
  }
  const { name, operands, isFunction } = readCall(call);
  if (name === '_[_]' && unwind(expr).root !== expr) {
    visitChain(expr, position, findings);
    return;
  }
  vetOperands(name, operands, findings);
  const before = countReads(findings);
  visitOperands(name, operands, position, findings);
  if (position.isRepeated && isFunction && countReads(findings) > before) {
    throw new VettingError('inside a comprehension, functions may not read args or uri');
  }
}

/** The name of what is called, known to exist, and what it is called with. */
function readCall(call: Call): {
  readonly name: string;
  readonly operands: readonly Expr[];
  readonly isFunction: boolean;
} {
  const { function: name, target, args } = call;
  const qualifier = qualifierOf(call);
  if (qualifier !== undefined) {
    const qualified = `${qualifier}.${name}`;
    if (QUALIFIED_FUNCTIONS.includes(qualified)) return { name: qualified, operands: args, isFunction: true };
    throw unknownOf('unknown function', qualified, QUALIFIED_FUNCTIONS);
  }
  const isFunction = FUNCTIONS.has(name);
  if (!OPERATORS.has(name) && !isFunction) {
    throw unknownOf('unknown function', name, [...FUNCTIONS, ANY_ARGUMENT]);
  }
  return { name, operands: target === undefined ? args : [target, ...args], isFunction };
}

/** `path` of `path.under(…)`: the functions with such names take precedence over variables, also local ones. */
function qualifierOf({ target }: Call): string | undefined {
  const name = target?.exprKind.case === 'identExpr' ? target.exprKind.value.name : undefined;
  return name !== undefined && QUALIFIERS.has(name) ? name : undefined;
}

function countReads(findings: CollectedReads): number {
  return findings.paths.length + (findings.readsUri ? 1 : 0);
}

/** The cost of compiling RE2 is bounded for patterns of the policy, not for patterns of the caller. */
function vetMatches(operands: readonly Expr[]): void {
  const pattern = operands[1] === undefined ? undefined : literalText(operands[1]);
  if (pattern === undefined) throw new VettingError('the pattern of matches() must be a literal');
  const compiled = compileLinear(pattern);
  if (!compiled.ok) throw new VettingError(`in matches(), ${compiled.why}`);
}

/** With a folder that is not valid, every call would be an error. */
function vetFolder([, folder]: readonly Expr[]): void {
  const text = folder === undefined ? undefined : literalText(folder);
  if (text !== undefined && readFolder(text) === undefined)
    throw new VettingError('path.under() takes a folder such as "reports/" or "/srv/reports"');
}

function vetOperands(name: string, operands: readonly Expr[], findings: CollectedReads): void {
  if (name === 'matches') vetMatches(operands);
  if (name === 'path.under') vetFolder(operands);
  if (name === '@in') guardByMembership(operands, findings);
  if (ARITHMETIC.has(name)) vetArithmetic(operands);
}

function visitOperands(
  name: string,
  operands: readonly Expr[],
  position: ExpressionPosition,
  findings: CollectedReads,
): void {
  const membershipRead = name === '@in' ? memberAsked(operands, position) : undefined;
  if (membershipRead?.variable === 'args') {
    findings.paths.push(membershipRead.path.slice(0, -1));
    findings.tested.push(membershipRead.path);
    return;
  }
  if (membershipRead?.variable === 'principal') findings.testedPrincipalPaths.push(membershipRead.path);
  for (const operand of operands) visit(operand, position, findings);
}

/** `"name" in args.a` tests whether a member is present, and reads none of the others. */
function memberAsked(
  operands: readonly Expr[],
  { locals }: ExpressionPosition,
): { readonly variable: string; readonly path: readonly string[] } | undefined {
  const [name, container] = operands;
  const text = name === undefined ? undefined : literalText(name);
  if (text === undefined || container === undefined) return undefined;
  const { root, path, isTest } = unwind(container);
  const variable = root.exprKind.case === 'identExpr' ? root.exprKind.value.name : '';
  return isTest || locals.has(variable) ? undefined : { variable: variable.replace(/^\./, ''), path: [...path, text] };
}

/** `"name" in args` tests for an argument as has() does. */
function guardByMembership(operands: readonly Expr[], findings: CollectedReads): void {
  const [name, container] = operands;
  const text = name === undefined ? undefined : literalText(name);
  const kind = container?.exprKind;
  if (text !== undefined && kind?.case === 'identExpr' && kind.value.name === 'args') {
    findings.guarded.add(text);
  }
}

/** Numbers of arguments are doubles, and CEL has no arithmetic between doubles and integers. */
function vetArithmetic(operands: readonly Expr[]): void {
  const hasInteger = operands.some(
    ({ exprKind }) => exprKind.case === 'constExpr' && exprKind.value.constantKind.case === 'int64Value',
  );
  const hasArgument = operands.some((operand) => {
    const { exprKind } = unwind(operand).root;
    return exprKind.case === 'identExpr' && exprKind.value.name === 'args';
  });
  if (hasInteger && hasArgument) {
    throw new VettingError('numbers of arguments are doubles: write 1.0 instead of 1');
  }
}

/** Maximum length of an expression, in characters. */
const MAX_EXPRESSION_CHARS = 2048;

export type ConditionResult = 'holds' | 'fails' | 'error';

/** One of the operands that `&&` joins at the top of an expression; the only one where nothing is joined. */
export type Term = {
  readonly reads: ExpressionReads;
  /** The term as it would be written alone. Found when it is asked for. */
  text(): string;
  evaluate(facts: ExpressionFacts): ConditionResult;
};

export type Expression = {
  readonly text: string;
  readonly reads: ExpressionReads;
  readonly terms: readonly Term[];
  /** What is certainly wrong with its types, if arguments have these. */
  readonly typeError: (facts: ToolFacts) => string | undefined;
  evaluate(facts: ExpressionFacts): ConditionResult;
};

/** What comes out of all parts as `&&` joins them in CEL: one that fails outweighs an error. */
export function conjunctionOf<Part, Facts>(
  parts: readonly Part[],
  evaluate: (part: Part, facts: Facts) => ConditionResult,
  facts: Facts,
): ConditionResult {
  let result: ConditionResult = 'holds';
  for (const part of parts) {
    const outcome = evaluate(part, facts);
    if (outcome === 'fails') return outcome;
    if (outcome === 'error') result = outcome;
  }
  return result;
}

const STRING_FUNCTIONS = new Set(['lowerAscii', 'upperAscii', 'trim']);

/** Patterns are literals of policies, vetted at compilation; this cache only avoids compiling them again. */
const MAX_COMPILED_PATTERNS = 500;
const compiledPatterns = new BoundedMap<string, LinearRegex>(MAX_COMPILED_PATTERNS);

function regexFor(pattern: string): LinearRegex {
  const known = compiledPatterns.get(pattern);
  if (known !== undefined) return known;
  const compiled = compileLinear(pattern);
  if (!compiled.ok) throw new Error(compiled.why);
  compiledPatterns.set(pattern, compiled.regex);
  return compiled.regex;
}

/** Without an answer the expression fails: a refusal in rules of every effect, also behind a negation. */
function clear<Answer>(answer: Answer | undefined): Answer {
  if (answer === undefined) throw new Error('a text that readers could take for different things');
  return answer;
}

const environment = celEnv({
  funcs: [
    ...strings.filter((func) => STRING_FUNCTIONS.has(func.name)),
    celFunc('path.under', [CelScalar.STRING, CelScalar.STRING], CelScalar.BOOL, (path, folder) =>
      clear(isPathUnder(path, folder)),
    ),
    celFunc('url.isPublic', [CelScalar.STRING], CelScalar.BOOL, (url) => clear(isPublicUrl(url))),
    celFunc('url.host', [CelScalar.STRING], CelScalar.STRING, (url) => clear(hostOfUrl(url))),
  ],
  re2: { compile: regexFor },
});

/** Parses, vets and plans a condition. Errors are sentences for the author of the policy. */
export function compileExpression(text: string): { readonly ok: true; readonly expression: Expression } | Failure {
  const compiled = compilePrograms(text, conjunctsOf);
  if (!compiled.ok) return compiled;
  const { expr, reads, failing, programs } = compiled;
  const terms = programs.map(
    (program, index): Term => ({
      reads: program.reads,
      text: () => (programs.length === 1 ? text : textOfTerm(text, index)),
      evaluate: (facts) => conditionOf(run(program.planned, facts)),
    }),
  );
  const typeError = (facts: ToolFacts) => findTypeError(expr, 'condition', facts) ?? failing;
  const evaluate = (facts: ExpressionFacts) => conjunctionOf(terms, evaluateTerm, facts);
  return { ok: true, expression: { text, reads, terms, typeError, evaluate } };
}

function evaluateTerm(term: Term, facts: ExpressionFacts): ConditionResult {
  return term.evaluate(facts);
}

/** The operands that `&&` joins, at any depth of parentheses. */
function conjunctsOf(expr: Expr): readonly Expr[] {
  const { exprKind } = expr;
  if (exprKind.case !== 'callExpr' || exprKind.value.function !== '_&&_') return [expr];
  return exprKind.value.args.flatMap(conjunctsOf);
}

/** Vetting expands macros, so the text is that of an expression parsed anew. */
function textOfTerm(text: string, index: number): string {
  const parsed = parse(text);
  return unparse({ ...parsed, expr: conjunctsOf(parsed.expr)[index] ?? parsed.expr });
}

/** An expression for an amount. */
export type CostExpression = {
  readonly reads: ExpressionReads;
  readonly typeError: Expression['typeError'];
  /** Undefined unless the result is a finite number that is not negative. */
  evaluate(facts: ExpressionFacts): number | undefined;
};

/** Like `compileExpression`, for an amount. */
export function compileCost(text: string): { readonly ok: true; readonly cost: CostExpression } | Failure {
  const compiled = compilePrograms(text, (expr) => [expr]);
  if (!compiled.ok) return compiled;
  const { expr, reads, failing, programs } = compiled;
  const typeError = (facts: ToolFacts) => findTypeError(expr, 'amount', facts) ?? failing;
  const evaluate = (facts: ExpressionFacts) => amountOf(programs[0] && run(programs[0].planned, facts));
  return { ok: true, cost: { reads, typeError, evaluate } };
}

type Program = { readonly reads: ExpressionReads; readonly planned: (bindings: Bindings) => unknown };

type Programs =
  | {
      readonly ok: true;
      readonly expr: Expr;
      readonly reads: ExpressionReads;
      /** A part that fails at each evaluation, in a sentence; `undefined` if there is none. */
      readonly failing: string | undefined;
      readonly programs: readonly Program[];
    }
  | Failure;

/** Compiles each of the parts of an expression. */
function compilePrograms(text: string, partsOf: (expr: Expr) => readonly Expr[]): Programs {
  if (text.length > MAX_EXPRESSION_CHARS) {
    return { ok: false, why: `the expression is longer than ${MAX_EXPRESSION_CHARS} characters` };
  }
  try {
    const { expr } = parse(text);
    const vetting = vetExpression(expr);
    if (!vetting.ok) return vetting;
    const parts = partsOf(expr);
    const programs = parts.map((part): Program => {
      const own = parts.length === 1 ? vetting : vetExpression(part);
      const planned = plan(environment, part) as (bindings: Bindings) => unknown;
      return { reads: own.ok ? own.reads : vetting.reads, planned };
    });
    return { ok: true, expr, reads: vetting.reads, failing: findFailingPart(expr), programs };
  } catch (error) {
    const { why, suggestion } = describeCelError(text, error);
    return failed(`the expression is not valid CEL: ${why}`, suggestion);
  }
}

/** The result, or undefined if the evaluation failed. */
function run(planned: (bindings: Bindings) => unknown, facts: ExpressionFacts): unknown {
  try {
    const outcome = planned(bindingsOf(facts));
    return isCelError(outcome) ? undefined : outcome;
  } catch {
    return undefined;
  }
}

/** The parts of a call, a list or a comprehension. */
function partsOf({ exprKind }: Expr): readonly Expr[] {
  switch (exprKind.case) {
    case 'callExpr':
      return [...(exprKind.value.target ? [exprKind.value.target] : []), ...exprKind.value.args];
    case 'listExpr':
      return exprKind.value.elements;
    case 'comprehensionExpr': {
      const { iterRange, loopStep, result } = exprKind.value;
      return [iterRange, loopStep, result].filter((part) => part !== undefined);
    }
    default:
      return [];
  }
}

function isConstant(expr: Expr): boolean {
  const { exprKind } = expr;
  if (exprKind.case === 'constExpr') return true;
  const isComposed = exprKind.case === 'callExpr' || exprKind.case === 'listExpr';
  return isComposed && partsOf(expr).every(isConstant);
}

/** Names a part without variables that fails at each evaluation, such as a division by zero or an invalid date. */
function findFailingPart(expr: Expr): string | undefined {
  if (!isConstant(expr)) {
    for (const part of partsOf(expr)) {
      const failing = findFailingPart(part);
      if (failing !== undefined) return failing;
    }
    return undefined;
  }
  return isCelError(plan(environment, expr)()) ? `${unparse(expr)} always fails` : undefined;
}

function conditionOf(outcome: unknown): ConditionResult {
  if (typeof outcome !== 'boolean') return 'error';
  return outcome ? 'holds' : 'fails';
}

function amountOf(outcome: unknown): number | undefined {
  const amount = typeof outcome === 'bigint' ? Number(outcome) : outcome;
  return typeof amount === 'number' && Number.isFinite(amount) && amount >= 0 ? amount : undefined;
}
