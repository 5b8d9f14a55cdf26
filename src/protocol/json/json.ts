// Reads bytes as JSON that every parser interprets alike, and locates and edits values in the same text by
// spans. Never re-serializes what was received: everything that is not edited is forwarded byte for byte.
// Source: RFC 8259; RFC 7493 (I-JSON) §2.1 to §2.3; JSON-RPC 2.0 §4 and §5.

import type { Span } from '../../text/span.js';
import type { TextEdit } from '../admitted-request.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../jsonrpc.js';
import { type Bytes, isInPieces, type Pieces } from '../transport.js';
import { isInexact } from './number-literals.js';
import { exactIdOf, renderJson } from './request-ids.js';
import { type JsonCaps, type JsonError, type Scanned, scanJson } from './strict-scan.js';

/**
 * Maximum nesting of objects and arrays, where a caller sets no cap of its own. A schema of 120 objects, one inside the
 * other, has fewer levels; walks that recurse stay far from the end of the stack.
 */
export const MAX_JSON_DEPTH = 259;

/** For text whose values were already counted when it was received. */
const COUNTED: JsonCaps = { maxDepth: MAX_JSON_DEPTH, maxValues: Number.POSITIVE_INFINITY };

/** A member of an object: its decoded name, the offset of the name's opening quote, and the span of its value. */
export type Member = { readonly name: string; readonly start: number; readonly value: Span };

/** Text that is valid JSON, and its value. */
export type ParsedJson = {
  readonly ok: true;
  readonly text: string;
  readonly value: Json;
  /** False proves that no number literal loses precision as a double. */
  readonly suspectNumbers: boolean;
  /** Number of values in the text, including the root. */
  readonly values: number;
  /** Whether something was left out of the text, so that it is not the one that arrived. */
  readonly isReduced?: true;
};

export type JsonReading =
  | ParsedJson
  /** `rest`: the text without the items that were left out, if that is what the error is about. */
  | { readonly ok: false; readonly error: JsonError; readonly rest?: string };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Decodes UTF-8 bytes; `undefined` if they are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Reads UTF-8 bytes as one JSON value. Refuses invalid UTF-8, a byte order mark, escaped lone surrogates
 * (`lone-surrogate`), nesting and values past their caps, and in any object two names that are equal after simple
 * case folding, a name with NUL (both `duplicate-key`), and `__proto__` (`prototype-member`). Linear; does not recurse.
 * Source: RFC 8259 §8.1; RFC 7493 §2.1, §2.3.
 */
export function readJson(bytes: Uint8Array, caps: JsonCaps = COUNTED): JsonReading {
  const text = decodeUtf8(bytes);
  return text === undefined ? { ok: false, error: 'malformed-json' } : readText(text, caps, bytes);
}

/** Like {@link readJson}, for text already decoded from valid UTF-8 (such as an SSE event). */
export function readJsonText(text: string, caps: JsonCaps = COUNTED): JsonReading {
  return readText(text, caps);
}

function readText(text: string, caps: JsonCaps, bytes?: Uint8Array): JsonReading {
  const scanned = scanJson(text, caps);
  return scanned.error === undefined ? parseScanned(text, scanned, bytes) : { ok: false, error: scanned.error };
}

/** Parses text in which a scan found no error. `source`: what it was decoded from, if that is at hand. */
export function parseScanned(text: string, scanned: Scanned, source: Uint8Array | string = text): JsonReading {
  const { suspectNumbers, values } = scanned;
  try {
    const value = parseAroundLongest(text, scanned, source) ?? (JSON.parse(text) as Json);
    if (suspectNumbers) keepExactIds(text, value);
    return { ok: true, text, value, suspectNumbers, values };
  } catch {
    return { ok: false, error: 'malformed-json' };
  }
}

/** Parses text that was read before as a message, with its ids exact. */
export function parseMessage(text: string): Json {
  const value: Json = JSON.parse(text);
  keepExactIds(text, value);
  return value;
}

/** Where a message holds ids that its sender chose. */
const ID_PLACES: readonly (readonly string[])[] = [
  ['id'],
  ['params', 'requestId'],
  ['params', 'progressToken'],
  ['params', '_meta', 'progressToken'],
  ['params', '_meta', 'io.modelcontextprotocol/subscriptionId'],
  ['result', '_meta', 'io.modelcontextprotocol/subscriptionId'],
];

