// Watches the stream of an answer while it is open, and ends it when what it rests on is gone: the token,
// the rule, the upstream, or the request itself, which its client may cancel. Judges no message.
// Source: contract §3 (streams after a reload); MCP 2025-11-25, cancellation.

import type { UpstreamResponse } from '../mcp/transport.js';
import { decideRequest } from '../policy/decide.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import { type AuthorizedRequest, responseObligationsOf } from '../settle/settle.js';
import type { ResponsePlan } from './answered.js';
import { type Call, callerOf } from './call.js';
import { CUT_AFTER_MS, timerMs } from './held-stream.js';
import type { ResponseCheck } from './judge.js';

/** A stream that is open longer than this gets timers of its own. */
const TIMERS_AFTER_MS = 1_000;

/** Why a stream ended before its answer was complete. */
export type Gone = 'cancelled' | Refusal;

export type OpenResponse = {
  gone(): Gone | undefined;
  /** The stream has ended; nothing is watched any more. */
  close(): void;
};

/** Watches the stream of `answer` until `close`. */
export function watchResponse(
  call: Call,
  authorized: AuthorizedRequest,
  {
    answer: response,
    judge: responseCheck,
  }: { readonly answer: UpstreamResponse; readonly judge: ResponseCheck },
): OpenResponse {
  const { ports, incoming, outgoing } = call;
  let gone: Gone | undefined;
  let cutting: NodeJS.Timeout | undefined;

  function end(why: Gone): void {
    if (gone !== undefined) return;
    gone = why;
    response.abort();
    cutting = setTimeout(() => outgoing.cut(), CUT_AFTER_MS);
  }

  const leave = registerOpenResponse(call, () => end('cancelled'));
  const expiresAt = authorized.principal.token.expiresAt;
  let expiry: NodeJS.Timeout | undefined;
  let late: NodeJS.Timeout | undefined;
  function startTimers(): void {
    expiry = setTimeout(() => end(refuseWith('token-expired')), timerMs(expiresAt - Date.now()));
    late = setTimeout(() => {
      end(refuseWith('upstream-timeout'));
      notifyCancelled(call, authorized);
    }, timeLeftMs(call));
  }
  // Most answers are over long before either is due; timers of many lengths cost more than many of one.
  const soonestMs = Math.min(timerMs(expiresAt - Date.now()), timeLeftMs(call));
  const start = setTimeout(startTimers, Math.min(soonestMs, TIMERS_AFTER_MS));
  function revalidateAgain(): void {
    revalidate(call, authorized, responseCheck).then(
      (refusal) => refusal !== undefined && end(refusal),
      (error: unknown) => {
        ports.report(error, incoming.id);
        end(refuseWith('internal'));
      },
    );
  }
  const forget = ports.onVersion(revalidateAgain);
  // The upstream took its time to begin; meanwhile somebody may have been revoked, or the session ended.
  if (ports.countVersions() !== call.since) revalidateAgain();
  if (isOver(call, authorized, authorized.principal)) end(refuseWith('unknown-session'));
  return {
    gone: () => gone,
    close() {
      leave();
      forget();
      clearTimeout(start);
      clearTimeout(expiry);
      clearTimeout(late);
      clearTimeout(cutting);
    },
  };
}

/** What is left of the time that an exchange may take, whatever it is told meanwhile. */
export function timeLeftMs({ incoming, snapshot, requestedAt }: Call): number {
  const spentMs =
    requestedAt === undefined ? performance.now() - incoming.startedMs : Date.now() - requestedAt;
  return timerMs(snapshot.limits.exchangeMaxMs - spentMs);
}

/** A connection that closes cancels nothing in a session; a notice does (MCP 2025-11-25, cancellation). */
export function notifyCancelled(call: Call, { admitted }: ResponsePlan): void {
  const { incoming, ports } = call;
  const { message, session } = admitted;
  if (session === undefined || message.kind !== 'request') return;
  ports.giveUp(incoming.upstream, { session, id: message.id, by: callerOf(call) });
}

/** Asks again, under the version that now stands, who calls and whether they may; why not, if so. */
async function revalidate(
  call: Call,
  authorized: AuthorizedRequest,
  responseCheck: ResponseCheck,
): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports } = call;
  const { admitted } = authorized;
  const { target, task, args = 'unknown' } = admitted;
  const principal = await ports.authenticate({ ...incoming, isProofUsed: true }, outgoing);
  if ('reason' in principal) return refuseWith(principal.reason);
  if (isOver(call, authorized, principal)) return refuseWith('unknown-session');
  const snapshot = ports.snapshot(incoming.upstream);
  if (snapshot === undefined) return refuseWith('upstream-unavailable');
  const catalogue = snapshot.catalogueFor(admitted);
  const { upstream } = catalogue;
  const decision = decideRequest(snapshot.policies, {
    principal,
    upstream,
    target,
    args,
    catalogue,
  });
  if (decision.verdict === 'deny') return { kind: 'refused', stage: 'decide', deny: decision };
  call.snapshot = snapshot;
  responseCheck.setObligations(responseObligationsOf(decision, task));
  return undefined;
}

function isOver(
  { incoming, ports }: Call,
  { admitted }: AuthorizedRequest,
  principal: Principal,
): boolean {
  const sealed = incoming.headers['mcp-session-id'];
  if (admitted.session === undefined || sealed === undefined) return false;
  return ports.openSession(sealed, incoming.upstream, principal) === undefined;
}

function registerOpenResponse({ admitted, incoming, ports }: Call, end: () => void): () => void {
  const session = incoming.headers['mcp-session-id'];
  if (session === undefined || admitted?.message.kind !== 'request') return () => undefined;
  return ports.registerResponse(session, admitted.message.id, end);
}
