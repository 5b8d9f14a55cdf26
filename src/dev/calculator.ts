// A calculator that speaks HTTP+SSE as FastMCP does: FastMCP itself where Python has the package `mcp`, else a stub that sends
// the same bytes. Whoever knows the address of a session may post into it. Source: MCP 2024-11-05, transports, HTTP with SSE.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createAppFor, openApp, readText } from '../http/app.js';
import { isObject, type Json, type JsonObject, parseObject } from '../protocol/jsonrpc.js';
import { SERVER_LIMITS } from './scripted-server.js';

export type Calculator = {
  /** The address of its stream. */
  readonly url: string;
  readonly program: 'FastMCP' | 'stub';
  close(): Promise<void>;
};

const HOST = '127.0.0.1';
const MAX_BODY_BYTES = 64 * 1024;

/** Ends with the pipe of its input, so that it outlives nobody. */
const PYTHON = `
import os, socket, sys, threading, uvicorn
from mcp.server.fastmcp import FastMCP
server = FastMCP("calculator")
total = 0

@server.tool()
def add(number: int) -> int:
    """Adds a number to the total."""
    global total
    total += number
    return total

threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="critical")).run(sockets=[listening])
`;

/** Starts FastMCP where it is installed, else the stub. */
export async function startCalculator(): Promise<Calculator> {
  return (await startFastMcp()) ?? (await startStub());
}

/** `undefined` where there is no Python, or no FastMCP. */
async function startFastMcp(): Promise<Calculator | undefined> {
  const child = spawn('python3', ['-c', PYTHON], { stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise<undefined>((resolve) => {
    for (const event of ['error', 'close']) child.once(event, () => resolve(undefined));
  });
  const printed = new Promise<string>((resolve) => child.stdout.setEncoding('utf8').once('data', resolve));
  const port = await Promise.race([printed, ended]);
  if (port === undefined) return undefined;
  return {
    url: `http://${HOST}:${port.trim()}/sse`,
    program: 'FastMCP',
    async close() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

type StubContext = { readonly sessions: Map<string, ServerResponse>; total: number };

const SCHEMA: JsonObject = {
  properties: { number: { title: 'Number', type: 'integer' } },
  required: ['number'],
  title: 'addArguments',
  type: 'object',
};
const OUTPUT: JsonObject = {
  properties: { result: { title: 'Result', type: 'integer' } },
  required: ['result'],
  title: 'addOutput',
  type: 'object',
};
const ADD: JsonObject = {
  name: 'add',
  description: 'Adds a number to the total.',
  inputSchema: SCHEMA,
  outputSchema: OUTPUT,
};
const CAPABILITIES: JsonObject = {
  experimental: {},
  prompts: { listChanged: false },
  resources: { subscribe: false, listChanged: false },
  tools: { listChanged: false },
};

/** The result of a request, as FastMCP words it. */
function resultOf(stub: StubContext, method: string, params: JsonObject): JsonObject {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params['protocolVersion'] ?? '',
        capabilities: CAPABILITIES,
        serverInfo: { name: 'calculator', version: '1.30.0' },
      };
    case 'tools/list':
      return { tools: [ADD] };
    case 'tools/call': {
      const args = isObject(params['arguments']) ? params['arguments'] : {};
      stub.total += Number(args['number']);
      const content = [{ type: 'text', text: String(stub.total) }];
      return { content, structuredContent: { result: stub.total }, isError: false };
    }
    case 'prompts/list':
      return { prompts: [] };
    case 'resources/list':
      return { resources: [] };
    case 'resources/templates/list':
      return { resourceTemplates: [] };
    default:
      return {};
  }
}

function sendEvent(stream: ServerResponse, name: string, data: string): void {
  stream.write(`event: ${name}\r\ndata: ${data}\r\n\r\n`);
}

function openStream(stub: StubContext, response: ServerResponse): void {
  const id = randomBytes(16).toString('hex');
  stub.sessions.set(id, response);
  response.once('close', () => stub.sessions.delete(id));
  response.writeHead(200, {
    'cache-control': 'no-store',
    'content-type': 'text/event-stream; charset=utf-8',
    'x-accel-buffering': 'no',
  });
  sendEvent(response, 'endpoint', `/messages/?session_id=${id}`);
}

async function handleHttp(stub: StubContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', `http://${HOST}`);
  if (request.method === 'GET' && pathname === '/sse') {
    openStream(stub, response);
    return;
  }
  const stream = stub.sessions.get(searchParams.get('session_id') ?? '');
  const message = parseObject((await readText(request, MAX_BODY_BYTES)) ?? '');
  if (pathname !== '/messages/' || stream === undefined || message === undefined) {
    response.writeHead(pathname === '/sse' ? 405 : 404).end();
    return;
  }
  response.writeHead(202).end('Accepted');
  const { id, method, params } = message;
  if (id === undefined || typeof method !== 'string') return;
  const result: Json = resultOf(stub, method, isObject(params) ? params : {});
  sendEvent(stream, 'message', JSON.stringify({ jsonrpc: '2.0', id, result }));
}

async function startStub(): Promise<Calculator> {
  const stub: StubContext = { sessions: new Map(), total: 0 };
  const app = createAppFor(SERVER_LIMITS, ({ raw }, reply) => {
    reply.hijack();
    handleHttp(stub, raw, reply.raw).catch(() => reply.raw.destroy());
  });
  const port = await openApp(app, { host: HOST, port: 0 });
  return { url: `http://${HOST}:${port}/sse`, program: 'stub', close: () => app.close() };
}
