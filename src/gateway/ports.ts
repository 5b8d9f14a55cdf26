// The ports of exchange.ts over the running parts: where names meet instances. Every call reads the
// current version once, so that a reload is seen by the next exchange and by no half of one.

import { randomUUID } from 'node:crypto';
import { anonymousPrincipal } from '../authn/principal.js';
import type { Ports, StateSubject } from '../exchange-ports.js';
import type { InspectionPort } from '../inspect/apart.js';
import { createPageCache } from '../inspect/page-cache.js';
import { BRIDGED_LEGACY_SSE } from '../mcp/eras/channels.js';
import type { Audit, Recorded } from '../observe/audit.js';
import { errorCode, type Log, logRefusal } from '../observe/log.js';
import type { Metrics } from '../observe/metrics.js';
import { digestOnce } from '../pins/digest.js';
import type { Principal } from '../policy/principal.js';
import { REASONS } from '../policy/reasons.js';
import type { RequestRecord } from '../policy/record.js';
import { readEntries } from '../relay/merged/sessions.js';
import type { GatewayState } from '../state/gateway-state.js';
import type { KeyRing } from '../state/key-ring.js';
import { createLiveProgress } from '../state/live-progress.js';
import { createOpenedSessions } from '../state/opened-sessions.js';
import {
  openRequestState,
  REQUEST_STATE_TTL_MS,
  type StateBinding,
  sealRequestState,
} from '../state/request-state.js';
import { createRunningStreams } from '../state/running-streams.js';
import { openSession, sealSession, sessionHash } from '../state/session-seal.js';
import { createLegacySsePorts } from './channel-ports.js';
import { createAggregatePorts } from './endpoint-ports.js';
import type { Aggregates } from './endpoints.js';
import { createForwarding } from './forwarding.js';
import type { Identity } from './identity.js';
import { login } from './login.js';
import { bindingOf, createSealedIds, SESSION_TTL_MS } from './sealed-ids.js';
import type { StreamRegistry } from './streams.js';
import { createTaskPorts } from './task-ports.js';
import type { UpstreamRuntime } from './upstream-runtime.js';
import type { Version } from './version.js';
import type { SnapshotOf } from './view.js';

const MAX_PAGES = 256;
const MAX_PAGE_BYTES = 64 * 1024 * 1024;
const MAX_FORMS_A_PAGE = 64;

export type PortDependencies = {
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
  readonly aggregates: Aggregates;
  readonly inspection: InspectionPort;
  readonly readJson: Ports['readJson'];
  readonly loopScheduler: Ports['loopScheduler'];
  readonly onVersion: Ports['onVersion'];
  readonly countVersions: Ports['countVersions'];
  readonly now: () => number;
};

function bytesEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}

