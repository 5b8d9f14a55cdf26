// Requests and responses over legacy SSE. Towards a legacy SSE server a request leaves under a sealed id, from which
// the replica that holds the stream knows the plan of its response; a cancellation names the request by the same id.
// What the server sends on its stream is checked here: a response by the plan in its sealed id, after which it gets the
// client's own id back; anything else like a message of a session stream. Each response has a record of its own,
// because the request that it answers ended when it was posted, on whichever replica. A request whose response does not
// arrive within the time limit is refused on the stream. If the upstream speaks another era, the POST ends with 202 and
// the response is written to the client's stream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; docs/reference/design.md, "How a response finds its plan"; MCP
// 2025-11-25, lifecycle (timeouts).

import { type Allow, type Refusal, refuseProtocolError, refuseWith } from '../../policy/decision.js';
import { type ResponseObligations, type RunningRequest, responseObligationsOf } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import { fold, openRecord } from '../../policy/record.js';
import { amendAdmitted } from '../../protocol/admission.js';
import {
  type AdmittedMessage,
  NO_SESSION_ID,
  type SentRequestFacts,
  type SessionFacts,
} from '../../protocol/admitted-request.js';
import { editedValueAt, replaceAt, setMember, spanOf } from '../../protocol/json/json.js';
import { renderJson } from '../../protocol/json/request-ids.js';
import { isObject, isRequestId, type Json, type RequestId, readEnvelope, type Target } from '../../protocol/jsonrpc.js';
import { paramsOf, progressTokenOf } from '../../protocol/params.js';
import { DECISION_MEMBER, invalidParams, renderError } from '../../protocol/responses.js';
import { encodeSseMessage } from '../../protocol/sse.js';
import {
  type Body,
  type ClientEnd,
  type DisconnectSignal,
  joinPieces,
  type Outgoing,
  type PendingResponses,
  type ResponseHeaders,
} from '../../protocol/transport.js';
import { BoundedMap } from '../../state/bounds.js';
import { createCount, createGate, type NotificationGate } from '../features/progress.js';
import { targetFacts } from '../record-facts.js';
import { sendAnswer } from '../refusals.js';
import { callerOf, type Feature, newestSnapshot, type RequestContext } from '../request-context.js';
import {
  type CheckPorts,
  DROP,
  drop,
  type MessageOutcome,
  type ResponsePlan,
  readUpstreamMessage,
  responsePlanOf,
  sealedFactsOf,
  withhold,
} from '../response-context.js';
import { acknowledge, isDelivered } from '../response-forwarding.js';
import { createResponseCheck } from '../response-pipeline.js';
import { createGatheredWrites, writeFailure, writeOutcome } from '../sse-response.js';
import { grantOfResponse, timeLeftMs } from '../stream-lifetime.js';
import { relayErrorStatus } from '../upstream-errors.js';
import { createUnsolicitedCheck } from '../upstream-messages.js';

/** Error codes for refusals that have only an HTTP status: this plus the status, outside -32768..-32000. */
const STATUS_CODE_OFFSET = 1000;
const ACCEPTED = 202;
/** The member of `data` that holds the `WWW-Authenticate` of a refusal that has no header of its own. */
const CHALLENGE_MEMBER = 'dev.sallyport/challenge';

/** A message to a server of legacy SSE, which responds on its stream and not to the POST. */
export const DIRECT_LEGACY_SSE: Feature = {
  prepare: (call, { principal, admitted, allow }) => ({ outcome: sealRequestId(call, principal, admitted, allow) }),
  async relay(call, authorized, response) {
    const { admitted } = authorized;
    if (admitted.message.kind === 'request' && !isDelivered(response)) {
      const responseCheck = createResponseCheck(call, authorized, NO_SESSION_ID);
      return relayErrorStatus(call, authorized, response, responseCheck, (...answer) => sendAnswer(call, ...answer));
    }
    const refusal = await acknowledge(call, authorized, response);
    if (refusal === undefined) awaitStreamResponse(call, admitted);
    return refusal;
  },
};

/** A legacy SSE message to an upstream that does not speak legacy SSE. */
export const BRIDGED_LEGACY_SSE: Feature = {
  prepare: (call, { admitted }) => ({ outcome: findLegacyStream(call, admitted) ?? admitted }),
  begin: (call, { admitted }) => moveToLegacyStream(call, admitted),
};

