// How often a member of an endpoint lost its part of a caller's session of late. Once in a while that ends the
// session, so that it is opened anew with all members; a member that loses it again and again is left out
// instead, or it would take the others with it.

/** Losses within the window that are told; further ones are the member's own affair. */
const MAX_LOSSES = 3;
const WINDOW_MS = 60_000;
/** Past this many callers and members, the oldest are forgotten first. */
const MAX_KNOWN = 10_000;

export type LostBackends = {
  /** Notes a loss that is told. */
  note(key: string): void;
  /** Whether it has happened too often to be told again. */
  isFrequent(key: string): boolean;
};

/** An empty memory. `key` names caller, endpoint and member. */
export function createLostBackends(now: () => number): LostBackends {
  const known = new Map<string, readonly number[]>();
  const recent = (key: string): readonly number[] =>
    (known.get(key) ?? []).filter((atMs) => now() - atMs < WINDOW_MS);
  return {
    note(key) {
      const losses = [...recent(key), now()];
      known.delete(key);
      known.set(key, losses);
      const [oldest] = known.keys();
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    },
    isFrequent: (key) => recent(key).length >= MAX_LOSSES,
  };
}