/**
 * Puts the exact ids into the value of a text, which must be freshly parsed. Call it for text with suspect numbers; a
 * text of another kind is left as it is.
 */
export function keepExactIds(text: string, value: Json): void {
  if (Array.isArray(value) || !isObject(value)) return;
  for (const path of ID_PLACES) keepExactId(text, value, path);
}

function keepExactId(text: string, message: JsonObject, path: readonly string[]): void {
  let holder: Json | undefined = message;
  for (const name of path.slice(0, -1)) holder = isObject(holder) ? holder[name] : undefined;
  const name = path.at(-1) ?? '';
  if (!isObject(holder) || typeof holder[name] !== 'number') return;
  if (path.length === 1 && isPlainlyWritten(text, holder[name])) return;
  const span = spanOf(text, path);
  if (span === undefined) return;
  const id = exactIdOf(text.slice(span.start, span.end));
  if (id !== holder[name]) (holder as { [member: string]: Json })[name] = id;
}

/** How a message writes its id, which is a number: `1` and `1.0` are one number. */
export function idLiteralOf(text: string, id: RequestId): string {
  if (typeof id === 'number' && isPlainlyWritten(text, id)) return String(id);
  const span = spanOf(text, ['id']);
  return span === undefined ? '' : text.slice(span.start, span.end);
}

/** Spares a long message the search: the two places where nearly every sender has the id, written as a safe integer. */
function isPlainlyWritten(text: string, id: number): boolean {
  return Number.isSafeInteger(id) && (text.startsWith(`{"jsonrpc":"2.0","id":${id},`) || text.endsWith(`,"id":${id}}`));
}

/** With more values, finding the string again costs more than was saved. */
const MAX_VALUES_SEARCHED = 1_000;
/** Stands for the string while the rest is parsed. JSON has it as an escape alone. */
const PLACEHOLDER = '\u0001';
const PLACEHOLDER_ESCAPE = '\\u0001';

/**
 * Parses text of which one string without escapes is at least half: the string becomes a slice of the text, and only
 * the rest is read and copied by the parser. Undefined where that is not possible. The result, or the error, is that of
 * JSON.parse: up to the string both read the same, and its content is valid without quote, backslash and control
 * characters.
 */
function parseAroundLongest(text: string, { longest, values }: Scanned, source: Uint8Array | string): Json | undefined {
  // In ASCII, positions of text and bytes are the same.
  if (longest === undefined || typeof source === 'string' || source.length !== text.length) return undefined;
  const { start, end } = longest;
  if (2 * (end - start) < text.length || values > MAX_VALUES_SEARCHED) return undefined;
  const [before, after] = [text.slice(0, start), text.slice(end)];
  const mayHoldPlaceholder = before.includes('\\u') || after.includes('\\u');
  if (mayHoldPlaceholder || hasControlCharacter(source, longest)) return undefined;
  const parsed: { root: Json } = { root: JSON.parse(before + PLACEHOLDER_ESCAPE + after) };
  return putBack(parsed, text.slice(start, end)) ? parsed.root : undefined;
}

/**
 * Whether ASCII bytes have one below 0x20: subtracting 0x20 borrows into the highest bit. Sixteen bytes a step, which is
 * three times as fast as the parser.
 */
function hasControlCharacter(bytes: Uint8Array, { start, end }: Span): boolean {
  const first = start + (-(bytes.byteOffset + start) & 3);
  const steps = (end - first) >> 4;
  const quads = new Int32Array(bytes.buffer, bytes.byteOffset + first, 4 * steps);
  const last = first + 16 * steps;
  let borrows = 0;
  for (let at = 0; at < 4 * steps; at += 4)
    borrows |=
      ((quads[at] as number) - 0x20202020) |
      ((quads[at + 1] as number) - 0x20202020) |
      ((quads[at + 2] as number) - 0x20202020) |
      ((quads[at + 3] as number) - 0x20202020);
  for (let at = start; at < first; at++) borrows |= (bytes[at] ?? 0) - 0x20;
  for (let at = last; at < end; at++) borrows |= (bytes[at] ?? 0) - 0x20;
  return (borrows & 0x80808080) !== 0;
}

/** Replaces the placeholder, which occurs once; true if it was found. */
function putBack(holder: { [name: string]: Json }, content: string): boolean {
  for (const name of Object.keys(holder)) {
    const member = holder[name];
    if (member === PLACEHOLDER) {
      holder[name] = content;
      return true;
    }
    if (typeof member === 'object' && member !== null && putBack(member as typeof holder, content)) return true;
  }
  return false;
}

