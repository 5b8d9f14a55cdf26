// Decodes what a text may hide from a detector. Produces views of a text as its reader sees it, with a map back to
// the original, so that what a detector finds in a view can be removed from the original; and finds runs of base64,
// base64url and hex that hide readable text. Runs that decode to anything else (hashes, images, keys) are left alone.
// Never decides what is harmful.
// Source: UAX #15 (NFKC); RFC 3986 §2.1; HTML §13.2.5.72 (character references); ECMA-262 §12.9.4; RFC 4648 §4, §5
// and §8.

import type { Span } from '../../text/span.js';
import { foldCodePoint, isInvisible, terminalSequenceAt } from './unicode.js';

/** `starts[i]` and `ends[i]` are the original span of code unit `i`. No map where the view equals the text. */
export type NormalizedText = {
  readonly text: string;
  readonly map: { readonly starts: Int32Array; readonly ends: Int32Array } | undefined;
};

/** The original span of a view's code units from `start` to `end`. Requires `start < end`. */
export function originalSpan(normalized: NormalizedText, start: number, end: number): Span {
  if (normalized.map === undefined) return { start, end };
  return { start: normalized.map.starts[start] ?? start, end: normalized.map.ends[end - 1] ?? end };
}

const BEYOND_PRINTABLE = /[^\t\n\r\x20-\x7e]/;

/** Drops terminal sequences and invisible characters and folds compatibility forms of ASCII to ASCII. Linear. */
export function foldText(text: string): NormalizedText {
  return foldView({ text, map: undefined });
}

/**
 * The forms in which readers take a text: folded, once as a terminal shows it and, where it has terminal sequences, with
 * what they hold, which a model reads like any other text; and each with its escapes decoded once and twice. Forms that add
 * nothing are left out.
 */
export function readForms(text: string): readonly NormalizedText[] {
  const shown = foldText(text);
  if (!mayHoldTerminalSequence(text)) return withDecodedEscapes(shown);
  const held = foldView({ text, map: undefined }, false);
  return [...withDecodedEscapes(shown), ...(held.text === shown.text ? [] : withDecodedEscapes(held))];
}

/** Whether a text has a character with which a terminal sequence begins. */
export function mayHoldTerminalSequence(text: string): boolean {
  return TERMINAL_START.test(text);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals obey them
const TERMINAL_START = /[\x1b\x80-\x9f]/;
const ESCAPES_DEPTH = 2;

function withDecodedEscapes(form: NormalizedText): readonly NormalizedText[] {
  const forms = [form];
  for (let last = form; forms.length <= ESCAPES_DEPTH; ) {
    const next = decodeEscapes(last);
    if (next === last) break;
    forms.push(next);
    last = next;
  }
  return forms;
}

/** The same for a view, with a map to what that is a view of. */
export function foldView(view: NormalizedText, dropsSequences = true): NormalizedText {
  const { text } = view;
  if (!BEYOND_PRINTABLE.test(text)) return view;
  const out = createViewBuilder();
  let from = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    const width = isPrintable(code) ? 1 : widthAt(text, at, code, dropsSequences);
    const own = text.slice(at, at + width);
    const folded = isPrintable(code) ? own : foldVisible(code, own);
    if (folded !== own) {
      out.copy(text, from, at);
      out.put(folded, at, at + width);
      from = at + width;
    }
    at += width;
  }
  if (from === 0) return view;
  out.copy(text, from, text.length);
  return out.toNormalizedText(view.map);
}

/** The length of the character, or of the terminal sequence, at a position. */
function widthAt(text: string, at: number, code: number, dropsSequences: boolean): number {
  const sequence = dropsSequences && isTerminalStart(code) ? terminalSequenceAt(text, at) : 0;
  return Math.max(code > 0xffff ? 2 : 1, sequence);
}

function isPrintable(code: number): boolean {
  return code >= 0x20 && code <= 0x7e;
}

function isTerminalStart(code: number): boolean {
  return code === 0x1b || (code >= 0x80 && code <= 0x9f);
}

function foldVisible(code: number, own: string): string {
  if (code === 0x09 || code === 0x0a || code === 0x0d) return own;
  return isInvisible(code) ? '' : foldCodePoint(code);
}

