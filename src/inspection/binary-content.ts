// Classifies the base64 of a content block: media, which is not read as text, or bytes that are. Bytes are media if
// they begin as their media type requires and are not all text; anything else is inspected as text, whatever its
// encoding. Decodes such bytes to the texts that clients may read in them, and encodes an edited text in the same
// charset again: any bytes decode to some text, and clients may disagree about the charset, so there are
// alternatives.
// Source: MCP 2025-11-25, tools (image and audio content, embedded resources); RFC 4648 §4 and §5; RFC 2045 §5;
// WHATWG MIME Sniffing §6; the specifications of the formats; WHATWG Encoding §4 and §10; Unicode 16 §3.10 (encoding
// schemes), §23.8 (byte order mark).

import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import type { Span } from '../text/span.js';
import { decodeStrictly, decodeText, encodeText, LATIN_1, REPLACEMENT, type Wide } from './charsets.js';
import { findActiveContent } from './detectors/active-content.js';
import {
  actionFor,
  detectorOf,
  findInjectionCues,
  findSensitive,
  type NoteFinding,
  type ResultRules,
  wantedKindsOf,
} from './detectors/text-sanitizer.js';

/**
 * A Latin-1 string at the start, or several at offsets, all of which must match. Only the start is checked: anything may
 * follow a real header.
 */
type Signature = string | readonly (readonly [at: number, bytes: string])[];
type Format = { readonly types: RegExp; readonly signatures: readonly Signature[] };

const RIFF = [0, 'RIFF'] as const;
const FORM = [0, 'FORM'] as const;
/** MPEG audio of layer II or III, and AAC. Frame headers are all that identifies them. */
const MP3 = Array.from('\xfa\xfb\xfc\xfd\xf2\xf3\xf4\xf5\xe2\xe3', (one) => `\xff${one}`);
const AAC = ['\xff\xf0', '\xff\xf1', '\xff\xf8', '\xff\xf9', 'ADIF'];
const BASE_MEDIA: readonly Signature[] = ['ftyp', 'moov', 'mdat', 'styp', 'wide', 'free', 'skip'].map((box) => [
  [4, box],
]);
const MATROSKA = ['\x1aE\xdf\xa3'];
const OGG = ['OggS'];
const ZIP = ['PK\x03\x04', 'PK\x05\x06', 'PK\x07\x08'];
const COMPOUND = ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'];