const SURROGATE_PAIR = 'u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}';
const SURROGATE_HALF = 'u[dD][89a-fA-F][0-9a-fA-F]{2}';
/** Every escape in turn, so that an escaped backslash begins none. */
const ESCAPES = new RegExp(`\\\\(?:${SURROGATE_PAIR}|(${SURROGATE_HALF})|[^])`, 'g');

/** JSON text in which no surrogate is alone, and where the replaced ones stood. */
type MendedText = { readonly text: string; readonly positions: readonly number[] };

/**
 * Replaces each escape of a lone surrogate by that of U+FFFD, for text that was refused as `lone-surrogate`. Both are
 * six characters long, so every span of the text stays what it was. The result must be read again.
 * Source: Unicode 15.1 §3.9 (U+FFFD substitution); RFC 8259 §8.2.
 */
export function replaceLoneSurrogates(text: string): MendedText {
  const positions: number[] = [];
  const mended = text.replace(ESCAPES, (written, half: string | undefined, at: number) => {
    if (half === undefined) return written;
    positions.push(at);
    return '\\ufffd';
  });
  return { text: mended, positions };
}

/** The names of members, and the indices of elements, from the root to a value. */
export type Path = readonly (string | number)[];

/** The span of the value at `path` in JSON text, the first where there are several; `undefined` if there is none. Linear. */
export function spanOf(text: string, path: Path): Span | undefined {
  const start = skipBlank(text, 0);
  return path.length === 0 ? valueAt(text, start) : spanWithin(text, { start, end: text.length }, path);
}

/** The value at a path below the one at `within`, as {@link spanOf} finds it in the whole text. */
export function spanWithin(text: string, within: Span | undefined, path: Path): Span | undefined {
  let span = within;
  for (const step of path) {
    if (span === undefined) return undefined;
    span =
      typeof step === 'number'
        ? elementSpans(text, span)[step]
        : memberSpans(text, span, step).find(({ name }) => name === step)?.value;
  }
  return span;
}

/**
 * Edits that remove the members of the object at `object` for which `isRemoved` returns true. They are
 * ascending and do not overlap, whichever members are removed.
 */
export function removalEdits(text: string, object: Span, isRemoved: (name: string) => boolean): readonly TextEdit[] {
  const members = memberSpans(text, object);
  return removalsOf(members, (at) => isRemoved(members[at]?.name ?? ''));
}

/**
 * Like {@link removalEdits}, for the members or elements of the container at `holder`, which are told apart by where
 * they begin (a member with its name) and by their index.
 */
export function removalsAt(
  text: string,
  holder: Span,
  isRemoved: (start: number, index: number) => boolean,
): readonly TextEdit[] {
  const items = text[holder.start] === '{' ? memberSpans(text, holder) : elementSpans(text, holder);
  return removalsOf(items, (at) => isRemoved(items[at]?.start ?? -1, at));
}

/** The edits that remove items, which are told apart by their index, with the commas that would be left over. */
export function removalsOf(items: readonly (Member | Span)[], isRemoved: (at: number) => boolean): readonly TextEdit[] {
  const edits: TextEdit[] = [];
  let keptEnd: number | undefined;
  let runStart: number | undefined;
  let runEnd = 0;
  for (const [at, item] of items.entries()) {
    const end = 'value' in item ? item.value.end : item.end;
    if (isRemoved(at)) {
      runStart ??= keptEnd ?? item.start;
      runEnd = end;
      continue;
    }
    if (runStart !== undefined) {
      // Removed items at the start take the comma after them, all others the comma before them.
      edits.push({ start: runStart, end: keptEnd === undefined ? item.start : runEnd, text: '' });
      runStart = undefined;
    }
    keptEnd = end;
  }
  if (runStart !== undefined) edits.push({ start: runStart, end: runEnd, text: '' });
  return edits;
}

/**
 * The members of the object at `span` of JSON text, in order, or those up to one called `last`; empty if the value is not
 * an object. In text that is not valid they are found by brackets, strings and commas, up to where one is missing.
 */
