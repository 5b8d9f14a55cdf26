// Servers on the official SDKs, and the reference server.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  acceptedContent,
  createMcpHandler,
  fromJsonSchema,
  inputRequired,
  McpServer,
  ResourceTemplate,
  type ServerNotifier,
} from '@modelcontextprotocol/server';
import { canary } from './canary.js';
import { findFreePort } from './processes.js';

// A server of the stateless era on the official SDK v2, behind node:http, with one of everything that a
// gateway must carry: structured results, progress, a prompt, a resource, a template, a mirrored header.

export type SdkV2Seen = {
  readonly httpMethod: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type SdkV2Server = {
  readonly url: string;
  readonly origin: string;
  /** What `get_secret` returns: given at start, so that no test has a secret in its source. */
  readonly secret: string;
  seen(): readonly SdkV2Seen[];
  /** Publishes changes to whoever listens. */
  readonly notify: ServerNotifier;
  close(): Promise<void>;
};

export type SdkV2Options = {
  readonly secret?: string;
  /** `reject` answers the stateless era alone; `stateless` serves both, without sessions. */
  readonly legacy?: 'stateless' | 'reject';
  /** Asked before the server; a response ends the request (a resource server's 401, its metadata). */
  readonly guard?: (request: Request) => Response | undefined;
  /** Further tools and the like, registered at every request; `body` is what was sent. */
  readonly extend?: (server: McpServer, body: string) => void;
};

type Schema = { readonly [member: string]: unknown };

function schema<T>(properties: Schema, required: readonly string[]) {
  return fromJsonSchema<T>({ type: 'object', properties, required: [...required] } as never);
}

function text(value: string): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text: value }] };
}

function registerTools(server: McpServer, secret: string): void {
  server.registerTool(
    'echo',
    {
      description: 'Says it again.',
      inputSchema: schema<{ text: string }>({ text: { type: 'string' } }, ['text']),
    },
    ({ text: received }) => text(received),
  );
  const numbers = schema<{ a: number; b: number }>({ a: { type: 'number' }, b: { type: 'number' } }, ['a', 'b']);
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers.',
      inputSchema: numbers,
      outputSchema: schema<{ sum: number }>({ sum: { type: 'number' } }, ['sum']),
    },
    ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
  );
  server.registerTool(
    'get_secret',
    { description: 'Tells what it should not.', inputSchema: schema<Schema>({}, []) },
    () => text(`The key is ${secret}.`),
  );
  server.registerTool(
    'slow',
    {
      description: 'Tells how far it is.',
      inputSchema: schema<{ steps: number }>({ steps: { type: 'integer', maximum: 100 } }, ['steps']),
    },
    async ({ steps }, context) => {
      const progressToken = context.mcpReq._meta?.progressToken;
      for (let step = 1; step <= steps && progressToken !== undefined; step += 1) {
        const params = { progressToken, progress: step, total: steps, message: `step ${step}` };
        await context.mcpReq.notify({ method: 'notifications/progress', params });
      }
      return text(`done after ${steps}`);
    },
  );
  server.registerTool(
    'by_region',
    {
      description: 'Mirrors its region in a header.',
      inputSchema: schema<{ region: string }>({ region: { type: 'string', 'x-mcp-header': 'Region' } }, ['region']),
    },
    ({ region }) => text(`served in ${region}`),
  );
}

function registerContent(server: McpServer): void {
  server.registerPrompt(
    'greet',
    {
      description: 'Greets.',
      argsSchema: schema<{ name: string }>({ name: { type: 'string' } }, ['name']),
    },
    ({ name }) => ({
      messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }],
    }),
  );
  server.registerResource('readme', 'memo://readme', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Read me.' }],
  }));
  const template = new ResourceTemplate('memo://notes/{id}', { list: undefined });
  server.registerResource('note', template, { mimeType: 'text/plain' }, (uri, variables) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: `Note ${String(variables['id'])}.` }],
  }));
}

async function toWebRequest(request: IncomingMessage, origin: string, gone: AbortSignal): Promise<Request> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const headers = new Headers();
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    headers.append(request.rawHeaders[i] ?? '', request.rawHeaders[i + 1] ?? '');
  }
  const body = chunks.length > 0 ? Buffer.concat(chunks) : null;
  const init = { method: request.method ?? 'GET', headers, body, signal: gone };
  return new Request(new URL(request.url ?? '/', origin), init);
}

async function writeWebResponse(response: ServerResponse, answer: Response): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body !== null) {
    for await (const chunk of answer.body) response.write(chunk);
  }
  response.end();
}

