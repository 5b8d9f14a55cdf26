// What the base64 of a block holds: media, which nobody reads, or bytes that are read as text. Media is what
// begins as its type says and is not all text; whatever else comes is some text, however it is encoded.
// Source: MCP 2025-11-25, tools (image and audio content, embedded resources); RFC 4648 §4 and §5; RFC 2045 §5.

import type { Json, JsonObject } from '../mcp/message.js';
import {
  encodeAs,
  isHardlyLatin,
  isHardlyText,
  otherTexts,
  type Reading,
  readBytes,
} from './charsets.js';
import { beginsAsClaimed } from './media-types.js';
import { findActiveContent } from './sanitize/active-content.js';
import { findSensitive } from './sanitize/detect.js';
import { findInjectionCues } from './sanitize/injection.js';
import {
  actionFor,
  detectorOf,
  type Note,
  type ResultRules,
  wantedBy,
} from './sanitize/sanitize.js';

export type Payload =
  | { readonly kind: 'media' }
  | {
      /** `bytes`: hardly text, or of a binary format. Text all the same where it holds what no text may. */
      readonly kind: 'text' | 'bytes';
      readonly reading: Reading;
      /** What else a client may read in it. */
      readonly others: readonly string[];
      /** The same with a changed text; `undefined` where its encoding has no bytes for that. */
      rewrite(text: string): string | undefined;
    }
  /** No base64: text, but for what a careless decoder makes of it. */
  | { readonly kind: 'none'; readonly others: readonly string[] };

const STANDARD = /^[A-Za-z0-9+/]*={0,2}$/;
const URL_SAFE = /^[A-Za-z0-9_-]*={0,2}$/;
const BLANKS = /[\t\n\f\r ]+/g;
/** Groups of four, which are 12 KiB. */
const SAMPLE_CHARS = 16 * 1024;

/** What a member holds that may be a payload; `undefined` for one of another block. */
export function readPayload(block: JsonObject, member: string, value: string): Payload | undefined {
  if (!mayHoldPayload(block, member)) return undefined;
  const isPlain = STANDARD.test(value);
  const base64 = isPlain ? value : value.replace(BLANKS, '');
  const isStandard = isPlain || STANDARD.test(base64);
  if (!isStandard && !URL_SAFE.test(base64))
    return { kind: 'none', others: carelessly(base64).flatMap(textsOf) };
  const { essence, charset } = readMimeType(block['mimeType']);
  const sample = Buffer.from(base64.slice(0, SAMPLE_CHARS), 'base64');
  const begins = beginsAsClaimed(claimOf(block, member, essence), sample);
  if (begins && isNoText(sample)) return { kind: 'media' };
  const bytes = Buffer.from(base64, 'base64');
  const reading = readBytes(bytes, charset);
  // Some decoders pass over what base64url has of its own.
  const careless = isStandard ? [] : carelessly(base64).flatMap(textsOf);
  return {
    kind: begins || isHardlyText(reading.text) || isHardlyLatin(reading) ? 'bytes' : 'text',
    reading,
    others: [...otherTexts(bytes, reading), ...careless],
    rewrite: (text) => encodeAs(text, reading, bytes)?.toString('base64'),
  };
}

/** The blob of a resource, and the data of a block that has a type of media. */
export function mayHoldPayload(block: JsonObject, member: string): boolean {
  if (member === 'blob') return true;
  if (member !== 'data') return false;
  return isMediaBlock(block) || typeof block['mimeType'] === 'string';
}

function isMediaBlock(block: JsonObject): boolean {
  return block['type'] === 'image' || block['type'] === 'audio';
}

/** A block of media that names no type claims to be media all the same; which, its bytes say. */
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

/** Of some formats the beginning is plain text, so that a text may begin so too. */
function isNoText(sample: Buffer): boolean {
  return isHardlyText(readBytes(sample, undefined).text);
}

/**
 * The bytes that decoders give which skip what is no base64: with padding skipped too, with what stands between
 * two paddings decoded apart, and with the signs of base64url taken for what they are there.
 */
function carelessly(base64: string): readonly Buffer[] {
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

/** Shorter stretches of printable ASCII are in any bytes, and nothing that matters fits into one. */
const STRETCHES = /[\t\n\f\r\x20-\x7e]{10,}/g;
/** From its beginning on, so much of a piece of markup is plain text: noise has the beginnings of tags too. */
const MIN_MARKUP_CHARS = 10;
/** The same for a tag that acts by its attributes, or has no end. */
const MIN_TAG_CHARS = 16;
const UNNAMED_TAG = '(removed html)';
/** So much around a stretch is read with it. */
const MARGIN = 256;
/** Up to this length all of it is read. */
const MAX_UNSPLIT_CHARS = 4096;

/**
 * What there is to look at in bytes that hardly are text, or in a reading that only some clients come to: the
 * stretches of plain text with what surrounds them. Noise has few, so that it costs little.
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
 * What the rules say of such parts: secrets, personal data, cues, and what is active and holds a stretch of plain
 * text, which noise does not.
 */
export function checkBytes(parts: readonly string[], rules: ResultRules): readonly Note[] {
  return parts.flatMap((part) => checkPart(part, rules));
}

function checkPart(text: string, rules: ResultRules): readonly Note[] {
  const stretches = [...text.matchAll(STRETCHES)].map(({ index, 0: { length } }) => ({
    start: index,
    end: index + length,
  }));
  const cues = rules.injection === 'off' ? [] : findInjectionCues(text);
  const sensitive = findSensitive(text, wantedBy(rules));
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

function noteOf(detector: string, rule: ResultRules['injection' | 'activeContent']): Note {
  if (rule === 'block') return { detector, action: 'withhold', count: 1 };
  return { detector, action: rule === 'neutralize' ? 'neutralize' : 'flag', count: 1 };
}

type Stretch = { readonly start: number; readonly end: number };

function activeIn(
  text: string,
  stretches: readonly Stretch[],
  { activeContent }: ResultRules,
): readonly Note[] {
  if (activeContent === 'off') return [];
  const notes: Note[] = [];
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
