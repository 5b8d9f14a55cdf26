// The stream of a subscription (2026-07-28): the acknowledgement first, then the notifications that were
// subscribed to and are still allowed, each checked under the version then in force. Drift and reloads are
// announced by the gateway itself, even if the upstream does not support subscriptions. A client that
// disconnects cancels the subscription.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen).

import type { AuthorizedRequest } from '../../../policy/authorized-request.js';
import type { Reason } from '../../../policy/reasons.js';
import { type Refusal, refuseWith } from '../../../policy/refusal.js';
import { NO_SESSION_ID } from '../../../protocol/admitted-request.js';
import { mediaType } from '../../../protocol/headers.js';
import type { RequestId } from '../../../protocol/jsonrpc.js';
import { paramsOf } from '../../../protocol/params.js';
import { encodeSseComment, encodeSseMessage } from '../../../protocol/sse.js';
import { isEventStream, isExcess } from '../../../protocol/sse-reader.js';
import {
  EMPTY_FILTER,
  filterOfNotification,
  readFilter,
  renderAcknowledged,
  renderFinalResponse,
  renderListChanged,
  type SubscriptionFilter,
} from '../../../protocol/subscriptions.js';
import type { UpstreamResponse } from '../../../protocol/transport.js';
import type { Snapshot } from '../../ports.js';
import { newestSnapshot, type RequestContext } from '../../request-context.js';
import type { CheckPorts } from '../../response-context.js';
import { refuseStatus, sendResponse } from '../../response-forwarding.js';
import { createResponseCheck } from '../../response-pipeline.js';
import { createGatheredWrites, reasonOfEnd, writeFailure } from '../../sse-response.js';
import {
  aborted,
  keepStreamOpen,
  type RelayPorts,
  relayHeldStream,
  type StreamTerms,
} from '../../stream-lifetime.js';
import { allowedFilter, isAnyAllowed, mayKnowChanges, openSubscribedTasks } from './filter.js';
import { checkSubscriptionMessage, type Subscription } from './notifications.js';

const METHOD_NOT_FOUND = -32601;
/** Statuses of a server without the method, whatever its body says. */
const UNSUPPORTED_STATUSES: ReadonlySet<number> = new Set([404, 405]);

/** Relays the stream of a subscription, or returns the refusal to send instead. */
export async function relaySubscription(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  const status = refuseStatus(call, response, undefined);
  if (status !== undefined) {
    response.release();
    return status;
  }
  if (isEventStream(response)) return serve(call, authorized, response);
  if (mediaType(response.headers['content-type']) === 'application/json')
    return relayJsonError(call, authorized, response);
  response.release();
  if (UNSUPPORTED_STATUSES.has(response.status)) return serve(call, authorized, undefined);
  return refuseWith(response.status >= 500 ? 'upstream-unavailable' : 'upstream-protocol');
}

