// The streams of an endpoint's session: one stream towards the client for the streams of all members, each
// opened, judged and recorded by its own exchange; and the end of the session, which is that of each of them.
// Source: MCP 2025-11-25, transports (listening for messages, resumability, session management).

import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/refusal.js';
import { admitSessionEnd, admitStreamOpen } from '../../protocol/admission.js';
import type { Admitted, EventFacts, SessionFacts } from '../../protocol/admitted-request.js';
import { INVALID_REQUEST, protocolErrorOf } from '../../protocol/errors.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../protocol/jsonrpc.js';
import { encodeSseComment, encodeSseMessage } from '../../protocol/sse.js';
import {
  EMPTY_FILTER,
  LIST_FILTERS,
  type ListenFilter,
  readFilter,
  renderAcknowledged,
  renderFinalResponse,
} from '../../protocol/subscriptions.js';
import type { Body, Outgoing, ResponseHeaders } from '../../protocol/transport.js';
import { NO_LEGACY_SSE_HERE, probesForLegacySse } from '../../protocol/versions/legacy-sse.js';
import { STREAM_HEADERS } from '../sse-response.js';
import { collectResponse, readWritten } from './fan-out.js';
import {
  type BackendRequest,
  refuseUnknown,
  runBackendRequest,
  type Verified,
} from './requests.js';
import {
  type BackendSession,
  backendRequestIn,
  backendRequestsOf,
  backendSessionsIn,
  findBackend,
  openLive,
} from './sessions.js';

// One subscription to several members (2026): each has its own exchange and its own stream, the client one.
// It is acknowledged once, with what any of them agreed to, and ends when the last of them ends. Every notice
// was judged by its member's exchange before it comes here.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen).

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** How long members are waited for once one has agreed; what a later one says is passed on all the same. */
const PATIENCE_MS = 10_000;
/** The stream towards the client, and what is known of the members' streams. */
type Joined = {
  readonly outgoing: Outgoing;
  readonly id: RequestId;
  /** What members agreed to so far. */
  readonly agreed: ListenFilter[];
  /** Notices that came before every member had agreed. */
  readonly early: string[];
  /** Members that have neither agreed nor failed. */
  undecided: number;
  isOpen: boolean;
  /** A member ended its stream in good order. */
  isComplete: boolean;
  failure: { status: number; headers: ResponseHeaders; body: Body } | undefined;
  timer: NodeJS.Timeout | undefined;
};

