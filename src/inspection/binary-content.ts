// Classifies the base64 of a content block: media, which is not read as text, or bytes that are. Bytes are media
// if they begin as their media type requires and are not all text; anything else is inspected as text, whatever
// its encoding.
// Source: MCP 2025-11-25, tools (image and audio content, embedded resources); RFC 4648 §4 and §5; RFC 2045 §5;
// WHATWG MIME Sniffing §6; the specifications of the formats.

import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import {
  encodeAs,
  isHardlyLatin,
  isHardlyText,
  otherTexts,
  type Reading,
  readBytes,
} from './charsets.js';
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

// Latin-1 strings at offsets, all of which must match. Only the start is checked: anything may follow a real
// header.
type Signature = readonly (readonly [at: number, bytes: string])[];
type Format = { readonly types: RegExp; readonly signatures: readonly Signature[] };

function startSignatures(...texts: readonly string[]): readonly Signature[] {
  return texts.map((text) => [[0, text]]);
}

const RIFF = [0, 'RIFF'] as const;
const FORM = [0, 'FORM'] as const;
/** MPEG audio of layer II or III, and AAC. Frame headers are all that identifies them. */
const MP3 = startSignatures(
  ...'\xfa\xfb\xfc\xfd\xf2\xf3\xf4\xf5\xe2\xe3'.split('').map((one) => `\xff${one}`),
);
const AAC = startSignatures('\xff\xf0', '\xff\xf1', '\xff\xf8', '\xff\xf9', 'ADIF');
const BASE_MEDIA: readonly Signature[] = [
  'ftyp',
  'moov',
  'mdat',
  'styp',
  'wide',
  'free',
  'skip',
].map((box) => [[4, box]]);
const MATROSKA = startSignatures('\x1aE\xdf\xa3');
const OGG = startSignatures('OggS');
const ZIP = startSignatures('PK\x03\x04', 'PK\x05\x06', 'PK\x07\x08');
const COMPOUND = startSignatures('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1');

const FORMATS: readonly Format[] = [
  { types: /^image\/(?:x-)?(?:png|apng)$/, signatures: startSignatures('\x89PNG\r\n\x1a\n') },
  { types: /^image\/p?jpe?g$/, signatures: startSignatures('\xff\xd8\xff') },
  { types: /^image\/gif$/, signatures: startSignatures('GIF87a', 'GIF89a') },
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
  {
    types: /^image\/tiff(?:-fx)?$/,
    signatures: startSignatures('II*\0', 'MM\0*', 'II+\0', 'MM\0+'),
  },
  {
    types: /^image\/(?:x-icon|vnd\.microsoft\.icon|ico)$/,
    signatures: startSignatures('\0\0\x01\0'),
  },
  { types: /^image\/(?:avif|hei[cf])(?:-sequence)?$/, signatures: [[[4, 'ftyp']]] },
  { types: /^image\/jxl$/, signatures: startSignatures('\xff\x0a', '\0\0\0\x0cJXL \r\n\x87\n') },
  { types: /^image\/jp[2xm]$/, signatures: startSignatures('\0\0\0\x0cjP  \r\n\x87\n') },
  { types: /^image\/(?:vnd\.adobe\.photoshop|x-photoshop)$/, signatures: startSignatures('8BPS') },

  { types: /^audio\/(?:vnd\.wave|wave?|x-wav|x-pn-wav)$/, signatures: [[RIFF, [8, 'WAVE']]] },
  {
    types: /^audio\/(?:x-)?(?:mpeg|mp3|mpeg3|mpa)$/,
    signatures: [...startSignatures('ID3'), ...MP3],
  },
  { types: /^audio\/(?:x-)?(?:aac|aacp|hx-aac-adts)$/, signatures: AAC },
  { types: /^audio\/(?:x-)?flac$/, signatures: startSignatures('fLaC') },
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
  { types: /^audio\/(?:x-)?midi?$/, signatures: startSignatures('MThd\0\0\0') },
  { types: /^audio\/amr(?:-wb)?$/, signatures: startSignatures('#!AMR') },
  { types: /^audio\/(?:basic|au|x-au)$/, signatures: startSignatures('.snd\0') },
  { types: /^audio\/x-caf$/, signatures: startSignatures('caff\0') },

  { types: /^video\/(?:mp4|quicktime|x-m4v|3gpp2?)$/, signatures: BASE_MEDIA },
  { types: /^(?:video|application)\/ogg$/, signatures: OGG },
  { types: /^video\/(?:x-msvideo|avi|msvideo)$/, signatures: [[RIFF, [8, 'AVI ']]] },
  { types: /^video\/mpeg$/, signatures: startSignatures('\0\0\x01\xba', '\0\0\x01\xb3') },
  {
    types: /^video\/mp2t$/,
    signatures: [
      [
        [0, 'G'],
        [188, 'G'],
      ],
    ],
  },
  { types: /^video\/(?:x-flv|flv)$/, signatures: startSignatures('FLV\x01') },
  {
    types: /^(?:video|audio)\/x-ms-(?:wmv|wma|asf)$/,
    signatures: startSignatures('0&\xb2u\x8ef\xcf\x11'),
  },

  { types: /^application\/(?:x-)?pdf$/, signatures: startSignatures('%PDF-') },
  {
    types:
      /^application\/(?:(?:x-)?zip(?:-compressed)?|epub\+zip|java-archive|vnd\.(?:openxmlformats-officedocument|oasis\.opendocument|ms-(?:excel|word|powerpoint)\.).{1,100}|vnd\.android\.package-archive)$/,
    signatures: ZIP,
  },
  {
    types: /^application\/(?:msword|vnd\.(?:ms-(?:excel|powerpoint|outlook)|visio))$/,
    signatures: COMPOUND,
  },
  { types: /^application\/(?:x-)?gzip$/, signatures: startSignatures('\x1f\x8b\x08') },
  { types: /^application\/(?:x-)?bzip2?$/, signatures: startSignatures('BZh') },
  { types: /^application\/(?:x-)?xz$/, signatures: startSignatures('\xfd7zXZ\0') },
  { types: /^application\/(?:x-)?zstd$/, signatures: startSignatures('(\xb5/\xfd') },
  {
    types: /^application\/(?:x-)?7z-compressed$/,
    signatures: startSignatures('7z\xbc\xaf\x27\x1c'),
  },
  {
    types: /^application\/(?:vnd\.rar|x-rar(?:-compressed)?)$/,
    signatures: startSignatures('Rar!\x1a\x07'),
  },
  { types: /^application\/(?:x-)?tar$/, signatures: [[[257, 'ustar']]] },
  {
    types: /^(?:font\/woff2?|application\/font-woff)$/,
    signatures: startSignatures('wOFF', 'wOF2'),
  },
  {
    types: /^(?:font\/(?:otf|ttf|sfnt|collection)|application\/x-font-(?:otf|ttf))$/,
    signatures: startSignatures('OTTO\0', '\0\x01\0\0', 'true\0', 'ttcf\0'),
  },
  { types: /^application\/wasm$/, signatures: startSignatures('\0asm\x01\0\0\0') },
  {
    types: /^application\/(?:vnd\.sqlite3|x-sqlite3)$/,
    signatures: startSignatures('SQLite format 3\0'),
  },
  {
    types: /^application\/(?:vnd\.apache\.parquet|x-parquet)$/,
    signatures: startSignatures('PAR1'),
  },
  { types: /^application\/vnd\.apache\.arrow\.file$/, signatures: startSignatures('ARROW1\0\0') },
  { types: /^application\/x-hdf5?$/, signatures: startSignatures('\x89HDF\r\n\x1a\n') },
];

