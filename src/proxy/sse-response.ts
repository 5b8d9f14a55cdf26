// Writes the event stream that answers a request: each message of the upstream after its check, under event ids
// of the gateway, so that a broken stream can be resumed. An event id seals the upstream's own id together with
// the response plan, so that a resumed stream is checked like the original. The stateless era has no event ids. Also
// the limits under which the streams of an upstream are read.
// Source: MCP 2025-11-25, transports (sending messages to the server, resumability and redelivery).

import { type Refusal, refuseWith, renderRefusal } from '../policy/decision.js';
import type { Principal } from '../policy/principal.js';
import { fold } from '../policy/record.js';
import type { EventFacts, SessionFacts } from '../protocol/admitted-request.js';
import {
  describeEnd,
  encodeSseComment,
  encodeSseMessage,
  encodeSsePriming,
  encodeSseRetry,
  pumpEvents,
  type ReadEnd,
  type SseEvent,
  type StreamLimits,
} from '../protocol/sse.js';
import { type Body, joinPieces, type Outgoing, sizeOfBytes, type UpstreamResponse } from '../protocol/transport.js';
import { refusalFacts } from './record-facts.js';
import { completeRefusal, refusalContext, wasCancelledByDisconnect } from './refusals.js';
import type { RequestContext } from './request-context.js';
import { type MessageOutcome, type ResponsePlan, sealedFactsOf } from './response-context.js';
import type { ResponseCheck } from './response-pipeline.js';

/** The id to write for an event of the upstream; `undefined` if the stream cannot be resumed after that event. */
type EventIds = (upstreamId: string | undefined) => string | undefined;

/** Ids that a header can carry back upstream. Any other is dropped, and the event is written without one. */
const EVENT_ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?$/;

const NO_IDS: EventIds = () => undefined;

/** The event ids of a stream that answers a request of a session. */
export function responseEventIds(call: RequestContext<'sessions'>, plan: ResponsePlan): EventIds {
  const { session, message } = plan.admitted;
  if (session === undefined || message.kind !== 'request') return NO_IDS;
  return eventIds(call, plan.principal, session, () => sealedFactsOf(call, plan));
}

/** The event ids of the stream of a session itself. */
export function sessionEventIds(
  call: RequestContext<'sessions'>,
  principal: Principal,
  session: SessionFacts,
): EventIds {
  return eventIds(call, principal, session, () => undefined);
}

function eventIds(
  call: RequestContext<'sessions'>,
  principal: Principal,
  session: SessionFacts,
  requestOf: () => EventFacts['request'],
): EventIds {
  const { incoming, ports } = call;
  const scope = { upstream: incoming.upstream, principal, session };
  return (upstreamId) => {
    if (upstreamId === undefined || !EVENT_ID.test(upstreamId)) return undefined;
    // Resuming a stream does not restart the time limit of its request.
    const requestedAt = call.requestedAt ?? incoming.receivedAt;
    return ports.sessions.events.seal({ upstreamId, request: requestOf(), requestedAt }, scope);
  };
}

/**
 * Collects the events of one chunk of the upstream, so that they leave as one socket write, in order. INVARIANT:
 * nothing is held beyond that chunk.
 */
export type GatheredWrites = {
  add(text: string): void;
  /** The response was added, or a refusal in its place: no second one may follow, however slowly the client reads. */
  hasResponse: boolean;
  /** Writes what was gathered; returns a promise if the client is slow. */
  flush(): void | Promise<void>;
};

/** Gathers writes to an open stream. The caller must flush after adding. */
export function createGatheredWrites(outgoing: Pick<Outgoing, 'write'>): GatheredWrites {
  let gathered = '';
  return {
    hasResponse: false,
    add(text) {
      gathered += text;
    },
    flush() {
      if (gathered === '') return;
      const text = gathered;
      gathered = '';
      return outgoing.write(text);
    },
  };
}

export const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const;

/** `resumable`: the connection broke after a resumable event, so no final event is written. */
export type StreamEnd = ReadEnd | 'resumable';

/** Ends of a connection after which the response can still be resumed. */
const RESUMABLE_ENDS: ReadonlySet<ReadEnd> = new Set(['ended', 'upstream-unavailable']);

