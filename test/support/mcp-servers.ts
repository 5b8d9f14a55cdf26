// MCP servers on node:http for one feature each: listings, tasks, apps.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { UpstreamResponse } from '../../src/protocol/transport.js';
import type { SendRequest } from '../../src/upstream/exchange.js';
import { jsonBody } from './hostile-acts.js';
import { type Act, HONEST_TOOLS, type HostileRequest, type Order } from './hostile-upstream.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { type Access, type Reply, requestStateless, resultOf, STATELESS_VERSION } from './wire-client.js';

// A scripted MCP server on node:http that answers handshakes and lists, in the eras and the pages that
// a test sets, and records what it was asked. For the gateway's own listing only.

type Definition = { readonly [member: string]: unknown };

export type Asked = {
  readonly httpMethod: string;
  readonly method: string | undefined;
  readonly id: number;
  readonly headers: IncomingMessage['headers'];
  readonly params: Definition;
};

export type Script = {
  speaks: { sessions: boolean; stateless: boolean };
  /** One array a page. */
  tools: Definition[][];
  prompts: Definition[][];
  templates: Definition[][];
  instructions: string | undefined;
  capabilities: Definition;
  answersWith: 'json' | 'sse';
  /** Overrides the answer to a method; `undefined` leaves it. */
  intercept?: (asked: Asked, response: ServerResponse) => boolean;
};

export type ListingUpstream = {
  readonly script: Script;
  readonly asked: Asked[];
  readonly sessions: Set<string>;
  readonly url: string;
  /** How often a method was asked for. */
  count(method: string): number;
  close(): Promise<void>;
};

const LIST_MEMBERS: {
  readonly [method: string]: readonly ['tools' | 'prompts' | 'templates', string];
} = {
  'tools/list': ['tools', 'tools'],
  'prompts/list': ['prompts', 'prompts'],
  'resources/templates/list': ['templates', 'resourceTemplates'],
};

export function toolNamed(name: string, description = 'Does one thing.'): Definition {
  return { name, description, inputSchema: { type: 'object', properties: {} } };
}

/** Starts the server on a free port of the loopback. */
export async function startListingUpstream(): Promise<ListingUpstream> {
  const script: Script = {
    speaks: { sessions: true, stateless: true },
    tools: [[toolNamed('first'), toolNamed('second')]],
    prompts: [],
    templates: [],
    instructions: undefined,
    capabilities: { tools: {} },
    answersWith: 'json',
  };
  const asked: Asked[] = [];
  const sessions = new Set<string>();
  const server = createServer((request, response) => {
    readBody(request)
      .then((body) => answerListing({ script, asked, sessions }, request, response, body))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    script,
    asked,
    sessions,
    url: `http://127.0.0.1:${port}/mcp`,
    count: (method) => asked.filter((one) => one.method === method).length,
    close: () => closeServer(server),
  };
}

/** The lister's port over `fetch`. */
export function requestOver(url: string): SendRequest {
  return async ({ method, headers, body, timeoutMs }) => {
    try {
      const sent = body === undefined ? {} : { body };
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(url, { method, headers, signal, redirect: 'manual', ...sent });
      return answerOf(response);
    } catch {
      return { failure: 'unavailable' };
    }
  };
}

/** What `fetch` received, as the upstream's client gives it. */
function answerOf({ status, headers, body }: Response): UpstreamResponse {
  const reader = body?.getReader();
  let isGivenUp = false;
  const end = (): void => {
    isGivenUp = true;
    reader?.cancel().catch(() => undefined);
  };
  return {
    kind: 'response',
    status,
    headers: Object.fromEntries(headers),
    readBody: () => 'upstream-protocol',
    async next() {
      try {
        const chunk = await reader?.read();
        return isGivenUp ? 'upstream-unavailable' : chunk?.value;
      } catch {
        return 'upstream-unavailable';
      }
    },
    release: end,
    abort: end,
  };
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

type World = Pick<ListingUpstream, 'script' | 'asked' | 'sessions'>;

function answerListing(
  { script, asked, sessions }: World,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): void {
  const message = body === '' ? {} : JSON.parse(body);
  const one: Asked = {
    httpMethod: request.method ?? '',
    method: message.method,
    id: message.id,
    headers: request.headers,
    params: message.params ?? {},
  };
  asked.push(one);
  if (script.intercept?.(one, response) === true) return;
  const session = request.headers['mcp-session-id'];
  if (one.httpMethod === 'DELETE') {
    sessions.delete(String(session));
    response.writeHead(200).end();
    return;
  }
  const isStateless = request.headers['mcp-protocol-version'] === '2026-07-28';
  if (isStateless ? !script.speaks.stateless : !script.speaks.sessions) {
    sendError(response, 400, message.id, -32600);
  } else if (message.id === undefined) {
    response.writeHead(202).end();
  } else if (message.method === 'initialize') {
    const id = `session-${asked.length}`;
    sessions.add(id);
    response.setHeader('mcp-session-id', id);
    send(script, response, message.id, { ...handshake(script), protocolVersion: '2025-11-25' });
  } else if (message.method === 'server/discover') {
    const found = { ...handshake(script), supportedVersions: ['2026-07-28'] };
    send(script, response, message.id, { ...found, resultType: 'complete' });
  } else if (!isStateless && !sessions.has(String(session))) {
    sendError(response, 404, message.id, -32001);
  } else {
    const page = listPage(script, message.method, one.params['cursor']);
    if (page === undefined) sendError(response, 200, message.id, -32601);
    else send(script, response, message.id, page);
  }
}

function handshake({ capabilities, instructions }: Script): Definition {
  const serverInfo = { name: 'scripted', version: '1' };
  return { capabilities, serverInfo, ...(instructions === undefined ? {} : { instructions }) };
}

function listPage(script: Script, method: string, cursor: unknown): Definition | undefined {
  const [list, member] = LIST_MEMBERS[method] ?? [];
  if (list === undefined || member === undefined) return undefined;
  // The second page hides behind the empty cursor, which is a cursor like any other.
  const index = cursor === undefined ? 0 : Number(cursor === '' ? 1 : cursor);
  const pages = script[list];
  const next = index + 1 < pages.length ? { nextCursor: index === 0 ? '' : `${index + 1}` } : {};
  return { [member]: pages[index] ?? [], ...next };
}

function send(script: Script, response: ServerResponse, id: unknown, result: Definition): void {
  const text = JSON.stringify({ jsonrpc: '2.0', id, result });
  if (script.answersWith === 'json') {
    response.setHeader('content-type', 'application/json');
    response.end(text);
    return;
  }
  const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} });
  response.setHeader('content-type', 'text/event-stream');
  response.end(`id: 1\ndata:\n\n: hello\n\ndata: ${note}\n\nevent: message\ndata: ${text}\n\n`);
}

