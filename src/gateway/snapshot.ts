// Snapshots: one configuration version together with the newest catalog of an upstream, as requests read it. A snapshot
// is built once and kept until either changes, and definitions are read once for all of them. An aggregate has a snapshot
// of each backend, in which names that look like another backend's are hidden for every caller; these too are built once
// for each version and set of snapshots. Nothing is decided about callers here.

import { challengeFor, metadataUrl } from '../auth/protected-resource.js';
import type { AggregateSettings, BackendSettings, Settings, UpstreamSettings } from '../config/settings.js';
import { type BackendName, findConfusableNames } from '../inspection/definitions/shadowing.js';
import { type CompileDefinition, createCatalog } from '../pins/catalog.js';
import { type Observed, observedNames } from '../pins/last-seen.js';
import type { UpstreamBlocks } from '../policy/blocks.js';
import { mayShowApps } from '../policy/decide.js';
import type { Catalog, PinKind } from '../policy/definitions.js';
import {
  namedIn,
  type PresentationProblem,
  presentationOf,
  presentationProblems,
  presentedCatalog,
  shownName,
} from '../policy/presentation.js';
import { rulesFor } from '../policy/rules.js';
import type { ClientProfile } from '../protocol/methods.js';
import { readTaskCapabilities } from '../protocol/tasks.js';
import { isListedFor, protocolForUpstream } from '../protocol/versions/negotiation.js';
import { perListedEra, SESSION_VERSIONS, TASK_SESSION_VERSION } from '../protocol/versions/revisions.js';
import { PLAIN_SESSION, SESSION } from '../protocol/versions/session.js';
import { STATELESS } from '../protocol/versions/stateless.js';
import type { Aggregate, Snapshot, TraceTerms } from '../proxy/ports.js';
import { createRate } from '../state/bounds.js';
import type { UpstreamRuntime } from '../upstream/runtimes.js';
import type { Version } from './config-version.js';

/**
 * The challenges of one upstream or aggregate, made from settings and policy: what a 401 offers and which scopes a 403
 * asks for. RFC 6750 §3: no error is named where no token was sent.
 */
function challengeOf(
  settings: Settings,
  upstream: Pick<UpstreamSettings, 'path' | 'scopesSupported' | 'binding'>,
): Snapshot['challenge'] {
  const url = metadataUrl(settings.publicUrl, upstream.path);
  const takesCertificates = settings.listeners.data.tls?.clientCa !== undefined;
  return (reason, scopes, { scheme, proof }) =>
    challengeFor(reason, {
      metadataUrl: url,
      scopes: scopes ?? upstream.scopesSupported,
      demand: upstream.binding,
      takesCertificates,
      usesProofs: scheme === 'dpop' || proof !== undefined,
      proof,
    });
}

/** A snapshot, and what of it is not for requests. */
export type OwnSnapshot = Snapshot & {
  /** The catalog as pins alone decide: what the operator presents otherwise is in it as the upstream offers it. */
  readonly pinned: Catalog;
  /** Which tools cannot be presented as it is written. */
  readonly presentationProblems: () => readonly PresentationProblem[];
};

export type SnapshotOf = (runtime: UpstreamRuntime, version: Version) => OwnSnapshot;

/** `blocksAt` returns the same object until the blocks of the upstream change. */
export function createSnapshots(
  compile: CompileDefinition,
  blocksAt: (upstream: string) => UpstreamBlocks | undefined,
): SnapshotOf {
  const cache = new WeakMap<
    UpstreamRuntime,
    {
      readonly version: Version;
      readonly observedDigest: string | undefined;
      readonly blocks: UpstreamBlocks | undefined;
      readonly revision: number;
      readonly snapshot: OwnSnapshot;
    }
  >();
  let snapshotCount = 0;
  return (runtime, version) => {
    const observedDigest = runtime.observed()?.contentDigest;
    const blocks = blocksAt(runtime.settings.name);
    const revision = runtime.scan.revision() + runtime.firstUse.revision();
    const cached = cache.get(runtime);
    if (
      cached !== undefined &&
      cached.version === version &&
      cached.observedDigest === observedDigest &&
      cached.blocks === blocks &&
      cached.revision === revision
    )
      return cached.snapshot;
    snapshotCount += 1;
    const snapshot = buildSnapshot(snapshotCount, runtime, version, { compile, blocks });
    cache.set(runtime, { version, observedDigest, blocks, revision, snapshot });
    return snapshot;
  };
}

