// Yields the messages of an upstream's response one at a time and in order, from a JSON body or an event
// stream. Used by the protocol translations and by discovery. Parses and frames messages but does not check
// them.
// Source: MCP 2025-11-25 and 2026-07-28, transports, sending messages to the server.

import type { ReadOutcome } from '../protocol/json/incremental.js';
import { MAX_JSON_DEPTH, readJson, readJsonText } from '../protocol/json/json.js';
import type { Json } from '../protocol/jsonrpc.js';

import { createSseFramer, type SseError, type SseEvent } from '../protocol/sse.js';
import {
  type ForwardError,
  joinPieces,
  type ResponseBody,
  type UpstreamResponse,
} from '../protocol/transport.js';

/** Parses messages fairly: the event loop and the parser thread are shared with all requests in flight. */
export type MessageReader = {
  /** Parses synchronously unless the message is large. Never rejects. */
  read(source: Uint8Array | string): ReadOutcome | Promise<ReadOutcome>;
  /** Records time spent on the event loop. */
  spend(ms: number): void;
  /** Resolves when the next step may run; `undefined` if it may run at once. */
  turn(): Promise<void> | undefined;
};

const CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 100_000 };

/** Parses synchronously on the calling thread, under the usual caps and without fairness. */
export const DIRECT_MESSAGE_READER: MessageReader = {
  read: (source) =>
    typeof source === 'string' ? readJsonText(source, CAPS) : readJson(source, CAPS),
  spend: () => undefined,
  turn: () => undefined,
};

/** Runs each step when it is its turn on the event loop, and records the time it took. */
export async function runInTurn<T>(
  { spend, turn }: MessageReader,
  all: Iterable<T>,
  step: (one: T) => void,
): Promise<void> {
  for (const one of all) {
    const wait = turn();
    if (wait !== undefined) await wait;
    const startedMs = performance.now();
    step(one);
    spend(performance.now() - startedMs);
  }
}

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
  | { readonly kind: 'fault'; readonly reason: ForwardError };

/** True if the response is a successful event stream. */
export function isStream(response: UpstreamResponse): boolean {
  return mediaType(response) === 'text/event-stream' && response.status === 200;
}

/** True if the body is one JSON message. */
export function isJson(response: UpstreamResponse): boolean {
  return mediaType(response) === 'application/json';
}

/** The media type of a response, without its parameters. */
function mediaType({ headers }: UpstreamResponse): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Yields messages as they arrive. Ending the iteration early releases the response. */
export async function* readMessages(
  response: UpstreamResponse,
  { maxResponseBytes, requestTimeoutMs, messageReader = DIRECT_MESSAGE_READER }: ReadBounds,
): AsyncGenerator<InboundItem, void> {
  if (isStream(response)) yield* readEvents(response, maxResponseBytes, messageReader);
  else if (isJson(response)) {
    const body = await response.readBody(maxResponseBytes, requestTimeoutMs);
    response.release();
    yield await parseBody(body, messageReader);
  } else {
    response.release();
    yield errorItem('upstream-protocol');
  }
}

function errorItem(reason: ForwardError): InboundItem {
  return { kind: 'fault', reason };
}

/** Parses a complete body as one message. */
export async function parseBody(
  bytes: ResponseBody,
  { read }: MessageReader = DIRECT_MESSAGE_READER,
): Promise<InboundItem> {
  if (typeof bytes === 'string')
    return errorItem(bytes === 'too-large' ? 'upstream-protocol' : bytes);
  const reading = await read(joinPieces(bytes));
  if (!reading.ok)
    return errorItem(reading.error === 'overloaded' ? 'overloaded' : 'upstream-protocol');
  return { kind: 'message', text: reading.text, value: reading.value };
}

async function* readEvents(
  response: UpstreamResponse,
  maxBytes: number,
  messageReader: MessageReader,
): AsyncGenerator<InboundItem, void> {
  const framer = createSseFramer({ maxEventBytes: maxBytes });
  try {
    for (;;) {
      const chunk = await response.next();
      if (chunk === undefined) return;
      if (typeof chunk === 'string') return yield errorItem(chunk);
      const reserved = response.hold?.(framer.unfinishedBytes() + chunk.byteLength);
      if ((await reserved) === 'overloaded') return yield errorItem('overloaded');
      yield* framed(framer.push(chunk), messageReader);
      void response.hold?.(framer.unfinishedBytes());
    }
  } finally {
    // Has no effect if the response has ended.
    response.release();
  }
}

async function* framed(
  events: readonly SseEvent[] | SseError,
  messageReader: MessageReader,
): AsyncGenerator<InboundItem, void> {
  if ('error' in events) return yield errorItem('upstream-protocol');
  for (const event of events) {
    const turn = messageReader.turn();
    if (turn !== undefined) await turn;
    const startedMs = performance.now();
    const inbound = inboundOf(event, messageReader);
    messageReader.spend(performance.now() - startedMs);
    const delayedItem = inbound instanceof Promise ? await inbound : inbound;
    if (delayedItem !== undefined) yield delayedItem;
  }
}

function inboundOf(
  event: SseEvent,
  { read }: MessageReader,
): InboundItem | undefined | Promise<InboundItem> {
  if (event.kind === 'comment') return { kind: 'alive' };
  if (event.kind !== 'message' || event.event !== 'message' || event.data === '') return undefined;
  const { data } = event;
  const reading = read(data);
  return reading instanceof Promise
    ? reading.then((late) => messageOf(data, late))
    : messageOf(data, reading);
}

/** Text that cannot be parsed is passed on all the same; the check of the message refuses it. */
function messageOf(text: string, reading: ReadOutcome): InboundItem {
  return { kind: 'message', text, value: reading.ok ? reading.value : undefined };
}

/** A quick test whether a complete body may be an input-required result; false positives are possible. */
export function mentionsInputRequired(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes).includes('input_required');
}
