// Assembles the WebAssembly module of the SIMD pass: sixteen characters at a time, it records every position that
// prefilter.ts must check, and some that it need not. For each of four consecutive characters a table holds the
// buckets of anchors that accept it there; a match in one bucket is compared with the anchors themselves. simd.ts
// fills the tables. The writer knows only the instructions used here and validates nothing; the engine does.
// Source: WebAssembly core specification 2.0, §4.4, §5.4 and §5.5 (binary format, vector instructions included).

export const VECTOR_BYTES = 16;
/** The number of consecutive characters that buckets cover. Buckets come in groups of eight, one bit each. */
export const POSITIONS = 4;
export const GROUPS = 1;
export const BUCKETS = 8 * GROUPS;

/** Kinds of characters by lower and upper nibble: each bit is a set of lower and a set of upper nibbles. */
export const LOW_AT = 0;
export const HIGH_AT = 16;
/** Eight bytes that fold both cases of a letter into one. */
export const FOLD_AT = 32;
export const BUCKETS_AT = 64;
/** By key of three characters: the number of its list of anchors, 0 for none. */
export const KEYS_AT = 1024;
const KEYS_BYTES = 1 << 15;
/**
 * By a sign or digit and the next character: 0 no check, 1 check, 2 the last digit of a group, 3 a digit before
 * another digit, 4 the backslash of an escaped line end.
 */
export const PAIRS_AT = KEYS_AT + KEYS_BYTES;
const PAIRS_BYTES = 1 << 14;
/** The address of each list, then the lists: masks and values of eight bytes, ended by an empty mask. */
export const LISTS_AT = PAIRS_AT + PAIRS_BYTES;
export const ENTRIES_AT = LISTS_AT + 1024;
export const ENTRY_BYTES = 16;

/** Maximum number of positions recorded by one pass. */
const MAX_RECORDED = 16_384;
export const OUT_AT = 128 * 1024;
/** The text follows a gap, because bytes before its first character are read too. */
export const TEXT_AT = OUT_AT + 4 * MAX_RECORDED + 64;
export const MAX_TEXT_UNITS = 256 * 1024;
export const MEMORY_BYTES = TEXT_AT + MAX_TEXT_UNITS + 4 * VECTOR_BYTES;

/** Marks a position that lies in a run of token characters. */
export const RUN_FLAG = 1 << 30;

const TOKEN_BITS = 0b0001_1111;
const DIGIT_BITS = 0b0000_0100;
const ANCHOR_BITS = 0b1110_0000;

/** Encoded instructions. */
type Code = readonly number[];

const I32 = 0x7f;
const V128 = 0x7b;
const PAGE_BYTES = 64 * 1024;

/** LEB128, unsigned. */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  let rest = value >>> 0;
  do {
    const low = rest & 0x7f;
    rest >>>= 7;
    bytes.push(rest === 0 ? low : low | 0x80);
  } while (rest !== 0);
  return bytes;
}

/** LEB128, signed, for a 32-bit number. */
function signed(value: number): number[] {
  const bytes: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) return bytes;
  }
}

const vector = (opcode: number): Code => [0xfd, ...unsigned(opcode)];
const load =
  (opcode: Code) =>
  (offset: number): Code => [...opcode, 0, ...unsigned(offset)];

/** One instruction each. Those that read memory take the offset that is added to the address. */
const op = {
  get: (local: number): Code => [0x20, ...unsigned(local)],
  set: (local: number): Code => [0x21, ...unsigned(local)],
  tee: (local: number): Code => [0x22, ...unsigned(local)],
  i32: (value: number): Code => [0x41, ...signed(value)],
  block: [0x02, 0x40],
  loop: [0x03, 0x40],
  if: [0x04, 0x40],
  else: [0x05],
  end: [0x0b],
  branch: (depth: number): Code => [0x0c, depth],
  branchIf: (depth: number): Code => [0x0d, depth],
  return: [0x0f],
  load8: load([0x2d]),
  load32: load([0x28]),
  load64: load([0x29]),
  store32: load([0x36]),
  loadVector: load(vector(0)),
  eqz: [0x45],
  eq: [0x46],
  ne: [0x47],
  less: [0x49],
  greater: [0x4b],
  clz: [0x67],
  ctz: [0x68],
  add: [0x6a],
  subtract: [0x6b],
  and: [0x71],
  or: [0x72],
  xor: [0x73],
  shiftLeft: [0x74],
  shiftRight: [0x76],
  longEqz: [0x50],
  longEq: [0x51],
  longAnd: [0x83],
  longOr: [0x84],
  swizzle: vector(14),
  splat: vector(15),
  bytesNotEqual: vector(36),
  bytesEqual: vector(35),
  bytesLess: vector(38),
  vectorAnd: vector(78),
  vectorOr: vector(80),
  vectorXor: vector(81),
  bitmask: vector(100),
  bytesShiftRight: vector(109),
  bytesSubtract: vector(113),
} satisfies { readonly [name: string]: Code | ((value: number) => Code) };

