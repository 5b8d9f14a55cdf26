// Attacks on the login and the sessions of the console: forged and replayed responses, tokens of others, forms of other
// pages, cookies that were chosen, and requests that lead elsewhere.

import { describe, expect, it } from 'vitest';
import { formTokenOf, logIn, sendOnce, startConsole, TestBrowser } from '../support/console-rig.js';
import { shared, withStarted } from '../support/with-gateway.js';

describe('the secret of the console', () => {
  it.each([
    ['client_secret_basic', [expect.stringMatching(/^Basic /)]],
    ['client_secret_post', [undefined]],
  ] as const)('is presented as the configuration says: %s', (authentication, headers) =>
    withStarted(
      () => startConsole({ login: `, authentication: ${authentication}` }),
      async (console) => {
        const browser = await logIn(console);
        expect(browser.cookies(console.url).has('sallyport-session')).toBe(true);
        expect(console.provider.presented).toEqual(headers);
      },
    ),
  );
});

describe('the login of the console, attacked', () => {
  const console = shared(() => startConsole());

  /** Goes to the provider and stops before the way back. */
  async function almostLogIn(): Promise<{ browser: TestBrowser; back: URL }> {
    const browser = new TestBrowser();
    const page = await browser.open(`${console.url}/login/with/idp`, (next) =>
      next.startsWith(`${console.url}/login/callback`),
    );
    return { browser, back: new URL(page.url) };
  }

  async function expectNoSession(browser: TestBrowser, url: string, status: number): Promise<void> {
    const page = await browser.open(url);
    expect(page.status).toBe(status);
    expect([...browser.cookies(console.url).keys()]).not.toContain('sallyport-session');
  }

  it('[CON-06] refuses a response without its state, with another, or in another browser', async () => {
    const { browser, back } = await almostLogIn();
    for (const state of [undefined, '', 'x'.repeat(43)]) {
      const forged = new URL(back);
      forged.searchParams.delete('state');
      if (state !== undefined) forged.searchParams.set('state', state);
      await expectNoSession(browser, forged.href, 400);
    }
    await expectNoSession(new TestBrowser(), back.href, 400);
    // None of that ended the login of the one who began it.
    expect((await browser.open(back.href)).status).toBe(200);
  });

  it('[CON-06] refuses a response that names another issuer, or none', async () => {
    for (const issuer of [undefined, 'https://evil.example']) {
      const { browser, back } = await almostLogIn();
      back.searchParams.delete('iss');
      if (issuer !== undefined) back.searchParams.set('iss', issuer);
      await expectNoSession(browser, back.href, 403);
      browser.cookies(console.url).clear();
      console.rig.passTime(60_000);
    }
  });

  it('[CON-06] refuses a code that was used, also with the cookie of its login', async () => {
    const { browser, back } = await almostLogIn();
    const pending = new Map(browser.cookies(console.url));
    expect((await browser.open(back.href)).status).toBe(200);
    const replaying = new TestBrowser();
    for (const [name, value] of pending) replaying.cookies(console.url).set(name, value);
    await expectNoSession(replaying, back.href, 400);
  });

  it('[CON-06] does not take the code of one login for another', async () => {
    const first = await almostLogIn();
    const second = await almostLogIn();
    const mixed = new URL(second.back);
    mixed.searchParams.set('code', first.back.searchParams.get('code') ?? '');
    // The verifier and the nonce of the second login do not belong to that code.
    await expectNoSession(second.browser, mixed.href, 403);
  });

  it('[CON-06] refuses an error of the issuer without repeating it', async () => {
    const { browser, back } = await almostLogIn();
    back.searchParams.delete('code');
    back.searchParams.set('error', 'access_denied');
    back.searchParams.set('error_description', '<b>call 555</b>');
    const page = await browser.open(back.href);
    expect(page.status).toBe(403);
    expect(page.body).not.toContain('555');
    console.rig.passTime(60_000);
  });

  it('[CON-07] leads to its own pages only, and splits no header', async () => {
    for (const to of ['//evil.example', 'https://evil.example/', '/\r\nset-cookie: a=b', '/login']) {
      const browser = new TestBrowser();
      const page = await browser.open(`${console.url}/login/with/idp?to=${encodeURIComponent(to)}`);
      expect([page.status, page.url]).toEqual([200, `${console.url}/`]);
      expect([...browser.cookies(console.url).keys()]).toEqual(['sallyport-session']);
      console.rig.passTime(60_000);
    }
    expect((await sendOnce(`${console.url}/login/with/other`)).status).toBe(404);
  });

  it('[CON-07] opens a session of its own choice: a cookie that was planted is none', async () => {
    const browser = new TestBrowser();
    browser.cookies(console.url).set('sallyport-session', 'planted');
    await browser.open(`${console.url}/login/with/idp`);
    const cookie = browser.cookies(console.url).get('sallyport-session');
    expect(cookie).not.toBe('planted');
    const headers = { cookie: `sallyport-session=planted; sallyport-session=${cookie}` };
    expect((await sendOnce(console.url, { headers })).status).toBe(401);
  });

  it('[CON-07] opens no changed cookie, no cookie of a login, and none of an MCP session', async () => {
    const browser = await logIn(console);
    const cookie = browser.cookies(console.url).get('sallyport-session') ?? '';
    const begun = await almostLogIn();
    const login = begun.browser.cookies(console.url).get('sallyport-login') ?? '';
    const session = await console.rig.openSession();
    const changed = `${cookie.slice(0, -4)}${cookie.at(-4) === 'A' ? 'B' : 'A'}${cookie.slice(-3)}`;
    for (const value of [changed, login, session.id, '', 'x'.repeat(100)]) {
      const headers = { cookie: `sallyport-session=${value}` };
      expect((await sendOnce(console.url, { headers })).status).toBe(401);
    }
    console.rig.passTime(60_000);
  });

  it('[CON-08] takes no form without the token of its session, from elsewhere, or for another Host', async () => {
    const browser = await logIn(console);
    const other = await logIn(console);
    const form = formTokenOf(await browser.open(`${console.url}/blocks`));
    const foreign = formTokenOf(await other.open(`${console.url}/blocks`));
    const order = { target: 'everything', note: 'x' };
    const block = (fields: object, headers = {}) =>
      browser.submit(`${console.url}/block`, { ...order, ...fields }, headers);
    expect((await block({})).status).toBe(403);
    expect((await block({ form: foreign })).status).toBe(403);
    expect((await block({ form }, { origin: 'https://evil.example' })).status).toBe(403);
    expect((await block({ form }, { origin: 'null' })).status).toBe(403);
    expect((await block({ form }, { host: 'evil.example' })).status).toBe(421);
    expect((await block({ form }, { 'content-type': 'text/plain' })).status).toBe(400);
    expect((await browser.open(`${console.url}/blocks`)).body).toContain('Nothing is blocked');
    expect((await browser.open(`${console.url}/logout`)).status).toBe(404);
  });

  it('[CON-08] ends a session with the logout, its idle time, and a revocation of its subject', async () => {
    const browser = await logIn(console);
    const cookie = browser.cookies(console.url).get('sallyport-session') ?? '';
    const headers = { cookie: `sallyport-session=${cookie}` };
    const form = formTokenOf(await browser.open(console.url));
    await browser.submit(`${console.url}/logout`, { form });
    expect((await sendOnce(console.url, { headers })).status).toBe(401);
    const idle = await logIn(console);
    console.rig.passTime(31 * 60_000);
    expect((await idle.open(console.url)).status).toBe(401);
    const revoked = await logIn(console);
    expect((await revoked.open(console.url)).status).toBe(200);
    const order = { form: formTokenOf(await revoked.open(`${console.url}/blocks`)) };
    const subject = { target: 'subject', issuer: 'idp', subject: 'ann', note: 'left' };
    await revoked.submit(`${console.url}/block`, { ...order, ...subject });
    expect((await revoked.open(console.url)).status).toBe(401);
  });
});
