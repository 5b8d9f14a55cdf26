// The places that the exchanges of an upstream share: how many of them run at once. One request takes one
// place of each upstream that it asks, and gives all of them back when it ends.

import type { EdgeRoute } from './routes.js';

/** The places that one request has taken. */
export type ConcurrencySlots = {
  /** Takes one of the path's own upstream, or of that member of an endpoint; false where none is left. */
  enter(backend?: string): boolean;
  leave(): void;
};

/** Counts what runs, by upstream. */
export function createConcurrencyLimits(): { forOne(route: EdgeRoute): ConcurrencySlots } {
  const running = new Map<string, number>();
  return {
    forOne({ upstream: own, concurrency, backends }) {
      const taken = new Set<string>();
      return {
        enter(upstream = own) {
          if (taken.has(upstream)) return true;
          const inflight = running.get(upstream) ?? 0;
          if (inflight >= (backends?.get(upstream) ?? concurrency)) return false;
          running.set(upstream, inflight + 1);
          taken.add(upstream);
          return true;
        },
        leave() {
          for (const upstream of taken) running.set(upstream, (running.get(upstream) ?? 1) - 1);
          taken.clear();
        },
      };
    },
  };
}
