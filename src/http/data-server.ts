// The data listener: Fastify for sockets, bodies and what it finds wrong with them, plain values behind it. One hook
// checks what HTTP itself defines (path, Host, Origin, size and type) before Fastify reads anything of a request; the
// rest is up to proxy/pipeline.ts. The router decides nothing: it decodes paths, and takes no routes once it listens
// (docs/decisions/0026-fastify.md). Also writes responses to the client's socket, where a client that has
// disconnected is no error, and renders refusals that precede authentication.

import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { refuseWith, renderRefusal } from '../policy/decision.js';
import { REASONS } from '../policy/reasons.js';
import {
  type Body,
  DisconnectController,
  type Incoming,
  isInPieces,
  type Outgoing,
  type Pieces,
  type ResponseHeaders,
  type Shutdown,
  sizeOfBytes,
} from '../protocol/transport.js';
import { createApp, openApp, type PlainResponse, sendPlain } from './app.js';
import {
  createBodyReader,
  createConcurrencyLimits,
  discardCertificate,
  type EdgeFacts,
  toIncoming,
  type UnreadBody,
} from './request.js';
import {
  checkRequest,
  corsHeaders,
  type EdgeRefusal,
  type EdgeTables,
  refusalOfClientError,
  UNKNOWN_PATH,
} from './request-checks.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set where the checks before authentication let the request pass. */
    facts: EdgeFacts | null;
  }
}

export type DataServerPorts = {
  /** The tables of the current version, read once per request. */
  tables(): EdgeTables;
  /** True from the opening of the ports until the gateway can serve. */
  isStarting(): boolean;
  /** Runs the pipeline for one request. Never rejects. */
  handle(incoming: Incoming, outgoing: Outgoing): Promise<void>;
  /** Answers a request for a page for browsers; undefined where there are none. Never rejects. */
  readonly answerPage?: (request: IncomingMessage, path: string, query: string) => Promise<PlainResponse>;
  /** Reports a refusal that precedes authentication, for the audit log or, until that is open, the process log. */
  reportRefusal(refusal: EdgeRefusal, id: string, remoteAddress: string): void;
};

export type DataServer = {
  /** Opens the listener; resolves with the port in use. */
  listen(host: string, port: number): Promise<number>;
  /** Goes on to serve, but tells every connection to close with its next response. */
  announceClose(): void;
  /**
   * Stops accepting connections, then waits at most `drainMs` for running requests. What still runs is broken off then or,
   * where `cut` ends what it waits for, shortly after.
   */
  close(drainMs: number, cut?: () => void): Promise<void>;
  /** The same from now on without waiting for running requests. */
  cutNow(): void;
  /**
   * Uses other certificates for new connections; only if the listener was created with TLS. If the authorities
   * for client certificates changed, those proved before are no longer valid, on open connections too.
   */
  updateTls(secure: TlsOptions): void;
};

const LIMITS = {
  maxHeaderBytes: 16 * 1024,
  headersWithinMs: 10_000,
  requestWithinMs: 30_000,
  idleMs: 72_000,
} as const;
const DRAIN_SWEEP_MS = 50;
/** How long, and how many bytes, are read and dropped after the last response of a connection. */
const LINGER_MS = 5_000;
const MAX_DROPPED_BYTES = 16 * 1024 * 1024;
/** What all request bodies may hold together, and those of one caller. */
const BODY_BUDGET = { maxTotalBytes: 64 * 1024 * 1024, maxCallerBytes: 32 * 1024 * 1024 };
const NO_BODY = new Uint8Array(0);
/** What still runs when the time to finish is over has this long to send its refusal. */
const CUT_MS = 1_000;
/** The response while the gateway is starting, since its ports open before it can serve. */
const STARTING: EdgeRefusal = {
  status: 503,
  reason: 'gateway-starting',
  upstream: undefined,
  headers: { 'retry-after': '5', connection: 'close' },
};
/** The response to what comes on an open connection once the gateway accepts nothing more. */
const STOPPING: EdgeRefusal = {
  status: 503,
  reason: 'gateway-stopping',
  upstream: undefined,
  headers: { 'retry-after': '1', connection: 'close' },
};
/** The refusals of a body that was not read. */
const UNREAD = {
  'too-large': { status: 413, reason: 'body-too-large' },
  'crowded-out': { status: 503, reason: 'overloaded', headers: { 'retry-after': '1' } },
} as const;

