// The prefilter: whether a text is surely clean, in one pass over its characters. It only errs towards
// "look closer": what it calls clean, no detector finds anything in, decoded or not.
// Raw JSON text may be given: every escape but those of line ends, tabs, quotes and single backslashes
// counts as suspicious, so an escape hides nothing.

import { ANCHOR_STARTS, isAnchored, nextAnchorKey, resetAnchorChecks } from './gate-anchors.js';
import { BEYOND, createGateScan, type GateScan, layOut, RUN_FLAG } from './gate-scan.js';
import { isSuspiciousUnit } from './gate-signs.js';

const MAX_ASCII = 0x7e;

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
  if (/[<\\%&\]!|\n?#]/.test(unit) || (code < 0x20 && !/[\t\r]/.test(unit))) trait |= SIGN;
  traits[code] = trait;
}

/** Two classes of five bits, and a character of seven. */
const PAIRS = 1 << 10;
const ANCHOR = 2;

/**
 * All that a character needs in one look-up, by the classes of the two before it and itself: TOKEN, and
 * LOOK where an anchor may begin two characters back, or the character itself asks for it.
 */
const MARKS = new Uint8Array(PAIRS << 7);
for (let two = 0; two < PAIRS; two++) {
  for (let unit = 0; unit <= BEYOND; unit++) {
    const trait = traits[unit] ?? SIGN;
    const needsAnchorCheck = trait > TOKEN || ANCHOR_STARTS[nextAnchorKey(two, unit)] === 1;
    MARKS[(two << 7) | unit] = (trait & TOKEN) | (needsAnchorCheck ? ANCHOR : 0);
  }
}

/** A run of this many token characters may be a secret: sixteen bits set. */
const MIN_RUN = 16;

const fast = createGateScan();

/** True where no detector of this folder finds anything in the text, or in any string of JSON text. */
export function isSurelyClean(text: string): boolean {
  return isClean(text, false);
}

/**
 * As {@link isSurelyClean}, for text that was read as valid JSON: what stands in one string is no reason
 * to look closer at another. Texts that a reader joins are to be asked about apart.
 */
export function isSurelyCleanJson(text: string): boolean {
  return isClean(text, true);
}

/** So many characters are scanned before their places are looked at: what is dirty is mostly so early. */
const SLICE = 4096;

function isClean(text: string, isJson: boolean): boolean {
  resetAnchorChecks();
  if (fast?.take(text) !== true) return isCleanBySteps(text, isJson);
  for (let from = 0; from < text.length; from += SLICE) {
    // A run may lie across the border of two slices.
    const count = fast.scan(Math.max(0, from - MIN_RUN), Math.min(text.length, from + SLICE));
    if (count < 0) return isCleanBySteps(text, isJson);
    if (isSuspiciousSlice(fast, count, text, isJson)) return false;
  }
  return true;
}

function isSuspiciousSlice(
  { places, units }: GateScan,
  count: number,
  text: string,
  isJson: boolean,
): boolean {
  const { length } = text;
  for (let index = 0; index < count; index++) {
    const place = places[index] ?? 0;
    const at = place & ~RUN_FLAG;
    if (at >= length) continue;
    const isSuspicious =
      at === place
        ? isSuspiciousPlace(text, at, units[at] ?? 0, isJson)
        : isSuspiciousRun(units, runStart(units, at), runEnd(units, at, length));
    if (isSuspicious) return true;
  }
  return false;
}

/** The same answer without vectors, a character at a time: the reference, and the way of long texts. */
export function isCleanBySteps(text: string, isJson: boolean): boolean {
  resetAnchorChecks();
  // Tables and bounds are locals, which stay in registers, and numbers are literals.
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
    if (mark > 1 && isSuspiciousPlace(text, at, unit, isJson)) return false;
    if (run !== 0xffff || at < checkedRun) continue;
    checkedRun = runEnd(units, at, length);
    if (isSuspiciousRun(units, at - MIN_RUN + 1, checkedRun)) return false;
  }
  return true;
}

function isSuspiciousPlace(text: string, at: number, unit: number, isJson: boolean): boolean {
  let key = 0;
  for (let before = Math.max(0, at - 2); before <= at; before++) {
    key = nextAnchorKey(key, text.charCodeAt(before));
  }
  if (ANCHOR_STARTS[key] === 1 && isAnchored(text, at, key, isJson)) return true;
  const trait = traits[unit] ?? SIGN;
  return trait > TOKEN && isSuspiciousUnit(text, at, isJson);
}

/** Texts up to this length are laid out in memory that is kept. */
const MAX_KEPT_UNITS = 256 * 1024;
const kept = new Uint8Array(MAX_KEPT_UNITS);

/**
 * The characters of a text as bytes, which are read several times faster than a string; good until the
 * next call.
 */
function unitsOf(text: string): Uint8Array {
  const units = text.length <= MAX_KEPT_UNITS ? kept : new Uint8Array(text.length);
  layOut(text, units);
  return units;
}

/** Where the run of token characters around `at` begins. */
function runStart(units: Uint8Array, at: number): number {
  let start = at;
  while (start > 0 && ((traits[units[start - 1] ?? 0] ?? 0) & TOKEN) !== 0) start--;
  return start;
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