/** Starts the server on a free port of loopback, endpoint `/mcp`. */
export async function startSdkV2Server(options: SdkV2Options = {}): Promise<SdkV2Server> {
  const secret = options.secret ?? 'nothing in particular';
  const seen: SdkV2Seen[] = [];
  const bodies = new WeakMap<Request, string>();
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const server = new McpServer(
        { name: 'sdk-v2', version: '1.0.0' },
        { instructions: 'A server of the stateless era.' },
      );
      registerTools(server, secret);
      registerContent(server);
      options.extend?.(server, (requestInfo && bodies.get(requestInfo)) ?? '');
      return server;
    },
    { legacy: options.legacy ?? 'stateless' },
  );
  let origin = '';
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const received = await toWebRequest(request, origin, gone.signal);
    const early = options.guard?.(received);
    if (early !== undefined) return writeWebResponse(response, early);
    const body = await received.clone().text();
    bodies.set(received, body);
    seen.push({ httpMethod: received.method, headers: Object.fromEntries(received.headers), body });
    if (new URL(received.url).pathname !== '/mcp') {
      return writeWebResponse(response, new Response(null, { status: 404 }));
    }
    return writeWebResponse(response, await handler.fetch(received));
  }
  const http = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  return {
    url: `${origin}/mcp`,
    origin,
    secret,
    seen: () => [...seen],
    notify: handler.notify,
    close: async () => {
      await handler.close();
      http.closeAllConnections();
      await new Promise<void>((resolve) => http.close(() => resolve()));
    },
  };
}

// Further tools for the server on SDK v2: one that asks whom to greet before it answers, one that answers
// only once it is given up, and a template whose variable can be completed.

const NAME = fromJsonSchema<{ name: string }>({
  type: 'object',
  properties: { name: { type: 'string', title: 'Name' } },
  required: ['name'],
} as never);

const NOTHING = fromJsonSchema({ type: 'object', properties: {} });

/** A server that knows no sessions, with all of these tools; `waits` gathers what the waiting one goes through. */
export function startInputRequiredServer(waits: string[]): Promise<SdkV2Server> {
  return startSdkV2Server({
    legacy: 'reject',
    extend(made) {
      made.server.registerCapabilities({ resources: { subscribe: true } });
      registerGreeting(made);
      registerCities(made);
      registerWaiting(made, (what) => waits.push(what));
    },
  });
}

/** `greet_someone`: asks by a result, with the state `leg:1`. */
export function registerGreeting(server: McpServer): void {
  server.registerTool(
    'greet_someone',
    { description: 'Greets whoever is named.', inputSchema: NOTHING },
    async (_args, context) => {
      const accepted = await acceptedContent(context.mcpReq.inputResponses, 'who', NAME);
      const state: unknown = context.mcpReq.requestState();
      if (accepted === undefined) {
        return inputRequired({
          inputRequests: {
            who: inputRequired.elicit({ message: 'Who is to be greeted?', requestedSchema: NAME }),
          },
          requestState: 'leg:1',
        });
      }
      return {
        content: [{ type: 'text', text: `Hello ${accepted.name}, after ${String(state)}.` }],
      };
    },
  );
}

/** `wait`: tells `begun` and waits until its caller gives it up, which it tells too. */
function registerWaiting(server: McpServer, report: (what: 'begun' | 'given up') => void): void {
  server.registerTool('wait', { description: 'Waits.', inputSchema: NOTHING }, async (_args, context) => {
    const { signal } = context.mcpReq;
    report('begun');
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    report('given up');
    return { content: [] };
  });
}

export const CITIES = 'memo://cities/{name}';

/** A template whose variable is completed. */
function registerCities(server: McpServer): void {
  const template = new ResourceTemplate(CITIES, {
    list: undefined,
    complete: { name: (begun) => ['Berlin', 'Bern'].filter((city) => city.startsWith(begun)) },
  });
  server.registerResource('city', template, { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'A city.' }],
  }));
}

// Starts the reference server "everything" over streamable HTTP as a child process on a free port.
// It speaks the session era. The child is ended by its own process object, never by name.

export type Everything = { readonly url: string; readonly pid: number; close(): Promise<void> };

const START_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
const MAX_ATTEMPTS = 3;

const entry = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** True once the endpoint answers anything at all; a GET without a session is a 400 there. */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { headers: { accept: 'text/event-stream' } });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

async function waitUntilReady(child: ChildProcess, url: string): Promise<boolean> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline && child.exitCode === null) {
    if (await answers(url)) return child.exitCode === null;
    await sleep(POLL_MS);
  }
  return false;
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/**
 * What another process receives can be seen on the way alone: passes all bytes on, and keeps those that go
 * there.
 */
async function startTap(to: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createTcpServer((client) => {
    const there = connect(to, '127.0.0.1');
    let received = '';
    client.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    client.once('close', () => canary.recordSeen('a request to server-everything', received));
    for (const [socket, other] of [
      [client, there],
      [there, client],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => other.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Starts the server and waits until it answers. Tries another port when the first was taken. */
export async function startEverything(): Promise<Everything> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const port = await findFreePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    const child = spawn(process.execPath, [entry, 'streamableHttp'], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdio: 'ignore',
    });
    if (await waitUntilReady(child, url)) {
      const tap = await startTap(port);
      return {
        url: `http://127.0.0.1:${tap.port}/mcp`,
        pid: child.pid ?? 0,
        async close() {
          await tap.close();
          await endChild(child);
        },
      };
    }
    await endChild(child);
  }
  throw new Error('server-everything did not start');
}
