// The one check of a message of an upstream, wherever it comes: with a response, on the stream of a session, of a
// subscription, or of a server of HTTP+SSE. Is it a message, can it be read, does it belong here, is its content clean,
// is it recorded as received? The order is the same everywhere; what differs between places is data of `MessagePlace`.
// Notifications and server requests that are not known to be supported are dropped and recorded.
// Source: docs/reference/design.md, "How a response finds its plan"; MCP 2025-11-25 and 2026-07-28, base protocol; MCP
// 2025-11-25, cancellation.

import type { RunningRequest } from '../policy/obligations.js';
import type { Principal } from '../policy/principal.js';
import type { Finding } from '../policy/record.js';
import type { OpenedTask, SessionFacts } from '../protocol/admitted-request.js';
import { type ReadError, takeTurn } from '../protocol/json/incremental.js';
import { type ParsedJson, replaceAt } from '../protocol/json/json.js';
import { isJsonRpc, isObject, isRequestId, type Json, type JsonObject, type Target } from '../protocol/jsonrpc.js';
import type { UpstreamReading } from '../protocol/lone-surrogates.js';
import { cutNullParams } from '../protocol/null-members.js';
import { paramsOf } from '../protocol/params.js';
import { classifyUpstreamMessage, type Expectation, type UpstreamMessage } from '../protocol/responses.js';
import { mayBeMessage } from '../protocol/sse.js';
import { filterOfNotification, type ListFilter } from '../protocol/subscriptions.js';
import { findRelatedTask } from '../protocol/tasks.js';
import { protocolOfSession } from '../protocol/versions/negotiation.js';
import { after } from '../text/after.js';
import { mayKnowList, maySee } from './authorization.js';
import { createSessionGate, type NotificationGate } from './features/progress.js';
import { checkServerRequest } from './features/server-requests.js';
import { checkSessionTaskNotification } from './features/task-responses.js';
import { createDeliveries } from './flows.js';
import { isRead, refuseReadError, turnsOf } from './message-reading.js';
import type { RequestContext } from './request-context.js';
import {
  type CheckContext,
  type CheckPorts,
  DROP,
  drop,
  dropped,
  type Inspection,
  inspect,
  type MessageOutcome,
  readUpstreamMessage,
  recordMending,
  settleMended,
  taskNamedBy,
  withhold,
} from './response-context.js';

/** The check of one message: at once, unless it waits for inspection, for the store, or for a listing. */
export type Checked = MessageOutcome | Promise<MessageOutcome>;

/** A message that answers the request of its place. */
export type ResponseMessage = Extract<
  UpstreamMessage,
  { kind: 'response-result' | 'response-error' | 'response-input-required' | 'response-task' }
>;
export type Notification = Extract<UpstreamMessage, { readonly kind: 'notification' }>;

/** What differs between the places where messages of an upstream come. */
export type MessagePlace = {
  readonly context: CheckContext;
  /** What a message may be here: the response to which request, in which version. */
  readonly expected: Expectation;
  /** The messages are lists of a server, of which an odd item costs itself alone. */
  readonly isServerList: boolean;
  /** A message that cannot be read is refused, which ends what it belongs to; or it costs itself alone. */
  readonly unread: 'refuse' | 'drop';
  /** The same of a message that passed, and could not be recorded as received. A response is always refused. */
  readonly unrecorded: 'refuse' | 'drop';
  /** The context of one message, where it depends on the message. */
  readonly contextOf?: (message: UpstreamMessage) => CheckContext;
  /** Checks what answers the request. `bytes`: it is a body of its own. */
  readonly checkResponse?: (reading: ParsedJson, message: ResponseMessage, bytes: Uint8Array | undefined) => Checked;
  /** Checks a notification, where it is not checked as in any session. */
  readonly checkNotification?: (reading: ParsedJson, message: Notification) => Checked;
  /** Answers the request with a message that does not name it; `undefined` if it does not. */
  readonly checkForeign?: (reading: ParsedJson, bytes: Uint8Array | undefined) => Checked | undefined;
  /** What a message that passed is received of. `about`: the running request and the task that it names. */
  receivedOf(outcome: Delivered, about: readonly Target[], context: CheckContext): readonly Target[];
};

