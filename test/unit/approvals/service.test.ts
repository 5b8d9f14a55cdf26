// What becomes of an approval, step by step and when two replicas act at once.

import { describe, expect, it } from 'vitest';
import { APPROVAL_BOUNDS, type ApprovalTable, createApprovalService } from '../../../src/approvals/service.js';
import type { ApprovalQuestion, ApprovalVoice } from '../../../src/policy/approval.js';
import type { ApprovalDemand } from '../../../src/policy/approval-terms.js';
import type { GatewayEvents } from '../../../src/policy/events.js';
import type { ApprovalEvent } from '../../../src/policy/security-events.js';
import { createMemoryLimits } from '../../../src/state/memory.js';
import { createMemoryTable } from '../../../src/state/shared-table.js';

const MINUTE = 60_000;

const CALLER_DEMAND: ApprovalDemand = {
  rules: ['p/ask'],
  reasons: [],
  caller: { proof: 'login', remember: undefined },
  reviewer: undefined,
  expiresMs: 10 * MINUTE,
  useMs: 2 * MINUTE,
};
const REVIEWER_DEMAND: ApprovalDemand = {
  ...CALLER_DEMAND,
  caller: undefined,
  reviewer: { groups: [['sre']], count: 1 },
};

const ANA = { issuer: 'https://id.example', subject: 'ana', match: undefined };

type Change = {
  owner?: string;
  demand?: ApprovalDemand;
  subject?: Partial<ApprovalQuestion['subject']>;
  decisionId?: string;
};

function questionOf({
  owner = 'ana',
  demand = CALLER_DEMAND,
  subject,
  decisionId = 'decision-1',
}: Change = {}): ApprovalQuestion {
  return {
    demand,
    decisionId,
    owner,
    subject: {
      caller: { ...ANA, issuerName: 'main', client: 'agent', actors: [] },
      upstream: 'github',
      method: 'tools/call',
      name: 'delete_repository',
      args: 'keyed-1',
      digest: 'digest-1',
      remembered: undefined,
      pin: 'pin-1',
      rules: 'rules-1',
      ...subject,
    },
    content: () => ({
      args: '{}',
      definition: undefined,
      selfReported: undefined,
      labels: [],
      findings: [],
      sensitive: [],
    }),
  };
}

const ROB = { issuer: 'https://id.example', subject: 'rob' };
const BY_ANA: ApprovalVoice = { party: 'caller', person: ANA, proof: 'login', groups: [] };
const reviewer = (subject: string, more: Partial<ApprovalVoice> = {}): ApprovalVoice => ({
  party: 'reviewer',
  person: { issuer: 'https://id.example', subject, match: undefined },
  proof: 'token',
  groups: ['sre'],
  ...more,
});

function rig() {
  const clock = { nowMs: 1_000_000 };
  const events: ApprovalEvent[] = [];
  const rounds = new Set<string>();
  const counted: GatewayEvents['approvalsCounted']['waiting'][] = [];
  const audit = { isWritable: true };
  const table: ApprovalTable = createMemoryTable(() => clock.nowMs, APPROVAL_BOUNDS);
  const create = () =>
    createApprovalService({
      table,
      now: () => clock.nowMs,
      record: async (event) => {
        if (audit.isWritable) events.push(event);
        return audit.isWritable;
      },
      emit: (name, event) => {
        if (name === 'approvalsCounted') counted.push((event as GatewayEvents['approvalsCounted']).waiting);
      },
      isAsked: () => true,
      limits: createMemoryLimits({ nowMs: () => clock.nowMs }),
      useOnce: async (key) => !rounds.has(key) && rounds.add(key) !== undefined,
    });
  const replicas = [create(), create()] as const;
  const changes = () => events.map(({ change }) => change);
  return { clock, table, events, counted, audit, replicas, changes, service: replicas[0] };
}

type Rig = ReturnType<typeof rig>;

async function ask({ service }: Rig, change: Change = {}): Promise<string> {
  const outcome = await service.consult(questionOf(change));
  if (outcome.kind !== 'waiting') throw new Error(`it is ${outcome.kind}`);
  return outcome.approval.id;
}

async function consume({ service }: Rig, change: Change = {}) {
  const outcome = await service.consult(questionOf(change));
  return outcome.kind === 'granted' ? outcome.use() : outcome.kind;
}

