// A table of what is under way finds what it was given under the newest value of a key, and only that.

import { describe, expect, it } from 'vitest';
import { LiveMap } from '../../../src/state/live-map.js';

describe('a table of what is under way', () => {
  it('finds each value by its key, and not after it was taken out', () => {
    const table = new LiveMap<string, { readonly n: number }>();
    table.set('a', { n: 1 });
    table.set('b', { n: 2 });
    table.delete('a');
    table.set('c', { n: 3 });
    expect([table.get('a'), table.get('b'), table.get('c')]).toEqual([
      undefined,
      { n: 2 },
      { n: 3 },
    ]);
    expect([table.has('a'), table.has('c'), table.size]).toEqual([false, true, 2]);
    expect(
      table
        .values()
        .map(({ n }) => n)
        .sort(),
    ).toEqual([2, 3]);
  });

  it('forgets the first value of a key that is given another', () => {
    const table = new LiveMap<number, { readonly n: number }>();
    table.set(1, { n: 1 });
    table.set(1, { n: 2 });
    expect([table.get(1), table.size, table.values().length]).toEqual([{ n: 2 }, 1, 1]);
    table.delete(1);
    table.delete(1);
    expect([table.get(1), table.size, table.values().length]).toEqual([undefined, 0, 0]);
  });

  it('knows the keys 1 and "1" apart', () => {
    const table = new LiveMap<string | number, { readonly n: number }>();
    table.set(1, { n: 1 });
    table.set('1', { n: 2 });
    table.delete(1);
    expect([table.get(1), table.get('1')]).toEqual([undefined, { n: 2 }]);
  });

  it('agrees with a Map over many comings and goings', () => {
    const table = new LiveMap<string, { readonly n: number }>();
    const map = new Map<string, { readonly n: number }>();
    for (let n = 0; n < 5_000; n++) {
      const key = `k${(n * 7_919) % 97}`;
      if (n % 3 === 0) {
        table.delete(key);
        map.delete(key);
      } else {
        table.set(key, { n });
        map.set(key, { n });
      }
      expect(table.get(key)).toEqual(map.get(key));
    }
    const numbers = (values: Iterable<{ readonly n: number }>) =>
      [...values].map(({ n }) => n).sort((a, b) => a - b);
    expect(numbers(table.values())).toEqual(numbers(map.values()));
    expect(table.size).toBe(map.size);
  });
});