export function memberSpans(text: string, span: Span, last?: string): readonly Member[] {
  const members: Member[] = [];
  if (text[span.start] !== '{') return members;
  let at = skipBlank(text, span.start + 1);
  while (at < span.end && text[at] === '"') {
    const nameEnd = skipString(text, at);
    const raw = text.slice(at + 1, nameEnd - 1);
    const name = raw.includes('\\') ? decodeName(raw) : raw;
    const value = valueAt(text, skipBlank(text, skipBlank(text, nameEnd) + 1));
    members.push({ name, start: at, value });
    if (name === last) break;
    at = skipBlank(text, skipBlank(text, value.end) + 1);
  }
  return members;
}

/** A name as it is written if its escapes are not valid. */
function decodeName(raw: string): string {
  try {
    const name: string = JSON.parse(`"${raw}"`);
    return name;
  } catch {
    return raw;
  }
}

/** The elements of the array at `span`, as {@link memberSpans} finds members; empty if the value is not an array. */
export function elementSpans(text: string, span: Span): readonly Span[] {
  const elements: Span[] = [];
  if (text[span.start] !== '[') return elements;
  let at = skipBlank(text, span.start + 1);
  while (at < span.end && text[at] !== ']') {
    const value = valueAt(text, at);
    elements.push(value);
    at = skipBlank(text, value.end);
    if (text[at] !== ',') break;
    at = skipBlank(text, at + 1);
  }
  return elements;
}

/** Applies edits, which must be ascending and must not overlap. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  if (edits.length === 0) return text;
  let edited = '';
  let at = 0;
  for (const edit of edits) {
    edited += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return edited + text.slice(at);
}

/** The string that an edit of this text puts at `path`; `undefined` if the value there is not edited. */
export function editedValueAt(
  { text, edits }: { readonly text: string; readonly edits: readonly TextEdit[] },
  path: Path,
): string | undefined {
  const span = spanOf(text, path);
  const edit = edits.find(({ start }) => start === span?.start);
  return edit === undefined ? undefined : String(JSON.parse(edit.text));
}

/**
 * True if a number literal within the span of valid JSON text has another decimal value after a round trip
 * through a double: 9007199254740993 and 1e400 do; 0.1, 1.0 and 1e2 do not.
 * Source: RFC 7493 §2.2.
 */
export function hasInexactNumber(text: string, span: Span): boolean {
  let at = span.start;
  while (at < span.end) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      at = skipString(text, at);
    } else if (code === 0x2d || (code >= 0x30 && code <= 0x39)) {
      const end = skipScalar(text, at);
      if (isInexact(text.slice(at, end))) return true;
      at = end;
    } else {
      at++;
    }
  }
  return false;
}

function valueAt(text: string, start: number): Span {
  const first = text[start];
  if (first === '"') return { start, end: skipString(text, start) };
  if (first === '{' || first === '[') return { start, end: skipContainer(text, start) };
  return { start, end: skipScalar(text, start) };
}

export function skipBlank(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at++;
  return at;
}

/** The position after the string that opens at `from`. Looks at each backslash once. */
export function skipString(text: string, from: number): number {
  let at = from + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (quote - slashes > at && text.charCodeAt(quote - slashes - 1) === 0x5c) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function skipContainer(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 0x22) {
      at = skipString(text, at);
      continue;
    }
    at++;
    if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) depth--;
    if (depth === 0) return at;
  }
  return at;
}

export function skipScalar(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code <= 0x20 || code === 0x2c || code === 0x5d || code === 0x7d) return at;
  }
  return at;
}

/** Sets one member of the object at `path`; returns the text unchanged if there is no object at the path. */
export function setMember(text: string, path: Path, name: string, value: Json): string {
  const object = spanOf(text, path);
  if (object === undefined || text[object.start] !== '{') return text;
  const members = memberSpans(text, object);
  const json = renderJson(value);
  const known = members.find((member) => member.name === name);
  if (known !== undefined) return applyEdits(text, [{ ...known.value, text: json }]);
  const member = `${JSON.stringify(name)}:${json}${members.length === 0 ? '' : ','}`;
  return applyEdits(text, [{ start: object.start + 1, end: object.start + 1, text: member }]);
}

/** Removes one member of the object at `path`. */
export function removeMember(text: string, path: Path, name: string): string {
  return changeMembers(text, { path, cut: new Set([name]) });
}

/** The JSON text with the value at `path` replaced by this JSON; `undefined` if there is no value at the path. */
export function replaceAt(text: string, path: Path, json: string): string | undefined {
  const span = spanOf(text, path);
  return span && applyEdits(text, [{ ...span, text: json }]);
}