/**
 * Refuses a message whose stream is held by another replica, because its response could not be delivered, and a
 * request whose client does not read its stream, because its response would have to be held here.
 */
function findLegacyStream(
  call: RequestContext<'legacySse'>,
  { session, message }: Pick<AdmittedMessage, 'session' | 'message'>,
): Refusal | undefined {
  const end = session === undefined ? undefined : call.ports.legacySse.findClientEnd(session);
  if (end === undefined) return refuseWith('unknown-session');
  if (message.kind === 'request') call.leaveStream ??= end.hold();
  return end.isLagging && message.kind === 'request' ? refuseWith('overloaded') : undefined;
}

/**
 * From here on the response goes to the client's stream. Returns the signal that aborts when the stream ends,
 * which cancels the request; `undefined` for a message that is not answered there.
 */
function moveToLegacyStream(
  call: RequestContext<'legacySse'>,
  admitted: AdmittedMessage,
): DisconnectSignal | undefined {
  const { message, session } = admitted;
  if (session === undefined || message.kind !== 'request') return undefined;
  const end = call.ports.legacySse.findClientEnd(session);
  if (end === undefined) return AbortSignal.abort();
  call.outgoing.send(ACCEPTED, {}, '');
  call.outgoing = createStreamOutgoing(end, message.id);
  return end.signal;
}

function createStreamOutgoing(end: ClientEnd, id: RequestId): Outgoing {
  let isDisconnected = false;
  let resolveDisconnected: () => void = () => undefined;
  const disconnected = new Promise<void>((resolve) => {
    resolveDisconnected = resolve;
  });
  // After `cut`, a pending write no longer waits for a client that does not read.
  const write = (bytes: Uint8Array | string): void | Promise<void> => {
    const written = isDisconnected ? undefined : end.write(bytes);
    return written && Promise.race([written, disconnected]);
  };
  return {
    get isClosed() {
      return isDisconnected || end.isClosed;
    },
    // The message was already answered with 202, so its headers have been sent.
    addHeader: () => undefined,
    send(status, headers, body) {
      // A 202 means that a refusal was already written to the stream; the POST itself has ended.
      if (status !== ACCEPTED) void write(encodeSseMessage(toJsonRpcMessage(id, status, headers, body)));
    },
    open: () => undefined,
    write,
    // The stream stays open for other responses.
    end: () => undefined,
    disconnect() {
      isDisconnected = true;
      resolveDisconnected();
    },
  };
}

/**
 * A JSON body as the message that it is; any other body, such as a plain-text refusal, as a JSON-RPC error, which also
 * says what the headers of that refusal would: the decision, and the challenge that names a missing scope.
 */
export function toJsonRpcMessage(id: RequestId, status: number, headers: ResponseHeaders, body: Body): string {
  const message = joinPieces(body);
  const text = typeof message === 'string' ? message : new TextDecoder().decode(message);
  const isMessage = headers['content-type']?.startsWith('application/json') === true;
  if (isMessage) return text;
  const { 'sallyport-decision': decision, 'www-authenticate': challenge } = headers;
  return renderError(id, STATUS_CODE_OFFSET + status, text, {
    ...(decision === undefined ? {} : { [DECISION_MEMBER]: { id: decision } }),
    ...(challenge === undefined ? {} : { [CHALLENGE_MEMBER]: challenge }),
  });
}

/** The message under the sealed id by which the server is to know it. */
function sealRequestId(
  call: RequestContext<'legacySse'>,
  principal: Principal,
  admitted: AdmittedMessage,
  allow: Allow,
): AdmittedMessage | Refusal {
  const { message } = admitted;
  if (message.kind === 'notification') return sealCancelledId(call, admitted);
  if (message.kind !== 'request') return admitted;
  const end = clientEndOf(call, admitted);
  if (end?.pendingResponses?.isFull === true) return refuseWith('overloaded');
  call.leaveStream ??= end?.hold();
  const responseObligations = responseObligationsOf(allow);
  const facts = sealedFactsOf(call, { admitted, principal, responseObligations });
  const sealed =
    facts &&
    sealIdOf(call, principal, admitted, {
      ...facts,
      allowedServerRequests: admitted.rule.method === 'initialize' ? admitted.allowedServerRequests : [],
      sentAt: Date.now(),
    });
  if (sealed !== undefined) return withSealedId(admitted, sealed);
  return refuseProtocolError(invalidParams({ id: message.id }, 'The id and the name of the target are too long.'));
}

