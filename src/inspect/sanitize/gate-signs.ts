// The exact look of the prefilter at one character: a sign, a digit or what lies beyond ASCII. It tells
// whether something that a detector knows could begin, end or hide there. Errs only towards "it could".

import { isPlainBeyondAscii } from './code-points.js';
import { IBAN_LENGTHS } from './iban-lengths.js';
import { isConfusable } from './skeleton.js';
import { MAX_QUIET_QUERY_CHARS } from './targets.js';

const MAX_ASCII = 0x7e;
const BACKSLASH = 0x5c;

/** Whether a digit, sign or character beyond ASCII (`isJson`: of valid JSON) asks for a closer look at the whole text. */
export function isSuspiciousUnit(text: string, at: number, isJson: boolean): boolean {
  if (isDigit(text, at)) return isSuspiciousDigit(text, at);
  const code = text.charCodeAt(at);
  if (code <= MAX_ASCII) return isSuspiciousSign(text, at, code, isJson);
  return !isPlainBeyond(text, at, code);
}

const MIN_BLANK_LINES = 8;

function isSuspiciousSign(text: string, at: number, code: number, isJson: boolean): boolean {
  const next = text.charAt(at + 1);
  switch (code) {
    case 0x3c: // <
      return /[A-Za-z!/?|<]/.test(next);
    case 0x5c: // backslash
      return /[ubfxX/]/.test(next) || isBlankRun(text, at);
    case 0x25: // %
      return /^[0-9A-Fa-f]{2}/.test(text.slice(at + 1, at + 3));
    case 0x26: // &
      return /^(?:#|[A-Za-z]{2,16};)/.test(text.slice(at + 1, at + 19));
    case 0x5d: // ]
      return next === '(' || next === '[' || next === ':';
    case 0x21: // !
      return next === '[' || (next === '\\' && /^\\{1,12}\[/.test(text.slice(at + 1, at + 14)));
    case 0x3f: // ?
    case 0x23: // #
      return isLongQuery(text, at + 1, isJson);
    case 0x7c: // |
      return text.startsWith('||', at + 1);
    case 0x0a: // line feed
      return isBlankRun(text, at);
    default: // a control character
      return true;
  }
}

/** A query longer than the target of a link may have, as far as blanks and tags let it go on. */
const LONG_QUERY = new RegExp(`^[^\\s<]{${MAX_QUIET_QUERY_CHARS + 1}}`);
/** The same within one string of JSON. */
const LONG_JSON_QUERY = new RegExp(`^(?:\\\\.|[^\\s<"\\\\]){${MAX_QUIET_QUERY_CHARS + 1}}`);

function isLongQuery(text: string, at: number, isJson: boolean): boolean {
  const ahead = text.slice(at, at + 2 * (MAX_QUIET_QUERY_CHARS + 1));
  return (isJson ? LONG_JSON_QUERY : LONG_QUERY).test(ahead);
}

/** How far a stretch of blank lines is followed, in raw characters. */
const BLANK_REACH = 64 * MIN_BLANK_LINES;
const MAX_SLASHES = 4;
const BLANK = /[ \t\n\r]/;
const BLANK_ESCAPE = /[nrt]/;

/** Blank lines, raw or escaped once or twice, by which text could be pushed out of sight. */
function isBlankRun(text: string, from: number): boolean {
  const ahead = text.slice(from, from + BLANK_REACH);
  let lines = 0;
  for (let at = 0; at < ahead.length && lines < MIN_BLANK_LINES; at++) {
    const isEscape = ahead.charCodeAt(at) === BACKSLASH;
    if (isEscape) at = behindSlashes(ahead, at);
    const unit = ahead.charAt(at);
    if (!(isEscape ? BLANK_ESCAPE : BLANK).test(unit)) return false;
    if (unit === 'n' || unit === '\n') lines++;
  }
  return lines >= MIN_BLANK_LINES;
}

/** The position behind up to four backslashes. */
function behindSlashes(text: string, at: number): number {
  let end = at + 1;
  while (end - at < MAX_SLASHES && text.charCodeAt(end) === BACKSLASH) end++;
  return end;
}

/** True for a character beyond ASCII that is only what it looks like, at either half of a pair. */
function isPlainBeyond(text: string, at: number, code: number): boolean {
  if (code < 0xd800 || code > 0xdfff) return isPlainBeyondAscii(code, isConfusable);
  const codePoint = text.codePointAt(code < 0xdc00 ? at : at - 1) ?? 0;
  return (
    (codePoint >= 0x1f000 && codePoint <= 0x1f0ff) || (codePoint >= 0x1f300 && codePoint <= 0x1faff)
  );
}

const MIN_CARD_DIGITS = 12;
const SSN = /\d{3}([-. ])\d{2}\1\d{4}$/;
const IBAN = /[A-Za-z]{2}\d\d$/;

/** At the last digit of a group: whether it could end or begin a number of a person. */
function isSuspiciousDigit(text: string, at: number): boolean {
  if (isDigit(text, at + 1)) return isIbanStart(text, at);
  let digits = 0;
  for (let before = at; before >= 0; before--) {
    if (isDigit(text, before)) digits++;
    else if (!isSeparator(text.charCodeAt(before))) break;
    if (digits >= MIN_CARD_DIGITS) return true;
  }
  return SSN.test(text.slice(Math.max(0, at - 10), at + 1)) || isIbanStart(text, at);
}

function isIbanStart(text: string, at: number): boolean {
  if (at < 3 || isDigit(text, at - 2) || !IBAN.test(text.slice(at - 3, at + 1))) return false;
  return IBAN_LENGTHS.has(text.slice(at - 3, at - 1).toUpperCase());
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

function isSeparator(code: number): boolean {
  return code === 0x20 || code === 0x2d || code === 0x2e;
}
