// Subscriptions (2026-07-28). A request is narrowed to what its caller may receive: list changes if the caller sees an
// item of that kind, updates of resources that the caller may read, and the status of the caller's own tasks. The rest
// is removed from the request. On the stream the acknowledgement comes first, then the notifications that were
// subscribed to. Each is checked under the version then in force: does it belong to the stream, was it subscribed to,
// may the caller still know it, is its content clean? Drift and reloads are announced by the gateway itself, even if
// the upstream does not support subscriptions. A client that disconnects cancels the subscription.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen); docs/contract.md, law 2.

import { type Allow, type Decision, type Refusal, refuseWith } from '../../policy/decision.js';
import type { AuthorizedRequest } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import type { Finding, RecordFacts, Staged } from '../../policy/record.js';
import type { PolicyQuery } from '../../policy/rules.js';
import { decideShadows } from '../../policy/shadow.js';
import { normalizeUri } from '../../policy/uris.js';
import { amendAdmitted } from '../../protocol/admission.js';
import { type AdmittedMessage, NO_SESSION_ID, type OpenedTask } from '../../protocol/admitted-request.js';
import { mediaType } from '../../protocol/headers.js';
import { runInTurns, takeTurn } from '../../protocol/json/incremental.js';
import { type ParsedJson, readJsonText, removeMember, setMember, spanOf } from '../../protocol/json/json.js';
import type { Json, JsonObject, RequestId, Target } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { METHOD_NOT_FOUND, URL_ELICITATION_REQUIRED } from '../../protocol/responses.js';
import { encodeSseComment, encodeSseMessage, isEventStream, isExcess } from '../../protocol/sse.js';
import {
  belongsToSubscription,
  EMPTY_FILTER,
  filterOfNotification,
  type ListFilter,
  matchesExactly,
  readFilter,
  renderAcknowledged,
  renderFinalResponse,
  renderListChanged,
  type SubscriptionFilter,
  writeFilter,
} from '../../protocol/subscriptions.js';
import { amendResponse, joinPieces, type UpstreamResponse } from '../../protocol/transport.js';
import { errorOfStatus, errorSeenIn } from '../../protocol/upstream-status.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import { decideTarget, mayKnowList, queryFor } from '../authorization.js';
import { unpinnedTextAt } from '../flows.js';
import { turnsOf } from '../message-reading.js';
import type { Snapshot } from '../ports.js';
import { type NamedItems, newestSnapshot, type RequestContext } from '../request-context.js';
import {
  ALWAYS_AUTO,
  type CheckContext,
  type CheckPorts,
  DROP,
  dropped,
  inspect,
  type MessageOutcome,
  readUpstreamMessage,
  respond,
  withhold,
} from '../response-context.js';
import { sendResponse } from '../response-forwarding.js';
import { createResponseCheck } from '../response-pipeline.js';
import { createGatheredWrites, refuseEnd, writeFailure } from '../sse-response.js';
import { aborted, keepStreamOpen, type RelayPorts, relayHeldStream, type StreamTerms } from '../stream-lifetime.js';
import { relayErrorStatus } from '../upstream-errors.js';
import {
  type Checked,
  checkUpstreamMessage,
  type MessagePlace,
  type Notification,
  passInspected,
  type ResponseMessage,
} from '../upstream-messages.js';
import { createResponseGate } from './progress.js';
import { openSubscribedTask } from './task-requests.js';
import { checkTaskNotification, mayKnowTask } from './task-responses.js';

/** What may be seen is the same for every client of the era. */
const SUBSCRIBER = { protocol: STATELESS, apps: false } as const;

