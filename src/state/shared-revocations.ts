// The revocations of a replica and those of the store, made one. What either side knows, both know after a
// look; only what was lifted goes, by a mark that outlives it. So a store that has lost its memory learns it
// again from any replica, and none of them takes a loss for a lift.

import type { Added, Lifted, StatePorts } from './gateway-state.js';
import { openRevocation, type Revocation, sealRevocation } from './revocation.js';
import { createRevocationSet, type RevocationSet } from './revocation-set.js';
import type { StoredRevocations, StoreLink } from './store-link.js';

/** What ends this soon is not told to the store again: clocks differ. */
const MIN_PUBLISHED_TTL_MS = 60_000;

export type SharedRevocations = {
  readonly known: RevocationSet;
  /** Learns and tells, unless the store's version is the one that was seen last. */
  follow(version: string): Promise<void>;
  /** Tells the store of one that is in force here. Never rejects. */
  publish(revocation: Revocation): Promise<Added>;
  lift(id: string): Promise<Lifted>;
};

type Ports = StatePorts & {
  readonly link: StoreLink;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
};

/** None; what the store knows comes with the first `follow`. */
export function createSharedRevocations(ports: Ports): SharedRevocations {
  const { ring, now, link, onChange, onError } = ports;
  const known = createRevocationSet(ring, now);
  /** Made here, and not confirmed by the store. */
  const unpublished = new Set<string>();
  let seen: string | undefined;

  function learn({ sealed, lifted }: StoredRevocations): void {
    const found = [...sealed]
      .filter(([id]) => known.get(id) === undefined && !lifted.has(id))
      .flatMap(([id, text]) => openRevocation(ring, id, text, now()) ?? []);
    const gone = [...lifted].filter((id) => known.remove(id));
    for (const revocation of found) known.add(revocation);
    if (found.length + gone.length > 0) onChange();
  }

  async function publish(revocation: Revocation): Promise<'added' | 'full'> {
    const { id, expiresAtMs } = revocation;
    return link.addRevocation(id, sealRevocation(ring, revocation), expiresAtMs - now());
  }

  function shouldPublish({ id, expiresAtMs }: Revocation): boolean {
    return unpublished.has(id) || expiresAtMs - now() > MIN_PUBLISHED_TTL_MS;
  }

  return {
    known,
    async follow(version) {
      if (version === seen && unpublished.size === 0) return;
      const stored = await link.revocations();
      learn(stored);
      const missing = known.list().filter(({ id }) => !stored.sealed.has(id));
      for (const revocation of missing) if (shouldPublish(revocation)) await publish(revocation);
      unpublished.clear();
      seen = stored.version;
    },
    async publish(revocation) {
      unpublished.add(revocation.id);
      try {
        if ((await publish(revocation)) === 'full') return 'kept';
        unpublished.delete(revocation.id);
        return 'shared';
      } catch (error) {
        onError(error);
        return 'kept';
      }
    },
    async lift(id) {
      const revocation = known.get(id);
      if (revocation === undefined) return 'unknown';
      const leftMs = Math.max(revocation.expiresAtMs - now(), MIN_PUBLISHED_TTL_MS);
      try {
        await link.liftRevocation(id, leftMs);
      } catch (error) {
        onError(error);
        return 'unavailable';
      }
      known.remove(id);
      unpublished.delete(id);
      onChange();
      return 'lifted';
    },
  };
}
