// The messages in an upstream's response. Yields them one at a time and in order, from a JSON body or an event stream:
// parses and frames them but does not check them. Also builds upstream responses in the gateway itself: for
// requests that have no equivalent in the upstream's era, and for streams that are translated. They are checked like
// any other response. Used by the protocol translations and by discovery.
// Source: MCP 2025-11-25 and 2026-07-28, transports, sending messages to the server.

import { mediaType } from '../protocol/headers.js';
import type { LoopScheduler, ReadOutcome } from '../protocol/json/incremental.js';
import { decodeUtf8, MAX_JSON_DEPTH } from '../protocol/json/json.js';
import { renderJson } from '../protocol/json/request-ids.js';
import type { Json, RequestId } from '../protocol/jsonrpc.js';
import { readMended } from '../protocol/lone-surrogates.js';
import { readServerJson } from '../protocol/odd-items.js';
import {
  EventReader,
  encodeSseComment,
  encodeSseMessage,
  isEventStream,
  type ReadEnd,
  type SseEvent,
} from '../protocol/sse.js';
import { type ForwardError, joinPieces, type ResponseBody, type UpstreamResponse } from '../protocol/transport.js';

/** Parses messages fairly: the event loop and the parser thread are shared with all requests in flight. */
export type MessageReader = {
  /** Parses synchronously unless the message is large. Never rejects. */
  read(source: Uint8Array | string): ReadOutcome | Promise<ReadOutcome>;
  readonly upstream: string;
  readonly loopScheduler: LoopScheduler;
};

const CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 100_000 };

/** For what is too short to delay anything else on the event loop. */
export const UNSCHEDULED: LoopScheduler = {
  recordTime: (sinceMs) => sinceMs,
  waitForTurn: () => undefined,
  pace: () => undefined,
};

/** Parses synchronously on the calling thread, under the usual caps and without fairness. */
export const DIRECT_MESSAGE_READER: MessageReader = {
  read: (source) => readServerJson(source, CAPS),
  upstream: '',
  loopScheduler: UNSCHEDULED,
};

/**
 * Maximum bytes of one message, the time limit for a complete body, and the reader
 * ({@link DIRECT_MESSAGE_READER} if absent).
 */
export type ReadBounds = {
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly messageReader?: MessageReader | undefined;
};

/** `value` is absent if the text is not JSON that every parser reads alike. An error is the last item. */
export type InboundItem =
  | { readonly kind: 'message'; readonly text: string; readonly value: Json | undefined }
  | { readonly kind: 'alive' }
  | { readonly kind: 'error'; readonly reason: ForwardError };

/** True if the body is one JSON message. */
export function isJson({ headers }: UpstreamResponse): boolean {
  return mediaType(headers['content-type']) === 'application/json';
}

/** Yields messages as they arrive. Ending the iteration early releases the response. */
export async function* readMessages(
  response: UpstreamResponse,
  { maxResponseBytes, requestTimeoutMs, messageReader = DIRECT_MESSAGE_READER }: ReadBounds,
): AsyncGenerator<InboundItem, void> {
  try {
    if (isEventStream(response)) yield* readEvents(response, maxResponseBytes, messageReader);
    else if (isJson(response)) {
      const body = await response.readBody(maxResponseBytes, requestTimeoutMs);
      yield await parseBody(body, messageReader);
    } else yield errorItem('upstream-protocol');
  } finally {
    // Has no effect on a stream that has ended.
    response.release();
  }
}

/** Why a message did not come, if its stream ended like this; exceeding a limit violates the protocol. */
export function forwardErrorOfEnd(end: ReadEnd): ForwardError {
  switch (end) {
    case 'ended':
    case 'stopped':
    case 'too-large':
    case 'rate-limited':
      return 'upstream-protocol';
    case 'overloaded':
    case 'upstream-unavailable':
    case 'upstream-timeout':
    case 'upstream-protocol':
    case 'upstream-credentials':
      return end;
  }
}

function errorItem(end: Exclude<ReadEnd, 'ended'>): InboundItem {
  return { kind: 'error', reason: forwardErrorOfEnd(end) };
}

/** Parses a complete body. */
export async function parseBody(
  bytes: ResponseBody,
  { read }: MessageReader = DIRECT_MESSAGE_READER,
): Promise<InboundItem> {
  if (typeof bytes === 'string') return errorItem(bytes);
  const body = joinPieces(bytes);
  const reading = await readMended(body, read);
  if (!reading.ok) return errorItem(reading.error === 'overloaded' ? 'overloaded' : 'upstream-protocol');
  // The check of the message mends it again, and records that.
  const text = reading.mended === undefined ? reading.text : (decodeUtf8(body) ?? '');
  return { kind: 'message', text, value: reading.value };
}

async function* readEvents(
  response: UpstreamResponse,
  maxEventBytes: number,
  messageReader: MessageReader,
): AsyncGenerator<InboundItem, void> {
  const { upstream, loopScheduler } = messageReader;
  const reader = new EventReader(response, { maxEventBytes, upstream, loopScheduler });
  for (;;) {
    const events = await reader.read();
    if (events === 'ended') return;
    if (typeof events === 'string') return yield errorItem(events);
    yield* parseInTurn(events, messageReader);
    reader.finishChunk();
  }
}

async function* parseInTurn(
  events: readonly SseEvent[],
  messageReader: MessageReader,
): AsyncGenerator<InboundItem, void> {
  const { upstream, loopScheduler } = messageReader;
  for (const event of events) {
    const turn = loopScheduler.waitForTurn(upstream);
    if (turn !== undefined) await turn;
    const startedMs = performance.now();
    const inbound = inboundOf(event, messageReader);
    loopScheduler.recordTime(startedMs);
    const delayedItem = inbound instanceof Promise ? await inbound : inbound;
    if (delayedItem !== undefined) yield delayedItem;
  }
}

