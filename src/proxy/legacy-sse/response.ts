// Checks what a legacy SSE server sends on its stream. A response is checked by the plan in its sealed id and
// gets the client's own id back; anything else is checked like a message of a session stream. Each response has
// a record of its own, because the request that it answers ended when it was posted, on whichever replica. A
// response that does not arrive within the time a request may take is refused on the stream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; ARCHITECTURE.md, "How a response finds its plan"; MCP
// 2025-11-25, lifecycle (timeouts).

import type { Principal } from '../../policy/principal.js';
import { openRecord } from '../../policy/record.js';
import { refuseWith } from '../../policy/refusal.js';
import type { SentRequestFacts, SessionFacts } from '../../protocol/admitted-request.js';
import { NO_SESSION_ID } from '../../protocol/admitted-request.js';
import { replaceAt, setMember } from '../../protocol/json/json.js';
import { readEnvelope } from '../../protocol/jsonrpc.js';
import type { ProgressCount } from '../../protocol/params.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import type { PendingResponses } from '../../protocol/transport.js';
import { BoundedMap } from '../../state/bounded-map.js';
import { maySee } from '../authorization.js';
import { createCount, createGate, type NotificationGate } from '../features/progress.js';
import {
  callerOf,
  newestSnapshot,
  noteTarget,
  type RequestContext,
  readMessage,
} from '../request-context.js';
import { type CheckPorts, DROP, drop, type MessageOutcome, withhold } from '../response-context.js';
import { createResponseCheck } from '../response-pipeline.js';
import { planOf, type ResponsePlan } from '../response-plan.js';
import { createGatheredWrites, writeFailure, writeOutcome } from '../sse-response.js';
import { createUnsolicitedCheck } from '../unsolicited-messages.js';

/** How many requests of one stream may wait for their responses at once. */
export const MAX_PENDING_RESPONSES = 1024;

type AwaitedResponseEvents = {
  /** True if the response has already arrived: servers may respond before their 202 is read. */
  hasArrived(id: string): boolean;
  /** Called once for each id whose response did not arrive in time. */
  onTimeout(id: string): void;
};

/** Creates the table of awaited responses, with their timeouts. */
function createAwaitedResponses({
  hasArrived,
  onTimeout,
}: AwaitedResponseEvents): PendingResponses {
  const pendingResponses = new Map<string, NodeJS.Timeout>();

  function drop(id: string): void {
    clearTimeout(pendingResponses.get(id));
    pendingResponses.delete(id);
  }

  return {
    get isFull() {
      return pendingResponses.size >= MAX_PENDING_RESPONSES;
    },
    add(id, withinMs) {
      if (hasArrived(id)) return;
      drop(id);
      const timeOut = (): void => {
        pendingResponses.delete(id);
        onTimeout(id);
      };
      pendingResponses.set(id, setTimeout(timeOut, withinMs));
    },
    drop,
    close() {
      for (const id of [...pendingResponses.keys()]) drop(id);
    },
  };
}

/** How many answered ids are remembered to recognize a second response. Clients recognize older ones themselves. */
const MAX_RESPONDED_IDS = 1024;
const PROGRESS = 'notifications/progress';

type LegacyStream = {
  readonly call: RequestContext<WriterPorts>;
  readonly principal: Principal;
  session: SessionFacts;
  checkUnsolicited: (data: string) => Promise<string | undefined>;
  readonly respondedIds: BoundedMap<string, true>;
  readonly pendingResponses: PendingResponses;
  /** The progress of running requests, by their sealed ids. */
  readonly counts: BoundedMap<string, ProgressCount>;
  /** The progress count for the current message, if it reports progress of a running request. */
  liveProgress: ProgressCount | undefined;
};

/** The ports that writing a stream may use. */
type WriterPorts = CheckPorts | 'legacySse';

export type LegacySseWriter = {
  /** Writes what may pass of one message. Must be called for one message at a time, in order. */
  write(data: string, ended: AbortSignal): Promise<void>;
  /** This replica's requests that have no response yet. Each is refused on the stream when its time is up. */
  readonly pendingResponses: PendingResponses;
};