/** The locals of the function, which are numbered in this order. */
type Locals = {
  readonly parameters: number;
  readonly numbers: number;
  readonly vectors: number;
};

const section = (id: number, bytes: Code): Code => [id, ...unsigned(bytes.length), ...bytes];

function name(text: string): Code {
  return [text.length, ...Array.from(text, (unit) => unit.charCodeAt(0))];
}

/**
 * Writes a module that exports `memory`, of `memoryBytes` rounded up to pages, and `scan`, which takes 32-bit
 * numbers and returns one.
 */
export function writeModule(
  locals: Locals,
  body: readonly Code[],
  memoryBytes: number,
): Uint8Array<ArrayBuffer> {
  const kinds = [2, ...unsigned(locals.numbers), I32, ...unsigned(locals.vectors), V128];
  const parameters = Array.from({ length: locals.parameters }, () => I32);
  const code = [...kinds, ...body.flat(), ...op.end];
  const pages = unsigned(Math.ceil(memoryBytes / PAGE_BYTES));
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, locals.parameters, ...parameters, 1, I32]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, ...pages]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('scan'), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

/** Parameters: the offset of the current sixteen characters, which advances, and the end of the pass. */
const AT = 0;
const END = 1;
/** Offset at which the next position is recorded. */
const OUT = 2;
/** The number of token characters before `AT`, and after it. */
const BEFORE = 3;
const AHEAD = 4;
/** The positions of this step that are still to be checked, and the current one. */
const MASK = 5;
const POSITION = 6;
const TEMP = 7;
const ENTRY = 8;
const UNITS = 9;
const KINDS = 10;
const CLASS = 11;
const OTHER_HALF = 12;
/** Constants, each repeated in all bytes of a vector. */
const FIVE_BITS = 13;
const FIFTH_BIT = 14;
const LOW_HALF = 15;
const TOKENS = 16;
const ANCHOR_MASK = 17;
const NOTHING = 18;
/** The buckets that match so far, one vector for each group of eight. */
const MATCHES = 19;

export const LOCALS = { parameters: 2, numbers: 7, vectors: 10 + GROUPS } as const;

const SPACE = 0x20;
const DOT = 0x2e;
const DASH = 0x2d;
const ZERO = 0x30;
const LETTER_A = 0x61;
const LETTERS = 26;
const BACKSLASH = 0x5c;
/** The last eleven of sixteen characters: the length of the shortest personal number, with separators. */
const LAST_ELEVEN = 0xffe0;
const ALL = 0xffff;

const both = (one: readonly Code[], ...more: readonly (readonly Code[])[]): readonly Code[] => [
  ...one,
  ...more.flat(),
];

const number = (value: number): readonly Code[] => [op.i32(value)];
const local = (index: number): readonly Code[] => [op.get(index)];
const table = (address: number): readonly Code[] => [op.i32(0), op.loadVector(address)];
const splat = (value: number): readonly Code[] => [op.i32(value), op.splat];

/** The character `offset` after the current position. */
const unitAt = (offset: number): readonly Code[] => [op.get(POSITION), op.load8(TEXT_AT + offset)];

/** Records a position. Too many positions end the pass with -1. */
function recordPosition(place: readonly Code[]): readonly Code[] {
  return [
    ...[op.get(OUT), ...place, op.store32(OUT_AT)],
    ...[op.get(OUT), op.i32(4), op.add, op.tee(OUT)],
    ...[op.i32(MAX_RECORDED * 4), op.less, op.eqz, op.if, op.i32(-1), op.return, op.end],
  ];
}

