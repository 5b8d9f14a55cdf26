// The ports of the request pipeline, put together from the running components; and the dispatcher of messages by their
// path. Made here are the upstream port and those of what clients carry for the gateway, each sealed to its caller and
// upstream: sessions, with the server requests and stream events in them, legacy SSE requests, tasks, request states and
// cursors. Of these only the newest are also kept in memory. Every call reads the current version once, so that a reload
// takes effect with the next request and never within one.

import type { Settings } from '../config/settings.js';
import type { DataServerPorts } from '../http/server.js';
import { createPageCache } from '../inspection/result-filters.js';
import { digestOnce } from '../pins/digest.js';
import type { Emit } from '../policy/events.js';
import type { ReplayOutcome, ReplayStore, RunningRequest } from '../policy/obligations.js';
import { ownerKey, type Principal } from '../policy/principal.js';
import type { ClientEnd } from '../protocol/transport.js';
import { handleAggregateRequest } from '../proxy/aggregate/pipeline.js';
import { backendSessionIds } from '../proxy/aggregate/sessions.js';
import { handleRequest } from '../proxy/pipeline.js';
import type {
  AggregatePort,
  HandleRequest,
  LegacySsePort,
  ListScope,
  Ports,
  RequestStatePort,
  RequestStateScope,
  SessionPort,
  SessionScope,
  Snapshot,
  TaskPort,
  UpstreamPort,
} from '../proxy/ports.js';
import type { KeyRing } from '../state/keys.js';
import { createMemoryLimits, type GatewayState } from '../state/memory.js';
import {
  createForwardedRequests,
  createKeptPages,
  createKnownTasks,
  createListedResources,
  createLiveProgress,
  createLostBackends,
  createNumbersInFlight,
  createOpenedSessions,
  createOpenLegacyStreams,
  createRunningBackends,
  createRunningStreams,
} from '../state/replica-tables.js';
import {
  bindingOf,
  EVENT_ID,
  LATEST_EXPIRY_MS,
  LEGACY_REQUEST_ID,
  LIST_CURSOR,
  REQUEST_STATE,
  REQUEST_STATE_TTL_MS,
  SERVER_REQUEST_ID,
  SESSION_ID,
  SESSION_TTL_MS,
  sessionHash,
  TASK_ID,
  UPSTREAM_CURSOR,
} from '../state/sealed-token.js';
import type { Version } from './config-version.js';
import { createIdentityPort, type Identity } from './identity.js';
import { createAuditPort, type Observability } from './observability.js';
import type { Aggregates, SnapshotOf } from './snapshot.js';
import type { LeaseRegistry, StreamRegistry } from './streams.js';
import type { SharedResources } from './upstream-connection.js';
import type { Runtimes, UpstreamRuntime } from './upstreams.js';

const MAX_PAGES = 256;
const MAX_PAGE_BYTES = 64 * 1024 * 1024;
const MAX_FILTERED_PAGES = 64;

type PortDependencies = {
  version(): Version;
  identity(): Identity;
  readonly runtimes: Pick<Runtimes, 'get'>;
  readonly snapshotOf: SnapshotOf;
  readonly ring: KeyRing;
  readonly observability: Observability;
  readonly state: GatewayState;
  readonly streams: StreamRegistry;
  readonly leases: LeaseRegistry;
  readonly aggregates: Aggregates;
  readonly sharedResources: SharedResources;
  readonly now: () => number;
};

export function createPorts(dependencies: PortDependencies): Ports {
  const { version, snapshotOf, ring, state, streams, leases, now } = dependencies;
  const { inspection, loopScheduler } = dependencies.sharedResources;
  const runtime = dependencies.runtimes.get;
  const settings = () => version().settings;
  const responses = createRunningStreams();
  return {
    identity: createIdentityPort(settings, dependencies.identity, state.revocations),
    leases,
    sessions: createSessionPort({ ring, now, state, leases, settings, runtime }),
    upstreams: createUpstreamPort(runtime, (one) => snapshotOf(one, version())),
    inspection: {
      ...inspection,
      loopScheduler,
      pages: createPageCache({
        maxPages: MAX_PAGES,
        maxBytes: MAX_PAGE_BYTES,
        maxFilteredPages: MAX_FILTERED_PAGES,
        isEqual: (one, other) => Buffer.compare(one, other) === 0,
      }),
      digest: digestOnce,
    },
    limits: state.limits,
    flows: state.flows,
    audit: createAuditPort(dependencies.observability, ring),
    streams: {
      reserve: streams.reserve,
      registerResponse: responses.register,
      cancelResponse: responses.cancel,
    },
    progress: createLiveProgress<RunningRequest>(),
    requestState: createRequestStatePort(ring, now),
    tasks: createTaskPort(ring, now),
    cursors: createCursorPort(ring, now),
    legacySse: createLegacySsePort(ring, now),
    aggregates: createAggregatePort({ ...dependencies.aggregates, settings, ring, now }),
  };
}

/**
 * Handles a message by the path that it came on: of one upstream directly; of an aggregate by requests to its backends,
 * each of which is handled like any other request. Counts the requests in progress of each upstream.
 */
