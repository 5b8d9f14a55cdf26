// The demo upstream: a real MCP server on loopback that supports the session and the stateless era on one
// endpoint, misbehaves on request, and records every request. It checks no token, because it runs behind the
// gateway. Source: MCP 2025-11-25 and 2026-07-28, transports; WHATWG HTML, server-sent events.

import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAppFor, openApp, readText } from '../http/app.js';
import { isObject, type Json, type JsonObject, parseObject, type RequestId } from '../protocol/jsonrpc.js';
import { progressTokenOf } from '../protocol/params.js';
import { BoundedMap } from '../state/bounds.js';
import {
  createHelpDesk,
  type DemoSecrets,
  deriveDemoSecrets,
  GOOD_BEHAVIOUR,
  type Misbehaviour,
} from './demo-content.js';
import {
  type Classified,
  classifyPost,
  respondToRequest,
  type ScriptedResponse,
  type ServerContent,
} from './demo-protocol.js';

const MAX_BODY_BYTES = 4 * 1024 * 1024;
const LIMITS = { maxHeaderBytes: 16 * 1024, headersWithinMs: 10_000, requestWithinMs: 30_000, idleMs: 5_000 } as const;

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

/** One request as received by the upstream. */
type SeenRequest = {
  readonly httpMethod: string;
  /** The JSON-RPC method, if the body was a message. */
  readonly method: string | undefined;
  /** The name or URI in the request's parameters. */
  readonly name: string | undefined;
  /** Header names are lower-case. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: string;
};

export type DemoUpstream = {
  /** The MCP endpoint. */
  readonly url: string;
  /** The secrets in customer records, so that a check can search for them. */
  readonly secrets: DemoSecrets;
  /** Everything received since the start or the last `forget`, oldest first. */
  seen(): readonly SeenRequest[];
  forget(): void;
  /** Changes the given traits and keeps the others; a drift is announced on open streams. */
  misbehave(change: Partial<Misbehaviour>): void;
  behave(): void;
  close(): Promise<void>;
};

const HOST = '127.0.0.1';
const PATH = '/mcp';
const MAX_SEEN = 10_000;
const MAX_SESSIONS = 1_000;
const LIST_CHANGED: JsonObject = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

type DemoContext = {
  readonly story: ServerContent;
  readonly sessions: BoundedMap<string, Set<ServerResponse>>;
  readonly seen: SeenRequest[];
  behaviour: Misbehaviour;
};

function messageOf(id: RequestId, reply: ScriptedResponse): JsonObject {
  return reply.kind === 'result'
    ? { jsonrpc: '2.0', id, result: reply.result }
    : { jsonrpc: '2.0', id, error: reply.error };
}

async function streamReply(
  demo: DemoContext,
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
    if (demo.behaviour.paceMs > 0) await sleep(demo.behaviour.paceMs);
  }
  writeEvent(response, messageOf(request.id, reply), withIds ? randomUUID() : undefined);
  response.end();
}

function openSession(demo: DemoContext): string {
  const id = randomBytes(16).toString('hex');
  demo.sessions.set(id, new Set());
  return id;
}

function refusalBody(read: Classified & { kind: 'refused' }): JsonObject {
  const data = read.supported ? { data: { supported: read.supported } } : {};
  const id = read.id === undefined ? {} : { id: read.id };
  return { jsonrpc: '2.0', ...id, error: { code: read.code, message: read.message, ...data } };
}

/** True if a call is answered by an event stream: on request, or because it sends progress. */
function isStreamed(demo: DemoContext, request: Classified & { kind: 'request' }, reply: ScriptedResponse): boolean {
  if (request.method !== 'tools/call') return false;
  if (demo.behaviour.stream) return true;
  const sendsProgress = reply.kind === 'result' && reply.progress.length > 0;
  return sendsProgress && progressTokenOf(request) !== undefined;
}

