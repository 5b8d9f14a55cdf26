// The pipeline's stages before anything is sent, one function each, in the order in which pipeline.ts calls
// them. A stage returns its value or a refusal, and the facts that it has learned for the record.
// Source: MCP 2026-07-28, multi-round-trip requests; tasks of both revisions.

import type { InspectionProfile } from '../config/settings.js';
import { type GuardInput, type GuardOutcome, guardArguments } from '../inspection/requests.js';
import { APPROVABLE_METHODS, type ApprovalRequirement } from '../policy/approval-terms.js';
import { MAX_MENDED, type MendedArguments, mendArguments } from '../policy/argument-mending.js';
import { refuseBlocked } from '../policy/blocks.js';
import { allowedServerRequestsFor } from '../policy/decide.js';
import {
  type Allow,
  approvalOf,
  type Decision,
  type Deny,
  type Refusal,
  refuseProtocolError,
  refuseWith,
} from '../policy/decision.js';
import type { Catalog } from '../policy/definitions.js';
import { type Approved, type AuthorizedRequest, enforce, findBeyondLimits } from '../policy/obligations.js';
import { refuseUnknown, refuseWithheld } from '../policy/presentation.js';
import type { Principal } from '../policy/principal.js';
import { addInspection, type RecordFacts, type Staged } from '../policy/record.js';
import { isAppUri } from '../policy/uris.js';
import { type AdmittedArray, admitPost, copyAdmitted } from '../protocol/admission.js';
import type { AdmittedMessage, ProtocolError, TextEdit } from '../protocol/admitted-request.js';
import { acceptsEventStream, acceptsType, decodeParamHeaders } from '../protocol/headers.js';
import { type ReadOutcome, takeTurn } from '../protocol/json/incremental.js';
import { applyEdits, type JsonReading } from '../protocol/json/json.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { notAcceptable } from '../protocol/responses.js';
import { NO_GRANTS, type ServerRequestGrants } from '../protocol/server-requests.js';
import type { Incoming } from '../protocol/transport.js';
import { checkParamHeaders, checkSupported, versionsOffered } from '../protocol/versions/negotiation.js';
import { after } from '../text/after.js';
import { authenticateAgain, checkSession } from './access-lease.js';
import { type Approvable, approvableOf, findApproval, NOBODY_SEES } from './approval.js';
import { decideTarget, decideVisible, queryFor, type StageOutcome, take } from './authorization.js';
import { enforceFlows, toShow } from './flows.js';
import { isRead, readMessage, refuseReadError, turnsOf } from './message-reading.js';
import type { AnyPort, AuthnError, Snapshot } from './ports.js';
import { inOwnForm, type OwnCall, ownCallOf, ownHeaders } from './presented-calls.js';
import { admissionFacts, decisionFacts, mendingFindings, shadowFacts } from './record-facts.js';
import { claimReply, refuseAuthn } from './refusals.js';
import {
  callerOf,
  contentKindOf,
  presentedToken,
  type RequestContext,
  refreshSnapshot,
  type VerifiedCall,
} from './request-context.js';
import { continueTrace, leaveCallersTrace } from './trace.js';

/**
 * The content of a message that the argument guard inspects. Values that the gateway sealed and the client only
 * carries (request state, task ids) are left out: they look like secrets, were opened earlier, and leave as what
 * the server originally sent.
 */
function contentOf({ features }: RequestContext, admitted: AdmittedMessage): JsonObject {
  const { message } = admitted;
  if (message.kind === 'error') return message.error;
  let content = message.kind === 'result' ? message.result : paramsOf(admitted);
  for (const { withoutSealed } of features) content = withoutSealed?.(content, admitted) ?? content;
  return content;
}

/** Notes whether a value has to be waited for: the rights of the caller may have changed meanwhile. */
function noteWait<T>(call: RequestContext, value: T | Promise<T>): T | Promise<T> {
  if (value instanceof Promise) call.hasWaited = true;
  return value;
}

