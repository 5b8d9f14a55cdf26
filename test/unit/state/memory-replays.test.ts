import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryReplays } from '../../../src/state/memory.js';

describe('the memory of what was used', () => {
  it('[BND-29] lets each thing be used once within its life, whatever came between', () => {
    const step = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      lifeMs: fc.integer({ min: 1, max: 50 }),
      waitMs: fc.integer({ min: 0, max: 30 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let nowMs = 0;
        const replays = createMemoryReplays(() => nowMs);
        const until = new Map<string, number>();
        for (const { key, lifeMs, waitMs } of steps) {
          nowMs += waitMs;
          const isLive = (until.get(key) ?? 0) > nowMs;
          expect(replays.useOnce(key, nowMs + lifeMs, key)).toBe(!isLive);
          if (!isLive) until.set(key, nowMs + lifeMs);
        }
      }),
    );
  });

  it('[BND-29] is bounded, forgets nothing before its time, and says so when it is full', () => {
    let nowMs = 0;
    const replays = createMemoryReplays(() => nowMs, 3);
    for (const key of ['a', 'b', 'c']) expect(replays.useOnce(key, 1_000, key)).toBe(true);
    expect(replays.useOnce('d', 1_000, 'd')).toBe('unavailable');
    expect(replays.useOnce('a', 1_000, 'a')).toBe(false);
    expect(replays.size).toBe(3);
    nowMs = 2_500;
    expect(replays.useOnce('d', 3_000, 'd')).toBe(true);
    expect(replays.size).toBe(1);
  });

  it('[BND-29] gives no owner all of it, and its share back in time', () => {
    let nowMs = 0;
    const replays = createMemoryReplays(() => nowMs, 16);
    const answers = Array.from({ length: 6 }, (_, index) =>
      replays.useOnce(`greedy-${index}`, 1_000, 'greedy'),
    );
    expect(answers).toEqual([true, true, true, true, 'unavailable', 'unavailable']);
    expect(replays.useOnce('one', 1_000, 'modest')).toBe(true);
    nowMs = 2_500;
    expect(replays.useOnce('greedy-9', 4_000, 'greedy')).toBe(true);
  });
});
