// Event streams: splits bytes into events exactly as a browser would, except that invalid UTF-8 and events above the
// cap are errors; writes events as bytes; and reads the stream of an upstream, in order and no faster than its events
// are taken. That reader is the only loop over the bytes of such streams: it bounds their bytes, their memory and their
// time on the event loop. However a stream ends, its source is released or closed, and the end is a value. Nothing here
// reads JSON.
// Source: WHATWG HTML §9.2.5 and §9.2.6 (server-sent events: parsing, interpreting); MCP transports.

import { mediaType } from './headers.js';
import type { LoopScheduler } from './json/incremental.js';
import type { ForwardError, UpstreamResponse } from './transport.js';

/** One item of a stream. A message has an `id` if its block had a valid id field. */
export type SseEvent =
  | {
      readonly kind: 'message';
      /** `message` if the block names no event. */
      readonly event: string;
      readonly data: string;
      readonly id?: string;
    }
  /** A line that began with a colon, without the colon. */
  | { readonly kind: 'comment'; readonly text: string }
  | { readonly kind: 'retry'; readonly ms: number };

type SseError = { readonly error: 'too-large' | 'invalid-utf8' };

/** Keeps unfinished input between chunks. After an error every further push returns the same error. */
type SseFramer = {
  push(chunk: Uint8Array): readonly SseEvent[] | SseError;
  /** Buffered bytes that are no complete event yet. */
  unfinishedBytes(): number;
};

const LF = 10;
const CR = 13;
const FIRST_LINE_CAPACITY = 1024;
/** A larger line buffer is released once its line was read, so that idle streams use little memory. */
const MAX_IDLE_CAPACITY = 65_536;
const DIGITS = /^[0-9]+$/;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

type State = {
  /** Bytes of the data lines of one event, and of the line that is being read. */
  readonly maxEventBytes: number;
  isFirstLine: boolean;
  /** The last byte was a CR: an LF that follows belongs to the same line break. */
  isAfterCr: boolean;
  /** The unfinished line. The buffer doubles, so each byte is copied once or twice, however many chunks there are. */
  pending: Uint8Array;
  pendingBytes: number;
  data: string[];
  dataBytes: number;
  event: string;
  id: string | undefined;
  error: SseError | undefined;
};

/**
 * Creates a framer for one stream. Work is linear in the bytes, however they are cut into chunks; memory is
 * bounded by `maxEventBytes`. An event that is not ended by a blank line is never returned.
 * Source: WHATWG HTML §9.2.6.
 */
export function createSseFramer({ maxEventBytes }: Pick<State, 'maxEventBytes'>): SseFramer {
  const state: State = {
    maxEventBytes,
    isFirstLine: true,
    isAfterCr: false,
    pending: new Uint8Array(0),
    pendingBytes: 0,
    data: [],
    dataBytes: 0,
    event: '',
    id: undefined,
    error: undefined,
  };
  return {
    push: (chunk) => pushChunk(state, chunk),
    // A method, because an accessor would give the framer of each stream a hidden class of its own.
    unfinishedBytes: () => state.pendingBytes + state.dataBytes,
  };
}

function pushChunk(state: State, chunk: Uint8Array): readonly SseEvent[] | SseError {
  if (state.error !== undefined) return state.error;
  const events: SseEvent[] = [];
  state.error = takeLines(state, chunk, events);
  return state.error ?? events;
}

function takeLines(state: State, chunk: Uint8Array, events: SseEvent[]): SseError | undefined {
  // Complete lines of ASCII, as in nearly every chunk, are decoded together.
  const completeLines = takeCompleteLines(state, chunk);
  if (completeLines === undefined) return takeEach(state, chunk, events);
  const error = takeText(state, completeLines, events);
  const rest = chunk.lastIndexOf(LF) + 1;
  return error ?? (rest < chunk.length ? takeEach(state, chunk.subarray(rest), events) : undefined);
}

