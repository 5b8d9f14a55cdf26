// Reads an upstream's event stream: bytes in, framed events out, one at a time and in order, with the
// client's pace as the pace of reading. No byte is piped unread (MCP transports; WHATWG SSE).

import { createSseFramer, type SseEvent } from '../mcp/sse.js';
import type { ForwardFault, UpstreamAnswer } from '../mcp/transport.js';

/** `ended`: the upstream closed. `stopped`: the taker had enough. `too-large`: an event past the cap. */
export type PumpEnd = 'ended' | 'stopped' | 'too-large' | ForwardFault;

/**
 * Hands every event to `take` until it answers `stop`, the stream ends, or it breaks a rule of framing.
 * Whatever the end, the upstream's socket is released.
 */
export async function pumpEvents(
  answer: UpstreamAnswer,
  maxEventBytes: number,
  take: (event: SseEvent) => undefined | 'stop' | Promise<undefined | 'stop'>,
): Promise<PumpEnd> {
  const framer = createSseFramer({ maxEventBytes });
  for (;;) {
    const chunk = await answer.next();
    if (chunk === undefined) return 'ended';
    if (typeof chunk === 'string') return chunk;
    const events = framer.push(chunk);
    if ('fault' in events) {
      answer.abort();
      return events.fault === 'too-large' ? 'too-large' : 'upstream-protocol';
    }
    for (const event of events) {
      const outcome = take(event);
      if ((outcome instanceof Promise ? await outcome : outcome) !== 'stop') continue;
      answer.abort();
      return 'stopped';
    }
  }
}