/** The message, with its filter reduced to what the caller may receive. */
export async function narrowSubscription(
  call: RequestContext<'inspection' | 'tasks'>,
  principal: Principal,
  admitted: AdmittedMessage,
): Promise<Staged<AdmittedMessage>> {
  const rawFilter = paramsOf(admitted)['notifications'];
  const { named, facts } = await decideNamed(call, principal, readFilter(rawFilter) ?? EMPTY_FILTER);
  call.named = named;
  const { allowed, tasks } = named;
  const isExact = matchesExactly(rawFilter, allowed);
  if (allowed.tasks.length === 0 && isExact) return { outcome: admitted, facts: [facts] };
  const span = spanOf(admitted.text, ['params', 'notifications']);
  if (span === undefined) throw new Error('an admitted subscription has notifications');
  const findings = isExact ? [] : leftOutFindings(call, new Set(allowed.uris));
  const sent = { ...allowed, tasks: allowed.tasks.map((sealed) => tasks.get(sealed)?.id ?? '') };
  const outcome = amendAdmitted(admitted, [{ ...span, text: JSON.stringify(writeFilter(sent)) }]);
  return { outcome, facts: [facts, { findings }] };
}

/** That the filter was reduced, and which of the resources that the record names were left out. */
function leftOutFindings({ record }: RequestContext, allowed: ReadonlySet<string>): readonly Finding[] {
  const ofUris = [...record.target.uris.slice(0, MAX_LEFT_OUT).entries()]
    .filter(([, uri]) => !allowed.has(uri))
    .map(([index]) => `/params/notifications/resourceSubscriptions/${index}`);
  // A request that waited is decided again.
  const isRecorded = (path: string): boolean =>
    record.findings.some((found) => found.detector === STRIPPED.detector && found.path === path);
  return ['/params/notifications', ...ofUris]
    .filter((path) => !isRecorded(path))
    .map((path): Finding => ({ ...STRIPPED, path }));
}

const STRIPPED = { detector: 'subscription', direction: 'to-upstream', count: 1, action: 'strip' } as const;
/** Of the resources of a filter, those that findings name: as many as the record names. */
const MAX_LEFT_OUT = 63;

/**
 * Decides about everything that a filter names, each item once and in turns of the event loop: there may be hundreds of
 * URIs with many readings each. The limits are enforced and the stream is opened by this outcome.
 */
async function decideNamed(
  call: RequestContext<'inspection' | 'tasks'>,
  principal: Principal,
  { lists, uris, tasks }: SubscriptionFilter,
): Promise<{ readonly named: NamedItems; readonly facts: RecordFacts }> {
  const { snapshot } = call;
  const allows: Allow[] = [];
  const shadows = createShadows(call);
  const isAllowed = (target: Target): boolean => {
    const decision = decideTarget(snapshot, principal, SUBSCRIBER, { target });
    if (decision.verdict === 'allow') allows.push(decision);
    shadows.note(queryFor(snapshot, principal, SUBSCRIBER, { target }), decision);
    return decision.verdict === 'allow';
  };
  const allowedUris: string[] = [];
  await runInTurns(turnsOf(call), uris, (uri) => {
    if (isAllowed({ kind: 'resource', uri })) allowedUris.push(uri);
  });
  const opened = new Map<string, OpenedTask>();
  const allowedTasks: string[] = [];
  await runInTurns(turnsOf(call), tasks, (sealed) => {
    const task = openSubscribedTask(call, principal, sealed);
    if (task === undefined) return;
    opened.set(sealed, task);
    if (isAllowed({ kind: 'task', tool: task.tool, use: 'get', isCounted: true })) allowedTasks.push(sealed);
  });
  const allowed = {
    lists: lists.filter((filter) => mayKnowChanges(snapshot, principal, filter)),
    uris: allowedUris,
    tasks: allowedTasks,
  };
  return { named: { allowed, tasks: opened, allows }, facts: shadows.facts() };
}

/** What policies that are not enforced would have decided about the items of a filter: each outcome once. */
function createShadows({ snapshot: { policies }, record }: RequestContext) {
  const found = new Map(record.decision.shadow.map((one) => [JSON.stringify(one), one]));
  return {
    note(query: PolicyQuery, decision: Decision): void {
      if (policies.shadow === undefined) return;
      for (const one of decideShadows(policies, query, decision).shadow) found.set(JSON.stringify(one), one);
    },
    facts: (): RecordFacts => (policies.shadow === undefined ? {} : { decision: { shadow: [...found.values()] } }),
  };
}

