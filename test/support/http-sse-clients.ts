// Clients of HTTP+SSE that say exactly what a test tells them to.

import { setTimeout as sleep } from 'node:timers/promises';
import type { JsonObject } from './json.js';
import { type Access, bearer, type Reply, readReply, type Sending } from './wire-client.js';

// A client of HTTP+SSE by hand: what the gateway says, byte for byte, and posts with any session.

export type RawChannel = {
  readonly status: number;
  readonly headers: Headers;
  /** The address that the first event named. */
  readonly address: string;
  /** Everything that came so far. */
  text(): string;
  /** The message with this id, once it is there. */
  answer(id: string | number): Promise<JsonObject>;
  /** The same as it came, byte for byte. */
  answerText(id: string | number): Promise<string>;
  leave(): void;
};

const PATIENCE_MS = 10_000;
const POLL_MS = 5;

/** Opens a stream and waits for its first event, or for its end. */
export async function openRawChannel(url: string, headers: Readonly<Record<string, string>>): Promise<RawChannel> {
  const gone = new AbortController();
  const accept = 'text/event-stream';
  const response = await fetch(url, { headers: { accept, ...headers }, signal: gone.signal });
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let received = '';
  let isOver = false;
  async function readOn(): Promise<void> {
    for (;;) {
      const chunk = await reader?.read().catch(() => undefined);
      if (chunk?.value === undefined) break;
      received += decoder.decode(chunk.value, { stream: true });
    }
    isOver = true;
  }
  void readOn();
  async function until<T>(look: () => T | undefined): Promise<T> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(POLL_MS)) {
      const found = look();
      if (found !== undefined) return found;
    }
    throw new Error(`did not come; came: ${received}`);
  }
  const address = await until(() => {
    const event = /^event: endpoint\ndata: (.*)\n\n/.exec(received);
    return event?.[1] ?? (isOver ? '' : undefined);
  });
  const textOf = (id: string | number): Promise<string> =>
    until(() => textsOf(received).find((text) => (JSON.parse(text) as JsonObject)['id'] === id));
  return {
    status: response.status,
    headers: response.headers,
    address,
    text: () => received,
    answer: async (id) => JSON.parse(await textOf(id)) as JsonObject,
    answerText: textOf,
    leave: () => gone.abort(),
  };
}

function textsOf(received: string): readonly string[] {
  return received
    .split('\n\n')
    .slice(0, -1)
    .filter((event) => event.startsWith('event: message'))
    .map((event) => event.split('\ndata: ')[1] ?? '');
}

/** Posts one message. */
export function postMessage(
  address: string,
  token: string | undefined,
  message: unknown,
  more: Readonly<Record<string, string>> = {},
  body = JSON.stringify(message),
): Promise<Response> {
  const bearer = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer, ...more },
    body,
  });
}

export function initializeMessage(id: string | number): JsonObject {
  const clientInfo = { name: 'raw', version: '1' };
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo };
  return { jsonrpc: '2.0', id, method: 'initialize', params };
}

export function callMessage(id: string | number, name: string, args: JsonObject = {}): JsonObject {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } };
}

/** A session on a channel, and the way to post in it. */
export type OpenedChannel = {
  readonly channel: RawChannel;
  /** Resolves with the status of the POST. */
  post(message: unknown): Promise<number>;
};

/** Opens a channel at the path of an upstream, and the session on it. */
export async function openSessionChannel(url: string, token: string): Promise<OpenedChannel> {
  const channel = await openRawChannel(`${url}/sse`, { authorization: `Bearer ${token}` });
  const post = async (message: unknown): Promise<number> => {
    const response = await postMessage(channel.address, token, message);
    await response.text();
    return response.status;
  };
  await post(initializeMessage(0));
  await channel.answer(0);
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return { channel, post };
}

// A client of HTTP+SSE that is asked like one of the other eras: a request, and the reply to it, wherever it came.

export type ChannelCaller = {
  readonly channel: RawChannel;
  /** The answer to `initialize`. */
  readonly opened: JsonObject;
  request(method: string, params?: JsonObject, how?: Sending): Promise<Reply>;
  notify(method: string, params?: JsonObject): Promise<Response>;
};

/** Opens a channel and a session on it. */
export async function openChannelCaller(access: Access, capabilities: JsonObject = {}): Promise<ChannelCaller> {
  const channel = await openRawChannel(`${access.url}/sse`, bearer(access.token));
  // Read each time: a test may give the caller another token.
  const post = (message: JsonObject): Promise<Response> => postMessage(channel.address, access.token, message);
  const hello = initializeMessage(0);
  const params = { ...(hello['params'] as JsonObject), capabilities };
  await post({ ...hello, params });
  const opened = await channel.answer(0);
  await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  let id = 0;
  return {
    channel,
    opened,
    notify: (method, params = {}) => post({ jsonrpc: '2.0', method, params }),
    async request(method, params = {}, { headers, write } = {}) {
      id += 1;
      const own = id;
      const before = channel.text().length;
      const sent = { jsonrpc: '2.0', id: own, method, params };
      const body = write?.(sent);
      const response = await postMessage(channel.address, access.token, sent, headers, body);
      if (response.status !== 202) return readReply(response);
      const text = await channel.answerText(own);
      const message = JSON.parse(text) as JsonObject;
      const messages = textsOf(channel.text().slice(before)).map((one) => JSON.parse(one));
      return { status: 200, headers: response.headers, text, message, messages };
    },
  };
}