/** Types that name no format: the bytes may be in any of the formats above. */
const CLAIMS_NOTHING = /^(?:(?:application|binary)\/octet-stream)?$/;
/** A byte order mark identifies text, whatever else the bytes resemble. */
const TEXT_MARKS = startSignatures('\xef\xbb\xbf', '\xff\xfe', '\xfe\xff', '\0\0\xfe\xff');

/** Whether bytes begin as their media type requires. `head` is the start of the bytes. */
function beginsAsClaimed(type: string, head: Uint8Array): boolean {
  if (isAny(TEXT_MARKS, head)) return false;
  const claimed = FORMATS.filter(({ types }) => CLAIMS_NOTHING.test(type) || types.test(type));
  return claimed.some(({ signatures }) => isAny(signatures, head));
}

function isAny(signatures: readonly Signature[], head: Uint8Array): boolean {
  return signatures.some((parts) => parts.every(([at, bytes]) => hasBytesAt(head, at, bytes)));
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
  if (!isStandard && !URL_SAFE.test(base64))
    return { kind: 'none', others: decodeLeniently(base64).flatMap(textsOf) };
  const { essence, charset } = readMimeType(block['mimeType']);
  const sample = Buffer.from(base64.slice(0, SAMPLE_CHARS), 'base64');
  const begins = beginsAsClaimed(claimOf(block, member, essence), sample);
  if (begins && isNotText(sample)) return { kind: 'media' };
  const bytes = Buffer.from(base64, 'base64');
  const reading = readBytes(bytes, charset);
  // Some decoders skip the characters that only base64url has.
  const lenient = isStandard ? [] : decodeLeniently(base64).flatMap(textsOf);
  return {
    kind: begins || isHardlyText(reading.text) || isHardlyLatin(reading) ? 'bytes' : 'text',
    reading,
    others: [...otherTexts(bytes, reading), ...lenient],
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

function readMimeType(mimeType: Json | undefined): {
  readonly essence: string;
  readonly charset: string | undefined;
} {
  if (typeof mimeType !== 'string') return { essence: '', charset: undefined };
  const [essence = '', ...parameters] = mimeType.split(';');
  const declared = parameters.find((one) => /^\s{0,16}charset\s{0,16}=/i.test(one));
  const charset = declared?.slice(declared.indexOf('=') + 1).replace(/^[\s"']+|[\s"']+$/g, '');
  return { essence: essence.trim().toLowerCase(), charset };
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
  const reading = readBytes(bytes, undefined);
  return [reading.text, ...otherTexts(bytes, reading)];
}

/** Shorter stretches of printable ASCII occur in any bytes, and nothing harmful fits into one. */
const STRETCHES = /[\t\n\f\r\x20-\x7e]{10,}/g;
/** Plain characters that must follow the start of markup: random bytes contain the beginnings of tags too. */
const MIN_MARKUP_CHARS = 10;
/** The same for a tag that acts through its attributes or is not closed. */
const MIN_TAG_CHARS = 16;
const UNNAMED_TAG = '(removed html)';
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

type Stretch = { readonly start: number; readonly end: number };

function activeIn(
  text: string,
  stretches: readonly Stretch[],
  { activeContent }: ResultRules,
): readonly NoteFinding[] {
  if (activeContent === 'off') return [];
  const notes: NoteFinding[] = [];
  let next = 0;
  for (const { kind, start, text: shown } of findActiveContent(text, 'value', [])) {
    while ((stretches[next]?.end ?? start + 1) <= start) next++;
    const stretch = stretches[next];
    const least = shown === UNNAMED_TAG ? MIN_TAG_CHARS : MIN_MARKUP_CHARS;
    if (stretch !== undefined && stretch.start <= start && stretch.end - start >= least)
      notes.push(noteOf(`active:${kind}`, activeContent));
  }
  return notes;
}
