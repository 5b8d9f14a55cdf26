// Attacks on the login and the sessions of the console: forged and replayed responses, tokens of others, forms of other
// pages, cookies that were chosen, and requests that lead elsewhere.

import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readKeySet, selectKeys } from '../../src/auth/issuer.js';
import { createOidcLogin } from '../../src/auth/login.js';
import type { IssuerSettings } from '../../src/config/settings.js';
import { type ConsoleRig, formTokenOf, logIn, sendOnce, startConsole, TestBrowser } from '../support/console-rig.js';

describe('the login of the console, attacked', () => {
  let console: ConsoleRig;
  beforeAll(async () => {
    console = await startConsole();
  });
  afterAll(() => console.close());

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

describe('the ID token of a login', () => {
  const issuerUrl = 'https://idp.example.com';
  const clientId = 'console';
  const redirectUri = 'https://console.example.com/login/callback';
  const nonce = 'n'.repeat(43);
  const state = 's'.repeat(43);
  type Keys = Awaited<ReturnType<typeof generateKeyPair>>;
  let own: Keys;
  let other: Keys;
  beforeAll(async () => {
    [own, other] = [await generateKeyPair('ES256'), await generateKeyPair('ES256')];
  });

  const issuer = {
    ...{ name: 'idp', issuer: issuerUrl, network: 'public', algorithms: ['ES256'] },
    ...{ tokenType: 'at+jwt', maxLifetimeMs: 60_000, introspection: undefined },
    claims: { client: ['client_id'], scope: ['scope'], groups: ['groups'] },
  } as unknown as IssuerSettings;

  const claims = (): Record<string, unknown> => {
    const iat = Math.floor(Date.now() / 1000);
    const identity = { iss: issuerUrl, sub: 'ann', aud: clientId, groups: ['leads'] };
    return { ...identity, nonce, iat, exp: iat + 300 };
  };

  /** What a login ends with whose token endpoint returns this token. */
  async function finishWith(
    token: string,
    authentication: 'client_secret_basic' | 'client_secret_post' = 'client_secret_basic',
    onPost: (form: { headers: object; body: string }) => void = () => undefined,
  ) {
    const jwks = { keys: [{ ...(await exportJWK(own.publicKey)), alg: 'ES256', kid: 'one' }] };
    const login = createOidcLogin(
      { clientId, clientSecret: 'the-secret', authentication, scopes: ['openid'] },
      redirectUri,
      {
        current: () => ({
          issuer,
          keySource: {
            async keysFor(header) {
              const reading = await readKeySet(jwks, ['ES256']);
              const keys = reading.ok ? selectKeys(reading.keys, header) : [];
              return keys.length === 0 ? { kind: 'unknown' } : { kind: 'keys', keys, generation: 0 };
            },
          },
        }),
        fetchJson: async () => ({
          ok: true,
          value: {
            issuer: issuerUrl,
            authorization_endpoint: `${issuerUrl}/auth`,
            token_endpoint: `${issuerUrl}/token`,
            id_token_signing_alg_values_supported: ['ES256', 'HS256'],
          },
        }),
        async postForm(_url, form) {
          onPost(form);
          const tokens = { access_token: 'a', token_type: 'Bearer', id_token: token };
          const bytes = Buffer.from(JSON.stringify(tokens));
          return { ok: true, status: 200, contentType: 'application/json', bytes };
        },
        now: Date.now,
      },
    );
    const response = new URLSearchParams({ code: 'c', state, iss: issuerUrl });
    return login.finish(response, { state, nonce, verifier: 'v'.repeat(43) });
  }

  const mint = (changes: object, { key = own.privateKey, header = {} } = {}) =>
    new SignJWT({ ...claims(), ...changes }).setProtectedHeader({ alg: 'ES256', kid: 'one', ...header }).sign(key);

  it('[CON-09] is taken when it is the answer to this login', async () => {
    for (const header of [{}, { typ: 'JWT' }])
      expect(await finishWith(await mint({}, { header }))).toMatchObject({
        ...{ kind: 'verified', subject: 'ann', groups: ['leads'] },
      });
  });

  it.each<[string, object, object?]>([
    ['of another issuer', { iss: 'https://other.example' }],
    ['for another client', { aud: 'other' }],
    ['for several clients', { aud: [clientId, 'other'], azp: clientId }],
    ['requested by another client', { azp: 'other' }],
    ['of another login', { nonce: 'm'.repeat(43) }],
    ['without a nonce', { nonce: undefined }],
    ['that has expired', { exp: Math.floor(Date.now() / 1000) - 60 }],
    ['issued in the future', { iat: Math.floor(Date.now() / 1000) + 600 }],
    ['without a subject', { sub: undefined }],
    ['with a subject that breaks lines', { sub: 'ann\nadmin' }],
    ['that is an access token', {}, { typ: 'at+jwt' }],
    ['that brings its own key', {}, { jwk: {} }],
    ['under an unknown key', {}, { kid: 'two' }],
  ])('[CON-09] is refused %s', async (_what, changes, header = {}) => {
    expect(await finishWith(await mint(changes, { header }))).toEqual({ kind: 'refused' });
  });

  it('[CON-09] is refused when it is signed by somebody else, by the secret, or not at all', async () => {
    const forged = await mint({}, { key: other.privateKey });
    const symmetric = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .sign(Buffer.from('the-secret'));
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${part({ alg: 'none' })}.${part(claims())}.`;
    for (const token of [forged, symmetric, unsigned, 'opaque'])
      expect(await finishWith(token)).toEqual({ kind: 'refused' });
  });

  it('[CON-09] is asked for with the verifier, and with the secret where the configuration says', async () => {
    const sent: Record<string, { headers: object; body: string }> = {};
    for (const way of ['client_secret_basic', 'client_secret_post'] as const)
      await finishWith(await mint({}), way, (form) => {
        sent[way] = form;
      });
    const basic = `Basic ${Buffer.from('console:the%2Dsecret').toString('base64')}`;
    expect(sent['client_secret_basic']?.headers).toMatchObject({ authorization: basic });
    expect(sent['client_secret_basic']?.body).not.toContain('secret');
    expect(sent['client_secret_post']?.headers).not.toHaveProperty('authorization');
    const body = new URLSearchParams(sent['client_secret_post']?.body);
    expect(Object.fromEntries(body)).toEqual({
      ...{ client_id: clientId, client_secret: 'the-secret', code: 'c' },
      ...{ redirect_uri: redirectUri, code_verifier: 'v'.repeat(43) },
      grant_type: 'authorization_code',
    });
  });
});