/** Iterates over the bits of `MASK` from the lowest, setting `PLACE` to each position. */
function forEachPosition(body: readonly Code[]): readonly Code[] {
  return [
    ...[op.block, op.loop, op.get(MASK), op.eqz, op.branchIf(1)],
    ...[op.get(AT), op.get(MASK), op.ctz, op.add, op.set(POSITION)],
    ...[op.get(MASK), op.get(MASK), op.i32(1), op.subtract, op.and, op.set(MASK)],
    ...both([op.block], body, [op.end, op.branch(0), op.end, op.end]),
  ];
}

/** Whether a 32-bit number lies in the range of `count` from `first`. */
const isWithin = (value: readonly Code[], first: number, count: number): readonly Code[] => [
  ...both(value, number(first), [op.subtract], number(count)),
  op.less,
];

/** Determines the kinds of the characters at `AT` by two look-ups of a nibble each. */
const readKinds: readonly Code[] = [
  ...[op.get(AT), op.loadVector(TEXT_AT), op.set(UNITS)],
  ...both(table(LOW_AT), local(UNITS), local(LOW_HALF), [op.vectorAnd, op.swizzle]),
  ...both(table(HIGH_AT), local(UNITS), number(4), [op.bytesShiftRight, op.swizzle]),
  ...[op.vectorAnd, op.set(KINDS)],
];

/** A bit for each character of one of these kinds. */
const maskOf = (kinds: number): readonly Code[] => [
  ...[op.get(KINDS), op.get(kinds), op.vectorAnd, op.get(NOTHING), op.bytesNotEqual, op.bitmask],
];

/** Records a run of token characters once, when it reaches sixteen. */
const followRuns: readonly Code[] = [
  ...both(maskOf(TOKENS), [op.set(TEMP)]),
  ...[op.get(TEMP), op.i32(0x1ffff), op.xor, op.ctz, op.set(AHEAD)],
  ...[op.get(BEFORE), op.i32(VECTOR_BYTES), op.less],
  ...[op.get(BEFORE), op.get(AHEAD), op.add, op.i32(VECTOR_BYTES), op.less, op.eqz],
  ...both([op.and, op.if], recordPosition([op.get(AT), op.i32(RUN_FLAG), op.or]), [op.end]),
  ...[op.get(TEMP), op.i32(ALL), op.eq, op.if],
  ...[op.get(BEFORE), op.i32(VECTOR_BYTES), op.add, op.set(BEFORE), op.else],
  ...[op.get(TEMP), op.i32(16), op.shiftLeft, op.i32(-0x10000), op.xor, op.clz],
  ...[op.set(BEFORE), op.end],
];

/** Two letters and two digits, with which an IBAN begins. */
const isAccountStart: readonly Code[] = [
  ...isWithin(unitAt(-1), ZERO, 10),
  ...isWithin(both(unitAt(-2), number(SPACE), [op.or]), LETTER_A, LETTERS),
  ...isWithin(both(unitAt(-3), number(SPACE), [op.or]), LETTER_A, LETTERS),
  ...[op.and, op.and],
];

/** At the last digit of a group: eleven characters that are all digits or separators. */
const isLongNumber: readonly Code[] = [
  ...[op.get(POSITION), op.loadVector(TEXT_AT - VECTOR_BYTES + 1), op.set(CLASS)],
  ...both(local(CLASS), splat(ZERO), [op.bytesSubtract], splat(10), [op.bytesLess]),
  ...[SPACE, DASH, DOT].flatMap((unit) => [
    ...both(local(CLASS), splat(unit), [op.bytesEqual]),
    op.vectorOr,
  ]),
  ...[op.bitmask, op.i32(LAST_ELEVEN), op.and, op.i32(LAST_ELEVEN), op.eq],
];

/** The backslash of an escaped line end that is followed by a blank or another escape. */
const isBlankAhead: readonly Code[] = [
  ...both(unitAt(2), number(SPACE + 1), [op.less]),
  ...both(unitAt(2), number(BACKSLASH), [op.eq, op.or]),
];

