// The listeners for operators, and the ops listener itself. A single function answers every request; limits on headers,
// time and connections are the same for all, and no body is read unless that function does.
// The ops listener (docs/reference/listeners.md) serves metrics, liveness and readiness, nothing else. What makes the
// gateway ready is decided in gateway/readiness.ts. Probes name no upstream and need no credential.

import type { IncomingMessage } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket, type TlsOptions } from 'node:tls';
import { createResponder, openApp, type PlainResponse } from './app.js';

const LIMITS = {
  maxHeaderBytes: 8 * 1024,
  headersWithinMs: 5_000,
  requestWithinMs: 10_000,
  idleMs: 15_000,
  maxConnections: 256,
} as const;

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

/** Creates a listener that answers each request with `respond`. */
export function createHttpListener(
  { host, port, secure }: ListenerAddress,
  respond: (request: IncomingMessage) => PlainResponse | Promise<PlainResponse>,
): HttpListener {
  const app = createResponder({ ...LIMITS, secure }, respond, COMMON_HEADERS);
  return {
    start: async () => ({ port: await openApp(app, { host, port }) }),
    close: () => app.close(),
    updateTls(next) {
      if (next === undefined || secure === undefined) return;
      const server = app.server as unknown as SecureServer;
      server.setSecureContext(next);
      // Existing connections were authenticated under the previous certificate authorities, so they are closed.
      server.closeAllConnections();
    },
  };
}

/** `reasons`: why it is not ready or, while it is, what is weaker than it should be. Fixed texts that name nothing. */
export type ReadinessReport = { readonly isReady: boolean; readonly reasons: readonly string[] };

type OpsPorts = {
  readonly renderMetrics: () => Promise<string>;
  readonly readiness: () => ReadinessReport;
};

const TEXT = { 'content-type': 'text/plain; charset=utf-8' };
const METRICS_TEXT = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' };

const ALIVE: PlainResponse = { status: 200, headers: TEXT, body: 'alive\n' };
const FORBIDDEN: PlainResponse = {
  status: 403,
  headers: TEXT,
  body: 'a client certificate is required\n',
};
const NOT_FOUND: PlainResponse = { status: 404, headers: TEXT, body: 'not found\n' };

function respondReadiness({ isReady, reasons }: ReadinessReport): PlainResponse {
  const state = isReady ? 'ready' : 'not ready';
  const weaker = isReady && reasons.length > 0 ? ', degraded' : '';
  const why = reasons.map((reason) => `${reason}\n`).join('');
  return { status: isReady ? 200 : 503, headers: TEXT, body: `${state}${weaker}\n${why}` };
}

async function respondOps(request: IncomingMessage, ports: OpsPorts, mayRead: boolean): Promise<PlainResponse> {
  if (request.method !== 'GET' && request.method !== 'HEAD') return NOT_FOUND;
  switch (request.url) {
    case '/livez':
      return ALIVE;
    case '/readyz':
      return respondReadiness(ports.readiness());
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
