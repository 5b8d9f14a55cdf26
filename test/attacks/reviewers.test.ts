// Who is no reviewer: machines, the caller under other names, one person twice, and the break-glass token.

import { describe, expect, it } from 'vitest';
import { formTokenOf, logIn } from '../support/console-rig.js';
import { type ReviewRig, reviewPolicy, secondsAgo, startReview } from '../support/review-rig.js';
import { PATIENT } from '../support/timing.js';
import { shared, withStarted } from '../support/with-gateway.js';

const ARGS = { id: 'one', text: 'x' };

/** Asks for a call with arguments of its own, and returns the id of what waits. */
async function askOnce(rig: ReviewRig, text: string, claims?: Readonly<Record<string, unknown>>): Promise<string> {
  const before = new Set(await rig.waiting());
  await rig.call({ ...ARGS, text }, claims);
  const [id] = (await rig.waiting()).filter((one) => !before.has(one));
  expect(id).toBeDefined();
  return id ?? '';
}

describe('[APR-70] who is no reviewer', () => {
  const review = shared(() => startReview());

  it.each<[string, Readonly<Record<string, unknown>>, number]>([
    ['a machine, whose token has no auth_time', { sub: 'bot', groups: ['leads'] }, 401],
    ['somebody whose login is five minutes old', { sub: 'rev', groups: ['leads'], auth_time: secondsAgo(301) }, 401],
    ['an auth_time that is no number', { sub: 'rev', groups: ['leads'], auth_time: 'now' }, 401],
    ['an auth_time in the future', { sub: 'rev', groups: ['leads'], auth_time: secondsAgo(-300) }, 401],
    [
      'a client that is its own subject',
      { sub: 'bot', client_id: 'bot', groups: ['leads'], auth_time: secondsAgo(5) },
      401,
    ],
    [
      'an agent with the token of a person',
      { sub: 'rev', groups: ['leads'], auth_time: secondsAgo(5), act: { sub: 'bot' } },
      403,
    ],
    ['a viewer', { sub: 'rev', groups: ['sec'], auth_time: secondsAgo(5) }, 403],
    [
      'the caller under another client',
      { sub: 'mallory', client_id: 'other', groups: ['leads'], auth_time: secondsAgo(5) },
      403,
    ],
    ['an actor of the caller', { sub: 'agent-7', groups: ['leads'], auth_time: secondsAgo(5) }, 403],
  ])('%s', async (what, claims, status) => {
    const id = await askOnce(review, what, { sub: 'mallory', act: { sub: 'agent-7' } });
    const refused = await review.ask('POST', `/api/approvals/${id}/grant`, await review.adminToken(claims));
    expect([refused.status, await review.waiting()]).toEqual([status, expect.arrayContaining([id])]);
    expect((await review.ask('POST', `/api/approvals/${id}/deny`, review.breakGlass)).status).toBe(200);
  });

  it('the break-glass token, which lists, shows and denies, on the API and in the console', async () => {
    const id = await askOnce(review, 'by break glass');
    for (const path of ['', '/history', `/${id}`])
      expect((await review.ask('GET', `/api/approvals${path}`, review.breakGlass)).status).toBe(200);
    expect((await review.ask('POST', `/api/approvals/${id}/grant`, review.breakGlass)).status).toBe(403);
    expect(await review.waiting()).toContain(id);
    expect((await review.ask('POST', `/api/approvals/${id}/deny`, review.breakGlass)).status).toBe(200);
    expect(await review.waiting()).not.toContain(id);
  });

  it('a token for callers, a wrong one and none', async () => {
    const id = await askOnce(review, 'without a token');
    for (const token of [review.rig.access.token, `${review.breakGlass}x`, undefined])
      for (const [method, path] of [
        ['GET', ''],
        ['GET', `/${id}`],
        ['POST', `/${id}/grant`],
        ['POST', `/${id}/deny`],
      ] as const)
        expect((await review.ask(method, `/api/approvals${path}`, token)).status).toBe(401);
    expect(await review.waiting()).toContain(id);
  });

  it('a page of another origin, or with the form of another session', async () => {
    const id = await askOnce(review, 'across origins');
    const browser = await logIn(review);
    const page = `${review.url}/approvals/${id}`;
    const form = formTokenOf(await browser.open(page));
    expect(form).not.toBe('');
    const other = formTokenOf(await (await logIn(review)).open(page));
    const attempts = [
      browser.submit(`${page}/grant`, { form }, { origin: 'https://evil.example' }),
      browser.submit(`${page}/grant`, { form: other }),
      browser.submit(`${page}/grant`, {}),
      browser.submit(`${page}/grant?x=1`, { form }),
    ];
    for (const attempt of attempts) expect((await attempt).status).toBeGreaterThanOrEqual(400);
    for (const method of ['grant', 'deny']) expect((await browser.open(`${page}/${method}`)).status).toBe(404);
    expect(await review.waiting()).toContain(id);
    // A cookie is no token, and a token opens no page.
    const cookie = [...browser.cookies(review.url)].map(([name, value]) => `${name}=${value}`).join('; ');
    const posted = await fetch(`${review.url}/api/approvals/${id}/grant`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: '{}',
    });
    expect(posted.status).toBe(401);
    const token = await review.adminToken({ sub: 'rev', groups: ['leads'], auth_time: secondsAgo(5) });
    expect((await fetch(page, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
  });

  it('a person whose subject was blocked since', async () => {
    const id = await askOnce(review, 'blocked since');
    const token = await review.adminToken({ sub: 'leaver', groups: ['leads'], auth_time: secondsAgo(5) });
    const note = { note: 'left', block: { target: 'subject', issuer: 'test', subject: 'leaver' } };
    const blocked = await fetch(`${review.url}/api/revocations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${review.breakGlass}`, 'content-type': 'application/json' },
      body: JSON.stringify(note),
    });
    expect(blocked.status).toBe(201);
    expect((await review.ask('POST', `/api/approvals/${id}/grant`, token)).status).toBe(401);
    expect(await review.waiting()).toContain(id);
  });

  it('whoever may not answer, to be shown sensitive arguments; a reviewer is shown them when asking for them', async () => {
    const sensitive = 'sensitive:\n  target/write_record: [/arguments/text]\n';
    await review.rig.gateway.writePolicy('records', reviewPolicy() + sensitive);
    expect(await review.rig.gateway.reload()).not.toContainEqual(expect.objectContaining({ severity: 'error' }));
    const value = 'number-of-somebody';
    const id = await askOnce(review, value);
    const token = (groups: string) => review.adminToken({ sub: 'rev', groups: [groups], auth_time: secondsAgo(5) });
    const shown = async (query: string, group: string) => {
      const reply = await review.ask('GET', `/api/approvals/${id}${query}`, await token(group));
      return [reply.status, JSON.stringify(reply.value).includes(value)];
    };
    expect(await shown('', 'leads')).toEqual([200, false]);
    expect(await shown('?show=sensitive', 'leads')).toEqual([200, true]);
    expect(await shown('?show=sensitive', 'sec')).toEqual([403, false]);
    const browser = await logIn(review);
    const page = `${review.url}/approvals/${id}`;
    for (const path of ['', '?part=/text', '?part='])
      expect((await browser.open(page + path)).body).not.toContain(value);
    expect((await browser.open(`${page}?show=sensitive`)).body).toContain(value);
    for (const path of ['/', '/approvals', '/approvals/history'])
      expect((await browser.open(review.url + path)).body).not.toContain(value);
    await expect.poll(() => JSON.stringify(review.receiver.messages), PATIENT).toContain(id);
    expect(JSON.stringify(review.receiver.messages)).not.toContain(value);
    expect(JSON.stringify(await review.rig.gateway.audit()) + review.rig.gateway.log()).not.toContain(value);
  });
});

