// The members of JSON values: JSON pointers that lead to them, and names folded so that names that some parser treats
// as equal compare equal. Simple case folding only, one code point to one code point. Full folding (ß = ss) and
// normalization are never applied, because no JSON parser applies them to member names.
// Source: RFC 6901 §3; Unicode CaseFolding.txt, statuses C and S; CVE-2026-27896.

/** Appends a member or an index to a pointer. */
export function pointerTo(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The pointer of a path. */
export function pointerOf(steps: readonly (string | number)[]): string {
  let pointer = '';
  for (const step of steps) pointer = pointerTo(pointer, String(step));
  return pointer;
}

/** The names and indices of a pointer, from the root on. */
export function stepsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

// Code points whose simple folding is not "lower case of upper case". U+0131 folds to itself without Turkic
// rules; the other three pairs are equal although neither has an upper case of a single code point.
const FOLDING_EXCEPTIONS: ReadonlyMap<number, number> = new Map([
  [0x131, 0x131],
  [0x1fd3, 0x390],
  [0x1fe3, 0x3b0],
  [0xfb05, 0xfb06],
]);

const MAX_ASCII = 0x7f;

/**
 * The folded form of a member name. Two names are equal to a case-insensitive parser exactly when their folded
 * forms are equal. Linear; an ASCII name takes one pass.
 * Source: Unicode 15.1 §3.13, simple case folding.
 */
export function foldName(name: string): string {
  for (let at = 0; at < name.length; at++) {
    if (name.charCodeAt(at) > MAX_ASCII) return foldCodePoints(name);
  }
  return name.toLowerCase();
}

function foldCodePoints(name: string): string {
  let folded = '';
  for (const character of name) folded += foldCodePoint(character);
  return folded;
}

function foldCodePoint(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  const exception = FOLDING_EXCEPTIONS.get(point);
  if (exception !== undefined) return String.fromCodePoint(exception);
  const upper = onePointOr(character.toUpperCase(), character);
  return onePointOr(upper.toLowerCase(), upper);
}

function onePointOr(mapped: string, original: string): string {
  const first = mapped.codePointAt(0) ?? 0;
  return mapped.length === (first > 0xffff ? 2 : 1) ? mapped : original;
}
