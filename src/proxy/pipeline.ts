// The request pipeline: takes one message of a client to the upstream and its response back. The order of the
// calls in `runStages`, and in `authorize` for whatever is decided, is the security property: each stage takes
// what the previous one made, so the wrong order does not compile. A stage returns its value or a refusal; an
// exception is a bug or an I/O fault and also ends as a refusal. What a stage has learned is folded into the record here
// and in `authorize`. Nothing else in the source tree forwards a
// client's message.

import { refuseBlocked } from '../policy/blocks.js';
import { type Refusal, refuseWith } from '../policy/decision.js';
import type { AuthorizedRequest } from '../policy/obligations.js';
import { callerKeyOf, type Principal } from '../policy/principal.js';
import { noteExchange, openRecord } from '../policy/record.js';
import type { AdmittedMessage } from '../protocol/admitted-request.js';
import type { Capacity, Incoming, Outgoing, UpstreamResponse } from '../protocol/transport.js';
import { authorize, type Stages, take } from './authorization.js';
import { holdBody, joinCapacity, refuseOverLimit } from './capacity.js';
import { approvalAnsweredBy, holdForAnswer, mayHold, takeFormReply } from './features/approval-form.js';
import { runBatch } from './features/batch.js';
import { endSession } from './features/session-streams.js';
import { featuresOf, requestsSubscription } from './features/table.js';
import { openGetStream } from './legacy-sse/stream.js';
import type { AnyPort, Ports } from './ports.js';
import { refuse } from './refusals.js';
import { callerOf, claimId, type RequestContext } from './request-context.js';
import { measureWaits, relayResponse, sendNothing } from './response-forwarding.js';
import {
  admit,
  authenticate,
  type ClientMessage,
  type DecidedRequest,
  decideMessage,
  enforceObligations,
  inspectArguments,
  verifyAgain,
} from './stages.js';
import { notifyCancelled, startResponseWait } from './stream-lifetime.js';
import { beginTrace, carryTrace } from './trace.js';
import { endSessionOf } from './upstream-errors.js';

/** Takes one client request through every control. Never rejects; responds and closes the record exactly once. */
export async function handleRequest(incoming: Incoming, outgoing: Outgoing, ports: Ports): Promise<void> {
  const snapshot = ports.upstreams.snapshot(incoming.upstream);
  if (snapshot === undefined) return outgoing.send(404, {}, '');
  const call: RequestContext<AnyPort> = {
    incoming,
    outgoing,
    ports,
    record: openRecord(incoming, snapshot.versions),
    changesAtStart: ports.leases.countChanges(),
    snapshot,
    callerKey: undefined,
    admitted: undefined,
    featuresOf,
    features: [],
  };
  if (snapshot.tracing !== undefined) beginTrace(call, snapshot.tracing);
  try {
    const refusal = await runStages(call);
    if (refusal !== undefined) refuse(call, refusal);
  } catch (error) {
    ports.audit.report(error, incoming.id, call.record.trace);
    refuse(call, refuseWith('internal'));
  } finally {
    call.releaseId?.();
    call.wait?.end();
    call.progress?.end();
    call.stream?.release();
    call.leaveStream?.();
    ports.audit.closeRecord(call.record, hasClientLeft(call));
  }
}

/**
 * Whether the connection ended before the whole answer was written, by the client's doing. It may end the stream of a GET
 * once that has begun.
 */
function hasClientLeft({ incoming, record }: RequestContext): boolean {
  const { httpMethod, signal, shutdown } = incoming;
  const mayLeave = httpMethod === 'GET' && record.result.http !== 0;
  return !mayLeave && shutdown?.isCut !== true && signal.aborted;
}

/** Runs the controls in order. INVARIANT: the order of the stages must not change. */
async function runStages(call: RequestContext<AnyPort>): Promise<Refusal | undefined> {
  // An await costs a turn of the microtask queue, and a warm call waits for neither.
  const authenticated = authenticate(call);
  const principal = take(call, authenticated instanceof Promise ? await authenticated : authenticated);
  if ('kind' in principal) return principal;
  const { block } = call.snapshot;
  if (block !== undefined) return refuseBlocked(block);
  const caller = callerKeyOf(principal);
  call.callerKey = caller;
  if (call.incoming.httpMethod === 'GET') return openGetStream(call, principal);
  const capacity = takeCapacity(call.incoming, caller);
  if (capacity === undefined) return refuseWith('overloaded');
  if (call.incoming.httpMethod === 'DELETE') return endSession(call, principal);

  const read = admit(call, principal);
  const admitted = take(call, read instanceof Promise ? await read : read);
  if (admitted.kind === 'refused') return admitted;
  const overLimit = refuseOverLimit(capacity, admitted);
  if (overLimit !== undefined) return overLimit;
  if (admitted.kind === 'array') return runBatch(call, admitted, handleRequest);
  const inFlight = claimId(call, caller, admitted);
  if (inFlight !== undefined) return inFlight;

  return admitted.serverRequestId === undefined
    ? authorizeAndForward(call, principal, admitted)
    : takeReply(call, principal, admitted);
}