/** A message that reaches its client, with words of the upstream in it. */
export type Delivered = Extract<MessageOutcome, { readonly kind: 'response' | 'pass' }>;

/**
 * Checks one message. Synchronous unless the text waits for inspection, the store must be asked or the upstream listed
 * again; until the promise resolves, the next message of the same response must wait.
 */
export function checkUpstreamMessage(place: MessagePlace, source: Uint8Array | string): Checked {
  const { call } = place.context;
  if (typeof source === 'string' && !mayBeMessage(source)) return dropped(call, 'not-a-message');
  return after(readUpstreamMessage(call, source, place.isServerList), (reading) =>
    checkReading(place, reading, source),
  );
}

function checkReading(place: MessagePlace, reading: UpstreamReading, source: Uint8Array | string): Checked {
  const { call } = place.context;
  if (!reading.ok) return refuseUnread(place, reading.error);
  if (reading.mended === undefined && reading.isReduced !== true) return checkRead(place, reading, source);
  const findings: readonly Finding[] = reading.mended === undefined ? [] : recordMending(call, reading.mended);
  const { text } = reading;
  return after(checkRead(place, reading, source), (outcome) => settleMended(outcome, text, findings));
}

function refuseUnread({ unread, context }: MessagePlace, error: ReadError): MessageOutcome {
  if (unread === 'refuse') return { kind: 'refused', refusal: refuseReadError(error, context.requestMethod) };
  const isMalformed = isRead({ ok: false, error });
  return dropped(context.call, isMalformed ? 'malformed-message' : 'unread-message');
}

function checkRead(place: MessagePlace, reading: ParsedJson, source: Uint8Array | string): Checked {
  const bytes = typeof source === 'string' ? undefined : source;
  // An event that is no message, such as `ping`: skipped, as SDK clients do, and counted.
  if (bytes === undefined && !isJsonRpc(reading.value)) return dropped(place.context.call, 'not-a-message');
  const message = classifyUpstreamMessage(reading.value, place.expected);
  const context = place.contextOf === undefined ? place.context : place.contextOf(message);
  switch (message.kind) {
    case 'response-result':
    case 'response-error':
    case 'response-input-required':
    case 'response-task': {
      if (place.checkResponse === undefined) return dropped(context.call, 'foreign-message');
      return recordReceived(place, place.checkResponse(reading, message, bytes));
    }
    case 'foreign':
      return place.checkForeign?.(reading, bytes) ?? dropped(context.call, 'foreign-message');
    case 'notification':
    case 'server-request':
    case 'malformed':
      return checkBeside(place, context, reading, message);
  }
}

/** Records a message that passed as received, or lets nothing of it pass. `besides`: of a message beside the response. */
export function recordReceived(place: MessagePlace, outcome: Checked, besides?: Besides): Checked {
  // Read at each message, because policies may have changed. Without flows nothing is recorded.
  if (place.context.call.snapshot.policies.flows === undefined) return outcome;
  return after(outcome, (resolved) => recordOutcome(place, resolved, besides));
}

/** A message beside the response, and the context in which it was checked. */
type Besides = { readonly context: CheckContext; readonly reading: ParsedJson };

function recordOutcome(place: MessagePlace, outcome: MessageOutcome, besides: Besides | undefined): Checked {
  if ((outcome.kind !== 'response' && outcome.kind !== 'pass') || outcome.isOwn === true) return outcome;
  const about = besides === undefined ? NO_TARGETS : aboutOf(place, besides, outcome);
  const targets = place.receivedOf(outcome, about, besides?.context ?? place.context);
  const { context } = place;
  context.deliveries ??= createDeliveries(context.call, context.principal);
  return after(context.deliveries.record(targets), (isRecorded) => {
    if (isRecorded) return outcome;
    return outcome.kind === 'response' || place.unrecorded === 'refuse'
      ? withhold('store-unavailable')
      : dropped(context.call, 'unrecorded-delivery');
  });
}

