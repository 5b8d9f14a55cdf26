// Implements the ports of the request pipeline over the running components: resolves names to instances. Every call
// reads the current version once, so that a reload takes effect with the next request and never within one.

import { randomUUID } from 'node:crypto';
import type { Audit, RecordResult } from '../audit/audit.js';
import { anonymousPrincipal } from '../auth/principal.js';
import type { InspectionPort } from '../inspection/jobs.js';
import { createPageCache } from '../inspection/lists.js';
import { digestOnce } from '../pins/digest.js';
import type { Principal } from '../policy/principal.js';
import { REASONS } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import type { ClientEnd } from '../protocol/transport.js';
import { backendSessionIds } from '../proxy/aggregate/sessions.js';
import type {
  LegacySsePorts,
  ListScope,
  Ports,
  RequestStateScope,
  TaskPorts,
  TaskScope,
} from '../proxy/ports.js';
import {
  createListedResources,
  createLostBackends,
  createRunningBackends,
} from '../state/aggregates.js';
import type { KeyRing } from '../state/keys.js';
import { createKeptPages } from '../state/last-pages.js';

import { createMemoryLimits, type GatewayState } from '../state/memory.js';
import {
  openCursor,
  openRequest,
  openRequestState,
  openSession,
  openTask,
  REQUEST_STATE_TTL_MS,
  type StateBinding,
  sealCursor,
  sealRequest,
  sealRequestState,
  sealSession,
  sealTask,
  sessionHash,
} from '../state/sealed-values.js';
import {
  createGivenTasks,
  createLiveProgress,
  createOpenedSessions,
  createOpenLegacyStreams,
  createPassedServerRequests,
  createRunningStreams,
} from '../state/session-tables.js';
import { errorCode, type Log, logRefusal } from '../telemetry/log.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Aggregates } from './aggregates.js';
import type { Version } from './config-version.js';
import { authenticateCaller, type Identity } from './identity.js';
import { bindingIn, bindingOf, createSealedIds, SESSION_TTL_MS } from './sealed-ids.js';
import type { SnapshotOf } from './snapshot.js';
import type { LeaseRegistry, StreamRegistry } from './streams.js';
import { createForwarding } from './upstream-router.js';
import type { UpstreamRuntime } from './upstreams.js';

/**
 * Creates the ports of legacy SSE sessions: the upstream's stream through its client, request ids sealed by the key
 * ring, and the clients' streams in the memory of this replica.
 */
function createLegacySsePorts(
  ring: KeyRing,
  now: () => number,
  open: LegacySsePorts['open'],
): LegacySsePorts {
  const openStreams = createOpenLegacyStreams<ClientEnd>();
  // Kept for cancellations, which name a request by the client's id.
  const sent = createPassedServerRequests();
  return {
    open,
    sealRequest(request, scope) {
      const binding = bindingIn(scope);
      const sealed = sealRequest(ring, binding, request, now() + SESSION_TTL_MS);
      if (sealed !== undefined) sent.add(binding.session, request.id, sealed);
      return sealed;
    },
    openRequest: (sealed, scope) => openRequest(ring, bindingIn(scope), sealed, now()),
    recallRequest: (id, session) => sent.find(session.hash ?? '', id),
    registerClientEnd: (session, end) => openStreams.enter(session.hash ?? '', end),
    findClientEnd: (session) => openStreams.find(session.hash ?? ''),
  };
}

/** Identifies a caller by identity, at one aggregate. */
function aggregateCallerKeyOf(aggregate: string, principal: Principal): string {
  return JSON.stringify(bindingOf(aggregate, principal));
}

/** How long a client may wait between two pages. */
const CURSOR_TTL_MS = 60 * 60 * 1000;

/**
 * Creates the ports of aggregates: cursors sealed by the key ring; listed resources, lost backend sessions and running
 * backend requests in the memory of this replica.
 */
