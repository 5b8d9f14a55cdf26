// The ports of the request pipeline, put together from the running components; and the dispatcher of messages by their
// path. What clients carry for the gateway is declared in state/sealed-token.ts. Every call reads the current version
// once, so that a reload takes effect with the next request and never within one.

import { createApprovalPort } from '../approvals/port.js';
import type { ApprovalService } from '../approvals/service.js';
import { createRequestRecorder } from '../audit/recorder.js';
import { createIdentityPort, type Identity } from '../auth/identity.js';
import type { Settings } from '../config/settings.js';
import type { DataServerPorts } from '../http/data-server.js';
import { createPageCache } from '../inspection/result-filters.js';
import { digestOnce } from '../pins/digest.js';
import type { Emit } from '../policy/events.js';
import type { ReplayOutcome, ReplayStore, RunningRequest } from '../policy/obligations.js';
import { ownerKey } from '../policy/principal.js';
import type { Sealed, SealedRequests, SessionScope } from '../policy/sealed-types.js';
import { endsOrAnswers } from '../protocol/admitted-request.js';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { ClientEnd } from '../protocol/transport.js';
import { handleAggregateRequest } from '../proxy/aggregate/pipeline.js';
import { backendSessionIds } from '../proxy/aggregate/sessions.js';
import type { LeaseRegistry } from '../proxy/lease-registry.js';
import { handleRequest } from '../proxy/pipeline.js';
import type {
  AggregatePort,
  HandleRequest,
  LegacySsePort,
  Ports,
  SessionPort,
  Snapshot,
  UpstreamPort,
} from '../proxy/ports.js';
import type { StreamRegistry } from '../proxy/stream-registry.js';
import { createKeptPages, createListedResources, createLostBackends } from '../state/aggregate-memory.js';
import type { KeyRing } from '../state/derived-keys.js';
import { createMemoryLimits, type GatewayState } from '../state/memory.js';
import { createOpenedSessions, type SessionCount } from '../state/opened-sessions.js';
import {
  createLiveProgress,
  createNumbersInFlight,
  createRecentTable,
  createRunningResponses,
  createRunningTable,
} from '../state/replica-tables.js';
import {
  EVENT_ID,
  LEGACY_REQUEST_ID,
  LIST_CURSOR,
  REQUEST_STATE,
  SERVER_REQUEST_ID,
  SERVER_REQUEST_TTL_MS,
  SESSION_ID,
  SESSION_TTL_MS,
  sessionHash,
  UPSTREAM_CURSOR,
} from '../state/sealed-token.js';
import { createTaskIds } from '../state/task-ids.js';
import type { Runtimes, UpstreamRuntime } from '../upstream/runtimes.js';
import type { Version } from './config-version.js';
import type { Observability } from './observability.js';
import type { SharedResources } from './shared-resources.js';
import type { Aggregates, SnapshotOf } from './snapshot.js';

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
  readonly approvals: ApprovalService;
  readonly sessionCount: SessionCount;
  readonly now: () => number;
};

