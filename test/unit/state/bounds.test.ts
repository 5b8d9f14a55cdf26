// What is forgotten where too much is to be remembered: the oldest, and of an owner with too much, its own.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BoundedMap, createQuota, createRate, OwnedMap } from '../../../src/state/bounds.js';

describe('a bounded map', () => {
  it('law: keeps the entries that were set or used last, and never more than its bound', () => {
    const step = fc.record({
      key: fc.integer({ min: 0, max: 12 }),
      does: fc.constantFrom('set', 'set', 'use', 'delete', 'clear'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
        const map = new BoundedMap<number, number>(5);
        let newest: [number, number][] = [];
        for (const [at, { key, does }] of steps.entries()) {
          const known = newest.find(([one]) => one === key);
          const others = newest.filter(([one]) => one !== key);
          if (does === 'set') newest = [...others, [key, at]];
          else if (does === 'delete') newest = others;
          else if (does === 'clear') newest = [];
          else if (known !== undefined) newest = [...others, known];
          newest = newest.slice(-5);
          if (does === 'set') map.set(key, at);
          else if (does === 'delete') map.delete(key);
          else if (does === 'clear') map.clear();
          else expect(map.use(key)).toBe(known?.[1]);
          expect([...map]).toEqual(newest);
        }
      }),
    );
  });
});

describe('a map of entries with weights', () => {
  it('keeps no more than its weight, and nothing that is heavier', () => {
    const map = new BoundedMap<string, number>(3, 10);
    map.set('a', 1, 4);
    map.set('b', 2, 4);
    expect([map.weight, map.use('a')]).toEqual([8, 1]);
    map.set('c', 3, 4);
    expect([...map]).toEqual([
      ['a', 1],
      ['c', 3],
    ]);
    map.set('a', 4, 6);
    expect([map.weight, map.delete('c'), map.weight]).toEqual([10, true, 6]);
    for (const key of 'def') map.set(key, 0, 1);
    expect([[...map.keys()].join(''), map.weight]).toEqual(['def', 3]);
    map.set('heavy', 5, 11);
    expect([map.has('heavy'), map.size, map.weight]).toEqual([false, 3, 3]);
    map.clear();
    map.set('g', 6, 10);
    expect([[...map.keys()].join(''), map.weight]).toEqual(['g', 10]);
  });
});

describe('a map with owners', () => {
  const small = () => new OwnedMap<string, number>({ max: 4, maxPerOwner: 2 });
  const valuesOf = (map: OwnedMap<string, number>, keys: string) => [...keys].map((key) => map.get(key));

  it('forgets the own oldest of an owner with too many', () => {
    const map = small();
    map.set('a', 1, 'ann');
    map.set('x', 2, 'ben');
    map.set('b', 3, 'ann');
    map.set('a', 4, 'ann');
    map.set('c', 5, 'ann');
    expect(valuesOf(map, 'abcx')).toEqual([4, undefined, 5, 2]);
  });

  it('forgets the oldest of all where all have too many, and counts what was deleted no more', () => {
    const map = small();
    for (const [at, key] of [...'abcd'].entries()) map.set(key, at, `owner of ${key}`);
    map.delete('b');
    map.set('e', 4, 'owner of a');
    expect(valuesOf(map, 'abcde')).toEqual([0, undefined, 2, 3, 4]);
    map.set('f', 5, 'owner of f');
    expect([...map.keys()]).toEqual(['c', 'd', 'e', 'f']);
  });

  it('forgets none that may not be forgotten', () => {
    const map = new OwnedMap<string, number>({
      max: 3,
      maxPerOwner: 2,
      mayForget: (value) => value > 0,
    });
    map.set('a', 0, 'ann');
    map.set('b', 1, 'ann');
    map.set('c', 2, 'ann');
    map.set('d', 0, 'ann');
    map.set('e', 0, 'ann');
    expect(valuesOf(map, 'abcde')).toEqual([0, undefined, undefined, 0, 0]);
  });

  it('counts what entries weigh, and keeps none that is heavier than its owner may have', () => {
    const map = new OwnedMap<string, number>({ max: 10, maxPerOwner: 6 });
    map.set('a', 1, 'ann', 3);
    map.set('b', 2, 'ann', 3);
    map.set('c', 3, 'ann', 4);
    expect(valuesOf(map, 'abc')).toEqual([undefined, undefined, 3]);
    map.set('x', 4, 'ben', 6);
    map.set('y', 5, 'cleo', 2);
    expect(valuesOf(map, 'cxy')).toEqual([undefined, 4, 5]);
    map.set('x', 6, 'ben', 7);
    expect(valuesOf(map, 'xy')).toEqual([undefined, 5]);
  });

  it('gives a key to the owner who set it last', () => {
    const map = small();
    map.set('a', 1, 'ann');
    map.set('a', 2, 'ben');
    map.set('b', 3, 'ann');
    map.set('c', 4, 'ann');
    expect(valuesOf(map, 'abc')).toEqual([2, 3, 4]);
  });
});

describe('a quota', () => {
  it('law: lets no owner and not all together exceed their bounds, and counts what is given back', () => {
    const step = fc.record({
      owner: fc.constantFrom('ann', 'ben', 'cleo'),
      takes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const quota = createQuota({ total: 5, perOwner: 3 });
        const held = new Map<string, number>();
        for (const { owner, takes } of steps) {
          const own = held.get(owner) ?? 0;
          const all = [...held.values()].reduce((sum, each) => sum + each, 0);
          expect([quota.usedBy(owner), quota.used]).toEqual([own, all]);
          if (takes) {
            expect(quota.take(owner)).toBe(own < 3 && all < 5);
            held.set(owner, quota.usedBy(owner));
          } else if (own > 0) {
            quota.give(owner);
            held.set(owner, own - 1);
          }
        }
      }),
    );
  });

  it('lets who holds nothing take more than its bound, where the total has it', () => {
    const quota = createQuota({ total: 10, perOwner: 4 });
    expect([quota.take('ann', 6), quota.take('ann', 1)]).toEqual([true, false]);
    expect([quota.fits('ben', 5), quota.take('ben', 4)]).toEqual([false, true]);
    quota.give('ann', 6);
    quota.give('ben', 4);
    expect(quota.take('cleo', 99)).toBe(true);
    expect(quota.take('ann')).toBe(false);
  });
});

describe('a rate', () => {
  it('is that of each key, comes back with time up to its burst, and not from a clock set back', () => {
    let nowMs = 1_000;
    const rate = createRate({ burst: 30, perSecond: 50 }, () => nowMs);
    rate.spend(40, 'greedy');
    expect([rate.left('greedy'), rate.left('modest')]).toEqual([-10, 30]);
    nowMs -= 500;
    expect(rate.left('greedy')).toBe(-10);
    nowMs += 400;
    expect(rate.left('greedy')).toBe(10);
    nowMs += 100_000;
    expect(rate.left('greedy')).toBe(30);
  });
});
