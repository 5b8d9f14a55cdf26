// The context of one request, which the stages share, and the facts that they note in its record for the audit
// log. Also renders refusals, and reads JSON from upstreams under that upstream's limits. Nothing here decides.

import type { ContentKind } from '../config/settings.js';
import { captureArguments } from '../inspection/capture.js';
import { kindOfTool, profileForKind } from '../inspection/content-kind.js';
import { type Profile, strictestProfile } from '../inspection/findings.js';
import { hideArguments } from '../inspection/sensitive-fields.js';
import type { MendedArguments } from '../policy/argument-mending.js';
import { refuseBlocked } from '../policy/blocks.js';
import { capturedBy } from '../policy/decide.js';
import {
  type Allow,
  type Decision,
  type Deny,
  type Refusal,
  refuseProtocolError,
  refuseWith,
  renderRefusal,
} from '../policy/decision.js';
import {
  type Catalog,
  type DefinitionStatus,
  definitionOf,
  findUndeclared,
  type PinKind,
} from '../policy/definitions.js';
import type { SensitiveFields } from '../policy/information-flow.js';
import type { AuthorizedRequest, ReplayOutcome, ResponseObligations, RunningRequest } from '../policy/obligations.js';
import { type Caller, closeToken, type Principal } from '../policy/principal.js';
import { REASONS, type Reason } from '../policy/reasons.js';
import { addFinding, type Finding, type RequestRecord } from '../policy/record.js';
import type { PolicyQuery } from '../policy/rules.js';
import { decideShadows } from '../policy/shadow.js';
import type { AdmittedMessage, OpenedTask, ProtocolError } from '../protocol/admitted-request.js';
import { exactJson } from '../protocol/json/exact-numbers.js';
import type { ReadError, ReadOutcome, Turns } from '../protocol/json/incremental.js';
import { idLiteralOf, type JsonReading } from '../protocol/json/json.js';
import { isNumberId } from '../protocol/json/request-ids.js';
import { type JsonObject, requestIdOf, type Target } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { INTERNAL_ERROR, invalidMessage } from '../protocol/responses.js';
import { encodeSseMessage } from '../protocol/sse.js';
import { readFilter, type SubscriptionFilter } from '../protocol/subscriptions.js';
import type { DisconnectSignal, Incoming, Outgoing, ResponseHeaders, UpstreamResponse } from '../protocol/transport.js';
import type { ClientTraits } from '../protocol/versions/revisions.js';
import { PLAIN_SESSION } from '../protocol/versions/session.js';
import { pointerTo } from '../text/json-members.js';
import type { AnyPort, AuthnError, Ports, Snapshot, StreamReservation } from './ports.js';

/** What checking a response needs of the admitted request. */
export type PlannedMessage = Pick<
  AdmittedMessage,
  | 'protocol'
  | 'version'
  | 'session'
  | 'rule'
  | 'target'
  | 'args'
  | 'message'
  | 'serverRequestId'
  | 'allowedServerRequests'
  | 'apps'
  | 'mayBecomeTask'
  | 'task'
>;

/** The progress of a request in progress, registered in its session until `end`. */
export type FollowedProgress = RunningRequest & {
  end(): void;
  /** Keeps it registered: the response is a task, whose progress has the same token (MCP 2025-11-25, tasks). */
  keep(): void;
};

/** The wait for the response to a request of a session. */
export type ResponseWait = {
  /** Aborted by a cancellation, and by the signal that ends the request otherwise. */
  readonly signal: DisconnectSignal;
  isCancelled: boolean;
  end(): void;
};

/** A message that was decided on, as its features have changed it so far. */
type PreparedMessage = {
  readonly principal: Principal;
  readonly allow: Allow;
  readonly admitted: AdmittedMessage;
};

/**
 * What a message uses besides being forwarded and answered. Each member replaces or adds to what happens to a
 * plain message at that point of the pipeline.
 */
