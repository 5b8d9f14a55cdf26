// Matches names and resource URIs with the patterns of policies: exact strings, `*` and `**` globs, and `re:` with an
// anchored RE2 expression. A pattern matches a complete name or a reading of a URI (uris.ts); it never folds case and
// never searches inside. Matching takes time linear in text times pattern, never backtracks and never throws; schemas
// and CEL expressions use the same regular expressions.
// Source: RE2 syntax; docs/contract.md, law 6.

import { RE2JS } from 're2js';
import { foldName } from '../text/json-members.js';

/** Maximum length of a pattern that is compiled, in characters. */
const MAX_PATTERN_CHARS = 1024;

/** Maximum size of a compiled pattern, in RE2 instructions: bounds the cost per character. */
const MAX_PATTERN_INSTRUCTIONS = 5000;

/** A compiled pattern. `test` searches the text, `testFull` must match all of it. */
export type LinearRegex = {
  test(text: string): boolean;
  testFull(text: string): boolean;
};

type LinearRegexResult =
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
  } catch (error) {
    return { ok: false, why: `the pattern is not valid RE2${describeRe2Error(error)}` };
  }
}

/** The errors of the library by what its messages contain, in plain words. */
const RE2_ERRORS: readonly (readonly [string, string])[] = [
  ['missing closing )', 'a parenthesis "(" is never closed'],
  ['unexpected )', 'a parenthesis ")" closes nothing'],
  ['missing closing ]', 'a bracket "[" is never closed'],
  ['invalid character class range', 'a range in brackets ends before it begins'],
  [
    'invalid escape sequence',
    'a backslash stands before a character that needs none; backreferences are not supported',
  ],
  ['invalid named capture', 'the name of a group is not valid'],
  ['duplicate capture group name', 'two groups have the same name'],
  ['invalid or unsupported Perl syntax', 'lookahead and lookbehind are not supported'],
  ['invalid capture in lookbehind', 'lookahead and lookbehind are not supported'],
  ['invalid nested repetition operator', 'one repetition (* + ? {}) follows another'],
  ['invalid repeat count', 'a count of repetitions is too large or its bounds are reversed'],
  ['missing argument to repetition operator', 'a repetition (* + ?) has nothing to repeat'],
  ['trailing backslash', 'a backslash at the end stands before nothing'],
  ['nests too deeply', 'it is nested too deeply'],
  ['too large', 'it is too large'],
];

function describeRe2Error(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  const found = RE2_ERRORS.find(([part]) => message.includes(part));
  return found === undefined ? '' : `: ${found[1]}`;
}

/** Translates a pattern of JSON Schema (ECMA-262) to RE2 syntax: `\\/`, named groups. The semantics are RE2's. */
export function toRe2Syntax(pattern: string): string {
  try {
    return RE2JS.translateRegExp(pattern);
  } catch {
    return pattern;
  }
}

