// A stream of a client that lives on: kept alive, known to whoever announces and ends, and open no longer
// than the token that opened it is good. What is written on it is not decided here.
// Source: contract §3; MCP 2025-11-25 and 2026-07-28, transports (keep-alive by comments).

import { encodeSseComment } from '../mcp/sse.js';
import type { Outgoing } from '../mcp/transport.js';
import type { Principal } from '../policy/principal.js';
import type { Call } from './call.js';

/** A client that takes nothing more holds its stream no longer than this after it was ended. */
export const CUT_AFTER_MS = 1_000;
/** Longest wait of a timer in Node; a stream of a caller without token would ask for more. */
const MAX_TIMER_MS = 2_147_483_647;

/** How a stream is told of changes, and whose session it belongs to. */
export type StreamRegistration = {
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
  const stream = { upstream, endpoint: aggregate, principal, session, announce, end };
  const unregister = ports.registerStream(stream);
  incoming.signal.addEventListener('abort', end, { once: true });
  try {
    if (ports.countVersions() !== call.since && (await isOver(call, session))) end();
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
async function isOver(
  { incoming, outgoing, ports }: Call,
  session: string | undefined,
): Promise<boolean> {
  const { upstream } = incoming;
  const principal = await ports.authenticate({ ...incoming, isProofUsed: true }, outgoing);
  if ('reason' in principal || ports.snapshot(upstream) === undefined) return true;
  return session !== undefined && ports.openSession(session, upstream, principal) === undefined;
}

/** A stream that says by a comment that it lives, whenever it was silent for a while. */
export type LivingStream = Pick<Outgoing, 'write'> & { stop(): void };

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
export function timerMs(ms: number): number {
  return Math.max(0, Math.min(ms, MAX_TIMER_MS));
}
