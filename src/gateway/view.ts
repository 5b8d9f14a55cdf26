// A view: one version of the files together with one sight of an upstream, as exchanges read it. Made
// once and kept until either changes, so that the path of a request compiles nothing.

import type { UpstreamSettings } from '../config/settings.js';
import type { View } from '../exchange-ports.js';
import { eraTowards } from '../mcp/carried.js';
import { type Face, listedEra } from '../mcp/listing.js';
import { readTaskUses, TASK_SESSION_VERSION } from '../mcp/tasks.js';
import { SESSION_VERSIONS } from '../mcp/versions.js';
import { createCatalogue } from '../pins/catalogue.js';
import type { CompileDefinition } from '../pins/definition-compiler.js';
import type { Observed } from '../pins/observed.js';
import type { Catalogue } from '../policy/definition.js';
import { mayShowApps } from '../policy/grants.js';
import { rulesFor } from '../policy/rules.js';
import { challengeOf } from './challenge.js';
import type { UpstreamRuntime } from './upstream-runtime.js';
import type { Version } from './version.js';

export type ViewOf = (runtime: UpstreamRuntime, version: Version) => View;

/** Makes views and keeps the last one of each upstream. */
export function createViews(compile: CompileDefinition): ViewOf {
  const kept = new WeakMap<
    UpstreamRuntime,
    { readonly version: Version; readonly sight: string | undefined; readonly view: View }
  >();
  let made = 0;
  return (runtime, version) => {
    const sight = runtime.observed()?.sight;
    const known = kept.get(runtime);
    if (known !== undefined && known.version === version && known.sight === sight)
      return known.view;
    made += 1;
    const view = buildView(made, runtime, version, compile);
    kept.set(runtime, { version, sight, view });
    return view;
  };
}

function buildView(
  id: number,
  runtime: UpstreamRuntime,
  version: Version,
  compile: CompileDefinition,
): View {
  const { settings } = version;
  const upstream = settings.upstreams.get(runtime.settings.name) ?? runtime.settings;
  const profile = settings.profiles.get(upstream.inspect);
  if (profile === undefined)
    throw new Error(`inspection profile ${upstream.inspect} is not configured`);
  const { mode, onDrift } = upstream.pinning;
  const observed = runtime.observed();
  const lock = version.locks.get(upstream.name);
  const catalogueOf = (face: Face): Catalogue =>
    createCatalogue({ upstream: upstream.name, lock, observed, mode, onDrift, compile, face });
  const cataloguesOf = (apps: boolean) => ({
    '2025': catalogueOf({ era: '2025', apps }),
    '2026': catalogueOf({ era: '2026', apps }),
  });
  const isDirect = upstream.transport === 'http-sse';
  const carried = carriedBy(observed, isDirect);
  const plain = cataloguesOf(false);
  const withApps = upstream.apps ? cataloguesOf(true) : plain;
  return {
    id,
    upstream: upstream.name,
    policies: version.policies,
    versions: version.hashes,
    profile,
    profiles: settings.profiles,
    limits: upstream.limits,
    carried,
    // What a translated client is shown is what was listed in the era that its upstream speaks.
    catalogueFor: ({ era, apps }) => (apps ? withApps : plain)[eraTowards(listedEra(era), carried)],
    mayShowApps: showsAppsTo(upstream, version, plain['2025']),
    channel: {
      messageUrl: `${upstream.resource}/message`,
      isDirect,
    },
    get isFresh() {
      return mode === 'off' || runtime.isFresh();
    },
    challenge: challengeOf(settings, upstream),
  };
}

/** Who may declare the Apps extension. Hosts of 2026 ask with each request, and those of one set of rules get one answer. */
function showsAppsTo(
  { name, apps }: UpstreamSettings,
  { policies }: Version,
  catalogue: Catalogue,
): View['mayShowApps'] {
  if (!apps) return () => false;
  const known = new WeakMap<object, boolean>();
  return (principal) => {
    const rules = rulesFor(policies, principal, name);
    const before = known.get(rules);
    if (before !== undefined) return before;
    const may = mayShowApps(policies, principal, catalogue);
    known.set(rules, may);
    return may;
  };
}

/** What an upstream carries towards clients. Of HTTP+SSE that is every version of sessions: they are bridged. */
function carriedBy(observed: Observed | undefined, isDirect: boolean): View['carried'] {
  if (observed === undefined) return undefined;
  const listedIn = (era: '2025' | '2026') => observed.faces.find((face) => face.era === era);
  const inSessions = listedIn('2025');
  const sessions = inSessions?.protocolVersions ?? [];
  return {
    sessions: isDirect && sessions.length > 0 ? SESSION_VERSIONS : sessions,
    stateless: listedIn('2026')?.protocolVersions ?? [],
    tasks: sessions.includes(TASK_SESSION_VERSION) ? readTaskUses(inSessions?.capabilities) : [],
  };
}
