// Bounds the lifetime of open streams. A stream ends when its token, the rule that allowed it, its session or
// its upstream goes away, or when the client cancels the request. Checks no message and decides nothing that is
// written.
// Source: docs/contract.md §3 (streams after a reload); MCP 2025-11-25, cancellation; MCP 2025-11-25 and
// 2026-07-28, transports (keep-alive by comments).

import { type AuthorizedRequest, responseObligationsOf } from '../policy/authorized-request.js';
import { decideRequest } from '../policy/decide.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import { encodeSseComment } from '../protocol/sse.js';
import type { Outgoing, UpstreamResponse } from '../protocol/transport.js';
import { onAbort } from '../protocol/transport.js';
import type { ResponsePlan } from './originating-request.js';
import { callerOf, type RequestContext } from './request-context.js';
import type { ResponseCheck } from './response-pipeline.js';

/** How long a stream may stay open after it was ended if its client reads nothing more. */
const CUT_AFTER_MS = 1_000;
/** The longest timer that Node supports; the expiry of a caller without a token lies beyond it. */
const MAX_TIMER_MS = 2_147_483_647;

/**
 * Counts a stream towards its caller's quota before anything is waited for, so that streams which are opened at the
 * same time cannot exceed it. It counts until the request ends.
 */
export function reserveStream(call: RequestContext, principal: Principal): Refusal | undefined {
  call.stream = call.ports.reserveStream(call.incoming.upstream, principal);
  return call.stream === undefined ? refuseWith('overloaded') : undefined;
}

/** How a stream receives list changes, and the sealed id of the session it belongs to. */
type StreamRegistration = {
  readonly session: string | undefined;
  announce(method: string): void;
};

/**
 * Keeps an open stream alive and registered while `run` lasts, then ends it. The signal is aborted when the
 * client disconnects, the token expires, or the registry ends the stream.
 */
export async function keepStreamOpen(
  call: RequestContext,
  principal: Principal,
  { session, announce }: StreamRegistration,
  run: (ended: AbortSignal, end: () => void) => Promise<void>,
): Promise<void> {
  const { incoming, outgoing, ports, snapshot, stream } = call;
  if (stream === undefined) throw new Error('a stream is counted before it is opened');
  const leave = new AbortController();
  let cutTimer: NodeJS.Timeout | undefined;
  const end = (): void => {
    leave.abort();
    cutTimer ??= setTimeout(() => outgoing.cut(), CUT_AFTER_MS);
  };
  const alive = keepAlive(outgoing, snapshot.limits.keepAliveMs);
  const expiry = setTimeout(end, timerMs(principal.token.expiresAt - Date.now()));
  const { upstream, aggregate } = incoming;
  stream.open({ upstream, aggregate, principal, session, announce, end });
  onAbort(incoming.signal, end);
  try {
    if (ports.countVersions() !== call.since && (await hasAccessEnded(call, session))) end();
    await run(leave.signal, end);
  } finally {
    stream.release();
    alive.stop();
    clearTimeout(expiry);
    clearTimeout(cutTimer);
    outgoing.end();
  }
}

/** Whether the caller, session or upstream was removed while the stream was being opened and not yet registered. */
async function hasAccessEnded(
  { incoming, outgoing, ports }: RequestContext,
  session: string | undefined,
): Promise<boolean> {
  const { upstream } = incoming;
  const principal = await ports.authenticate({ ...incoming, isProofUsed: true }, outgoing);
  if ('reason' in principal || ports.snapshot(upstream) === undefined) return true;
  return session !== undefined && ports.openSession(session, upstream, principal) === undefined;
}

/** A stream that writes a comment whenever nothing else was written for a while. */
type KeepAliveStream = Pick<Outgoing, 'write'> & { stop(): void };

/**
 * Keeps intermediaries from closing an idle stream. A comment has no id, so no client resumes after it. What is
 * written through the returned stream counts as activity.
 */
export function keepAlive(outgoing: Outgoing, everyMs: number): KeepAliveStream {
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

/** Clamps a delay, in milliseconds, to what a timer supports. */
function timerMs(ms: number): number {
  return Math.max(0, Math.min(ms, MAX_TIMER_MS));
}

/** A stream that is open for longer than this gets its own timers. */
const TIMERS_AFTER_MS = 1_000;

/** Why a stream ended before its response was complete. */
export type StreamEndReason = 'cancelled' | Refusal;

type ResponseWatch = {
  gone(): StreamEndReason | undefined;
  /** Stops watching, once the stream has ended. */
  close(): void;
};

/** Watches the stream of a response until `close`, and aborts it when it may no longer continue. */
export function watchResponse(
  call: RequestContext,
  authorized: AuthorizedRequest,
  {
    response,
    responseCheck,
  }: { readonly response: UpstreamResponse; readonly responseCheck: ResponseCheck },
): ResponseWatch {
  const { ports, incoming, outgoing } = call;
  let gone: StreamEndReason | undefined;
  let cutting: NodeJS.Timeout | undefined;

  function end(why: StreamEndReason): void {
    if (gone !== undefined) return;
    gone = why;
    response.abort();
    cutting = setTimeout(() => outgoing.cut(), CUT_AFTER_MS);
  }

  const unregister = registerOpenResponse(call, () => end('cancelled'));
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
  // Most responses end long before either is due, and Node handles many timers of one length better than of
  // many.
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
  const unsubscribe = ports.onVersion(revalidateAgain);
  // While the upstream was slow to respond, access may have been revoked, or the session may have ended.
  if (ports.countVersions() !== call.since) revalidateAgain();
  if (isSessionClosed(call, authorized, authorized.principal)) end(refuseWith('unknown-session'));
  return {
    gone: () => gone,
    close() {
      unregister();
      unsubscribe();
      clearTimeout(start);
      clearTimeout(expiry);
      clearTimeout(late);
      clearTimeout(cutting);
    },
  };
}

/** The milliseconds left of the time that a request may take in total; progress does not extend it. */
export function timeLeftMs({ incoming, snapshot, requestedAt }: RequestContext): number {
  const spentMs =
    requestedAt === undefined ? performance.now() - incoming.startedMs : Date.now() - requestedAt;
  return timerMs(snapshot.limits.exchangeMaxMs - spentMs);
}

/** Sends a cancellation: closing a connection cancels nothing in a session (MCP 2025-11-25, cancellation). */
export function notifyCancelled(call: RequestContext, { admitted }: ResponsePlan): void {
  const { incoming, ports } = call;
  const { message, session } = admitted;
  if (session === undefined || message.kind !== 'request') return;
  ports.giveUp(incoming.upstream, { session, id: message.id, by: callerOf(call) });
}

/** Repeats authentication and decision under the version now in force; returns the refusal if access has ended. */
async function revalidate(
  call: RequestContext,
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
  { incoming, ports }: RequestContext,
  { admitted }: AuthorizedRequest,
  principal: Principal,
): boolean {
  const sealed = incoming.headers['mcp-session-id'];
  if (admitted.session === undefined || sealed === undefined) return false;
  return ports.openSession(sealed, incoming.upstream, principal) === undefined;
}

function registerOpenResponse(
  { admitted, incoming, ports }: RequestContext,
  end: () => void,
): () => void {
  const session = incoming.headers['mcp-session-id'];
  if (session === undefined || admitted?.message.kind !== 'request') return () => undefined;
  return ports.registerResponse(session, admitted.message.id, end);
}