describe('an approval by the caller', () => {
  it('is asked once by equal requests, granted, and used once', async () => {
    const run = rig();
    const all = await Promise.all(Array.from({ length: 10 }, () => run.service.consult(questionOf())));
    expect(all.map(({ kind }) => kind)).toEqual(Array.from({ length: 10 }, () => 'waiting'));
    const ids = new Set(all.map((one) => ('approval' in one ? one.approval.id : '')));
    expect(ids.size).toBe(1);
    const [id = ''] = ids;
    expect(await run.service.answer(id, 'granted', BY_ANA)).toMatchObject({ kind: 'taken' });
    expect(await consume(run)).toBe('used');
    expect(await consume(run)).toBe('waiting');
    expect(run.changes()).toEqual(['requested', 'granted', 'used', 'requested']);
  });

  it('lets one of two uses at once on two replicas pass', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    const found = await Promise.all(run.replicas.map((one) => one.consult(questionOf())));
    const used = await Promise.all(found.map((one) => (one.kind === 'granted' ? one.use() : one.kind)));
    expect(used.sort()).toEqual(['taken', 'used']);
  });

  const others: readonly (readonly [string, Partial<ApprovalQuestion['subject']>, string])[] = [
    ['other arguments', { digest: 'digest-2' }, 'waiting'],
    ['another tool', { name: 'delete_branch' }, 'waiting'],
    ['another upstream', { upstream: 'gitlab' }, 'waiting'],
    ['another method', { method: 'prompts/get' }, 'waiting'],
    ['another client', { caller: { ...ANA, issuerName: 'main', client: 'other', actors: [] } }, 'waiting'],
    ['another actor', { caller: { ...ANA, issuerName: 'main', client: 'agent', actors: [ANA] } }, 'waiting'],
    ['another pin', { pin: 'pin-2' }, 'mismatch'],
    ['another text of the rules', { rules: 'rules-2' }, 'mismatch'],
  ];
  it.each(others)('is no yes to %s', async (_what, subject, kind) => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    expect((await run.service.consult(questionOf({ subject }))).kind).toBe(kind);
  });

  it('is void after a mismatch, and asked anew', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    expect(await consume(run, { subject: { pin: 'pin-2' } })).toBe('mismatch');
    expect(await consume(run)).toBe('waiting');
    expect(await run.service.find(id)).toMatchObject({ state: 'void' });
  });

  it.each<readonly [string, ApprovalVoice, string]>([
    ['another person', { ...BY_ANA, person: { ...ANA, subject: 'eve' } }, 'not-the-caller'],
    [
      'the same subject of another issuer',
      { ...BY_ANA, person: { ...ANA, issuer: 'https://b.example' } },
      'not-the-caller',
    ],
    ['a form where a login is asked for', { ...BY_ANA, proof: 'client' }, 'no-proof'],
    ['a reviewer who is not asked', reviewer('rob'), 'not-asked'],
  ])('is not granted by %s', async (_who, voice, why) => {
    const run = rig();
    const id = await ask(run);
    expect(await run.service.answer(id, 'granted', voice)).toEqual({ kind: 'refused', why });
    expect(await consume(run)).toBe('waiting');
  });

  it('expires unanswered, and its end is recorded once', async () => {
    const run = rig();
    const id = await ask(run);
    run.clock.nowMs += 10 * MINUTE;
    await Promise.all(run.replicas.map((one) => one.review()));
    expect(run.changes()).toEqual(['requested', 'expired']);
    expect(await run.service.answer(id, 'granted', BY_ANA)).toMatchObject({ kind: 'over' });
    expect(await consume(run)).toBe('waiting');
  });

  it('is listed and counted while it waits, however many are newer and over', async () => {
    const run = rig();
    const oldest = await ask(run, { demand: { ...CALLER_DEMAND, expiresMs: 24 * 60 * MINUTE } });
    run.clock.nowMs += 1;
    for (let count = 0; count < 1_100; count += 1) {
      const id = await ask(run, { owner: `owner-${count}`, subject: { digest: `other-${count}` } });
      await run.service.answer(id, 'denied', BY_ANA);
    }
    run.clock.nowMs += 3 * MINUTE - 1;
    const listed = await run.service.list();
    if (listed === 'unavailable') throw new Error('unavailable');
    expect(listed.at(-1)).toMatchObject({ id: oldest, state: 'waiting' });
    await run.service.review();
    const none = { count: 0, oldestMs: 0 };
    expect(run.counted).toEqual([{ caller: { count: 1, oldestMs: 3 * MINUTE }, reviewer: none }]);
  });

  it('expires unused, and the next request is told so', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    run.clock.nowMs += 2 * MINUTE;
    expect(await run.service.consult(questionOf())).toMatchObject({ kind: 'waiting', isLate: true });
    expect(run.changes()).toEqual(['requested', 'granted', 'expired', 'requested']);
  });

  it('does not outlive a clock that is set back', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    run.clock.nowMs -= 60 * MINUTE;
    expect(await consume(run)).toBe('waiting');
  });

  it('is refused for as long as the question would have stood, without being asked again', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'denied', BY_ANA);
    run.clock.nowMs += 9 * MINUTE;
    expect(await consume(run)).toBe('denied');
    run.clock.nowMs += MINUTE;
    expect(await consume(run)).toBe('waiting');
  });

  it('counts nothing that the audit log does not have', async () => {
    const run = rig();
    const id = await ask(run);
    run.audit.isWritable = false;
    expect(await run.service.answer(id, 'granted', BY_ANA)).toEqual({ kind: 'unrecorded' });
    run.audit.isWritable = true;
    expect(await consume(run)).toBe('waiting');
    const second = await ask(run);
    await run.service.answer(second, 'granted', BY_ANA);
    run.audit.isWritable = false;
    expect(await consume(run)).toBe('unrecorded');
    expect(await consume(run, { subject: { digest: 'digest-9' } })).toBe('unrecorded');
  });

  it('is not asked without end by somebody who answers at once', async () => {
    const run = rig();
    const kinds = new Set<string>();
    for (let count = 0; count < 130; count += 1) {
      const outcome = await run.service.consult(questionOf({ subject: { digest: `d-${count}` } }));
      kinds.add(`${outcome.kind} ${count < 120 ? 'at first' : 'then'}`);
      if (outcome.kind === 'waiting') await run.service.answer(outcome.approval.id, 'denied', BY_ANA);
    }
    expect([...kinds]).toEqual(['waiting at first', 'crowded then']);
  });

  it('stays used where the store goes back to an older state', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    const before = await run.table.find(id);
    expect(await consume(run)).toBe('used');
    const used = await run.table.find(id);
    if (typeof before !== 'object' || typeof used !== 'object') throw new Error('it is not there');
    await run.table.replace(used, before.head, {
      openUntilMs: run.clock.nowMs + MINUTE,
      keptUntilMs: run.clock.nowMs + MINUTE,
    });
    expect(await consume(run)).toBe('taken');
  });

  it('lets each further round of the request pass once', async () => {
    const run = rig();
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    expect(await consume(run)).toBe('used');
    const further = async (round: string, subject = {}) => {
      const outcome = await run.service.consult({ ...questionOf({ subject }), round });
      return outcome.kind === 'granted' ? outcome.use() : outcome.kind;
    };
    expect(await further('state-1')).toBe('used');
    expect(await further('state-1')).toBe('taken');
    expect(await further('state-2')).toBe('used');
    run.clock.nowMs += 17 * MINUTE;
    expect(await further('state-3')).toBe('waiting');
  });

  it('is asked about nothing that only a round may carry', async () => {
    const run = rig();
    const round = { ...questionOf(), round: 'state-1', isRoundOnly: true };
    expect(await run.service.consult(round)).toEqual({ kind: 'unseen' });
    const id = await ask(run);
    await run.service.answer(id, 'granted', BY_ANA);
    expect(await run.service.consult(round)).toEqual({ kind: 'unseen' });
    expect(await consume(run)).toBe('used');
    expect((await run.service.consult(round)).kind).toBe('granted');
  });

  it('is bounded per caller', async () => {
    const run = rig();
    const kinds: string[] = [];
    for (let index = 0; index < 25; index += 1) kinds.push(await consume(run, { subject: { digest: `a${index}` } }));
    expect(kinds.filter((kind) => kind === 'waiting')).toHaveLength(20);
    expect(kinds.slice(20)).toEqual(Array.from({ length: 5 }, () => 'crowded'));
  });
});

