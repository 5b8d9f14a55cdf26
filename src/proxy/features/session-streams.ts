// Session streams and the end of sessions (session era): the GET stream for unsolicited messages, streams that
// are resumed, and DELETE. The same controls apply as for a POST: authentication, protocol checks, record; every
// message is checked when it arrives.
// Source: MCP 2025-11-25, transports, listening for messages from the server and session management.

import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/decision.js';
import type { OutboundStream } from '../../policy/obligations.js';
import { callerKeyOf, type Principal } from '../../policy/principal.js';
import { fold, type RecordFacts, type Staged } from '../../policy/record.js';
import { admitSessionEnd, admitStreamOpen } from '../../protocol/admission.js';
import { NO_SESSION_ID, namesUpstreamSession, type SessionFacts } from '../../protocol/admitted-request.js';
import { acceptsEventStream } from '../../protocol/headers.js';
import { runInTurns } from '../../protocol/json/incremental.js';
import { notAcceptable } from '../../protocol/responses.js';
import { encodeSseMessage, isEventStream, isExcess } from '../../protocol/sse.js';
import { type ForwardOutcome, onAbort, type UpstreamResponse } from '../../protocol/transport.js';
import { errorOfStatus } from '../../protocol/upstream-status.js';
import { protocolOfSession } from '../../protocol/versions/negotiation.js';
import { describeStatus } from '../../text/clause.js';
import { type AccessLease, type Grant, startTimer } from '../access-lease.js';
import { authorize, decideTarget, enforceStreamQuota, passThrough, type Stages } from '../authorization.js';
import { turnsOf } from '../message-reading.js';
import { refusalFacts, targetFacts } from '../record-facts.js';
import { callerOf, newestSnapshot, type RequestContext, type VerifiedCall } from '../request-context.js';
import { type ResponsePlan, resumeResponsePlan } from '../response-context.js';
import { createResponseCheck, type ResponseCheck } from '../response-pipeline.js';
import {
  createGatheredWrites,
  refuseEnd,
  responseEventIds,
  sessionEventIds,
  writeEvents,
  writeFailure,
  writeUnsolicited,
} from '../sse-response.js';
import {
  aborted,
  grantOfResponse,
  keepStreamOpen,
  notifyCancelled,
  type RelayPorts,
  registerOpenResponse,
  relayHeldStream,
  type StreamTerms,
  timeLeftMs,
} from '../stream-lifetime.js';
import { endSessionOf } from '../upstream-errors.js';
import { createUnsolicitedCheck } from '../upstream-messages.js';

/** Statuses that say that there is no such route, and nothing of the session. */
const NO_STREAM: ReadonlySet<number> = new Set([405, 501]);
const CLIENT_ERROR = 400;
const SERVER_ERROR = 500;

/** The resources that the rules in force when it is asked let the caller read in this session, decided in turns. */
export function resourcesOf(
  call: RequestContext<'inspection' | 'upstreams'>,
  principal: Principal,
  { version, apps = false }: SessionFacts,
): OutboundStream['readableOf'] {
  const client = { protocol: protocolOfSession(version), apps };
  return async (uris) => {
    const readable: string[] = [];
    await runInTurns(turnsOf(call), uris, (uri) => {
      const target = { kind: 'resource', uri } as const;
      const decision = decideTarget(newestSnapshot(call), principal, client, { target });
      if (decision.verdict === 'allow') readable.push(uri);
    });
    return readable;
  };
}

function sessionOpener(
  call: RequestContext<'sessions'>,
  principal: Principal,
): (sealed: string) => SessionFacts | undefined {
  return (sealed) => call.ports.sessions.open(sealed, call.incoming.upstream, principal);
}

/** A stream, or the end of a session. */
export function sessionFacts({ version, hash }: SessionFacts, receivedMethod: string): RecordFacts {
  return {
    client: { era: protocolOfSession(version).era, version, session: hash },
    target: { receivedMethod },
    decision: { verdict: 'allow', stage: 'record' },
  };
}

/**
 * Opens a stream of a session, its own or one that is resumed after an event, and keeps it open until either
 * side leaves, the awaited response has passed, or its access lease ends.
 */
export async function openSessionStream(
  call: RequestContext<RelayPorts>,
  principal: Principal,
): Promise<Refusal | undefined> {
  const { incoming, ports } = call;
  const stream = await authorize(call, SESSION_STREAM, { call, principal });
  if ('kind' in stream) return stream;
  const { session, resumed, lastEventId } = stream;
  const outcome = await ports.upstreams.openStream(incoming.upstream, {
    session,
    caller: callerOf(call, principal),
    signal: incoming.signal,
    lastEventId,
    reopensSession: incoming.aggregate !== undefined,
    readableOf: resourcesOf(call, principal, session),
  });
  const refusal = await refusalOf(stream, outcome, resumed !== undefined);
  return refusal ?? serve(stream, outcome);
}

