// How expressions are written. Says in plain words why one does not parse: the most likely cause, found in the text
// itself, with its position; the words of the parser are not passed on. Expands `anyArg(a, condition)`, whether a
// condition holds for the text of some argument, to a comprehension over a variable that no expression can name, before
// the expression is vetted: its cost is bounded like that of any other.
// Source: CEL language definition, "Syntax"; docs/contract.md §4.

import { parse } from '@bufbuild/cel';
import type { Json } from '../protocol/jsonrpc.js';

type CelError = { readonly why: string; readonly suggestion?: string };

/** Operators and words of other languages, and those of CEL. */
const FOREIGN: readonly (readonly [RegExp, string])[] = [
  [/[=!]==/, ''],
  [/(?<![=!<>])=(?!=)/, '=='],
  [/(?<!&)&(?!&)/, '&&'],
  [/(?<!\|)\|(?!\|)/, '||'],
  [/<>/, '!='],
  [/\band\b/i, '&&'],
  [/\bor\b/i, '||'],
  [/\bnot\b/i, '!'],
];

const OPENING: ReadonlyMap<string, string> = new Map([
  [')', '('],
  [']', '['],
  ['}', '{'],
]);
const TRAILING = /(?:==|!=|<=|>=|&&|\|\||[-<>+*/%!?:,.]|\bin)$/;

/** Why an expression does not parse. `error` is that of the parser, which has the position where it gave up. */
export function describeCelError(text: string, error: unknown): CelError {
  const scan = scanText(text);
  if (scan.error !== undefined) return { why: scan.error };
  const { code } = scan;
  const trailing = TRAILING.exec(code.trimEnd())?.[0];
  if (trailing !== undefined)
    return { why: `it ends after "${trailing}", where a value is missing` };
  for (const [pattern, meant] of FOREIGN) {
    const found = pattern.exec(code);
    if (found === null) continue;
    const suggestion = meant === '' ? found[0].slice(0, 2) : meant;
    return {
      why: `"${found[0]}" at character ${found.index + 1} is not an operator of CEL`,
      suggestion,
    };
  }
  const at = positionOf(text, error);
  if (at === undefined) return { why: 'it cannot be read' };
  if (at >= text.trimEnd().length)
    return { why: 'it ends where a value or an operator is expected' };
  return { why: `${JSON.stringify(text.charAt(at))} at character ${at + 1} is not expected there` };
}

/** The index in the text where the parser gave up, from the line and column in its message. */
function positionOf(text: string, error: unknown): number | undefined {
  const message = error instanceof Error ? error.message : '';
  const [, line, column] = /^<input>:(\d+):(\d+):/.exec(message) ?? [];
  if (line === undefined || column === undefined) return undefined;
  const before = text.split('\n').slice(0, Number(line) - 1);
  return before.reduce((sum, one) => sum + one.length + 1, 0) + Number(column) - 1;
}

/** The string literals of an expression. */
export const STRING = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/g;

/** The text with a placeholder for each string literal, or what is wrong with its quotes and brackets. */
function scanText(text: string): { readonly code: string; readonly error?: string } {
  const code = text.replace(STRING, (literal) => 's'.repeat(literal.length));
  const quote = code.search(/["']/);
  if (quote !== -1) {
    return { code, error: `the quote ${code[quote]} at character ${quote + 1} is never closed` };
  }
  const open: number[] = [];
  for (const { 0: mark, index } of code.matchAll(/[()[\]{}]/g)) {
    const opening = OPENING.get(mark);
    if (opening === undefined) open.push(index);
    else if (code[open.pop() ?? -1] !== opening) {
      return { code, error: `the bracket ${mark} at character ${index + 1} closes nothing` };
    }
  }
  const last = open.at(-1);
  if (last === undefined) return { code };
  return { code, error: `the bracket ${code[last]} at character ${last + 1} is never closed` };
}

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
