// The small HTTP servers of the gateway's own (ops and admin): one function answers, everything else is
// the same for both: no body is read unless it is asked for, headers are capped, connections are few, closing ends them.
// It decides nothing about paths or callers.

import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';

const MAX_HEADER_BYTES = 8 * 1024;
const HEADERS_WITHIN_MS = 5_000;
const REQUEST_WITHIN_MS = 10_000;
const IDLE_MS = 15_000;
const MAX_CONNECTIONS = 256;

/** What these listeners answer. */
export type PlainResponse = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
};

/** Where a listener listens, and what it needs for TLS where it has it. */
export type ListenerAddress = {
  readonly host: string;
  readonly port: number;
  readonly secure?: TlsOptions | undefined;
};

export interface HttpListener {
  /** Opens the listener; resolves with the port that it has. Rejects when it cannot be opened. */
  start(): Promise<{ readonly port: number }>;
  close(): Promise<void>;
  /** Takes other certificates for the connections that come; nothing where it speaks plain HTTP. */
  renew(secure: TlsOptions | undefined): void;
}

/** Headers that every answer carries. */
const ALWAYS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;

const FAILED: PlainResponse = {
  status: 500,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Internal error.\n',
};

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Reads a body of UTF-8; `undefined` where it is larger than `maxBytes`, or broke off. */
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

/** A listener that answers each request with `answer`; a fault in it is a 500 that says nothing. */
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
  const secured = secure && createSecureServer({ ...secure, ...limits });
  const server = secured ?? createServer(limits);
  server.maxConnections = MAX_CONNECTIONS;
  server.on('request', (request, response) => {
    Promise.resolve()
      .then(() => respond(request))
      .catch(() => FAILED)
      .then(({ status, headers, body }) => {
        // What was not read goes with the connection.
        const rest = request.complete ? {} : { connection: 'close' };
        response.writeHead(status, { ...ALWAYS, ...headers, ...rest });
        response.end(request.method === 'HEAD' ? undefined : body);
        request.resume();
      })
      .catch(() => response.destroy());
  });
  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve({ port: portOf(server) });
        });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    renew(next) {
      if (next === undefined || secured === undefined) return;
      secured.setSecureContext(next);
      // What clients have proved to the authorities of before is proved anew.
      secured.closeAllConnections();
    },
  };
}
