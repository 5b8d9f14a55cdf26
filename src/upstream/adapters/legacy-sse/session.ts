// One session over a legacy SSE stream, with the behavior of a session-era server: routes each message on the
// single stream to the request it belongs to, and everything else to the session's own stream. What has come is
// buffered until it is read and for as long as it may be read again, within bounds per buffer, per caller and per
// upstream. Does not check the messages.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports, resumability.

import { isObject, isRequestId, type Json, type JsonObject, type RequestId } from '../../../protocol/jsonrpc.js';
import { INTERNAL_ERROR } from '../../../protocol/responses.js';
import type { ForwardError, UpstreamResponse } from '../../../protocol/transport.js';
import { type OutboundItem, type OutboundItems, type ReadBounds, readMessages } from '../../response-messages.js';

type LegacySseSessionSettings = {
  /** Where messages are posted. */
  readonly messageEndpoint: string;
  /** The caller whose quota it counts against. */
  readonly owner: string | undefined;
  readonly response: UpstreamResponse;
  readonly bounds: ReadBounds;
  readonly idleMs: number;
  readonly budget: OwnerBufferBudget;
  readonly now: () => number;
  /** Sends a message of the gateway's own to the server. */
  readonly sendMessage: (message: JsonObject) => void;
  /** Called once, when the stream has ended. */
  readonly onEnd: () => void;
};

/** A request under way. */
type PendingRequest = { readonly id: RequestId; readonly token: RequestId | undefined };

/** Why a request cannot be sent. */
export type SendError = 'id-in-use' | 'too-many';

export type LegacySseSession = {
  readonly messageEndpoint: string;
  readonly owner: string | undefined;
  /** The owner's buffer budget. */
  readonly budget: OwnerBufferBudget;
  /** Registers a request before it is sent, so that its response cannot arrive too early. */
  registerRequest(request: PendingRequest): EventBuffer | SendError;
  /** Discards the response to this request, which is no longer wanted. */
  cancel(id: RequestId): void;
  /** Discards this buffer. */
  drop(eventBuffer: EventBuffer): void;
  /** Keeps a fully delivered buffer for a while, among the newest, for a reader that has not received it. */
  keepDelivered(eventBuffer: EventBuffer): void;
  /** Reads the session's own stream, or resumes a stream after an event. */
  read(lastEventId: string | undefined, isPrimed: boolean): BufferReader | undefined;
  /** Drops buffers that were not read again; true while the session is in use. */
  isUsed(maxIdleMs: number): boolean;
  /** True while no request is pending and the session's own stream is not being read. */
  readonly isIdle: boolean;
  /** True once the stream has ended: no request will get a response. */
  readonly isOver: boolean;
  close(): void;
};

/** Pending requests per session. */
const MAX_PENDING = 256;
/** Size of the session's own buffer, which may have no reader. */
const MAX_SESSION_BUFFER_BYTES = 256 * 1024;
/** Responses per session that are kept after delivery, and the size of the largest. */
const MAX_KEPT = 8;
const MAX_KEPT_BYTES = 256 * 1024;
const SESSION_BUFFER_KEY = '0';
const EVENT_ID = /^([0-9]{1,15})-([0-9]{1,15})$/;

const NO_SINGLE_REQUEST = {
  code: INTERNAL_ERROR,
  message: 'The client cannot be determined: the session has no pending request or more than one.',
};

type Pending = { readonly request: PendingRequest; readonly eventBuffer: EventBuffer };

