// Reads an upstream's event stream: bytes in, framed events out, one at a time and in order, with the
// client's pace as the pace of reading. No byte is piped unread (MCP transports; WHATWG SSE).

import { createSseFramer, type SseEvent, type SseFramer } from '../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer } from '../mcp/transport.js';

/** `ended`: the upstream closed. `stopped`: the taker had enough. `too-large`: an event past the cap. */
export type PumpEnd = 'ended' | 'stopped' | 'too-large' | ForwardFault;

const goOn = (): void => undefined;

type TakeEvent = (event: SseEvent) => undefined | 'stop' | Promise<undefined | 'stop'>;

const FAULT_ENDS = { 'too-large': 'too-large', 'invalid-utf8': 'upstream-protocol' } as const;

/**
 * Hands every event to `take` until it answers `stop`, the stream ends, or it breaks a rule of framing.
 * `rest` is called when the events of one reading were taken; while it waits, nothing more is read.
 * Whatever the end, the upstream's socket is released: for the next exchange, or closed.
 */
export async function pumpEvents(
  answer: UpstreamAnswer,
  maxEventBytes: number,
  take: TakeEvent,
  rest: () => void | Promise<void> = goOn,
): Promise<PumpEnd> {
  const framer = createSseFramer({ maxEventBytes });
  for (;;) {
    const pulled = answer.next();
    const chunk = pulled instanceof Promise ? await pulled : pulled;
    if (typeof chunk !== 'object') return chunk ?? 'ended';
    const taken = takeChunk(answer, framer.push(chunk), take);
    const end = taken instanceof Promise ? await taken : taken;
    const pause = rest();
    if (pause !== undefined) await pause;
    if (end !== undefined) return letGo(answer, end);
  }
}

function letGo(answer: UpstreamAnswer, end: PumpEnd): PumpEnd {
  if (end === 'stopped') answer.release();
  else answer.abort();
  return end;
}

type Taken = PumpEnd | undefined;

/** A taker that throws has read its last: the socket must not stay open behind it. */
function takeChunk(
  answer: UpstreamAnswer,
  events: ReturnType<SseFramer['push']>,
  take: TakeEvent,
): Taken | Promise<Taken> {
  if ('fault' in events) return FAULT_ENDS[events.fault];
  const giveUp = (error: unknown): never => {
    answer.abort();
    throw error;
  };
  try {
    const taken = takeAll(events, take);
    return taken instanceof Promise ? taken.catch(giveUp) : taken;
  } catch (error) {
    return giveUp(error);
  }
}

/** At once, up to the first event that has to wait. */
function takeAll(events: readonly SseEvent[], take: TakeEvent): Taken | Promise<Taken> {
  let next = 0;
  for (const event of events) {
    next += 1;
    if (!isCarried(event)) continue;
    const outcome = take(event);
    if (outcome instanceof Promise) return takeBehind(outcome, events.slice(next), take);
    if (outcome === 'stop') return 'stopped';
  }
  return undefined;
}

/** The rest of a reading. A loop: in a chain of promises each would be kept until the last event was taken. */
async function takeBehind(
  late: ReturnType<TakeEvent>,
  rest: readonly SseEvent[],
  take: TakeEvent,
): Promise<Taken> {
  if ((await late) === 'stop') return 'stopped';
  for (const event of rest) {
    if (!isCarried(event)) continue;
    const outcome = take(event);
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
