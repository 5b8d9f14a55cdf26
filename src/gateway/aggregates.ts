// The aggregates over the running upstreams: each backend's own snapshot, in which names that look like another
// backend's are hidden for every caller. They are built once for each version and set of snapshots and kept until
// either changes. Nothing is decided about callers here.

import type { AggregateSettings, BackendSettings, Settings } from '../config/settings.js';
import type { DataServerPorts } from '../http/server.js';
import { type BackendName, findConfusableNames } from '../inspection/confusable-names.js';
import { observedNames } from '../pins/last-seen.js';
import type { Catalog, PinKind } from '../policy/definitions.js';
import { ownerKey } from '../policy/principal.js';
import { PLAIN_SESSION } from '../protocol/listings.js';
import { handleAggregateRequest } from '../proxy/aggregate/pipeline.js';
import { handleRequest } from '../proxy/pipeline.js';
import type {
  Aggregate,
  AggregatePort,
  HandleRequest,
  ListScope,
  Ports,
  Snapshot,
} from '../proxy/ports.js';
import {
  createKeptPages,
  createListedResources,
  createLostBackends,
  createRunningBackends,
} from '../state/aggregates.js';
import type { KeyRing } from '../state/keys.js';
import { bindingOf, LIST_CURSOR } from '../state/sealed-values.js';
import type { Version } from './config-version.js';
import { challengeOf, type SnapshotOf } from './snapshot.js';
import type { UpstreamRuntime } from './upstreams.js';

type AggregateDependencies = {
  version(): Version;
  runtime(upstream: string): UpstreamRuntime | undefined;
  readonly snapshotOf: SnapshotOf;
  /** Version of the program. */
  readonly gatewayVersion: string;
};

export type Aggregates = {
  get(name: string): Aggregate | undefined;
  /** The number of names of an aggregate's backends that are hidden because they look like another's. */
  countHidden(name: string): number;
};

/** The kinds that have names. Where two backends have the same URI, its backend is decided when it is read. */
const KINDS: readonly PinKind[] = ['tool', 'prompt'];

type BackendSnapshot = {
  readonly settings: AggregateSettings;
  readonly backend: BackendSettings;
  readonly runtime: UpstreamRuntime;
  readonly snapshot: Snapshot;
};

/** The hidden names of each backend, by kind. */
type Hidden = ReadonlyMap<string, ReadonlyMap<PinKind, ReadonlySet<string>>>;

type CachedAggregate = {
  readonly version: Version;
  readonly ids: string;
  readonly aggregate: Aggregate;
  readonly hidden: number;
};

export function createAggregates(dependencies: AggregateDependencies): Aggregates {
  const cache = new Map<string, CachedAggregate>();
  let aggregateCount = 0;

  function resolve(name: string): CachedAggregate | undefined {
    const version = dependencies.version();
    const settings = version.settings.aggregates.get(name);
    if (settings === undefined) return undefined;
    const backends = settings.backends.flatMap((backend): BackendSnapshot[] => {
      const runtime = dependencies.runtime(backend.upstream);
      if (runtime === undefined) return [];
      return [{ settings, backend, runtime, snapshot: dependencies.snapshotOf(runtime, version) }];
    });
    const ids = backends.map(({ snapshot }) => snapshot.id).join(' ');
    const known = cache.get(name);
    if (known?.version === version && known.ids === ids) return known;
    const hidden = hiddenNames(backends);
    const snapshots = new Map(
      backends.map((backend) => {
        aggregateCount += 1;
        // The id differs from that of the backend's own snapshot, because a page is filtered differently for an
        // aggregate.
        return [backend.backend.upstream, snapshotAt(backend, -aggregateCount, version, hidden)];
      }),
    );
    const next: CachedAggregate = {
      version,
      ids,
      hidden: countNames(hidden),
      aggregate: {
        name,
        backends: settings.backends,
        versions: version.hashes,
        server: { name, version: dependencies.gatewayVersion },
        challenge: challengeOf(version.settings, settings),
        snapshot: (upstream) => snapshots.get(upstream),
      },
    };
    cache.set(name, next);
    return next;
  }

  return {
    get: (name) => resolve(name)?.aggregate,
    countHidden: (name) => resolve(name)?.hidden ?? 0,
  };
}

