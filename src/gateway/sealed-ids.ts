// The ids and values that clients carry for the gateway: sessions, server requests and stream events within them, legacy
// SSE requests, tasks, and the request state of an upstream. Each is sealed to the caller and the upstream, and to the
// session if it belongs to one. Only the newest are also kept in memory.

import type { Settings } from '../config/settings.js';
import type { ReplayOutcome, ReplayStore } from '../policy/limits.js';
import { ownerKey, type Principal } from '../policy/principal.js';
import type { ClientEnd } from '../protocol/transport.js';
import { backendSessionIds } from '../proxy/aggregate/sessions.js';
import type {
  LegacySsePort,
  RequestStatePort,
  RequestStateScope,
  SessionPort,
  SessionScope,
  TaskPort,
} from '../proxy/ports.js';
import type { KeyRing } from '../state/keys.js';
import { createMemoryLimits, type GatewayState } from '../state/memory.js';
import {
  bindingOf,
  EVENT_ID,
  LEGACY_REQUEST_ID,
  REQUEST_STATE,
  REQUEST_STATE_TTL_MS,
  SERVER_REQUEST_ID,
  SESSION_ID,
  sessionHash,
  TASK_ID,
} from '../state/sealed-values.js';
import {
  createForwardedServerRequests,
  createKnownTasks,
  createOpenedSessions,
  createOpenLegacyStreams,
} from '../state/session-tables.js';
import type { LeaseRegistry } from './streams.js';
import type { UpstreamRuntime } from './upstreams.js';

/** Lifetime of a sealed session. Clients abandon most sessions, and nothing but the id is kept of one. */
export const SESSION_TTL_MS = 24 * 60 * 60 * 1000;
/** Sessions that a caller may open at an upstream: 50 a second, which a service that opens one for each call stays below. */
const INITIALIZE_RATE = { count: 3_000, windowMs: 60_000 };
/** How long a server request waits for its reply, which a person may have to give. */
const SERVER_REQUEST_TTL_MS = 2 * 60 * 60 * 1000;

/** Binds a sealed value to a caller's session. */
function bindingIn({ upstream, principal, session }: SessionScope): readonly string[] {
  return [...bindingOf(upstream, principal), session.hash ?? ''];
}

/** Creates the claims of replies to server requests. */
export function createReplyClaims(
  ring: KeyRing,
  now: () => number,
  claimedReplies: ReplayStore,
): SessionPort['claimReply'] {
  /** Claims under every key, because replicas may be at different steps of a key rotation and share at least one. */
  async function claim(sealed: string, caller: string): Promise<ReplayOutcome> {
    const expiresAtMs = now() + SERVER_REQUEST_TTL_MS;
    for (const keyHash of ring.hmacAll('answered-question', sealed)) {
      const isFirst = await claimedReplies.useOnce(keyHash, expiresAtMs, caller);
      if (isFirst !== true) return isFirst;
    }
    return true;
  }
  // The gateway itself waits for the reply in a session of its own, on one replica, and drops a second one.
  return (sealed, session, caller) =>
    session.target.kind === 'gateway' ? true : claim(sealed, caller);
}

type SessionDependencies = {
  readonly ring: KeyRing;
  readonly now: () => number;
  readonly state: Pick<GatewayState, 'ended' | 'revocations' | 'claimedReplies'>;
  readonly leases: Pick<LeaseRegistry, 'endSession'>;
  settings(): Settings;
  runtime(upstream: string): UpstreamRuntime | undefined;
};

/** Creates the port of sessions. One that was revoked, has ended or is not in order any more does not open. */
export function createSessionPort(dependencies: SessionDependencies): SessionPort {
  const { ring, now, leases } = dependencies;
  const { ended, revocations, claimedReplies } = dependencies.state;
  const forwardedRequests = createForwardedServerRequests();
  // Of this replica alone: opening a session should not depend on the shared store.
  const initialized = createMemoryLimits();
  const opened = createOpenedSessions((sealed, upstream, principal) => {
    const session = SESSION_ID.open(ring, bindingOf(upstream, principal), sealed, now());
    if (session === undefined) return undefined;
    const hashes = ring.hmacAll('session', sealed);
    const hash = sessionHash(ring, sealed) ?? hashes[0];
    // Audit events name a session of an aggregate by the sessions of its backends, so revoking one of those revokes it.
    const isAggregate = dependencies.settings().aggregates.has(upstream);
    const sealedSessions = isAggregate ? [...backendSessionIds(session).values()] : [];
    const backendSessionHashes = sealedSessions.flatMap((one) => ring.hmacAll('session', one));
    return { ...session, hash, hashes, backendSessionHashes };
  }, now);

  return {
    countInitialize: (upstream, caller) =>
      initialized.take(JSON.stringify([upstream, caller]), INITIALIZE_RATE),
    open(sealed, upstream, principal) {
      const session = opened(sealed, upstream, principal);
      if (session === undefined || revocations.hasSession(session.hashes)) return undefined;
      // Apps were turned off by a reload: what the server offers in this session is no longer verified.
      if (session.apps === true && !dependencies.settings().upstreams.get(upstream)?.apps)
        return undefined;
      if (revocations.hasSession(session.backendSessionHashes)) return undefined;
      if (session.hashes.some(ended.has)) return undefined;
      return dependencies.runtime(upstream)?.adapters.currentFacts(session) ?? session;
    },
    seal: (facts, upstream, principal) =>
      SESSION_ID.seal(ring, bindingOf(upstream, principal), facts, now() + SESSION_TTL_MS),
    end(sealed, owner) {
      const expiresAtMs = now() + SESSION_TTL_MS;
      for (const hash of ring.hmacAll('session', sealed)) ended.add(hash, expiresAtMs, owner);
      leases.endSession(sealed);
    },
    sealServerRequest(request, scope) {
      const expiresAtMs = now() + SERVER_REQUEST_TTL_MS;
      const sealed = SERVER_REQUEST_ID.seal(ring, bindingIn(scope), request, expiresAtMs);
      forwardedRequests.add(scope.session.hash ?? '', request.id, sealed);
      return sealed;
    },
    openServerRequest: (sealed, scope) =>
      SERVER_REQUEST_ID.open(ring, bindingIn(scope), sealed, now()),
    claimReply: createReplyClaims(ring, now, claimedReplies),
    recallServerRequest: (id, session) => forwardedRequests.find(session.hash ?? '', id),
    sealEvent: (event, scope) =>
      EVENT_ID.seal(ring, bindingIn(scope), event, now() + SESSION_TTL_MS),
    openEvent: (sealed, scope) => EVENT_ID.open(ring, bindingIn(scope), sealed, now()),
  };
}