export type Feature = {
  /** Why the message may not use the feature, although its rule allows it. */
  readonly checkUse?: (
    call: RequestContext<AnyPort>,
    admitted: AdmittedMessage,
    catalog: Catalog,
  ) => ProtocolError | undefined;
  /** Opens what the client carries sealed, and seals what the upstream is to carry. */
  readonly prepare?: (
    call: RequestContext<AnyPort>,
    message: PreparedMessage,
  ) => AdmittedMessage | Refusal | Promise<AdmittedMessage | Refusal>;
  /** The content without the values that the gateway sealed. */
  readonly withoutSealed?: (content: JsonObject, admitted: AdmittedMessage) => JsonObject;
  /** Called before the message is forwarded; returns the signal that cancels it, if there is another one. */
  readonly begin?: (call: RequestContext<AnyPort>, authorized: AuthorizedRequest) => DisconnectSignal | undefined;
  /** Relays the response. */
  readonly relay?: (
    call: RequestContext<AnyPort>,
    authorized: AuthorizedRequest,
    response: UpstreamResponse,
  ) => Refusal | undefined | Promise<Refusal | undefined>;
};

/** The items that a message names besides its target, as they were decided under one snapshot. */
export type NamedItems = {
  readonly allowed: SubscriptionFilter;
  /** The tasks among them, by the ids that the client knows. */
  readonly tasks: ReadonlyMap<string, OpenedTask>;
  /** What allows each resource and each task. Each counts as a request. */
  readonly allows: readonly Allow[];
};

/**
 * `Used`: the ports that a function uses, itself or through what it calls. `snapshot` may be replaced; `admitted` is set
 * by admission, or by the stream that is resumed.
 */
export type RequestContext<Used extends AnyPort = never> = {
  readonly incoming: Incoming;
  /** Where the response is written: with legacy SSE the client's stream, once the message has been forwarded. */
  outgoing: Outgoing;
  readonly ports: Pick<Ports, Used>;
  readonly record: RequestRecord;
  /** The number of changes when the request began. A lease is passed those that come after its registration. */
  readonly changesAtStart: number;
  snapshot: Snapshot;
  admitted: PlannedMessage | undefined;
  /** Chooses the features of a message, by the snapshot under which it is decided. */
  readonly featuresOf: (admitted: AdmittedMessage, snapshot: Snapshot) => readonly Feature[];
  /** What the message uses; empty for a plain message. */
  features: readonly Feature[];
  /** When the original request was made, in epoch milliseconds, if another HTTP request made it. */
  requestedAt?: number | undefined;
  /** On whose behalf this request's messages are sent, once one is. */
  caller?: Caller;
  /** Identifies the caller once it is authenticated (policy/principal.ts). */
  callerKey: string | undefined;
  /** The message waited for another thread or for its turn, so the caller's rights may have changed meanwhile. */
  hasWaited?: boolean;
  /** For a reply to a server request: whether it is the first. */
  replyClaim?: ReplayOutcome | Promise<ReplayOutcome>;
  /** Gives the id of the request back, once its response is there. */
  releaseId?: (() => void) | undefined;
  /** The wait for the response, if a cancellation may end it. */
  wait?: ResponseWait | undefined;
  /** The request's progress, if the client asked for progress notifications. */
  progress?: FollowedProgress | undefined;
  /** The stream that the request opens, or is about to open. */
  stream?: StreamReservation | undefined;
  /** Of a subscription: what was decided about the items that it names. */
  named?: NamedItems | undefined;
};

/** A request whose caller is verified. */
export type VerifiedCall<Used extends AnyPort = never> = {
  readonly call: RequestContext<Used>;
  readonly principal: Principal;
};

const NO_GROUPS: readonly string[] = Object.freeze([]);
const NO_URIS: readonly string[] = Object.freeze([]);
const NO_TARGET: Target = { kind: 'none' };
const NOTHING_CAPTURED: Readonly<Record<string, string>> = Object.freeze({});
/** Names of arguments that the record keeps; the digest covers the rest. */
const MAX_RECORDED_KEYS = 32;
/** The record lists at most this many groups: those of the caller that some rule names. */
const MAX_RECORDED_GROUPS = 32;

