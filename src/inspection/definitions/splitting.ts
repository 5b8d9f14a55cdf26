// Reads text as the words that a model takes from it, however they are set apart: a name in snake or camel case, words
// with signs or pictures between them, a list that has one word a line. Pure and linear.

/** A border between two words of a name in camel case. */
const CAMEL = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g;
/** What sets words apart in a name. A full stop or a colon ends no sentence there. */
const NO_WORD = /[^\p{L}\p{N}'\u2019@ ]+/gu;
/** Numbers that put words in order: `1_read`, `2_all`. */
const ORDINAL = /(?<![^ ])\d{1,3}(?![^ ])/g;
const MAX_NAME = 2_000;

/** A name as words. */
export function splitName(name: string): string {
  if (name.length > MAX_NAME) return name;
  return name.replace(CAMEL, ' ').replace(NO_WORD, ' ').replace(ORDINAL, ' ').trim().toLowerCase();
}

/** Several words without a blank between them: `ignore_all_rules`, `IgnoreAllRules`. An address has none. */
const TOUCHING =
  /(?<![\p{L}\p{N}/@%.=?&])\p{L}{2,24}(?:(?:[^\p{L}\p{N}\s@%=?(<>[\]{}"'`,]{1,8}|(?<=\p{Ll})(?=\p{Lu}))\p{L}{1,24}){2,60}(?![\p{L}\p{N}/@%=?])/gu;
/** Pieces of one or two words, each behind a mark or on a line of its own. */
const SHREDS =
  /(?<![^\s.!?;])(?:[\p{L}'\u2019]{1,24}(?: [\p{L}'\u2019]{1,24})?[ \t]{0,4}(?:[.!?;\u2026\u2022]{1,8}(?=\s)|\n)[\s\u2022*#>|-]{0,8}(?:\d{1,3}[.)] )?){3,60}[\p{L}'\u2019]{1,24}/gu;
const MARK = /(?:[.!?;\u2026\u2022]+|\d{1,3}[.)])(?=\s)|[\n\u2022*#>|-]+/g;

/** The text with what touches set apart and what is in shreds put together; itself where there is neither. */
export function splitProse(text: string): string {
  return text.replace(TOUCHING, splitName).replace(SHREDS, (run) => run.replace(MARK, ' '));
}