function buildSnapshot(
  id: number,
  runtime: UpstreamRuntime,
  version: Version,
  { compile, blocks }: { compile: CompileDefinition; blocks: UpstreamBlocks | undefined },
): OwnSnapshot {
  const { settings } = version;
  const upstream = settings.upstreams.get(runtime.settings.name) ?? runtime.settings;
  const profile = settings.profiles.get(upstream.inspect);
  if (profile === undefined) throw new Error(`inspection profile ${upstream.inspect} is not configured`);
  const { mode, onDrift, verify, scan } = upstream.pinning;
  const observed = runtime.observed();
  const lock = runtime.firstUse.lockWith(version.locks.get(upstream.name));
  const presentation = presentationOf(upstream.tools);
  const catalogOf = (clientProfile: ClientProfile): Catalog => {
    const catalog = createCatalog({
      upstream: upstream.name,
      lock,
      observed,
      mode: mode === 'off' ? 'off' : 'strict',
      unverified: mode === 'trust-on-first-use' && lock === undefined ? 'any' : 'approved',
      onDrift,
      undeclaredArguments: upstream.arguments.undeclared,
      formats: upstream.formats,
      compile,
      isWithheld: runtime.scan.isWithheld,
      clientProfile,
    });
    return blocks === undefined ? catalog : { ...catalog, blockOf: blocks.of };
  };
  const pinnedOf = (apps: boolean) => perListedEra((era) => catalogOf({ era, apps }));
  const presentedOf = (catalogs: ReturnType<typeof pinnedOf>) =>
    perListedEra((era) => presentedCatalog(catalogs[era], presentation));
  const isDirect = upstream.transport === 'http-sse';
  const supportedVersions = supportedVersionsOf(observed, isDirect);
  const pinnedPlain = pinnedOf(false);
  const plain = presentedOf(pinnedPlain);
  const withApps = upstream.apps ? presentedOf(pinnedOf(true)) : plain;
  const pinned = pinnedPlain[protocolForUpstream(SESSION, supportedVersions).listedEra];
  return {
    pinned,
    presentationProblems: () =>
      presentation === undefined ? [] : presentationProblems(presentation, pinned, namedIn(pinned)),
    id,
    upstream: upstream.name,
    policies: version.policies,
    versions: version.hashes,
    profile,
    profiles: settings.profiles,
    content: upstream.content,
    tracing: traceTermsOf(settings),
    listsCount: upstream.flows.lists === 'count',
    mending: mendingOf(upstream),
    presentation,
    block: blocks?.entire,
    limits: upstream.limits,
    supportedVersions,
    // A translated client is shown what was listed in the era that its upstream speaks.
    catalogFor: ({ protocol, apps }) =>
      (apps ? withApps : plain)[protocolForUpstream(protocol, supportedVersions).listedEra],
    mayShowApps: showsAppsTo(upstream, version, plain[SESSION.listedEra]),
    legacySse: {
      messageUrl: `${upstream.resource}/message`,
      isDirect,
    },
    get isFresh() {
      return mode === 'off' || (verify !== 'before-call' && runtime.isFresh());
    },
    get isTrusting() {
      return runtime.firstUse.isSettling();
    },
    isKindVerified: (kind) => mode === 'off' || runtime.isKindVerified(kind),
    reviewsPages: mode === 'off' && scan !== 'off',
    challenge: challengeOf(settings, upstream),
  };
}

/** One for each version, because all requests under it share a bound. */
const traceTerms = new WeakMap<Settings, TraceTerms>();

