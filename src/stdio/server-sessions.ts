// The sessions of one stdio server over streamable HTTP: a process for each. Before each start it is asked what is run,
// and a server that may not or cannot start is answered with the cause. Whether a request may come here at all is
// decided before (stdio-server.ts).
// Source: MCP 2025-11-25, transports (streamable HTTP, session management).

import { randomBytes } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import { readBody } from '../http/app.js';
import { acceptsType, mediaType } from '../protocol/headers.js';
import { type ParsedJson, readJson, spanOf } from '../protocol/json/json.js';
import { renderJson } from '../protocol/json/request-ids.js';
import { type Message, readEnvelope } from '../protocol/jsonrpc.js';
import { encodeSseComment, encodeSseMessage } from '../protocol/sse.js';
import { type ProcessEnd, type ProcessPorts, type ServerCommand, startServerProcess } from './server-process.js';
import { type ClientStream, JSON_CAPS, type SessionRefusal, StdioSession } from './stdio-session.js';

/** Clients open their stream right after `initialize`; servers wait a minute for an answer. */
const UNREAD_MS = 5_000;
export const IDLE_MS = 10 * 60_000;
/** The same while new sessions are refused: abandoned sessions must not block other clients for long. */
const CROWDED_IDLE_MS = 60_000;
const MAX_BODY_BYTES = 8 * 1024 * 1024;
const SESSION_ID_BYTES = 24;
/** How a process ends that was started, and answered `initialize` with an error or with something else. */
export const REFUSED_TO_INITIALIZE = 'the server refused to initialize';
/** If the client has not read this much of a response, reading from the server pauses. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** A response that takes longer begins as a stream, so that clients do not time out. */
const STREAM_AFTER_MS = 5_000;
const COMMENT_EVERY_MS = 15_000;

export type Refusal = {
  readonly status: number;
  readonly message: string;
  readonly code?: number;
  readonly headers?: Readonly<Record<string, string>>;
};

const SESSION_REFUSALS: { readonly [why in SessionRefusal]: Refusal } = {
  'repeated-id': { status: 400, message: 'A request with this id is under way.' },
  'unknown-request': { status: 400, message: 'No request of the server has this id.' },
  overloaded: { status: 503, message: 'Too much waits for the server.' },
  ended: { status: 404, message: 'The session has ended.' },
};

/** A response or a stream of events. A response becomes a stream with the first message that is not its own. */
class HttpStream implements ClientStream {
  readonly #response: ServerResponse;
  readonly #headers: OutgoingHttpHeaders = {};
  #timer: NodeJS.Timeout | undefined;
  #isStream = false;
  #isFinished = false;
  /** Is given the response. */
  readonly #opening: Opening | undefined;

  constructor(response: ServerResponse, streamAfterMs?: number, opening?: Opening) {
    this.#response = response;
    this.#opening = opening;
    if (streamAfterMs === undefined) return;
    this.#timer = setTimeout(() => this.startStream(), streamAfterMs);
  }

  addHeader(name: string, value: string): void {
    this.#headers[name] = value;
  }

