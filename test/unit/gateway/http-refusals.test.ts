import { describe, expect, it } from 'vitest';
import type { Audit } from '../../../src/audit/audit.js';
import {
  createEdgeRecorder,
  EDGE_REFUSALS_PER_SECOND,
} from '../../../src/gateway/observability.js';
import type { RequestRecord } from '../../../src/policy/record.js';
import type { Metrics } from '../../../src/telemetry/metrics.js';

function rig() {
  const decisions: RequestRecord[] = [];
  const outcomes: RequestRecord[] = [];
  const counted: RequestRecord[] = [];
  const clock = { nowMs: 0 };
  const audit = {
    decision: (record: RequestRecord) => {
      decisions.push(record);
      return Promise.resolve(true);
    },
    outcome: (record: RequestRecord) => void outcomes.push(record),
  } as unknown as Audit;
  const metrics = {
    recordRequest: (record: RequestRecord) => void counted.push(record),
  } as unknown as Metrics;
  const record = createEdgeRecorder({ audit, metrics, now: () => clock.nowMs });
  return { decisions, outcomes, counted, clock, record };
}

const facts = { id: '0f0f0f0f-0000-4000-8000-000000000000', address: '127.0.0.1' };
const refusal = { status: 421, reason: 'host-forbidden', upstream: 'desk' } as const;

describe('what the edge refuses', () => {
  it('[G-81] is recorded as a decision and an outcome with the id that the caller got', () => {
    const { record, decisions, outcomes } = rig();
    record(refusal, facts);
    expect(decisions[0]).toMatchObject({
      id: facts.id,
      upstream: 'desk',
      decision: { verdict: 'deny', action: 'refused', stage: 'edge', reasons: ['host-forbidden'] },
    });
    expect(outcomes).toHaveLength(1);
  });

  it('[G-81] is counted always and written at a bounded rate', () => {
    const { record, decisions, counted, clock } = rig();
    for (let each = 0; each < EDGE_REFUSALS_PER_SECOND * 2; each += 1) record(refusal, facts);
    expect(counted).toHaveLength(EDGE_REFUSALS_PER_SECOND * 2);
    expect(decisions).toHaveLength(EDGE_REFUSALS_PER_SECOND);
    clock.nowMs = 1000;
    record(refusal, facts);
    expect(decisions).toHaveLength(EDGE_REFUSALS_PER_SECOND + 1);
  });

  it('[G-81] is recorded without an upstream where the path was not known yet', () => {
    const { record, decisions, counted } = rig();
    record({ status: 431, reason: 'headers-too-large', upstream: undefined }, facts);
    expect(decisions).toMatchObject([{ upstream: '', result: { http: 431 } }]);
    expect(counted).toHaveLength(1);
  });

  it("[G-81] is nobody's exchange where no path was met", () => {
    const { record, counted } = rig();
    record({ status: 404, reason: undefined, upstream: undefined }, facts);
    expect(counted).toEqual([]);
  });
});
