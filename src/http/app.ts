// How this program opens an HTTP server: a Fastify instance with the settings that every listener shares. Fastify reads
// no body by itself, takes no proxy's word and logs nothing; what it finds wrong with a request is answered as the
// listener says. Also what listeners need that answer whole and small: one function that answers every request, and the
// bytes of a body.

import { lookup } from 'node:dns/promises';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
} from 'fastify';
import { refusalOfClientError } from './request-checks.js';

export type AppOptions = {
  /** Where the listener speaks TLS. */
  readonly secure?: TlsOptions | undefined;
  readonly maxHeaderBytes: number;
  readonly headersWithinMs: number;
  readonly requestWithinMs: number;
  /** How long a connection may be idle. */
  readonly idleMs: number;
  /** Of all clients; as many as come where it is absent. */
  readonly maxConnections?: number;
  /** What the listener has of its own. */
  readonly fastify?: Pick<
    FastifyServerOptions,
    'genReqId' | 'return503OnClosing' | 'forceCloseConnections' | 'frameworkErrors' | 'clientErrorHandler'
  >;
};

type HostAndPort = { readonly host: string; readonly port: number };

/** Answers what never became a request, with a status alone, and closes the connection. */
function refuseUnreadable({ code }: FastifyError, socket: Socket): void {
  const status = refusalOfClientError(code)?.status;
  if (status === undefined || !socket.writable) socket.destroy();
  else socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\n\r\n`);
}

/** Creates an instance; nothing is open before `openApp`. */
export function createApp(options: AppOptions): FastifyInstance {
  const { secure, maxHeaderBytes, headersWithinMs, requestWithinMs, idleMs, maxConnections } = options;
  const shared = {
    logger: false,
    requestTimeout: requestWithinMs,
    keepAliveTimeout: idleMs,
    trustProxy: false,
    exposeHeadRoutes: false,
    forceCloseConnections: true,
    clientErrorHandler: refuseUnreadable,
    ...options.fastify,
  } satisfies FastifyServerOptions;
  const http = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersWithinMs,
    connectionsCheckingInterval: 5_000,
    // A request without Host is refused by the checks of the listener, which can say so.
    requireHostHeader: false,
  };
  const app =
    secure === undefined
      ? fastify({ ...shared, http })
      : // The two types of server do not differ in anything that is used here.
        (fastify({ ...shared, https: { ...http, ...secure } }) as unknown as FastifyInstance);
  // Of more than 2,000 headers Node would hide the rest from every check, but not from its own framing.
  app.server.maxHeadersCount = 0;
  if (maxConnections !== undefined) app.server.maxConnections = maxConnections;
  app.removeAllContentTypeParsers();
  return app;
}

/** Listens on one address of a host; resolves with the port in use. Rejects where that is not possible. */
export async function openApp(app: FastifyInstance, { host, port }: HostAndPort): Promise<number> {
  // Fastify would listen on every address of a name and skip those that it cannot open.
  const { address } = await lookup(host);
  await app.listen({ host: address, port });
  return (app.server.address() as AddressInfo).port;
}

/**
 * Creates an instance that gives every request to one function, whatever its method and path, with its body still unread.
 */
export function createAppFor(
  options: AppOptions,
  handle: (request: FastifyRequest, reply: FastifyReply) => void,
): FastifyInstance {
  // A path that Fastify cannot decode is like any other here.
  const frameworkErrors = (_error: unknown, request: FastifyRequest, reply: FastifyReply) => handle(request, reply);
  const app = createApp({ ...options, fastify: { ...options.fastify, frameworkErrors } });
  // The first hook, before anything of a body is read. There are no routes, and nothing runs behind it.
  app.addHook('onRequest', (request, reply, _next) => handle(request, reply));
  return app;
}

/** A whole response. */
export type PlainResponse = {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body: string;
};

const INTERNAL_ERROR: PlainResponse = {
  status: 500,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'Internal error.\n',
};

/**
 * Creates an instance that answers with whole responses, each with the common headers. An exception becomes a 500 without
 * details.
 */
export function createResponder(
  options: AppOptions,
  respond: (request: IncomingMessage) => PlainResponse | Promise<PlainResponse>,
  commonHeaders: NonNullable<PlainResponse['headers']> = {},
): FastifyInstance {
  async function answer(raw: IncomingMessage, reply: FastifyReply): Promise<void> {
    const response = await Promise.resolve(raw)
      .then(respond)
      .catch(() => INTERNAL_ERROR);
    sendPlain(raw, reply, { ...response, headers: { ...commonHeaders, ...response.headers } });
  }
  return createAppFor(options, ({ raw }, reply) => {
    answer(raw, reply).catch(() => reply.raw.destroy());
  });
}

/** Sends a whole response; if the body of the request has not been read to its end, the connection is closed after it. */
export function sendPlain(
  request: IncomingMessage,
  reply: FastifyReply,
  { status, headers, body }: PlainResponse,
): void {
  reply.code(status);
  if (headers !== undefined) reply.headers(headers);
  if (!request.complete) reply.header('connection', 'close');
  // Bytes, because Fastify would add a charset to a text, and a content type to an empty one.
  const bytes = Buffer.from(body);
  if (request.method === 'HEAD') reply.header('content-length', bytes.byteLength);
  reply.send(bytes.byteLength === 0 || request.method === 'HEAD' ? undefined : bytes);
  request.resume();
}

/**
 * Reads a body to its end; `undefined` if it has more than `maxBytes`, or breaks off. Does not use `for await`: leaving
 * the loop would close the connection on which the refusal still has to be sent.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else resolve(undefined);
    });
    request.on('end', () => resolve(size <= maxBytes ? Buffer.concat(chunks) : undefined));
    request.on('close', () => resolve(undefined));
  });
}

/** Reads a body as UTF-8; `undefined` also where it is not valid. */
export async function readText(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const bytes = await readBody(request, maxBytes);
  try {
    return bytes && new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