/**
 * After the server has accepted a message, waits for its response if this replica holds the stream. A cancelled
 * request is no longer waited for.
 */
function awaitStreamResponse(call: RequestContext<'legacySse'>, admitted: AdmittedMessage): void {
  const { message, rule } = admitted;
  const isCancellation = rule.method === 'notifications/cancelled';
  if (message.kind !== 'request' && !isCancellation) return;
  const pendingResponses = pendingResponsesOf(call, admitted);
  const sealed = editedValueAt(admitted, isCancellation ? ['params', 'requestId'] : ['id']);
  if (sealed === undefined) return;
  if (isCancellation) pendingResponses?.drop(sealed);
  else if (pendingResponses !== undefined) {
    // The request is in flight until its response is on the stream.
    const releaseId = call.releaseId;
    call.releaseId = undefined;
    const giveBack = call.incoming.keepSlots?.();
    const { leaveStream } = call;
    call.leaveStream = undefined;
    pendingResponses.add(sealed, timeLeftMs(call), () => {
      releaseId?.();
      giveBack?.();
      leaveStream?.();
    });
  }
}

/** The responses that the stream still waits for, if this replica holds it. */
function pendingResponsesOf(
  call: RequestContext<'legacySse'>,
  admitted: AdmittedMessage,
): PendingResponses | undefined {
  return clientEndOf(call, admitted)?.pendingResponses;
}

/** The stream of the session, if this replica holds it. */
function clientEndOf({ ports }: RequestContext<'legacySse'>, { session }: AdmittedMessage): ClientEnd | undefined {
  return session === undefined ? undefined : ports.legacySse.findClientEnd(session);
}

/** The sealed id is also used as progress token, so that progress can be matched to its request on any replica. */
function withSealedId(admitted: AdmittedMessage, sealed: string): AdmittedMessage {
  const withId = replaceValue(admitted, ['id'], sealed);
  return progressTokenOf(admitted.message) === undefined
    ? withId
    : replaceValue(withId, ['params', '_meta', 'progressToken'], sealed);
}

function sealIdOf(
  { ports, incoming }: RequestContext<'legacySse'>,
  principal: Principal,
  { session }: AdmittedMessage,
  sent: SentRequestFacts,
): string | undefined {
  if (session === undefined) throw new Error('a message of HTTP+SSE has a session');
  return ports.legacySse.requests.seal(sent, { upstream: incoming.upstream, principal, session });
}

/** The id of a request that this replica did not send stays unchanged; no server knows the client's id. */
function sealCancelledId(call: RequestContext<'legacySse'>, admitted: AdmittedMessage): AdmittedMessage {
  const { session, rule } = admitted;
  if (rule.method !== 'notifications/cancelled' || session === undefined) return admitted;
  const id = paramsOf(admitted)['requestId'];
  const sealed = isRequestId(id) ? call.ports.legacySse.requests.recall(id, session) : undefined;
  return sealed === undefined ? admitted : replaceValue(admitted, ['params', 'requestId'], sealed);
}

function replaceValue(admitted: AdmittedMessage, path: readonly string[], sealed: string): AdmittedMessage {
  const span = spanOf(admitted.text, path);
  if (span === undefined) throw new Error('an admitted message has what was read of it');
  return amendAdmitted(admitted, [{ ...span, text: JSON.stringify(sealed) }]);
}

/** How many requests of one stream may wait for their responses at once. */
export const MAX_PENDING_RESPONSES = 1024;

type AwaitedResponseEvents = {
  /** True if the response has already arrived: servers may respond before their 202 is read. */
  hasArrived(id: string): boolean;
  /** Called once for each id whose response did not arrive in time. */
  onTimeout(id: string): void;
};

/** Creates the table of awaited responses, with their timeouts. */
function createAwaitedResponses({ hasArrived, onTimeout }: AwaitedResponseEvents): PendingResponses {
  const pendingResponses = new Map<
    string,
    { readonly timer: NodeJS.Timeout; readonly release: (() => void) | undefined }
  >();

  function drop(id: string): void {
    const pending = pendingResponses.get(id);
    clearTimeout(pending?.timer);
    pendingResponses.delete(id);
    pending?.release?.();
  }

  return {
    get isFull() {
      return pendingResponses.size >= MAX_PENDING_RESPONSES;
    },
    add(id, withinMs, release) {
      if (hasArrived(id)) return release?.();
      drop(id);
      const timeOut = (): void => {
        drop(id);
        onTimeout(id);
      };
      pendingResponses.set(id, { timer: setTimeout(timeOut, withinMs), release });
    },
    drop,
    ids: () => [...pendingResponses.keys()],
    close() {
      for (const id of [...pendingResponses.keys()]) drop(id);
    },
  };
}