/** Picks up listings and reloads that finished during a wait, so that freshness is read as of now. */
function refreshAfterWait(call: RequestContext<'upstreams'>): void {
  if (call.hasWaited !== true) return;
  refreshSnapshot(call);
  leaveCallersTrace(call);
}

/** The versions that are decided under, even if newer ones are in force when the record is written. */
function versionFacts({ snapshot: { versions } }: RequestContext): RecordFacts {
  return { versions };
}

/** Verifies the caller's token: a principal, or a 401 or 503 refusal. */
export function authenticate(call: RequestContext<'identity' | 'upstreams'>): StageOutcome<Principal> {
  return after(noteWait(call, call.ports.identity.authenticate(call.incoming, call.outgoing)), (outcome) => {
    refreshAfterWait(call);
    const { tracing } = call.snapshot;
    if (tracing !== undefined && !('reason' in outcome)) continueTrace(call, outcome, tracing, call);
    return callerOrRefusal(call, outcome, versionFacts(call));
  });
}

/** The caller, or the refusal of one that was not authenticated. */
export function callerOrRefusal(
  { incoming }: Pick<RequestContext, 'incoming'>,
  outcome: Principal | AuthnError,
  { versions }: RecordFacts = {},
): Staged<Principal> {
  const latency = { auth: performance.now() - incoming.startedMs };
  if ('reason' in outcome) {
    const caller = { principal: outcome.blocked?.principal, refusedToken: outcome.refusedToken };
    return { outcome: refuseAuthn(outcome), facts: [{ versions, caller, latency }] };
  }
  return { outcome, facts: [{ versions, caller: { principal: outcome }, latency }] };
}

/** The ports that admission uses. */
type AdmissionPorts = 'audit' | 'inspection' | 'sessions' | 'tasks' | 'upstreams';

/**
 * Parses and validates the message by the rules of its era: one message, a batch, or a 400 or 404. Arguments that are
 * mended are edited in the message, which is then admitted as if it had come so: nothing later sees what was dropped.
 */
export function admit(
  call: RequestContext<AdmissionPorts>,
  principal: Principal,
): StageOutcome<AdmittedMessage | AdmittedArray> {
  const { body } = call.incoming;
  return after(noteWait(call, readMessage(call, body)), (reading) => {
    refreshAfterWait(call);
    return admitMended(call, principal, { body, reading, mended: NOTHING_MENDED });
  });
}

/** A message as it was read, and what was done to get it. */
type ReadBody = {
  readonly body: Uint8Array;
  readonly reading: ReadOutcome;
  readonly mended: readonly MendedArguments[];
  /** The call in the form of its server, if clients are shown another. */
  readonly own?: OwnCall | undefined;
  /** The null members that were cut before the message was edited: the edited text no longer has them. */
  readonly nulls?: AdmittedMessage['nulls'];
};
const NOTHING_MENDED: readonly MendedArguments[] = Object.freeze([]);
const NO_NULLS: AdmittedMessage['nulls'] = Object.freeze([]);

function admitMended(
  call: RequestContext<AdmissionPorts>,
  principal: Principal,
  { body, reading, mended, own: before, nulls: cut = NO_NULLS }: ReadBody,
): StageOutcome<AdmittedMessage | AdmittedArray> {
  if (!isRead(reading)) return { outcome: refuseReadError(reading.error), facts: [versionFacts(call)] };
  const { headers } = call.incoming;
  const sent = { body, headers: before === undefined ? headers : ownHeaders(headers, before) };
  const read = admitRead(call, principal, sent, reading);
  if (read.kind === 'error') return { outcome: refuseProtocolError(read), facts: [versionFacts(call)] };
  if (read.kind === 'array') return { outcome: read, facts: [versionFacts(call)] };
  const outcome = cut.length === 0 ? read : copyAdmitted(read, { nulls: [...cut, ...read.nulls] });
  const { nulls } = outcome;
  const own = before ?? (call.snapshot.presentation && ownCallOf(call.snapshot, outcome));
  if (own !== before && own !== undefined && own.edits.length > 0)
    return readEdited(call, outcome, own.edits, (edited, next) =>
      admitMended(call, principal, { body: edited, reading: next, mended, own, nulls }),
    );
  const admitted = own === undefined ? outcome : inOwnForm(call.snapshot, outcome, own);
  const more = findMending(call, admitted, mended.length);
  if (more === undefined) return finishAdmission(call, principal, admitted, mended);
  return readEdited(call, outcome, more.edits, (edited, next) =>
    // A message that cannot be read after the edit stays as it came, and is refused by its schema.
    next.ok
      ? admitMended(call, principal, { body: edited, reading: next, mended: [...mended, more], own, nulls })
      : finishAdmission(call, principal, admitted, mended),
  );
}

