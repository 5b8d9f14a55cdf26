// Relays an upstream's response to the client. Only what response-pipeline.ts has passed leaves: a JSON body at
// once and whole, an event stream message by message and unbuffered. Also measures how long a request waits for the
// bytes of its upstream, which changes no byte and no order.
// Source: MCP transports (2025-11-25 and 2026-07-28), sending messages to the server.

import { type Refusal, refuseWith } from '../policy/decision.js';
import type { AuthorizedRequest } from '../policy/obligations.js';
import { addUpstreamWait, fold, type RequestRecord } from '../policy/record.js';
import { acceptsEventStream, mediaType } from '../protocol/headers.js';
import { isRequestId } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { isEventStream, pumpEvents } from '../protocol/sse.js';
import type { Body, UpstreamResponse } from '../protocol/transport.js';
import { readUpstreamStatus } from '../protocol/upstream-status.js';
import { after } from '../text/after.js';
import { describeType } from '../text/clause.js';
import { refusalFacts } from './record-facts.js';
import { callerOf, type RequestContext } from './request-context.js';
import type { MessageOutcome } from './response-context.js';
import { createResponseCheck, type ResponseCheck } from './response-pipeline.js';
import {
  createGatheredWrites,
  type GatheredWrites,
  recordResult,
  refuseEnd,
  responseEventIds,
  responseStreamLimits,
  STREAM_HEADERS,
  type StreamEnd,
  writeEvents,
  writeFailure,
} from './sse-response.js';
import {
  keepAlive,
  notifyCancelled,
  type RelayPorts,
  registerOpenResponse,
  type StreamEndReason,
  timeLeftMs,
  watchResponse,
} from './stream-lifetime.js';
import { refuseUndelivered, relayErrorStatus } from './upstream-errors.js';

const OK = 200;
const FIRST_SUCCESS = 200;
const FIRST_REDIRECT = 300;
const NO_FACTS = { error: undefined, namesSession: false } as const;

const JSON_HEADERS = { 'content-type': 'application/json' } as const;

/**
 * Relays a response, or returns the refusal to send instead. Once a stream is open it returns `undefined`:
 * failures are then written as the last event.
 */
