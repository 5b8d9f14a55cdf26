// Infers the types of expressions from literals, functions and the pinned schema of a tool. Finds operators and functions
// that always fail, and comparisons that never hold. An operand whose type is not certain may have any type, so that no
// valid expression is reported.
// Source: CEL language definition, "Standard definitions"; docs/contract.md, law 4.

import type { parse } from '@bufbuild/cel';
import { isObject, type Json } from '../protocol/jsonrpc.js';

export type Expr = ReturnType<typeof parse>['expr'];

type Chain = {
  readonly root: Expr;
  readonly path: readonly string[];
  readonly isTest: boolean;
};

/** Resolves `a.b["c"]` to its root and the literal names after it. */
export function unwind(expr: Expr): Chain {
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

export function literalText(expr: Expr): string | undefined {
  const kind = expr.exprKind;
  if (kind.case !== 'constExpr' || kind.value.constantKind.case !== 'stringValue') return undefined;
  return kind.value.constantKind.value;
}

/** CEL compares numbers of different types, but its arithmetic takes one type. Numbers of arguments are doubles. */
type NumberKind = 'int' | 'uint' | 'double';
type Kind = NumberKind | 'string' | 'bool' | 'list' | 'map' | 'null';
/** The kinds that a value may have; undefined if it may have any. */
type Kinds = ReadonlySet<Kind> | undefined;

/** The kinds of the argument at a path. */
export type KindsAt = (path: readonly string[]) => Kinds;

/** For which tool the types of an expression are checked. */
export type ToolFacts = {
  readonly kindsAt: KindsAt;
  /** Undefined for any tool. */
  readonly tool?: string | undefined;
};

/** Without a pinned schema. */
export const ANY_TOOL: ToolFacts = { kindsAt: () => undefined };

const NOUNS: { readonly [kind in Kind]: string } = {
  string: 'text',
  int: 'a number',
  uint: 'a number',
  double: 'a number',
  bool: 'true or false',
  list: 'a list',
  map: 'a map',
  null: 'null',
};

const kindSet = (...names: readonly Kind[]): ReadonlySet<Kind> => new Set(names);
const [STRING, NUMBER, BOOL, LIST, MAP] = [
  kindSet('string'),
  kindSet('int', 'uint', 'double'),
  kindSet('bool'),
  kindSet('list'),
  kindSet('map'),
];
const ORDERED = kindSet('string', 'int', 'uint', 'double', 'bool');

/** The types of the operands of a function or operator, in order, and of its result. */
type Signature = { readonly takes: readonly Kinds[]; readonly gives: Kinds };

/** The last type of `takes` applies to all further operands. */
const SIGNATURES: ReadonlyMap<string, Signature> = new Map<string, Signature>([
  ...['startsWith', 'endsWith', 'contains', 'matches', 'path.under', 'url.isPublic'].map(
    (name) => [name, { takes: [STRING], gives: BOOL }] as const,
  ),
  ...['lowerAscii', 'upperAscii', 'trim', 'url.host'].map(
    (name) => [name, { takes: [STRING], gives: STRING }] as const,
  ),
  ...['_&&_', '_||_', '!_'].map((name) => [name, { takes: [BOOL], gives: BOOL }] as const),
  ['_+_', { takes: [kindSet('string', 'list', 'int', 'uint', 'double')], gives: undefined }],
  ...['_-_', '_*_', '_/_'].map((name) => [name, { takes: [NUMBER], gives: undefined }] as const),
  ['_%_', { takes: [kindSet('int', 'uint')], gives: kindSet('int', 'uint') }],
  ['-_', { takes: [kindSet('int', 'double')], gives: kindSet('int', 'double') }],
  ...['_<_', '_<=_', '_>_', '_>=_'].map((name) => [name, { takes: [ORDERED], gives: BOOL }] as const),
  ['_==_', { takes: [undefined], gives: BOOL }],
  ['_!=_', { takes: [undefined], gives: BOOL }],
  ['@in', { takes: [undefined, kindSet('list', 'map')], gives: BOOL }],
  ['size', { takes: [kindSet('string', 'list', 'map')], gives: kindSet('int') }],
  ['_?_:_', { takes: [BOOL, undefined], gives: undefined }],
  ['string', { takes: [undefined], gives: STRING }],
  ...(['int', 'uint', 'double'] as const).map((name) => [name, { takes: [undefined], gives: kindSet(name) }] as const),
]);
/** Operators whose operands must be of one kind; all numbers are alike. */
const SAME = new Set(['_==_', '_!=_', '_<_', '_<=_', '_>_', '_>=_']);
/** Operators whose operands and result are of one type. */
export const ARITHMETIC = new Set(['_+_', '_-_', '_*_', '_/_', '_%_']);
const VARIABLES: ReadonlyMap<string, Kinds> = new Map<string, Kinds>([
  ...['principal.issuer', 'principal.subject', 'principal.client', 'uri'].map((name) => [name, STRING] as const),
  ...['tool.upstream', 'tool.name'].map((name) => [name, STRING] as const),
  ...['principal.groups', 'principal.scopes', 'findings'].map((name) => [name, LIST] as const),
  ...['principal.claims', 'tool.annotations', 'args'].map((name) => [name, MAP] as const),
]);

class TypeMismatch extends Error {}

/** The first certain type error of an expression that must give `result`; undefined if there is none. */
export function findTypeError(expr: Expr, result: 'condition' | 'amount', facts: ToolFacts): string | undefined {
  try {
    const kinds = kindsOf(expr, facts);
    const wanted = result === 'condition' ? BOOL : NUMBER;
    if (!overlap(kinds, wanted)) return `the expression must give ${nounOf(wanted)}, but gives ${nounOf(kinds)}`;
  } catch (error) {
    if (error instanceof TypeMismatch) return error.message;
    throw error;
  }
  return undefined;
}

function overlap(some: Kinds, others: Kinds): boolean {
  return some === undefined || others === undefined || [...some].some((kind) => others.has(kind));
}

function nounOf(kinds: Kinds): string {
  return [...new Set([...(kinds ?? [])].map((kind) => NOUNS[kind]))].join(' or ');
}

/** Names the types of numbers, where these matter. */
function typeOf(kinds: Kinds): string {
  const named = [...(kinds ?? [])].map((kind) =>
    NUMBER.has(kind) ? `${kind === 'int' ? 'an' : 'a'} ${kind}` : NOUNS[kind],
  );
  return named.join(' or ');
}

/** The kinds with all numbers, if one of them is a number. */
function comparable(kinds: Kinds): Kinds {
  return overlap(kinds, NUMBER) ? kinds && new Set([...kinds, ...NUMBER]) : kinds;
}

function kindsOf(expr: Expr, facts: ToolFacts): Kinds {
  const { exprKind } = expr;
  switch (exprKind.case) {
    case 'constExpr':
      return kindOfConstant(exprKind.value.constantKind.case);
    case 'listExpr':
      for (const element of exprKind.value.elements) kindsOf(element, facts);
      return LIST;
    case 'structExpr':
      return MAP;
    case 'identExpr':
    case 'selectExpr':
      return kindsOfChain(expr, facts);
    case 'callExpr':
      return exprKind.value.function === '_[_]' ? kindsOfChain(expr, facts) : kindsOfCall(exprKind.value, facts);
    default:
      // The elements and the result of a comprehension may have any type.
      return undefined;
  }
}

function kindOfConstant(constant: string | undefined): Kinds {
  if (constant === 'stringValue') return STRING;
  if (constant === 'boolValue') return BOOL;
  if (constant === 'nullValue') return kindSet('null');
  if (constant === 'int64Value') return kindSet('int');
  if (constant === 'uint64Value') return kindSet('uint');
  return constant === 'doubleValue' ? kindSet('double') : undefined;
}

function kindsOfChain(expr: Expr, facts: ToolFacts): Kinds {
  const { root, path, isTest } = unwind(expr);
  if (isTest) return BOOL;
  if (root.exprKind.case !== 'identExpr') return undefined;
  const name = root.exprKind.value.name.replace(/^\./, '');
  if (name === 'args' && path.length > 0) return facts.kindsAt(path);
  return VARIABLES.get([name, ...path].join('.'));
}

type Call = Extract<Expr['exprKind'], { case: 'callExpr' }>['value'];

/** Whether a condition holds for the tool, as far as its name alone says that. */
function holdsFor({ exprKind }: Expr, tool: string | undefined): boolean | undefined {
  if (exprKind.case !== 'callExpr' || tool === undefined) return undefined;
  const { function: called, args } = exprKind.value;
  if (called === '_==_') return namesTool(args, tool);
  if (called === '_!=_') return negated(namesTool(args, tool));
  const operands = args.map((arg) => holdsFor(arg, tool));
  if (called === '!_') return negated(operands[0]);
  if (called !== '_&&_' && called !== '_||_') return undefined;
  const decisive = called === '_||_';
  if (operands.includes(decisive)) return decisive;
  return operands.includes(undefined) ? undefined : !decisive;
}

/** Whether `tool.name == "…"` holds; undefined for any other comparison. */
function namesTool(operands: readonly Expr[], tool: string): boolean | undefined {
  const texts = operands.map(literalText);
  return operands.some(isToolName) && texts.some((text) => text !== undefined) ? texts.includes(tool) : undefined;
}

function negated(holds: boolean | undefined): boolean | undefined {
  return holds === undefined ? undefined : !holds;
}

function isToolName(expr: Expr): boolean {
  const { root, path, isTest } = unwind(expr);
  const isTool = root.exprKind.case === 'identExpr' && root.exprKind.value.name === 'tool';
  return isTool && !isTest && path.join('.') === 'name';
}

/** The operands of which the result depends for this tool. */
function operandsFor(name: string, operands: readonly Expr[], tool: string | undefined) {
  const [condition, yes, no] = operands;
  const isLogical = name === '_&&_' || name === '_||_';
  const decisive = operands.find((one) => holdsFor(one, tool) === (name === '_||_'));
  if (isLogical && decisive !== undefined) return [decisive];
  const holds = condition && name === '_?_:_' ? holdsFor(condition, tool) : undefined;
  const chosen = holds === true ? yes : no;
  return holds === undefined || condition === undefined || chosen === undefined ? operands : [condition, chosen];
}

function kindsOfCall({ function: called, target, args }: Call, facts: ToolFacts): Kinds {
  const qualifier = target?.exprKind.case === 'identExpr' ? target.exprKind.value.name : '';
  const qualified = `${qualifier}.${called}`;
  const name = SIGNATURES.has(qualified) ? qualified : called;
  const all = target === undefined || name === qualified ? args : [target, ...args];
  const operands = operandsFor(name, all, facts.tool);
  const kinds = operands.map((operand) => kindsOf(operand, facts));
  const signature = SIGNATURES.get(name);
  const shown = name.replaceAll('_', '').replace('@', '');
  checkOperands(shown, operands, kinds, signature?.takes ?? []);
  if (ARITHMETIC.has(name)) return kindsOfArithmetic(shown, operands, kinds);
  const [one, other] = kinds;
  const isNull = one?.has('null') === true || other?.has('null') === true;
  if (SAME.has(name) && !isNull && !overlap(comparable(one), other) && operands[0] !== undefined)
    throw new TypeMismatch(
      `"${shown}" compares with ${nounOf(other)}, but ${subjectOf(operands[0])} is ${nounOf(one)}`,
    );
  return signature?.gives;
}

/** Each operand may be of a type that the function or operator takes. */
function checkOperands(
  shown: string,
  operands: readonly Expr[],
  kinds: readonly Kinds[],
  takes: Signature['takes'],
): void {
  for (const [index, operand] of operands.entries()) {
    const wanted = takes[Math.min(index, takes.length - 1)];
    if (overlap(kinds[index], wanted)) continue;
    // If both are numbers, only their types say what is wrong.
    const nameOf = overlap(kinds[index], NUMBER) && overlap(wanted, NUMBER) ? typeOf : nounOf;
    throw new TypeMismatch(`"${shown}" takes ${nameOf(wanted)}, but ${subjectOf(operand)} is ${nameOf(kinds[index])}`);
  }
}

/** Both operands are of the type of the result. */
function kindsOfArithmetic(shown: string, [first, second]: readonly Expr[], [one, other]: readonly Kinds[]): Kinds {
  if (one === undefined || other === undefined) return one ?? other;
  const common = [...one].filter((kind) => other.has(kind));
  if (common.length > 0 || first === undefined || second === undefined) return new Set(common);
  const [left, right] = [subjectOf(first, 'the first'), subjectOf(second, 'the second')];
  throw new TypeMismatch(
    `"${shown}" takes two operands of one type, but ${left} is ${typeOf(one)} and ${right} is ${typeOf(other)}`,
  );
}

/** The operand as the expression names it, or else as the sentence does. */
function subjectOf(operand: Expr, otherwise = 'its operand'): string {
  const { root, path } = unwind(operand);
  const name = root.exprKind.case === 'identExpr' ? root.exprKind.value.name : undefined;
  return name === undefined ? otherwise : [name, ...path].join('.');
}

const KINDS_OF_TYPES: ReadonlyMap<Json | undefined, Kind> = new Map<Json | undefined, Kind>([
  ['string', 'string'],
  ['number', 'double'],
  ['integer', 'double'],
  ['boolean', 'bool'],
  ['array', 'list'],
  ['object', 'map'],
  ['null', 'null'],
]);

/** The kinds that a schema admits at a path of properties, as far as their `type` says. */
export function kindsInSchema(schema: Json | undefined, path: readonly string[]): Kinds {
  let at = schema;
  for (const name of path) {
    const properties: Json | undefined = isObject(at) ? at['properties'] : undefined;
    at = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  }
  const type = isObject(at) ? at['type'] : undefined;
  const kinds = (Array.isArray(type) ? type : [type]).map((one: Json | undefined) => KINDS_OF_TYPES.get(one));
  const known = kinds.filter((kind) => kind !== undefined);
  return known.length < kinds.length || known.length === 0 ? undefined : new Set(known);
}
