// Snapshots: one configuration version together with the newest catalog of an upstream, as requests read it. A snapshot
// is built once and kept until either changes, and definitions are read once for all of them.

import { challengeFor } from '../auth/challenge.js';
import type { Settings, UpstreamSettings } from '../config/settings.js';
import { metadataUrl } from '../http/protected-resource-metadata.js';
import { type CompileDefinition, createCatalog } from '../pins/catalog.js';
import type { Observed } from '../pins/last-seen.js';
import type { UpstreamBlocks } from '../policy/blocks.js';
import type { Catalog } from '../policy/definitions.js';
import { rulesFor } from '../policy/rules.js';
import { mayShowApps } from '../policy/server-requests.js';
import type { ClientProfile } from '../protocol/listings.js';
import { readTaskCapabilities } from '../protocol/tasks.js';
import { isListedFor, protocolForUpstream } from '../protocol/versions/negotiation.js';
import {
  perListedEra,
  SESSION_VERSIONS,
  TASK_SESSION_VERSION,
} from '../protocol/versions/revisions.js';
import { SESSION } from '../protocol/versions/session.js';
import { STATELESS } from '../protocol/versions/stateless.js';
import type { Snapshot } from '../proxy/ports.js';
import type { Version } from './config-version.js';
import type { UpstreamRuntime } from './upstreams.js';

/**
 * The challenges of one upstream or aggregate, made from settings and policy: what a 401 offers and which scopes a 403
 * asks for. RFC 6750 §3: no error is named where no token was sent.
 */
export function challengeOf(
  settings: Settings,
  upstream: Pick<UpstreamSettings, 'path' | 'scopesSupported' | 'binding'>,
): Snapshot['challenge'] {
  const url = metadataUrl(settings.publicUrl, upstream.path);
  const takesCertificates = settings.listeners.data.tls?.clientCa !== undefined;
  return (reason, scopes, { scheme, proof }) =>
    challengeFor(reason, {
      metadataUrl: url,
      scopes: scopes ?? upstream.scopesSupported,
      possession: {
        demand: upstream.binding,
        takesCertificates,
        usesProofs: scheme === 'dpop' || proof !== undefined,
        proof,
      },
    });
}

export type SnapshotOf = (runtime: UpstreamRuntime, version: Version) => Snapshot;

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
      readonly snapshot: Snapshot;
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
): Snapshot {
  const { settings } = version;
  const upstream = settings.upstreams.get(runtime.settings.name) ?? runtime.settings;
  const profile = settings.profiles.get(upstream.inspect);
  if (profile === undefined)
    throw new Error(`inspection profile ${upstream.inspect} is not configured`);
  const { mode, onDrift, verify, scan } = upstream.pinning;
  const observed = runtime.observed();
  const lock = runtime.firstUse.lockWith(version.locks.get(upstream.name));
  const catalogOf = (clientProfile: ClientProfile): Catalog => {
    const catalog = createCatalog({
      upstream: upstream.name,
      lock,
      observed,
      mode: mode === 'off' ? 'off' : 'strict',
      onDrift,
      undeclaredArguments: upstream.arguments,
      compile,
      isWithheld: runtime.scan.isWithheld,
      clientProfile,
    });
    return blocks === undefined ? catalog : { ...catalog, blockOf: blocks.of };
  };
  const catalogsOf = (apps: boolean) => perListedEra((era) => catalogOf({ era, apps }));
  const isDirect = upstream.transport === 'http-sse';
  const supportedVersions = supportedVersionsOf(observed, isDirect);
  const plain = catalogsOf(false);
  const withApps = upstream.apps ? catalogsOf(true) : plain;
  return {
    id,
    upstream: upstream.name,
    policies: version.policies,
    versions: version.hashes,
    profile,
    profiles: settings.profiles,
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
    reviewsPages: mode === 'off' && scan !== 'off',
    challenge: challengeOf(settings, upstream),
  };
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
function supportedVersionsOf(
  observed: Observed | undefined,
  isDirect: boolean,
): Snapshot['supportedVersions'] {
  if (observed === undefined) return undefined;
  const { listings } = observed;
  const inSessions = listings.find((listing) => isListedFor(SESSION, listing));
  const stateless = listings.find((listing) => isListedFor(STATELESS, listing));
  const sessions = inSessions?.protocolVersions ?? [];
  return {
    sessions: isDirect && sessions.length > 0 ? SESSION_VERSIONS : sessions,
    stateless: stateless?.protocolVersions ?? [],
    tasks: sessions.includes(TASK_SESSION_VERSION)
      ? readTaskCapabilities(inSessions?.capabilities)
      : [],
  };
}