/** Goes on with the message as it reads with these edits. */
function readEdited<T>(
  call: RequestContext<AdmissionPorts>,
  { text }: AdmittedMessage,
  edits: readonly TextEdit[],
  goOn: (edited: Uint8Array, reading: ReadOutcome) => T | Promise<T>,
): T | Promise<T> {
  const edited = new TextEncoder().encode(applyEdits(text, edits));
  return after(noteWait(call, readMessage(call, edited)), (reading) => goOn(edited, reading));
}

function admitRead(
  { incoming, ports, snapshot }: RequestContext<AdmissionPorts>,
  principal: Principal,
  { body, headers }: Pick<Incoming, 'body' | 'headers'>,
  reading: JsonReading,
): ReturnType<typeof admitPost> {
  const { upstream } = incoming;
  return admitPost({
    headers,
    repeated: incoming.repeated,
    body,
    reading,
    isLegacySse: incoming.legacySsePath === 'message',
    openSession: (sealed) => ports.sessions.open(sealed, upstream, principal),
    openServerRequest: (id, session) => ports.sessions.serverRequests.open(id, { upstream, principal, session }),
    openTask: (sealed) => ports.tasks.open(sealed, { upstream, principal }),
    grants: () => grantsForCaller(snapshot, principal),
    mayShowApps: () => snapshot.mayShowApps(principal),
    supportedVersions: versionsOffered(snapshot.supportedVersions),
    isTraced: snapshot.tracing !== undefined,
  });
}

function findMending(
  { snapshot }: RequestContext,
  admitted: AdmittedMessage,
  mendedBefore: number,
): MendedArguments | undefined {
  const { mending } = snapshot;
  const { target, args, text, presented } = admitted;
  if (mending === undefined || mendedBefore >= MAX_MENDED || target.kind !== 'tool' || args === undefined)
    return undefined;
  if (presented?.refused !== undefined) return undefined;
  return mendArguments(mending, snapshot.catalogFor(admitted), { name: target.name, args, text });
}

function finishAdmission(
  call: RequestContext<'audit' | 'sessions'>,
  principal: Principal,
  outcome: AdmittedMessage,
  mended: readonly MendedArguments[],
): Staged<AdmittedMessage> {
  const admitted = adaptToAcceptHeader(call, outcome);
  call.admitted = admitted.kind === 'admitted' ? admitted : outcome;
  const { tracing } = call.snapshot;
  if (outcome.traceparent !== undefined && tracing !== undefined)
    continueTrace(call, principal, tracing, { inMeta: outcome.traceparent, snapshot: call.snapshot });
  // The server of a reply that is refused gets an error on behalf of the client that was to reply.
  if (outcome.serverRequestId !== undefined) callerOf(call, principal);
  const admission = admissionFacts(call.ports.audit, outcome);
  const { versions } = call.snapshot;
  return {
    outcome: admitted,
    facts: [{ ...admission, versions, findings: [...(admission.findings ?? []), ...mended.flatMap(mendingFindings)] }],
  };
}

/**
 * Adapts an admitted message to a client that accepts no event stream: it cannot be sent server requests while a
 * response is pending. A message answered by its status, or on a legacy SSE stream, needs no media type.
 */
