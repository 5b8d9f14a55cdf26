// Writes the event stream that answers a request: each message of the upstream as it was judged, with event
// ids of our own, so that the stream can be resumed where it breaks off. Nothing is written unjudged.
// Source: MCP 2025-11-25, transports (sending messages to the server, resumability).

import type { Principal } from '../policy/principal.js';
import { type Refusal, type refuseWith, renderRefusal } from '../policy/refusal.js';
import type { EventFacts, SessionFacts } from '../protocol/admitted-request.js';
import {
  encodeSseComment,
  encodeSseMessage,
  encodeSsePriming,
  encodeSseRetry,
  type SseEvent,
} from '../protocol/sse.js';
import {
  type Body,
  inOnePiece,
  type Outgoing,
  sizeOfBytes,
  type UpstreamResponse,
} from '../protocol/transport.js';
import { tokenOf } from './features/progress.js';
import type { ResponsePlan } from './originating-request.js';
import { type Call, isLeft, noteRefusal, refusalContext } from './request-context.js';
import type { Verdict } from './response-context.js';
import type { ResponseCheck } from './response-pipeline.js';
import { type PumpEnd, pumpEvents, termsOfResponse } from './sse-reader.js';

// The ids of events as a client sees them: the upstream's own, sealed with what the stream answers, so that
// whoever resumes is judged as if nothing had broken off. The stateless era has none.
// Source: MCP 2025-11-25, transports, resumability and redelivery.

/** The id to write for an event of the upstream; `undefined` where it has none that can be resumed after. */
type EventIds = (upstreamId: string | undefined) => string | undefined;

/** What a header can carry back to the upstream; another id is dropped, and the stream goes on without. */
const EVENT_ID = /^[\x21-\x7e](?:[\x20-\x7e]{0,1022}[\x21-\x7e])?$/;

const NO_IDS: EventIds = () => undefined;

/** The ids of a stream that answers a request of a session. */
export function responseEventIds(
  call: Call,
  { admitted, principal, responseObligations }: ResponsePlan,
): EventIds {
  const { session, message, rule, target, mayDefer, task } = admitted;
  if (session === undefined || message.kind !== 'request') return NO_IDS;
  const { maxResultBytes, profiles } = responseObligations;
  const asked = { id: message.id, method: rule.method, target, mayDefer, task: task?.sealed };
  const plan = { ...asked, maxResultBytes, profiles };
  const request = { ...plan, progressToken: tokenOf(message) };
  return eventIds(call, principal, session, request);
}

/** When what is answered was asked for, in epoch milliseconds: a stream that goes on does not begin anew. */
function requestedAt({ incoming, requestedAt: before }: Call): number {
  return before ?? incoming.receivedAt;
}

/** The ids of the stream of a session itself. */
export function sessionEventIds(call: Call, principal: Principal, session: SessionFacts): EventIds {
  return eventIds(call, principal, session, undefined);
}

function eventIds(
  call: Call,
  principal: Principal,
  session: SessionFacts,
  request: EventFacts['request'],
): EventIds {
  const scope = { upstream: call.incoming.upstream, principal, session };
  return (upstreamId) =>
    upstreamId === undefined || !EVENT_ID.test(upstreamId)
      ? undefined
      : call.ports.sealEvent({ upstreamId, request, requestedAt: requestedAt(call) }, scope);
}

// Gathers the events that one reading of an upstream yields, so that they leave as one write of the
// socket. Keeps their order, holds nothing past that reading, and hands the client's pace on.

export type GatheredWrites = {
  add(text: string): void;
  /** Writes what was gathered; a promise where the client lags. */
  flush(): void | Promise<void>;
};

