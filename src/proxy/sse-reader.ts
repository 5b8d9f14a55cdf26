// Reads an upstream's event stream: bytes in, framed events out, one at a time and in order, no faster than the
// client reads. No byte is forwarded unread, and no stream keeps the event loop for longer than its time slice.
// Source: MCP transports; WHATWG SSE.

import type { LoopScheduler } from '../protocol/json/incremental.js';
import { createSseFramer, type SseEvent, type SseFramer } from '../protocol/sse.js';
import type { ForwardError, UpstreamResponse } from '../protocol/transport.js';
import type { RequestContext } from './request-context.js';

/**
 * `ended`: the upstream closed the stream. `stopped`: the handler wants no more. `too-large`: an event, or the
 * sum of all, exceeds its limit. `rate-limited`: a long-lived stream brought more than it may in a minute.
 */
export type ReadEnd = 'ended' | 'stopped' | 'too-large' | 'rate-limited' | ForwardError;

/** The limits of a stream, and the scheduler through which it shares the event loop. */
export type StreamLimits = {
  readonly maxEventBytes: number;
  /** Counts received bytes; returns why no more may be read, if a limit is exceeded. */
  readonly count: (bytes: number) => 'too-large' | 'rate-limited' | undefined;
  /** Waits until received bytes may be handled. */
  readonly pace?: (bytes: number) => Promise<void> | undefined;
  readonly upstream: string;
  readonly loopScheduler: LoopScheduler;
};

/** Limits for the response to one request: the sum of its bytes is bounded, as for a body. */
export function responseStreamLimits({ snapshot, incoming, ports }: RequestContext): StreamLimits {
  const { maxResponseBytes } = snapshot.limits;
  let sum = 0;
  return {
    maxEventBytes: maxResponseBytes,
    count(bytes) {
      sum += bytes;
      return sum > maxResponseBytes ? 'too-large' : undefined;
    },
    upstream: incoming.upstream,
    loopScheduler: ports.loopScheduler,
  };
}

const MINUTE_MS = 60_000;

/**
 * Limits for a long-lived stream: its bytes are bounded per minute, because its lifetime is not, and all such streams
 * of an upstream share a rate.
 */
export function openStreamLimits({
  snapshot,
  incoming,
  outgoing,
  ports,
}: RequestContext): StreamLimits {
  const { maxResponseBytes, maxStreamBytesPerMinute } = snapshot.limits;
  const { upstream } = incoming;
  const { loopScheduler } = ports;
  let sinceMs = performance.now();
  let sum = 0;
  return {
    maxEventBytes: maxResponseBytes,
    count(bytes) {
      const nowMs = performance.now();
      if (nowMs - sinceMs >= MINUTE_MS) {
        sinceMs = nowMs;
        sum = 0;
      }
      sum += bytes;
      return sum > maxStreamBytesPerMinute ? 'rate-limited' : undefined;
    },
    pace: (bytes) => loopScheduler.pace(upstream, bytes, () => outgoing.isClosed),
    upstream,
    loopScheduler,
  };
}

/** Whether the gateway ended a stream because it exceeded a limit. */
export function isExcess(end: ReadEnd): boolean {
  return end === 'too-large' || end === 'rate-limited' || end === 'overloaded';
}

const goOn = (): void => undefined;

type TakeEvent = (event: SseEvent) => undefined | 'stop' | Promise<undefined | 'stop'>;
type OnPause = () => void | Promise<void>;

const END_REASONS = { 'too-large': 'too-large', 'invalid-utf8': 'upstream-protocol' } as const;

/**
 * Passes every event to `take` until that returns `stop`, the stream ends, or it violates the framing. `rest` is
 * called after the events of each chunk, and before waiting for a time slice; nothing is read until it resolves.
 * However the stream ends, the upstream's socket is released for reuse or closed.
 */
export async function pumpEvents(
  response: UpstreamResponse,
  limits: StreamLimits,
  take: TakeEvent,
  onPause: OnPause = goOn,
): Promise<ReadEnd> {
  const framer = createSseFramer({ maxEventBytes: limits.maxEventBytes });
  for (;;) {
    const pulled = response.next();
    const chunk = pulled instanceof Promise ? await pulled : pulled;
    if (typeof chunk !== 'object') return end(response, chunk);
    const taking = reserveAndTakeChunk(response, framer, chunk, {
      terms: limits,
      take,
      rest: onPause,
    });
    const taken = taking instanceof Promise ? await taking : taking;
    // Never waits, because this holds less than before. While a slow client is waited for, no chunk is held.
    void response.hold?.(framer.unfinishedBytes());
    const pause = onPause();
    if (pause !== undefined) await pause;
    if (taken !== undefined) return releaseOrAbort(response, taken);
  }
}

