// Waits for the `endpoint` event of a legacy SSE stream, which must come first and name a URL of the
// upstream's own origin. Everything after it is passed on unread. Never posts anything.
// Source: MCP 2024-11-05, transports, HTTP with SSE; docs/contract.md §3 (an endpoint event is of its own
// origin).

import { createSseFramer, type SseFramer } from '../../../protocol/sse.js';
import type {
  ForwardError,
  ForwardOutcome,
  LegacySseOutcome,
  UpstreamResponse,
} from '../../../protocol/transport.js';
import { amendResponse } from '../../../protocol/transport.js';
import { readEndpoint } from '../../../protocol/versions/legacy-sse.js';

/** The first event contains only a URL. */
const MAX_FIRST_EVENT_BYTES = 8 * 1024;

const PROTOCOL = { kind: 'fault', reason: 'upstream-protocol' } as const;

type First = { readonly messageEndpoint: string; readonly rest: Uint8Array };

/**
 * Reads a stream up to its first event. `timeoutMs` bounds the wait, whatever else arrives meanwhile.
 *
 * @returns the message endpoint as path and query, and the rest of the stream; otherwise an error.
 */
export async function awaitEndpoint(
  opened: ForwardOutcome,
  base: URL,
  timeoutMs: number,
): Promise<LegacySseOutcome> {
  if (opened.kind === 'fault') return opened;
  const refused = openingErrorOf(opened);
  if (refused !== undefined) {
    opened.release();
    return { kind: 'fault', reason: refused };
  }
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    opened.abort();
  }, timeoutMs);
  const first = await readFirst(opened);
  clearTimeout(timer);
  if (isLate) return { kind: 'fault', reason: 'upstream-timeout' };
  if (typeof first === 'string') return { kind: 'fault', reason: first };
  const messageEndpoint = readEndpoint(first.messageEndpoint, base);
  if (messageEndpoint !== undefined)
    return { kind: 'channel', messageEndpoint, response: goOn(opened, first.rest) };
  opened.abort();
  return PROTOCOL;
}

function openingErrorOf({ status, headers }: UpstreamResponse): ForwardError | undefined {
  if (status === 401 || status === 403) return 'upstream-credentials';
  if (status === 429 || status >= 500) return 'upstream-unavailable';
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  return status === 200 && type === 'text/event-stream' ? undefined : 'upstream-protocol';
}

async function readFirst(response: UpstreamResponse): Promise<First | ForwardError> {
  const framer = createSseFramer({ maxEventBytes: MAX_FIRST_EVENT_BYTES });
  for (;;) {
    const chunk = await response.next();
    if (typeof chunk === 'string') return chunk;
    const first = chunk === undefined ? 'refused' : takeFirst(framer, chunk);
    if (first === undefined) continue;
    if (first !== 'refused') return first;
    response.abort();
    return 'upstream-protocol';
  }
}

/** Reads byte by byte, so that what follows the event is left for the checks of the stream. */
function takeFirst(framer: SseFramer, chunk: Uint8Array): First | 'refused' | undefined {
  for (let at = 0; at < chunk.length; at += 1) {
    const events = framer.push(chunk.subarray(at, at + 1));
    if ('error' in events) return 'refused';
    const event = events.find((one) => one.kind === 'message');
    if (event?.kind !== 'message') continue;
    if (event.event !== 'endpoint') return 'refused';
    return { messageEndpoint: event.data, rest: chunk.subarray(at + 1) };
  }
  return undefined;
}

function goOn(response: UpstreamResponse, rest: Uint8Array): UpstreamResponse {
  let left: Uint8Array | undefined = rest.length > 0 ? rest : undefined;
  return amendResponse(response, {
    next() {
      if (left === undefined) return response.next();
      const chunk = left;
      left = undefined;
      return Promise.resolve(chunk);
    },
  });
}
