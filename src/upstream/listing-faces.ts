// The gateway's own listing by every face that its clients have here: without the Apps extension, and where
// clients may declare it, with it too. What one face is offered proves nothing of the other, so an upstream is
// fresh when both were verified, and nothing is known of it before both have answered or failed.
// Source: MCP Apps extension (SEP-1865), capability negotiation; contract §5.

import { type ClientProfile, isSameProfile, type Listing } from '../mcp/listing.js';
import type { ListingRequest } from './listing-call.js';
import {
  createLister,
  type Lister,
  type ListerPorts,
  type ListerSettings,
  listOnce,
  type OneListing,
} from './relist.js';

/** `apps`: clients may declare the extension. */
export type DiscoverySettings = Omit<ListerSettings, 'apps'> & { readonly apps: boolean };

export type DiscoveryPorts = Omit<ListerPorts, 'request' | 'onListing' | 'onEraGone'> & {
  /** Complete listings: of the first round all at once, then one at a time. */
  readonly onListings: (listings: readonly Listing[]) => void;
  /** Opens a way to the upstream. Each face has its own, because a listing may hold a session there. */
  readonly openRequest: () => ListingRequest;
  /** The upstream no longer speaks the era of this face to it. */
  readonly onProfileGone: (clientProfile: ClientProfile) => void;
};

/** Without the declaration, and where it is carried, with it. */
function appsVariantsOf(apps: boolean): readonly boolean[] {
  return apps ? [false, true] : [false];
}

export type DiscoveryLister = Omit<Lister, 'spoken'> & {
  /** Something was listed, and no face failed when it was last heard of. */
  isUp(): boolean;
};

/** Makes the lister of one upstream. Sends nothing before `start` or a question. */
export function createDiscoveryLister(
  settings: DiscoverySettings,
  ports: DiscoveryPorts,
): DiscoveryLister {
  const appsVariants = appsVariantsOf(settings.apps);
  // Nothing was listed yet.
  const failing = new Set(appsVariants);
  const first = createFirstRound(appsVariants, ports);
  const listers = appsVariants.map((apps) =>
    createLister(
      { ...settings, apps },
      {
        ...ports,
        request: ports.openRequest(),
        onListing(listing) {
          failing.delete(apps);
          first.add(listing);
        },
        onEraGone: (era) => first.drop({ era, apps }),
        onFailure(era, why) {
          failing.add(apps);
          ports.onFailure?.(era, why);
        },
        onRoundEnd: () => first.end(apps),
      },
    ),
  );
  const isFresh: Lister['isFresh'] = (maxAgeMs) =>
    listers.every((lister) => lister.isFresh(maxAgeMs));
  return {
    isFresh,
    isUp: () => failing.size === 0,
    start() {
      for (const lister of listers) lister.start();
    },
    async ensureFresh(maxAgeMs) {
      await Promise.all(listers.map((lister) => lister.ensureFresh(maxAgeMs)));
      return isFresh(maxAgeMs) ? 'fresh' : 'stale';
    },
    async noteListChanged() {
      await Promise.all(listers.map((lister) => lister.noteListChanged()));
    },
    async close() {
      await Promise.all(listers.map((lister) => lister.close()));
    },
  };
}

/**
 * Holds what the first round shows until every face was heard of: one alone would look like all there is. A
 * round in which none was listed is followed by another first one.
 */
function createFirstRound(
  appsVariants: readonly boolean[],
  { onListings, onProfileGone }: Pick<DiscoveryPorts, 'onListings' | 'onProfileGone'>,
): { add(listing: Listing): void; drop(gone: ClientProfile): void; end(apps: boolean): void } {
  const awaited = new Set(appsVariants);
  // The newest of each face: one may be listed many times while the other says nothing.
  let held: readonly Listing[] | undefined = [];
  const heldBut = (clientProfile: ClientProfile) =>
    held?.filter((listing) => !isSameProfile(listing, clientProfile));
  return {
    add(listing) {
      const others = heldBut(listing);
      if (others === undefined) onListings([listing]);
      else held = [...others, listing];
    },
    drop(gone) {
      held = heldBut(gone);
      onProfileGone(gone);
    },
    end(apps) {
      awaited.delete(apps);
      if (held === undefined || awaited.size > 0) return;
      const listings = held;
      if (listings.length === 0) {
        for (const variant of appsVariants) awaited.add(variant);
        return;
      }
      held = undefined;
      onListings(listings);
    },
  };
}

/** Lists once by every face, and leaves nothing open: for the command line. */
export async function listProfilesOnce(
  settings: Omit<DiscoverySettings, 'maxAgeMs'>,
  { openRequest, now }: Pick<DiscoveryPorts, 'openRequest' | 'now'>,
): Promise<OneListing> {
  const listings: Listing[] = [];
  for (const apps of appsVariantsOf(settings.apps)) {
    const listed = await listOnce({ ...settings, apps }, { request: openRequest(), now });
    if (listed.kind === 'unreachable') return listed;
    listings.push(...listed.listings);
  }
  return { kind: 'listed', listings };
}
