// The gateway as a client of an MCP server on its own behalf: sends one request in either era and reads the response to
// it, from a JSON body or an event stream, and opens, pings and ends sessions. Strict: anything but the expected response
// is an error. Bounded in bytes and time. How a request reaches the server is the business of `SendRequest`: over
// Streamable HTTP (here), or over legacy SSE (legacy-sse-requests.ts). Never sees a token; answers no server requests.
// Source: MCP 2025-11-25, lifecycle and session management; MCP 2026-07-28, Streamable HTTP.

import { mediaType, statelessHeaders } from '../protocol/headers.js';
import type { ReadOutcome } from '../protocol/json/incremental.js';
import {
  isObject,
  type Json,
  type JsonObject,
  type RequestId,
  type RpcError,
  readEnvelope,
} from '../protocol/jsonrpc.js';
import { readMended } from '../protocol/lone-surrogates.js';
import { classifyUpstreamMessage } from '../protocol/responses.js';
import { describeEnd, mayBeMessage, pumpEvents, type ReadEnd } from '../protocol/sse.js';
import type { ForwardError, UpstreamResponse } from '../protocol/transport.js';
import { type ErrorSeen, isAliveByPing } from '../protocol/upstream-status.js';
import {
  namesVersionInHeader,
  type ProtocolVersion,
  STATELESS_VERSIONS,
  servedVersion,
} from '../protocol/versions/revisions.js';
import { SESSION } from '../protocol/versions/session.js';
import { STATELESS } from '../protocol/versions/stateless.js';
import { clauseName, describeStatus, describeType, kindOf } from '../text/clause.js';
import type { UpstreamClient } from './client.js';
import type { CallerOrGateway } from './credentials/credentials.js';
import { DIRECT_MESSAGE_READER, forwardErrorOfEnd, type MessageReader } from './response-messages.js';

/** Why there is no usable response. `too-large`: more than its budget or the allowance permits. */
export type ExchangeError = 'unavailable' | 'timeout' | 'credentials' | 'protocol' | 'too-large';

/** Sends one request of the gateway's own. Header names are in lower case in both directions. */
export type SendRequest = (input: {
  readonly method: 'POST' | 'DELETE';
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
  readonly timeoutMs: number;
}) => Promise<UpstreamResponse | RequestFailure>;

/** `detail`: one clause that says what was wrong. */
export type RequestFailure = { readonly failure: ExchangeError; readonly detail?: string | undefined };

/** The error of an exchange for each connection error. */
export const EXCHANGE_ERROR_OF: { readonly [reason in ForwardError]: ExchangeError } = {
  overloaded: 'unavailable',
  'upstream-unavailable': 'unavailable',
  'upstream-timeout': 'timeout',
  'upstream-protocol': 'protocol',
  'upstream-credentials': 'credentials',
};

/** Schedules a function and returns its cancellation. A timer must not keep the process alive. */
export type SetTimer = (run: () => void, delayMs: number) => () => void;

export const setUnheldTimer: SetTimer = (run, delayMs) => {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => clearTimeout(timer);
};

export type ExchangeCall = {
  readonly protocol: ProtocolVersion;
  readonly version: string;
  readonly method: string;
  readonly params: JsonObject;
  readonly headers: { readonly [name: string]: string };
  /** In a session whose other ids are given by somebody else. Default: the next number. */
  readonly id?: string;
};

type SentCall = Omit<ExchangeCall, 'id'> & { readonly id: RequestId };

export type ExchangeOutcome =
  | {
      readonly kind: 'result';
      readonly result: JsonObject;
      /** The message as text, for what must be read at its position in the text. */
      readonly text: string;
      /** False proves that no number in it loses precision as a double. */
      readonly suspectNumbers: boolean;
      readonly headers: { readonly [name: string]: string | undefined };
    }
  | ExchangeRefusal
  | ExchangeFailure;

/** The server responded but did not fulfil the request. */
export type ExchangeRefusal = {
  readonly kind: 'refused';
  readonly status: number;
  /** The JSON-RPC error in the body, whatever its id. */
  readonly error: RpcError | undefined;
  /** Whether it carries the id of the request. */
  readonly isOwn: boolean;
  readonly detail: string;
};

/** `status`: of the response, if there was one. `detail`: one clause for the operator that says what was wrong. */
export type ExchangeFailure = {
  readonly kind: 'failed';
  readonly why: ExchangeError;
  readonly status?: number | undefined;
  readonly detail?: string | undefined;
};

