// Reads a parsed `when` expression before it may run: which names it uses, what it reads, what it costs.
// The CEL library finds unknown names only while evaluating, so they are found here. Evaluates nothing.
// Source: CEL language definition, "Macros" and "Standard definitions"; contract §4, laws 5 and 7.

import type { parse } from '@bufbuild/cel';
import { compileLinear } from './linear-regex.js';
import { suggestName } from './suggestion.js';

type Expr = ReturnType<typeof parse>['expr'];

/** What an expression reads. */
export type ExpressionReads = {
  /** Paths into `args`; the empty path is all of them. Ends where an index is not a literal name. */
  readonly argumentPaths: readonly (readonly string[])[];
  /** Those of them whose value is read. */
  readonly valuePaths: readonly (readonly string[])[];
  /** Paths of which has() or `in` asks only whether they are there. */
  readonly testedPaths: readonly (readonly string[])[];
  /** Top-level arguments that are read, and for which no has() or `in` asks first. */
  readonly unguarded: readonly string[];
  readonly readsUri: boolean;
  readonly readsAnnotations: boolean;
};

export type Vetting =
  | { readonly ok: true; readonly reads: ExpressionReads }
  | { readonly ok: false; readonly why: string; readonly suggestion?: string };

const MEMBERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['principal', ['issuer', 'subject', 'client', 'groups', 'scopes', 'claims']],
  ['tool', ['upstream', 'name', 'annotations']],
]);
const VARIABLES = ['args', 'uri', 'principal', 'tool'];
const TYPES = new Set('bool bytes double int list map null_type string type uint'.split(' '));
/** Constant in cost, or linear in operands that a comprehension may not repeat. */
const OPERATORS = new Set(
  '_&&_ _||_ !_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _+_ _-_ _*_ _/_ _%_ -_ _[_] _?_:_ @not_strictly_false'.split(
    ' ',
  ),
);
const ARITHMETIC = new Set(['_+_', '_-_', '_*_', '_/_', '_%_']);
const FUNCTIONS = new Set([
  ...'size contains startsWith endsWith matches lowerAscii upperAscii trim'.split(' '),
  ...'bool bytes double dyn int string type uint timestamp duration'.split(' '),
  ...'getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear'.split(' '),
  ...'getHours getMinutes getSeconds getMilliseconds @in'.split(' '),
]);

class Refusal extends Error {
  readonly suggestion: string | undefined;
  constructor(message: string, suggestion?: string) {
    super(message);
    this.suggestion = suggestion;
  }
}

type ExpressionPosition = {
  readonly locals: ReadonlySet<string>;
  /** Inside a comprehension, its range included: another may not begin here. */
  readonly isNested: boolean;
  /** In a part that is repeated for each element. */
  readonly isRepeated: boolean;
};

type Findings = {
  readonly paths: (readonly string[])[];
  readonly values: (readonly string[])[];
  readonly tested: (readonly string[])[];
  readonly guarded: Set<string>;
  readsUri: boolean;
  readsAnnotations: boolean;
};

/** Vets a parsed expression; errors are sentences for the author of the policy. */
export function vetExpression(expr: Expr): Vetting {
  const findings: Findings = {
    paths: [],
    values: [],
    tested: [],
    guarded: new Set(),
    readsUri: false,
    readsAnnotations: false,
  };
  try {
    visit(expr, { locals: new Set(), isNested: false, isRepeated: false }, findings);
  } catch (error) {
    if (!(error instanceof Refusal)) return { ok: false, why: 'the expression is nested too deep' };
    const { message: why, suggestion } = error;
    return suggestion === undefined ? { ok: false, why } : { ok: false, why, suggestion };
  }
  const top = new Set(findings.paths.flatMap((path) => path.slice(0, 1)));
  const { readsUri, readsAnnotations } = findings;
  return {
    ok: true,
    reads: {
      argumentPaths: findings.paths,
      valuePaths: findings.values,
      testedPaths: findings.tested,
      unguarded: [...top].filter((name) => !findings.guarded.has(name)),
      readsUri,
      readsAnnotations,
    },
  };
}

