// Sends one request of the gateway's own to an upstream and reads its response, from a JSON body or an event
// stream. Strict: anything but the expected response is an error. Bounded in bytes and time. Reaches the upstream over
// Streamable HTTP through its client, or over legacy SSE by way of one stream that stays open between listings, with
// responses presented as if they came over HTTP, so that one lister serves both transports. Sends on behalf of the
// gateway, or of the caller whose session is being opened; never sees a token. Answers no server requests.
// Source: MCP 2025-11-25 and 2026-07-28, Streamable HTTP; MCP 2024-11-05, transports, HTTP with SSE.

import { mediaType } from '../../protocol/headers.js';
import type { ReadOutcome } from '../../protocol/json/incremental.js';
import { applyEdits, MAX_JSON_DEPTH, spanOf } from '../../protocol/json/json.js';
import type { JsonCaps } from '../../protocol/json/scan.js';
import {
  isObject,
  type Json,
  type JsonObject,
  type RequestId,
  type RpcError,
  readEnvelope,
} from '../../protocol/jsonrpc.js';
import { readMended } from '../../protocol/lone-surrogates.js';
import { readServerJson } from '../../protocol/odd-items.js';
import { classifyUpstreamMessage } from '../../protocol/responses.js';
import { describeEnd, mayBeMessage, pumpEvents, type ReadEnd } from '../../protocol/sse.js';
import type { ForwardError, UpstreamResponse } from '../../protocol/transport.js';
import { namesVersionInHeader, type ProtocolVersion } from '../../protocol/versions/revisions.js';
import { describeStatus, describeType, kindOf } from '../../text/clause.js';
import type { UpstreamClient } from '../client.js';
import type { CallerOrGateway } from '../credentials/credentials.js';
import {
  bodyResponse,
  DIRECT_MESSAGE_READER,
  forwardErrorOfEnd,
  type MessageReader,
  type ReadBounds,
  readMessages,
} from '../response-messages.js';

/** Caps of one listing, over all its lists. */
export type ListingCaps = {
  readonly maxPages: number;
  readonly maxItems: number;
  readonly maxBytes: number;
};

export const LISTING_CAPS: ListingCaps = {
  maxPages: 1000,
  maxItems: 10_000,
  maxBytes: 8 * 1024 * 1024,
};

/**
 * Bounds the bytes that the gateway's own listings of one upstream may read per minute, over all client
 * profiles and eras. The server decides how long its lists are and how often they change; without the bound
 * it would decide the cost.
 */
export type ListingAllowance = {
  /** False once the bound is exceeded in this minute; no further request is sent then. */
  readonly isLeft: boolean;
  countBytes(bytes: number): void;
};

const MINUTE_MS = 60_000;

/** Creates an unused allowance. `now`: milliseconds since the epoch. */
export function createListingAllowance(maxBytes: number, now: () => number): ListingAllowance {
  let sinceMs = now();
  let usedBytes = 0;

  function refill(): void {
    if (now() - sinceMs < MINUTE_MS) return;
    sinceMs = now();
    usedBytes = 0;
  }

  return {
    get isLeft() {
      refill();
      return usedBytes <= maxBytes;
    },
    countBytes(bytes) {
      refill();
      usedBytes += bytes;
    },
  };
}

/** Why there is no usable response. `too-large`: more than one listing, or one minute's listings, may read. */
export type ListingError = 'unavailable' | 'timeout' | 'credentials' | 'protocol' | 'too-large';

/** Sends one request of the gateway's own. Header names are in lower case in both directions. */
export type ListingRequest = (input: {
  readonly method: 'POST' | 'DELETE';
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
  readonly timeoutMs: number;
}) => Promise<UpstreamResponse | RequestFailure>;

/** `detail`: one clause that says what was wrong. */
type RequestFailure = { readonly failure: ListingError; readonly detail?: string | undefined };

