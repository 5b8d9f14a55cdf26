// What is waited for counts as the upstream's time, however it ends; what is there at once does not.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { fold, openRecord } from '../../../src/policy/record.js';
import type { UpstreamResponse } from '../../../src/protocol/transport.js';
import { measureWaits } from '../../../src/proxy/response-forwarding.js';

const WAIT_MS = 20;
/** Timers may be early by less than a millisecond. */
const COUNTED_MS = WAIT_MS - 1;

function counted(next: UpstreamResponse['next']) {
  const record = openRecord({
    ...{ id: 'one', receivedAt: 0, startedMs: 0, upstream: 'one', httpMethod: 'POST', remoteAddress: '127.0.0.1' },
  });
  fold(record, { latency: { upstream: 5 } });
  const answer = {
    kind: 'response',
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    readBody: () => 'too-large',
    next,
    release: vi.fn(),
    abort: vi.fn(),
  } satisfies UpstreamResponse;
  return { record, answer, measured: measureWaits(record, answer) };
}

describe('the time of an upstream', () => {
  it('is what was waited for', async () => {
    const { record, measured } = counted(() => sleep(WAIT_MS, new Uint8Array([1])));
    expect(await measured.next()).toEqual(new Uint8Array([1]));
    expect(record.latency.upstream).toBeGreaterThanOrEqual(5 + COUNTED_MS);
  });

  it('is counted of a wait that failed, which still fails', async () => {
    const { record, measured } = counted(async () => {
      await sleep(WAIT_MS);
      throw new Error('broken');
    });
    await expect(measured.next()).rejects.toThrow('broken');
    expect(record.latency.upstream).toBeGreaterThanOrEqual(5 + COUNTED_MS);
  });

  it('is nothing where all is there at once', () => {
    const { record, measured } = counted(() => undefined);
    expect([measured.next(), measured.readBody(1, 1)]).toEqual([undefined, 'too-large']);
    expect(record.latency.upstream).toBe(5);
  });

  it('leaves the answer as it is', () => {
    const { answer, measured } = counted(() => undefined);
    expect([measured.kind, measured.status, measured.headers]).toEqual(['response', 200, answer.headers]);
    measured.release();
    measured.abort();
    expect([answer.release, answer.abort].map((one) => one.mock.calls.length)).toEqual([1, 1]);
  });
});
