import { describe, expect, it } from 'vitest';
import { type Finding, fold, MAX_FINDINGS, openRecord } from '../../../src/policy/record.js';

function finding(detector: string, path: string): Finding {
  return { detector, direction: 'to-client', path, count: 1, action: 'drop' };
}

function open() {
  return openRecord({
    ...{ id: 'one', receivedAt: 0, startedMs: 0, upstream: 'one', httpMethod: 'POST', remoteAddress: '127.0.0.1' },
  });
}

describe('the findings of a record', () => {
  it('[H-05] count what is found again', () => {
    const record = open();
    for (let i = 0; i < 1000; i += 1) fold(record, { findings: [finding('foreign-message', '')] });
    fold(record, { findings: [finding('foreign-message', '/result')] });
    expect(record.findings).toEqual([
      { ...finding('foreign-message', ''), count: 1000 },
      finding('foreign-message', '/result'),
    ]);
  });

  it('[H-05] stay few, and each detector keeps its place behind a flood of another', () => {
    const record = open();
    fold(record, { findings: Array.from({ length: 10_000 }, (_, index) => finding('noise', `/${index}`)) });
    fold(record, { findings: ['0', '1'].map((index) => finding('secret', `/result/content/${index}/text`)) });
    const { findings } = record;
    expect(findings).toHaveLength(MAX_FINDINGS + 1);
    expect(findings.reduce((sum, { count }) => sum + count, 0)).toBe(10_002);
    expect(findings.at(-1)).toEqual({ ...finding('secret', ''), count: 2 });
  });
});

describe('a fact that is folded into a record', () => {
  const decided = { verdict: 'allow', policy: 'p', rule: 'r', stage: 'decide' } as const;

  it('replaces what it says, and leaves what it does not', () => {
    const record = open();
    fold(record, { decision: decided, client: { session: 'one' }, target: { name: 'echo' } });
    fold(record, { decision: { rule: undefined }, client: { version: '2025-11-25' } });
    expect(record).toMatchObject({
      decision: { ...decided, rule: undefined },
      client: { ip: '127.0.0.1', session: 'one', version: '2025-11-25' },
      target: { name: 'echo' },
    });
  });

  it('adds its milliseconds, and its reason unless that is the last', () => {
    const record = open();
    for (const reason of ['rate-limited', 'rate-limited', 'internal'] as const)
      fold(record, { reason, latency: { inspect: 2 } });
    expect(record.decision.reasons).toEqual(['rate-limited', 'internal']);
    expect(record.latency).toEqual({ auth: 0, policy: 0, inspect: 6, upstream: 0 });
  });
});
