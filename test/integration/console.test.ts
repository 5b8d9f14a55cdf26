// The console of a running gateway, in front of a real OpenID Connect provider: who gets in, what each role sees, and
// what the forms do.

import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { type ConsoleRig, formTokenOf, logIn, sendOnce, startConsole, TestBrowser } from '../support/console-rig.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { readLockOf } from '../support/lock-files.js';
import { PATIENT } from '../support/timing.js';
import { makeAuthority } from '../support/tls.js';
import { bearer, callStateless, requestStateless, toolNames } from '../support/wire-client.js';
import { shared, withStarted } from '../support/with-gateway.js';

const [FIRST, ...OTHERS] = HONEST_TOOLS;
const HOSTILE = '</td><script>alert(1)</script>"\'><b>\u202e\u200b';
const DRIFTED = [{ ...FIRST, description: `Reads a record. ${HOSTILE}` }, ...OTHERS];

/** Waits until the gateway has seen that a tool drifted. */
async function drift({ rig }: ConsoleRig): Promise<void> {
  rig.upstream.offer(() => DRIFTED);
  await vi.waitFor(async () => {
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['write_record']);
  }, PATIENT);
}

async function openDefinition(browser: TestBrowser, { url }: ConsoleRig) {
  const list = await browser.open(`${url}/drift`);
  const path = /href="(\/drift\/[0-9a-f]{32})"/.exec(list.body)?.[1] ?? '';
  return browser.open(url + path);
}

