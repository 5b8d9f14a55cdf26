// Bounds the lifetime of open streams. A stream ends when its token, the rule that allowed it, its session or
// its upstream goes away, or when the client cancels the request. Checks no message and decides nothing that is
// written.
// Source: docs/reference/start-and-reload.md#what-is-in-progress; MCP 2025-11-25, cancellation; MCP 2025-11-25 and
// 2026-07-28, transports (keep-alive by comments).

import { type Refusal, refuseWith } from '../policy/decision.js';
import { type AuthorizedRequest, responseObligationsOf } from '../policy/obligations.js';
import { fold } from '../policy/record.js';
import { encodeSseComment, pumpEvents, type ReadEnd, type SseEvent, type StreamLimits } from '../protocol/sse.js';
import {
  DisconnectController,
  type DisconnectSignal,
  type Outgoing,
  onAbort,
  type UpstreamResponse,
} from '../protocol/transport.js';
import {
  type AccessLease,
  createLease,
  type Grant,
  type LeasePorts,
  type LeaseTerms,
  startTimer,
  timerMs,
} from './access-lease.js';
import { decideResponse } from './authorization.js';
import { callerOf, type RequestContext, type ResponseWait, refreshSnapshot } from './request-context.js';
import type { CheckPorts, ResponsePlan } from './response-context.js';
import type { ResponseCheck } from './response-pipeline.js';
import { type GatheredWrites, longLivedStreamLimits, STREAM_HEADERS } from './sse-response.js';

/** How long a stream may stay open after it was ended if its client reads nothing more. */
const CUT_AFTER_MS = 1_000;
/** Given as the reason because by default an exception is made for each. */
const ENDED = 'ended';

/** On what terms a stream is open, and how it receives list changes. */
export type StreamTerms = LeaseTerms & {
  announce(method: string): void;
  /** Calls the function once nobody waits for a response on the stream. */
  readonly whenIdle?: (then: () => void) => void;
};

/** The ports that relaying what an upstream sends may use. */
export type RelayPorts = CheckPorts | LeasePorts | 'streams';

/**
 * Opens a stream and keeps it alive and registered while `run` lasts, or returns why its access ended while the upstream
 * was being waited for. The signal is aborted when the client disconnects, or the lease or the gateway ends.
 */
export async function keepStreamOpen(
  call: RequestContext<LeasePorts>,
  { announce, whenIdle, ...terms }: StreamTerms,
  run: (ended: AbortSignal, lease: AccessLease) => Promise<void>,
): Promise<Refusal | undefined> {
  const { incoming, outgoing, record, snapshot, stream } = call;
  if (stream === undefined) throw new Error('a stream is counted before it is opened');
  const lease = createLease(call, terms);
  await lease.pending();
  const refusal = lease.ended();
  if (refusal !== undefined) return refusal;
  const ended = new AbortController();
  let cutTimer: NodeJS.Timeout | undefined;
  const end = (): void => {
    ended.abort(ENDED);
    cutTimer ??= setTimeout(() => outgoing.disconnect(), CUT_AFTER_MS);
  };
  outgoing.open(200, STREAM_HEADERS);
  fold(record, { result: { status: 'ok', http: 200 } });
  // Its writers are many and none writes through this, so a busy stream gets the comments too.
  const alive = keepAlive(outgoing, snapshot.limits.keepAliveMs);
  stream.open({ announce, end, endWhenIdle: whenIdle && (() => whenIdle(end)) });
  lease.onEnd(end);
  onAbort(incoming.signal, end);
  try {
    await run(ended.signal, lease);
  } finally {
    stream.release();
    lease.release();
    alive.stop();
    clearTimeout(cutTimer);
    outgoing.end();
  }
  return undefined;
}

/**
 * Relays what an upstream sends on a stream that is held open, each event under the version in force when it comes and
 * not the one under which the stream was opened. Ends with either side, or when the relay of an event says so.
 */
export async function relayHeldStream(
  call: RequestContext<'inspection' | 'upstreams'>,
  response: UpstreamResponse,
  { ended, limits = longLivedStreamLimits(call, ended) }: HeldStream,
  relayEvent: (event: SseEvent) => Promise<'stop' | undefined>,
): Promise<ReadEnd> {
  const abort = (): void => response.abort();
  onAbort(ended, abort);
  const end = await pumpEvents(response, limits, async (event) => {
    if (ended.aborted) return 'stop';
    refreshSnapshot(call);
    return (await relayEvent(event)) ?? (call.outgoing.isClosed ? 'stop' : undefined);
  });
  ended.removeEventListener('abort', abort);
  return end;
}

/** When the client's end of a stream ends, and the limits that several streams of the upstream may share. */
type HeldStream = { readonly ended: AbortSignal; readonly limits?: StreamLimits };

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
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** Why a stream ended before its response was complete. */
export type StreamEndReason = 'cancelled' | Refusal;

type ResponseWatch = {
  endReason(): StreamEndReason | undefined;
  /** Whether it has ended; a promise while the caller is verified anew. */
  mustEnd(): boolean | Promise<boolean>;
  /** Stops watching, once the stream has ended. */
  close(): void;
};