/**
 * The text of a chunk up to its last LF, if it is simple to read: ASCII, no unfinished line, no CR, and no
 * cap within reach. Otherwise undefined.
 */
function takeCompleteLines(state: State, chunk: Uint8Array): string | undefined {
  const isPlain = state.pendingBytes === 0 && !state.isAfterCr && state.dataBytes + chunk.length <= state.maxEventBytes;
  if (!isPlain || chunk.includes(CR)) return undefined;
  const bytes = chunk.subarray(0, chunk.lastIndexOf(LF) + 1);
  try {
    const text = decoder.decode(bytes);
    return text.length === bytes.length ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Reads lines of ASCII that were decoded together. */
function takeText(state: State, text: string, events: SseEvent[]): SseError | undefined {
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
    const error = readLine(state, text.slice(start, end), end - start, events);
    if (error !== undefined) return error;
    state.isFirstLine = false;
    start = end + 1;
  }
  return undefined;
}

function takeEach(state: State, chunk: Uint8Array, events: SseEvent[]): SseError | undefined {
  let start = 0;
  let nextLf = -1;
  let nextCr = -1;
  while (start < chunk.length) {
    // Each search continues where the last one ended, so each byte of a chunk is searched once.
    if (nextLf < start) nextLf = indexOrEnd(chunk, LF, start);
    if (nextCr < start) nextCr = indexOrEnd(chunk, CR, start);
    const end = Math.min(nextLf, nextCr);
    const isRestOfLineEnd = state.isAfterCr && start === nextLf;
    state.isAfterCr = nextCr < nextLf;
    if (end === chunk.length) return keepPending(state, chunk.subarray(start));
    const error = isRestOfLineEnd ? undefined : takeLine(state, chunk.subarray(start, end), events);
    if (error !== undefined) return error;
    start = end + 1;
  }
  return undefined;
}

function indexOrEnd(chunk: Uint8Array, byte: number, from: number): number {
  const found = chunk.indexOf(byte, from);
  return found < 0 ? chunk.length : found;
}

function keepPending(state: State, bytes: Uint8Array): SseError | undefined {
  const needed = state.pendingBytes + bytes.length;
  if (needed > state.maxEventBytes) return { error: 'too-large' };
  if (needed > state.pending.length) {
    const grown = new Uint8Array(Math.max(needed, state.pending.length * 2, FIRST_LINE_CAPACITY));
    grown.set(state.pending.subarray(0, state.pendingBytes));
    state.pending = grown;
  }
  state.pending.set(bytes, state.pendingBytes);
  state.pendingBytes = needed;
  return undefined;
}

function takeLine(state: State, tail: Uint8Array, events: SseEvent[]): SseError | undefined {
  let bytes = tail;
  if (state.pendingBytes > 0) {
    const error = keepPending(state, tail);
    if (error !== undefined) return error;
    bytes = state.pending.subarray(0, state.pendingBytes);
    state.pendingBytes = 0;
    if (state.pending.length > MAX_IDLE_CAPACITY) state.pending = new Uint8Array(0);
  }
  if (bytes.length > state.maxEventBytes) return { error: 'too-large' };
  let line: string;
  try {
    line = decoder.decode(bytes);
  } catch {
    return { error: 'invalid-utf8' };
  }
  if (state.isFirstLine) {
    state.isFirstLine = false;
    if (line.startsWith('\ufeff')) line = line.slice(1);
  }
  return readLine(state, line, bytes.length, events);
}

function readLine(state: State, line: string, bytes: number, events: SseEvent[]): SseError | undefined {
  if (line === '') {
    dispatch(state, events);
    return undefined;
  }
  const colon = line.indexOf(':');
  if (colon === 0) {
    events.push({ kind: 'comment', text: line.slice(1) });
    return undefined;
  }
  const name = colon < 0 ? line : line.slice(0, colon);
  const start = line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1;
  readField(state, name, colon < 0 ? '' : line.slice(start), events);
  if (name !== 'data') return undefined;
  state.dataBytes += bytes;
  return state.dataBytes > state.maxEventBytes ? { error: 'too-large' } : undefined;
}

function readField(state: State, name: string, value: string, events: SseEvent[]): void {
  switch (name) {
    case 'data':
      state.data.push(value);
      return;
    case 'event':
      state.event = value;
      return;
    case 'id':
      if (!value.includes('\0')) state.id = value;
      return;
    case 'retry': {
      const ms = Number(value);
      if (DIGITS.test(value) && Number.isSafeInteger(ms)) events.push({ kind: 'retry', ms });
      return;
    }
  }
}

function dispatch(state: State, events: SseEvent[]): void {
  if (state.data.length > 0) {
    const event = state.event === '' ? 'message' : state.event;
    const message = { kind: 'message', event, data: state.data.join('\n') } as const;
    events.push(state.id === undefined ? message : { ...message, id: state.id });
    state.data = [];
  }
  state.dataBytes = 0;
  state.event = '';
  state.id = undefined;
}

/**
 * Writes one event with this text as its data. Line breaks in the text (white space between JSON tokens)
 * become several data lines, so they can never end the event. `id` must be without line breaks.
 */
export function encodeSseMessage(
  json: string,
  options?: { readonly event?: 'message' | 'endpoint'; readonly id?: string | undefined },
): string {
  const id = options?.id === undefined ? '' : `id: ${options.id}\n`;
  return `event: ${options?.event ?? 'message'}\n${id}${prefixLines('data: ', json)}\n`;
}

/** An event without content: the stream can be resumed after it (MCP 2025-11-25, transports). */
export function encodeSsePriming(id: string): string {
  return `id: ${id}\ndata: \n\n`;
}

/** A shorter delay would make the clients of an upstream reconnect to the gateway without a pause. */
const MIN_RETRY_MS = 1000;

/** How many milliseconds a client should wait before it reconnects: at least a second, whatever the upstream says. */
export function encodeSseRetry(ms: number): string {
  return `retry: ${Math.max(ms, MIN_RETRY_MS)}\n\n`;
}

/** Writes a comment, which keeps a stream alive. */
export function encodeSseComment(text: string): string {
  return `${prefixLines(':', text)}\n`;
}

function prefixLines(prefix: string, text: string): string {
  if (!text.includes('\n') && !text.includes('\r')) return `${prefix}${text}\n`;
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => `${prefix}${line}\n`)
    .join('');
}