/** How many answered ids are remembered to recognize a second response. Clients recognize older ones themselves. */
const MAX_RESPONDED_IDS = 1024;
const PROGRESS = 'notifications/progress';

type FollowedRequest = RunningRequest & { responseObligations: ResponseObligations };

type LegacyStream = {
  readonly call: RequestContext<WriterPorts>;
  readonly principal: Principal;
  session: SessionFacts;
  checkUnsolicited: (data: string) => Promise<string | undefined>;
  readonly respondedIds: BoundedMap<string, true>;
  readonly pendingResponses: PendingResponses;
  readonly hold: ClientEnd['hold'];
  /** The progress of running requests, by their sealed ids. */
  readonly counts: BoundedMap<string, FollowedRequest>;
  /** The progress count for the current message, if it reports progress of a running request. */
  liveProgress: RunningRequest | undefined;
};

/** The ports that writing a stream may use. */
type WriterPorts = CheckPorts | 'legacySse';

export type LegacySseWriter = {
  /** Writes what may pass of one message. Must be called for one message at a time, in order. */
  write(data: string, ended: AbortSignal): Promise<void>;
  /** This replica's requests that have no response yet. Each is refused on the stream when its time is up. */
  readonly pendingResponses: PendingResponses;
  /** Refuses all of them, because the gateway stops. */
  refusePending(): Promise<void>;
};

/** Creates the writer for one stream. The caller must close `pendingResponses` when the stream ends. */
export function createLegacySseWriter(
  call: RequestContext<WriterPorts>,
  principal: Principal,
  session: SessionFacts,
  hold: ClientEnd['hold'],
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
        refuseTimedOut(stream, id).catch((error: unknown) => call.ports.audit.report(error, call.incoming.id));
      },
    }),
    hold,
    counts: new BoundedMap(MAX_RESPONDED_IDS),
    liveProgress: undefined,
  };
  stream.checkUnsolicited = createUnsolicitedCheck(call, principal, session, gateOf(stream));
  const write: LegacySseWriter['write'] = async (data, ended) => {
    const reading = await readUpstreamMessage(call, data, true);
    const envelope = reading.ok ? readEnvelope(reading.value) : undefined;
    const sent = takeSentRequest(stream, reading.ok ? answeredId(reading.value, envelope) : undefined);
    if (sent !== undefined) return writeResponse(stream, sent, data, ended);
    const text = await stream.checkUnsolicited(restoreProgressToken(stream, envelope, data));
    if (text !== undefined && !ended.aborted) await call.outgoing.write(encodeSseMessage(text));
  };
  async function refusePending(): Promise<void> {
    for (const id of stream.pendingResponses.ids()) await refuseAwaited(stream, id, STOPPED);
  }
  return { write, pendingResponses: stream.pendingResponses, refusePending };
}

type Envelope = ReturnType<typeof readEnvelope> | undefined;

/** The id of the request that a message answers; one that is no valid response is an answer too, and is refused as such. */
function answeredId(value: Json, envelope: Envelope): Json | undefined {
  switch (envelope?.kind) {
    case 'result':
    case 'error':
      return envelope.id;
    case 'malformed':
      return isObject(value) && value['method'] === undefined ? value['id'] : undefined;
    default:
      return undefined;
  }
}