function createAggregatePorts(
  ring: KeyRing,
  now: () => number,
): Pick<
  Ports,
  | 'sealCursor'
  | 'openCursor'
  | 'noteResources'
  | 'recallResource'
  | 'reportLostBackend'
  | 'registerBackendRequest'
  | 'findRunningBackends'
> {
  const listed = createListedResources();
  const lost = createLostBackends(now);
  const running = createRunningBackends();
  const bindingAt = ({ aggregate, principal, method }: ListScope) => ({
    ...bindingOf(aggregate, principal),
    method,
  });
  return {
    sealCursor: (cursors, scope) =>
      sealCursor(ring, bindingAt(scope), cursors, now() + CURSOR_TTL_MS),
    openCursor: (sealed, scope) => openCursor(ring, bindingAt(scope), sealed, now()),
    reportLostBackend(aggregate, upstream, principal) {
      const key = `${aggregateCallerKeyOf(aggregate, principal)} ${upstream}`;
      if (lost.isFrequent(key)) return false;
      lost.note(key);
      return true;
    },
    noteResources: (aggregate, principal, page) =>
      listed.note(aggregateCallerKeyOf(aggregate, principal), page),
    recallResource: ({ aggregate, principal, uri }, backends) =>
      listed.recall(aggregateCallerKeyOf(aggregate, principal), uri, backends),
    registerBackendRequest: running.enter,
    findRunningBackends: running.find,
  };
}

