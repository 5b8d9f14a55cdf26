// MCP by plain fetch: for what an SDK hides, such as statuses, headers and the bytes of an answer.

export type RawAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The JSON-RPC messages of the body, whole or streamed, in order. */
  // biome-ignore lint/suspicious/noExplicitAny: answers are read by their members in tests
  readonly messages: readonly any[];
};

type Init = {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Of a session: what its client declares, and the revision that it asks for. */
  readonly capabilities?: object;
  readonly version?: string;
};

const STATELESS_VERSION = '2026-07-28';
const SESSION_VERSION = '2025-11-25';
const IDENTITY = { name: 'sallyport-raw', version: '1.0.0' };
const NAMED: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

function messagesOf(type: string, text: string): unknown[] {
  if (text === '') return [];
  if (type.startsWith('application/json')) return [JSON.parse(text)];
  const data = text.split('\n').filter((line) => line.startsWith('data:'));
  return data
    .map((line) => line.slice('data:'.length).trim())
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}

/** Sends a body as it is, and hands the response on unread. */
export function sendRaw(url: string, body: unknown, init: Init = {}): Promise<Response> {
  const bearer = init.token === undefined ? {} : { authorization: `Bearer ${init.token}` };
  return fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...bearer,
      ...init.headers,
    },
    body: JSON.stringify(body),
    ...(init.signal === undefined ? {} : { signal: init.signal }),
  });
}

/** Sends a body and reads the whole answer. */
export async function postRaw(url: string, body: unknown, init: Init = {}): Promise<RawAnswer> {
  const response = await sendRaw(url, body, init);
  const text = await response.text();
  const messages = messagesOf(response.headers.get('content-type') ?? '', text);
  return { status: response.status, headers: response.headers, text, messages };
}

/** A request of the stateless era with all that it must carry; `headers` and `meta` override. */
export function postStateless(
  url: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  init: Init = {},
): Promise<RawAnswer> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': IDENTITY,
  };
  const source = NAMED[method];
  const headers = {
    'mcp-protocol-version': STATELESS_VERSION,
    'mcp-method': method,
    ...(source === undefined ? {} : { 'mcp-name': String(params[source]) }),
    ...init.headers,
  };
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } };
  return postRaw(url, body, { ...init, headers });
}

export type RawSession = {
  readonly id: string | undefined;
  /** Headers that name the session and the caller. */
  readonly headers: Readonly<Record<string, string>>;
  readonly opened: RawAnswer;
  /** A request of this session. */
  ask(id: number | string, method: string, params?: object): Promise<RawAnswer>;
};

/** Opens a session by hand: `initialize`, then `notifications/initialized`. */
export async function openRawSession(url: string, init: Init = {}): Promise<RawSession> {
  const params = {
    protocolVersion: init.version ?? SESSION_VERSION,
    capabilities: init.capabilities ?? {},
    clientInfo: IDENTITY,
  };
  const opened = await postRaw(url, { jsonrpc: '2.0', id: 'open', method: 'initialize', params }, init);
  const id = opened.headers.get('mcp-session-id') ?? undefined;
  const headers = {
    ...init.headers,
    ...(init.token === undefined ? {} : { authorization: `Bearer ${init.token}` }),
    ...(id === undefined ? {} : { 'mcp-session-id': id }),
    'mcp-protocol-version': init.version ?? SESSION_VERSION,
  };
  await postRaw(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, { headers });
  return {
    id,
    headers,
    opened,
    ask: (requestId, method, given) =>
      postRaw(url, { jsonrpc: '2.0', id: requestId, method, params: given ?? {} }, { headers }),
  };
}
