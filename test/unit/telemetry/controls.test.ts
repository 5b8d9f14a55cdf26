import { describe, expect, it } from 'vitest';
import type { Settings } from '../../../src/config/settings.js';
import { createEvents } from '../../../src/policy/events.js';
import {
  type ApprovalRule,
  type ControlSources,
  createControls,
  refreshControls,
} from '../../../src/telemetry/controls.js';
import { NOW } from '../audit/samples.js';

describe('createControls', () => {
  it('[O-51] shows each control, its state, why, and since when', () => {
    let nowMs = NOW;
    const notified: string[] = [];
    const controls = createControls({
      now: () => nowMs,
      emit: createEvents(
        [
          {
            controlChanged: ({ control, state }) => void notified.push(`${control} ${state}`),
            controlRemoved: ({ control }) => void notified.push(`${control} removed`),
          },
        ],
        () => undefined,
      ).emit,
    });
    controls.set('policy', 'armed');
    controls.set('authn:corp', 'armed');
    nowMs += 1000;
    controls.set('policy', 'armed');
    controls.set('authn:corp', 'degraded', 'keys not refreshed');
    nowMs += 1000;
    controls.set('authn:corp', 'degraded', 'keys gone');
    controls.set('admin', 'off', 'not configured');
    controls.remove('policy');
    expect(controls.snapshot()).toEqual([
      {
        control: 'admin',
        state: 'off',
        reason: 'not configured',
        since: '2026-11-20T09:30:02.123Z',
      },
      {
        control: 'authn:corp',
        state: 'degraded',
        reason: 'keys gone',
        since: '2026-11-20T09:30:01.123Z',
      },
    ]);
    expect(notified).toEqual([
      'policy armed',
      'authn:corp armed',
      'authn:corp degraded',
      'authn:corp degraded',
      'admin off',
      'policy removed',
    ]);
  });
});

const TIMES = { expiresMs: 600_000, useMs: 120_000 };
const BY_REVIEWER: ApprovalRule = {
  rule: 'github/review',
  terms: { ...TIMES, by: 'reviewer', groups: undefined, count: 1 },
};
const BY_LOGIN: ApprovalRule = {
  rule: 'github/ask',
  terms: { ...TIMES, by: 'caller', proof: 'login', remember: undefined },
};
const BY_CLIENT: ApprovalRule = {
  rule: 'github/form',
  terms: { ...TIMES, by: 'caller', proof: 'client', remember: undefined },
};

describe('the control approvals', () => {
  const roles = (reviewer: readonly string[], admin: readonly string[] = []) => ({
    issuers: { corp: { audience: 'admin', roles: { viewer: ['all'], reviewer, admin } } },
  });

  function stateOf(
    approvals: readonly ApprovalRule[],
    change: { admin?: object; state?: object; isUnreachable?: boolean; hides?: string; logins?: readonly string[] },
  ) {
    const none = { statuses: () => new Map(), get: () => undefined, all: () => [], countHidden: () => 0 };
    const { admin, state = { type: 'redis' }, isUnreachable = false, hides, logins = [] } = change;
    const identity = { ...none, hidesPersons: (name: string) => name === hides };
    const issuers = new Map(['corp', 'other'].map((name) => [name, { login: logins.includes(name) ? {} : undefined }]));
    const { emit } = createEvents([], () => undefined);
    const controls = createControls({ now: () => NOW, emit });
    const settings = {
      ...{
        upstreams: new Map(),
        aggregates: new Map(),
        profiles: new Map(),
        signing: undefined,
        admin,
        state,
        issuers,
      },
      ...{ audit: { onFailure: 'block', sinks: [] }, listeners: { data: {} } },
    } as unknown as Settings;
    const sources = {
      ...{ settings, identity, runtimes: none, aggregates: none, approvals, blocks: [], budgets: [] },
      ...{ unsettled: [], fixed: '', unsigned: new Set(), listenerErrors: [], deliveries: [], auditSpace: new Map() },
      ...{ store: { state: 'armed', reason: '', isUnreachable } },
    } as unknown as ControlSources;
    refreshControls(controls, emit, sources);
    const row = controls.snapshot().find(({ control }) => control === 'approvals');
    return [row?.state, row?.reason];
  }

  const hidden = (issuer: string) =>
    `nobody can approve who logs in at ${issuer}, which gives each client another subject for the same person: name the claim that tells it in issuers.<name>.login.match`;
  const NOBODY = 'nobody can review, because no group of admin.issuers has the role reviewer or admin: github/review';

  it.each([
    ['no rule asks', [], {}, 'off', 'no rule and no flow asks for an approval'],
    ['callers are asked, with a login', [BY_LOGIN], {}, 'armed', ''],
    ['a reviewer is asked, and there are some', [BY_REVIEWER], { admin: roles(['staff']) }, 'armed', ''],
    ['administrators review too', [BY_REVIEWER], { admin: roles([], ['ops']) }, 'armed', ''],
    ['a reviewer is asked without an admin listener', [BY_LOGIN, BY_REVIEWER], {}, 'degraded', NOBODY],
    ['callers cannot be told', [BY_LOGIN], { hides: 'corp', logins: ['corp'] }, 'degraded', hidden('corp')],
    ['callers have no login there', [BY_LOGIN], { hides: 'corp', logins: ['other'] }, 'armed', ''],
    ['reviewers cannot be told', [BY_REVIEWER], { hides: 'corp', admin: roles(['staff']) }, 'degraded', hidden('corp')],
    ['nobody reviews there', [BY_REVIEWER], { hides: 'other', admin: roles(['staff']) }, 'armed', ''],
    ['nobody has the role', [BY_REVIEWER], { admin: roles([]) }, 'degraded', NOBODY],
    ['only the break-glass token is configured', [BY_REVIEWER], { admin: { issuers: {} } }, 'degraded', NOBODY],
    [
      'clients answer',
      [BY_CLIENT, BY_LOGIN],
      {},
      'degraded',
      'answered by clients, perhaps without a person: github/form',
    ],
    [
      'the store is away',
      [BY_LOGIN],
      { isUnreachable: true },
      'degraded',
      'what needs an approval is refused, and nothing can be answered: no store',
    ],
    [
      'the state is in memory',
      [BY_LOGIN],
      { state: { type: 'memory' } },
      'armed',
      'state.type: memory, so questions and answers end with the process, and other replicas do not know of them',
    ],
  ] as const)('says that %s', (_, approvals, change, state, reason) => {
    expect(stateOf(approvals, change)).toEqual([state, reason]);
  });
});
