// Divides large JSON text into parts of bounded work, and builds its value from them one part at a time, so
// that whoever builds it can do something else in between. The text must be valid JSON that was scanned.

import type { Json, JsonObject } from '../jsonrpc.js';
import type { JsonReading } from './json.js';

/** What one part may hold at most; a single string or number may be longer. */
type PartBounds = { readonly maxValues: number; readonly maxChars: number };

/** `value`: one value. `run`: elements, or members, of the container around it, with their commas. */
export type JsonPart =
  | { readonly kind: 'value' | 'run'; readonly start: number; readonly end: number }
  | { readonly kind: 'array' | 'object'; readonly parts: readonly NamedPart[] };

/** `name` where the part is one member of an object. */
type NamedPart = { readonly name?: string; readonly part: JsonPart };

const PART_BOUNDS: PartBounds = { maxValues: 5_000, maxChars: 512 * 1024 };

type Frame = {
  readonly isObject: boolean;
  readonly start: number;
  readonly firstValue: number;
  readonly parts: NamedPart[];
  /** Where the elements begin that are in no part yet. */
  runStart: number;
  runFirstValue: number;
  /** The element that is being read: where it begins, and what it became if it was too large for a part. */
  elementStart: number;
  divided: JsonPart | undefined;
};

type Division = {
  readonly text: string;
  readonly bounds: PartBounds;
  readonly frames: Frame[];
  values: number;
  root: JsonPart | undefined;
};

const QUOTE = 0x22;
const COMMA = 0x2c;

/** Divides the text. One pass, never recursive. */
export function divideJson(text: string, bounds: PartBounds = PART_BOUNDS): JsonPart {
  const division: Division = { text, bounds, frames: [], values: 0, root: undefined };
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
      continue;
    }
    if (code === 0x7b || code === 0x5b) open(division, code === 0x7b, at);
    else if (code === 0x7d || code === 0x5d) close(division, at);
    else if (code === COMMA) endElement(division, at);
    at++;
  }
  return division.root ?? { kind: 'value', start: 0, end: text.length };
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (quote - slashes > at && text.charCodeAt(quote - slashes - 1) === 0x5c) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

function open(division: Division, isObject: boolean, at: number): void {
  const { frames, values } = division;
  division.values++;
  frames.push({
    isObject,
    start: at,
    firstValue: values,
    parts: [],
    runStart: at + 1,
    runFirstValue: values + 1,
    elementStart: at + 1,
    divided: undefined,
  });
}

function close(division: Division, at: number): void {
  const { frames, bounds, values } = division;
  endElement(division, at);
  const frame = frames.pop();
  if (frame === undefined) return;
  const isSmall =
    values - frame.firstValue <= bounds.maxValues && at - frame.start <= bounds.maxChars;
  if (isSmall && frame.parts.every(({ part }) => part.kind === 'run')) return;
  endRun(division, frame, at);
  const part: JsonPart = { kind: frame.isObject ? 'object' : 'array', parts: frame.parts };
  const around = frames.at(-1);
  if (around === undefined) division.root = part;
  else around.divided = part;
}

/** A comma, or the end of the container, ends an element. */
function endElement(division: Division, at: number): void {
  const { frames, bounds, text } = division;
  const frame = frames.at(-1);
  if (frame === undefined) return;
  division.values++;
  if (frame.divided !== undefined) {
    endRun(division, frame, frame.elementStart);
    frame.parts.push({
      ...(frame.isObject ? { name: nameAt(text, frame.elementStart) } : {}),
      part: frame.divided,
    });
    frame.divided = undefined;
    startRun(division, frame, at + 1);
  } else if (
    division.values - frame.runFirstValue >= bounds.maxValues ||
    at - frame.runStart >= bounds.maxChars
  ) {
    endRun(division, frame, at);
    startRun(division, frame, at + 1);
  }
  frame.elementStart = at + 1;
}

function startRun(division: Division, frame: Frame, at: number): void {
  frame.runStart = at;
  frame.runFirstValue = division.values;
}

/** What is in no part yet becomes one, without the comma behind it. */
function endRun({ text }: Division, frame: Frame, end: number): void {
  const { runStart: start } = frame;
  let last = end;
  while (last > start && text.charCodeAt(last - 1) <= 0x20) last--;
  if (last > start && text.charCodeAt(last - 1) === COMMA) last--;
  if (text.slice(start, last).trim() !== '')
    frame.parts.push({ part: { kind: 'run', start, end: last } });
}

function nameAt(text: string, from: number): string {
  const start = text.indexOf('"', from);
  const name: string = JSON.parse(text.slice(start, endOfString(text, start)));
  return name;
}

/** Builds the value of the text; between two steps of the generator something else can be done. */
export function* buildJson(text: string, part: JsonPart): Generator<void, Json, void> {
  switch (part.kind) {
    case 'value':
    case 'run':
      return JSON.parse(text.slice(part.start, part.end)) as Json;
    case 'array':
      return yield* buildArray(text, part.parts);
    case 'object':
      return yield* buildObject(text, part.parts);
  }
}

function* buildArray(text: string, parts: readonly NamedPart[]): Generator<void, Json, void> {
  const built: Json[] = [];
  for (const { part } of parts) {
    if (part.kind === 'run') {
      const run: Json[] = JSON.parse(`[${text.slice(part.start, part.end)}]`);
      for (const one of run) built.push(one);
    } else built.push(yield* buildJson(text, part));
    yield;
  }
  return built;
}

function* buildObject(text: string, parts: readonly NamedPart[]): Generator<void, Json, void> {
  const built: { [name: string]: Json } = {};
  for (const { name, part } of parts) {
    if (part.kind === 'run') {
      const run: JsonObject = JSON.parse(`{${text.slice(part.start, part.end)}}`);
      Object.assign(built, run);
    } else if (name !== undefined) built[name] = yield* buildJson(text, part);
    yield;
  }
  return built;
}

// How a message of the other side becomes a value: at once, or, where it is large, by work that is done
// elsewhere and in parts, so that nobody else waits for it.

/** `overloaded`: too much waits to be read already. `internal`: whoever read it failed. */
export type ReadError =
  | Extract<JsonReading, { readonly ok: false }>['error']
  | 'overloaded'
  | 'internal';

export type ReadOutcome =
  | Extract<JsonReading, { readonly ok: true }>
  | { readonly ok: false; readonly error: ReadError };

export type ReadTerms = {
  /** In whose turn it waits. */
  readonly upstream: string;
  readonly maxValues: number;
};

/** Reads UTF-8 bytes, or text decoded from them, as one JSON value under the usual caps. Never rejects. */
export type ReadJson = (
  source: Uint8Array | string,
  terms: ReadTerms,
) => ReadOutcome | Promise<ReadOutcome>;

// How long work shares the event loop. Whoever does it says how much time it took, and asks before it goes on.

export type LoopScheduler = {
  /** Notes that the loop was used since `sinceMs` (of performance.now()); returns the time it is now. */
  spend(sinceMs: number): number;
  /** Nothing where the work may go on at once; otherwise what resolves when it is the upstream's turn. */
  take(upstream: string): Promise<void> | undefined;
};
