// A table for values that come and go with every request, in which no value outlives its entry. In a Map whose values
// are objects it would: each internal table that the Map outgrows keeps its contents reachable until a full garbage
// collection. So the Map holds numbers and an array holds the values; only keys may live longer.

/** Values by key. Setting a key again replaces its value. */
export class LiveMap<K extends string | number, V extends object> {
  readonly #indexes = new Map<K, number>();
  readonly #values: (V | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#indexes.size;
  }

  get(key: K): V | undefined {
    const index = this.#indexes.get(key);
    return index === undefined ? undefined : this.#values[index];
  }

  set(key: K, value: V): void {
    const index = this.#indexes.get(key) ?? this.#free.pop() ?? this.#values.length;
    this.#indexes.set(key, index);
    this.#values[index] = value;
  }

  delete(key: K): void {
    const index = this.#indexes.get(key);
    if (index === undefined) return;
    this.#indexes.delete(key);
    this.#values[index] = undefined;
    this.#free.push(index);
  }

  has(key: K): boolean {
    return this.#indexes.has(key);
  }

  /** All values, in no particular order. */
  values(): readonly V[] {
    return this.#values.filter((value) => value !== undefined);
  }
}