function adaptToAcceptHeader(
  { incoming }: Pick<RequestContext, 'incoming'>,
  admitted: AdmittedMessage,
): AdmittedMessage | Refusal {
  const { message, protocol, session, rule } = admitted;
  const { headers } = incoming;
  if (message.kind !== 'request' || protocol.answersOnStream || acceptsEventStream(headers)) return admitted;
  if (!acceptsType(headers['accept'], 'application/json') || rule.response === 'subscription')
    return refuseProtocolError(notAcceptable({ id: message.id }));
  if (session === undefined) return admitted;
  return copyAdmitted(admitted, {
    allowedServerRequests: [],
    elicitation: withoutForms(admitted.elicitation),
    session: { ...session, allowedServerRequests: [], elicitation: withoutForms(admitted.elicitation) },
  });
}

/** A form needs a stream on which the client is asked; a link stands in the answer. */
function withoutForms(modes: AdmittedMessage['elicitation']): AdmittedMessage['elicitation'] {
  return modes.filter((mode) => mode !== 'form');
}

/** Which server requests policy allows this caller. A server of legacy SSE gets no elicitation, which is newer. */
function grantsForCaller({ policies, upstream, legacySse }: Snapshot, principal: Principal): ServerRequestGrants {
  const grants = allowedServerRequestsFor(policies, principal, upstream);
  return legacySse.isDirect ? { ...grants, elicitation: NO_GRANTS.elicitation } : grants;
}

/**
 * Evaluates pins and policy. Pure, except that a stale listing may have to be refreshed first. A URI takes its turn on the
 * event loop: it may have many readings and spellings, and a caller has many connections. Lists and handshakes do not wait for
 * a newer listing, but for what they would show otherwise than the next call sees it: the first listing, and its trust.
 */
function decide(call: RequestContext<AnyPort>, principal: Principal, admitted: AdmittedMessage): StageOutcome<Allow> {
  const { isFresh, supportedVersions, isTrusting } = call.snapshot;
  const isDue = !isFresh && (needsFreshListing(admitted) || supportedVersions === undefined || isTrusting);
  const listed = isDue && noteWait(call, call.ports.upstreams.refreshListing(call.incoming.upstream));
  return after(listed, (isVerified) => {
    const decideRefreshed = (): Staged<Allow> => {
      refreshAfterWait(call);
      return decideNow(call, principal, admitted, isVerified || call.snapshot.isFresh);
    };
    return admitted.target.kind === 'resource'
      ? noteWait(call, takeTurn(turnsOf(call), decideRefreshed))
      : decideRefreshed();
  });
}

/** False for a reply to a server request: it belongs to a request that was allowed earlier. */
function needsFreshListing({ rule }: AdmittedMessage): boolean {
  return rule.targetKind !== 'none' && rule.targetKind !== 'server-request';
}

function decideNow(
  call: RequestContext<AnyPort>,
  principal: Principal,
  admitted: AdmittedMessage,
  isFresh: boolean,
): Staged<Allow> {
  const startedMs = performance.now();
  const { snapshot } = call;
  const mismatch = checkSupported(admitted, snapshot.supportedVersions);
  if (mismatch !== undefined) return { outcome: refuseProtocolError(mismatch), facts: [versionFacts(call)] };
  const isPlain = snapshot.presentation === undefined && admitted.presented === undefined;
  const decision = isPlain
    ? decideTarget(snapshot, principal, admitted, admitted)
    : decidePresented(snapshot, principal, admitted);
  const policy = performance.now() - startedMs;
  const decided = decisionFacts(call, principal, decision, admitted.args);
  const facts: RecordFacts[] = [{ ...decided, versions: snapshot.versions, latency: { policy }, decidedMs: startedMs }];
  if (snapshot.policies.shadow !== undefined) {
    const query = queryFor(snapshot, principal, admitted, admitted);
    facts.push(shadowFacts(call, query, decision, admitted.args, decided.args));
  }
  if (decision.verdict === 'deny') return { outcome: { kind: 'refused', stage: 'decide', deny: decision }, facts };
  const withdrawn = findWithdrawn(call, principal, admitted);
  if (withdrawn !== undefined) {
    facts.push(decisionFacts(call, principal, withdrawn, undefined));
    return { outcome: { kind: 'refused', stage: 'decide', deny: withdrawn }, facts };
  }
  return { outcome: refuseUnusable(call, admitted, isFresh) ?? decision, facts };
}

