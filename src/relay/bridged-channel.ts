// The channel of a client of HTTP+SSE before an upstream of another era: the stream of the upstream's session,
// once there is one, told on the channel under the judge of all unasked messages. Answers come by
// their own exchanges (channel-outgoing.ts); nothing of them is read here.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports, listening for messages.

import { setTimeout as sleep } from 'node:timers/promises';
import type { SessionFacts } from '../mcp/admitted.js';
import { encodeSseMessage } from '../mcp/sse.js';
import type { ForwardOutcome, UpstreamResponse } from '../mcp/transport.js';
import type { Principal } from '../policy/principal.js';
import { refuseWith } from '../policy/refusal.js';
import { mediaType } from './answer.js';
import { type Call, callerOf, noteRefusal } from './call.js';
import { isExcess, type PumpTerms, pumpEvents, termsOfStream } from './events.js';
import { aborted } from './held-stream.js';
import { reasonOfEnd } from './stream-writer.js';
import { createUnsolicitedCheck } from './unowned.js';

/** A client of HTTP+SSE cannot ask for the stream again, so the gateway does, first after this time. */
const AGAIN_AFTER_MS = 1_000;
/** Where none is given, each wait is twice the one before, up to this. */
const MAX_AGAIN_AFTER_MS = 30_000;
/** A server without a stream of its own; what the gateway sees is announced all the same. */
const NO_STREAM: ReadonlySet<number> = new Set([405]);
const SESSION_LOST: ReadonlySet<number> = new Set([400, 404]);

/** What a channel of this kind stands on. */
export type Bridged = {
  readonly call: Call;
  readonly principal: Principal;
  /** The session as it is known now: what may be asked in it is known once it was initialized. */
  readonly session: () => SessionFacts | undefined;
};

/** Relays until someone leaves, or the session is lost at the upstream: then the channel ends with it. */
export async function relayBridged(bridged: Bridged, leave: AbortSignal): Promise<void> {
  const terms = termsOfStream(bridged.call);
  const at: Position = { lastEventId: undefined, waitMs: AGAIN_AFTER_MS, terms };
  while (!leave.aborted && (await relayNext(bridged, leave, at))) {
    await sleep(at.waitMs, undefined, { signal: leave, ref: false }).catch(() => undefined);
  }
}

/** The event after which the next stream of the upstream goes on, and how long it is waited for. */
type Position = {
  lastEventId: string | undefined;
  waitMs: number;
  /** What the streams of the channel may bring, one after the other. */
  readonly terms: PumpTerms;
};

/** Relays one stream of the upstream, if it gives one; false where there will be no other. */
async function relayNext(bridged: Bridged, leave: AbortSignal, at: Position): Promise<boolean> {
  const outcome = await open(bridged, leave, at.lastEventId);
  if (outcome === undefined) return false;
  at.waitMs = Math.min(2 * at.waitMs, MAX_AGAIN_AFTER_MS);
  if (outcome.kind === 'fault') return true;
  if (NO_STREAM.has(outcome.status)) await aborted(leave);
  if (isStream(outcome)) {
    at.waitMs = AGAIN_AFTER_MS;
    if (!(await relayOne(bridged, outcome, leave, at))) return false;
  }
  return !SESSION_LOST.has(outcome.status);
}

async function open(
  { call, session }: Bridged,
  leave: AbortSignal,
  lastEventId: string | undefined,
): Promise<ForwardOutcome | undefined> {
  const facts = session();
  if (facts === undefined) return undefined;
  const { upstream } = call.incoming;
  const outcome = await call.ports.openStream(upstream, {
    session: facts,
    by: callerOf(call),
    signal: leave,
    lastEventId,
  });
  if (outcome.kind === 'answer' && !isStream(outcome)) outcome.release();
  return outcome;
}

function isStream({ status, headers }: UpstreamResponse): boolean {
  return status === 200 && mediaType(headers['content-type']) === 'text/event-stream';
}

/** False where the gateway ended it. */
async function relayOne(
  { call, principal, session }: Bridged,
  response: UpstreamResponse,
  leave: AbortSignal,
  at: Position,
): Promise<boolean> {
  const facts = session();
  const abort = (): void => response.abort();
  leave.addEventListener('abort', abort, { once: true });
  if (leave.aborted || facts === undefined) abort();
  const checkUnsolicited =
    facts === undefined ? undefined : createUnsolicitedCheck(call, principal, facts);
  const end = await pumpEvents(response, at.terms, async (event) => {
    // Judged under the version that stands now, not the one under which the channel was opened.
    call.snapshot = call.ports.snapshot(call.incoming.upstream) ?? call.snapshot;
    if (event.kind !== 'message') return undefined;
    at.lastEventId = event.id ?? at.lastEventId;
    const text = event.data === '' ? undefined : await checkUnsolicited?.(event.data);
    // Whoever was shut out while it was judged is told nothing more.
    if (text !== undefined && !leave.aborted) await call.outgoing.write(encodeSseMessage(text));
    return call.outgoing.isClosed ? 'stop' : undefined;
  });
  leave.removeEventListener('abort', abort);
  if (!isExcess(end) || leave.aborted) return true;
  noteRefusal(call, refuseWith(reasonOfEnd(end)));
  return false;
}
