// Joins the streams of all backends into one stream towards the client: session streams and, in 2026-07-28,
// subscriptions. Every backend stream is opened, checked and recorded by a pipeline run of its own. Also ends
// the session with every backend.
// Source: MCP 2025-11-25, transports (listening for messages, resumability, session management); MCP 2026-07-28,
// subscriptions (subscriptions/listen).

import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import { admitSessionEnd, admitStreamOpen } from '../../protocol/admission.js';
import type { AdmittedMessage, EventFacts, SessionFacts } from '../../protocol/admitted-request.js';
import { INVALID_REQUEST, protocolErrorOf } from '../../protocol/errors.js';
import type { Json } from '../../protocol/jsonrpc.js';
import { isObject, type JsonObject, type RequestId } from '../../protocol/jsonrpc.js';
import { encodeSseComment, encodeSseMessage } from '../../protocol/sse.js';
import {
  EMPTY_FILTER,
  LIST_FILTERS,
  readFilter,
  renderAcknowledged,
  renderFinalResponse,
  type SubscriptionFilter,
} from '../../protocol/subscriptions.js';
import type { Body, Outgoing, ResponseHeaders } from '../../protocol/transport.js';
import { NO_LEGACY_SSE_HERE, probesForLegacySse } from '../../protocol/versions/legacy-sse.js';
import { STREAM_HEADERS } from '../sse-response.js';
import { collectResponse, createEventWriter } from './fan-out.js';
import {
  type BackendRequest,
  refuseUnknown,
  runBackendRequest,
  type VerifiedRequest,
} from './requests.js';
import {
  type BackendSession,
  backendRequestIn,
  backendRequestsOf,
  backendSessionsIn,
  findBackend,
  openAggregateSession,
} from './sessions.js';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** How long backends are waited for once one has acknowledged. Messages of later ones are still relayed. */
const SLOW_BACKEND_WAIT_MS = 10_000;
/** The client's stream, and the state of the backends' streams. */
type JoinedSubscription = {
  readonly outgoing: Outgoing;
  readonly id: RequestId;
  /** The filters that backends have acknowledged so far. */
  readonly agreed: SubscriptionFilter[];
  /** Notifications that arrived before the subscription was acknowledged to the client. */
  readonly early: string[];
  /** How many backends have neither acknowledged nor failed. */
  undecided: number;
  isOpen: boolean;
  /** A backend ended its stream with a result. */
  isComplete: boolean;
  failure: { status: number; headers: ResponseHeaders; body: Body } | undefined;
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
    agreed: [],
    early: [],
    undecided: backendRequests.length,
    isOpen: false,
    isComplete: false,
    failure: undefined,
    timer: undefined,
  };
  await Promise.all(
    backendRequests.map((backendRequest) => {
      const end = createBackendOutput(joined);
      return runBackendRequest(
        verified,
        { ...backendRequest, isOneOfMany: true },
        end.outgoing,
      ).then(end.decide);
    }),
  );
  clearTimeout(joined.timer);
  return finish(joined);
}

/** One backend's output. `decide` records that it will no longer acknowledge. */
function createBackendOutput(joined: JoinedSubscription): {
  readonly outgoing: Outgoing;
  decide(): void;
} {
  let isDecided = false;
  function decide(): void {
    if (isDecided) return;
    isDecided = true;
    joined.undecided -= 1;
    if (joined.undecided === 0) acknowledge(joined);
  }
  const outgoing: Outgoing = {
    get isClosed() {
      return joined.outgoing.isClosed;
    },
    // Such headers are sent to the client by the aggregate itself.
    addHeader: () => undefined,
    send(status, headers, body) {
      joined.failure ??= { status, headers, body };
      decide();
    },
    open: () => undefined,
    write: createEventWriter((event) => {
      if (event.kind === 'message') return take(joined, event.data, decide);
      const isKeptAlive = event.kind === 'comment' && joined.isOpen;
      return isKeptAlive ? joined.outgoing.write(encodeSseComment('')) : undefined;
    }),
    end: decide,
    disconnect: () => joined.outgoing.disconnect(),
  };
  return { outgoing, decide };
}

function take(joined: JoinedSubscription, text: string, decide: () => void): void | Promise<void> {
  const message: Json = JSON.parse(text);
  if (!isObject(message)) return;
  if (message['method'] === ACKNOWLEDGED) {
    joined.agreed.push(filterOf(message));
    joined.timer ??= setTimeout(() => acknowledge(joined), SLOW_BACKEND_WAIT_MS);
    return decide();
  }
  if (message['method'] === undefined) {
    // A result ends this backend's stream normally, an error does not. The other streams continue.
    joined.isComplete ||= message['result'] !== undefined;
    if (message['error'] !== undefined)
      joined.failure ??= {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: text,
      };
    return;
  }
  if (joined.isOpen) return joined.outgoing.write(encodeSseMessage(text));
  joined.early.push(text);
}

function filterOf(message: JsonObject): SubscriptionFilter {
  const params = message['params'];
  return readFilter(isObject(params) ? params['notifications'] : undefined) ?? EMPTY_FILTER;
}