describe('the console for a reviewer', () => {
  let browser: TestBrowser;
  const console = shared(() => startConsole({ groups: ['leads'] }));
  beforeAll(async () => {
    browser = await logIn(console);
  });

  it('[CON-01] logs in by code flow with PKCE, state and nonce, and shows the controls', async () => {
    const other = new TestBrowser();
    const page = await other.open(`${console.url}/login/with/idp?to=%2Fupstreams`);
    expect([page.status, page.url]).toEqual([200, `${console.url}/upstreams`]);
    expect(page.body).toContain('ann (reviewer)');
    const asked = new URL(other.visited.find((one) => one.includes('/auth?')) ?? '');
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      response_type: 'code',
      redirect_uri: `${console.url}/login/callback`,
      code_challenge_method: 'S256',
      scope: 'openid',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect((await other.open(console.url)).body).toContain('pins:target');
  });

  it('[CON-01] records logins and looks with the subject, and no cookie, code or secret', async () => {
    const find = async () => (await console.rig.gateway.audit()).filter((line) => line['type'] === 'admin.action');
    await expect.poll(find, PATIENT).toContainEqual(
      expect.objectContaining({
        actor: expect.objectContaining({ sub: 'ann' }),
        detail: expect.objectContaining({ action: 'log-in', status: 303, issuer: 'idp' }),
      }),
    );
    const written = JSON.stringify(await console.rig.gateway.audit()) + console.rig.gateway.log();
    for (const value of browser.cookies(console.url).values()) expect(written).not.toContain(value);
    const back = new URL(browser.visited.find((one) => one.includes('/login/callback?')) ?? '');
    expect(written).not.toContain(back.searchParams.get('code'));
  });

  it('[CON-02] names what drifted on every page, and shows it field by field with its commands', async () => {
    await drift(console);
    for (const path of ['/', '/drift', '/decisions', '/upstreams', '/blocks'])
      expect((await browser.open(console.url + path)).body).toContain(
        'Definitions of target need a review: 1 drifted or withheld.',
      );
    // The definition is hidden at once, and withheld by the scan as soon as that has read it.
    await expect.poll(async () => (await openDefinition(browser, console)).body, PATIENT).toContain('(tool-poisoned)');
    const { body } = await openDefinition(browser, console);
    expect(body).toContain('<code>/description</code>');
    expect(body).not.toContain('<script');
    expect(body).not.toContain('\u202e');
    expect(body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;b&gt;\\u{202e}\\u{200b}');
    expect(body).toContain('sallyport pin diff target');
    expect(body).toMatch(/sallyport pin approve target read_record --kind tool --digest sha256:[0-9a-f]{64}/);
    expect(body).toContain('sallyport pin sign target --key signer.pem');
  });

  it('[CON-02] has a patch that git applies, which adds the definition as pending', async () => {
    const { body } = await openDefinition(browser, console);
    const shown = /aria-label="Patch">([\s\S]*?)<\/pre>/.exec(body)?.[1] ?? '';
    const patch = shown
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&quot;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&amp;', '&');
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-patch-'));
    await cp(join(console.rig.gateway.folder, 'policies'), join(folder, 'policies'), {
      recursive: true,
    });
    await writeFile(join(folder, 'drift.patch'), patch);
    execFileSync('git', ['init', '-q'], { cwd: folder });
    execFileSync('git', ['apply', 'drift.patch'], { cwd: folder });
    const pin = (await readLockOf(folder)).pins.tool.get('read_record');
    expect([pin?.status, pin?.variants.map(({ status }) => status)]).toEqual(['approved', ['pending']]);
    expect(pin?.variants[0]?.definition['description']).toBe(DRIFTED[0]?.['description']);
    await rm(folder, { recursive: true });
  });

  it('[CON-03] shows the last decisions with rule and reason, by each filter', async () => {
    await callStateless(console.rig.access, 'write_record', { id: 'one', text: 'x' });
    await callStateless(console.rig.access, `<img src=x onerror=alert(1)>"'&`, {});
    const all = (await browser.open(`${console.url}/decisions`)).body;
    expect(all).toContain('rule <code>open/all</code>');
    expect(all).toContain('<code>tool-unpinned</code>');
    expect(all).not.toContain('<img');
    const rows = async (query: string): Promise<number> => {
      const { body } = await browser.open(`${console.url}/decisions?${query}`);
      return [...body.matchAll(/<tr><th scope="row">/g)].length;
    };
    expect(await rows('name=write_record')).toBe(1);
    expect(await rows('name=write_record&verdict=deny')).toBe(0);
    expect(await rows('reason=tool-unpinned')).toBe(1);
    expect(await rows('method=tools%2Fcall&upstream=target')).toBe(2);
    expect(await rows('subject=nobody')).toBe(0);
    const id = /href="\/decisions\/([0-9a-f-]{36})"/.exec(all)?.[1] ?? '';
    const one = await browser.open(`${console.url}/decisions/${id}`);
    expect(one.body).toContain(`&quot;id&quot;: &quot;${id}&quot;`);
    const lines = await console.rig.gateway.audit();
    expect(lines.some((line) => line['decision']?.id === id)).toBe(true);
  });

  it('[CON-03] names the failing clause of each rule about the target, under the rules in force', async () => {
    const { rig } = console;
    await rig.gateway.writePolicy(
      'writers',
      `version: 1
policy: writers
rules:
  - {id: short, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], tools: ["write_record"]}, when: 'args.text == "<b>no</b>"'}
  - {id: by-bob, effect: allow, who: {issuers: [test], subjects: [bob]}, what: {upstreams: ["*"], tools: ["write_record"]}, scopes: [records.write]}
`,
    );
    await rig.gateway.reload();
    const args = { id: 'one', text: '<b>no</b>' };
    expect((await callStateless(rig.access, 'write_record', args)).text).toContain('denied');
    const open = async () => {
      const list = await browser.open(`${console.url}/decisions?name=write_record&verdict=deny`);
      const id = /href="\/decisions\/([0-9a-f-]{36})"/.exec(list.body)?.[1] ?? '';
      return (await browser.open(`${console.url}/decisions/${id}`)).body;
    };
    await expect.poll(open, PATIENT).toContain('What the rules say about this request');
    const shown = await open();
    expect(shown).toMatch(/<code>writers\/by-bob<\/code> <span class="small">allow, does not hold/);
    expect(shown).toMatch(/<code>who\.subjects<\/code><\/td>.*does not hold: the subject of the/);
    expect(shown).toMatch(/<code>scopes<\/code><\/td>.*does not hold: missing: records\.write/);
    expect(shown).toContain('<code>writers/short</code>');
    expect(shown).not.toContain('The policies were changed after this decision');
    await rig.gateway.writePolicy('writers', 'version: 1\npolicy: writers\nrules: []\n');
    await rig.gateway.reload();
    const later = await open();
    expect(later).toContain('The policies were changed after this decision');
    expect(later).not.toContain('by-bob');
  });

  it('[CON-02] has the guide that its pages name, as it is installed', async () => {
    const { body } = await openDefinition(browser, console);
    expect(body).toContain('<a href="/guide">');
    const guide = await browser.open(`${console.url}/guide`);
    expect(guide.status).toBe(200);
    expect(guide.body).toContain('## The four commands');
    expect((await sendOnce(`${console.url}/guide`)).status).toBe(401);
  });

  it('[CON-04] blocks a tool soon, and does not lift it', async () => {
    const call = () => callStateless(console.rig.access, 'write_record', { id: 'one', text: 'x' });
    expect((await call()).text).toContain('write_record one');
    const form = formTokenOf(await browser.open(`${console.url}/blocks`));
    const order = { form, target: 'tool', upstream: 'target', name: 'write_record', note: 'stop' };
    const page = await browser.submit(`${console.url}/block`, order);
    expect([page.status, page.url]).toEqual([200, `${console.url}/blocks`]);
    expect(page.body).toContain('write_record');
    expect((await call()).text).not.toContain('write_record one');
    const recorded = async () => (await console.rig.gateway.audit()).find(({ detail }) => detail?.action === 'block');
    await expect.poll(recorded, PATIENT).toMatchObject({
      actor: { sub: 'ann' },
      detail: { name: 'write_record', note: 'stop' },
    });
    const id = String((await recorded())?.['detail'].revocation);
    expect((await browser.submit(`${console.url}/lift`, { form, id })).status).toBe(403);
    expect((await browser.submit(`${console.url}/block`, { ...order, upstream: 'none' })).body).toContain(
      'This upstream is not configured.',
    );
  });
});

describe('the console for a viewer', () => {
  const console = shared(() => startConsole({ groups: ['sec'] }));
  beforeAll(async () => {
    await drift(console);
  });

  it('[CON-05] shows no definition, no command and no button', async () => {
    const browser = await logIn(console);
    const { status, body } = await openDefinition(browser, console);
    expect(status).toBe(200);
    expect(body).toContain('description');
    for (const hidden of ['alert(1)', 'sallyport pin', 'Block now', 'variants:']) expect(body).not.toContain(hidden);
    const form = formTokenOf(await browser.open(`${console.url}/blocks`));
    const order = { form, target: 'everything', note: 'x' };
    expect((await browser.submit(`${console.url}/block`, order)).status).toBe(403);
    const { access } = console.rig;
    expect((await callStateless(access, 'write_record', { id: '1', text: '' })).text).toContain('write_record 1');
  });
});

describe('the console for everybody else', () => {
  const console = shared(() => startConsole({ groups: ['eng'] }));

  it('[CON-05] opens no session for whoever has no role', async () => {
    const browser = new TestBrowser();
    const page = await browser.open(`${console.url}/login/with/idp`);
    expect(page.status).toBe(403);
    expect(page.body).toContain('none of your groups has a role');
    expect((await browser.open(console.url)).status).toBe(401);
  });

  it('[CON-01] takes the break-glass token in a form, and the API takes it as before', async () => {
    const browser = new TestBrowser();
    const form = formTokenOf(await browser.open(console.url));
    const page = await browser.submit(`${console.url}/login`, { form, token: console.breakGlass });
    expect([page.status, page.body.includes('break-glass (viewer, reviewer, admin)')]).toEqual([200, true]);
    const api = await fetch(`${console.url}/api/controls`, { headers: bearer(console.breakGlass) });
    expect(api.status).toBe(200);
  });
});

describe('the console of an upstream that is trusted on first use', () => {
  const console = shared(async () => {
    const upstream = ['pinning: {maxAge: 1s, mode: trust-on-first-use}'];
    return startConsole({ upstream, pin: false });
  });

  it('[CON-02] lists apart what was trusted, and as drift what came later', async () => {
    const browser = await logIn(console);
    const open = async () => (await browser.open(`${console.url}/drift`)).body;
    await expect.poll(open, PATIENT).toContain('<h2>Trusted on first use</h2>');
    const first = await open();
    expect(first).toContain('Everything is as pinned.');
    expect(first).not.toContain('need a review');
    expect(first.indexOf('read_record')).toBeGreaterThan(first.indexOf('Trusted on first use'));
    const { body } = await openDefinition(browser, console);
    expect(body).toContain('trusted on first use');
    // Without a lock file, an approval alone would be refused.
    expect(body).toMatch(/sallyport pin fetch target<\/pre>[\s\S]*sallyport pin approve target/);
    await drift(console);
    const later = await open();
    expect(later).toContain('Definitions of target need a review: 1 drifted or withheld.');
    expect(later.indexOf('read_record')).toBeLessThan(later.indexOf('Trusted on first use'));
  });
});

describe('the console by TLS', () => {
  const authority = makeAuthority();
  const console = shared(() => startConsole({ tls: authority.issue() }));

  it('[CON-07] has cookies that no other host can set and no plain connection carries', async () => {
    const { url } = console;
    const login = await sendOnce(`${url}/login/with/idp`, { ca: authority.cert });
    const [pending = ''] = [login.headers['set-cookie'] ?? []].flat();
    expect(pending).toMatch(/^__Host-sallyport-login=/);
    const browser = await logIn(console, authority.cert);
    const page = await browser.open(url);
    expect(page.body).toContain('ann (reviewer)');
    expect([...browser.cookies(url).keys()]).toEqual(['__Host-sallyport-session']);
    const session = browser.cookies(url).get('__Host-sallyport-session') ?? '';
    console.rig.passTime(2 * 60_000);
    const headers = { cookie: `__Host-sallyport-session=${session}` };
    const renewed = await sendOnce(url, { headers, ca: authority.cert });
    for (const cookie of [pending, ...[renewed.headers['set-cookie'] ?? []].flat()]) {
      expect(cookie).toMatch(/^__Host-sallyport-(?:login|session)=/);
      expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Lax; Secure/);
      expect(cookie).not.toMatch(/domain/i);
    }
    // A cookie without the prefix could come from elsewhere.
    const plain = { cookie: `sallyport-session=${session}` };
    expect((await sendOnce(url, { headers: plain, ca: authority.cert })).status).toBe(401);
    await expect(sendOnce(url.replace('https:', 'http:'), { headers })).rejects.toThrow();
  });

  it('[CON-08] takes forms of its own origin alone, which is https', async () => {
    const browser = await logIn(console, authority.cert);
    const { url } = console;
    const form = formTokenOf(await browser.open(`${url}/blocks`));
    const order = { form, target: 'tool', upstream: 'target', name: 'read_record', note: 'stop' };
    for (const origin of ['https://evil.example', url.replace('https:', 'http:')])
      expect((await browser.submit(`${url}/block`, order, { origin })).status).toBe(403);
    expect((await browser.submit(`${url}/block`, order)).body).toContain('stop');
  });
});

