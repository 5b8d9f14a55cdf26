// Judges what a server of HTTP+SSE says on a channel: an answer by the plan that its sealed id holds, under the
// client's own id again; everything else like on the stream of a session. Each answer has a record of its
// own, because the exchange that asked for it ended when it was posted, on whichever replica.
// Source: MCP 2024-11-05, transports; ARCHITECTURE.md, "How a response finds its plan".

import type { Principal } from '../../policy/principal.js';
import { openRecord } from '../../policy/record.js';
import { refuseWith } from '../../policy/refusal.js';
import type { SentFacts, SessionFacts } from '../../protocol/admitted-request.js';
import { applyEdits, spanOf } from '../../protocol/json/json.js';
import { readEnvelope } from '../../protocol/jsonrpc.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import type { AwaitedResponses } from '../../protocol/transport.js';
import { createCount, createGate, type NotificationGate } from '../features/progress.js';
import { maySee, planOf, type ResponsePlan } from '../originating-request.js';
import type { ProgressCount } from '../request-context.js';
import { type Call, callerOf, nameOf, readMessage } from '../request-context.js';
import { DROP, drop, type Verdict } from '../response-context.js';
import { createResponseCheck } from '../response-pipeline.js';
import { gatherWrites, writeFailure, writeVerdict } from '../sse-response.js';
import { createUnsolicitedCheck } from '../unsolicited-messages.js';

// The answers that a channel still owes its client. What was posted ended with 202 long before; whoever holds
// the stream waits for what comes under its id, and no longer than an exchange may take.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, lifecycle (timeouts).

/** Requests of one channel that may wait for their answers at once. */
export const MAX_AWAITED = 1024;

type AwaitedResponseEvents = {
  /** True for an id whose answer came before it was waited for: servers answer before their 202 is read. */
  hasCome(id: string): boolean;
  /** Told of each id whose answer did not come in time, once. */
  onLate(id: string): void;
};

/** Waits for nothing yet. */
function createAwaitedResponses({ hasCome, onLate }: AwaitedResponseEvents): AwaitedResponses {
  const awaited = new Map<string, NodeJS.Timeout>();

  function drop(id: string): void {
    clearTimeout(awaited.get(id));
    awaited.delete(id);
  }

  return {
    get isFull() {
      return awaited.size >= MAX_AWAITED;
    },
    add(id, withinMs) {
      if (hasCome(id)) return;
      drop(id);
      const late = (): void => {
        awaited.delete(id);
        onLate(id);
      };
      awaited.set(id, setTimeout(late, withinMs));
    },
    drop,
    close() {
      for (const id of [...awaited.keys()]) drop(id);
    },
  };
}

/** Requests whose second answer is known as such; of older ones clients know it themselves. */
const MAX_ANSWERED = 1024;
const PROGRESS = 'notifications/progress';

type LegacyStream = {
  readonly call: Call;
  readonly principal: Principal;
  session: SessionFacts;
  checkUnsolicited: (data: string) => Promise<string | undefined>;
  readonly answered: Set<string>;
  readonly awaited: AwaitedResponses;
  /** How far requests are that told of it, by their sealed ids. */
  readonly counts: Map<string, ProgressCount>;
  /** That of the message at hand, where it tells progress of a live request. */
  liveProgress: ProgressCount | undefined;
};

export type LegacySseWriter = {
  /** Writes what may pass of a message. One at a time, in order. */
  write(data: string, leave: AbortSignal): Promise<void>;
  /** What was posted by this replica and is not answered yet; past its time it is refused on the channel. */
  readonly awaited: AwaitedResponses;
};

