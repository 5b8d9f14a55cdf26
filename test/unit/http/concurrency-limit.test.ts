import { describe, expect, it } from 'vitest';
import { createConcurrencyLimits } from '../../../src/http/server.js';

describe('[MRG-19] places at an upstream', () => {
  it('are shared by its own path and by every endpoint, and given back once', () => {
    const limits = createConcurrencyLimits();
    const aggregate = {
      upstream: 'all',
      backends: new Map([
        ['left', 1],
        ['right', 2],
      ]),
      maxRequestBytes: 1,
      concurrency: 0,
    };
    const own = { upstream: 'left', maxRequestBytes: 1, concurrency: 1 };
    const first = limits.forOne(aggregate);
    expect([first.enter('left'), first.enter('left'), first.enter('right')]).toEqual([
      ...[true, true, true],
    ]);
    expect(limits.forOne(own).enter()).toBe(false);
    const second = limits.forOne(aggregate);
    expect([second.enter('left'), second.enter('right')]).toEqual([false, true]);
    expect(limits.forOne(aggregate).enter('stranger')).toBe(false);
    first.leave();
    first.leave();
    const third = limits.forOne(own);
    expect([third.enter(), third.enter()]).toEqual([true, true]);
    expect(limits.forOne(own).enter()).toBe(false);
    third.leave();
    second.leave();
  });
});
