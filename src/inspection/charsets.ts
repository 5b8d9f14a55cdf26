// Decodes bytes to the texts that clients may read in them, and encodes an edited text in the same charset again.
// Any bytes decode to some text, and clients may disagree about the charset, so there are alternatives.
// Source: WHATWG Encoding §4 and §10; Unicode 16 §3.10 (encoding schemes), §23.8 (byte order mark).

/** Decoded bytes. `bom` is the length of the byte order mark in bytes, which is not part of the text. */
export type Reading = { readonly text: string; readonly charset: string; readonly bom: number };

type Wide = 'utf-16le' | 'utf-16be' | 'utf-32le' | 'utf-32be';

const BOMS: readonly (readonly [charset: string, bytes: readonly number[]])[] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-32le', [0xff, 0xfe, 0, 0]],
  ['utf-32be', [0, 0, 0xfe, 0xff]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
];
/** Text without code units beyond ASCII reads the same in every single-byte charset. */
const LATIN_1 = 'latin1';
/** Bytes sampled to guess a charset. Must be a multiple of every unit size. */
const SAMPLE = 64 * 1024;
const REPLACEMENT = '\ufffd';
const UTF_16: readonly Wide[] = ['utf-16le', 'utf-16be'];
const ALL_WIDE: readonly Wide[] = ['utf-16le', 'utf-16be', 'utf-32le', 'utf-32be'];

/**
 * Decodes bytes by their byte order mark, else by the declared charset, else by the NUL pattern of wide units,
 * else as UTF-8, else as Latin-1.
 */
export function readBytes(bytes: Buffer, declared: string | undefined): Reading {
  return (
    readMarked(bytes) ??
    readDeclared(bytes, declared) ??
    readWide(bytes) ??
    readUtf8(bytes) ?? { text: bytes.toString(LATIN_1), charset: LATIN_1, bom: 0 }
  );
}

/** The texts of clients that ignore the charset or guess another one. */
export function otherTexts(bytes: Buffer, { charset }: Reading): readonly string[] {
  const isByBytes = charset === LATIN_1 || charset === 'utf-8';
  const others = isByBytes ? [] : [bytes.toString(LATIN_1)];
  // Wide text with any ASCII contains NUL, and text without ASCII holds nothing that detectors look for.
  if (!bytes.includes(0)) return others;
  const pattern = readWide(bytes)?.charset;
  const wide = new Set<string>(pattern === undefined ? UTF_16 : [...UTF_16, pattern]);
  wide.delete(charset);
  return [...others, ...Array.from(wide, (one) => decodeAs(bytes, one))];
}

/** Encodes a changed text in its original charset; undefined where that cannot represent it. */
export function encodeAs(
  text: string,
  { charset, bom }: Reading,
  original: Buffer,
): Buffer | undefined {
  const body = encode(text, charset);
  if (body === undefined || decodeAs(body, charset) !== text) return undefined;
  return bom === 0 ? body : Buffer.concat([original.subarray(0, bom), body]);
}

function readMarked(bytes: Buffer): Reading | undefined {
  const found = BOMS.find(([, mark]) => mark.every((byte, at) => bytes[at] === byte));
  if (found === undefined) return undefined;
  const [charset, { length: bom }] = found;
  return { text: decodeAs(bytes.subarray(bom), charset), charset, bom };
}

function readDeclared(bytes: Buffer, declared: string | undefined): Reading | undefined {
  const label = declared?.toLowerCase();
  if (label === undefined || label === 'binary') return undefined;
  const wide = ALL_WIDE.find((one) => one === label);
  if (wide !== undefined) return { text: decodeAs(bytes, wide), charset: wide, bom: 0 };
  if (/^(?:iso-8859-1|latin-?1|us-ascii|ascii)$/.test(label)) return undefined;
  try {
    const decoder = new TextDecoder(label, { fatal: true, ignoreBOM: true });
    return { text: decoder.decode(bytes), charset: decoder.encoding, bom: 0 };
  } catch {
    // An unknown charset, or bytes that are invalid in it.
    return undefined;
  }
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Decodes UTF-8. Some invalid bytes are accepted if most of what is beyond ASCII is valid. */
function readUtf8(bytes: Buffer): Reading | undefined {
  const text = utf8.decode(bytes);
  if (text.includes(REPLACEMENT) && !isMostlySound(text)) return undefined;
  return { text, charset: 'utf-8', bom: 0 };
}

const MAX_ASCII = 0x7f;
const REPLACEMENT_CHARACTER = 0xfffd;

/** A manual loop: a regular expression would create a string for every character of an image. */
function isMostlySound(text: string): boolean {
  let replacements = 0;
  let sound = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === REPLACEMENT_CHARACTER) replacements++;
    // Of a surrogate pair, only the first half counts.
    else if (unit > MAX_ASCII && (unit < 0xdc00 || unit > 0xdfff)) sound++;
  }
  return sound > replacements;
}

const MIN_WIDE_RATIO = 0.4;
/** How many times more NULs one half of the units must have than the other. */
const ONE_SIDED = 4;

