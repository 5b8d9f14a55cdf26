// The session of an aggregate: one sealed id that contains the sealed ids of the backends' own sessions, so that
// any replica can serve it. A backend that did not respond when the session was opened is not in it.
// Source: MCP 2025-11-25, session management; docs/reference/state.md#sessions-on-any-replica.

import { type Refusal, refuseProtocolError } from '../../policy/decision.js';
import { callerKeyOf } from '../../policy/principal.js';
import type { SessionScope } from '../../policy/sealed-types.js';
import { admitSessionEnd } from '../../protocol/admission.js';
import type { AdmittedMessage, SessionFacts } from '../../protocol/admitted-request.js';
import type { Backend } from '../ports.js';
import {
  type BackendOutcome,
  type BackendRequest,
  collectResponse,
  runBackendRequest,
  type VerifiedRequest,
} from './backend-requests.js';

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
  const sealedByUpstream = new Map(sessions.map(({ backend, sealed }) => [backend.upstream, sealed]));
  const opened = sessions.map(({ backend, sealed }) => ports.sessions.open(sealed, backend.upstream, principal));
  const allowedServerRequests = [...new Set(opened.flatMap((facts) => facts?.allowedServerRequests ?? []))];
  const elicitation = [...new Set(opened.flatMap((facts) => facts?.elicitation ?? []))];
  const tasks = [...new Set(opened.flatMap((facts) => facts?.tasks ?? []))];
  const facts = {
    version,
    target: { kind: 'aggregate', sessions: sealedByUpstream } as const,
    allowedServerRequests,
    elicitation,
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
export function openAggregateSession(verified: VerifiedRequest, sealed: string): SessionFacts | undefined {
  const { principal } = verified;
  const { aggregate, ports } = verified.context;
  const session = ports.sessions.open(sealed, aggregate.name, principal);
  if (session === undefined) return undefined;
  const backendsAtStart = backendSessionIds(session);
  const open = backendSessionsIn(verified, session).map(({ backend }) => backend.upstream);
  const isReported = aggregate.backends
    .filter(({ upstream }) => backendsAtStart.has(upstream) && !open.includes(upstream))
    .map(({ upstream }) => ports.aggregates.reportLostBackend(aggregate.name, upstream, principal));
  if (open.length > 0 && !isReported.includes(true)) return session;
  verified.context.lostSession = session;
  return undefined;
}

/**
 * Ends the session of a request if a backend has lost its own: the client opens a new one, and nobody would end those of
 * the other backends.
 */
export function endLostSession(verified: VerifiedRequest): void {
  const { context, principal } = verified;
  const { incoming, ports } = context;
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed === undefined) return;
  // The one backend of a call may have lost its session, which nobody but the client has seen.
  if (context.admitted?.session !== undefined && context.lostSession === undefined)
    openAggregateSession(verified, sealed);
  const { lostSession } = context;
  if (lostSession === undefined) return;
  // What other backends are working on is still answered: one that loses its session must not undo their calls.
  ports.aggregates.whenIdle(sealed, () => {
    ports.sessions.end(sealed, callerKeyOf(principal));
    for (const one of backendSessionsIn(verified, lostSession))
      endBackendSession(verified, one, true).catch((error) => ports.audit.report(error, incoming.id));
  });
}

/** The backends with a valid session in it, in the aggregate's order. */
export function backendSessionsIn(
  { context: { aggregate, ports }, principal }: VerifiedRequest,
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
export function backendRequestsOf(verified: VerifiedRequest, { session }: AdmittedMessage): readonly BackendRequest[] {
  return session === undefined
    ? verified.context.aggregate.backends.map((backend) => ({ backend }))
    : backendSessionsIn(verified, session).map(backendRequestIn);
}

/** Finds the backend in whose session `open` succeeds. Sealed ids open only in the session they were issued in. */
export function findBackend<T>(
  verified: VerifiedRequest,
  session: SessionFacts,
  open: (scope: SessionScope) => T | undefined,
): { readonly session: BackendSession; readonly opened: T } | undefined {
  for (const found of backendSessionsIn(verified, session)) {
    const { upstream } = found.backend;
    const opened = open({ upstream, principal: verified.principal, session: found.facts });
    if (opened !== undefined) return { session: found, opened };
  }
  return undefined;
}

/** Ends the aggregate's session, which is unknown from then on, and that of every backend. */
export async function endAggregateSession(verified: VerifiedRequest): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports } = verified.context;
  const admitted = admitSessionEnd({
    headers: incoming.headers,
    repeated: incoming.repeated,
    openSession: (sealed) => openAggregateSession(verified, sealed),
  });
  if (admitted.kind === 'error') return refuseProtocolError(admitted);
  const sealed = incoming.headers['mcp-session-id'];
  if (sealed !== undefined) ports.sessions.end(sealed, callerKeyOf(verified.principal));
  const backends = backendSessionsIn(verified, admitted.session);
  await Promise.all(backends.map((session) => endBackendSession(verified, session, false)));
  outgoing.send(204, {}, '');
  return undefined;
}

/**
 * Ends the sessions that backends open for an `initialize`, however late, and that no session of the client holds:
 * nobody else knows them, and their servers would keep them.
 */
export function endUnusedSessions(
  verified: VerifiedRequest,
  pending: readonly Promise<BackendOutcome>[],
  used: readonly string[] = [],
): void {
  const { incoming, ports } = verified.context;
  async function endUnused(outcome: Promise<BackendOutcome>): Promise<void> {
    const { backendRequest, response } = await outcome;
    const { backend } = backendRequest;
    const sealed = response.headers['mcp-session-id'];
    if (sealed === undefined || used.includes(sealed)) return;
    const facts = ports.sessions.open(sealed, backend.upstream, verified.principal);
    if (facts !== undefined) await endBackendSession(verified, { backend, sealed, facts }, true);
  }
  for (const one of pending) endUnused(one).catch((error) => ports.audit.report(error, incoming.id));
}

async function endBackendSession(
  verified: VerifiedRequest,
  session: BackendSession,
  isUnasked: boolean,
): Promise<void> {
  const { outgoing } = collectResponse(
    undefined,
    () => false,
    () => undefined,
  );
  const backendRequest = {
    ...backendRequestIn(session),
    isEnd: true,
    isUnasked,
    isOneOfMany: true,
  };
  await runBackendRequest(verified, backendRequest, outgoing);
}