/** The listing error for each connection error. */
const LISTING_ERROR_OF: { readonly [reason in ForwardError]: ListingError } = {
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

type ListingCall = {
  readonly protocol: ProtocolVersion;
  readonly version: string;
  readonly method: string;
  readonly params: JsonObject;
  readonly headers: { readonly [name: string]: string };
  /** In a session whose other ids are given by somebody else. Default: the next number. */
  readonly id?: string;
};

type SentCall = Omit<ListingCall, 'id'> & { readonly id: RequestId };

export type CallOutcome =
  | {
      readonly kind: 'result';
      readonly result: JsonObject;
      /** The message as text, for what must be read at its position in the text. */
      readonly text: string;
      /** False proves that no number in it loses precision as a double. */
      readonly suspectNumbers: boolean;
      readonly headers: { readonly [name: string]: string | undefined };
    }
  /** The upstream responded but did not fulfil the request. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      /** The JSON-RPC error in the body, whatever its id. */
      readonly error: RpcError | undefined;
      /** Whether it carries the id of the request. */
      readonly isOwn: boolean;
      readonly detail: string;
    }
  /** `detail`: one clause for the operator that says what was wrong. */
  | { readonly kind: 'failed'; readonly why: ListingError; readonly detail?: string | undefined };

/** What one listing may still use, over all its requests. */
export type ListingBudget = { bytesLeft: number; readonly deadlineMs: number };

export type CallPorts = {
  readonly request: ListingRequest;
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** Time limit for one request, including its response. */
  readonly requestTimeoutMs: number;
  /** Parses responses; default: {@link DIRECT_MESSAGE_READER}. */
  readonly messageReader?: MessageReader | undefined;
  /** Bounds the bytes read per minute; default: unbounded. */
  readonly allowance?: ListingAllowance | undefined;
};

/** The bounds under which a response is read. */
type ReadLimits = {
  readonly budget: ListingBudget;
  readonly messageReader: MessageReader;
  readonly allowance: ListingAllowance | undefined;
};

/**
 * The id of the last request. Ids are not used again within a session (MCP 2025-11-25, base protocol): the lists of one
 * are read side by side, and servers tell requests apart by their ids.
 */
let lastRequestId = 0;
/** Statuses that say why there is no response, whatever the body says. */
const FAILED_STATUSES: ReadonlyMap<number, ListingError> = new Map([
  [401, 'credentials'],
  [403, 'credentials'],
  [407, 'credentials'],
  [429, 'unavailable'],
  [502, 'unavailable'],
  [503, 'unavailable'],
  [504, 'unavailable'],
]);

/** Sends a request and waits for its response; notifications and other messages are skipped. */
export async function callUpstream(ports: CallPorts, call: ListingCall, budget: ListingBudget): Promise<CallOutcome> {
  lastRequestId += 1;
  const sent: SentCall = { ...call, id: call.id ?? lastRequestId };
  const body = { jsonrpc: '2.0', id: sent.id, method: call.method, params: call.params };
  const { messageReader = DIRECT_MESSAGE_READER, allowance } = ports;
  if (allowance?.isLeft === false) return { kind: 'failed', why: 'too-large' };
  const reading = (response: UpstreamResponse): Promise<CallOutcome> =>
    readOutcome(sent, response, { budget, messageReader, allowance });
  const { headers, method } = call;
  return sendRequest(ports, { headers, method, body: JSON.stringify(body) }, budget, reading);
}

/** Notifies the server that its session is initialized; the response body is not read. */
export async function notifyInitialized(
  ports: CallPorts,
  headers: ListingCall['headers'],
  budget: ListingBudget,
): Promise<CallOutcome> {
  const method = 'notifications/initialized';
  const body = JSON.stringify({ jsonrpc: '2.0', method });
  return sendRequest(ports, { headers, method, body }, budget, async (response) =>
    response.status < 300
      ? { kind: 'result', result: {}, text: '', suspectNumbers: false, headers: response.headers }
      : refusedBy(response, method, undefined),
  );
}

/** Visible ASCII (MCP 2025-11-25, session management). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;

/** Whether an upstream may send this as its session id; it need not send any. */
export function isSessionId(id: string | undefined): boolean {
  return id === undefined || SESSION_ID.test(id);
}

/** The headers of a request within a session of the gateway's own. */
export function sessionHeaders(version: string, id: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  if (namesVersionInHeader(version)) headers['mcp-protocol-version'] = version;
  if (id !== undefined) headers['mcp-session-id'] = id;
  return headers;
}

