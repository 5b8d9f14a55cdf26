// The prefilter: whether a text is surely clean, in one pass over its characters. It only errs towards
// "look closer": what it calls clean, no detector finds anything in, decoded or not.
// Raw JSON text may be given: every escape but those of line ends, tabs, quotes and single backslashes
// counts as suspicious, so an escape hides nothing.

import { isPlainBeyondAscii } from './code-points.js';
import { ANCHOR_STARTS, isAnchored, nextAnchorKey } from './gate-anchors.js';
import { IBAN_LENGTHS } from './iban-lengths.js';
import { isConfusable } from './skeleton.js';

const MAX_ASCII = 0x7e;
/** Stands for every character beyond ASCII, each of which is looked at by itself. */
const BEYOND = 0x7f;

/** Bits of a character: whether a run goes on over it, and whether it asks for a closer look. */
const TOKEN = 1;
const DIGIT = 2;
const SIGN = 4;
const traits = new Uint8Array(BEYOND + 1).fill(SIGN);

for (let code = 0; code <= MAX_ASCII; code++) {
  const unit = String.fromCharCode(code);
  let trait = 0;
  if (/[A-Za-z0-9+/_-]/.test(unit)) trait |= TOKEN;
  if (/[0-9]/.test(unit)) trait |= DIGIT;
  if (/[<\\%&\]!|\n]/.test(unit) || (code < 0x20 && !/[\t\r]/.test(unit))) trait |= SIGN;
  traits[code] = trait;
}

/** Two classes of five bits, and a character of seven. */
const PAIRS = 1 << 10;
const LOOK = 2;

/**
 * All that a character needs in one look-up, by the classes of the two before it and itself: TOKEN, and
 * LOOK where an anchor may begin two characters back, or the character itself asks for it.
 */
const MARKS = new Uint8Array(PAIRS << 7);
for (let two = 0; two < PAIRS; two++) {
  for (let unit = 0; unit <= BEYOND; unit++) {
    const trait = traits[unit] ?? SIGN;
    const asksForLook = trait > TOKEN || ANCHOR_STARTS[nextAnchorKey(two, unit)] === 1;
    MARKS[(two << 7) | unit] = (trait & TOKEN) | (asksForLook ? LOOK : 0);
  }
}

/** A run of this many token characters may be a secret: sixteen bits set. */
const MIN_RUN = 16;

/** True where no detector of this folder finds anything in the text, or in any string of JSON text. */
export function isSurelyClean(text: string): boolean {
  // Every message passes through this loop: tables and bounds are locals, which stay in registers, and
  // numbers are literals.
  const units = unitsOf(text);
  const marks = MARKS;
  const { length } = text;
  let two = 0;
  let run = 0;
  let judgedRun = 0;
  for (let at = 0; at < length; at++) {
    const unit = units[at] ?? 0;
    const mark = marks[(two << 7) | unit] ?? 2;
    two = ((two << 5) | (unit & 0x1f)) & 0x3ff;
    run = ((run << 1) | (mark & 1)) & 0xffff;
    if (mark > 1 && isSuspiciousPlace(text, at, unit)) return false;
    if (run !== 0xffff || at < judgedRun) continue;
    judgedRun = runEnd(units, at, length);
    if (isSuspiciousRun(units, at - MIN_RUN + 1, judgedRun)) return false;
  }
  return true;
}

function isSuspiciousPlace(text: string, at: number, unit: number): boolean {
  let key = 0;
  for (let before = Math.max(0, at - 2); before <= at; before++) {
    key = nextAnchorKey(key, text.charCodeAt(before));
  }
  if (ANCHOR_STARTS[key] === 1 && isAnchored(text, at, key)) return true;
  const trait = traits[unit] ?? SIGN;
  return trait > TOKEN && isSuspiciousUnit(text, at, trait);
}

/** Texts up to this length are laid out in memory that is kept. */
const MAX_KEPT_UNITS = 256 * 1024;
const kept = new Uint8Array(MAX_KEPT_UNITS);
const encoder = new TextEncoder();

/**
 * The characters of a text as bytes, which are read several times faster than a string; good until the
 * next call. Of ASCII, the bytes of UTF-8 are the characters.
 */
function unitsOf(text: string): Uint8Array {
  const { length } = text;
  const units = length <= MAX_KEPT_UNITS ? kept : new Uint8Array(length);
  const { read, written } = encoder.encodeInto(text, units);
  if (read === length && written === length) return units;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    units[at] = code < BEYOND ? code : BEYOND;
  }
  return units;
}

/** Where the run of token characters around `at` ends. */
function runEnd(units: Uint8Array, at: number, length: number): number {
  let end = at + 1;
  while (end < length && ((traits[units[end] ?? 0] ?? 0) & TOKEN) !== 0) end++;
  return end;
}

const MIN_RUN_CAPITALS = 4;

/** A run that could be a token or encoded text: with a digit or with many capitals. */
function isSuspiciousRun(units: Uint8Array, start: number, end: number): boolean {
  let capitals = 0;
  for (let at = start; at < end; at++) {
    const code = units[at] ?? 0;
    if (code >= 0x30 && code <= 0x39) return true;
    if (code >= 0x41 && code <= 0x5a && ++capitals >= MIN_RUN_CAPITALS) return true;
  }
  return false;
}

function isSuspiciousUnit(text: string, at: number, trait: number): boolean {
  if ((trait & DIGIT) !== 0) return isSuspiciousDigit(text, at);
  const code = text.charCodeAt(at);
  if (code <= MAX_ASCII) return isSuspiciousSign(text, at, code);
  return !isPlainBeyond(text, at, code);
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
    case 0x0a: // line feed
      return isBlankRun(text, at);
    default: // a control character
      return true;
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

/** True for a character beyond ASCII that is only what it looks like, at either half of a pair. */
function isPlainBeyond(text: string, at: number, code: number): boolean {
  if (code < 0xd800 || code > 0xdfff) return isPlainBeyondAscii(code, isConfusable);
  const whole = text.codePointAt(code < 0xdc00 ? at : at - 1) ?? 0;
  return (whole >= 0x1f000 && whole <= 0x1f0ff) || (whole >= 0x1f300 && whole <= 0x1faff);
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
