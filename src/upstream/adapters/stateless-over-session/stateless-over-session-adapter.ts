// Serves stateless-era clients on a session-era upstream. The sessions are the gateway's own, one for each
// caller and what it declares; ids and tokens in them are also the gateway's own, so that two clients of one
// caller cannot interfere. A client that disconnects cancels its request, because that is what disconnecting
// means in its era.
// Source: MCP 2026-07-28 and its subscriptions; MCP 2025-11-25, transports, resources (subscriptions);
// docs/reference/protocol.md#a-stateless-client-in-front-of-a-session-upstream.

import type { AuthorizedRequest } from '../../../policy/obligations.js';
import { type Caller, ownerKey, withoutToken } from '../../../policy/principal.js';
import type { AdmittedMessage } from '../../../protocol/admitted-request.js';
import { applyEdits, editedValueAt } from '../../../protocol/json/json.js';
import { isObject, type Json } from '../../../protocol/jsonrpc.js';
import { paramsOf } from '../../../protocol/params.js';
import { METHOD_NOT_FOUND } from '../../../protocol/responses.js';
import { canRequireInput } from '../../../protocol/server-requests.js';
import { isEventStream } from '../../../protocol/sse.js';
import {
  EMPTY_FILTER,
  filterOfNotification,
  readFilter,
  renderAcknowledged,
  type SubscriptionFilter,
} from '../../../protocol/subscriptions.js';
import {
  amendResponse,
  DisconnectController,
  type DisconnectSignal,
  type ForwardError,
  type ForwardOutcome,
  onAbort,
  type RoutedOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import { errorOfStatus } from '../../../protocol/upstream-status.js';
import { LATEST_SESSION_VERSION } from '../../../protocol/versions/revisions.js';
import { upstreamIdOf } from '../../client.js';
import { createSendRequest, setUnheldTimer } from '../../exchange.js';
import { bodyResponse, isJson, type OutboundItems, readMessages, streamResponse } from '../../response-messages.js';
import {
  createSuspendedCalls,
  relayInSession,
  resumeCall,
  type SessionCall,
  type StatelessDependencies,
  type StatelessSettings,
} from '../input-required.js';
import { type LostSession, mayRepeat, SESSION_LOST, unlessLost } from '../lost-sessions.js';
import {
  capabilitiesFor,
  createTranslatedPages,
  discoverResult,
  errorResponseText,
  sessionBody,
  setMeta,
  toStatelessMessage,
  translatedBody,
  translatedRequestOf,
} from '../message-translation.js';
import {
  createSessionPool,
  createSessionSender,
  openUpstreamSession,
  type PooledSession,
  sessionHeadersOf,
  type UpstreamSession,
} from './session-pool.js';

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const FIRST_SUBSCRIBE_ID = 2;
const UPDATED = 'notifications/resources/updated';

/**
 * Serves a subscription by a session of its own, which subscribes to the requested resources, whose stream is
 * translated to the subscription's notifications, and which ends with the subscription. If the server has no
 * such stream (405), the response is "method not found", and the client gets only what the gateway itself
 * observes.
 */
async function listenInSession(
  dependencies: StatelessDependencies,
  { authorized, caller }: { readonly authorized: AuthorizedRequest; readonly caller: Caller },
  open: () => Promise<UpstreamSession | ForwardError>,
  signal: DisconnectSignal | undefined,
): Promise<RoutedOutcome> {
  const { message } = authorized.admitted;
  if (message.kind !== 'request') return bodyResponse(202);
  const filter = filterOf(authorized);
  const session = await open();
  if (typeof session === 'string') return { kind: 'error', reason: session };
  const stop = new AbortController();
  const end = (): void => {
    if (stop.signal.aborted) return;
    stop.abort();
    void dependencies.client.endSession(session, caller).then((ended) => {
      if (ended.kind === 'response') ended.release();
    });
  };
  if (signal !== undefined) onAbort(signal, end);
  const outcome = await dependencies.client.openStream(session, caller, stop.signal);
  if (outcome.kind === 'error' || !isEventStream(outcome)) {
    if (outcome.kind === 'response') outcome.release();
    end();
    if (outcome.kind === 'error') return outcome;
    const reason = errorOfStatus(outcome.status);
    if (reason !== undefined) return { kind: 'error', reason };
    const text = errorResponseText(message.id, 'Method not found', METHOD_NOT_FOUND);
    return bodyResponse(404, text);
  }
  const isSubscribed = filter.uris.every((uri, index) => {
    const id = FIRST_SUBSCRIBE_ID + index;
    const method = 'resources/subscribe';
    return dependencies.sendInSession(session, caller, {
      jsonrpc: '2.0',
      id,
      method,
      params: { uri },
    });
  });
  // With only some of the subscriptions in place, the client would silently miss updates of the others.
  if (!isSubscribed) {
    outcome.abort();
    end();
    return { kind: 'error', reason: 'overloaded', isUnsent: true };
  }
  const items = relayNotifications(outcome, dependencies, message.id, filter);
  return streamResponse(items, { release: end, abort: end });
}

/** The requested filter, as it was narrowed. */
function filterOf({ admitted }: AuthorizedRequest): SubscriptionFilter {
  const sent: unknown = JSON.parse(applyEdits(admitted.text, admitted.edits));
  const params = isObject(sent) ? sent['params'] : undefined;
  const requestedFilter = isObject(params) ? readFilter(params['notifications']) : undefined;
  return requestedFilter === undefined ? EMPTY_FILTER : { ...requestedFilter, tasks: [] };
}

async function* relayNotifications(
  response: UpstreamResponse,
  dependencies: StatelessDependencies,
  id: string | number,
  filter: SubscriptionFilter,
): OutboundItems {
  yield { kind: 'message', text: renderAcknowledged(id, filter) };
  for await (const inbound of readMessages(response, dependencies)) {
    if (inbound.kind !== 'message') yield inbound;
    else {
      const text = toSubscriptionNotification(inbound.text, inbound.value, id, filter);
      if (text !== undefined) yield { kind: 'message', text };
    }
  }
}

/** Tags a requested notification; anything else on the session's stream is not part of the subscription. */
function toSubscriptionNotification(
  text: string,
  value: Json | undefined,
  id: string | number,
  filter: SubscriptionFilter,
): string | undefined {
  if (!isObject(value) || typeof value['method'] !== 'string' || 'id' in value) return undefined;
  const list = filterOfNotification(value['method']);
  const isRequested =
    list === undefined ? value['method'] === UPDATED && filter.uris.length > 0 : filter.lists.includes(list);
  if (!isRequested) return undefined;
  return setMeta(text, value['params'], { [SUBSCRIPTION_ID]: id });
}

export type StatelessClients = {
  forward(
    authorized: AuthorizedRequest,
    caller: Caller,
    sessionVersions: readonly string[],
    signal: DisconnectSignal | undefined,
  ): Promise<RoutedOutcome>;
  close(): Promise<void>;
};

const MAX_SESSIONS = 1_000;
const IDLE_MS = 5 * 60 * 1000;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const NOT_AWAITED = 'The client has disconnected, or the response took too long.';

/** Creates the adapter of one upstream. */
export function createStatelessClients(settings: StatelessSettings): StatelessClients {
  const sendInSession = createSessionSender(settings);
  const pool = createSessionPool({
    maxSessions: MAX_SESSIONS,
    idleMs: IDLE_MS,
    now: settings.now,
    end: (session) => endSession(settings, session),
  });
  const dependencies: StatelessDependencies = {
    ...settings,
    pool,
    suspendedCalls: createSuspendedCalls(settings.sessionBus),
    pages: createTranslatedPages(),
    sendInSession,
  };
  return {
    forward: (authorized, caller, sessionVersions, signal) =>
      forward({ dependencies, authorized, caller, signal }, sessionVersions),
    close() {
      dependencies.suspendedCalls.close();
      return pool.close();
    },
  };
}

async function endSession({ client }: Pick<StatelessSettings, 'client'>, session: UpstreamSession): Promise<void> {
  if (upstreamIdOf(session) === undefined) return;
  const outcome = await client.endSession(session, session.caller);
  if (outcome.kind === 'response') outcome.release();
}

/** One request and what is needed to forward it. */
type ForwardContext = {
  readonly dependencies: StatelessDependencies;
  readonly authorized: AuthorizedRequest;
  readonly caller: Caller;
  readonly signal: DisconnectSignal | undefined;
};

async function forward(context: ForwardContext, sessionVersions: readonly string[]): Promise<RoutedOutcome> {
  const { dependencies, authorized, caller, signal } = context;
  const { admitted } = authorized;
  if (admitted.message.kind !== 'request') return bodyResponse(202);
  const { id, method } = admitted.message;
  const open = (): Promise<UpstreamSession | ForwardError> =>
    openSession(context, sessionVersions.at(-1) ?? LATEST_SESSION_VERSION);
  if (method === 'subscriptions/listen') return listenInSession(dependencies, { authorized, caller }, open, signal);
  if (paramsOf(admitted)['requestState'] !== undefined) return resumeSuspended(context);
  const takeSession = (): Promise<PooledSession | ForwardError> => dependencies.pool.acquire(keyOf(authorized), open);
  const session = await takeSession();
  if (typeof session === 'string') return { kind: 'error', reason: session };
  if (method === 'server/discover') {
    session.release();
    return bodyResponse(200, discoverResult(id, session.handshake));
  }
  const outcome = await send(context, session);
  if (outcome.kind !== 'lost') return outcome;
  if (!mayRepeat(method, outcome)) return bodyResponse(200, errorResponseText(id, SESSION_LOST));
  const reopened = await takeSession();
  if (typeof reopened === 'string') return { kind: 'error', reason: reopened };
  const retried = await send(context, reopened);
  return retried.kind === 'lost' ? bodyResponse(200, errorResponseText(id, SESSION_LOST)) : retried;
}

async function openSession(
  { dependencies, authorized: { admitted }, caller }: ForwardContext,
  version: string,
): Promise<UpstreamSession | ForwardError> {
  const { client, handshakeTimeoutMs: requestTimeoutMs, gatewayVersion, now } = dependencies;
  const request = createSendRequest(client, caller);
  const ports = { request, now, requestTimeoutMs, setTimer: setUnheldTimer };
  const opened = await openUpstreamSession(ports, {
    version,
    capabilities: capabilitiesFor(admitted),
    clientInfo: { name: 'sallyport', version: gatewayVersion },
    logLevel: logLevelOf(admitted),
  });
  return typeof opened === 'string' ? opened : { ...opened, caller: withoutToken(caller) };
}

function logLevelOf(admitted: AdmittedMessage): string | undefined {
  const meta = paramsOf(admitted)['_meta'];
  const level = isObject(meta) ? meta[LOG_LEVEL] : undefined;
  return typeof level === 'string' ? level : undefined;
}

/** The pool key: the caller and the terms of the session, as exact strings of verified values. */
function keyOf({ principal, admitted }: AuthorizedRequest): string {
  const allowedServerRequests = [...admitted.allowedServerRequests].sort();
  return ownerKey(principal, allowedServerRequests, admitted.apps, logLevelOf(admitted) ?? null);
}

async function send(
  { dependencies, authorized, caller, signal }: ForwardContext,
  session: PooledSession,
): Promise<ForwardOutcome | LostSession> {
  const { admitted } = authorized;
  const sent = translatedRequestOf(admitted, session.nextId());
  const form = {
    headers: Object.entries(sessionHeadersOf(session)),
    body: sessionBody(admitted, sent),
  };
  const stop = new DisconnectController();
  let isOver = false;
  const cancel = (): void => {
    if (isOver) return;
    isOver = true;
    stop.abort();
    session.release();
    const params = { requestId: sent.sentId, reason: NOT_AWAITED };
    dependencies.sendInSession(session, caller, {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params,
    });
  };
  if (signal?.aborted === true) {
    session.release();
    return { kind: 'error', reason: 'upstream-unavailable' };
  }
  signal?.addEventListener('abort', cancel, { once: true });
  const mayWaitForInput = admitted.allowedServerRequests.length > 0 && canRequireInput(admitted.rule.method);
  const outcome = await dependencies.client.forwardAs(authorized, caller, form, stop, mayWaitForInput);
  const end = (): void => {
    isOver = true;
    signal?.removeEventListener('abort', cancel);
    session.release();
  };
  if (outcome.kind === 'error') {
    if (outcome.reason === 'upstream-timeout') cancel();
    end();
    return outcome;
  }
  const response = isEventStream(outcome)
    ? outcome
    : await unlessLost(outcome, { ...dependencies, caller, session, sentId: sent.sentId });
  if (response.kind === 'lost') {
    end();
    dependencies.pool.forget(session);
    return response;
  }
  const call = {
    dependencies,
    caller,
    session,
    sent,
    cancel,
    end,
    allowedServerRequests: admitted.allowedServerRequests,
  };
  return isEventStream(response) ? relayInSession(call, response) : translateBody(response, call);
}

/** Translates a response that has one body. Until that was read, the request may still be cancelled. */
function translateBody(
  response: UpstreamResponse,
  { dependencies: { pages, messageReader }, session, sent, cancel, end }: SessionCall,
): UpstreamResponse {
  session.release();
  if (!isJson(response)) {
    end();
    return response;
  }
  const page = {
    method: sent.method,
    ids: { source: sent.sentId, translated: sent.id },
    messageReader,
    translate: (text: string, value: Json) => toStatelessMessage(text, value, sent),
  };
  const readBody = translatedBody(response, pages, page);
  return amendResponse(response, {
    async readBody(maxBytes, withinMs) {
      const body = await readBody(maxBytes, withinMs);
      if (body === 'upstream-timeout') cancel();
      end();
      return body;
    },
  });
}

/** Handles the retry after input was required: the suspended call continues with the client's response. */
function resumeSuspended({ dependencies, authorized: { admitted }, caller, signal }: ForwardContext): RoutedOutcome {
  // The state was unsealed by an edit of the request's text.
  const state = editedValueAt(admitted, ['params', 'requestState']);
  const suspended = state === undefined ? undefined : dependencies.suspendedCalls.find(state);
  // The connection cannot be handed over: on another replica, or too late, the call must start again.
  if (state === undefined || suspended === undefined)
    return { kind: 'error', reason: 'asked-elsewhere', isUnsent: true };
  const items = resumeCall(suspended, { admitted, caller }, signal);
  // The call remains suspended, so the client may send the same retry again.
  if (items === undefined) return { kind: 'error', reason: 'overloaded', isUnsent: true };
  dependencies.suspendedCalls.remove(state);
  return streamResponse(items, { release: () => undefined, abort: suspended.call.cancel });
}
