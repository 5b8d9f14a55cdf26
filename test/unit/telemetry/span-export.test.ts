// Spans on their way to a receiver: none waits for another's request, and what does not fit is dropped and counted.

import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { GatewayEvents } from '../../../src/policy/events.js';
import { createSpanExport, type PostOutcome } from '../../../src/telemetry/span-export.js';
import { sampleRecord } from '../audit/samples.js';

const TRACE = {
  ...{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), upstreamSpanId: '3'.repeat(16) },
  ...{ parentId: undefined, isSampled: true, isCallers: false, links: [] },
};

beforeEach(() => vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => vi.useRealTimers());

function open(answer: (body: string) => Promise<PostOutcome>) {
  const counts: GatewayEvents['spans'][] = [];
  const bodies: string[] = [];
  const spans = createSpanExport({
    post(body) {
      bodies.push(body);
      return answer(body);
    },
    emit: (_name, event) => counts.push(event as GatewayEvents['spans']),
    newSpanId: () => '4'.repeat(16),
    hashCaller: undefined,
    resource: { 'service.name': 'sallyport' },
    version: '1',
  });
  const count = (outcome: string) =>
    counts.filter((one) => one.outcome === outcome).reduce((sum, one) => sum + one.count, 0);
  return { spans, bodies, count };
}

const OK: PostOutcome = { ok: true, status: 200 };

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await turn();
}

describe('[TRC-09] the export of spans', () => {
  it('sends together what came within a second', async () => {
    const { spans, bodies, count } = open(async () => OK);
    for (let at = 0; at < 3; at += 1) spans.add(sampleRecord({ trace: TRACE }), 5);
    expect(bodies).toHaveLength(0);
    await pass(1_000);
    expect(bodies).toHaveLength(1);
    expect(count('exported')).toBeGreaterThanOrEqual(3);
    expect(spans.error()).toBeUndefined();
  });

  it('drops and counts what does not fit while the receiver hangs', async () => {
    const { spans, bodies, count } = open(() => new Promise(() => undefined));
    for (let at = 0; at < 10_000; at += 1) spans.add(sampleRecord({ trace: TRACE }), 5);
    await pass(1_000);
    expect(bodies).toHaveLength(1);
    expect(count('dropped')).toBeGreaterThan(0);
    expect(spans.error()).toContain('dropped');
    const closed = spans.close();
    await pass(2_000);
    await closed;
  });

  it.each([
    ['an answer that may change', { ok: true, status: 503 } as PostOutcome, 4],
    ['an answer that will not', { ok: true, status: 400 } as PostOutcome, 1],
    ['an address that is not allowed', { ok: false, isLasting: true, detail: 'is elsewhere' } as PostOutcome, 1],
    ['nobody there', { ok: false, isLasting: false, detail: 'could not be reached' } as PostOutcome, 4],
  ])('gives up after as many attempts as make sense: %s', async (_what, outcome, attempts) => {
    const { spans, bodies, count } = open(async () => outcome);
    spans.add(sampleRecord({ trace: TRACE }), 5);
    await pass(1_000);
    for (const ms of [1_000, 5_000, 20_000]) await pass(ms);
    expect(bodies).toHaveLength(attempts);
    expect(count('failed')).toBeGreaterThan(0);
    expect(spans.error()).toContain('spans do not arrive');
  });

  it('sends what waits when it is closed', async () => {
    const { spans, bodies } = open(async () => OK);
    spans.add(sampleRecord({ trace: TRACE }), 5);
    await spans.close();
    expect(bodies).toHaveLength(1);
  });

  it('counts what it has not sent when it is closed as dropped', async () => {
    const { spans, count } = open(async () => ({ ok: true, status: 503 }));
    for (let at = 0; at < 2_000; at += 1) spans.add(sampleRecord({ trace: TRACE }), 5);
    await pass(1_000);
    const closed = spans.close();
    await pass(2_000);
    await closed;
    expect(count('failed')).toBe(1_024);
    expect(count('dropped') + count('failed')).toBeGreaterThanOrEqual(2_000);
  });
});