/** Serves the stream, or the gateway's own announcements where the upstream offers none. */
async function serve(stream: OpenedStream, outcome: ForwardOutcome): Promise<Refusal | undefined> {
  const { call, principal, resumed } = stream;
  const { incoming, outgoing } = call;
  const streamTerms: StreamTerms = {
    principal,
    session: incoming.headers['mcp-session-id'],
    grant: resumed?.grant,
    // Notifications about the session go to its own stream and no other.
    announce(method) {
      if (resumed !== undefined) return;
      void outgoing.write(encodeSseMessage(JSON.stringify({ jsonrpc: '2.0', method })));
    },
  };
  const isStream = outcome.kind === 'response' && isEventStream(outcome);
  const ended = await keepStreamOpen(call, streamTerms, (endSignal, lease) =>
    isStream ? relaySessionStream(stream, outcome, endSignal, lease) : aborted(endSignal),
  );
  if (ended !== undefined && isStream) outcome.abort();
  return ended;
}

/** Content is inspected message by message once the stream is open. */
const SESSION_STREAM: Stages<VerifiedCall<RelayPorts>, OpenedStream> = {
  decide: admitStream,
  inspect: passThrough,
  enforce: enforceStreamQuota,
};

/** A stream belongs to a session of this caller; one that is resumed, to a response that it may still see. */
function admitStream({ call, principal }: VerifiedCall<RelayPorts>): Staged<OpenedStream> {
  const { incoming, ports } = call;
  const admitted = admitStreamOpen({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: sessionOpener(call, principal),
    openEvent: (id, session) => ports.sessions.events.open(id, { upstream: incoming.upstream, principal, session }),
  });
  if (admitted.kind === 'error') return { outcome: refuseProtocolError(admitted) };
  if (!acceptsEventStream(incoming.headers)) return { outcome: refuseProtocolError(notAcceptable({})) };
  const { session, resumed: event } = admitted;
  const facts = [sessionFacts(session, 'GET')];
  const lastEventId = event?.upstreamId;
  if (event?.request === undefined)
    return { outcome: { call, principal, session, resumed: undefined, lastEventId }, facts };
  const responsePlan = resumeResponsePlan(event.request, session, principal, (id) =>
    ports.tasks.open(id, { upstream: incoming.upstream, principal }),
  );
  const resumed = responsePlan && resume(call, responsePlan);
  if (resumed === undefined) return { outcome: refuseWith('unknown-session'), facts };
  const refusal = resumed.grant(call.snapshot, principal);
  if (refusal !== undefined) return { outcome: refusal, facts };
  // The stream carries the response to the original request.
  call.requestedAt = event.requestedAt;
  call.admitted = resumed.plan.admitted;
  return {
    outcome: { call, principal, session, resumed, lastEventId },
    facts: [...facts, { target: targetFacts(resumed.plan.admitted) }],
  };
}

/** The response on a resumed stream: to a caller who may not have it any more, the stream does not exist. */
function resume(call: RequestContext<RelayPorts>, plan: ResponsePlan): ResumedResponse {
  const check = createResponseCheck(call, plan, NO_SESSION_ID);
  const grant = grantOfResponse(call, plan, check);
  return {
    plan,
    check,
    grant: (snapshot, principal) =>
      grant(snapshot, principal) === undefined ? undefined : refuseWith('unknown-session'),
  };
}

type ResumedResponse = {
  readonly plan: ResponsePlan;
  readonly check: ResponseCheck;
  readonly grant: Grant;
};

type OpenedStream = VerifiedCall<RelayPorts> & {
  readonly session: SessionFacts;
  /** The response on a resumed stream; `undefined` for the session's own stream. */
  readonly resumed: ResumedResponse | undefined;
  /** The upstream's own event id, if a stream is resumed after it. */
  readonly lastEventId: string | undefined;
};

/**
 * A server without a stream is no reason to refuse one: the gateway announces drift on it. Servers without a route for
 * GET say so by 405, by 404 or otherwise, so a session is lost only if a ping in it fails too.
 */
