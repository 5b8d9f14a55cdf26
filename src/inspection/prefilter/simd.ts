// The tables of the fast pass, made from the anchors and signs that the exact look of gate.ts knows. Each
// errs only towards "look here": a place that a table passes over, the exact look would pass over too.

import { ANCHORS, nextAnchorKey } from './anchors.js';
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
  LOCALS,
  LOW_AT,
  MAX_TEXT_UNITS,
  MEMORY_BYTES,
  OUT_AT,
  PAIRS_AT,
  POSITIONS,
  RUN_FLAG,
  SCAN_CODE,
  TEXT_AT,
  VECTOR_BYTES,
  writeModule,
} from './simd-module.js';

// Sorts the anchors of the prefilter into as many buckets as their vectors have bits, so that few places of
// ordinary text look like the beginning of one. A bucket says, for each of four characters in a row, which
// classes may stand there; it only errs towards "may begin here". Decides nothing.

/** By position: the classes that may stand there, a bit for each. */
type Bucket = readonly [number, number, number, number];

/** The first three classes of an anchor, and those that may come fourth. */
type AnchorStart = Bucket;

const BUCKET_POSITIONS = 4;
const CLASSES = 32;

/** How often a character of each class stands in prose, code and JSON, in thousandths. */
const FREQUENCY = [
  130, 50, 22, 40, 28, 85, 15, 16, 25, 58, 3, 6, 32, 30, 55, 57, 25, 8, 60, 55, 65, 23, 12, 10, 6,
  12, 14, 8, 18, 10, 14, 7,
];

function share(classes: number): number {
  let sum = 0;
  for (let one = 0; one < CLASSES; one++) {
    if (((classes >>> one) & 1) === 1) sum += FREQUENCY[one] ?? 0;
  }
  return sum / 1000;
}

/** How often a place of ordinary text is taken for one of this bucket. */
function costOf([first, second, third, fourth]: Bucket): number {
  return share(first) * share(second) * share(third) * share(fourth);
}

function union(one: Bucket, other: Bucket): Bucket {
  return [one[0] | other[0], one[1] | other[1], one[2] | other[2], one[3] | other[3]];
}

type Group = { readonly bucket: Bucket; readonly cost: number };

function groupOf(bucket: Bucket): Group {
  return { bucket, cost: costOf(bucket) };
}

function joined(one: Group, other: Group): number {
  return costOf(union(one.bucket, other.bucket)) - one.cost - other.cost;
}

/** Joins, again and again, the two groups whose union costs least more than they do apart. */
function sortIntoBuckets(starts: readonly AnchorStart[], maxBuckets: number): readonly Bucket[] {
  const groups = groupByTwo(starts);
  const extra = groups.map((one) => groups.map((other) => joined(one, other)));
  while (groups.length > maxBuckets) {
    const [low, high] = cheapest(extra);
    const [one, other] = [groups[low], groups[high]];
    if (one === undefined || other === undefined) break;
    const made = groupOf(union(one.bucket, other.bucket));
    groups[low] = made;
    groups.splice(high, 1);
    extra.splice(high, 1);
    for (const row of extra) row.splice(high, 1);
    recompute(extra, groups, low);
  }
  return groups.map(({ bucket }) => bucket);
}

type Costs = number[][];

/** The costs of joining a group that has changed, in its row and its column. */
function recompute(extra: Costs, groups: readonly Group[], changed: number): void {
  const made = groups[changed];
  const row = extra[changed];
  if (made === undefined || row === undefined) return;
  for (const [at, group] of groups.entries()) {
    row[at] = joined(made, group);
    const other = extra[at];
    if (other !== undefined) other[changed] = row[at];
  }
}

/** Anchors that begin with the same two classes go together from the start. */
function groupByTwo(starts: readonly AnchorStart[]): Group[] {
  const byTwo = new Map<string, Bucket>();
  for (const start of starts) {
    const key = `${start[0]} ${start[1]}`;
    const known = byTwo.get(key);
    byTwo.set(key, known === undefined ? start : union(known, start));
  }
  return [...byTwo.values()].map(groupOf);
}

