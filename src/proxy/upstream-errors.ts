// Relays what an upstream answers with a status other than success. The meaning of the status is decided in
// protocol/upstream-status.ts; here the body is read, a session that may be lost is pinged, and what reaches the client
// has passed the same checks as any response. No status of an upstream reaches a client except 429 and 503.
// Source: docs/reference/responses.md; MCP 2025-11-25 and 2026-07-28, Streamable HTTP.

import { type Refusal, refuseWith } from '../policy/decision.js';
import type { AuthorizedRequest } from '../policy/obligations.js';
import { fold } from '../policy/record.js';
import { namesUpstreamSession } from '../protocol/admitted-request.js';
import { mediaType } from '../protocol/headers.js';
import { editedValueAt } from '../protocol/json/json.js';
import { isRequestId, type RequestId, requestIdOf } from '../protocol/jsonrpc.js';
import { renderError, withId } from '../protocol/responses.js';
import { createSseFramer } from '../protocol/sse.js';
import { joinPieces, type ResponseHeaders, type UpstreamResponse } from '../protocol/transport.js';
import {
  afterPing,
  type ErrorSeen,
  errorSeenIn,
  isBusyStatus,
  readRetryAfter,
  readUpstreamStatus,
} from '../protocol/upstream-status.js';
import { describeStatus } from '../text/clause.js';
import { callerOf, type RequestContext } from './request-context.js';
import { type CheckPorts, type MessageOutcome, readUpstreamMessage } from './response-context.js';
import type { ResponseCheck } from './response-pipeline.js';
import { recordResult } from './sse-response.js';
import { timeLeftMs } from './stream-lifetime.js';

/** The body of an answer that is no success. `error` is absent if it is no JSON-RPC error. */
type ErrorBody = { readonly text: string; readonly error: ErrorSeen | undefined };

/** What a server is said to be that gives no words of its own, under the code of one that cannot be reached. */
const BUSY_TEXT = 'The MCP server behind the gateway takes no more requests for now. Try again later.';
const BUSY_CODE = 1502;
const BAD_REQUEST = 400;
const SERVER_ERROR = 500;
const BAD_GATEWAY = 502;
const JSON_HEADERS = { 'content-type': 'application/json' } as const;
/** Of a body that is no message, this much is given to the client. */
const MAX_TEXT_CHARACTERS = 1_000;
/** Media types whose text may be given to people; a page of HTML may not. */
const TEXT_TYPES: ReadonlySet<string> = new Set(['text/plain', 'application/json', 'application/problem+json']);
const LONE_SURROGATE = /\p{Surrogate}/gu;
const NO_FACTS = { error: undefined, namesSession: false } as const;
const NO_BODY: ErrorBody = { text: '', error: undefined };

/** Writes a complete answer to the client. */
type SendError = (status: number, headers: ResponseHeaders, body: string) => void;

/** Relays the answer to a request, or returns the refusal to send instead. */
export async function relayErrorStatus(
  call: RequestContext<CheckPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
  send: SendError = (status, headers, body) => call.outgoing.send(status, headers, body),
): Promise<Refusal | undefined> {
  const { admitted } = authorized;
  const { status } = response;
  const detail = describeStatus(response, admitted.rule.method);
  const unread = refusedUnread(status);
  if (unread !== undefined) {
    response.release();
    return refuseWith(unread, { detail });
  }
  const id = requestIdOf(admitted.message);
  const body = await readErrorBody(call, response, sentIdOf(admitted, id));
  const facts = { error: body.error, namesSession: namesUpstreamSession(admitted.session) };
  const reading = await afterPing(readUpstreamStatus(status, facts), () => isSessionAlive(call, authorized));
  const text = withId(body.text, id);
  const answer = (http: number, toSend = text): Promise<Refusal | undefined> =>
    sendError(call, { response, responseCheck, http, detail, send }, toSend);
  switch (reading) {
    case 'success':
      throw new Error('a success is relayed elsewhere');
    case 'credentials':
      return refuseWith('upstream-credentials', { detail });
    case 'busy':
      return answer(status, body.error === undefined ? busyText(response, body.text, id) : text);
    case 'answer':
      return answer(admitted.protocol.statusOfResponse(status, body.error?.code));
    case 'lost':
      return endSessionOf(call, detail);
    case 'stray-error':
      return answer(BAD_REQUEST);
    case 'failure':
      return answer(BAD_GATEWAY);
    case 'unavailable':
      return refuseWith('upstream-unavailable', { detail });
    case 'invalid':
      return refuseWith('upstream-protocol', { detail });
  }
}

/** What a status means that no body changes. */
function refusedUnread(status: number): 'upstream-credentials' | 'upstream-protocol' | undefined {
  const { kind } = readUpstreamStatus(status, NO_FACTS);
  if (kind === 'credentials') return 'upstream-credentials';
  const isClientError = status >= BAD_REQUEST && status < SERVER_ERROR;
  return kind === 'invalid' && !isClientError ? 'upstream-protocol' : undefined;
}

/**
 * The refusal for the answer to a message that has no response, such as a notification; `undefined` if the message
 * counts as delivered: what the server says about it has no reader, and clients give up a connection over it.
 */
