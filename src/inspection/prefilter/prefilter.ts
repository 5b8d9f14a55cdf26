// Decides in one pass over its characters whether a text is surely clean. INVARIANT: it errs only towards further
// inspection; in a text that it calls clean no detector finds anything, decoded or not.
// It also accepts raw JSON text: every escape but those of line ends, tabs, quotes and single backslashes is
// suspicious, so that an escape hides nothing.

import { IBAN_LENGTHS } from '../detectors/pii.js';
import { isPlainBeyondAscii } from '../detectors/unicode.js';
import { ANCHOR_STARTS, isAnchored, nextAnchorKey, resetAnchorChecks } from './anchors.js';
import { BEYOND, createSimdScan, RUN_FLAG, type SimdScan, writeUnits } from './simd.js';

const MAX_ASCII = 0x7e;
const BACKSLASH = 0x5c;

// Whether a digit, sign or character beyond ASCII at this position could belong to something that a detector
// finds.
function isSuspiciousUnit(text: string, at: number): boolean {
  if (isDigit(text, at)) return isSuspiciousDigit(text, at);
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
      return /[ubfxX/]/.test(next) || isCodeEscape(text, at + 1) || isBlankRun(text, at);
    case 0x25: // %
      return /^(?:[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})/.test(text.slice(at + 1, at + 6));
    case 0x26: // &
      return /^(?:#|[A-Za-z]{2,21};|shy)/.test(text.slice(at + 1, at + 24));
    case 0x5d: // ]
      return next === '(' || next === '[' || next === ':';
    case 0x21: // !
      return isImageStart(text, at + 1);
    case 0x7c: // |
      return text.startsWith('||', at + 1);
    case 0x0a: // line feed
      return isBlankRun(text, at);
    default: // a control character
      return true;
  }
}

/** Whether the number of a character follows, as languages write it: `\U00000041`, or in octal `\101`. */
function isCodeEscape(text: string, at: number): boolean {
  return /^(?:U[0-9A-Fa-f]{8}|[0-3][0-7]{2})/.test(text.slice(at, at + 9));
}

/** The three backslashes that may stand before the bracket, escaped twice. */
const MAX_IMAGE_SLASHES = 12;

function isImageStart(text: string, at: number): boolean {
  let end = at;
  while (end - at < MAX_IMAGE_SLASHES && text.charCodeAt(end) === BACKSLASH) end++;
  return text[end] === '[';
}

/** How far blank lines are followed, in raw characters. */
const BLANK_REACH = 64 * MIN_BLANK_LINES;
const MAX_SLASHES = 4;
const LINES = unitSet('\nn');
const BLANKS = unitSet(' \t\n\r');
const ESCAPED_BLANKS = unitSet('nrt');

// Whether blank lines begin here, raw or escaped once or twice, that could push text out of sight. They begin with a
// line end; searched from each blank, a text of blanks would be read hundreds of times.
function isBlankRun(text: string, from: number): boolean {
  const end = Math.min(text.length, from + BLANK_REACH);
  let lines = 0;
  for (let at = from; at < end && lines < MIN_BLANK_LINES; at++) {
    const isEscape = text.charCodeAt(at) === BACKSLASH;
    if (isEscape) at = afterSlashes(text, at);
    const unit = text.charCodeAt(at);
    if (!(isEscape ? ESCAPED_BLANKS : BLANKS).has(unit)) return false;
    lines += Number(LINES.has(unit));
    if (lines === 0) return false;
  }
  return lines >= MIN_BLANK_LINES;
}

function unitSet(units: string): ReadonlySet<number> {
  return new Set([...units].map((unit) => unit.charCodeAt(0)));
}

/** The position after up to four backslashes. */
function afterSlashes(text: string, at: number): number {
  let end = at + 1;
  while (end - at < MAX_SLASHES && text.charCodeAt(end) === BACKSLASH) end++;
  return end;
}

/** Whether a character beyond ASCII is only what it looks like. Works for either half of a surrogate pair. */
function isPlainBeyond(text: string, at: number, code: number): boolean {
  if (code < 0xd800 || code > 0xdfff) return isPlainBeyondAscii(code);
  const codePoint = text.codePointAt(code < 0xdc00 ? at : at - 1) ?? 0;
  return (codePoint >= 0x1f000 && codePoint <= 0x1f0ff) || (codePoint >= 0x1f300 && codePoint <= 0x1faff);
}

const MIN_CARD_DIGITS = 12;
const SSN = /\d{3}([-. ])\d{2}\1\d{4}$/;
const IBAN = /[A-Za-z]{2}\d\d$/;

/** At the last digit of a group: whether a card, social security or account number could end or begin here. */
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

/** Bits of a character: it may be part of a token, it is a digit, it is suspicious. */
const TOKEN = 1;
const DIGIT = 2;
const SUSPICIOUS = 4;
const traits = new Uint8Array(BEYOND + 1).fill(SUSPICIOUS);

for (let code = 0; code <= MAX_ASCII; code++) {
  const unit = String.fromCharCode(code);
  let trait = 0;
  if (/[A-Za-z0-9+/_-]/.test(unit)) trait |= TOKEN;
  if (/[0-9]/.test(unit)) trait |= DIGIT;
  if (/[<\\%&\]!|\n]/.test(unit) || (code < 0x20 && !/[\t\r]/.test(unit))) trait |= SUSPICIOUS;
  traits[code] = trait;
}

/** Combinations of two character classes of five bits each. A character has seven bits. */
const PAIRS = 1 << 10;
const ANCHOR = 2;

