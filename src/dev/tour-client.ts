// A minimal MCP client on fetch for the tour: one request, one response, in the session and the stateless era.
// It returns status, headers and body as received and never retries, follows redirects or hides anything.
// Source: MCP 2025-11-25 and 2026-07-28, transports.

import { type JsonObject, parseObject } from '../protocol/jsonrpc.js';

/** An HTTP response as received. */
export type WireResponse = {
  readonly status: number;
  readonly headers: Headers;
  /** The body as received, event stream framing included. */
  readonly body: string;
  /** The JSON-RPC response in it, if there is one. */
  readonly message: JsonObject | undefined;
};

/** A client with an open session. */
export type TourSession = {
  readonly id: string;
  request(method: string, params?: JsonObject): Promise<WireResponse>;
  close(): Promise<void>;
};

export type Endpoint = { readonly url: string; readonly token: string | undefined };

const SESSION_VERSION = '2025-11-25';
const STATELESS_VERSION = '2026-07-28';
const REQUEST_TIMEOUT_MS = 15_000;
const CLIENT = { name: 'sallyport-tour', version: '1.0.0' } as const;

let lastId = 0;

function nextId(): number {
  lastId += 1;
  return lastId;
}

/** The response among the events of a stream: the first message without a `method`. */
function findResponse(body: string): JsonObject | undefined {
  for (const line of body.split('\n')) {
    if (!line.startsWith('data:')) continue;
    const message = parseObject(line.slice('data:'.length));
    if (message !== undefined && !('method' in message)) return message;
  }
  return undefined;
}

async function send(
  endpoint: Endpoint,
  httpMethod: 'POST' | 'DELETE',
  headers: { readonly [name: string]: string },
  message?: JsonObject,
): Promise<WireResponse> {
  const bearer = endpoint.token === undefined ? {} : { authorization: `Bearer ${endpoint.token}` };
  const response = await fetch(endpoint.url, {
    method: httpMethod,
    redirect: 'manual',
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    headers: {
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...bearer,
      ...headers,
    },
    ...(message === undefined ? {} : { body: JSON.stringify(message) }),
  });
  const body = await response.text();
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  const parsed = isStream ? findResponse(body) : parseObject(body);
  return { status: response.status, headers: response.headers, body, message: parsed };
}

/** Sends one request in a session given by its id, which may belong to another caller. */
export function requestInSession(
  endpoint: Endpoint,
  sessionId: string,
  method: string,
  params: JsonObject = {},
): Promise<WireResponse> {
  const headers = { 'mcp-session-id': sessionId, 'mcp-protocol-version': SESSION_VERSION };
  return send(endpoint, 'POST', headers, { jsonrpc: '2.0', id: nextId(), method, params });
}

/** Opens a session; throws with the status if the server does not open one. */
export async function openTourSession(endpoint: Endpoint): Promise<TourSession> {
  const params = { protocolVersion: SESSION_VERSION, capabilities: {}, clientInfo: CLIENT };
  const initialize = { jsonrpc: '2.0', id: nextId(), method: 'initialize', params };
  const response = await send(endpoint, 'POST', {}, initialize);
  const id = response.headers.get('mcp-session-id');
  if (response.status !== 200 || id === null) {
    throw new Error(`no session was opened: HTTP ${response.status}`);
  }
  const headers = { 'mcp-session-id': id, 'mcp-protocol-version': SESSION_VERSION };
  await send(endpoint, 'POST', headers, { jsonrpc: '2.0', method: 'notifications/initialized' });
  return {
    id,
    request: (method, given) => requestInSession(endpoint, id, method, given),
    close: async () => {
      await send(endpoint, 'DELETE', headers);
    },
  };
}

/** Sends one request of the stateless era. `headers` overrides headers so that they can contradict the body. */
export function requestStateless(
  endpoint: Endpoint,
  method: string,
  params: JsonObject = {},
  headers: { readonly [name: string]: string } = {},
): Promise<WireResponse> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': CLIENT,
  };
  const about = params['name'] ?? params['uri'];
  const named = typeof about === 'string' ? { 'mcp-name': about } : {};
  const own = { 'mcp-protocol-version': STATELESS_VERSION, 'mcp-method': method, ...named };
  const message = { jsonrpc: '2.0', id: nextId(), method, params: { ...params, _meta: meta } };
  return send(endpoint, 'POST', { ...own, ...headers }, message);
}