export function createDispatcher(ports: Ports, emit: Emit): DataServerPorts['handle'] {
  const run: HandleRequest = async (incoming, outgoing, backendPorts) => {
    const { upstream } = incoming;
    emit('inProgress', { upstream, delta: 1 });
    try {
      await handleRequest(incoming, outgoing, backendPorts);
    } finally {
      emit('inProgress', { upstream, delta: -1 });
    }
  };
  return (incoming, outgoing) =>
    ports.aggregates.get(incoming.upstream) === undefined
      ? run(incoming, outgoing, ports)
      : handleAggregateRequest(incoming, outgoing, ports, run);
}

/** A reload may have removed the upstream since the message was allowed. */
const NOT_RUNNING = { kind: 'error', reason: 'upstream-unavailable' } as const;

/**
 * The port that leads to the upstreams: it finds an upstream's runtime, lets it choose the adapter, and passes on what
 * the newest listing has shown.
 */
function createUpstreamPort(
  findRuntime: (upstream: string) => UpstreamRuntime | undefined,
  snapshotOf: (runtime: UpstreamRuntime) => Snapshot,
): UpstreamPort {
  function runtimeOf(upstream: string): UpstreamRuntime {
    const runtime = findRuntime(upstream);
    if (runtime === undefined) throw new Error(`upstream ${upstream} is not running`);
    return runtime;
  }

  return {
    snapshot(upstream) {
      const runtime = findRuntime(upstream);
      return runtime === undefined ? undefined : snapshotOf(runtime);
    },
    async refreshListing(upstream) {
      const runtime = runtimeOf(upstream);
      // What was verified under settings that a reload has replaced proves nothing of the server that is used now.
      return (await runtime.refreshListing()) && findRuntime(upstream) === runtime;
    },
    notePage: (upstream, page) => findRuntime(upstream)?.notePage(page),
    confirmForms: (upstream, ...page) => findRuntime(upstream)?.confirmForms(...page),
    scanPage: (upstream, kind, definitions) => runtimeOf(upstream).scan.scanPage(kind, definitions),
    noteListChanged: (upstream) => runtimeOf(upstream).noteListChanged(),
    noteUnavailable: (upstream) => findRuntime(upstream)?.noteUnavailable(),
    forward(upstream, request) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const snapshot = snapshotOf(runtime);
      return runtime.adapters.forMessage(request.authorized.admitted, snapshot).forward(request, snapshot);
    },
    openStream(upstream, stream) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const currentSnapshot = (): Snapshot => snapshotOf(runtime);
      const adapter = runtime.adapters.forStream(stream.session, currentSnapshot());
      return adapter.openStream(stream, currentSnapshot);
    },
    openLegacyStream: (upstream, caller, signal) => runtimeOf(upstream).client.openLegacyStream(caller, signal),
    endSession(upstream, session, caller) {
      const adapter = findRuntime(upstream)?.adapters.forSession(session);
      return adapter?.endSession(session, caller) ?? Promise.resolve(NOT_RUNNING);
    },
    pingSession(upstream, session, caller) {
      const adapter = findRuntime(upstream)?.adapters.forSession(session);
      return adapter?.pingSession(session, caller) ?? Promise.resolve(true);
    },
    replyToServer: (upstream, serverRequest, reply) =>
      findRuntime(upstream)?.adapters.forSession(serverRequest.session).replyToServer(serverRequest, reply),
    cancelAtServer: (upstream, request) =>
      findRuntime(upstream)?.adapters.forSession(request.session).cancelAtServer(request),
  };
}

/**
 * Sessions that a caller may open at an upstream: 50 a second, which a service that opens one for each call stays
 * below.
 */
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
  return (sealed, session, caller) => (session.target.kind === 'gateway' ? true : claim(sealed, caller));
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
function createSessionPort(dependencies: SessionDependencies): SessionPort {
  const { ring, now, leases } = dependencies;
  const { ended, revocations, claimedReplies } = dependencies.state;
  const forwardedRequests = createForwardedRequests();
  const claimNumber = createNumbersInFlight();
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
    countInitialize: (upstream, caller) => initialized.take(JSON.stringify([upstream, caller]), INITIALIZE_RATE),
    open(sealed, upstream, principal) {
      const session = opened(sealed, upstream, principal);
      if (session === undefined || revocations.hasSession(session.hashes)) return undefined;
      // Apps were turned off by a reload: what the server offers in this session is no longer verified.
      if (session.apps === true && !dependencies.settings().upstreams.get(upstream)?.apps) return undefined;
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
    claimNumber,
    sealServerRequest(request, scope) {
      const expiresAtMs = now() + SERVER_REQUEST_TTL_MS;
      const sealed = SERVER_REQUEST_ID.seal(ring, bindingIn(scope), request, expiresAtMs);
      forwardedRequests.add(scope.session.hash ?? '', request.id, sealed);
      return sealed;
    },
    openServerRequest: (sealed, scope) => SERVER_REQUEST_ID.open(ring, bindingIn(scope), sealed, now()),
    claimReply: createReplyClaims(ring, now, claimedReplies),
    recallServerRequest: (id, session) => forwardedRequests.find(session.hash ?? '', id),
    sealEvent: (event, scope) => EVENT_ID.seal(ring, bindingIn(scope), event, now() + SESSION_TTL_MS),
    openEvent: (sealed, scope) => EVENT_ID.open(ring, bindingIn(scope), sealed, now()),
  };
}

