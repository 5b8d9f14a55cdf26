// Writes the bytes of a WebAssembly module with one memory and one function, out of instructions that are
// named here one by one: just enough for gate-scan-code.ts. Checks nothing; the engine validates.
// Source: WebAssembly core specification 2.0, §5.4 and §5.5 (binary format, vector instructions included).

/** Instructions as bytes, in the order of the binary format. */
export type Code = readonly number[];

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

/** LEB128, signed, of a number of 32 bits. */
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

/** One instruction each; those that read memory take the offset that is added to the address. */
export const op = {
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
export type Locals = {
  readonly parameters: number;
  readonly numbers: number;
  readonly vectors: number;
};

const section = (id: number, bytes: Code): Code => [id, ...unsigned(bytes.length), ...bytes];

function name(text: string): Code {
  return [text.length, ...Array.from(text, (unit) => unit.charCodeAt(0))];
}

/**
 * A module that exports `memory`, of `memoryBytes` rounded up to pages, and `scan`, which takes
 * numbers of 32 bits and gives one.
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