describe('[APR-70] whoever cannot be told from the caller', () => {
  const MATCH = 'login: {clientId: console, clientSecret: {env: CONSOLE_SECRET}, match: employee}';
  const review = shared(() => startReview({ testIssuer: ['algorithms: [ES256]', MATCH] }));

  it.each<[string, Readonly<Record<string, unknown>>, number, RegExp | undefined]>([
    ['an actor under another subject', { sub: 'a7', employee: 'e-17' }, 403, /You act for the caller/],
    ['an actor behind an actor', { sub: 'a7', employee: 'e-2', act: { sub: 'a8', employee: 'e-17' } }, 403, /You act/],
    ['perhaps an actor without the claim', { sub: 'a7' }, 403, /cannot be told/],
    ['perhaps an actor of another issuer', { sub: 'a7', iss: 'https://b.example' }, 403, /cannot be told/],
    ['nobody who acts for the caller', { sub: 'a7', employee: 'e-2' }, 200, undefined],
    ['no person but the client', { sub: 'agent', client_id: 'agent' }, 200, undefined],
  ])('%s', async (what, act, status, error) => {
    const id = await askOnce(review, what, { sub: 'mallory', employee: 'e-1', act });
    const claims = { sub: 'rev', employee: 'e-17', groups: ['leads'], auth_time: secondsAgo(5) };
    const reply = await review.ask('POST', `/api/approvals/${id}/grant`, await review.adminToken(claims));
    expect(reply.status).toBe(status);
    if (error !== undefined) expect(reply.value['error']).toMatch(error);
    expect((await review.waiting()).includes(id)).toBe(status !== 200);
  });

  it('a person of an issuer with another subject for each client and no claim may deny alone, and a control says so', () =>
    withStarted(
      () => startReview({ pairwise: true }),
      async (pairwise) => {
        const id = await askOnce(pairwise, 'pairwise');
        const browser = await logIn(pairwise);
        const page = `${pairwise.url}/approvals/${id}`;
        const form = formTokenOf(await browser.open(page));
        expect((await browser.submit(`${page}/grant`, { form })).body).toContain('gives each client another subject');
        expect(await pairwise.waiting()).toEqual([id]);
        const { body } = await browser.open(`${pairwise.url}/controls`);
        expect(body).toContain('nobody can approve who logs in at idp');
        await browser.submit(`${page}/deny`, { form });
        expect(await pairwise.waiting()).toEqual([]);
      },
    ));
});

