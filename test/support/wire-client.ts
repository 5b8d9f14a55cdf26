// A client that says exactly what a test tells it to: over fetch where that can say it, over a socket
// where it cannot. It shows what came back and repairs, retries and follows nothing.
// Source: MCP 2025-11-25 and 2026-07-28, transports.

import { connect, type Socket } from 'node:net';
import { isObject, type Json, type JsonObject } from './json.js';

export const SESSION_VERSION = '2025-11-25';
export const STATELESS_VERSION = '2026-07-28';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const NAMED_METHODS: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
]);
const RAW_TIMEOUT_MS = 10_000;

export type HeaderLines = { readonly [name: string]: string };

export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON-RPC response, from a JSON body or from the stream. */
  readonly message: JsonObject | undefined;
  /** All messages of an event stream, or the one of a JSON body. */
  readonly messages: readonly JsonObject[];
};

export type Access = { readonly url: string; readonly token: string | undefined };

function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The data of one event, its lines joined (WHATWG HTML §9.2.6). */
function dataOf(event: string): string {
  return event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length))
    .join('\n');
}

function readMessages(type: string, text: string): readonly JsonObject[] {
  const texts = type.startsWith('text/event-stream') ? text.split('\n\n').map(dataOf) : [text];
  return texts.map(parseObject).filter((each) => each !== undefined);
}

export function bearer(token: string | undefined): HeaderLines {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** One POST with exactly this body. A header set to the empty string is left out. */
export async function post(
  { url, token }: Access,
  body: string | Uint8Array,
  headers: HeaderLines = {},
): Promise<Reply> {
  const all = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    ...bearer(token),
    ...headers,
  };
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')),
    body: typeof body === 'string' ? body : Buffer.from(body),
  });
  return readReply(response);
}

export async function readReply(response: Response): Promise<Reply> {
  const text = await response.text();
  const messages = readMessages(response.headers.get('content-type') ?? '', text);
  return {
    status: response.status,
    headers: response.headers,
    text,
    message: messages.findLast((each) => !('method' in each)),
    messages,
  };
}

/** The members that every stateless request has in `_meta`. */
export const STATELESS_META: JsonObject = {
  [VERSION_KEY]: STATELESS_VERSION,
  [CAPABILITIES_KEY]: {},
};

/** A value that is no visible ASCII is encoded (MCP 2026-07-28, transports). */
function headerValue(text: string): string {
  return /^[\x21-\x7e]*$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

/** The headers and the body of a well-formed stateless request. */
export function statelessParts(
  method: string,
  params: JsonObject = {},
  id: Json = 1,
): { readonly headers: HeaderLines; readonly body: JsonObject } {
  const about = params['name'] ?? params['uri'] ?? params['taskId'];
  const named = NAMED_METHODS.has(method) && typeof about === 'string' ? { 'mcp-name': headerValue(about) } : {};
  const own = isObject(params['_meta']) ? params['_meta'] : {};
  return {
    headers: { 'mcp-protocol-version': STATELESS_VERSION, 'mcp-method': method, ...named },
    body: {
      jsonrpc: '2.0',
      id,
      method,
      params: { ...params, _meta: { ...STATELESS_META, ...own } },
    },
  };
}

/** A stateless request; `headers` replace those that it would have. */
export function requestStateless(
  access: Access,
  method: string,
  params: JsonObject = {},
  { headers, id = 1, write = JSON.stringify }: Sending & { readonly id?: Json } = {},
): Promise<Reply> {
  const parts = statelessParts(method, params, id);
  return post(access, write(parts.body), { ...parts.headers, ...headers });
}

/** How a request is sent, where not as usual. */
export type Sending = {
  readonly headers?: HeaderLines;
  /** Writes the message, in place of `JSON.stringify`. */
  readonly write?: (message: JsonObject) => string;
};

export function callStateless(
  access: Access,
  name: string,
  args: JsonObject = {},
  meta: JsonObject = {},
  sending: Sending = {},
): Promise<Reply> {
  return requestStateless(access, 'tools/call', { name, arguments: args, _meta: meta }, sending);
}

export type OpenSession = {
  readonly id: string;
  readonly reply: Reply;
  request(method: string, params?: JsonObject, headers?: HeaderLines): Promise<Reply>;
  call(name: string, args?: JsonObject, meta?: JsonObject): Promise<Reply>;
  end(): Promise<Reply>;
};

/** The headers of a request within a session. */
export function sessionHeaders(id: string): HeaderLines {
  return { 'mcp-session-id': id, 'mcp-protocol-version': SESSION_VERSION };
}

export function requestInSession(
  access: Access,
  session: string,
  method: string,
  params: JsonObject = {},
  headers: HeaderLines = {},
): Promise<Reply> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
  return post(access, body, { ...sessionHeaders(session), ...headers });
}

