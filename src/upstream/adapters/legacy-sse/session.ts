// One session over a legacy SSE stream, with the behavior of a session-era server: routes each message on the
// single stream to the request it belongs to, and everything else to the session's own stream. Does not check
// the messages.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports.

import { INTERNAL_ERROR } from '../../../protocol/errors.js';
import type { Json } from '../../../protocol/jsonrpc.js';
import {
  isJsonRpcId,
  isObject,
  type JsonObject,
  type RequestId,
} from '../../../protocol/jsonrpc.js';
import type { ForwardError, UpstreamResponse } from '../../../protocol/transport.js';
import { type ReadBounds, readMessages } from '../../message-reader.js';
import type { OwnerBufferBudget } from './event-buffer.js';
import { type BufferReader, createEventBuffer, type EventBuffer } from './event-buffer.js';

export type LegacySseSessionSettings = {
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
export type PendingRequest = { readonly id: RequestId; readonly token: RequestId | undefined };

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
  const createBuffer = (
    overflow: 'drop-oldest' | 'fail',
    key: string,
    maxBytes: number,
  ): EventBuffer => createEventBuffer({ key, maxBytes, budget, idleMs, overflow, now });
  const sessionBuffer = createBuffer('drop-oldest', SESSION_BUFFER_KEY, MAX_SESSION_BUFFER_BYTES);

  function route(text: string, value: Json | undefined): void {
    // Text that is not valid JSON is refused by the check of the stream it is put on.
    if (isObject(value)) routeMessage(text, value);
    else (solePendingBuffer() ?? sessionBuffer).put(text);
  }

  function routeMessage(text: string, { id, method, params }: JsonObject): void {
    if (typeof method !== 'string') routeResponse(id, text);
    else if (isJsonRpcId(id)) routeServerRequest(id, method, text);
    else routeNotification(method, params, text);
  }

  /**
   * Without a request, a notification goes to the session's own stream if that is read, else to the only
   * request.
   */
  function routeNotification(method: string, params: Json | undefined, text: string): void {
    const eventBuffer =
      method === 'notifications/progress' ? bufferOfProgressToken(params) : undefined;
    (
      eventBuffer ?? (sessionBuffer.isRead ? sessionBuffer : (solePendingBuffer() ?? sessionBuffer))
    ).put(text);
  }

  function routeResponse(id: Json | undefined, text: string): void {
    const found = isJsonRpcId(id) ? pending.get(keyOf(id)) : undefined;
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
    else if (eventBuffer === undefined)
      settings.sendMessage({ jsonrpc: '2.0', id, error: NO_SINGLE_REQUEST });
    else eventBuffer.put(text);
  }

  function solePendingBuffer(): EventBuffer | undefined {
    if (pending.size !== 1) return undefined;
    const [only] = pending.values();
    return only?.eventBuffer;
  }

  function bufferOfProgressToken(params: Json | undefined): EventBuffer | undefined {
    const token = isObject(params) ? params['progressToken'] : undefined;
    if (!isJsonRpcId(token)) return undefined;
    for (const { request, eventBuffer } of pending.values())
      if (request.token === token) return eventBuffer;
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
      if (lastEventId === undefined)
        return sessionBuffer.read(sessionBuffer.firstUnread, { isPrimed });
      const [, key = '', after = ''] = EVENT_ID.exec(lastEventId) ?? [];
      const eventBuffer = key === SESSION_BUFFER_KEY ? sessionBuffer : eventBuffers.get(key);
      return eventBuffer?.read(Number(after), { isPrimed: false });
    },
    isUsed(restMs) {
      const isIdleBuffer = ({ isRead, usedAtMs: at }: EventBuffer): boolean =>
        !isRead && now() - at >= restMs;
      for (const eventBuffer of [...eventBuffers.values()])
        if (isIdleBuffer(eventBuffer)) drop(eventBuffer);
      return pending.size > 0 || sessionBuffer.isRead || now() - usedAtMs < restMs;
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