const NO_TARGETS: readonly Target[] = Object.freeze([]);

/** The running request whose progress a message is, and the caller's task that it names. */
function aboutOf({ context: own }: MessagePlace, { context, reading }: Besides, outcome: Delivered): readonly Target[] {
  if (outcome.kind === 'pass' && outcome.about !== undefined) return [outcome.about];
  const running = context === own ? NO_TARGETS : [context.target];
  const task = taskOf(context, reading.value);
  return task === undefined ? running : [...running, { kind: 'task', tool: task.tool, use: 'get' }];
}

/** The caller's task that a message is about: by its status, or because it names it as related. */
function taskOf(context: CheckContext, value: Json): OpenedTask | undefined {
  const params = isObject(value) && value['method'] === TASK_STATUS ? value['params'] : undefined;
  const id = isObject(params) ? params['taskId'] : findRelatedTask(value)?.id;
  return taskNamedBy(context, id);
}

const TASK_STATUS = 'notifications/tasks/status';

type OtherMessage = Extract<UpstreamMessage, { readonly kind: 'notification' | 'server-request' | 'malformed' }>;

/** Checks one message that is not the response itself. It leaves without `params` that is null. */
function checkBeside(place: MessagePlace, context: CheckContext, received: ParsedJson, message: OtherMessage): Checked {
  const reading = cutNullParams(received);
  const outcome = recordReceived(place, checkOther(place, context, reading, message), { context, reading });
  return reading === received ? outcome : after(outcome, (resolved) => withText(resolved, reading.text));
}

/** What passes as it was read leaves as this text. */
function withText(outcome: MessageOutcome, text: string): MessageOutcome {
  return outcome.kind === 'pass' ? { ...outcome, text: outcome.text ?? text } : outcome;
}

function checkOther(
  { checkNotification = (reading, message) => checkSessionNotification(context, reading, message) }: MessagePlace,
  context: CheckContext,
  reading: ParsedJson,
  message: OtherMessage,
): Checked {
  switch (message.kind) {
    case 'notification':
      return checkNotification(reading, message);
    case 'server-request':
      return checkServerRequest(context, reading, message);
    case 'malformed':
      drop(context.call, 'malformed-message');
      return withhold('upstream-protocol', `${context.requestMethod ?? 'a stream'}: the message is not valid JSON-RPC`);
  }
}

function checkSessionNotification(context: CheckContext, reading: ParsedJson, message: Notification): Checked {
  const filter = filterOfNotification(message.method);
  if (filter !== undefined) return passListChanged(context, message.method, filter);
  if (message.method === 'notifications/cancelled') return checkCancellation(context, reading, message.params);
  if (message.method === TASK_STATUS) return checkSessionTaskNotification(context, reading, message.params);
  return after(concernsClient(context, message), (concerns) => passNotification(context, reading, message, concerns));
}

function passNotification(
  context: CheckContext,
  reading: ParsedJson,
  { method, params }: Notification,
  concerns: boolean,
): Checked {
  const { call } = context;
  if (!concerns) return dropped(call, 'unasked-notice');
  const notificationError = context.gate().check(method, params);
  if (notificationError !== undefined) return dropped(call, notificationError);
  return after(inspect(context, reading), (outcome) => passInspected(call, outcome));
}

/** A notification that was inspected: it passes, or costs itself. */
export function passInspected(call: RequestContext, outcome: Inspection): MessageOutcome {
  if (outcome.kind === 'withhold') return dropped(call, 'withheld-notice');
  return { kind: 'pass', text: outcome.kind === 'changed' ? outcome.text : undefined };
}

async function passListChanged(context: CheckContext, method: string, filter: ListFilter): Promise<MessageOutcome> {
  const { call, principal } = context;
  // The upstream is listed again first, because a client that lists at once must not be shown unverified
  // definitions.
  await call.ports.upstreams.noteListChanged(call.incoming.upstream);
  if (!mayKnowList(call.snapshot, principal, context, filter)) return dropped(call, 'unasked-notice');
  // Rebuilt rather than forwarded: anything else that the upstream put into the notification must not pass.
  return { kind: 'pass', text: JSON.stringify({ jsonrpc: '2.0', method }), isOwn: true };
}

