// The time that closer looks may take on the event loop: each upstream and each caller has its own, and all together
// have one.

import { describe, expect, it } from 'vitest';
import { createWorkBudget } from '../../../../src/gateway/worker/work-budget.js';

const EACH = { burst: 30, perSecond: 50 };
const ALL = { burst: 50, perSecond: 100 };

describe('a budget of work', () => {
  it('[PRF-11] is that of an upstream, and comes back with time', () => {
    let nowMs = 0;
    const budget = createWorkBudget({ each: EACH, all: ALL, now: () => nowMs });
    budget.spend('greedy', 40);
    expect([budget.hasLeft('greedy'), budget.hasLeft('modest')]).toEqual([false, true]);
    nowMs = 190;
    expect(budget.hasLeft('greedy')).toBe(false);
    nowMs = 210;
    expect(budget.hasLeft('greedy')).toBe(true);
    nowMs = 1_000_000;
    expect(budget.hasLeft('greedy')).toBe(true);
    budget.spend('greedy', 31);
    expect(budget.hasLeft('greedy')).toBe(false);
  });

  it('[PRF-11] is that of all: many upstreams cannot take turns to use the loop up', () => {
    let nowMs = 0;
    const budget = createWorkBudget({ each: EACH, all: ALL, now: () => nowMs });
    for (const upstream of ['a', 'b']) budget.spend(upstream, 29);
    expect(budget.hasLeft('c')).toBe(false);
    nowMs = 200;
    expect(budget.hasLeft('c')).toBe(true);
  });

  it('[PRF-13] is that of a caller: half of what an upstream has, at whatever upstreams', () => {
    let nowMs = 0;
    const budget = createWorkBudget({ each: EACH, all: ALL, now: () => nowMs });
    budget.spend('one', 8, 'greedy');
    budget.spend('two', 8, 'greedy');
    expect([budget.hasLeft('three', 'greedy'), budget.hasLeft('three', 'modest')]).toEqual([
      ...[false, true],
    ]);
    expect(budget.hasLeft('three')).toBe(true);
    nowMs = 50;
    expect(budget.hasLeft('three', 'greedy')).toBe(true);
  });

  it('[PRF-13] is kept for a bounded number of callers, and never forgotten while it is used up', () => {
    let nowMs = 0;
    const all = { burst: 1_000_000, perSecond: 0 };
    const budget = createWorkBudget({ each: all, eachCaller: EACH, all, now: () => nowMs });
    budget.spend('one', 1_000, 'greedy');
    for (let index = 0; index < 3_000; index += 1) {
      nowMs += 1;
      expect(budget.hasLeft('one', `modest ${index}`)).toBe(true);
    }
    expect(budget.hasLeft('one', 'greedy')).toBe(false);
  });
});
