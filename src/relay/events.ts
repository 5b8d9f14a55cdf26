// Reads an upstream's event stream: bytes in, framed events out, one at a time and in order, with the
// client's pace as the pace of reading. No byte is piped unread (MCP transports; WHATWG SSE).

import { createSseFramer, type SseEvent, type SseFramer } from '../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer } from '../mcp/transport.js';

/** `ended`: the upstream closed. `stopped`: the taker had enough. `too-large`: an event past the cap. */
export type PumpEnd = 'ended' | 'stopped' | 'too-large' | ForwardFault;

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
  rest?: () => void | Promise<void>,
): Promise<PumpEnd> {
  const framer = createSseFramer({ maxEventBytes });
  for (;;) {
    const chunk = await answer.next();
    if (chunk === undefined) return 'ended';
    if (typeof chunk === 'string') return chunk;
    const end = await takeChunk(answer, framer.push(chunk), take);
    const pause = rest?.();
    if (pause instanceof Promise) await pause;
    if (end === undefined) continue;
    if (end === 'stopped') answer.release();
    else answer.abort();
    return end;
  }
}

/** A taker that throws has read its last: the socket must not stay open behind it. */
async function takeChunk(
  answer: UpstreamAnswer,
  events: ReturnType<SseFramer['push']>,
  take: TakeEvent,
): Promise<PumpEnd | undefined> {
  if ('fault' in events) return FAULT_ENDS[events.fault];
  try {
    return await takeAll(events, take);
  } catch (error) {
    answer.abort();
    throw error;
  }
}

async function takeAll(events: readonly SseEvent[], take: TakeEvent): Promise<PumpEnd | undefined> {
  for (const event of events) {
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
