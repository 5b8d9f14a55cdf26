// A bounded map that approximates LRU eviction by two generations: when the young one is full it becomes the old one,
// and what is not read until the next swap is dropped. It uses no clock.

export type GenerationCache<Value> = {
  get(key: string): Value | undefined;
  set(key: string, value: Value): void;
  /** Never more than `maxEntries`. */
  size(): number;
};

/** Creates a cache of at most `maxEntries` (two or more). Reading and writing take constant time. */
export function createGenerationCache<Value>(maxEntries: number): GenerationCache<Value> {
  const maxYoung = Math.max(1, Math.floor(maxEntries / 2));
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();

  function set(key: string, value: Value): void {
    if (young.size >= maxYoung && !young.has(key)) {
      old = young;
      young = new Map();
    }
    young.set(key, value);
    old.delete(key);
  }

  return {
    get(key) {
      const value = young.get(key);
      if (value !== undefined) return value;
      const aged = old.get(key);
      if (aged !== undefined) set(key, aged);
      return aged;
    },
    set,
    size: () => young.size + old.size,
  };
}