/**
 * Reserves memory for the unfinished event and this chunk, waiting for it if necessary; otherwise waits for a
 * time slice, if the upstream has used up its own.
 */
function reserveAndTakeChunk(
  response: UpstreamResponse,
  framer: SseFramer,
  chunk: Uint8Array,
  taking: Consumer,
): ChunkEnd | Promise<ChunkEnd> {
  const { count, pace, loopScheduler, upstream } = taking.terms;
  const excess = count(chunk.byteLength);
  if (excess !== undefined) return excess;
  const reserved = response.hold?.(framer.unfinishedBytes() + chunk.byteLength);
  const entry = reserved ?? pace?.(chunk.byteLength) ?? loopScheduler.take(upstream);
  if (entry === undefined) return takeChunk(response, framer, chunk, taking);
  return entry.then((outcome) =>
    outcome === 'overloaded' ? outcome : takeChunk(response, framer, chunk, taking),
  );
}

/** The stream has ended by itself: its socket can be reused. */
function end(response: UpstreamResponse, error: ForwardError | undefined): ReadEnd {
  response.release();
  return error ?? 'ended';
}

function releaseOrAbort(response: UpstreamResponse, end: ReadEnd): ReadEnd {
  if (end === 'stopped') response.release();
  else response.abort();
  return end;
}

type ChunkEnd = ReadEnd | undefined;
type Consumer = { readonly terms: StreamLimits; readonly take: TakeEvent; readonly rest: OnPause };

/** If the handler throws, the socket is closed, since nothing else would read from it again. */
function takeChunk(
  response: UpstreamResponse,
  framer: SseFramer,
  chunk: Uint8Array,
  taking: Consumer,
): ChunkEnd | Promise<ChunkEnd> {
  const startedMs = performance.now();
  const events = framer.push(chunk);
  if ('error' in events) return END_REASONS[events.error];
  const giveUp = (error: unknown): never => {
    response.abort();
    throw error;
  };
  try {
    const taken = takeAll(events, taking, startedMs);
    return taken instanceof Promise ? taken.catch(giveUp) : taken;
  } catch (error) {
    return giveUp(error);
  }
}

/** Synchronous up to the first event that has to wait, or to the end of the time slice. */
function takeAll(
  events: readonly SseEvent[],
  taking: Consumer,
  startedMs: number,
): ChunkEnd | Promise<ChunkEnd> {
  const { terms, take } = taking;
  const { loopScheduler, upstream } = terms;
  let sinceMs = startedMs;
  let next = 0;
  for (const event of events) {
    next += 1;
    if (!isMessageEvent(event)) continue;
    const outcome = take(event);
    sinceMs = loopScheduler.spend(sinceMs);
    if (outcome instanceof Promise) return takeRemainingEvents(outcome, events, next, taking);
    if (outcome === 'stop') return 'stopped';
    if (next === events.length) break;
    const turn = loopScheduler.take(upstream);
    if (turn !== undefined) return takeRemainingEvents(inTurn(turn, taking), events, next, taking);
  }
  return undefined;
}

/** Flushes what was gathered while waiting for the next time slice. */
async function inTurn(turn: Promise<void>, { rest }: Consumer): Promise<undefined> {
  await Promise.all([turn, rest()]);
  return undefined;
}

/**
 * Handles the remaining events of a chunk. A loop, because a chain of promises would keep each of them in memory
 * until the last event was handled.
 */
async function takeRemainingEvents(
  late: ReturnType<TakeEvent>,
  events: readonly SseEvent[],
  from: number,
  taking: Consumer,
): Promise<ChunkEnd> {
  const { terms, take } = taking;
  const { loopScheduler, upstream } = terms;
  if ((await late) === 'stop') return 'stopped';
  for (let next = from; next < events.length; next += 1) {
    const event = events[next];
    if (event === undefined || !isMessageEvent(event)) continue;
    const turn = loopScheduler.take(upstream);
    if (turn !== undefined) await inTurn(turn, taking);
    const startedMs = performance.now();
    const outcome = take(event);
    loopScheduler.spend(startedMs);
    if ((outcome instanceof Promise ? await outcome : outcome) === 'stop') return 'stopped';
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
