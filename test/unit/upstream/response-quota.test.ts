// The room for answers: bounded for all, a part for each, first come first served in turns; who waits cannot
// block anybody for good, and what is given back is there for the next.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type BufferReservation,
  createResponseBufferQuota,
  type ReservationOutcome,
} from '../../../src/upstream/response-quota.js';

const BOUNDS = { maxBytes: 400, shares: 4, maxWaitMs: 1_000 };
const RATE = { bytesPerSecond: 100, burstBytes: 100, unmeteredBytes: 10 };

describe('the room for answers', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const holding = (
    held: BufferReservation,
    bytes: number,
  ): Promise<ReservationOutcome | 'at once'> => Promise.resolve(held.reserve(bytes) ?? 'at once');

  it('[PRF-12] is given at once while there is some, and each upstream has its part', async () => {
    const quota = createResponseBufferQuota(BOUNDS);
    expect(quota.openReservation('one').reserve(60)).toBeUndefined();
    const second = quota.openReservation('one');
    const late = holding(second, 60);
    expect(quota.openReservation('two').reserve(100)).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await late).toBe('overloaded');
    expect(quota.heldBytes).toBe(160);
  });

  it('[PRF-12] is given to who waited once it was given back, upstreams in turns', async () => {
    const quota = createResponseBufferQuota({ ...BOUNDS, maxBytes: 100, quotaDivisor: 1 });
    const first = quota.openReservation('zero');
    expect(first.reserve(100)).toBeUndefined();
    const came: string[] = [];
    const entered = ['one', 'one', 'two'].map((upstream, at) => {
      const held = quota.openReservation(upstream);
      void holding(held, 50).then((how) => came.push(`${upstream} ${at} ${how}`));
      return held;
    });
    first.release();
    await vi.advanceTimersByTimeAsync(1);
    expect(came).toEqual(['one 0 reserved', 'two 2 reserved']);
    entered[0]?.release();
    await vi.advanceTimersByTimeAsync(1);
    expect(came).toEqual(['one 0 reserved', 'two 2 reserved', 'one 1 reserved']);
    for (const held of entered) held.release();
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] lets the oldest go on, so that answers that grow cannot all wait for each other', async () => {
    const quota = createResponseBufferQuota({ ...BOUNDS, maxBytes: 100, quotaDivisor: 1 });
    const growing = Array.from({ length: 4 }, () => quota.openReservation('one'));
    for (const held of growing) expect(held.reserve(25)).toBeUndefined();
    const outcomes = growing.map((held) => holding(held, 50));
    const done: number[] = [];
    for (const [at, held] of growing.entries()) {
      expect(await outcomes[at]).not.toBe('overloaded');
      done.push(at);
      held.release();
    }
    expect(done).toEqual([0, 1, 2, 3]);
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] one answer may always have, however large it is', () => {
    const quota = createResponseBufferQuota(BOUNDS);
    expect(quota.openReservation('one').reserve(390)).toBeUndefined();
  });

  it('[PRF-12] is not held by who gave up waiting, nor twice by who holds less than before', async () => {
    const quota = createResponseBufferQuota(BOUNDS);
    const held = quota.openReservation('one');
    expect(held.reserve(100)).toBeUndefined();
    const waiting = quota.openReservation('one');
    const outcome = holding(waiting, 50);
    waiting.release();
    expect(await outcome).toBe('overloaded');
    expect(held.reserve(10)).toBeUndefined();
    expect(quota.heldBytes).toBe(10);
    held.release();
    held.release();
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] is given at a rate to each upstream, and holds up no other', async () => {
    const quota = createResponseBufferQuota({ maxBytes: 1_000, quotaDivisor: 1, ...RATE });
    expect(quota.openReservation('one').reserve(110)).toBeUndefined();
    const came: string[] = [];
    for (const name of ['second', 'third'])
      void holding(quota.openReservation('one'), 110).then((how) => came.push(`${name} ${how}`));
    expect(quota.openReservation('one').reserve(10)).toBeUndefined();
    expect(quota.openReservation('two').reserve(110)).toBeUndefined();
    await vi.advanceTimersByTimeAsync(100);
    expect(came).toEqual(['second reserved']);
    await vi.advanceTimersByTimeAsync(800);
    expect(came).toEqual(['second reserved']);
    await vi.advanceTimersByTimeAsync(300);
    expect(came).toEqual(['second reserved', 'third reserved']);
  });
});
