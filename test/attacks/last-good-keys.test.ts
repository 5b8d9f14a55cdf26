// Case 51, the rest: how long keys serve that cannot be renewed, what shows it, and key sets that hold
// what must not verify anything.

import { generateKeyPairSync } from 'node:crypto';
import { exportJWK, importPKCS8 } from 'jose';
import { describe, expect, it } from 'vitest';
import { expectCallPasses, expectLoginLine, expectLoginRefused, expectNothingForwarded } from '../support/gateway.js';
import { makeSigningKey, type SigningKey } from '../support/tokens.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CONTROL = 'sallyport_controls{control="authn",state=';
const MAX_AGE_MS = 30_000;
/** Between two attempts while the issuer fails. */
const FAILURE_PAUSE_MS = 5_000;

describe('an issuer that goes away', () => {
  const rig = sharedGateway({ issuer: ['algorithms: [ES256]', `keysMaxAge: ${MAX_AGE_MS}ms`] });

  const fresh = async (): Promise<string> => rig.gateway.token('target', { jti: crypto.randomUUID() });

  it('[X-51, TOK-11] vouches for keysMaxAge, then for nobody, and again when it is back', async () => {
    const { issuer } = rig.gateway;
    await expectCallPasses(rig, await fresh());
    issuer.misbehave('down');
    await expectCallPasses(rig, await fresh());
    rig.passTime(MAX_AGE_MS / 2);
    await expect.poll(() => rig.gateway.metrics(), { interval: 50 }).toContain(`${CONTROL}"degraded"} 1`);
    const call = async () => callStateless(rig.as(await fresh()), 'read_record', { id: 'one' });
    rig.passTime(MAX_AGE_MS);
    await expect.poll(async () => (await call()).status).toBe(503);
    rig.upstream.forget();
    const refused = await call();
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.headers.get('www-authenticate')).toBeNull();
    await expectLoginLine(rig, refused, 'keys-unavailable');
    expectNothingForwarded(rig);
    expect((await fetch(`${rig.gateway.opsUrl}/readyz`)).status).toBe(200);
    issuer.misbehave('none');
    rig.passTime(FAILURE_PAUSE_MS);
    await expect.poll(async () => (await call()).status).toBe(200);
    await expect.poll(() => rig.gateway.metrics(), { interval: 50 }).toContain(`${CONTROL}"armed"} 1`);
  }, 40_000);

  it('[TOK-11] is asked ahead of need, and says when it last answered', async () => {
    const successAt = async (): Promise<number> => {
      const text = await rig.gateway.metrics();
      const line = /sallyport_jwks_last_success_timestamp_seconds\{issuer="test"\} (\S+)/.exec(text);
      return Number(line?.[1]);
    };
    const before = await successAt();
    expect(before).toBeGreaterThan(0);
    // No caller comes: what is fetched now is fetched for those who may.
    rig.passTime(MAX_AGE_MS / 2);
    await expect.poll(successAt, { interval: 100 }).toBeGreaterThan(before);
  });
});

