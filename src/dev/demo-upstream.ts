// The demo upstream: a real MCP server on loopback that speaks sessions and the stateless era on one
// endpoint, misbehaves on request, and remembers everything it was sent. It checks no token: it stands
// behind the gateway. Source: MCP 2025-11-25 and 2026-07-28, transports.

import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject, RequestId } from '../mcp/message.js';
import { isObject } from '../mcp/message.js';
import { type Classified, classifyPost } from './demo-classify.js';
import { flatHeaders, openStream, readBody, sendJson, writeEvent } from './demo-http.js';
import { answerRequest, type Story, type StoryAnswer } from './demo-protocol.js';
import {
  createDeskStory,
  type DemoSecrets,
  deriveDemoSecrets,
  GOOD_BEHAVIOUR,
  type Misbehaviour,
} from './demo-story.js';

/** One request as the upstream saw it. */
export type SeenRequest = {
  readonly httpMethod: string;
  /** The JSON-RPC method, if the body was a message. */
  readonly method: string | undefined;
  /** The name or URI that the request is about. */
  readonly name: string | undefined;
  /** Lower-case names. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: string;
};

export type DemoUpstream = {
  /** The MCP endpoint. */
  readonly url: string;
  /** What the records of customers leak, so that a check can look for it. */
  readonly secrets: DemoSecrets;
  /** Everything received since the start or the last `forget`, oldest first. */
  seen(): readonly SeenRequest[];
  forget(): void;
  /** Changes the named traits and keeps the others; a drift is announced on open streams. */
  misbehave(change: Partial<Misbehaviour>): void;
  behave(): void;
  close(): Promise<void>;
};

const HOST = '127.0.0.1';
const PATH = '/mcp';
const MAX_SEEN = 10_000;
const MAX_SESSIONS = 1_000;
const LIST_CHANGED: JsonObject = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

type Desk = {
  readonly story: Story;
  readonly sessions: Map<string, Set<ServerResponse>>;
  readonly seen: SeenRequest[];
  behaviour: Misbehaviour;
};

function messageOf(id: RequestId, answer: StoryAnswer): JsonObject {
  return answer.kind === 'result'
    ? { jsonrpc: '2.0', id, result: answer.result }
    : { jsonrpc: '2.0', id, error: answer.error };
}

