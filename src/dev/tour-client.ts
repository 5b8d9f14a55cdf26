// The client of the tour and of whoever tries the demo: the same exchange by which the gateway is a client of servers, in
// each era. Returns status, headers and body as received; never retries or follows a redirect.

import type { JsonObject } from '../protocol/jsonrpc.js';
import { amendResponse, type UpstreamResponse } from '../protocol/transport.js';
import { LATEST_SESSION_VERSION, LEGACY_SSE_VERSION } from '../protocol/versions/revisions.js';
import { SESSION } from '../protocol/versions/session.js';
import { createUpstreamClient, type UpstreamClient } from '../upstream/client.js';
import {
  createSendRequest,
  type ExchangeOutcome,
  type ExchangePorts,
  endSession,
  exchange,
  openSession,
  type SendRequest,
  sessionHeaders,
  setUnheldTimer,
  statelessCall,
} from '../upstream/exchange.js';
import { createLegacySseRequest } from '../upstream/legacy-sse-requests.js';
import { connectOptionsFor } from '../upstream/safe-fetch.js';

/** An HTTP response as received. */
export type WireResponse = {
  readonly status: number;
  readonly headers: UpstreamResponse['headers'];
  /** The body as received, event stream framing included. */
  readonly body: string;
  /** The JSON-RPC result or error in it, if there is one. */
  readonly message: JsonObject | undefined;
};

/** A client with an open session. */
export type TourSession = {
  readonly id: string;
  request(method: string, params?: JsonObject): Promise<WireResponse>;
  close(): Promise<void>;
};

export type Endpoint = { readonly url: string; readonly token: string | undefined };

const REQUEST_TIMEOUT_MS = 15_000;
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
const CLIENT_LIMITS = {
  ...{ requestTimeoutMs: REQUEST_TIMEOUT_MS, handshakeTimeoutMs: REQUEST_TIMEOUT_MS },
  ...{ streamIdleMs: REQUEST_TIMEOUT_MS, concurrency: 1 },
};
const DECLARED = { capabilities: {}, clientInfo: { name: 'sallyport-tour', version: '1.0.0' } } as const;

/** The last response that a connection received. */
type Received = { response?: UpstreamResponse; body: string };

const overStreamableHttp = (client: UpstreamClient): SendRequest => createSendRequest(client, 'gateway');

/** Runs `use` with a connection of its own to the endpoint. */
async function withConnection<T>(
  { url, token }: Endpoint,
  use: (ports: ExchangePorts, received: Received) => Promise<T>,
  transport = overStreamableHttp,
): Promise<T> {
  const credentials = token === undefined ? [] : ['authorization', `Bearer ${token}`];
  const client = createUpstreamClient({
    url: new URL(url),
    presenter: { present: () => credentials, reportRejected: () => undefined, states: () => [] },
    limits: CLIENT_LIMITS,
    connect: connectOptionsFor('loopback'),
  });
  const received: Received = { body: '' };
  const send = transport(client);
  const ports: ExchangePorts = {
    async request(input) {
      const outcome = await send(input);
      if ('failure' in outcome) return outcome;
      received.response = outcome;
      received.body = '';
      return recording(outcome, received);
    },
    now: Date.now,
    setTimer: setUnheldTimer,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  };
  try {
    return await use(ports, received);
  } finally {
    await client.close();
  }
}

function recording(response: UpstreamResponse, received: Received): UpstreamResponse {
  const decoder = new TextDecoder();
  return amendResponse(response, {
    async next() {
      const chunk = await response.next();
      if (typeof chunk === 'object') received.body += decoder.decode(chunk, { stream: true });
      return chunk;
    },
  });
}

function newBudget() {
  return { bytesLeft: MAX_RESPONSE_BYTES, deadlineMs: Date.now() + REQUEST_TIMEOUT_MS };
}