/** Creates the listener; nothing is open before `listen`. With `secure` it accepts TLS only. */
export function createDataServer(ports: DataServerPorts, secure?: TlsOptions): DataServer {
  const concurrencyLimits = createConcurrencyLimits();
  const bodies = createBodyReader(BODY_BUDGET);
  let isClosing = false;
  const shutdown = { isAnnounced: false, isCut: false, cut: new DisconnectController() };
  /** Requests in the pipeline, also those whose client has left: in a session they go on. */
  let running = 0;
  let notifyIdle: () => void = () => undefined;
  /** Ends the time that running requests have to finish. */
  let endDrain: () => void = () => undefined;
  const app = createApp({
    ...LIMITS,
    secure,
    fastify: {
      genReqId: () => randomUUID(),
      // The hook refuses what comes while the listener is closing.
      return503OnClosing: false,
      forceCloseConnections: 'idle',
      // A request target that cannot be decoded is an unknown path.
      frameworkErrors: (_error, request, reply) => refuse(request, reply, UNKNOWN_PATH),
      clientErrorHandler: refuseUnreadable,
    },
  });
  // An expectation that nobody knows changes nothing (RFC 9110 §10.1.1). Node would answer it before any check.
  app.server.on('checkExpectation', app.routing);
  // Without a listener Node would close the connection, unanswered and unrecorded.
  app.server.on('connect', refuseTunnel);
  app.decorateRequest('facts', null);
  // Of the methods that the checks let pass, only POST has a body.
  app.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true });
  // Without `parseAs`, under which Fastify would collect the body itself, under a limit that no reload changes.
  app.addContentTypeParser('application/json', ({ facts }: FastifyRequest, raw: IncomingMessage) =>
    bodies.read(raw, facts?.route.maxRequestBytes ?? 0),
  );
  app.addHook('onRequest', check);
  // Returns no promise: Fastify would send an empty 200 where one resolves and nothing was sent.
  app.all('/*', handle);
  app.setNotFoundHandler(handle);
  app.setErrorHandler((_error, request, reply) => {
    const upstream = request.facts?.route.upstream;
    refuse(request, reply, { status: 500, reason: 'internal', upstream });
  });

  const sockets = new Set<Socket>();
  /** Connections to close after their next response, so that clients authenticate again. */
  const outdated = new WeakSet<Socket>();
  /** The last request of a connection that was refused before all of its body had come. */
  const refusedUnread = new WeakMap<Socket, IncomingMessage>();
  /** Connections on which nothing more is read as a request. */
  const finished = new WeakSet<Socket>();
  let authorities = secure?.ca;
  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  }

  // With TLS also before its handshake, on which a client may take its time.
  app.server.on('connection', keep);
  if (secure !== undefined) app.server.on('secureConnection', keep);
  app.server.on(secure === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    // What Node calls behind the last response.
    socket.destroySoon = () => closeLingering(socket, '');
  });

  function discardClientCertificates(): void {
    for (const socket of sockets) {
      discardCertificate(socket);
      outdated.add(socket);
    }
  }

  /** The checks before authentication. Runs before Fastify reads any header. */
  function check(request: FastifyRequest, reply: FastifyReply, next: () => void): void {
    const receivedAt = Date.now();
    const startedMs = performance.now();
    const tables = ports.tables();
    const { id, raw } = request;
    if (isClosing || ports.isStarting()) {
      refuse(request, reply, isClosing ? STOPPING : STARTING);
      return;
    }
    if (shutdown.isAnnounced) reply.raw.shouldKeepAlive = false;
    allowOrigin(raw, reply.raw, tables);
    const found = checkRequest(raw, tables);
    switch (found.kind) {
      case 'refused':
        refuse(request, reply, found.refusal);
        break;
      case 'document':
        sendDocument(reply, found.body);
        break;
      case 'page':
        void showPage(request, reply, found.path, found.query);
        break;
      case 'preflight':
        sendBuffered(reply, 204, found.headers, NO_BODY);
        break;
      case 'route': {
        const { route, query, repeated } = found;
        const remoteAddress = addressOf(raw, tables);
        const body = NO_BODY;
        request.facts = { id, receivedAt, startedMs, route, query, repeated, remoteAddress, body };
        next();
      }
    }
  }

  async function showPage(request: FastifyRequest, reply: FastifyReply, path: string, query: string): Promise<void> {
    // Pages of other origins that may call read no page.
    for (const name of Object.keys(corsHeaders(''))) reply.raw.removeHeader(name);
    try {
      const page = await ports.answerPage?.(request.raw, path, query);
      if (page === undefined) refuse(request, reply, UNKNOWN_PATH);
      else sendPlain(request.raw, reply, page);
    } catch {
      refuse(request, reply, { status: 500, reason: 'internal', upstream: undefined });
    }
  }

  function handle(request: FastifyRequest, reply: FastifyReply): void {
    const { facts } = request;
    const body = request.body as Uint8Array | UnreadBody | undefined;
    if (facts === null) refuse(request, reply, UNKNOWN_PATH);
    else if (body === 'aborted') reply.raw.destroy();
    else if (typeof body === 'string') {
      refuse(request, reply, { ...UNREAD[body], upstream: facts.route.upstream });
    } else {
      if (body !== undefined) facts.body = body;
      void runPipeline(request.raw, reply, facts);
    }
  }

  async function runPipeline(request: IncomingMessage, reply: FastifyReply, facts: EdgeFacts): Promise<void> {
    if (outdated.has(request.socket)) reply.raw.shouldKeepAlive = false;
    const slots = concurrencyLimits.forOne(facts.route);
    const body = bodies.hold(facts.body);
    running += 1;
    try {
      const incoming = toIncoming(request, reply.raw, facts, slots, body.assign, shutdown);
      await ports.handle(incoming, createOutgoing(reply, facts.id, shutdown));
    } catch (error) {
      if (reply.raw.headersSent) reply.raw.destroy();
      else reply.send(error);
    } finally {
      slots.release();
      body.release();
      running -= 1;
      if (running === 0) notifyIdle();
    }
  }

  function refuse(request: FastifyRequest, reply: FastifyReply, refusal: EdgeRefusal): void {
    const { id, raw, facts } = request;
    ports.reportRefusal(refusal, id, facts?.remoteAddress ?? addressOf(raw, ports.tables()));
    if (!raw.complete) refusedUnread.set(raw.socket, raw);
    const { headers, text } = edgeBody(refusal, id);
    const all = { ...headers, ...refusal.headers };
    // The unread rest of an oversized body would otherwise be parsed as the next request.
    const closes = refusal.status === 413 || refusal.status === 400;
    sendBuffered(reply, refusal.status, closes ? { ...all, connection: 'close' } : all, text);
    if (!closes) raw.resume();
  }

  /** Refuses what never became a request: what node:http cannot parse, or had to wait for too long. */
  function refuseUnreadable({ code }: { readonly code?: string }, socket: Socket): void {
    const refusal = isRestOfRefused(socket) ? undefined : refusalOfClientError(code);
    if (refusal === undefined) {
      socket.destroy();
      return;
    }
    const id = randomUUID();
    // On a connection that stayed silent nothing was asked.
    if (socket.bytesRead > 0) ports.reportRefusal(refusal, id, socket.remoteAddress ?? '');
    if (!isAwaited(socket)) closeLingering(socket, encodeRefusal(refusal, id));
    // The client said that its request is the last, and still gets the response (RFC 9112 §9.6).
    else if (code === 'HPE_CLOSED_CONNECTION') dropRest(socket);
    else socket.destroy();
  }

  /** What is wrong with the rest of a request that was refused does not make another one of it. */
  function isRestOfRefused(socket: Socket): boolean {
    return finished.has(socket) || refusedUnread.get(socket)?.complete === false;
  }

  /** Refuses CONNECT, of which Node makes no response: a gateway is no tunnel. */
  function refuseTunnel(request: IncomingMessage, socket: Socket): void {
    // Node has taken its own listener off, and an error that nobody listens for ends the process.
    socket.on('error', () => socket.destroy());
    const tables = ports.tables();
    const found = checkRequest(request, tables);
    const refusal = found.kind === 'refused' ? found.refusal : UNKNOWN_PATH;
    const id = randomUUID();
    ports.reportRefusal(refusal, id, addressOf(request, tables));
    if (isAwaited(socket)) socket.destroy();
    else closeLingering(socket, encodeRefusal(refusal, id));
  }

  /** Reads and drops what still comes, because it is not a request. */
  function dropRest(socket: Socket): void {
    let bytes = 0;
    finished.add(socket);
    // Among them the parser's.
    socket.removeAllListeners('data');
    socket.on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength;
      if (bytes > MAX_DROPPED_BYTES) socket.destroy();
    });
    socket.resume();
  }

  /**
   * Closes a connection behind its last bytes once the client has closed it too, or a while later: closed with something
   * unread it would be reset, and the client might lose what was written before (RFC 9112 §9.6).
   */
  function closeLingering(socket: Socket, lastBytes: string): void {
    dropRest(socket);
    socket.removeAllListeners('end');
    const timer = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(timer));
    if (socket.writable) socket.end(lastBytes);
    else socket.destroy();
  }

  return {
    listen: (host, port) => openApp(app, { host, port }),
    announceClose() {
      shutdown.isAnnounced = true;
    },
    async close(drainMs, cut) {
      isClosing = true;
      let cutTimer: NodeJS.Timeout | undefined;
      const idle = new Promise<void>((resolve) => {
        notifyIdle = resolve;
        if (running === 0) resolve();
      });
      // Node does not know of those that were to be tunnels.
      const giveUp = (): void => {
        for (const socket of sockets) socket.destroy();
        notifyIdle();
      };
      endDrain = () => {
        if (shutdown.isCut) return;
        shutdown.isCut = true;
        shutdown.cut.abort();
        cut?.();
        if (cut === undefined) giveUp();
        else cutTimer = setTimeout(giveUp, CUT_MS);
      };
      const timer = setTimeout(endDrain, drainMs);
      // Node closes idle connections when draining begins, but not those that become idle later, nor those on
      // which no request was ever sent.
      const sweep = setInterval(() => {
        app.server.closeIdleConnections();
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      }, DRAIN_SWEEP_MS);
      await app.close();
      // Those whose clients have left have no connection that Node would wait for.
      await idle;
      shutdown.isCut = true;
      endDrain = () => undefined;
      clearInterval(sweep);
      clearTimeout(timer);
      clearTimeout(cutTimer);
    },
    cutNow: () => endDrain(),
    updateTls(next) {
      (app.server as unknown as SecureServer).setSecureContext(next);
      app.server.closeIdleConnections();
      if (authorities !== next.ca) discardClientCertificates();
      authorities = next.ca;
    },
  };
}

