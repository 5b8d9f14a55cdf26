import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryLimits, createMemoryReplays } from '../../../src/state/memory.js';

// The window of limits under a clock of our own: never more than the limit in any span, never stuck,
// never without bounds.
describe('memory limits', () => {
  function clock(startMs = 0) {
    const time = { nowMs: startMs };
    return { time, nowMs: () => time.nowMs };
  }

  const MINUTE = { count: 3, windowMs: 60_000 };

  describe('memory limits', () => {
    it('refuses past the count, and says when to come back [P-64]', () => {
      const { time, nowMs } = clock(1_000);
      const limits = createMemoryLimits({ nowMs });
      for (let use = 0; use < 3; use++) expect(limits.take('k', MINUTE)).toEqual({ ok: true });
      const refused = limits.take('k', MINUTE);
      if (refused === 'unavailable' || refused.ok) throw new Error('expected a refusal');
      expect(refused.retryAfterMs).toBeGreaterThan(59_000);
      expect(refused.retryAfterMs).toBeLessThanOrEqual(60_000 * (17 / 16));
      time.nowMs += refused.retryAfterMs;
      expect(limits.take('k', MINUTE)).toEqual({ ok: true });
      expect(limits.take('other', MINUTE)).toEqual({ ok: true });
    });

    it('counts amounts beyond 32 bits, and refuses the one that exceeds the rest [P-67]', () => {
      const { time, nowMs } = clock(1_000);
      const limits = createMemoryLimits({ nowMs });
      const take = (amount: number) => limits.take('k', { count: 1e15, windowMs: 60_000, amount });
      expect(take(9e14)).toEqual({ ok: true });
      expect(take(1e14 + 1)).toMatchObject({ ok: false });
      expect(take(1e14)).toEqual({ ok: true });
      expect(take(0)).toEqual({ ok: true });
      expect(take(1)).toMatchObject({ ok: false });
      time.nowMs += 60_000 * (17 / 16) + 1;
      expect(take(1e15)).toEqual({ ok: true });
    });

    it('never lets more through in any span of a window, for any sequence of uses [P-64]', () => {
      const steps = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 120 });
      void fc.assert(
        fc.property(steps, fc.integer({ min: 1, max: 5 }), (waits, count) => {
          const { time, nowMs } = clock(7);
          const limits = createMemoryLimits({ nowMs });
          const passed: number[] = [];
          for (const wait of waits) {
            time.nowMs += wait;
            const answer = limits.take('k', { count, windowMs: 100 });
            if (answer === 'unavailable') throw new Error('unavailable');
            if (answer.ok) passed.push(time.nowMs);
            else {
              // Waiting as told is always enough.
              time.nowMs += answer.retryAfterMs;
              expect(limits.take('k', { count, windowMs: 100 })).toEqual({ ok: true });
              passed.push(time.nowMs);
            }
          }
          for (const [index, at] of passed.entries()) {
            const last = passed[index + count];
            if (last !== undefined) expect(last - at).toBeGreaterThanOrEqual(100);
          }
        }),
      );
    });

    it('does not forget what was used when its table is full, and shrinks when idle [P-65]', () => {
      const { time, nowMs } = clock();
      const limits = createMemoryLimits({ nowMs, maxKeys: 4 });
      const one = { count: 1, windowMs: 1_000 };
      for (const key of ['a', 'b', 'c', 'd']) expect(limits.take(key, one)).toEqual({ ok: true });
      expect(limits.take('e', one)).toBe('unavailable');
      expect(limits.take('a', one)).toMatchObject({ ok: false });
      expect(limits.size).toBe(4);
      time.nowMs += 5_000;
      expect(limits.take('e', one)).toEqual({ ok: true });
      for (let use = 0; use < 3; use++) limits.take('e', one);
      expect(limits.size).toBe(1);
    });

    it('ignores a clock that goes back [P-64]', () => {
      const { time, nowMs } = clock(1_000_000);
      const limits = createMemoryLimits({ nowMs });
      const one = { count: 1, windowMs: 1_000 };
      expect(limits.take('k', one)).toEqual({ ok: true });
      time.nowMs -= 500_000;
      expect(limits.take('k', one)).toMatchObject({ ok: false });
    });
  });
});

describe('memory replays', () => {
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
      const answers = Array.from({ length: 6 }, (_, index) => replays.useOnce(`greedy-${index}`, 1_000, 'greedy'));
      expect(answers).toEqual([true, true, true, true, 'unavailable', 'unavailable']);
      expect(replays.useOnce('one', 1_000, 'modest')).toBe(true);
      nowMs = 2_500;
      expect(replays.useOnce('greedy-9', 4_000, 'greedy')).toBe(true);
    });
  });
});
