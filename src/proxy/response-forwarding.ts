// The way back. What an upstream answered to a forwarded message goes to the client only as messages
// that judge.ts passed: a whole JSON body at once, an event stream message by message, unbuffered.
// Source: MCP transports (2025-11-25 and 2026-07-28), sending messages to the server.

import type { AuthorizedRequest } from '../policy/authorized-request.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import type { SessionFacts } from '../protocol/admitted-request.js';
import type { Body, UpstreamResponse } from '../protocol/transport.js';
import { statusOfResponse } from '../protocol/versions/stateless.js';
import { takesStream } from './accept.js';
import { awaitLateResponse, isBridged } from './legacy-sse/request.js';
import { type Call, noteRefusal } from './request-context.js';
import type { Verdict } from './response-context.js';
import { createResponseCheck, type ResponseCheck } from './response-pipeline.js';
import { pumpEvents, termsOfResponse } from './sse-reader.js';
import {
  type GatheredWrites,
  gatherWrites,
  noteResult,
  reasonOfEnd,
  responseEventIds,
  STREAM_HEADERS,
  type StreamEnd,
  writeEvents,
  writeFailure,
} from './sse-response.js';
import { type Gone, keepAlive, timeLeftMs, watchResponse } from './stream-lifetime.js';

/** Of a message that is answered by its status alone. */
const ACCEPTED: ReadonlySet<number> = new Set([200, 202, 204]);

const JSON_HEADERS = { 'content-type': 'application/json' } as const;

/** Relays an answer, or says why nothing of it may pass. After an open stream nothing is returned. */
export async function relayResponse(
  call: Call,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  const { admitted } = authorized;
  // From a server of HTTP+SSE the answer comes apart from what was posted.
  const isApart = admitted.era === '2024' && !isBridged(call, admitted);
  if (admitted.message.kind !== 'request' || isApart)
    return acknowledge(call, authorized, response);
  const status = refuseStatus(call, response, admitted.session);
  if (status !== undefined) {
    response.release();
    return status;
  }
  const type = mediaType(response.headers['content-type']);
  const responseCheck = createResponseCheck(call, authorized, response.headers['mcp-session-id']);
  if (type === 'application/json') return relayBody(call, response, responseCheck);
  if (type === 'text/event-stream' && response.status === 200) {
    return isAlone(call, admitted)
      ? relayAlone(call, response, responseCheck)
      : relayEvents(call, authorized, response, responseCheck);
  }
  response.release();
  return refuseWith(response.status >= 500 ? 'upstream-unavailable' : 'upstream-protocol');
}

