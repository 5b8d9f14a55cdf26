// The session of an endpoint: one sealed id that holds the sealed ids of its members' own sessions, so that
// any replica can serve it. A member that did not answer when it was opened has none in it.
// Source: MCP 2025-11-25, session management; contract §10.

import type { Principal } from '../../policy/principal.js';
import type { Admitted, SessionFacts } from '../../protocol/admitted-request.js';
import type { Ports } from '../ports.js';
import type { Backend } from './merge.js';
import type { AggregateContext, BackendRequest, Verified } from './requests.js';

/** A member with its part of a session. */
export type BackendSession = {
  readonly backend: Backend;
  readonly sealed: string;
  readonly facts: SessionFacts;
};

/** What one header can carry, with room for a token beside it. */
const MAX_SEALED_CHARS = 8192;

/** Seals the sessions of members into one; `undefined` where they are too long together. */
export function sealTogether(
  { context, principal }: Verified,
  version: string,
  sessions: readonly { readonly backend: Backend; readonly sealed: string }[],
): string | undefined {
  const { aggregate, ports } = context;
  const entries = sessions.map(({ backend, sealed }) => [backend.upstream, sealed]);
  const opened = sessions.map(({ backend, sealed }) =>
    ports.openSession(sealed, backend.upstream, principal),
  );
  const allowedServerRequests = [
    ...new Set(opened.flatMap((facts) => facts?.allowedServerRequests ?? [])),
  ];
  const tasks = [...new Set(opened.flatMap((facts) => facts?.tasks ?? []))];
  const facts = {
    version,
    upstreamSession: JSON.stringify(entries),
    allowedServerRequests,
    tasks,
  };
  const sealed = ports.sealSession(facts, aggregate.name, principal);
  return sealed.length > MAX_SEALED_CHARS ? undefined : sealed;
}

/**
 * Opens a session of the endpoint; `undefined` for every id that was not given out here to this caller. A
 * session that a member has lost is lost as a whole: its client begins anew, and has all members again. A
 * member that loses it again and again is left out instead.
 */
export function openLive(
  { context, principal }: Verified,
  sealed: string,
): SessionFacts | undefined {
  const { aggregate, ports } = context;
  const session = ports.openSession(sealed, aggregate.name, principal);
  if (session === undefined) return undefined;
  const backends = backendSessionsIn(context, principal, session);
  const lost = lostBackends(context, session, backends);
  const isReported = lost.map((upstream) =>
    ports.reportLostBackend(aggregate.name, upstream, principal),
  );
  return backends.length === 0 || isReported.includes(true) ? undefined : session;
}

/** The members that have a part in the session, in the endpoint's order; one whose part has ended has none. */
export function backendSessionsIn(
  { ports, aggregate }: Pick<AggregateContext, 'ports' | 'aggregate'>,
  principal: Principal,
  session: SessionFacts,
): readonly BackendSession[] {
  const sealedOf = readEntries(session.upstreamSession);
  return aggregate.backends.flatMap((backend) => {
    const sealed = sealedOf.get(backend.upstream);
    const facts = sealed && ports.openSession(sealed, backend.upstream, principal);
    return sealed && facts ? [{ backend, sealed, facts }] : [];
  });
}

/** The sealed sessions that a session of an endpoint holds, by member. */
export function readEntries(text: string | undefined): ReadonlyMap<string, string> {
  return new Map(text === undefined ? [] : (JSON.parse(text) as [string, string][]));
}

/** A part for a member within its session, or outside of any. */
export function backendRequestIn(session: BackendSession): BackendRequest {
  const { backend, sealed, facts } = session;
  return { backend, session: { sealed, version: facts.version } };
}

/** The parts of all members: those of the session, or, where there are none, each by itself. */
export function backendRequestsOf(
  { context, principal }: Verified,
  { session }: Admitted,
): readonly BackendRequest[] {
  return session === undefined
    ? context.aggregate.backends.map((backend) => ({ backend }))
    : backendSessionsIn(context, principal, session).map(backendRequestIn);
}

/** Members that had a part in the session, and have none any more. */
function lostBackends(
  { aggregate }: Pick<AggregateContext, 'aggregate'>,
  session: SessionFacts,
  backends: readonly BackendSession[],
): readonly string[] {
  const had = readEntries(session.upstreamSession);
  const known = new Set(backends.map(({ backend }) => backend.upstream));
  return aggregate.backends.flatMap(({ upstream }) =>
    had.has(upstream) && !known.has(upstream) ? [upstream] : [],
  );
}

/** Finds the member in whose session `open` succeeds: ids that a member gave out open nowhere else. */
export function findBackend<T>(
  backends: readonly BackendSession[],
  open: (scope: Parameters<Ports['openServerRequest']>[1]) => T | undefined,
  principal: Principal,
): { readonly session: BackendSession; readonly opened: T } | undefined {
  for (const session of backends) {
    const { backend, facts } = session;
    const opened = open({ upstream: backend.upstream, principal, session: facts });
    if (opened !== undefined) return { session, opened };
  }
  return undefined;
}