/** The newest snapshot of the request's upstream, or the one it has where a reload removed the upstream. */
export function newestSnapshot({ ports, incoming, snapshot }: RequestContext<'upstreams'>): Snapshot {
  return ports.upstreams.snapshot(incoming.upstream) ?? snapshot;
}

/** Lets whatever follows be decided under the newest snapshot: for what waited, or arrives on a long stream. */
export function refreshSnapshot(call: RequestContext<'upstreams'>): Snapshot {
  call.snapshot = newestSnapshot(call);
  return call.snapshot;
}

/** The token as the client sent it: for the argument guard, and as a closed token for token exchange. */
export function presentedToken(incoming: Incoming): string | undefined {
  const header = incoming.headers['authorization'];
  const space = header?.indexOf(' ') ?? -1;
  return header === undefined || space === -1 ? undefined : header.slice(space + 1).trim();
}

/** The caller on whose behalf this request's messages are sent: for one principal always the same object. */
export function callerOf(call: Pick<RequestContext, 'incoming' | 'caller'>, principal: Principal): Caller {
  if (call.caller?.principal === principal) return call.caller;
  const { incoming, caller } = call;
  const presented = presentedToken(incoming);
  const token = presented === undefined ? undefined : closeToken(presented);
  call.caller = {
    principal,
    decisionId: incoming.id,
    token,
    assertionCount: caller?.assertionCount ?? 0,
  };
  return call.caller;
}

/** The authentication scheme in lower case. Chosen by the client, so only compared and never shown. */
export function presentedScheme(incoming: Incoming): string | undefined {
  return incoming.headers['authorization']?.split(' ', 1)[0]?.toLowerCase();
}

/** Notes what is known after admission. */
export function noteAdmitted(call: Pick<RequestContext<'audit'>, 'record' | 'ports'>, admitted: AdmittedMessage): void {
  const { record, ports } = call;
  const { args } = admitted;
  record.client.era = admitted.protocol.era;
  record.client.version = admitted.version;
  record.client.selfReported = admitted.selfReported;
  noteTarget(record, admitted);
  record.client.session = admitted.session?.hash;
  noteRemoved(record, admitted.removed, RESERVED_META);
  noteRemoved(record, admitted.undefinedParams, UNDEFINED_PARAMS);
  noteRemoved(record, admitted.nulls, NULL_MEMBERS);
  if (args === undefined) return;
  const text = exactJson(args);
  record.args = {
    digest: ports.audit.keyedHash('arguments', text),
    bytes: Buffer.byteLength(text),
    keys: Object.keys(args).slice(0, MAX_RECORDED_KEYS),
    captured: NOTHING_CAPTURED,
    violations: undefined,
  };
}

/** Notes what a message is about. */
export function noteTarget(record: RequestRecord, { message, rule, target }: PlannedMessage): void {
  record.target.method = rule.method;
  record.target.kind = target.kind;
  record.target.name = nameOf(target);
  record.target.requestId = message.kind === 'notification' ? undefined : message.id;
  const filter = rule.response === 'subscription' ? readFilter(paramsOf({ message })['notifications']) : undefined;
  record.target.uris = filter?.uris ?? NO_URIS;
}

/** Removed members that are noted one by one. A message may have tens of thousands of them. */
const MAX_NOTED = 16;

type RemovedKind = Pick<Finding, 'detector' | 'action'> & { readonly holder?: string };
const RESERVED_META: RemovedKind = { detector: 'reserved-meta', action: 'strip' };
const UNDEFINED_PARAMS: RemovedKind = {
  detector: 'undefined-params',
  action: 'drop',
  holder: '/params',
};

const NULL_MEMBERS: RemovedKind = { detector: 'null-members', action: 'drop' };

/** Notes members that were cut out of the message, by their pointers or by their names below `holder`. */
function noteRemoved(
  { findings }: RequestRecord,
  names: readonly string[],
  { detector, action, holder }: RemovedKind,
): void {
  if (names.length === 0) return;
  const removed = { detector, direction: 'to-upstream', action } as const;
  for (const name of names.slice(0, MAX_NOTED)) {
    const path = holder === undefined ? name : pointerTo(holder, name);
    addFinding(findings, { ...removed, path, count: 1 });
  }
  const count = names.length - MAX_NOTED;
  if (count > 0) addFinding(findings, { ...removed, path: '', count });
}

