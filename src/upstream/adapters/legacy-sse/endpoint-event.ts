// Waits for the `endpoint` event of a legacy SSE stream, which must come first and name a URL of the
// upstream's own origin. Everything after it is passed on unread. Never posts anything.
// Source: MCP 2024-11-05, transports, HTTP with SSE; docs/contract.md §3 (an endpoint event is of its own
// origin).

import { type ByteSource, EventReader, isEventStream } from '../../../protocol/sse.js';
import {
  amendResponse,
  type ForwardError,
  type ForwardOutcome,
  type LegacySseOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import { readEndpoint } from '../../../protocol/versions/legacy-sse.js';
import { forwardErrorOfEnd, UNSCHEDULED } from '../../message-reader.js';

/** The first event contains only a URL. */
const MAX_FIRST_EVENT_BYTES = 8 * 1024;
/** The first event and all comments before it. */
const MAX_OPENING_BYTES = 64 * 1024;
const LF = 10;
const CR = 13;

const PROTOCOL = { kind: 'error', reason: 'upstream-protocol' } as const;

type FirstEvent = { readonly messageEndpoint: string; readonly remaining: Uint8Array };

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
  if (opened.kind === 'error') return opened;
  const refused = openingErrorOf(opened);
  if (refused !== undefined) {
    opened.release();
    return { kind: 'error', reason: refused };
  }
  let isTimedOut = false;
  const timer = setTimeout(() => {
    isTimedOut = true;
    opened.abort();
  }, timeoutMs);
  const first = await readFirstEvent(opened);
  clearTimeout(timer);
  if (isTimedOut) return { kind: 'error', reason: 'upstream-timeout' };
  if (typeof first === 'string') return { kind: 'error', reason: first };
  const messageEndpoint = readEndpoint(first.messageEndpoint, base);
  if (messageEndpoint !== undefined)
    return { kind: 'opened', messageEndpoint, response: continueAfter(opened, first.remaining) };
  opened.abort();
  return PROTOCOL;
}

function openingErrorOf(opened: UpstreamResponse): ForwardError | undefined {
  const { status } = opened;
  if (status === 401 || status === 403) return 'upstream-credentials';
  if (status === 429 || status >= 500) return 'upstream-unavailable';
  return isEventStream(opened) ? undefined : 'upstream-protocol';
}

async function readFirstEvent(response: UpstreamResponse): Promise<FirstEvent | ForwardError> {
  const lines = byLine(response);
  let bytes = 0;
  const reader = new EventReader(lines, {
    maxEventBytes: MAX_FIRST_EVENT_BYTES,
    count(more) {
      bytes += more;
      return bytes > MAX_OPENING_BYTES ? 'too-large' : undefined;
    },
    upstream: '',
    loopScheduler: UNSCHEDULED,
  });
  for (;;) {
    const events = await reader.read();
    if (typeof events === 'string') return forwardErrorOfEnd(events);
    const event = events.find((one) => one.kind === 'message');
    if (event?.kind !== 'message') continue;
    if (event.event === 'endpoint')
      return { messageEndpoint: event.data, remaining: lines.remaining() };
    response.abort();
    return 'upstream-protocol';
  }
}

/** Cuts the chunks behind each line, so that what follows the first event is left for the checks of the stream. */
function byLine(response: UpstreamResponse): ByteSource & { remaining(): Uint8Array } {
  let unread: Uint8Array = new Uint8Array();

  function nextLine(): Uint8Array {
    let end = 0;
    while (end < unread.length && unread[end] !== LF && unread[end] !== CR) end += 1;
    const line = unread.subarray(0, end + 1);
    unread = unread.subarray(end + 1);
    return line;
  }

  function startChunk(chunk: Awaited<ReturnType<ByteSource['next']>>): typeof chunk {
    if (typeof chunk !== 'object') return chunk;
    unread = chunk;
    return nextLine();
  }

  return {
    next() {
      if (unread.length > 0) return nextLine();
      const pulled = response.next();
      return pulled instanceof Promise ? pulled.then(startChunk) : startChunk(pulled);
    },
    remaining: () => unread,
    release: () => response.release(),
    abort: () => response.abort(),
  };
}

function continueAfter(response: UpstreamResponse, remaining: Uint8Array): UpstreamResponse {
  let unread: Uint8Array | undefined = remaining.length > 0 ? remaining : undefined;
  return amendResponse(response, {
    next() {
      if (unread === undefined) return response.next();
      const chunk = unread;
      unread = undefined;
      return Promise.resolve(chunk);
    },
  });
}