describe('[X-51] a key set', () => {
  const rig = sharedGateway({
    issuer: ['algorithms: [ES256, RS256, PS256]', `keysMaxAge: ${MAX_AGE_MS}ms`],
  });

  async function weakRsa(): Promise<SigningKey> {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const kid = 'weak';
    return {
      kid,
      alg: 'RS256',
      privateKey: await importPKCS8(String(pem), 'RS256'),
      publicKey: await importPKCS8(String(pem), 'RS256'),
      publicJwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' },
    };
  }

  /** Publishes these keys beside a good one, and waits until the gateway has them. */
  async function publish(...jwks: readonly SigningKey['publicJwk'][]): Promise<void> {
    const { issuer } = rig.gateway;
    const good = await makeSigningKey();
    issuer.publish([...jwks, good.publicJwk]);
    rig.passTime(MAX_AGE_MS);
    const probe = async () =>
      (await callStateless(rig.as(await issuer.mint(rig.access.url, { key: good })), 'read_record', { id: 'one' }))
        .status;
    await expect.poll(probe, { interval: 20 }).toBe(200);
  }

  type Entries = (key: SigningKey, other: SigningKey) => readonly SigningKey['publicJwk'][];

  it.each<readonly [string, Entries]>([
    ['for encryption', ({ publicJwk }) => [{ ...publicJwk, use: 'enc' }]],
    ['for signing alone', ({ publicJwk: { use: _, ...jwk } }) => [{ ...jwk, key_ops: ['sign'] }]],
    ['of another algorithm', ({ publicJwk }) => [{ ...publicJwk, alg: 'ES384' }]],
    ['of another kind', ({ publicJwk }) => [{ ...publicJwk, kty: 'OKP' }]],
    ['with its private half', ({ publicJwk }) => [{ ...publicJwk, d: 'AAAA' }]],
    [
      'before another of the same id and algorithm',
      ({ publicJwk, kid }, other) => [publicJwk, { ...other.publicJwk, kid }],
    ],
    [
      'behind another of the same id and algorithm, which says none',
      ({ publicJwk, kid }, { publicJwk: { alg: _, ...jwk } }) => [{ ...jwk, kid }, publicJwk],
    ],
    [
      'twice, around another of the same id and algorithm',
      ({ publicJwk, kid }, other) => [publicJwk, { ...other.publicJwk, kid }, publicJwk],
    ],
  ])('verifies nothing by a key %s', async (_title, entries) => {
    const key = await makeSigningKey();
    const other = await makeSigningKey();
    await publish(...entries(key, other));
    const { issuer } = rig.gateway;
    const token = await issuer.mint(rig.access.url, { key });
    await expectLoginRefused(rig, token, 'token-signature');
    const byOther = await issuer.mint(rig.access.url, { key: { ...other, kid: key.kid } });
    await expectLoginRefused(rig, byOther, 'token-signature');
  });

  it.each<readonly [string, Entries]>([
    ['given twice, which counts once', ({ publicJwk }) => [publicJwk, publicJwk]],
    [
      'beside a secret of the same id, which is left out',
      ({ publicJwk, kid }) => [publicJwk, { kty: 'oct', kid, k: 'AAAA' }, publicJwk],
    ],
  ])('verifies by a key %s', async (_title, entries) => {
    const key = await makeSigningKey();
    const other = await makeSigningKey();
    await publish(...entries(key, other));
    const { issuer } = rig.gateway;
    await expectCallPasses(rig, await issuer.mint(rig.access.url, { key }));
    const byOther = await issuer.mint(rig.access.url, { key: { ...other, kid: key.kid } });
    await expectLoginRefused(rig, byOther, 'token-signature');
  });

  it('verifies nothing by a weak key', async () => {
    const key = await weakRsa();
    await publish(key.publicJwk);
    const [head, body] = (await rig.gateway.issuer.mint(rig.access.url)).split('.');
    const header = { ...JSON.parse(Buffer.from(head ?? '', 'base64url').toString()) };
    const input = `${Buffer.from(JSON.stringify({ ...header, alg: 'RS256', kid: 'weak' })).toString('base64url')}.${body}`;
    const signature = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', key.privateKey, Buffer.from(input));
    const token = `${input}.${Buffer.from(signature).toString('base64url')}`;
    await expectLoginRefused(rig, token, 'token-signature');
  });

  it('that holds too much is none', async () => {
    const key = await makeSigningKey();
    await publish(key.publicJwk);
    const many = (count: number) => Array.from({ length: count }, (_, i) => ({ ...key.publicJwk, kid: `k${i}` }));
    rig.gateway.issuer.publish([...many(500), key.publicJwk]);
    rig.passTime(MAX_AGE_MS);
    const call = async () =>
      callStateless(
        rig.as(
          await rig.gateway.issuer.mint(rig.access.url, {
            key,
            claims: { jti: crypto.randomUUID() },
          }),
        ),
        'read_record',
        { id: 'one' },
      );
    await expect.poll(async () => (await call()).status, { timeout: 6_000 }).toBe(200);
    // More than 256 KiB.
    rig.gateway.issuer.publish([key.publicJwk, ...many(3_000)]);
    rig.passTime(MAX_AGE_MS);
    await expect.poll(async () => (await call()).status, { timeout: 6_000 }).toBe(503);
  });
});