/** Notes what was mended in the arguments, by pointers. */
export function noteMended({ record }: Pick<RequestContext, 'record'>, { dropped, coerced }: MendedArguments): void {
  const note = (detector: string, action: 'drop' | 'coerce', pointers: readonly string[]): void => {
    for (const pointer of pointers) {
      const path = `/params/arguments${pointer}`;
      addFinding(record.findings, { detector, direction: 'to-upstream', action, path, count: 1 });
    }
  };
  note('dropped-argument', 'drop', dropped);
  note('coerced-argument', 'coerce', coerced);
}

/** What a claim of an id is kept in. */
type IdHolder = {
  readonly incoming: Pick<Incoming, 'upstream'>;
  readonly ports: { readonly sessions: Pick<Ports['sessions'], 'claimNumber'> };
  releaseId?: (() => void) | undefined;
};

/** Claims the id of a request for the time until its response; refuses one that is in flight in another spelling. */
export function claimId(
  holder: IdHolder,
  caller: string,
  { message, session, text }: AdmittedMessage,
): Refusal | undefined {
  if (message.kind !== 'request' || !isNumberId(message.id)) return undefined;
  const owner = `${holder.incoming.upstream} ${session?.hash ?? caller}`;
  const literal = idLiteralOf(text, message.id);
  holder.releaseId = holder.ports.sessions.claimNumber(owner, message.id, literal);
  return holder.releaseId === undefined
    ? refuseProtocolError(invalidMessage({ id: message.id }, ID_IN_FLIGHT))
    : undefined;
}

const ID_IN_FLIGHT = 'Another request whose id is the same number is in progress. Give each request an id of its own.';

/** The name of a target in rules, pins and records. */
export function nameOf(target: Target): string | undefined {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
      return target.name;
    case 'resource':
      return target.uri;
    case 'template':
      return target.uriTemplate;
    case 'server-request':
      return target.name;
    case 'task':
      return target.tool;
    case 'none':
      return undefined;
  }
}

function isPinnedKind(kind: Target['kind']): kind is PinKind {
  return kind === 'tool' || kind === 'prompt' || kind === 'template';
}

/** Notes the decision: its verdict, its rule, and the pin that it relied on. */
export function noteDecision(call: RequestContext, decision: Decision, args: JsonObject | undefined): void {
  const { record, snapshot, admitted } = call;
  record.decision.stage = 'decide';
  noteRule(record, decision);
  if (decision.verdict === 'deny') record.decision.reasons.push(decision.reason);
  capture(call, capturedBy(decision), args);
  if (record.args !== undefined) record.args.violations = decision.verdict === 'deny' ? decision.violations : undefined;
  const target = admitted?.target ?? NO_TARGET;
  const name = nameOf(target);
  const kind = target.kind === 'task' ? 'tool' : target.kind;
  if (name === undefined || !isPinnedKind(kind)) return;
  const status = snapshot.catalogFor(admitted ?? PLAIN_SESSION).statusOf(kind, name);
  record.target.definition = status.observed;
  record.target.pin = status.pinned?.digest;
  if (decision.verdict === 'allow' && args !== undefined) noteUndeclared(call, status, args);
}

/** Where undeclared arguments are observed only, records the first that would be refused. */
function noteUndeclared(
  { record, snapshot, admitted }: RequestContext,
  status: DefinitionStatus,
  args: JsonObject,
): void {
  const { undeclaredArguments } = snapshot.catalogFor(admitted ?? PLAIN_SESSION);
  if (undeclaredArguments !== 'observe') return;
  const undeclared = findUndeclared(definitionOf(status), args);
  const detector = 'undeclared-argument';
  // A request that waited is decided again.
  if (undeclared === undefined || record.findings.some((found) => found.detector === detector)) return;
  const path = `/params/arguments${undeclared.pointer}`;
  record.findings.push({ detector, direction: 'to-upstream', path, count: 1, action: 'flag' });
}