/** A notification, or the answer to a question, is accepted with 202 and no body, or refused; nothing else is an answer to it. */
function acknowledge(
  call: Call,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Refusal | undefined {
  response.release();
  if (!ACCEPTED.has(response.status))
    return refuseStatus(call, response, call.admitted?.session) ?? refuseWith('upstream-protocol');
  passCancellation(call);
  awaitLateResponse(call, authorized.admitted);
  call.record.result.status = 'ok';
  call.record.result.http = 202;
  call.outgoing.send(202, {}, '');
  return undefined;
}

/** The upstream knows by now; what it streams all the same is for nobody. */
function passCancellation({ admitted, incoming, ports }: Call): void {
  const session = incoming.headers['mcp-session-id'];
  if (admitted?.rule.method !== 'notifications/cancelled' || session === undefined) return;
  const id = 'params' in admitted.message ? admitted.message.params?.['requestId'] : undefined;
  if (typeof id === 'string' || typeof id === 'number') ports.cancelResponse(session, id);
}

/** Statuses that mean the same whatever the body says. */
export function refuseStatus(
  call: Call,
  response: UpstreamResponse,
  session: SessionFacts | undefined,
): Refusal | undefined {
  if (response.status === 401 || response.status === 403) return refuseWith('upstream-credentials');
  if (response.status === 404 && session !== undefined) {
    const sealed = call.incoming.headers['mcp-session-id'];
    if (sealed !== undefined) call.ports.endSession(sealed, call.incoming.upstream);
    return refuseWith('unknown-session');
  }
  if (!isResponseStatus(response.status)) return refuseWith('upstream-protocol');
  return response.status === 429 || response.status === 503
    ? refuseWith('upstream-unavailable')
    : undefined;
}

/** A request is answered with 200, or with an error of HTTP: a 205 would lose its body, a 999 is nobody's. */
function isResponseStatus(status: number): boolean {
  return status === 200 || (status >= 400 && status < 600);
}

/** The media type of an answer, without its parameters. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

async function relayBody(
  call: Call,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Promise<Refusal | undefined> {
  const { maxResponseBytes, requestTimeoutMs } = call.snapshot.limits;
  const withinMs = Math.min(requestTimeoutMs, timeLeftMs(call));
  const bytes = await response.readBody(maxResponseBytes, withinMs);
  if (bytes === 'too-large') return refuseWith('result-too-large');
  if (typeof bytes === 'string') return refuseWith(bytes);
  const { loopScheduler } = call.ports;
  try {
    const turn = loopScheduler.take(call.incoming.upstream);
    if (turn !== undefined) await turn;
    const startedMs = performance.now();
    const outcome = responseCheck.checkBytes(bytes);
    loopScheduler.spend(startedMs);
    const verdict = outcome instanceof Promise ? await outcome : outcome;
    return sendOwn(call, verdict, response.status, bytes);
  } finally {
    // What was kept of it is not needed any more.
    response.release();
  }
}

/**
 * The answer to initialize waits for its session id, which stands in a header; a client that takes no stream
 * waits for its answer.
 */
function isAlone({ incoming }: Call, { rule, era }: AuthorizedRequest['admitted']): boolean {
  return rule.method === 'initialize' || (era !== '2024' && !takesStream(incoming));
}

/** The answer without what came before it: the stream is read first. */
async function relayAlone(
  call: Call,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Promise<Refusal | undefined> {
  let own: Verdict | undefined;
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    response.abort();
  }, timeLeftMs(call));
  const end = await pumpEvents(response, termsOfResponse(call), async (event) => {
    if (event.kind !== 'message' || event.data === '') return undefined;
    const verdict = await responseCheck.checkText(event.data);
    if (verdict.kind !== 'own' && verdict.kind !== 'refused') return undefined;
    own =
      verdict.kind === 'own' && verdict.text === undefined
        ? { ...verdict, text: event.data }
        : verdict;
    return 'stop';
  });
  clearTimeout(late);
  if (own !== undefined) return sendOwn(call, own, 200, '');
  return refuseWith(isLate ? 'upstream-timeout' : reasonOfEnd(end));
}

/** Sends a whole answer that was judged, or says why it may not pass. */
export function sendOwn(
  call: Call,
  verdict: Verdict,
  status: number,
  unchanged: Body,
): Refusal | undefined {
  if (verdict.kind === 'refused') return verdict.refusal;
  if (verdict.kind !== 'own') return refuseWith('upstream-protocol');
  const isStateless = call.admitted?.era === '2026';
  const http = isStateless ? statusOfResponse(status, verdict.rpcCode) : status;
  const body = verdict.text ?? verdict.pieces ?? unchanged;
  noteResult(call, verdict, http, body);
  call.outgoing.send(http, { ...JSON_HEADERS, ...verdict.headers }, body);
  return undefined;
}

async function relayEvents(
  call: Call,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Promise<undefined> {
  const { outgoing } = call;
  outgoing.open(200, STREAM_HEADERS);
  call.record.result.http = 200;
  const watch = watchResponse(call, authorized, { response, responseCheck });
  const idOf = responseEventIds(call, authorized);
  const isGone = (): boolean => watch.gone() !== undefined;
  const alive = keepAlive(outgoing, call.snapshot.limits.keepAliveMs);
  const writes = gatherWrites(alive);
  try {
    const end = await writeEvents(response, { call, responseCheck, idOf, writes, isGone });
    writeEnd(call, end, watch.gone(), writes);
  } catch (error) {
    // The headers have left, so the refusal that a fault ends in can only be the last event.
    call.ports.report(error, call.incoming.id);
    writeFailure(call, refuseWith('internal'), writes);
  }
  await writes.flush();
  alive.stop();
  watch.close();
  outgoing.end();
  return undefined;
}

/** The last event of a stream that ended without its own answer, where there is anything to say. */
function writeEnd(
  call: Call,
  end: StreamEnd,
  gone: Gone | undefined,
  writes: GatheredWrites,
): void {
  // What was cancelled gets no answer (MCP 2025-11-25, cancellation).
  if (gone === 'cancelled') return;
  if (gone !== undefined) {
    // Who is no longer known is told nothing; the next request gets the challenge.
    if (gone.stage === 'authn') noteRefusal(call, gone);
    else writeFailure(call, gone, writes);
  } else if (end !== 'stopped' && end !== 'resumable') {
    writeFailure(call, refuseWith(reasonOfEnd(end)), writes);
  }
}