/** Writes the first message of the stream: what any backend agreed to. Does nothing if none has. */
function acknowledge(joined: JoinedSubscription): void {
  const { agreed, early, id, outgoing } = joined;
  if (joined.isOpen || agreed.length === 0) return;
  joined.isOpen = true;
  const together: SubscriptionFilter = {
    lists: LIST_FILTERS.filter((filter) => agreed.some(({ lists }) => lists.includes(filter))),
    uris: [...new Set(agreed.flatMap(({ uris }) => uris))],
    tasks: agreed.flatMap(({ tasks }) => tasks),
  };
  outgoing.open(200, STREAM_HEADERS);
  void outgoing.write(encodeSseMessage(renderAcknowledged(id, together)));
  for (const text of early.splice(0)) void outgoing.write(encodeSseMessage(text));
}

function finish({
  isComplete,
  isOpen,
  failure,
  id,
  outgoing,
}: JoinedSubscription): Refusal | undefined {
  if (!isOpen) {
    if (failure === undefined) return refuseWith('upstream-protocol');
    outgoing.send(failure.status, failure.headers, failure.body);
    return undefined;
  }
  if (isComplete) void outgoing.write(encodeSseMessage(renderFinalResponse(id)));
  outgoing.end();
  return undefined;
}

/** Opens the stream of a session, or resumes one after an event. */
export async function openStreams(verified: VerifiedRequest): Promise<Refusal | undefined> {
  const { context } = verified;
  const { incoming, outgoing } = context;
  if (probesForLegacySse(incoming.headers))
    return refuseProtocolError(
      protocolErrorOf('method-forbidden', INVALID_REQUEST, NO_LEGACY_SSE_HERE, {}, 405),
    );
  const admitted = admitStreamOpen({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openAggregateSession(verified, sealed),
    openEvent: (id, session) => findEvent(verified, session, id)?.opened,
  });
  if (admitted.kind === 'error') return refuseProtocolError(admitted);
  const backendRequests = streamsToOpen(verified, admitted.session);
  if (backendRequests.length === 0) return refuseUnknown();
  const joined = joinStreams(outgoing);
  await Promise.all(
    backendRequests.map((backendRequest) =>
      runBackendRequest(
        verified,
        { ...backendRequest, isOneOfMany: backendRequests.length > 1 },
        joined.createBackendOutput(),
      ),
    ),
  );
  joined.end();
  return undefined;
}

function findEvent(
  { context, principal }: VerifiedRequest,
  session: SessionFacts,
  id: string,
): { readonly session: BackendSession; readonly opened: EventFacts } | undefined {
  const backends = backendSessionsIn(context, principal, session);
  return findBackend(backends, (scope) => context.ports.sessions.openEvent(id, scope), principal);
}

/**
 * The backend streams to open. With a last event id, the stream it came from is resumed there; if that stream
 * carried a response, it is opened alone, because it belongs to its request.
 */
function streamsToOpen(
  verified: VerifiedRequest,
  session: SessionFacts,
): readonly BackendRequest[] {
  const { context, principal } = verified;
  const lastEventId = context.incoming.headers['last-event-id'];
  const resumed = lastEventId === undefined ? undefined : findEvent(verified, session, lastEventId);
  const backendRequests = backendSessionsIn(context, principal, session).map(backendRequestIn);
  if (resumed === undefined) return backendRequests;
  const own = { ...backendRequestIn(resumed.session), lastEventId };
  if (resumed.opened.request !== undefined) return [own];
  const { upstream } = resumed.session.backend;
  return backendRequests.map((backendRequest) =>
    backendRequest.backend.upstream === upstream ? own : backendRequest,
  );
}

/** Joins streams event by event. The joint stream opens with the first of them and ends after the last. */
function joinStreams(outgoing: Outgoing): { createBackendOutput(): Outgoing; end(): void } {
  let isOpen = false;
  let failure: { status: number; headers: ResponseHeaders; body: Body } | undefined;
  return {
    createBackendOutput: () => ({
      get isClosed() {
        return outgoing.isClosed;
      },
      // Such headers are sent to the client by the aggregate itself.
      addHeader: () => undefined,
      send(status, headers, body) {
        failure ??= { status, headers, body };
      },
      open(status, headers) {
        if (!isOpen) outgoing.open(status, headers);
        isOpen = true;
      },
      write: (bytes) => outgoing.write(bytes),
      // The other streams continue.
      end: () => undefined,
      disconnect: () => outgoing.disconnect(),
    }),
    end() {
      if (isOpen) outgoing.end();
      else if (failure !== undefined) outgoing.send(failure.status, failure.headers, failure.body);
    },
  };
}

/** Ends the aggregate's session, which is unknown from then on, and that of every backend. */
export async function endSessions(verified: VerifiedRequest): Promise<Refusal | undefined> {
  const { context, principal } = verified;
  const { incoming, outgoing, ports } = context;
  const admitted = admitSessionEnd({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openAggregateSession(verified, sealed),
  });
  if (admitted.kind === 'error') return refuseProtocolError(admitted);
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed !== undefined) ports.sessions.end(sealed);
  const backends = backendSessionsIn(context, principal, admitted.session);
  await Promise.all(
    backends.map((backend) => {
      const { outgoing: own } = collectResponse(
        undefined,
        () => false,
        () => undefined,
      );
      return runBackendRequest(verified, { ...backendRequestIn(backend), isOneOfMany: true }, own);
    }),
  );
  outgoing.send(204, {}, '');
  return undefined;
}
