// One caller's part of what channels may hold: nobody takes the room of another, and all of it is given back.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createOwnerBufferBudget } from '../../../../../src/upstream/adapters/legacy-sse/event-buffer.js';

describe('[LEG-09] the share of a caller', () => {
  it('is spent by that caller alone', () => {
    const total = { bytesLeft: 100 };
    const [one, other] = [createOwnerBufferBudget(total, 40), createOwnerBufferBudget(total, 40)];
    one.bytesLeft -= 41;
    expect(one.bytesLeft).toBeLessThan(0);
    expect(other.bytesLeft).toBe(40);
    expect([one.isHalfUsed, other.isHalfUsed]).toEqual([true, false]);
  });

  it('ends where everyone together holds as much as may be held', () => {
    const total = { bytesLeft: 50 };
    const [one, other] = [createOwnerBufferBudget(total, 40), createOwnerBufferBudget(total, 40)];
    one.bytesLeft -= 40;
    other.bytesLeft -= 11;
    expect(other.bytesLeft).toBe(-1);
  });

  it('is given back whole, in whatever order', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 60 }))), (taken) => {
        const total = { bytesLeft: 100 };
        const shares = [
          createOwnerBufferBudget(total, 40),
          createOwnerBufferBudget(total, 40),
          createOwnerBufferBudget(total, 40),
        ];
        for (const [at, bytes] of taken) (shares[at] ?? total).bytesLeft -= bytes;
        for (const [at, bytes] of taken.toReversed()) (shares[at] ?? total).bytesLeft += bytes;
        expect(total.bytesLeft).toBe(100);
        expect(shares.map(({ bytesLeft }) => bytesLeft)).toEqual([40, 40, 40]);
      }),
    );
  });
});
