// Runs the SIMD pass of the prefilter: builds its tables from the anchors and signs that prefilter.ts checks,
// copies a text into its memory and returns the positions that need a check. Without SIMD, or for a text that is
// too long, it returns no result, and prefilter.ts reads the text itself.
// INVARIANT: the tables err only towards a check; prefilter.ts would find nothing at a position that they skip.

import { groupBy } from '../../text/grouping.js';
import { ANCHORS, nextAnchorKey } from './anchors.js';
import { SCAN_MODULE } from './scan-module.js';

// Where the tables lie in the memory of the module; scan.wat describes them.
const LOW_AT = 0;
const HIGH_AT = 16;
const FOLD_AT = 32;
const BUCKETS_AT = 64;
const KEYS_AT = 1024;
const PAIRS_AT = 33_792;
const LISTS_AT = 50_176;
const ENTRIES_AT = 51_200;
const FOURTHS_AT = 118_784;
const OUT_AT = 131_072;
const TEXT_AT = 196_672;
const MAX_TEXT_UNITS = 256 * 1024;
const WIDE_AT = 524_288;

const VECTOR_BYTES = 16;
const ENTRY_BYTES = 24;
const POSITION_BYTES = 4;
/** As many as a byte has bits. */
const BUCKETS = 8;

/** Marks a position that lies in a run of token characters. */
export const RUN_FLAG = 1 << 30;

/** For each of four consecutive positions, the character classes that may occur there, one bit for each. */
type Bucket = readonly [number, number, number, number];

const BUCKET_POSITIONS = 4;
const CLASSES = 32;

/** Frequency of each character class in prose, code and JSON, in thousandths. */
const FREQUENCY = [
  130, 50, 22, 40, 28, 85, 15, 16, 25, 58, 3, 6, 32, 30, 55, 57, 25, 8, 60, 55, 65, 23, 12, 10, 6, 12, 14, 8, 18, 10,
  14, 7,
];

function frequencyOf(classes: number): number {
  let sum = 0;
  for (let one = 0; one < CLASSES; one++) {
    if (((classes >>> one) & 1) === 1) sum += FREQUENCY[one] ?? 0;
  }
  return sum / 1000;
}

/** Estimated frequency with which a position of ordinary text matches this bucket. */
function costOf([first, second, third, fourth]: Bucket): number {
  return frequencyOf(first) * frequencyOf(second) * frequencyOf(third) * frequencyOf(fourth);
}

function union(one: Bucket, other: Bucket): Bucket {
  return [one[0] | other[0], one[1] | other[1], one[2] | other[2], one[3] | other[3]];
}

// Sorts anchors into as many buckets as a byte has bits: the most frequent groups get one each, every other group joins
// the bucket that it makes match the least more often.
function sortIntoBuckets(starts: readonly Bucket[]): readonly Bucket[] {
  const groups = groupByTwo(starts).sort((one, other) => costOf(other) - costOf(one));
  const buckets = groups.slice(0, BUCKETS);
  for (const group of groups.slice(BUCKETS)) {
    const added = buckets.map((bucket) => costOf(union(bucket, group)) - costOf(bucket));
    const least = added.indexOf(Math.min(...added));
    buckets[least] = union(buckets[least] ?? group, group);
  }
  return buckets;
}

/** Anchors that begin with the same two classes share a group from the start. */
function groupByTwo(starts: readonly Bucket[]): Bucket[] {
  const byTwo = new Map<string, Bucket>();
  for (const start of starts) {
    const key = `${start[0]} ${start[1]}`;
    const known = byTwo.get(key);
    byTwo.set(key, known === undefined ? start : union(known, start));
  }
  return [...byTwo.values()];
}

/** For a position and half of the classes, sixteen bytes: for each class, the buckets that accept it there. */
function bucketTable(buckets: readonly Bucket[], position: number, half: 0 | 1): readonly number[] {
  return Array.from({ length: CLASSES / 2 }, (_, offset) => {
    let bits = 0;
    for (const [index, bucket] of buckets.entries()) {
      const classes = bucket[position] ?? 0;
      if (((classes >>> (half * (CLASSES / 2) + offset)) & 1) === 1) bits |= 1 << index;
    }
    return bits;
  });
}

const CASE_BIT = 0x20;
const COMPARED_BYTES = 8;
const UNITS = 0x80;

