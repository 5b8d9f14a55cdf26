// How long a call waits for the answer of a form.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createApprovalPort } from '../../../src/approvals/port.js';
import { DisconnectController } from '../../../src/protocol/transport.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Waits for at most 50 seconds; resolves with how long it took. */
async function waited(isWaiting: (forMs: number) => boolean, leaveAfterMs?: number): Promise<number> {
  const startMs = performance.now();
  const port = createApprovalPort(
    {
      consult: () => Promise.reject(new Error('nothing is asked')),
      answer: () => Promise.reject(new Error('nothing is answered')),
      isWaiting: async () => isWaiting(performance.now() - startMs),
    },
    () => ({ publicBase: 'https://mcp.example.com', issuers: new Map() }),
  );
  const left = new DisconnectController();
  if (leaveAfterMs !== undefined) setTimeout(() => left.abort(), leaveAfterMs);
  let tookMs = Number.NaN;
  const done = port.waitForAnswer('an-id', 50_000, left).then(() => {
    tookMs = performance.now() - startMs;
  });
  await vi.advanceTimersByTimeAsync(120_000);
  await done;
  return tookMs;
}

it.each<readonly [string, (forMs: number) => boolean, number | undefined, number, number]>([
  ['until nobody answers any more', () => true, undefined, 50_000, 50_250],
  ['until it is answered, at whichever replica', (forMs) => forMs < 7_000, undefined, 7_000, 7_250],
  ['until its client is gone', () => true, 3_000, 3_000, 3_250],
  ['not at all where it is answered already', () => false, undefined, 0, 0],
])('waits %s', async (_, isWaiting, leaveAfterMs, atLeastMs, atMostMs) => {
  const tookMs = await waited(isWaiting, leaveAfterMs);
  expect(tookMs).toBeGreaterThanOrEqual(atLeastMs);
  expect(tookMs).toBeLessThanOrEqual(atMostMs);
});