function visit(expr: Expr | undefined, position: ExpressionPosition, findings: Findings): void {
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

function visitMap(literal: MapLiteral, position: ExpressionPosition, findings: Findings): void {
  if (literal.messageName !== '') throw new Refusal('messages cannot be made here');
  for (const entry of literal.entries) {
    if (entry.keyKind.case === 'mapKey') visit(entry.keyKind.value, position, findings);
    visit(entry.value, position, findings);
  }
}

function visitComprehension(
  fold: Comprehension,
  position: ExpressionPosition,
  findings: Findings,
): void {
  if (position.isNested)
    throw new Refusal('comprehensions (all, exists, map, filter) may not nest');
  visit(fold.iterRange, { ...position, isNested: true }, findings);
  const locals = new Set([fold.iterVar, fold.iterVar2, fold.accuVar].filter((name) => name !== ''));
  const inner: ExpressionPosition = { locals, isNested: true, isRepeated: true };
  for (const part of [fold.accuInit, fold.loopCondition, fold.loopStep, fold.result]) {
    visit(part, inner, findings);
  }
}

type Chain = { readonly root: Expr; readonly path: readonly string[]; readonly isTest: boolean };

/** Unwinds `a.b["c"]` to its root and the literal names after it. */
function unwind(expr: Expr): Chain {
  const path: string[] = [];
  let isTest = false;
  let at = expr;
  for (let step = stepOf(at); step !== undefined; step = stepOf(at)) {
    path.unshift(step.name);
    isTest ||= step.isTest;
    at = step.operand;
  }
  return { root: at, path, isTest };
}

type Step = { readonly operand: Expr; readonly name: string; readonly isTest: boolean };

function stepOf({ exprKind }: Expr): Step | undefined {
  if (exprKind.case === 'selectExpr') {
    const { operand, field, testOnly } = exprKind.value;
    return operand === undefined ? undefined : { operand, name: field, isTest: testOnly };
  }
  if (exprKind.case !== 'callExpr' || exprKind.value.function !== '_[_]') return undefined;
  const [operand, index] = exprKind.value.args;
  const name = index === undefined ? undefined : literalText(index);
  return operand === undefined || name === undefined ? undefined : { operand, name, isTest: false };
}

function literalText(expr: Expr): string | undefined {
  const kind = expr.exprKind;
  if (kind.case !== 'constExpr' || kind.value.constantKind.case !== 'stringValue') return undefined;
  return kind.value.constantKind.value;
}

function visitChain(expr: Expr, position: ExpressionPosition, findings: Findings): void {
  const { root, path, isTest } = unwind(expr);
  if (root.exprKind.case !== 'identExpr') {
    visit(root, position, findings);
    return;
  }
  const written = root.exprKind.value.name;
  if (position.locals.has(written) || TYPES.has(written)) return;
  // A leading dot names the variable of the environment even where a local one hides it.
  const name = written.startsWith('.') ? written.slice(1) : written;
  if (!VARIABLES.includes(name)) {
    throw new Refusal('an unknown name is used', suggestName(name, VARIABLES));
  }
  readVariable(name, path, isTest, findings);
}

function readVariable(
  name: string,
  path: readonly string[],
  isTest: boolean,
  findings: Findings,
): void {
  if (name === 'uri') findings.readsUri = true;
  if (name === 'args') {
    findings.paths.push(path);
    (isTest ? findings.tested : findings.values).push(path);
    if (isTest && path[0] !== undefined) findings.guarded.add(path[0]);
  }
  const members = MEMBERS.get(name);
  if (members === undefined) return;
  const member = path[0];
  if (member === undefined) throw new Refusal(`name a member of ${name}: ${members.join(', ')}`);
  if (!members.includes(member)) {
    throw new Refusal(`${name} has no such member`, suggestName(member, members));
  }
  if (name === 'tool' && member === 'annotations') findings.readsAnnotations = true;
}

function visitCall(expr: Expr, call: Call, position: ExpressionPosition, findings: Findings): void {
  const name = call.function;
  if (!OPERATORS.has(name) && !FUNCTIONS.has(name)) {
    throw new Refusal('an unknown function is called', suggestName(name, FUNCTIONS));
  }
  if (name === '_[_]' && unwind(expr).root !== expr) {
    visitChain(expr, position, findings);
    return;
  }
  const operands = call.target === undefined ? call.args : [call.target, ...call.args];
  vetOperands(name, operands, findings);
  const before = countReads(findings);
  visitOperands(name, operands, position, findings);
  if (position.isRepeated && FUNCTIONS.has(name) && countReads(findings) > before) {
    throw new Refusal('inside a comprehension, functions may not read args or uri');
  }
}

function countReads(findings: Findings): number {
  return findings.paths.length + (findings.readsUri ? 1 : 0);
}

/** RE2 compilation is bounded for patterns of the policy, not for patterns of the caller. */
function vetMatches(operands: readonly Expr[]): void {
  const pattern = operands[1] === undefined ? undefined : literalText(operands[1]);
  if (pattern === undefined) throw new Refusal('the pattern of matches() must be a literal');
  const compiled = compileLinear(pattern);
  if (!compiled.ok) throw new Refusal(`in matches(), ${compiled.why}`);
}

function vetOperands(name: string, operands: readonly Expr[], findings: Findings): void {
  if (name === 'matches') vetMatches(operands);
  if (name === '@in') guardByMembership(operands, findings);
  if (ARITHMETIC.has(name)) vetArithmetic(operands);
}

function visitOperands(
  name: string,
  operands: readonly Expr[],
  position: ExpressionPosition,
  findings: Findings,
): void {
  const asked = name === '@in' ? memberAsked(operands, position) : undefined;
  if (asked === undefined) {
    for (const operand of operands) visit(operand, position, findings);
    return;
  }
  findings.paths.push(asked.slice(0, -1));
  findings.tested.push(asked);
}

/** `"name" in args.a` asks whether a member is there, and reads nothing of the others. */
function memberAsked(
  operands: readonly Expr[],
  { locals }: ExpressionPosition,
): readonly string[] | undefined {
  const [name, container] = operands;
  const text = name === undefined ? undefined : literalText(name);
  if (text === undefined || container === undefined) return undefined;
  const { root, path, isTest } = unwind(container);
  const variable = root.exprKind.case === 'identExpr' ? root.exprKind.value.name : '';
  const isArguments = variable === '.args' || (variable === 'args' && !locals.has('args'));
  return isArguments && !isTest ? [...path, text] : undefined;
}

/** `"name" in args` asks as has() does. */
function guardByMembership(operands: readonly Expr[], findings: Findings): void {
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
    ({ exprKind }) =>
      exprKind.case === 'constExpr' && exprKind.value.constantKind.case === 'int64Value',
  );
  const hasArgument = operands.some((operand) => {
    const { exprKind } = unwind(operand).root;
    return exprKind.case === 'identExpr' && exprKind.value.name === 'args';
  });
  if (hasInteger && hasArgument) {
    throw new Refusal('numbers of arguments are doubles: write 1.0 instead of 1');
  }
}
