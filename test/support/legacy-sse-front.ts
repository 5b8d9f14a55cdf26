// Serves HTTP+SSE in front of a hostile upstream: each channel is a session there, and each answer comes on the
// channel, in the version of channels. It records what it is sent, and says what a test tells it to say.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from './json.js';
import { type Reply, readReply } from './wire-client.js';

export type FrontRequest = {
  readonly httpMethod: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type LegacySseFront = {
  readonly url: string;
  seen(): readonly FrontRequest[];
  forget(): void;
  /** Channels that are open now. */
  channels(): number;
  /** Responses to this method, or the 202 for responses of the client, are kept back until `release`. */
  hold(kind: string): void;
  release(...kinds: readonly string[]): void;
  /** Says a message on every channel. */
  say(message: JsonObject): void;
  sayText(text: string): void;
  /** Ends each channel right behind the answer to its handshake. */
  dieAfterHandshake(isDying: boolean): void;
  /** Breaks every channel off. */
  cut(): void;
  close(): Promise<void>;
};

/** What a client posts in answer to a request of the server, as a kind that can be held. */
export const RESPONSE = 'a response';

type Channel = { readonly response: ServerResponse; session: string | undefined };

export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function event(message: unknown): string {
  return eventOf(JSON.stringify(message));
}

function eventOf(text: string): string {
  return `event: message\ndata: ${text}\n\n`;
}

/** The messages of a reply as they came, byte for byte. */
function textsIn({ headers, text, messages }: Reply): readonly string[] {
  if (headers.get('content-type')?.startsWith('text/event-stream') !== true) return messages.length === 0 ? [] : [text];
  const data = text.split('\n').filter((line) => line.startsWith('data:'));
  return data.map((line) => line.slice('data:'.length).trimStart()).filter((one) => one !== '');
}

/** The response to a handshake, in the version of channels. */
function asOlder(text: string): string {
  const message = JSON.parse(text) as { readonly result?: JsonObject };
  return JSON.stringify({
    ...message,
    result: { ...message.result, protocolVersion: '2024-11-05' },
  });
}

/** Starts it on a free port of loopback. */
export async function startLegacySseFront(upstreamUrl: string): Promise<LegacySseFront> {
  const seen: FrontRequest[] = [];
  const channels = new Map<string, Channel>();
  let last = 0;
  let isDying = false;
  const held = new Map<string, (() => void)[]>();

  async function wait(kind: string): Promise<void> {
    const waiting = held.get(kind);
    if (waiting !== undefined) await new Promise<void>((resolve) => waiting.push(resolve));
  }

  async function pass(channel: Channel, body: string): Promise<void> {
    const message = JSON.parse(body) as { method?: string; id?: unknown; params?: JsonObject };
    const isHandshake = message.method === 'initialize';
    const sent = isHandshake ? { ...message, params: { ...message.params, protocolVersion: '2025-11-25' } } : message;
    const response = await fetch(upstreamUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(channel.session === undefined
          ? {}
          : { 'mcp-session-id': channel.session, 'mcp-protocol-version': '2025-11-25' }),
      },
      body: isHandshake ? JSON.stringify(sent) : body,
    });
    const reply = await readReply(response);
    if (isHandshake) channel.session = reply.headers.get('mcp-session-id') ?? undefined;
    if (message.method !== undefined) await wait(message.method);
    for (const incoming of textsIn(reply)) channel.response.write(eventOf(isHandshake ? asOlder(incoming) : incoming));
    if (isHandshake && isDying) channel.response.end();
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const url = new URL(request.url ?? '', 'http://front.test');
    const headers = request.headers as Record<string, string>;
    seen.push({ httpMethod: request.method ?? '', url: request.url ?? '', headers, body });
    if (request.method === 'GET' && url.pathname === '/events') {
      last += 1;
      const id = String(last);
      channels.set(id, { response, session: undefined });
      response.once('close', () => channels.delete(id));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`event: endpoint\ndata: /post?channel=${id}\n\n`);
      return;
    }
    const channel = channels.get(url.searchParams.get('channel') ?? '');
    if (request.method !== 'POST' || url.pathname !== '/post' || channel === undefined) {
      response.writeHead(404).end();
      return;
    }
    if (!('method' in JSON.parse(body))) await wait(RESPONSE);
    response.writeHead(202).end('Accepted');
    await pass(channel, body);
  }

  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`,
    seen: () => [...seen],
    forget: () => void seen.splice(0),
    channels: () => channels.size,
    hold(kind) {
      if (!held.has(kind)) held.set(kind, []);
    },
    release(...kinds) {
      for (const kind of kinds.length === 0 ? [...held.keys()] : kinds) {
        const waiting = held.get(kind) ?? [];
        held.delete(kind);
        for (const go of waiting) go();
      }
    },
    say(message) {
      for (const { response } of channels.values()) response.write(event(message));
    },
    sayText(text) {
      for (const { response } of channels.values()) response.write(`data: ${text}\n\n`);
    },
    dieAfterHandshake(next) {
      isDying = next;
    },
    cut() {
      for (const { response } of channels.values()) response.destroy();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