// Detects UTF-16 and UTF-32 without a byte order mark: in ASCII text, every other byte is NUL, or three of four.
function readWide(bytes: Buffer): Reading | undefined {
  const isMultipleOfFour = bytes.length % 4 === 0;
  const sample = bytes.subarray(0, Math.min(SAMPLE, bytes.length));
  const charset = wideBy(countNuls(sample), sample.length, isMultipleOfFour);
  return charset === undefined ? undefined : { text: decodeAs(bytes, charset), charset, bom: 0 };
}

type Nuls = readonly [number, number, number, number];

/** Counts NULs by their position in a group of four bytes. */
function countNuls(bytes: Buffer): Nuls {
  const nuls: [number, number, number, number] = [0, 0, 0, 0];
  for (let at = bytes.indexOf(0); at >= 0; at = bytes.indexOf(0, at + 1)) {
    nuls[(at & 3) as 0 | 1 | 2 | 3] += 1;
  }
  return nuls;
}

function wideBy(nuls: Nuls, length: number, isMultipleOfFour: boolean): Wide | undefined {
  const [first, second, third, fourth] = nuls;
  const groups = length / 4;
  if (isMultipleOfFour && fourth === groups && third * 2 > groups && first * 2 < groups)
    return 'utf-32le';
  if (isMultipleOfFour && first === groups && second * 2 > groups && fourth * 2 < groups)
    return 'utf-32be';
  const even = first + third;
  const odd = second + fourth;
  const least = (length / 2) * MIN_WIDE_RATIO;
  if (odd > even * ONE_SIDED && odd >= least) return 'utf-16le';
  return even > odd * ONE_SIDED && even >= least ? 'utf-16be' : undefined;
}

function decodeAs(bytes: Buffer, charset: string): string {
  switch (charset) {
    case LATIN_1:
      return bytes.toString(LATIN_1);
    case 'utf-32le':
    case 'utf-32be':
      return decodeUtf32(bytes, charset === 'utf-32le');
    default:
      return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes);
  }
}

const MAX_CODE_POINT = 0x10ffff;

/** Node.js has no decoder for UTF-32. */
function decodeUtf32(bytes: Buffer, isLittle: boolean): string {
  const pieces: string[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const code = isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
    pieces.push(code <= MAX_CODE_POINT ? String.fromCodePoint(code) : REPLACEMENT);
  }
  return pieces.join('');
}

function encode(text: string, charset: string): Buffer | undefined {
  switch (charset) {
    case 'utf-8':
      return Buffer.from(text, 'utf8');
    case LATIN_1:
      return Buffer.from(text, LATIN_1);
    case 'utf-16le':
      return Buffer.from(text, 'utf16le');
    case 'utf-16be':
      return Buffer.from(text, 'utf16le').swap16();
    case 'utf-32le':
    case 'utf-32be':
      return encodeUtf32(text, charset === 'utf-32le');
    default:
      return encodeByTable(text, tableOf(charset));
  }
}

function encodeUtf32(text: string, isLittle: boolean): Buffer {
  const codes = Array.from(text, (unit) => unit.codePointAt(0) ?? 0);
  const bytes = Buffer.alloc(codes.length * 4);
  for (const [at, code] of codes.entries()) {
    if (isLittle) bytes.writeUInt32LE(code, at * 4);
    else bytes.writeUInt32BE(code, at * 4);
  }
  return bytes;
}

/** The characters encoded by a single byte. Longer sequences of a multi-byte charset are not supported. */
function tableOf(charset: string): ReadonlyMap<string, number> {
  const table = new Map<string, number>();
  for (let byte = 0; byte <= 0xff; byte++) {
    const unit = decodeAs(Buffer.of(byte), charset);
    if (unit.length === 1 && unit !== REPLACEMENT) table.set(unit, byte);
  }
  return table;
}

function encodeByTable(text: string, table: ReadonlyMap<string, number>): Buffer | undefined {
  const bytes = Buffer.alloc(text.length);
  for (let at = 0; at < text.length; at++) {
    const byte = table.get(text.charAt(at));
    if (byte === undefined) return undefined;
    bytes[at] = byte;
  }
  return bytes;
}

const MAX_CONTROL_RATIO = 0.1;
const CONTROL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what is counted
  /[\0-\x06\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ufffe\uffff\ud800-\udfff]/gu;

/** Whether a text has so many control and replacement characters that it is probably binary. */
export function isHardlyText(text: string): boolean {
  const sample = text.slice(0, SAMPLE);
  return countOf(sample, CONTROL) > sample.length * MAX_CONTROL_RATIO;
}

const MIN_ASCII_RATIO = 0.7;
const ASCII_TEXT = /[\t\n\f\r\x20-\x7e]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal obeys begins with one
const TERMINAL = /\x1b[[\]PX^_]/;

/**
 * Whether bytes decoded as Latin-1 for lack of anything better may be random or in an unknown charset. If such
 * bytes were treated as text, half of them would be stripped.
 */
export function isHardlyLatin({ text, charset }: Reading): boolean {
  if (charset !== LATIN_1 || TERMINAL.test(text)) return false;
  const sample = text.slice(0, SAMPLE);
  return countOf(sample, ASCII_TEXT) < sample.length * MIN_ASCII_RATIO;
}

function countOf(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
