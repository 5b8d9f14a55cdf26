// The data listener: Fastify for sockets and their limits, plain values behind it. Checks only what HTTP itself
// defines (path, Host, Origin, size and type); everything else is up to proxy/pipeline.ts.

import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
import fastify from 'fastify';
import type { Incoming, Outgoing } from '../protocol/transport.js';
import { createConcurrencyLimits } from './concurrency.js';
import { discardCertificate } from './peer.js';
import { createBodyReader, type EdgeFacts, toIncoming, type UnreadBody } from './request.js';
import { type CorsHeaders, checkRequest, corsHeaders, type EdgeRefusal } from './request-checks.js';
import { createOutgoing, edgeBody } from './response.js';
import type { EdgeTables } from './routes.js';

export type DataServerPorts = {
  /** The tables of the current version, read once per request; `undefined` while the gateway is starting. */
  tables(): EdgeTables | undefined;
  /** Runs the pipeline for one request. Never rejects. */
  handle(incoming: Incoming, outgoing: Outgoing): Promise<void>;
  /** Reports a refusal that precedes authentication, for the audit log. */
  reportRefusal(refusal: EdgeRefusal, id: string, remoteAddress: string): void;
};

export type DataServer = {
  /** Opens the listener; resolves with the port in use. */
  listen(host: string, port: number): Promise<number>;
  /** Stops accepting connections, then waits at most `graceMs` for running requests. */
  close(graceMs: number): Promise<void>;
  /**
   * Uses other certificates for new connections; only if the listener was created with TLS. If the authorities
   * for client certificates changed, those proved before are no longer valid, on open connections too.
   */
  renew(secure: TlsOptions): void;
};

const MAX_HEADER_BYTES = 16 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
const DRAIN_SWEEP_MS = 50;
/** The limit for all unfinished request bodies together. */
const MAX_BODIES_BYTES = 64 * 1024 * 1024;
const NO_BODY = new Uint8Array(0);
/** The response while the gateway is starting: its ports open before it can serve. */
const STARTING: EdgeRefusal = {
  status: 503,
  reason: 'overloaded',
  upstream: undefined,
  headers: { 'retry-after': '5', connection: 'close' },
};
const OVERLOADED = { status: 503, reason: 'overloaded', headers: { 'retry-after': '1' } } as const;
const TOO_LARGE = { status: 413, reason: 'body-too-large' } as const;

/** Creates the Fastify instance, with or without TLS. */
function createApp(secure: TlsOptions | undefined): FastifyInstance {
  const options = {
    logger: false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    trustProxy: false,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    // A request target that cannot be parsed is treated as an unknown path.
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack();
      sendNothing(reply.raw);
    },
  } satisfies FastifyServerOptions;
  const http = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: 5_000,
  };
  if (secure === undefined) return fastify({ ...options, http });
  // The two types of server do not differ in anything that is used here.
  return fastify({ ...options, https: { ...http, ...secure } }) as unknown as FastifyInstance;
}

