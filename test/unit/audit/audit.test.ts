import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Audit, type AuditPorts, createAudit } from '../../../src/audit/audit.js';
import { AUTH_FAILURES_PER_SECOND, DEFINITION_EVENTS } from '../../../src/audit/event-rate.js';
import { createAuditFile, createAuditStream } from '../../../src/audit/file.js';
import { QUEUE_CAPACITY } from '../../../src/audit/sink.js';
import { AUDIT_SCHEMA } from '../../../src/config/schema/outputs.js';
import type { AuditSettings } from '../../../src/config/settings.js';
import { verifyChain } from '../../support/audit-chain.js';
import { countingMeters, NOW, ring, sampleRecord, versions } from './samples.js';

let folder = '';
let path = '';
let audits: Audit[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-audit-'));
  path = join(folder, 'audit.jsonl');
  audits = [];
});

afterEach(async () => {
  await Promise.all(audits.map((audit) => audit.close()));
  await rm(folder, { recursive: true, force: true });
});

function rig(change: Partial<AuditPorts> = {}, settings: Partial<AuditSettings> = {}) {
  const meters = countingMeters();
  const clock = { ms: NOW };
  const errors: (string | undefined)[] = [];
  const audit = createAudit({
    settings: {
      sinks: [{ type: 'file', path }],
      durability: 'written',
      onFailure: 'block',
      checkpointEveryMs: 3_600_000,
      ...settings,
    },
    instance: 'run-1',
    version: '0.1.0',
    versions,
    signer: ring,
    now: () => clock.ms,
    meters,
    newWriter: (sink) =>
      sink.type === 'file'
        ? createAuditFile(sink.path)
        : createAuditStream(() => Promise.resolve()),
    onState: (error) => errors.push(error),
    ...change,
  });
  audits.push(audit);
  return { audit, meters, clock, errors };
}

function denied() {
  const { decision } = sampleRecord();
  return sampleRecord({
    decision: { ...decision, verdict: 'deny', action: 'refused', reasons: ['denied-by-rule'] },
  });
}

