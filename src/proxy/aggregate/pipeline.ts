// The pipeline of an aggregate: authenticates the caller, validates the message and routes it to the backend that its
// name, URI or task id belongs to, or to all. Each of them then gets a request of its own through the ordinary
// pipeline (proxy/pipeline.ts), where everything else is decided, recorded and forwarded. INVARIANT: nothing here
// allows anything or reaches an upstream, and a method that is not in the table of routes is refused, because its
// backend cannot be determined.
// Source: docs/reference/protocol.md, row 49; MCP 2025-11-25 and 2026-07-28, methods; RFC 6570 §1.1 and §2.

import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/decision.js';
import { ownName } from '../../policy/presentation.js';
import { callerKeyOf, type Principal } from '../../policy/principal.js';
import { fold, openRecord } from '../../policy/record.js';
import type { SessionScope } from '../../policy/sealed-types.js';
import { type AdmittedArray, admitPost } from '../../protocol/admission.js';
import type { AdmittedMessage, TaskFacts } from '../../protocol/admitted-request.js';
import type { ReadOutcome } from '../../protocol/json/incremental.js';
import { changeMembers, type JsonReading } from '../../protocol/json/json.js';
import { isRequestId, type Target } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { errorContextOf, METHOD_NOT_FOUND, protocolErrorOf } from '../../protocol/responses.js';
import type { Capacity, Incoming, Outgoing } from '../../protocol/transport.js';
import type { ClientTraits } from '../../protocol/versions/revisions.js';
import { authenticateAgain } from '../access-lease.js';
import { decideVisible, maySee, take } from '../authorization.js';
import { holdBody, refuseOverLimit } from '../capacity.js';
import { runBatch } from '../features/batch.js';
import { isRead, refuseReadError } from '../message-reading.js';
import type { Backend, HandleRequest, Ports } from '../ports.js';
import { targetFacts } from '../record-facts.js';
import { claimId } from '../request-context.js';
import { callerOrRefusal } from '../stages.js';
import { beginTrace, continueTrace } from '../trace.js';
import {
  type AggregateContext,
  type BackendRequest,
  backendOfName,
  findFatalOutcome,
  refuseAggregate,
  refuseNotFound,
  refuseParams,
  replaceText,
  requestBackends,
  runBackendRequest,
  type VerifiedRequest,
} from './backend-requests.js';
import { isList, joinHandshakes, joinLists, resultOf } from './lists.js';
import {
  backendRequestIn,
  backendRequestsOf,
  endAggregateSession,
  endLostSession,
  findBackend,
  openAggregateSession,
} from './sessions.js';
import { openStreams, subscribeToAll } from './streams.js';

/** Handles one request to an aggregate. Never rejects; responds once. `run` is the pipeline for backend requests. */
export async function handleAggregateRequest(
  incoming: Incoming,
  outgoing: Outgoing,
  ports: Ports,
  run: HandleRequest,
): Promise<void> {
  const aggregate = ports.aggregates.get(incoming.upstream);
  if (aggregate === undefined) return outgoing.send(404, {}, '');
  const record = openRecord(incoming, aggregate.versions);
  const { tracing } = aggregate;
  if (tracing !== undefined) beginTrace({ incoming, record }, tracing);
  const context: AggregateContext = {
    ...{ incoming, outgoing, ports, run, aggregate, record },
    admitted: undefined,
    lostSession: undefined,
    hasBackendRecords: false,
  };
  try {
    const refusal = await runStages(context);
    if (refusal !== undefined) refuseAggregate(context, refusal);
  } catch (error) {
    ports.audit.report(error, incoming.id, record.trace);
    refuseAggregate(context, refuseWith('internal'));
  } finally {
    context.releaseId?.();
    if (!context.hasBackendRecords) ports.audit.closeRecord(record);
    else if (record.trace?.isSampled === true) endSpan(context);
  }
}

/** Ends the span above those of the backends, whose records are the ones that count. */
function endSpan({ record, admitted, ports }: AggregateContext): void {
  fold(record, {
    client: { era: admitted?.protocol.era, version: admitted?.version },
    target: admitted && targetFacts(admitted),
  });
  record.isDivided = true;
  ports.audit.endSpan(record);
}