// One look-up per character, by the classes of the two before it and the character itself: TOKEN, and ANCHOR
// where an anchor may begin two characters back or the character itself needs a check.
const MARKS = new Uint8Array(PAIRS << 7);
for (let pairKey = 0; pairKey < PAIRS; pairKey++) {
  for (let unit = 0; unit <= BEYOND; unit++) {
    const trait = traits[unit] ?? SUSPICIOUS;
    const needsAnchorCheck = trait > TOKEN || ANCHOR_STARTS[nextAnchorKey(pairKey, unit)] === 1;
    MARKS[(pairKey << 7) | unit] = (trait & TOKEN) | (needsAnchorCheck ? ANCHOR : 0);
  }
}

/** A run of this many token characters may be a secret. `run` keeps one bit for each of them. */
const MIN_RUN = 16;

const simdScan = createSimdScan();

/** Whether no detector finds anything in the text, or in any string of a JSON text. */
export function isSurelyClean(text: string): boolean {
  return isClean(text, false);
}

/**
 * Like {@link isSurelyClean}, for text known to be valid JSON: what one string holds does not make another
 * suspicious. Texts that a reader joins must be checked separately.
 */
export function isSurelyCleanJson(text: string): boolean {
  return isClean(text, true);
}

/** Characters scanned before their positions are checked. A text that is not clean mostly shows it early. */
const SLICE = 4096;

function isClean(text: string, isJson: boolean): boolean {
  resetAnchorChecks();
  if (simdScan?.findSuspicious(text) !== true) return isCleanWithoutSimd(text, isJson);
  for (let from = 0; from < text.length; from += SLICE) {
    // A run may cross the boundary between two slices.
    const start = Math.max(0, from - MIN_RUN);
    const count = simdScan.scan(start, Math.min(text.length, from + SLICE));
    if (count < 0) return isCleanWithoutSimd(text, isJson);
    if (isSuspiciousSlice(simdScan, { start, count }, text, isJson)) return false;
  }
  return true;
}

function isSuspiciousSlice(
  { positions, units }: SimdScan,
  { start, count }: { readonly start: number; readonly count: number },
  text: string,
  isJson: boolean,
): boolean {
  const { length } = text;
  for (let index = 0; index < count; index++) {
    const flaggedPosition = positions[index] ?? 0;
    const at = flaggedPosition & ~RUN_FLAG;
    if (at >= length) continue;
    const isSuspicious =
      at === flaggedPosition
        ? isSuspiciousPosition(text, units, at, isJson)
        : // A run that began in an earlier slice was judged there, to its end: a text may be one run.
          !(at === start && at > 0 && isTokenUnit(units, at - 1)) &&
          isSuspiciousRun(units, runStart(units, at), runEnd(units, at, length));
    if (isSuspicious) return true;
  }
  return false;
}

/** The same check without SIMD, one character at a time: the reference, and the fallback for long texts. */
export function isCleanWithoutSimd(text: string, isJson: boolean): boolean {
  resetAnchorChecks();
  // Local tables and literal numbers stay in registers, which makes this loop faster.
  const units = unitsOf(text);
  const marks = MARKS;
  const { length } = text;
  let two = 0;
  let run = 0;
  let checkedRun = 0;
  for (let at = 0; at < length; at++) {
    const unit = units[at] ?? 0;
    const mark = marks[(two << 7) | unit] ?? 2;
    two = ((two << 5) | (unit & 0x1f)) & 0x3ff;
    run = ((run << 1) | (mark & 1)) & 0xffff;
    if (mark > 1 && isSuspiciousPosition(text, units, at, isJson)) return false;
    if (run !== 0xffff || at < checkedRun) continue;
    checkedRun = runEnd(units, at, length);
    if (isSuspiciousRun(units, at - MIN_RUN + 1, checkedRun)) return false;
  }
  return true;
}

function isSuspiciousPosition(text: string, units: Uint8Array, at: number, isJson: boolean): boolean {
  let key = 0;
  for (let before = Math.max(0, at - 2); before <= at; before++) {
    key = nextAnchorKey(key, units[before] ?? 0);
  }
  if (ANCHOR_STARTS[key] === 1 && isAnchored(text, units, at, key, isJson)) return true;
  const trait = traits[units[at] ?? 0] ?? SUSPICIOUS;
  return trait > TOKEN && isSuspiciousUnit(text, at);
}

/** Texts up to this length reuse one buffer. */
const MAX_KEPT_UNITS = 256 * 1024;
const kept = new Uint8Array(MAX_KEPT_UNITS);

// The characters of a text as bytes, which are read several times faster than a string. Valid until the next
// call.
function unitsOf(text: string): Uint8Array {
  const units = text.length <= MAX_KEPT_UNITS ? kept : new Uint8Array(text.length);
  writeUnits(text, units);
  return units;
}

function isTokenUnit(units: Uint8Array, at: number): boolean {
  return ((traits[units[at] ?? 0] ?? 0) & TOKEN) !== 0;
}

/** Start of the run of token characters around `at`. */
function runStart(units: Uint8Array, at: number): number {
  let start = at;
  while (start > 0 && isTokenUnit(units, start - 1)) start--;
  return start;
}

/** End of the run of token characters around `at`. */
function runEnd(units: Uint8Array, at: number, length: number): number {
  let end = at + 1;
  while (end < length && isTokenUnit(units, end)) end++;
  return end;
}

const MIN_RUN_CAPITALS = 4;

/** Whether a run could be a token or encoded text: it has a digit or several capitals. */
function isSuspiciousRun(units: Uint8Array, start: number, end: number): boolean {
  let capitals = 0;
  for (let at = start; at < end; at++) {
    const code = units[at] ?? 0;
    if (code >= 0x30 && code <= 0x39) return true;
    if (code >= 0x41 && code <= 0x5a && ++capitals >= MIN_RUN_CAPITALS) return true;
  }
  return false;
}
