// Reads an upstream's event stream: bytes in, framed events out, one at a time and in order, with the
// client's pace as the pace of reading. No byte is piped unread (MCP transports; WHATWG SSE).

import { createSseFramer, type SseEvent } from '../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer } from '../mcp/transport.js';

/** `ended`: the upstream closed. `stopped`: the taker had enough. `too-large`: an event past the cap. */
export type PumpEnd = 'ended' | 'stopped' | 'too-large' | ForwardFault;

type TakeEvent = (event: SseEvent) => undefined | 'stop' | Promise<undefined | 'stop'>;

const FAULT_ENDS = { 'too-large': 'too-large', 'invalid-utf8': 'upstream-protocol' } as const;

/**
 * Hands every event to `take` until it answers `stop`, the stream ends, or it breaks a rule of framing.
 * Whatever the end, the upstream's socket is released: for the next exchange, or closed.
 */
export async function pumpEvents(
  answer: UpstreamAnswer,
  maxEventBytes: number,
  take: TakeEvent,
): Promise<PumpEnd> {
  const framer = createSseFramer({ maxEventBytes });
  for (;;) {
    const chunk = await answer.next();
    if (chunk === undefined) return 'ended';
    if (typeof chunk === 'string') return chunk;
    const events = framer.push(chunk);
    const end = 'fault' in events ? FAULT_ENDS[events.fault] : await takeAll(events, take);
    if (end === undefined) continue;
    if (end === 'stopped') answer.release();
    else answer.abort();
    return end;
  }
}

async function takeAll(events: readonly SseEvent[], take: TakeEvent): Promise<PumpEnd | undefined> {
  for (const event of events) {
    const outcome = take(event);
    if ((outcome instanceof Promise ? await outcome : outcome) === 'stop') return 'stopped';
  }
  return undefined;
}