/** Watches the stream of a response until `close`, and aborts it when it may no longer continue. */
export function watchResponse(
  call: RequestContext<LeasePorts | 'streams'>,
  authorized: AuthorizedRequest,
  {
    response,
    responseCheck,
    writes,
  }: {
    readonly response: UpstreamResponse;
    readonly responseCheck: ResponseCheck;
    readonly writes: Pick<GatheredWrites, 'hasResponse'>;
  },
): ResponseWatch {
  let endReason: StreamEndReason | undefined;
  let cutTimer: NodeJS.Timeout | undefined;

  function end(why: StreamEndReason): void {
    if (endReason !== undefined) return;
    endReason = why;
    lease.release();
    response.abort();
    cutTimer = setTimeout(() => call.outgoing.disconnect(), CUT_AFTER_MS);
  }

  const unregister = registerOpenResponse(call, () => end('cancelled'));
  const lease = createLease(call, responseTerms(call, authorized, responseCheck));
  lease.onEnd(end);
  const stopLate = startTimer(timeLeftMs(call), () => {
    end(refuseWith('upstream-timeout'));
    // A request that has its response cannot be cancelled.
    if (!writes.hasResponse) notifyCancelled(call, authorized);
  });

  function mustEnd(): boolean | Promise<boolean> {
    const pending = lease.pending();
    return pending === undefined ? endReason !== undefined : pending.then(mustEnd);
  }

  return {
    endReason: () => endReason,
    mustEnd,
    close() {
      unregister();
      lease.release();
      stopLate();
      clearTimeout(cutTimer);
    },
  };
}

function responseTerms(call: RequestContext, authorized: AuthorizedRequest, responseCheck: ResponseCheck): LeaseTerms {
  const { admitted, principal } = authorized;
  return {
    principal,
    session: admitted.session && call.incoming.headers['mcp-session-id'],
    isReverified: true,
    grant: grantOfResponse(call, authorized, responseCheck),
  };
}

/**
 * Whether a response may go on, however it is delivered: by the decision about its request. The obligations of the newest
 * decision apply to the rest of it, and each message is checked under the snapshot that was last accepted.
 */
export function grantOfResponse(
  call: RequestContext,
  { admitted, decidedUnder, responseObligations: before }: ResponsePlan,
  responseCheck: Pick<ResponseCheck, 'setObligations'>,
): Grant {
  return (snapshot, principal) => {
    const decision = decideResponse(snapshot, principal, admitted, decidedUnder);
    if (decision.verdict === 'deny') return { kind: 'refused', stage: 'decide', deny: decision };
    call.snapshot = snapshot;
    // What rules that read the arguments require is known of the decision with them alone.
    const known = decidedUnder === undefined ? admitted.task : before;
    responseCheck.setObligations(responseObligationsOf(decision, known));
    return undefined;
  };
}

/** The milliseconds left of the time that a request may take in total; progress does not extend it. */
export function timeLeftMs({ incoming, snapshot, requestedAt }: RequestContext): number {
  const spentMs = requestedAt === undefined ? performance.now() - incoming.startedMs : Date.now() - requestedAt;
  return timerMs(snapshot.limits.exchangeMaxMs - spentMs);
}

/**
 * Sends a cancellation for a request whose response did not come in time: closing a connection cancels nothing in a
 * session (MCP 2025-11-25, cancellation). Neither a handshake nor a call that runs as a task is cancelled so.
 */
export function notifyCancelled(call: RequestContext<'upstreams'>, { admitted, principal }: ResponsePlan): void {
  const { incoming, ports } = call;
  const { message, session, rule, mayBecomeTask } = admitted;
  if (session === undefined || message.kind !== 'request') return;
  if (rule.method === 'initialize' || mayBecomeTask) return;
  const caller = callerOf(call, principal);
  ports.upstreams.cancelAtServer(incoming.upstream, { session, id: message.id, caller });
}

/** Calls `note`, and `end` a while later, when the client cancels the request, until the returned function is called. */
export function registerOpenResponse(
  { admitted, incoming, ports }: RequestContext<'streams'>,
  end: () => void,
  note?: () => void,
): () => void {
  const session = incoming.headers['mcp-session-id'];
  if (session === undefined || admitted?.message.kind !== 'request') return () => undefined;
  return ports.streams.registerResponse(session, admitted.message.id, note === undefined ? { end } : { note, end });
}

/**
 * Lets a cancellation end the wait for a response of which nothing has come yet: some servers never answer a request that
 * was cancelled, and it would keep its slot until it times out. `undefined` outside of sessions, where requests are
 * cancelled by the end of their connection, and for a handshake, which cannot be cancelled. `signal`: what ends the request
 * otherwise.
 */
export function startResponseWait(
  call: RequestContext<'streams'>,
  signal: DisconnectSignal | undefined,
): ResponseWait | undefined {
  const { admitted, incoming } = call;
  if (incoming.headers['mcp-session-id'] === undefined || admitted?.message.kind !== 'request') return undefined;
  if (admitted.rule.method === 'initialize') return undefined;
  const controller = new DisconnectController();
  const abort = (): void => controller.abort();
  const unregister = registerOpenResponse(call, abort, () => {
    wait.isCancelled = true;
  });
  if (signal !== undefined) onAbort(signal, abort);
  const wait: ResponseWait = {
    signal: controller,
    isCancelled: false,
    end() {
      unregister();
      signal?.removeEventListener('abort', abort);
    },
  };
  return wait;
}