/** The request that a message answers, if it was sent in this session and has not been answered yet. */
function takeSentRequest(stream: LegacyStream, id: Json | undefined): SentRequestFacts | undefined {
  const { respondedIds } = stream;
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

function openSent({ call, principal, session }: LegacyStream, id: string): SentRequestFacts | undefined {
  return call.ports.legacySse.requests.open(id, {
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
  stream.liveProgress = followAgain(stream, sealed, sent);
  return setMember(data, ['params'], 'progressToken', sent.progressToken);
}

/** The count of a request whose response its caller may still have; `undefined` for any other. */
function followAgain(
  { call, principal, session, counts }: LegacyStream,
  sealed: string,
  sent: SentRequestFacts,
): RunningRequest | undefined {
  const plan = responsePlanOf(sent, session, principal);
  if (plan === undefined) return undefined;
  const { responseObligations } = plan;
  const count: FollowedRequest = counts.get(sealed) ?? {
    ...createCount(),
    target: sent.target,
    responseObligations,
  };
  const setObligations = (obligations: ResponseObligations): void => {
    count.responseObligations = obligations;
  };
  if (grantOfResponse(call, plan, { setObligations })(call.snapshot, principal) !== undefined) return undefined;
  counts.set(sealed, count);
  return count;
}

/** The gate for progress counts against the request that the current message named. */
function gateOf(stream: LegacyStream): NotificationGate {
  const running = () => stream.liveProgress;
  return createGate(running, running, () => targetsInProgress(stream));
}

/** What this replica's requests are about, those that the server may not have accepted yet and those it has. */
function targetsInProgress(stream: LegacyStream): readonly Target[] {
  const { call, session, pendingResponses } = stream;
  const sent = pendingResponses.ids().flatMap((id) => openSent(stream, id) ?? []);
  const followed = call.ports.progress.inProgress(session.hash ?? '');
  return [...followed, ...sent].map(({ target }) => target);
}

async function writeResponse(
  stream: LegacyStream,
  sent: SentRequestFacts,
  data: string,
  ended: AbortSignal,
): Promise<void> {
  const { call, principal, session } = stream;
  const plan = responsePlanOf(sent, session, principal);
  const text = replaceAt(data, ['id'], renderJson(sent.id));
  if (plan === undefined || text === undefined) return drop(call, 'foreign-message');
  const leave = stream.hold();
  await writeAndRecord(openResponseContext(call, plan, sent), text, async (responseContext) => {
    const outcome = isTimedOut(call, sent) ? TIMED_OUT : await checkAwaited(responseContext, plan, text);
    // The stream ended during the check, so there is no client to respond to.
    if (ended.aborted) return DROP;
    if (outcome.kind === 'response' && !outcome.isError && sent.method === 'initialize')
      applyAllowedServerRequests(stream, sent);
    return outcome;
  }).finally(leave);
}

/** Refuses a request whose response has not arrived, on the stream and in the record. */
async function refuseAwaited(
  stream: LegacyStream,
  id: string,
  outcome: MessageOutcome,
): Promise<SentRequestFacts | undefined> {
  const { call, principal, session } = stream;
  const sent = openSent(stream, id);
  const plan = sent && responsePlanOf(sent, session, principal);
  if (sent === undefined || plan === undefined) return undefined;
  markResponded(stream, id);
  await writeAndRecord(openResponseContext(call, plan, sent), '', async () => outcome);
  return sent;
}

/** The same for one that did not come in time, and cancels it at the server. */
async function refuseTimedOut(stream: LegacyStream, id: string): Promise<void> {
  const { call, principal, session } = stream;
  const sent = await refuseAwaited(stream, id, TIMED_OUT);
  if (sent === undefined) return;
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
const STOPPED = withhold('gateway-stopping');

/**
 * Checks a response under the version now in force, and decides again under the one in force after the check: a caller
 * who may no longer have it gets no more of it.
 */
async function checkAwaited(
  call: RequestContext<CheckPorts>,
  plan: ResponsePlan,
  text: string,
): Promise<MessageOutcome> {
  const responseCheck = createResponseCheck(call, plan, NO_SESSION_ID);
  const grant = grantOfResponse(call, plan, responseCheck);
  const before = grant(call.snapshot, plan.principal);
  if (before !== undefined) return { kind: 'refused', refusal: before };
  const outcome = await responseCheck.checkText(text);
  const after = grant(newestSnapshot(call), plan.principal);
  return after === undefined ? outcome : { kind: 'refused', refusal: after };
}

/** Applies the server requests that the client declared in `initialize`, as granted when it was sent. */
function applyAllowedServerRequests(stream: LegacyStream, { allowedServerRequests }: SentRequestFacts): void {
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
  fold(record, {
    versions: call.snapshot.versions,
    caller: { principal },
    client: call.record.client,
    target: targetFacts(admitted),
    decision: { verdict: 'allow', stage: 'record', action: 'forwarded' },
    latency: { upstream: waitedMs },
  });
  return { ...call, incoming, record, admitted };
}