/** The stages in order: authentication, admission, routing to the backends. */
async function runStages(context: AggregateContext): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, aggregate } = context;
  const changesAtStart = ports.leases.countChanges();
  const caller = take(context, callerOrRefusal(context, await ports.identity.authenticate(incoming, outgoing)));
  if ('kind' in caller) return caller;
  if (aggregate.tracing !== undefined) continueTrace(context, caller, aggregate.tracing);
  const callerKey = callerKeyOf(caller);
  const capacity = holdBody(incoming, callerKey);
  if (capacity === undefined) return refuseWith('overloaded');
  const reading = incoming.httpMethod === 'POST' ? await readBody(context, callerKey) : undefined;
  if (reading !== undefined && !isRead(reading)) return refuseReadError(reading.error);
  // What follows up to the backends' own pipeline runs is not divided, so it begins with a turn of its own.
  await ports.inspection.loopScheduler.waitForTurn(incoming.upstream);
  const principal = await verifyAfterWait(context, caller, changesAtStart);
  if ('kind' in principal) return principal;
  // From here to the backends' own pipeline runs nothing is waited for.
  const verified: VerifiedRequest = { context, principal };
  const refusal = await serve(verified, reading, capacity);
  endLostSession(verified);
  return refusal;
}

async function serve(
  verified: VerifiedRequest,
  reading: JsonReading | undefined,
  capacity: Capacity,
): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports, record, run } = verified.context;
  if (reading === undefined)
    return incoming.httpMethod === 'GET' ? openStreams(verified) : endAggregateSession(verified);

  const admitted = admit(verified, reading);
  if (admitted.kind === 'refused') return admitted;
  const overLimit = refuseOverLimit(capacity, admitted);
  if (overLimit !== undefined) return overLimit;
  if (admitted.kind === 'array')
    return runBatch({ incoming, outgoing, ports, record }, admitted, (one, element) =>
      handleAggregateRequest(one, element, ports, run),
    );
  return claimId(verified.context, callerKeyOf(verified.principal), admitted) ?? route(verified, admitted);
}

/**
 * Takes the aggregate as it now is, and verifies the caller again if any version has changed since the request came or
 * the token has expired: a large body is waited for, and revocations must not. An issuer may be waited for too, and the
 * backends' requests see only the changes that come after this.
 */
async function verifyAfterWait(
  context: AggregateContext,
  caller: Principal,
  changesAtStart: number,
): Promise<Principal | Refusal> {
  const { incoming, ports, record } = context;
  let principal = caller;
  let changes = changesAtStart;
  let isDue = caller.token.expiresAt <= Date.now();
  for (;;) {
    const aggregate = ports.aggregates.get(incoming.upstream);
    if (aggregate === undefined) return refuseWith('upstream-unavailable');
    context.aggregate = aggregate;
    fold(record, { versions: aggregate.versions });
    if (!isDue && ports.leases.countChanges() === changes) return principal;
    isDue = false;
    changes = ports.leases.countChanges();
    const verified = await authenticateAgain(context);
    if ('kind' in verified) return verified;
    principal = verified;
    fold(record, { caller: { principal: verified } });
  }
}

/** The number of values is unlimited here: each backend's own limit applies when its request is parsed. */
function readBody({ incoming, ports }: AggregateContext, caller: string): ReadOutcome | Promise<ReadOutcome> {
  const readOptions = { upstream: incoming.upstream, caller, maxValues: Number.POSITIVE_INFINITY };
  return ports.inspection.readJson(incoming.body, readOptions);
}

/** Admits the message only to find its backends. The backend's own pipeline run admits what is forwarded. */
function admit(verified: VerifiedRequest, reading: JsonReading): AdmittedMessage | AdmittedArray | Refusal {
  const { context, principal } = verified;
  const { incoming, ports } = context;
  const { tracing } = context.aggregate;
  const outcome = admitPost({
    headers: incoming.headers,
    repeated: incoming.repeated,
    body: incoming.body,
    reading,
    openSession: (sealed) => openAggregateSession(verified, sealed),
    openServerRequest: (id, session) =>
      findBackend(verified, session, (scope) => ports.sessions.serverRequests.open(id, scope))?.opened,
    openTask: (sealed) => findTask(verified, sealed)?.task,
    isTraced: tracing !== undefined,
  });
  if (outcome.kind === 'error') return refuseProtocolError(outcome);
  if (outcome.kind === 'admitted' && outcome.traceparent !== undefined && tracing !== undefined)
    continueTrace(context, principal, tracing, { inMeta: outcome.traceparent });
  if (outcome.kind === 'admitted') context.admitted = outcome;
  return outcome;
}

