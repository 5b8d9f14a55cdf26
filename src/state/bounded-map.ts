// Maps that forget: never more entries than their bound, the oldest first. Imports nothing, so that every layer may use
// them; caches, memories of recent ids and tables of sessions differ only in their bounds.

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
  readonly max: number;
  readonly maxPerOwner: number;
  /** Whether a value may be forgotten now; where none may, the map exceeds its bounds. */
  readonly mayForget?: (value: V) => boolean;
};

/**
 * A map whose entries have owners, in the order in which they were set last. INVARIANT: an owner at its own bound
 * forgets its own oldest entry, never another's.
 */
export class OwnedMap<K, V> {
  readonly #entries = new Map<K, { readonly owner: string; readonly value: V }>();
  readonly #owned = new Map<string, Set<K>>();
  readonly #bounds: OwnedBounds<V>;

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
  set(key: K, value: V, owner: string): void {
    this.delete(key);
    const { max, maxPerOwner } = this.#bounds;
    const own = this.#owned.get(owner);
    if (own !== undefined && own.size >= maxPerOwner) this.#forgetOldest(own);
    else if (this.#entries.size >= max) this.#forgetOldest(this.#entries.keys());
    this.#entries.set(key, { owner, value });
    const kept = this.#owned.get(owner);
    if (kept === undefined) this.#owned.set(owner, new Set([key]));
    else kept.add(key);
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    const own = this.#owned.get(entry.owner);
    own?.delete(key);
    if (own?.size === 0) this.#owned.delete(entry.owner);
  }

  #forgetOldest(keys: Iterable<K>): void {
    const { mayForget } = this.#bounds;
    for (const key of keys) {
      const entry = this.#entries.get(key);
      if (entry === undefined || mayForget?.(entry.value) === false) continue;
      this.delete(key);
      return;
    }
  }
}
