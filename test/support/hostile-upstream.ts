// An upstream that does what it is told, honest or not, and records every connection, byte and request.
// Without orders it is a small honest MCP server of both eras. Its misdeeds are listed in hostile-acts.ts.

import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Classified, classifyPost, respondToRequest, type ServerContent } from '../../src/dev/demo-protocol.js';
import type { Json, JsonObject, RequestId } from './json.js';
import { isObject } from './json.js';

/** One request as it came in. */
export type HostileRequest = {
  /** Counted from 1, over all connections. */
  readonly index: number;
  /** The connection it came on, counted from 1. */
  readonly connection: number;
  readonly httpMethod: string;
  readonly url: string;
  /** Lower-case names, values joined where repeated. */
  readonly headers: Readonly<Record<string, string>>;
  /** Every header line as sent. */
  readonly rawHeaders: readonly (readonly [string, string])[];
  readonly body: string;
  /** The body as a JSON object, if it is one. */
  readonly message: JsonObject | undefined;
  readonly method: string | undefined;
  readonly id: RequestId | undefined;
  /** `params.name` or `params.uri`. */
  readonly name: string | undefined;
  /** True once the other side closed before the answer was complete. */
  isAborted: boolean;
};

export type Chunk = string | Uint8Array;

/** How an answer ends: properly, cut off, or not at all. */
export type Ending = 'end' | 'destroy' | 'hold';

export type Act =
  /** A whole HTTP answer. */
  | {
      readonly kind: 'http';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string | readonly string[]>>;
      readonly body?: Chunk;
    }
  /** Body bytes in exactly these chunks, one write each. */
  | {
      readonly kind: 'chunks';
      readonly contentType: string;
      readonly chunks: readonly Chunk[];
      readonly ending: Ending;
      readonly paceMs?: number;
      /** Waited for behind the first chunk. */
      readonly gate?: Promise<unknown>;
    }
  /** Bytes on the socket, status line included: what no HTTP library would send. */
  | {
      readonly kind: 'raw';
      readonly chunks: readonly Chunk[];
      readonly ending: Ending;
      readonly paceMs?: number;
      readonly gate?: Promise<unknown>;
    }
  /** The honest answer, once this has resolved. */
  | { readonly kind: 'honest'; readonly after: Promise<unknown> }
  | { readonly kind: 'hold' }
  | { readonly kind: 'destroy' };

/** Chooses an act; `undefined` leaves the request to the honest server. */
export type Order = (request: HostileRequest) => Act | undefined;

export type HostileUpstream = {
  readonly url: string;
  readonly origin: string;
  /** Replaces the order for every request from now on. */
  obey(order: Order): void;
  /** Obeys once, at the next request for which the order gives an act; before any `obey`. */
  obeyOnce(order: Order): void;
  /** Honest again, original tools. */
  repent(): void;
  /** What tools/list shows, per request. */
  offer(tools: (request: HostileRequest) => readonly JsonObject[]): void;
  /** What it offers besides tools, and its instructions. */
  present(content: PresentedContent): void;
  /** What it calls itself. */
  introduce(serverInfo: ServerContent['serverInfo']): void;
  /** The id of the next session that it opens. */
  openNextSessionAs(id: string): void;
  /** What tools/call answers. */
  answerCalls(answer: (name: string, args: JsonObject) => JsonObject | undefined): void;
  seen(): readonly HostileRequest[];
  /** Requests of tools/call, prompts/get and resources/read: what a refusal must keep away. */
  uses(): readonly HostileRequest[];
  connections(): number;
  bytesReceived(): number;
  forget(): void;
  /** Breaks off whatever is held, so that a gateway that closes does not wait for it. */
  disconnect(): void;
  close(): Promise<void>;
};

/** Members that are absent stay as they are: no items, and one resource. */
export type PresentedContent = Partial<Pick<ServerContent, 'instructions' | 'list' | 'getPrompt' | 'readResource'>> & {
  /** Capabilities that it declares besides those of every server. */
  readonly capabilities?: JsonObject;
};

/** The params of a request, or none. */
export function paramsOf({ message }: HostileRequest): JsonObject {
  const params = message?.['params'];
  return isObject(params) ? params : {};
}

const USES: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read']);

/** What the honest server offers. */
export const HONEST_TOOLS: readonly JsonObject[] = [
  {
    name: 'read_record',
    description: 'Reads a record.',
    inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'write_record',
    description: 'Writes a record.',
    inputSchema: {
      type: 'object',
      properties: { id: { type: 'string' }, text: { type: 'string' } },
      required: ['id', 'text'],
    },
    annotations: { destructiveHint: true },
  },
];