const AMBIGUOUS = 'Several servers of this endpoint could serve this resource. Read it through the path of one server.';
const EXPRESSION = /\{[^{}]*\}/;

/**
 * Whether a URI may come from a URI template: the template's literals occur in it in order, the first and last
 * at its ends. Deliberately lenient, since it only chooses between backends that may both be read. Runs in
 * linear time.
 */
export function matchesTemplate(uriTemplate: string, uri: string): boolean {
  const literals = uriTemplate.split(EXPRESSION);
  const [first = '', ...rest] = literals;
  if (rest.length === 0) return uri === uriTemplate;
  const last = rest.pop() ?? '';
  if (!uri.startsWith(first) || !uri.endsWith(last)) return false;
  const end = uri.length - last.length;
  let position = first.length;
  for (const literal of rest) {
    const found = uri.indexOf(literal, position);
    if (found === -1) return false;
    position = found + literal.length;
  }
  return position <= end;
}

/** Opens a sealed task id at the one backend that issued it to this caller; `undefined` for any other id. */
function findTask(
  { context, principal }: VerifiedRequest,
  sealed: string,
): { readonly backend: Backend; readonly task: TaskFacts } | undefined {
  for (const backend of context.aggregate.backends) {
    const task = context.ports.tasks.open(sealed, { upstream: backend.upstream, principal });
    if (task !== undefined) return { backend, task };
  }
  return undefined;
}

/**
 * The one backend that serves a URI, or why there is not exactly one. URIs have no prefix, so the candidates are
 * the backends whose rules let this caller see it; of several, the only one that listed it or has an approved
 * template for it. An ambiguous URI is never guessed, because another server could then answer in place of the
 * right one.
 */
function findBackendOfUri(
  verified: VerifiedRequest,
  { target, protocol, apps }: Pick<AdmittedMessage, 'target' | 'protocol' | 'apps'>,
): Backend | 'none' | 'several' {
  const { context, principal } = verified;
  const client = { protocol, apps };
  const visibleBackends = context.aggregate.backends.filter((backend) => mayServe(verified, backend, target, client));
  const [only, ...others] = visibleBackends;
  if (only === undefined) return 'none';
  if (others.length === 0) return only;
  if (target.kind !== 'resource') return 'several';
  const listing = context.ports.aggregates.recallResource(
    { aggregate: context.aggregate.name, principal, uri: target.uri },
    visibleBackends.map(({ upstream }) => upstream),
  );
  // A URI that one backend listed may also fit a template of another; then both may serve it.
  const candidates = visibleBackends.filter(
    (backend) => listing.includes(backend.upstream) || hasTemplateFor(verified, backend, target.uri, client),
  );
  return (candidates.length === 1 ? candidates[0] : undefined) ?? 'several';
}

function isVisible(
  { context, principal }: VerifiedRequest,
  { upstream }: Backend,
  target: Target,
  client: ClientTraits,
): boolean {
  const snapshot = context.aggregate.snapshot(upstream);
  return snapshot !== undefined && maySee(snapshot, principal, client, target);
}

/**
 * Whether the target is the backend's for this caller. That an administrator has blocked it there changes nothing: the
 * backend's own pipeline run refuses it, and no other backend answers in its place.
 */
function mayServe(
  { context, principal }: VerifiedRequest,
  { upstream }: Backend,
  target: Target,
  client: ClientTraits,
): boolean {
  const snapshot = context.aggregate.snapshot(upstream);
  if (snapshot === undefined) return false;
  const decision = decideVisible(snapshot, principal, client, target);
  const isBlocked = decision.verdict === 'deny' && decision.reason === 'blocked';
  return decision.verdict === 'allow' || (isBlocked && snapshot.block === undefined);
}