function sendError(response: ServerResponse, status: number, id: unknown, code: number): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no' } }));
}

// An upstream that has tasks, in both forms: what it says of each is set by the test, so that it can lie.

export const EXTENSION = 'io.modelcontextprotocol/tasks';
export const RELATED = 'io.modelcontextprotocol/related-task';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

/** What a client that waits for tasks says in `_meta`. */
export function declaring(more: JsonObject = {}): JsonObject {
  return { [CAPABILITIES_KEY]: { ...more, extensions: { [EXTENSION]: {} } } };
}

/** A tool that is a task where its caller wishes, and whose result has a schema. */
export const TASK_TOOL: JsonObject = {
  name: 'compute',
  description: 'Computes for a while.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
  execution: { taskSupport: 'optional' },
};
/** The same without a schema of its result. */
export const TALKING_TOOL: JsonObject = {
  name: 'talk',
  description: 'Talks for a while.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  execution: { taskSupport: 'optional' },
};
export const TASK_TOOLS = [...HONEST_TOOLS, TASK_TOOL, TALKING_TOOL];

export const SESSION_TASKS = { list: {}, cancel: {}, requests: { tools: { call: {} } } };

const TIMES = { createdAt: '2026-07-28T10:00:00Z', lastUpdatedAt: '2026-07-28T10:00:01Z' };

export type TaskServer = {
  readonly order: Order;
  /** Ids of the tasks that it began, its own. */
  readonly begun: readonly string[];
  /** What it says of a task from now on, over the bare members. */
  say(id: string, state: JsonObject): void;
  /** What tasks/result answers. */
  bring(outcome: JsonObject): void;
};

/** A task of its own, in the form of 2026. */
export function taskOf(id: string, state: JsonObject): JsonObject {
  return { taskId: id, status: 'working', ...TIMES, ttlMs: 60_000, pollIntervalMs: 50, ...state };
}

/** A task of its own, in the form of 2025-11-25. */
export function sessionTaskOf(id: string, state: JsonObject): JsonObject {
  return { taskId: id, status: 'working', ...TIMES, ttl: 60_000, ...state };
}

