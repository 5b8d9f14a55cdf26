import { describe, expect, it } from 'vitest';
import type { AdminCaller, TokenHolder } from '../../../src/admin/api-response.js';
import { historyList, refuseToGrant, shownApproval, shownInFull, waitingList } from '../../../src/admin/approvals.js';
import { readApprovalRequest, respondToApproval } from '../../../src/admin/approvals-api.js';
import type { ShownApproval } from '../../../src/policy/approval.js';
import { approvalOf, listDesk, personOf } from '../../support/approvals.js';

const NOW = Date.parse('2026-11-20T09:30:00Z');
const SECOND = 1_000;

function holderOf(subject: string, more: Partial<TokenHolder> = {}): TokenHolder {
  const recent = NOW - 10 * SECOND;
  const about = { groups: [], hasActors: false, proof: 'token' as const, authenticatedAtMs: recent };
  return { person: personOf(subject), ...about, ...more };
}

const reviewer = (subject: string, more: Partial<TokenHolder> = {}): AdminCaller => ({
  ...{ issuer: 'corp', subject, roles: ['reviewer'] },
  holder: holderOf(subject, more),
});
const BREAK_GLASS: AdminCaller = { subject: 'break-glass', roles: ['viewer', 'reviewer', 'admin'] };

async function ask(
  method: string,
  path: string,
  caller: AdminCaller,
  kept: readonly ShownApproval[],
  body: { readonly type?: string; readonly text?: string } = {},
) {
  const asked = readApprovalRequest(method, path);
  if (asked === undefined) return undefined;
  const desk = listDesk(kept, () => NOW);
  const sent = { type: body.type ?? 'application/json', read: async () => body.text ?? '{}' };
  const { response } = await respondToApproval(asked, caller, sent, { approvals: desk, now: () => NOW });
  return { status: response.status, value: JSON.parse(response.body), headers: response.headers ?? {}, desk };
}