describe('a session at another replica', () => {
  it('[CON-11] opens with the same keys, and not with others', async () => {
    const states = [];
    const key = () => randomBytes(32).toString('hex');
    const shared = key();
    for (const other of [shared, key()]) {
      const breakGlass = randomBytes(32).toString('base64url');
      const replicas = [];
      for (const gatewayKey of [shared, other]) replicas.push(await startConsole({ gatewayKey, breakGlass }));
      const [one, two] = replicas;
      const browser = new TestBrowser();
      const url = one?.url ?? '';
      const form = formTokenOf(await browser.open(url));
      await browser.submit(`${url}/login`, { form, token: breakGlass });
      const headers = {
        cookie: `sallyport-session=${browser.cookies(url).get('sallyport-session')}`,
      };
      states.push((await sendOnce(url, { headers })).status);
      states.push((await sendOnce(two?.url ?? '', { headers })).status);
      for (const replica of replicas) await replica.close();
    }
    expect(states).toEqual([200, 200, 200, 401]);
  });
});

describe('logins with other settings', () => {
  it('[CON-01] asks for the scopes that are configured', () =>
    withStarted(
      () => startConsole({ login: ', scopes: [openid, "notes:read"]' }),
      async (console) => {
        const browser = await logIn(console);
        const asked = new URL(browser.visited.find((one) => one.includes('/auth?')) ?? '');
        expect(asked.searchParams.get('scope')).toBe('openid notes:read');
        expect((await browser.open(console.url)).status).toBe(200);
      },
    ));

  it('[CON-01] says that an issuer cannot be reached', async () => {
    const console = await startConsole();
    await console.provider.close();
    const page = await sendOnce(`${console.url}/login/with/idp`);
    expect(page.status).toBe(503);
    expect(page.headers['set-cookie']).toBeUndefined();
    await console.rig.close();
  });
});
