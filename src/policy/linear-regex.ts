// Regular expressions whose time is linear in the text (RE2), for patterns that meet traffic.
// Never backtracks and never throws while matching. Used by policies, schemas and expressions.
// Source: RE2 syntax; contract §4, law 6.

import { RE2JS } from 're2js';

/** Longest pattern that is compiled, in characters. */
export const MAX_PATTERN_CHARS = 1024;

/** Largest program a pattern may become, in RE2 instructions: bounds the cost a character. */
export const MAX_PATTERN_INSTRUCTIONS = 5000;

/** A compiled pattern. `test` finds it anywhere in the text, `testWhole` wants the whole text. */
export type LinearRegex = {
  test(text: string): boolean;
  testFull(text: string): boolean;
};

export type LinearRegexResult =
  | { readonly ok: true; readonly regex: LinearRegex }
  | { readonly ok: false; readonly why: string };

/** Compiles an RE2 pattern without flags. Backreferences and lookaround are refused, as RE2 does. */
export function compileLinear(pattern: string): LinearRegexResult {
  if (pattern.length > MAX_PATTERN_CHARS) {
    return { ok: false, why: `the pattern is longer than ${MAX_PATTERN_CHARS} characters` };
  }
  try {
    const regex = RE2JS.compile(pattern);
    if (regex.programSize() > MAX_PATTERN_INSTRUCTIONS) {
      return { ok: false, why: 'the pattern is too complex' };
    }
    return {
      ok: true,
      regex: {
        test: (text) => regex.test(text),
        testFull: (text) => regex.testExact(text),
      },
    };
  } catch {
    return { ok: false, why: 'the pattern is not valid RE2' };
  }
}

/** A pattern of JSON Schema (ECMA-262) in RE2 spelling: `\\/`, named groups. Semantics are RE2's. */
export function toRe2Syntax(pattern: string): string {
  try {
    return RE2JS.translateRegExp(pattern);
  } catch {
    return pattern;
  }
}