describe('[APR-70] who may grant', () => {
  it.each<[string, AdminCaller, string | undefined]>([
    ['a token of a person who logged in ten seconds ago', reviewer('rev'), undefined],
    ['one at the bound', reviewer('rev', { authenticatedAtMs: NOW - 299 * SECOND }), undefined],
    ['one beyond it', reviewer('rev', { authenticatedAtMs: NOW - 300 * SECOND }), 'not-authenticated-recently'],
    [
      'a token without auth_time, as machines have',
      reviewer('rev', { authenticatedAtMs: undefined }),
      'not-authenticated-recently',
    ],
    ['a clock that is a little ahead', reviewer('rev', { authenticatedAtMs: NOW + 20 * SECOND }), undefined],
    [
      'an auth_time in the future',
      reviewer('rev', { authenticatedAtMs: NOW + 60 * SECOND }),
      'not-authenticated-recently',
    ],
    ['a token that an agent presents for a person', reviewer('rev', { hasActors: true }), 'acted-for'],
    ['a login at the console ten seconds ago', reviewer('rev', { proof: 'login' }), undefined],
    [
      'a login of which it is not known when it was',
      reviewer('rev', { proof: 'login', authenticatedAtMs: undefined }),
      'not-authenticated-recently',
    ],
    [
      'a session that has been open for an hour',
      reviewer('rev', { proof: 'login', authenticatedAtMs: NOW - 3_600 * SECOND }),
      'not-authenticated-recently',
    ],
    ['a token without the claim that tells one person', reviewer('rev', { untold: 'by-token' }), 'without-match'],
    ['a token of an issuer with another subject for each client', reviewer('rev', { untold: 'by-issuer' }), 'pairwise'],
    ['a login of an agent', reviewer('rev', { proof: 'login', hasActors: true }), 'acted-for'],
    ['the break-glass token', BREAK_GLASS, 'break-glass'],
  ])('%s', async (_what, caller, why) => {
    expect(refuseToGrant(caller, NOW)).toBe(why);
    const one = approvalOf(NOW);
    const granted = await ask('POST', `/api/approvals/${one.id}/grant`, caller, [one]);
    expect(granted?.status).toBe(why === undefined ? 200 : why === 'not-authenticated-recently' ? 401 : 403);
    expect(granted?.desk.taken).toHaveLength(why === undefined ? 1 : 0);
    const challenge = 'Bearer error="insufficient_user_authentication", max_age=300';
    expect(granted?.headers['www-authenticate']).toBe(why === 'not-authenticated-recently' ? challenge : undefined);
    const denied = await ask('POST', `/api/approvals/${one.id}/deny`, caller, [one]);
    expect([denied?.status, denied?.value.approval.state]).toEqual([200, 'denied']);
  });

  it.each<[string, Parameters<typeof approvalOf>[1], AdminCaller, number]>([
    ['the caller', {}, reviewer('ada'), 403],
    ['the caller under another client', { caller: { client: 'other' } }, reviewer('ada'), 403],
    ['an actor of the caller', { caller: { actors: [personOf('rev')] } }, reviewer('rev'), 403],
    [
      'an actor of the caller, by the claim that tells one person',
      { caller: { match: 'e-1', actors: [personOf('a7', undefined, 'e-17')] } },
      reviewer('rev', { person: personOf('rev', undefined, 'e-17') }),
      403,
    ],
    [
      'perhaps an actor of the caller, of whom the claim is not known',
      { caller: { match: 'e-1', actors: [personOf('a7')] } },
      reviewer('rev', { person: personOf('rev', undefined, 'e-17') }),
      403,
    ],
    [
      'nobody whom a client that acts for the caller could be',
      { caller: { match: 'e-1', actors: [{ ...personOf('agent'), isClient: true }] } },
      reviewer('rev', { person: personOf('rev', undefined, 'e-17') }),
      200,
    ],
    [
      'the caller at another issuer, by the claim that tells one person',
      { caller: { match: 'e-17' } },
      reviewer('ada', { person: personOf('a1', 'https://staff.example.com', 'e-17') }),
      403,
    ],
    ['nobody of the groups', { demand: { reviewer: { groups: [['dba']], count: 1 } } }, reviewer('rev'), 403],
    [
      'only some of the groups',
      { demand: { reviewer: { groups: [['dba'], ['sec']], count: 1 } } },
      reviewer('rev', { groups: ['dba'] }),
      403,
    ],
    [
      'all of the groups',
      { demand: { reviewer: { groups: [['dba'], ['sec', 'lead']], count: 1 } } },
      reviewer('rev', { groups: ['dba', 'lead'] }),
      200,
    ],
    ['what no reviewer is asked', { demand: { reviewer: undefined } }, reviewer('rev'), 403],
    ['what has expired', { expiresAtMs: NOW }, reviewer('rev'), 409],
    ['what was used', { state: 'used' }, reviewer('rev'), 409],
  ])('%s', async (_what, parts, caller, status) => {
    const one = approvalOf(NOW, parts);
    expect((await ask('POST', `/api/approvals/${one.id}/grant`, caller, [one]))?.status).toBe(status);
  });

  it('counts two reviewers only if they are two', async () => {
    const plain = approvalOf(NOW, { demand: { reviewer: { groups: [], count: 2 } } });
    const { subject } = plain;
    const first = { ...plain, subject: { ...subject, caller: { ...subject.caller, match: 'e-1' } } };
    const path = `/api/approvals/${first.id}/grant`;
    const once = await ask('POST', path, reviewer('rev', { person: personOf('rev', undefined, 'e-17') }), [first]);
    expect(once?.value.approval).toMatchObject({ state: 'waiting', waitsFor: ['reviewer'] });
    const kept = once?.desk.kept ?? [];
    for (const again of [
      reviewer('rev'),
      reviewer('r2', { person: personOf('r2', 'https://staff.example.com', 'e-17') }),
    ])
      expect((await ask('POST', path, again, kept))?.status).toBe(403);
    expect(
      (await ask('POST', path, reviewer('tom', { person: personOf('tom', undefined, 'e-18') }), kept))?.value.approval
        .state,
    ).toBe('granted');
  });

  it('does not grant what is not kept for showing', async () => {
    const one = { ...approvalOf(NOW), content: undefined };
    expect((await ask('POST', `/api/approvals/${one.id}/grant`, reviewer('rev'), [one]))?.status).toBe(409);
    expect((await ask('POST', `/api/approvals/${one.id}/deny`, reviewer('rev'), [one]))?.status).toBe(200);
  });
});

