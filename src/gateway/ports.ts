// Puts the ports of the request pipeline together from the running components. Every call reads the current version
// once, so that a reload takes effect with the next request and never within one.

import { createPageCache } from '../inspection/lists.js';
import { digestOnce } from '../pins/digest.js';
import type { Ports } from '../proxy/ports.js';
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
import { createUpstreamPort } from './upstream-router.js';
import type { Runtimes } from './upstreams.js';

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

export function createPorts(dependencies: PortDependencies): Ports {
  const { version, snapshotOf, ring, state, streams, leases, now } = dependencies;
  const { inspection, loopScheduler } = dependencies.sharedResources;
  const runtime = dependencies.runtimes.get;
  const settings = () => version().settings;
  const responses = createRunningStreams();
  return {
    identity: createIdentityPort(settings, dependencies.identity),
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
    audit: createAuditPort(dependencies.observability, ring, dependencies.log),
    streams: {
      reserve: streams.reserve,
      registerResponse: responses.enter,
      cancelResponse: responses.cancel,
    },
    progress: createLiveProgress(),
    requestState: createRequestStatePort(ring, now),
    tasks: createTaskPort(ring, now),
    legacySse: createLegacySsePort(ring, now),
    aggregates: createAggregatePort({ ...dependencies.aggregates, settings, ring, now }),
  };
}
