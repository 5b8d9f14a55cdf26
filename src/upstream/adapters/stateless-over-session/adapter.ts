// Serves clients of the stateless era before an upstream of sessions. The sessions are the gateway's own,
// one a caller and what it declares; ids and tokens within them are its own too, so that two clients of
// one caller never meet. A client that leaves cancels, because in its era that is what leaving means.
// Source: MCP 2026-07-28; MCP 2025-11-25; docs/reference/protocol.md §2.4.

import type { AuthorizedRequest } from '../../../policy/authorized-request.js';
import { type Caller, withoutToken } from '../../../policy/principal.js';
import type { Admitted } from '../../../protocol/admitted-request.js';
import { applyEdits, changeMembers, spanOf } from '../../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../../protocol/jsonrpc.js';
import { canRequireInput } from '../../../protocol/server-requests.js';
import {
  EMPTY_FILTER,
  filterOfNotification,
  type ListenFilter,
  readFilter,
  renderAcknowledged,
} from '../../../protocol/subscriptions.js';
import {
  amendResponse,
  type ForwardError,
  type ForwardOutcome,
  inOnePiece,
  type LeaveSignal,
  Leaving,
  type RoutedOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import { LATEST_SESSION_VERSION } from '../../../protocol/versions/revisions.js';
import { createListingRequest } from '../../discovery/transports.js';
import { isJson, isStream, parseBody, readMessages } from '../../message-reader.js';
import { createTranslatedPages } from '../list-pages.js';
import { bodyResponse, type Conversation, streamResponse } from '../local-response.js';
import {
  capabilitiesFor,
  discoverResult,
  refusal,
  type SentAs,
  sentAs,
  sessionBody,
  toStatelessMessage,
} from '../message-translation.js';
import type { StatelessParts, StatelessSettings } from './input-required.js';

import { createSuspendedCalls, relayInSession, resume } from './input-required.js';
import {
  createSessionPool,
  createSessionSender,
  headersIn,
  openUpstreamSession,
  type PooledSession,
  type UpstreamSession,
} from './session-pool.js';

// A subscription of a stateless client before an upstream of sessions: a session of its own, subscribed to
// the resources that were asked for, and its stream told as notices of the subscription. Where the
// server has no such stream (405) the answer says that there is no such method, and what the gateway sees
// by itself is all that is told.
// Source: MCP 2026-07-28, subscriptions; MCP 2025-11-25, transports, resources (subscriptions).

const METHOD_NOT_FOUND = -32601;
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const FIRST_SUBSCRIBE_ID = 2;
const UPDATED = 'notifications/resources/updated';

/** Opens it. The session is nobody else's, and ends with the subscription. */
async function listenInSession(
  parts: StatelessParts,
  { authorized, by }: { readonly authorized: AuthorizedRequest; readonly by: Caller },
  open: () => Promise<UpstreamSession | ForwardError>,
  signal: LeaveSignal | undefined,
): Promise<RoutedOutcome> {
  const { message } = authorized.admitted;
  if (message.kind !== 'request') return bodyResponse(202);
  const filter = filterOf(authorized);
  const session = await open();
  if (typeof session === 'string') return { kind: 'fault', reason: session };
  const stop = new AbortController();
  const end = (): void => {
    if (stop.signal.aborted) return;
    stop.abort();
    void parts.client.endSession(session, by).then((ended) => {
      if (ended.kind === 'answer') ended.release();
    });
  };
  signal?.addEventListener('abort', end, { once: true });
  const outcome = await parts.client.openStream(session, by, stop.signal);
  if (outcome.kind === 'fault' || !isStream(outcome)) {
    if (outcome.kind === 'answer') outcome.release();
    end();
    return outcome.kind === 'fault'
      ? outcome
      : bodyResponse(404, refusal(message.id, 'Method not found', METHOD_NOT_FOUND));
  }
  const isSubscribed = filter.uris.every((uri, index) => {
    const id = FIRST_SUBSCRIBE_ID + index;
    const method = 'resources/subscribe';
    return parts.sendInSession(session, by, { jsonrpc: '2.0', id, method, params: { uri } });
  });
  // A subscription to some of them would be silent about the rest.
  if (!isSubscribed) {
    outcome.abort();
    end();
    return { kind: 'fault', reason: 'overloaded' };
  }
  const conversation = relayNotifications(outcome, parts, message.id, filter);
  return streamResponse(conversation, { release: end, abort: end });
}

/** What is asked for, as it was narrowed. */
function filterOf({ admitted }: AuthorizedRequest): ListenFilter {
  const sent: unknown = JSON.parse(applyEdits(admitted.text, admitted.edits));
  const params = isObject(sent) ? sent['params'] : undefined;
  const asked = isObject(params) ? readFilter(params['notifications']) : undefined;
  return asked === undefined ? EMPTY_FILTER : { ...asked, tasks: [] };
}

async function* relayNotifications(
  response: UpstreamResponse,
  parts: StatelessParts,
  id: string | number,
  filter: ListenFilter,
): Conversation {
  yield { kind: 'message', text: renderAcknowledged(id, filter) };
  for await (const inbound of readMessages(response, parts)) {
    if (inbound.kind !== 'message') yield inbound;
    else {
      const text = toSubscriptionNotification(inbound.text, inbound.value, id, filter);
      if (text !== undefined) yield { kind: 'message', text };
    }
  }
}

/** A notice that was asked for, tagged; all else of the session's stream is not of the subscription. */
function toSubscriptionNotification(
  text: string,
  value: Json | undefined,
  id: string | number,
  filter: ListenFilter,
): string | undefined {
  if (!isObject(value) || typeof value['method'] !== 'string' || 'id' in value) return undefined;
  const list = filterOfNotification(value['method']);
  const isAsked =
    list === undefined
      ? value['method'] === UPDATED && filter.uris.length > 0
      : filter.lists.includes(list);
  if (!isAsked) return undefined;
  const { params } = value;
  const tag: JsonObject = { [SUBSCRIPTION_ID]: id };
  if (!isObject(params)) return changeMembers(text, { path: [], set: { params: { _meta: tag } } });
  return isObject(params['_meta'])
    ? changeMembers(text, { path: ['params', '_meta'], set: tag })
    : changeMembers(text, { path: ['params'], set: { _meta: tag } });
}

export type StatelessClients = {
  forward(
    authorized: AuthorizedRequest,
    by: Caller,
    carried: readonly string[],
    signal: LeaveSignal | undefined,
  ): Promise<RoutedOutcome>;
  close(): void;
};

const MAX_SESSIONS = 1_000;
const IDLE_MS = 5 * 60 * 1000;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
/** 404 by the specification; servers that have forgotten a session also answer 400. */
const LOST_STATUSES: ReadonlySet<number> = new Set([400, 404]);
const LOST =
  'The session with this server was lost, and nothing is known of the call. It was not sent again.';

/** Serves them over one upstream. */
export function createStatelessClients(settings: StatelessSettings): StatelessClients {
  const sendInSession = createSessionSender(settings);
  const pool = createSessionPool({
    maxSessions: settings.maxSessions ?? MAX_SESSIONS,
    idleMs: settings.idleMs ?? IDLE_MS,
    now: settings.now,
    end: (session) => endSession(settings, session),
  });
  const parts: StatelessParts = {
    ...settings,
    pool,
    suspendedCalls: createSuspendedCalls(settings.sessionBus),
    pages: createTranslatedPages(),
    sendInSession,
  };
  return {
    forward: (authorized, by, carried, signal) =>
      forward({ parts, authorized, by, signal }, carried),
    close() {
      parts.suspendedCalls.close();
      pool.close();
    },
  };
}

function endSession({ client }: StatelessSettings, session: UpstreamSession): void {
  if (session.upstreamSession === undefined) return;
  void client.endSession(session, session.caller).then((outcome) => {
    if (outcome.kind === 'answer') outcome.release();
  });
}

/** One message on its way. */
type ForwardContext = {
  readonly parts: StatelessParts;
  readonly authorized: AuthorizedRequest;
  readonly by: Caller;
  readonly signal: LeaveSignal | undefined;
};

async function forward(
  context: ForwardContext,
  carried: readonly string[],
): Promise<RoutedOutcome> {
  const { parts, authorized, by, signal } = context;
  const { admitted } = authorized;
  if (admitted.message.kind !== 'request') return bodyResponse(202);
  const { id, method } = admitted.message;
  const open = (): Promise<UpstreamSession | ForwardError> =>
    openSession(context, carried.at(-1) ?? LATEST_SESSION_VERSION);
  if (method === 'subscriptions/listen')
    return listenInSession(parts, { authorized, by }, open, signal);
  if (isInputRetry(admitted)) return resumeSuspended(context);
  const take = (): Promise<PooledSession | ForwardError> =>
    parts.pool.take(keyOf(authorized), open);
  const session = await take();
  if (typeof session === 'string') return { kind: 'fault', reason: session };
  if (method === 'server/discover') {
    session.release();
    return bodyResponse(200, discoverResult(id, session.handshake));
  }
  const outcome = await send(context, session);
  if (outcome !== 'lost') return outcome;
  // Nobody knows what a call has done before its session was lost; whatever else may be asked again.
  if (method === 'tools/call') return bodyResponse(200, refusal(id, LOST));
  const reopened = await take();
  if (typeof reopened === 'string') return { kind: 'fault', reason: reopened };
  const again = await send(context, reopened);
  return again === 'lost' ? bodyResponse(200, refusal(id, LOST)) : again;
}

function isInputRetry({ message }: Admitted): boolean {
  return 'params' in message && message.params?.['requestState'] !== undefined;
}

async function openSession(
  { parts, authorized: { admitted }, by }: ForwardContext,
  version: string,
): Promise<UpstreamSession | ForwardError> {
  const { client, requestTimeoutMs, gatewayVersion, now } = parts;
  const ports = {
    request: createListingRequest(client, by),
    now,
    requestTimeoutMs,
    setTimer(run: () => void, delayMs: number) {
      const timer = setTimeout(run, delayMs);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
  const opened = await openUpstreamSession(ports, {
    version,
    capabilities: capabilitiesFor(admitted),
    clientInfo: { name: 'sallyport', version: gatewayVersion },
    logLevel: logLevelOf(admitted),
  });
  return typeof opened === 'string' ? opened : { ...opened, caller: withoutToken(by) };
}

function logLevelOf({ message }: Admitted): string | undefined {
  const meta = 'params' in message ? message.params?.['_meta'] : undefined;
  const level = (meta as JsonObject | undefined)?.[LOG_LEVEL];
  return typeof level === 'string' ? level : undefined;
}

/** Whose session it is, and on which terms: exact strings, as verified. */
function keyOf({ principal, admitted }: AuthorizedRequest): string {
  const { issuerUrl, subject, client } = principal;
  const terms = [
    [...admitted.allowedServerRequests].sort(),
    admitted.apps,
    logLevelOf(admitted) ?? null,
  ];
  return JSON.stringify([issuerUrl, subject, client, ...terms]);
}

async function send(
  { parts, authorized, by, signal }: ForwardContext,
  session: PooledSession,
): Promise<ForwardOutcome | 'lost'> {
  const { admitted } = authorized;
  const sent = sentAs(admitted, session.nextId());
  const form = {
    headers: Object.entries(headersIn(session)),
    body: sessionBody(admitted, sent),
  };
  const stop = new Leaving();
  let isOver = false;
  const cancel = (): void => {
    if (isOver) return;
    isOver = true;
    stop.abort();
    session.release();
    const params = { requestId: sent.sentId, reason: 'The client has left.' };
    parts.sendInSession(session, by, { jsonrpc: '2.0', method: 'notifications/cancelled', params });
  };
  if (signal?.aborted === true) {
    session.release();
    return { kind: 'fault', reason: 'upstream-unavailable' };
  }
  signal?.addEventListener('abort', cancel, { once: true });
  const mayRest =
    admitted.allowedServerRequests.length > 0 && canRequireInput(admitted.rule.method);
  const outcome = await parts.client.forwardAs(authorized, by, form, stop, mayRest);
  const end = (): void => {
    isOver = true;
    signal?.removeEventListener('abort', cancel);
    session.release();
  };
  if (outcome.kind === 'fault') {
    end();
    return outcome;
  }
  if (LOST_STATUSES.has(outcome.status) && session.upstreamSession !== undefined) {
    outcome.release();
    end();
    parts.pool.forget(session);
    return 'lost';
  }
  const call = {
    parts,
    by,
    session,
    sent,
    cancel,
    end,
    allowedServerRequests: admitted.allowedServerRequests,
  };
  return isStream(outcome)
    ? relayInSession(call, outcome)
    : translateBody(outcome, sent, end, parts);
}

/** An answer that came whole. */
function translateBody(
  response: UpstreamResponse,
  sent: SentAs,
  end: () => void,
  { pages, messageReader }: StatelessParts,
): UpstreamResponse {
  end();
  if (!isJson(response)) return response;
  return amendResponse(response, {
    async readBody(maxBytes, withinMs) {
      const body = await response.readBody(maxBytes, withinMs);
      if (typeof body === 'string') return body;
      const bytes = inOnePiece(body);
      const ids = { source: sent.sentId, translated: sent.id };
      return pages.translate(sent.method, bytes, ids, async () => {
        const inbound = await parseBody(bytes, messageReader);
        // What is no JSON is not told otherwise: it is refused by whoever reads it.
        if (inbound.kind !== 'message' || inbound.value === undefined) return undefined;
        const translated = toStatelessMessage(inbound.text, inbound.value, sent);
        return translated === undefined ? undefined : { source: inbound.text, translated };
      });
    },
  });
}

/** The second leg of a dialogue: what waited in mid-call goes on with the client's answer. */
function resumeSuspended({
  parts,
  authorized: { admitted },
  by,
  signal,
}: ForwardContext): RoutedOutcome {
  const state = openedState(admitted);
  const suspended = state === undefined ? undefined : parts.suspendedCalls.find(state);
  // Its connection cannot be handed over: elsewhere, and after its time, the call begins anew.
  if (state === undefined || suspended === undefined)
    return { kind: 'fault', reason: 'asked-elsewhere' };
  const conversation = resume(suspended, { admitted, by }, signal);
  // It waits on: the same answer may come again.
  if (conversation === undefined) return { kind: 'fault', reason: 'overloaded' };
  parts.suspendedCalls.leave(state);
  return streamResponse(conversation, { release: () => undefined, abort: suspended.call.cancel });
}

/** The state as it leaves: opened by an edit of the text. */
function openedState({ text, edits }: Admitted): string | undefined {
  const span = spanOf(text, ['params', 'requestState']);
  const edit = edits.find((one) => one.start === span?.start);
  return edit === undefined ? undefined : String(JSON.parse(edit.text));
}