/** The decision about a call that may be of a tool which is presented otherwise than its server offers it. */
function decidePresented(snapshot: Snapshot, principal: Principal, admitted: AdmittedMessage): Decision {
  return (
    refuseUnknown(snapshot.presentation, admitted) ??
    refuseWithheld(decideTarget(snapshot, principal, admitted, admitted), admitted.presented)
  );
}

/** Why a message goes no further although a rule allows it: by the pins, its headers, or what it uses. */
function refuseUnusable(
  call: RequestContext<AnyPort>,
  admitted: AdmittedMessage,
  isFresh: boolean,
): Refusal | undefined {
  if (needsFreshListing(admitted) && !isFresh) return refuseWith('pins-stale');
  if (!isKindVerified(call, admitted))
    return refuseWith('pins-stale', {
      detail: `the list of ${admitted.target.kind}s is unavailable`,
    });
  call.features = call.featuresOf(admitted, call.snapshot);
  const catalog = call.snapshot.catalogFor(admitted);
  const protocolError = checkParamHeaders(admitted, catalog) ?? checkFeatures(call, admitted, catalog);
  return protocolError && refuseProtocolError(protocolError);
}

/**
 * Why a reply goes no further although a server may request it: the server asked during a request for something that the
 * caller may not use any more, and continues that request with what it is told. In the stateless era the reply is such a
 * request itself.
 */
function findWithdrawn(
  call: RequestContext<'sessions'>,
  principal: Principal,
  admitted: AdmittedMessage,
): Deny | undefined {
  const { serverRequestId, session } = admitted;
  if (serverRequestId === undefined || session === undefined) return undefined;
  const scope = { upstream: call.incoming.upstream, principal, session };
  const about = call.ports.sessions.serverRequests.open(serverRequestId, scope)?.about;
  const decision = about && decideVisible(call.snapshot, principal, admitted, about);
  return decision?.verdict === 'deny' ? decision : undefined;
}

/** Whether the list was read in which the target stands. Resources that no definition refers to stand in none. */
function isKindVerified({ snapshot }: RequestContext, { target }: AdmittedMessage): boolean {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
    case 'template':
      return snapshot.isKindVerified(target.kind);
    case 'resource':
      return !isAppUri(target.uri) || snapshot.isKindVerified('resource');
    case 'server-request':
    case 'task':
    case 'none':
      return true;
  }
}

function checkFeatures(
  call: RequestContext<AnyPort>,
  admitted: AdmittedMessage,
  catalog: Catalog,
): ProtocolError | undefined {
  for (const { checkUse } of call.features) {
    const error = checkUse?.(call, admitted, catalog);
    if (error !== undefined) return error;
  }
  return undefined;
}

/** A client's message that is decided on. */
export type ClientMessage = VerifiedCall<AnyPort> & { readonly admitted: AdmittedMessage };

/**
 * Decides, opens what the client carries for the gateway in the message (task ids, request state), removes what it may
 * not subscribe to, and seals the ids of requests on legacy SSE.
 */
export function decideMessage({ call, principal, admitted }: ClientMessage): StageOutcome<DecidedRequest> {
  // What each step learns is folded at once, so that the record has it even if a later step throws.
  return after(decide(call, principal, admitted), (decided) => {
    const allow = take(call, decided);
    return 'kind' in allow ? { outcome: allow } : prepareMessage({ call, principal, admitted }, allow);
  });
}