/** What writing the stream of one response needs. */
type StreamWriting = {
  readonly call: RequestContext<'audit' | 'inspection'>;
  readonly responseCheck: ResponseCheck;
  readonly idOf: EventIds;
  readonly writes: GatheredWrites;
  /**
   * True once the stream must end, e.g. because access was revoked, even if an event is still waiting. A promise while
   * the caller is verified anew: until it resolves nothing is checked or written.
   */
  readonly mustEnd: () => boolean | Promise<boolean>;
  /** The client has received an event that it can resume after. */
  isResumable: boolean;
};

/** Writes messages until the response has passed or the stream ends. */
export async function writeEvents(response: UpstreamResponse, writing: StreamWriting): Promise<StreamEnd> {
  const { call, writes } = writing;
  const { signal } = call.incoming;
  // A client that disconnects cancels nothing. But a stream that it may resume must be released for that,
  // because servers allow one connection per stream.
  const release = (): void => {
    if (writing.isResumable) response.abort();
  };
  signal.addEventListener('abort', release);
  const end = await pumpEvents(
    response,
    responseStreamLimits(call),
    (event) => writeEvent(writing, event),
    writes.flush,
  );
  signal.removeEventListener('abort', release);
  return writing.isResumable && RESUMABLE_ENDS.has(end) ? 'resumable' : end;
}

function writeEvent(writing: StreamWriting, event: SseEvent): undefined | 'stop' | Promise<undefined | 'stop'> {
  const { writes, responseCheck, idOf } = writing;
  const ending = writing.mustEnd();
  if (ending instanceof Promise) return Promise.all([ending, writes.flush()]).then(() => writeEvent(writing, event));
  if (ending === true) return 'stop';
  if (event.kind !== 'message') {
    writes.add(encodeKeepAlive(event));
    return undefined;
  }
  const id = idOf(event.id);
  writing.isResumable ||= id !== undefined;
  if (writing.isResumable && writing.call.outgoing.isClosed) return 'stop';
  const { data } = event;
  if (data === '') {
    if (id !== undefined) writes.add(encodeSsePriming(id));
    return undefined;
  }
  const outcome = responseCheck.checkText(data);
  return outcome instanceof Promise
    ? writeWhenChecked(writing, outcome, data, id)
    : writeOutcome(writing, outcome, data, id);
}

/** Flushes the events that passed before this one, and writes it only if the stream is still allowed. */
async function writeWhenChecked(
  writing: StreamWriting,
  outcome: Promise<MessageOutcome>,
  data: string,
  id: string | undefined,
): Promise<undefined | 'stop'> {
  const [checkedOutcome] = await Promise.all([outcome, writing.writes.flush()]);
  return (await writing.mustEnd()) ? 'stop' : writeOutcome(writing, checkedOutcome, data, id);
}

/** Re-encodes a comment or a retry delay instead of forwarding its bytes. */
export function encodeKeepAlive(event: Exclude<SseEvent, { readonly kind: 'message' }>): string {
  switch (event.kind) {
    case 'comment':
      // Its text is dropped, since it is no message; the comment itself keeps the stream alive.
      return encodeSseComment('');
    case 'retry':
      return encodeSseRetry(event.ms);
  }
}

/** Writes what passed. The response ends the stream, and so does a refusal in its place. */
export function writeOutcome(
  { call, writes }: Pick<StreamWriting, 'call' | 'writes'>,
  outcome: MessageOutcome,
  data: string,
  id: string | undefined,
): undefined | 'stop' {
  switch (outcome.kind) {
    case 'drop':
      return undefined;
    case 'refused':
      writeFailure(call, outcome.refusal, writes);
      return 'stop';
    case 'pass':
      writes.add(encodeSseMessage(outcome.text ?? data, { id }));
      return undefined;
    case 'response': {
      const text = outcome.text ?? data;
      recordResult(call, outcome, 200, text);
      writes.hasResponse = true;
      writes.add(encodeSseMessage(text, { id }));
      return 'stop';
    }
  }
}

/**
 * Once a stream has begun, a refusal is its last event (docs/reference/responses.md), unless the response was that. The
 * caller must flush.
 */
export function writeFailure(call: RequestContext, found: Refusal, writes: GatheredWrites): void {
  const refusal = completeRefusal(call, found);
  if (writes.hasResponse || wasCancelledByDisconnect(call, refusal)) return;
  writes.hasResponse = true;
  fold(call.record, refusalFacts(call.record, refusal));
  const rendered = renderRefusal(refusal, refusalContext(call));
  fold(call.record, { result: { rpcCode: rendered.rpcCode } });
  writes.add(encodeSseMessage(rendered.body));
}