/** Where the bytes of a stream come from, and the socket behind them. */
export type ByteSource = Pick<UpstreamResponse, 'next' | 'reserveBuffer' | 'release' | 'abort'>;

/**
 * `ended`: the upstream closed the stream. `stopped`: the handler wants no more. `too-large`: an event, or the
 * sum of all, exceeds its limit. `rate-limited`: a long-lived stream brought more than it may in a minute.
 */
export type ReadEnd = 'ended' | 'stopped' | 'too-large' | 'rate-limited' | ForwardError;

/** Why the answer to a request did not come, by how its stream or body ended: one clause for the operator. */
export function describeEnd(end: ReadEnd, method: string): string {
  switch (end) {
    case 'ended':
    case 'stopped':
      return `${method}: the stream ended without a response`;
    case 'too-large':
      return `${method}: the answer is larger than the limits allow`;
    case 'rate-limited':
      return `${method}: more in a minute than a stream may bring`;
    case 'overloaded':
      return `${method}: no room to read the answer`;
    case 'upstream-timeout':
      return `no answer to ${method}`;
    case 'upstream-protocol':
      return `${method}: the answer broke off, or is not valid HTTP or UTF-8`;
    case 'upstream-unavailable':
    case 'upstream-credentials':
      return `${method}: the answer broke off`;
  }
}