/** Creates the session and starts reading the stream. */
export function createLegacySseSession(settings: LegacySseSessionSettings): LegacySseSession {
  const { response, bounds, idleMs, budget, now } = settings;
  const pending = new Map<string, Pending>();
  const eventBuffers = new Map<string, EventBuffer>();
  let deliveredBuffers: EventBuffer[] = [];
  let lastKey = 0;
  let usedAtMs = now();
  let isOver = false;
  const createBuffer = (overflow: 'drop-oldest' | 'fail', key: string, maxBytes: number): EventBuffer =>
    createEventBuffer({ key, maxBytes, budget, idleMs, overflow, now });
  const sessionBuffer = createBuffer('drop-oldest', SESSION_BUFFER_KEY, MAX_SESSION_BUFFER_BYTES);

  function route(text: string, value: Json | undefined): void {
    // Text that is not valid JSON is refused by the check of the stream it is put on.
    if (isObject(value)) routeMessage(text, value);
    else (solePendingBuffer() ?? sessionBuffer).put(text);
  }

  function routeMessage(text: string, { id, method, params }: JsonObject): void {
    if (typeof method !== 'string') routeResponse(id, text);
    else if (isRequestId(id)) routeServerRequest(id, method, text);
    else routeNotification(method, params, text);
  }

  /**
   * Without a request, a notification goes to the session's own stream if that is read, else to the only
   * request.
   */
  function routeNotification(method: string, params: Json | undefined, text: string): void {
    const eventBuffer = method === 'notifications/progress' ? bufferOfProgressToken(params) : undefined;
    (eventBuffer ?? (sessionBuffer.isRead ? sessionBuffer : (solePendingBuffer() ?? sessionBuffer))).put(text);
  }

  function routeResponse(id: Json | undefined, text: string): void {
    const found = isRequestId(id) ? pending.get(keyOf(id)) : undefined;
    // A response to no request: the check of the session's own stream drops and records it.
    const eventBuffer = found?.eventBuffer ?? sessionBuffer;
    eventBuffer.put(text);
    if (found === undefined) return;
    pending.delete(keyOf(found.request.id));
    eventBuffer.end('complete');
  }

  /**
   * A server request belongs to the only pending call. If that is ambiguous, the own stream must be being
   * read.
   */
  function routeServerRequest(id: RequestId, method: string, text: string): void {
    const eventBuffer = solePendingBuffer() ?? (sessionBuffer.isRead ? sessionBuffer : undefined);
    if (method === 'ping') settings.sendMessage({ jsonrpc: '2.0', id, result: {} });
    else if (eventBuffer === undefined) settings.sendMessage({ jsonrpc: '2.0', id, error: NO_SINGLE_REQUEST });
    else eventBuffer.put(text);
  }

  function solePendingBuffer(): EventBuffer | undefined {
    if (pending.size !== 1) return undefined;
    const [only] = pending.values();
    return only?.eventBuffer;
  }

  function bufferOfProgressToken(params: Json | undefined): EventBuffer | undefined {
    const token = isObject(params) ? params['progressToken'] : undefined;
    if (!isRequestId(token)) return undefined;
    for (const { request, eventBuffer } of pending.values()) if (request.token === token) return eventBuffer;
    return undefined;
  }

  function drop(eventBuffer: EventBuffer): void {
    for (const [key, entry] of pending) if (entry.eventBuffer === eventBuffer) pending.delete(key);
    eventBuffers.delete(eventBuffer.key);
    deliveredBuffers = deliveredBuffers.filter((one) => one !== eventBuffer);
    eventBuffer.drop();
  }

  function endStream(why: ForwardError): void {
    isOver = true;
    for (const { eventBuffer } of pending.values()) eventBuffer.end(why);
    pending.clear();
    sessionBuffer.end(why);
    settings.onEnd();
  }

  async function readStream(): Promise<void> {
    let why: ForwardError = 'upstream-unavailable';
    for await (const inbound of readMessages(response, bounds)) {
      if (inbound.kind === 'message') route(inbound.text, inbound.value);
      else if (inbound.kind === 'error') why = inbound.reason;
    }
    endStream(why);
  }
  void readStream();

  return {
    messageEndpoint: settings.messageEndpoint,
    owner: settings.owner,
    budget,
    registerRequest(request) {
      const key = keyOf(request.id);
      if (pending.has(key)) return 'id-in-use';
      if (pending.size >= MAX_PENDING) return 'too-many';
      lastKey += 1;
      const eventBuffer = createBuffer('fail', String(lastKey), bounds.maxResponseBytes);
      pending.set(key, { request, eventBuffer });
      eventBuffers.set(eventBuffer.key, eventBuffer);
      usedAtMs = now();
      return eventBuffer;
    },
    cancel(id) {
      const found = pending.get(keyOf(id));
      if (found !== undefined) drop(found.eventBuffer);
    },
    drop,
    keepDelivered(eventBuffer) {
      if (eventBuffer.bytes > MAX_KEPT_BYTES || budget.isHalfUsed) return drop(eventBuffer);
      deliveredBuffers.push(eventBuffer);
      const oldest = deliveredBuffers.length > MAX_KEPT ? deliveredBuffers.shift() : undefined;
      if (oldest !== undefined) drop(oldest);
    },
    read(lastEventId, isPrimed) {
      usedAtMs = now();
      if (lastEventId === undefined) return sessionBuffer.read(sessionBuffer.firstUnread, { isPrimed });
      const [, key = '', after = ''] = EVENT_ID.exec(lastEventId) ?? [];
      const eventBuffer = key === SESSION_BUFFER_KEY ? sessionBuffer : eventBuffers.get(key);
      return eventBuffer?.read(Number(after), { isPrimed: false });
    },
    isUsed(maxIdleMs) {
      const isIdleBuffer = ({ isRead, usedAtMs: at }: EventBuffer): boolean => !isRead && now() - at >= maxIdleMs;
      for (const eventBuffer of [...eventBuffers.values()]) if (isIdleBuffer(eventBuffer)) drop(eventBuffer);
      return pending.size > 0 || sessionBuffer.isRead || now() - usedAtMs < maxIdleMs;
    },
    get isIdle() {
      return pending.size === 0 && !sessionBuffer.isRead;
    },
    get isOver() {
      return isOver;
    },
    close() {
      response.abort();
      for (const eventBuffer of [...eventBuffers.values()]) drop(eventBuffer);
      sessionBuffer.drop();
    },
  };
}

