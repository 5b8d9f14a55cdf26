// Connects the lister to an upstream: over Streamable HTTP through the upstream's client, or over legacy SSE
// by way of one stream that stays open between listings, with responses presented as if they came over HTTP,
// so that one lister serves both transports. Sends on behalf of the gateway, or of the caller whose session
// is being opened; never sees a token. Answers no server requests.
// Source: MCP 2024-11-05, transports, HTTP with SSE.

import { applyEdits, readJson, readJsonText, spanOf } from '../../protocol/json/json.js';
import { isObject, type Json, readEnvelope } from '../../protocol/jsonrpc.js';
import type { UpstreamResponse } from '../../protocol/transport.js';
import { bodyResponse } from '../adapters/local-response.js';
import type { UpstreamClient } from '../client.js';
import type { CallerOrGateway } from '../credentials/presenter.js';
import { DIRECT_MESSAGE_READER, type ReadBounds, readMessages } from '../message-reader.js';
import { LISTING_CAPS } from './lists.js';
import { LISTING_ERRORS, type ListingError, type ListingRequest } from './request.js';

/** Creates the request port of a lister from an upstream's client. */
export function createListingRequest(
  client: Pick<UpstreamClient, 'request'>,
  caller: CallerOrGateway,
): ListingRequest {
  return async ({ method, headers, body, timeoutMs }) => {
    const sent = body === undefined ? {} : { body };
    const outcome = await client.request({ caller, method, headers, timeoutMs, ...sent });
    return outcome.kind === 'error' ? { failure: LISTING_ERRORS[outcome.reason] } : outcome;
  };
}

type ListingResponse = Awaited<ReturnType<ListingRequest>>;
type Input = Parameters<ListingRequest>[0];

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
export function createLegacySseRequest(
  client: Pick<UpstreamClient, 'request' | 'openLegacyStream'>,
): ListingRequest {
  let stream: GatewayLegacyStream | undefined;

  function close(): void {
    stream?.response.abort();
    stream = undefined;
  }

  /** A session begins with its stream; the previous stream is closed. */
  async function reopen(
    timeoutMs: number,
  ): Promise<{ readonly failure: ListingError } | undefined> {
    close();
    const opened = await openGatewayStream(client, timeoutMs);
    if ('failure' in opened) return opened;
    stream = opened;
    return undefined;
  }

  async function post(input: Input): Promise<ListingResponse> {
    const failed = isInitialize(input.body) ? await reopen(input.timeoutMs) : undefined;
    if (failed !== undefined) return failed;
    // The stream did not open or was cut off: responds as for a lost session, so that the lister opens another.
    if (stream?.isOpen !== true) return responseOf(NOT_FOUND);
    return sendOnStream(client, stream, input);
  }

  return async (input) => {
    if (input.method === 'DELETE') {
      close();
      return responseOf(OK);
    }
    // No server speaks the stateless era on this transport.
    return input.headers['mcp-method'] === undefined ? post(input) : responseOf(NOT_ALLOWED);
  };
}

function isInitialize(body: string | undefined): boolean {
  const message: Json = JSON.parse(body ?? 'null');
  return isObject(message) && message['method'] === 'initialize';
}

async function openGatewayStream(
  client: Pick<UpstreamClient, 'openLegacyStream'>,
  timeoutMs: number,
): Promise<GatewayLegacyStream | { readonly failure: ListingError }> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), timeoutMs);
  const opened = await client.openLegacyStream('gateway', timeout.signal);
  clearTimeout(timer);
  if (opened.kind === 'error')
    return { failure: timeout.signal.aborted ? 'timeout' : LISTING_ERRORS[opened.reason] };
  const { messageEndpoint, response } = opened;
  const stream = {
    messageEndpoint,
    response,
    waiting: new Map(),
    lastId: 0,
    isOpen: true,
  };
  void readStream(stream);
  return stream;
}

/** Values are not counted here: the lister parses the response again and refuses one with too many values. */
const STREAM_BOUNDS: ReadBounds = {
  maxResponseBytes: LISTING_CAPS.maxBytes,
  requestTimeoutMs: 0,
  messageReader: {
    ...DIRECT_MESSAGE_READER,
    read: (source) => (typeof source === 'string' ? readJsonText(source) : readJson(source)),
  },
};

/**
 * Reads until the stream ends; requests still waiting then get no response. Messages that are not responses to
 * the gateway's own requests are ignored.
 */
async function readStream(stream: GatewayLegacyStream): Promise<void> {
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
  { body = '', timeoutMs }: Input,
): Promise<ListingResponse> {
  stream.lastId += 1;
  const id = stream.lastId;
  const idSpan = spanOf(body, ['id']);
  const pendingResponse = idSpan === undefined ? undefined : awaitResponse(stream, id, timeoutMs);
  const posted = await client.request({
    caller: 'gateway',
    method: 'POST',
    target: stream.messageEndpoint,
    headers: { 'content-type': 'application/json' },
    body: idSpan === undefined ? body : applyEdits(body, [{ ...idSpan, text: String(id) }]),
    timeoutMs,
  });
  if (posted.kind === 'error') return { failure: LISTING_ERRORS[posted.reason] };
  posted.release();
  if (posted.status >= FIRST_REFUSAL || pendingResponse === undefined || idSpan === undefined)
    return responseOf(posted.status);
  const text = await pendingResponse;
  if (text === undefined) return { failure: stream.isOpen ? 'timeout' : 'unavailable' };
  const span = spanOf(text, ['id']);
  if (span === undefined) return { failure: 'protocol' };
  return responseOf(
    OK,
    applyEdits(text, [{ ...span, text: body.slice(idSpan.start, idSpan.end) }]),
  );
}

function awaitResponse(
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

function responseOf(status: number, text?: string): UpstreamResponse {
  const headers = { 'content-type': 'application/json', 'mcp-session-id': LEGACY_SSE_SESSION_ID };
  return { ...bodyResponse(status, text), headers };
}
