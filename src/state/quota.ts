// A bound on use: of each owner, so that none uses up what all have, and in total. It counts only; what is given back,
// and when, is its holder's affair. Imports nothing, so that every layer may use it.

type Quota = {
  /**
   * Takes `amount` for an owner; false, and nothing is taken, where that exceeds a bound. Who holds nothing may take
   * any amount that is left in total, and the first of all any amount, so that something large is not refused for ever.
   */
  take(owner: string, amount?: number): boolean;
  /** Whether it could be taken. */
  fits(owner: string, amount?: number): boolean;
  give(owner: string, amount?: number): void;
  usedBy(owner: string): number;
  readonly used: number;
};

/** Creates a quota of which nothing is used. Owners that hold nothing are not remembered. */
export function createQuota({
  total,
  perOwner,
}: {
  readonly total: number;
  readonly perOwner: number;
}): Quota {
  const usage = new Map<string, number>();
  let used = 0;

  const usedBy = (owner: string): number => usage.get(owner) ?? 0;

  function add(owner: string, amount: number): void {
    used += amount;
    const own = usedBy(owner) + amount;
    if (own > 0) usage.set(owner, own);
    else usage.delete(owner);
  }

  const fits = (owner: string, amount = 1): boolean =>
    isWithin(used, amount, total) && isWithin(usedBy(owner), amount, perOwner);

  return {
    fits,
    take(owner, amount = 1) {
      if (!fits(owner, amount)) return false;
      add(owner, amount);
      return true;
    },
    give: (owner, amount = 1) => add(owner, -amount),
    usedBy,
    get used() {
      return used;
    },
  };
}

function isWithin(used: number, amount: number, most: number): boolean {
  return used === 0 || used + amount <= most;
}

export type RateBounds = {
  /** What may be used at once. */
  readonly burst: number;
  readonly perSecond: number;
};

type Bucket = { left: number; atMs: number };

export type Rate = {
  /** What is left now; negative after more was spent than was left. */
  left(key?: string): number;
  spend(amount: number, key?: string): void;
};

/** Above this number, buckets that are full again are forgotten: they are those that a new one would be. */
const MAX_BUCKETS = 1_000;

/** A token bucket for each key, which refills evenly. `now` is in milliseconds; a clock set back adds nothing. */
export function createRate({ burst, perSecond }: RateBounds, now: () => number): Rate {
  const buckets = new Map<string, Bucket>();

  function bucketOf(key: string): Bucket {
    const atMs = now();
    const known = buckets.get(key);
    if (known !== undefined) return refill(known, atMs);
    if (buckets.size >= MAX_BUCKETS) forgetFull(atMs);
    const bucket = { left: burst, atMs };
    buckets.set(key, bucket);
    return bucket;
  }

  function refill(bucket: Bucket, atMs: number): Bucket {
    const more = (Math.max(0, atMs - bucket.atMs) * perSecond) / 1000;
    bucket.left = Math.min(burst, bucket.left + more);
    bucket.atMs = atMs;
    return bucket;
  }

  function forgetFull(atMs: number): void {
    for (const [key, bucket] of buckets)
      if (refill(bucket, atMs).left === burst) buckets.delete(key);
  }

  return {
    left: (key = '') => bucketOf(key).left,
    spend(amount, key = '') {
      bucketOf(key).left -= amount;
    },
  };
}