/** The ids 1 and "1" are different (JSON-RPC 2.0 §4). */
function keyOf(id: RequestId): string {
  return JSON.stringify(id);
}

/** The budget shared by all buffers of an upstream. */
export type BufferBudget = { bytesLeft: number };

export type EventBufferSettings = {
  /** The prefix of its event ids. */
  readonly key: string;
  readonly maxBytes: number;
  readonly budget: BufferBudget;
  /** The longest silence that a reader waits through. */
  readonly idleMs: number;
  /**
   * When full, `drop-oldest` drops the oldest messages; `fail` drops only read ones, and fails if that is not
   * enough.
   */
  readonly overflow: 'drop-oldest' | 'fail';
  readonly now: () => number;
};

/** One reading. It ends when another begins or when its reader leaves. */
export type BufferReader = { readonly items: OutboundItems; leave(): void };

export type EventBuffer = {
  readonly key: string;
  put(text: string): void;
  /** Ends the buffer, complete or with an error. Only the first end counts. */
  end(how: 'complete' | ForwardError): void;
  /** Reads from the message after the `after`-th; `undefined` if that is no longer buffered. */
  read(after: number, how: { readonly isPrimed: boolean }): BufferReader | undefined;
  /** The number of messages before the first unread one. */
  readonly firstUnread: number;
  /** The buffered size, as UTF-8. */
  readonly bytes: number;
  readonly isRead: boolean;
  /** When it was last read, or a message last arrived. */
  readonly usedAtMs: number;
  /** Drops everything buffered. */
  drop(): void;
};

/**
 * Buffers what a legacy SSE server has sent for one request, or for no request, until it is read and for as long as it
 * may be read again. The server's stream has no event ids, so they are generated here.
 */