/** Records a response that passed. */
export function recordResult(
  call: RequestContext<'audit'>,
  { isError, rpcCode }: Extract<MessageOutcome, { kind: 'response' }>,
  http: number,
  body: Body,
): void {
  const { record, ports, admitted } = call;
  const bytes = record.result.bytes + (typeof body === 'string' ? Buffer.byteLength(body) : sizeOfBytes(body));
  const status = isError ? 'error' : 'ok';
  // Lists are identified by the pins that they show; the result of a call or a read only by its digest.
  const response = admitted?.rule.response;
  const hasDigest = response === 'inspect' || response === 'task';
  const digest = hasDigest ? ports.audit.keyedHash('result', joinPieces(body)) : record.result.digest;
  fold(record, { result: { status, rpcCode, http, bytes, digest } });
}

/** The refusal for a stream, or a body, that ended without its response. */
export function refuseEnd({ admitted }: Pick<RequestContext, 'admitted'>, end: ReadEnd): Refusal {
  const method = admitted?.rule.method ?? 'the stream of the session';
  return refuseWith(reasonOfEnd(end), { detail: describeEnd(end, method) });
}

function reasonOfEnd(end: ReadEnd): Parameters<typeof refuseWith>[0] {
  switch (end) {
    case 'ended':
    case 'stopped':
      // The server closed the stream, or was cut off, before its response.
      return 'upstream-protocol';
    case 'too-large':
      return 'result-too-large';
    case 'overloaded':
    case 'rate-limited':
    case 'upstream-credentials':
    case 'upstream-protocol':
    case 'upstream-timeout':
    case 'upstream-unavailable':
      return end;
  }
}

/** Writes one event of an unsolicited stream, if its check passes it and the stream is still open then. */
export async function writeUnsolicited(
  call: RequestContext,
  event: SseEvent,
  checkUnsolicited: (data: string) => Promise<string | undefined>,
  { idOf, endSignal }: { readonly idOf: EventIds; readonly endSignal: AbortSignal },
): Promise<undefined> {
  const { outgoing } = call;
  if (event.kind !== 'message') {
    await outgoing.write(encodeKeepAlive(event));
    return;
  }
  const id = idOf(event.id);
  if (event.data === '') {
    if (id !== undefined) await outgoing.write(encodeSsePriming(id));
    return;
  }
  const text = await checkUnsolicited(event.data);
  if (text !== undefined && !endSignal.aborted) await outgoing.write(encodeSseMessage(text, { id }));
}

/** Limits for the response to one request: the sum of its bytes is bounded, as for a body. */
export function responseStreamLimits({ snapshot, incoming, ports }: RequestContext<'inspection'>): StreamLimits {
  const { maxResponseBytes } = snapshot.limits;
  let sum = 0;
  return {
    maxEventBytes: maxResponseBytes,
    count(bytes) {
      sum += bytes;
      return sum > maxResponseBytes ? 'too-large' : undefined;
    },
    upstream: incoming.upstream,
    loopScheduler: ports.inspection.loopScheduler,
  };
}

const MINUTE_MS = 60_000;

/**
 * Limits for a long-lived stream: its bytes are bounded per minute, because its lifetime is not, and all such streams
 * of an upstream share a rate.
 */
export function longLivedStreamLimits(
  { snapshot, incoming, outgoing, ports }: RequestContext<'inspection'>,
  ended: AbortSignal,
): StreamLimits {
  const { maxResponseBytes, maxStreamBytesPerMinute } = snapshot.limits;
  const { upstream } = incoming;
  const { loopScheduler } = ports.inspection;
  let sinceMs = performance.now();
  let sum = 0;
  return {
    maxEventBytes: maxResponseBytes,
    count(bytes) {
      const nowMs = performance.now();
      if (nowMs - sinceMs >= MINUTE_MS) {
        sinceMs = nowMs;
        sum = 0;
      }
      sum += bytes;
      return sum > maxStreamBytesPerMinute ? 'rate-limited' : undefined;
    },
    pace: (bytes) => loopScheduler.pace(upstream, bytes, () => ended.aborted || outgoing.isClosed),
    upstream,
    loopScheduler,
  };
}
