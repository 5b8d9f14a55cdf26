// THE STORY. One message, from the client's socket to the upstream and back. The order of the calls
// in `travel` is the security property: each station takes what the one before it made, so that the
// wrong order does not compile. A station answers with its value or with a refusal; an exception is a
// bug or an I/O fault and ends as a refusal too. Nothing else in the tree sends a client's message on.

import type { Ports } from './exchange-ports.js';
import { guardArguments } from './inspect/arguments.js';
import { admitPost } from './mcp/admit.js';
import type { Admitted } from './mcp/admitted.js';
import type { AdmittedArray } from './mcp/arrays.js';
import { checkCarried, checkParamHeaders } from './mcp/carried.js';
import { decodeParamHeaders } from './mcp/headers.js';
import type { JsonObject } from './mcp/message.js';
import type { Incoming, Outgoing, UpstreamAnswer } from './mcp/transport.js';
import { decideRequest } from './policy/decide.js';
import type { Allow } from './policy/decision.js';
import { grantsFor } from './policy/grants.js';
import { openRecord } from './policy/open-record.js';
import type { Principal } from './policy/principal.js';
import { type Refusal, refuseFault, refuseWith } from './policy/refusal.js';
import { relayAnswer } from './relay/answer.js';
import { relayArray } from './relay/array.js';
import { type Call, noteAdmitted, noteDecision, presentedToken, refuse } from './relay/call.js';
import { findMisplaced, openStream } from './relay/channel.js';
import { addressRequest } from './relay/channel-request.js';
import { endSession } from './relay/listen.js';
import { narrowListen } from './relay/narrow.js';
import { contentOf, openRetry } from './relay/retry.js';
import { asksForStream, relaySubscription } from './relay/subscription.js';
import { countWaits } from './relay/upstream-time.js';
import { type Cleared, settle } from './settle/settle.js';

/** Carries one request of a client through every control. Never rejects; answers and records once. */
export async function runExchange(
  incoming: Incoming,
  outgoing: Outgoing,
  ports: Ports,
): Promise<void> {
  const view = ports.view(incoming.upstream);
  if (view === undefined) return outgoing.send(404, {}, '');
  const call: Call = {
    incoming,
    outgoing,
    ports,
    record: openRecord(incoming),
    view,
    admitted: undefined,
  };
  // The versions it is decided under, whatever stands when it is written.
  call.record.versions = view.versions;
  try {
    const refusal = await travel(call);
    if (refusal !== undefined) refuse(call, refusal);
  } catch (error) {
    ports.report(error, incoming.id);
    refuse(call, refuseWith('internal'));
  } finally {
    ports.closeRecord(call.record);
  }
}

/** The order of the controls. */
async function travel(call: Call): Promise<Refusal | undefined> {
  const principal = await authenticate(call);
  if ('kind' in principal) return principal;
  if (call.incoming.httpMethod === 'GET') return openStream(call, principal);
  if (!takePlace(call.incoming)) return refuseWith('overloaded');
  if (call.incoming.httpMethod === 'DELETE') return endSession(call, principal);

  const admitted = admit(call, principal);
  if (admitted.kind === 'refused') return admitted;
  if (admitted.kind === 'array') return relayArray(call, admitted, runExchange);

  const allow = await decide(call, principal, admitted);
  if ('kind' in allow) return allow;

  const restored = restore(call, principal, admitted, allow);
  if (restored.kind === 'refused') return restored;

  const content = guard(call, restored);
  if (content !== undefined) return content;

  const cleared = await clear(call, allow, restored, principal);
  if ('kind' in cleared) return cleared;

  const unrecorded = await putOnRecord(call);
  if (unrecorded !== undefined) return unrecorded;

  const answer = await forward(call, cleared);
  if (answer.kind === 'refused') return answer;

  return relay(call, cleared, answer);
}

/** A stream waits for others; only exchanges take a place of the upstream's. */
function takePlace(incoming: Incoming): boolean {
  return asksForStream(incoming) || incoming.enter();
}

/** Who calls: a verified principal, or 401 and 503. */
async function authenticate(call: Call): Promise<Principal | Refusal> {
  const outcome = call.ports.authenticate(call.incoming);
  const principal = outcome instanceof Promise ? await outcome : outcome;
  if (outcome instanceof Promise) renewView(call);
  call.record.latency.auth = performance.now() - call.incoming.startedMs;
  if (typeof principal === 'string') return refuseWith(principal);
  call.record.principal = principal;
  return principal;
}

/** What was listed or reloaded during a wait counts: whether a view is fresh is told of now. */
function renewView(call: Call): void {
  call.view = call.ports.view(call.incoming.upstream) ?? call.view;
  call.record.versions = call.view.versions;
}

/** Whether it is valid protocol for an era that we police: one message, or 400 and 404. */
function admit(call: Call, principal: Principal): Admitted | AdmittedArray | Refusal {
  const { incoming, ports, view } = call;
  const { upstream } = incoming;
  const misplaced = findMisplaced(call);
  if (misplaced !== undefined) return refuseFault(misplaced);
  const outcome = admitPost({
    headers: incoming.headers,
    repeated: incoming.repeated,
    body: incoming.body,
    isChannel: incoming.channel === 'message',
    openSession: (sealed) => ports.openSession(sealed, upstream, principal),
    openQuestion: (id, session) => ports.openQuestion(id, { upstream, principal, session }),
    grants: () => grantsFor(view.policies, principal, view.upstream),
    supportedVersions: view.carried && [...view.carried.stateless, ...view.carried.sessions],
  });
  if (outcome.kind === 'fault') return refuseFault(outcome);
  if (outcome.kind === 'array') return outcome;
  call.admitted = outcome;
  noteAdmitted(call, outcome);
  return outcome;
}

