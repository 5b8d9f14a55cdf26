// Everything that is decided passes the same stages in the same order, and none after a refusal.

import { describe, expect, it } from 'vitest';
import { refuseWith } from '../../../src/policy/decision.js';
import { openRecord, type RequestRecord, type Staged } from '../../../src/policy/record.js';
import { authorize, passThrough, type Stages } from '../../../src/proxy/authorization.js';
import type { Ports } from '../../../src/proxy/ports.js';

type Step = 'decide' | 'inspect' | 'enforce';
type Passed = { readonly steps: readonly string[] };

const REFUSAL = refuseWith('rate-limited');

/** The stages, each of which notes that it ran; `refuses` names one that refuses, `isLate` makes all wait. */
function stagesOf(ran: string[], isLate: boolean, refuses?: Step) {
  const stage = (step: Step) => (_subject: unknown, before: Passed) => {
    ran.push(step);
    const passed = { steps: [...before.steps, step] };
    const staged: Staged<Passed> = {
      outcome: refuses === step ? REFUSAL : passed,
      facts: [{ findings: [{ detector: step, direction: 'to-upstream', path: '', count: 1, action: 'flag' }] }],
    };
    return isLate ? Promise.resolve(staged) : staged;
  };
  const decide = stage('decide');
  return {
    decide: (subject: object) => decide(subject, { steps: [] }),
    inspect: stage('inspect'),
    enforce: stage('enforce'),
  } satisfies Stages<object, Passed>;
}

/** Where the decision is written; `isWritten` says whether that succeeds. */
function recorderOf(ran: string[], isWritten = true) {
  const record: RequestRecord = openRecord({
    ...{ id: 'one', receivedAt: 0, startedMs: 0, upstream: 'one', httpMethod: 'POST' },
    remoteAddress: '127.0.0.1',
  });
  const audit = {
    async recordDecision({ decision }: RequestRecord) {
      ran.push(`record ${decision.action}`);
      return isWritten;
    },
  };
  return { record, ports: { audit } as Pick<Ports, 'audit'> };
}

describe.each([
  ['at once', false],
  ['late', true],
])('what is decided by stages that answer %s', (_when, isLate) => {
  it('passes every stage in order, and is recorded last', async () => {
    const ran: string[] = [];
    const recorded = recorderOf(ran);
    const authorized = await authorize(recorded, stagesOf(ran, isLate), {});
    expect(authorized).toEqual({ steps: ['decide', 'inspect', 'enforce'] });
    expect(ran).toEqual(['decide', 'inspect', 'enforce', 'record forwarded']);
    expect(recorded.record.findings.map(({ detector }) => detector)).toEqual(['decide', 'inspect', 'enforce']);
  });

  it.each([
    ['decide', ['decide']],
    ['inspect', ['decide', 'inspect']],
    ['enforce', ['decide', 'inspect', 'enforce']],
  ] as const)('ends at %s where that refuses, and is not recorded as forwarded', async (step, steps) => {
    const ran: string[] = [];
    const recorded = recorderOf(ran);
    expect(await authorize(recorded, stagesOf(ran, isLate, step), {})).toBe(REFUSAL);
    expect(ran).toEqual(steps);
    expect(recorded.record.decision.action).toBe('refused');
    // What the stage that refused has learned is known too.
    expect(recorded.record.findings.map(({ detector }) => detector)).toEqual(steps);
  });
});

describe('what is decided', () => {
  it('is refused where it cannot be recorded', async () => {
    const ran: string[] = [];
    const recorded = recorderOf(ran, false);
    const refused = await authorize(recorded, stagesOf(ran, false), {});
    expect(refused).toMatchObject({ kind: 'refused', deny: { reason: 'audit-unavailable' } });
    expect(recorded.record.decision.action).toBe('refused');
  });

  it('goes on as it is where a stage does not apply to it', async () => {
    const subject = { of: 'a stream' };
    const stages = { decide: () => ({ outcome: subject }), inspect: passThrough, enforce: passThrough };
    expect(await authorize(recorderOf([]), stages, subject)).toBe(subject);
  });
});
