import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  AUTH_FAILURES_PER_SECOND,
  type Audit,
  type AuditPorts,
  createAudit,
  createEventRate,
  DEFINITION_EVENTS,
  EDGE_REFUSALS_PER_SECOND,
  FIRST_EVENT_MS,
} from '../../../src/audit/audit.js';
import type { AuditEvent } from '../../../src/audit/event.js';
import { createAuditFile, createAuditStream } from '../../../src/audit/file.js';
import { QUEUE_CAPACITY } from '../../../src/audit/sink.js';
import { AUDIT_SCHEMA } from '../../../src/config/schema/outputs.js';
import type { AuditSettings } from '../../../src/config/settings.js';
import { fold } from '../../../src/policy/record.js';
import { readAudit, verifyChain } from '../../support/audit-chain.js';
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
      rotate: { size: 1e9, ageMs: 1e9 },
      retainMs: undefined,
      deliveries: [],
      ...settings,
    },
    replica: { instance: 'host-1:8080', host: 'host-1', run: 'run-1' },
    version: '0.1.0',
    versions,
    signer: ring,
    now: () => clock.ms,
    meters,
    newWriter: (sink) =>
      sink.type === 'file'
        ? createAuditFile(sink.path, { instance: 'run-1' })
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
  const text = await readAudit(path);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const full = () => createAuditFile('/dev/full', { instance: 'run-1' });

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
    const lines = (await readAudit(path)).trimEnd().split('\n');
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
    const file = createAuditFile(path, { instance: 'run-1' });
    const commit = (bytes: Buffer) => (isFull ? Promise.reject(new Error('full')) : file.commit(bytes));
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
    const broken = createAuditFile(second, { instance: 'run-1' });
    const { audit, meters } = rig(
      {
        newWriter: (sink) =>
          sink.type === 'file' && sink.path === second
            ? {
                ...broken,
                commit: (bytes) => (isFull ? Promise.reject(new Error('full')) : broken.commit(bytes)),
              }
            : createAuditFile(path, { instance: 'run-1' }),
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
      const lines = (await readAudit(file)).trimEnd().split('\n');
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

  it('[G-81] counts refusals at the edge past a rate instead of writing them, and says how many', async () => {
    const { audit, meters, clock } = rig();
    await audit.start();
    const refuse = (id: string) => {
      const record = sampleRecord({ id, principal: undefined });
      fold(record, { decision: { verdict: 'deny' } });
      audit.edgeRefusal(record);
    };
    for (let index = 0; index < EDGE_REFUSALS_PER_SECOND + 450; index += 1) refuse('many');
    clock.ms += 1000;
    refuse('next');
    refuse('after');
    await audit.close();
    const written = (await events()).filter(({ type }) => String(type).startsWith('mcp.'));
    const ids = written.map(({ type, decision }) => `${type} ${Object(decision).id}`);
    expect(ids.filter((id) => id.endsWith('many'))).toHaveLength(2 * EDGE_REFUSALS_PER_SECOND);
    const details = written.map(({ type, detail }) => [type, detail]).slice(-4);
    expect(details).toEqual([
      ['mcp.decision', { suppressed: 450 }],
      ['mcp.outcome', undefined],
      ['mcp.decision', undefined],
      ['mcp.outcome', undefined],
    ]);
    expect(meters.counts.get('file suppressed')).toBe(2 * 450);
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
    for (let count = 0; count < QUEUE_CAPACITY; count += 1) void audit.decision(sampleRecord({ id: 'filler' }), false);
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

// Which events about definitions are written, and which are only counted, when an upstream causes as many as it can.
describe('the rate of events', () => {
  const { burst } = DEFINITION_EVENTS;

  function rig() {
    const clock = { ms: 1_000_000 };
    const sink = { hasRoom: true };
    const admitInto = createEventRate(() => clock.ms);
    return { clock, sink, admit: (event: AuditEvent) => admitInto(event, () => sink.hasRoom) };
  }

  type Drift = Extract<AuditEvent, { type: 'pin.drift' }>;
  type Finding = Extract<AuditEvent, { type: 'pin.finding' }>;

  function driftOf(name: string, more: Partial<Drift> = {}): Drift {
    const digests = { before: 'pinned', after: 'offered' };
    return {
      ...{ type: 'pin.drift', upstream: 'github', kind: 'tool', name, change: 'description' },
      ...{ ...digests, ...more },
    };
  }

  /** A definition that no lock file has. */
  function inventedOf(name: string): Drift {
    return driftOf(name, { before: undefined, change: 'new-tool' });
  }

  function findingOf(name: string, isPinned: boolean, found = 'secrecy'): Finding {
    return {
      ...{ type: 'pin.finding', upstream: 'github', kind: 'tool', name, isPinned },
      ...{ finding: 'f1', found, tier: 'block', pointer: '', evidence: '', action: 'withhold' },
    };
  }

  /** How many of these events are written. */
  function countWritten(admit: (event: AuditEvent) => unknown, events: readonly AuditEvent[]) {
    return events.filter((event) => admit(event) !== undefined).length;
  }

  function times<Item>(count: number, item: (index: number) => Item): readonly Item[] {
    return Array.from({ length: count }, (_, index) => item(index));
  }

  it('[O-85] bounds what one definition causes that changes all the time', () => {
    const { admit, clock } = rig();
    expect(
      countWritten(
        admit,
        times(10_000, () => driftOf('flapping')),
      ),
    ).toBe(burst);
    clock.ms += 1_000;
    expect(admit(driftOf('flapping'))).toBe(10_000 - burst);
    expect(admit(driftOf('flapping'))).toBeUndefined();
    clock.ms += 1_000;
    expect(admit(driftOf('flapping'))).toBe(1);
  });

  it('[O-85] writes the first drift of each pinned definition, whatever the others and invented names cause', () => {
    const { admit } = rig();
    for (const event of times(20_000, (index) => driftOf(`tool ${index % 2}`))) admit(event);
    for (const event of times(20_000, (index) => inventedOf(`invented ${index}`))) admit(event);
    const all = times(10_000, (index) => driftOf(`other ${index}`));
    expect(countWritten(admit, all)).toBe(10_000);
    expect(countWritten(admit, all)).toBe(0);
    expect(admit(driftOf('other 1', { change: 'input-widened' }))).toBe(10_000);
    expect(admit(findingOf('other 1', true))).toBe(0);
    expect(admit(findingOf('other 1', true, 'exfiltration'))).toBe(0);
    expect(admit(findingOf('other 1', true))).toBeUndefined();
    expect(admit({ ...findingOf('other 1', true), tier: 'review' })).toBe(1);
  });

  it('[O-85] takes a drift as the first again after an hour, and after another approval', () => {
    const { admit, clock } = rig();
    for (const event of times(5_000, () => driftOf('flapping'))) admit(event);
    expect(admit(driftOf('later'))).toBeDefined();
    expect(admit(driftOf('later'))).toBeUndefined();
    expect(admit(driftOf('later', { before: 'approved since' }))).toBeDefined();
    for (const passed of [FIRST_EVENT_MS, -2 * FIRST_EVENT_MS]) {
      clock.ms += passed;
      for (const event of times(5_000, () => driftOf('flapping'))) admit(event);
      expect(admit(driftOf('later'))).toBeDefined();
      expect(admit(driftOf('later'))).toBeUndefined();
    }
  });

  it('[O-85] bounds what invented names cause, and keeps half of it for those that are new', () => {
    const { admit } = rig();
    const flapping = times(10_000, () => inventedOf('flapping'));
    expect(countWritten(admit, flapping)).toBe(burst / 2);
    const others = times(10_000, (index) => inventedOf(`other ${index}`));
    expect(countWritten(admit, others)).toBe(burst / 2);
    expect(admit(findingOf('other', false))).toBeUndefined();
  });

  it('[O-85] counts each upstream apart, and each type', () => {
    const { admit, clock } = rig();
    for (const event of times(3_000, () => driftOf('flapping'))) admit(event);
    for (const event of times(5_000, () => findingOf('flapping', false))) admit(event);
    expect(admit(driftOf('flapping', { upstream: 'other' }))).toBe(0);
    clock.ms += 1_000;
    expect(admit(driftOf('flapping'))).toBe(3_000 - burst);
    expect(admit(findingOf('new', false))).toBe(5_000 - burst / 2);
  });

  it('[O-85] holds no name whose length the upstream chose', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { admit } = rig();
    const longName = (index: number) => `${index}${Buffer.alloc(500_000, 'x').toString('latin1')}`;
    collect();
    const before = process.memoryUsage().heapUsed;
    const written = times(100, (index) => [admit(inventedOf(longName(index))), admit(driftOf(longName(index)))]);
    expect(written.flat()).not.toContain(undefined);
    collect();
    // The names were 100 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
    expect(admit(driftOf('next'))).toBe(0);
  });

  it('[O-85] takes nothing for written that no sink had room for', () => {
    const { admit, clock, sink } = rig();
    for (const event of times(3_000, () => driftOf('flapping'))) admit(event);
    sink.hasRoom = false;
    // The rate is used up, so that the process log has a bound as well.
    expect(admit(driftOf('other'))).toBeUndefined();
    sink.hasRoom = true;
    expect(admit(driftOf('other'))).toBe(3_000 - burst + 1);
    expect(admit(driftOf('other'))).toBeUndefined();
    clock.ms += 2_000;
    sink.hasRoom = false;
    expect(admit(driftOf('third'))).toBe(1);
    sink.hasRoom = true;
    expect(admit(driftOf('third'))).toBe(1);
  });

  it('[O-85] keeps the number of failed logins until an event that says it is written', () => {
    const { admit, clock, sink } = rig();
    const failure: AuditEvent = {
      ...{ type: 'auth.failure', upstream: 'github', reason: 'token-missing', decisionId: 'd' },
      ip: '::1',
    };
    for (const event of times(AUTH_FAILURES_PER_SECOND + 7, () => failure)) admit(event);
    clock.ms += 1_000;
    sink.hasRoom = false;
    expect(admit(failure)).toBe(7);
    sink.hasRoom = true;
    expect(admit(failure)).toBe(7);
    expect(admit(failure)).toBe(0);
  });

  it('[O-85] bounds nothing that operators cause, or that is written once', () => {
    const { admit } = rig();
    const events: readonly AuditEvent[] = [
      { type: 'config.reload', result: 'applied', faults: 0 },
      { type: 'pin.first-use', upstream: 'github', kind: 'tool', name: 'x', digest: 'd' },
      { type: 'admin.action', subject: 'ann', action: 'show-controls', status: 200, ip: '::1' },
    ];
    for (const event of events)
      expect(
        countWritten(
          admit,
          times(2_000, () => event),
        ),
      ).toBe(2_000);
  });
});
