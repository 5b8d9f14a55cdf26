// A table for values that come and go with every request, in which no value outlives its entry. In a Map whose values
// are objects it would: each internal table that the Map outgrows keeps its contents reachable until a full garbage
// collection. So the Map holds numbers and an array holds the values; only keys may live longer.

/** Values by key. Setting a key again replaces its value. */
export class LiveMap<K extends string | number, V extends object> {
  readonly #places = new Map<K, number>();
  readonly #values: (V | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#places.size;
  }

  get(key: K): V | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#values[place];
  }

  set(key: K, value: V): void {
    const place = this.#places.get(key) ?? this.#free.pop() ?? this.#values.length;
    this.#places.set(key, place);
    this.#values[place] = value;
  }

  delete(key: K): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    this.#values[place] = undefined;
    this.#free.push(place);
  }

  has(key: K): boolean {
    return this.#places.has(key);
  }

  /** All values, in no particular order. */
  values(): readonly V[] {
    return this.#values.filter((value) => value !== undefined);
  }
}