/** Bounds the bytes that are read in some time, over many exchanges. */
export type ByteAllowance = {
  /** False once the bound is exceeded; no further request is sent then. */
  readonly isLeft: boolean;
  countBytes(bytes: number): void;
};

/** What several exchanges may still use together. */
export type ExchangeBudget = { bytesLeft: number; readonly deadlineMs: number };

export type ExchangePorts = {
  readonly request: SendRequest;
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** Time limit for one request, including its response. */
  readonly requestTimeoutMs: number;
  /** Parses responses; default: {@link DIRECT_MESSAGE_READER}. */
  readonly messageReader?: MessageReader | undefined;
  /** Bounds the bytes read per minute; default: unbounded. */
  readonly allowance?: ByteAllowance | undefined;
};

/** The bounds under which a response is read. */
type ReadLimits = {
  readonly budget: ExchangeBudget;
  readonly messageReader: MessageReader;
  readonly allowance: ByteAllowance | undefined;
};

/**
 * The id of the last request. Ids are not used again within a session (MCP 2025-11-25, base protocol): the lists of one
 * are read side by side, and servers tell requests apart by their ids.
 */
let lastRequestId = 0;
/** Statuses that say why there is no response, whatever the body says. */
const FAILED_STATUSES: ReadonlyMap<number, ExchangeError> = new Map([
  [401, 'credentials'],
  [403, 'credentials'],
  [407, 'credentials'],
  [429, 'unavailable'],
  [502, 'unavailable'],
  [503, 'unavailable'],
  [504, 'unavailable'],
]);

/** Sends a request and waits for its response; notifications and other messages are skipped. */
export async function exchange(
  ports: ExchangePorts,
  call: ExchangeCall,
  budget: ExchangeBudget,
): Promise<ExchangeOutcome> {
  lastRequestId += 1;
  const sent: SentCall = { ...call, id: call.id ?? lastRequestId };
  const body = { jsonrpc: '2.0', id: sent.id, method: call.method, params: call.params };
  const { messageReader = DIRECT_MESSAGE_READER, allowance } = ports;
  if (allowance?.isLeft === false) return { kind: 'failed', why: 'too-large' };
  const reading = (response: UpstreamResponse): Promise<ExchangeOutcome> =>
    readOutcome(sent, response, { budget, messageReader, allowance });
  const { headers, method } = call;
  return sendRequest(ports, { headers, method, body: JSON.stringify(body) }, budget, reading);
}

/** Visible ASCII (MCP 2025-11-25, session management). */
const SESSION_ID_FORM = /^[\x21-\x7e]{1,1024}$/;

/** The headers of a request within a session. */
export function sessionHeaders(version: string, id: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  if (namesVersionInHeader(version)) headers['mcp-protocol-version'] = version;
  if (id !== undefined) headers['mcp-session-id'] = id;
  return headers;
}

/** What a session is opened with. */
type Handshake = {
  /** Asked for. */
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  /** In a session whose other ids are given by somebody else. Default: the next number. */
  readonly id?: string;
};

/** A session as its server opened it. */
export type ServerSession = {
  readonly version: string;
  readonly id: string | undefined;
  /** The `initialize` result. */
  readonly result: JsonObject;
};

/** Why an `initialize` result opens no session: it is of no supported version, or violates the protocol. */
type InvalidHandshake = { readonly kind: 'unsupported' | 'malformed'; readonly detail: string };

/** `isInitialized`: the server opened the session, and then failed. */
type NotOpened =
  | InvalidHandshake
  | (Exclude<ExchangeOutcome, { readonly kind: 'result' }> & { isInitialized: boolean });

/** Opens a session, in one of these versions: `initialize`, then `notifications/initialized`. */
export async function openSession(
  ports: ExchangePorts,
  { version, capabilities, clientInfo, id }: Handshake,
  versions: readonly string[],
  budget: ExchangeBudget,
): Promise<{ readonly kind: 'opened'; readonly session: ServerSession } | NotOpened> {
  const params = { protocolVersion: version, capabilities, clientInfo };
  const call = {
    protocol: SESSION,
    version,
    method: 'initialize',
    params,
    headers: {},
    ...(id !== undefined && { id }),
  };
  const outcome = await exchange(ports, call, budget);
  if (outcome.kind !== 'result') return { ...outcome, isInitialized: false };
  const session = readInitializeResult(outcome.result, outcome.headers, versions);
  if ('kind' in session) return session;
  const headers = sessionHeaders(session.version, session.id);
  const notified = await notifyInitialized(ports, headers, budget);
  if (notified.kind === 'result') return { kind: 'opened', session };
  // Not waited for: the server may hang, and the caller has a time limit.
  void endSession(ports, headers);
  return { ...notified, isInitialized: true };
}