function prepareMessage({ call, principal, admitted }: ClientMessage, allow: Allow): StageOutcome<DecidedRequest> {
  let restored: AdmittedMessage | Refusal | Promise<AdmittedMessage | Refusal> = admitted;
  for (const { prepare } of call.features) {
    if (prepare === undefined) continue;
    restored = after<AdmittedMessage | Refusal, AdmittedMessage | Refusal>(restored, (message) =>
      message.kind === 'refused'
        ? message
        : after(noteWait(call, prepare(call, { principal, allow, admitted: message })), (staged) => take(call, staged)),
    );
  }
  return after<AdmittedMessage | Refusal, Staged<DecidedRequest>>(restored, (message) => {
    if (message.kind === 'refused') return { outcome: message };
    call.admitted = message;
    return { outcome: { principal, allow, restored: message } };
  });
}

/** The caller, the decision that allows the request, and the message as it will be forwarded. */
export type DecidedRequest = {
  readonly principal: Principal;
  readonly allow: Allow;
  readonly restored: AdmittedMessage;
};

/**
 * Inspects the arguments: they must hold no secret, and never the caller's own token. Long arguments wait for an
 * inspection thread, so the result is what is valid afterwards, and only that may be authorized. `admitted` is
 * the message that was decided on, `decided.restored` the one to forward.
 */
export function inspectArguments(subject: ClientMessage, decided: DecidedRequest): StageOutcome<DecidedRequest> {
  const { call } = subject;
  const startedMs = performance.now();
  const { restored } = decided;
  const input = guardInput(call, restored, contentOf(call, restored), restored.text);
  const guarded = noteWait(call, call.ports.inspection.request(input, call.incoming.upstream, call.callerKey));
  return after(guarded, (body) => {
    const headers = body.kind === 'clear' ? guardHeaders(call, restored) : undefined;
    const findings = headers === undefined ? body.findings : [...body.findings, ...headers.findings];
    addInspection(call.record, findings, performance.now() - startedMs);
    const refusal = refusalOf(body) ?? (headers && refusalOf(headers));
    if (refusal !== undefined) return { outcome: refusal };
    return call.hasWaited === true ? decideAgain(subject, decided) : { outcome: decided };
  });
}

/**
 * Repeats authentication and decision if any version has changed since or the token has expired: large requests
 * and long arguments wait, and revocations must not. The obligations of the new decision replace the old ones,
 * also in the record.
 */
async function decideAgain(
  { call, admitted }: ClientMessage,
  decided: DecidedRequest,
): Promise<Staged<DecidedRequest>> {
  const session = admitted.session && call.incoming.headers['mcp-session-id'];
  const isTokenExpired = decided.principal.token.expiresAt <= Date.now();
  // Ending a session changes no version, so it is checked first; with an expired token, authentication refuses anyway.
  const sessionRefusal = isTokenExpired ? undefined : checkSession(call, session, decided.principal);
  if (sessionRefusal !== undefined) return { outcome: sessionRefusal };
  if (call.ports.leases.countChanges() === call.changesAtStart && !isTokenExpired) return { outcome: decided };
  const { secrets } = call.snapshot.profile.request;
  const principal = take(call, await verifyAgain(call, admitted));
  if ('kind' in principal) return { outcome: principal };
  const subject = { call, principal, admitted };
  // What is sealed or narrowed by the decision is so by the new one: ids on legacy SSE, the filter of a subscription.
  const { outcome } = await decideMessage(subject);
  // A different profile may refuse the arguments, so they are inspected again, and again only if it changes again.
  if ('kind' in outcome || call.snapshot.profile.request.secrets === secrets) return { outcome };
  return inspectArguments(subject, outcome);
}

/** Verifies again who calls, after a wait: the token, the session and the blocks that are in force by now. */
export async function verifyAgain(
  call: RequestContext<AnyPort>,
  admitted: AdmittedMessage,
): Promise<Staged<Principal>> {
  const principal = await authenticateAgain(call);
  if ('kind' in principal) return { outcome: principal };
  const session = admitted.session && call.incoming.headers['mcp-session-id'];
  const isOver = checkSession(call, session, principal);
  if (isOver !== undefined) return { outcome: isOver };
  refreshAfterWait(call);
  const { block } = call.snapshot;
  if (block !== undefined) return { outcome: refuseBlocked(block), facts: [versionFacts(call)] };
  if (call.caller !== undefined) callerOf(call, principal);
  return { outcome: principal, facts: [{ caller: { principal } }] };
}