/** Creates the writer for one stream. The caller must close `awaited` when the stream ends. */
export function createLegacySseWriter(
  call: RequestContext<WriterPorts>,
  principal: Principal,
  session: SessionFacts,
): LegacySseWriter {
  const stream: LegacyStream = {
    call,
    principal,
    session,
    checkUnsolicited: async () => undefined,
    respondedIds: new BoundedMap(MAX_RESPONDED_IDS),
    pendingResponses: createAwaitedResponses({
      hasArrived: (id) => stream.respondedIds.has(id),
      onTimeout(id) {
        refuseTimedOut(stream, id).catch((error: unknown) =>
          call.ports.audit.report(error, call.incoming.id),
        );
      },
    }),
    counts: new BoundedMap(MAX_RESPONDED_IDS),
    liveProgress: undefined,
  };
  stream.checkUnsolicited = createUnsolicitedCheck(call, principal, session, gateOf(stream));
  const write: LegacySseWriter['write'] = async (data, ended) => {
    const reading = await readMessage(call, data);
    const envelope = reading.ok ? readEnvelope(reading.value) : undefined;
    const sent = takeSentRequest(stream, envelope);
    if (sent !== undefined) return writeResponse(stream, sent, data, ended);
    const text = await stream.checkUnsolicited(restoreProgressToken(stream, envelope, data));
    if (text !== undefined && !ended.aborted) await call.outgoing.write(encodeSseMessage(text));
  };
  return { write, pendingResponses: stream.pendingResponses };
}

type Envelope = ReturnType<typeof readEnvelope> | undefined;

/** The request that a message answers, if it was sent in this session and has not been answered yet. */
function takeSentRequest(stream: LegacyStream, envelope: Envelope): SentRequestFacts | undefined {
  const { respondedIds } = stream;
  if (envelope?.kind !== 'result' && envelope?.kind !== 'error') return undefined;
  const { id } = envelope;
  if (typeof id !== 'string' || respondedIds.has(id)) return undefined;
  const sent = openSent(stream, id);
  if (sent !== undefined) markResponded(stream, id);
  return sent;
}

/** Any further response under this id is ignored. */
function markResponded({ respondedIds, pendingResponses, counts }: LegacyStream, id: string): void {
  respondedIds.set(id, true);
  counts.delete(id);
  pendingResponses.drop(id);
}

function openSent(
  { call, principal, session }: LegacyStream,
  id: string,
): SentRequestFacts | undefined {
  return call.ports.legacySse.openRequest(id, {
    upstream: call.incoming.upstream,
    principal,
    session,
  });
}

/** Restores the client's progress token. Progress of no running request stays as it is, and is dropped. */
function restoreProgressToken(stream: LegacyStream, envelope: Envelope, data: string): string {
  if (envelope?.kind !== 'notification' || envelope.method !== PROGRESS) return data;
  const sealed = envelope.params?.['progressToken'];
  stream.liveProgress = undefined;
  if (typeof sealed !== 'string' || stream.respondedIds.has(sealed)) return data;
  const sent = openSent(stream, sealed);
  if (sent?.progressToken === undefined || isTimedOut(stream.call, sent)) return data;
  stream.liveProgress = countOf(stream, sealed);
  return setMember(data, ['params'], 'progressToken', sent.progressToken);
}

function countOf({ counts }: LegacyStream, sealed: string): ProgressCount {
  const count = counts.get(sealed) ?? createCount();
  counts.set(sealed, count);
  return count;
}

/** The gate for progress counts against the request that the current message named. */
function gateOf(stream: LegacyStream): NotificationGate {
  return createGate(() => stream.liveProgress);
}

async function writeResponse(
  stream: LegacyStream,
  sent: SentRequestFacts,
  data: string,
  ended: AbortSignal,
): Promise<void> {
  const { call, principal, session } = stream;
  const plan = planOf(sent, session, principal);
  const text = replaceAt(data, ['id'], JSON.stringify(sent.id));
  if (plan === undefined || text === undefined) return drop(call, 'foreign-message');
  await writeAndRecord(openResponseContext(call, plan, sent), text, async (responseContext) => {
    const outcome = isTimedOut(call, sent)
      ? TIMED_OUT
      : await checkAwaited(responseContext, plan, text);
    // The stream ended during the check, so there is no client to respond to.
    if (ended.aborted) return DROP;
    if (outcome.kind === 'response' && !outcome.isError && sent.method === 'initialize')
      applyAllowedServerRequests(stream, sent);
    return outcome;
  });
}