/** Reads the session from the result of a handshake. */
export function readInitializeResult(
  result: JsonObject,
  headers: UpstreamResponse['headers'],
  versions: readonly string[],
): ServerSession | InvalidHandshake {
  const negotiated = result['protocolVersion'];
  if (typeof negotiated !== 'string')
    return { kind: 'unsupported', detail: expected('protocolVersion', 'string', negotiated) };
  const version = servedVersion(negotiated, versions);
  if (version === undefined)
    return { kind: 'unsupported', detail: `protocolVersion: ${clauseName(negotiated)} is not supported here` };
  const capabilities = result['capabilities'];
  if (!isObject(capabilities)) return { kind: 'malformed', detail: expected('capabilities', 'object', capabilities) };
  const id = headers['mcp-session-id'];
  if (id !== undefined && !SESSION_ID_FORM.test(id))
    return { kind: 'malformed', detail: 'Mcp-Session-Id: not visible ASCII, or too long' };
  return { version, id, result };
}

/** Such as `nextCursor: expected string, got number`. */
export function expected(member: string, type: string, value: Json | undefined): string {
  return `${member}: expected ${type}, got ${kindOf(value)}`;
}

/** Notifies the server that its session is initialized; the response body is not read. */
async function notifyInitialized(
  ports: ExchangePorts,
  headers: ExchangeCall['headers'],
  budget: ExchangeBudget,
): Promise<ExchangeOutcome> {
  const method = 'notifications/initialized';
  const body = JSON.stringify({ jsonrpc: '2.0', method });
  return sendRequest(ports, { headers, method, body }, budget, async (response) =>
    response.status < 300
      ? { kind: 'result', result: {}, text: '', suspectNumbers: false, headers: response.headers }
      : refusedBy(response, method, undefined),
  );
}

/**
 * Whether a session is alive, by a ping in it: any response shows it, and so does an answer that says nothing of the
 * session. `id` as in {@link Handshake}.
 */
export async function pingSession(
  ports: ExchangePorts,
  { version, headers, id }: Pick<ExchangeCall, 'version' | 'headers' | 'id'>,
  budget: ExchangeBudget,
): Promise<boolean> {
  const call = { protocol: SESSION, version, method: 'ping', params: {}, headers, ...(id !== undefined && { id }) };
  const pong = await exchange(ports, call, budget);
  if (pong.kind === 'result') return true;
  if (pong.kind === 'failed') return pong.status !== undefined && isAliveByPing(pong.status, undefined, false);
  return isAliveByPing(pong.status, errorSeenBy(pong), pong.isOwn);
}

/** What a refusal says of its request, for the reading of its status. */
export function errorSeenBy({ error, isOwn }: ExchangeRefusal): ErrorSeen | undefined {
  return error !== undefined || isOwn ? { code: error?.code, isOwn } : undefined;
}

/** Ends a session, if these headers name one and the server supports that. */
export async function endSession(
  { request, requestTimeoutMs: timeoutMs }: Pick<ExchangePorts, 'request' | 'requestTimeoutMs'>,
  headers: ExchangeCall['headers'],
): Promise<void> {
  if (headers['mcp-session-id'] === undefined) return;
  try {
    const response = await request({ method: 'DELETE', headers, timeoutMs });
    if ('kind' in response) response.release();
  } catch {
    // A session that cannot be ended expires at the upstream; nothing here depends on it.
  }
}

/** A request of the stateless era (MCP 2026-07-28, standard request headers). */
export function statelessCall(
  method: string,
  params: JsonObject,
  { capabilities, clientInfo }: Pick<Handshake, 'capabilities' | 'clientInfo'>,
): ExchangeCall {
  const [version = ''] = STATELESS_VERSIONS;
  const meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    'io.modelcontextprotocol/clientInfo': clientInfo,
  };
  const headers = Object.fromEntries(statelessHeaders(version, method, params, []));
  return { protocol: STATELESS, version, method, params: { ...params, _meta: meta }, headers };
}

