// `anyArg(a, condition)` in expressions: whether a condition holds for the text of some argument, so that one rule holds
// for tools whose arguments have different names. It is expanded to a comprehension over a variable that no
// expression can name, before the expression is vetted: its cost is bounded like that of any other.
// docs/contract.md §4.

import { parse } from '@bufbuild/cel';
import type { Json } from '../protocol/jsonrpc.js';

type Expr = ReturnType<typeof parse>['expr'];

export const ANY_ARGUMENT = 'anyArg';

/** The variable with the texts of all arguments. */
export const ARGUMENT_TEXTS = '@texts';

/** Replaces a call of the macro, in place, by `@texts.exists(a, condition)`; or says how it is written. */
export function expandAnyArgument(expr: Expr): string | undefined {
  const [variable, condition, ...more] =
    expr.exprKind.case === 'callExpr' ? expr.exprKind.value.args : [];
  const name = variable?.exprKind.case === 'identExpr' ? variable.exprKind.value.name : undefined;
  if (name === undefined || condition === undefined || more.length > 0) {
    return 'anyArg takes a name and a condition: anyArg(a, a.contains("x"))';
  }
  const { exprKind } = parse(`texts.exists(${name}, true)`).expr;
  const fold = exprKind.case === 'comprehensionExpr' ? exprKind.value : undefined;
  const range = fold?.iterRange?.exprKind;
  const step = fold?.loopStep?.exprKind;
  if (range?.case !== 'identExpr' || step?.case !== 'callExpr') {
    return 'anyArg takes another name than this for an argument';
  }
  range.value.name = ARGUMENT_TEXTS;
  step.value.args[1] = condition;
  expr.exprKind = exprKind;
  return undefined;
}

/** The text of every value in the arguments, at any depth: strings as they are, numbers and booleans as in JSON. */
export function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (value === null) return [];
  return typeof value === 'object'
    ? Object.values(value).flatMap(textsIn)
    : [JSON.stringify(value)];
}