/** Lets pages of an allowed origin read every response, refusals included. */
function allowOrigin(
  { headers: { origin } }: IncomingMessage,
  response: ServerResponse,
  { origins }: EdgeTables,
): void {
  if (origin === undefined || !origins.has(origin)) return;
  for (const [name, value] of Object.entries(corsHeaders(origin))) response.setHeader(name, value);
}

function addressOf({ headers, socket }: IncomingMessage, tables: EdgeTables): string {
  const peer = socket.remoteAddress ?? '';
  const forwardedFor = headers['x-forwarded-for'];
  const headerValue = Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor;
  return tables.addressOf(peer, headerValue);
}

/**
 * True while the client waits for the response to an earlier request, or for the rest of it: whatever is written would be
 * read as that response.
 */
function isAwaited(
  socket: Socket & {
    readonly _httpMessage?: (ServerResponse & { readonly req: IncomingMessage }) | null;
  },
): boolean {
  const response = socket._httpMessage;
  return response?.headersSent === true || response?.req.complete === true;
}

function sendDocument(reply: FastifyReply, body: string): void {
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'public, max-age=300',
    // The document contains no secrets, and browser clients read it before they can log in.
    'access-control-allow-origin': '*',
  };
  sendBuffered(reply, 200, headers, body);
}

const NO_CONTENT = 204;

