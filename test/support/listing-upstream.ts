// A scripted MCP server on node:http that answers handshakes and lists, in the eras and the pages that
// a test sets, and records what it was asked. For the gateway's own listing only.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { UpstreamResponse } from '../../src/protocol/transport.js';
import type { ListingRequest } from '../../src/upstream/discovery/request.js';

type Definition = { readonly [member: string]: unknown };

export type Asked = {
  readonly httpMethod: string;
  readonly method: string | undefined;
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
      .then((body) => answer({ script, asked, sessions }, request, response, body))
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
export function requestOver(url: string): ListingRequest {
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

function answer(
  { script, asked, sessions }: World,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): void {
  const message = body === '' ? {} : JSON.parse(body);
  const one: Asked = {
    httpMethod: request.method ?? '',
    method: message.method,
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
