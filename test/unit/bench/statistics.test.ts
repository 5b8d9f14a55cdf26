// What `npm run bench -- --against` concludes from samples: a wrong interval would make each of its
// statements worthless.

import { describe, expect, it } from 'vitest';
import {
  dearerBy,
  drawOrders,
  judgeRatios,
  launchInterval,
  medianInterval,
  medianOf,
  ratioInterval,
  wantsMore,
  widthOf,
} from '../../../bench/statistics.mjs';

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

/** Numbers below one, the same in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state / 2 ** 32;
  };
}

describe('the median', () => {
  it('[PRF-09] is the middle value, or the mean of the middle two, in whatever order they come', () => {
    expect(medianOf([3, 1, 2])).toBe(2);
    expect(medianOf([4, 1, 3, 2])).toBe(2.5);
    expect(medianOf([])).toBeNaN();
  });
});

describe('the interval of the median', () => {
  // Ranks of the binomial interval for 95 %, as tables of order statistics print them.
  it.each([
    [6, 1, 6],
    [8, 1, 8],
    [9, 2, 8],
    [10, 2, 9],
    [20, 6, 15],
    [25, 8, 18],
    [30, 10, 21],
    [50, 18, 33],
  ])('[PRF-09] of %i values lies between number %i and number %i', (count, low, high) => {
    expect(medianInterval(upTo(count).reverse())).toEqual({ low, high });
  });

  it('[PRF-09] of fewer than six values is none', () => {
    expect(medianInterval(upTo(5))).toBeUndefined();
  });

  it('[PRF-09] is moved by no outlier', () => {
    const values = upTo(20);
    values[19] = 1e9;
    expect(medianInterval(values)).toEqual({ low: 6, high: 15 });
  });

  it('[PRF-09] holds the true median in at least 95 % of a thousand draws', () => {
    const random = seeded(7);
    const holds = Array.from({ length: 1_000 }, () => {
      const interval = medianInterval(Array.from({ length: 20 }, random));
      return interval !== undefined && interval.low <= 0.5 && interval.high >= 0.5;
    });
    expect(holds.filter(Boolean).length).toBeGreaterThanOrEqual(945);
  });
});

describe('the interval of launches', () => {
  const apart = [0.97, 1.03, 0.98, 1.02, 0.99, 1.01].map((ratio) =>
    Array.from({ length: 20 }, (_, at) => ratio + at * 1e-6),
  );

  it('[PRF-09] is wider than that of the pairs where processes of a build differ', () => {
    const byLaunch = launchInterval(apart);
    const byPair = medianInterval(apart.flat());
    expect(widthOf(byLaunch)).toBeGreaterThan(byPair === undefined ? Number.NaN : widthOf(byPair));
  });

  it('[PRF-09] makes the outer bounds with that of the pairs, the same in each run', () => {
    const interval = ratioInterval(apart);
    const { low, high } = launchInterval(apart);
    const byPair = medianInterval(apart.flat());
    expect(interval).toEqual({
      low: Math.min(low, byPair?.low ?? Number.NaN),
      high: Math.max(high, byPair?.high ?? Number.NaN),
    });
    expect(ratioInterval(apart)).toEqual(interval);
  });
});

describe('the verdict', () => {
  const around = (ratio: number, spread: number) =>
    Array.from({ length: 6 }, () => [ratio - spread, ratio, ratio, ratio + spread]);

  it('[PRF-09] is none where the interval is wider than allowed or there are too few pairs', () => {
    expect(judgeRatios(around(1.2, 0.001), { minPairs: 20, maxWidth: 4 }).kind).toBe('result');
    expect(judgeRatios(around(1.2, 0.001), { minPairs: 25, maxWidth: 4 }).kind).toBe('none');
    const wide = [0.9, 0.95, 1, 1.05, 1.1, 1.15].map((ratio) => [ratio, ratio, ratio, ratio]);
    expect(judgeRatios(wide, { minPairs: 20, maxWidth: 4, maxDearer: 0 }).kind).toBe('none');
    expect(judgeRatios([[1.5, 1.5]], { minPairs: 20, maxWidth: 4, maxDearer: 0 })).toEqual({
      kind: 'none',
      median: 1.5,
      interval: undefined,
    });
  });

  it('[PRF-09] is dearer only where the lower end lies above what is allowed', () => {
    const bounds = { minPairs: 20, maxWidth: 4, maxDearer: 5 };
    expect(judgeRatios(around(1.051, 0), bounds).kind).toBe('dearer');
    expect(judgeRatios(around(1.049, 0), bounds).kind).toBe('result');
    expect(dearerBy({ low: 0.9, high: 1.2 })).toBe(0);
    expect(dearerBy({ low: 1.06, high: 1.2 })).toBeCloseTo(6);
  });

  it('[PRF-09] asks for more pairs below the least, and while there is no result up to the bound', () => {
    const bounds = { minPairs: 20, maxPairs: 40, maxWidth: 4 };
    const wide = (count: number) => upTo(count).map((at) => [1 + at / 10]);
    expect(
      wantsMore(
        upTo(19).map(() => [1]),
        bounds,
      ),
    ).toBe(true);
    expect(
      wantsMore(
        upTo(20).map(() => [1]),
        bounds,
      ),
    ).toBe(false);
    expect(wantsMore(wide(20), bounds)).toBe(true);
    expect(wantsMore(wide(39), bounds)).toBe(true);
    expect(wantsMore(wide(40), bounds)).toBe(false);
  });
});

describe('orders', () => {
  it('[PRF-09] put each of two first as often, and not always in the same places', () => {
    const random = seeded(3);
    const drawn = Array.from({ length: 20 }, () => drawOrders(4, random));
    for (const orders of drawn) expect(orders.filter(Boolean)).toHaveLength(2);
    expect(new Set(drawn.map(String)).size).toBeGreaterThan(1);
  });
});
