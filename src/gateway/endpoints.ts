// The endpoints of several upstreams, over the running parts: each member's own view, but that names which
// look like another member's are hidden for everyone. Made once for each version and sight, kept until
// either changes. Decides nothing about callers.

import type { EndpointSettings, MemberSettings } from '../config/settings.js';
import type { Endpoint, View } from '../exchange-ports.js';
import { findLookAlikes, type NameOf } from '../inspect/look-alike-names.js';
import { PLAIN_SESSION } from '../mcp/listing.js';
import { namesSeen } from '../pins/observed.js';
import type { Catalogue, PinKind } from '../policy/definition.js';
import { challengeOf } from './challenge.js';
import type { UpstreamRuntime } from './upstream-runtime.js';
import type { Version } from './version.js';
import type { ViewOf } from './view.js';

export type EndpointParts = {
  version(): Version;
  runtime(upstream: string): UpstreamRuntime | undefined;
  readonly view: ViewOf;
  /** Version of the program. */
  readonly gatewayVersion: string;
};

export type Endpoints = {
  get(name: string): Endpoint | undefined;
  /** Names of an endpoint's members that are hidden because they look like another's. */
  countHidden(name: string): number;
};

/** The kinds that have names. Of URIs that two members have, it is decided whose they are when one is read. */
const KINDS: readonly PinKind[] = ['tool', 'prompt'];

type Sight = {
  readonly settings: EndpointSettings;
  readonly member: MemberSettings;
  readonly runtime: UpstreamRuntime;
  readonly view: View;
};

/** The names of each member that are hidden, by kind. */
type Hidden = ReadonlyMap<string, ReadonlyMap<PinKind, ReadonlySet<string>>>;

type Kept = {
  readonly version: Version;
  readonly ids: string;
  readonly endpoint: Endpoint;
  readonly hidden: number;
};

/** Makes endpoints of the current version. */
export function createEndpoints(parts: EndpointParts): Endpoints {
  const kept = new Map<string, Kept>();
  let made = 0;

  function look(name: string): Kept | undefined {
    const version = parts.version();
    const settings = version.settings.endpoints.get(name);
    if (settings === undefined) return undefined;
    const sights = settings.members.flatMap((member): Sight[] => {
      const runtime = parts.runtime(member.upstream);
      if (runtime === undefined) return [];
      return [{ settings, member, runtime, view: parts.view(runtime, version) }];
    });
    const ids = sights.map(({ view }) => view.id).join(' ');
    const known = kept.get(name);
    if (known?.version === version && known.ids === ids) return known;
    const hidden = hiddenNames(sights);
    const views = new Map(
      sights.map((sight) => {
        made += 1;
        // What is filtered for an endpoint is another form of a page than the member's own.
        return [sight.member.upstream, viewAt(sight, -made, version, hidden)];
      }),
    );
    const next: Kept = {
      version,
      ids,
      hidden: countNames(hidden),
      endpoint: {
        name,
        members: settings.members,
        versions: version.hashes,
        server: { name, version: parts.gatewayVersion },
        challenge: challengeOf(version.settings, settings),
        view: (upstream) => views.get(upstream),
      },
    };
    kept.set(name, next);
    return next;
  }

  return { get: (name) => look(name)?.endpoint, countHidden: (name) => look(name)?.hidden ?? 0 };
}

function viewAt(
  { settings, member, view }: Sight,
  id: number,
  version: Version,
  hidden: Hidden,
): View {
  const names = hidden.get(member.upstream);
  const shadow = (catalogue: Catalogue): Catalogue => ({
    ...catalogue,
    standing(kind, name) {
      const standing = catalogue.standing(kind, name);
      const isHidden = names?.get(kind)?.has(name) === true;
      return isHidden
        ? { ...standing, state: 'shadowed', pinned: undefined, listed: undefined }
        : standing;
    },
  });
  const shadows = new Map<Catalogue, Catalogue>();
  return {
    ...view,
    id,
    catalogueFor(client) {
      const own = view.catalogueFor(client);
      const known = shadows.get(own);
      if (known !== undefined) return known;
      const made = shadow(own);
      shadows.set(own, made);
      return made;
    },
    get isFresh() {
      return view.isFresh;
    },
    challenge: challengeOf(version.settings, settings),
  };
}

function hiddenNames(sights: readonly Sight[]): Hidden {
  const hidden = new Map(
    sights.map(({ member }) => [member.upstream, new Map<PinKind, Set<string>>()]),
  );
  for (const kind of KINDS) {
    const groups = findLookAlikes(
      sights.map((sight) => ({ prefix: sight.member.prefix, names: offered(sight, kind) })),
    );
    for (const one of groups.flat()) hide(one, kind, sights, hidden);
  }
  return hidden;
}

function hide(
  { member, name }: NameOf,
  kind: PinKind,
  sights: readonly Sight[],
  hidden: ReadonlyMap<string, Map<PinKind, Set<string>>>,
): void {
  const kinds = hidden.get(sights[member]?.member.upstream ?? '');
  const names = kinds?.get(kind) ?? new Set<string>();
  names.add(name);
  kinds?.set(kind, names);
}

/** What a caller could be shown: what is approved and there, or, without pins, all that was seen. */
function offered({ runtime, view }: Sight, kind: PinKind): Iterable<string> {
  const catalogue = view.catalogueFor(PLAIN_SESSION);
  return catalogue.mode === 'off'
    ? namesSeen(runtime.observed(), kind)
    : catalogue.names(kind).filter((name) => catalogue.standing(kind, name).state === 'approved');
}

function countNames(hidden: Hidden): number {
  let count = 0;
  for (const kinds of hidden.values()) for (const names of kinds.values()) count += names.size;
  return count;
}
