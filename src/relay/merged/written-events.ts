// Reads the event stream that a member's exchange writes, event by event: what comes here was judged, and is
// taken apart only to be joined with what others say.

import { createSseFramer, type SseEvent } from '../../mcp/sse.js';
import type { Outgoing } from '../../mcp/transport.js';

/** Each event was bounded when it was read from its upstream. */
const MAX_EVENT_BYTES = 256 * 1024 * 1024;

const encoder = new TextEncoder();

/** The `write` of an end that hands each event to `take`; its pace is that of whoever takes. */
export function readWritten(take: (event: SseEvent) => void | Promise<void>): Outgoing['write'] {
  const framer = createSseFramer({ maxEventBytes: MAX_EVENT_BYTES });
  return (bytes) => {
    const events = framer.push(typeof bytes === 'string' ? encoder.encode(bytes) : bytes);
    // Invalid framing cannot come from our own writers.
    if ('error' in events) throw new Error('an event stream of our own cannot be read');
    const waits = events.map(take).filter((wait) => wait instanceof Promise);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  };
}