/** A reply is for the server that asked, or for the gateway. */
function takeReply(
  call: RequestContext<AnyPort>,
  principal: Principal,
  admitted: AdmittedMessage,
): Promise<Refusal | undefined> {
  const approval = approvalAnsweredBy(admitted);
  return approval === undefined
    ? authorizeAndForward(call, principal, admitted)
    : takeFormReply(call, principal, admitted, approval);
}

async function authorizeAndForward(
  call: RequestContext<AnyPort>,
  principal: Principal,
  admitted: AdmittedMessage,
): Promise<Refusal | undefined> {
  const authorized = await authorize(call, CLIENT_MESSAGE, { call, principal, admitted });
  if (!('kind' in authorized)) return await exchange(call, authorized);
  return mayHold(authorized, admitted) ? holdThenForward(call, principal, admitted, authorized) : authorized;
}

/** Waits for the answer to a form, and then decides the call anew as a whole, as if it had just come. */
async function holdThenForward(
  call: RequestContext<AnyPort>,
  principal: Principal,
  admitted: AdmittedMessage,
  refusal: Refusal,
): Promise<Refusal | undefined> {
  const { ask } = refusal.deny;
  const held = ask === undefined ? 'crowded' : await holdForAnswer(call, principal, admitted, ask);
  // Where nobody waits for the call any more, no yes is used up for it.
  if (held !== 'answered') return refusal;
  call.hasWaited = true;
  const verified = take(call, await verifyAgain(call, admitted));
  if ('kind' in verified) return verified;
  const capacity = call.incoming.acquireSlot(callerKeyOf(verified));
  if (capacity !== 'regular') return refuseWith('overloaded');
  const authorized = await authorize(call, CLIENT_MESSAGE, { call, principal: verified, admitted });
  return 'kind' in authorized ? authorized : exchange(call, authorized);
}

/** Forwards the message and relays its response. What its client has cancelled meanwhile gets none. */
async function exchange(call: RequestContext<AnyPort>, authorized: AuthorizedRequest): Promise<Refusal | undefined> {
  const response = await forward(call, authorized);
  const refusal = response.kind === 'refused' ? response : await relay(call, authorized, response);
  if (refusal?.deny.reason === 'upstream-timeout') cancel(call, authorized);
  return refusal !== undefined && call.wait?.isCancelled === true ? sendNothing(call) : refusal;
}

/**
 * A party that stops waiting for a response must send a cancellation (MCP 2025-11-25, lifecycle, timeouts). If a
 * feature relays the response itself, it waits elsewhere or under another id.
 */
function cancel(call: RequestContext<'upstreams'>, authorized: AuthorizedRequest): void {
  if (call.features.every(({ relay }) => relay === undefined)) notifyCancelled(call, authorized);
}

/** How a client's message is decided: decision, request inspection, limits. */
const CLIENT_MESSAGE: Stages<ClientMessage, DecidedRequest, DecidedRequest, AuthorizedRequest> = {
  decide: decideMessage,
  inspect: inspectArguments,
  enforce: enforceObligations,
};

/** Long-lived streams take no concurrency slot of the upstream; every other request does. */
function takeCapacity(incoming: Incoming, caller: string): Capacity | undefined {
  const body = holdBody(incoming, caller);
  if (body === undefined || requestsSubscription(incoming)) return body;
  return joinCapacity(body, incoming.acquireSlot(caller));
}

/**
 * The only way to an upstream. Whether a client that disconnects cancels its request depends on its version;
 * with legacy SSE the end of its stream does.
 */
async function forward(
  call: RequestContext<AnyPort>,
  authorized: AuthorizedRequest,
): Promise<UpstreamResponse | Refusal> {
  const { admitted } = authorized;
  const startedMs = performance.now();
  const { upstream } = call.incoming;
  let signal = admitted.protocol.disconnectCancels ? call.incoming.signal : undefined;
  for (const { begin } of call.features) signal = begin?.(call, authorized) ?? signal;
  call.wait = startResponseWait(call, signal);
  signal = call.wait?.signal ?? signal;
  const caller = callerOf(call, authorized.principal);
  const reopensSession = call.incoming.aggregate !== undefined;
  const sent = call.record.trace === undefined ? authorized : carryTrace(call.record, authorized);
  const outbound = { authorized: sent, caller, signal, reopensSession };
  const outcome = await call.ports.upstreams.forward(upstream, outbound);
  noteExchange(call.record, startedMs, performance.now() - startedMs);
  if (outcome.kind !== 'error') return measureWaits(call.record, outcome);
  const { reason, detail, isUnsent } = outcome;
  const isTimeout = reason === 'upstream-timeout';
  const isOfUpstream = isTimeout || reason === 'upstream-unavailable';
  // What its client has given up says nothing of the upstream.
  if (isOfUpstream && call.wait?.isCancelled !== true && signal?.aborted !== true)
    call.ports.upstreams.noteUnavailable(upstream, isTimeout);
  return reason === 'unknown-session'
    ? endSessionOf(call, 'the upstream no longer speaks the revision of this session')
    : refuseWith(reason, { detail, ...(isUnsent && { isUnsent: true }) });
}

/** Relays the response to the client, as its features require or as a plain one. */
function relay(
  call: RequestContext<AnyPort>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Refusal | undefined | Promise<Refusal | undefined> {
  for (const feature of call.features)
    if (feature.relay !== undefined) return feature.relay(call, authorized, response);
  return relayResponse(call, authorized, response);
}
