// The ids of events as a client sees them: the upstream's own, sealed with what the stream answers, so that
// whoever resumes is judged as if nothing had broken off. The stateless era has none.
// Source: MCP 2025-11-25, transports, resumability and redelivery.

import type { EventFacts, SessionFacts } from '../mcp/admitted.js';
import type { Principal } from '../policy/principal.js';
import type { ResponsePlan } from './answered.js';
import type { Call } from './call.js';
import { tokenOf } from './progress.js';

/** The id to write for an event of the upstream; `undefined` where it has none that can be resumed after. */
export type EventIds = (upstreamId: string | undefined) => string | undefined;

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