/** Creates the port of request state, which is bound to its caller and to the request that it belongs to. */
export function createRequestStatePort(ring: KeyRing, now: () => number): RequestStatePort {
  function bindingFor(scope: RequestStateScope, principal: Principal): readonly string[] {
    const { upstream, method, target } = scope;
    const params = ring.hmac('request-state', scope.params);
    return [...bindingOf(upstream, principal), method, target, params];
  }

  return {
    seal: (state, scope, principal) =>
      REQUEST_STATE.seal(ring, bindingFor(scope, principal), state, now() + REQUEST_STATE_TTL_MS),
    open: (sealed, scope, principal) =>
      REQUEST_STATE.open(ring, bindingFor(scope, principal), sealed, now()),
  };
}

/** Creates the port of legacy SSE sessions: request ids, and the clients' streams that this replica holds. */
export function createLegacySsePort(ring: KeyRing, now: () => number): LegacySsePort {
  const openStreams = createOpenLegacyStreams<ClientEnd>();
  // Kept for cancellations, which name a request by the client's id.
  const sent = createForwardedServerRequests();
  return {
    sealRequest(request, scope) {
      const expiresAtMs = now() + SESSION_TTL_MS;
      const sealed = LEGACY_REQUEST_ID.seal(ring, bindingIn(scope), request, expiresAtMs);
      if (sealed !== undefined) sent.add(scope.session.hash ?? '', request.id, sealed);
      return sealed;
    },
    openRequest: (sealed, scope) => LEGACY_REQUEST_ID.open(ring, bindingIn(scope), sealed, now()),
    recallRequest: (id, session) => sent.find(session.hash ?? '', id),
    registerClientEnd: (session, end) => openStreams.register(session.hash ?? '', end),
    findClientEnd: (session) => openStreams.find(session.hash ?? ''),
  };
}

/** Longest lifetime of a task id, whatever lifetime the server promises. */
export const MAX_TASK_TTL_MS = 7 * 24 * 60 * 60 * 1000;
/** How much longer an id lives than its task: servers may keep tasks a little longer, and clocks differ. */
export const TASK_GRACE_MS = 60 * 60 * 1000;

/**
 * Creates the port of tasks. Task ids are sealed for as long as the server keeps the task, within a bound, and
 * remembered for a while, so that what a server reports under its own id can be passed on under the client's.
 */
export function createTaskPort(ring: KeyRing, now: () => number): TaskPort {
  const knownTasks = createKnownTasks();
  return {
    seal(task, ttlMs, { upstream, principal }) {
      const caller = ownerKey(principal, upstream);
      const binding = bindingOf(upstream, principal);
      const lifetimeMs = Math.min((ttlMs ?? MAX_TASK_TTL_MS) + TASK_GRACE_MS, MAX_TASK_TTL_MS);
      // A task that is reported again, as when its stream is resumed, keeps the id that its client knows, if at least
      // half of that id's lifetime is left.
      const known = knownTasks.find(caller, task.id);
      const isFresh = (one: string): boolean =>
        TASK_ID.open(ring, binding, one, now() + lifetimeMs / 2) !== undefined;
      if (known !== undefined && isSame(known, task) && isFresh(known.sealed)) return known.sealed;
      const sealed = TASK_ID.seal(ring, binding, task, now() + lifetimeMs);
      if (sealed !== undefined) knownTasks.addCreated(caller, { ...task, sealed });
      return sealed;
    },
    open(sealed, { upstream, principal }) {
      const task = TASK_ID.open(ring, bindingOf(upstream, principal), sealed, now());
      if (task !== undefined) knownTasks.add(ownerKey(principal, upstream), { ...task, sealed });
      return task;
    },
    recall: (id, { upstream, principal }) => knownTasks.find(ownerKey(principal, upstream), id),
    inputRequestsOf: (id, { upstream, principal }) =>
      knownTasks.inputRequestsOf(ownerKey(principal, upstream), id),
  };
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify({ ...one, sealed: '' }) === JSON.stringify({ ...other, sealed: '' });
}