function snapshotAt(
  { settings, backend, snapshot }: BackendSnapshot,
  id: number,
  version: Version,
  hidden: Hidden,
): Snapshot {
  const names = hidden.get(backend.upstream);
  const shadow = (catalog: Catalog): Catalog => ({
    ...catalog,
    statusOf(kind, name) {
      const status = catalog.statusOf(kind, name);
      const isHidden = names?.get(kind)?.has(name) === true;
      return isHidden
        ? { ...status, state: 'shadowed', pinned: undefined, listed: undefined }
        : status;
    },
  });
  const shadows = new Map<Catalog, Catalog>();
  return {
    ...snapshot,
    id,
    catalogFor(client) {
      const backendCatalog = snapshot.catalogFor(client);
      const known = shadows.get(backendCatalog);
      if (known !== undefined) return known;
      const made = shadow(backendCatalog);
      shadows.set(backendCatalog, made);
      return made;
    },
    get isFresh() {
      return snapshot.isFresh;
    },
    challenge: challengeOf(version.settings, settings),
  };
}

function hiddenNames(backends: readonly BackendSnapshot[]): Hidden {
  const hidden = new Map(
    backends.map(({ backend }) => [backend.upstream, new Map<PinKind, Set<string>>()]),
  );
  for (const kind of KINDS) {
    const groups = findConfusableNames(
      backends.map((backend) => ({
        prefix: backend.backend.prefix,
        names: visibleNames(backend, kind),
      })),
    );
    for (const one of groups.flat()) hide(one, kind, backends, hidden);
  }
  return hidden;
}

function hide(
  { backend, name }: BackendName,
  kind: PinKind,
  backends: readonly BackendSnapshot[],
  hidden: ReadonlyMap<string, Map<PinKind, Set<string>>>,
): void {
  const kinds = hidden.get(backends[backend]?.backend.upstream ?? '');
  const names = kinds?.get(kind) ?? new Set<string>();
  names.add(name);
  kinds?.set(kind, names);
}

/** The names that a caller could be shown: those approved and present or, without pinning, all that were observed. */
function visibleNames({ runtime, snapshot }: BackendSnapshot, kind: PinKind): Iterable<string> {
  const catalog = snapshot.catalogFor(PLAIN_SESSION);
  return catalog.mode === 'off'
    ? observedNames(runtime.observed(), kind)
    : catalog.names(kind).filter((name) => catalog.statusOf(kind, name).state === 'approved');
}

function countNames(hidden: Hidden): number {
  let count = 0;
  for (const kinds of hidden.values()) for (const names of kinds.values()) count += names.size;
  return count;
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
export function createAggregatePort({
  get,
  settings,
  ring,
  now,
}: AggregatePortDependencies): AggregatePort {
  const listed = createListedResources();
  const lost = createLostBackends(now);
  const running = createRunningBackends();
  const bindingAt = ({ aggregate, principal, method }: ListScope): readonly string[] => [
    ...bindingOf(aggregate, principal),
    method,
  ];
  return {
    get,
    sealCursor: (cursors, scope) =>
      LIST_CURSOR.seal(ring, bindingAt(scope), cursors, now() + CURSOR_TTL_MS),
    openCursor: (sealed, scope) => LIST_CURSOR.open(ring, bindingAt(scope), sealed, now()),
    reportLostBackend(aggregate, upstream, principal) {
      const key = ownerKey(principal, aggregate, upstream);
      if (lost.isFrequent(key)) return false;
      lost.note(key);
      return true;
    },
    noteResources: (aggregate, principal, page) =>
      listed.note(ownerKey(principal, aggregate), page),
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

/**
 * Handles a message by the path that it came on: of one upstream directly; of an aggregate by requests to its backends,
 * each of which is handled like any other request. Counts the requests in progress of each upstream.
 */
export function createDispatcher(
  ports: Ports,
  countInflight: (upstream: string, delta: 1 | -1) => void,
): DataServerPorts['handle'] {
  const run: HandleRequest = async (incoming, outgoing, backendPorts) => {
    countInflight(incoming.upstream, 1);
    try {
      await handleRequest(incoming, outgoing, backendPorts);
    } finally {
      countInflight(incoming.upstream, -1);
    }
  };
  return (incoming, outgoing) =>
    ports.aggregates.get(incoming.upstream) === undefined
      ? run(incoming, outgoing, ports)
      : handleAggregateRequest(incoming, outgoing, ports, run);
}