/** Named references to characters that detectors look for. Others stay as written. */
export const NAMED_REFERENCES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['excl', '!'],
  ['dollar', '$'],
  ['percnt', '%'],
  ['ast', '*'],
  ['midast', '*'],
  ['comma', ','],
  ['semi', ';'],
  ['quest', '?'],
  ['hat', '^'],
  ['underbar', '_'],
  ['grave', '`'],
  ['diacriticalgrave', '`'],
  ['lcub', '{'],
  ['lbrace', '{'],
  ['rcub', '}'],
  ['rbrace', '}'],
  ['vert', '|'],
  ['verbar', '|'],
  ['verticalline', '|'],
  ['lbrack', '['],
  ['rbrack', ']'],
  ['fjlig', 'fj'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['colon', ':'],
  ['lowbar', '_'],
  ['period', '.'],
  ['sol', '/'],
  ['bsol', '\\'],
  ['equals', '='],
  ['hyphen', '-'],
  ['dash', '-'],
  ['plus', '+'],
  ['num', '#'],
  ['commat', '@'],
  ['lpar', '('],
  ['rpar', ')'],
  ['lsqb', '['],
  ['rsqb', ']'],
  ['nbsp', ' '],
  ['shy', ''],
  ['zwnj', ''],
  ['zwj', ''],
  ['lrm', ''],
  ['rlm', ''],
  ['nobreak', ''],
  ['zerowidthspace', ''],
  ['invisibletimes', ''],
  ['it', ''],
  ['invisiblecomma', ''],
  ['ic', ''],
  ['applyfunction', ''],
  ['af', ''],
  ['negativeverythinspace', ''],
  ['negativethinspace', ''],
  ['negativemediumspace', ''],
  ['negativethickspace', ''],
  ['tab', '\t'],
  ['newline', '\n'],
]);