/** Whether the caller may be told of changes of a list. */
function mayKnowChanges(snapshot: Snapshot, principal: Principal, filter: ListFilter): boolean {
  return mayKnowList(snapshot, principal, SUBSCRIBER, filter);
}

/** Whether the rules allow this caller a resource. */
function mayRead(snapshot: Snapshot, principal: Principal, uri: string): boolean {
  return decideTarget(snapshot, principal, SUBSCRIBER, { target: { kind: 'resource', uri } }).verdict === 'allow';
}

const OK = 200;
/** Statuses of a server without the method, whatever its body says. */
const UNSUPPORTED_STATUSES: ReadonlySet<number> = new Set([404, 405, 501]);

/** One open subscription. Nothing but the acknowledgement passes before `acknowledgedFilter` is set. */
type Subscription = {
  readonly call: RequestContext<CheckPorts>;
  readonly authorized: AuthorizedRequest;
  readonly id: RequestId;
  readonly requested: SubscriptionFilter;
  /** The tasks that were requested; `acknowledgedFilter` says which of them were accepted. */
  readonly subscribedTasks: NamedItems['tasks'];
  acknowledgedFilter: SubscriptionFilter | undefined;
  /** The normal forms of its resources: made once, because each update is compared with them. */
  subscribedUris: readonly string[];
  /** The upstream sends nothing on this stream; only the gateway keeps it open. */
  isServedByGateway: boolean;
  /** Its result or its failure has been written. */
  hasEnded: boolean;
  /** How many notifications the gateway itself has sent. */
  sentNotifications: number;
};

/** Relays the stream of a subscription, or returns the refusal to send instead. */
export async function relaySubscription(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  if (isEventStream(response)) return serve(call, authorized, response);
  if (mediaType(response.headers['content-type']) === 'application/json')
    return relayJsonError(call, authorized, response);
  if (UNSUPPORTED_STATUSES.has(response.status)) {
    response.release();
    return serve(call, authorized, undefined);
  }
  return relayErrorStatus(call, authorized, response, createResponseCheck(call, authorized, NO_SESSION_ID));
}

/** A JSON response is an error: the server lacks the method (then the gateway serves alone), or refuses. */
async function relayJsonError(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  const { maxResponseBytes, handshakeTimeoutMs } = call.snapshot.limits;
  const bytes = await response.readBody(maxResponseBytes, handshakeTimeoutMs);
  response.release();
  if (typeof bytes === 'string') return refuseEnd(call, bytes);
  const reading = await readUpstreamMessage(call, joinPieces(bytes));
  const error = reading.ok ? errorSeenIn(reading.value, undefined) : undefined;
  const isRefused = errorOfStatus(response.status) !== undefined;
  if (error?.code === METHOD_NOT_FOUND && !isRefused) return serve(call, authorized, undefined);
  const responseCheck = createResponseCheck(call, authorized, NO_SESSION_ID);
  if (response.status !== OK) {
    const read = amendResponse(response, { readBody: () => bytes });
    return relayErrorStatus(call, authorized, read, responseCheck);
  }
  const outcome = await responseCheck.checkBytes(bytes);
  if (outcome.kind === 'response' && !outcome.isError)
    return refuseWith('upstream-protocol', { detail: 'a subscription answered without a stream' });
  return sendResponse(call, outcome, response.status, bytes);
}

