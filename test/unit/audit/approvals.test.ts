import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Audit, createAudit } from '../../../src/audit/audit.js';
import { approvalEvent, decisionEvent, type EventText } from '../../../src/audit/event.js';
import { createAuditFile } from '../../../src/audit/file.js';
import { createEventJoiner, hasId, isMatch, renderAuditRow } from '../../../src/audit/query.js';
import type { ChainWriter } from '../../../src/audit/sink.js';
import { AUDIT_SCHEMA } from '../../../src/config/schema/outputs.js';
import type { ApprovalAnswer } from '../../../src/policy/approval.js';
import type { ApprovalEvent } from '../../../src/policy/security-events.js';
import { readAudit } from '../../support/audit-chain.js';
import { context, countingMeters, NOW, ring, sampleAnswer, sampleApproval, sampleRecord, versions } from './samples.js';

type Line = Readonly<Record<string, unknown>>;

const USED_BY = '5d0c5a52-9c8e-4a2b-8f57-3f1f0a9f7c11';
const REQUESTED: ApprovalEvent = { change: 'requested', approval: sampleApproval() };

function granted(answer: Partial<ApprovalAnswer> = {}, change = {}): ApprovalEvent {
  const approval = {
    state: 'granted',
    answers: [sampleAnswer(answer)],
    usableUntilMs: NOW + 140_000,
    ...change,
  } as const;
  return { change: 'granted', approval: sampleApproval(approval), answer: sampleAnswer(answer) };
}

function used(change: Partial<ApprovalEvent> = {}): ApprovalEvent {
  return { ...granted(), change: 'used', answer: undefined, decisionId: USED_BY, ...change };
}

function lineOf({ before, after }: EventText): Line {
  const chain = { seq: 1, prev: 'p', hash: 'h' };
  return { ...(JSON.parse(`${before}epoch${after}}`) as Line), chain };
}

const written = (event: ApprovalEvent): Line => lineOf(approvalEvent(event, context));

describe('[APR-61] the events of approvals', () => {
  it('say who calls what, what asks for it, and what was shown by its digest alone', () => {
    const line = written(REQUESTED);
    expect(line).toMatchObject({
      type: 'approval.requested',
      actor: {
        iss: 'https://idp.example.com',
        sub: 'alice',
        client_id: 'cli',
        act: [{ iss: 'https://idp.example.com', sub: 'agent-7' }],
      },
      target: { upstream: 'github', method: 'tools/call', name: 'get_issue', pin: 'd'.repeat(64) },
      args: { digest: 'args-digest' },
      decision: { id: sampleApproval().decisionId },
    });
    expect(line['approval']).toEqual({
      id: 'approval-1',
      asked_by: sampleApproval().decisionId,
      rules: ['github/ask'],
      rules_digest: 'r'.repeat(64),
      parties: ['reviewer'],
      waits_for: ['reviewer'],
      shown: 'e'.repeat(64),
      asked_at: new Date(NOW).toISOString(),
      expires_at: new Date(NOW + 600_000).toISOString(),
    });
    expect(line['detail']).toBeUndefined();
  });

  it('name who answered, as whom and by which proof', () => {
    expect(written(granted({ proof: 'token' }))['approval']).toMatchObject({
      waits_for: [],
      party: 'reviewer',
      proof: 'token',
      person: { iss: 'https://staff.example.com', sub: 'rita' },
      answered_at: new Date(NOW + 20_000).toISOString(),
      usable_until: new Date(NOW + 140_000).toISOString(),
    });
    const denied = written({ ...granted({ verdict: 'denied' }, { state: 'denied' }), change: 'denied' });
    expect(denied).toMatchObject({ type: 'approval.denied', approval: { person: { sub: 'rita' } } });
  });

  it('say who has still to say yes, and of what expired whether anybody had', () => {
    const { demand } = sampleApproval();
    const two = { ...demand, reviewer: { groups: [], count: 2 } };
    expect(written(granted({}, { demand: two }))['approval']).toMatchObject({ waits_for: ['reviewer'] });
    const expired = (approval: ApprovalEvent['approval']) => written({ change: 'expired', approval })['approval'];
    expect(expired(sampleApproval())).toMatchObject({ waits_for: ['reviewer'] });
    expect(expired(granted().approval)).toMatchObject({ waits_for: [] });
    expect(written(used())['approval']).not.toHaveProperty('waits_for');
  });

  it('name nobody where a client answered, and say so in words', () => {
    const line = written(granted({ party: 'caller', proof: 'client' }));
    expect(line['detail']).toEqual({ note: 'answered by the client, perhaps without a person' });
    expect(line['approval']).toMatchObject({ party: 'caller', proof: 'client' });
    expect(line['approval']).not.toHaveProperty('person');
  });

  it('of a use name the decision that used it and the one that asked, and a yes that counted again', () => {
    expect(written(used())).toMatchObject({
      type: 'approval.used',
      decision: { id: USED_BY },
      approval: { asked_by: sampleApproval().decisionId },
    });
    expect(written(used())['approval']).not.toHaveProperty('remembered');
    expect(written(used({ isRemembered: true }))['approval']).toMatchObject({ id: 'approval-1', remembered: true });
  });

  it('mask and escape a name that nobody reviewed', () => {
    const { subject } = sampleApproval();
    const name = `\u202e${'eyJ'}${'a'.repeat(40)}.b.c`;
    const approval = sampleApproval({ subject: { ...subject, name, pin: undefined } });
    expect(written({ change: 'requested', approval })['target']).toMatchObject({ name: '\\u{202e}[redacted]' });
  });

  it('are lines of the schema that is printed, and so is a decision that names one', () => {
    const { decision } = sampleRecord();
    const record = sampleRecord({ decision: { ...decision, approval: 'approval-1' } });
    const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile({
      ...AUDIT_SCHEMA,
      unevaluatedProperties: false,
    });
    const lines = [REQUESTED, granted(), granted({ proof: 'client' }), used({ isRemembered: true })].map(written);
    for (const line of [...lines, lineOf(decisionEvent(record, context))]) {
      isValid(line);
      expect(isValid.errors).toBeNull();
    }
  });

  it('are found by the id of the approval, with the decisions that name it', () => {
    const { decision } = sampleRecord();
    const record = sampleRecord({ decision: { ...decision, approval: 'approval-1' } });
    const named = createEventJoiner()(lineOf(decisionEvent(record, context)), 1).record;
    const other = createEventJoiner()(lineOf(decisionEvent(sampleRecord(), context)), 1).record;
    for (const line of [written(REQUESTED), written(used()), named]) {
      expect([isMatch(line, { approval: 'approval-1' }), hasId(line, 'approval-1')]).toEqual([true, true]);
      expect(isMatch(line, { approval: 'approval-2' })).toBe(false);
    }
    expect([isMatch(other, { approval: 'approval-1' }), hasId(other, 'approval-1')]).toEqual([false, false]);
    expect(JSON.stringify(other)).not.toContain('"approval"');
    expect(renderAuditRow(named)).toContain('  approval: approval-1');
    expect(renderAuditRow(written(granted()))).toContain(
      '  approval.granted  alice  github tools/call get_issue  approval-1 github/ask rita as reviewer by login  0b7e9f0e-',
    );
  });
});

