// What the gateway's own listing of one upstream may read in a minute, by all its faces and eras together: a
// server decides how long its lists are and how often they are asked for, and it must not decide the cost.

export type ListingAllowance = {
  /** False once more was read in this minute than may be; nothing more is asked for then. */
  readonly isLeft: boolean;
  spend(bytes: number): void;
};

const MINUTE_MS = 60_000;

/** Of which nothing was spent. `now`: milliseconds since the epoch. */
export function createListingAllowance(maxBytes: number, now: () => number): ListingAllowance {
  let sinceMs = now();
  let spent = 0;

  function refill(): void {
    if (now() - sinceMs < MINUTE_MS) return;
    sinceMs = now();
    spent = 0;
  }

  return {
    get isLeft() {
      refill();
      return spent <= maxBytes;
    },
    spend(bytes) {
      refill();
      spent += bytes;
    },
  };
}