async function sendRequest(
  ports: ExchangePorts,
  { headers, method, body }: Pick<ExchangeCall, 'headers' | 'method'> & { readonly body: string },
  budget: ExchangeBudget,
  read: (response: UpstreamResponse) => Promise<ExchangeOutcome>,
): Promise<ExchangeOutcome> {
  const timeoutMs = Math.min(ports.requestTimeoutMs, budget.deadlineMs - ports.now());
  const timedOut: ExchangeOutcome = {
    kind: 'failed',
    why: 'timeout',
    detail: `no answer to ${method}`,
  };
  if (timeoutMs <= 0) return timedOut;
  let response: UpstreamResponse | undefined;
  let isTimedOut = false;
  let cancelTimer: () => void = () => undefined;
  const timeout = new Promise<'timeout'>((resolve) => {
    cancelTimer = ports.setTimer(() => {
      isTimedOut = true;
      // Ends whatever is being read.
      response?.abort();
      resolve('timeout');
    }, timeoutMs);
  });
  try {
    const sent = ports.request({
      method: 'POST',
      headers: { ...COMMON_HEADERS, ...headers },
      body,
      timeoutMs,
    });
    const received = await Promise.race([sent, timeout]);
    if (received === 'timeout') return timedOut;
    if ('failure' in received) {
      const { failure: why, detail } = received;
      return why === 'timeout' ? timedOut : { kind: 'failed', why, detail };
    }
    response = received;
    const why = FAILED_STATUSES.get(response.status);
    const { status } = response;
    if (why !== undefined) return { kind: 'failed', why, status, detail: describeStatus(response, method) };
    const outcome = await read(response);
    if (outcome.kind !== 'failed') return outcome;
    return isTimedOut ? timedOut : { ...outcome, status };
  } catch {
    // Whatever broke, there is no response; there is nothing to recover here.
    return { kind: 'failed', why: 'unavailable' };
  } finally {
    cancelTimer();
    response?.release();
  }
}

/** The headers of every message that the gateway itself posts. */
export const COMMON_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;

async function readOutcome(call: SentCall, response: UpstreamResponse, limits: ReadLimits): Promise<ExchangeOutcome> {
  const { headers, status } = response;
  const type = mediaType(headers['content-type']);
  if (type === 'text/event-stream' && status < 300) return readStream(call, response, limits);
  const body = await readEntireBody(response, limits);
  if (typeof body === 'string')
    return { kind: 'failed', why: listingErrorOf(body), detail: describeEnd(body, call.method) };
  const isJson = type === 'application/json';
  const json = isJson ? await readMended(body, limits.messageReader.read) : undefined;
  const expectedResponse = json?.ok === true ? readExpectedResponse(call, response, json) : undefined;
  if (expectedResponse !== undefined) return expectedResponse;
  if (json?.ok === false && isExcess(json))
    return { kind: 'failed', why: 'too-large', detail: `${call.method}: too many values` };
  if (status >= 300) return refusedBy(response, call.method, json?.ok === true ? json.value : undefined);
  const detail = json === undefined ? describeType(headers['content-type']) : describeReading(call, json);
  return { kind: 'failed', why: 'protocol', detail };
}

/** A refusal by its status, with the error in its body, whatever the id of that. */
function refusedBy(response: UpstreamResponse, method: string, value: Json | undefined): ExchangeOutcome {
  const envelope = value === undefined ? undefined : readEnvelope(value);
  const error = envelope?.kind === 'error' ? envelope.error : undefined;
  const { status } = response;
  return { kind: 'refused', status, error, isOwn: false, detail: describeStatus(response, method) };
}

function describeReading({ method, id }: SentCall, json: ReadOutcome): string {
  if (!json.ok) return `${method}: ${json.error}`;
  const { value } = json;
  if (!isObject(value)) return `${method}: expected a JSON-RPC response, got ${kindOf(value)}`;
  if (!('id' in value)) return `${method}: the response has no id`;
  if (value['id'] !== id) return `${method}: the response has another id`;
  return `${method}: the response is not valid JSON-RPC`;
}

type OkReading = Extract<ReadOutcome, { readonly ok: true }>;

function isExcess({ error }: Extract<ReadOutcome, { readonly ok: false }>): boolean {
  return error === 'too-many-values' || error === 'overloaded';
}

