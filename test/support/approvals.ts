// Approvals for tests of what shows and answers them, and a desk that keeps them in a list.

import { randomBytes } from 'node:crypto';
import {
  type ApprovalDesk,
  type ApprovalPerson,
  type ApprovalVoice,
  refuseAnswer,
  type ShownApproval,
  stateOf,
} from '../../src/policy/approval.js';

const ISSUER = 'https://idp.example.com';

export function personOf(subject: string, issuer = ISSUER, match?: string): ApprovalPerson {
  return { issuer, subject, match };
}

type Parts = Partial<Omit<ShownApproval, 'subject' | 'demand' | 'content'>> & {
  readonly caller?: Partial<ShownApproval['subject']['caller']>;
  readonly name?: string;
  readonly method?: string;
  readonly demand?: Partial<ShownApproval['demand']>;
  readonly content?: Partial<NonNullable<ShownApproval['content']>>;
};

/** One that waits for one reviewer, whoever that is. */
export function approvalOf(nowMs: number, parts: Parts = {}): ShownApproval {
  const { caller, name = 'delete_record', method = 'tools/call', demand, content, ...rest } = parts;
  return {
    id: randomBytes(16).toString('base64url'),
    subject: {
      caller: {
        ...{ issuer: ISSUER, issuerName: 'corp', subject: 'ada', client: 'agent', match: undefined, actors: [] },
        ...caller,
      },
      ...{
        upstream: 'desk',
        method,
        name,
        args: 'digest-of-arguments',
        digest: 'digest-1',
        remembered: undefined,
        pin: undefined,
        rules: 'digest-of-rules',
      },
    },
    demand: {
      ...{ rules: ['records/ask'], reasons: ['Deleting is for good.'], caller: undefined },
      reviewer: { groups: [], count: 1 },
      ...{ expiresMs: 600_000, useMs: 120_000 },
      ...demand,
    },
    content: {
      ...{ args: '{"id":"one"}', definition: undefined, selfReported: undefined },
      ...{ labels: [], findings: [], sensitive: [] },
      ...content,
    },
    ...{ shown: 'ab'.repeat(32), decisionId: '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11' },
    ...{ createdAtMs: nowMs, expiresAtMs: nowMs + 600_000, answers: [], state: 'waiting' as const },
    ...{ usableUntilMs: undefined, rememberedUntilMs: undefined },
    ...rest,
  };
}

export type ListDesk = ApprovalDesk & {
  readonly taken: { readonly id: string; readonly verdict: string; readonly voice: ApprovalVoice }[];
  kept: ShownApproval[];
};

/** A desk that takes every answer of whoever may review; the newest is the first. */
export function listDesk(kept: readonly ShownApproval[], now: () => number): ListDesk {
  const taken: ListDesk['taken'] = [];
  return {
    kept: [...kept],
    taken,
    async find(id) {
      return this.kept.find((one) => one.id === id) ?? 'unknown';
    },
    async list() {
      return this.kept;
    },
    async answer(id, verdict, voice) {
      const found = this.kept.find((one) => one.id === id);
      if (found === undefined || stateOf(found, now()) !== 'waiting') return { kind: 'over', approval: found };
      const why = refuseAnswer(found, verdict, voice);
      if (why !== undefined) return { kind: 'refused', why };
      taken.push({ id, verdict, voice });
      const { party, person, proof } = voice;
      const answers = [...found.answers, { party, verdict, person, proof, atMs: now() }];
      const isDone = verdict === 'denied' || answers.length >= (found.demand.reviewer?.count ?? 1);
      const approval = {
        ...found,
        answers,
        state: isDone ? verdict : ('waiting' as const),
        usableUntilMs: now() + 1_000,
      };
      this.kept = this.kept.map((one) => (one.id === id ? approval : one));
      return { kind: 'taken', approval };
    },
  };
}