async function refusalOf(
  { call, principal, session }: OpenedStream,
  outcome: ForwardOutcome,
  isResponse: boolean,
): Promise<Refusal | undefined> {
  if (outcome.kind === 'error') return refuseWith(outcome.reason, { detail: outcome.detail });
  if (isEventStream(outcome)) return undefined;
  outcome.release();
  const detail = describeStatus(outcome, 'GET');
  const { status } = outcome;
  if (status < CLIENT_ERROR) return refuseWith('upstream-protocol', { detail });
  const hasNoStream = NO_STREAM.has(status);
  const reason = status >= SERVER_ERROR && !hasNoStream ? 'upstream-unavailable' : errorOfStatus(status);
  if (reason !== undefined) return refuseWith(reason, { detail });
  const isAlive =
    hasNoStream ||
    !namesUpstreamSession(session) ||
    (await call.ports.upstreams.pingSession(call.incoming.upstream, session, callerOf(call, principal)));
  if (!isAlive) return endSessionOf(call, detail);
  return isResponse ? refuseWith('upstream-protocol', { detail }) : undefined;
}

async function relaySessionStream(
  { call, principal, session, resumed }: OpenedStream,
  response: UpstreamResponse,
  ended: AbortSignal,
  lease: AccessLease,
): Promise<void> {
  if (resumed !== undefined) return relayResumed(call, resumed, response, { endSignal: ended, lease });
  const checkUnsolicited = createUnsolicitedCheck(call, principal, session);
  const idOf = sessionEventIds(call, principal, session);
  const end = await relayHeldStream(call, response, { ended }, (event) =>
    writeUnsolicited(call, event, checkUnsolicited, { idOf, endSignal: ended }),
  );
  if (isExcess(end) && !ended.aborted) fold(call.record, refusalFacts(call.record, refuseEnd(call, end)));
}

/** Relays the rest of a response, checked like its beginning, until the caller may no longer see it. */
async function relayResumed(
  call: RequestContext<RelayPorts>,
  { plan: responsePlan, check: responseCheck }: ResumedResponse,
  response: UpstreamResponse,
  { endSignal, lease }: { readonly endSignal: AbortSignal; readonly lease: AccessLease },
): Promise<void> {
  onAbort(endSignal, () => response.abort());
  const writes = createGatheredWrites(call.outgoing);
  let ended: 'late' | 'cancelled' | undefined;
  const unregister = registerOpenResponse(call, () => {
    ended ??= 'cancelled';
    response.abort();
  });
  const stopTimer = startTimer(timeLeftMs(call), () => {
    ended ??= 'late';
    response.abort();
    if (!writes.hasResponse) notifyCancelled(call, responsePlan);
  });
  const idOf = responseEventIds(call, responsePlan);
  // Each message is checked under the version and the catalog now in force, by what the lease grants.
  const mustEnd = (): boolean => ended !== undefined || endSignal.aborted || lease.check() !== undefined;
  const writing = { call, responseCheck, idOf, writes, mustEnd, isResumable: true };
  const end = await writeEvents(response, writing).finally(() => {
    stopTimer();
    unregister();
  });
  // A cancelled request gets no response (MCP 2025-11-25, cancellation).
  const isOver = end === 'stopped' || end === 'resumable' || endSignal.aborted || ended === 'cancelled';
  if (ended === 'late') writeFailure(call, refuseWith('upstream-timeout'), writes);
  else if (!isOver) writeFailure(call, refuseEnd(call, end), writes);
  if (end === 'upstream-timeout' && ended === undefined) notifyCancelled(call, responsePlan);
  await writes.flush();
}

const SESSION_END: Stages<VerifiedCall<'sessions'>, SessionFacts> = {
  decide: admitEnd,
  inspect: passThrough,
  enforce: passThrough,
};

function admitEnd({ call, principal }: VerifiedCall<'sessions'>): Staged<SessionFacts> {
  const { headers, repeated } = call.incoming;
  const openSession = sessionOpener(call, principal);
  const admitted = admitSessionEnd({ headers, repeated, openSession });
  if (admitted.kind === 'error') return { outcome: refuseProtocolError(admitted) };
  return { outcome: admitted.session, facts: [sessionFacts(admitted.session, 'DELETE')] };
}

/** Ends a session for its owner. For any other caller the id is unknown. */
export async function endSession(
  call: RequestContext<'audit' | 'sessions' | 'upstreams'>,
  principal: Principal,
): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record } = call;
  const session = await authorize(call, SESSION_END, { call, principal });
  if ('kind' in session) return session;
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed !== undefined) ports.sessions.end(sealed, callerKeyOf(principal));
  const outcome = await ports.upstreams.endSession(incoming.upstream, session, callerOf(call, principal));
  if (outcome.kind === 'response') outcome.release();
  // The session has ended here, whatever the upstream does: it may answer 405, or not at all.
  fold(record, { result: { status: 'ok', http: 204 } });
  outgoing.send(204, {}, '');
  return undefined;
}
