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
    expect([first.acquire('left'), first.acquire('left'), first.acquire('right')]).toEqual([
      ...[true, true, true],
    ]);
    expect(limits.forOne(own).acquire()).toBe(false);
    const second = limits.forOne(aggregate);
    expect([second.acquire('left'), second.acquire('right')]).toEqual([false, true]);
    expect(limits.forOne(aggregate).acquire('stranger')).toBe(false);
    first.release();
    first.release();
    const third = limits.forOne(own);
    expect([third.acquire(), third.acquire()]).toEqual([true, true]);
    expect(limits.forOne(own).acquire()).toBe(false);
    third.release();
    second.release();
  });
});
