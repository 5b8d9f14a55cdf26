// Serves stdio MCP servers over streamable HTTP with sessions, each at its path, on loopback or one Unix socket. What
// becomes of one server concerns no other. A request must carry the bearer token, no Origin and a Host that names this
// machine, so that no web page can reach a server, not even by DNS rebinding.
// Source: MCP 2025-11-25, transports (streamable HTTP, session management, security warning); RFC 6750 §3.

import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createAppFor, openApp, sendPlain } from '../http/app.js';
import type { ProcessPorts, ServerCommand } from './server-process.js';
import {
  IDLE_MS,
  type Refusal,
  type ServedServer,
  ServerSessions,
  type SessionPorts,
  type SessionSettings,
  singleHeader,
} from './server-sessions.js';

export const STDIO_PATH = '/mcp';

/** One command at the path of the only server. */
export function onlyServer(command: ServerCommand, label = ''): StdioServerSettings['servers'] {
  return new Map([[STDIO_PATH, { label, prepare: () => Promise.resolve(command) }]]);
}

export type StdioServerSettings = SessionSettings & {
  /** By path, such as `/mcp`. */
  readonly servers: ReadonlyMap<string, ServedServer>;
  /** Where to listen: an address of the loopback, or the path of a Unix socket. */
  readonly address: { readonly host: string; readonly port: number } | { readonly socket: string };
  /** The token that every request presents. */
  readonly token: string;
};

export type StdioServerPorts = SessionPorts & Pick<ProcessPorts, 'killMarked'>;

export type StdioServer = {
  /** The port, if it listens on one. */
  readonly port: number | undefined;
  /** Ends every session and its processes. */
  close(): Promise<void>;
};

const LIMITS = {
  maxHeaderBytes: 16 * 1024,
  headersWithinMs: 10_000,
  requestWithinMs: 60_000,
  // Longer than clients keep an unused connection, so that they do not send on one that is being closed.
  idleMs: 75_000,
  maxConnections: 1_024,
} as const;
const INVALID_REQUEST = -32600;

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function errorBody(message: string, code = INVALID_REQUEST): string {
  return JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } });
}

class StdioHttpServer {
  readonly #address: StdioServerSettings['address'];
  readonly #token: Buffer;
  /** By path. */
  readonly #servers: ReadonlyMap<string, ServerSessions>;
  #port: number | undefined;

  constructor(
    { servers, address, token }: StdioServerSettings,
    openSessions: (server: ServedServer) => ServerSessions,
  ) {
    this.#address = address;
    this.#token = digest(token);
    this.#servers = new Map([...servers].map(([path, server]) => [path, openSessions(server)]));
  }

  /** The port decides which Host is this server's; it is known once the server listens. */
  listensOn(port: number | undefined): void {
    this.#port = port;
  }

  async handle({ raw }: FastifyRequest, reply: FastifyReply): Promise<void> {
    const found = this.#findServer(raw);
    const refusal = 'status' in found ? found : await found.serve(raw, reply);
    if (refusal === undefined) return;
    const { status, message, code, headers } = refusal;
    const json = { 'content-type': 'application/json' };
    sendPlain(raw, reply, { status, headers: { ...headers, ...json }, body: errorBody(message, code) });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#servers.values()].map((server) => server.close()));
  }

  endIdleSessions(): void {
    for (const server of this.#servers.values()) server.endIdle();
  }

  /** Origin and Host first: a web page must learn nothing, not even whether it guessed the token. */
  #findServer(request: IncomingMessage): ServerSessions | Refusal {
    const { headersDistinct, method, url } = request;
    if (headersDistinct['origin'] !== undefined)
      return { status: 403, message: 'Requests of web pages (with an Origin) are refused.' };
    if (!this.#isOwnHost(singleHeader(request, 'host')))
      return { status: 421, message: 'This host is not served here.' };
    const token = /^bearer +(\S+)$/i.exec(singleHeader(request, 'authorization') ?? '')?.[1];
    if (token === undefined || !timingSafeEqual(digest(token), this.#token)) {
      const headers = { 'www-authenticate': 'Bearer' };
      return { status: 401, message: 'The bearer token of this server is required.', headers };
    }
    const server = this.#servers.get(url ?? '');
    if (server === undefined) return { status: 404, message: this.#pathsText() };
    if (method === 'POST' || method === 'GET' || method === 'DELETE') return server;
    return { status: 405, message: 'Method not allowed.', headers: { allow: 'GET, POST, DELETE' } };
  }

  #pathsText(): string {
    const paths = [...this.#servers.keys()];
    return paths.length === 1 ? `The path is ${paths[0]}.` : `The paths are ${paths.join(', ')}.`;
  }

  /** Names of the loopback, with the port that is listened on; on a Unix socket any port. */
  #isOwnHost(host: string | undefined): boolean {
    const [, name, port = '80'] = /^(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?$/.exec(host ?? '') ?? [];
    const address = this.#address;
    const own = ['localhost', '127.0.0.1', '[::1]', 'host' in address ? address.host : ''];
    if (name === undefined || name === '' || !own.includes(name.toLowerCase())) return false;
    return this.#port === undefined || Number(port) === this.#port;
  }
}

/** Is inherited by everything that a server starts, whatever its parent, group and session. */
const MARK = 'SALLYPORT_STDIO_ADAPTER';

/** Starts to listen; rejects if that is not possible. No process is started before the first session. */
export async function startStdioServer(settings: StdioServerSettings, ports: StdioServerPorts): Promise<StdioServer> {
  const mark = randomUUID();
  const adapter = new StdioHttpServer(settings, (server) => {
    return new ServerSessions(server, { ...settings, env: { [MARK]: mark } }, ports);
  });
  const app = createAppFor({ ...LIMITS, fastify: { forceCloseConnections: 'idle' } }, (request, reply) => {
    adapter.handle(request, reply).catch(() => reply.raw.destroy());
  });
  const { address } = settings;
  const port = 'socket' in address ? undefined : await openApp(app, address);
  if ('socket' in address) await app.listen({ path: address.socket });
  adapter.listensOn(port);
  const sweep = setInterval(() => adapter.endIdleSessions(), sweepIntervalOf(settings));
  return {
    port,
    async close() {
      clearInterval(sweep);
      const closed = app.close();
      await adapter.close();
      // What left the group of its server may be shared by sessions, but not outlive the adapter.
      await ports.killMarked(MARK, mark);
      app.server.closeAllConnections();
      await closed;
    },
  };
}

function sweepIntervalOf({ idleMs = IDLE_MS }: StdioServerSettings): number {
  return Math.max(Math.ceil(idleMs / 20), 50);
}