/** Builds the ports. */
export function createPorts(dependencies: PortDependencies): Ports {
  const { ring, audit, metrics, streams, now } = dependencies;
  const { limits, ended, revocations } = dependencies.state;
  const runningStreams = createRunningStreams();
  const hasEnded = (sealed: string): boolean => ring.hmacAll('session', sealed).some(ended.has);
  ended.onElsewhere(() => runningStreams.endWhere(hasEnded));
  const progress = createLiveProgress();

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
    // Records know a session of an endpoint by those of its members: to revoke one is to revoke it.
    const isAggregate = dependencies.version().settings.aggregates.has(upstream);
    const held = isAggregate ? [...readEntries(session.upstreamSession).values()] : [];
    const backendSessionHashes = held.flatMap((one) => ring.hmacAll('session', one));
    return { ...session, hash, hashes, backendSessionHashes };
  }, now);

  function stateOf(subject: StateSubject, principal: Principal): StateBinding {
    const { upstream, method, target } = subject;
    const params = ring.hmac('request-state', subject.params);
    return { ...bindingOf(upstream, principal), method, target, params };
  }

  /** Those whose decisions are in one group hold the same promise. */
  let group:
    | { readonly recorded: Promise<Recorded>; readonly isDurable: Promise<boolean> }
    | undefined;

  function isDurable(recorded: Promise<Recorded>): Promise<boolean> {
    if (group?.recorded !== recorded)
      group = { recorded, isDurable: recorded.then((how) => how === 'durable') };
    return group.isDurable;
  }

  return {
    limits,
    inspection: dependencies.inspection,
    readJson: dependencies.readJson,
    loopScheduler: dependencies.loopScheduler,
    pages: createPageCache({
      maxPages: MAX_PAGES,
      maxBytes: MAX_PAGE_BYTES,
      maxForms: MAX_FORMS_A_PAGE,
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
    authenticate(incoming, outgoing) {
      const { upstreams, aggregates } = dependencies.version().settings;
      const upstream = upstreams.get(incoming.upstream) ?? aggregates.get(incoming.upstream);
      if (upstream === undefined) return { reason: 'internal' };
      if (upstream.authentication === 'none') return anonymousPrincipal(upstream);
      return login(dependencies.identity(), upstream, incoming, outgoing);
    },
    openSession(sealed, upstream, principal) {
      const session = opened(sealed, upstream, principal);
      if (session === undefined || revocations.hasSession(session.hashes)) return undefined;
      // What its server offers in it is verified no more.
      if (session.apps === true && !dependencies.version().settings.upstreams.get(upstream)?.apps)
        return undefined;
      if (revocations.hasSession(session.backendSessionHashes)) return undefined;
      if (session.hashes.some(ended.has)) return undefined;
      if (session.upstreamSession !== BRIDGED_LEGACY_SSE) return session;
      // What may be asked is known since the handshake, which came after the session.
      return {
        ...session,
        allowedServerRequests:
          runtimeOf(upstream).translation.bridged.allowedServerRequests(session),
      };
    },
    sealSession: (facts, upstream, principal) =>
      sealSession(ring, bindingOf(upstream, principal), facts, now() + SESSION_TTL_MS),
    ...createSealedIds(ring, now, dependencies.state.answeredRequests),
    legacySse: createLegacySsePorts(ring, now, (upstream, by, signal) =>
      runtimeOf(upstream).client.openLegacyStream(by, signal),
    ),
    tasks: createTaskPorts(ring, now),
    newDecisionId: randomUUID,
    endSession(sealed, upstream) {
      for (const hash of ring.hmacAll('session', sealed)) ended.add(hash, now() + SESSION_TTL_MS);
      streams.endWhere((stream) => stream.session === sealed && stream.upstream === upstream);
    },
    sealState: (state, subject, principal) =>
      sealRequestState(ring, stateOf(subject, principal), state, now() + REQUEST_STATE_TTL_MS),
    openState: (sealed, subject, principal) =>
      openRequestState(ring, stateOf(subject, principal), sealed, now()),
    freshen: (upstream) => runtimeOf(upstream).freshen(),
    keyedHash: (purpose, text) => ring.hmac(purpose, text),
    digest: digestOnce,
    recordDecision(record) {
      record.isDecisionWritten = true;
      return isDurable(audit.decision(record));
    },
    closeRecord(record) {
      const totalMs = performance.now() - record.startedMs;
      if (isLoginFailure(record)) writeLoginFailure(record);
      else {
        if (record.isDecisionWritten !== true) void audit.decision(record);
        audit.outcome(record, totalMs);
      }
      metrics.recordRequest(record, totalMs);
      logRefusal(dependencies.log, record);
    },
    ...createForwarding(runtimeOf, (runtime) =>
      dependencies.snapshotOf(runtime, dependencies.version()),
    ),
    noteListChanged: (upstream) => runtimeOf(upstream).noteListChanged(),
    hasStreamQuota: streams.hasCapacity,
    registerStream: streams.register,
    registerResponse: runningStreams.enter,
    cancelResponse: runningStreams.cancel,
    registerProgress: progress.enter,
    keepProgress: progress.keep,
    findProgress: progress.find,
    onVersion: dependencies.onVersion,
    countVersions: dependencies.countVersions,
    report(error, decisionId) {
      dependencies.log.write('error', 'exchange failed', {
        decision: decisionId,
        code: errorCode(error),
      });
    },
  };

  function writeLoginFailure(record: RequestRecord): void {
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

/** Refused before anyone was known: counted and written apart, so that a flood leaves the log usable. */
function isLoginFailure(record: RequestRecord): boolean {
  const [reason] = record.decision.reasons;
  return (
    record.principal === undefined && reason !== undefined && REASONS[reason].stage === 'authn'
  );
}