/**
 * Captures the arguments that rules ask to record, without the sensitive ones. A later decision replaces an earlier
 * one.
 */
function capture(call: RequestContext, pointers: readonly string[], args: JsonObject | undefined): void {
  const { record, incoming, admitted } = call;
  if (record.args === undefined || args === undefined) return;
  if (pointers.length === 0) {
    record.args.captured = NOTHING_CAPTURED;
    return;
  }
  const hidden = sensitiveFieldsOf(call, admitted?.target ?? NO_TARGET)?.arguments ?? [];
  const shown = hidden.length === 0 ? args : hideArguments(args, hidden);
  record.args.captured = captureArguments(shown, pointers, presentedToken(incoming));
}

/** The sensitive fields of the tool that a message is about. */
export function sensitiveFieldsOf({ snapshot, incoming }: RequestContext, target: Target): SensitiveFields | undefined {
  const { sensitive } = snapshot.policies;
  if (sensitive === undefined || (target.kind !== 'tool' && target.kind !== 'task')) return undefined;
  const tool = nameOf(target);
  return tool === undefined ? undefined : sensitive.of(incoming.upstream, tool);
}

/**
 * Notes what policies that are not enforced would have decided. Called only where there are some. Under
 * `policies.mode: observe`, the arguments are captured that those rules ask for.
 */
export function noteShadow(
  call: RequestContext,
  query: PolicyQuery,
  decision: Decision,
  args: JsonObject | undefined,
): void {
  const { record, snapshot } = call;
  const { shadow, captures } = decideShadows(snapshot.policies, query, decision);
  record.decision.shadow = shadow;
  if (captures === undefined) return;
  record.decision.mode = 'observe';
  capture(call, captures, args);
}

/** Notes the rule that decided, and the caller's groups that made it apply. */
export function noteRule(record: RequestRecord, decision: Decision): void {
  record.decision.verdict = decision.verdict;
  record.decision.policy = decision.policy;
  record.decision.rule = decision.rule;
  const { groups } = decision;
  const { principal } = record;
  if (groups === undefined || principal === undefined) {
    record.groupsUsed = NO_GROUPS;
    return;
  }
  const used = groups.filter((group) => principal.groups.includes(group));
  record.groupsUsed = used.slice(0, MAX_RECORDED_GROUPS);
}

/** Responds with a refusal, if no response has begun, and notes it. */
export function refuse(call: RequestContext<'legacySse' | 'sessions' | 'upstreams'>, refusal: Refusal): void {
  const { record, outgoing } = call;
  if (wasCancelledByDisconnect(call, refusal)) return;
  noteRefusal(call, refusal);
  const rendered = renderRefusal(refusal, refusalContext(call));
  const isSentOnStream = rendered.status === 200 && sendOnLegacyStream(call, rendered.body);
  const status = isSentOnStream ? ACCEPTED : statusFor(call, rendered.status);
  const isDropped = status === ACCEPTED && !isSentOnStream;
  record.result.http = status;
  record.result.rpcCode = rendered.rpcCode;
  record.result.bytes = isDropped ? 0 : Buffer.byteLength(rendered.body);
  if (isDropped) outgoing.send(status, { 'sallyport-decision': call.incoming.id }, '');
  else if (isSentOnStream) outgoing.send(status, {}, '');
  else outgoing.send(status, rendered.headers, rendered.body);
  void refuseToServer(call);
}

/** Sends a complete answer: to a legacy SSE client a message goes on its stream, if that can take it. */
export function sendAnswer(
  call: RequestContext<'legacySse'>,
  status: number,
  headers: ResponseHeaders,
  body: string,
): void {
  const isOnStream = status === 200 && sendOnLegacyStream(call, body);
  call.outgoing.send(isOnStream ? 202 : status, isOnStream ? {} : headers, isOnStream ? '' : body);
}

/**
 * Writes the response to a legacy SSE request to the stream on which the client waits for it (MCP 2024-11-05).
 * False if another replica holds the stream, or the client has too much unread; then the status of the POST must
 * do.
 */
