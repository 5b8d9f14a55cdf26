// What a channel has said to one exchange: told once and in order, however often its reader breaks off, within
// its bounds, and freed whole.
// One caller's part of what channels may hold: nobody takes the room of another, and all of it is given back.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BufferBudget,
  createEventBuffer,
  createOwnerBufferBudget,
  type EventBuffer,
  type EventBufferSettings,
} from '../../../../../src/upstream/adapters/legacy-sse/session.js';

const HELD = 1_000_000;

function box(more: Partial<EventBufferSettings> = {}, budget: BufferBudget = { bytesLeft: HELD }): EventBuffer {
  return createEventBuffer({
    key: '7',
    maxBytes: 100_000,
    budget,
    idleMs: 1_000,
    overflow: 'fail',
    now: Date.now,
    ...more,
  });
}

/** Reads up to `count` messages after an event, then leaves; what was told, and the last event's number. */
async function readSome(mailbox: EventBuffer, after: number, count: number) {
  const reading = mailbox.read(after, { isPrimed: false });
  const delivered: string[] = [];
  let at = after;
  while (reading !== undefined && delivered.length < count) {
    const { value, done } = await reading.items.next();
    if (done === true || value.kind !== 'message') break;
    delivered.push(value.text);
    at = Number(value.eventId?.split('-')[1]);
  }
  reading?.leave();
  return { delivered, at };
}

describe('[LEG-09] a mailbox', () => {
  it('tells every message once and in order, over any breaks (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 20 }), { maxLength: 30 }),
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 10 }),
        async (texts, breaks) => {
          const mailbox = box();
          for (const text of texts) mailbox.put(text);
          mailbox.end('complete');
          let at = 0;
          const delivered: string[] = [];
          for (const count of [...breaks, texts.length + 1]) {
            const some = await readSome(mailbox, at, count);
            delivered.push(...some.delivered);
            at = some.at;
          }
          expect(delivered).toEqual(texts);
        },
      ),
    );
  });

  it('gives everything back that it held (property)', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 200 }), { maxLength: 30 }),
        fc.integer({ min: 0, max: 500 }),
        fc.constantFrom('drop-oldest' as const, 'fail' as const),
        (texts, maxBytes, overflow) => {
          const budget = { bytesLeft: HELD };
          const mailbox = box({ maxBytes, overflow }, budget);
          for (const text of texts) {
            mailbox.put(text);
            expect(mailbox.bytes).toBeLessThanOrEqual(maxBytes);
            expect(budget.bytesLeft).toBe(HELD - mailbox.bytes);
          }
          mailbox.drop();
          expect(budget.bytesLeft).toBe(HELD);
        },
      ),
    );
  });

  it('ends with a fault where nobody reads and its bound is passed', async () => {
    const mailbox = box({ maxBytes: 10 });
    const reading = mailbox.read(0, { isPrimed: false });
    mailbox.put('0123456789');
    mailbox.put('one too many');
    expect(mailbox.read(0, { isPrimed: false })).toBeUndefined();
    expect((await reading?.items.next())?.value).toEqual({
      kind: 'error',
      reason: 'upstream-protocol',
    });
  });

  it('counts the bytes of what it holds, whatever its characters', () => {
    const budget = { bytesLeft: HELD };
    const mailbox = box({ maxBytes: 10 }, budget);
    mailbox.put('\u00e9'.repeat(5));
    expect([mailbox.bytes, budget.bytesLeft]).toEqual([10, HELD - 10]);
    mailbox.put('\u00e9');
    expect(budget.bytesLeft).toBe(HELD);
  });

  it('passes over what it has forgotten, and goes on', async () => {
    const mailbox = box({ maxBytes: 4, overflow: 'drop-oldest' });
    const reading = mailbox.read(0, { isPrimed: false });
    for (const text of ['a1', 'b2', 'c3']) mailbox.put(text);
    expect((await reading?.items.next())?.value).toMatchObject({ text: 'b2' });
    expect(mailbox.read(0, { isPrimed: false })).toBeUndefined();
  });

  it('is read by the newest reader alone', async () => {
    const mailbox = box();
    const first = mailbox.read(0, { isPrimed: false });
    const waiting = first?.items.next();
    const second = mailbox.read(0, { isPrimed: true });
    expect((await waiting)?.done).toBe(true);
    expect((await second?.items.next())?.value).toEqual({ kind: 'primed', eventId: '7-0' });
    first?.leave();
    expect(mailbox.isRead).toBe(true);
    second?.leave();
    expect(mailbox.isRead).toBe(false);
  });

  it('ends a silence that is too long', async () => {
    const reading = box({ idleMs: 1 }).read(0, { isPrimed: false });
    expect((await reading?.items.next())?.value).toEqual({
      kind: 'error',
      reason: 'upstream-timeout',
    });
  });
});

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
