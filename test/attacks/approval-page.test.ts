// Attacks on the page on which callers answer: links that others open, prefetch, frame or post to; logins that prove
// nothing; forms of other sessions and requests; and texts that pass for something else.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ApprovalPageRig, logInAt, loginOf, startApprovalPage, verifiedNow } from '../support/approval-page.js';
import { formTokenOf, nextOf, sendOnce, TestBrowser } from '../support/console-rig.js';

type Ending = NonNullable<Parameters<typeof startApprovalPage>[0]>['ending'];

let rig: ApprovalPageRig;
let ending: NonNullable<Ending>;
let shut = false;
let clock = 0;
beforeAll(async () => {
  rig = await startApprovalPage({
    ending: () => ending(),
    isShut: () => shut,
    now: () => Date.now() + clock,
    allowedOrigins: ['https://app.example.com'],
  });
});
beforeEach(() => {
  ending = () => verifiedNow();
  shut = false;
  clock = 0;
  rig.kept.clear();
  rig.voices.length = 0;
  rig.problems.length = 0;
  rig.refused.length = 0;
});
afterAll(() => rig?.close());

const UNKNOWN = '0'.repeat(32);
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** A page without what differs for each id. */
const withoutId = (body: string, id: string) => body.replaceAll(id, 'ID');

