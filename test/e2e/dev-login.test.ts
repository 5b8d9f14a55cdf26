// Logins of the official SDKs at the development issuer, through the gateway, with no manual step: they
// discover, register or name themselves by a document, prove their key (PKCE), and refresh.

import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { startIssuer } from '../../src/dev/issuer.js';
import { canary } from '../support/canary.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { createWalkProvider, finishWalk, type WalkProvider } from '../support/oauth-clients.js';
import { connectSdkV1, connectSdkV2, createTransportV1, createTransportV2 } from '../support/sdk-clients.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const DOCUMENT = 'https://editor.example/oauth/client.json';
const REDIRECT = 'http://127.0.0.1:9/callback';

let url: string;

const issuer = shared(() =>
  startIssuer({
    users: [{ name: 'dev', groups: ['eng'], scopes: [] }],
    fetchDocument: async ({ href }) =>
      href === DOCUMENT ? { client_id: DOCUMENT, redirect_uris: [REDIRECT] } : undefined,
  }),
);
const upstream = shared(async () => {
  canary.watchIssuer(Number(new URL(issuer.issuer).port));
  return startHostileUpstream();
});
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'dev', url: upstream.url }],
  issuerUrl: issuer.issuer,
}));
beforeAll(async () => {
  url = gateway.url('dev');
});

const CLIENTS = [
  [
    'SDK v1',
    (provider: WalkProvider) => connectSdkV1(url, { provider }),
    (provider: WalkProvider) => createTransportV1(url, { provider }),
  ],
  [
    'SDK v2 in a session',
    (provider: WalkProvider) => connectSdkV2(url, '2025', { provider }),
    (provider: WalkProvider) => createTransportV2(url, { provider }),
  ],
  [
    'SDK v2, stateless',
    (provider: WalkProvider) => connectSdkV2(url, '2026', { provider }),
    (provider: WalkProvider) => createTransportV2(url, { provider }),
  ],
] as const;

describe.each(CLIENTS)('[REV-50] %s', (_, connect, createTransport) => {
  async function login(provider: WalkProvider): Promise<void> {
    await expect(connect(provider)).rejects.toThrow(/[Uu]nauthorized/);
    await finishWalk(provider, createTransport(provider));
    const { client, close } = await connect(provider);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('read_record');
    await close();
  }

  it('registers, logs in and calls, and refreshes without asking anyone', async () => {
    const provider = createWalkProvider({ redirectUrl: REDIRECT, refreshes: true });
    await login(provider);
    const { tokens, client, authorizationUrl } = provider.facts();
    expect(decodeJwt(tokens?.access_token ?? '')).toMatchObject({
      aud: url,
      sub: 'dev',
      client_id: client?.client_id,
    });
    expect(authorizationUrl?.searchParams.get('code_challenge_method')).toBe('S256');
    if (tokens === undefined) throw new Error('no tokens');
    // What the gateway does not accept any more, the client replaces by itself.
    await provider.saveTokens({
      ...tokens,
      access_token: `${tokens.access_token.slice(0, -8)}AAAAAAAA`,
    });
    const again = await connect(provider);
    expect((await again.client.listTools()).tools.length).toBeGreaterThan(0);
    await again.close();
    const refreshed = provider.facts().tokens;
    expect(refreshed?.refresh_token).not.toBe(tokens.refresh_token);
    expect(refreshed?.access_token).not.toBe(tokens.access_token);
  });

  it('names itself by a document, and registers nowhere', async () => {
    const provider = createWalkProvider({ redirectUrl: REDIRECT, documentUrl: DOCUMENT });
    await login(provider);
    const { tokens, client } = provider.facts();
    expect(client?.client_id).toBe(DOCUMENT);
    expect(decodeJwt(tokens?.access_token ?? '')['client_id']).toBe(DOCUMENT);
  });
});