function honestCall(name: string, args: JsonObject): JsonObject | undefined {
  if (!HONEST_TOOLS.some((tool) => tool['name'] === name)) return undefined;
  return { content: [{ type: 'text', text: `${name} ${String(args['id'])}` }] };
}

type Hostile = {
  order: Order;
  once: Order[];
  tools: (request: HostileRequest) => readonly JsonObject[];
  serverInfo: ServerContent['serverInfo'];
  content: PresentedContent;
  call: (name: string, args: JsonObject) => JsonObject | undefined;
  /** The id of the next session; random where absent. */
  nextSession: string | undefined;
  readonly seen: HostileRequest[];
  readonly sessions: Set<string>;
  readonly sockets: Map<Socket, number>;
  connections: number;
  closedBytes: number;
};

function storyFor(hostile: Hostile, request: HostileRequest): ServerContent {
  return {
    serverInfo: hostile.serverInfo,
    instructions: undefined,
    pageSize: 100,
    cache: { ttlMs: 0, cacheScope: 'private' },
    getPrompt: () => undefined,
    readResource: (uri) => (uri === 'memo://one' ? [{ uri, text: 'One.' }] : undefined),
    ...hostile.content,
    list: (kind) => (kind === 'tools' ? hostile.tools(request) : (hostile.content.list?.(kind) ?? [])),
    callTool: (name, args) => {
      const result = hostile.call(name, args);
      return result === undefined ? undefined : { result, progress: [] };
    },
  };
}

