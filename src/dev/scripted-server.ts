// A scripted MCP server on loopback: a real one that supports the session and the stateless era on one endpoint, says what
// its script says, and records every request. It checks no token, unless it is given a check. Source: MCP 2025-11-25 and
// 2026-07-28, transports; WHATWG HTML, server-sent events.

import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAppFor, openApp, readText } from '../http/app.js';
import { isObject, type Json, type JsonObject, parseObject, type RequestId } from '../protocol/jsonrpc.js';
import { progressTokenOf } from '../protocol/params.js';
import { BoundedMap } from '../state/bounds.js';
import {
  type Classified,
  classifyPost,
  respondToRequest,
  type ScriptedResponse,
  type ServerContent,
} from './demo-protocol.js';

const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Of a server that answers on this machine. */
export const SERVER_LIMITS = {
  maxHeaderBytes: 16 * 1024,
  headersWithinMs: 10_000,
  requestWithinMs: 30_000,
  idleMs: 5_000,
} as const;

/** Headers with lower-case names; several values of a name are joined. */
function flatHeaders(request: IncomingMessage): {
  readonly [name: string]: string | undefined;
} {
  const flat: Record<string, string | undefined> = Object.create(null) as Record<string, undefined>;
  for (const [name, value] of Object.entries(request.headers)) {
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** Sends a complete JSON response. */
function sendJson(
  response: ServerResponse,
  status: number,
  body: Json,
  headers: { readonly [name: string]: string } = {},
): void {
  response.writeHead(status, { ...headers, 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** Writes one event to an open stream, with an id if the era supports resumption. */
function writeEvent(response: ServerResponse, message: JsonObject, eventId?: string): void {
  const idLine = eventId === undefined ? '' : `id: ${eventId}\n`;
  response.write(`event: message\n${idLine}data: ${JSON.stringify(message)}\n\n`);
}

/** Sends the response head of an event stream at once. */
function openStream(response: ServerResponse): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
}

/** One request as received. */
export type SeenRequest = {
  readonly httpMethod: string;
  /** The JSON-RPC method, if the body was a message. */
  readonly method: string | undefined;
  /** The name or URI in the request's parameters. */
  readonly name: string | undefined;
  /** Header names are lower-case. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: string;
};

const HOST = '127.0.0.1';
const PATH = '/mcp';
const MAX_SEEN = 10_000;
const MAX_SESSIONS = 1_000;
const LIST_CHANGED: JsonObject = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

/** How responses to calls are sent; read at every response. */
type Delivery = {
  /** Whether each is an event stream. */
  readonly stream: boolean;
  /** Milliseconds between the events of a stream. */
  readonly paceMs: number;
};

/** Whether a request with these headers may call a tool. */
export type CallCheck = (headers: SeenRequest['headers']) => Promise<boolean>;

type ScriptedContext = {
  readonly story: ServerContent;
  readonly sessions: BoundedMap<string, Set<ServerResponse>>;
  readonly seen: SeenRequest[];
  readonly delivery: () => Delivery;
  readonly mayCall: CallCheck | undefined;
};

function messageOf(id: RequestId, reply: ScriptedResponse): JsonObject {
  return reply.kind === 'result'
    ? { jsonrpc: '2.0', id, result: reply.result }
    : { jsonrpc: '2.0', id, error: reply.error };
}

async function streamReply(
  server: ScriptedContext,
  response: ServerResponse,
  request: Classified & { kind: 'request' },
  reply: ScriptedResponse,
): Promise<void> {
  openStream(response);
  const token = progressTokenOf(request);
  const steps = reply.kind === 'result' && token !== undefined ? reply.progress : [];
  const withIds = request.era === '2025';
  for (const [index, message] of steps.entries()) {
    if (response.destroyed) return;
    const params = { progressToken: token ?? 0, progress: index + 1, total: steps.length, message };
    const event = { jsonrpc: '2.0', method: 'notifications/progress', params };
    writeEvent(response, event, withIds ? randomUUID() : undefined);
    if (server.delivery().paceMs > 0) await sleep(server.delivery().paceMs);
  }
  writeEvent(response, messageOf(request.id, reply), withIds ? randomUUID() : undefined);
  response.end();
}

function openSession(server: ScriptedContext): string {
  const id = randomBytes(16).toString('hex');
  server.sessions.set(id, new Set());
  return id;
}

function refusalBody(read: Classified & { kind: 'refused' }): JsonObject {
  const data = read.supported ? { data: { supported: read.supported } } : {};
  const id = read.id === undefined ? {} : { id: read.id };
  return { jsonrpc: '2.0', ...id, error: { code: read.code, message: read.message, ...data } };
}

/** True if a call is answered by an event stream: on request, or because it sends progress. */
function isStreamed(
  server: ScriptedContext,
  request: Classified & { kind: 'request' },
  reply: ScriptedResponse,
): boolean {
  if (request.method !== 'tools/call') return false;
  if (server.delivery().stream) return true;
  const sendsProgress = reply.kind === 'result' && reply.progress.length > 0;
  return sendsProgress && progressTokenOf(request) !== undefined;
}

async function handlePost(server: ScriptedContext, response: ServerResponse, read: Classified): Promise<void> {
  if (read.kind === 'refused') {
    sendJson(response, read.status, refusalBody(read));
    return;
  }
  if (read.kind === 'notification') {
    response.writeHead(202);
    response.end();
    return;
  }
  const reply = respondToRequest(server.story, read.era, read.method, read.params);
  if (isStreamed(server, read, reply)) {
    await streamReply(server, response, read, reply);
    return;
  }
  const status = reply.kind === 'error' ? reply.status : 200;
  const isNew = read.era === '2025' && read.method === 'initialize';
  const headers = isNew ? { 'mcp-session-id': openSession(server) } : {};
  sendJson(response, status, messageOf(read.id, reply), headers);
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Records a request as received, even if it will be refused. */
function recordRequest(server: ScriptedContext, request: IncomingMessage, body: string): void {
  const message = parseObject(body) ?? {};
  const params = isObject(message['params']) ? message['params'] : {};
  server.seen.push({
    httpMethod: request.method ?? '',
    method: asText(message['method']),
    name: asText(params['name']) ?? asText(params['uri']),
    headers: flatHeaders(request),
    body,
  });
  if (server.seen.length > MAX_SEEN) server.seen.shift();
}

/** GET opens the session's stream, DELETE ends the session; the stateless era has neither. */
function handleSessionMethod(server: ScriptedContext, request: IncomingMessage, response: ServerResponse): void {
  const sessionId = flatHeaders(request)['mcp-session-id'];
  if (sessionId === undefined) {
    response.writeHead(405, { allow: 'POST' });
    response.end();
    return;
  }
  const streams = server.sessions.get(sessionId);
  if (streams === undefined) {
    sendJson(response, 404, {
      jsonrpc: '2.0',
      error: { code: -32001, message: 'Session not found' },
    });
    return;
  }
  if (request.method === 'DELETE') {
    server.sessions.delete(sessionId);
    for (const stream of streams) stream.end();
    response.writeHead(200);
    response.end();
    return;
  }
  openStream(response);
  streams.add(response);
  response.once('close', () => streams.delete(response));
}

async function handleHttp(server: ScriptedContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url !== PATH) {
    response.writeHead(404);
    response.end();
    return;
  }
  if (request.method !== 'POST') {
    recordRequest(server, request, '');
    handleSessionMethod(server, request, response);
    return;
  }
  const body = await readText(request, MAX_BODY_BYTES);
  if (body === undefined) {
    response.writeHead(413, { connection: 'close' });
    response.end();
    return;
  }
  recordRequest(server, request, body);
  const received = { headers: flatHeaders(request), body };
  const read = classifyPost(received, (id) => server.sessions.has(id));
  const isCall = read.kind === 'request' && read.method === 'tools/call';
  if (isCall && (await server.mayCall?.(received.headers)) === false) {
    response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' });
    response.end();
    return;
  }
  await handlePost(server, response, read);
}

export type ScriptedServer = {
  /** The MCP endpoint. */
  readonly url: string;
  /** Everything received since the start or the last `forget`, oldest first. */
  seen(): readonly SeenRequest[];
  forget(): void;
  /** Announces on open streams that the list of tools has changed. */
  announceChange(): void;
  close(): Promise<void>;
};

type ScriptedOptions = {
  readonly story: ServerContent;
  /** A free one if absent. */
  readonly port?: number | undefined;
  readonly delivery?: () => Delivery;
  readonly mayCall?: CallCheck | undefined;
};

const AT_ONCE: Delivery = { stream: false, paceMs: 0 };

/** Starts a server on loopback. Rejects if the port is not available. */
export async function startScriptedServer(options: ScriptedOptions): Promise<ScriptedServer> {
  const { story, port: wanted = 0, delivery = () => AT_ONCE, mayCall } = options;
  const server: ScriptedContext = { story, delivery, mayCall, sessions: new BoundedMap(MAX_SESSIONS), seen: [] };
  const app = createAppFor(SERVER_LIMITS, ({ raw }, reply) => {
    reply.hijack();
    handleHttp(server, raw, reply.raw).catch(() => reply.raw.destroy());
  });
  const port = await openApp(app, { host: HOST, port: wanted });
  return {
    url: `http://${HOST}:${port}${PATH}`,
    seen: () => [...server.seen],
    forget: () => void server.seen.splice(0),
    announceChange() {
      for (const streams of server.sessions.values()) {
        for (const stream of streams) writeEvent(stream, LIST_CHANGED, randomUUID());
      }
    },
    close: () => app.close(),
  };
}