/** Serves the stream until either side leaves, its access lease ends, or nothing in the filter is allowed any more. */
async function serve(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse | undefined,
): Promise<Refusal | undefined> {
  const subscription = openSubscription(call, authorized);
  const terms: StreamTerms = {
    principal: authorized.principal,
    session: undefined,
    grant: (snapshot) => grantOfSubscription(subscription, snapshot),
    announce: (method) => announce(subscription, method),
  };
  const ended = await keepStreamOpen(call, terms, async (leave) => {
    try {
      await run(subscription, response, leave);
    } catch (error) {
      // The headers have been sent, so the refusal can only be written as the last event.
      call.ports.audit.report(error, call.incoming.id);
      subscription.hasEnded = true;
      await writeStreamFailure(call, refuseWith('internal'));
    } finally {
      await sendFinalResponse(subscription, leave);
    }
  });
  if (ended !== undefined) response?.abort();
  return ended;
}

async function run(
  subscription: Subscription,
  response: UpstreamResponse | undefined,
  ended: AbortSignal,
): Promise<void> {
  if (response === undefined) acknowledgeByGateway(subscription);
  else await relayNotifications(subscription, response, ended);
  if (subscription.isServedByGateway && !isEmpty(subscription.acknowledgedFilter)) await aborted(ended);
}

/** Writes the final result if the gateway ends the stream. A stream that broke off upstream breaks off here too. */
async function sendFinalResponse(subscription: Subscription, ended: AbortSignal): Promise<void> {
  const { call, id, acknowledgedFilter, isServedByGateway, hasEnded } = subscription;
  if (acknowledgedFilter === undefined || hasEnded || !(isServedByGateway || ended.aborted)) return;
  await call.outgoing.write(encodeSseMessage(renderFinalResponse(id)));
}

function openSubscription(call: RequestContext<CheckPorts>, authorized: AuthorizedRequest): Subscription {
  const { named } = call;
  if (named === undefined) throw new Error('a subscription is decided before it is opened');
  return {
    call,
    authorized,
    id: idOf(authorized.admitted.message),
    requested: named.allowed,
    subscribedTasks: named.tasks,
    acknowledgedFilter: undefined,
    subscribedUris: [],
    isServedByGateway: false,
    hasEnded: false,
    sentNotifications: 0,
  };
}

function idOf(message: AuthorizedRequest['admitted']['message']): RequestId {
  if (message.kind !== 'request') throw new Error('a subscription is a request');
  return message.id;
}

/** The upstream does not support subscriptions, so only the list changes that the gateway sees are announced. */
function acknowledgeByGateway(subscription: Subscription): void {
  const { call, id, requested } = subscription;
  subscription.isServedByGateway = true;
  subscription.acknowledgedFilter = { ...EMPTY_FILTER, lists: requested.lists };
  void call.outgoing.write(encodeSseMessage(renderAcknowledged(id, subscription.acknowledgedFilter)));
}

async function relayNotifications(
  subscription: Subscription,
  response: UpstreamResponse,
  ended: AbortSignal,
): Promise<void> {
  const { call } = subscription;
  const { outgoing } = call;
  const place = placeOf(subscription);
  let isTimedOut = false;
  const timer = setTimeout(() => {
    isTimedOut = subscription.acknowledgedFilter === undefined;
    if (isTimedOut) response.abort();
  }, call.snapshot.limits.handshakeTimeoutMs);
  const end = await relayHeldStream(call, response, { ended }, async (event) => {
    if (event.kind === 'comment') await outgoing.write(encodeSseComment(''));
    if (event.kind !== 'message') return undefined;
    const outcome = await checkUpstreamMessage(place, event.data);
    if (ended.aborted) {
      // The subscription ended during the check, so its last message is the final result.
      subscription.hasEnded = false;
      return 'stop';
    }
    return writeChecked(subscription, outcome, event.data);
  });
  clearTimeout(timer);
  const isBroken = subscription.acknowledgedFilter === undefined && !subscription.hasEnded && !ended.aborted;
  if (isBroken) await writeStreamFailure(call, refuseEnd(call, isTimedOut ? 'upstream-timeout' : end));
  else if (isExcess(end) && !subscription.hasEnded && !ended.aborted) {
    subscription.hasEnded = true;
    await writeStreamFailure(call, refuseEnd(call, end));
  }
}

