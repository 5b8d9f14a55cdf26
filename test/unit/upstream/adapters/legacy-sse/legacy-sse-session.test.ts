// What a legacy SSE server has sent for one request: delivered once and in order, whoever reads, within its bounds, and
// freed whole. One caller's part of what may be buffered: nobody takes the part of another, and all of it is given back.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BufferBudget,
  createMessageBuffer,
  createOwnerBufferBudget,
  type MessageBuffer,
  type MessageBufferSettings,
} from '../../../../../src/upstream/adapters/legacy-sse/legacy-sse-session.js';

const HELD = 1_000_000;

function box(more: Partial<MessageBufferSettings> = {}, budget: BufferBudget = { bytesLeft: HELD }): MessageBuffer {
  return createMessageBuffer({
    maxBytes: 100_000,
    budget,
    idleMs: 1_000,
    overflow: 'fail',
    ...more,
  });
}

/** Reads up to `count` messages, then leaves. */
async function readSome(buffer: MessageBuffer, count: number): Promise<readonly string[]> {
  const { items, leave } = buffer.read();
  const delivered: string[] = [];
  while (delivered.length < count) {
    const { value, done } = await items.next();
    if (done === true || value.kind !== 'message') break;
    delivered.push(value.text);
  }
  leave();
  return delivered;
}

describe('[LEG-09] a buffer', () => {
  it('delivers every message once and in order, over any change of readers (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ maxLength: 20 }), { maxLength: 30 }),
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 10 }),
        async (texts, breaks) => {
          const buffer = box();
          for (const text of texts) buffer.put(text);
          buffer.end('complete');
          const delivered: string[] = [];
          for (const count of [...breaks, texts.length + 1]) delivered.push(...(await readSome(buffer, count)));
          expect(delivered).toEqual(texts);
          expect(buffer.bytes).toBe(0);
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
          const buffer = box({ maxBytes, overflow }, budget);
          for (const text of texts) {
            buffer.put(text);
            expect(buffer.bytes).toBeLessThanOrEqual(maxBytes);
            expect(budget.bytesLeft).toBe(HELD - buffer.bytes);
          }
          buffer.drop();
          expect(budget.bytesLeft).toBe(HELD);
        },
      ),
    );
  });

  it('ends with an error where nobody reads and its bound is passed', async () => {
    const buffer = box({ maxBytes: 10 });
    const { items } = buffer.read();
    buffer.put('0123456789');
    buffer.put('one too many');
    expect((await items.next()).value).toEqual({
      kind: 'error',
      reason: 'upstream-protocol',
    });
  });

  it('counts the bytes of what it holds, whatever its characters', () => {
    const budget = { bytesLeft: HELD };
    const buffer = box({ maxBytes: 10 }, budget);
    buffer.put('\u00e9'.repeat(5));
    expect([buffer.bytes, budget.bytesLeft]).toEqual([10, HELD - 10]);
    buffer.put('\u00e9');
    expect(budget.bytesLeft).toBe(HELD);
  });

  it('passes over what it has dropped, and goes on', async () => {
    const buffer = box({ maxBytes: 4, overflow: 'drop-oldest' });
    const { items } = buffer.read();
    for (const text of ['a1', 'b2', 'c3']) buffer.put(text);
    expect((await items.next()).value).toEqual({ kind: 'message', text: 'b2' });
  });

  it('is read by the newest reader alone', async () => {
    const buffer = box();
    const first = buffer.read();
    const waiting = first.items.next();
    const second = buffer.read();
    expect((await waiting).done).toBe(true);
    buffer.put('one');
    expect((await second.items.next()).value).toEqual({ kind: 'message', text: 'one' });
    first.leave();
    expect(buffer.isRead).toBe(true);
    second.leave();
    expect(buffer.isRead).toBe(false);
  });

  it('ends a silence that is too long', async () => {
    const { items } = box({ idleMs: 1 }).read();
    expect((await items.next()).value).toEqual({ kind: 'error', reason: 'upstream-timeout' });
  });
});

describe('[LEG-09] the share of a caller', () => {
  it('is spent by that caller alone', () => {
    const total = { bytesLeft: 100 };
    const [one, other] = [createOwnerBufferBudget(total, 40), createOwnerBufferBudget(total, 40)];
    one.bytesLeft -= 41;
    expect(one.bytesLeft).toBeLessThan(0);
    expect(other.bytesLeft).toBe(40);
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
