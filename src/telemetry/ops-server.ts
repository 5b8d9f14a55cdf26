// The ops listener (docs/contract.md §2): metrics, liveness and readiness, nothing else. Ready means that the
// configuration is loaded, the listeners are open and the audit log can be written; an unreachable upstream or issuer
// does not affect it. Probes name no upstream and need no credential.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  createHttpListener,
  type HttpListener,
  type ListenerAddress,
  type PlainResponse,
} from '../http/internal-server.js';

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

async function respond(
  request: IncomingMessage,
  ports: OpsPorts,
  mayRead: boolean,
): Promise<PlainResponse> {
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
    return respond(request, ports, !wantsCertificate || hasProvedCertificate(socket));
  });
}

/** Also requires a certificate: a resumed TLS 1.3 session counts as authorized although its client never showed one. */
function hasProvedCertificate(socket: Socket): boolean {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return false;
  return socket.getPeerX509Certificate() !== undefined;
}
