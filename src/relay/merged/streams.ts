// The streams of an endpoint's session: one stream towards the client for the streams of all members, each
// opened, judged and recorded by its own exchange; and the end of the session, which is that of each of them.
// Source: MCP 2025-11-25, transports (listening for messages, resumability, session management).

import type { EventFacts, SessionFacts } from '../../mcp/admitted.js';
import type { Body } from '../../mcp/body.js';
import { NO_CHANNEL_HERE, probesForChannel } from '../../mcp/eras/channels.js';
import { faultOf, INVALID_REQUEST } from '../../mcp/faults.js';
import { admitSessionEnd, admitStreamOpen } from '../../mcp/streams.js';
import type { AnswerHeaders, Outgoing } from '../../mcp/transport.js';
import { type Refusal, refuseFault } from '../../policy/refusal.js';
import { collectAnswer } from './collected.js';
import { type PartOf, runPart } from './part.js';
import { findMember, type MemberSession, membersIn, openLive, partIn } from './sessions.js';
import { refuseUnknown, type Verified } from './whole.js';

/** Opens the stream of a session, or goes on with one after an event. */
export async function openStreams(verified: Verified): Promise<Refusal | undefined> {
  const { whole } = verified;
  const { incoming, outgoing } = whole;
  if (probesForChannel(incoming.headers))
    return refuseFault(
      faultOf('method-forbidden', INVALID_REQUEST, NO_CHANNEL_HERE, { era: undefined }, 405),
    );
  const admitted = admitStreamOpen({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openLive(verified, sealed),
    openEvent: (id, session) => findEvent(verified, session, id)?.opened,
  });
  if (admitted.kind === 'fault') return refuseFault(admitted);
  const parts = partsToOpen(verified, admitted.session);
  if (parts.length === 0) return refuseUnknown();
  const joined = joinStreams(outgoing);
  await Promise.all(
    parts.map((part) =>
      runPart(verified, { ...part, isOneOfMany: parts.length > 1 }, joined.partOf()),
    ),
  );
  joined.end();
  return undefined;
}

function findEvent(
  { whole, principal }: Verified,
  session: SessionFacts,
  id: string,
): { readonly session: MemberSession; readonly opened: EventFacts } | undefined {
  const members = membersIn(whole, principal, session);
  return findMember(members, (place) => whole.ports.openEvent(id, place), principal);
}

/**
 * The streams of all members. After an event the one that it came from goes on there; the rest of an answer
 * comes alone, because it belongs to its request.
 */
function partsToOpen(verified: Verified, session: SessionFacts): readonly PartOf[] {
  const { whole, principal } = verified;
  const lastEventId = whole.incoming.headers['last-event-id'];
  const resumed = lastEventId === undefined ? undefined : findEvent(verified, session, lastEventId);
  const parts = membersIn(whole, principal, session).map(partIn);
  if (resumed === undefined) return parts;
  const own = { ...partIn(resumed.session), lastEventId };
  if (resumed.opened.request !== undefined) return [own];
  const { upstream } = resumed.session.member;
  return parts.map((part) => (part.member.upstream === upstream ? own : part));
}

/** Joins streams into one, event by event. It opens with the first that opens and ends with the last. */
function joinStreams(outgoing: Outgoing): { partOf(): Outgoing; end(): void } {
  let isOpen = false;
  let failure: { status: number; headers: AnswerHeaders; body: Body } | undefined;
  return {
    partOf: () => ({
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
  const { whole, principal } = verified;
  const { endpoint, incoming, outgoing, ports } = whole;
  const admitted = admitSessionEnd({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openLive(verified, sealed),
  });
  if (admitted.kind === 'fault') return refuseFault(admitted);
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed !== undefined) ports.endSession(sealed, endpoint.name);
  const members = membersIn(whole, principal, admitted.session);
  await Promise.all(
    members.map((member) => {
      const { outgoing: own } = collectAnswer(
        undefined,
        () => false,
        () => undefined,
      );
      return runPart(verified, { ...partIn(member), isOneOfMany: true }, own);
    }),
  );
  outgoing.send(204, {}, '');
  return undefined;
}
