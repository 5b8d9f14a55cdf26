// Streams and ends of sessions (2025 era): the GET stream on which a server speaks unasked, and DELETE.
// The same controls as for a POST: who, protocol, record; and every message is judged when it comes.
// Source: MCP 2025-11-25, transports, listening for messages from the server and session management.

import { admitSessionEnd, admitStreamOpen } from '../mcp/admit.js';
import type { SessionFacts } from '../mcp/admitted.js';
import { encodeSseComment, encodeSseMessage } from '../mcp/sse.js';
import type { ForwardOutcome } from '../mcp/transport.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseFault, refuseWith } from '../policy/refusal.js';
import type { Call } from './call.js';
import { pumpEvents } from './events.js';
import { judgeUnasked } from './judge.js';

/** How often an idle stream says that it lives; shorter than the idle cuts of common load balancers. */
const KEEP_ALIVE_MS = 25_000;
/** A client that takes nothing more holds its stream no longer than this after it was ended. */
export const CUT_AFTER_MS = 1_000;
/** Longest wait of a timer in Node; a stream of a caller without token would ask for more. */
const MAX_TIMER_MS = 2_147_483_647;

export const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const;

function openOf(call: Call, principal: Principal): (sealed: string) => SessionFacts | undefined {
  return (sealed) => call.ports.openSession(sealed, call.incoming.upstream, principal);
}

function noteSession(call: Call, session: SessionFacts, method: string): void {
  call.record.client.era = '2025';
  call.record.client.version = session.version;
  call.record.target.receivedMethod = method;
  call.record.client.session = session.hash;
  call.record.decision.verdict = 'allow';
  call.record.decision.stage = 'record';
}

/** Opens the session's stream towards the client and keeps it until someone leaves or the token ends. */
export async function listen(call: Call, principal: Principal): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports } = call;
  const admitted = admitStreamOpen({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: openOf(call, principal),
  });
  if (admitted.kind === 'fault') return refuseFault(admitted);
  noteSession(call, admitted.session, 'GET');
  if (!ports.hasRoomForStream(incoming.upstream, principal)) return refuseWith('overloaded');
  if (!(await putOnRecord(call))) return refuseWith('audit-unavailable');
  const outcome = await ports.openStream(incoming.upstream, admitted.session, incoming.signal);
  const refusal = refusalOf(outcome);
  if (refusal !== undefined) return refusal;

  outgoing.open(200, STREAM_HEADERS);
  call.record.result = { ...call.record.result, status: 'ok', http: 200 };
  const leave = new AbortController();
  let cutting: NodeJS.Timeout | undefined;
  const end = (): void => {
    leave.abort();
    cutting ??= setTimeout(() => outgoing.cut(), CUT_AFTER_MS);
  };
  const timers = [
    setInterval(() => void outgoing.write(encodeSseComment('')), KEEP_ALIVE_MS),
    setTimeout(end, timerMs(principal.token.expiresAt - Date.now())),
  ];
  const unregister = ports.registerStream({
    upstream: incoming.upstream,
    principal,
    session: incoming.headers['mcp-session-id'],
    announce: (json) => void outgoing.write(encodeSseMessage(json)),
    end,
  });
  incoming.signal.addEventListener('abort', end, { once: true });
  try {
    await (outcome.kind === 'answer' && outcome.status === 200
      ? relayUntil(call, principal, admitted.session, outcome, leave.signal)
      : aborted(leave.signal));
  } finally {
    unregister();
    clearInterval(timers[0]);
    clearTimeout(timers[1]);
    clearTimeout(cutting);
    outgoing.end();
  }
  return undefined;
}

/** A server without a stream of its own (405) still gets one from us: drift is announced there. */
function refusalOf(outcome: ForwardOutcome): Refusal | undefined {
  if (outcome.kind === 'fault') return refuseWith(outcome.reason);
  if (
    outcome.status === 200 &&
    outcome.headers['content-type']?.startsWith('text/event-stream') === true
  )
    return undefined;
  outcome.release();
  if (outcome.status === 405) return undefined;
  return refuseWith(outcome.status === 404 ? 'unknown-session' : 'upstream-protocol');
}

async function relayUntil(
  call: Call,
  principal: Principal,
  session: SessionFacts,
  answer: Extract<ForwardOutcome, { kind: 'answer' }>,
  leave: AbortSignal,
): Promise<void> {
  leave.addEventListener('abort', () => answer.abort(), { once: true });
  await pumpEvents(answer, call.view.limits.maxResponseBytes, async (event) => {
    // Its text is nobody's message; that something came keeps the stream alive.
    if (event.kind === 'comment') await call.outgoing.write(encodeSseComment(''));
    if (event.kind !== 'message' || event.data === '') return undefined;
    // Judged under the version that stands now, not the one under which the stream was opened.
    call.view = call.ports.view(call.incoming.upstream) ?? call.view;
    const judged = await judgeUnasked(call, principal, session, event.data);
    if (judged !== undefined) await call.outgoing.write(encodeSseMessage(judged));
    return call.outgoing.isClosed ? 'stop' : undefined;
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}

/** A wait that a timer can hold. */
export function timerMs(ms: number): number {
  return Math.max(0, Math.min(ms, MAX_TIMER_MS));
}

async function putOnRecord(call: Call): Promise<boolean> {
  call.record.decision.action = 'forwarded';
  if (await call.ports.recordDecision(call.record)) return true;
  call.record.decision.action = 'refused';
  return false;
}

/** Ends a session for its owner; for everyone else the id is unknown. */
export async function endSession(call: Call, principal: Principal): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record } = call;
  const admitted = admitSessionEnd({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: openOf(call, principal),
  });
  if (admitted.kind === 'fault') return refuseFault(admitted);
  noteSession(call, admitted.session, 'DELETE');
  if (!(await putOnRecord(call))) return refuseWith('audit-unavailable');
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed !== undefined) ports.endSession(sealed, incoming.upstream);
  const outcome = await ports.forwardSessionEnd(incoming.upstream, admitted.session);
  if (outcome.kind === 'fault') return refuseWith(outcome.reason);
  outcome.release();
  // Here the session has ended, whatever the upstream holds of it (a server may answer 405).
  record.result = { ...record.result, status: 'ok', http: 204 };
  outgoing.send(204, {}, '');
  return undefined;
}