/** Inspects parameter headers; nothing else reads one that mirrors no argument. HTTP keeps them short. */
function guardHeaders(call: RequestContext<'inspection'>, admitted: AdmittedMessage): GuardOutcome | undefined {
  const headers = decodeParamHeaders(admitted.paramHeaders);
  return headers && guardArguments(guardInput(call, admitted, headers, JSON.stringify(headers)));
}

function guardInput(
  call: RequestContext<'inspection'>,
  admitted: AdmittedMessage,
  value: JsonObject,
  text: string,
): GuardInput {
  const profile = withMarks(call, admitted, call.snapshot.profile);
  const { marks } = call.ports.inspection;
  return { value, text, profile, presentedToken: presentedToken(call.incoming), marks };
}

/** What is read as code is written back as code: a redaction mark in it would overwrite what was redacted. */
function withMarks(call: RequestContext, admitted: AdmittedMessage, profile: InspectionProfile): InspectionProfile {
  if (profile.request.marks !== undefined) return profile;
  const kind = contentKindOf(call, admitted.target, admitted);
  return kind === 'code' ? { ...profile, request: { ...profile.request, marks: 'block' } } : profile;
}

function refusalOf(outcome: GuardOutcome): Refusal | undefined {
  if (outcome.kind === 'clear') return undefined;
  const places = outcome.findings
    .filter(({ action }) => action === 'block')
    .map(({ path, detector }) => `${path === '' ? 'the request' : path} (${detector})`);
  if (places.length === 0) return refuseWith(outcome.reason);
  // Pointers of findings name nothing but plain members, and detectors are the gateway's own words.
  const named = places.slice(0, MAX_NAMED_PLACES).join(', ');
  const rest = places.length - MAX_NAMED_PLACES;
  const detail = rest > 0 ? `${named} and ${rest} more` : named;
  return refuseWith(outcome.reason, { advice: `Found at ${detail}.`, detail });
}

/** Places of arguments that a refusal names. */
const MAX_NAMED_PLACES = 3;

/** Decides again with what inspection found, where a rule that asks a person reads it. */
function decideWithFindings({ call, admitted }: ClientMessage, { principal, allow }: DecidedRequest): Staged<Allow> {
  if (approvalOf(allow)?.isPending !== true) return { outcome: allow };
  const flagged = call.record.findings.filter(
    ({ direction, action }) => direction === 'to-upstream' && action === 'flag',
  );
  const findings = [...new Set(flagged.map(({ detector }) => detector))];
  const decision = decideTarget(call.snapshot, principal, admitted, { ...admitted, findings });
  if (decision.verdict === 'allow') return { outcome: decision };
  const facts = [decisionFacts(call, principal, decision, admitted.args)];
  return { outcome: { kind: 'refused', stage: 'decide', deny: decision }, facts };
}

/** Enforces flows, the decision's limits, and that a server request is answered only once. */
export function enforceObligations(subject: ClientMessage, decided: DecidedRequest): StageOutcome<AuthorizedRequest> {
  const { call } = subject;
  const { principal, restored } = decided;
  const { obligations } = decided.allow;
  const allow = obligations.length === 0 ? decided.allow : take(call, decideWithFindings(subject, decided));
  if ('kind' in allow) return { outcome: allow };
  const hasFlows = call.snapshot.policies.flows !== undefined;
  return after(hasFlows ? enforceFlows(call, principal, restored) : { outcome: restored }, (flowed) => {
    const { outcome: passed, facts } = flowed;
    if (passed.kind === 'refused') return { outcome: passed, facts };
    const asked = allow.obligations.length === 0 ? NOTHING_BEYOND : askedBeyond(call, principal, allow, passed);
    return after(asked, (beyond) => {
      if ('verdict' in beyond) return { outcome: { kind: 'refused', stage: 'settle', deny: beyond }, facts };
      const others = beyond.length === 0 ? flowed.requirements : [...(flowed.requirements ?? []), ...beyond];
      const approvable = approvableOf(principal, allow, passed, others);
      return approvable === undefined
        ? after(settle(call, { principal, allow, passed }), (outcome) => ({ outcome, facts }))
        : settleApproved(call, allow, approvable, { lifted: beyond, facts });
    });
  });
}