/** How requests are traced; undefined if they are not. */
function traceTermsOf(settings: Settings): TraceTerms | undefined {
  const { tracing } = settings;
  if (tracing === undefined) return undefined;
  const known = traceTerms.get(settings);
  if (known !== undefined) return known;
  const { sampling, callerSampledPerSecond } = tracing;
  const issuers = [...settings.issuers.values()];
  const marking = issuers.filter(({ traceContext }) => traceContext === 'continued-with-sampling');
  const trusted = issuers.filter(({ traceContext }) => traceContext !== 'replaced');
  const rate = createRate({ burst: callerSampledPerSecond, perSecond: callerSampledPerSecond }, () =>
    performance.now(),
  );
  const terms: TraceTerms = {
    sampling,
    trusted: new Set(trusted.map(({ name }) => name)),
    mayMark: new Set(marking.map(({ name }) => name)),
    takeMarked() {
      if (rate.left() < 1) return false;
      rate.spend(1);
      return true;
    },
  };
  traceTerms.set(settings, terms);
  return terms;
}

/** What is mended in arguments; undefined if nothing is. */
function mendingOf({ arguments: { coerce, drop } }: UpstreamSettings): Snapshot['mending'] {
  return coerce || drop.length > 0 ? { coerce, drop } : undefined;
}

/**
 * Which callers may declare the Apps extension. Stateless clients declare it with every request, so the result is kept
 * for each set of rules.
 */
function showsAppsTo(
  { name, apps }: UpstreamSettings,
  { policies }: Version,
  catalog: Catalog,
): Snapshot['mayShowApps'] {
  if (!apps) return () => false;
  const cached = new WeakMap<object, boolean>();
  return (principal) => {
    const rules = rulesFor(policies, principal, name);
    const before = cached.get(rules);
    if (before !== undefined) return before;
    const isAllowed = mayShowApps(policies, principal, catalog);
    cached.set(rules, isAllowed);
    return isAllowed;
  };
}

/** What an upstream can carry for clients. HTTP+SSE is bridged and carries every session-era version. */
function supportedVersionsOf(observed: Observed | undefined, isDirect: boolean): Snapshot['supportedVersions'] {
  if (observed === undefined) return undefined;
  const { listings } = observed;
  const inSessions = listings.find((listing) => isListedFor(SESSION, listing));
  const stateless = listings.find((listing) => isListedFor(STATELESS, listing));
  const sessions = inSessions?.protocolVersions ?? [];
  return {
    sessions: isDirect && sessions.length > 0 ? SESSION_VERSIONS : sessions,
    stateless: stateless?.protocolVersions ?? [],
    tasks: sessions.includes(TASK_SESSION_VERSION) ? readTaskCapabilities(inSessions?.capabilities) : [],
  };
}

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
        tracing: traceTermsOf(version.settings),
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
      return isHidden ? { ...status, state: 'shadowed', pinned: undefined, listed: undefined } : status;
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
    get isTrusting() {
      return snapshot.isTrusting;
    },
    challenge: challengeOf(version.settings, settings),
  };
}

function hiddenNames(backends: readonly BackendSnapshot[]): Hidden {
  const hidden = new Map(backends.map(({ backend }) => [backend.upstream, new Map<PinKind, Set<string>>()]));
  for (const kind of KINDS) {
    const shown = backends.map((backend) => shownNames(backend, kind));
    const groups = findConfusableNames(
      backends.map(({ backend: { prefix } }, index) => ({ prefix, names: shown[index]?.keys() ?? [] })),
    );
    for (const { backend, name } of groups.flat())
      for (const own of shown[backend]?.get(name) ?? []) hide({ backend, name: own }, kind, backends, hidden);
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

/** The names of the items of a backend, by those under which clients are shown them. */
function shownNames(backend: BackendSnapshot, kind: PinKind): ReadonlyMap<string, readonly string[]> {
  const { presentation } = backend.snapshot;
  const shown = new Map<string, readonly string[]>();
  for (const name of visibleNames(backend, kind)) {
    const key = kind === 'tool' ? shownName(presentation, name) : name;
    shown.set(key, [...(shown.get(key) ?? []), name]);
  }
  return shown;
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
