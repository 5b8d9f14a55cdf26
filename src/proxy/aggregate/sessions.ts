// The session of an aggregate: one sealed id that contains the sealed ids of the backends' own sessions, so that
// any replica can serve it. A backend that did not respond when the session was opened is not in it.
// Source: MCP 2025-11-25, session management; docs/contract.md §10.

import type { Principal } from '../../policy/principal.js';
import type { AdmittedMessage, SessionFacts } from '../../protocol/admitted-request.js';
import type { SessionScope } from '../ports.js';
import type { Backend } from './merge.js';
import type { AggregateContext, BackendRequest, VerifiedRequest } from './requests.js';

/** A backend and its session within the aggregate's session. */
export type BackendSession = {
  readonly backend: Backend;
  readonly sealed: string;
  readonly facts: SessionFacts;
};

/** The longest session id that fits into one header besides a token. */
const MAX_SEALED_CHARS = 8192;

/** Seals the backends' sessions into one id; `undefined` if that would be too long. */
export function sealSessions(
  { context, principal }: VerifiedRequest,
  version: string,
  sessions: readonly { readonly backend: Backend; readonly sealed: string }[],
): string | undefined {
  const { aggregate, ports } = context;
  const held = new Map(sessions.map(({ backend, sealed }) => [backend.upstream, sealed]));
  const opened = sessions.map(({ backend, sealed }) =>
    ports.sessions.open(sealed, backend.upstream, principal),
  );
  const allowedServerRequests = [
    ...new Set(opened.flatMap((facts) => facts?.allowedServerRequests ?? [])),
  ];
  const tasks = [...new Set(opened.flatMap((facts) => facts?.tasks ?? []))];
  const facts = {
    version,
    target: { kind: 'aggregate', sessions: held } as const,
    allowedServerRequests,
    tasks,
  };
  const sealed = ports.sessions.seal(facts, aggregate.name, principal);
  return sealed.length > MAX_SEALED_CHARS ? undefined : sealed;
}

/**
 * Opens a session of the aggregate; `undefined` for any id that was not issued here to this caller. If a backend
 * has lost its session, the whole session counts as lost, so that the client opens a new one with all backends.
 * A backend that loses it repeatedly is left out instead.
 */
export function openAggregateSession(
  { context, principal }: VerifiedRequest,
  sealed: string,
): SessionFacts | undefined {
  const { aggregate, ports } = context;
  const session = ports.sessions.open(sealed, aggregate.name, principal);
  if (session === undefined) return undefined;
  const backends = backendSessionsIn(context, principal, session);
  const lost = lostBackends(context, session, backends);
  const isReported = lost.map((upstream) =>
    ports.aggregates.reportLostBackend(aggregate.name, upstream, principal),
  );
  return backends.length === 0 || isReported.includes(true) ? undefined : session;
}

/** The backends with a valid session in it, in the aggregate's order. */
export function backendSessionsIn(
  { ports, aggregate }: Pick<AggregateContext, 'ports' | 'aggregate'>,
  principal: Principal,
  session: SessionFacts,
): readonly BackendSession[] {
  const sealedOf = backendSessionIds(session);
  return aggregate.backends.flatMap((backend) => {
    const sealed = sealedOf.get(backend.upstream);
    const facts = sealed && ports.sessions.open(sealed, backend.upstream, principal);
    return sealed && facts ? [{ backend, sealed, facts }] : [];
  });
}

/** The sealed backend sessions that an aggregate's session holds, by upstream. */
export function backendSessionIds({ target }: SessionFacts): ReadonlyMap<string, string> {
  return target.kind === 'aggregate' ? target.sessions : NO_SESSIONS;
}

const NO_SESSIONS: ReadonlyMap<string, string> = new Map();

/** A request for a backend within its session. */
export function backendRequestIn(session: BackendSession): BackendRequest {
  const { backend, sealed, facts } = session;
  return { backend, session: { sealed, version: facts.version } };
}

/** Requests for all backends: those of the session, or every backend if there is no session. */
export function backendRequestsOf(
  { context, principal }: VerifiedRequest,
  { session }: AdmittedMessage,
): readonly BackendRequest[] {
  return session === undefined
    ? context.aggregate.backends.map((backend) => ({ backend }))
    : backendSessionsIn(context, principal, session).map(backendRequestIn);
}

/** Backends that were part of the session and no longer have a valid one. */
function lostBackends(
  { aggregate }: Pick<AggregateContext, 'aggregate'>,
  session: SessionFacts,
  backends: readonly BackendSession[],
): readonly string[] {
  const had = backendSessionIds(session);
  const known = new Set(backends.map(({ backend }) => backend.upstream));
  return aggregate.backends.flatMap(({ upstream }) =>
    had.has(upstream) && !known.has(upstream) ? [upstream] : [],
  );
}

/** Finds the backend in whose session `open` succeeds. Sealed ids open only in the session they were issued in. */
export function findBackend<T>(
  backends: readonly BackendSession[],
  open: (scope: SessionScope) => T | undefined,
  principal: Principal,
): { readonly session: BackendSession; readonly opened: T } | undefined {
  for (const session of backends) {
    const { backend, facts } = session;
    const opened = open({ upstream: backend.upstream, principal, session: facts });
    if (opened !== undefined) return { session, opened };
  }
  return undefined;
}