export function createEventBuffer(settings: EventBufferSettings): EventBuffer {
  const { key, maxBytes, budget, idleMs, overflow, now } = settings;
  const buffered: { readonly text: string; readonly bytes: number }[] = [];
  /** Messages dropped before the first of `buffered`. */
  let droppedCount = 0;
  let bytes = 0;
  let deliveredCount = 0;
  let end: 'complete' | ForwardError | undefined;
  let currentReader = 0;
  let isRead = false;
  let usedAtMs = now();
  let wake: () => void = () => undefined;

  function reserve(more: number): void {
    bytes += more;
    budget.bytesLeft -= more;
  }

  function dropOldest(): void {
    const oldest = buffered.shift();
    droppedCount += 1;
    reserve(-(oldest?.bytes ?? 0));
  }

  function dropAll(): void {
    while (buffered.length > 0) dropOldest();
  }

  function isFull(): boolean {
    return bytes > maxBytes || budget.bytesLeft < 0;
  }

  function close(how: 'complete' | ForwardError): void {
    end ??= how;
    wake();
  }

  function leave(readerId: number): void {
    if (readerId !== currentReader) return;
    currentReader += 1;
    isRead = false;
    usedAtMs = now();
    wake();
  }

  /** True once something may have arrived; false after `idleMs` of silence. */
  function awaitMore(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), idleMs);
      wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** The item at a position; `complete` after the last one, `undefined` if more may follow. */
  function peek(position: { at: number }): OutboundItem | 'complete' | undefined {
    // Skips what has been dropped meanwhile.
    const at = Math.max(position.at, droppedCount);
    const text = buffered[at - droppedCount]?.text;
    if (text === undefined) return end === undefined || end === 'complete' ? end : errorItem(end);
    position.at = at + 1;
    deliveredCount = Math.max(deliveredCount, position.at);
    return { kind: 'message', text, eventId: `${key}-${position.at}` };
  }

  /** Waits for this reader's next item; `complete` if the reading is over. */
  async function nextFor(readerId: number, position: { at: number }): Promise<OutboundItem | 'complete'> {
    while (readerId === currentReader) {
      const found = peek(position);
      if (found !== undefined) return found;
      if (!(await awaitMore()) && readerId === currentReader) return errorItem('upstream-timeout');
    }
    return 'complete';
  }

  async function* deliver(readerId: number, after: number, isPrimed: boolean): OutboundItems {
    if (isPrimed) yield { kind: 'primed', eventId: `${key}-${after}` };
    const position = { at: after };
    for (;;) {
      const outbound = await nextFor(readerId, position);
      if (outbound === 'complete') return;
      yield outbound;
      if (outbound.kind === 'error') return;
    }
  }

  return {
    key,
    put(text) {
      if (end !== undefined) return;
      const size = Buffer.byteLength(text);
      buffered.push({ text, bytes: size });
      reserve(size);
      usedAtMs = now();
      const mayDropOldest = (): boolean =>
        buffered.length > 1 && (overflow === 'drop-oldest' || droppedCount < deliveredCount);
      while (isFull() && mayDropOldest()) dropOldest();
      if (isFull()) {
        dropAll();
        if (overflow === 'fail') close('upstream-protocol');
      }
      wake();
    },
    end: close,
    read(after, { isPrimed }) {
      if (after < droppedCount || after > droppedCount + buffered.length) return undefined;
      currentReader += 1;
      const readerId = currentReader;
      isRead = true;
      usedAtMs = now();
      wake();
      return { items: deliver(readerId, after, isPrimed), leave: () => leave(readerId) };
    },
    get firstUnread() {
      return Math.max(droppedCount, deliveredCount);
    },
    get bytes() {
      return bytes;
    },
    get isRead() {
      return isRead;
    },
    get usedAtMs() {
      return usedAtMs;
    },
    drop() {
      dropAll();
      close('upstream-unavailable');
    },
  };
}

function errorItem(reason: ForwardError): OutboundItem {
  return { kind: 'error', reason };
}

/**
 * One caller's part of the budget; what is taken from it is also taken from the total. A caller that reads
 * nothing, or never resumes, fills only its own quota and leaves capacity for others. Source:
 * docs/reference/state.md#sessions-on-any-replica.
 */
export type OwnerBufferBudget = BufferBudget & {
  /** True if half of it is used: messages already delivered are then no longer kept. */
  readonly isHalfUsed: boolean;
};

/** Creates the quota of one caller, of at most `maxBytes`. */
export function createOwnerBufferBudget(total: BufferBudget, maxBytes: number): OwnerBufferBudget {
  let ownLeft = maxBytes;
  const remainingBytes = (): number => Math.min(ownLeft, total.bytesLeft);
  return {
    get bytesLeft() {
      return remainingBytes();
    },
    set bytesLeft(next) {
      const change = next - remainingBytes();
      ownLeft += change;
      total.bytesLeft += change;
    },
    get isHalfUsed() {
      return ownLeft < maxBytes / 2;
    },
  };
}
