// Watches the stream of an answer while it is open, and ends it when what it rests on is gone: the token,
// the rule, the upstream, or the request itself, which its client may cancel. Judges no message.
// Source: contract §3 (streams after a reload); MCP 2025-11-25, cancellation.

import { type AuthorizedRequest, responseObligationsOf } from '../policy/authorized-request.js';
import { decideRequest } from '../policy/decide.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import { encodeSseComment } from '../protocol/sse.js';
import type { Outgoing, UpstreamResponse } from '../protocol/transport.js';
import type { ResponsePlan } from './originating-request.js';
import { type Call, callerOf } from './request-context.js';
import type { ResponseCheck } from './response-pipeline.js';

// A stream of a client that lives on: kept alive, known to whoever announces and ends, and open no longer
// than the token that opened it is good. What is written on it is not decided here.
// Source: contract §3; MCP 2025-11-25 and 2026-07-28, transports (keep-alive by comments).

/** A client that takes nothing more holds its stream no longer than this after it was ended. */
const CUT_AFTER_MS = 1_000;
/** Longest wait of a timer in Node; a stream of a caller without token would ask for more. */
const MAX_TIMER_MS = 2_147_483_647;

/** How a stream is told of changes, and whose session it belongs to. */
type StreamRegistration = {
  readonly session: string | undefined;
  announce(method: string): void;
};

/**
 * Keeps an open stream alive and known while `run` lasts, then ends it. The signal is aborted when the
 * client leaves, the token ends, or the stream is told to end.
 */
export async function holdStream(
  call: Call,
  principal: Principal,
  { session, announce }: StreamRegistration,
  run: (leave: AbortSignal, end: () => void) => Promise<void>,
): Promise<void> {
  const { incoming, outgoing, ports, snapshot } = call;
  const leave = new AbortController();
  let cutting: NodeJS.Timeout | undefined;
  const end = (): void => {
    leave.abort();
    cutting ??= setTimeout(() => outgoing.cut(), CUT_AFTER_MS);
  };
  const alive = keepAlive(outgoing, snapshot.limits.keepAliveMs);
  const expiry = setTimeout(end, timerMs(principal.token.expiresAt - Date.now()));
  const { upstream, aggregate } = incoming;
  const stream = { upstream, aggregate, principal, session, announce, end };
  const unregister = ports.registerStream(stream);
  incoming.signal.addEventListener('abort', end, { once: true });
  try {
    if (ports.countVersions() !== call.since && (await isSessionEnded(call, session))) end();
    await run(leave.signal, end);
  } finally {
    unregister();
    alive.stop();
    clearTimeout(expiry);
    clearTimeout(cutting);
    outgoing.end();
  }
}

/** Whether caller, session or upstream went while the stream was being opened, when nobody knew of it. */
async function isSessionEnded(
  { incoming, outgoing, ports }: Call,
  session: string | undefined,
): Promise<boolean> {
  const { upstream } = incoming;
  const principal = await ports.authenticate({ ...incoming, isProofUsed: true }, outgoing);
  if ('reason' in principal || ports.snapshot(upstream) === undefined) return true;
  return session !== undefined && ports.openSession(session, upstream, principal) === undefined;
}

/** A stream that says by a comment that it lives, whenever it was silent for a while. */
type LivingStream = Pick<Outgoing, 'write'> & { stop(): void };

/**
 * Keeps a stream from being taken for dead by whoever stands between: a comment has no id, so nothing is
 * resumed after it. What is written by the stream that is returned counts as a sign of life.
 */
export function keepAlive(outgoing: Outgoing, everyMs: number): LivingStream {
  let isSilent = true;
  const timer = setInterval(() => {
    if (isSilent) void outgoing.write(encodeSseComment(''));
    isSilent = true;
  }, everyMs);
  return {
    write(bytes) {
      isSilent = false;
      return outgoing.write(bytes);
    },
    stop: () => clearInterval(timer),
  };
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}

/** A wait that a timer can hold. */
function timerMs(ms: number): number {
  return Math.max(0, Math.min(ms, MAX_TIMER_MS));
}

/** A stream that is open longer than this gets timers of its own. */
const TIMERS_AFTER_MS = 1_000;

/** Why a stream ended before its answer was complete. */
export type Gone = 'cancelled' | Refusal;

type OpenResponse = {
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
  if (isSessionClosed(call, authorized, authorized.principal)) end(refuseWith('unknown-session'));
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
  if (isSessionClosed(call, authorized, principal)) return refuseWith('unknown-session');
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

function isSessionClosed(
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
