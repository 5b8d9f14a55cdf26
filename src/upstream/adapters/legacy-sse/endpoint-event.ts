// Waits for the `endpoint` event of a legacy SSE stream, which must come first and name a URL of the
// upstream's own origin. Everything after it is passed on unread. Never posts anything.
// Source: MCP 2024-11-05, transports, HTTP with SSE; docs/contract.md §3 (an endpoint event is of its own
// origin).

import { type ByteSource, EventReader, isEventStream } from '../../../protocol/sse-reader.js';
import type {
  ForwardError,
  ForwardOutcome,
  LegacySseOutcome,
  UpstreamResponse,
} from '../../../protocol/transport.js';
import { amendResponse } from '../../../protocol/transport.js';
import { readEndpoint } from '../../../protocol/versions/legacy-sse.js';
import { forwardErrorOfEnd, UNSCHEDULED } from '../../message-reader.js';

/** The first event contains only a URL. */
const MAX_FIRST_EVENT_BYTES = 8 * 1024;
/** The first event and all comments before it. */
const MAX_OPENING_BYTES = 64 * 1024;
const LF = 10;
const CR = 13;

const PROTOCOL = { kind: 'error', reason: 'upstream-protocol' } as const;

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
  if (opened.kind === 'error') return opened;
  const refused = openingErrorOf(opened);
  if (refused !== undefined) {
    opened.release();
    return { kind: 'error', reason: refused };
  }
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    opened.abort();
  }, timeoutMs);
  const first = await readFirst(opened);
  clearTimeout(timer);
  if (isLate) return { kind: 'error', reason: 'upstream-timeout' };
  if (typeof first === 'string') return { kind: 'error', reason: first };
  const messageEndpoint = readEndpoint(first.messageEndpoint, base);
  if (messageEndpoint !== undefined)
    return { kind: 'channel', messageEndpoint, response: goOn(opened, first.rest) };
  opened.abort();
  return PROTOCOL;
}

function openingErrorOf(opened: UpstreamResponse): ForwardError | undefined {
  const { status } = opened;
  if (status === 401 || status === 403) return 'upstream-credentials';
  if (status === 429 || status >= 500) return 'upstream-unavailable';
  return isEventStream(opened) ? undefined : 'upstream-protocol';
}

async function readFirst(response: UpstreamResponse): Promise<First | ForwardError> {
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
    if (event.event === 'endpoint') return { messageEndpoint: event.data, rest: lines.rest() };
    response.abort();
    return 'upstream-protocol';
  }
}

/** Cuts the chunks behind each line, so that what follows the first event is left for the checks of the stream. */
function byLine(response: UpstreamResponse): ByteSource & { rest(): Uint8Array } {
  let left: Uint8Array = new Uint8Array();

  function nextLine(): Uint8Array {
    let end = 0;
    while (end < left.length && left[end] !== LF && left[end] !== CR) end += 1;
    const line = left.subarray(0, end + 1);
    left = left.subarray(end + 1);
    return line;
  }

  function begin(chunk: Awaited<ReturnType<ByteSource['next']>>): typeof chunk {
    if (typeof chunk !== 'object') return chunk;
    left = chunk;
    return nextLine();
  }

  return {
    next() {
      if (left.length > 0) return nextLine();
      const pulled = response.next();
      return pulled instanceof Promise ? pulled.then(begin) : begin(pulled);
    },
    rest: () => left,
    release: () => response.release(),
    abort: () => response.abort(),
  };
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