/** Creates the ports of aggregates for backends that hang, in the memory of this replica. */
function createHangingPorts(
  now: () => number,
  version: () => Version,
): Pick<Ports, 'lastPages' | 'hangingBackends'> {
  const kept = createKeptPages(now);
  const hanging = new Set<string>();
  return {
    lastPages: {
      keep: kept.keep,
      recall(caller, key, upstream) {
        const maxAgeMs = version().settings.upstreams.get(upstream)?.pinning.maxAgeMs;
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

/** Longest lifetime of a task id, whatever lifetime the server promises. */
export const MAX_TASK_TTL_MS = 7 * 24 * 60 * 60 * 1000;
/** How much longer an id lives than its task: servers may keep tasks a little longer, and clocks differ. */
export const TASK_GRACE_MS = 60 * 60 * 1000;

/**
 * Creates the ports of tasks. Task ids are sealed for as long as the server keeps the task, within a bound, and
 * remembered for a while, so that what a server reports under its own id can be passed on under the client's.
 */
export function createTaskPorts(ring: KeyRing, now: () => number): TaskPorts {
  const given = createGivenTasks();
  return {
    seal(task, ttlMs, scope) {
      const { upstream, principal } = scope;
      const caller = callerKeyOf(scope);
      const binding = bindingOf(upstream, principal);
      const lifetimeMs = Math.min((ttlMs ?? MAX_TASK_TTL_MS) + TASK_GRACE_MS, MAX_TASK_TTL_MS);
      // A task that is reported again, as when its stream is resumed, keeps the id that its client knows, if at least
      // half of that id's lifetime is left.
      const known = given.find(caller, task.id);
      const isYoung = (one: string): boolean =>
        openTask(ring, binding, one, now() + lifetimeMs / 2) !== undefined;
      if (known !== undefined && isSame(known, task) && isYoung(known.sealed)) return known.sealed;
      const sealed = sealTask(ring, binding, task, now() + lifetimeMs);
      if (sealed !== undefined) given.begin(caller, { ...task, sealed });
      return sealed;
    },
    open(sealed, scope) {
      const { upstream, principal } = scope;
      const task = openTask(ring, bindingOf(upstream, principal), sealed, now());
      if (task !== undefined) given.add(callerKeyOf(scope), { ...task, sealed });
      return task;
    },
    recall: (id, scope) => given.find(callerKeyOf(scope), id),
    inputRequestsOf: (id, scope) => given.inputRequestsOf(callerKeyOf(scope), id),
  };
}

/** Identifies a caller by identity, not by token, because tokens are refreshed. */
function callerKeyOf({ upstream, principal }: TaskScope): string {
  const { issuer, subject, client } = bindingOf(upstream, principal);
  return JSON.stringify([upstream, issuer, subject, client]);
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify({ ...one, sealed: '' }) === JSON.stringify({ ...other, sealed: '' });
}

/** Sessions that a caller may open at an upstream. Clients that open one for each call stay far below. */
const INITIALIZE_RATE = { count: 300, windowMs: 60_000 };
const MAX_PAGES = 256;
const MAX_PAGE_BYTES = 64 * 1024 * 1024;
const MAX_FORMS_A_PAGE = 64;

type PortDependencies = {
  version(): Version;
  runtime(upstream: string): UpstreamRuntime | undefined;
  readonly snapshotOf: SnapshotOf;
  identity(): Identity;
  readonly ring: KeyRing;
  readonly audit: Audit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly state: GatewayState;
  readonly streams: StreamRegistry;
  readonly leases: LeaseRegistry;
  readonly aggregates: Aggregates;
  readonly inspection: InspectionPort;
  readonly readJson: Ports['readJson'];
  readonly loopScheduler: Ports['loopScheduler'];
  readonly now: () => number;
};

function bytesEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

export function createPorts(dependencies: PortDependencies): Ports {
  const { ring, audit, metrics, leases, now } = dependencies;
  const { limits, ended, revocations } = dependencies.state;
  const runningStreams = createRunningStreams();
  const progress = createLiveProgress();
  // Of this replica alone: opening a session should not depend on the shared store.
  const initialized = createMemoryLimits();

  function runtimeOf(upstream: string): UpstreamRuntime {
    const runtime = dependencies.runtime(upstream);
    if (runtime === undefined) throw new Error(`upstream ${upstream} is not running`);
    return runtime;
  }

  const opened = createOpenedSessions((sealed, upstream, principal) => {
    const session = openSession(ring, bindingOf(upstream, principal), sealed, now());
    if (session === undefined) return undefined;
    const hashes = ring.hmacAll('session', sealed);
    const hash = sessionHash(ring, sealed) ?? hashes[0];
    // Audit events name a session of an aggregate by the sessions of its backends, so revoking one of those revokes it.
    const isAggregate = dependencies.version().settings.aggregates.has(upstream);
    const held = isAggregate ? [...backendSessionIds(session).values()] : [];
    const backendSessionHashes = held.flatMap((one) => ring.hmacAll('session', one));
    return { ...session, hash, hashes, backendSessionHashes };
  }, now);

  function stateOf(scope: RequestStateScope, principal: Principal): StateBinding {
    const { upstream, method, target } = scope;
    const params = ring.hmac('request-state', scope.params);
    return { ...bindingOf(upstream, principal), method, target, params };
  }

  /** Decisions written to the audit log in one group share one promise. */
  let group:
    | { readonly recorded: Promise<RecordResult>; readonly isDurable: Promise<boolean> }
    | undefined;

  function durabilityOf(recorded: Promise<RecordResult>): Promise<boolean> {
    if (group?.recorded !== recorded)
      group = { recorded, isDurable: recorded.then((how) => how === 'durable') };
    return group.isDurable;
  }

  return {
    limits,
    countInitialize: (upstream, caller) =>
      initialized.take(JSON.stringify([upstream, caller]), INITIALIZE_RATE),
    inspection: dependencies.inspection,
    readJson: dependencies.readJson,
    loopScheduler: dependencies.loopScheduler,
    pages: createPageCache({
      maxPages: MAX_PAGES,
      maxBytes: MAX_PAGE_BYTES,
      maxFilteredPages: MAX_FORMS_A_PAGE,
      isEqual: bytesEqual,
    }),
    snapshot(upstream) {
      const runtime = dependencies.runtime(upstream);
      return runtime === undefined
        ? undefined
        : dependencies.snapshotOf(runtime, dependencies.version());
    },
    aggregate: dependencies.aggregates.get,
    ...createAggregatePorts(ring, now),
    ...createHangingPorts(now, dependencies.version),
    authenticate(incoming, outgoing) {
      const { upstreams, aggregates } = dependencies.version().settings;
      const upstream = upstreams.get(incoming.upstream) ?? aggregates.get(incoming.upstream);
      // A reload may have removed the upstream since the request came.
      if (upstream === undefined) return { reason: 'upstream-unavailable' };
      if (upstream.authentication === 'none') return anonymousPrincipal(upstream);
      return authenticateCaller(dependencies.identity(), upstream, incoming, outgoing);
    },
    openSession(sealed, upstream, principal) {
      const session = opened(sealed, upstream, principal);
      if (session === undefined || revocations.hasSession(session.hashes)) return undefined;
      // Apps were turned off by a reload: what the server offers in this session is no longer verified.
      if (session.apps === true && !dependencies.version().settings.upstreams.get(upstream)?.apps)
        return undefined;
      if (revocations.hasSession(session.backendSessionHashes)) return undefined;
      if (session.hashes.some(ended.has)) return undefined;
      return dependencies.runtime(upstream)?.adapters.currentFacts(session) ?? session;
    },
    sealSession: (facts, upstream, principal) =>
      sealSession(ring, bindingOf(upstream, principal), facts, now() + SESSION_TTL_MS),
    ...createSealedIds(ring, now, dependencies.state.claimedReplies),
    legacySse: createLegacySsePorts(ring, now, (upstream, by, signal) =>
      runtimeOf(upstream).client.openLegacyStream(by, signal),
    ),
    tasks: createTaskPorts(ring, now),
    newDecisionId: randomUUID,
    endSession(sealed) {
      for (const hash of ring.hmacAll('session', sealed)) ended.add(hash, now() + SESSION_TTL_MS);
      leases.endSession(sealed);
    },
    sealState: (state, subject, principal) =>
      sealRequestState(ring, stateOf(subject, principal), state, now() + REQUEST_STATE_TTL_MS),
    openState: (sealed, subject, principal) =>
      openRequestState(ring, stateOf(subject, principal), sealed, now()),
    refreshListing: (upstream) => runtimeOf(upstream).refreshListing(),
    keyedHash: (purpose, text) => ring.hmac(purpose, text),
    digest: digestOnce,
    recordDecision(record) {
      record.isDecisionWritten = true;
      return durabilityOf(audit.decision(record));
    },
    closeRecord(record) {
      const totalMs = performance.now() - record.startedMs;
      if (isAuthnFailure(record)) writeAuthnFailure(record);
      else {
        if (record.isDecisionWritten !== true) void audit.decision(record);
        audit.outcome(record, totalMs);
      }
      metrics.recordRequest(record, totalMs);
      logRefusal(dependencies.log, record);
    },
    ...createForwarding(dependencies.runtime, (runtime) =>
      dependencies.snapshotOf(runtime, dependencies.version()),
    ),
    noteListChanged: (upstream) => runtimeOf(upstream).noteListChanged(),
    reserveStream: dependencies.streams.reserve,
    registerResponse: runningStreams.enter,
    cancelResponse: runningStreams.cancel,
    registerProgress: progress.enter,
    keepProgress: progress.keep,
    findProgress: progress.find,
    enterLease: leases.enter,
    countChanges: leases.count,
    report(error, decisionId) {
      dependencies.log.write('error', 'exchange failed', {
        decision: decisionId,
        code: errorCode(error),
      });
    },
  };

  function writeAuthnFailure(record: RequestRecord): void {
    const [reason = 'internal'] = record.decision.reasons;
    metrics.authFailure(reason);
    audit.event({
      type: 'auth.failure',
      upstream: record.upstream,
      reason,
      decisionId: record.id,
      ip: record.client.ip,
    });
  }
}

/** A refusal before authentication succeeded: counted and written separately, so that a flood leaves the log usable. */
function isAuthnFailure(record: RequestRecord): boolean {
  const [reason] = record.decision.reasons;
  return (
    record.principal === undefined && reason !== undefined && REASONS[reason].stage === 'authn'
  );
}