/** A class in brackets, an escape, a group that is more than a group, or any character. */
const PATTERN_PARTS = /\[(?:\\u[0-9A-Fa-f]{4}|\\[^u]|[^\\\]])*\]|\\(?:u[0-9A-Fa-f]{4}|[^u])|\(\?:?|[^\\]/gsu;
/** Escapes that RE2 and ECMA-262 read alike, besides those of punctuation. */
const COMMON_ESCAPE = /^\\(?:[dDwWnrtf]|u[0-9A-Fa-f]{4}|[!-/:-@[-`{-~])$/u;
const ESCAPES = /\\(?:u[0-9A-Fa-f]{4}|[^u])/gsu;
const BLANKS = '\\t\\n\\f\\r ';

/**
 * The pattern of a policy in the syntax that readers of JSON Schema (ECMA-262) read as RE2 does; undefined if there
 * is something in it that they could read otherwise.
 */
export function portablePattern(pattern: string): string | undefined {
  const parts = pattern.match(PATTERN_PARTS) ?? [];
  const shown = parts.map((part) => (part.startsWith('[') ? portableClass(part) : portablePart(part)));
  if (parts.join('') !== pattern || shown.includes(undefined)) return undefined;
  const text = shown.join('');
  try {
    new RegExp(text, 'u');
    return text;
  } catch {
    return undefined;
  }
}

function portablePart(part: string): string | undefined {
  if (part === '.') return '[^\\n]';
  if (part === '\\s') return `[${BLANKS}]`;
  if (part === '\\S') return `[^${BLANKS}]`;
  if (part.startsWith('\\')) return COMMON_ESCAPE.test(part) ? part : undefined;
  // Groups with a question mark, and brackets without a class, have more than one reading.
  return part === '(?' || part === '[' || part === ']' ? undefined : part;
}

function portableClass(part: string): string | undefined {
  // A class that is empty up to its first bracket, or that names another one, has more than one reading.
  if (/^\[\^?\]/.test(part) || part.slice(1).replace(ESCAPES, '').includes('[')) return undefined;
  if (/\\s-[^\]]/.test(part)) return undefined;
  const shown = part.replace(ESCAPES, (one) => (one === '\\s' ? BLANKS : one));
  return (shown.match(ESCAPES) ?? []).every((one) => COMMON_ESCAPE.test(one)) ? shown : undefined;
}

/** Maximum length of a glob, in characters. */
const MAX_GLOB_CHARS = 512;

/** What shows nothing in a name. */
const UNSEEN = /[\p{Cc}\p{DI}]/gu;

/** A name as a lenient server may read it: in one case and normal form, without blanks around it and what shows nothing. */
export function foldItemName(name: string): string {
  return foldName(name.normalize('NFKC').replace(UNSEEN, '')).trim();
}

/** `name`: `*` matches any characters. `path`: `*` stays within a segment between slashes, `**` does not. */
export type PatternSpace = 'name' | 'path';

export type Pattern = (
  | { readonly kind: 'exact'; readonly text: string }
  | { readonly kind: 'pattern'; readonly text: string; matches(candidate: string): boolean }
) & {
  /** Of a pattern of resources: the same with escapes decoded, for the readings of a URI in which they are. */
  readonly decoded?: readonly Pattern[];
  /** Of a pattern that restricts resources: which form of URIs it is written in; absent where that is any (uris.ts). */
  readonly compared?: 'core' | 'core with a host';
};

type PatternResult = { readonly ok: true; readonly pattern: Pattern } | { readonly ok: false; readonly why: string };

const REGEX_PREFIX = 're:';

/** True if the text is neither a glob nor a `re:` pattern. */
export function isExactPattern(text: string): boolean {
  return !text.startsWith(REGEX_PREFIX) && !text.includes('*');
}

export function compilePattern(text: string, space: PatternSpace): PatternResult {
  if (text.startsWith(REGEX_PREFIX)) return compileRegexPattern(text);
  if (isExactPattern(text)) return { ok: true, pattern: { kind: 'exact', text } };
  if (text.length > MAX_GLOB_CHARS) {
    return { ok: false, why: `the glob is longer than ${MAX_GLOB_CHARS} characters` };
  }
  return { ok: true, pattern: { kind: 'pattern', text, matches: compileGlob(text, space) } };
}

/** True if the pattern matches the complete candidate. */
export function matchesPattern(pattern: Pattern, candidate: string): boolean {
  return pattern.kind === 'exact' ? pattern.text === candidate : pattern.matches(candidate);
}

/** The pattern for names in the form of {@link foldItemName}. A regular expression stays as it is written. */
export function foldPattern(pattern: Pattern): Pattern {
  if (pattern.text.startsWith(REGEX_PREFIX)) return pattern;
  const compiled = compilePattern(foldItemName(pattern.text), 'name');
  return compiled.ok ? compiled.pattern : pattern;
}

function compileRegexPattern(text: string): PatternResult {
  const compiled = compileLinear(text.slice(REGEX_PREFIX.length));
  if (!compiled.ok) return compiled;
  const { regex } = compiled;
  return {
    ok: true,
    pattern: { kind: 'pattern', text, matches: (candidate) => regex.testFull(candidate) },
  };
}

type Token =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'star'; readonly crossesSlash: boolean };

function tokenize(glob: string, space: PatternSpace): readonly Token[] {
  const tokens: Token[] = [];
  for (const part of glob.split(/(\*+)/)) {
    if (part === '') continue;
    if (part.startsWith('*')) {
      tokens.push({ kind: 'star', crossesSlash: space === 'name' || part.length > 1 });
    } else {
      tokens.push({ kind: 'literal', text: part });
    }
  }
  return tokens;
}

function compileGlob(glob: string, space: PatternSpace): (candidate: string) => boolean {
  const tokens = tokenize(glob, space);
  const first = tokens[0];
  const last = tokens.at(-1);
  const prefix = first?.kind === 'literal' ? first.text : '';
  const suffix = last?.kind === 'literal' ? last.text : '';
  const middle = tokens.slice(prefix === '' ? 0 : 1, suffix === '' ? undefined : -1);
  const only = middle.length === 1 ? middle[0] : undefined;
  const fits = (candidate: string): boolean =>
    candidate.length >= prefix.length + suffix.length && candidate.startsWith(prefix) && candidate.endsWith(suffix);
  if (only?.kind === 'star') {
    if (only.crossesSlash) return fits;
    return (candidate) =>
      fits(candidate) && isWithinSegment(candidate, prefix.length, candidate.length - suffix.length);
  }
  return (candidate) =>
    fits(candidate) && matchesMiddle(middle, candidate, prefix.length, candidate.length - suffix.length);
}

function isWithinSegment(candidate: string, start: number, end: number): boolean {
  const slash = candidate.indexOf('/', start);
  return slash === -1 || slash >= end;
}

/**
 * Walks the tokens once over the set of positions where the preceding token may end. A star that crosses
 * slashes needs only the earliest of them; every step is one pass over the text.
 */
function matchesMiddle(tokens: readonly Token[], candidate: string, start: number, end: number): boolean {
  let reachable = new Uint8Array(end - start + 1);
  reachable[0] = 1;
  for (const token of tokens) {
    reachable =
      token.kind === 'literal'
        ? afterLiteral(reachable, token.text, candidate, start, end)
        : afterStar(reachable, token.crossesSlash, candidate, start);
  }
  return reachable[end - start] === 1;
}

function afterLiteral(
  reachable: Uint8Array,
  text: string,
  candidate: string,
  start: number,
  end: number,
): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reachable.length);
  for (let at = candidate.indexOf(text, start); at !== -1; at = candidate.indexOf(text, at + 1)) {
    if (at + text.length > end) break;
    if (reachable[at - start] === 1) next[at - start + text.length] = 1;
  }
  return next;
}

function afterStar(
  reachable: Uint8Array,
  crossesSlash: boolean,
  candidate: string,
  start: number,
): Uint8Array<ArrayBuffer> {
  const next = new Uint8Array(reachable.length);
  let isOpen = false;
  for (let at = 0; at < next.length; at++) {
    if (reachable[at] === 1) isOpen = true;
    if (isOpen) next[at] = 1;
    if (!crossesSlash && candidate[start + at] === '/') isOpen = false;
  }
  return next;
}