function hasTemplateFor(verified: VerifiedRequest, backend: Backend, uri: string, client: ClientTraits): boolean {
  const catalog = verified.context.aggregate.snapshot(backend.upstream)?.catalogFor(client);
  const templates = catalog?.names('template') ?? [];
  return templates.some(
    (uriTemplate) =>
      matchesTemplate(uriTemplate, uri) && mayServe(verified, backend, { kind: 'template', uriTemplate }, client),
  );
}

type Route = (
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
) => Promise<Refusal | undefined> | Refusal | undefined;

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['initialize', joinHandshakes],
  ['server/discover', joinHandshakes],
  ['tools/call', (verified, admitted) => callByName(verified, admitted, ['params', 'name'])],
  ['prompts/get', (verified, admitted) => callByName(verified, admitted, ['params', 'name'])],
  ['completion/complete', complete],
  ['resources/read', callByUri],
  ['resources/subscribe', callByUri],
  ['resources/unsubscribe', callByUri],
  ['subscriptions/listen', subscribeToAll],
  ['tasks/get', callByTask],
  ['tasks/result', callByTask],
  ['tasks/cancel', callByTask],
  ['tasks/update', callByTask],
  ['ping', requestAll],
  ['logging/setLevel', requestAll],
  ['notifications/initialized', notifyAll],
  ['notifications/cancelled', cancel],
  ['notifications/roots/list_changed', notifyAll],
]);