function progressTokenOf(params: JsonObject): RequestId | undefined {
  const meta = params['_meta'];
  const token = isObject(meta) ? meta['progressToken'] : undefined;
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

async function streamAnswer(
  desk: Desk,
  response: ServerResponse,
  request: Classified & { kind: 'request' },
  answer: StoryAnswer,
): Promise<void> {
  openStream(response);
  const token = progressTokenOf(request.params);
  const steps = answer.kind === 'result' && token !== undefined ? answer.progress : [];
  const withIds = request.era === '2025';
  for (const [index, message] of steps.entries()) {
    if (response.destroyed) return;
    const params = { progressToken: token ?? 0, progress: index + 1, total: steps.length, message };
    const event = { jsonrpc: '2.0', method: 'notifications/progress', params };
    writeEvent(response, event, withIds ? randomUUID() : undefined);
    if (desk.behaviour.paceMs > 0) await sleep(desk.behaviour.paceMs);
  }
  writeEvent(response, messageOf(request.id, answer), withIds ? randomUUID() : undefined);
  response.end();
}

function openSession(desk: Desk): string {
  const oldest = desk.sessions.keys().next();
  if (desk.sessions.size >= MAX_SESSIONS && !oldest.done) desk.sessions.delete(oldest.value);
  const id = randomBytes(16).toString('hex');
  desk.sessions.set(id, new Set());
  return id;
}

function refusalBody(read: Classified & { kind: 'refused' }): JsonObject {
  const data = read.supported ? { data: { supported: read.supported } } : {};
  const id = read.id === undefined ? {} : { id: read.id };
  return { jsonrpc: '2.0', ...id, error: { code: read.code, message: read.message, ...data } };
}

/** Whether a call is answered by an event stream: on demand, or because it has progress to tell. */
function isStreamed(
  desk: Desk,
  request: Classified & { kind: 'request' },
  answer: StoryAnswer,
): boolean {
  if (request.method !== 'tools/call') return false;
  if (desk.behaviour.stream) return true;
  const tells = answer.kind === 'result' && answer.progress.length > 0;
  return tells && progressTokenOf(request.params) !== undefined;
}

async function answerPost(desk: Desk, response: ServerResponse, read: Classified): Promise<void> {
  if (read.kind === 'refused') {
    sendJson(response, read.status, refusalBody(read));
    return;
  }
  if (read.kind === 'notification') {
    response.writeHead(202);
    response.end();
    return;
  }
  const answer = answerRequest(desk.story, read.era, read.method, read.params);
  if (isStreamed(desk, read, answer)) {
    await streamAnswer(desk, response, read, answer);
    return;
  }
  const status = answer.kind === 'error' ? answer.status : 200;
  const isNew = read.era === '2025' && read.method === 'initialize';
  const headers = isNew ? { 'mcp-session-id': openSession(desk) } : {};
  sendJson(response, status, messageOf(read.id, answer), headers);
}

/** The body as a JSON object, if it is one. */
function parseMessage(body: string): JsonObject {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Remembers a request as it came, also one that will be refused. */
function recordRequest(desk: Desk, request: IncomingMessage, body: string): void {
  const message = parseMessage(body);
  const params = isObject(message['params']) ? message['params'] : {};
  desk.seen.push({
    httpMethod: request.method ?? '',
    method: asText(message['method']),
    name: asText(params['name']) ?? asText(params['uri']),
    headers: flatHeaders(request),
    body,
  });
  if (desk.seen.length > MAX_SEEN) desk.seen.shift();
}

/** GET opens the session's own stream, DELETE ends the session; the stateless era has neither. */
function answerSessionMethod(desk: Desk, request: IncomingMessage, response: ServerResponse): void {
  const sessionId = flatHeaders(request)['mcp-session-id'];
  if (sessionId === undefined) {
    response.writeHead(405, { allow: 'POST' });
    response.end();
    return;
  }
  const streams = desk.sessions.get(sessionId);
  if (streams === undefined) {
    sendJson(response, 404, {
      jsonrpc: '2.0',
      error: { code: -32001, message: 'Session not found' },
    });
    return;
  }
  if (request.method === 'DELETE') {
    desk.sessions.delete(sessionId);
    for (const stream of streams) stream.end();
    response.writeHead(200);
    response.end();
    return;
  }
  openStream(response);
  streams.add(response);
  response.once('close', () => streams.delete(response));
}

async function answerHttp(
  desk: Desk,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.url !== PATH) {
    response.writeHead(404);
    response.end();
    return;
  }
  if (request.method !== 'POST') {
    recordRequest(desk, request, '');
    answerSessionMethod(desk, request, response);
    return;
  }
  const body = await readBody(request);
  if (body === undefined) {
    response.writeHead(413, { connection: 'close' });
    response.end();
    return;
  }
  recordRequest(desk, request, body);
  const received = { headers: flatHeaders(request), body };
  const read = classifyPost(received, (id) => desk.sessions.has(id));
  await answerPost(desk, response, read);
}

function announceDrift(desk: Desk): void {
  for (const streams of desk.sessions.values()) {
    for (const stream of streams) writeEvent(stream, LIST_CHANGED, randomUUID());
  }
}

/**
 * Starts the demo upstream on loopback. `port` 0 or absent takes a free one; `seed` fixes the secrets.
 * Rejects when the port cannot be had.
 */
export async function startDemoUpstream(
  options: { readonly port?: number; readonly seed?: string } = {},
): Promise<DemoUpstream> {
  const secrets = deriveDemoSecrets(options.seed ?? randomBytes(16).toString('hex'));
  const desk: Desk = {
    story: createDeskStory(secrets, () => desk.behaviour),
    sessions: new Map(),
    seen: [],
    behaviour: GOOD_BEHAVIOUR,
  };
  const server = createServer((request, response) => {
    answerHttp(desk, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, HOST, resolve);
  });
  const { port } = server.address() as AddressInfo;
  function misbehave(change: Partial<Misbehaviour>): void {
    const before = desk.behaviour.drift;
    desk.behaviour = { ...desk.behaviour, ...change };
    if (desk.behaviour.drift !== before) announceDrift(desk);
  }
  return {
    url: `http://${HOST}:${port}${PATH}`,
    secrets,
    seen: () => [...desk.seen],
    forget: () => desk.seen.splice(0),
    misbehave,
    behave: () => misbehave(GOOD_BEHAVIOUR),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