/**
 * Sends a complete response. INVARIANT: Fastify gets bytes, which it leaves alone: to a text it would add a charset, and
 * to an empty one a content type.
 */
function sendBuffered(reply: FastifyReply, status: number, headers: ResponseHeaders, body: Uint8Array | string): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  reply.code(status).headers(headers);
  // A response that cannot have a body has no Content-Length either (RFC 9110 §8.6).
  if (status !== NO_CONTENT) reply.header('content-length', bytes.byteLength);
  reply.send(bytes.byteLength === 0 ? undefined : bytes);
}

/** An `Outgoing` on top of a Fastify reply, which is hijacked where the response is written in several pieces. */
function createOutgoing(reply: FastifyReply, decisionId: string, shutdown: Shutdown): Outgoing {
  return new ResponseWriter(reply, decisionId, shutdown);
}

/** The header by which a response leads to its lines in the audit log. A refusal of a part may name its own decision. */
const DECISION_HEADER = 'sallyport-decision';

class ResponseWriter implements Outgoing {
  readonly #reply: FastifyReply;
  readonly #response: ServerResponse;
  readonly #decisionId: string;
  readonly #shutdown: Shutdown;
  #hasBody = false;

  constructor(reply: FastifyReply, decisionId: string, shutdown: Shutdown) {
    this.#reply = reply;
    this.#decisionId = decisionId;
    this.#response = reply.raw;
    this.#shutdown = shutdown;
  }

