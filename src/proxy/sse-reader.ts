// Reads an upstream's event stream: bytes in, framed events out, one at a time and in order, with the
// client's pace as the pace of reading. No byte is piped unread, and no stream holds the event loop for
// longer than its turn (MCP transports; WHATWG SSE).

import type { LoopScheduler } from '../protocol/json/incremental.js';
import { createSseFramer, type SseEvent, type SseFramer } from '../protocol/sse.js';
import type { ForwardError, UpstreamResponse } from '../protocol/transport.js';
import type { Call } from './request-context.js';

/**
 * `ended`: the upstream closed. `stopped`: the taker had enough. `too-large`: an event, or the sum of all, past
 * its cap. `rate-limited`: more in a minute than a stream of its own may bring.
 */
export type PumpEnd = 'ended' | 'stopped' | 'too-large' | 'rate-limited' | ForwardError;

/** What a stream may bring, and with whom it shares the event loop. */
export type PumpTerms = {
  readonly maxEventBytes: number;
  /** Counts bytes that came; the answer is why no more may come, if so. */
  readonly count: (bytes: number) => 'too-large' | 'rate-limited' | undefined;
  readonly upstream: string;
  readonly loopScheduler: LoopScheduler;
};

/** A stream that answers one request is bounded in sum, like a body. */
export function termsOfResponse({ snapshot, incoming, ports }: Call): PumpTerms {
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

/** A stream of its own may live for ever: it is bounded by the minute. */
export function termsOfStream({ snapshot, incoming, ports }: Call): PumpTerms {
  const { maxResponseBytes, maxStreamBytesPerMinute } = snapshot.limits;
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
    upstream: incoming.upstream,
    loopScheduler: ports.loopScheduler,
  };
}

/** Whether the gateway ended a stream because too much came. */
export function isExcess(end: PumpEnd): boolean {
  return end === 'too-large' || end === 'rate-limited' || end === 'overloaded';
}

const goOn = (): void => undefined;

type TakeEvent = (event: SseEvent) => undefined | 'stop' | Promise<undefined | 'stop'>;
type Rest = () => void | Promise<void>;

const END_REASONS = { 'too-large': 'too-large', 'invalid-utf8': 'upstream-protocol' } as const;

/**
 * Hands every event to `take` until it answers `stop`, the stream ends, or it breaks a rule of framing.
 * `rest` is called when the events of one reading were taken, and before a turn is waited for; while it
 * waits, nothing more is read.
 * Whatever the end, the upstream's socket is released: for the next exchange, or closed.
 */
export async function pumpEvents(
  response: UpstreamResponse,
  terms: PumpTerms,
  take: TakeEvent,
  rest: Rest = goOn,
): Promise<PumpEnd> {
  const framer = createSseFramer({ maxEventBytes: terms.maxEventBytes });
  for (;;) {
    const pulled = response.next();
    const chunk = pulled instanceof Promise ? await pulled : pulled;
    if (typeof chunk !== 'object') return end(response, chunk);
    const taking = takeReading(response, framer, chunk, { terms, take, rest });
    const taken = taking instanceof Promise ? await taking : taking;
    // Less than before, which is never waited for. A client that lags holds no room.
    void response.hold?.(framer.unfinishedBytes());
    const pause = rest();
    if (pause !== undefined) await pause;
    if (taken !== undefined) return letGo(response, taken);
  }
}

/** Waits for room to keep what is unfinished, or for a turn, where there is none. */
function takeReading(
  response: UpstreamResponse,
  framer: SseFramer,
  chunk: Uint8Array,
  taking: Taking,
): Taken | Promise<Taken> {
  const { count, loopScheduler, upstream } = taking.terms;
  const excess = count(chunk.byteLength);
  if (excess !== undefined) return excess;
  const reserved = response.hold?.(framer.unfinishedBytes() + chunk.byteLength);
  const entry = reserved ?? loopScheduler.take(upstream);
  if (entry === undefined) return takeChunk(response, framer, chunk, taking);
  return entry.then((outcome) =>
    outcome === 'overloaded' ? outcome : takeChunk(response, framer, chunk, taking),
  );
}

/** The answer has ended by itself: nothing of it is kept any more. */
function end(response: UpstreamResponse, error: ForwardError | undefined): PumpEnd {
  response.release();
  return error ?? 'ended';
}

function letGo(response: UpstreamResponse, end: PumpEnd): PumpEnd {
  if (end === 'stopped') response.release();
  else response.abort();
  return end;
}

type Taken = PumpEnd | undefined;
type Taking = { readonly terms: PumpTerms; readonly take: TakeEvent; readonly rest: Rest };

/** A taker that throws has read its last: the socket must not stay open behind it. */
function takeChunk(
  response: UpstreamResponse,
  framer: SseFramer,
  chunk: Uint8Array,
  taking: Taking,
): Taken | Promise<Taken> {
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

/** At once, up to the first event that has to wait, or to the end of the turn. */
function takeAll(
  events: readonly SseEvent[],
  taking: Taking,
  startedMs: number,
): Taken | Promise<Taken> {
  const { terms, take } = taking;
  const { loopScheduler, upstream } = terms;
  let sinceMs = startedMs;
  let next = 0;
  for (const event of events) {
    next += 1;
    if (!isCarried(event)) continue;
    const outcome = take(event);
    sinceMs = loopScheduler.spend(sinceMs);
    if (outcome instanceof Promise) return takeBehind(outcome, events, next, taking);
    if (outcome === 'stop') return 'stopped';
    if (next === events.length) break;
    const turn = loopScheduler.take(upstream);
    if (turn !== undefined) return takeBehind(inTurn(turn, taking), events, next, taking);
  }
  return undefined;
}

/** What was written meanwhile does not wait with those who come next. */
async function inTurn(turn: Promise<void>, { rest }: Taking): Promise<undefined> {
  await Promise.all([turn, rest()]);
  return undefined;
}

/** The rest of a reading. A loop: in a chain of promises each would be kept until the last event was taken. */
async function takeBehind(
  late: ReturnType<TakeEvent>,
  events: readonly SseEvent[],
  from: number,
  taking: Taking,
): Promise<Taken> {
  const { terms, take } = taking;
  const { loopScheduler, upstream } = terms;
  if ((await late) === 'stop') return 'stopped';
  for (let next = from; next < events.length; next += 1) {
    const event = events[next];
    if (event === undefined || !isCarried(event)) continue;
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
 * MCP messages are events called `message`; clients pass over every other (WHATWG HTML §9.2.6). One without
 * content counts for its id (MCP 2025-11-25, resumability).
 */
function isCarried(event: SseEvent): boolean {
  if (event.kind !== 'message') return true;
  return event.event === 'message' && (event.data !== '' || event.id !== undefined);
}