  startStream(): void {
    if (this.#isStream || this.#isFinished) return;
    this.#isStream = true;
    clearTimeout(this.#timer);
    this.#timer = setInterval(() => this.#response.write(encodeSseComment('')), COMMENT_EVERY_MS);
    const stream = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };
    this.#response.writeHead(200, { ...this.#headers, ...stream });
    this.#response.flushHeaders();
  }

  send(json: string): boolean {
    if (this.#isFinished) return true;
    this.startStream();
    return this.#response.write(encodeSseMessage(json));
  }

  finish(json?: string, isFailure = false): boolean {
    if (this.#isFinished) return true;
    if (json === undefined) this.startStream();
    else if (this.#opening !== undefined) this.#opening.response = json;
    this.release();
    if (this.#isStream) this.#response.end(json === undefined ? '' : encodeSseMessage(json));
    else this.#sendJson(isFailure ? 502 : 200, json ?? '');
    return this.#response.writableLength <= MAX_UNREAD_BYTES;
  }

  #sendJson(status: number, json: string): void {
    this.#response.writeHead(status, { ...this.#headers, 'content-type': 'application/json' }).end(json);
  }

  /** Stops writing to the response. */
  release(): void {
    this.#isFinished = true;
    clearTimeout(this.#timer);
  }
}

type Call = Extract<Message, { readonly kind: 'request' }>;

type OpenSession = {
  readonly session: StdioSession;
  /** The version that the server answered `initialize` with; empty until then. */
  version: string;
  /** What it was opened with, and the response, if the next one who opens a session alike may have it. */
  readonly opening?: Opening | undefined;
  /** The server was told already that the session is initialized. */
  readonly isTakenOver?: boolean;
};

type Opening = { readonly params: string; response?: string };

/** The value of a header that occurs once; `undefined` if it is absent, repeated or empty. */
export function singleHeader({ headersDistinct }: IncomingMessage, name: string): string | undefined {
  const values = headersDistinct[name];
  return values?.length === 1 && values[0] !== '' ? values[0] : undefined;
}

/** A server as it is served. */
export type ServedServer = {
  /** What a line about it begins with. */
  readonly label: string;
  /** What is run, asked before each start; or in one clause why nothing is. Never rejects. */
  readonly prepare: () => Promise<ServerCommand | { readonly error: string }>;
};

export type SessionSettings = {
  /** Of each server. */
  readonly maxSessions: number;
  /** An idle session ends after this time. Default: 10 minutes. */
  readonly idleMs?: number;
  /** How long a request of the server waits for a client that reads it; the default is for tests to change. */
  readonly unreadMs?: number;
  /**
   * The first session that its client ends is kept for the next client that opens one with the same `initialize`: `dev`
   * lists a server, and then the gateway does, with one process.
   */
  readonly keepsFirst?: boolean;
};

export type SessionPorts = Omit<ProcessPorts, 'killMarked'> & {
  readonly now?: () => number;
  /** Called when a process has ended, for whatever reason. */
  readonly onProcessEnd?: (end: ProcessEnd) => void;
};

export class ServerSessions {
  readonly #server: ServedServer;
  readonly #settings: SessionSettings & { readonly env: ServerCommand['env'] };
  readonly #ports: SessionPorts;
  readonly #now: () => number;
  /** By id, from the opening of a session to its end. */
  readonly #sessions = new Map<string, OpenSession>();
  /** Ended sessions whose processes still run; they count towards the limit. */
  readonly #running = new Set<StdioSession>();
  /** The session that the next client has, if it opens it alike. */
  #kept: OpenSession | undefined;
  /** Sessions that wait to be told what is run. */
  #preparing = 0;
  #opened = 0;
  #isClosed = false;

  /** `env` is added to that of each command. */
  constructor(
    server: ServedServer,
    settings: SessionSettings & { readonly env: ServerCommand['env'] },
    ports: SessionPorts,
  ) {
    this.#server = server;
    this.#settings = settings;
    this.#ports = ports;
    this.#now = ports.now ?? Date.now;
  }

  serve(request: IncomingMessage, reply: FastifyReply): Refusal | undefined | Promise<Refusal | undefined> {
    if (request.method === 'POST') return this.#handlePost(request, reply);
    const known = this.#findSession(request);
    if ('status' in known) return known;
    if (request.method === 'GET') return openEvents(known.session, request, reply);
    const id = singleHeader(request, 'mcp-session-id') ?? '';
    if (!this.#keep(id, known)) void this.#end(id, 'the client ended the session');
    reply.code(204).send();
    return undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const ends = [...this.#running].map((session) => session.end('the adapter is ending'));
    await Promise.all(ends);
  }

  endIdle(idleMs = this.#settings.idleMs ?? IDLE_MS): void {
    for (const [id, { session }] of this.#sessions)
      if (session.isIdle(idleMs)) void this.#end(id, 'nobody used the session');
    const kept = this.#kept?.session;
    if (kept?.isIdle(CROWDED_IDLE_MS) !== true) return;
    this.#kept = undefined;
    void kept.end('nobody used the session');
  }

  /** Keeps a session that its client has ended; false if it is to end. */
  #keep(id: string, open: OpenSession): boolean {
    const isFirst = this.#opened === 1 && this.#kept === undefined;
    if (!isFirst || open.opening?.response === undefined) return false;
    this.#sessions.delete(id);
    this.#kept = open;
    return true;
  }

  /** Hands the kept session over, with the response that its client had. */
  #takeOver(message: Call, reply: FastifyReply): boolean {
    const { session, version, opening } = this.#kept ?? {};
    const { params, response = '' } = opening ?? {};
    const result = spanOf(response, ['result']);
    if (session === undefined || version === undefined || result === undefined) return false;
    if (params !== JSON.stringify(message.params)) return false;
    this.#kept = undefined;
    const id = newSessionId();
    this.#sessions.set(id, { session, version, isTakenOver: true });
    const text = response.slice(result.start, result.end);
    reply.header('mcp-session-id', id).header('content-type', 'application/json');
    reply.send(`{"jsonrpc":"2.0","id":${renderJson(message.id)},"result":${text}}`);
    return true;
  }

  async #end(id: string, how: string): Promise<void> {
    const open = this.#sessions.get(id);
    this.#sessions.delete(id);
    await open?.session.end(how);
  }

  /** Under whatever id it is known. */
  #forget(session: StdioSession): void {
    for (const [id, open] of this.#sessions) if (open.session === session) this.#sessions.delete(id);
    if (this.#kept?.session === session) this.#kept = undefined;
  }

  #findSession(request: IncomingMessage): OpenSession | Refusal {
    const id = singleHeader(request, 'mcp-session-id');
    if (id === undefined) return { status: 400, message: 'A session is required: initialize first.' };
    const open = this.#sessions.get(id);
    if (open === undefined)
      return {
        status: 404,
        message: 'The session is unknown or has ended.',
      };
    const version = request.headers['mcp-protocol-version'] ?? open.version;
    if (version === open.version) return open;
    return { status: 400, message: 'The session has another protocol version.' };
  }

  async #handlePost(request: IncomingMessage, reply: FastifyReply): Promise<Refusal | undefined> {
    const received = await readMessage(request);
    if ('status' in received) return received;
    const { message, text } = received;
    const isOpening = message.kind === 'request' && message.method === 'initialize';
    if (isOpening && request.headers['mcp-session-id'] === undefined) return this.#open(message, text, reply);
    const known = this.#findSession(request);
    if ('status' in known) return known;
    if (isOpening) return { status: 400, message: 'The session is open already.' };
    const { session } = known;
    if (known.isTakenOver === true && message.kind === 'notification' && message.method === INITIALIZED) {
      reply.code(202).send();
      return undefined;
    }
    if (message.kind === 'request')
      return call(session, message, text, reply, new HttpStream(reply.raw, STREAM_AFTER_MS));
    const refusal = message.kind === 'notification' ? session.notify(message, text) : session.reply(message, text);
    if (refusal !== undefined) return SESSION_REFUSALS[refusal];
    reply.code(202).send();
    return undefined;
  }

  /** Starts a process and forwards `initialize`; the session exists once the server has answered it. */
  async #open(message: Call, text: string, reply: FastifyReply): Promise<Refusal | undefined> {
    if (this.#takeOver(message, reply)) return undefined;
    const { maxSessions, env, keepsFirst } = this.#settings;
    if (this.#running.size + this.#preparing >= maxSessions) {
      this.endIdle(CROWDED_IDLE_MS);
      const headers = { 'retry-after': '10' };
      const why = `${maxSessions} sessions are open, which is the most that this server takes.`;
      return { status: 503, message: why, headers };
    }
    this.#opened += 1;
    const id = newSessionId();
    const opening = keepsFirst === true ? { params: JSON.stringify(message.params) } : undefined;
    const label = `${this.#server.label}session ${this.#opened}`;
    const log = (line: string): void => this.#ports.log(`${label}: ${line}`);
    this.#preparing += 1;
    const prepared = await this.#server.prepare().finally(() => {
      this.#preparing -= 1;
    });
    if (this.#isClosed) return { status: 503, message: 'The adapter is ending.' };
    if ('error' in prepared) {
      log(`not started: ${prepared.error}`);
      return { status: 503, message: `The server was not started: ${prepared.error}.` };
    }
    const command = { ...prepared, env: { ...prepared.env, ...env } };
    // The response carries the session id, so it cannot begin before the server has answered.
    const stream = new HttpStream(reply.raw, undefined, opening);
    let isInitialized = false;
    const session: StdioSession = new StdioSession(
      (handlers) => startServerProcess(command, handlers, { ...this.#ports, log }),
      {
        log,
        redact: this.#ports.redact,
        now: this.#now,
        unreadMs: this.#settings.unreadMs ?? UNREAD_MS,
        onInitialized: (version) => {
          isInitialized = version !== undefined;
          if (version === undefined) void session.end(REFUSED_TO_INITIALIZE);
          else this.#sessions.set(id, { session, version, opening });
          if (version !== undefined) stream.addHeader('mcp-session-id', id);
        },
        onEnd: (end) => {
          log(`ended: ${end.how}`);
          this.#forget(session);
          void session.end('').then(() => this.#running.delete(session));
          this.#ports.onProcessEnd?.(end);
        },
      },
    );
    this.#running.add(session);
    const onLeft = (): void => {
      if (!isInitialized) void session.end('the client left before there was a session');
    };
    reply.raw.on('close', onLeft);
    if (reply.raw.destroyed) onLeft();
    return call(session, message, text, reply, stream);
  }
}

const INITIALIZED = 'notifications/initialized';

function newSessionId(): string {
  return randomBytes(SESSION_ID_BYTES).toString('base64url');
}

function call(
  session: StdioSession,
  message: Call,
  text: string,
  reply: FastifyReply,
  stream: HttpStream,
): Refusal | undefined {
  const refusal = session.request(message, text, stream);
  if (refusal === undefined) followClient(session, stream, reply);
  else stream.release();
  return refusal && SESSION_REFUSALS[refusal];
}

function openEvents(session: StdioSession, { headers }: IncomingMessage, reply: FastifyReply): Refusal | undefined {
  if (!acceptsType(headers.accept, 'text/event-stream')) return { status: 406, message: 'Accept text/event-stream.' };
  const stream = new HttpStream(reply.raw);
  if (!session.openEvents(stream)) return { status: 409, message: 'The session has a stream already.' };
  stream.startStream();
  followClient(session, stream, reply);
  return undefined;
}

/** Leaves the response to the stream, and notifies the session that the client has disconnected, or reads again. */
function followClient(session: StdioSession, stream: HttpStream, reply: FastifyReply): void {
  reply.hijack();
  reply.raw.on('drain', () => session.onDrained());
  reply.raw.on('close', () => {
    stream.release();
    session.leave(stream);
  });
}

type Received = { readonly message: Message; readonly text: string };

async function readMessage(request: IncomingMessage): Promise<Received | Refusal> {
  const { accept, 'content-type': type, 'content-encoding': encoding } = request.headers;
  if (mediaType(type) !== 'application/json' || encoding !== undefined)
    return { status: 415, message: 'Send application/json without content encoding.' };
  if (!['application/json', 'text/event-stream'].every((one) => acceptsType(accept, one)))
    return { status: 406, message: 'Accept application/json and text/event-stream.' };
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === undefined) {
    const message = `The body is larger than ${MAX_BODY_BYTES} bytes, or incomplete.`;
    return { status: 413, message, headers: { connection: 'close' } };
  }
  const reading = readJson(body, JSON_CAPS);
  if (!reading.ok) return { status: 400, message: 'The body is not valid JSON.', code: -32700 };
  return messageOf(reading);
}

function messageOf({ value, text }: ParsedJson): Received | Refusal {
  const message = readEnvelope(value);
  if (message.kind === 'batch' || message.kind === 'malformed')
    return { status: 400, message: 'The body is not one JSON-RPC message.' };
  return { message, text };
}