function inboundOf(event: SseEvent, { read }: MessageReader): InboundItem | undefined | Promise<InboundItem> {
  if (event.kind === 'comment') return { kind: 'alive' };
  if (event.kind !== 'message' || event.event !== 'message' || event.data === '') return undefined;
  const { data } = event;
  const reading = readMended(data, read);
  return reading instanceof Promise ? reading.then((resolved) => messageOf(data, resolved)) : messageOf(data, reading);
}

/** Text that cannot be parsed is passed on all the same; the check of the message refuses it. */
function messageOf(text: string, reading: ReadOutcome): InboundItem {
  return reading.ok
    ? { kind: 'message', text: reading.text, value: reading.value }
    : { kind: 'message', text, value: undefined };
}

/** A quick test whether a complete body may be an input-required result; false positives are possible. */
export function mentionsInputRequired(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).includes('input_required');
}

/** An item to send: a message as JSON text, a keep-alive, or the error that ends the stream. */
export type OutboundItem =
  | { readonly kind: 'message'; readonly text: string }
  | { readonly kind: 'alive' }
  | { readonly kind: 'error'; readonly reason: ForwardError };

/** The items of one response, in order. */
export type OutboundItems = AsyncGenerator<OutboundItem, void>;

const encoder = new TextEncoder();
const NO_BYTES = new Uint8Array();

/** A complete response, with a JSON body if there is one. */
export function bodyResponse(status: number, body: Uint8Array | string = ''): UpstreamResponse {
  const bytes = typeof body === 'string' ? encoder.encode(body) : body;
  let isRead = false;
  return {
    kind: 'response',
    status,
    headers: bytes.byteLength === 0 ? {} : { 'content-type': 'application/json' },
    readBody: (maxBytes) => Promise.resolve(bytes.byteLength > maxBytes ? 'too-large' : bytes),
    next() {
      const chunk = isRead || bytes.byteLength === 0 ? undefined : bytes;
      isRead = true;
      return Promise.resolve(chunk);
    },
    release: () => undefined,
    abort: () => undefined,
  };
}

/** An empty result of the gateway's own. */
export function resultResponse(id: RequestId): UpstreamResponse {
  return bodyResponse(200, renderJson({ jsonrpc: '2.0', id, result: {} }));
}

/** 202: a notification, or the response to a server request, was accepted. */
export function acceptedResponse(): UpstreamResponse {
  return bodyResponse(202);
}

/**
 * An event stream that is produced as fast as it is read. `source` is released or aborted with it, also behind the error
 * that ends it: a conversation that is not returned to after its last item would never clean up.
 */
export function streamResponse(
  items: OutboundItems,
  source: Pick<UpstreamResponse, 'release' | 'abort'>,
): UpstreamResponse {
  let isOver = false;
  let isReleased = false;
  const readBatch = createBatchReader(items);
  const leave = (disposal: 'release' | 'abort'): void => {
    if (disposal === 'release' && isReleased) return;
    isOver = true;
    isReleased = true;
    source[disposal]();
    void items.return(undefined).catch(() => undefined);
  };
  return {
    kind: 'response',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    readBody: () => Promise.resolve(NO_BYTES),
    async next() {
      if (isOver) return undefined;
      const outbound = await readBatch();
      if (typeof outbound === 'string' && outbound !== '') return encoder.encode(outbound);
      isOver = true;
      return outbound === undefined || typeof outbound === 'string' ? undefined : outbound.reason;
    },
    release: () => leave('release'),
    abort: () => leave('abort'),
  };
}

type ErrorItem = Extract<OutboundItem, { readonly kind: 'error' }>;

/**
 * Combines all items that are available within one turn of the event loop into one chunk. A later read
 * returns how the conversation ends: undefined or an error.
 */
function createBatchReader(items: OutboundItems): () => Promise<string | ErrorItem | undefined> {
  let pending: Promise<OutboundItem | undefined> | undefined;

  /** The next item; it stays pending until it is consumed. */
  function nextItem(): Promise<OutboundItem | undefined> {
    pending ??= items.next().then(({ value }) => value ?? undefined);
    return pending;
  }

  /** All items that follow within this turn; later items and the end are left for the next read. */
  async function readAvailable(): Promise<string> {
    const turn = endOfTurn();
    let text = '';
    for (;;) {
      // A rejection is reported by the next read, after the items that preceded it.
      const outbound = await Promise.race([nextItem(), turn]).catch(() => TURN_ENDED);
      if (outbound === undefined || outbound.kind === 'later' || outbound.kind === 'error') return text;
      pending = undefined;
      text += encodeOutbound(outbound);
    }
  }

  return async () => {
    const outbound = await nextItem();
    if (outbound === undefined || outbound.kind === 'error') return outbound;
    pending = undefined;
    return encodeOutbound(outbound) + (await readAvailable());
  };
}

const TURN_ENDED = { kind: 'later' } as const;

function endOfTurn(): Promise<typeof TURN_ENDED> {
  return new Promise((resolve) => {
    setImmediate(() => resolve(TURN_ENDED));
  });
}

function encodeOutbound(outbound: Exclude<OutboundItem, { readonly kind: 'error' }>): string {
  switch (outbound.kind) {
    case 'alive':
      return encodeSseComment('');
    case 'message':
      return encodeSseMessage(outbound.text);
  }
}