/** Applies PAIRS to a sign or digit and the next character. */
const checkSigns: readonly Code[] = [
  ...both(maskOf(ANCHOR_MASK), [op.set(MASK)]),
  ...forEachPosition([
    ...both(unitAt(0), number(7), [op.shiftLeft], unitAt(1), [op.or]),
    ...[op.load8(PAIRS_AT), op.tee(TEMP), op.eqz, op.branchIf(0)],
    ...[op.get(TEMP), op.i32(1), op.eq, op.if, ...recordPosition(local(POSITION)), op.else],
    ...[op.get(TEMP), op.i32(4), op.eq, op.if],
    ...both(isBlankAhead, [op.if], recordPosition(local(POSITION)), [op.end, op.else]),
    ...both(isAccountStart, [op.if], recordPosition(local(POSITION)), [op.else]),
    ...[op.get(TEMP), op.i32(2), op.eq, op.if],
    ...both(isLongNumber, [op.if], recordPosition(local(POSITION)), [op.end]),
    ...[op.end, op.end, op.end, op.end],
  ]),
];

/** The buckets that accept the four characters from two before each position to one after it. */
const matchBuckets: readonly Code[] = Array.from({ length: POSITIONS }, (_, position) => [
  ...[op.get(AT), op.loadVector(TEXT_AT - 2 + position), op.get(FIVE_BITS), op.vectorAnd],
  ...[op.tee(CLASS), op.get(FIFTH_BIT), op.vectorXor, op.set(OTHER_HALF)],
  ...Array.from({ length: GROUPS }, (_, group) => {
    const address = BUCKETS_AT + (group * POSITIONS + position) * 2 * VECTOR_BYTES;
    return [
      ...both(table(address), local(CLASS), [op.swizzle]),
      ...both(table(address + VECTOR_BYTES), local(OTHER_HALF), [op.swizzle, op.vectorOr]),
      ...(position === 0 ? [] : [op.get(MATCHES + group), op.vectorAnd]),
      op.set(MATCHES + group),
    ];
  }).flat(),
]).flat();

const matchesAnywhere: readonly Code[] = Array.from({ length: GROUPS }, (_, group) =>
  group === 0 ? [op.get(MATCHES)] : [op.get(MATCHES + group), op.vectorOr],
).flat();

/** The key (see anchors.ts) of the three characters that end at the position. */
const keyOfPosition: readonly Code[] = [
  ...both(unitAt(-2), number(0x1f), [op.and], number(10), [op.shiftLeft]),
  ...both(unitAt(-1), number(0x1f), [op.and], number(5), [op.shiftLeft, op.or]),
  ...both(unitAt(0), number(0x1f), [op.and, op.or]),
];

/** Compares eight characters, from two before the position, with each anchor that has their key. */
const checkAnchors: readonly Code[] = [
  ...both(matchBuckets, matchesAnywhere, [
    op.get(NOTHING),
    op.bytesNotEqual,
    op.bitmask,
    op.set(MASK),
  ]),
  ...forEachPosition([
    ...both(keyOfPosition, [op.load8(KEYS_AT), op.tee(TEMP), op.eqz, op.branchIf(0)]),
    ...[op.get(TEMP), op.i32(2), op.shiftLeft, op.load32(LISTS_AT), op.set(ENTRY)],
    ...[op.loop, op.get(ENTRY), op.load64(0), op.longEqz, op.branchIf(1)],
    ...[op.get(POSITION), op.load64(TEXT_AT - 2), op.i32(0), op.load64(FOLD_AT), op.longOr],
    ...[op.get(ENTRY), op.load64(0), op.longAnd, op.get(ENTRY), op.load64(8), op.longEq],
    ...both([op.if], recordPosition(local(POSITION)), [op.branch(2), op.end]),
    ...[op.get(ENTRY), op.i32(16), op.add, op.set(ENTRY), op.branch(0), op.end],
  ]),
];

const CONSTANTS = [
  [FIVE_BITS, 0x1f],
  [FIFTH_BIT, 0x10],
  [LOW_HALF, 0x0f],
  [TOKENS, TOKEN_BITS],
  [ANCHOR_MASK, ANCHOR_BITS | DIGIT_BITS],
  [NOTHING, 0],
] as const;

/** The body of `scan`: records the positions between the parameters and returns their number, or -1. */
export const SCAN_CODE: readonly Code[] = [
  ...CONSTANTS.flatMap(([index, value]) => [...splat(value), op.set(index)]),
  ...[op.block, op.loop, op.get(AT), op.get(END), op.less, op.eqz, op.branchIf(1)],
  ...both(readKinds, followRuns, checkSigns, checkAnchors),
  ...[op.get(AT), op.i32(VECTOR_BYTES), op.add, op.set(AT), op.branch(0), op.end, op.end],
  ...[op.get(OUT), op.i32(2), op.shiftRight],
];
