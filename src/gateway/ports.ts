// Puts the ports of the request pipeline together from the running components. Every call reads the current version
// once, so that a reload takes effect with the next request and never within one.

import { createPageCache } from '../inspection/lists.js';
import { digestOnce } from '../pins/digest.js';
import type { Ports, Snapshot, UpstreamPort } from '../proxy/ports.js';
import type { KeyRing } from '../state/keys.js';
import type { GatewayState } from '../state/memory.js';
import { createLiveProgress, createRunningStreams } from '../state/session-tables.js';
import type { Log } from '../telemetry/log.js';
import { type Aggregates, createAggregatePort } from './aggregates.js';
import type { Version } from './config-version.js';
import { createIdentityPort, type Identity } from './identity.js';
import { createAuditPort, type Observability } from './observability.js';
import {
  createLegacySsePort,
  createRequestStatePort,
  createSessionPort,
  createTaskPort,
} from './sealed-ids.js';
import type { SnapshotOf } from './snapshot.js';
import type { LeaseRegistry, StreamRegistry } from './streams.js';
import type { SharedResources } from './upstream-connection.js';
import type { Runtimes, UpstreamRuntime } from './upstreams.js';

const MAX_PAGES = 256;
const MAX_PAGE_BYTES = 64 * 1024 * 1024;
const MAX_FORMS_A_PAGE = 64;

type PortDependencies = {
  version(): Version;
  identity(): Identity;
  readonly runtimes: Pick<Runtimes, 'get'>;
  readonly snapshotOf: SnapshotOf;
  readonly ring: KeyRing;
  readonly observability: Observability;
  readonly log: Log;
  readonly state: GatewayState;
  readonly streams: StreamRegistry;
  readonly leases: LeaseRegistry;
  readonly aggregates: Aggregates;
  readonly sharedResources: SharedResources;
  readonly now: () => number;
};

function bytesEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
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
    reviewPage: (upstream, kind, definitions) =>
      runtimeOf(upstream).scan.reviewPage(kind, definitions),
    noteListChanged: (upstream) => runtimeOf(upstream).noteListChanged(),
    noteUnavailable: (upstream) => findRuntime(upstream)?.noteUnavailable(),
    forward(upstream, request) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const snapshot = snapshotOf(runtime);
      return runtime.adapters
        .forMessage(request.authorized.admitted, snapshot)
        .forward(request, snapshot);
    },
    openStream(upstream, stream) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const currentOffer = (): Snapshot => snapshotOf(runtime);
      const adapter = runtime.adapters.forStream(stream.session, currentOffer());
      return adapter.openStream(stream, currentOffer);
    },
    openLegacyStream: (upstream, caller, signal) =>
      runtimeOf(upstream).client.openLegacyStream(caller, signal),
    endSession(upstream, session, caller) {
      const adapter = findRuntime(upstream)?.adapters.forSession(session);
      return adapter?.endSession(session, caller) ?? Promise.resolve(NOT_RUNNING);
    },
    replyToServer: (upstream, serverRequest, reply) =>
      findRuntime(upstream)
        ?.adapters.forSession(serverRequest.session)
        .replyToServer(serverRequest, reply),
    cancelAtServer: (upstream, request) =>
      findRuntime(upstream)?.adapters.forSession(request.session).cancelAtServer(request),
  };
}

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
        maxFilteredPages: MAX_FORMS_A_PAGE,
        isEqual: bytesEqual,
      }),
      digest: digestOnce,
    },
    limits: state.limits,
    flows: state.flows,
    audit: createAuditPort(dependencies.observability, ring, dependencies.log),
    streams: {
      reserve: streams.reserve,
      registerResponse: responses.register,
      cancelResponse: responses.cancel,
    },
    progress: createLiveProgress(),
    requestState: createRequestStatePort(ring, now),
    tasks: createTaskPort(ring, now),
    legacySse: createLegacySsePort(ring, now),
    aggregates: createAggregatePort({ ...dependencies.aggregates, settings, ring, now }),
  };
}