/** Whether policy and pins allow it: pure, but for a listing that may have to be renewed first. */
async function decide(
  call: Call,
  principal: Principal,
  admitted: Admitted,
): Promise<Allow | Refusal> {
  const startedMs = performance.now();
  // The answer to a question belongs to what was asked for before.
  const asksForThing = admitted.rule.subject !== 'none' && admitted.rule.subject !== 'question';
  if (!call.view.isFresh && (asksForThing || call.view.carried === undefined)) {
    await call.ports.freshen(call.incoming.upstream);
    renewView(call);
  }
  const { policies, carried, isFresh } = call.view;
  const catalogue = call.view.catalogueFor(admitted.era);
  const mismatch = checkCarried(admitted, carried);
  if (mismatch !== undefined) return refuseFault(mismatch);
  const args = admitted.args ?? 'unknown';
  const decision = decideRequest(policies, {
    principal,
    upstream: catalogue.upstream,
    target: admitted.target,
    args,
    catalogue,
  });
  call.record.latency.policy = performance.now() - startedMs;
  noteDecision(call, decision);
  if (decision.verdict === 'deny') return { kind: 'refused', stage: 'decide', deny: decision };
  if (asksForThing && !isFresh) return refuseWith('pins-stale');
  const header = checkParamHeaders(admitted, catalogue);
  return header === undefined ? decision : refuseFault(header);
}

/** What the client carries for us is opened, what it may not listen to taken out; a channel's ids are sealed. */
function restore(
  call: Call,
  principal: Principal,
  admitted: Admitted,
  allow: Allow,
): Admitted | Refusal {
  if (admitted.era === '2024') return addressRequest(call, principal, admitted, allow);
  const isStream = admitted.rule.response === 'subscription';
  if (isStream && !call.ports.hasRoomForStream(call.incoming.upstream, principal))
    return refuseWith('overloaded');
  const restored = isStream
    ? narrowListen(call, principal, admitted)
    : openRetry(call, principal, admitted);
  if (restored.kind === 'admitted') call.admitted = restored;
  return restored;
}

/** Whether the content of the arguments may leave: no secret, and never the caller's own token. */
function guard(call: Call, admitted: Admitted): Refusal | undefined {
  const startedMs = performance.now();
  const { text } = admitted;
  const value = contentOf(admitted);
  const headers = decodeParamHeaders(admitted.paramHeaders);
  const refusal =
    guardContent(call, value, text) ??
    // A header that mirrors no argument goes along unread by anyone else.
    (headers === undefined ? undefined : guardContent(call, headers, JSON.stringify(headers)));
  call.record.latency.inspect += performance.now() - startedMs;
  return refusal;
}

function guardContent(call: Call, value: JsonObject, text: string): Refusal | undefined {
  const { profile } = call.view;
  const presented = presentedToken(call.incoming);
  const outcome = guardArguments({ value, text, profile, presentedToken: presented });
  call.record.findings.push(...outcome.findings);
  return outcome.kind === 'clear' ? undefined : refuseWith(outcome.reason);
}

/** Whether what the decision asks for besides is met: limits. */
async function clear(
  call: Call,
  allow: Allow,
  admitted: Admitted,
  principal: Principal,
): Promise<Cleared | Refusal> {
  const outcome = settle(allow, admitted, principal, { limits: call.ports.limits });
  const cleared = outcome instanceof Promise ? await outcome : outcome;
  return 'verdict' in cleared ? { kind: 'refused', stage: 'settle', deny: cleared } : cleared;
}

/** Whether the decision stands in the audit log: what cannot be recorded may not happen. */
async function putOnRecord(call: Call): Promise<Refusal | undefined> {
  call.record.decision.action = 'forwarded';
  if (await call.ports.recordDecision(call.record)) return undefined;
  call.record.decision.action = 'refused';
  return refuseWith('audit-unavailable');
}

/** The only way to an upstream. In 2026 a client that goes away cancels; in session eras it does not. */
async function forward(call: Call, cleared: Cleared): Promise<UpstreamAnswer | Refusal> {
  const startedMs = performance.now();
  const signal = cleared.admitted.era === '2026' ? call.incoming.signal : undefined;
  const outcome = await call.ports.forward(call.incoming.upstream, cleared, signal);
  call.record.latency.upstream = performance.now() - startedMs;
  return outcome.kind === 'fault' ? refuseWith(outcome.reason) : countWaits(call.record, outcome);
}

/** The way back: one answer, or the stream of a subscription. */
function relay(call: Call, cleared: Cleared, answer: UpstreamAnswer): Promise<Refusal | undefined> {
  return cleared.admitted.rule.response === 'subscription'
    ? relaySubscription(call, cleared, answer)
    : relayAnswer(call, cleared, answer);
}
