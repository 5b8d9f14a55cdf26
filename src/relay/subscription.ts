// The stream of a subscription (2026): acknowledged first, then notices that were asked for and are still
// allowed, each judged under the version that stands when it comes. What drifts or is reloaded is told by
// the gateway itself, also where the upstream knows no subscriptions. A client that leaves cancels.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen).

import type { RequestId } from '../mcp/message.js';
import { encodeSseComment, encodeSseMessage } from '../mcp/sse.js';
import {
  filterOfNotice,
  type ListenFilter,
  readFilter,
  renderAcknowledged,
  renderFarewell,
  renderNotice,
} from '../mcp/subscriptions.js';
import type { UpstreamAnswer } from '../mcp/transport.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import type { Cleared } from '../settle/settle.js';
import { mediaType, refuseStatus, sendOwn } from './answer.js';
import type { Call } from './call.js';
import { pumpEvents } from './events.js';
import { createJudge } from './judge.js';
import { aborted, KEEP_ALIVE_MS, timerMs } from './listen.js';
import { allowedFilter } from './narrow.js';
import { judgeNotice, type Subscription } from './notice.js';
import { paramsOf } from './retry.js';
import { STREAM_HEADERS } from './stream-writer.js';

const METHOD_NOT_FOUND = -32601;
/** Statuses of a server without the method, whatever its body says. */
const UNSUPPORTED_STATUSES: ReadonlySet<number> = new Set([404, 405]);

/** Relays the stream of a subscription, or says why there is none. */
export async function relaySubscription(
  call: Call,
  cleared: Cleared,
  answer: UpstreamAnswer,
): Promise<Refusal | undefined> {
  const status = refuseStatus(call, answer, undefined);
  if (status !== undefined) {
    answer.release();
    return status;
  }
  const type = mediaType(answer.headers['content-type']);
  if (type === 'text/event-stream' && answer.status === 200) return serve(call, cleared, answer);
  if (type === 'application/json') return relayRefused(call, cleared, answer);
  answer.release();
  if (UNSUPPORTED_STATUSES.has(answer.status)) return serve(call, cleared, undefined);
  return refuseWith(answer.status >= 500 ? 'upstream-unavailable' : 'upstream-protocol');
}

/** A whole answer is an error: of a server without the method, or of one that will not. */
async function relayRefused(
  call: Call,
  cleared: Cleared,
  answer: UpstreamAnswer,
): Promise<Refusal | undefined> {
  const { maxResponseBytes, requestTimeoutMs } = call.view.limits;
  const bytes = await answer.whole(maxResponseBytes, requestTimeoutMs);
  if (bytes === 'too-large') return refuseWith('result-too-large');
  if (typeof bytes === 'string') return refuseWith(bytes);
  const verdict = await createJudge(call, cleared, undefined).judgeBytes(bytes);
  if (verdict.kind === 'own' && verdict.rpcCode === METHOD_NOT_FOUND)
    return serve(call, cleared, undefined);
  if (verdict.kind === 'own' && !verdict.isError) return refuseWith('upstream-protocol');
  return sendOwn(call, verdict, answer.status, bytes);
}

/** Serves the stream until someone leaves, the token ends, or nothing of it is allowed any more. */
async function serve(
  call: Call,
  cleared: Cleared,
  answer: UpstreamAnswer | undefined,
): Promise<undefined> {
  const { incoming, outgoing, ports } = call;
  const { principal, admitted } = cleared;
  const subscription = openSubscription(call, cleared);
  outgoing.open(200, STREAM_HEADERS);
  call.record.result = { ...call.record.result, status: 'ok', http: 200 };
  const leave = new AbortController();
  const end = (): void => leave.abort();
  const keepAlive = setInterval(() => void outgoing.write(encodeSseComment('')), KEEP_ALIVE_MS);
  const expiry = setTimeout(end, timerMs(principal.token.expiresAt - Date.now()));
  const unregister = ports.registerStream({
    upstream: incoming.upstream,
    principal,
    session: undefined,
    announce: (method) => announce(subscription, method),
    end,
    hasPurpose: () => hasPurpose(subscription),
  });
  incoming.signal.addEventListener('abort', end, { once: true });
  if (incoming.signal.aborted) end();
  leave.signal.addEventListener('abort', () => answer?.abort(), { once: true });
  try {
    if (answer !== undefined) await relayNotices(subscription, answer);
    else acknowledgeOwn(subscription);
    if (subscription.isOurs && !isEmpty(subscription.agreed)) await aborted(leave.signal);
  } finally {
    unregister();
    clearInterval(keepAlive);
    clearTimeout(expiry);
    const isGraceful = subscription.isOurs || leave.signal.aborted;
    if (isGraceful && subscription.agreed !== undefined && !subscription.isOver)
      void outgoing.write(encodeSseMessage(renderFarewell(idOf(admitted.message))));
    outgoing.end();
  }
  return undefined;
}

function openSubscription(call: Call, cleared: Cleared): Subscription {
  const { admitted, principal } = cleared;
  const asked = readFilter(paramsOf(admitted)['notifications']) ?? { lists: [], uris: [] };
  return {
    call,
    cleared,
    id: idOf(admitted.message),
    requested: allowedFilter(call.view, principal, asked),
    agreed: undefined,
    isOurs: false,
    isOver: false,
    told: 0,
  };
}

function idOf(message: Cleared['admitted']['message']): RequestId {
  if (message.kind !== 'request') throw new Error('a subscription is a request');
  return message.id;
}

/** The upstream knows no subscriptions: what the gateway can tell of by itself is all there is. */
function acknowledgeOwn(subscription: Subscription): void {
  const { call, id, requested } = subscription;
  subscription.isOurs = true;
  subscription.agreed = { lists: requested.lists, uris: [] };
  void call.outgoing.write(encodeSseMessage(renderAcknowledged(id, subscription.agreed)));
}

async function relayNotices(subscription: Subscription, answer: UpstreamAnswer): Promise<void> {
  const { call } = subscription;
  const { outgoing } = call;
  await pumpEvents(answer, call.view.limits.maxResponseBytes, async (event) => {
    if (event.kind === 'comment') await outgoing.write(encodeSseComment(''));
    if (event.kind !== 'message') return undefined;
    call.view = call.ports.view(call.incoming.upstream) ?? call.view;
    const judged = await judgeNotice(subscription, event.data);
    if (judged.text !== undefined) await outgoing.write(encodeSseMessage(judged.text));
    return judged.isLast || outgoing.isClosed ? 'stop' : undefined;
  });
}

/** Tells of a change that the gateway itself has seen. */
function announce(subscription: Subscription, method: string): void {
  const { call, id } = subscription;
  const filter = filterOfNotice(method);
  if (filter === undefined || !stillAllowed(subscription).lists.includes(filter)) return;
  subscription.told += 1;
  void call.outgoing.write(encodeSseMessage(renderNotice(id, filter)));
}

/** What was agreed to, as far as the rules of now allow it. */
function stillAllowed({ call, cleared, agreed }: Subscription): ListenFilter {
  if (agreed === undefined) return { lists: [], uris: [] };
  const view = call.ports.view(call.incoming.upstream) ?? call.view;
  return allowedFilter(view, cleared.principal, agreed);
}

function hasPurpose(subscription: Subscription): boolean {
  return subscription.agreed === undefined || !isEmpty(stillAllowed(subscription));
}

function isEmpty(filter: ListenFilter | undefined): boolean {
  return filter === undefined || filter.lists.length + filter.uris.length === 0;
}
