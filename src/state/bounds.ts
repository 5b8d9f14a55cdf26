// Bounds on memory and use: maps with a maximum number of entries, which evict the oldest first; a quota for what is in
// use at the same time, in total and per owner, so that no owner uses up what is shared by all; and a rate limit (token
// bucket) for what is used over time. They only count: whoever takes from a quota also gives back. Imports nothing, so
// that every folder may use it.

/**
 * A map of at most `max` entries, in the order in which they were set or used last. Entries that were set with a weight
 * are at most `maxWeight` together; one that is heavier is not kept.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number;
  readonly #maxWeight: number;
  readonly #weights = new Map<K, number>();
  #weight = 0;
  /**
   * Finds the oldest of consecutive sets. A new iterator would step over every entry deleted before, up to as many as
   * are kept. Dropped by whatever forgets nothing, because it keeps each table alive that the map has outgrown since.
   */
  #oldest: MapIterator<K> | undefined;
  /** The key that was set or used last; it may be gone. */
  #newest: K | undefined;

  constructor(max: number, maxWeight = Number.POSITIVE_INFINITY) {
    super();
    this.#max = max;
    this.#maxWeight = maxWeight;
  }

  /** Sets the newest entry; the oldest make way for it. */
  override set(key: K, value: V, weight = 0): this {
    this.delete(key);
    if (weight > this.#maxWeight) return this;
    super.set(key, value);
    this.#newest = key;
    if (weight > 0) this.#weights.set(key, weight);
    this.#weight += weight;
    if (!this.#isOver()) this.#oldest = undefined;
    while (this.#isOver()) {
      this.#oldest ??= this.keys();
      // All that is kept lies ahead of it.
      this.delete(this.#oldest.next().value as K);
    }
    return this;
  }

  #isOver(): boolean {
    return this.size > this.#max || this.#weight > this.#maxWeight;
  }

  /** Of all entries together. */
  get weight(): number {
    return this.#weight;
  }

  override delete(key: K): boolean {
    this.#weight -= this.#weights.get(key) ?? 0;
    this.#weights.delete(key);
    return super.delete(key);
  }

  override clear(): void {
    super.clear();
    this.#weights.clear();
    this.#weight = 0;
    this.#oldest = undefined;
  }

  /** The value of a key, which becomes the newest: so the least recently used is forgotten first. */
  use(key: K): V | undefined {
    const value = this.get(key);
    if (value !== undefined && key !== this.#newest) {
      this.#newest = key;
      this.#oldest = undefined;
      super.delete(key);
      super.set(key, value);
    }
    return value;
  }
}

type OwnedBounds<V> = {
  /** The most that all entries may weigh together, and those of one owner. */
  readonly max: number;
  readonly maxPerOwner: number;
  /** Whether a value may be evicted now; if none may, the map exceeds its bounds. */
  readonly mayForget?: (value: V) => boolean;
};

type Owned<V> = { readonly owner: string; readonly value: V; readonly weight: number };

/**
 * A map whose entries have owners, in the order in which they were set last. An entry weighs 1 unless it is said, and one
 * that is heavier than its owner may have is not kept. INVARIANT: an owner at its own bound forgets its own oldest entry,
 * never another's.
 */
export class OwnedMap<K, V> {
  readonly #entries = new Map<K, Owned<V>>();
  readonly #owned = new Map<string, { readonly keys: Set<K>; weight: number }>();
  readonly #bounds: OwnedBounds<V>;
  #weight = 0;

  constructor(bounds: OwnedBounds<V>) {
    this.#bounds = bounds;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  keys(): Iterable<K> {
    return this.#entries.keys();
  }

  /** Sets the newest entry of all, and of its owner. */
  set(key: K, value: V, owner: string, weight = 1): void {
    this.delete(key);
    const { max, maxPerOwner } = this.#bounds;
    if (weight > maxPerOwner) return;
    const own = this.#owned.get(owner);
    if (own !== undefined) this.#makeRoom(own.keys, () => own.weight + weight <= maxPerOwner);
    this.#makeRoom(this.#entries.keys(), () => this.#weight + weight <= max);
    this.#entries.set(key, { owner, value, weight });
    this.#weight += weight;
    const kept = this.#owned.get(owner) ?? { keys: new Set(), weight: 0 };
    kept.keys.add(key);
    kept.weight += weight;
    this.#owned.set(owner, kept);
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
    const own = this.#owned.get(entry.owner);
    if (own === undefined) return;
    own.keys.delete(key);
    own.weight -= entry.weight;
    if (own.keys.size === 0) this.#owned.delete(entry.owner);
  }

  /** Forgets the oldest of these entries, as far as they may be forgotten, until there is room. */
  #makeRoom(keys: Iterable<K>, hasRoom: () => boolean): void {
    if (hasRoom()) return;
    const { mayForget } = this.#bounds;
    for (const key of keys) {
      const entry = this.#entries.get(key);
      if (entry === undefined || mayForget?.(entry.value) === false) continue;
      this.delete(key);
      if (hasRoom()) return;
    }
  }
}

type Quota = {
  /**
   * Takes `amount` for an owner; false, and nothing is taken, if that exceeds a bound. An owner that holds nothing may
   * take any amount that is left in total, and any amount at all while nothing is in use, so that something large is not
   * refused for ever.
   */
  take(owner: string, amount?: number): boolean;
  /** Whether `take` would succeed. */
  fits(owner: string, amount?: number): boolean;
  give(owner: string, amount?: number): void;
  usedBy(owner: string): number;
  readonly used: number;
};

/** Creates a quota of which nothing is used. Owners that hold nothing are not remembered. */
export function createQuota({ total, perOwner }: { readonly total: number; readonly perOwner: number }): Quota {
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

type Rate = {
  /** What is left now; negative after more was spent than was left. */
  left(key?: string): number;
  spend(amount: number, key?: string): void;
};

/** Above this number, buckets that are full again are removed: they equal new ones. */
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
    for (const [key, bucket] of buckets) if (refill(bucket, atMs).left === burst) buckets.delete(key);
  }

  return {
    left: (key = '') => bucketOf(key).left,
    spend(amount, key = '') {
      bucketOf(key).left -= amount;
    },
  };
}