const EVERY_CLASS = -1;

/** Each kind combines a set of lower nibbles with a set of upper nibbles, so that two look-ups detect it. */
const KINDS: readonly { readonly upper: readonly number[]; readonly lower: readonly number[] }[] = [
  { upper: [4, 6], lower: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] },
  { upper: [5, 7], lower: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
  { upper: [3], lower: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] },
  { upper: [2], lower: [0xb, 0xd, 0xf] },
  { upper: [5], lower: [0xf] },
  // Controls; then ! # % &; then < \ ] | and BEYOND, with some characters that need no check.
  { upper: [0, 1], lower: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] },
  { upper: [2], lower: [1, 3, 5, 6] },
  { upper: [3, 5, 7], lower: [0xc, 0xd, 0xf] },
];

function fillKinds(memory: Uint8Array): void {
  for (const [bit, { upper, lower }] of KINDS.entries()) {
    for (const half of lower) memory[LOW_AT + half] = (memory[LOW_AT + half] ?? 0) | (1 << bit);
    for (const half of upper) memory[HIGH_AT + half] = (memory[HIGH_AT + half] ?? 0) | (1 << bit);
  }
}

/** The characters that must follow a sign for it to need a check. Any other sign or control always needs one. */
const REQUIRED_NEXT: { readonly [sign: string]: RegExp } = {
  '<': /[A-Za-z!/?|<]/,
  '\\': /[ubfxXU0-3/]/,
  '%': /[0-9A-Fa-fu]/,
  '&': /[#A-Za-z]/,
  ']': /[([:]/,
  // Backslashes may stand before the bracket (active-content.ts).
  '!': /[[\\]/,
  '|': /\|/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: blanks and every control before them
  '\n': /[\u0000-\u0020\\]/,
};
const HARMLESS = /[=}_\t\r>^~{[?#]/;
const LINE_ESCAPE = /[n\\]/;

function pairKind(unit: number, next: number): number {
  const sign = String.fromCharCode(unit);
  const nextCharacter = String.fromCharCode(next);
  if (/\d/.test(sign)) return /\d/.test(nextCharacter) ? 3 : 2;
  if (unit !== BEYOND && HARMLESS.test(sign)) return 0;
  const wanted = REQUIRED_NEXT[sign];
  if (unit === BEYOND || wanted === undefined || wanted.test(nextCharacter)) return 1;
  return sign === '\\' && LINE_ESCAPE.test(nextCharacter) ? 4 : 0;
}

function fillPairs(memory: Uint8Array): void {
  for (let unit = 0; unit < UNITS; unit++) {
    for (let next = 0; next < UNITS; next++) {
      memory[PAIRS_AT + (unit << 7) + next] = pairKind(unit, next);
    }
  }
}

function classOf(text: string, at: number): number {
  return 1 << (text.charCodeAt(at) & 0x1f);
}

/** The first three classes of an anchor, and those that may come fourth. */
function startOf(anchor: string): Bucket {
  const fourth = anchor.length > 3 ? classOf(anchor, 3) : EVERY_CLASS;
  return [classOf(anchor, 0), classOf(anchor, 1), classOf(anchor, 2), fourth];
}

function fillBuckets(memory: Uint8Array): void {
  const buckets = sortIntoBuckets(ANCHORS.map(({ text }) => startOf(text)));
  for (let position = 0; position < BUCKET_POSITIONS; position++) {
    for (const half of [0, 1] as const) {
      const at = BUCKETS_AT + (2 * position + half) * VECTOR_BYTES;
      memory.set(bucketTable(buckets, position, half), at);
    }
  }
}

function keyOf(anchor: string): number {
  let key = 0;
  for (let at = 0; at < 3; at++) key = nextAnchorKey(key, anchor.charCodeAt(at));
  return key;
}

/** Adds the classes that the fourth character of an anchor may have to those of its list. */
function fillFourths(memory: Uint8Array, list: number, classes: number): void {
  for (let one = 0; one < CLASSES; one++) {
    if (((classes >>> one) & 1) === 1) memory[FOURTHS_AT + CLASSES * list + one] = POSITION_BYTES;
  }
}

function fillEntry(memory: Uint8Array, entry: number, { text, beginsWord }: (typeof ANCHORS)[number]): void {
  for (let at = 0; at < COMPARED_BYTES && at < text.length; at++) {
    memory[entry + at] = 0xff;
    memory[entry + COMPARED_BYTES + at] = text.charCodeAt(at) | CASE_BIT;
  }
  if (beginsWord) memory[entry + 2 * COMPARED_BYTES] = 1;
}

function fillLists(memory: Uint8Array): void {
  const view = new DataView(memory.buffer);
  let entry = ENTRIES_AT;
  let list = 0;
  for (const [key, anchors] of groupBy(ANCHORS, ({ text }) => keyOf(text))) {
    list += 1;
    memory[KEYS_AT + key] = list;
    view.setUint32(LISTS_AT + 4 * list, entry, true);
    for (const anchor of anchors) {
      fillFourths(memory, list, startOf(anchor.text)[3]);
      fillEntry(memory, entry, anchor);
      entry += ENTRY_BYTES;
    }
    // An empty mask ends the list.
    entry += ENTRY_BYTES;
  }
}

/** Writes all tables into the memory of the module. */
function fillTables(memory: Uint8Array): void {
  fillKinds(memory);
  memory.fill(CASE_BIT, FOLD_AT, FOLD_AT + COMPARED_BYTES);
  fillPairs(memory);
  fillBuckets(memory);
  fillLists(memory);
}

/** Replaces every character beyond ASCII. */
export const BEYOND = 0x7f;
const MAX_ASCII = 0x7e;
const BLANK = 0x20;

/** The parts of WebAssembly that are used here. */
type Engine = {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
  ) => {
    readonly exports: {
      readonly memory: { readonly buffer: ArrayBuffer };
      readonly scan: (from: number, end: number) => number;
      readonly narrow: (length: number) => void;
    };
  };
};

export type SimdScan = {
  /** Copies a text into memory for `scan`. Returns false where it is too long. */
  findSuspicious(text: string): boolean;
  /**
   * Returns how many positions from `from` to `end` need a check, negative where these are more than 4112 characters.
   * The positions are in `positions` until the next call; some may lie beyond `end`. A run is counted from `from` at the
   * earliest.
   */
  scan(from: number, end: number): number;
  /** Positions of characters. With RUN_FLAG set, a position within a run or just after its start. */
  readonly positions: Int32Array;
  /** The characters of the text that was scanned last. */
  readonly units: Uint8Array;
};

const encoder = new TextEncoder();

/** Creates the SIMD pass; undefined where the engine cannot run it. */
export function createSimdScan(): SimdScan | undefined {
  const { WebAssembly: engine } = globalThis as { readonly WebAssembly?: Engine };
  if (engine === undefined) return undefined;
  try {
    const bytes = Uint8Array.from(atob(SCAN_MODULE), (unit) => unit.charCodeAt(0));
    const { memory, scan, narrow } = new engine.Instance(new engine.Module(bytes)).exports;
    const all = new Uint8Array(memory.buffer);
    fillTables(all);
    const units = new Uint8Array(memory.buffer, TEXT_AT, MAX_TEXT_UNITS);
    const wide = Buffer.from(memory.buffer, WIDE_AT, 2 * MAX_TEXT_UNITS);
    return {
      units,
      positions: new Int32Array(memory.buffer, OUT_AT),
      scan,
      findSuspicious(text) {
        const { length } = text;
        if (length > MAX_TEXT_UNITS) return false;
        if (!writeAscii(text, units)) {
          wide.write(text, 'utf16le');
          narrow(length);
        }
        // The last step reads past the end of the text. Blanks there add no positions.
        all.fill(BLANK, TEXT_AT + length, TEXT_AT + length + 2 * VECTOR_BYTES);
        return true;
      },
    };
  } catch {
    return undefined;
  }
}

/** Writes a text that is its own UTF-8 encoding; false for any other. */
function writeAscii(text: string, units: Uint8Array): boolean {
  const { length } = text;
  const { read, written } = encoder.encodeInto(text, units);
  return read === length && written === length;
}

/** Writes the characters of a text as bytes. */
export function writeUnits(text: string, units: Uint8Array): void {
  if (writeAscii(text, units)) return;
  const { length } = text;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    units[at] = code <= MAX_ASCII ? code : BEYOND;
  }
}
