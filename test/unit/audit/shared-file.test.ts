// What many exchanges share in the audit: one write, one promise, and the texts of what they have in common.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Audit, createAudit } from '../../../src/audit/audit.js';
import { decisionEvent, type EventContext } from '../../../src/audit/event.js';
import { createAuditFile } from '../../../src/audit/file.js';
import { createEventJoiner } from '../../../src/audit/query.js';
import { readAudit } from '../../support/audit-chain.js';
import { countingMeters, NOW, ring, sampleRecord, versions } from './samples.js';

let folder = '';
let audit: Audit;
let commits = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-audit-'));
  commits = 0;
  audit = createAudit({
    settings: {
      sinks: [{ type: 'file', path: join(folder, 'audit.jsonl') }],
      durability: 'written',
      onFailure: 'block',
      checkpointEveryMs: 3_600_000,
      rotate: { size: 1e9, ageMs: 1e9 },
      retainMs: undefined,
      deliveries: [],
    },
    replica: { instance: 'host-1:8080', host: 'host-1', run: 'run-1' },
    version: '0.1.0',
    versions,
    signer: ring,
    now: () => NOW,
    meters: countingMeters(),
    newWriter() {
      const file = createAuditFile(join(folder, 'audit.jsonl'), { instance: 'run-1' });
      return {
        ...file,
        commit(bytes) {
          commits += 1;
          return file.commit(bytes);
        },
      };
    },
  });
  await audit.start();
  commits = 0;
});

afterEach(async () => {
  await audit.close();
  await rm(folder, { recursive: true, force: true });
});

describe('what exchanges share in the audit', () => {
  it('[PRF-05] a hundred decisions at once are one write, and all of them wait for it', async () => {
    const waits = Array.from({ length: 100 }, () => audit.decision(sampleRecord()));
    expect(new Set(waits).size).toBe(1);
    expect(commits).toBe(0);
    expect(await Promise.all(waits)).toEqual(Array.from({ length: 100 }, () => true));
    expect(commits).toBe(1);
    const text = await readAudit(join(folder, 'audit.jsonl'));
    expect(text.match(/"type":"mcp.decision"/g)).toHaveLength(100);
  });

  it('[PRF-05] decisions that come one after the other are each in the file before they go on', async () => {
    for (let round = 1; round <= 3; round += 1) {
      expect(await audit.decision(sampleRecord())).toBe(true);
      const text = await readAudit(join(folder, 'audit.jsonl'));
      expect(text.match(/"type":"mcp.decision"/g)).toHaveLength(round);
    }
    expect(commits).toBe(3);
  });

  it('[PRF-05] law: a text that is kept is the text that is said, whatever changed between two events', () => {
    const gateway = { instance: 'run-1', version: '0.1.0', ...versions };
    const context: EventContext = { gateway, nowMs: NOW };
    const one = fc.constantFrom('a', 'b', '\u00e9"', 'x'.repeat(30));
    const record = fc.record({
      method: fc.constantFrom('tools/call', 'prompts/get'),
      kind: fc.constantFrom('tool', 'prompt'),
      name: one,
      definition: fc.option(one, { nil: undefined }),
      pin: fc.option(fc.constantFrom('sp1:1', 'sp1:2'), { nil: undefined }),
      upstream: fc.constantFrom('up', 'other'),
      action: fc.constantFrom('forwarded' as const, 'refused' as const),
      rule: fc.option(one, { nil: undefined }),
    });
    fc.assert(
      fc.property(record, ({ upstream, action, rule, ...target }) => {
        const sample = sampleRecord();
        const written = decisionEvent(
          {
            ...sample,
            upstream,
            target: { ...sample.target, ...target },
            decision: { ...sample.decision, action, rule },
          },
          context,
        );
        const text = `${written.before}${written.after}}`;
        const { record: line } = createEventJoiner()(JSON.parse(text), text.length);
        expect(line['target']).toMatchObject({
          upstream,
          method: target.method,
          kind: target.kind,
          name: target.name,
          definition: target.definition ?? null,
          pin: target.pin ?? null,
        });
        expect(line['decision']).toMatchObject({ action, rule: rule ?? null });
      }),
      { numRuns: 1000 },
    );
  });
});