  get isClosed(): boolean {
    return this.#response.destroyed || this.#response.writableEnded;
  }

  addHeader(name: string, value: string): void {
    if (!this.#response.headersSent) this.#response.setHeader(name, value);
  }

  send(status: number, headers: ResponseHeaders, body: Body): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    if (this.#shutdown.isAnnounced) this.#response.shouldKeepAlive = false;
    if (isInPieces(body)) this.#sendPieces(status, headers, body);
    else this.#sendBuffered(status, headers, body);
  }

  #sendPieces(status: number, headers: ResponseHeaders, pieces: Pieces): void {
    const response = this.#response;
    // Not by a spread with a further member, which would have a hidden class of its own for each response.
    const length = { 'content-length': sizeOfBytes(pieces) };
    response.writeHead(status, Object.assign({ [DECISION_HEADER]: this.#decisionId }, headers, length));
    this.#reply.hijack();
    // Everything written in one turn of the event loop leaves as one socket write.
    for (const piece of pieces) response.write(piece);
    response.end();
  }

  #sendBuffered(status: number, headers: ResponseHeaders, body: Uint8Array | string): void {
    try {
      if (headers[DECISION_HEADER] === undefined) this.#reply.header(DECISION_HEADER, this.#decisionId);
      sendBuffered(this.#reply, status, headers, body);
    } catch (error) {
      // Fastify keeps the headers, also those that cannot be sent; they would prevent the refusal, too.
      for (const name in headers) this.#reply.removeHeader(name);
      throw error;
    }
  }

  open(status: number, headers: ResponseHeaders): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    if (this.#shutdown.isAnnounced) response.shouldKeepAlive = false;
    response.writeHead(status, Object.assign({ [DECISION_HEADER]: this.#decisionId }, headers));
    this.#reply.hijack();
    // A stream may stay silent for long, so its headers are flushed in this turn, with whatever else it writes
    // in it.
    setImmediate(() => {
      if (!this.#hasBody && !response.destroyed && !response.writableEnded) response.flushHeaders();
    });
  }

  write(bytes: Uint8Array | string): void | Promise<void> {
    const response = this.#response;
    this.#hasBody = true;
    if (response.destroyed || response.writableEnded || response.write(bytes)) return;
    return new Promise((resolve) => {
      const resume = (): void => {
        response.off('drain', resume);
        response.off('close', resume);
        resolve();
      };
      response.on('drain', resume);
      response.on('close', resume);
    });
  }

  end(): void {
    if (!this.#response.writableEnded) this.#response.end();
  }

  disconnect(): void {
    this.#response.destroy();
  }
}

type EdgeBody = {
  readonly headers: { readonly [name: string]: string };
  readonly text: string;
};

const TEXT_TYPE = 'text/plain; charset=utf-8';
const EMPTY_EDGE_BODY: EdgeBody = { headers: {}, text: '' };

/**
 * Renders a refusal that precedes authentication: plain text that names nothing, or the JSON-RPC error of the
 * reason, so that a client of either era recognizes it as the gateway's (docs/reference/responses.md). For a path or
 * method that does not exist, the body says what to use instead or is empty.
 */
function edgeBody({ reason, instead }: Pick<EdgeRefusal, 'reason' | 'instead'>, decisionId: string): EdgeBody {
  if (instead !== undefined) return { headers: { 'content-type': TEXT_TYPE }, text: instead };
  if (reason === undefined) return EMPTY_EDGE_BODY;
  if (REASONS[reason].visible.as !== 'error') {
    return {
      headers: { [DECISION_HEADER]: decisionId, 'content-type': TEXT_TYPE },
      text: REASONS[reason].text,
    };
  }
  const { headers, body } = renderRefusal(refuseWith(reason, { isUnsent: true }), {
    decisionId,
    protocol: undefined,
    requestId: undefined,
    target: { kind: 'none' },
    method: undefined,
    challenge: () => '',
  });
  return { headers, text: body };
}

/** The bytes of a refusal for which there is no response object. */
function encodeRefusal(refusal: EdgeRefusal, decisionId: string): string {
  const { headers, text } = edgeBody(refusal, decisionId);
  const length = Buffer.byteLength(text);
  const all = { ...headers, 'content-length': length, date: new Date().toUTCString() };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const status = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n`;
  return `${status}${lines.join('')}connection: close\r\n\r\n${text}`;
}