const FORMATS: readonly Format[] = [
  { types: /^image\/(?:x-)?(?:png|apng)$/, signatures: ['\x89PNG\r\n\x1a\n'] },
  { types: /^image\/p?jpe?g$/, signatures: ['\xff\xd8\xff'] },
  { types: /^image\/gif$/, signatures: ['GIF87a', 'GIF89a'] },
  { types: /^image\/webp$/, signatures: [[RIFF, [8, 'WEBP']]] },
  {
    types: /^image\/(?:x-(?:ms-)?)?bmp$/,
    signatures: [
      [
        [0, 'BM'],
        [6, '\0\0\0\0'],
      ],
    ],
  },
  { types: /^image\/tiff(?:-fx)?$/, signatures: ['II*\0', 'MM\0*', 'II+\0', 'MM\0+'] },
  { types: /^image\/(?:x-icon|vnd\.microsoft\.icon|ico)$/, signatures: ['\0\0\x01\0'] },
  { types: /^image\/(?:avif|hei[cf])(?:-sequence)?$/, signatures: [[[4, 'ftyp']]] },
  { types: /^image\/jxl$/, signatures: ['\xff\x0a', '\0\0\0\x0cJXL \r\n\x87\n'] },
  { types: /^image\/jp[2xm]$/, signatures: ['\0\0\0\x0cjP  \r\n\x87\n'] },
  { types: /^image\/(?:vnd\.adobe\.photoshop|x-photoshop)$/, signatures: ['8BPS'] },

  { types: /^audio\/(?:vnd\.wave|wave?|x-wav|x-pn-wav)$/, signatures: [[RIFF, [8, 'WAVE']]] },
  { types: /^audio\/(?:x-)?(?:mpeg|mp3|mpeg3|mpa)$/, signatures: ['ID3', ...MP3] },
  { types: /^audio\/(?:x-)?(?:aac|aacp|hx-aac-adts)$/, signatures: AAC },
  { types: /^audio\/(?:x-)?flac$/, signatures: ['fLaC'] },
  { types: /^audio\/(?:ogg|opus|vorbis|speex)$/, signatures: OGG },
  { types: /^audio\/(?:x-)?(?:mp4|m4a|3gpp2?)$/, signatures: BASE_MEDIA },
  { types: /^(?:audio|video)\/(?:webm|(?:x-)?matroska)$/, signatures: MATROSKA },
  {
    types: /^audio\/(?:x-)?aiff$/,
    signatures: [
      [FORM, [8, 'AIFF']],
      [FORM, [8, 'AIFC']],
    ],
  },
  { types: /^audio\/(?:x-)?midi?$/, signatures: ['MThd\0\0\0'] },
  { types: /^audio\/amr(?:-wb)?$/, signatures: ['#!AMR'] },
  { types: /^audio\/(?:basic|au|x-au)$/, signatures: ['.snd\0'] },
  { types: /^audio\/x-caf$/, signatures: ['caff\0'] },

  { types: /^video\/(?:mp4|quicktime|x-m4v|3gpp2?)$/, signatures: BASE_MEDIA },
  { types: /^(?:video|application)\/ogg$/, signatures: OGG },
  { types: /^video\/(?:x-msvideo|avi|msvideo)$/, signatures: [[RIFF, [8, 'AVI ']]] },
  { types: /^video\/mpeg$/, signatures: ['\0\0\x01\xba', '\0\0\x01\xb3'] },
  {
    types: /^video\/mp2t$/,
    signatures: [
      [
        [0, 'G'],
        [188, 'G'],
      ],
    ],
  },
  { types: /^video\/(?:x-flv|flv)$/, signatures: ['FLV\x01'] },
  { types: /^(?:video|audio)\/x-ms-(?:wmv|wma|asf)$/, signatures: ['0&\xb2u\x8ef\xcf\x11'] },

  { types: /^application\/(?:x-)?pdf$/, signatures: ['%PDF-'] },
  {
    types:
      /^application\/(?:(?:x-)?zip(?:-compressed)?|epub\+zip|java-archive|vnd\.(?:openxmlformats-officedocument|oasis\.opendocument|ms-(?:excel|word|powerpoint)\.).{1,100}|vnd\.android\.package-archive)$/,
    signatures: ZIP,
  },
  {
    types: /^application\/(?:msword|vnd\.(?:ms-(?:excel|powerpoint|outlook)|visio))$/,
    signatures: COMPOUND,
  },
  { types: /^application\/(?:x-)?gzip$/, signatures: ['\x1f\x8b\x08'] },
  { types: /^application\/(?:x-)?bzip2?$/, signatures: ['BZh'] },
  { types: /^application\/(?:x-)?xz$/, signatures: ['\xfd7zXZ\0'] },
  { types: /^application\/(?:x-)?zstd$/, signatures: ['(\xb5/\xfd'] },
  { types: /^application\/(?:x-)?7z-compressed$/, signatures: ['7z\xbc\xaf\x27\x1c'] },
  { types: /^application\/(?:vnd\.rar|x-rar(?:-compressed)?)$/, signatures: ['Rar!\x1a\x07'] },
  { types: /^application\/(?:x-)?tar$/, signatures: [[[257, 'ustar']]] },
  { types: /^(?:font\/woff2?|application\/font-woff)$/, signatures: ['wOFF', 'wOF2'] },
  {
    types: /^(?:font\/(?:otf|ttf|sfnt|collection)|application\/x-font-(?:otf|ttf))$/,
    signatures: ['OTTO\0', '\0\x01\0\0', 'true\0', 'ttcf\0'],
  },
  { types: /^application\/wasm$/, signatures: ['\0asm\x01\0\0\0'] },
  { types: /^application\/(?:vnd\.sqlite3|x-sqlite3)$/, signatures: ['SQLite format 3\0'] },
  { types: /^application\/(?:vnd\.apache\.parquet|x-parquet)$/, signatures: ['PAR1'] },
  { types: /^application\/vnd\.apache\.arrow\.file$/, signatures: ['ARROW1\0\0'] },
  { types: /^application\/x-hdf5?$/, signatures: ['\x89HDF\r\n\x1a\n'] },
];

