import { afterEach, describe, expect, it } from 'vitest';
import { discover as discoverUrl, metadataUrls } from '../../../src/auth/discovery.js';
import { createGuardedFetch } from '../../../src/upstream/safe-fetch.js';
import { startOidcProvider } from '../../support/authorization-servers.js';
import { walkCodeFlow } from '../../support/oauth-clients.js';
import { startTestIssuer, type TestIssuer } from '../../support/tokens.js';
import { makeAuthenticator, RESOURCE } from './fixture.js';

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function start(options: Parameters<typeof startTestIssuer>[0] = {}): Promise<TestIssuer> {
  const issuer = await startTestIssuer(options);
  closers.push(() => issuer.close());
  return issuer;
}

async function discover(issuer: TestIssuer) {
  const { fetchJson, close } = createGuardedFetch();
  closers.push(close);
  return await discoverUrl(issuer.settings(), 'jwks_uri', fetchJson);
}

describe('key discovery', () => {
  it('[A-31] tries the metadata URLs in the order of the specification', () => {
    const paths = (issuer: string) => metadataUrls(issuer).map((url) => url.href);
    expect(paths('https://idp.example')).toEqual([
      'https://idp.example/.well-known/oauth-authorization-server',
      'https://idp.example/.well-known/openid-configuration',
    ]);
    const tenant = [
      'https://idp.example/.well-known/oauth-authorization-server/t1',
      'https://idp.example/.well-known/openid-configuration/t1',
      'https://idp.example/t1/.well-known/openid-configuration',
    ];
    expect(paths('https://idp.example/t1')).toEqual(tenant);
    expect(paths('https://idp.example/t1/')).toEqual(tenant);
  });

  for (const metadataAt of [
    '/.well-known/oauth-authorization-server/t1',
    '/.well-known/openid-configuration/t1',
    '/t1/.well-known/openid-configuration',
  ]) {
    it(`[A-31] finds metadata at ${metadataAt}`, async () => {
      const issuer = await start({ path: '/t1', metadataAt });
      const jwksUri = new URL('/keys', issuer.issuer);
      expect(await discover(issuer)).toEqual({ ok: true, url: jwksUri });
    });
  }

  it('[A-32] discards a document that names another issuer, by a slash', async () => {
    const issuer = await start();
    issuer.misbehave('wrong-issuer');
    expect(await discover(issuer)).toMatchObject({ ok: false });
    const authenticator = makeAuthenticator([issuer.settings()]);
    closers.push(authenticator.close);
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('keys-unavailable');
    expect(issuer.hits.get('/keys')).toBeUndefined();
  });

  it('[A-32] takes no keys from another origin that is not public https', async () => {
    const issuer = await start();
    issuer.misbehave('foreign-keys');
    const authenticator = makeAuthenticator([issuer.settings()]);
    closers.push(authenticator.close);
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('keys-unavailable');
    expect(issuer.hits.get('/keys')).toBeUndefined();
  });

  it('[A-32] does not read an issuer on loopback whose network says otherwise', async () => {
    const issuer = await start();
    for (const network of ['public', 'private'] as const) {
      const authenticator = makeAuthenticator([issuer.settings({ network })]);
      closers.push(authenticator.close);
      expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('keys-unavailable');
    }
    expect(issuer.hits.size).toBe(0);
  });

  it('[A-33] accepts the tokens of a real authorization server, for their own resource', async () => {
    const provider = await startOidcProvider();
    closers.push(provider.close);
    const corp = (await start()).settings({ issuer: provider.issuer });
    const authenticator = makeAuthenticator([corp]);
    closers.push(authenticator.close);
    const scope = 'notes:read';
    const token = await walkCodeFlow(provider.issuer, { resource: RESOURCE, scope });
    expect(await authenticator.ask(token)).toMatchObject({
      subject: 'alice',
      groups: ['eng'],
      scopes: ['notes:read'],
      token: { audience: RESOURCE },
    });
    const resource = `${RESOURCE}/other`;
    const foreign = await walkCodeFlow(provider.issuer, { resource, scope });
    expect(await authenticator.verdict(foreign)).toBe('token-audience');
  });
});