function sendOnLegacyStream({ admitted, ports }: RequestContext<'legacySse'>, json: string): boolean {
  if (admitted?.protocol.answersOnStream !== true || admitted.message.kind !== 'request') return false;
  const end = admitted.session === undefined ? undefined : ports.legacySse.findClientEnd(admitted.session);
  if (end === undefined || end.isLagging) return false;
  void end.write(encodeSseMessage(json));
  return true;
}

export const ACCEPTED = 202;

/**
 * A message that has no response body is refused by its status (MCP transports, sending messages to the server), except
 * a notification, which is dropped as if it had been forwarded: clients close their connection on an error, and nobody
 * waits for what it would have done.
 */
export function statusFor({ admitted }: Pick<RequestContext, 'admitted'>, status: number): number {
  if (status !== 200 || admitted === undefined) return status;
  const { message, protocol } = admitted;
  if (message.kind === 'notification') return ACCEPTED;
  return message.kind === 'request' && !protocol.answersOnStream ? status : 400;
}

/** Sends an error to the server whose client's reply was refused, unless it already has a reply. */
async function refuseToServer(call: RequestContext<'sessions' | 'upstreams'>): Promise<void> {
  const { admitted, caller, incoming, ports, record } = call;
  if (admitted?.session === undefined || caller === undefined) return;
  const { message, session } = admitted;
  if ((message.kind !== 'result' && message.kind !== 'error') || message.id === undefined) return;
  if (record.decision.action !== 'refused') return;
  const isFirst = await claimReply(call);
  if (isFirst !== true) return;
  ports.upstreams.replyToServer(incoming.upstream, { session, id: message.id, caller }, WITHHELD);
}

/** Claims the reply to a server request: true if this is the first one. The store is asked once per request. */
export async function claimReply(call: RequestContext<'sessions'>): Promise<ReplayOutcome> {
  const { admitted, callerKey = '' } = call;
  const { serverRequestId, session } = admitted ?? {};
  if (serverRequestId === undefined || session === undefined) return true;
  call.replyClaim ??= call.ports.sessions.claimReply(serverRequestId, session, callerKey);
  return call.replyClaim;
}

const WITHHELD = { code: INTERNAL_ERROR, message: 'The response was withheld.' };

/**
 * True if the request was broken off because its client disconnected, which is how a stateless request is
 * cancelled: there is no client left to respond to, and the upstream has not failed (MCP 2026-07-28,
 * cancellation).
 */
export function wasCancelledByDisconnect(call: RequestContext, refusal: Refusal): boolean {
  const { record } = call;
  return (
    hasClientDisconnected(call) &&
    record.decision.action === 'forwarded' &&
    REASONS[refusal.deny.reason].stage === 'forward'
  );
}

/** Where a disconnect cancels, the connection belongs to the request; nothing outlives the stream of legacy SSE. */
function hasClientDisconnected({ admitted, incoming, outgoing }: RequestContext): boolean {
  if (admitted === undefined) return false;
  const { protocol } = admitted;
  return protocol.disconnectCancels ? incoming.signal.aborted : protocol.answersOnStream && outgoing.isClosed;
}

/** The refusal of a caller who could not be verified; the challenge says what is wrong with a proof of possession. */
export function refuseAuthn({ reason, proof, blocked, detail }: AuthnError): Refusal {
  if (blocked !== undefined) return refuseBlocked(blocked.id);
  return refuseWith(reason, { ...(proof !== undefined && { proof }), detail });
}

/** Notes a refusal. Before forwarding it is `refused`; afterwards the response was `withheld`. */
export function noteRefusal(call: RequestContext, refusal: Refusal): void {
  const { decision } = call.record;
  const wasForwarded = decision.action === 'forwarded';
  decision.action = wasForwarded ? 'withheld' : 'refused';
  if (!wasForwarded) {
    decision.verdict = 'deny';
    noteOverride(decision, refusal.deny);
  }
  decision.stage = refusal.stage;
  decision.detail = refusal.deny.detail ?? decision.detail;
  if (decision.reasons.at(-1) !== refusal.deny.reason) decision.reasons.push(refusal.deny.reason);
}

