// The login with OpenID Connect: which ID tokens end it, and how the gateway proves to the issuer who it is.

import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { readKeySet, selectKeys } from '../../../src/auth/issuer.js';
import { createOidcLogin, type LoginDemand } from '../../../src/auth/login.js';
import type { IssuerSettings } from '../../../src/config/settings.js';

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

  type Terms = LoginDemand & {
    readonly authentication?: 'client_secret_basic' | 'client_secret_post';
    readonly match?: string;
    readonly metadata?: object;
    readonly onPost?: (form: { headers: object; body: string }) => void;
    /** The query with which the browser comes back, and what the token endpoint says. */
    readonly response?: string;
    readonly status?: number;
    readonly body?: object;
  };

  /** What a login ends with whose token endpoint returns this token. */
  async function finishWith(token: string, terms: Terms = {}) {
    const given = new URLSearchParams(terms.response ?? 'code=c');
    const response = new URLSearchParams({ state, iss: issuerUrl, ...Object.fromEntries(given) });
    const login = await loginWith(terms, token);
    return login.finish(response, { state, nonce, verifier: 'v'.repeat(43) });
  }

  async function loginWith(terms: Terms, token = '') {
    const { authentication = 'client_secret_basic', match, metadata, onPost, status = 200, body, ...demand } = terms;
    const jwks = { keys: [{ ...(await exportJWK(own.publicKey)), alg: 'ES256', kid: 'one' }] };
    const settings = { clientId, clientSecret: 'the-secret', authentication, scopes: ['openid'] };
    const ports: Parameters<typeof createOidcLogin>[1] = {
      current: () => ({
        issuer: { ...issuer, login: match === undefined ? settings : { ...settings, match } },
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
          ...metadata,
        },
      }),
      async postForm(_url, form) {
        onPost?.(form);
        const tokens = { access_token: 'a', token_type: 'Bearer', id_token: token };
        const bytes = Buffer.from(JSON.stringify(body ?? tokens));
        return { ok: true, status, contentType: 'application/json', bytes };
      },
      now: Date.now,
    };
    return createOidcLogin(redirectUri, ports, demand);
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
    expect(await finishWith(await mint(changes, { header }))).toEqual({ kind: 'refused', cause: 'id-token' });
  });

  it('[CON-09] is refused when it is signed by somebody else, by the secret, or not at all', async () => {
    const forged = await mint({}, { key: other.privateKey });
    const symmetric = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'HS256', kid: 'one' })
      .sign(Buffer.from('the-secret'));
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const unsigned = `${part({ alg: 'none' })}.${part(claims())}.`;
    for (const token of [forged, symmetric, unsigned, 'opaque'])
      expect(await finishWith(token)).toEqual({ kind: 'refused', cause: 'id-token' });
  });

  it.each<[string, string, number, object, string]>([
    ['the issuer says no to the person', 'error=access_denied&error_description=x', 200, {}, 'response'],
    ['the state is another', 'code=c&state=other', 200, {}, 'response'],
    ['the secret is wrong', '', 401, { error: 'invalid_client' }, 'exchange'],
    ['the code was used', '', 400, { error: 'invalid_grant' }, 'exchange'],
    ['there is no ID token', '', 200, { access_token: 'a', token_type: 'Bearer' }, 'id-token'],
  ])('[CON-09] is refused with its cause where %s', async (_what, response, status, body, cause) => {
    expect(await finishWith('', { ...(response === '' ? {} : { response }), status, body })).toEqual({
      kind: 'refused',
      cause,
    });
  });

  it('[CON-09] is asked for with the verifier, and with the secret where the configuration says', async () => {
    const sent: Record<string, { headers: object; body: string }> = {};
    for (const way of ['client_secret_basic', 'client_secret_post'] as const)
      await finishWith(await mint({}), {
        authentication: way,
        onPost(form) {
          sent[way] = form;
        },
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

  describe('for an approval', () => {
    const secondsAgo = (seconds: number) => Math.floor(Date.now() / 1000) - seconds;
    const recent = { maxAgeSeconds: 300 };

    it('asks for a recent login, and the console for none', async () => {
      const urlOf = async (terms: Terms) => {
        const begun = await (await loginWith(terms)).begin();
        return new URL(typeof begun === 'string' ? 'https://none.example' : begun.url).searchParams.get('max_age');
      };
      expect(await urlOf(recent)).toBe('300');
      expect(await urlOf({})).toBeNull();
    });

    it.each<[string, object, string]>([
      ['now', { auth_time: secondsAgo(0) }, 'verified'],
      ['nearly five minutes ago', { auth_time: secondsAgo(299) }, 'verified'],
      ['longer ago', { auth_time: secondsAgo(340) }, 'old'],
      ['long ago, though the token is new', { auth_time: secondsAgo(86_400) }, 'old'],
      ['who knows when', {}, 'no-auth-time'],
      ['in the future', { auth_time: secondsAgo(-600) }, 'no-auth-time'],
    ])('takes who proved it %s', async (_when, changes, kind) => {
      expect(await finishWith(await mint(changes), recent)).toMatchObject({ kind });
      // A session of the console has an age of its own.
      expect(await finishWith(await mint(changes))).toMatchObject({ kind: 'verified' });
    });

    it.each([String(secondsAgo(0)), null, -1, {}])('refuses the time %j', async (time) => {
      expect((await finishWith(await mint({ auth_time: time }), recent)).kind).toBe('refused');
    });

    it.each<[string, object, string | undefined]>([
      ['a text', { oid: 'one' }, 'one'],
      ['an empty text', { oid: '' }, undefined],
      ['a number', { oid: 1 }, undefined],
      ['a list', { oid: ['one'] }, undefined],
      ['two lines', { oid: 'one\ntwo' }, undefined],
      ['nothing', {}, undefined],
    ])('matches people by %s', async (_what, changes, match) => {
      const outcome = await finishWith(await mint({ ...changes, auth_time: secondsAgo(1) }), {
        ...recent,
        match: 'oid',
      });
      expect(outcome).toMatchObject({ kind: 'verified', issuer: issuerUrl, subject: 'ann', match });
    });

    it.each<[string, object, Terms, string]>([
      ['another for each client alone', { subject_types_supported: ['pairwise'] }, recent, 'pairwise'],
      ['of both kinds', { subject_types_supported: ['pairwise', 'public'] }, recent, 'sent'],
      ['the same for all', { subject_types_supported: ['public'] }, recent, 'sent'],
      ['of an unknown kind', {}, recent, 'sent'],
      ['another, beside a claim', { subject_types_supported: ['pairwise'] }, { ...recent, match: 'oid' }, 'sent'],
      ['another, at the console', { subject_types_supported: ['pairwise'] }, {}, 'sent'],
    ])(
      'sends nobody to an issuer whose subjects would not tell who it is: %s',
      async (_kind, metadata, terms, found) => {
        const begun = await (await loginWith({ ...terms, metadata })).begin();
        expect(typeof begun === 'string' ? begun : 'sent').toBe(found);
      },
    );
  });
});
