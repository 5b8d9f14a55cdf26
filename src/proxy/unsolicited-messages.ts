// Checks what an upstream sends besides the response: notifications, server requests, and messages that belong
// to nothing. A message that is not known to be supported here is dropped and recorded.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol; MCP 2025-11-25, cancellation.

import { NO_PREVIOUS_TAIL } from '../inspection/responses.js';
import type { Principal } from '../policy/principal.js';
import type { SessionFacts } from '../protocol/admitted-request.js';
import { type ParsedJson, replaceAt } from '../protocol/json/json.js';
import { isJsonRpcId, type JsonObject, type Target } from '../protocol/jsonrpc.js';
import { paramsOf } from '../protocol/params.js';
import { classifyUpstreamMessage, type UpstreamMessage } from '../protocol/responses.js';
import { filterOfNotification, type ListFilter } from '../protocol/subscriptions.js';
import { protocolOfSession } from '../protocol/versions/negotiation.js';
import { mayKnowList, maySee } from './authorization.js';
import { createSessionGate, type NotificationGate } from './features/progress.js';
import { checkServerRequest } from './features/server-requests.js';
import { checkSessionTaskNotification } from './features/task-responses.js';
import { createDelivery, type Delivery } from './flows.js';
import type { RequestContext } from './request-context.js';
import { isRead, readMessage } from './request-context.js';
import {
  type CheckContext,
  type CheckPorts,
  DROP,
  drop,
  fieldsOf,
  type Inspection,
  inspect,
  type MessageOutcome,
  withhold,
} from './response-context.js';

const NO_TARGET: Target = { kind: 'none' };

type ResponseMessage = Extract<
  UpstreamMessage,
  { kind: 'response-result' | 'response-error' | 'response-input-required' | 'response-task' }
>;

function isResponseMessage(message: UpstreamMessage): message is ResponseMessage {
  return message.kind.startsWith('response-');
}

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
    previousTail: NO_PREVIOUS_TAIL,
    refusedServerRequests: 0,
    gate: () => gate,
  };
  const delivery = createDelivery(call, principal, NO_TARGET);
  return async (data) => {
    const reading = await readMessage(call, data);
    if (!reading.ok) {
      drop(call, isRead(reading) ? 'malformed-message' : 'unread-message');
      return undefined;
    }
    const message = classifyUpstreamMessage(reading.value, { protocol, id: undefined, version });
    if (isResponseMessage(message)) return undefined;
    // Messages of such a stream are independent: no text continues in the next message.
    context.previousTail = NO_PREVIOUS_TAIL;
    const verdict = await checkOtherMessage(context, reading, message);
    if (verdict.kind !== 'pass' || !(await mayDeliver(context, delivery, message)))
      return undefined;
    return verdict.text ?? data;
  };
}

/** Records the delivery of a message with content; without that it is dropped. */
async function mayDeliver(
  { call }: CheckContext,
  delivery: Delivery,
  message: UpstreamMessage,
): Promise<boolean> {
  if (!carriesContent(message) || (await delivery.record())) return true;
  drop(call, 'unrecorded-delivery');
  return false;
}

/** Notifications that are rebuilt carry nothing of the upstream; a cancellation has a reason in its own words. */
function carriesContent(message: UpstreamMessage): boolean {
  return message.kind !== 'notification' || filterOfNotification(message.method) === undefined;
}

/** Checks one message that is not the response itself. */
export function checkOtherMessage(
  context: CheckContext,
  reading: ParsedJson,
  message: Exclude<UpstreamMessage, ResponseMessage>,
): MessageOutcome | Promise<MessageOutcome> {
  const { call } = context;
  switch (message.kind) {
    case 'notification':
      return checkNotification(context, reading, message);
    case 'server-request':
      return checkServerRequest(context, reading, message);
    case 'foreign':
      drop(call, 'foreign-message');
      return DROP;
    case 'malformed':
      drop(call, 'malformed-message');
      return withhold('upstream-protocol');
  }
}

function checkNotification(
  context: CheckContext,
  reading: ParsedJson,
  message: Extract<UpstreamMessage, { kind: 'notification' }>,
): MessageOutcome | Promise<MessageOutcome> {
  const { call } = context;
  const filter = filterOfNotification(message.method);
  if (filter !== undefined) return passListChanged(context, message.method, filter);
  if (message.method === 'notifications/cancelled')
    return checkCancellation(context, reading, message.params);
  if (message.method === 'notifications/tasks/status')
    return checkSessionTaskNotification(context, reading, message.params);
  if (!concernsClient(context, message)) {
    drop(call, 'unasked-notice');
    return DROP;
  }
  const notificationError = context.gate().check(message.method, message.params);
  if (notificationError !== undefined) {
    drop(call, notificationError);
    return DROP;
  }
  const outcome = inspect(context, reading, undefined, [], fieldsOf(context));
  return outcome instanceof Promise
    ? outcome.then((resolved) => passInspected(call, resolved))
    : passInspected(call, outcome);
}

function passInspected(call: RequestContext, outcome: Inspection): MessageOutcome {
  if (outcome.kind === 'withhold') {
    drop(call, 'withheld-notice');
    return DROP;
  }
  return { kind: 'pass', text: outcome.kind === 'changed' ? outcome.text : undefined };
}

async function passListChanged(
  context: CheckContext,
  method: string,
  filter: ListFilter,
): Promise<MessageOutcome> {
  const { call, principal } = context;
  // The upstream is listed again first, because a client that lists at once must not be shown unverified
  // definitions.
  await call.ports.upstreams.noteListChanged(call.incoming.upstream);
  if (!mayKnowList(call.snapshot, principal, context, filter)) {
    drop(call, 'unasked-notice');
    return DROP;
  }
  // Rebuilt rather than forwarded: anything else that the upstream put into the notification must not pass.
  return { kind: 'pass', text: JSON.stringify({ jsonrpc: '2.0', method }) };
}

function concernsClient(
  context: CheckContext,
  { method, params }: Extract<UpstreamMessage, { kind: 'notification' }>,
): boolean {
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
    isJsonRpcId(id) && session !== undefined
      ? call.ports.sessions.recallServerRequest(id, session)
      : undefined;
  const outcome = sealed === undefined ? undefined : await inspect(context, reading);
  if (sealed === undefined || outcome === undefined || outcome.kind === 'withhold') {
    drop(call, sealed === undefined ? 'foreign-message' : 'withheld-notice');
    return DROP;
  }
  const text = outcome.kind === 'changed' ? outcome.text : reading.text;
  const withSealedId = replaceAt(text, ['params', 'requestId'], JSON.stringify(sealed));
  return withSealedId === undefined ? DROP : { kind: 'pass', text: withSealedId };
}

/** In 2026-07-28 a server may log only if the request asked for it (MCP 2026-07-28, logging). */
function mayLog({ call, protocol }: CheckContext): boolean {
  return protocol.mayLog(call.admitted && paramsOf(call.admitted)['_meta']);
}

function mayKnowResource(context: CheckContext, params: JsonObject | undefined): boolean {
  const uri = params?.['uri'];
  if (typeof uri !== 'string') return false;
  return maySee(context.call.snapshot, context.principal, context, { kind: 'resource', uri });
}