describe('the link', () => {
  it('tells nothing before the login, not even whether there is such a request', async () => {
    const { id } = rig.add();
    for (const method of ['GET', 'HEAD']) {
      const [known, unknown] = [
        await sendOnce(rig.linkOf(id), { method }),
        await sendOnce(rig.linkOf(UNKNOWN), { method }),
      ];
      expect(known.status).toBe(200);
      expect([known.status, withoutId(known.body, id)]).toEqual([unknown.status, withoutId(unknown.body, UNKNOWN)]);
      expect(known.headers['set-cookie']).toBeUndefined();
      expect(known.body).not.toMatch(/\bann\b|delete_record|desk/);
    }
    const begun = await sendOnce(rig.linkOf(UNKNOWN), {
      method: 'POST',
      headers: { ...FORM, origin: rig.url },
      body: 'do=login',
    });
    // There is no issuer to lead to, so that whoever begins a login learns from that alone that there is no request.
    expect([begun.status, begun.headers['set-cookie']]).toEqual([404, undefined]);
    expect(begun.body).not.toMatch(/\bann\b|delete_record|desk|<form/);
  });

  it.each([
    '/',
    '/x',
    `/${'0'.repeat(31)}`,
    `/${'0'.repeat(33)}`,
    `/${'A'.repeat(32)}`,
    `/${UNKNOWN}/`,
    `/%30${'0'.repeat(31)}`,
    '//callback',
  ])('is an unknown path where it is no id: %s', async (rest) => {
    const url = `${rig.url}/.well-known/sallyport/approve${rest}`;
    const other = await sendOnce(`${rig.url}/no-such-path`);
    const found = await sendOnce(url);
    expect([found.status, found.body]).toEqual([other.status, other.body]);
    expect(found.status).toBe(404);
  });

  it('changes nothing when it is fetched ahead, with or without a session', async () => {
    const { id } = rig.add();
    const { browser } = await logInAt(rig.linkOf(id));
    for (const query of ['', '?do=grant', '?do=grant&form=x', '?show=sensitive', '?part='])
      await browser.open(`${rig.linkOf(id)}${query}`);
    await sendOnce(rig.linkOf(id), { headers: { purpose: 'prefetch', 'sec-purpose': 'prefetch' } });
    expect(rig.kept.get(id)?.answers).toEqual([]);
  });

  it('is shown without script, frame, referrer and cache', async () => {
    const { id } = rig.add();
    const { page } = await logInAt(rig.linkOf(id));
    for (const { headers, body } of [await sendOnce(rig.linkOf(id)), page]) {
      expect(headers['content-security-policy']).toMatch(
        /default-src 'none'.*form-action 'self'.*frame-ancestors 'none'/,
      );
      expect(headers).toMatchObject({
        ...{ 'x-frame-options': 'DENY', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
        ...{ 'referrer-policy': 'same-origin', 'cross-origin-opener-policy': 'same-origin' },
      });
      expect(headers['access-control-allow-origin']).toBeUndefined();
      expect(body).not.toContain('<script');
    }
    const across = await sendOnce(rig.linkOf(id), { headers: { origin: 'https://app.example.com' } });
    expect(across.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('takes no other Host, method or large form', async () => {
    const { id } = rig.add();
    expect((await sendOnce(rig.linkOf(id), { headers: { host: 'evil.example' } })).status).toBe(421);
    for (const method of ['PUT', 'DELETE', 'OPTIONS', 'PATCH'])
      expect((await sendOnce(rig.linkOf(id), { method })).status).toBe(405);
    const body = `do=grant&x=${'x'.repeat(5_000)}`;
    const headers = { ...FORM, origin: rig.url };
    expect((await sendOnce(rig.linkOf(id), { method: 'POST', headers, body })).status).toBe(413);
    const chunked = { ...headers, 'transfer-encoding': 'chunked' };
    expect((await sendOnce(rig.linkOf(id), { method: 'POST', headers: chunked, body })).status).toBe(400);
    expect(
      (await sendOnce(rig.linkOf(id), { method: 'GET', headers: { 'content-length': '1' }, body: 'x' })).status,
    ).toBe(413);
    expect(rig.kept.get(id)?.answers).toEqual([]);
  });
});

describe('a login', () => {
  it.each<[string, Awaited<ReturnType<NonNullable<Ending>>>, RegExp]>([
    ['that is old', { kind: 'old' }, /more than five minutes ago/],
    ['without a time', { kind: 'no-auth-time' }, /does not say when you logged in/],
    ['that the issuer refused', { kind: 'refused', cause: 'exchange' }, /did not log you in/],
  ])('%s opens nothing', async (_what, outcome, text) => {
    const { id } = rig.add();
    ending = () => outcome;
    const { browser, page } = await logInAt(rig.linkOf(id));
    expect(page.status).toBe(403);
    expect(page.body).toMatch(text);
    expect((await browser.open(rig.linkOf(id))).body).toContain('Log in to answer');
    expect(rig.problems).toHaveLength(outcome.kind === 'no-auth-time' ? 1 : 0);
    // Nothing that the issuer or the browser said is in the log.
    expect(rig.refused).toEqual(
      outcome.kind === 'no-auth-time' ? [] : [expect.stringMatching(/^the (?:issuer|person) /)],
    );
  });

  it.each([
    ['for the caller', [{ issuer: 'https://idp.example.com', subject: 'agent-7' }]],
    ['for another', [{ issuer: 'https://idp.example.com', subject: 'ann' }]],
  ])('in which somebody acts %s opens nothing, with a cause', async (who, actors) => {
    const { id } = rig.add();
    ending = () => verifiedNow({ actors, subject: who === 'for the caller' ? 'ann' : 'bob' });
    const { browser, page } = await logInAt(rig.linkOf(id));
    expect([page.status, page.body.includes('somebody else acts for you')]).toEqual([403, true]);
    expect((await browser.open(rig.linkOf(id))).body).toContain('Log in to answer');
    expect([browser.cookies(rig.url).size, rig.refused]).toEqual([0, [expect.stringContaining('(act)')]]);
  });

  it.each([
    ['another person', { subject: 'bob' }],
    ['the same subject of another issuer', { issuer: 'https://other.example' }],
    ['the same person by a claim at another issuer', { issuer: 'https://other.example', match: 'person-1' }],
    ['nobody by an empty claim', { subject: 'bob', match: undefined }],
  ])('of %s shows what an unknown id shows', async (_who, changes) => {
    const { id, subject } = rig.add();
    rig.kept.set(id, { ...rig.add(), id, subject: { ...subject, caller: { ...subject.caller, match: 'person-1' } } });
    ending = () => verifiedNow(changes);
    const { browser, page } = await logInAt(rig.linkOf(id));
    expect(page.status).toBe(404);
    const unknown = await browser.open(rig.linkOf(UNKNOWN));
    expect(withoutId(page.body, id)).toBe(withoutId(unknown.body, UNKNOWN));
  });

  it('of the same person by the claim that tells people opens the page', async () => {
    const approval = rig.add();
    const { caller } = approval.subject;
    rig.kept.set(approval.id, {
      ...approval,
      subject: { ...approval.subject, caller: { ...caller, match: 'person-1' } },
    });
    ending = () => verifiedNow({ subject: 'pairwise-of-ann', match: 'person-1' });
    const { page } = await logInAt(rig.linkOf(approval.id));
    expect(page.body).toContain('Do you approve this request?');
  });

  it('ends once: its way back serves no second time and no other browser', async () => {
    const { id } = rig.add();
    const browser = new TestBrowser();
    await browser.submit(rig.linkOf(id), { do: 'login' });
    const back = browser.visited.find((one) => one.includes('/callback?')) ?? '';
    expect((await browser.open(back)).status).toBe(400);
    expect((await new TestBrowser().open(back)).status).toBe(400);
    expect((await sendOnce(`${rig.url}/.well-known/sallyport/approve/callback`)).status).toBe(400);
  });

  it('begins with a form of this page alone', async () => {
    const { id } = rig.add();
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, {}]) {
      const page = await sendOnce(rig.linkOf(id), {
        method: 'POST',
        headers: { ...FORM, ...headers },
        body: 'do=login',
      });
      expect([page.status, page.headers['set-cookie']]).toEqual([403, undefined]);
    }
  });

  it('counts for five minutes, whatever the cookie says', async () => {
    const { id } = rig.add();
    ending = () => verifiedNow({ authTimeMs: Date.now() - 200_000 });
    const { browser, page } = await logInAt(rig.linkOf(id));
    clock = 101_000;
    const late = await browser.submit(rig.linkOf(id), { form: formTokenOf(page), do: 'grant' });
    expect(late.status).toBe(403);
    expect(late.body).toContain('more than five minutes old');
    expect(rig.voices).toEqual([]);
  });

  it('of a person who was blocked since opens nothing', async () => {
    const { id } = rig.add();
    const { browser, page } = await logInAt(rig.linkOf(id));
    shut = true;
    await browser.submit(rig.linkOf(id), { form: formTokenOf(page), do: 'grant' });
    expect(rig.voices).toEqual([]);
  });

  it('leads to the issuer by a page, because browsers hold form-action also against redirects of a form', async () => {
    const { id } = rig.add();
    const headers = { ...FORM, origin: rig.url };
    const begun = await sendOnce(rig.linkOf(id), { method: 'POST', headers, body: 'do=login' });
    expect([begun.status, begun.headers['location']]).toEqual([200, undefined]);
    expect(begun.headers['content-security-policy']).toContain("form-action 'self'");
    expect(begun.body).toContain(`href="${nextOf(begun)?.replaceAll('&', '&amp;')}"`);
  });

  it('is limited for each caller', async () => {
    const approval = rig.add();
    const { caller } = approval.subject;
    const busy = { ...approval.subject, caller: { ...caller, subject: 'busy' } };
    const { id } = rig.add({ subject: busy });
    const begin = (at: string) =>
      sendOnce(rig.linkOf(at), { method: 'POST', headers: { ...FORM, origin: rig.url }, body: 'do=login' });
    const found = [];
    for (let count = 0; count < 31; count += 1) found.push((await begin(id)).status);
    expect(found.slice(0, 30)).toEqual(Array(30).fill(200));
    expect(found[30]).toBe(429);
    expect((await begin(approval.id)).status).toBe(200);
  });
});

describe('an answer', () => {
  it('is taken once, with the person and the proof', async () => {
    const { id } = rig.add();
    const { browser, page } = await logInAt(rig.linkOf(id));
    const done = await browser.submit(rig.linkOf(id), { form: formTokenOf(page), do: 'grant' });
    expect([done.status, done.body.includes('You approved this request.')]).toEqual([200, true]);
    expect(rig.voices).toEqual([
      {
        ...{ party: 'caller', proof: 'login', verdict: 'granted', groups: [] },
        person: { issuer: 'https://idp.example.com', subject: 'ann', match: undefined },
      },
    ]);
    const again = await browser.submit(rig.linkOf(id), { form: formTokenOf(page), do: 'deny' });
    expect([again.status, rig.voices.length]).toEqual([409, 1]);
  });

  it.each<[string, Record<string, string>]>([
    ['from another site', { origin: 'https://evil.example' }],
    ['from an origin that may call the gateway', { origin: 'https://app.example.com' }],
    ['from a sandboxed frame', { origin: 'null' }],
    ['from a site whose name begins like this one', { origin: 'http://127.0.0.1.evil.example' }],
    ['as something else than a form', { 'content-type': 'text/plain' }],
    ['as JSON', { 'content-type': 'application/json' }],
  ])('does not come %s', async (_what, headers) => {
    const { id } = rig.add();
    const { browser, page } = await logInAt(rig.linkOf(id));
    const done = await browser.submit(rig.linkOf(id), { form: formTokenOf(page), do: 'grant' }, headers);
    expect(done.status).toBeGreaterThanOrEqual(400);
    expect(rig.voices).toEqual([]);
  });

  it('does not come from nowhere', async () => {
    const { id } = rig.add();
    const { browser, page } = await logInAt(rig.linkOf(id));
    const cookie = [...browser.cookies(rig.url)].map(([name, value]) => `${name}=${value}`).join('; ');
    const body = new URLSearchParams({ form: formTokenOf(page), do: 'grant' }).toString();
    for (const headers of [
      { ...FORM, cookie },
      { ...FORM, cookie, 'sec-fetch-site': 'same-origin' },
    ])
      expect((await sendOnce(rig.linkOf(id), { method: 'POST', headers, body })).status).toBe(403);
    expect(rig.voices).toEqual([]);
  });

  it('needs the form of this request and this session', async () => {
    const [one, other] = [rig.add(), rig.add()];
    const first = await logInAt(rig.linkOf(one.id));
    const second = await logInAt(rig.linkOf(one.id));
    const forms = [
      formTokenOf(await first.browser.open(rig.linkOf(other.id))),
      formTokenOf(second.page),
      '',
      'x'.repeat(64),
    ];
    for (const form of forms) {
      const done = await first.browser.submit(rig.linkOf(one.id), { form, do: 'grant' });
      expect(done.status).toBe(403);
    }
    expect(rig.voices).toEqual([]);
  });

  it('is not one that the form does not have', async () => {
    const { id } = rig.add();
    const { browser, page } = await logInAt(rig.linkOf(id));
    for (const verdict of ['granted', '', 'GRANT', 'toString'])
      expect((await browser.submit(rig.linkOf(id), { form: formTokenOf(page), do: verdict })).status).toBe(400);
    expect(rig.voices).toEqual([]);
  });

  it('comes too late for what is over, and is not asked of the caller where only a reviewer is', async () => {
    const late = rig.add({ expiresAtMs: Date.now() + 60_000 });
    const { browser, page } = await logInAt(rig.linkOf(late.id));
    rig.kept.set(late.id, { ...late, expiresAtMs: Date.now() - 1 });
    expect((await browser.submit(rig.linkOf(late.id), { form: formTokenOf(page), do: 'grant' })).status).toBe(409);
    expect((await browser.open(rig.linkOf(late.id))).body).toContain('its time is over');
    const { demand } = late;
    const reviewed = rig.add({ demand: { ...demand, caller: undefined, reviewer: { groups: [], count: 1 } } });
    const shown = await browser.open(rig.linkOf(reviewed.id));
    expect(shown.body).toContain('a reviewer answers');
    expect(formTokenOf(shown)).toBe('');
  });

  it('is given in two tabs, each with a login of its own', async () => {
    // What others have begun to log in does not count here.
    const own = await startApprovalPage();
    const [one, other] = [own.add(), own.add()];
    const browser = new TestBrowser();
    const stopAt = (next: string) => next.includes('/callback?');
    const begin = async (id: string) => {
      const headers = { ...FORM, origin: own.url };
      const page = await sendOnce(own.linkOf(id), { method: 'POST', headers, body: 'do=login' });
      for (const line of [page.headers['set-cookie'] ?? []].flat()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        browser.cookies(own.url).set(name, value);
      }
      return nextOf(page) ?? '';
    };
    const [back, otherBack] = [await begin(one.id), await begin(other.id)];
    expect(stopAt(back)).toBe(true);
    expect((await browser.open(back)).body).toContain(one.id);
    expect((await browser.open(otherBack)).body).toContain(other.id);
    for (const { id } of [one, other]) {
      const form = formTokenOf(await browser.open(own.linkOf(id)));
      await browser.submit(own.linkOf(id), { form, do: 'deny' });
    }
    expect(own.voices.map(({ verdict }) => verdict)).toEqual(['denied', 'denied']);
    await own.close();
  });
});

describe('cookies and tokens', () => {
  it('do not take the place of each other', async () => {
    const { id } = rig.add();
    const { browser } = await logInAt(rig.linkOf(id));
    const token = [...browser.cookies(rig.url).values()][0] ?? '';
    const page = await sendOnce(rig.linkOf(id), { headers: { authorization: `Bearer ${token}` } });
    expect(page.body).toContain('Log in to answer');
  });

  it('are refused when they are changed, of a login, or there twice', async () => {
    const { id } = rig.add();
    const { browser } = await logInAt(rig.linkOf(id));
    const [[name = '', value = ''] = []] = [...browser.cookies(rig.url)];
    const changed = `${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const cookie of [
      `${name}=${changed}`,
      `${name}=`,
      `${name}=${value}; ${name}=${value}`,
      `${name}x=${value}`,
    ]) {
      const page = await sendOnce(rig.linkOf(id), { headers: { cookie } });
      expect(page.body).toContain('Log in to answer');
    }
  });
});

describe('an issuer', () => {
  it.each<[string, 'pairwise' | 'unavailable' | undefined, number, number]>([
    ['without a login', undefined, 503, 1],
    ['that would not say who it is', 'pairwise', 503, 1],
    ['that cannot be reached', 'unavailable', 503, 0],
  ])('%s is named to the operator, where there is something to configure', async (_what, begun, status, problems) => {
    const client = begun && { ...loginOf(() => '', verifiedNow), begin: async () => begun };
    const other = await startApprovalPage({ client: () => client });
    const { id } = other.add();
    const { page } = await logInAt(other.linkOf(id));
    expect([page.status, other.problems.length]).toEqual([status, problems]);
    await other.close();
  });
});

describe('texts that pass for something else', () => {
  const HOSTILE = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "' onfocus='alert(1)",
    '</pre></main><form action=https://evil.example>',
    'a\u202eb\u200bc\u0000d\u{e0041}e\u00a0f\u2800g',
  ];

  it('have no markup and no invisible part, wherever they stand', async () => {
    for (const text of HOSTILE) {
      const base = rig.add();
      const { id } = rig.add({
        subject: {
          ...base.subject,
          upstream: text,
          method: text,
          name: text,
          caller: { ...base.subject.caller, client: text, actors: [{ issuer: text, subject: text }] },
        },
        demand: { ...base.demand, rules: [text], reasons: [text] },
        content: {
          args: JSON.stringify({ [text]: text, list: [text] }),
          definition: { name: text, title: text, description: text, inputSchema: { [text]: text } },
          selfReported: { name: text, version: text },
          labels: [text],
          findings: [
            { detector: text, direction: 'to-upstream', path: `/params/arguments/${text}`, count: 1, action: 'flag' },
          ],
          sensitive: [],
        },
      });
      const { browser, page } = await logInAt(rig.linkOf(id));
      const part = await browser.open(`${rig.linkOf(id)}?part=${encodeURIComponent('/list')}`);
      for (const { body } of [page, part]) {
        expect(body).not.toMatch(/<script|<img|onfocus='|evil\.example>|\u202e|\u200b|\u{e0041}|\u00a0f|\u2800/u);
        expect(body.match(/<\/main>/g)).toHaveLength(1);
      }
    }
  });
});
