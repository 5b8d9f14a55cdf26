// Each type of credential against a real authorization server, with an upstream that verifies what it gets
// as a resource server must. Sources: RFC 6749 §4.4, RFC 7523, RFC 8693, RFC 8707, RFC 9068.

import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startExchangeProvider } from '../support/authorization-servers.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { makeSecretFiles, type SecretFiles } from '../support/secrets.js';
import { callStateless, openSession, type Reply } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

let files: SecretFiles;

const provider = shared(() => startExchangeProvider());
const upstream = shared(() => startHostileUpstream());
afterAll(async () => {
  await files?.close();
});
const gateway = sharedGateway(async () => {
  files = await makeSecretFiles();
  const { basic, post, key } = provider.clients;
  const basicSecret = await files.write('basic', basic.secret);
  const postSecret = await files.write('post', post.secret);
  const pem = await files.write('key.pem', key.pem);
  const wrong = await files.write('wrong', 'not the secret');
  const at = `issuer: ${JSON.stringify(provider.issuer)}, network: loopback`;
  const own = `type: client-credentials, ${at}, clientId: ${basic.id}, clientSecret: {file: ${basicSecret}}`;
  const byKey = `type: client-credentials, ${at}, clientId: ${key.id}, privateKey: {file: ${pem}}, resource: "${upstream.url}"`;
  const named = (name: string, credentials: string, pinning = `${own}, resource: "${upstream.url}"`) => ({
    name,
    url: `${upstream.url}?for=${name}`,
    more: [`credentials: {${credentials}}`, `pinning: {maxAge: 10m, credentials: {${pinning}}}`],
  });
  return {
    upstreams: [
      named('basic', `${own}, scopes: ["records:read"], resource: "${upstream.url}"`),
      named(
        'post',
        `type: client-credentials, ${at}, clientId: ${post.id}, clientSecret: {file: ${postSecret}}, clientAuthentication: client_secret_post, resource: "${upstream.url}"`,
      ),
      named('key', byKey, byKey),
      named(
        'exchange',
        `type: token-exchange, ${at}, clientId: ${key.id}, privateKey: {file: ${pem}}, scopes: ["records:write"], resource: "${upstream.url}"`,
      ),
      named(
        'wrong',
        `type: client-credentials, ${at}, clientId: ${post.id}, clientSecret: {file: ${wrong}}, clientAuthentication: client_secret_post, resource: "${upstream.url}"`,
      ),
    ],
  };
});
beforeAll(async () => {
  provider.trust(gateway.issuer.issuer, `${gateway.issuer.issuer}/keys`);
});
beforeEach(() => upstream.forget());

async function call(name: string, claims: Readonly<Record<string, unknown>> = {}): Promise<Reply> {
  const token = await gateway.token(name, claims);
  return callStateless({ url: gateway.url(name), token }, 'read_record', { id: 'one' });
}

/** What the upstream makes of the token of a request, as RFC 9068 §4 has it. */
async function verified(index = -1): Promise<Readonly<Record<string, unknown>>> {
  const header = upstream.uses().at(index)?.headers['authorization'] ?? '';
  const keys = createRemoteJWKSet(new URL(provider.jwksUri));
  const { payload } = await jwtVerify(header.replace(/^Bearer /, ''), keys, {
    issuer: provider.issuer,
    audience: upstream.url,
    typ: 'at+jwt',
  });
  return payload;
}

describe('client credentials', () => {
  it.each(['basic', 'post', 'key'])('[CRD-04] are got by %s, for the resource of the upstream', async (name) => {
    expect((await call(name)).status).toBe(200);
    const { id } = provider.clients[name as 'basic' | 'post' | 'key'];
    expect(await verified()).toMatchObject({ client_id: id });
  });

  it('[CRD-04] carry the scopes that were asked for, and are kept', async () => {
    await call('basic');
    expect(await verified()).toMatchObject({ scope: 'records:read' });
    const asked = provider.grants.length;
    await call('basic', { sub: 'somebody else' });
    expect(provider.grants.length).toBe(asked);
  });

  it('[CRD-04] [CRD-09] let the gateway list for itself', async () => {
    const listed = await gateway.metrics();
    for (const name of ['basic', 'post', 'key', 'exchange'])
      expect(listed).toContain(`sallyport_upstream_up{upstream="${name}"} 1`);
  });

  it('[CRD-07] that the server refuses let nothing leave', async () => {
    expect((await call('wrong')).status).toBe(502);
    expect(upstream.seen()).toEqual([]);
    expect(gateway.log()).toContain('the token endpoint refused with invalid_client');
  });
});

describe('token exchange', () => {
  it('[CRD-05] gives the upstream a token of its own for the caller', async () => {
    expect((await call('exchange', { sub: 'bob' })).status).toBe(200);
    expect(await verified()).toMatchObject({
      sub: 'bob',
      client_id: provider.clients.key.id,
      scope: 'records:write',
    });
  });

  it('[CRD-05] never gives one caller the token of another', async () => {
    const subjects = Array.from({ length: 12 }, (_, index) => `user-${index % 4}`);
    await Promise.all(subjects.map((sub) => call('exchange', { sub })));
    const seen = await Promise.all(upstream.uses().map(async (_, index) => verified(index)));
    expect(seen.map(({ sub }) => sub).sort()).toEqual([...subjects].sort());
  });

  it('[CRD-05] [CRD-08] asks once for one token of a caller, again for the next', async () => {
    const token = await gateway.token('exchange', { sub: 'carol' });
    const access = { url: gateway.url('exchange'), token };
    const asked = provider.grants.length;
    const args = { id: 'one' };
    await Promise.all([1, 2, 3].map(() => callStateless(access, 'read_record', args)));
    await callStateless(access, 'read_record', args);
    expect(provider.grants.length).toBe(asked + 1);
    await call('exchange', { sub: 'carol' });
    expect(provider.grants.length).toBe(asked + 2);
  });

  it('[CRD-07] that the server refuses lets nothing leave', async () => {
    provider.trust('https://another.example', `${gateway.issuer.issuer}/keys`);
    expect((await call('exchange', { sub: 'mallory' })).status).toBe(502);
    expect(upstream.seen()).toEqual([]);
    provider.trust(gateway.issuer.issuer, `${gateway.issuer.issuer}/keys`);
  });

  it('[CRD-09] holds for a session from its handshake to its end', async () => {
    const token = await gateway.token('exchange', { sub: 'dave' });
    const session = await openSession({ url: gateway.url('exchange'), token });
    await session.call('read_record', { id: 'one' });
    await session.end();
    const shown = upstream.seen().map(({ headers }) => headers['authorization']);
    expect(shown.length).toBeGreaterThan(2);
    expect(new Set(shown).size).toBe(1);
    expect(await verified()).toMatchObject({ sub: 'dave' });
    expect(upstream.seen().some(({ httpMethod }) => httpMethod === 'DELETE')).toBe(true);
  });
});
