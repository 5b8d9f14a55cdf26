// A server of HTTP+SSE on the official SDK v1, behind node:http: tools, questions, changes of its lists. It
// records what it is sent; a test can make it name another address, or say things of its own on its streams.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { bodyOf } from './legacy-sse-front.js';

export type SseRequest = {
  readonly httpMethod: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type SseServer = {
  readonly url: string;
  readonly origin: string;
  seen(): readonly SseRequest[];
  forget(): void;
  /** The first events of the next streams, in place of an honest `endpoint`; `undefined` is honest again. */
  beginWith(events: string | undefined): void;
  /** What `secret` answers. */
  readonly secret: string;
  /** Calls that were cancelled. */
  cancelled(): number;
  /** Open streams that gateways hold. */
  streams(): number;
  /** Writes bytes on the newest stream. */
  say(bytes: string): void;
  close(): Promise<void>;
};

type Open = { readonly transport: SSEServerTransport; readonly response: ServerResponse };

function text(value: string): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text: value }] };
}

const ANYTHING = { type: 'object', properties: {} };
const TOOLS = [
  {
    name: 'echo',
    description: 'Says it again.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
  { name: 'secret', description: 'Tells a secret.', inputSchema: ANYTHING },
  { name: 'sample', description: 'Asks a model.', inputSchema: ANYTHING },
  { name: 'steps', description: 'Tells its progress.', inputSchema: ANYTHING },
  { name: 'wait', description: 'Waits until it is cancelled.', inputSchema: ANYTHING },
  { name: 'hidden', description: 'Is allowed to nobody.', inputSchema: ANYTHING },
];

type Tools = {
  readonly secret: string;
  /** Told of every call that was cancelled. */
  readonly onCancelled: () => void;
};

function createTools({ secret, onCancelled }: Tools): Server {
  const server = new Server({ name: 'sse', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS as never }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    switch (params.name) {
      case 'echo':
        return text(String(params.arguments?.['text']));
      case 'secret':
        return text(secret);
      case 'sample':
        return text(await sample(server));
      case 'steps': {
        const progressToken = params._meta?.progressToken ?? 'none';
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress: 1, total: 2 },
        });
        // A client that has its answer forgets whose progress it was.
        await sleep(50);
        return text('done');
      }
      case 'wait':
        await new Promise((resolve) => extra.signal.addEventListener('abort', resolve));
        onCancelled();
        return text('cancelled');
      default:
        return text(params.name);
    }
  });
  return server;
}

async function sample(server: Server): Promise<string> {
  try {
    const { content } = await server.createMessage({
      messages: [{ role: 'user', content: { type: 'text', text: 'Say hello.' } }],
      maxTokens: 10,
    });
    return 'text' in content ? content.text : 'nothing';
  } catch {
    return 'refused';
  }
}

/** Starts the server on a free port of loopback. */
export async function startSseServer(secret = 'nothing'): Promise<SseServer> {
  const seen: SseRequest[] = [];
  const open = new Map<string, Open>();
  const responses = new Set<ServerResponse>();
  let beginning: string | undefined;
  let cancelled = 0;
  const onCancelled = (): void => {
    cancelled += 1;
  };

  async function openStream(response: ServerResponse): Promise<void> {
    responses.add(response);
    response.once('close', () => responses.delete(response));
    if (beginning !== undefined) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(beginning);
      return;
    }
    const transport = new SSEServerTransport('/post', response);
    open.set(transport.sessionId, { transport, response });
    response.once('close', () => open.delete(transport.sessionId));
    await createTools({ secret, onCancelled }).connect(transport);
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const url = new URL(request.url ?? '', 'http://sse.test');
    const headers = request.headers as Record<string, string>;
    seen.push({ httpMethod: request.method ?? '', url: request.url ?? '', headers, body });
    if (request.method === 'GET' && url.pathname === '/events') return openStream(response);
    const found = open.get(url.searchParams.get('sessionId') ?? '');
    if (request.method !== 'POST' || url.pathname !== '/post' || found === undefined) {
      response.writeHead(404).end();
      return;
    }
    await found.transport.handlePostMessage(request, response, JSON.parse(body));
  }

  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/events`,
    origin,
    secret,
    seen: () => seen,
    forget: () => void seen.splice(0),
    beginWith(events) {
      beginning = events;
    },
    cancelled: () => cancelled,
    streams: () => responses.size,
    say(bytes) {
      [...responses].at(-1)?.write(bytes);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
