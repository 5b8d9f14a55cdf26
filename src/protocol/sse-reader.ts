// Reads the event stream of an upstream: bytes in, framed events out, in order and no faster than they are taken.
// The only loop over the bytes of such streams: it bounds their bytes, their memory and their time on the event
// loop. However a stream ends, its source is released or closed, and the end is a value.
// Source: MCP transports; WHATWG SSE.

import { mediaType } from './headers.js';
import type { LoopScheduler } from './json/incremental.js';
import { createSseFramer, type SseError, type SseEvent, type SseFramer } from './sse.js';
import type { ForwardError, UpstreamResponse } from './transport.js';

/** Where the bytes of a stream come from, and the socket behind them. */
export type ByteSource = Pick<UpstreamResponse, 'next' | 'reserveBuffer' | 'release' | 'abort'>;

/**
 * `ended`: the upstream closed the stream. `stopped`: the handler wants no more. `too-large`: an event, or the
 * sum of all, exceeds its limit. `rate-limited`: a long-lived stream brought more than it may in a minute.
 */
export type ReadEnd = 'ended' | 'stopped' | 'too-large' | 'rate-limited' | ForwardError;

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
export function isEventStream({
  status,
  headers,
}: Pick<UpstreamResponse, 'status' | 'headers'>): boolean {
  return status === 200 && mediaType(headers['content-type']) === 'text/event-stream';
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
  /** When the events of the last chunk began to be read; the event loop has been used since. Milliseconds. */
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
    const reserved = this.#source.reserveBuffer?.(
      this.#framer.unfinishedBytes() + chunk.byteLength,
    );
    const entry = reserved ?? pace?.(chunk.byteLength) ?? loopScheduler.waitForTurn(upstream);
    if (entry === undefined) return this.#frame(chunk);
    return entry.then((outcome) =>
      outcome === 'overloaded' ? this.#cut(outcome) : this.#frame(chunk),
    );
  }

  #frame(chunk: Uint8Array): Reading {
    this.startedMs = performance.now();
    const events = this.#framer.push(chunk);
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
function consumeEvents(
  events: readonly SseEvent[],
  startedMs: number,
  consumer: Consumer,
): ReturnType<EventHandler> {
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
    if (turn !== undefined)
      return consumeRemainingEvents(inTurn(turn, consumer), events, next, consumer);
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