describe('a yes that is remembered', () => {
  const demand: ApprovalDemand = {
    ...CALLER_DEMAND,
    caller: { proof: 'login', remember: { forMs: 10 * MINUTE, same: ['/repo'] } },
  };
  const with_ = (subject: Partial<ApprovalQuestion['subject']>) => ({
    demand,
    subject: { remembered: 'repo-a', ...subject },
  });

  async function granted(): Promise<Rig> {
    const run = rig();
    const id = await ask(run, with_({}));
    await run.service.answer(id, 'granted', BY_ANA);
    expect(await consume(run, with_({}))).toBe('used');
    return run;
  }

  it('counts again for equal named arguments, and each use is recorded with its id', async () => {
    const run = await granted();
    expect(await consume(run, { ...with_({ digest: 'digest-2' }), decisionId: 'decision-2' })).toBe('used');
    expect(run.events.at(-1)).toMatchObject({ change: 'used', isRemembered: true, decisionId: 'decision-2' });
  });

  it.each<readonly [string, Partial<ApprovalQuestion['subject']>]>([
    ['other named arguments', { remembered: 'repo-b', digest: 'x' }],
    ['another pin', { pin: 'pin-2', digest: 'x' }],
    ['another text of the rules', { rules: 'rules-2', digest: 'x' }],
    ['another client', { caller: { ...ANA, issuerName: 'main', client: 'other', actors: [] }, digest: 'x' }],
  ])('does not count for %s', async (_what, subject) => {
    const run = await granted();
    expect(await consume(run, with_(subject))).toBe('waiting');
  });

  it('ends with its time', async () => {
    const run = await granted();
    run.clock.nowMs += 10 * MINUTE;
    expect(await consume(run, with_({ digest: 'digest-2' }))).toBe('waiting');
  });
});