describe('recording an approval', () => {
  let folder = '';
  let path = '';
  let audits: Audit[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sallyport-approvals-'));
    path = join(folder, 'audit.jsonl');
    audits = [];
  });

  afterEach(async () => {
    await Promise.all(audits.map((audit) => audit.close()));
    await rm(folder, { recursive: true, force: true });
  });

  function rig(onFailure: 'block' | 'continue' = 'block') {
    const meters = countingMeters();
    const disk = { isFull: false };
    const file = createAuditFile(path, { instance: 'run-1' });
    const writer: ChainWriter = {
      ...file,
      commit: (bytes) => (disk.isFull ? Promise.reject(new Error('full')) : file.commit(bytes)),
    };
    const audit = createAudit({
      settings: {
        ...{ sinks: [{ type: 'file', path }], durability: 'written', onFailure, retainMs: undefined, deliveries: [] },
        ...{ checkpointEveryMs: 3_600_000, rotate: { size: 1e9, ageMs: 1e9 } },
      },
      ...{
        replica: { instance: 'host-1:8080', host: 'host-1', run: 'run-1' },
        version: '0.1.0',
        versions,
        signer: ring,
        now: () => NOW,
        meters,
      },
      newWriter: () => writer,
    });
    audits.push(audit);
    return { audit, disk, meters };
  }

  async function types(): Promise<readonly string[]> {
    const lines = (await readAudit(path)).trimEnd().split('\n');
    return lines
      .map((line) => String((JSON.parse(line) as Line)['type']))
      .filter((type) => type.startsWith('approval'));
  }

  it.each([['granted', granted()] as const, ['used', used()] as const])(
    '%s counts once its line is in the file, and not where it cannot be written',
    async (change, event) => {
      const { audit, disk } = rig();
      await audit.start();
      expect(await audit.approval(event)).toBe(true);
      expect(await types()).toEqual([`approval.${change}`]);
      disk.isFull = true;
      expect(await audit.approval(event)).toBe(false);
      disk.isFull = false;
      expect(await audit.approval(event)).toBe(true);
      // What was refused is not written later, as if it had happened.
      expect(await types()).toEqual([`approval.${change}`, `approval.${change}`]);
    },
  );

  it('a question, a no and what expired need not wait, and are kept while nothing can be written', async () => {
    const { audit, disk } = rig();
    await audit.start();
    disk.isFull = true;
    expect(await audit.approval(REQUESTED)).toBe(true);
    expect(await audit.approval({ ...granted({ verdict: 'denied' }), change: 'denied' })).toBe(true);
    expect(await audit.approval({ change: 'expired', approval: sampleApproval() })).toBe(true);
    disk.isFull = false;
    expect(await audit.approval(used())).toBe(true);
    expect(await types()).toEqual(['approval.requested', 'approval.denied', 'approval.expired', 'approval.used']);
  });

  it('nothing waits under onFailure: continue, as no decision does', async () => {
    const { audit, disk } = rig('continue');
    await audit.start();
    disk.isFull = true;
    expect(await audit.approval(granted())).toBe(true);
    disk.isFull = false;
    await audit.close();
    expect(await types()).toEqual(['approval.granted']);
  });

  it('a void approval has no line: the decision that refuses because of it names it', async () => {
    const { audit } = rig();
    await audit.start();
    expect(await audit.approval({ change: 'void', approval: sampleApproval() })).toBe(true);
    expect(await audit.approval(used())).toBe(true);
    expect(await types()).toEqual(['approval.used']);
  });

  it('has no rate', async () => {
    const { audit, meters } = rig();
    await audit.start();
    for (let count = 0; count < 3_000; count += 1) void audit.approval(REQUESTED);
    expect(await audit.approval(used())).toBe(true);
    expect(await types()).toHaveLength(3_001);
    expect([...meters.counts.keys()]).toEqual(['file written']);
  });
});