/** Makes what writes on one channel. Whoever ends the channel closes what it awaits. */
export function createLegacySseWriter(
  call: Call,
  principal: Principal,
  session: SessionFacts,
): LegacySseWriter {
  const stream: LegacyStream = {
    call,
    principal,
    session,
    checkUnsolicited: async () => undefined,
    answered: new Set(),
    awaited: createAwaitedResponses({
      hasCome: (id) => stream.answered.has(id),
      onLate(id) {
        endLate(stream, id).catch((error: unknown) => call.ports.report(error, call.incoming.id));
      },
    }),
    counts: new Map(),
    liveProgress: undefined,
  };
  stream.checkUnsolicited = createUnsolicitedCheck(call, principal, session, gateOf(stream));
  const write: LegacySseWriter['write'] = async (data, leave) => {
    const reading = await readMessage(call, data);
    const envelope = reading.ok ? readEnvelope(reading.value) : undefined;
    const sent = findSent(stream, envelope);
    if (sent !== undefined) return writeResponse(stream, sent, data, leave);
    const text = await stream.checkUnsolicited(underOwnToken(stream, envelope, data));
    if (text !== undefined && !leave.aborted) await call.outgoing.write(encodeSseMessage(text));
  };
  return { write, awaited: stream.awaited };
}

type Envelope = ReturnType<typeof readEnvelope> | undefined;

/** What a message answers, if it answers anything that was asked in this session. */
function findSent(stream: LegacyStream, envelope: Envelope): SentFacts | undefined {
  const { answered } = stream;
  if (envelope?.kind !== 'result' && envelope?.kind !== 'error') return undefined;
  const { id } = envelope;
  if (typeof id !== 'string' || answered.has(id)) return undefined;
  const sent = openSent(stream, id);
  if (sent !== undefined) noteResponded(stream, id);
  return sent;
}

/** From here on whatever comes under this id is no answer. */
function noteResponded({ answered, awaited, counts }: LegacyStream, id: string): void {
  const [oldest] = answered;
  if (answered.size >= MAX_ANSWERED && oldest !== undefined) answered.delete(oldest);
  answered.add(id);
  counts.delete(id);
  awaited.drop(id);
}

function openSent({ call, principal, session }: LegacyStream, id: string): SentFacts | undefined {
  return call.ports.legacySse.openRequest(id, {
    upstream: call.incoming.upstream,
    principal,
    session,
  });
}

/** Progress under the token that the client gave; what names no live request stays as it came, and is dropped. */
function underOwnToken(stream: LegacyStream, envelope: Envelope, data: string): string {
  if (envelope?.kind !== 'notification' || envelope.method !== PROGRESS) return data;
  const sealed = envelope.params?.['progressToken'];
  stream.liveProgress = undefined;
  if (typeof sealed !== 'string' || stream.answered.has(sealed)) return data;
  const sent = openSent(stream, sealed);
  const span = spanOf(data, ['params', 'progressToken']);
  if (sent?.progressToken === undefined || span === undefined || isLate(stream.call, sent))
    return data;
  stream.liveProgress = countOf(stream, sealed);
  return applyEdits(data, [{ ...span, text: JSON.stringify(sent.progressToken) }]);
}

function countOf({ counts }: LegacyStream, sealed: string): ProgressCount {
  const count = counts.get(sealed) ?? createCount();
  const [oldest] = counts.keys();
  if (counts.size >= MAX_ANSWERED && oldest !== undefined) counts.delete(oldest);
  counts.set(sealed, count);
  return count;
}

/** Of progress, the request that the message at hand named is the one that counts. */
function gateOf(stream: LegacyStream): NotificationGate {
  return createGate(() => stream.liveProgress);
}

async function writeResponse(
  stream: LegacyStream,
  sent: SentFacts,
  data: string,
  leave: AbortSignal,
): Promise<void> {
  const { call, principal, session } = stream;
  const plan = planOf(sent, session, principal);
  const span = spanOf(data, ['id']);
  if (plan === undefined || span === undefined) return drop(call, 'foreign-message');
  const text = applyEdits(data, [{ ...span, text: JSON.stringify(sent.id) }]);
  await record(openResponding(call, plan, sent), text, async (responding) => {
    const verdict = isLate(call, sent) ? LATE : await checkAwaited(responding, plan, text);
    // The channel ended while it was judged: nobody is there to be answered.
    if (leave.aborted) return DROP;
    if (verdict.kind === 'own' && !verdict.isError && sent.method === 'initialize')
      learnAllowedServerRequests(stream, sent);
    return verdict;
  });
}

