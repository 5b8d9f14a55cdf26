// Limits that all replicas count together. While the store cannot be asked, a replica counts for itself, up
// to its share of the limit; what it let pass before counts against that share. Contract §10.

import type { LimitOutcome, LimitStore, LimitWindow } from '../policy/limit-store.js';
import { createMemoryLimits } from './memory-limits.js';
import type { StoreLink } from './store-link.js';

export type SharedLimitsPorts = {
  readonly link: Pick<StoreLink, 'take'>;
  /** False while the store is known not to answer: then nobody waits for it. */
  readonly isReachable: () => boolean;
  /** Replicas that share the limits, by the newest look. */
  readonly replicas: () => number;
  /** Told when the store did not answer. */
  readonly onError: (error: unknown) => void;
  /** Keyed hash: the store learns no names. */
  readonly hash: (key: string) => string;
};

/** Creates the limits of a replica. Never throws or rejects. */
export function createSharedLimits(ports: SharedLimitsPorts): LimitStore {
  const own = createMemoryLimits();

  /** A share is at least one use: of more replicas than uses, each lets one pass. */
  function takeOwn(key: string, { count, windowMs }: LimitWindow): LimitOutcome {
    const ownCount = Math.max(1, Math.floor(count / Math.max(1, ports.replicas())));
    return own.take(key, { count: ownCount, windowMs });
  }

  return {
    take(key, limit) {
      if (!ports.isReachable()) return takeOwn(key, limit);
      return ports.link.take(ports.hash(key), limit).then(
        (outcome) => {
          if (outcome.ok) own.take(key, { ...limit, count: Number.MAX_SAFE_INTEGER });
          return outcome;
        },
        (error: unknown) => {
          ports.onError(error);
          return takeOwn(key, limit);
        },
      );
    },
  };
}
