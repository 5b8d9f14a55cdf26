// The HTTP server of the ops and admin listeners, and the ops listener itself. A single function answers every request;
// limits on headers, time and connections are the same for both, and no body is read unless `readBody` is called.
// The ops listener (docs/contract.md §2) serves metrics, liveness and readiness, nothing else. Ready means that the
// configuration is loaded, the listeners are open and the audit log can be written; an unreachable upstream or issuer
// does not affect it. Probes name no upstream and need no credential.

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket, type TlsOptions } from 'node:tls';

const MAX_HEADER_BYTES = 8 * 1024;
const HEADERS_WITHIN_MS = 5_000;
const REQUEST_WITHIN_MS = 10_000;
const IDLE_MS = 15_000;
const MAX_CONNECTIONS = 256;

/** A response of these listeners. */
export type PlainResponse = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body: string;
};

/** The address of a listener, and its TLS options if it uses TLS. */
export type ListenerAddress = {
  readonly host: string;
  readonly port: number;
  readonly secure?: TlsOptions | undefined;
};

export interface HttpListener {
  /** Opens the listener; resolves with the port in use. Rejects if it cannot be opened. */
  start(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
  /** Uses these certificates for new connections. Has no effect with plain HTTP. */
  updateTls(secure: TlsOptions | undefined): void;
}

/** Headers of every response. */
const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;

const INTERNAL_ERROR: PlainResponse = {
  status: 500,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Internal error.\n',
};

/** Reads a UTF-8 body; `undefined` if it exceeds `maxBytes`, is not valid UTF-8, or broke off. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      total += chunk.length;
      if (total > maxBytes) return undefined;
      chunks.push(chunk);
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    return undefined;
  }
}

/** Creates a listener that answers each request with `respond`. An exception becomes a 500 without details. */
export function createHttpListener(
  { host, port, secure }: ListenerAddress,
  respond: (request: IncomingMessage) => PlainResponse | Promise<PlainResponse>,
): HttpListener {
  const limits = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_WITHIN_MS,
    requestTimeout: REQUEST_WITHIN_MS,
    keepAliveTimeout: IDLE_MS,
  };
  const secureServer = secure && createSecureServer({ ...secure, ...limits });
  const server = secureServer ?? createServer(limits);
  server.maxConnections = MAX_CONNECTIONS;
  // Node would hide the headers after the 2,000th.
  server.maxHeadersCount = 0;
  server.on('request', (request, response) => {
    Promise.resolve()
      .then(() => respond(request))
      .catch(() => INTERNAL_ERROR)
      .then(({ status, headers, body }) => {
        // An unread rest of the body is discarded by closing the connection.
        const closeHeaders = request.complete ? {} : { connection: 'close' };
        response.writeHead(status, { ...COMMON_HEADERS, ...headers, ...closeHeaders });
        response.end(request.method === 'HEAD' ? undefined : body);
        request.resume();
      })
      .catch(() => response.destroy());
  });
  return {
    async start() {
      // Rejects with the error where the listener cannot be opened.
      await once(server.listen(port, host), 'listening');
      return { port: (server.address() as AddressInfo).port };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    updateTls(next) {
      if (next === undefined || secureServer === undefined) return;
      secureServer.setSecureContext(next);
      // Existing connections were authenticated under the previous certificate authorities, so they are closed.
      secureServer.closeAllConnections();
    },
  };
}

type OpsPorts = {
  readonly renderMetrics: () => Promise<string>;
  readonly isReady: () => boolean;
};

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };
const METRICS_TEXT = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };

const ALIVE: PlainResponse = { status: 200, headers: TEXT, body: 'alive\n' };
const READY: PlainResponse = { status: 200, headers: TEXT, body: 'ready\n' };
const NOT_READY: PlainResponse = { status: 503, headers: TEXT, body: 'not ready\n' };
const FORBIDDEN: PlainResponse = {
  status: 403,
  headers: TEXT,
  body: 'a client certificate is required\n',
};
const NOT_FOUND: PlainResponse = { status: 404, headers: TEXT, body: 'not found\n' };

async function respondOps(request: IncomingMessage, ports: OpsPorts, mayRead: boolean): Promise<PlainResponse> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return NOT_FOUND;
  switch (request.url) {
    case '/livez':
      return ALIVE;
    case '/readyz':
      return ports.isReady() ? READY : NOT_READY;
    case '/metrics':
      if (!mayRead) return FORBIDDEN;
      return { status: 200, headers: METRICS_TEXT, body: await ports.renderMetrics() };
    default:
      return NOT_FOUND;
  }
}

/**
 * The ops listener; closed until `start`. Where it asks for client certificates, metrics are served only to clients
 * that prove one; probes, which cannot have a certificate, are always answered.
 */
export function createOpsServer(listener: ListenerAddress, ports: OpsPorts): HttpListener {
  const wantsCertificate = listener.secure?.requestCert === true;
  return createHttpListener(listener, (request) => {
    const { socket } = request;
    return respondOps(request, ports, !wantsCertificate || hasProvedCertificate(socket));
  });
}

/** Also requires a certificate: a resumed TLS 1.3 session counts as authorized although its client never showed one. */
function hasProvedCertificate(socket: Socket): boolean {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return false;
  return socket.getPeerX509Certificate() !== undefined;
}