/** The limits of a stream, and the scheduler through which it shares the event loop. */
export type StreamLimits = {
  readonly maxEventBytes: number;
  /** Counts received bytes; returns why no more may be read, if a limit is exceeded. */
  readonly count?: (bytes: number) => 'too-large' | 'rate-limited' | undefined;
  /** Waits until received bytes may be handled. */
  readonly pace?: (bytes: number) => Promise<void> | undefined;
  readonly upstream: string;
  readonly loopScheduler: LoopScheduler;
};

/** True if the response is a successful event stream. */
export function isEventStream({ status, headers }: Pick<UpstreamResponse, 'status' | 'headers'>): boolean {
  return status === 200 && mediaType(headers['content-type']) === 'text/event-stream';
}

/**
 * Whether the data of an event can be a JSON-RPC message, which is an object or an array; servers send other things to
 * keep a stream alive, such as `ping`. An event without data opens a resumable stream (MCP 2025-11-25).
 */
export function mayBeMessage(data: string): boolean {
  const first = data.trimStart()[0];
  return first === '{' || first === '[';
}

/** Whether the gateway ended a stream because it exceeded a limit. */
export function isExcess(end: ReadEnd): boolean {
  return end === 'too-large' || end === 'rate-limited' || end === 'overloaded';
}

type Reading = readonly SseEvent[] | ReadEnd;

const END_REASONS: { readonly [error in SseError['error']]: ReadEnd } = {
  'too-large': 'too-large',
  'invalid-utf8': 'upstream-protocol',
};

/**
 * Reads one stream chunk by chunk. After an end nothing more may be read. A reader that stops before the end
 * releases or aborts the source itself.
 */
export class EventReader {
  /** When the last chunk had been split into events; the event loop has been used since. Milliseconds. */
  startedMs = 0;
  readonly #source: ByteSource;
  readonly #limits: StreamLimits;
  readonly #framer: SseFramer;

  constructor(source: ByteSource, limits: StreamLimits) {
    this.#source = source;
    this.#limits = limits;
    this.#framer = createSseFramer({ maxEventBytes: limits.maxEventBytes });
  }

  /** The events that the next chunk completes, or how the stream ended. */
  async read(): Promise<Reading> {
    return this.receive(await this.#source.next());
  }

  /** The events of the last chunk are done with: memory is held for an unfinished event alone. */
  finishChunk(): void {
    // Never waits, because this holds less than before.
    void this.#source.reserveBuffer?.(this.#framer.unfinishedBytes());
  }

  /**
   * `read` for a chunk that was pulled from the source. Reserves memory for the unfinished event and this chunk,
   * or else waits for a time slice if none is left; synchronous if neither has to be waited for.
   */
  receive(chunk: Uint8Array | undefined | ForwardError): Reading | Promise<Reading> {
    if (typeof chunk !== 'object') return this.#end(chunk);
    const { count, pace, loopScheduler, upstream } = this.#limits;
    const excess = count?.(chunk.byteLength);
    if (excess !== undefined) return this.#cut(excess);
    const reserved = this.#source.reserveBuffer?.(this.#framer.unfinishedBytes() + chunk.byteLength);
    const entry = reserved ?? pace?.(chunk.byteLength) ?? loopScheduler.waitForTurn(upstream);
    if (entry === undefined) return this.#frame(chunk);
    return entry.then((outcome) => (outcome === 'overloaded' ? this.#cut(outcome) : this.#frame(chunk)));
  }

  #frame(chunk: Uint8Array): Reading {
    const startedMs = performance.now();
    const events = this.#framer.push(chunk);
    // Lines that complete no event take time too, and nothing else would count it.
    this.startedMs = this.#limits.loopScheduler.recordTime(startedMs);
    return 'error' in events ? this.#cut(END_REASONS[events.error]) : events;
  }

  /** The stream has ended by itself: its socket can be reused. */
  #end(error: ForwardError | undefined): ReadEnd {
    this.#source.release();
    return error ?? 'ended';
  }

  #cut(why: ReadEnd): ReadEnd {
    this.#source.abort();
    return why;
  }
}

const doNothing = (): void => undefined;