/** A JSON response is an error: the server lacks the method (then the gateway serves alone), or refuses. */
async function relayJsonError(
  call: RequestContext<RelayPorts>,
  authorized: AuthorizedRequest,
  response: UpstreamResponse,
): Promise<Refusal | undefined> {
  const { maxResponseBytes, requestTimeoutMs } = call.snapshot.limits;
  const bytes = await response.readBody(maxResponseBytes, requestTimeoutMs);
  response.release();
  if (bytes === 'too-large') return refuseWith('result-too-large');
  if (typeof bytes === 'string') return refuseWith(bytes);
  const outcome = await createResponseCheck(call, authorized, NO_SESSION_ID).checkBytes(bytes);
  if (outcome.kind === 'response' && outcome.rpcCode === METHOD_NOT_FOUND)
    return serve(call, authorized, undefined);
  if (outcome.kind === 'response' && !outcome.isError) return refuseWith('upstream-protocol');
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
    grant: (snapshot) =>
      isAnythingAllowed(subscription, snapshot) ? undefined : refuseWith('no-matching-allow'),
    announce: (method) => announce(subscription, method),
  };
  const ended = await keepStreamOpen(call, terms, async (leave) => {
    try {
      await run(subscription, response, leave);
    } catch (error) {
      // The headers have been sent, so the refusal can only be written as the last event.
      call.ports.audit.report(error, call.incoming.id);
      subscription.hasEnded = true;
      await fail(call, 'internal');
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
  if (subscription.isServedByGateway && !isEmpty(subscription.acknowledgedFilter))
    await aborted(ended);
}

/** Writes the final result if the gateway ends the stream. A stream that broke off upstream breaks off here too. */
async function sendFinalResponse(subscription: Subscription, ended: AbortSignal): Promise<void> {
  const { call, id, acknowledgedFilter, isServedByGateway, hasEnded } = subscription;
  if (acknowledgedFilter === undefined || hasEnded || !(isServedByGateway || ended.aborted)) return;
  await call.outgoing.write(encodeSseMessage(renderFinalResponse(id)));
}

function openSubscription(
  call: RequestContext<CheckPorts>,
  authorized: AuthorizedRequest,
): Subscription {
  const { admitted, principal } = authorized;
  const requestedFilter = readFilter(paramsOf(admitted)['notifications']) ?? EMPTY_FILTER;
  const subscribedTasks = openSubscribedTasks(call, principal, requestedFilter.tasks);
  return {
    call,
    authorized,
    id: idOf(admitted.message),
    requested: allowedFilter(call.snapshot, principal, requestedFilter, subscribedTasks),
    subscribedTasks,
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
  void call.outgoing.write(
    encodeSseMessage(renderAcknowledged(id, subscription.acknowledgedFilter)),
  );
}

async function relayNotifications(
  subscription: Subscription,
  response: UpstreamResponse,
  ended: AbortSignal,
): Promise<void> {
  const { call } = subscription;
  const { outgoing } = call;
  let isTimedOut = false;
  const timer = setTimeout(() => {
    isTimedOut = subscription.acknowledgedFilter === undefined;
    if (isTimedOut) response.abort();
  }, call.snapshot.limits.requestTimeoutMs);
  const end = await relayHeldStream(call, response, { ended }, async (event) => {
    if (event.kind === 'comment') await outgoing.write(encodeSseComment(''));
    if (event.kind !== 'message') return undefined;
    const checked = await checkSubscriptionMessage(subscription, event.data);
    if (ended.aborted) {
      // The subscription ended during the check, so its last message is the final result.
      subscription.hasEnded = false;
      return 'stop';
    }
    if (checked.text !== undefined) await outgoing.write(encodeSseMessage(checked.text));
    return checked.isLast ? 'stop' : undefined;
  });
  clearTimeout(timer);
  const isBroken =
    subscription.acknowledgedFilter === undefined && !subscription.hasEnded && !ended.aborted;
  if (isBroken) await fail(call, isTimedOut ? 'upstream-timeout' : reasonOfEnd(end));
  else if (isExcess(end) && !subscription.hasEnded && !ended.aborted) {
    subscription.hasEnded = true;
    await fail(call, reasonOfEnd(end));
  }
}

/** Once a stream has begun, a refusal is its last event (docs/contract.md §6). */
async function fail(call: RequestContext, reason: Reason): Promise<void> {
  const writes = createGatheredWrites(call.outgoing);
  writeFailure(call, refuseWith(reason), writes);
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

function isAnythingAllowed(
  { authorized, acknowledgedFilter, subscribedTasks }: Subscription,
  snapshot: Snapshot,
): boolean {
  if (acknowledgedFilter === undefined) return true;
  return isAnyAllowed(snapshot, authorized.principal, acknowledgedFilter, subscribedTasks);
}

function isEmpty(filter: SubscriptionFilter | undefined): boolean {
  if (filter === undefined) return true;
  return filter.lists.length + filter.uris.length + filter.tasks.length === 0;
}