/** Types that name no format: the bytes may be in any of the formats above. */
const CLAIMS_NOTHING = /^(?:(?:application|binary)\/octet-stream)?$/;
/** A byte order mark identifies text, whatever else the bytes resemble. */
const TEXT_MARKS = ['\xef\xbb\xbf', '\xff\xfe', '\xfe\xff', '\0\0\xfe\xff'];

/** Whether bytes begin as their media type requires. `head` is the start of the bytes. */
function beginsAsClaimed(type: string, head: Uint8Array): boolean {
  if (isAny(TEXT_MARKS, head)) return false;
  const claimed = FORMATS.filter(({ types }) => CLAIMS_NOTHING.test(type) || types.test(type));
  return claimed.some(({ signatures }) => isAny(signatures, head));
}

function isAny(signatures: readonly Signature[], head: Uint8Array): boolean {
  return signatures.some((one) =>
    typeof one === 'string' ? hasBytesAt(head, 0, one) : one.every(([at, bytes]) => hasBytesAt(head, at, bytes)),
  );
}

function hasBytesAt(head: Uint8Array, at: number, bytes: string): boolean {
  for (let index = 0; index < bytes.length; index++) {
    if (head[at + index] !== bytes.charCodeAt(index)) return false;
  }
  return true;
}

export type Payload =
  | { readonly kind: 'media' }
  | {
      /** `bytes`: hardly text, or a binary format. Treated as text where it holds what no text may. */
      readonly kind: 'text' | 'bytes';
      readonly reading: Reading;
      /** Other texts that a client may decode from the bytes. */
      readonly others: readonly string[];
      /** Re-encodes a changed text; undefined where the charset cannot represent it. */
      rewrite(text: string): string | undefined;
    }
  /** Not base64, and so text, apart from what a lenient decoder makes of it. */
  | { readonly kind: 'none'; readonly others: readonly string[] };

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/;
const URL_SAFE = /^[A-Za-z0-9_-]*={0,2}$/;
const BLANKS = /[\t\n\f\r ]+/g;
/** A multiple of four characters, which decodes to 12 KiB. */
const SAMPLE_CHARS = 16 * 1024;

/** What a member that may be a payload holds; undefined for any other member. */
export function readPayload(block: JsonObject, member: string, value: string): Payload | undefined {
  if (!mayHoldPayload(block, member)) return undefined;
  const isPlain = STANDARD.test(value);
  const base64 = isPlain ? value : value.replace(BLANKS, '');
  const isStandard = isPlain || STANDARD.test(base64);
  if (!isStandard && !URL_SAFE.test(base64)) return { kind: 'none', others: decodeLeniently(base64).flatMap(textsOf) };
  const { essence, charsets } = readMimeType(block['mimeType']);
  const sample = Buffer.from(base64.slice(0, SAMPLE_CHARS), 'base64');
  const begins = beginsAsClaimed(claimOf(block, member, essence), sample);
  if (begins && isNotText(sample)) return { kind: 'media' };
  const bytes = Buffer.from(base64, 'base64');
  const reading = readBytes(bytes, charsets[0]);
  // Some decoders skip the characters that only base64url has.
  const lenient = isStandard ? [] : decodeLeniently(base64).flatMap(textsOf);
  return {
    kind: begins || isHardlyText(reading.text) || isHardlyLatin(reading) ? 'bytes' : 'text',
    reading,
    others: [...otherTexts(bytes, reading, charsets), ...lenient],
    rewrite: (text) => encodeAs(text, reading, bytes)?.toString('base64'),
  };
}

/** Whether a member may be a payload: `blob` of a resource, or `data` of a block with a media type. */
export function mayHoldPayload(block: JsonObject, member: string): boolean {
  if (member === 'blob') return true;
  if (member !== 'data') return false;
  return isMediaBlock(block) || typeof block['mimeType'] === 'string';
}

function isMediaBlock(block: JsonObject): boolean {
  return block['type'] === 'image' || block['type'] === 'audio';
}

/** The type to check against. An image or audio block without a type may hold any format. */
function claimOf(block: JsonObject, member: string, essence: string): string {
  return member === 'data' && isMediaBlock(block) && !essence.includes('/') ? '' : essence;
}

const MAX_CHARSETS = 4;
/** No label of a charset is as long. */
const MAX_CHARSET_CHARS = 64;

