// What is counted: of each owner and in total, given back or refilled with time.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createQuota, createRate } from '../../../src/state/quota.js';

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