describe('[APR-70] a session that is older than five minutes', () => {
  let aheadMs = 0;
  const review = shared(() => startReview({ now: () => Date.now() + aheadMs }));

  it('grants nothing until its person has logged in again, and is asked once more then', async () => {
    const browser = await logIn(review);
    await review.call({ ...ARGS, text: 'unattended' });
    const [id = ''] = await review.waiting();
    const page = `${review.url}/approvals/${id}`;
    const fresh = await browser.open(page);
    expect(fresh.body).toContain('Grant this request once');
    aheadMs = 6 * 60_000;
    const old = await browser.open(page);
    expect(old.body).not.toContain('Grant this request once');
    const refused = await browser.submit(`${page}/grant`, { form: formTokenOf(fresh) });
    expect([refused.status, refused.body.includes('Log in again')]).toEqual([401, true]);
    expect(await review.waiting()).toEqual([id]);
    const again = /href="(\/login\/with\/idp[^"]*)"/.exec(old.body)?.[1]?.replaceAll('&amp;', '&') ?? '';
    const before = browser.visited.length;
    aheadMs = 0;
    const back = await browser.open(review.url + again);
    const asked = browser.visited.slice(before).map((url) => new URL(url));
    expect(asked.map(({ searchParams }) => searchParams.get('max_age'))).toContain('300');
    expect(back.url).toBe(page);
    expect(await review.waiting()).toEqual([id]);
    await browser.submit(`${page}/grant`, { form: formTokenOf(back) });
    expect(await review.waiting()).toEqual([]);
  });
});

describe('[APR-70] two reviewers', () => {
  it('are two persons in the groups that the rule names', async () => {
    await withStarted(
      () => startReview({ approval: ', count: 2, reviewers: {groups: [dba]}' }),
      async (review) => {
        const id = await askOnce(review, 'twice');
        const grant = async (claims: Readonly<Record<string, unknown>>) => {
          const token = await review.adminToken({ auth_time: secondsAgo(5), ...claims });
          return (await review.ask('POST', `/api/approvals/${id}/grant`, token)).status;
        };
        expect(await grant({ sub: 'rev', groups: ['leads'] })).toBe(403);
        expect(await grant({ sub: 'rev', groups: ['leads', 'dba'] })).toBe(200);
        expect(await grant({ sub: 'rev', groups: ['leads', 'dba'], client_id: 'another' })).toBe(403);
        expect(await review.waiting()).toEqual([id]);
        expect(await grant({ sub: 'tom', groups: ['platform', 'dba'] })).toBe(200);
        expect((await review.call({ ...ARGS, text: 'twice' })).message).not.toHaveProperty('error');
      },
    );
  });

  it('are not told apart without the claim that tells one person, so that such a login grants nothing', async () => {
    await withStarted(
      () => startReview({ login: ', match: employee', issuer: ['algorithms: [ES256]'] }),
      async (review) => {
        const id = await askOnce(review, 'two issuers');
        const browser = await logIn(review);
        const page = `${review.url}/approvals/${id}`;
        const refused = await browser.submit(`${page}/grant`, { form: formTokenOf(await browser.open(page)) });
        expect(refused.body).toContain('lacks the claim');
        expect(await review.waiting()).toEqual([id]);
      },
    );
  });
});

describe('[APR-72] one caller with a thousand requests', () => {
  const review = shared(() => startReview());

  it('neither fills the list nor keeps others from being asked', async () => {
    const token = await review.rig.gateway.token('target', { sub: 'flood' });
    for (let count = 0; count < 60; count += 1)
      await review.call({ ...ARGS, text: `${count}` }, { sub: 'flood', client_id: `c${count}` });
    expect(token).not.toBe('');
    const id = await askOnce(review, 'of somebody else', { sub: 'ada' });
    const { value } = await review.ask('GET', '/api/approvals', review.breakGlass);
    const callers = value['callers'] as readonly { approvals: readonly object[]; more: number }[];
    expect(callers.map(({ approvals }) => approvals.length)).toEqual([5, 1]);
    const browser = await logIn(review);
    const { body } = await browser.open(`${review.url}/`);
    expect(body).toContain(`/approvals/${id}`);
    expect([...body.matchAll(/href="\/approvals\/[\w-]{16,}"/g)]).toHaveLength(6);
  });
});
