// THE STORY. One message, from the client's socket to the upstream and back. The order of the calls
// in `travel` is the security property: each station takes what the one before it made, so that the
// wrong order does not compile. A station answers with its value or with a refusal; an exception is a
// bug or an I/O fault and ends as a refusal too. Nothing else in the tree sends a client's message on.

import type { Ports } from './exchange-ports.js';
import type { Incoming, Outgoing, UpstreamAnswer } from './mcp/transport.js';
import { openRecord } from './policy/open-record.js';
import { type Refusal, refuseWith } from './policy/refusal.js';
import { relayAnswer } from './relay/answer.js';
import { relayArray } from './relay/array.js';
import { type Call, callerOf, refuse } from './relay/call.js';
import { openStream } from './relay/channel.js';
import { moveToChannel } from './relay/channel-outgoing.js';
import { endSession } from './relay/listen.js';
import { followProgress } from './relay/progress.js';
import {
  admit,
  authenticate,
  clear,
  decide,
  guard,
  putOnRecord,
  restore,
} from './relay/stations.js';
import { asksForStream, relaySubscription } from './relay/subscription.js';
import { countWaits } from './relay/upstream-time.js';
import type { Cleared } from './settle/settle.js';

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
    since: ports.countVersions(),
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
    call.progress?.end();
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

  const admitted = await admit(call, principal);
  if (admitted.kind === 'refused') return admitted;
  if (admitted.kind === 'array') return relayArray(call, admitted, runExchange);

  const allow = await decide(call, principal, admitted);
  if ('kind' in allow) return allow;

  const restored = restore(call, principal, admitted, allow);
  if (restored.kind === 'refused') return restored;

  const standing = await guard(call, admitted, { principal, allow, restored });
  if ('kind' in standing) return standing;

  const cleared = await clear(call, standing);
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

/** The only way to an upstream. In 2026 a client that goes away cancels; in sessions the end of a channel alone does. */
async function forward(call: Call, cleared: Cleared): Promise<UpstreamAnswer | Refusal> {
  const { admitted } = cleared;
  const startedMs = performance.now();
  const onChannel = moveToChannel(call, admitted);
  const signal = admitted.era === '2026' ? call.incoming.signal : onChannel;
  call.progress = followProgress(call, admitted);
  const { upstream } = call.incoming;
  const outcome = await call.ports.forward(upstream, cleared, callerOf(call), signal);
  call.record.latency.upstream = performance.now() - startedMs;
  return outcome.kind === 'fault' ? refuseWith(outcome.reason) : countWaits(call.record, outcome);
}

/** The way back: one answer, or the stream of a subscription. */
function relay(call: Call, cleared: Cleared, answer: UpstreamAnswer): Promise<Refusal | undefined> {
  return cleared.admitted.rule.response === 'subscription'
    ? relaySubscription(call, cleared, answer)
    : relayAnswer(call, cleared, answer);
}