/** Refuses a request whose response never arrived, on the stream and in the record, and cancels it at the server. */
async function refuseTimedOut(stream: LegacyStream, id: string): Promise<void> {
  const { call, principal, session } = stream;
  const sent = openSent(stream, id);
  const plan = sent && planOf(sent, session, principal);
  if (sent === undefined || plan === undefined) return;
  markResponded(stream, id);
  await writeAndRecord(openResponseContext(call, plan, sent), '', async () => TIMED_OUT);
  // A handshake cannot be cancelled (MCP 2024-11-05, cancellation).
  if (sent.method === 'initialize') return;
  const caller = callerOf(call, principal);
  call.ports.upstreams.cancelAtServer(call.incoming.upstream, { session, id, caller });
}

/** Writes the outcome of one response and closes its record, whatever happens. */
async function writeAndRecord(
  responseContext: RequestContext<WriterPorts>,
  text: string,
  check: (responseContext: RequestContext<WriterPorts>) => Promise<MessageOutcome>,
): Promise<void> {
  const { ports } = responseContext;
  const writes = createGatheredWrites(responseContext.outgoing);
  try {
    writeOutcome({ call: responseContext, writes }, await check(responseContext), text, undefined);
  } catch (error) {
    ports.audit.report(error, responseContext.record.id);
    writeFailure(responseContext, refuseWith('internal'), writes);
  } finally {
    ports.audit.closeRecord(responseContext.record);
  }
  await writes.flush();
}

/** The time limit of a request also applies if its response arrives on the stream. */
function isTimedOut({ snapshot }: RequestContext, { sentAt }: SentRequestFacts): boolean {
  return Date.now() - sentAt > snapshot.limits.exchangeMaxMs;
}

const TIMED_OUT = withhold('upstream-timeout');

/**
 * Checks a response under the version now in force, and again under the one in force after the check: a caller
 * who may no longer see the target gets no more of it.
 */
async function checkAwaited(
  call: RequestContext<CheckPorts>,
  plan: ResponsePlan,
  text: string,
): Promise<MessageOutcome> {
  const { admitted, principal } = plan;
  if (!maySee(call.snapshot, principal, admitted, admitted.target)) return NOT_VISIBLE;
  const outcome = await createResponseCheck(call, plan, NO_SESSION_ID).checkText(text);
  return maySee(newestSnapshot(call), principal, admitted, admitted.target) ? outcome : NOT_VISIBLE;
}

const NOT_VISIBLE: MessageOutcome = {
  kind: 'refused',
  refusal: refuseWith('no-matching-allow', { listed: false }),
};

/** Applies the server requests that the client declared in `initialize`, as granted when it was sent. */
function applyAllowedServerRequests(
  stream: LegacyStream,
  { allowedServerRequests }: SentRequestFacts,
): void {
  const { call, principal, session } = stream;
  stream.session = { ...session, allowedServerRequests };
  stream.checkUnsolicited = createUnsolicitedCheck(call, principal, stream.session, gateOf(stream));
}

/** The context of a response. It was allowed when it was requested, and its record begins at that time. */
function openResponseContext(
  call: RequestContext<WriterPorts>,
  { admitted, principal }: ResponsePlan,
  sent: SentRequestFacts,
): RequestContext<WriterPorts> {
  const waitedMs = Math.max(0, Date.now() - sent.sentAt);
  const incoming = {
    ...call.incoming,
    id: call.ports.audit.newDecisionId(),
    receivedAt: sent.sentAt,
    startedMs: performance.now() - waitedMs,
  };
  const record = openRecord(incoming);
  record.versions = call.snapshot.versions;
  record.principal = principal;
  record.client = { ...call.record.client };
  noteTarget(record, admitted);
  record.decision.verdict = 'allow';
  record.decision.stage = 'record';
  record.decision.action = 'forwarded';
  record.latency.upstream = waitedMs;
  return { ...call, incoming, record, admitted };
}