describe('an approval by reviewers', () => {
  it('needs as many people as the rule says', async () => {
    const run = rig();
    const demand = { ...REVIEWER_DEMAND, reviewer: { groups: [['sre'], ['leads']], count: 2 } };
    const id = await ask(run, { demand });
    const both = { groups: ['sre', 'leads'] };
    expect(await run.service.answer(id, 'granted', reviewer('rob'))).toEqual({ kind: 'refused', why: 'not-in-group' });
    expect(await run.service.answer(id, 'granted', reviewer('rob', both))).toMatchObject({ kind: 'taken' });
    expect(await consume(run, { demand })).toBe('waiting');
    expect(await run.service.answer(id, 'granted', reviewer('rob', both))).toEqual({
      kind: 'refused',
      why: 'answered-before',
    });
    expect(await run.service.answer(id, 'granted', reviewer('sue', both))).toMatchObject({ kind: 'taken' });
    expect(await consume(run, { demand })).toBe('used');
  });

  it.each<readonly [string, ApprovalVoice, string]>([
    ['the caller', reviewer('ana'), 'is-caller'],
    [
      'the caller under another identity',
      reviewer('a2', { person: { issuer: 'https://b.example', subject: 'a2', match: 'e1' } }),
      'is-caller',
    ],
    ['an actor of the caller', reviewer('bot'), 'is-actor'],
    ['somebody outside the group', reviewer('rob', { groups: [], person: { ...ROB, match: 'e2' } }), 'not-in-group'],
    ['somebody without the claim that tells one person', reviewer('rob'), 'not-told-apart'],
    ['the break-glass token', reviewer('glass', { groups: 'any', mayOnlyDeny: true }), 'no-proof'],
  ])('is not granted by %s', async (_who, voice, why) => {
    const run = rig();
    const actors = [{ issuer: 'https://id.example', subject: 'bot', isClient: true }];
    const caller = { ...ANA, match: 'e1', issuerName: 'main', client: 'agent', actors };
    const id = await ask(run, { demand: REVIEWER_DEMAND, subject: { caller } });
    expect(await run.service.answer(id, 'granted', voice)).toEqual({ kind: 'refused', why });
  });

  it('is refused by the break-glass token', async () => {
    const run = rig();
    const id = await ask(run, { demand: REVIEWER_DEMAND });
    const voice = reviewer('glass', { groups: 'any', mayOnlyDeny: true });
    expect(await run.service.answer(id, 'denied', voice)).toMatchObject({ kind: 'taken' });
    expect(await consume(run, { demand: REVIEWER_DEMAND })).toBe('denied');
  });

  it('needs a yes of both parties where both are asked', async () => {
    const run = rig();
    const demand = { ...CALLER_DEMAND, reviewer: { groups: [], count: 1 } };
    const id = await ask(run, { demand });
    await run.service.answer(id, 'granted', reviewer('rob'));
    expect(await consume(run, { demand })).toBe('waiting');
    await run.service.answer(id, 'granted', BY_ANA);
    expect(await consume(run, { demand })).toBe('used');
  });
});
