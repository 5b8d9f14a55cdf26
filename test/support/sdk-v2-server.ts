// A server of the stateless era on the official SDK v2, behind node:http, with one of everything that a
// gateway must carry: structured results, progress, a prompt, a resource, a template, a mirrored header.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createMcpHandler,
  fromJsonSchema,
  McpServer,
  ResourceTemplate,
  type ServerNotifier,
} from '@modelcontextprotocol/server';

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
  const numbers = schema<{ a: number; b: number }>(
    { a: { type: 'number' }, b: { type: 'number' } },
    ['a', 'b'],
  );
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
      inputSchema: schema<{ steps: number }>({ steps: { type: 'integer', maximum: 100 } }, [
        'steps',
      ]),
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
      inputSchema: schema<{ region: string }>(
        { region: { type: 'string', 'x-mcp-header': 'Region' } },
        ['region'],
      ),
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

async function toWebRequest(
  request: IncomingMessage,
  origin: string,
  gone: AbortSignal,
): Promise<Request> {
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
