import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DevIssuer, startIssuer } from '../../../src/dev/issuer.js';
import { LOGIN_CLIENT } from '../../../src/dev/issuer-grants.js';
import { walkCodeFlow } from '../../support/oauth-clients.js';
import { startTestIssuer } from '../../support/tokens.js';
import { makeAuthenticator, RESOURCE } from '../auth/fixture.js';

const REDIRECT = 'http://127.0.0.1:1/callback';
const VERIFIER = randomBytes(32).toString('base64url');
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url');
const SCOPES = ['notes:read', 'notes:write'];

let issuer: DevIssuer;
let authenticator: ReturnType<typeof makeAuthenticator>;

beforeAll(async () => {
  issuer = await startIssuer({
    users: [
      { name: 'dev', groups: ['eng'], scopes: SCOPES },
      { name: 'guest', groups: [], scopes: ['notes:read'] },
    ],
  });
  const shape = await startTestIssuer();
  authenticator = makeAuthenticator([shape.settings({ issuer: issuer.issuer })]);
  await shape.close();
});

afterAll(async () => {
  await authenticator.close();
  await issuer.close();
});

async function register(redirectUris: unknown, type = 'application/json'): Promise<Response> {
  return await fetch(`${issuer.issuer}/register`, {
    method: 'POST',
    headers: { 'content-type': type },
    body: JSON.stringify({ redirect_uris: redirectUris }),
  });
}

async function registerClient(): Promise<string> {
  const { client_id: id } = (await (await register([REDIRECT])).json()) as { client_id: string };
  return id;
}

async function authorize(changes: Record<string, string> = {}): Promise<Response> {
  const parameters = new URLSearchParams({
    client_id: await registerClient(),
    redirect_uri: REDIRECT,
    response_type: 'code',
    resource: RESOURCE,
    scope: 'notes:read',
    state: 's',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...changes,
  });
  return await fetch(`${issuer.issuer}/authorize?${parameters}`, { redirect: 'manual' });
}

function callbackOf(response: Response): URLSearchParams {
  return new URL(response.headers.get('location') ?? '').searchParams;
}

async function askToken(parameters: Record<string, string>, headers = {}) {
  const response = await fetch(`${issuer.issuer}/token`, {
    method: 'POST',
    headers,
    body: new URLSearchParams(parameters),
  });
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, body };
}