/** Sends an admitted message to the backend or backends that it concerns. */
async function route(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<Refusal | undefined> {
  const { message, rule } = admitted;
  if (message.kind === 'result' || message.kind === 'error') return reply(verified, admitted);
  if (isList(rule.method)) return joinLists(verified, admitted);
  const handler = ROUTES.get(rule.method);
  return handler === undefined ? refuseMethod(admitted) : handler(verified, admitted);
}

async function callByName(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  path: readonly string[],
): Promise<Refusal | undefined> {
  const { target, text } = admitted;
  const name = target.kind === 'tool' || target.kind === 'prompt' ? target.name : '';
  const found = backendOfName(verified.context.aggregate.backends, name);
  if (found === undefined) return refuseNotFound();
  const backendTarget = { ...target, name: ownNameOf(verified, found.backend, target, found.name) } as Target;
  const edited = { text: replaceText(text, path, found.name), name: found.name };
  return forwardToBackend(verified, admitted, found.backend, backendTarget, edited);
}

/** The name that rules of the backend have for what the client names; empty if no tool is known by it. */
function ownNameOf(
  { context }: VerifiedRequest,
  { upstream }: Backend,
  { kind }: Pick<Target, 'kind'>,
  name: string,
): string {
  return kind === 'tool' ? (ownName(context.aggregate.snapshot(upstream)?.presentation, name) ?? '') : name;
}

async function callByUri(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<Refusal | undefined> {
  const { loopScheduler } = verified.context.ports.inspection;
  const startedMs = performance.now();
  const serving = findBackendOfUri(verified, admitted);
  loopScheduler.recordTime(startedMs);
  if (serving === 'none') return refuseNotFound();
  if (serving === 'several') return refuseParams(admitted, AMBIGUOUS);
  return forwardToBackend(verified, admitted, serving, admitted.target, {});
}

async function callByTask(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<Refusal | undefined> {
  const found = admitted.task && findTask(verified, admitted.task.sealed);
  if (found === undefined) return refuseWith('unknown-task', { listed: false });
  return forwardToBackend(verified, admitted, found.backend, admitted.target, {});
}

function complete(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<Refusal | undefined> {
  return admitted.target.kind === 'prompt'
    ? callByName(verified, admitted, ['params', 'ref', 'name'])
    : callByUri(verified, admitted);
}

/** Forwards a message to one backend, whose pipeline run responds to the client directly. */
async function forwardToBackend(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  backend: Backend,
  target: Target,
  edited: Pick<BackendRequest, 'text' | 'name'>,
): Promise<Refusal | undefined> {
  const backendRequest = backendRequestsOf(verified, admitted).find((one) => one.backend.upstream === backend.upstream);
  if (backendRequest === undefined) return refuseBackendWithoutSession(verified, admitted, backend, target);
  const { context, principal } = verified;
  const { incoming, outgoing } = context;
  // Also acquired here, because only this refusal can name the request id, and a batch element has no other
  // response.
  const overLimit = refuseOverLimit(incoming.acquireSlot(callerKeyOf(principal), backend.upstream), admitted);
  if (overLimit !== undefined) return overLimit;
  await runBackendRequest(verified, { ...backendRequest, ...edited }, outgoing);
  return undefined;
}

/**
 * The backend has no session, because it did not respond when the session was opened. A caller who may not see
 * the target learns nothing of that.
 */
function refuseBackendWithoutSession(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  backend: Backend,
  target: Target,
): Refusal {
  return isVisible(verified, backend, target, admitted) ? refuseWith('upstream-unavailable') : refuseNotFound();
}

/** Forwards a reply to a server request to the backend in whose session its sealed id opens. */
async function reply(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<undefined> {
  const { ports, outgoing } = verified.context;
  const { session, serverRequestId = '' } = admitted;
  const open = (scope: SessionScope) => ports.sessions.serverRequests.open(serverRequestId, scope);
  const found = session && findBackend(verified, session, open);
  if (found === undefined) throw new Error('an admitted reply has a server request');
  await runBackendRequest(verified, backendRequestIn(found.session), outgoing);
  return undefined;
}

/** Sends the request to every backend: each has a session to keep alive or a level to set. One success is enough. */
async function requestAll(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<undefined> {
  const fan = await requestBackends(verified, backendRequestsOf(verified, admitted));
  const fatal = findFatalOutcome(verified, fan.outcomes, admitted.session);
  const successful = fan.outcomes.find(({ response }) => response.text && resultOf(response.text));
  if (fatal !== undefined || successful === undefined) fan.fail(fatal);
  else fan.send(successful.response.body);
  return undefined;
}

/** Sends a notification to every backend of the session; accepted if one accepts it. */
function notifyAll(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<undefined> {
  return notifyBackends(verified, admitted, backendRequestsOf(verified, admitted));
}

/**
 * Forwards a cancellation to the backends that work on the request. If none is known here (it was already
 * answered, or runs on another replica) it goes to all, since one of them may be; then with the request id
 * alone, because any other member could reveal to one backend what was requested of another.
 */
function cancel(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<undefined> {
  const { incoming, ports } = verified.context;
  const backendRequests = backendRequestsOf(verified, admitted);
  const { requestId: id, ...rest } = paramsOf(admitted);
  const session = incoming.headers['mcp-session-id'];
  const working =
    session !== undefined && isRequestId(id) ? ports.aggregates.findRunningBackends(session, id) : NO_BACKENDS;
  const known = backendRequests.filter(({ backend }) => working.includes(backend.upstream));
  if (known.length > 0) return notifyBackends(verified, admitted, known);
  const textWithIdOnly = changeMembers(admitted.text, {
    path: ['params'],
    cut: new Set(Object.keys(rest)),
  });
  return notifyBackends(
    verified,
    admitted,
    backendRequests.map((backendRequest) => ({ ...backendRequest, text: textWithIdOnly })),
  );
}

const NO_BACKENDS: readonly string[] = [];

async function notifyBackends(
  verified: VerifiedRequest,
  { session }: AdmittedMessage,
  backendRequests: readonly BackendRequest[],
): Promise<undefined> {
  const { context } = verified;
  const fan = await requestBackends(verified, backendRequests);
  const fatal = findFatalOutcome(verified, fan.outcomes, session);
  const isAccepted = fan.outcomes.some(({ response }) => response.status === 202);
  if (isAccepted && fatal === undefined) context.outgoing.send(202, {}, '');
  else fan.fail(fatal);
  return undefined;
}

function refuseMethod({ protocol, message }: AdmittedMessage): Refusal {
  const kind = message.kind === 'request' ? 'request' : 'notification';
  const status = protocol.statusOfRefusedMethod(kind);
  const text = 'This method is not supported on an endpoint that combines several servers.';
  return refuseProtocolError(
    protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, text, errorContextOf(message), status),
  );
}
