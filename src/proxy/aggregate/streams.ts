// Joins the streams of all backends into one stream towards the client: session streams and, in 2026-07-28,
// subscriptions. Every backend stream is opened, checked and recorded by a pipeline run of its own.
// Source: MCP 2025-11-25, transports (listening for messages, resumability); MCP 2026-07-28, subscriptions
// (subscriptions/listen).

import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/decision.js';
import { isReason, REASONS } from '../../policy/reasons.js';
import { admitStreamOpen } from '../../protocol/admission.js';
import type { AdmittedMessage, EventFacts, SessionFacts } from '../../protocol/admitted-request.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { INVALID_REQUEST, protocolErrorOf } from '../../protocol/responses.js';
import { encodeSseComment, encodeSseMessage } from '../../protocol/sse.js';
import {
  EMPTY_FILTER,
  filterWithout,
  LIST_FILTERS,
  readFilter,
  renderAcknowledged,
  renderFinalResponse,
  type SubscriptionFilter,
} from '../../protocol/subscriptions.js';
import type { Outgoing } from '../../protocol/transport.js';
import { NO_LEGACY_SSE_HERE, probesForLegacySse } from '../../protocol/versions/legacy-sse.js';
import { STREAM_HEADERS } from '../sse-response.js';
import {
  type BackendRequest,
  createEventWriter,
  JSON_HEADERS,
  refuseNotFound,
  runBackendRequest,
  SLOW_BACKEND_WAIT_MS,
  type VerifiedRequest,
} from './backend-requests.js';
import {
  type BackendSession,
  backendRequestIn,
  backendRequestsOf,
  backendSessionsIn,
  findBackend,
  openAggregateSession,
} from './sessions.js';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** What the stream of one backend writes to the client's. */
type Part = Pick<Outgoing, 'open' | 'write' | 'end'>;

/** What a backend sent in place of a stream. */
type Failure = Parameters<Outgoing['send']>;

/**
 * Runs the request of each backend, whose stream is a part of the client's. A part ends by itself: where it must end
 * although the client does not read, the others go on, and only the last one closes the client's connection. Returns the
 * first failure; `onFailure` is given each.
 */
async function runParts(
  verified: VerifiedRequest,
  backendRequests: readonly BackendRequest[],
  createPart: (fail: (...failed: Failure) => void) => Part,
  onFailure?: (failed: Failure) => void,
): Promise<Failure | undefined> {
  const { outgoing } = verified.context;
  let failure: Failure | undefined;
  const fail = (...failed: Failure): void => {
    onFailure?.(failed);
    failure ??= failed;
  };
  const isOneOfMany = backendRequests.length > 1;
  const open = new Set(backendRequests);
  async function runPart(backendRequest: BackendRequest): Promise<void> {
    const part = createPart(fail);
    /** Resolve the writes that wait until the client reads. */
    const waiting = new Set<() => void>();
    const own: Outgoing = {
      ...part,
      send: fail,
      get isClosed() {
        return outgoing.isClosed || !open.has(backendRequest);
      },
      // Such headers are sent to the client by the aggregate itself.
      addHeader: () => undefined,
      write(bytes) {
        const written = open.has(backendRequest) ? part.write(bytes) : undefined;
        if (written === undefined) return undefined;
        return new Promise((resolve) => {
          waiting.add(resolve);
          void written.then(resolve).then(() => waiting.delete(resolve));
        });
      },
      disconnect() {
        open.delete(backendRequest);
        for (const resolve of waiting) resolve();
        if (open.size === 0) outgoing.disconnect();
      },
    };
    await runBackendRequest(verified, { ...backendRequest, isOneOfMany }, own);
    open.delete(backendRequest);
    part.end();
  }
  await Promise.all(backendRequests.map(runPart));
  return failure;
}