describe('the development issuer', () => {
  it('[A-60] walks the authorization code flow and gives a token for the named resource', async () => {
    const scope = 'notes:read admin:all';
    const token = await walkCodeFlow(issuer.issuer, { resource: RESOURCE, scope });
    expect(await authenticator.ask(token)).toMatchObject({
      subject: 'dev',
      groups: ['eng'],
      scopes: ['notes:read'],
      token: { audience: RESOURCE },
    });
  });

  it('[A-60] logs in whom login_hint names', async () => {
    const client = await registerClient();
    const hint = { client_id: client, login_hint: 'guest', scope: '' };
    const code = callbackOf(await authorize(hint)).get('code') ?? '';
    const { body } = await askToken({
      grant_type: 'authorization_code',
      client_id: client,
      redirect_uri: REDIRECT,
      code,
      code_verifier: VERIFIER,
    });
    expect(body['scope']).toBe('notes:read');
    const principal = await authenticator.ask(String(body['access_token']));
    expect(principal).toMatchObject({ subject: 'guest', client });
  });

  it('[A-61] wants PKCE with S256 and a resource, and says so at the redirect', async () => {
    const errorCases: readonly [Record<string, string>, string][] = [
      [{ code_challenge_method: 'plain' }, 'invalid_request'],
      [{ code_challenge: '' }, 'invalid_request'],
      [{ resource: '' }, 'invalid_target'],
      [{ resource: `${RESOURCE}#x` }, 'invalid_target'],
      [{ response_type: 'token' }, 'unsupported_response_type'],
    ];
    for (const [change, error] of errorCases) {
      const answer = callbackOf(await authorize(change));
      expect([answer.get('error'), answer.get('state'), answer.get('iss')]).toEqual([error, 's', issuer.issuer]);
      expect(answer.get('code')).toBeNull();
    }
  });

  it('[A-61] sends no code to a redirect that is not registered', async () => {
    for (const uri of ['http://127.0.0.1:1/other', 'https://evil.example/', '']) {
      const response = await authorize({ redirect_uri: uri });
      expect([response.status, response.headers.get('location')]).toEqual([400, null]);
    }
    const otherPort = await authorize({ redirect_uri: 'http://127.0.0.1:2/callback' });
    expect(otherPort.status).toBe(302);
  });

  it('[A-61] registers by JSON alone', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp']) {
      const refused = await register([REDIRECT], type);
      expect([type, refused.status]).toEqual([type, 415]);
      expect(await refused.json()).toMatchObject({ error: 'invalid_client_metadata' });
    }
    const untold = await fetch(`${issuer.issuer}/register`, {
      method: 'POST',
      body: new TextEncoder().encode(JSON.stringify({ redirect_uris: [REDIRECT] })),
    });
    expect(untold.status).toBe(415);
    expect((await register([REDIRECT], 'Application/JSON; charset=utf-8')).status).toBe(201);
  });

  it('[A-61] registers redirects of this machine alone', async () => {
    for (const uris of [['https://evil.example/'], ['http://evil.example/'], ['javascript:x']]) {
      expect((await register(uris)).status).toBe(400);
    }
    for (const uris of [undefined, [], 'x']) expect((await register(uris)).status).toBe(400);
    const mixed = await register([REDIRECT, 'https://evil.example/']);
    expect(mixed.status).toBe(201);
    expect(await mixed.json()).toMatchObject({ redirect_uris: [REDIRECT] });
    expect((await register([REDIRECT, 'cursor://callback'])).status).toBe(201);
  });

  it('[A-61] redeems a code once, for its own client, verifier, redirect and resource', async () => {
    const client = await registerClient();
    const fresh = async () => callbackOf(await authorize({ client_id: client })).get('code') ?? '';
    const good = {
      grant_type: 'authorization_code',
      client_id: client,
      redirect_uri: REDIRECT,
      code_verifier: VERIFIER,
    };
    const wrong: readonly Record<string, string>[] = [
      { code_verifier: `${VERIFIER}x` },
      { client_id: await registerClient() },
      { redirect_uri: 'http://127.0.0.1:2/callback' },
      { resource: `${RESOURCE}/other` },
    ];
    for (const change of wrong) {
      const code = await fresh();
      expect((await askToken({ ...good, code, ...change })).status).toBe(400);
      expect((await askToken({ ...good, code })).body['error']).toBe('invalid_grant');
    }
    const code = await fresh();
    expect((await askToken({ ...good, code })).status).toBe(200);
    expect((await askToken({ ...good, code })).body['error']).toBe('invalid_grant');
  });

  it('[REV-51] refreshes a login, once a refresh token, for its client, resource and scopes', async () => {
    const client = await registerClient();
    const code = callbackOf(await authorize({ client_id: client, scope: SCOPES.join(' ') }));
    const login = await askToken({
      grant_type: 'authorization_code',
      client_id: client,
      redirect_uri: REDIRECT,
      code: code.get('code') ?? '',
      code_verifier: VERIFIER,
    });
    const refresh = (token: unknown, changes: Record<string, string> = {}) =>
      askToken({
        grant_type: 'refresh_token',
        client_id: client,
        refresh_token: String(token),
        ...changes,
      });
    const first = login.body['refresh_token'];
    const wrong: readonly [Record<string, string>, string][] = [
      [{ client_id: await registerClient() }, 'invalid_grant'],
      [{ refresh_token: 'guess' }, 'invalid_grant'],
      [{ resource: `${RESOURCE}/other` }, 'invalid_target'],
      [{ scope: 'notes:read admin:all' }, 'invalid_scope'],
    ];
    for (const [change, error] of wrong) expect((await refresh(first, change)).body['error']).toBe(error);
    const { body } = await refresh(first, { scope: 'notes:read', resource: RESOURCE });
    const principal = await authenticator.ask(String(body['access_token']));
    expect(principal).toMatchObject({ subject: 'dev', client, scopes: ['notes:read'] });
    const next = await refresh(body['refresh_token']);
    expect(next.body['scope']).toBe(SCOPES.join(' '));
    // One that was shown before ends the login for whoever has its successor.
    expect((await refresh(first)).body['error']).toBe('invalid_grant');
    expect((await refresh(next.body['refresh_token'])).body['error']).toBe('invalid_grant');
  });

  it('[A-62] refuses repeated parameters, other grants and large bodies', async () => {
    const post = (body: string) => fetch(`${issuer.issuer}/token`, { method: 'POST', body });
    expect((await post('grant_type=a&grant_type=b')).status).toBe(400);
    expect((await post('grant_type=password')).status).toBe(400);
    expect((await post('grant_type=client_credentials')).status).toBe(400);
    expect((await post(`grant_type=${'x'.repeat(20_000)}`)).status).toBe(400);
  });

  it('[A-63] mints what the demo asks for', async () => {
    const good = await issuer.mint({ resource: RESOURCE, subject: 'eve', scopes: [] });
    expect(await authenticator.ask(good)).toMatchObject({ subject: 'eve', scopes: [] });
    const expired = await issuer.mint({ resource: RESOURCE, lifetimeSeconds: -5 });
    expect(await authenticator.verdict(expired)).toBe('token-expired');
    const other = await issuer.mint({ resource: `${RESOURCE}x` });
    expect(await authenticator.verdict(other)).toBe('token-audience');
  });

  it('[A-64] listens on loopback alone', () => {
    expect(new URL(issuer.issuer).hostname).toBe('127.0.0.1');
  });

  it('[A-64] answers to its own name alone', async () => {
    const { port } = new URL(issuer.issuer);
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = { host: `rebound.example:${port}` };
      httpRequest({ host: '127.0.0.1', port, path: '/jwks.json', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on('error', reject)
        .end();
    });
    expect(status).toBe(421);
  });

  it('[A-64] lets pages of this machine read its answers, and no other site', async () => {
    const allowedFor = async (origin: string) => {
      const response = await fetch(`${issuer.issuer}/jwks.json`, { headers: { origin } });
      return response.headers.get('access-control-allow-origin');
    };
    expect(await allowedFor('http://localhost:6274')).toBe('http://localhost:6274');
    expect(await allowedFor('https://evil.example')).toBeNull();
    expect(await allowedFor('http://localhost.evil.example')).toBeNull();
    expect(await allowedFor('null')).toBeNull();
  });

  it('[REV-52] knows clients by the document that their id names', async () => {
    const id = 'https://editor.example/oauth/client.json';
    const good = { client_id: id, redirect_uris: [REDIRECT, 'https://editor.example/callback'] };
    const documents = new Map<string, unknown>([
      [id, good],
      ['https://editor.example/other.json', good],
      [
        'https://editor.example/web.json',
        {
          client_id: 'https://editor.example/web.json',
          redirect_uris: ['https://editor.example/'],
        },
      ],
      [
        'https://editor.example/secret.json',
        {
          ...good,
          client_id: 'https://editor.example/secret.json',
          token_endpoint_auth_method: 'client_secret_post',
        },
      ],
      ['http://127.0.0.1:9/client.json', { ...good, client_id: 'http://127.0.0.1:9/client.json' }],
    ]);
    const asked: string[] = [];
    const own = await startIssuer({
      users: [{ name: 'dev', groups: [], scopes: [] }],
      async fetchDocument(url) {
        asked.push(url.href);
        return documents.get(url.href);
      },
    });
    const login = (client: string, redirect = REDIRECT) =>
      fetch(
        `${own.issuer}/authorize?${new URLSearchParams({
          client_id: client,
          redirect_uri: redirect,
          response_type: 'code',
          resource: RESOURCE,
          code_challenge: CHALLENGE,
          code_challenge_method: 'S256',
        })}`,
        { redirect: 'manual' },
      );
    try {
      for (const known of [id, id, 'http://127.0.0.1:9/client.json'])
        expect(callbackOf(await login(known)).get('code')).toMatch(/./);
      expect(asked).toHaveLength(2);
      expect((await login(id, 'https://editor.example/callback')).status).toBe(400);
      for (const name of ['other', 'web', 'secret', 'missing'])
        expect((await login(`https://editor.example/${name}.json`)).status).toBe(400);
      const before = asked.length;
      for (const strange of [
        ...['http://editor.example/client.json', 'https://editor.example/', `${id}?x=1`, `${id}#x`],
        ...['https://me:pw@editor.example/client.json', 'https://EDITOR.example/oauth/client.json'],
        ...['file:///etc/passwd', 'https://editor.example/a/../oauth/client.json'],
      ])
        expect((await login(strange)).status).toBe(400);
      expect(asked).toHaveLength(before);
    } finally {
      await own.close();
    }
    const metadata = `${issuer.issuer}/.well-known/openid-configuration`;
    expect(await (await fetch(metadata)).json()).toMatchObject({
      client_id_metadata_document_supported: false,
    });
  });

  it('publishes no private key', async () => {
    const { keys } = (await (await fetch(`${issuer.issuer}/jwks.json`)).json()) as {
      keys: Record<string, unknown>[];
    };
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']]);
  });
});

