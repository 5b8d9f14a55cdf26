// One session of a stdio server: passes the client's messages to the process, and each message of the process to the
// stream that it belongs to. Bytes are forwarded as they were received; only envelopes are read. Everything that
// waits is bounded, and every request is answered, also when the process ends.
// Source: MCP 2025-11-25, transports (streamable HTTP: which message may be sent on which stream; stdio).

import { applyEdits, decodeUtf8, MAX_JSON_DEPTH, type ParsedJson, spanOf } from '../protocol/json/json.js';
import { renderJson } from '../protocol/json/request-ids.js';
import {
  isObject,
  isRequestId,
  type Json,
  type Message,
  parseObject,
  type RequestId,
  readEnvelope,
} from '../protocol/jsonrpc.js';
import { readMended } from '../protocol/lone-surrogates.js';
import { readServerJson } from '../protocol/odd-items.js';
import { versionOfStdio } from '../protocol/versions/revisions.js';
import { BoundedMap } from '../state/bounds.js';
import {
  createLineCleaner,
  createLineLimit,
  type ProcessEnd,
  type ProcessHandlers,
  type ProcessPorts,
  type ServerProcess,
} from './server-process.js';

/** Bounds of what is parsed, in either direction. */
export const JSON_CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 1_000_000 } as const;

/** The id of a response that cannot be forwarded, so that its request does not wait for another; it decides nothing. */
function idOfUnread(line: Buffer): RequestId | undefined {
  const message = parseObject(line.toString('utf8'));
  const id = message?.['method'] === undefined ? message?.['id'] : undefined;
  return isRequestId(id) ? id : undefined;
}

/** What a client reads: the response to one POST, or the stream of a GET. */
export type ClientStream = {
  /** Sends a message of the server; false if the client reads slowly, which `onDrained` then reports. */
  send(json: string): boolean;
  /**
   * Sends the response, if there is one, and ends. `isFailure`: the server could not answer. False if the client
   * reads slowly; the stream is then left once it has read.
   */
  finish(json?: string, isFailure?: boolean): boolean;
};

/** Why a message of a client was not passed on. */
export type SessionRefusal = 'repeated-id' | 'overloaded' | 'unknown-request' | 'ended';

type Call = Extract<Message, { readonly kind: 'request' }>;
type Reply = Extract<Message, { readonly kind: 'result' | 'error' }>;
type Notification = Extract<Message, { readonly kind: 'notification' }>;

type Pending = {
  readonly id: RequestId;
  readonly method: string;
  readonly progressToken: Json | undefined;
  /** `undefined` once the client has left: its response is then dropped. */
  stream: ClientStream | undefined;
};

type SessionPorts = Pick<ProcessPorts, 'log' | 'redact'> & {
  readonly now: () => number;
  /** How long a request of the server waits for a stream that takes it. */
  readonly unreadMs: number;
  /** The server has answered `initialize`, with this version or with an error. */
  onInitialized(version: string | undefined): void;
  /** The process has ended; every request was answered. */
  onEnd(end: ProcessEnd): void;
};

const MAX_PENDING = 128;
const MAX_SERVER_REQUESTS = 64;
/** Longer ids of requests of the server are not remembered, and so not passed on. */
const MAX_ID_CHARACTERS = 1_000;
/** Messages that wait for a stream of the client's. */
const MAX_QUEUED = 100;
/** What waits there: its text, and the id if it is a request of the server. */
type Queued = { readonly text: string; readonly id?: RequestId };
const MAX_QUEUED_BYTES = 1024 * 1024;
const MAX_MALFORMED_LINES = 1_000;
const MAX_LOGGED_PER_MINUTE = 20;
const SHOWN_CHARACTERS = 200;
const INTERNAL_ERROR = -32603;
const UNREAD = 'The client has opened no stream for what the server requests of it.';
/** Requests in whose course a server asks nothing: what it asks meanwhile is about another matter. */
const ASKS_NOTHING = /^(?:.*\/list|ping|logging\/setLevel)$/;
/** Changes that concern no request, and so belong on the stream of a GET. */
const OF_NO_REQUEST = /^notifications\/(?:.*\/(?:list_changed|updated)|tasks\/.*)$/;

