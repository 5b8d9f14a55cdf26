// Decodes and encodes text in the charsets of WHATWG Encoding and in UTF-32, with the same characters on every version
// of Node: its decoders differ in some, and what is found in a text, and whether it is text at all, may not depend on
// them. Which charset bytes are in is decided elsewhere.
// Source: WHATWG Encoding §4, §9 and §10; Unicode 16 §3.10 (encoding schemes).

export type Wide = 'utf-16le' | 'utf-16be' | 'utf-32le' | 'utf-32be';
/** Text without code units beyond ASCII reads the same in every single-byte charset. */
export const LATIN_1 = 'latin1';
export const REPLACEMENT = '\ufffd';

/** Charsets that some versions of Node do not know. */
const NOT_EVERYWHERE: readonly string[] = ['iso-8859-16', 'x-user-defined'];
/**
 * The bytes that versions of Node read differently, with their characters in WHATWG Encoding, so that what is found in
 * a text depends on no version. Each charset has one byte a character.
 */
const OWN_CHARACTERS: {
  readonly [charset: string]: readonly (readonly [byte: number, characters: string])[];
} = {
  ibm866: [
    [0x1a, '\x1a'],
    [0x1c, '\x1c'],
    [0x7f, '\x7f'],
  ],
  'koi8-u': [
    [0xae, '\u045e'],
    [0xbe, '\u040e'],
  ],
  'windows-874': [
    [0xdb, REPLACEMENT.repeat(4)],
    [0xfc, REPLACEMENT.repeat(4)],
  ],
  'windows-1252': [
    [0x80, '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f'],
    [0x90, '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178'],
  ],
  'windows-1253': [[0xaa, REPLACEMENT]],
  'windows-1255': [[0xca, '\u05ba']],
};

const tables = new Map<string, Uint16Array>();

/** The code unit of each byte of a charset that has characters of its own above. */
function unitsOf(charset: string, own: (typeof OWN_CHARACTERS)[string]): Uint16Array {
  const known = tables.get(charset);
  if (known !== undefined) return known;
  const bytes = Buffer.from(Array.from({ length: 0x100 }, (_, byte) => byte));
  const decoder = new TextDecoder(charset);
  const units = Uint16Array.from(bytes, (byte) => decoder.decode(Uint8Array.of(byte)).charCodeAt(0));
  for (const [first, characters] of own)
    for (let at = 0; at < characters.length; at += 1) units[first + at] = characters.charCodeAt(at);
  tables.set(charset, units);
  return units;
}

function decodeByUnits(bytes: Buffer, units: Uint16Array): string {
  const wide = Buffer.alloc(bytes.length * 2);
  for (let at = 0; at < bytes.length; at += 1) {
    const unit = units[bytes[at] ?? 0] ?? 0;
    wide[at * 2] = unit & 0xff;
    wide[at * 2 + 1] = unit >> 8;
  }
  return wide.toString('utf16le');
}

/**
 * Decodes bytes by the label of a charset, and names the charset. Undefined for a charset that is not known everywhere,
 * and for bytes that are invalid in it.
 */
export function decodeStrictly(
  bytes: Buffer,
  label: string,
): { readonly text: string; readonly charset: string } | undefined {
  try {
    const { encoding } = new TextDecoder(label);
    if (NOT_EVERYWHERE.includes(encoding)) return undefined;
    // The decoder of GBK is that of gb18030 (§10.1.1).
    const charset = encoding === 'gbk' ? 'gb18030' : encoding;
    if (OWN_CHARACTERS[charset] === undefined) {
      const decoder = new TextDecoder(charset, { fatal: true, ignoreBOM: true });
      return { text: decoder.decode(bytes), charset };
    }
    const text = decodeText(bytes, charset);
    return text.includes(REPLACEMENT) ? undefined : { text, charset };
  } catch {
    return undefined;
  }
}

/** Decodes bytes of a charset; what is invalid in it becomes U+FFFD. */
export function decodeText(bytes: Buffer, charset: string): string {
  switch (charset) {
    case LATIN_1:
      return bytes.toString(LATIN_1);
    case 'utf-32le':
    case 'utf-32be':
      return decodeUtf32(bytes, charset === 'utf-32le');
    default: {
      const own = OWN_CHARACTERS[charset];
      if (own !== undefined) return decodeByUnits(bytes, unitsOf(charset, own));
      return new TextDecoder(charset, { ignoreBOM: true }).decode(bytes);
    }
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

/** Encodes a text; undefined where the charset cannot represent it, or has characters of several bytes. */
export function encodeText(text: string, charset: string): Buffer | undefined {
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
    const unit = decodeText(Buffer.of(byte), charset);
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