/** A server that begins a task at every call that may be one. Its capabilities are those of the honest one, and tasks. */
export function createTaskServer(prefix = 'up'): TaskServer {
  const begun: string[] = [];
  const states = new Map<string, JsonObject>();
  let outcome: JsonObject = { result: { content: [{ type: 'text', text: 'done' }] } };

  function begin(): string {
    const id = `${prefix}-${begun.length + 1}`;
    begun.push(id);
    return id;
  }

  function stateless(request: HostileRequest, params: JsonObject): JsonObject | undefined {
    const id = String(params['taskId']);
    const known = states.get(id) ?? {};
    switch (request.method) {
      case 'tools/call':
        return declares(params) ? { resultType: 'task', ...taskOf(begin(), {}) } : undefined;
      case 'tasks/get':
        return { resultType: 'complete', ...taskOf(id, known) };
      case 'tasks/update':
      case 'tasks/cancel':
        return { resultType: 'complete', ...known };
      default:
        return undefined;
    }
  }

  function inSession(request: HostileRequest, params: JsonObject): JsonObject | undefined {
    const id = String(params['taskId']);
    switch (request.method) {
      case 'tools/call':
        return params['task'] === undefined ? undefined : { task: sessionTaskOf(begin(), {}) };
      case 'tasks/get':
      case 'tasks/cancel':
        return sessionTaskOf(id, states.get(id) ?? {});
      case 'tasks/list':
        return { tasks: begun.map((one) => sessionTaskOf(one, states.get(one) ?? {})) };
      default:
        return undefined;
    }
  }

  function order(request: HostileRequest): Act | undefined {
    const given = request.message?.['params'];
    const params = isObject(given) ? given : {};
    const isStateless = request.headers['mcp-protocol-version'] === '2026-07-28';
    const result = isStateless ? stateless(request, params) : inSession(request, params);
    const id = request.id ?? 0;
    if (result !== undefined) return jsonBody({ jsonrpc: '2.0', id, result });
    return request.method === 'tasks/result' ? jsonBody({ jsonrpc: '2.0', id, ...outcome }) : undefined;
  }

  return {
    order,
    begun,
    say: (id, state) => void states.set(id, state),
    bring(next) {
      outcome = next;
    },
  };
}

function declares(params: JsonObject): boolean {
  const meta = params['_meta'];
  const declared = isObject(meta) ? meta[CAPABILITIES_KEY] : undefined;
  const extensions = isObject(declared) ? declared['extensions'] : undefined;
  return isObject(extensions) && extensions[EXTENSION] !== undefined;
}

/** The answer to an `initialize` that declares tasks; the session is the client's to name. */
export function initializeWithTasks(request: HostileRequest, tasks: JsonObject = SESSION_TASKS): Act {
  const result = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, tasks },
    serverInfo: { name: 'tasks', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, result });
  const headers = { 'content-type': 'application/json' };
  return { kind: 'http', status: 200, headers, body };
}

/** A request of 2026 whose client waits for tasks. */
export function askStateless(
  access: Access,
  method: string,
  params: JsonObject,
  capabilities: JsonObject = {},
): Promise<Reply> {
  return requestStateless(access, method, { ...params, _meta: declaring(capabilities) });
}

/** Begins a task in 2026; its id as the client has it. */
export async function beginStateless(access: Access, name = 'talk', args: JsonObject = {}): Promise<string> {
  const reply = await askStateless(access, 'tools/call', { name, arguments: args });
  const id = resultOf(reply)['taskId'];
  if (typeof id !== 'string') throw new Error(`no task was begun: ${reply.status} ${reply.text}`);
  return id;
}

// A server of the MCP Apps extension that shows what it draws only to clients that declare the extension, in
// both eras: the others get a plain form of the same tool, and know nothing of its resource.

export const APPS = 'io.modelcontextprotocol/ui';
export const APP_TYPE = 'text/html;profile=mcp-app';
export const APP_URI = 'ui://forecast/view.html';

/** What a host declares. */
export const HOST: JsonObject = { extensions: { [APPS]: { mimeTypes: [APP_TYPE] } } };

/** What is told of where an app runs would be cut or neutralized in any other result. */
export const APP_CONTENTS: readonly JsonObject[] = [
  {
    uri: APP_URI,
    mimeType: APP_TYPE,
    text: '<!doctype html><script>parent.postMessage("ready", "*")</script>',
  },
];

const INPUT = { type: 'object', properties: { place: { type: 'string' } } };
const PLAIN_TOOL: JsonObject = {
  name: 'forecast',
  description: 'Tells the weather in words.',
  inputSchema: INPUT,
};
const SHOWN_TOOL: JsonObject = {
  name: 'forecast',
  description: 'Draws the weather.',
  inputSchema: { ...INPUT, required: ['place'] },
  _meta: { ui: { resourceUri: APP_URI } },
};
/** For the app itself, and for nobody else. */
const APP_TOOL: JsonObject = {
  name: 'refresh',
  inputSchema: { type: 'object' },
  _meta: { ui: { resourceUri: APP_URI, visibility: ['app'] } },
};

export type AppsServer = {
  readonly order: Order;
  /** From now on everyone is offered what the others were: hosts the plain form, and the rest that of hosts. */
  swap(): void;
  /** Tools that are offered besides, or in place of those of their names, to those who declare the extension. */
  readonly more: JsonObject[];
  /** What the clients of these requests declared, each once, as JSON; of a request in a session nothing. */
  declared(seen: readonly HostileRequest[]): readonly string[];
};