// Each level of JSON that a text is written into doubles the backslashes of its escapes. A number may have any zeros before
// it, and the soft hyphen of HTML needs no semicolon.
const ESCAPE =
  /%u[0-9A-Fa-f]{4}|%[0-7][0-9A-Fa-f]|%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){1,3}|\\{1,8}(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[ux]\{0*[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[0-3][0-7]{2})|&#0*[0-9]{1,7};?|&#[xX]0*[0-9A-Fa-f]{1,6};?|&[A-Za-z]{2,21};|&shy/g;

/**
 * Decodes percent triplets, `\u` and `\x` escapes and character references once, and folds what they stand for. Returns
 * the same view where nothing is decoded. Linear.
 */
export function decodeEscapes(normalized: NormalizedText): NormalizedText {
  const { text } = normalized;
  ESCAPE.lastIndex = 0;
  let match = ESCAPE.exec(text);
  if (match === null) return normalized;
  const out = createViewBuilder();
  let at = 0;
  let isChanged = false;
  while (match !== null) {
    const decoded = decodeOne(match[0]);
    if (decoded !== undefined) {
      out.copy(text, at, match.index);
      out.put(decoded, match.index, ESCAPE.lastIndex);
      at = ESCAPE.lastIndex;
      isChanged = true;
    }
    match = ESCAPE.exec(text);
  }
  if (!isChanged) return normalized;
  out.copy(text, at, text.length);
  return foldView(out.toNormalizedText(normalized.map));
}

function decodeOne(encoded: string): string | undefined {
  if (encoded.startsWith('%u')) return fromCode(Number.parseInt(encoded.slice(2), 16));
  if (encoded.startsWith('%')) return fromTriplets(encoded);
  if (encoded.startsWith('\\')) return fromEscape(encoded.replace(/[\\{}]/g, ''));
  return fromReference(encoded);
}

/** The character that a letter and its number, or a number in octal, stand for. */
function fromEscape(written: string): string | undefined {
  const isOctal = /^\d/.test(written);
  return fromCode(Number.parseInt(isOctal ? written : written.slice(1), isOctal ? 8 : 16));
}

function fromReference(encoded: string): string | undefined {
  if (encoded.startsWith('&#')) {
    const isHex = encoded[2] === 'x' || encoded[2] === 'X';
    const digits = encoded.slice(isHex ? 3 : 2).replace(';', '');
    return fromCode(Number.parseInt(digits, isHex ? 16 : 10));
  }
  const known = NAMED_REFERENCES.get(encoded.slice(1, -1).toLowerCase());
  return known === undefined && encoded.startsWith('&shy') ? encoded.slice(4) : known;
}

function fromCode(code: number): string | undefined {
  return code <= MAX_CODE_POINT ? String.fromCodePoint(code) : undefined;
}

const MAX_CODE_POINT = 0x10ffff;

/** The character that percent triplets stand for in UTF-8; undefined where they are not UTF-8. */
function fromTriplets(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/**
 * A view of a stretch of another view in which one level of the escapes of JSON strings is decoded: what a text that is
 * written into a string says.
 */
export function unescapeStretch(view: NormalizedText, from: number, to: number): NormalizedText {
  const stretch = view.text.slice(from, to);
  const out = createViewBuilder();
  let at = 0;
  for (const match of stretch.matchAll(JSON_ESCAPE)) {
    out.copy(view.text, from + at, from + match.index);
    at = match.index + match[0].length;
    out.put(unescaped(match[0]), from + match.index, from + at);
  }
  out.copy(view.text, from + at, to);
  return out.toNormalizedText(view.map);
}

const JSON_ESCAPE = /\\(?:u[0-9A-Fa-f]{4}|[^u])/g;
const CONTROL_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['b', '\b'],
  ['f', '\f'],
]);

function unescaped(written: string): string {
  const sign = written.charAt(1);
  if (sign === 'u') return String.fromCharCode(Number.parseInt(written.slice(2), 16));
  return CONTROL_ESCAPES.get(sign) ?? sign;
}

type ViewBuilder = {
  put(text: string, start: number, end: number): void;
  copy(text: string, from: number, to: number): void;
  toNormalizedText(outer: NormalizedText['map']): NormalizedText;
};

export function createViewBuilder(): ViewBuilder {
  const pieces: string[] = [];
  let starts = new Int32Array(FIRST_UNITS);
  let ends = new Int32Array(FIRST_UNITS);
  let size = 0;
  function reserve(units: number): void {
    if (size + units <= starts.length) return;
    const capacity = Math.max(2 * starts.length, size + units);
    starts = enlarged(starts, capacity);
    ends = enlarged(ends, capacity);
  }
  return {
    put(text, start, end) {
      if (text === '') return;
      pieces.push(text);
      reserve(text.length);
      starts.fill(start, size, size + text.length);
      ends.fill(end, size, size + text.length);
      size += text.length;
    },
    copy(text, from, to) {
      if (from === to) return;
      pieces.push(text.slice(from, to));
      reserve(to - from);
      for (let unit = from; unit < to; unit++) {
        starts[size] = unit;
        ends[size++] = unit + 1;
      }
    },
    toNormalizedText(outer) {
      const map = { starts: starts.slice(0, size), ends: ends.slice(0, size) };
      if (outer !== undefined) {
        for (let at = 0; at < size; at++) {
          const end = map.ends[at] ?? 0;
          map.starts[at] = outer.starts[map.starts[at] ?? 0] ?? 0;
          map.ends[at] = outer.ends[end - 1] ?? end;
        }
      }
      return { text: pieces.join(''), map };
    },
  };
}

const FIRST_UNITS = 256;

function enlarged(units: Int32Array<ArrayBuffer>, capacity: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(capacity);
  larger.set(units);
  return larger;
}

/** The span of a run and its decoded text. */
type EncodedRun = { readonly start: number; readonly end: number; readonly decoded: string };

/** A shorter run cannot hold even the shortest secret. */
const MIN_RUN_CHARS = 20;
const MIN_PRINTABLE_RATIO = 0.9;

/** Base64 in lines (RFC 2045 §6.8, RFC 7468; of any length, as encoders are told), with raw line ends or line ends escaped in JSON. */
const FOLDED_LINES =
  /(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{16,512}(?:(?:\r?\n|(?:\\r)?\\n)[A-Za-z0-9+/]{1,512}){1,400}={0,2}/g;
const HEX = /^(?:[0-9a-f]{2})+$|^(?:[0-9A-F]{2})+$/;

/** The readable runs of a text, in order. Linear. */
export function findEncodedRuns(text: string): EncodedRun[] {
  const runs: EncodedRun[] = [];
  collectRuns(text, runs);
  if (runs.length < text.length / MIN_RUN_CHARS && /\n|\\n/.test(text)) {
    collectFolded(text, runs);
  }
  return runs;
}

function collectFolded(text: string, runs: EncodedRun[]): void {
  FOLDED_LINES.lastIndex = 0;
  for (let match = FOLDED_LINES.exec(text); match !== null; match = FOLDED_LINES.exec(text)) {
    const decoded = decodeRun(match[0].replace(/[\r\n]|\\[rn]/g, ''));
    if (decoded === undefined) continue;
    runs.push({ start: match.index, end: match.index + match[0].length, decoded });
  }
}

/** Traits of a character in a run: 1 digit, 2 letter or sign, 4 capital. 0 ends the run. */
const RUN_TRAITS = new Uint8Array(0x10000);
for (let code = 0; code < 0x7f; code++) {
  const unit = String.fromCharCode(code);
  if (/[a-z+/_-]/.test(unit)) RUN_TRAITS[code] = 2;
  else if (/[0-9]/.test(unit)) RUN_TRAITS[code] = 1;
  else if (/[A-Z]/.test(unit)) RUN_TRAITS[code] = 4;
}

function collectRuns(text: string, runs: EncodedRun[]): void {
  let start = 0;
  let digits = 0;
  let capitals = 0;
  for (let at = 0; at <= text.length; at++) {
    const trait = at < text.length ? (RUN_TRAITS[text.charCodeAt(at)] ?? 0) : 0;
    digits += trait & 1;
    capitals += trait >> 2;
    if (trait !== 0) continue;
    // Words and paths have neither digits nor many capitals; encoded text has.
    if (at - start >= MIN_RUN_CHARS && (digits > 0 || capitals >= MIN_CAPITALS)) {
      addRun(text, start, at, runs);
    }
    start = at + 1;
    digits = 0;
    capitals = 0;
  }
}

const MIN_CAPITALS = 4;

function addRun(text: string, start: number, end: number, runs: EncodedRun[]): void {
  if (addPart(text, start, end, runs) || !text.slice(start, end).includes('/')) return;
  if (!addRest(text, start, end, runs)) addSegments(text, start, end, runs);
}

function addPart(text: string, start: number, end: number, runs: EncodedRun[]): boolean {
  const decoded = end - start < MIN_RUN_CHARS ? undefined : decodeRun(text.slice(start, end));
  if (decoded === undefined) return false;
  let padded = end;
  while (padded - end < 2 && text[padded] === '=') padded++;
  runs.push({ start, end: padded, decoded });
  return true;
}

/** The rests of a run that are decoded, so that a run of nothing but slashes takes no longer. */
const MAX_RESTS = 16;

/** Base64 has slashes, and so have paths: what stands behind one may be encoded by itself. */
function addRest(text: string, start: number, end: number, runs: EncodedRun[]): boolean {
  const run = text.slice(start, end);
  let slash = run.indexOf('/');
  for (let tried = 0; slash !== -1 && tried < MAX_RESTS; tried++) {
    if (addPart(text, start + slash + 1, end, runs)) return true;
    slash = run.indexOf('/', slash + 1);
  }
  return false;
}

function addSegments(text: string, from: number, end: number, runs: EncodedRun[]): void {
  let start = from;
  for (const segment of text.slice(from, end).split('/')) {
    const next = start + segment.length;
    if (next < end) addPart(text, start, next, runs);
    start = next + 1;
  }
}

/** Decodes one run; undefined where it holds no readable text. The first bytes exclude most runs. */
function decodeRun(run: string): string | undefined {
  if (HEX.test(run)) {
    const text = readableAs(readerOf(bytesOfHex(run.slice(0, PROBE_CHARS))), run, bytesOfHex);
    if (text !== undefined) return text;
  }
  return readableAs(readerOf(firstBytes(run)), run, bytesOfBase64);
}

/** Decodes bytes to text; undefined where they are not text. */
type Reader = (bytes: Uint8Array) => string | undefined;

function readableAs(reader: Reader | undefined, run: string, decode: (run: string) => Uint8Array): string | undefined {
  if (reader === undefined) return undefined;
  const bytes = decode(run);
  return bytes.length === 0 ? undefined : reader(bytes);
}

/** Chooses the reader for bytes that begin like this. */
function readerOf(probe: Uint8Array): Reader | undefined {
  if (mayBeText(probe)) return readNarrow;
  const wide = wideBy(probe);
  if (wide !== undefined) return (bytes) => readWide(bytes, wide);
  return isMostlyAscii(probe) ? readLatin1 : undefined;
}

const PROBE_CHARS = 24;
const MAX_PROBE_CONTROLS = 2;

const SEXTETS = new Uint8Array(0x80);
for (const [value, unit] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'].entries()) {
  SEXTETS[unit.charCodeAt(0)] = value;
}
SEXTETS['-'.charCodeAt(0)] = 62;
SEXTETS['_'.charCodeAt(0)] = 63;

const probeBuffer = new Uint8Array((PROBE_CHARS / 4) * 3);

/** The first bytes of a base64 run, in a buffer that the next call overwrites. */
function firstBytes(run: string): Uint8Array {
  let length = 0;
  let bits = 0;
  let held = 0;
  for (let at = 0; at < run.length && at < PROBE_CHARS; at++) {
    held = ((held << 6) | (SEXTETS[run.charCodeAt(at)] ?? 0)) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    probeBuffer[length++] = (held >> bits) & 0xff;
  }
  return probeBuffer.subarray(0, length);
}

/** False where the first bytes cannot be UTF-8 or are hardly printable (RFC 3629 §4). */
function mayBeText(bytes: Uint8Array): boolean {
  let controls = 0;
  let awaited = 0;
  for (const byte of bytes) {
    awaited = awaitedAfter(byte, awaited);
    if (awaited < 0) return false;
    if (byte < 0x20 && (byte < 0x09 || byte > 0x0d)) controls++;
  }
  return controls <= MAX_PROBE_CONTROLS;
}

/** Continuation bytes expected after this byte; -1 where it is invalid here. */
function awaitedAfter(byte: number, awaited: number): number {
  const isContinuation = byte >= 0x80 && byte < 0xc0;
  if (isContinuation !== awaited > 0) return -1;
  if (isContinuation) return awaited - 1;
  if (byte < 0x80) return 0;
  if (byte < 0xc2 || byte > 0xf4) return -1;
  return byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
}

function bytesOfHex(run: string): Uint8Array {
  return Buffer.from(run, 'hex');
}

/** Decodes base64 or base64url, padded or not. A single surplus character is ignored. */
function bytesOfBase64(run: string): Uint8Array {
  return Buffer.from(run, 'base64');
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const WIDE = {
  'utf-16le': new TextDecoder('utf-16le', { fatal: true }),
  'utf-16be': new TextDecoder('utf-16be', { fatal: true }),
} as const;
type Wide = keyof typeof WIDE;

const MIN_NUL_RATIO = 1 / 3;

/** Detects UTF-16 by its byte order mark, or by the NUL in every other byte of ASCII letters. */
function wideBy(probe: Uint8Array): Wide | undefined {
  const [first, second] = probe;
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  const nuls = [0, 0];
  for (const [at, byte] of probe.entries()) if (byte === 0) nuls[at & 1] = (nuls[at & 1] ?? 0) + 1;
  const [even = 0, odd = 0] = nuls;
  const least = (probe.length / 2) * MIN_NUL_RATIO;
  if (even === 0 && odd >= least) return 'utf-16le';
  return odd === 0 && even >= least ? 'utf-16be' : undefined;
}

function readWide(bytes: Uint8Array, wide: Wide): string | undefined {
  try {
    return ifPrintable(WIDE[wide].decode(bytes.subarray(0, bytes.length & ~1)));
  } catch {
    return undefined;
  }
}

/** Decodes UTF-8, or Latin-1 that is mostly ASCII. */
function readNarrow(bytes: Uint8Array): string | undefined {
  try {
    return ifPrintable(utf8.decode(bytes));
  } catch {
    return readLatin1(bytes);
  }
}

const MIN_ASCII_RATIO = 0.8;

/** Random bytes have a far lower share of ASCII than text in Latin letters. */
function isMostlyAscii(bytes: Uint8Array): boolean {
  let ascii = 0;
  for (const byte of bytes) {
    if ((byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d)) ascii++;
  }
  return ascii >= bytes.length * MIN_ASCII_RATIO;
}

function readLatin1(bytes: Uint8Array): string | undefined {
  if (!isMostlyAscii(bytes)) return undefined;
  return ifPrintable(Buffer.from(bytes).toString('latin1'));
}

function ifPrintable(text: string): string | undefined {
  let printable = 0;
  // By code unit: iterating over characters takes many times as long. A pair of surrogates counts once.
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isLater = code >= 0xdc00 && code <= 0xdfff;
    if ((code >= 0x20 && code !== 0x7f && !isLater) || code === 0x09 || code === 0x0a || code === 0x0d) printable++;
  }
  return printable >= text.length * MIN_PRINTABLE_RATIO ? text : undefined;
}
