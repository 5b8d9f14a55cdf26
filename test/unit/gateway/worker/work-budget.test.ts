// The time that closer looks may take on the event loop: each upstream has its own, and all together have one.

import { describe, expect, it } from 'vitest';
import { createWorkBudget } from '../../../../src/gateway/worker/inspection.js';

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
});