function concernsClient(context: CheckContext, { method, params }: Notification): boolean | Promise<boolean> {
  switch (method) {
    case 'notifications/resources/updated':
      return mayKnowResource(context, params);
    case 'notifications/message':
      return mayLog(context);
    case 'notifications/elicitation/complete':
      return context.session?.allowedServerRequests?.includes('elicitation/url') === true;
    default:
      return true;
  }
}

/** Passes on the cancellation of a server request. The server names its own id; the client knows the sealed one. */
async function checkCancellation(
  context: CheckContext,
  reading: ParsedJson,
  params: JsonObject | undefined,
): Promise<MessageOutcome> {
  const { call, session } = context;
  const id = params?.['requestId'];
  const sealed =
    isRequestId(id) && session !== undefined ? call.ports.sessions.serverRequests.recall(id, session) : undefined;
  if (sealed === undefined) return dropped(call, 'foreign-message');
  const outcome = passInspected(call, await inspect(context, reading));
  if (outcome.kind !== 'pass') return outcome;
  const text = replaceAt(outcome.text ?? reading.text, ['params', 'requestId'], JSON.stringify(sealed));
  return text === undefined ? DROP : { kind: 'pass', text };
}

/** In 2026-07-28 a server may log only if the request asked for it (MCP 2026-07-28, logging). */
function mayLog({ call, protocol }: CheckContext): boolean {
  return protocol.mayLog(call.admitted && paramsOf(call.admitted)['_meta']);
}

/** Decided in a turn of its own, because a URI may have many readings and a stream many such notifications. */
function mayKnowResource(context: CheckContext, params: JsonObject | undefined): boolean | Promise<boolean> {
  const uri = params?.['uri'];
  if (typeof uri !== 'string') return false;
  const { call, principal } = context;
  return takeTurn(turnsOf(call), () => maySee(call.snapshot, principal, context, { kind: 'resource', uri }));
}

const NO_TARGET: Target = { kind: 'none' };

/** Creates the check for the messages of an unsolicited stream. It returns the text to send, or `undefined`. */
export function createUnsolicitedCheck(
  call: RequestContext<CheckPorts>,
  principal: Principal,
  session: SessionFacts,
  gate: NotificationGate = createSessionGate(call, session),
): (data: string) => Promise<string | undefined> {
  const { version } = session;
  const protocol = protocolOfSession(version);
  const context: CheckContext = {
    call,
    responseObligations: undefined,
    principal,
    protocol,
    apps: session.apps ?? false,
    session,
    requestMethod: undefined,
    target: NO_TARGET,
    previousTail: '',
    refusedServerRequests: 0,
    deliveries: undefined,
    gate: () => gate,
  };
  const place: MessagePlace = {
    context,
    expected: { protocol, id: undefined, version },
    isServerList: false,
    unread: 'drop',
    unrecorded: 'drop',
    contextOf(message) {
      // Messages of such a stream are independent: no text continues in the next message.
      context.previousTail = '';
      const running = message.kind === 'notification' ? gate.requestOf(message.method, message.params) : undefined;
      return contextBeside(context, running);
    },
    // Any call in progress may be what a message is about that names neither its own nor a task.
    receivedOf(_outcome, about, checked) {
      if (checked !== context) return about;
      return about.length > 0 ? [NO_TARGET, ...about] : [NO_TARGET, ...gate.inProgress()];
    },
  };
  return async (data) => {
    const outcome = await checkUpstreamMessage(place, data);
    return outcome.kind === 'pass' ? (outcome.text ?? data) : undefined;
  };
}

/** Progress belongs to a request wherever it arrives, so it is checked as beside the response to that request. */
function contextBeside(context: CheckContext, running: RunningRequest | undefined): CheckContext {
  if (running === undefined) return context;
  const { target, responseObligations } = running;
  return { ...context, target, responseObligations };
}