function parseObject(body: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function asId(value: Json | undefined): RequestId | undefined {
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
}

function asText(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

async function record(hostile: Hostile, request: IncomingMessage): Promise<HostileRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString('utf8');
  const rawHeaders: [string, string][] = [];
  for (let i = 0; i < request.rawHeaders.length; i += 2) {
    rawHeaders.push([request.rawHeaders[i] ?? '', request.rawHeaders[i + 1] ?? '']);
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of rawHeaders) {
    const key = name.toLowerCase();
    headers[key] = key in headers ? `${headers[key]}, ${value}` : value;
  }
  const message = parseObject(body);
  const params = isObject(message?.['params']) ? message['params'] : {};
  const seen: HostileRequest = {
    index: hostile.seen.length + 1,
    connection: hostile.sockets.get(request.socket) ?? 0,
    httpMethod: request.method ?? '',
    url: request.url ?? '',
    headers,
    rawHeaders,
    body,
    message,
    method: asText(message?.['method']),
    id: asId(message?.['id']),
    name: asText(params['name']) ?? asText(params['uri']),
    isAborted: false,
  };
  hostile.seen.push(seen);
  return seen;
}

function sendJson(response: ServerResponse, status: number, body: Json, session?: string): void {
  const own = session === undefined ? {} : { 'mcp-session-id': session };
  response.writeHead(status, { 'content-type': 'application/json', ...own });
  response.end(JSON.stringify(body));
}

/** The answer to a question of its own, which an honest server takes within a session. */
function isAnswer({ message, method, headers }: HostileRequest): boolean {
  return message !== undefined && method === undefined && headers['mcp-session-id'] !== undefined;
}

function answerHonestly(hostile: Hostile, request: HostileRequest, response: ServerResponse): void {
  if (request.httpMethod === 'DELETE') {
    hostile.sessions.delete(request.headers['mcp-session-id'] ?? '');
    response.writeHead(200).end();
    return;
  }
  if (request.httpMethod !== 'POST') {
    response.writeHead(405, { allow: 'POST' }).end();
    return;
  }
  if (isAnswer(request)) {
    response.writeHead(202).end();
    return;
  }
  const read: Classified = classifyPost(request, (id) => hostile.sessions.has(id));
  if (read.kind === 'notification') {
    response.writeHead(202).end();
    return;
  }
  if (read.kind === 'refused') {
    const error = { code: read.code, message: read.message };
    const id = read.id === undefined ? {} : { id: read.id };
    sendJson(response, read.status, { jsonrpc: '2.0', ...id, error });
    return;
  }
  const answer = respondToRequest(storyFor(hostile, request), read.era, read.method, read.params);
  const isNew = read.method === 'initialize' && answer.kind === 'result';
  const session = isNew ? (hostile.nextSession ?? randomBytes(12).toString('hex')) : undefined;
  if (isNew) hostile.nextSession = undefined;
  if (session !== undefined) hostile.sessions.add(session);
  const outcome =
    answer.kind === 'result'
      ? { result: withCapabilities(hostile.content.capabilities, answer.result) }
      : { error: answer.error };
  const status = answer.kind === 'result' ? 200 : answer.status;
  sendJson(response, status, { jsonrpc: '2.0', id: read.id, ...outcome }, session);
}

function withCapabilities(more: JsonObject | undefined, result: JsonObject): JsonObject {
  const { capabilities } = result;
  return more !== undefined && isObject(capabilities)
    ? { ...result, capabilities: { ...capabilities, ...more } }
    : result;
}

type Sink = {
  write(chunk: Chunk): unknown;
  end(): unknown;
  destroy(): unknown;
  destroyed: boolean;
};

async function writeChunks(
  sink: Sink,
  act: {
    readonly chunks: readonly Chunk[];
    readonly ending: Ending;
    readonly paceMs?: number;
    readonly gate?: Promise<unknown>;
  },
): Promise<void> {
  for (const [index, chunk] of act.chunks.entries()) {
    if (sink.destroyed) return;
    sink.write(chunk);
    // A turn of the event loop between writes keeps them apart on the wire.
    await sleep(act.paceMs ?? 1);
    if (index === 0) await act.gate;
  }
  if (act.ending === 'end') sink.end();
  if (act.ending === 'destroy') sink.destroy();
}

/** Ends a response whose bytes went out by hand, so that the connection can carry the next request. */
function finishSilently(socket: Socket, response: ServerResponse): void {
  const write = socket.write;
  socket.write = (...args: unknown[]): boolean => {
    const done = args.at(-1);
    if (typeof done === 'function') setImmediate(() => done());
    return true;
  };
  response.once('finish', () => {
    socket.write = write;
  });
  response.end();
}

async function perform(
  act: Exclude<Act, { readonly kind: 'honest' }>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (act.kind) {
    case 'http': {
      response.writeHead(act.status, act.headers as Record<string, string | string[]> | undefined);
      response.end(act.body);
      return;
    }
    case 'chunks': {
      response.writeHead(200, { 'content-type': act.contentType });
      response.flushHeaders();
      return writeChunks(response, act);
    }
    case 'raw': {
      await writeChunks(request.socket, act);
      if (act.ending === 'hold') finishSilently(request.socket, response);
      return;
    }
    case 'hold':
      return;
    case 'destroy':
      request.socket.destroy();
      return;
  }
}

function chooseAct(hostile: Hostile, request: HostileRequest): Act | undefined {
  for (const [index, order] of hostile.once.entries()) {
    const act = order(request);
    if (act === undefined) continue;
    hostile.once.splice(index, 1);
    return act;
  }
  return hostile.order(request);
}

async function answer(hostile: Hostile, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const seen = await record(hostile, request);
  response.once('close', () => {
    seen.isAborted = !response.writableFinished;
  });
  const act = chooseAct(hostile, seen);
  if (act?.kind === 'honest') await act.after;
  if (act === undefined || act.kind === 'honest') return answerHonestly(hostile, seen, response);
  return perform(act, request, response);
}

/** Starts the upstream on a free port of loopback, endpoint `/mcp` (any path is answered). */
export async function startHostileUpstream(): Promise<HostileUpstream> {
  const hostile: Hostile = {
    nextSession: undefined,
    order: () => undefined,
    once: [],
    tools: () => HONEST_TOOLS,
    serverInfo: { name: 'hostile', version: '1.0.0' },
    content: {},
    call: honestCall,
    seen: [],
    sessions: new Set(),
    sockets: new Map(),
    connections: 0,
    closedBytes: 0,
  };
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    answer(hostile, request, response).catch(() => request.socket.destroy());
  });
  server.on('connection', (socket) => {
    hostile.connections += 1;
    hostile.sockets.set(socket, hostile.connections);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      hostile.closedBytes += socket.bytesRead;
      hostile.sockets.delete(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/mcp`,
    origin,
    obey: (order) => {
      hostile.order = order;
    },
    obeyOnce: (order) => hostile.once.push(order),
    repent: () => {
      hostile.order = () => undefined;
      hostile.once = [];
      hostile.tools = () => HONEST_TOOLS;
      hostile.call = honestCall;
    },
    offer: (tools) => {
      hostile.tools = tools;
    },
    present: (content) => {
      hostile.content = content;
    },
    introduce: (serverInfo) => {
      hostile.serverInfo = serverInfo;
    },
    openNextSessionAs: (id) => {
      hostile.nextSession = id;
    },
    answerCalls: (call) => {
      hostile.call = call;
    },
    seen: () => [...hostile.seen],
    uses: () => hostile.seen.filter((request) => USES.has(request.method ?? '')),
    connections: () => hostile.connections,
    bytesReceived: () =>
      [...hostile.sockets.keys()].reduce((sum, socket) => sum + socket.bytesRead, hostile.closedBytes),
    forget: () => hostile.seen.splice(0),
    disconnect() {
      for (const socket of hostile.sockets.keys()) socket.destroy();
    },
    close: async () => {
      for (const socket of hostile.sockets.keys()) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