function send(endpoint: Endpoint, call: Parameters<typeof exchange>[1]): Promise<WireResponse> {
  return withConnection(endpoint, (ports, received) => exchangeOn(ports, received, call));
}

async function exchangeOn(
  ports: ExchangePorts,
  received: Received,
  call: Parameters<typeof exchange>[1],
): Promise<WireResponse> {
  const outcome = await exchange(ports, call, newBudget());
  const { response, body } = received;
  if (response === undefined) throw new Error(`no response: ${describe(outcome)}`);
  return { status: response.status, headers: response.headers, body, message: messageOf(outcome) };
}

function messageOf(outcome: ExchangeOutcome): JsonObject | undefined {
  if (outcome.kind === 'result') return { result: outcome.result };
  return outcome.kind === 'refused' && outcome.error !== undefined ? { error: { ...outcome.error } } : undefined;
}

function describe(outcome: { readonly kind: string; readonly detail?: string | undefined }): string {
  return outcome.detail ?? outcome.kind;
}

/** Sends one request in a session given by its id, which may belong to another caller. */
export function requestInSession(
  endpoint: Endpoint,
  sessionId: string,
  method: string,
  params: JsonObject = {},
): Promise<WireResponse> {
  const version = LATEST_SESSION_VERSION;
  return send(endpoint, { protocol: SESSION, version, method, params, headers: sessionHeaders(version, sessionId) });
}

/** Opens a session; throws if the server does not open one. */
export async function openTourSession(endpoint: Endpoint): Promise<TourSession> {
  const version = LATEST_SESSION_VERSION;
  const opened = await withConnection(endpoint, (ports) =>
    openSession(ports, { version, ...DECLARED }, [version], newBudget()),
  );
  const id = opened.kind === 'opened' ? opened.session.id : undefined;
  if (id === undefined) throw new Error(`no session was opened: ${describe(opened)}`);
  return {
    id,
    request: (method, params) => requestInSession(endpoint, id, method, params),
    close: () => withConnection(endpoint, (ports) => endSession(ports, sessionHeaders(version, id))),
  };
}

/** Sends one request of the stateless era. `headers` overrides headers so that they can contradict the body. */
export function requestStateless(
  endpoint: Endpoint,
  method: string,
  params: JsonObject = {},
  headers: { readonly [name: string]: string } = {},
): Promise<WireResponse> {
  const call = statelessCall(method, params, DECLARED);
  return send(endpoint, { ...call, headers: { ...call.headers, ...headers } });
}

/** A session over HTTP+SSE, which lasts as long as its stream. */
export type LegacyTourSession = {
  /** Where the server says that messages are posted: path and query. */
  readonly messagePath: string;
  request(method: string, params?: JsonObject): Promise<WireResponse>;
};

/** Opens a session over HTTP+SSE for `use`. Throws if the server does not open one. */
export function withLegacySession<T>(endpoint: Endpoint, use: (session: LegacyTourSession) => Promise<T>): Promise<T> {
  let messagePath = '';
  const overLegacySse = ({ request, openLegacyStream }: UpstreamClient): SendRequest =>
    createLegacySseRequest({
      request,
      async openLegacyStream(caller, signal) {
        const opened = await openLegacyStream(caller, signal);
        if (opened.kind !== 'error') messagePath = opened.messageEndpoint;
        return opened;
      },
    });
  const version = LEGACY_SSE_VERSION;
  return withConnection(
    endpoint,
    async (ports, received) => {
      const opened = await openSession(ports, { version, ...DECLARED }, [version], newBudget());
      if (opened.kind !== 'opened') throw new Error(`no session was opened: ${describe(opened)}`);
      try {
        return await use({
          messagePath,
          request: (method, params = {}) =>
            exchangeOn(ports, received, { protocol: SESSION, version, method, params, headers: {} }),
        });
      } finally {
        await ports.request({ method: 'DELETE', headers: {}, timeoutMs: REQUEST_TIMEOUT_MS });
      }
    },
    overLegacySse,
  );
}
