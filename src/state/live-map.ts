// A table of what is under way: entries come and go with every exchange, and no value outlives its entry. In a
// Map whose values are objects it would: each table that it outgrows stays reachable from the one before, with
// all that it held, until a full collection. So the Map holds numbers, and the values stand apart; keys may stay.

/** Values by key. Given another value, a key forgets the first. */
export class LiveTable<K extends string | number, V extends object> {
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

  /** All values, in no order. */
  values(): readonly V[] {
    return this.#values.filter((value) => value !== undefined);
  }
}