function keyOf(id: RequestId): string {
  return JSON.stringify(id);
}

function errorText(id: RequestId, message: string): string {
  return renderJson({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } });
}

/**
 * One line for the process, also where its runtime ends lines at the separators of Unicode (Node.js, readline): between
 * tokens a line break is white space, in strings there are only these, and their escapes say the same.
 */
function asLine(text: string): string {
  return text
    .replace(/[\r\n]/g, ' ')
    .replaceAll('\u2028', '\\u2028')
    .replaceAll('\u2029', '\\u2029');
}

export class StdioSession {
  readonly #server: ServerProcess;
  readonly #ports: SessionPorts;
  readonly #cleanLine: (line: string) => string;
  readonly #logMalformed: (line: string) => void;
  readonly #pending = new Map<string, Pending>();
  /** Requests of the server that wait for a reply, with the stream that each was sent on. The oldest are forgotten. */
  readonly #serverRequests = new BoundedMap<string, ClientStream | undefined>(MAX_SERVER_REQUESTS);
  readonly #queue: Queued[] = [];
  #queuedBytes = 0;
  #events: ClientStream | undefined;
  #malformedLines = 0;
  #lastUsedMs: number;
  #isOver = false;

  /** `start` starts the process with the handlers of this session. */
  constructor(start: (handlers: ProcessHandlers) => ServerProcess, ports: SessionPorts) {
    this.#ports = ports;
    this.#lastUsedMs = ports.now();
    this.#cleanLine = createLineCleaner(ports.redact, SHOWN_CHARACTERS);
    this.#logMalformed = createLineLimit(MAX_LOGGED_PER_MINUTE, ports.now, ports.log);
    this.#server = start({
      onLine: (line) => this.#receive(line),
      onEnd: (end) => this.#close(end),
    });
  }

  /** Passes on a request, whose response goes to `stream`. */
  request(message: Call, text: string, stream: ClientStream): SessionRefusal | undefined {
    this.#lastUsedMs = this.#ports.now();
    const key = keyOf(message.id);
    if (this.#pending.has(key)) return 'repeated-id';
    if (this.#pending.size >= MAX_PENDING && !this.#forgetAbandoned()) return 'overloaded';
    const refusal = this.#send(text);
    if (refusal !== undefined) return refusal;
    const meta = message.params?.['_meta'];
    const progressToken = isObject(meta) ? meta['progressToken'] : undefined;
    this.#pending.set(key, { id: message.id, method: message.method, progressToken, stream });
    return undefined;
  }

  /** Passes on a notification. */
  notify(message: Notification, text: string): SessionRefusal | undefined {
    this.#lastUsedMs = this.#ports.now();
    const isCancellation = message.method === 'notifications/cancelled';
    const refusal = this.#send(text, isCancellation);
    if (refusal === undefined && isCancellation) this.#endCancelled(message.params?.['requestId']);
    return refusal;
  }

  /** Passes on a reply to a request of the server. */
  reply(message: Reply, text: string): SessionRefusal | undefined {
    this.#lastUsedMs = this.#ports.now();
    const key = message.id === undefined ? '' : keyOf(message.id);
    if (!this.#serverRequests.has(key)) return 'unknown-request';
    const refusal = this.#send(text, true);
    // What could not be passed on may be sent again.
    if (refusal === undefined) this.#serverRequests.delete(key);
    return refusal;
  }

  /** Makes this the stream for messages that belong to no request; false if there is one. */
  openEvents(stream: ClientStream): boolean {
    if (this.#events !== undefined) return false;
    this.#events = stream;
    for (const { text } of this.#queue.splice(0)) stream.send(text);
    this.#queuedBytes = 0;
    return true;
  }

  /** The client has left this stream. That cancels nothing (MCP 2025-11-25). */
  leave(stream: ClientStream): void {
    this.#lastUsedMs = this.#ports.now();
    if (this.#events === stream) this.#events = undefined;
    for (const one of this.#pending.values()) if (one.stream === stream) one.stream = undefined;
    this.#server.resume();
  }

  /** A slow client has caught up. */
  onDrained(): void {
    this.#server.resume();
  }

  /** True if nobody has waited for this session for so long. */
  isIdle(idleMs: number): boolean {
    const isWaiting = [...this.#pending.values()].some(({ stream }) => stream !== undefined);
    if (isWaiting || this.#events !== undefined) return false;
    return this.#ports.now() - this.#lastUsedMs >= idleMs;
  }

  end(how: string): Promise<void> {
    return this.#server.end(how);
  }

  /** `mayUseReserve`: requests wait for the message, so it is written past the limit of what the server has not read. */
  #send(text: string, mayUseReserve = false): SessionRefusal | undefined {
    if (this.#isOver) return 'ended';
    return this.#server.send(asLine(text), mayUseReserve) ? undefined : 'overloaded';
  }

  /** Makes place by forgetting the oldest request whose client has left. */
  #forgetAbandoned(): boolean {
    for (const [key, { stream }] of this.#pending) if (stream === undefined) return this.#pending.delete(key);
    return false;
  }

  /** A server does not answer a request that was cancelled, so nothing else would end its stream. */
  #endCancelled(id: Json | undefined): void {
    const pending = isRequestId(id) ? this.#pending.get(keyOf(id)) : undefined;
    const stream = pending?.stream;
    if (pending !== undefined) pending.stream = undefined;
    stream?.finish();
  }

  #receive(bytes: Buffer): void {
    const line = bytes.at(-1) === 0x0d ? bytes.subarray(0, -1) : bytes;
    if (line.length === 0) return;
    const reading = readMended(line, (source) => readServerJson(source, JSON_CAPS));
    if (!reading.ok) {
      this.#dropLine(line);
      const id = idOfUnread(line);
      if (id !== undefined) this.#fail(id);
      return;
    }
    // The gateway mends it again, and records that.
    const text = reading.mended === undefined ? reading.text : (decodeUtf8(line) ?? '');
    this.#route({ ...reading, text }, line);
  }

  #route({ value, text }: ParsedJson, line: Buffer): void {
    const message = readEnvelope(value);
    switch (message.kind) {
      case 'result':
      case 'error':
        this.#answer(message, text);
        return;
      case 'request':
        this.#askClient(message, text);
        return;
      case 'notification':
        this.#deliver(message, text);
        return;
      case 'batch':
        this.#dropLine(line);
        return;
      case 'malformed': {
        this.#dropLine(line);
        const isResponse = isObject(value) && value['method'] === undefined;
        if (isResponse && message.id !== undefined) this.#fail(message.id);
      }
    }
  }

  /** A line that is no message is shown to people and to nobody else. */
  #dropLine(line: Buffer): void {
    this.#malformedLines += 1;
    const shown = this.#cleanLine(line.subarray(0, 4 * SHOWN_CHARACTERS).toString('utf8'));
    if (shown !== '') this.#logMalformed(`a line on standard output is not a JSON-RPC message: ${shown}`);
    if (this.#malformedLines === MAX_MALFORMED_LINES)
      void this.end(`it wrote ${MAX_MALFORMED_LINES} lines that are not JSON-RPC messages`);
  }

  #answer(message: Reply, text: string): void {
    const pending = message.id === undefined ? undefined : this.#takePending(message.id);
    if (pending === undefined) return;
    const response = pending.method === 'initialize' ? this.#initialize(message, text) : text;
    if (pending.stream?.finish(response) === false) this.#server.pause();
  }

  /**
   * A server that knows only the revision before streamable HTTP has the messages of the next one, and is served
   * under it.
   */
  #initialize(message: Reply, text: string): string {
    const stated = message.kind === 'result' ? message.result['protocolVersion'] : undefined;
    const version = typeof stated === 'string' ? versionOfStdio(stated) : undefined;
    this.#ports.onInitialized(version);
    const span = version === stated ? undefined : spanOf(text, ['result', 'protocolVersion']);
    if (span === undefined) return text;
    return applyEdits(text, [{ ...span, text: JSON.stringify(version) }]);
  }

  /** Answers a request whose response cannot be used. */
  #fail(id: RequestId): void {
    const pending = this.#takePending(id);
    if (pending === undefined) return;
    if (pending.method === 'initialize') this.#ports.onInitialized(undefined);
    pending.stream?.finish(errorText(id, 'The server sent a malformed response.'), true);
  }

  #takePending(id: RequestId): Pending | undefined {
    const pending = this.#pending.get(keyOf(id));
    this.#pending.delete(keyOf(id));
    return pending;
  }

  #askClient(message: Call, text: string): void {
    const key = keyOf(message.id);
    if (key.length > MAX_ID_CHARACTERS) {
      this.#server.send(errorText(message.id, 'The id is too long.'));
      return;
    }
    const stream = this.#streamOf(message);
    if (stream === undefined && this.#isQueueFull(text)) {
      this.#server.send(errorText(message.id, UNREAD));
      return;
    }
    this.#serverRequests.set(key, stream);
    if (stream !== undefined) this.#sendTo(stream, text);
    else this.#queueRequest({ text, id: message.id });
  }

  /** A client without a stream, such as the listing of the gateway, cannot reply: the server is told so. */
  #queueRequest(queued: Required<Queued>): void {
    this.#enqueue(queued);
    const giveUp = (): void => {
      const place = this.#queue.indexOf(queued);
      if (place === -1 || this.#isOver) return;
      this.#queue.splice(place, 1);
      this.#queuedBytes -= queued.text.length;
      this.#serverRequests.delete(keyOf(queued.id));
      this.#server.send(errorText(queued.id, UNREAD));
    };
    setTimeout(giveUp, this.#ports.unreadMs).unref();
  }

  #enqueue(queued: Queued): void {
    this.#queue.push(queued);
    this.#queuedBytes += queued.text.length;
  }

  #deliver(message: Notification, text: string): void {
    const stream = this.#streamOf(message);
    if (stream !== undefined || !this.#isQueueFull(text)) this.#sendTo(stream, text);
  }

  #isQueueFull(text: string): boolean {
    return this.#queue.length >= MAX_QUEUED || this.#queuedBytes + text.length > MAX_QUEUED_BYTES;
  }

  #sendTo(stream: ClientStream | undefined, text: string): void {
    if (stream === undefined) this.#enqueue({ text });
    else if (!stream.send(text)) this.#server.pause();
  }

  /**
   * The stream that a message of the server belongs to. Stdio does not say which request a message is about: progress
   * names it, a change is about none, and anything else is about the request that is under way if there is only one.
   */
  #streamOf({ kind, method, params }: Call | Notification): ClientStream | undefined {
    if (OF_NO_REQUEST.test(method)) return this.#events;
    const open = [...this.#pending.values()].filter(
      ({ stream, method: called }) =>
        stream !== undefined && called !== 'initialize' && !(kind === 'request' && ASKS_NOTHING.test(called)),
    );
    if (method === 'notifications/progress') {
      const token = params?.['progressToken'];
      const named = open.find(({ progressToken }) => progressToken === token);
      return named?.stream ?? this.#events;
    }
    const cancelled = method === 'notifications/cancelled' ? params?.['requestId'] : undefined;
    if (isRequestId(cancelled)) return this.#serverRequests.get(keyOf(cancelled)) ?? this.#events;
    if (open.length === 1) return open[0]?.stream;
    return this.#events ?? open.at(-1)?.stream;
  }

  #close(end: ProcessEnd): void {
    this.#isOver = true;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const { id, stream, method } of pending) {
      if (method === 'initialize') this.#ports.onInitialized(undefined);
      stream?.finish(errorText(id, `The server is gone: ${end.how}.`), true);
    }
    this.#events?.finish();
    this.#events = undefined;
    this.#ports.onEnd(end);
  }
}
