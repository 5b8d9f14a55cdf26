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

type Change = { admin?: object; state?: object; isUnreachable?: boolean; hides?: string; logins?: readonly string[] };

/** What the table is made of where nothing is configured but what is given. */
function sourcesOf(approvals: readonly ApprovalRule[], change: Change): ControlSources {
  const none = { statuses: () => new Map(), get: () => undefined, all: () => [], countHidden: () => 0 };
  const { admin, state = { type: 'redis' }, isUnreachable = false, hides, logins = [] } = change;
  const identity = { ...none, hidesPersons: (name: string) => name === hides };
  const issuers = new Map(['corp', 'other'].map((name) => [name, { login: logins.includes(name) ? {} : undefined }]));
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
  return {
    ...{ settings, identity, runtimes: none, aggregates: none, approvals, blocks: [], budgets: [] },
    ...{ unsettled: [], fixed: '', unsigned: new Set(), listenerErrors: [], deliveries: [], auditSpace: new Map() },
    ...{ store: { state: 'armed', reason: '', isUnreachable } },
  } as unknown as ControlSources;
}

describe('the control approvals', () => {
  const roles = (reviewer: readonly string[], admin: readonly string[] = []) => ({
    issuers: { corp: { audience: 'admin', roles: { viewer: ['all'], reviewer, admin } } },
  });

  function stateOf(approvals: readonly ApprovalRule[], change: Change) {
    const { emit } = createEvents([], () => undefined);
    const controls = createControls({ now: () => NOW, emit });
    refreshControls(controls, emit, sourcesOf(approvals, change));
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

describe('[AD-02] the control of a receiver of audit lines', () => {
  const NOW_MS = Date.UTC(2030, 0, 1, 12);
  const ago = (seconds: number): number => NOW_MS - seconds * 1000;
  const has = { behindSinceMs: undefined, takenAtMs: ago(1), waitingSinceMs: undefined };

  it.each([
    ['it has all lines', has, 'armed', 'delivers what was recorded from audit-1.jsonl on'],
    ['it starts', { ...has, from: undefined, behindSinceMs: ago(1), takenAtMs: undefined }, 'armed', ''],
    [
      'it failed for a minute at most',
      { behindSinceMs: ago(60), takenAtMs: ago(61), waitingSinceMs: ago(3_600), error: 'ECONNREFUSED' },
      'armed',
      'delivers what was recorded from audit-1.jsonl on',
    ],
    [
      'it took nothing for more than a minute',
      { behindSinceMs: ago(90), takenAtMs: ago(120), waitingSinceMs: ago(91), error: 'ECONNREFUSED' },
      'degraded',
      'nothing was delivered since 2030-01-01T11:58:30.000Z: ECONNREFUSED; lines since 2030-01-01T11:58:29.000Z wait',
    ],
    [
      'it never took anything, and its position cannot be read',
      { behindSinceMs: ago(61), takenAtMs: undefined, waitingSinceMs: undefined, from: undefined, error: 'EACCES' },
      'degraded',
      'nothing was delivered since 2030-01-01T11:58:59.000Z: EACCES',
    ],
    ['it catches up', { behindSinceMs: ago(30), takenAtMs: ago(1), waitingSinceMs: ago(3_600) }, 'armed', undefined],
    [
      'it does not catch up',
      { behindSinceMs: ago(61), takenAtMs: ago(1), waitingSinceMs: ago(100) },
      'degraded',
      'it falls behind: since 2030-01-01T11:58:59.000Z it has not had all lines',
    ],
    [
      'it is always behind, by little',
      { behindSinceMs: ago(600), takenAtMs: ago(1), waitingSinceMs: ago(2) },
      'armed',
      undefined,
    ],
  ])('when %s', (_, delivery, state, reason) => {
    const { emit } = createEvents([], () => undefined);
    const controls = createControls({ now: () => NOW_MS, emit });
    refreshControls(controls, emit, {
      ...sourcesOf([], {}),
      nowMs: NOW_MS,
      deliveries: [
        { name: 'siem', from: 'audit-1.jsonl', isPlain: false, error: undefined, waitingBytes: 9, refused: undefined },
      ].map((one) => ({ ...one, ...delivery })),
    });
    const row = controls.snapshot().find(({ control }) => control === 'audit-delivery:siem');
    expect(row).toMatchObject({ state, ...(reason === undefined ? {} : { reason }) });
  });
});

describe('the control of the space for audit files', () => {
  it.each([
    [
      { freeBytes: 100_000, totalBytes: 16_777_216 },
      'degraded',
      'the volume of file has 97.66 KiB free, less than 1.60 MiB',
    ],
    [{ freeBytes: 6 * 1024 ** 3, totalBytes: 1024 ** 4 }, 'armed', ''],
    [{ freeBytes: 0, totalBytes: 1024 ** 4 }, 'degraded', 'the volume of file has 0 B free, less than 5.00 GiB'],
  ])('says in units that fit what is free: %o', (space, state, reason) => {
    const { emit } = createEvents([], () => undefined);
    const controls = createControls({ now: () => 0, emit });
    refreshControls(controls, emit, { ...sourcesOf([], {}), auditSpace: new Map([['file', space]]) });
    expect(controls.snapshot().find(({ control }) => control === 'audit-space')).toMatchObject({ state, reason });
  });
});
