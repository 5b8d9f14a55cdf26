import { describe, expect, it } from 'vitest';
import type { Audit } from '../../../src/audit/audit.js';
import { createEdgeRecorder } from '../../../src/audit/recorder.js';
import { createEvents } from '../../../src/policy/events.js';
import type { RequestRecord } from '../../../src/policy/record.js';

function rig() {
  const recorded: RequestRecord[] = [];
  const counted: RequestRecord[] = [];
  const audit = {
    edgeRefusal(record: RequestRecord) {
      recorded.push(record);
      return undefined;
    },
  } as unknown as Audit;
  const { emit } = createEvents([{ ended: ({ record }) => void counted.push(record) }], () => undefined);
  const record = createEdgeRecorder({ audit, emit, now: () => 0 });
  return { recorded, counted, record };
}

const facts = { id: '0f0f0f0f-0000-4000-8000-000000000000', address: '127.0.0.1' };
const refusal = { status: 421, reason: 'host-forbidden', upstream: 'desk' } as const;

describe('what the edge refuses', () => {
  it('[G-81] is recorded and counted with the id that the caller got', () => {
    const { record, recorded, counted } = rig();
    record(refusal, facts);
    expect(recorded[0]).toMatchObject({
      id: facts.id,
      upstream: 'desk',
      decision: { verdict: 'deny', action: 'refused', stage: 'edge', reasons: ['host-forbidden'] },
    });
    expect(counted).toEqual(recorded);
  });

  it('[G-81] is recorded without an upstream where the path was not known yet', () => {
    const { record, recorded, counted } = rig();
    record({ status: 431, reason: 'headers-too-large', upstream: undefined }, facts);
    expect(recorded).toMatchObject([{ upstream: '', result: { http: 431 } }]);
    expect(counted).toHaveLength(1);
  });

  it("[G-81] is nobody's exchange where no path was met", () => {
    const { record, counted } = rig();
    record({ status: 404, reason: undefined, upstream: undefined }, facts);
    expect(counted).toEqual([]);
  });
});