/** Makes one. Sessions are known by their ids, which say what was declared in them. */
export function createAppsServer(): AppsServer {
  const more: JsonObject[] = [];
  let opened = 0;
  let isSwapped = false;

  function inSession(request: HostileRequest): Act | undefined {
    if (request.method !== 'initialize') {
      const id = request.headers['mcp-session-id'];
      if (id === undefined) return jsonBody(errorFor(request, -32600), 400);
      return answer(request, id.startsWith('shows'), {});
    }
    const { protocolVersion = '2025-11-25', capabilities } = paramsIn(request);
    const isShown = showsApps(capabilities);
    opened += 1;
    const id = `${isShown ? 'shows' : 'plain'}-${opened}`;
    const result = { protocolVersion, ...handshakeOf(isShown) };
    const act = jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
    if (act.kind !== 'http') return act;
    return { ...act, headers: { ...act.headers, 'mcp-session-id': id } };
  }

  function stateless(request: HostileRequest): Act {
    const isShown = showsApps(declaredIn(request));
    const complete = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
    if (request.method !== 'server/discover') return answer(request, isShown, complete);
    const result = { supportedVersions: [STATELESS_VERSION], ...handshakeOf(isShown), ...complete };
    return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
  }

  function answer(request: HostileRequest, isHost: boolean, members: JsonObject): Act {
    const isShown = isHost !== isSwapped;
    const result = resultFor(request, isShown, isShown ? more : []);
    if (result === undefined) return jsonBody(errorFor(request, -32602));
    return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result: { ...result, ...members } });
  }

  return {
    more,
    swap() {
      isSwapped = !isSwapped;
    },
    declared: (seen) => [...new Set(seen.flatMap((request) => declarationIn(request) ?? []))],
    order(request) {
      if (request.httpMethod === 'DELETE') return { kind: 'http', status: 200 };
      if (request.httpMethod !== 'POST') return { kind: 'http', status: 405 };
      if (request.id === undefined) return { kind: 'http', status: 202 };
      const isStateless = request.headers['mcp-protocol-version'] === STATELESS_VERSION;
      return isStateless ? stateless(request) : inSession(request);
    },
  };
}

function handshakeOf(isShown: boolean): JsonObject {
  const own = isShown ? { extensions: { [APPS]: {} } } : {};
  return {
    capabilities: { tools: {}, resources: {}, ...own },
    serverInfo: { name: 'apps', version: '1' },
  };
}

function resultFor(
  { method, name }: HostileRequest,
  isShown: boolean,
  more: readonly JsonObject[],
): JsonObject | undefined {
  switch (method) {
    case 'tools/list':
      return { tools: isShown ? [...shownBeside(more), ...more] : [PLAIN_TOOL] };
    case 'resources/list':
      return { resources: isShown ? [{ uri: APP_URI, name: 'view', mimeType: APP_TYPE }] : [] };
    case 'resources/templates/list':
      return { resourceTemplates: [] };
    case 'resources/read':
      return isShown && name === APP_URI ? { contents: APP_CONTENTS } : undefined;
    case 'tools/call':
      return { content: [{ type: 'text', text: isShown ? 'drawn' : 'in words' }] };
    case 'ping':
      return {};
    default:
      return undefined;
  }
}

function shownBeside(more: readonly JsonObject[]): readonly JsonObject[] {
  const names = more.map(({ name }) => name);
  return [SHOWN_TOOL, APP_TOOL].filter(({ name }) => !names.includes(name));
}

function errorFor({ id }: HostileRequest, code: number): JsonObject {
  return { jsonrpc: '2.0', id: id ?? 0, error: { code, message: 'No such thing.' } };
}

function paramsIn({ message }: HostileRequest): JsonObject {
  const params = message?.['params'];
  return isObject(params) ? params : {};
}

function declaredIn(request: HostileRequest): Json | undefined {
  const meta = paramsIn(request)['_meta'];
  return isObject(meta) ? meta['io.modelcontextprotocol/clientCapabilities'] : undefined;
}

function extensionsIn(capabilities: Json | undefined): Json | undefined {
  return isObject(capabilities) ? capabilities['extensions'] : undefined;
}

function showsApps(capabilities: Json | undefined): boolean {
  const extensions = extensionsIn(capabilities);
  return isObject(extensions) && extensions[APPS] !== undefined;
}

/** The extensions that a handshake or a stateless request declares; `undefined` for what declares nothing. */
function declarationIn(request: HostileRequest): string | undefined {
  const capabilities = request.method === 'initialize' ? paramsIn(request)['capabilities'] : declaredIn(request);
  return capabilities === undefined ? undefined : JSON.stringify(extensionsIn(capabilities) ?? 'none');
}