/** What refused is the block or the flow, whatever rule had allowed the request. */
const OVERRIDING: ReadonlySet<Reason> = new Set(['blocked', 'tainted-flow']);

/** Notes what refused a request that a rule had allowed, or that was not decided yet. */
export function noteOverride(decision: RequestRecord['decision'], { reason, policy, rule, causes }: Deny): void {
  if (!OVERRIDING.has(reason)) return;
  decision.policy = policy;
  decision.rule = rule;
  decision.causes = causes;
}

/** What the rendering of a refusal may know of this request. */
export function refusalContext(call: RequestContext): Parameters<typeof renderRefusal>[1] {
  const { admitted, incoming, snapshot } = call;
  return {
    decisionId: incoming.id,
    protocol: admitted?.protocol,
    requestId: requestIdOf(admitted?.message),
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    challenge: (reason, scopes, proof) =>
      snapshot.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  };
}

/**
 * The kind of content that an exchange about this target carries. Where the target is no tool, it is the kind of the
 * upstream.
 */
export function contentKindOf({ snapshot }: RequestContext, target: Target, client: ClientTraits): ContentKind {
  const { content } = snapshot;
  const tool = target.kind === 'tool' || target.kind === 'task' ? nameOf(target) : undefined;
  if (tool === undefined || content.tools.size === 0) return content.kind;
  return kindOfTool(content, tool, () => snapshot.catalogFor(client).statusOf('tool', tool));
}

/**
 * The strictest of the upstream's inspection profile and those that matching rules name. The kind of the content changes
 * only what the first of them does. Without a kind, as for lists and what a server asks of its client, it is `auto`.
 */
export function profileOf(
  call: RequestContext,
  responseObligations: ResponseObligations | undefined,
  kind: ContentKind = 'auto',
): Profile {
  let profile = profileForKind(call.snapshot.profile, kind);
  for (const name of responseObligations?.profiles ?? []) {
    const named = call.snapshot.profiles.get(name);
    if (named === undefined) throw new Error('a rule names an inspection profile that is not configured');
    profile = strictestProfile(profile, named);
  }
  return profile;
}

/** Parses JSON under the upstream's limits. Synchronous unless the message is large. */
export function readMessage(
  { ports, snapshot, incoming, callerKey }: RequestContext<'inspection'>,
  source: Uint8Array | string,
  isServerList?: boolean,
): ReadOutcome | Promise<ReadOutcome> {
  const { maxValues } = snapshot.limits;
  return ports.inspection.readJson(source, {
    upstream: incoming.upstream,
    caller: callerKey,
    maxValues,
    isServerList,
  });
}

/** The turns on the event loop of what is done for the upstream of a request. */
export function turnsOf({ incoming, ports }: RequestContext<'inspection'>): Turns {
  return { upstream: incoming.upstream, loopScheduler: ports.inspection.loopScheduler };
}

/** Whether the message was actually parsed. One that is not valid JSON counts: admission reports that. */
export function isRead(outcome: ReadOutcome): outcome is JsonReading {
  return outcome.ok || (outcome.error !== 'overloaded' && outcome.error !== 'internal');
}

/** The refusal that replaces a message that was not read. */
export function refuseReadError(error: ReadError, method?: string): Refusal {
  // In a text it was mended, so that it stands where nothing can be replaced.
  const what = error === 'lone-surrogate' ? 'half of a surrogate pair in its id' : error;
  const detail = method === undefined ? undefined : `${method}: the answer cannot be read (${what})`;
  return refuseWith(reasonOfReadError(error), { detail });
}

export function reasonOfReadError(error: ReadError): Reason {
  switch (error) {
    case 'too-many-values':
      return 'result-too-large';
    case 'overloaded':
    case 'internal':
      return error;
    case 'malformed-json':
    case 'lone-surrogate':
    case 'duplicate-key':
    case 'prototype-member':
    case 'too-deep':
      return 'upstream-protocol';
  }
}