export async function refuseUndelivered(
  call: RequestContext<'sessions' | 'upstreams' | 'inspection'>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  const { admitted } = authorized;
  const body = await readErrorBody(call, response, undefined);
  const facts = { error: body.error, namesSession: namesUpstreamSession(admitted.session) };
  const reading = readUpstreamStatus(response.status, facts);
  const detail = describeStatus(response, admitted.rule.method);
  switch (await afterPing(reading, () => isSessionAlive(call, authorized))) {
    case 'success':
      return undefined;
    case 'credentials':
      return refuseWith('upstream-credentials', { detail });
    case 'busy':
    case 'unavailable':
    case 'failure':
      return refuseWith('upstream-unavailable', { detail });
    case 'lost':
      return endSessionOf(call, detail);
    case 'answer':
    case 'stray-error':
      fold(call.record, { decision: { detail } });
      return undefined;
    case 'invalid':
      if (refusedUnread(response.status) !== undefined) return refuseWith('upstream-protocol', { detail });
      fold(call.record, { decision: { detail } });
      return undefined;
  }
}

/** The id under which the request left, which need not be that of the client. */
function sentIdOf(admitted: AuthorizedRequest['admitted'], id: RequestId | undefined): RequestId | undefined {
  const sent = admitted.edits.length === 0 ? undefined : editedValueAt(admitted, ['id']);
  return isRequestId(sent) ? sent : id;
}

/** Reads the body, within the bounds of any response; what cannot be read is no JSON-RPC error. */
async function readErrorBody(
  call: RequestContext<'inspection'>,
  response: UpstreamResponse,
  id: RequestId | undefined,
): Promise<ErrorBody> {
  const { maxResponseBytes, requestTimeoutMs } = call.snapshot.limits;
  const withinMs = Math.min(requestTimeoutMs, timeLeftMs(call));
  const type = mediaType(response.headers['content-type']);
  const read = await response.readBody(maxResponseBytes, withinMs);
  response.release();
  if (typeof read === 'string') return NO_BODY;
  const bytes = joinPieces(read);
  if (type === 'text/event-stream') return firstErrorOf(call, eventTexts(bytes), id);
  if (type !== 'application/json') return { text: decode(bytes), error: undefined };
  return firstErrorOf(call, [decode(bytes)], id);
}

/** The messages of a stream that has ended. */
function eventTexts(bytes: Uint8Array): readonly string[] {
  const events = createSseFramer({ maxEventBytes: bytes.byteLength + 1 }).push(bytes);
  if ('error' in events) return [];
  return events.flatMap((event) => (event.kind === 'message' ? [event.data] : []));
}

async function firstErrorOf(
  call: RequestContext<'inspection'>,
  texts: readonly string[],
  id: RequestId | undefined,
): Promise<ErrorBody> {
  for (const text of texts) {
    const reading = await readUpstreamMessage(call, text);
    const error = reading.ok ? errorSeenIn(reading.value, id) : undefined;
    if (error !== undefined) return { text, error };
  }
  return { text: texts[0] ?? '', error: undefined };
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** A server that takes no more requests, in words of its own where it has any. */
function busyText({ headers }: UpstreamResponse, text: string, id: RequestId | undefined): string {
  const given = TEXT_TYPES.has(mediaType(headers['content-type']) ?? '') ? text.trim() : '';
  const message = given === '' ? BUSY_TEXT : given.slice(0, MAX_TEXT_CHARACTERS).replace(LONE_SURROGATE, '\ufffd');
  return renderError(id, BUSY_CODE, message);
}

type ErrorToSend = {
  readonly response: UpstreamResponse;
  readonly responseCheck: ResponseCheck;
  readonly http: number;
  readonly detail: string;
  readonly send: SendError;
};

/** Checks an error like any response and sends it. */
async function sendError(
  call: RequestContext<CheckPorts>,
  { response, responseCheck, http, detail, send }: ErrorToSend,
  text: string,
): Promise<Refusal | undefined> {
  const outcome: MessageOutcome = await responseCheck.checkText(text);
  if (outcome.kind === 'refused') return { ...outcome.refusal, deny: { detail, ...outcome.refusal.deny } };
  if (outcome.kind !== 'response') return refuseWith('upstream-protocol', { detail });
  fold(call.record, { decision: { detail } });
  const body = outcome.text ?? text;
  const retryAfter = isBusyStatus(http) ? readRetryAfter(response.headers['retry-after']) : undefined;
  recordResult(call, outcome, http, body);
  send(
    http,
    {
      ...JSON_HEADERS,
      ...outcome.headers,
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    },
    body,
  );
  return undefined;
}

function isSessionAlive(
  call: RequestContext<'upstreams'>,
  { admitted: { session }, principal }: AuthorizedRequest,
): Promise<boolean> {
  if (session === undefined) return Promise.resolve(true);
  return call.ports.upstreams.pingSession(call.incoming.upstream, session, callerOf(call, principal));
}

/** The upstream has lost the session: the client's own ends with it, so that it opens a new one. */
export function endSessionOf(call: RequestContext<'sessions'>, detail: string): Refusal {
  const sealed = call.incoming.headers['mcp-session-id'];
  if (sealed !== undefined) call.ports.sessions.end(sealed, call.callerKey ?? '');
  return refuseWith('unknown-session', { detail, isUnsent: true });
}
