// Sessions that their owners have ended. A sealed id proves itself until it expires, so that an ended
// one must be remembered until then (contract §10: the store can only take away). One replica's memory.

/** Past this many, the oldest are forgotten first; each is a keyed hash of 43 characters. */
const MAX_ENDED = 100_000;

export type EndedSessions = {
  /** `hash` is a keyed hash of the sealed id, never the id. */
  add(hash: string, expiresAtMs: number): void;
  has(hash: string): boolean;
  /** Tells of sessions that ended at another replica. */
  onElsewhere(listener: () => void): void;
};

/** Remembers ended sessions until they would have expired anyway. */
export function createEndedSessions(now: () => number): EndedSessions {
  const ended = new Map<string, number>();

  function forgetExpired(): void {
    const nowMs = now();
    // Insertion order is order of expiry, because all sessions live equally long.
    for (const [hash, expiresAtMs] of ended) {
      if (expiresAtMs > nowMs && ended.size < MAX_ENDED) return;
      ended.delete(hash);
    }
  }

  return {
    add(hash, expiresAtMs) {
      forgetExpired();
      ended.set(hash, expiresAtMs);
    },
    has: (hash) => ended.has(hash),
    onElsewhere: () => undefined,
  };
}
