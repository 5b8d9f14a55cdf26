// The streams of an endpoint's session: one stream towards the client for the streams of all members, each
// opened, judged and recorded by its own exchange; and the end of the session, which is that of each of them.
// Source: MCP 2025-11-25, transports (listening for messages, resumability, session management).

import type { EventFacts, SessionFacts } from '../../mcp/admitted.js';
import type { Body } from '../../mcp/body.js';
import { NO_LEGACY_SSE_HERE, probesForLegacySse } from '../../mcp/eras/channels.js';
import { INVALID_REQUEST, protocolErrorOf } from '../../mcp/faults.js';
import { admitSessionEnd, admitStreamOpen } from '../../mcp/streams.js';
import type { Outgoing, ResponseHeaders } from '../../mcp/transport.js';
import { type Refusal, refuseProtocolError } from '../../policy/refusal.js';
import { collectResponse } from './collected.js';
import { type BackendRequest, runBackendRequest } from './part.js';
import {
  type BackendSession,
  backendRequestIn,
  backendSessionsIn,
  findBackend,
  openLive,
} from './sessions.js';
import { refuseUnknown, type Verified } from './whole.js';

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