export function initialize(access: Access, capabilities: JsonObject = {}): Promise<Reply> {
  const params = {
    protocolVersion: SESSION_VERSION,
    capabilities,
    clientInfo: { name: 'wire-client', version: '1.0.0' },
  };
  return post(access, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
}

/** Opens a session; throws where none was opened. */
export async function openSession(access: Access, capabilities: JsonObject = {}): Promise<OpenSession> {
  const reply = await initialize(access, capabilities);
  const id = reply.headers.get('mcp-session-id');
  if (reply.status !== 200 || id === null) throw new Error(`no session was opened: ${reply.status} ${reply.text}`);
  const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
  await post(access, JSON.stringify(note), sessionHeaders(id));
  return {
    id,
    reply,
    request: (method, params, headers) => requestInSession(access, id, method, params, headers),
    call: (name, args = {}, meta) =>
      requestInSession(access, id, 'tools/call', {
        name,
        arguments: args,
        ...(meta === undefined ? {} : { _meta: meta }),
      }),
    async end() {
      const headers = { ...bearer(access.token), ...sessionHeaders(id) };
      return readReply(await fetch(access.url, { method: 'DELETE', headers }));
    },
  };
}

export type RawReply = {
  /** Everything that came, as Latin-1. */
  readonly text: string;
  /** Of the first answer; 0 where none came. */
  readonly status: number;
  readonly isClosed: boolean;
};

/**
 * Writes bytes to a socket and reads until the other side closes, or `until` holds of what came.
 * Never rejects for a reset: what came before it is the answer.
 */
export function sendRaw(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  until: (text: string) => boolean = () => false,
): Promise<RawReply> {
  return new Promise((resolve) => {
    let text = '';
    let isClosed = false;
    const socket: Socket = connect(port, '127.0.0.1');
    const timer = setTimeout(finish, RAW_TIMEOUT_MS);
    function finish(): void {
      clearTimeout(timer);
      socket.destroy();
      resolve({ text, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), isClosed });
    }
    socket.on('connect', () => {
      for (const piece of pieces) socket.write(piece);
    });
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (until(text)) finish();
    });
    socket.on('error', () => {
      isClosed = true;
    });
    socket.on('close', () => {
      isClosed = true;
      finish();
    });
  });
}

/** The bytes of a POST, header lines exactly as given, in order. */
export function rawPost(path: string, lines: readonly string[], body: string): string {
  return [`POST ${path} HTTP/1.1`, ...lines, '', body].join('\r\n');
}

/** True when one whole answer with a content-length has come. */
export function hasCompleteResponse(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end))?.[1];
  return length !== undefined && text.length >= end + 4 + Number(length);
}

/** The JSON-RPC error of a reply, or an empty object. */
export function errorOf(reply: Pick<Reply, 'message'>): JsonObject {
  const error = reply.message?.['error'];
  return isObject(error) ? error : {};
}

/** The result of a reply, or an empty object. */
export function resultOf(reply: Pick<Reply, 'message'>): JsonObject {
  const result = reply.message?.['result'];
  return isObject(result) ? result : {};
}

/** The names of a list of tools. */
export function toolNames(reply: Pick<Reply, 'message'>): readonly Json[] {
  const tools = resultOf(reply)['tools'];
  return Array.isArray(tools)
    ? (tools as readonly Json[]).map((tool) => (isObject(tool) ? (tool['name'] ?? null) : null))
    : [];
}

/** Reads a stream until it holds a text or ends, gives the rest up, and says what had come. */
export async function readUntil(response: Response, text: string): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let seen = '';
  while (reader !== undefined && !seen.includes(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    seen += decoder.decode(value, { stream: true });
  }
  await reader?.cancel();
  return seen;
}

// Opens an event stream by a POST and reads its messages one by one, as they come.

export type EventReader = {
  readonly status: number;
  readonly headers: Headers;
  /** The next message; `undefined` once the stream has ended. */
  next(): Promise<JsonObject | undefined>;
  /** Leaves, without waiting for the end. */
  leave(): void;
};

/** Sends a stateless request and reads its answer as a stream. */
export async function openEvents(
  access: Access,
  method: string,
  params: JsonObject = {},
  more: { readonly headers?: HeaderLines; readonly id?: Json } = {},
): Promise<EventReader> {
  const parts = statelessParts(method, params, more.id ?? 'listen-1');
  const gone = new AbortController();
  const response = await fetch(access.url, {
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...bearer(access.token),
      ...parts.headers,
      ...more.headers,
    },
    body: JSON.stringify(parts.body),
    signal: gone.signal,
  });
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let buffered = '';

  async function next(): Promise<JsonObject | undefined> {
    for (;;) {
      const end = buffered.indexOf('\n\n');
      if (end >= 0) {
        const event = buffered.slice(0, end);
        buffered = buffered.slice(end + 2);
        const message = readEvent(event);
        if (message !== undefined) return message;
        continue;
      }
      const chunk = await reader?.read().catch(() => undefined);
      if (chunk === undefined || chunk.done) return undefined;
      buffered += decoder.decode(chunk.value, { stream: true });
    }
  }

  return { status: response.status, headers: response.headers, next, leave: () => gone.abort() };
}

function readEvent(event: string): JsonObject | undefined {
  const data = event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).trimStart())
    .join('\n');
  if (data === '') return undefined;
  const value: unknown = JSON.parse(data);
  return isObject(value) ? value : undefined;
}

// Reads an answer that streams, on and on, and shows what has come of it so far.

export type Listening = { text(): string; isOver(): boolean; isCut(): boolean; leave(): void };

/** Begins to read a stream; throws where there is none. */
export async function listenOn(response: Response): Promise<Listening> {
  if (response.status !== 200) throw new Error(`no stream: ${response.status} ${await response.text()}`);
  let text = '';
  let isOver = false;
  const reader = response.body?.getReader();
  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
      text += decoder.decode(next.value);
  }
  let isCut = false;
  void read()
    .catch(() => {
      isCut = true;
    })
    .finally(() => {
      isOver = true;
    });
  return {
    text: () => text,
    isOver: () => isOver,
    /** Its connection broke off before its end. */
    isCut: () => isCut,
    leave: () => void reader?.cancel().catch(() => undefined),
  };
}

/** A value with the tags of redaction marks left out, which depend on the key of the gateway. */
export function withoutTags<Value>(value: Value): Value {
  const text = JSON.stringify(value).replace(/(\[redacted:[a-z0-9-]+)#[a-z2-7]{4}\]/g, '$1]');
  return JSON.parse(text);
}