/** Ends a session of the gateway's own, if these headers name one and the upstream supports that. */
export async function endGatewaySession(
  { request, requestTimeoutMs: timeoutMs }: Pick<CallPorts, 'request' | 'requestTimeoutMs'>,
  headers: ListingCall['headers'],
): Promise<void> {
  if (headers['mcp-session-id'] === undefined) return;
  try {
    const response = await request({ method: 'DELETE', headers, timeoutMs });
    if ('kind' in response) response.release();
  } catch {
    // A session that cannot be ended expires at the upstream; nothing here depends on it.
  }
}

async function sendRequest(
  ports: CallPorts,
  { headers, method, body }: Pick<ListingCall, 'headers' | 'method'> & { readonly body: string },
  budget: ListingBudget,
  read: (response: UpstreamResponse) => Promise<CallOutcome>,
): Promise<CallOutcome> {
  const timeoutMs = Math.min(ports.requestTimeoutMs, budget.deadlineMs - ports.now());
  const timedOut: CallOutcome = {
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
    if (why !== undefined) return { kind: 'failed', why, detail: describeStatus(response, method) };
    const outcome = await read(response);
    return isTimedOut && outcome.kind === 'failed' ? timedOut : outcome;
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

async function readOutcome(call: SentCall, response: UpstreamResponse, limits: ReadLimits): Promise<CallOutcome> {
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
function refusedBy(response: UpstreamResponse, method: string, value: Json | undefined): CallOutcome {
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
): CallOutcome | undefined {
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

async function readStream(call: SentCall, response: UpstreamResponse, limits: ReadLimits): Promise<CallOutcome> {
  const { upstream, loopScheduler, read } = limits.messageReader;
  let outcome: CallOutcome | undefined;
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

function listingErrorOf(end: ReadEnd): ListingError {
  return end === 'too-large' ? end : LISTING_ERROR_OF[forwardErrorOfEnd(end)];
}

function outcomeOf(call: SentCall, response: UpstreamResponse, json: ReadOutcome): CallOutcome | undefined {
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

/** Creates the request port of a lister from an upstream's client. */
export function createListingRequest(client: Pick<UpstreamClient, 'request'>, caller: CallerOrGateway): ListingRequest {
  return async ({ method, headers, body, timeoutMs }) => {
    const sent = body === undefined ? {} : { body };
    const outcome = await client.request({ caller, method, headers, timeoutMs, ...sent });
    return outcome.kind === 'error' ? { failure: LISTING_ERROR_OF[outcome.reason], detail: outcome.detail } : outcome;
  };
}

type RequestOutcome = Awaited<ReturnType<ListingRequest>>;
type RequestInput = Parameters<ListingRequest>[0];

/** A legacy SSE stream of the gateway's own. `waiting` is keyed by the request id sent to the server. */
type GatewayLegacyStream = {
  readonly messageEndpoint: string;
  readonly response: UpstreamResponse;
  readonly waiting: Map<number, (text: string | undefined) => void>;
  lastId: number;
  isOpen: boolean;
};

/** The session id given to the lister, which ends only sessions that have one. */
const LEGACY_SSE_SESSION_ID = 'channel';
const OK = 200;
const FIRST_REFUSAL = 300;
const NOT_FOUND = 404;
const NOT_ALLOWED = 405;

/** Creates the request port of a lister over a legacy SSE stream. */
export function createLegacySseRequest(client: Pick<UpstreamClient, 'request' | 'openLegacyStream'>): ListingRequest {
  let stream: GatewayLegacyStream | undefined;

  function close(): void {
    stream?.response.abort();
    stream = undefined;
  }

  /** A session begins with its stream; the previous stream is closed. */
  async function reopen(timeoutMs: number): Promise<RequestFailure | undefined> {
    close();
    const opened = await openGatewayStream(client, timeoutMs);
    if ('failure' in opened) return opened;
    stream = opened;
    return undefined;
  }

  async function post(input: RequestInput): Promise<RequestOutcome> {
    const failed = isInitialize(input.body) ? await reopen(input.timeoutMs) : undefined;
    if (failed !== undefined) return failed;
    // The stream did not open or was cut off: responds as for a lost session, so that the lister opens another.
    if (stream?.isOpen !== true) return legacySseResponse(NOT_FOUND);
    return sendOnStream(client, stream, input);
  }

  return async (input) => {
    if (input.method === 'DELETE') {
      close();
      return legacySseResponse(OK);
    }
    // No server speaks the stateless era on this transport.
    return input.headers['mcp-method'] === undefined ? post(input) : legacySseResponse(NOT_ALLOWED);
  };
}

function isInitialize(body: string | undefined): boolean {
  const message: Json = JSON.parse(body ?? 'null');
  return isObject(message) && message['method'] === 'initialize';
}

async function openGatewayStream(
  client: Pick<UpstreamClient, 'openLegacyStream'>,
  timeoutMs: number,
): Promise<GatewayLegacyStream | RequestFailure> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), timeoutMs);
  const opened = await client.openLegacyStream('gateway', timeout.signal);
  clearTimeout(timer);
  if (opened.kind === 'error')
    return timeout.signal.aborted
      ? { failure: 'timeout' }
      : { failure: LISTING_ERROR_OF[opened.reason], detail: opened.detail };
  const { messageEndpoint, response } = opened;
  const stream = {
    messageEndpoint,
    response,
    waiting: new Map(),
    lastId: 0,
    isOpen: true,
  };
  void readGatewayStream(stream);
  return stream;
}

/** Values are not counted here: the lister parses the response again and refuses one with too many values. */
const STREAM_CAPS: JsonCaps = { maxDepth: MAX_JSON_DEPTH, maxValues: Number.POSITIVE_INFINITY };
const STREAM_BOUNDS: ReadBounds = {
  maxResponseBytes: LISTING_CAPS.maxBytes,
  requestTimeoutMs: 0,
  messageReader: {
    ...DIRECT_MESSAGE_READER,
    read: (source) => readServerJson(source, STREAM_CAPS),
  },
};

/**
 * Reads until the stream ends; requests still waiting then get no response. Messages that are not responses to
 * the gateway's own requests are ignored.
 */
async function readGatewayStream(stream: GatewayLegacyStream): Promise<void> {
  const { response, waiting } = stream;
  for await (const inbound of readMessages(response, STREAM_BOUNDS)) {
    if (inbound.kind !== 'message' || inbound.value === undefined) continue;
    const envelope = readEnvelope(inbound.value);
    const isResponse = envelope.kind === 'result' || envelope.kind === 'error';
    if (isResponse && typeof envelope.id === 'number') waiting.get(envelope.id)?.(inbound.text);
  }
  stream.isOpen = false;
  for (const resolveWaiter of waiting.values()) resolveWaiter(undefined);
}

/** Posts a message and, if it is a request, waits for its response on the stream. */
async function sendOnStream(
  client: Pick<UpstreamClient, 'request'>,
  stream: GatewayLegacyStream,
  { body = '', timeoutMs }: RequestInput,
): Promise<RequestOutcome> {
  stream.lastId += 1;
  const id = stream.lastId;
  const idSpan = spanOf(body, ['id']);
  const pendingResponse = idSpan === undefined ? undefined : awaitStreamResponse(stream, id, timeoutMs);
  const posted = await client.request({
    caller: 'gateway',
    method: 'POST',
    target: stream.messageEndpoint,
    headers: { 'content-type': 'application/json' },
    body: idSpan === undefined ? body : applyEdits(body, [{ ...idSpan, text: String(id) }]),
    timeoutMs,
  });
  if (posted.kind === 'error') return { failure: LISTING_ERROR_OF[posted.reason], detail: posted.detail };
  if (posted.status >= FIRST_REFUSAL) return posted;
  posted.release();
  if (pendingResponse === undefined || idSpan === undefined) return legacySseResponse(posted.status);
  const text = await pendingResponse;
  if (text === undefined) return { failure: stream.isOpen ? 'timeout' : 'unavailable' };
  const span = spanOf(text, ['id']);
  if (span === undefined) return { failure: 'protocol' };
  return legacySseResponse(OK, applyEdits(text, [{ ...span, text: body.slice(idSpan.start, idSpan.end) }]));
}

function awaitStreamResponse(
  { waiting }: GatewayLegacyStream,
  id: number,
  timeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish(undefined), timeoutMs);
    function finish(text: string | undefined): void {
      clearTimeout(timer);
      waiting.delete(id);
      resolve(text);
    }
    waiting.set(id, finish);
  });
}

function legacySseResponse(status: number, text?: string): UpstreamResponse {
  const headers = { 'content-type': 'application/json', 'mcp-session-id': LEGACY_SSE_SESSION_ID };
  return { ...bodyResponse(status, text), headers };
}