/** Listens to every member that lets the caller listen. */
export async function listenTogether(
  verified: Verified,
  admitted: Admitted,
): Promise<Refusal | undefined> {
  const { context } = verified;
  if (admitted.message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backendRequestsOf(verified, admitted);
  const joined: Joined = {
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
      const end = backendRequestOf(joined);
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

/** A member's end. `decide` says that it will agree to nothing any more. */
function backendRequestOf(joined: Joined): { readonly outgoing: Outgoing; decide(): void } {
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
    // The whole has told the client what there is to tell.
    also: () => undefined,
    send(status, headers, body) {
      joined.failure ??= { status, headers, body };
      decide();
    },
    open: () => undefined,
    write: readWritten((event) => {
      if (event.kind === 'message') return take(joined, event.data, decide);
      const isKeptAlive = event.kind === 'comment' && joined.isOpen;
      return isKeptAlive ? joined.outgoing.write(encodeSseComment('')) : undefined;
    }),
    end: decide,
    cut: () => joined.outgoing.cut(),
  };
  return { outgoing, decide };
}

function take(joined: Joined, text: string, decide: () => void): void | Promise<void> {
  const message: Json = JSON.parse(text);
  if (!isObject(message)) return;
  if (message['method'] === ACKNOWLEDGED) {
    joined.agreed.push(filterOf(message));
    joined.timer ??= setTimeout(() => acknowledge(joined), PATIENCE_MS);
    return decide();
  }
  if (message['method'] === undefined) {
    // A result ends this member's stream in good order, an error does not; the others go on.
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

function filterOf(message: JsonObject): ListenFilter {
  const params = message['params'];
  return readFilter(isObject(params) ? params['notifications'] : undefined) ?? EMPTY_FILTER;
}

/** The first message of the stream: what any member agreed to. Nothing where none did. */
function acknowledge(joined: Joined): void {
  const { agreed, early, id, outgoing } = joined;
  if (joined.isOpen || agreed.length === 0) return;
  joined.isOpen = true;
  const together: ListenFilter = {
    lists: LIST_FILTERS.filter((filter) => agreed.some(({ lists }) => lists.includes(filter))),
    uris: [...new Set(agreed.flatMap(({ uris }) => uris))],
    tasks: agreed.flatMap(({ tasks }) => tasks),
  };
  outgoing.open(200, STREAM_HEADERS);
  void outgoing.write(encodeSseMessage(renderAcknowledged(id, together)));
  for (const text of early.splice(0)) void outgoing.write(encodeSseMessage(text));
}

function finish({ isComplete, isOpen, failure, id, outgoing }: Joined): Refusal | undefined {
  if (!isOpen) {
    if (failure === undefined) return refuseWith('upstream-protocol');
    outgoing.send(failure.status, failure.headers, failure.body);
    return undefined;
  }
  if (isComplete) void outgoing.write(encodeSseMessage(renderFinalResponse(id)));
  outgoing.end();
  return undefined;
}

/** Opens the stream of a session, or goes on with one after an event. */
export async function openStreams(verified: Verified): Promise<Refusal | undefined> {
  const { context } = verified;
  const { incoming, outgoing } = context;
  if (probesForLegacySse(incoming.headers))
    return refuseProtocolError(
      protocolErrorOf(
        'method-forbidden',
        INVALID_REQUEST,
        NO_LEGACY_SSE_HERE,
        { era: undefined },
        405,
      ),
    );
  const admitted = admitStreamOpen({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openLive(verified, sealed),
    openEvent: (id, session) => findEvent(verified, session, id)?.opened,
  });
  if (admitted.kind === 'fault') return refuseProtocolError(admitted);
  const backendRequests = streamsToOpen(verified, admitted.session);
  if (backendRequests.length === 0) return refuseUnknown();
  const joined = joinStreams(outgoing);
  await Promise.all(
    backendRequests.map((backendRequest) =>
      runBackendRequest(
        verified,
        { ...backendRequest, isOneOfMany: backendRequests.length > 1 },
        joined.backendRequestOf(),
      ),
    ),
  );
  joined.end();
  return undefined;
}

function findEvent(
  { context, principal }: Verified,
  session: SessionFacts,
  id: string,
): { readonly session: BackendSession; readonly opened: EventFacts } | undefined {
  const backends = backendSessionsIn(context, principal, session);
  return findBackend(backends, (scope) => context.ports.openEvent(id, scope), principal);
}

/**
 * The streams of all members. After an event the one that it came from goes on there; the rest of an answer
 * comes alone, because it belongs to its request.
 */
function streamsToOpen(verified: Verified, session: SessionFacts): readonly BackendRequest[] {
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

/** Joins streams into one, event by event. It opens with the first that opens and ends with the last. */
function joinStreams(outgoing: Outgoing): { backendRequestOf(): Outgoing; end(): void } {
  let isOpen = false;
  let failure: { status: number; headers: ResponseHeaders; body: Body } | undefined;
  return {
    backendRequestOf: () => ({
      get isClosed() {
        return outgoing.isClosed;
      },
      // The whole has told the client what there is to tell.
      also: () => undefined,
      send(status, headers, body) {
        failure ??= { status, headers, body };
      },
      open(status, headers) {
        if (!isOpen) outgoing.open(status, headers);
        isOpen = true;
      },
      write: (bytes) => outgoing.write(bytes),
      // The others go on.
      end: () => undefined,
      cut: () => outgoing.cut(),
    }),
    end() {
      if (isOpen) outgoing.end();
      else if (failure !== undefined) outgoing.send(failure.status, failure.headers, failure.body);
    },
  };
}

/** Ends the session with every member, and then the endpoint's own: from here on it is unknown. */
export async function endSessions(verified: Verified): Promise<Refusal | undefined> {
  const { context, principal } = verified;
  const { aggregate, incoming, outgoing, ports } = context;
  const admitted = admitSessionEnd({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openLive(verified, sealed),
  });
  if (admitted.kind === 'fault') return refuseProtocolError(admitted);
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed !== undefined) ports.endSession(sealed, aggregate.name);
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