/** Writes what passed. A response ends the stream, and so does a refusal in its place. */
async function writeChecked(
  subscription: Subscription,
  outcome: MessageOutcome,
  data: string,
): Promise<'stop' | undefined> {
  const { call } = subscription;
  switch (outcome.kind) {
    case 'drop':
      return undefined;
    case 'pass':
      await call.outgoing.write(encodeSseMessage(outcome.text ?? data));
      return undefined;
    case 'response':
      if (!outcome.isError && continuesAlone(subscription)) return 'stop';
      subscription.hasEnded = true;
      await call.outgoing.write(encodeSseMessage(outcome.text ?? data));
      return 'stop';
    case 'refused':
      subscription.hasEnded = true;
      await writeStreamFailure(call, outcome.refusal);
      return 'stop';
  }
}

/** Once a stream has begun, a refusal is its last event (docs/reference/responses.md). */
async function writeStreamFailure(call: RequestContext, refusal: Refusal): Promise<void> {
  const writes = createGatheredWrites(call.outgoing);
  writeFailure(call, refusal, writes);
  await writes.flush();
}

/** Sends a list change that the gateway itself has observed. */
function announce(subscription: Subscription, method: string): void {
  const { call, id, authorized, acknowledgedFilter } = subscription;
  const filter = filterOfNotification(method);
  if (filter === undefined || acknowledgedFilter?.lists.includes(filter) !== true) return;
  if (!mayKnowChanges(newestSnapshot(call), authorized.principal, filter)) return;
  subscription.sentNotifications += 1;
  void call.outgoing.write(encodeSseMessage(renderListChanged(id, filter)));
}

/** Whether any of it is still allowed. Stops at the first that is; resources come last and in turns of the event loop. */
function grantOfSubscription(
  subscription: Subscription,
  snapshot: Snapshot,
): Refusal | undefined | Promise<Refusal | undefined> {
  const { call, authorized, acknowledgedFilter, subscribedTasks } = subscription;
  const { principal } = authorized;
  if (acknowledgedFilter === undefined) return undefined;
  const { lists, uris, tasks } = acknowledgedFilter;
  if (lists.some((filter) => mayKnowChanges(snapshot, principal, filter))) return undefined;
  const isKnown = (sealed: string): boolean => {
    const task = subscribedTasks.get(sealed);
    return task !== undefined && mayKnowTask(snapshot, principal, SUBSCRIBER, task) !== undefined;
  };
  if (tasks.some(isKnown)) return undefined;
  let refusal: Refusal | undefined = refuseWith('no-matching-allow');
  const decided = runInTurns(turnsOf(call), uris, (uri) => {
    if (mayRead(snapshot, principal, uri)) refusal = undefined;
    return refusal === undefined ? 'stop' : undefined;
  });
  return decided.then(() => refusal);
}

