// The ops listener (docs/contract.md §2): metrics, and whether the process lives and is ready, nothing more.
// Ready means that the configuration is loaded, the listeners are open and the audit can be written; a
// dead upstream or issuer does not make it unready. It names no upstream and needs no credential.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  createHttpListener,
  type HttpListener,
  type ListenerAddress,
  type PlainResponse,
} from '../http/internal-server.js';

export type OpsPorts = {
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
 * The ops listener; closed until `start`. Where it asks for client certificates, metrics are shown to whoever
 * proves one; probes, which cannot have any, are answered to all.
 */
export function createOpsServer(listener: ListenerAddress, ports: OpsPorts): HttpListener {
  const wantsCertificate = listener.secure?.requestCert === true;
  return createHttpListener(listener, (request) => {
    const { socket } = request;
    return respond(request, ports, !wantsCertificate || hasProvedCertificate(socket));
  });
}

/** A session of TLS 1.3 that is resumed counts as authorized though its client never showed a certificate. */
function hasProvedCertificate(socket: Socket): boolean {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return false;
  return socket.getPeerX509Certificate() !== undefined;
}