/** The outcome if this is the expected response; `undefined` otherwise. */
function readExpectedResponse(
  call: SentCall,
  { headers, status }: UpstreamResponse,
  json: OkReading,
): ExchangeOutcome | undefined {
  const { protocol, version } = call;
  const response = classifyUpstreamMessage(json.value, { protocol, version, id: call.id });
  switch (response.kind) {
    case 'response-result':
      if (status >= 300)
        return {
          kind: 'refused',
          status,
          error: undefined,
          isOwn: true,
          detail: `${status} to ${call.method}`,
        };
      return {
        kind: 'result',
        result: response.result,
        text: json.text,
        suspectNumbers: json.suspectNumbers,
        headers,
      };
    case 'response-error':
      return {
        kind: 'refused',
        status,
        error: response.error,
        isOwn: true,
        detail: `${call.method}: ${status === 200 ? '' : `${status} with `}error ${response.error.code}`,
      };
    case 'response-input-required':
    case 'response-task':
    case 'malformed':
      return status >= 300 ? undefined : { kind: 'failed', why: 'protocol', detail: describeReading(call, json) };
    case 'notification':
    case 'server-request':
    case 'foreign':
      return undefined;
  }
}

/** Chunk by chunk, because the bytes count even if the body is not read to its end. */
async function readEntireBody(
  response: UpstreamResponse,
  limits: ReadLimits,
): Promise<Uint8Array | Exclude<ReadEnd, 'ended'>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const chunk = await response.next();
    if (chunk === undefined) return Buffer.concat(chunks);
    if (typeof chunk === 'string') return chunk;
    const excess = countBytes(limits, chunk.byteLength);
    if (excess !== undefined) return excess;
    size += chunk.byteLength;
    if ((await response.reserveBuffer?.(size)) === 'overloaded') return 'overloaded';
    chunks.push(chunk);
  }
}

async function readStream(call: SentCall, response: UpstreamResponse, limits: ReadLimits): Promise<ExchangeOutcome> {
  const { upstream, loopScheduler, read } = limits.messageReader;
  let outcome: ExchangeOutcome | undefined;
  const streamLimits = {
    maxEventBytes: Math.max(limits.budget.bytesLeft, 1),
    count: (bytes: number) => countBytes(limits, bytes),
    upstream,
    loopScheduler,
  };
  const end = await pumpEvents(response, streamLimits, (event) => {
    // An event without data opens a resumable stream (MCP 2025-11-25); others are not messages at all.
    if (event.kind !== 'message' || !mayBeMessage(event.data)) return undefined;
    const handleReading = (json: ReadOutcome): 'stop' | undefined => {
      outcome = outcomeOf(call, response, json);
      return outcome === undefined ? undefined : 'stop';
    };
    const json = readMended(event.data, read);
    return json instanceof Promise ? json.then(handleReading) : handleReading(json);
  });
  const detail = describeEnd(end, call.method);
  return outcome ?? { kind: 'failed', why: listingErrorOf(end), detail };
}

function listingErrorOf(end: ReadEnd): ExchangeError {
  return end === 'too-large' ? end : EXCHANGE_ERROR_OF[forwardErrorOfEnd(end)];
}

function outcomeOf(call: SentCall, response: UpstreamResponse, json: ReadOutcome): ExchangeOutcome | undefined {
  if (json.ok) return readExpectedResponse(call, response, json);
  const detail = describeReading(call, json);
  return { kind: 'failed', why: isExcess(json) ? 'too-large' : 'protocol', detail };
}

/** Counts bytes that were read; says so if they were too many. */
function countBytes({ budget, allowance }: ReadLimits, bytes: number): 'too-large' | undefined {
  budget.bytesLeft -= bytes;
  allowance?.countBytes(bytes);
  return budget.bytesLeft < 0 || allowance?.isLeft === false ? 'too-large' : undefined;
}

/** Creates the sender of requests over Streamable HTTP. */
export function createSendRequest(client: Pick<UpstreamClient, 'request'>, caller: CallerOrGateway): SendRequest {
  return async ({ method, headers, body, timeoutMs }) => {
    const sent = body === undefined ? {} : { body };
    const outcome = await client.request({ caller, method, headers, timeoutMs, ...sent });
    return outcome.kind === 'error' ? { failure: EXCHANGE_ERROR_OF[outcome.reason], detail: outcome.detail } : outcome;
  };
}