type EventHandler = (event: SseEvent) => undefined | 'stop' | Promise<undefined | 'stop'>;
type OnPause = () => void | Promise<void>;
type Consumer = {
  readonly limits: StreamLimits;
  readonly onEvent: EventHandler;
  readonly onPause: OnPause;
};

/**
 * Passes every event to `onEvent` until that returns `stop`, the stream ends, or it violates the framing. `onPause`
 * is called after the events of each chunk, and before waiting for a time slice; nothing is read until it
 * resolves.
 */
export async function pumpEvents(
  source: ByteSource,
  limits: StreamLimits,
  onEvent: EventHandler,
  onPause: OnPause = doNothing,
): Promise<ReadEnd> {
  const reader = new EventReader(source, limits);
  const consumer: Consumer = { limits, onEvent, onPause };
  let taken: undefined | 'stop';
  try {
    do {
      const pulled = source.next();
      const reading = reader.receive(pulled instanceof Promise ? await pulled : pulled);
      const events = reading instanceof Promise ? await reading : reading;
      if (typeof events === 'string') return events;
      const taking = consumeEvents(events, reader.startedMs, consumer);
      taken = taking instanceof Promise ? await taking : taking;
      // While a slow client is waited for, no chunk is held.
      reader.finishChunk();
      const pause = onPause();
      if (pause !== undefined) await pause;
    } while (taken === undefined);
  } catch (error) {
    // Nothing else would read from the socket again.
    source.abort();
    throw error;
  }
  source.release();
  return 'stopped';
}

/** Synchronous up to the first event that has to wait, or to the end of the time slice. */
function consumeEvents(events: readonly SseEvent[], startedMs: number, consumer: Consumer): ReturnType<EventHandler> {
  const { limits, onEvent } = consumer;
  const { loopScheduler, upstream } = limits;
  let sinceMs = startedMs;
  let next = 0;
  for (const event of events) {
    next += 1;
    if (!isMessageEvent(event)) continue;
    const outcome = onEvent(event);
    sinceMs = loopScheduler.recordTime(sinceMs);
    if (outcome instanceof Promise) return consumeRemainingEvents(outcome, events, next, consumer);
    if (outcome === 'stop') return 'stop';
    if (next === events.length) break;
    const turn = loopScheduler.waitForTurn(upstream);
    if (turn !== undefined) return consumeRemainingEvents(inTurn(turn, consumer), events, next, consumer);
  }
  return undefined;
}

/** Flushes what was gathered while waiting for the next time slice. */
async function inTurn(turn: Promise<void>, { onPause }: Consumer): Promise<undefined> {
  await Promise.all([turn, onPause()]);
  return undefined;
}

/**
 * Handles the remaining events of a chunk. A loop, because a chain of promises would keep each of them in memory
 * until the last event was handled.
 */
async function consumeRemainingEvents(
  firstOutcome: ReturnType<EventHandler>,
  events: readonly SseEvent[],
  from: number,
  consumer: Consumer,
): Promise<undefined | 'stop'> {
  const { limits, onEvent } = consumer;
  const { loopScheduler, upstream } = limits;
  if ((await firstOutcome) === 'stop') return 'stop';
  for (let next = from; next < events.length; next += 1) {
    const event = events[next];
    if (event === undefined || !isMessageEvent(event)) continue;
    const turn = loopScheduler.waitForTurn(upstream);
    if (turn !== undefined) await inTurn(turn, consumer);
    const startedMs = performance.now();
    const outcome = onEvent(event);
    loopScheduler.recordTime(startedMs);
    if ((outcome instanceof Promise ? await outcome : outcome) === 'stop') return 'stop';
  }
  return undefined;
}

/**
 * MCP messages are events called `message`; clients ignore all others (WHATWG HTML §9.2.6). One without data
 * still counts if it has an id (MCP 2025-11-25, resumability).
 */
function isMessageEvent(event: SseEvent): boolean {
  if (event.kind !== 'message') return true;
  return event.event === 'message' && (event.data !== '' || event.id !== undefined);
}
