// Parses large JSON text incrementally: divides it into parts of bounded work and builds the value one part
// at a time, so that the event loop can do other work in between. The text must be valid JSON that scanJson
// has accepted.

import type { Json, JsonObject } from '../jsonrpc.js';
import { type JsonReading, type ParsedJson, skipString } from './json.js';

/** Bounds of one part; a single string or number may exceed them. */
type PartBounds = { readonly maxValues: number; readonly maxChars: number };

/** `value`: one value. `run`: consecutive elements, or members, of the surrounding container, with their commas. */
export type JsonPart =
  | { readonly kind: 'value' | 'run'; readonly start: number; readonly end: number }
  | { readonly kind: 'array' | 'object'; readonly parts: readonly NamedPart[] };

/** `name` is set if the part is the value of an object member. */
type NamedPart = { readonly name?: string; readonly part: JsonPart };

const PART_BOUNDS: PartBounds = { maxValues: 5_000, maxChars: 512 * 1024 };

type Frame = {
  readonly isObject: boolean;
  readonly start: number;
  readonly firstValue: number;
  readonly parts: NamedPart[];
  /** Start of the elements that belong to no part yet. */
  runStart: number;
  runFirstValue: number;
  /** Start of the current element, and the part it was divided into if it was too large for one part. */
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

/** Divides the text in one pass, without recursion. */
export function divideJson(text: string, bounds: PartBounds = PART_BOUNDS): JsonPart {
  const division: Division = { text, bounds, frames: [], values: 0, root: undefined };
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
      continue;
    }
    if (code === 0x7b || code === 0x5b) open(division, code === 0x7b, at);
    else if (code === 0x7d || code === 0x5d) close(division, at);
    else if (code === COMMA) endElement(division, at);
    at++;
  }
  return division.root ?? { kind: 'value', start: 0, end: text.length };
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
  const isSmall = values - frame.firstValue <= bounds.maxValues && at - frame.start <= bounds.maxChars;
  if (isSmall && frame.parts.every(({ part }) => part.kind === 'run')) return;
  endRun(division, frame, at);
  const part: JsonPart = { kind: frame.isObject ? 'object' : 'array', parts: frame.parts };
  const around = frames.at(-1);
  if (around === undefined) division.root = part;
  else around.divided = part;
}

/** Ends the current element, at a comma or at the end of its container. */
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
  } else if (division.values - frame.runFirstValue >= bounds.maxValues || at - frame.runStart >= bounds.maxChars) {
    endRun(division, frame, at);
    startRun(division, frame, at + 1);
  }
  frame.elementStart = at + 1;
}

function startRun(division: Division, frame: Frame, at: number): void {
  frame.runStart = at;
  frame.runFirstValue = division.values;
}

/** Turns the elements that belong to no part yet into a part, without the trailing comma. */
function endRun({ text }: Division, frame: Frame, end: number): void {
  const { runStart: start } = frame;
  let last = end;
  while (last > start && text.charCodeAt(last - 1) <= 0x20) last--;
  if (last > start && text.charCodeAt(last - 1) === COMMA) last--;
  if (text.slice(start, last).trim() !== '') frame.parts.push({ part: { kind: 'run', start, end: last } });
}

function nameAt(text: string, from: number): string {
  const start = text.indexOf('"', from);
  const name: string = JSON.parse(text.slice(start, skipString(text, start)));
  return name;
}

/** Builds the value of the text; yields between parts, so that the caller can do other work. */
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

/** `overloaded`: too many messages are already waiting to be read. `internal`: the reader failed. */
export type ReadError = Extract<JsonReading, { readonly ok: false }>['error'] | 'overloaded' | 'internal';

export type ReadOutcome = ParsedJson | { readonly ok: false; readonly error: ReadError; readonly rest?: string };

export type ReadOptions = {
  /** The upstream whose turn on the event loop the read waits for. */
  readonly upstream: string;
  /** Identifies the caller on whose behalf it is read; callers of an upstream take turns too. */
  readonly caller?: string | undefined;
  readonly maxValues: number;
  /** A list of a server: items that cannot be read are left out, and only the text of the reading is without them. */
  readonly isServerList?: boolean | undefined;
};

/**
 * Reads UTF-8 bytes, or text decoded from them, as one JSON value under the usual caps: at once, or, if the
 * message is large, in parts that let other work run in between. Never rejects.
 */
export type ReadJson = (source: Uint8Array | string, options: ReadOptions) => ReadOutcome | Promise<ReadOutcome>;

/** Shares the event loop between upstreams: work reports the time that it took, and asks before it continues. */
export type LoopScheduler = {
  /** Records that the loop was used since `sinceMs` (of performance.now()); returns the current time. */
  recordTime(sinceMs: number): number;
  /** Undefined if the work may continue at once; otherwise a promise that resolves when it is the upstream's turn. */
  waitForTurn(upstream: string): Promise<void> | undefined;
  /**
   * Bytes of a long-lived stream: undefined if they may be handled at once, otherwise a promise that resolves when
   * the rate of their upstream allows them, or soon after `isClosed` holds.
   */
  pace(upstream: string, bytes: number, isClosed: () => boolean): Promise<void> | undefined;
};

/** Whose turns on the event loop work takes. */
export type Turns = { readonly upstream: string; readonly loopScheduler: LoopScheduler };

/** Does work when it is its turn on the event loop, at once if the loop is free, and records the time it took. */
export function takeTurn<T>({ upstream, loopScheduler }: Turns, work: () => T): T | Promise<Awaited<T>> {
  const turn = loopScheduler.waitForTurn(upstream);
  if (turn !== undefined) return turn.then(() => workOnLoop(loopScheduler, work) as Awaited<T>);
  return workOnLoop(loopScheduler, work);
}

function workOnLoop<T>(loopScheduler: LoopScheduler, work: () => T): T {
  const startedMs = performance.now();
  try {
    return work();
  } finally {
    // Work that throws took its time, too.
    loopScheduler.recordTime(startedMs);
  }
}

/** Takes all steps of a generator at once; returns what it returns. */
export function finishAtOnce<Result>(steps: Generator<unknown, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Takes a turn for each step of a generator; resolves with what it returns. */
export async function finishInTurns<Result>(turns: Turns, steps: Generator<unknown, Result>): Promise<Result> {
  for (;;) {
    const taken = takeTurn(turns, () => steps.next());
    const step = taken instanceof Promise ? await taken : taken;
    if (step.done === true) return step.value;
  }
}

/** Takes a turn for each step. One that returns `stop` is the last. */
export async function runInTurns<T>(turns: Turns, all: Iterable<T>, step: (one: T) => unknown): Promise<void> {
  for (const one of all) {
    const taken = takeTurn(turns, () => step(one));
    const outcome = taken instanceof Promise ? await taken : taken;
    if (outcome === 'stop') return;
  }
}