describe('[APR-71] the API of approvals', () => {
  const viewer: AdminCaller = { issuer: 'corp', subject: 'vic', roles: ['viewer'], holder: holderOf('vic') };

  it.each([
    ['GET', '/api/approvals', 200],
    ['GET', '/api/approvals/history', 200],
    ['GET', '/api/approvals/{id}', 200],
    ['GET', '/api/approvals/{id}?show=sensitive', 403],
    ['POST', '/api/approvals/{id}/grant', 403],
    ['POST', '/api/approvals/{id}/deny', 403],
    ['GET', '/api/approvals/{id}/grant', undefined],
    ['POST', '/api/approvals', undefined],
    ['POST', '/api/approvals/{id}', undefined],
    ['DELETE', '/api/approvals/{id}', undefined],
    ['GET', '/api/approvals/short', undefined],
    ['GET', '/api/approvals/{id}/', undefined],
    ['GET', '/api/approvals/{id}?show=nothing', undefined],
  ])('for a viewer, %s %s is %s', async (method, path, status) => {
    const one = approvalOf(NOW);
    expect((await ask(method, path.replace('{id}', one.id), viewer, [one]))?.status).toBe(status);
  });

  it.each([
    [{ type: 'application/x-www-form-urlencoded' }, 415],
    [{ type: 'text/plain' }, 415],
    [{ text: '[]' }, 400],
    [{ text: '{"verdict":"granted"}' }, 400],
    [{ text: '' }, 400],
  ])('takes no answer as %j', async (body, status) => {
    const one = approvalOf(NOW);
    const done = await ask('POST', `/api/approvals/${one.id}/grant`, reviewer('rev'), [one], body);
    expect([done?.status, done?.desk.taken.length]).toEqual([status, 0]);
  });

  it('has exactly these members, and arguments for one alone', () => {
    const one = approvalOf(NOW, {
      caller: { actors: [personOf('bot')], match: 'e-17' },
      content: {
        ...{ args: '{"id":1.0,"pin":"1234"}', sensitive: ['/pin'], labels: ['customer'] },
        ...{ selfReported: { name: 'agent', version: '1' }, definition: { name: 'delete_record' } },
        findings: [{ detector: 'secrets', direction: 'to-upstream', path: '/id', count: 1, action: 'flag' }],
      },
    });
    const listed = {
      ...{ id: one.id, state: 'waiting', waitsFor: ['reviewer'] },
      caller: {
        ...{ issuer: 'https://idp.example.com', subject: 'ada', client: 'agent' },
        actors: [{ issuer: 'https://idp.example.com', subject: 'bot' }],
      },
      ...{ upstream: 'desk', method: 'tools/call', name: 'delete_record' },
      ...{ rules: ['records/ask'], reasons: ['Deleting is for good.'], reviewers: { count: 1, groups: [] } },
      ...{ answers: [], decision: one.decisionId },
      ...{ created: '2026-11-20T09:30:00.000Z', expires: '2026-11-20T09:40:00.000Z' },
      ...{ usableUntil: null, rememberedUntil: null },
    };
    expect(shownApproval(one, NOW)).toStrictEqual(listed);
    expect(shownInFull(one, NOW, false)).toStrictEqual({
      ...{ ...listed, shown: `sha256:${one.shown}` },
      ...{ arguments: '{"id":1.0,"pin":"[masked]"}', argumentsBytes: 23, masked: ['/pin'] },
      ...{ definition: { name: 'delete_record' }, selfReported: { name: 'agent', version: '1' } },
      ...{ labels: ['customer'], findings: [{ detector: 'secrets', path: '/id', count: 1, action: 'flag' }] },
    });
    expect(shownInFull(one, NOW, true)).toMatchObject({ arguments: '{"id":1.0,"pin":"1234"}', masked: [] });
    const unknown = approvalOf(NOW, { content: { labels: 'unknown' } });
    expect(shownInFull(unknown, NOW, false)).toMatchObject({ labels: null });
  });

  it('says that the store is unreachable', async () => {
    const desk = {
      find: async () => 'unavailable' as const,
      list: async () => 'unavailable' as const,
    };
    const ports = { approvals: { ...listDesk([], () => NOW), ...desk }, now: () => NOW };
    const sent = { type: 'application/json', read: async () => '{}' };
    for (const asked of [
      { action: 'list-approvals' },
      { action: 'show-approval', id: 'x', isUnmasked: false },
      { action: 'grant-approval', id: 'x' },
    ] as const)
      expect((await respondToApproval(asked, reviewer('rev'), sent, ports)).response.status).toBe(503);
  });
});

describe('[APR-72] lists', () => {
  it('show some of each caller, however many of one wait, and the oldest first', () => {
    const crowd = Array.from({ length: 1_000 }, (_, at) =>
      approvalOf(NOW, { caller: { subject: 'mallory', client: `client-${at}` }, createdAtMs: NOW - 1_000 + at }),
    );
    const other = approvalOf(NOW, { caller: { subject: 'ada' } });
    const { callers, unlisted, forReviewers } = waitingList([other, ...crowd.toReversed()], NOW);
    expect([unlisted, forReviewers]).toEqual([0, 1_001]);
    expect(callers.map(({ caller, shown, more }) => [caller.subject, shown.length, more])).toEqual([
      ['mallory', 5, 995],
      ['ada', 1, 0],
    ]);
    expect(callers[0]?.shown).toEqual(crowd.slice(0, 5));
  });

  it('put first what a reviewer is asked', () => {
    const own = { caller: { proof: 'login', remember: undefined }, reviewer: undefined } as const;
    const askedThemselves = Array.from({ length: 150 }, (_, at) =>
      approvalOf(NOW, { caller: { subject: `one-${at}` }, demand: own }),
    );
    const both = [approvalOf(NOW, { demand: own }), approvalOf(NOW)];
    const { callers, unlisted } = waitingList([...both.toReversed(), ...askedThemselves], NOW);
    expect(callers[0]?.shown).toEqual(both.toReversed());
    expect([callers.length, unlisted]).toEqual([100, 51]);
  });

  it('have what was answered in the history, the newest first, and say how much is left out', () => {
    const over = Array.from({ length: 250 }, () => approvalOf(NOW, { state: 'used' }));
    const { shown, more } = historyList([approvalOf(NOW), ...over, approvalOf(NOW, { expiresAtMs: NOW })], NOW);
    expect([shown.length, shown[0], more]).toEqual([200, over[0], 51]);
    expect(waitingList([...over, approvalOf(NOW, { expiresAtMs: NOW })], NOW).callers).toEqual([]);
  });
});