function cheapest(extra: readonly (readonly number[])[]): readonly [number, number] {
  let best = Number.POSITIVE_INFINITY;
  let found: readonly [number, number] = [0, 1];
  for (let row = 0; row < extra.length; row++) {
    for (let column = row + 1; column < extra.length; column++) {
      const cost = extra[row]?.[column] ?? best;
      if (cost >= best) continue;
      best = cost;
      found = [row, column];
    }
  }
  return found;
}

/** For a position and a half of the classes: sixteen bytes, each the buckets that take that class there. */
function bucketTable(buckets: readonly Bucket[], position: number, half: 0 | 1): readonly number[] {
  return Array.from({ length: CLASSES / 2 }, (_, offset) => {
    let bits = 0;
    for (const [index, bucket] of buckets.entries()) {
      const classes = bucket[position % BUCKET_POSITIONS] ?? 0;
      if (((classes >>> (half * (CLASSES / 2) + offset)) & 1) === 1) bits |= 1 << index;
    }
    return bits;
  });
}

const CASE_BIT = 0x20;
const COMPARED_BYTES = 8;
const UNITS = 0x80;

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
function fillTables(memory: Uint8Array): void {
  fillKinds(memory);
  memory.fill(CASE_BIT, FOLD_AT, FOLD_AT + COMPARED_BYTES);
  fillPairs(memory);
  fillBuckets(memory);
  fillLists(memory);
}

// The fast pass of the prefilter at work: lays a text out in the memory of its module and gives the places
// that need a look. Where the engine has no vectors, or a text is too long or too full of places, there is
// no answer, and gate.ts reads the text itself.

/** Stands for every character beyond ASCII. */
export const BEYOND = 0x7f;
const MAX_ASCII = 0x7e;
const BLANK = 0x20;

/** What the engine offers of WebAssembly, as far as it is needed here. */
type Engine = {
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
  ) => {
    readonly exports: {
      readonly memory: { readonly buffer: ArrayBuffer };
      readonly scan: (from: number, end: number) => number;
    };
  };
};

export type GateScan = {
  /** Lays a text out for `scan`; false where it is too long. */
  take(text: string): boolean;
  /**
   * How many places from `from` to `end` of the text need a look; they stand in `places` until the next call,
   * and some may lie behind `end`. Negative where they are too many. What lies before `from` is not known
   * to be the beginning of a run.
   */
  scan(from: number, end: number): number;
  /** Each the position of a character; with RUN_FLAG one within or just behind the start of a run. */
  readonly places: Int32Array;
  /** The characters of the text that was scanned last. */
  readonly units: Uint8Array;
};

export { RUN_FLAG };

const encoder = new TextEncoder();

/** Makes the pass; `undefined` where the engine cannot run it. */
export function createGateScan(): GateScan | undefined {
  const { WebAssembly: engine } = globalThis as { readonly WebAssembly?: Engine };
  if (engine === undefined) return undefined;
  try {
    const bytes = writeModule(LOCALS, SCAN_CODE, MEMORY_BYTES);
    const { memory, scan } = new engine.Instance(new engine.Module(bytes)).exports;
    const all = new Uint8Array(memory.buffer);
    fillTables(all);
    const units = new Uint8Array(memory.buffer, TEXT_AT, MAX_TEXT_UNITS);
    return {
      units,
      places: new Int32Array(memory.buffer, OUT_AT),
      scan,
      take(text) {
        const { length } = text;
        if (length > MAX_TEXT_UNITS) return false;
        layOut(text, units);
        // Blanks ask for nothing, so what the last step reads behind the text adds no place.
        all.fill(BLANK, TEXT_AT + length, TEXT_AT + length + 2 * VECTOR_BYTES);
        return true;
      },
    };
  } catch {
    return undefined;
  }
}

/** Writes the characters of a text as bytes. Of ASCII, the bytes of UTF-8 are the characters. */
export function layOut(text: string, units: Uint8Array): void {
  const { length } = text;
  const { read, written } = encoder.encodeInto(text, units);
  if (read === length && written === length) return;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    units[at] = code <= MAX_ASCII ? code : BEYOND;
  }
}