/** Creates the port of request state, which is bound to its caller and to the request that it belongs to. */
function createRequestStatePort(ring: KeyRing, now: () => number): RequestStatePort {
  function bindingFor(scope: RequestStateScope, principal: Principal): readonly string[] {
    const { upstream, method, target } = scope;
    const params = ring.hmac('request-state', scope.params);
    return [...bindingOf(upstream, principal), method, target, params];
  }

  return {
    seal: (state, scope, principal) =>
      REQUEST_STATE.seal(ring, bindingFor(scope, principal), state, now() + REQUEST_STATE_TTL_MS),
    open: (sealed, scope, principal) => REQUEST_STATE.open(ring, bindingFor(scope, principal), sealed, now()),
  };
}

/** Creates the port of legacy SSE sessions: request ids, and the clients' streams that this replica holds. */
function createLegacySsePort(ring: KeyRing, now: () => number): LegacySsePort {
  const openStreams = createOpenLegacyStreams<ClientEnd>();
  // Kept for cancellations, which name a request by the client's id.
  const sent = createForwardedRequests();
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
      const isFresh = (one: string): boolean => TASK_ID.open(ring, binding, one, now() + lifetimeMs / 2) !== undefined;
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
    inputRequestsOf: (id, { upstream, principal }) => knownTasks.inputRequestsOf(ownerKey(principal, upstream), id),
  };
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify({ ...one, sealed: '' }) === JSON.stringify({ ...other, sealed: '' });
}

/**
 * Bound to the list and to no caller: pages are kept for all callers with the same rules, and what a cursor leads to is
 * filtered for whoever asks. It lasts as long as the server takes it.
 */
function createCursorPort(ring: KeyRing, now: () => number): Ports['cursors'] {
  return {
    seal: (cursor, { upstream, method }) => UPSTREAM_CURSOR.seal(ring, [upstream, method], cursor, LATEST_EXPIRY_MS),
    open: (sealed, { upstream, method }) => UPSTREAM_CURSOR.open(ring, [upstream, method], sealed, now()),
  };
}

/** How long a client may wait between two pages. */
const CURSOR_TTL_MS = 60 * 60 * 1000;

type AggregatePortDependencies = Pick<Aggregates, 'get'> & {
  settings(): Settings;
  readonly ring: KeyRing;
  readonly now: () => number;
};

/**
 * Creates the port of aggregates: cursors sealed by the key ring; listed resources, lost backend sessions, running
 * backend requests and what is known of backends that hang in the memory of this replica.
 */
function createAggregatePort({ get, settings, ring, now }: AggregatePortDependencies): AggregatePort {
  const listed = createListedResources();
  const lost = createLostBackends(now);
  const running = createRunningBackends();
  const bindingAt = ({ aggregate, principal, method }: ListScope): readonly string[] => [
    ...bindingOf(aggregate, principal),
    method,
  ];
  return {
    get,
    sealCursor: (cursors, scope) => LIST_CURSOR.seal(ring, bindingAt(scope), cursors, now() + CURSOR_TTL_MS),
    openCursor: (sealed, scope) => LIST_CURSOR.open(ring, bindingAt(scope), sealed, now()),
    reportLostBackend(aggregate, upstream, principal) {
      const key = ownerKey(principal, aggregate, upstream);
      if (lost.isFrequent(key)) return false;
      lost.note(key);
      return true;
    },
    noteResources: (aggregate, principal, page) => listed.note(ownerKey(principal, aggregate), page),
    recallResource: ({ aggregate, principal, uri }, backends) =>
      listed.recall(ownerKey(principal, aggregate), uri, backends),
    registerBackendRequest: running.enter,
    findRunningBackends: running.find,
    whenIdle: running.whenIdle,
    ...createHangingPorts(now, settings),
  };
}

/** Creates the ports for backends that hang, in the memory of this replica. */
function createHangingPorts(
  now: () => number,
  settings: () => Settings,
): Pick<AggregatePort, 'lastPages' | 'hangingBackends'> {
  const kept = createKeptPages(now);
  const hanging = new Set<string>();
  return {
    lastPages: {
      keep: kept.keep,
      recall(caller, key, upstream) {
        const maxAgeMs = settings().upstreams.get(upstream)?.pinning.maxAgeMs;
        return maxAgeMs === undefined ? undefined : kept.recall(caller, key, maxAgeMs);
      },
    },
    hangingBackends: {
      has: (upstream) => hanging.has(upstream),
      note(upstream, isHanging) {
        if (isHanging) hanging.add(upstream);
        else hanging.delete(upstream);
      },
    },
  };
}
