// The tables of the fast pass, made from the anchors and signs that the exact look of gate.ts knows. Each
// errs only towards "look here": a place that a table passes over, the exact look would pass over too.

import { ANCHORS, nextAnchorKey } from './gate-anchors.js';
import { type AnchorStart, bucketTable, sortIntoBuckets } from './gate-buckets.js';
import {
  BUCKETS,
  BUCKETS_AT,
  ENTRIES_AT,
  ENTRY_BYTES,
  FOLD_AT,
  GROUPS,
  HIGH_AT,
  KEYS_AT,
  LISTS_AT,
  LOW_AT,
  PAIRS_AT,
  POSITIONS,
  VECTOR_BYTES,
} from './gate-layout.js';

const CASE_BIT = 0x20;
const COMPARED_BYTES = 8;
const UNITS = 0x80;
const BEYOND = 0x7f;
const EVERY_CLASS = -1;

/** Each kind is a set of lower halves under a set of upper halves, so that two look-ups tell it. */
const KINDS: readonly { readonly upper: readonly number[]; readonly lower: readonly number[] }[] = [
  { upper: [4, 6], lower: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] },
  { upper: [5, 7], lower: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] },
  { upper: [3], lower: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] },
  { upper: [2], lower: [0xb, 0xd, 0xf] },
  { upper: [5], lower: [0xf] },
  // Controls; then ! # % &; then < \ ] | and what stands for all beyond ASCII, with some that ask for nothing.
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

/** What must stand behind a sign for it to ask for a look; every other sign and control always asks. */
const BEHIND: { readonly [sign: string]: RegExp } = {
  '<': /[A-Za-z!/?|<]/,
  '\\': /[ubfxX/]/,
  '%': /[0-9A-Fa-f]/,
  '&': /[#A-Za-z]/,
  ']': /[([:]/,
  '!': /\[/,
  '?': /[!-;=-\u007f]/,
  '#': /[!-;=-\u007f]/,
  '|': /\|/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: blanks and every control before them
  '\n': /[\u0000-\u0020\\]/,
};
const HARMLESS = /[=}_\t\r>^~{[]/;
const LINE_ESCAPE = /[nrt\\]/;

function pairKind(unit: number, next: number): number {
  const sign = String.fromCharCode(unit);
  const behind = String.fromCharCode(next);
  if (/\d/.test(sign)) return /\d/.test(behind) ? 3 : 2;
  if (unit !== BEYOND && HARMLESS.test(sign)) return 0;
  const wanted = BEHIND[sign];
  if (unit === BEYOND || wanted === undefined || wanted.test(behind)) return 1;
  return sign === '\\' && LINE_ESCAPE.test(behind) ? 4 : 0;
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

function startOf(anchor: string): AnchorStart {
  const fourth = anchor.length > 3 ? classOf(anchor, 3) : EVERY_CLASS;
  return [classOf(anchor, 0), classOf(anchor, 1), classOf(anchor, 2), fourth];
}

function fillBuckets(memory: Uint8Array): void {
  const buckets = sortIntoBuckets(ANCHORS.map(startOf), BUCKETS);
  for (let group = 0; group < GROUPS; group++) {
    const some = buckets.slice(8 * group, 8 * (group + 1));
    for (let position = 0; position < POSITIONS; position++) {
      for (const half of [0, 1] as const) {
        const at = BUCKETS_AT + ((group * POSITIONS + position) * 2 + half) * VECTOR_BYTES;
        memory.set(bucketTable(some, position, half), at);
      }
    }
  }
}

function keyOf(anchor: string): number {
  let key = 0;
  for (let at = 0; at < 3; at++) key = nextAnchorKey(key, anchor.charCodeAt(at));
  return key;
}

function anchorsByKey(): ReadonlyMap<number, readonly string[]> {
  const byKey = new Map<number, string[]>();
  for (const anchor of ANCHORS) {
    const known = byKey.get(keyOf(anchor));
    if (known === undefined) byKey.set(keyOf(anchor), [anchor]);
    else known.push(anchor);
  }
  return byKey;
}

function fillLists(memory: Uint8Array): void {
  const view = new DataView(memory.buffer);
  let entry = ENTRIES_AT;
  let list = 0;
  for (const [key, anchors] of anchorsByKey()) {
    list += 1;
    memory[KEYS_AT + key] = list;
    view.setUint32(LISTS_AT + 4 * list, entry, true);
    for (const anchor of anchors) {
      for (let at = 0; at < COMPARED_BYTES && at < anchor.length; at++) {
        memory[entry + at] = 0xff;
        memory[entry + COMPARED_BYTES + at] = anchor.charCodeAt(at) | CASE_BIT;
      }
      entry += ENTRY_BYTES;
    }
    // The empty mask that ends a list.
    entry += ENTRY_BYTES;
  }
}

/** Writes all tables into the memory of the pass. */
export function fillTables(memory: Uint8Array): void {
  fillKinds(memory);
  memory.fill(CASE_BIT, FOLD_AT, FOLD_AT + COMPARED_BYTES);
  fillPairs(memory);
  fillBuckets(memory);
  fillLists(memory);
}