async function handlePost(demo: DemoContext, response: ServerResponse, read: Classified): Promise<void> {
  if (read.kind === 'refused') {
    sendJson(response, read.status, refusalBody(read));
    return;
  }
  if (read.kind === 'notification') {
    response.writeHead(202);
    response.end();
    return;
  }
  const reply = respondToRequest(demo.story, read.era, read.method, read.params);
  if (isStreamed(demo, read, reply)) {
    await streamReply(demo, response, read, reply);
    return;
  }
  const status = reply.kind === 'error' ? reply.status : 200;
  const isNew = read.era === '2025' && read.method === 'initialize';
  const headers = isNew ? { 'mcp-session-id': openSession(demo) } : {};
  sendJson(response, status, messageOf(read.id, reply), headers);
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Records a request as received, even if it will be refused. */
function recordRequest(demo: DemoContext, request: IncomingMessage, body: string): void {
  const message = parseObject(body) ?? {};
  const params = isObject(message['params']) ? message['params'] : {};
  demo.seen.push({
    httpMethod: request.method ?? '',
    method: asText(message['method']),
    name: asText(params['name']) ?? asText(params['uri']),
    headers: flatHeaders(request),
    body,
  });
  if (demo.seen.length > MAX_SEEN) demo.seen.shift();
}

/** GET opens the session's stream, DELETE ends the session; the stateless era has neither. */
function handleSessionMethod(demo: DemoContext, request: IncomingMessage, response: ServerResponse): void {
  const sessionId = flatHeaders(request)['mcp-session-id'];
  if (sessionId === undefined) {
    response.writeHead(405, { allow: 'POST' });
    response.end();
    return;
  }
  const streams = demo.sessions.get(sessionId);
  if (streams === undefined) {
    sendJson(response, 404, {
      jsonrpc: '2.0',
      error: { code: -32001, message: 'Session not found' },
    });
    return;
  }
  if (request.method === 'DELETE') {
    demo.sessions.delete(sessionId);
    for (const stream of streams) stream.end();
    response.writeHead(200);
    response.end();
    return;
  }
  openStream(response);
  streams.add(response);
  response.once('close', () => streams.delete(response));
}

async function handleHttp(demo: DemoContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.url !== PATH) {
    response.writeHead(404);
    response.end();
    return;
  }
  if (request.method !== 'POST') {
    recordRequest(demo, request, '');
    handleSessionMethod(demo, request, response);
    return;
  }
  const body = await readText(request, MAX_BODY_BYTES);
  if (body === undefined) {
    response.writeHead(413, { connection: 'close' });
    response.end();
    return;
  }
  recordRequest(demo, request, body);
  const received = { headers: flatHeaders(request), body };
  const read = classifyPost(received, (id) => demo.sessions.has(id));
  await handlePost(demo, response, read);
}

function announceDrift(demo: DemoContext): void {
  for (const streams of demo.sessions.values()) {
    for (const stream of streams) writeEvent(stream, LIST_CHANGED, randomUUID());
  }
}

/**
 * Starts the demo upstream on loopback. With `port` 0 or absent it uses a free port; `seed` determines the
 * secrets. Rejects if the port is not available.
 */
export async function startDemoUpstream(
  options: { readonly port?: number; readonly seed?: string } = {},
): Promise<DemoUpstream> {
  const secrets = deriveDemoSecrets(options.seed ?? randomBytes(16).toString('hex'));
  const demo: DemoContext = {
    story: createHelpDesk(secrets, () => demo.behaviour),
    sessions: new BoundedMap(MAX_SESSIONS),
    seen: [],
    behaviour: GOOD_BEHAVIOUR,
  };
  const app = createAppFor(LIMITS, ({ raw }, reply) => {
    reply.hijack();
    handleHttp(demo, raw, reply.raw).catch(() => reply.raw.destroy());
  });
  const port = await openApp(app, { host: HOST, port: options.port ?? 0 });
  function misbehave(change: Partial<Misbehaviour>): void {
    const before = demo.behaviour.drift;
    demo.behaviour = { ...demo.behaviour, ...change };
    if (demo.behaviour.drift !== before) announceDrift(demo);
  }
  return {
    url: `http://${HOST}:${port}${PATH}`,
    secrets,
    seen: () => [...demo.seen],
    forget: () => demo.seen.splice(0),
    misbehave,
    behave: () => misbehave(GOOD_BEHAVIOUR),
    close: () => app.close(),
  };
}
