// A subscription of a stateless client before an upstream of sessions: a session of its own, subscribed to
// the resources that were asked for, and its stream told as notices of the subscription. Where the
// server has no such stream (405) the answer says that there is no such method, and what the gateway sees
// by itself is all that is told.
// Source: MCP 2026-07-28, subscriptions; MCP 2025-11-25, transports, resources (subscriptions).

import { applyEdits } from '../../mcp/json.js';
import { isObject, type Json, type JsonObject } from '../../mcp/message.js';
import {
  EMPTY_FILTER,
  filterOfNotification,
  type ListenFilter,
  readFilter,
  renderAcknowledged,
} from '../../mcp/subscriptions.js';
import { changeMembers } from '../../mcp/translate/members.js';
import { refusal } from '../../mcp/translate/to-stateless.js';
import type {
  ForwardError,
  LeaveSignal,
  RoutedOutcome,
  UpstreamResponse,
} from '../../mcp/transport.js';
import type { Caller } from '../../policy/caller.js';
import type { AuthorizedRequest } from '../../settle/settle.js';
import type { StatelessParts } from './for-stateless.js';
import { isStream, readMessages } from './messages.js';
import { bodyResponse, type Conversation, streamResponse } from './own-answer.js';
import type { UpstreamSession } from './session-pool.js';

const METHOD_NOT_FOUND = -32601;
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const FIRST_SUBSCRIBE_ID = 2;
const UPDATED = 'notifications/resources/updated';

/** Opens it. The session is nobody else's, and ends with the subscription. */
export async function listenInSession(
  parts: StatelessParts,
  { cleared: authorized, by }: { readonly cleared: AuthorizedRequest; readonly by: Caller },
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
