// What remembers that something was used, so that it is used once: proofs of possession, by a keyed hash.
// The port alone; the memories behind it are in state/.

/** True for the first use, false for every other; `unavailable` where nobody can tell, which lets nothing pass. */
export type ReplayOutcome = boolean | 'unavailable';

export type ReplayStore = {
  /**
   * Notes a use. `keyHash` is a keyed hash, never what was used; it need not be remembered past
   * `expiresAtMs` (milliseconds since the epoch). `owner` says whose use it is: where room is bounded, no
   * owner gets all of it. Of uses at the same time exactly one is the first. Never throws or rejects.
   */
  useOnce(
    keyHash: string,
    expiresAtMs: number,
    owner: string,
  ): ReplayOutcome | Promise<ReplayOutcome>;
};