/** A media type without its parameters, in lower case, and the charsets that it names: readers differ in which counts. */
export function readMimeType(mimeType: Json | undefined): {
  readonly essence: string;
  readonly charsets: readonly string[];
} {
  if (typeof mimeType !== 'string') return { essence: '', charsets: [] };
  const [essence = '', ...parameters] = mimeType.split(';');
  const charsets = parameters
    .filter((one) => /^\s{0,16}charset\s{0,16}=/i.test(one))
    .map((one) =>
      one
        .slice(one.indexOf('=') + 1)
        .trim()
        .slice(0, MAX_CHARSET_CHARS)
        .replace(/^[\s"']+|[\s"']+$/g, ''),
    );
  return { essence: essence.trim().toLowerCase(), charsets: charsets.slice(0, MAX_CHARSETS) };
}

/** The texts that readers may find in base64 of either alphabet, also where characters of neither stand within. */
export function textsOfBase64(value: string, charsets: readonly string[]): readonly string[] {
  const base64 = value.replace(BLANKS, '');
  if (STANDARD.test(base64)) return textsIn(Buffer.from(base64, 'base64'), charsets);
  return decodeLeniently(base64).flatMap((bytes) => textsIn(bytes, charsets));
}

/** Whether the sample is not text. Needed because some formats begin with plain text. */
function isNotText(sample: Buffer): boolean {
  return isHardlyText(readBytes(sample, undefined).text);
}

// The results of lenient decoders that skip characters outside the alphabet: one also skips padding, one decodes
// the pieces between paddings apart, and one accepts the characters of base64url.
function decodeLeniently(base64: string): readonly Buffer[] {
  const skipped = base64.replace(/[^A-Za-z0-9+/=]+/g, '');
  const decode = (text: string): Buffer => Buffer.from(text, 'base64');
  return [
    decode(skipped.replaceAll('=', '')),
    Buffer.concat(skipped.split('=').map(decode)),
    decode(base64.replace(/[^A-Za-z0-9+/_-]+/g, '')),
  ];
}

function textsOf(bytes: Buffer): readonly string[] {
  return textsIn(bytes, []);
}

/** The texts that readers may find in bytes, the most likely first. */
export function textsIn(bytes: Buffer, charsets: readonly string[]): readonly string[] {
  const reading = readBytes(bytes, charsets[0]);
  return [reading.text, ...otherTexts(bytes, reading, charsets)];
}

/** Shorter stretches of printable ASCII occur in any bytes, and nothing harmful fits into one. */
const STRETCHES = /[\t\n\f\r\x20-\x7e]{10,}/g;
/** Plain characters that must follow the start of markup: random bytes contain the beginnings of tags too. */
const MIN_MARKUP_CHARS = 10;
/** The same for a tag, which acts through its attributes or is not closed. */
const MIN_TAG_CHARS = 16;
/** Characters around a stretch that are inspected with it. */
const MARGIN = 256;
/** A text up to this length is inspected whole. */
const MAX_UNSPLIT_CHARS = 4096;

/**
 * The parts worth inspecting in bytes that are hardly text, or in a text that only some clients decode: stretches
 * of plain text and their surroundings. Random bytes have few of them, which keeps the cost low.
 */
export function readableParts(text: string): readonly string[] {
  const parts: { start: number; end: number }[] = [];
  for (const { index, 0: stretch } of text.matchAll(STRETCHES)) {
    if (text.length <= MAX_UNSPLIT_CHARS) return [text];
    const start = Math.max(0, index - MARGIN);
    const end = Math.min(text.length, index + stretch.length + MARGIN);
    const last = parts.at(-1);
    if (last !== undefined && start <= last.end) last.end = end;
    else parts.push({ start, end });
  }
  return parts.map(({ start, end }) => text.slice(start, end));
}

/**
 * What the rules find in such parts: secrets, personal data, injection cues, and active content that contains a
 * stretch of plain text, which in random bytes it does not.
 */
export function checkBytes(parts: readonly string[], rules: ResultRules): readonly NoteFinding[] {
  return parts.flatMap((part) => checkPart(part, rules));
}

function checkPart(text: string, rules: ResultRules): readonly NoteFinding[] {
  const stretches = [...text.matchAll(STRETCHES)].map(({ index, 0: { length } }) => ({
    start: index,
    end: index + length,
  }));
  const cues = rules.injection === 'off' ? [] : findInjectionCues(text);
  const sensitive = findSensitive(text, wantedKindsOf(rules));
  return [
    ...cues.map((cue) => noteOf(`injection:${cue}`, rules.injection)),
    ...sensitive.map((hit) => ({
      detector: detectorOf(hit.kind),
      action: actionFor(hit, rules),
      count: 1,
    })),
    ...activeIn(text, stretches, rules),
  ];
}

function noteOf(detector: string, rule: ResultRules['injection' | 'activeContent']): NoteFinding {
  if (rule === 'block') return { detector, action: 'withhold', count: 1 };
  return { detector, action: rule === 'neutralize' ? 'neutralize' : 'flag', count: 1 };
}

function activeIn(text: string, stretches: readonly Span[], { activeContent }: ResultRules): readonly NoteFinding[] {
  if (activeContent === 'off') return [];
  const notes: NoteFinding[] = [];
  let next = 0;
  for (const { kind, start } of findActiveContent(text, []).found) {
    while ((stretches[next]?.end ?? start + 1) <= start) next++;
    const stretch = stretches[next];
    const least = kind === 'html' ? MIN_TAG_CHARS : MIN_MARKUP_CHARS;
    if (stretch !== undefined && stretch.start <= start && stretch.end - start >= least)
      notes.push(noteOf(`active:${kind}`, activeContent));
  }
  return notes;
}

/** Decoded bytes. `bom` is the length of the byte order mark in bytes, which is not part of the text. */
type Reading = { readonly text: string; readonly charset: string; readonly bom: number };

const BOMS: readonly (readonly [charset: string, bytes: readonly number[]])[] = [
  ['utf-8', [0xef, 0xbb, 0xbf]],
  ['utf-32le', [0xff, 0xfe, 0, 0]],
  ['utf-32be', [0, 0, 0xfe, 0xff]],
  ['utf-16le', [0xff, 0xfe]],
  ['utf-16be', [0xfe, 0xff]],
];
/** Bytes sampled to guess a charset. Must be a multiple of every unit size. */
const CHARSET_SAMPLE = 64 * 1024;
const REPLACEMENT_UNIT = 0xfffd;
const UTF_16: readonly Wide[] = ['utf-16le', 'utf-16be'];
const ALL_WIDE: readonly Wide[] = ['utf-16le', 'utf-16be', 'utf-32le', 'utf-32be'];

/**
 * Decodes bytes by their byte order mark, else by the declared charset, else by the NUL pattern of wide units,
 * else as UTF-8, else as Latin-1.
 */
function readBytes(bytes: Buffer, declared: string | undefined): Reading {
  return (
    readMarked(bytes) ??
    readDeclared(bytes, declared) ??
    readWide(bytes) ??
    readUtf8(bytes) ?? { text: bytes.toString(LATIN_1), charset: LATIN_1, bom: 0 }
  );
}

/** The texts of clients that ignore the charset, take another of those that are declared, or guess one. */
function otherTexts(bytes: Buffer, { charset }: Reading, charsets: readonly string[] = []): readonly string[] {
  const isByBytes = charset === LATIN_1 || charset === 'utf-8';
  const declared = charsets.slice(1).flatMap((one) => readDeclared(bytes, one)?.text ?? []);
  const others = isByBytes ? declared : [bytes.toString(LATIN_1), ...declared];
  // Wide text with any ASCII contains NUL, and text without ASCII holds nothing that detectors look for.
  if (!bytes.includes(0)) return others;
  const complete = bytes.subarray(0, bytes.length - (bytes.length % 4));
  const pattern = readWide(bytes)?.charset ?? readWide(complete)?.charset;
  const wide = new Set<string>(pattern === undefined ? UTF_16 : [...UTF_16, pattern]);
  wide.delete(charset);
  return [...others, ...Array.from(wide, (one) => decodeText(bytes, one))];
}

/** Encodes a changed text in its original charset; undefined where that cannot represent it. */
function encodeAs(text: string, { charset, bom }: Reading, original: Buffer): Buffer | undefined {
  const body = encodeText(text, charset);
  if (body === undefined || decodeText(body, charset) !== text) return undefined;
  return bom === 0 ? body : Buffer.concat([original.subarray(0, bom), body]);
}

function readMarked(bytes: Buffer): Reading | undefined {
  const found = BOMS.find(([, mark]) => mark.every((byte, at) => bytes[at] === byte));
  if (found === undefined) return undefined;
  const [charset, { length: bom }] = found;
  return { text: decodeText(bytes.subarray(bom), charset), charset, bom };
}

function readDeclared(bytes: Buffer, declared: string | undefined): Reading | undefined {
  const label = declared?.toLowerCase();
  if (label === undefined || label === 'binary') return undefined;
  const wide = ALL_WIDE.find((one) => one === label.replace(/^utf[-_ ]?(16|32)[-_ ]?(?=[lb]e$)/, 'utf-$1'));
  if (wide !== undefined) return { text: decodeText(bytes, wide), charset: wide, bom: 0 };
  if (/^(?:iso-8859-1|latin-?1|us-ascii|ascii)$/.test(label)) return undefined;
  const read = decodeStrictly(bytes, label);
  return read === undefined ? undefined : { ...read, bom: 0 };
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Decodes UTF-8. Some invalid bytes are accepted if most of what is beyond ASCII is valid. */
function readUtf8(bytes: Buffer): Reading | undefined {
  const text = utf8.decode(bytes);
  if (text.includes(REPLACEMENT) && !isMostlySound(text)) return undefined;
  return { text, charset: 'utf-8', bom: 0 };
}

const MAX_ASCII = 0x7f;

/** A manual loop: a regular expression would create a string for every character of an image. */
function isMostlySound(text: string): boolean {
  let replacements = 0;
  let sound = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === REPLACEMENT_UNIT) replacements++;
    // Of a surrogate pair, only the first half counts.
    else if (unit > MAX_ASCII && (unit < 0xdc00 || unit > 0xdfff)) sound++;
  }
  return sound > replacements;
}

const MIN_WIDE_RATIO = 0.4;
/** How many times more NULs one half of the units must have than the other. */
const ONE_SIDED = 4;

// Detects UTF-16 and UTF-32 without a byte order mark: in ASCII text, every other byte is NUL, or three of four. A
// document that begins with a tag says so in its first characters (XML 1.0, appendix F).
function readWide(bytes: Buffer): Reading | undefined {
  const isMultipleOfFour = bytes.length % 4 === 0;
  const sample = bytes.subarray(0, Math.min(CHARSET_SAMPLE, bytes.length));
  const charset = wideBy(countNuls(sample), sample.length, isMultipleOfFour) ?? wideByTag(sample);
  return charset === undefined ? undefined : { text: decodeText(bytes, charset), charset, bom: 0 };
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
  if (isMultipleOfFour && fourth === groups && third * 2 > groups && first * 2 < groups) return 'utf-32le';
  if (isMultipleOfFour && first === groups && second * 2 > groups && fourth * 2 < groups) return 'utf-32be';
  const even = first + third;
  const odd = second + fourth;
  const least = (length / 2) * MIN_WIDE_RATIO;
  if (odd > even * ONE_SIDED && odd >= least) return 'utf-16le';
  return even > odd * ONE_SIDED && even >= least ? 'utf-16be' : undefined;
}

function wideByTag([first, second, third, fourth]: Uint8Array): Wide | undefined {
  if (first === LESS_THAN && second === 0 && fourth === 0 && third !== 0) return 'utf-16le';
  return first === 0 && second === LESS_THAN && third === 0 && fourth !== 0 ? 'utf-16be' : undefined;
}

const LESS_THAN = 0x3c;
const MAX_CONTROL_RATIO = 0.1;
const CONTROL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what is counted
  /[\0-\x06\x0b\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd\ufffe\uffff\ud800-\udfff]/gu;

/** Whether a text has so many control and replacement characters that it is probably binary. */
function isHardlyText(text: string): boolean {
  const sample = text.slice(0, CHARSET_SAMPLE);
  return countMatches(sample, CONTROL) > sample.length * MAX_CONTROL_RATIO;
}

const MIN_ASCII_RATIO = 0.7;
const ASCII_TEXT = /[\t\n\f\r\x20-\x7e]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal obeys begins with one
const TERMINAL = /\x1b[[\]PX^_]/;

/**
 * Whether bytes decoded as Latin-1 for lack of anything better may be random or in an unknown charset. If such
 * bytes were treated as text, half of them would be stripped.
 */
function isHardlyLatin({ text, charset }: Reading): boolean {
  if (charset !== LATIN_1 || TERMINAL.test(text)) return false;
  const sample = text.slice(0, CHARSET_SAMPLE);
  return countMatches(sample, ASCII_TEXT) < sample.length * MIN_ASCII_RATIO;
}

function countMatches(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
