// The prefilter: whether a text is surely clean, in four passes over its characters. It only errs towards
// "look closer": what it calls clean, no detector finds anything in, decoded or not.
// Raw JSON text may be given: every escape but those of line ends, tabs, quotes and single backslashes
// counts as suspicious, so an escape hides nothing.

import { isPlainBeyondAscii } from './code-points.js';
import { findAnchor } from './gate-anchors.js';
import { IBAN_LENGTHS } from './iban-lengths.js';
import { isConfusable } from './skeleton.js';

const UNITS = 0x10000;
const MAX_ASCII = 0x7e;

/** Bits of a UTF-16 unit: what the passes ask about it. */
const DIGIT = 1;
const LETTER = 2;
const ENCODING_SIGN = 4;
const SEPARATOR = 8;
const CAPITAL = 16;
const traits = new Uint8Array(UNITS);
const LOOK_CLOSER = 1;
const NEVER_CLEAN = 2;
const signs = new Uint8Array(UNITS);

for (let code = 0; code <= MAX_ASCII; code++) {
  const unit = String.fromCharCode(code);
  if (/[0-9]/.test(unit)) traits[code] = DIGIT;
  if (/[a-z]/.test(unit)) traits[code] = LETTER;
  if (/[A-Z]/.test(unit)) traits[code] = LETTER | CAPITAL;
  if (/[+/_-]/.test(unit)) traits[code] = ENCODING_SIGN;
  if (/[ .-]/.test(unit)) traits[code] = (traits[code] ?? 0) | SEPARATOR;
  if (/[<\\%&\]!|\n]/.test(unit)) signs[code] = LOOK_CLOSER;
  if (code < 0x20 && !/[\t\n\r]/.test(unit)) signs[code] = NEVER_CLEAN;
}
for (let code = MAX_ASCII + 1; code < UNITS; code++) signs[code] = LOOK_CLOSER;

/** True where no detector of this folder finds anything in the text, or in any string of JSON text. */
export function isSurelyClean(text: string): boolean {
  return (
    !hasSuspiciousSign(text) &&
    !hasSuspiciousRun(text) &&
    !hasSuspiciousDigits(text) &&
    !findAnchor(text)
  );
}

function hasSuspiciousSign(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const sign = signs[code];
    if (sign === 0) continue;
    if (sign === NEVER_CLEAN) return true;
    if (code <= MAX_ASCII) {
      if (isSuspiciousSign(text, at, code)) return true;
      continue;
    }
    const width = plainWidth(text, at, code);
    if (width === 0) return true;
    at += width - 1;
  }
  return false;
}

const MIN_BLANK_LINES = 8;

function isSuspiciousSign(text: string, at: number, code: number): boolean {
  const next = text.charAt(at + 1);
  switch (code) {
    case 0x3c: // <
      return /[A-Za-z!/?|<]/.test(next);
    case 0x5c: // backslash
      return /[ubfxX/]/.test(next) || isBlankRun(text, at);
    case 0x25: // %
      return /^[0-9A-Fa-f]{2}/.test(text.slice(at + 1, at + 3));
    case 0x26: // &
      return /^(?:#|[A-Za-z]{2,8};)/.test(text.slice(at + 1, at + 11));
    case 0x5d: // ]
      return next === '(' || next === '[' || next === ':';
    case 0x21: // !
      return next === '[';
    case 0x7c: // |
      return text.startsWith('||', at + 1);
    default: // line feed
      return isBlankRun(text, at);
  }
}

/** Blank lines, raw or escaped once or twice, by which text could be pushed out of sight. */
function isBlankRun(text: string, at: number): boolean {
  const next = text.charCodeAt(at + (text.charCodeAt(at) === 0x5c ? 2 : 1));
  if (next > 0x20 && next !== 0x5c) return false;
  const ahead = text.slice(at, at + 64 * MIN_BLANK_LINES);
  const blank = BLANK.exec(ahead)?.[0] ?? '';
  return (blank.match(/n|\n/g)?.length ?? 0) >= MIN_BLANK_LINES;
}

const BLANK = /^(?:\\{1,4}[nrt]|[ \t\n\r])*/;

/** UTF-16 units of a character beyond ASCII that is only what it looks like; 0 for any other. */
function plainWidth(text: string, at: number, code: number): number {
  if (code < 0xd800 || code > 0xdfff) return isPlainBeyondAscii(code, isConfusable) ? 1 : 0;
  const whole = text.codePointAt(at) ?? 0;
  const isEmoji = (whole >= 0x1f000 && whole <= 0x1f0ff) || (whole >= 0x1f300 && whole <= 0x1faff);
  return isEmoji ? 2 : 0;
}

const MIN_CARD_DIGITS = 12;
const MIN_SSN_DIGITS = 9;
const MIN_RUN = 16;
const MIN_RUN_CAPITALS = 4;
/** Letter, letter, digit, digit: two bits each. */
const IBAN_SHAPE = 0b10_10_01_01;

/** Runs that could be a token or encoded text. */
function hasSuspiciousRun(text: string): boolean {
  let run = 0;
  let digits = 0;
  let capitals = 0;
  for (let at = 0; at < text.length; at++) {
    const trait = traits[text.charCodeAt(at)] ?? 0;
    if ((trait & (DIGIT | LETTER | ENCODING_SIGN)) === 0) {
      run = digits = capitals = 0;
      continue;
    }
    run++;
    digits += trait & DIGIT;
    capitals += trait >> 4;
    if (run >= MIN_RUN && (digits > 0 || capitals >= MIN_RUN_CAPITALS)) return true;
  }
  return false;
}

/** Digits that could be a number of a person. */
function hasSuspiciousDigits(text: string): boolean {
  let digits = 0;
  let shape = 0;
  for (let at = 0; at < text.length; at++) {
    const trait = traits[text.charCodeAt(at)] ?? 0;
    shape = ((shape << 2) | (trait & (DIGIT | LETTER))) & 0xff;
    if ((trait & DIGIT) !== 0) {
      digits++;
      if (isSuspiciousDigit(text, at, digits, shape)) return true;
    } else if ((trait & SEPARATOR) === 0) digits = 0;
  }
  return false;
}

function isSuspiciousDigit(text: string, at: number, digits: number, shape: number): boolean {
  if (digits >= MIN_CARD_DIGITS) return true;
  if (digits >= MIN_SSN_DIGITS && /\d{3}([-. ])\d{2}\1\d{4}$/.test(text.slice(at - 10, at + 1)))
    return true;
  return shape === IBAN_SHAPE && IBAN_LENGTHS.has(text.slice(at - 3, at - 1).toUpperCase());
}
