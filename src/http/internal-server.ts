// The HTTP server of the ops and admin listeners. A single function answers every request; limits on headers,
// time and connections are the same for both, and no body is read unless `readBody` is called. Decides nothing
// about paths or callers.

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';

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
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<string | undefined> {
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