/**
 * Marks a result that depends on the caller as private to shared caches, and caps its freshness at `maxTtlMs`
 * (docs/reference/responses.md; MCP 2026-07-28, caching). A missing `ttlMs` means 0 and stays missing; one that is no
 * number of milliseconds, which SDK clients reject, becomes 0.
 */
export function setPrivate(text: string, result: JsonObject, maxTtlMs: number): string {
  const scoped = result['cacheScope'] === 'private' ? text : setMember(text, ['result'], 'cacheScope', 'private');
  const ttlMs = result['ttlMs'];
  if (ttlMs === undefined) return scoped;
  const isTime = typeof ttlMs === 'number' && ttlMs >= 0;
  const keptMs = isTime ? Math.min(Math.floor(ttlMs), maxTtlMs) : 0;
  return keptMs === ttlMs ? scoped : setMember(scoped, ['result'], 'ttlMs', keptMs);
}

/**
 * The bytes of a message before and after its id, so that the same message under another id can be recognized
 * and written without being parsed again.
 */
export type SplitMessage = { readonly head: Uint8Array; readonly tail: Uint8Array };

/** Compares two byte ranges; the composition root supplies the fastest implementation it has. */
export type IsEqual = (one: Uint8Array, other: Uint8Array) => boolean;

const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array(0);

/** Splits a message at its id; undefined if the id is not spelled as renderJson would spell it. */
export function splitAtId(text: string, id: RequestId): SplitMessage | undefined {
  const span = spanOf(text, ['id']);
  if (span === undefined || text.slice(span.start, span.end) !== renderJson(id)) return undefined;
  return {
    head: encoder.encode(text.slice(0, span.start)),
    tail: encoder.encode(text.slice(span.end)),
  };
}

/** True if `bytes` are exactly this message with this id. */
export function matchesMessage(halves: SplitMessage, bytes: Bytes, id: RequestId, isEqual: IsEqual): boolean {
  return isInPieces(bytes) ? matchesPieces(halves, bytes, id, isEqual) : matchesBytes(halves, bytes, id, isEqual);
}

/** Pieces that are cut at other positions are not recognized. */
function matchesPieces(halves: SplitMessage, pieces: Pieces, id: RequestId, isEqual: IsEqual): boolean {
  const own = piecesAtId(halves, id);
  return pieces.length === own.length && own.every((piece, index) => isEqual(piece, pieces[index] ?? NO_BYTES));
}

function matchesBytes({ head, tail }: SplitMessage, bytes: Uint8Array, id: RequestId, isEqual: IsEqual): boolean {
  const idBytes = encoder.encode(renderJson(id));
  const idEnd = head.length + idBytes.length;
  return (
    bytes.length === idEnd + tail.length &&
    isEqual(bytes.subarray(0, head.length), head) &&
    isEqual(bytes.subarray(head.length, idEnd), idBytes) &&
    isEqual(bytes.subarray(idEnd), tail)
  );
}

/** The message with this id: the stored bytes and the encoded id as pieces, without copying. */
export function piecesAtId({ head, tail }: SplitMessage, id: RequestId): Pieces {
  return [head, encoder.encode(renderJson(id)), tail];
}

const NOTHING: JsonObject = {};

/** Changes of one object: members to remove, and members to set to new values. */
type MemberChange = {
  readonly path: Path;
  readonly cut?: ReadonlySet<string>;
  readonly set?: JsonObject;
};

/** The edits of one object in valid JSON text; empty if there is no object at the path. */
export function memberEdits(text: string, { path, cut, set = NOTHING }: MemberChange): readonly TextEdit[] {
  const object = spanOf(text, path);
  if (object === undefined || text[object.start] !== '{') return [];
  const goes = (name: string): boolean => cut?.has(name) === true || Object.hasOwn(set, name);
  const removals = removalEdits(text, object, goes);
  const added = Object.entries(set).map(([name, value]) => `${JSON.stringify(name)}:${renderJson(value)}`);
  if (added.length === 0) return removals;
  const isEmpty = memberSpans(text, object).every((member) => goes(member.name));
  const at = object.start + 1;
  return [{ start: at, end: at, text: `${added.join(',')}${isEmpty ? '' : ','}` }, ...removals];
}

/** Like {@link memberEdits}, with the edits applied. */
export function changeMembers(text: string, change: MemberChange): string {
  return applyEdits(text, memberEdits(text, change));
}
