// Carries the gateway's own requests to an upstream over legacy SSE, by way of one stream that stays open between them.
// Responses are presented as if they came over Streamable HTTP, so that one exchange serves both transports.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

import { applyEdits, MAX_JSON_DEPTH, spanOf } from '../protocol/json/json.js';
import type { JsonCaps } from '../protocol/json/strict-scan.js';
import { isObject, type Json, readEnvelope } from '../protocol/jsonrpc.js';
import { readServerJson } from '../protocol/odd-items.js';
import type { UpstreamResponse } from '../protocol/transport.js';
import type { UpstreamClient } from './client.js';
import { EXCHANGE_ERROR_OF, type RequestFailure, type SendRequest } from './exchange.js';
import { bodyResponse, DIRECT_MESSAGE_READER, type ReadBounds, readMessages } from './response-messages.js';

type RequestOutcome = Awaited<ReturnType<SendRequest>>;
type RequestInput = Parameters<SendRequest>[0];

/** A legacy SSE stream of the gateway's own. `waiting` is keyed by the request id sent to the server. */
type GatewayLegacyStream = {
  readonly messageEndpoint: string;
  readonly response: UpstreamResponse;
  readonly waiting: Map<number, (text: string | undefined) => void>;
  lastId: number;
  isOpen: boolean;
};

/** The session id given to the exchange, which ends only sessions that have one. */
const LEGACY_SSE_SESSION_ID = 'channel';
const OK = 200;
const FIRST_REFUSAL = 300;
const NOT_FOUND = 404;
const NOT_ALLOWED = 405;

/** Creates the sender of requests over a legacy SSE stream. */
export function createLegacySseRequest(client: Pick<UpstreamClient, 'request' | 'openLegacyStream'>): SendRequest {
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
    // The stream did not open or was cut off: responds as for a lost session, so that another is opened.
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
      : { failure: EXCHANGE_ERROR_OF[opened.reason], detail: opened.detail };
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

const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;
/** Values are not counted here: the exchange parses the response again and refuses one with too many values. */
const STREAM_CAPS: JsonCaps = { maxDepth: MAX_JSON_DEPTH, maxValues: Number.POSITIVE_INFINITY };
const STREAM_BOUNDS: ReadBounds = {
  maxResponseBytes: MAX_MESSAGE_BYTES,
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
  if (posted.kind === 'error') return { failure: EXCHANGE_ERROR_OF[posted.reason], detail: posted.detail };
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