/** What never came is refused in its place and on record; its server learns that nobody waits any more. */
async function endLate(stream: LegacyStream, id: string): Promise<void> {
  const { call, principal, session } = stream;
  const sent = openSent(stream, id);
  const plan = sent && planOf(sent, session, principal);
  if (sent === undefined || plan === undefined) return;
  noteResponded(stream, id);
  await record(openResponding(call, plan, sent), '', async () => LATE);
  // A handshake cannot be cancelled (MCP 2024-11-05, cancellation).
  if (sent.method !== 'initialize')
    call.ports.giveUp(call.incoming.upstream, { session, id, by: callerOf(call) });
}

/** Writes what an answer came to, and closes its record, whatever happens. */
async function record(
  responding: Call,
  text: string,
  check: (responding: Call) => Promise<Verdict>,
): Promise<void> {
  const { ports } = responding;
  const writes = gatherWrites(responding.outgoing);
  try {
    writeVerdict({ call: responding, writes }, await check(responding), text, undefined);
  } catch (error) {
    ports.report(error, responding.record.id);
    writeFailure(responding, refuseWith('internal'), writes);
  } finally {
    ports.closeRecord(responding.record);
  }
  await writes.flush();
}

/** An exchange takes no longer than it may, though its answer comes apart. */
function isLate({ snapshot }: Call, { sentAt }: SentFacts): boolean {
  return Date.now() - sentAt > snapshot.limits.exchangeMaxMs;
}

const LATE: Verdict = { kind: 'refused', refusal: refuseWith('upstream-timeout') };

/**
 * Judged under the version that stands now, and passed under the one that stands then: who may no longer see a
 * thing gets no more of it.
 */
async function checkAwaited(call: Call, plan: ResponsePlan, text: string): Promise<Verdict> {
  if (!maySee(plan.admitted.target, plan.principal, call.snapshot)) return UNSEEN;
  const verdict = await createResponseCheck(call, plan, undefined).checkText(text);
  const snapshot = call.ports.snapshot(call.incoming.upstream) ?? call.snapshot;
  return maySee(plan.admitted.target, plan.principal, snapshot) ? verdict : UNSEEN;
}

const UNSEEN: Verdict = {
  kind: 'refused',
  refusal: refuseWith('no-matching-allow', { listed: false }),
};

/** What a server may ask was declared by whoever opened the session, and granted when it was sent. */
function learnAllowedServerRequests(
  stream: LegacyStream,
  { allowedServerRequests }: SentFacts,
): void {
  const { call, principal, session } = stream;
  stream.session = { ...session, allowedServerRequests };
  stream.checkUnsolicited = createUnsolicitedCheck(call, principal, stream.session, gateOf(stream));
}

/** The exchange of the answer: it was allowed when it was asked for, and its record begins then. */
function openResponding(call: Call, { admitted, principal }: ResponsePlan, sent: SentFacts): Call {
  const waitedMs = Math.max(0, Date.now() - sent.sentAt);
  const incoming = {
    ...call.incoming,
    id: call.ports.newDecisionId(),
    receivedAt: sent.sentAt,
    startedMs: performance.now() - waitedMs,
  };
  const record = openRecord(incoming);
  record.versions = call.snapshot.versions;
  record.principal = principal;
  record.client = { ...call.record.client };
  record.target.method = admitted.rule.method;
  record.target.kind = admitted.target.kind;
  record.target.name = nameOf(admitted.target);
  record.target.requestId = sent.id;
  record.decision.verdict = 'allow';
  record.decision.stage = 'record';
  record.decision.action = 'forwarded';
  record.latency.upstream = waitedMs;
  return { ...call, incoming, record, admitted };
}