async function events(): Promise<Record<string, unknown>[]> {
  const text = await readFile(path, 'latin1');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const full = () => createAuditFile('/dev/full');

describe('createAudit', () => {
  it('[O-80] an allow is in the file before it is said to be durable', async () => {
    const { audit, meters } = rig();
    expect(await audit.start()).toBe(true);
    expect(audit.isWritable()).toBe(true);
    expect(await audit.decision(sampleRecord())).toBe(true);
    expect((await events()).map((event) => event['type'])).toEqual(['lifecycle', 'mcp.decision']);
    expect(meters.seq).toBe(1);
    audit.outcome(sampleRecord(), 20);
    await audit.close();
    const all = await events();
    expect(all.map((event) => event['type'])).toEqual([
      'lifecycle',
      'mcp.decision',
      'mcp.outcome',
      'lifecycle',
      'checkpoint',
    ]);
    expect(all[0]).toMatchObject({
      detail: { event: 'started', public_key: ring.publicKeys()[0]?.publicKey },
    });
    const publicKeys = [ring.publicKeys()[0]?.publicKey ?? ''];
    const lines = (await readFile(path, 'latin1')).trimEnd().split('\n');
    expect(verifyChain(lines, { publicKeys }).isWhole).toBe(true);
  });

  it('[O-81] nothing that would reach an upstream passes when the disk is full', async () => {
    const { audit, meters, errors } = rig({ newWriter: full });
    expect(await audit.start()).toBe(false);
    expect(await audit.decision(sampleRecord())).toBe(false);
    expect(audit.isWritable()).toBe(false);
    expect(errors).toEqual(['file: ENOSPC']);
    expect(meters.counts.get('file refused')).toBe(1);
  });

  it('[O-81] a refusal does not wait, and neither does anything under onFailure: continue', async () => {
    const blocked = rig({ newWriter: full });
    expect(await blocked.audit.decision(denied())).toBe(true);
    const open = rig({ newWriter: full }, { onFailure: 'continue' });
    expect(await open.audit.decision(sampleRecord())).toBe(true);
  });

  it('[O-81] a decision that nobody waits for is written once its sink can be written again', async () => {
    let isFull = false;
    const file = createAuditFile(path);
    const commit = (bytes: Buffer) =>
      isFull ? Promise.reject(new Error('full')) : file.commit(bytes);
    const { audit } = rig({ newWriter: () => ({ ...file, commit }) });
    await audit.start();
    isFull = true;
    const record = sampleRecord({ id: 'late' });
    await audit.decision(record, false);
    audit.outcome(record, 1);
    expect(await audit.decision(sampleRecord())).toBe(false);
    isFull = false;
    expect(await audit.decision(sampleRecord())).toBe(true);
    const late = (await events()).filter(({ decision }) => Object(decision).id === 'late');
    expect(late.map(({ type }) => type)).toEqual(['mcp.decision', 'mcp.outcome']);
  });

  it.each(['block', 'continue'] as const)(
    '[O-81] an outcome says all of it where no decision found room, under onFailure: %s',
    async (onFailure) => {
      const { audit } = rig({}, { onFailure });
      // Before its start a sink writes nothing, so that the events wait.
      for (let count = 0; count < QUEUE_CAPACITY; count += 1)
        void audit.decision(sampleRecord({ id: 'filler' }), false);
      const record = sampleRecord({ id: 'crowded' });
      await audit.decision(record, false);
      await audit.start();
      audit.outcome(record, 1);
      await audit.close();
      const crowded = (await events()).filter(({ decision }) => Object(decision).id === 'crowded');
      expect(crowded).toMatchObject([
        {
          type: 'mcp.outcome',
          args: { digest: 'args-digest' },
          decision: { rule: 'engineers-read' },
        },
      ]);
    },
  );

  it('[O-81] of several sinks, all must take it', async () => {
    const second = join(folder, 'second.jsonl');
    const sinks = [
      { type: 'file', path },
      { type: 'file', path: second },
    ] as const;
    let isFull = false;
    const broken = createAuditFile(second);
    const { audit, meters } = rig(
      {
        newWriter: (sink) =>
          sink.type === 'file' && sink.path === second
            ? {
                ...broken,
                commit: (bytes) =>
                  isFull ? Promise.reject(new Error('full')) : broken.commit(bytes),
              }
            : createAuditFile(path),
      },
      { sinks },
    );
    await audit.start();
    expect(await audit.decision(sampleRecord())).toBe(true);
    isFull = true;
    expect(await audit.decision(sampleRecord())).toBe(false);
    expect(audit.isWritable()).toBe(false);
    expect(meters.counts.get('file-2 refused')).toBe(1);
    isFull = false;
    expect(await audit.decision(sampleRecord())).toBe(true);
    audit.checkpoint();
    await audit.close();
    for (const file of [path, second]) {
      const lines = (await readFile(file, 'latin1')).trimEnd().split('\n');
      expect(verifyChain(lines).faults).toEqual([]);
      // Its own chain's checkpoint, and a copy of the other's: the second place.
      const epochs = lines
        .filter((line) => line.includes('"type":"checkpoint"'))
        .map((line) => /"detail":\{"epoch":"([^"]+)"/.exec(line)?.[1]);
      expect(new Set(epochs).size).toBe(2);
    }
  });

  it('[O-82] counts failed logins past a rate instead of writing them, and says how many', async () => {
    const { audit, meters, clock } = rig();
    await audit.start();
    const fail = () =>
      audit.event({
        type: 'auth.failure',
        upstream: 'github',
        reason: 'token-signature',
        decisionId: 'x',
        ip: '192.0.2.1',
      });
    for (let index = 0; index < AUTH_FAILURES_PER_SECOND + 450; index += 1) fail();
    clock.ms += 1000;
    fail();
    await audit.close();
    const written = (await events()).filter((event) => event['type'] === 'auth.failure');
    expect(written).toHaveLength(AUTH_FAILURES_PER_SECOND + 1);
    expect(written.at(-1)).toMatchObject({ detail: { suppressed: 450 } });
    expect(meters.counts.get('file suppressed')).toBe(450);
  });

  it('[O-85] writes the first drift of a pinned definition once there is room, if there was none before', async () => {
    const { audit, meters } = rig();
    const drift = () =>
      audit.event({
        ...{ type: 'pin.drift', upstream: 'github', kind: 'tool', name: 'read_file' },
        ...{ change: 'description', before: 'pinned', after: 'offered' },
      });
    for (let count = 0; count < DEFINITION_EVENTS.burst; count += 1)
      audit.event({
        ...{ type: 'pin.drift', upstream: 'github', kind: 'tool', name: 'flapping' },
        ...{ change: 'description', before: 'pinned', after: 'offered' },
      });
    // Before its start a sink writes nothing, so that the events wait.
    for (let count = 0; count < QUEUE_CAPACITY; count += 1)
      void audit.decision(sampleRecord({ id: 'filler' }), false);
    expect(drift()).toBeUndefined();
    expect(meters.counts.get('file suppressed')).toBeUndefined();
    await audit.start();
    expect(drift()).toBe(1);
    expect(drift()).toBeUndefined();
    await audit.close();
    const written = (await events()).filter(({ target }) => Object(target).name === 'read_file');
    expect(written).toMatchObject([{ detail: { suppressed: 1 } }]);
    expect(meters.counts.get('file suppressed')).toBe(1);
  });

  it('[O-83] carries the versions in force, and those of the exchange', async () => {
    const { audit } = rig();
    await audit.start();
    audit.setVersions({ config: 'c9', policy: 'p9', pins: 'l9' });
    audit.event({ type: 'config.reload', result: 'applied', faults: 0 });
    await audit.decision(sampleRecord({ versions: { config: 'c1', policy: 'p1', pins: 'l1' } }));
    const [, reload, decided] = await events();
    expect(reload).toMatchObject({ gateway: { config: 'c9', policy: 'p9', pins: 'l9' } });
    expect(decided).toMatchObject({ gateway: { config: 'c1', policy: 'p1', pins: 'l1' } });
  });

  it('[O-84] writes what the published schema describes', async () => {
    const check = new Ajv2020({ strict: false }).compile(AUDIT_SCHEMA as object);
    const { audit } = rig();
    await audit.start();
    await audit.decision(sampleRecord());
    await audit.decision(denied());
    audit.outcome(sampleRecord(), 3);
    audit.event({ type: 'config.reload', result: 'rejected', faults: 2 });
    audit.event({
      type: 'pin.block',
      upstream: 'github',
      kind: 'tool',
      name: 'x',
      digest: undefined,
      by: 'ann',
      note: undefined,
    });
    audit.event({
      type: 'admin.action',
      subject: 'ann',
      action: 'show-controls',
      status: 200,
      ip: '::1',
    });
    await audit.close();
    const all = await events();
    expect(all).toHaveLength(9);
    for (const event of all) {
      check(event);
      expect(check.errors ?? []).toEqual([]);
    }
  });

  it('[O-81] does not exist without a sink', () => {
    expect(() => rig({}, { sinks: [] })).toThrow(RangeError);
  });
});