/** The client's stream, and the state of the backends' streams. */
type JoinedSubscription = {
  readonly outgoing: Outgoing;
  readonly id: RequestId;
  readonly requested: SubscriptionFilter;
  /** Why backends refused their part although the caller may have it: a limit is spent, or a flow closes them. */
  readonly refusals: JsonObject[];
  /** The filters that backends have acknowledged so far. */
  readonly acknowledgedFilters: SubscriptionFilter[];
  /** Notifications that arrived before the subscription was acknowledged to the client. */
  readonly queuedMessages: string[];
  /** How many backends have neither acknowledged nor failed. */
  pendingBackends: number;
  isOpen: boolean;
  /** A backend ended its stream with a result. */
  isComplete: boolean;
  timer: NodeJS.Timeout | undefined;
};

/**
 * Subscribes to every backend that allows it. The client gets one acknowledgement, with everything that any
 * backend agreed to, and the stream ends when the last backend's does.
 */
export async function subscribeToAll(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
): Promise<Refusal | undefined> {
  const { context } = verified;
  if (admitted.message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backendRequestsOf(verified, admitted);
  const joined: JoinedSubscription = {
    outgoing: context.outgoing,
    id: admitted.message.id,
    requested: readFilter(paramsOf(admitted)['notifications']) ?? EMPTY_FILTER,
    refusals: [],
    acknowledgedFilters: [],
    queuedMessages: [],
    pendingBackends: backendRequests.length,
    isOpen: false,
    isComplete: false,
    timer: undefined,
  };
  const failure = await runParts(
    verified,
    backendRequests,
    (fail) => createSubscriptionPart(joined, fail),
    (failed) => noteRefusal(joined, failed),
  );
  clearTimeout(joined.timer);
  return finish(joined, failure);
}

/** One backend's part of a subscription. It is decided once it has acknowledged, or can no longer do so. */
function createSubscriptionPart(joined: JoinedSubscription, fail: (...failed: Failure) => void): Part {
  let hasAnswered = false;
  function settle(): void {
    if (hasAnswered) return;
    hasAnswered = true;
    joined.pendingBackends -= 1;
    if (joined.pendingBackends === 0) acknowledge(joined);
  }
  return {
    open: () => undefined,
    write: createEventWriter((event) => {
      if (event.kind === 'message') return take(joined, event.data, { decide: settle, fail });
      const isKeptAlive = event.kind === 'comment' && joined.isOpen;
      return isKeptAlive ? joined.outgoing.write(encodeSseComment('')) : undefined;
    }),
    end: settle,
  };
}

function take(
  joined: JoinedSubscription,
  text: string,
  { decide, fail }: { decide(): void; fail(...failed: Failure): void },
): void | Promise<void> {
  const message: Json = JSON.parse(text);
  if (!isObject(message)) return;
  if (message['method'] === ACKNOWLEDGED) {
    joined.acknowledgedFilters.push(filterOf(message));
    joined.timer ??= setTimeout(() => acknowledge(joined), SLOW_BACKEND_WAIT_MS);
    return decide();
  }
  if (message['method'] === undefined) {
    // A result ends this backend's stream normally, an error does not. The other streams continue.
    joined.isComplete ||= message['result'] !== undefined;
    if (message['error'] !== undefined) fail(200, JSON_HEADERS, text);
    return;
  }
  if (joined.isOpen) return joined.outgoing.write(encodeSseMessage(text));
  joined.queuedMessages.push(text);
}

/** Keeps the error of a backend that refused at the last stage: before it, the caller was found to be allowed. */
function noteRefusal({ refusals }: JoinedSubscription, [, headers, body]: Failure): void {
  if (typeof body !== 'string' || !headers['content-type']?.startsWith('application/json')) return;
  const message: Json = JSON.parse(body);
  const error = isObject(message) ? message['error'] : undefined;
  const data = isObject(error) ? error['data'] : undefined;
  const decision = isObject(data) ? data['dev.sallyport/decision'] : undefined;
  const reason = isObject(decision) ? decision['reason'] : undefined;
  const isLate = typeof reason === 'string' && isReason(reason) && REASONS[reason].stage === 'settle';
  if (isObject(error) && isLate) refusals.push(error);
}

function filterOf(message: JsonObject): SubscriptionFilter {
  const params = message['params'];
  return readFilter(isObject(params) ? params['notifications'] : undefined) ?? EMPTY_FILTER;
}

/** Writes the first message of the stream: what any backend agreed to. Does nothing if none has. */
function acknowledge(joined: JoinedSubscription): void {
  const { acknowledgedFilters, queuedMessages, id, outgoing, requested, refusals } = joined;
  if (joined.isOpen || acknowledgedFilters.length === 0) return;
  joined.isOpen = true;
  const agreed = new Set(acknowledgedFilters.flatMap(({ uris }) => uris));
  const joinedFilter: SubscriptionFilter = {
    lists: LIST_FILTERS.filter((filter) => acknowledgedFilters.some(({ lists }) => lists.includes(filter))),
    // As they were requested, in whatever order the backends answer.
    uris: requested.uris.filter((uri) => agreed.has(uri)),
    tasks: acknowledgedFilters.flatMap(({ tasks }) => tasks),
  };
  outgoing.open(200, STREAM_HEADERS);
  const leftOut =
    refusals.length === 0 ? undefined : { filter: filterWithout(requested, joinedFilter), errors: refusals };
  void outgoing.write(encodeSseMessage(renderAcknowledged(id, joinedFilter, leftOut)));
  for (const text of queuedMessages.splice(0)) void outgoing.write(encodeSseMessage(text));
}

function finish(
  { isComplete, isOpen, id, outgoing }: JoinedSubscription,
  failure: Failure | undefined,
): Refusal | undefined {
  if (!isOpen) {
    if (failure === undefined)
      return refuseWith('upstream-protocol', {
        detail: 'no backend acknowledged the subscription',
      });
    outgoing.send(...failure);
    return undefined;
  }
  if (isComplete) void outgoing.write(encodeSseMessage(renderFinalResponse(id)));
  outgoing.end();
  return undefined;
}

/** Opens the stream of a session, or resumes one after an event. */
export async function openStreams(verified: VerifiedRequest): Promise<Refusal | undefined> {
  const { incoming, outgoing } = verified.context;
  if (probesForLegacySse(incoming.headers))
    return refuseProtocolError(protocolErrorOf('method-forbidden', INVALID_REQUEST, NO_LEGACY_SSE_HERE, {}, 405));
  const admitted = admitStreamOpen({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openAggregateSession(verified, sealed),
    openEvent: (id, session) => findEvent(verified, session, id)?.opened,
  });
  if (admitted.kind === 'error') return refuseProtocolError(admitted);
  const backendRequests = streamsToOpen(verified, admitted.session);
  if (backendRequests.length === 0) return refuseNotFound();
  let isOpen = false;
  const failure = await runParts(verified, backendRequests, () => ({
    // The joint stream opens with the first of them and ends after the last.
    open(status, headers) {
      if (!isOpen) outgoing.open(status, headers);
      isOpen = true;
    },
    write: (bytes) => outgoing.write(bytes),
    end: () => undefined,
  }));
  if (isOpen) outgoing.end();
  else if (failure !== undefined) outgoing.send(...failure);
  return undefined;
}

function findEvent(
  verified: VerifiedRequest,
  session: SessionFacts,
  id: string,
): { readonly session: BackendSession; readonly opened: EventFacts } | undefined {
  const { ports } = verified.context;
  return findBackend(verified, session, (scope) => ports.sessions.events.open(id, scope));
}

/**
 * The backend streams to open. With a last event id, the stream it came from is resumed there; if that stream
 * carried a response, it is opened alone, because it belongs to its request.
 */
function streamsToOpen(verified: VerifiedRequest, session: SessionFacts): readonly BackendRequest[] {
  const lastEventId = verified.context.incoming.headers['last-event-id'];
  const resumed = lastEventId === undefined ? undefined : findEvent(verified, session, lastEventId);
  const backendRequests = backendSessionsIn(verified, session).map(backendRequestIn);
  if (resumed === undefined) return backendRequests;
  const resumedId = resumed.opened.request?.id;
  const resumedRequest = { ...backendRequestIn(resumed.session), lastEventId, resumedId };
  if (resumedId !== undefined) return [resumedRequest];
  const { upstream } = resumed.session.backend;
  return backendRequests.map((backendRequest) =>
    backendRequest.backend.upstream === upstream ? resumedRequest : backendRequest,
  );
}