const NOTHING_BEYOND: readonly ApprovalRequirement[] = Object.freeze([]);

/** What rules ask that ask about a call beyond their limits. */
function askedBeyond(
  call: RequestContext<'limits'>,
  principal: Principal,
  allow: Allow,
  { rule }: AdmittedMessage,
): readonly ApprovalRequirement[] | Deny | Promise<readonly ApprovalRequirement[] | Deny> {
  const beyond = approvalOf(allow)?.beyond ?? [];
  if (beyond.length === 0 || !APPROVABLE_METHODS.has(rule.method)) return NOTHING_BEYOND;
  return findBeyondLimits(beyond, principal, call.ports.limits);
}

/** A yes is found first and used last, so that no limit uses it up for nothing. */
async function settleApproved(
  call: RequestContext<AnyPort>,
  allow: Allow,
  asked: Approvable,
  {
    lifted,
    facts = [],
  }: { readonly lifted: readonly ApprovalRequirement[]; readonly facts: readonly RecordFacts[] | undefined },
): Promise<Staged<AuthorizedRequest>> {
  const shown = toShow(call, asked.admitted);
  if (shown === undefined) return { outcome: refuseWith('approval-required', { advice: NOBODY_SEES }), facts };
  const { principal } = asked;
  const { admitted: passed, findings } = shown;
  take(call, { outcome: shown, facts: [{ findings }] });
  const approval = take(call, await findApproval(call, { ...asked, admitted: passed }));
  if ('kind' in approval) return { outcome: approval, facts };
  const outcome = await settle(call, { principal, allow, passed, approved: { isApproved: true, lifted } });
  const unused = 'kind' in outcome ? undefined : await approval.use();
  return { outcome: unused ?? outcome, facts };
}

type Settling = {
  readonly principal: Principal;
  readonly allow: Allow;
  readonly passed: AdmittedMessage;
  readonly approved?: Approved;
};

/** The limits of the decision, and that a server request is answered only once. */
function settle(
  call: RequestContext<AnyPort>,
  { principal, allow, passed, approved }: Settling,
): AuthorizedRequest | Refusal | Promise<AuthorizedRequest | Refusal> {
  const refusal = passed.rule.method === 'initialize' ? limitInitialize(call) : undefined;
  if (refusal !== undefined) return refusal;
  return after(enforce(allow, passed, principal, call.ports, call.named?.allows, approved), (enforced) => {
    const outcome: AuthorizedRequest | Refusal =
      'verdict' in enforced ? { kind: 'refused', stage: 'settle', deny: enforced } : enforced;
    const replayed = passed.serverRequestId === undefined ? undefined : refuseReplay(call);
    return after(replayed, (again) => again ?? outcome);
  });
}

/** A server request is answered once. */
async function refuseReplay(call: RequestContext<'sessions'>): Promise<Refusal | undefined> {
  const isFirst = await claimReply(call);
  if (isFirst === true) return undefined;
  return refuseWith(isFirst === false ? 'already-answered' : 'store-unavailable');
}

/** Each session costs its upstream memory for as long as it lasts, so a caller may only open so many in a while. */
function limitInitialize({ ports, incoming, callerKey = '' }: RequestContext<'sessions'>): Refusal | undefined {
  const counted = ports.sessions.countInitialize(incoming.upstream, callerKey);
  if (counted === 'unavailable') return refuseWith('overloaded');
  if (counted.ok) return undefined;
  const retryAfterSeconds = Math.ceil(counted.retryAfterMs / 1000);
  const advice = `Try again in ${retryAfterSeconds} seconds.`;
  return refuseWith('rate-limited', { advice, retryAfterSeconds });
}
