// One session over a legacy SSE stream, with the behavior of a session-era server: routes each message on the
// single stream to the request it belongs to, and everything else to the session's own stream. What has come is
// buffered until it is read, within bounds per buffer, per caller and per upstream. The server's stream has no event
// ids, so no stream can be resumed. Does not check the messages.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

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
  readonly budget: BufferBudget;
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
  readonly budget: BufferBudget;
  /** Registers a request before it is sent, so that its response cannot arrive too early. */
  registerRequest(request: PendingRequest): MessageBuffer | SendError;
  /** Discards the response to this request, which is no longer wanted. */
  cancel(id: RequestId): void;
  /** Discards this buffer. */
  drop(messageBuffer: MessageBuffer): void;
  /** Reads the session's own stream. */
  read(): BufferReader;
  /** True while the session is in use. */
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

const NO_SINGLE_REQUEST = {
  code: INTERNAL_ERROR,
  message: 'The client cannot be determined: the session has no pending request or more than one.',
};

type Pending = { readonly request: PendingRequest; readonly messageBuffer: MessageBuffer };

/** Creates the session and starts reading the stream. */
export function createLegacySseSession(settings: LegacySseSessionSettings): LegacySseSession {
  const { response, bounds, idleMs, budget, now } = settings;
  const pending = new Map<string, Pending>();
  let usedAtMs = now();
  let isOver = false;
  const createBuffer = (overflow: 'drop-oldest' | 'fail', maxBytes: number): MessageBuffer =>
    createMessageBuffer({ maxBytes, budget, idleMs, overflow });
  const sessionBuffer = createBuffer('drop-oldest', MAX_SESSION_BUFFER_BYTES);

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
    const messageBuffer = method === 'notifications/progress' ? bufferOfProgressToken(params) : undefined;
    (messageBuffer ?? (sessionBuffer.isRead ? sessionBuffer : (solePendingBuffer() ?? sessionBuffer))).put(text);
  }

  function routeResponse(id: Json | undefined, text: string): void {
    const found = isRequestId(id) ? pending.get(keyOf(id)) : undefined;
    // A response to no request: the check of the session's own stream drops and records it.
    const messageBuffer = found?.messageBuffer ?? sessionBuffer;
    messageBuffer.put(text);
    if (found === undefined) return;
    pending.delete(keyOf(found.request.id));
    messageBuffer.end('complete');
  }

  /**
   * A server request belongs to the only pending call. If that is ambiguous, the own stream must be being
   * read.
   */
  function routeServerRequest(id: RequestId, method: string, text: string): void {
    const messageBuffer = solePendingBuffer() ?? (sessionBuffer.isRead ? sessionBuffer : undefined);
    if (method === 'ping') settings.sendMessage({ jsonrpc: '2.0', id, result: {} });
    else if (messageBuffer === undefined) settings.sendMessage({ jsonrpc: '2.0', id, error: NO_SINGLE_REQUEST });
    else messageBuffer.put(text);
  }

  function solePendingBuffer(): MessageBuffer | undefined {
    if (pending.size !== 1) return undefined;
    const [only] = pending.values();
    return only?.messageBuffer;
  }

  function bufferOfProgressToken(params: Json | undefined): MessageBuffer | undefined {
    const token = isObject(params) ? params['progressToken'] : undefined;
    if (!isRequestId(token)) return undefined;
    for (const { request, messageBuffer } of pending.values()) if (request.token === token) return messageBuffer;
    return undefined;
  }

  function drop(messageBuffer: MessageBuffer): void {
    for (const [key, entry] of pending) if (entry.messageBuffer === messageBuffer) pending.delete(key);
    messageBuffer.drop();
  }

  function endStream(why: ForwardError): void {
    isOver = true;
    for (const { messageBuffer } of pending.values()) messageBuffer.end(why);
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
      const messageBuffer = createBuffer('fail', bounds.maxResponseBytes);
      pending.set(key, { request, messageBuffer });
      usedAtMs = now();
      return messageBuffer;
    },
    cancel(id) {
      const found = pending.get(keyOf(id));
      if (found !== undefined) drop(found.messageBuffer);
    },
    drop,
    read() {
      usedAtMs = now();
      return sessionBuffer.read();
    },
    isUsed: (maxIdleMs) => pending.size > 0 || sessionBuffer.isRead || now() - usedAtMs < maxIdleMs,
    get isIdle() {
      return pending.size === 0 && !sessionBuffer.isRead;
    },
    get isOver() {
      return isOver;
    },
    close() {
      response.abort();
      for (const { messageBuffer } of [...pending.values()]) drop(messageBuffer);
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

export type MessageBufferSettings = {
  readonly maxBytes: number;
  readonly budget: BufferBudget;
  /** The longest silence that a reader waits through. */
  readonly idleMs: number;
  /** When full, `drop-oldest` drops the oldest messages; `fail` fails. */
  readonly overflow: 'drop-oldest' | 'fail';
};

/** One reading. It ends when another begins or when its reader leaves. */
export type BufferReader = { readonly items: OutboundItems; leave(): void };

export type MessageBuffer = {
  put(text: string): void;
  /** Ends the buffer, complete or with an error. Only the first end counts. */
  end(how: 'complete' | ForwardError): void;
  /** Takes the messages out, in order. */
  read(): BufferReader;
  /** The buffered size, as UTF-8. */
  readonly bytes: number;
  readonly isRead: boolean;
  /** Drops everything buffered. */
  drop(): void;
};

/** Buffers what a legacy SSE server has sent for one request, or for no request, until it is read. */
export function createMessageBuffer({ maxBytes, budget, idleMs, overflow }: MessageBufferSettings): MessageBuffer {
  const buffered: { readonly text: string; readonly bytes: number }[] = [];
  let bytes = 0;
  let end: 'complete' | ForwardError | undefined;
  let currentReader = 0;
  let isRead = false;
  let wake: () => void = () => undefined;

  function reserve(more: number): void {
    bytes += more;
    budget.bytesLeft -= more;
  }

  function takeOldest(): string | undefined {
    const oldest = buffered.shift();
    reserve(-(oldest?.bytes ?? 0));
    return oldest?.text;
  }

  function dropAll(): void {
    while (buffered.length > 0) takeOldest();
  }

  function isFull(): boolean {
    return bytes > maxBytes || budget.bytesLeft < 0;
  }

  function makeRoom(): void {
    while (overflow === 'drop-oldest' && isFull() && buffered.length > 1) takeOldest();
    if (!isFull()) return;
    dropAll();
    if (overflow === 'fail') close('upstream-protocol');
  }

  function close(how: 'complete' | ForwardError): void {
    end ??= how;
    wake();
  }

  function leave(readerId: number): void {
    if (readerId !== currentReader) return;
    currentReader += 1;
    isRead = false;
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

  /** The oldest item; `complete` after the last one, `undefined` if more may follow. */
  function takeItem(): OutboundItem | 'complete' | undefined {
    const text = takeOldest();
    if (text !== undefined) return { kind: 'message', text };
    return end === undefined || end === 'complete' ? end : errorItem(end);
  }

  /** Waits for this reader's next item; `complete` if the reading is over. */
  async function nextFor(readerId: number): Promise<OutboundItem | 'complete'> {
    while (readerId === currentReader) {
      const found = takeItem();
      if (found !== undefined) return found;
      if (!(await awaitMore()) && readerId === currentReader) return errorItem('upstream-timeout');
    }
    return 'complete';
  }

  async function* deliver(readerId: number): OutboundItems {
    for (;;) {
      const outbound = await nextFor(readerId);
      if (outbound === 'complete') return;
      yield outbound;
      if (outbound.kind === 'error') return;
    }
  }

  return {
    put(text) {
      if (end !== undefined) return;
      const size = Buffer.byteLength(text);
      buffered.push({ text, bytes: size });
      reserve(size);
      makeRoom();
      wake();
    },
    end: close,
    read() {
      currentReader += 1;
      const readerId = currentReader;
      isRead = true;
      wake();
      return { items: deliver(readerId), leave: () => leave(readerId) };
    },
    get bytes() {
      return bytes;
    },
    get isRead() {
      return isRead;
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

/** Creates one caller's part of the budget, of at most `maxBytes`: what is taken from it is also taken from the total. */
export function createOwnerBufferBudget(total: BufferBudget, maxBytes: number): BufferBudget {
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
  };
}