function isEmpty(filter: SubscriptionFilter | undefined): boolean {
  if (filter === undefined) return true;
  return filter.lists.length + filter.uris.length + filter.tasks.length === 0;
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const UPDATED = 'notifications/resources/updated';
const TASK_STATUS = 'notifications/tasks';
const NO_TARGET: Target = { kind: 'none' };

/** What differs of messages on the stream of a subscription: which notifications belong to it, and how it ends. */
function placeOf(subscription: Subscription): MessagePlace {
  const { call, authorized, id } = subscription;
  const { principal, responseObligations, admitted } = authorized;
  const context: CheckContext = {
    call,
    responseObligations,
    principal,
    protocol: STATELESS,
    apps: admitted.apps,
    session: undefined,
    requestMethod: undefined,
    target: admitted.target,
    previousTail: '',
    refusedServerRequests: 0,
    deliveries: undefined,
    gate: () => createResponseGate(admitted.message),
  };
  return {
    context,
    expected: { protocol: STATELESS, id, version: admitted.version, isListening: true },
    isServerList: false,
    unread: 'refuse',
    unrecorded: 'drop',
    contextOf() {
      // Messages of such a stream are independent: no text continues in the next message.
      context.previousTail = '';
      return context;
    },
    checkResponse: (reading, message) => checkEnd(subscription, context, reading, message),
    checkNotification: (reading, message) => checkNotification(subscription, context, reading, message),
    receivedOf: (_outcome, about) => (about.length > 0 ? about : [NO_TARGET]),
  };
}

/** Checks what ends the stream: its result, or an error. The result has nothing to say. */
function checkEnd(
  subscription: Subscription,
  context: CheckContext,
  reading: ParsedJson,
  message: ResponseMessage,
): Checked {
  switch (message.kind) {
    case 'response-result':
      if (subscription.acknowledgedFilter === undefined) return withhold('upstream-protocol');
      return continuesAlone(subscription) || !leavesText(subscription)
        ? { ...respond(renderFinalResponse(subscription.id)), isOwn: true }
        : inspectEnd(context, reading, false);
    case 'response-error':
      return message.error.code === URL_ELICITATION_REQUIRED
        ? withhold('elicitation-url')
        : inspectEnd(context, reading, true);
    case 'response-input-required':
    case 'response-task':
      return withhold('upstream-protocol');
  }
}

async function inspectEnd(context: CheckContext, reading: ParsedJson, isError: boolean): Promise<MessageOutcome> {
  const outcome = await inspect(context, reading, ALWAYS_AUTO);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  return respond(outcome.kind === 'changed' ? outcome.text : undefined, isError);
}

/** A server with nothing to report may end at once. The gateway continues if it can announce list changes. */
function continuesAlone({ acknowledgedFilter, isServedByGateway }: Subscription): boolean {
  return isServedByGateway && acknowledgedFilter !== undefined && acknowledgedFilter.lists.length > 0;
}

/** False where what the upstream says beside its notifications would begin a flow. */
function leavesText({ call }: Subscription): boolean {
  return unpinnedTextAt(call.snapshot) === 'whole';
}

async function checkNotification(
  subscription: Subscription,
  context: CheckContext,
  reading: ParsedJson,
  { method, params }: Notification,
): Promise<MessageOutcome> {
  const { call, id, acknowledgedFilter } = subscription;
  if (!belongsToSubscription(params, id)) return dropped(call, 'foreign-message');
  if (method === ACKNOWLEDGED && acknowledgedFilter === undefined)
    return acknowledge(subscription, context, reading, params);
  if (acknowledgedFilter === undefined || method === ACKNOWLEDGED) return dropped(call, 'unasked-notice');
  const filter = filterOfNotification(method);
  if (filter !== undefined) {
    const isWanted = isWantedList(subscription, acknowledgedFilter, filter);
    return isWanted ? checkListChanged(subscription, filter) : dropped(call, 'unasked-notice');
  }
  if (method === TASK_STATUS) return checkTaskStatus(subscription, context, reading, params?.['taskId']);
  const uri = params?.['uri'];
  if (method !== UPDATED || typeof uri !== 'string' || !(await isSubscribedTo(subscription, uri)))
    return dropped(call, 'unasked-notice');
  return passInspected(call, await inspect(context, reading, ALWAYS_AUTO));
}

/**
 * Acknowledges the subscription. Agreed are the resources and tasks that both sides name, and all lists that
 * were requested and allowed, because the gateway announces their changes if the upstream does not.
 */
async function acknowledge(
  subscription: Subscription,
  context: CheckContext,
  reading: ParsedJson,
  params: JsonObject | undefined,
): Promise<MessageOutcome> {
  const honored = readFilter(params?.['notifications']);
  if (honored === undefined) return withhold('upstream-protocol');
  const { requested, subscribedTasks } = subscription;
  const [honoredUris, honoredTasks] = [new Set(honored.uris), new Set(honored.tasks)];
  const acknowledgedFilter = {
    lists: requested.lists,
    uris: requested.uris.filter((uri) => honoredUris.has(uri)),
    tasks: requested.tasks.filter((sealed) => honoredTasks.has(subscribedTasks.get(sealed)?.id ?? '')),
  };
  const left = withoutTasks(reading, honored);
  const outcome = await inspect(context, left, ALWAYS_AUTO);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  subscription.acknowledgedFilter = acknowledgedFilter;
  subscription.subscribedUris = acknowledgedFilter.uris.flatMap((uri) => {
    const normal = normalizeUri(uri);
    return normal === undefined ? [] : [normal];
  });
  subscription.isServedByGateway = honored.lists.length + honored.uris.length + honored.tasks.length === 0;
  if (!leavesText(subscription))
    return { kind: 'pass', text: renderAcknowledged(subscription.id, acknowledgedFilter), isOwn: true };
  const inspected = outcome.kind === 'changed' ? outcome.text : left.text;
  const isExact = matchesExactly(params?.['notifications'], acknowledgedFilter);
  const text = isExact ? inspected : setMember(inspected, ['params'], 'notifications', writeFilter(acknowledgedFilter));
  return { kind: 'pass', text };
}

/** Removes the server's task ids before inspection: they look like secrets, and they never reach the client. */
function withoutTasks(reading: ParsedJson, { tasks }: SubscriptionFilter): ParsedJson {
  if (tasks.length === 0) return reading;
  const cut = readJsonText(removeMember(reading.text, ['params', 'notifications'], 'taskIds'));
  return cut.ok ? cut : reading;
}

/** Checks a task status notification like the response to `tasks/get`. */
async function checkTaskStatus(
  { call, authorized, subscribedTasks, acknowledgedFilter }: Subscription,
  context: CheckContext,
  reading: ParsedJson,
  id: Json | undefined,
): Promise<MessageOutcome> {
  const sealed = acknowledgedFilter?.tasks.find((one) => subscribedTasks.get(one)?.id === id);
  const task = sealed === undefined ? undefined : subscribedTasks.get(sealed);
  if (task === undefined) return dropped(call, 'unasked-notice');
  const { version, allowedServerRequests } = authorized.admitted;
  const recipient = { version, session: undefined, allowedServerRequests };
  const text = await checkTaskNotification(context, reading, task, recipient);
  return text === undefined
    ? dropped(call, 'withheld-notice')
    : { kind: 'pass', text, about: { kind: 'task', tool: task.tool, use: 'get' } };
}

function isWantedList({ call, authorized }: Subscription, { lists }: SubscriptionFilter, filter: ListFilter): boolean {
  return lists.includes(filter) && mayKnowChanges(call.snapshot, authorized.principal, filter);
}

/** Lists the upstream again first: a client that lists at once must not be shown unverified definitions. */
async function checkListChanged(subscription: Subscription, filter: ListFilter): Promise<MessageOutcome> {
  const { call, id } = subscription;
  const sentBefore = subscription.sentNotifications;
  await call.ports.upstreams.noteListChanged(call.incoming.upstream);
  // The gateway has already announced the new listing on this stream.
  if (subscription.sentNotifications !== sentBefore) return DROP;
  // Rebuilt rather than forwarded: anything else that the upstream put into the notification must not pass.
  return { kind: 'pass', text: renderListChanged(id, filter), isOwn: true };
}

/** Whether the URI is a resource that is subscribed to, or one below it, and the caller may still read it. */
function isSubscribedTo(subscription: Subscription, uri: string): boolean | Promise<boolean> {
  const { call, authorized, subscribedUris } = subscription;
  return takeTurn(turnsOf(call), () => {
    const updatedUri = normalizeUri(uri);
    if (updatedUri === undefined) return false;
    const isSubscribed = subscribedUris.some(
      (one) => updatedUri === one || updatedUri.startsWith(one.endsWith('/') ? one : `${one}/`),
    );
    return isSubscribed && mayRead(newestSnapshot(call), authorized.principal, uri);
  });
}