export function relayResponse(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Refusal | undefined | Promise<Refusal | undefined> {
  const { admitted } = authorized;
  if (admitted.message.kind !== 'request') return acknowledge(call, authorized, response);
  const openedSession = response.openedSession ?? {
    kind: 'upstream',
    id: response.headers['mcp-session-id'],
  };
  const responseCheck = createResponseCheck(call, authorized, openedSession);
  const relayed = isSuccess(response)
    ? relayChecked(call, authorized, response, responseCheck)
    : relayErrorStatus(call, authorized, response, responseCheck);
  if (admitted.rule.method !== 'initialize') return relayed;
  return after(relayed, (refusal) => endUnlessHeld(call, authorized, response, refusal));
}

function relayChecked(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Refusal | Promise<Refusal | undefined> {
  if (mediaType(response.headers['content-type']) === 'application/json')
    return relayBody(call, response, responseCheck);
  if (isEventStream(response)) {
    return mustSendWithoutStream(call, authorized.admitted)
      ? relayWithoutStream(call, response, responseCheck)
      : relayEvents(call, authorized, response, responseCheck);
  }
  response.release();
  return refuseWith('upstream-protocol', {
    detail: describeType(response.headers['content-type']),
  });
}

/**
 * Ends the session that the upstream opened for a client that was refused it or has left: nobody else knows it, and its
 * server would keep it. An aggregate ends those of its backends for which its client has not waited.
 */
function endUnlessHeld(
  call: RequestContext<'audit' | 'upstreams'>,
  { admitted: { version }, principal }: AuthorizedRequest,
  { headers, openedSession }: UpstreamResponse,
  refusal: Refusal | undefined,
): Refusal | undefined {
  const { incoming, ports } = call;
  const isHeld = refusal === undefined && (incoming.aggregate !== undefined || !incoming.signal.aborted);
  const id = headers['mcp-session-id'];
  // A session that an adapter opened is its own.
  if (isHeld || openedSession !== undefined || id === undefined) return refusal;
  const session = { version, target: { kind: 'upstream', id } } as const;
  ports.upstreams
    .endSession(incoming.upstream, session, callerOf(call, principal))
    .then((ended) => {
      if (ended.kind === 'response') ended.release();
    })
    .catch((error) => ports.audit.report(error, incoming.id));
  return refusal;
}

/** A message without a response body (a notification, a reply) is acknowledged with 202, or refused. */
export async function acknowledge(
  call: RequestContext<'inspection' | 'sessions' | 'streams' | 'upstreams'>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  if (!isDelivered(response)) return (await refuseUndelivered(call, authorized, response)) ?? accept(call);
  response.release();
  return accept(call);
}

/** A message without a response is delivered by any success, whether or not it has a body. */
export function isDelivered({ status }: UpstreamResponse): boolean {
  return status >= FIRST_SUCCESS && status < FIRST_REDIRECT;
}

function accept(call: RequestContext<'streams'>): undefined {
  passCancellation(call);
  fold(call.record, { result: { status: 'ok', http: 202 } });
  call.outgoing.send(202, {}, '');
  return undefined;
}

/** The upstream has received the cancellation; whatever it still streams for that request is discarded. */
function passCancellation({ admitted, incoming, ports }: RequestContext<'streams'>): void {
  const session = incoming.headers['mcp-session-id'];
  if (admitted?.rule.method !== 'notifications/cancelled' || session === undefined) return;
  const id = paramsOf(admitted)['requestId'];
  if (isRequestId(id)) ports.streams.cancelResponse(session, id);
}

/** The body of a success is the response, whatever 2xx carries it; some of them can carry none. */
function isSuccess({ status }: UpstreamResponse): boolean {
  return readUpstreamStatus(status, NO_FACTS).kind === 'success';
}

async function relayBody(
  call: RequestContext<'audit' | 'inspection'>,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Promise<Refusal | undefined> {
  const { maxResponseBytes, requestTimeoutMs, handshakeTimeoutMs } = call.snapshot.limits;
  const isList = call.admitted?.rule.response === 'filter';
  const withinMs = Math.min(isList ? handshakeTimeoutMs : requestTimeoutMs, timeLeftMs(call));
  const body = response.readBody(maxResponseBytes, withinMs);
  // A short response is complete: an await costs a turn of the microtask queue.
  const bytes = body instanceof Promise ? await body : body;
  if (typeof bytes === 'string') return refuseEnd(call, bytes);
  const { loopScheduler } = call.ports.inspection;
  try {
    const turn = loopScheduler.waitForTurn(call.incoming.upstream);
    if (turn !== undefined) await turn;
    const startedMs = performance.now();
    const pending = responseCheck.checkBytes(bytes);
    loopScheduler.recordTime(startedMs);
    const outcome = pending instanceof Promise ? await pending : pending;
    return sendResponse(call, outcome, OK, bytes);
  } finally {
    // Frees the bytes that were held for the body.
    response.release();
  }
}

/**
 * Whether the response must be sent alone, without the stream around it. That of `initialize` must, because the
 * session id is sent in a header, and so must any response to a client that accepts no event stream.
 */
function mustSendWithoutStream(
  { incoming }: RequestContext,
  { rule, protocol }: AuthorizedRequest['admitted'],
): boolean {
  return rule.method === 'initialize' || (!protocol.answersOnStream && !acceptsEventStream(incoming.headers));
}

/** Reads the stream up to its response and sends that alone; the messages before it are dropped. */
async function relayWithoutStream(
  call: RequestContext<'audit' | 'inspection' | 'streams'>,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Promise<Refusal | undefined> {
  let responseOutcome: MessageOutcome | undefined;
  let ended: 'late' | 'cancelled' | undefined;
  const endAs = (why: 'late' | 'cancelled') => (): void => {
    ended ??= why;
    response.abort();
  };
  const unregister = registerOpenResponse(call, endAs('cancelled'));
  const timer = setTimeout(endAs('late'), timeLeftMs(call));
  const end = await pumpEvents(response, responseStreamLimits(call), async (event) => {
    if (event.kind !== 'message' || event.data === '') return undefined;
    const outcome = await responseCheck.checkText(event.data);
    if (outcome.kind !== 'response' && outcome.kind !== 'refused') return undefined;
    responseOutcome =
      outcome.kind === 'response' && outcome.text === undefined ? { ...outcome, text: event.data } : outcome;
    return 'stop';
  }).finally(() => {
    clearTimeout(timer);
    unregister();
  });
  if (responseOutcome !== undefined) return sendResponse(call, responseOutcome, 200, '');
  if (ended === 'cancelled') return sendNothing(call);
  return refuseEnd(call, ended === 'late' ? 'upstream-timeout' : end);
}

/** A cancelled request gets no response, but its POST has to end (MCP 2025-11-25, cancellation). */
export function sendNothing(call: RequestContext): undefined {
  fold(call.record, { result: { http: 202 } });
  call.outgoing.send(202, {}, '');
}

/** Sends a complete response that was checked, or returns the refusal to send instead. */
export function sendResponse(
  call: RequestContext<'audit'>,
  outcome: MessageOutcome,
  status: number,
  unchanged: Body,
): Refusal | undefined {
  if (outcome.kind === 'refused') return outcome.refusal;
  if (outcome.kind !== 'response') {
    const detail = `${call.admitted?.rule.method}: the answer is no response to the request`;
    return refuseWith('upstream-protocol', { detail });
  }
  const http = call.admitted?.protocol.statusOfResponse(status, outcome.rpcCode) ?? status;
  const body = outcome.text ?? outcome.pieces ?? unchanged;
  recordResult(call, outcome, http, body);
  call.outgoing.send(http, { ...JSON_HEADERS, ...outcome.headers }, body);
  return undefined;
}

async function relayEvents(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
  responseCheck: ResponseCheck,
): Promise<undefined> {
  const { outgoing } = call;
  outgoing.open(200, STREAM_HEADERS);
  fold(call.record, { result: { http: 200 } });
  const keepAliveStream = keepAlive(outgoing, call.snapshot.limits.keepAliveMs);
  const writes = createGatheredWrites(keepAliveStream);
  const watch = watchResponse(call, authorized, { response, responseCheck, writes });
  const { mustEnd } = watch;
  const idOf = responseEventIds(call, authorized);
  try {
    const writing = { call, responseCheck, idOf, writes, mustEnd, isResumable: false };
    const end = await writeEvents(response, writing);
    // A change may break off the connection too; the end of the lease takes precedence over the broken connection.
    await mustEnd();
    writeEnd(call, end, watch.endReason(), writes);
    if (end === 'upstream-timeout' && watch.endReason() === undefined) notifyCancelled(call, authorized);
  } catch (error) {
    // The headers have been sent, so the refusal can only be written as the last event.
    call.ports.audit.report(error, call.incoming.id);
    writeFailure(call, refuseWith('internal'), writes);
  }
  await writes.flush();
  keepAliveStream.stop();
  watch.close();
  outgoing.end();
  return undefined;
}

/** Writes the last event of a stream that ended without its response, if there is one to write. */
function writeEnd(
  call: RequestContext,
  end: StreamEnd,
  endReason: StreamEndReason | undefined,
  writes: GatheredWrites,
): void {
  // What ends the stream while a slow client takes the response no longer concerns it. A cancelled request gets no
  // response (MCP 2025-11-25, cancellation).
  if (writes.hasResponse || endReason === 'cancelled') return;
  if (endReason !== undefined) {
    // A caller whose token is no longer valid is sent nothing; the next request gets the challenge.
    if (endReason.stage === 'authn') fold(call.record, refusalFacts(call.record, endReason));
    else writeFailure(call, endReason, writes);
  } else if (end !== 'stopped' && end !== 'resumable') {
    writeFailure(call, refuseEnd(call, end), writes);
  }
}

/**
 * Wraps a response so that its waits are added to `record.latency.upstream`, in milliseconds: the rest of the duration
 * can then be reported as the gateway's own (docs/reference/metrics.md, sallyport_overhead_seconds).
 */
export function measureWaits(record: RequestRecord, response: UpstreamResponse): UpstreamResponse {
  return new TimedResponse(record, response);
}

/** A class, because closures made for each request would outlive it. */
class TimedResponse implements UpstreamResponse {
  readonly kind = 'response';
  readonly status: number;
  readonly headers: UpstreamResponse['headers'];
  readonly openedSession: UpstreamResponse['openedSession'];
  readonly #record: RequestRecord;
  readonly #response: UpstreamResponse;

  constructor(record: RequestRecord, response: UpstreamResponse) {
    this.status = response.status;
    this.headers = response.headers;
    this.openedSession = response.openedSession;
    this.#record = record;
    this.#response = response;
  }

  readBody(maxBytes: number, withinMs: number): ReturnType<UpstreamResponse['readBody']> {
    return this.#timed(this.#response.readBody(maxBytes, withinMs));
  }

  next(): ReturnType<UpstreamResponse['next']> {
    return this.#timed(this.#response.next());
  }

  reserveBuffer(bytes: number): ReturnType<NonNullable<UpstreamResponse['reserveBuffer']>> {
    return this.#response.reserveBuffer?.(bytes);
  }

  release(): void {
    this.#response.release();
  }

  abort(): void {
    this.#response.abort();
  }

  /** Counts only promises; a value that is available at once was not waited for. */
  #timed<T>(outcome: T | Promise<T>): T | Promise<T> {
    if (!(outcome instanceof Promise)) return outcome;
    const startedMs = performance.now();
    const count = (): void => addUpstreamWait(this.#record, performance.now() - startedMs);
    return outcome.then(
      (value) => {
        count();
        return value;
      },
      (error: unknown) => {
        count();
        throw error;
      },
    );
  }
}