export function createPorts(dependencies: PortDependencies): Ports {
  const { version, snapshotOf, ring, state, streams, leases, sessionCount, now } = dependencies;
  const { inspection, loopScheduler } = dependencies.sharedResources;
  const runtime = dependencies.runtimes.get;
  const settings = () => version().settings;
  const responses = createRunningResponses();
  return {
    identity: createIdentityPort(settings, dependencies.identity, state.revocations),
    leases,
    sessions: createSessionPort({ ring, now, state, leases, settings, runtime, sessionCount }),
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
    approvals: createApprovalPort(dependencies.approvals, settings),
    audit: createRequestRecorder(dependencies.observability, ring.hmac),
    streams: {
      reserve: streams.reserve,
      registerResponse: responses.register,
      cancelResponse: responses.cancel,
    },
    progress: createLiveProgress<RunningRequest>(),
    requestState: REQUEST_STATE(ring, now),
    tasks: createTaskIds(ring, now),
    cursors: UPSTREAM_CURSOR(ring, now),
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
const NOT_RUNNING = { kind: 'error', reason: 'upstream-unavailable', isUnsent: true } as const;
/** It answers no ping either, which is tried again until it does. */
const HANGING = {
  ...NOT_RUNNING,
  detail: 'not sent, because the upstream hangs: a request timed out, and so does every ping of the gateway since',
} as const;

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
    noteUnavailable(upstream, isTimeout = false) {
      const runtime = findRuntime(upstream);
      if (isTimeout) runtime?.breaker.noteTimeout();
      else runtime?.noteUnavailable();
    },
    forward(upstream, request) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      // What ends or answers something in progress is sent all the same.
      if (runtime.breaker.status.isOpen && !endsOrAnswers(request.authorized.admitted)) return Promise.resolve(HANGING);
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
  readonly sessionCount: Pick<SessionCount, 'note' | 'forget'>;
  settings(): Settings;
  runtime(upstream: string): UpstreamRuntime | undefined;
};

/** Creates the port of sessions. One that was revoked, has ended or is not in order any more does not open. */
function createSessionPort(dependencies: SessionDependencies): SessionPort {
  const { ring, now, leases, sessionCount } = dependencies;
  const { ended, revocations, claimedReplies } = dependencies.state;
  const ids = SESSION_ID(ring, now);
  // Of this replica alone: opening a session should not depend on the shared store.
  const initialized = createMemoryLimits();
  const opened = createOpenedSessions((sealed, upstream, principal) => {
    const session = ids.open(sealed, { upstream, principal });
    if (session === undefined) return undefined;
    const hashes = ring.hmacAll('session', sealed);
    const hash = sessionHash(ring, sealed) ?? hashes[0];
    // Audit events name a session of an aggregate by the sessions of its backends, so revoking one of those revokes it.
    const isAggregate = dependencies.settings().aggregates.has(upstream);
    const sealedSessions = isAggregate ? [...backendSessionIds(session).values()] : [];
    const backendSessionHashes = sealedSessions.flatMap((one) => ring.hmacAll('session', one));
    if (!hashes.some(ended.has)) sessionCount.note(hashes[0], session.version, backendSessionHashes);
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
    seal: (facts, upstream, principal) => ids.seal(facts, { upstream, principal }),
    end(sealed, owner) {
      const expiresAtMs = now() + SESSION_TTL_MS;
      for (const hash of ring.hmacAll('session', sealed)) {
        ended.add(hash, expiresAtMs, owner);
        sessionCount.forget(hash);
      }
      leases.endSession(sealed);
    },
    claimNumber: createNumbersInFlight(),
    serverRequests: remembering(SERVER_REQUEST_ID(ring, now)),
    claimReply: createReplyClaims(ring, now, claimedReplies),
    events: EVENT_ID(ring, now),
  };
}

/** Beyond this number the oldest are forgotten first. */
const MAX_REMEMBERED_REQUESTS = 4096;

/**
 * Remembers the newest requests that were sealed by their sender's own id, which is what it cancels them by. One that is
 * not found is not cancelled, and its response is ignored.
 */
export function remembering<Facts extends { readonly id: RequestId }, Text extends string | undefined>({
  seal,
  open,
}: Sealed<Facts, SessionScope, Text>): SealedRequests<Facts, Text> {
  const recent = createRecentTable<string>({ max: MAX_REMEMBERED_REQUESTS });
  return {
    seal(request, scope) {
      const sealed = seal(request, scope);
      if (sealed !== undefined) recent.set(scope.session.hash ?? '', request.id, sealed);
      return sealed;
    },
    open,
    recall: (id, session) => recent.find(session.hash ?? '', id),
  };
}

/** Creates the port of legacy SSE sessions: request ids, and the clients' streams that this replica holds. */
function createLegacySsePort(ring: KeyRing, now: () => number): LegacySsePort {
  const ends = createRunningTable<ClientEnd>();
  return {
    requests: remembering(LEGACY_REQUEST_ID(ring, now)),
    registerClientEnd: (session, end) => ends.enter(session.hash ?? '', undefined, end),
    findClientEnd: (session) => ends.find(session.hash ?? '', undefined).at(-1),
  };
}

type AggregatePortDependencies = Pick<Aggregates, 'get'> & {
  settings(): Settings;
  readonly ring: KeyRing;
  readonly now: () => number;
};

/**
 * Creates the port of aggregates: sealed cursors; and listed resources, lost backend sessions, running backend requests
 * and what is known of backends that hang in the memory of this replica.
 */
function createAggregatePort({ get, settings, ring, now }: AggregatePortDependencies): AggregatePort {
  const listed = createListedResources();
  const lost = createLostBackends(now);
  const running = createRunningTable<string>();
  return {
    get,
    cursors: LIST_CURSOR(ring, now),
    reportLostBackend: (aggregate, upstream, principal) => lost.note(ownerKey(principal, aggregate), upstream),
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
