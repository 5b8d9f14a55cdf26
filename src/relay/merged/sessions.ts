// The session of an endpoint: one sealed id that holds the sealed ids of its members' own sessions, so that
// any replica can serve it. A member that did not answer when it was opened has none in it.
// Source: MCP 2025-11-25, session management; contract §10.

import type { Ports } from '../../exchange-ports.js';
import type { Admitted, SessionFacts } from '../../mcp/admitted.js';
import type { Member } from '../../mcp/merge/prefixes.js';
import type { Principal } from '../../policy/principal.js';
import type { PartOf } from './part.js';
import type { Verified, Whole } from './whole.js';

/** A member with its part of a session. */
export type MemberSession = {
  readonly member: Member;
  readonly sealed: string;
  readonly facts: SessionFacts;
};

/** What one header can carry, with room for a token beside it. */
const MAX_SEALED_CHARS = 8192;

/** Seals the sessions of members into one; `undefined` where they are too long together. */
export function sealTogether(
  { whole, principal }: Verified,
  version: string,
  sessions: readonly { readonly member: Member; readonly sealed: string }[],
): string | undefined {
  const { endpoint, ports } = whole;
  const entries = sessions.map(({ member, sealed }) => [member.upstream, sealed]);
  const opened = sessions.map(({ member, sealed }) =>
    ports.openSession(sealed, member.upstream, principal),
  );
  const askable = [...new Set(opened.flatMap((facts) => facts?.askable ?? []))];
  const tasks = [...new Set(opened.flatMap((facts) => facts?.tasks ?? []))];
  const facts = { version, upstreamSession: JSON.stringify(entries), askable, tasks };
  const sealed = ports.sealSession(facts, endpoint.name, principal);
  return sealed.length > MAX_SEALED_CHARS ? undefined : sealed;
}

/**
 * Opens a session of the endpoint; `undefined` for every id that was not given out here to this caller. A
 * session that a member has lost is lost as a whole: its client begins anew, and has all members again. A
 * member that loses it again and again is left out instead.
 */
export function openLive({ whole, principal }: Verified, sealed: string): SessionFacts | undefined {
  const { endpoint, ports } = whole;
  const session = ports.openSession(sealed, endpoint.name, principal);
  if (session === undefined) return undefined;
  const members = membersIn(whole, principal, session);
  const lost = lostMembers(whole, session, members);
  const isTold = lost.map((upstream) => ports.tellLoss(endpoint.name, upstream, principal));
  return members.length === 0 || isTold.includes(true) ? undefined : session;
}

/** The members that have a part in the session, in the endpoint's order; one whose part has ended has none. */
export function membersIn(
  { ports, endpoint }: Pick<Whole, 'ports' | 'endpoint'>,
  principal: Principal,
  session: SessionFacts,
): readonly MemberSession[] {
  const sealedOf = readEntries(session.upstreamSession);
  return endpoint.members.flatMap((member) => {
    const sealed = sealedOf.get(member.upstream);
    const facts = sealed && ports.openSession(sealed, member.upstream, principal);
    return sealed && facts ? [{ member, sealed, facts }] : [];
  });
}

/** The sealed sessions that a session of an endpoint holds, by member. */
export function readEntries(text: string | undefined): ReadonlyMap<string, string> {
  return new Map(text === undefined ? [] : (JSON.parse(text) as [string, string][]));
}

/** A part for a member within its session, or outside of any. */
export function partIn(session: MemberSession): PartOf {
  const { member, sealed, facts } = session;
  return { member, session: { sealed, version: facts.version } };
}

/** The parts of all members: those of the session, or, where there are none, each by itself. */
export function partsOf({ whole, principal }: Verified, { session }: Admitted): readonly PartOf[] {
  return session === undefined
    ? whole.endpoint.members.map((member) => ({ member }))
    : membersIn(whole, principal, session).map(partIn);
}

/** Members that had a part in the session, and have none any more. */
function lostMembers(
  { endpoint }: Pick<Whole, 'endpoint'>,
  session: SessionFacts,
  members: readonly MemberSession[],
): readonly string[] {
  const had = readEntries(session.upstreamSession);
  const known = new Set(members.map(({ member }) => member.upstream));
  return endpoint.members.flatMap(({ upstream }) =>
    had.has(upstream) && !known.has(upstream) ? [upstream] : [],
  );
}

/** Finds the member in whose session `open` succeeds: ids that a member gave out open nowhere else. */
export function findMember<T>(
  members: readonly MemberSession[],
  open: (place: Parameters<Ports['openQuestion']>[1]) => T | undefined,
  principal: Principal,
): { readonly session: MemberSession; readonly opened: T } | undefined {
  for (const session of members) {
    const { member, facts } = session;
    const opened = open({ upstream: member.upstream, principal, session: facts });
    if (opened !== undefined) return { session, opened };
  }
  return undefined;
}