/** Creates the listener; nothing is open before `listen`. With `secure` it accepts TLS only. */
export function createDataServer(ports: DataServerPorts, secure?: TlsOptions): DataServer {
  const concurrencyLimits = createConcurrencyLimits();
  const bodies = createBodyReader(MAX_BODIES_BYTES);
  const app = createApp(secure);
  // Runs before Fastify reads any header. Its own refusals would have its own text, would not be recorded, and
  // would precede the checks here.
  app.addHook('onRequest', (request, reply) => {
    reply.hijack();
    const tables = ports.tables();
    return tables === undefined
      ? refuseEarly(request.raw, reply.raw)
      : serve(request.raw, reply.raw, tables);
  });

  const sockets = new Set<Socket>();
  /** Connections to close after their next response, so that clients authenticate again. */
  const outdated = new WeakSet<Socket>();
  let authorities = secure?.ca;
  app.server.on(secure === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });

  function discardClientCertificates(): void {
    for (const socket of sockets) {
      discardCertificate(socket);
      outdated.add(socket);
    }
  }

  async function refuseEarly(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const remoteAddress = request.socket.remoteAddress ?? '';
    refuse(request, response, STARTING, { id: randomUUID(), remoteAddress });
  }

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    tables: EdgeTables,
  ): Promise<void> {
    const receivedAt = Date.now();
    const startedMs = performance.now();
    const id = randomUUID();
    allowOrigin(request, response, tables);
    const remoteAddress = addressOf(request, tables);
    const check = checkRequest(request, tables);
    if (check.kind === 'document') return sendDocument(response, check.body);
    if (check.kind === 'preflight') return sendPreflight(response, check.headers);
    if (check.kind === 'refused') {
      return refuse(request, response, check.refusal, { id, remoteAddress });
    }
    const { route, query, repeated } = check;
    const body =
      request.method === 'POST' ? await bodies.read(request, route.maxRequestBytes) : NO_BODY;
    if (typeof body === 'string')
      return refuseBody(request, response, body, { id, route, remoteAddress });
    const facts = { id, receivedAt, startedMs, route, query, repeated, remoteAddress, body };
    await runPipeline(request, response, facts);
  }

  async function runPipeline(
    request: IncomingMessage,
    response: ServerResponse,
    facts: EdgeFacts,
  ): Promise<void> {
    if (outdated.has(request.socket)) response.shouldKeepAlive = false;
    const slots = concurrencyLimits.forOne(facts.route);
    try {
      const incoming = toIncoming(request, response, facts, slots.acquire);
      await ports.handle(incoming, createOutgoing(response));
    } finally {
      slots.release();
    }
  }

  function refuseBody(
    request: IncomingMessage,
    response: ServerResponse,
    why: UnreadBody,
    facts: Pick<EdgeFacts, 'id' | 'route' | 'remoteAddress'>,
  ): void {
    const { upstream } = facts.route;
    switch (why) {
      case 'aborted':
        response.destroy();
        return;
      case 'too-large':
        refuse(request, response, { ...TOO_LARGE, upstream }, facts);
        return;
      case 'crowded-out':
        refuse(request, response, { ...OVERLOADED, upstream }, facts);
        return;
    }
  }

  function refuse(
    request: IncomingMessage,
    response: ServerResponse,
    refusal: EdgeRefusal,
    { id, remoteAddress }: Pick<EdgeFacts, 'id' | 'remoteAddress'>,
  ): void {
    ports.reportRefusal(refusal, id, remoteAddress);
    const { headers, text } = edgeBody(refusal, id);
    const closes = refusal.status === 413 || refusal.status === 400;
    response.writeHead(refusal.status, {
      ...headers,
      ...refusal.headers,
      'content-length': Buffer.byteLength(text),
      // The unread rest of an oversized body would otherwise be parsed as the next request.
      ...(closes ? { connection: 'close' } : {}),
    });
    response.end(text);
    if (!closes) request.resume();
  }

  return {
    async listen(host, port) {
      // Fastify would listen on every address of a name and skip those that it cannot open.
      const { address: only } = await lookup(host);
      await app.listen({ host: only, port });
      const address = app.server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async close(graceMs) {
      const timer = setTimeout(() => app.server.closeAllConnections(), graceMs);
      // Node closes idle connections when draining begins, but not those that become idle later, nor those on
      // which no request was ever sent.
      const sweep = setInterval(() => {
        app.server.closeIdleConnections();
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      }, DRAIN_SWEEP_MS);
      await app.close();
      clearInterval(sweep);
      clearTimeout(timer);
    },
    renew(next) {
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
  const forwardedFor = headers['x-forwarded-for'];
  const written = Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor;
  return tables.addressOf(socket.remoteAddress ?? '', written);
}

function sendPreflight(response: ServerResponse, headers: CorsHeaders): void {
  response.writeHead(204, headers);
  response.end();
}

function sendNothing(response: ServerResponse): void {
  response.writeHead(404, { 'content-length': 0 });
  response.end();
}

function sendDocument(response: ServerResponse, body: string): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'public, max-age=300',
    // The document contains no secrets, and browser clients read it before they can log in.
    'access-control-allow-origin': '*',
  });
  response.end(body);
}