describe('a login of a person at the development issuer', () => {
  const callback = 'http://127.0.0.1:8080/.well-known/sallyport/approve/callback';
  const parameters = new URLSearchParams({
    ...{ client_id: LOGIN_CLIENT, redirect_uri: callback, response_type: 'code', scope: 'openid', max_age: '300' },
    ...{ state: 's', nonce: 'n', code_challenge: CHALLENGE, code_challenge_method: 'S256' },
  });
  const answer = (user: string, headers = {}) =>
    fetch(`${issuer.issuer}/authorize?${parameters}`, {
      ...{ method: 'POST', redirect: 'manual', headers },
      body: new URLSearchParams({ user }),
    });

  it('asks who it is, each time, and says in the ID token when that was', async () => {
    const asked = await fetch(`${issuer.issuer}/authorize?${parameters}`, { redirect: 'manual' });
    expect([asked.status, asked.headers.get('location')]).toEqual([200, null]);
    expect(asked.headers.get('content-security-policy')).toContain("default-src 'none'");
    const page = await asked.text();
    for (const name of ['dev', 'guest']) expect(page).toContain(`Log in as ${name}`);
    const answered = await answer('guest', { origin: issuer.issuer });
    // By a page, because browsers hold a form against where it is redirected to.
    const to = /^0; url=(.*)$/.exec(answered.headers.get('refresh') ?? '')?.[1] ?? '';
    expect([answered.status, to.startsWith(`${callback}?`)]).toEqual([200, true]);
    const code = new URL(to).searchParams.get('code') ?? '';
    const form = { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: VERIFIER };
    // As RFC 6749 §2.3.1 has it: id and secret are form-encoded in the header.
    const authorization = `Basic ${Buffer.from('sallyport%2Dlogin:any').toString('base64')}`;
    const { status, body } = await askToken(form, { authorization });
    expect([status, body['refresh_token']]).toEqual([200, undefined]);
    const claims = decodeJwt(String(body['id_token']));
    expect(claims).toMatchObject({ iss: issuer.issuer, sub: 'guest', aud: LOGIN_CLIENT, nonce: 'n', groups: [] });
    expect(Math.abs(Number(claims['auth_time']) - Date.now() / 1000)).toBeLessThan(60);
  });

  it.each([
    ['a page of another site', 'dev', { origin: 'https://evil.example' }, 403],
    ['a person whom it does not know', 'nobody', {}, 200],
  ])('gives no code to %s', async (_what, user, headers, status) => {
    const answered = await answer(user, headers);
    expect([answered.status, answered.headers.get('refresh')]).toEqual([status, null]);
  });

  it('gives a terminal a token that says when the person logged in', async () => {
    const login = { grant_type: 'password', username: 'guest', resource: RESOURCE };
    const { status, body } = await askToken(login);
    expect([status, body['refresh_token'], body['id_token']]).toEqual([200, undefined, undefined]);
    const claims = decodeJwt(String(body['access_token']));
    expect(claims).toMatchObject({ sub: 'guest', aud: RESOURCE, client_id: 'terminal', scope: 'notes:read' });
    expect(Math.abs(Number(claims['auth_time']) - Date.now() / 1000)).toBeLessThan(60);
    for (const changes of [{ username: 'nobody' }, { resource: 'no-url' }])
      expect((await askToken({ ...login, ...changes })).status).toBe(400);
    // A client that logs in without anybody being asked does not say that somebody was.
    const plain = await walkCodeFlow(issuer.issuer, { resource: RESOURCE, scope: 'notes:read' });
    expect(decodeJwt(plain)).not.toHaveProperty('auth_time');
  });
});