/** Gathers writes to an open stream. Whoever adds must flush. */
export function gatherWrites(outgoing: Pick<Outgoing, 'write'>): GatheredWrites {
  let gathered = '';
  return {
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

/** `resumable`: it broke off after an event that the client can resume after; no answer is owed here. */
export type StreamEnd = PumpEnd | 'resumable';

/** Ends of a connection that are no end of the answer, where it can be resumed. */
const BREAKS: ReadonlySet<PumpEnd> = new Set(['ended', 'upstream-unavailable']);

/** What a stream of one answer is written with. */
type Writing = {
  readonly call: Call;
  readonly responseCheck: ResponseCheck;
  readonly idOf: EventIds;
  readonly writes: GatheredWrites;
  /** What the stream rests on is gone: what came before may still wait here. */
  readonly isGone: () => boolean;
  /** The client has an event that it can resume after. */
  isResumable: boolean;
};

/**
 * Writes what comes until the answer has passed, or the stream ends. `isResumable`: the client already has
 * an event that it can resume after.
 */
export async function writeEvents(
  response: UpstreamResponse,
  parts: Omit<Writing, 'isResumable'> & { readonly isResumable?: boolean },
): Promise<StreamEnd> {
  const { call, responseCheck, idOf, writes, isGone, isResumable = false } = parts;
  const { signal } = call.incoming;
  const writing: Writing = { call, responseCheck, idOf, writes, isGone, isResumable };
  // A client that leaves cancels nothing. But a stream that it can come back to must be free for it then:
  // servers keep one connection a stream.
  const release = (): void => {
    if (writing.isResumable) response.abort();
  };
  signal.addEventListener('abort', release);
  const end = await pumpEvents(
    response,
    termsOfResponse(call),
    (event) => writeEvent(writing, event),
    writes.flush,
  );
  signal.removeEventListener('abort', release);
  return writing.isResumable && BREAKS.has(end) ? 'resumable' : end;
}

function writeEvent(
  writing: Writing,
  event: SseEvent,
): undefined | 'stop' | Promise<undefined | 'stop'> {
  const { writes, responseCheck, idOf } = writing;
  if (writing.isGone()) return 'stop';
  if (event.kind !== 'message') {
    writes.add(upkeepOf(event));
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
  const verdict = responseCheck.checkText(data);
  return verdict instanceof Promise
    ? writeLate(writing, verdict, data, id)
    : writeVerdict(writing, verdict, data, id);
}

/** What has to wait holds back nothing that was judged before it, and is written only if the stream still stands. */
async function writeLate(
  writing: Writing,
  verdict: Promise<Verdict>,
  data: string,
  id: string | undefined,
): Promise<undefined | 'stop'> {
  const [late] = await Promise.all([verdict, writing.writes.flush()]);
  return writing.isGone() ? 'stop' : writeVerdict(writing, late, data, id);
}

/** A comment or a wait, in words of our own. */
export function upkeepOf(event: Exclude<SseEvent, { readonly kind: 'message' }>): string {
  switch (event.kind) {
    case 'comment':
      // Its text is nobody's message; that something came keeps the stream alive.
      return encodeSseComment('');
    case 'retry':
      return encodeSseRetry(event.ms);
  }
}

/** Writes what passed. The own answer ends the stream, and so does a refusal in its place. */
export function writeVerdict(
  { call, writes }: Pick<Writing, 'call' | 'writes'>,
  verdict: Verdict,
  data: string,
  id: string | undefined,
): undefined | 'stop' {
  switch (verdict.kind) {
    case 'drop':
      return undefined;
    case 'refused':
      writeFailure(call, verdict.refusal, writes);
      return 'stop';
    case 'pass':
      writes.add(encodeSseMessage(verdict.text ?? data, { id }));
      return undefined;
    case 'own': {
      const text = verdict.text ?? data;
      noteResult(call, verdict, 200, text);
      writes.add(encodeSseMessage(text, { id }));
      return 'stop';
    }
  }
}

/** In a stream that has begun, a refusal is the last event (docs/contract.md §6). Whoever adds must flush. */
export function writeFailure(call: Call, refusal: Refusal, writes: GatheredWrites): void {
  if (isLeft(call, refusal)) return;
  noteRefusal(call, refusal);
  const rendered = renderRefusal(refusal, refusalContext(call));
  call.record.result.rpcCode = rendered.rpcCode;
  writes.add(encodeSseMessage(rendered.body));
}

/** What the record knows of an answer that passed. */
export function noteResult(
  call: Call,
  verdict: Extract<Verdict, { kind: 'own' }>,
  http: number,
  body: Body,
): void {
  const { result } = call.record;
  result.status = verdict.isError ? 'error' : 'ok';
  result.rpcCode = verdict.rpcCode;
  result.http = http;
  result.bytes += typeof body === 'string' ? Buffer.byteLength(body) : sizeOfBytes(body);
  // Lists are known by the pins that they show; what was read or called is known by its digest alone.
  const response = call.admitted?.rule.response;
  if (response === 'inspect' || response === 'task')
    result.digest = call.ports.keyedHash('result', inOnePiece(body));
}

/** Why a stream that ended in this way has no answer. */
export function reasonOfEnd(end: PumpEnd): Parameters<typeof refuseWith>[0] {
  switch (end) {
    case 'ended':
    case 'stopped':
      // The server closed, or was cut off, without its own answer.
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

/** Writes one event of a stream that nobody asked for: what its judge lets pass while the stream still stands. */
export async function writeUnasked(
  call: Call,
  event: SseEvent,
  checkUnsolicited: (data: string) => Promise<string | undefined>,
  { idOf, leave }: { readonly idOf: EventIds; readonly leave: AbortSignal },
): Promise<void> {
  const { outgoing } = call;
  if (event.kind !== 'message') return outgoing.write(upkeepOf(event));
  const id = idOf(event.id);
  if (event.data === '') {
    if (id !== undefined) await outgoing.write(encodeSsePriming(id));
    return;
  }
  const text = await checkUnsolicited(event.data);
  if (text !== undefined && !leave.aborted) await outgoing.write(encodeSseMessage(text, { id }));
}
