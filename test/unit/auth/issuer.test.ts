import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  createKeySource,
  discover as discoverUrl,
  type KeySet,
  metadataUrls,
  readKeySet,
  selectKeys,
} from '../../../src/auth/issuer.js';
import type { Json } from '../../../src/protocol/jsonrpc.js';
import { createGuardedFetch } from '../../../src/upstream/safe-fetch.js';
import { startOidcProvider } from '../../support/authorization-servers.js';
import { walkCodeFlow } from '../../support/oauth-clients.js';
import { type Misbehaviour, makeSigningKey, startTestIssuer, type TestIssuer } from '../../support/tokens.js';
import { makeAuthenticator, makeClock, RESOURCE } from './fixture.js';

const MINUTE_MS = 60_000;
let issuer: TestIssuer;
let authenticator: ReturnType<typeof makeAuthenticator>;

const fetches = () => issuer.hits.get('/keys') ?? 0;

/** Good for as long as any clock of these tests runs. */
async function mintFor(minutesFromNow: number, key = issuer.currentKey()): Promise<string> {
  const iat = Math.floor(Date.now() / 1000) + minutesFromNow * 60;
  return await issuer.mint(RESOURCE, { claims: { iat, exp: iat + 3600 }, key });
}

function statusOf() {
  return authenticator.keySources.get('corp')?.status();
}

/** A refresh in the background is over once the source has noted it. */
async function untilFetched(count: number): Promise<void> {
  await expect.poll(fetches).toBe(count);
  await authenticator.keySources.get('corp')?.refresh();
}

describe('the keys of an issuer', () => {
  beforeEach(async () => {
    issuer = await startTestIssuer();
    authenticator = makeAuthenticator([issuer.settings()], makeClock());
  });

  afterEach(async () => {
    await authenticator.close();
    await issuer.close();
  });

  it('[A-51] are fetched once for many callers at once', async () => {
    const tokens = await Promise.all(Array.from({ length: 20 }, () => issuer.mint(RESOURCE)));
    const verdicts = await Promise.all(tokens.map((token) => authenticator.verdict(token)));
    expect(new Set(verdicts)).toEqual(new Set(['ok']));
    expect(fetches()).toBe(1);
  });

  it('[A-51] rotate without a failed request, just after they were fetched', async () => {
    const old = issuer.currentKey();
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('ok');
    for (const keepOld of [true, false]) {
      await issuer.rotate({ keepOld });
      authenticator.clock.offsetMs += MINUTE_MS;
      expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('ok');
    }
    const retired = await issuer.mint(RESOURCE, { key: old });
    expect(await authenticator.verdict(retired)).toBe('token-signature');
  });

  it('[A-51] that are gone take the remembered tokens with them', async () => {
    const token = await issuer.mint(RESOURCE);
    expect(await authenticator.verdict(token)).toBe('ok');
    await issuer.rotate({ keepOld: false });
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('ok');
    expect(await authenticator.verdict(token)).toBe('token-signature');
  });

  it('[A-38] are not fetched again for a flood of unknown key ids', async () => {
    await authenticator.verdict(await issuer.mint(RESOURCE));
    const before = fetches();
    const kids = ['../../dev/null', "' OR 1=1 --", 'https://evil.example/keys', 'x'.repeat(256)];
    for (let round = 0; round < 5; round += 1) {
      for (const kid of kids) {
        const token = await issuer.mint(RESOURCE, { header: { kid: kid.slice(0, 250) + round } });
        expect(await authenticator.verdict(token)).toBe('token-signature');
      }
    }
    expect(fetches()).toBe(before + 1);
    authenticator.clock.offsetMs += 31_000;
    await authenticator.verdict(await issuer.mint(RESOURCE, { header: { kid: 'again' } }));
    expect(fetches()).toBe(before + 2);
  });

  it('[A-37] are not even asked for an algorithm that is not configured', async () => {
    const forged = await issuer.mintWithPublicKeyAsSecret(RESOURCE);
    expect(await authenticator.verdict(forged)).toBe('token-signature');
    expect(issuer.hits.size).toBe(0);
  });

  it('[A-38] published while a fetch is under way are found by the next', async () => {
    const clock = makeClock();
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let published: unknown = { keys: [issuer.currentKey().publicJwk] };
    let round = 0;
    const source = createKeySource(issuer.settings(), {
      now: clock.now,
      async fetchJson(url) {
        if (url.pathname !== '/keys') {
          const value = { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/keys` };
          return { ok: true, value };
        }
        const value = JSON.parse(JSON.stringify(published));
        round += 1;
        if (round === 2) await gate;
        return { ok: true, value };
      },
    });
    await source.refresh();
    const running = source.refresh();
    await expect.poll(() => round).toBe(2);
    const key = await issuer.rotate();
    published = { keys: [key.publicJwk] };
    const lookup = source.keysFor({ kid: key.kid, alg: key.alg });
    release();
    await running;
    expect(await lookup).toMatchObject({ kind: 'keys' });
  });

  const outages: readonly Misbehaviour[] = ['down', 'error', 'html', 'huge', 'redirect'];
  for (const how of outages) {
    it(`[A-51] that cannot be had at start are 503, never 401, and recover (${how})`, async () => {
      issuer.misbehave(how);
      expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('keys-unavailable');
      expect(statusOf()).toMatchObject({ state: 'degraded', lastSuccessAt: undefined });
      issuer.misbehave('none');
      const attempts = fetches();
      expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('keys-unavailable');
      expect(fetches(), 'a failing issuer is not asked at each request').toBe(attempts);
      authenticator.clock.offsetMs += 6_000;
      expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('ok');
      expect(statusOf()).toMatchObject({ state: 'armed', failure: undefined });
    });
  }

  it('[A-51] serve for an hour while the issuer is down, then are unavailable', async () => {
    expect(await authenticator.verdict(await mintFor(0))).toBe('ok');
    issuer.misbehave('down');
    authenticator.clock.offsetMs = 11 * MINUTE_MS;
    expect(await authenticator.verdict(await mintFor(11))).toBe('ok');
    await expect.poll(() => statusOf()?.state).toBe('degraded');
    authenticator.clock.offsetMs = 59 * MINUTE_MS;
    expect(await authenticator.verdict(await mintFor(59))).toBe('ok');
    authenticator.clock.offsetMs = 61 * MINUTE_MS;
    expect(await authenticator.verdict(await mintFor(61))).toBe('keys-unavailable');
  });

  it('[ACH-01] take what they verified with them when they are too old to serve', async () => {
    const early = await mintFor(0);
    const late = await mintFor(59);
    expect(await authenticator.verdict(early)).toBe('ok');
    issuer.misbehave('down');
    authenticator.clock.offsetMs = 59 * MINUTE_MS;
    expect(await authenticator.verdict(late)).toBe('ok');
    expect(authenticator.ask(late)).not.toBeInstanceOf(Promise);
    authenticator.clock.offsetMs = 61 * MINUTE_MS;
    expect(await authenticator.verdict(late)).toBe('keys-unavailable');
  });

  it('[A-51] are refreshed in the background once they are ten minutes old', async () => {
    expect(await authenticator.verdict(await mintFor(0))).toBe('ok');
    authenticator.clock.offsetMs = 9 * MINUTE_MS;
    expect(await authenticator.verdict(await mintFor(9))).toBe('ok');
    expect(fetches()).toBe(1);
    authenticator.clock.offsetMs = 11 * MINUTE_MS;
    expect(await authenticator.verdict(await mintFor(11))).toBe('ok');
    await untilFetched(2);
    expect(statusOf()?.lastSuccessAt).toBeGreaterThan(Date.now() + 10 * MINUTE_MS);
  });

  it('[A-51] that are unknown while the issuer is down are 503: nobody can tell', async () => {
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('ok');
    await issuer.rotate();
    issuer.misbehave('down');
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('keys-unavailable');
    issuer.misbehave('none');
    authenticator.clock.offsetMs += 6_000;
    expect(await authenticator.verdict(await issuer.mint(RESOURCE))).toBe('ok');
  });

  it('[TOK-11] serve for as long as the configuration says, and are fetched in half of that', async () => {
    const own = makeAuthenticator([issuer.settings({ keysMaxAgeMs: 4 * MINUTE_MS })], makeClock());
    const source = own.keySources.get('corp');
    expect(await own.verdict(await mintFor(0))).toBe('ok');
    own.clock.offsetMs = MINUTE_MS;
    source?.keepFresh();
    expect(fetches()).toBe(1);
    own.clock.offsetMs = 2 * MINUTE_MS;
    source?.keepFresh();
    await expect.poll(fetches).toBe(2);
    await source?.refresh();
    issuer.misbehave('down');
    own.clock.offsetMs = 5 * MINUTE_MS;
    expect(await own.verdict(await mintFor(5))).toBe('ok');
    own.clock.offsetMs = 7 * MINUTE_MS;
    expect(await own.verdict(await mintFor(7))).toBe('keys-unavailable');
    await own.close();
  });

  it('[TOK-11] are asked for ever less often by nobody, while the issuer is down', async () => {
    let second = 0;
    const asked: number[] = [];
    const source = createKeySource(issuer.settings(), {
      now: () => second * 1000,
      async fetchJson() {
        asked.push(second);
        return { ok: false, why: 'unreachable', detail: 'could not be reached' };
      },
    });
    for (; second < 300; second += 1) {
      source.keepFresh();
      await new Promise(setImmediate);
    }
    expect(asked).toEqual([0, 5, 15, 35, 75, 135, 195, 255]);
  });

  it('[A-29] of an issuer without key ids serve when there is one of the algorithm', async () => {
    const { kid: _, ...bare } = issuer.currentKey().publicJwk;
    issuer.publish([bare]);
    expect(await authenticator.verdict(await issuer.mint(RESOURCE, { header: { kid: undefined } }))).toBe('ok');
  });
});

describe('jwk set', () => {
  const ALGORITHMS = ['ES256', 'RS256', 'EdDSA'];
  let ec: JWK;
  let ec2: JWK;
  let rsa: JWK;

  beforeAll(async () => {
    ec = (await makeSigningKey('ES256', 'ec')).publicJwk;
    ec2 = (await makeSigningKey('ES256', 'ec2')).publicJwk;
    rsa = (await makeSigningKey('RS256', 'rsa')).publicJwk;
  });

  async function read(keys: readonly unknown[], algorithms = ALGORITHMS) {
    return await readKeySet(JSON.parse(JSON.stringify({ keys })), algorithms);
  }

  async function keysOf(keys: readonly unknown[], algorithms = ALGORITHMS): Promise<KeySet> {
    const reading = await read(keys, algorithms);
    if (!reading.ok) throw new Error(reading.detail);
    return reading.keys;
  }

  describe('a key set', () => {
    it('[A-29] gives the key of an id and an algorithm, and no other', async () => {
      const keys = await keysOf([ec, ec2, rsa]);
      expect(selectKeys(keys, { kid: 'ec', alg: 'ES256' })).toHaveLength(1);
      expect(selectKeys(keys, { kid: 'ec', alg: 'RS256' })).toHaveLength(0);
      expect(selectKeys(keys, { kid: 'EC', alg: 'ES256' })).toHaveLength(0);
      expect(selectKeys(keys, { kid: 'rsa', alg: 'PS256' })).toHaveLength(0);
    });

    it('[A-29] gives the keys of the algorithm where one side names no id', async () => {
      const keys = await keysOf([ec, ec2, rsa]);
      expect(selectKeys(keys, { alg: 'RS256' })).toHaveLength(1);
      expect(selectKeys(keys, { alg: 'ES256' })).toHaveLength(2);
      expect(selectKeys(keys, { alg: 'ES384' })).toHaveLength(0);
      const [one, two] = [ec, ec2].map(({ kid: _, ...open }) => open);
      const open = await keysOf([one, two, one, { ...one, use: 'enc' }, rsa]);
      expect(selectKeys(open, { alg: 'ES256' })).toHaveLength(2);
      expect(selectKeys(open, { kid: 'any', alg: 'ES256' })).toHaveLength(2);
      expect(selectKeys(open, { kid: 'any', alg: 'RS256' })).toHaveLength(0);
    });

    it('[A-29] gives no more than eight keys for a token without an id', async () => {
      const many = await Promise.all(
        Array.from({ length: 12 }, async () => {
          const { publicKey } = await generateKeyPair('ES256', { extractable: true });
          return exportJWK(publicKey);
        }),
      );
      expect(selectKeys(await keysOf(many), { alg: 'ES256' })).toHaveLength(8);
    });

    it('[A-30] leaves out what may not verify, and keeps the rest', async () => {
      const { privateKey } = await generateKeyPair('ES256', { extractable: true });
      const { alg: _, ...open } = rsa;
      const unusable: readonly unknown[] = [
        {
          kty: 'oct',
          k: Buffer.from('0'.repeat(32)).toString('base64url'),
          kid: 'a',
          alg: 'HS256',
        },
        { ...(await exportJWK(privateKey)), kid: 'b' },
        { ...ec, kid: 'c', use: 'enc' },
        { ...ec, kid: 'd', key_ops: ['sign'] },
        { ...ec, kid: 'e', alg: 'ES384' },
        { ...ec, kid: 7 },
        { ...ec, kid: 'f', x: 'AAAA' },
        { ...rsa, kid: 'g', n: 'w'.repeat(171) },
        'text',
        null,
      ];
      const keys = await keysOf([...unusable, { ...open, kid: 'good' }], [...ALGORITHMS, 'HS256']);
      expect([...keys.keys()]).toEqual(['RS256']);
      expect([...(keys.get('RS256')?.keys() ?? [])]).toEqual(['good']);
    });

    it('names what is odd, and not what is for other uses', async () => {
      const { alg: _, ...open } = rsa;
      const reading = await read([
        ...['text', null, { ...ec, kid: 7 }, { ...ec, kid: 'f', x: 'AAAA' }, { ...ec, use: [] }],
        ...[{ ...ec, kid: 'c', use: 'enc' }, { ...ec, kid: 'e', alg: 'ES384' }, { kty: 'other' }],
        ...[{ ...open, kid: 'weak', n: 'w'.repeat(171) }, { ...ec2, kid: 'ec' }, ec, rsa],
        { ...ec, kid: 'ops', key_ops: 'verify' },
      ]);
      expect(reading).toMatchObject({
        ok: true,
        leftOut: [
          'keys/0: expected object, got string',
          'keys/1: expected object, got null',
          'keys/2: kid: expected string, got number',
          'keys/3: no valid EC P-256 key',
          'keys/4: use: expected string, got array',
          'keys/8: RSA of less than 2048 or more than 8192 bits',
          'keys/12: key_ops: expected array, got string',
          'several ES256 keys have the id ec',
        ],
      });
    });

    it('[A-30] uses neither of two keys of one id', async () => {
      const keys = await keysOf([ec, { ...ec2, kid: 'ec' }, rsa]);
      expect(selectKeys(keys, { kid: 'ec', alg: 'ES256' })).toHaveLength(0);
      expect(selectKeys(keys, { kid: 'rsa', alg: 'RS256' })).toHaveLength(1);
    });

    it('[A-30] fails when it is none, or holds nothing that may be used', async () => {
      const documents: readonly Json[] = [null, [], {}, { keys: {} }, { keys: [] }, 'keys'];
      for (const document of documents) {
        expect(await readKeySet(document, ALGORITHMS)).toMatchObject({ ok: false });
      }
    });

    it('[A-30] is used up to its thousandth key, and what follows is named', async () => {
      const many = Array.from({ length: 1_001 }, (_, index) => ({ ...ec, kid: `k${index}` }));
      expect(await read(many.slice(1))).toMatchObject({ ok: true, leftOut: [] });
      expect(await read(many)).toMatchObject({
        ok: true,
        leftOut: ['keys/1000 and what follows: more than 1000 keys'],
      });
      const keys = await keysOf(many);
      expect(selectKeys(keys, { kid: 'k999', alg: 'ES256' })).toHaveLength(1);
      expect(selectKeys(keys, { kid: 'k1000', alg: 'ES256' })).toHaveLength(0);
    });

    it('[A-30] is used where most of its many entries are for other uses', async () => {
      const others = Array.from({ length: 1_001 }, (_, index) => {
        return { ...rsa, use: 'enc', kid: `e${index}` };
      });
      expect(await read([...others, ec])).toMatchObject({ ok: true, leftOut: [] });
    });

    it('has a fingerprint that tells sets apart and not their order', async () => {
      const prints = [];
      for (const keys of [[ec, rsa], [rsa, ec], [ec], [{ ...ec2, kid: 'ec' }, rsa]]) {
        const reading = await read(keys);
        prints.push(reading.ok && reading.fingerprint);
      }
      expect(prints[0]).toBe(prints[1]);
      expect(new Set(prints).size).toBe(3);
    });
  });
});

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
      expect(await discover(issuer)).toMatchObject({ ok: true, url: jwksUri, leftOut: [] });
    });
  }

  it('[A-32] discards a document that names another issuer, by a slash', async () => {
    const issuer = await start();
    issuer.misbehave('wrong-issuer');
    // What is said is what is wrong with it, and not that nothing stands at the URL that was tried last.
    expect(await discover(issuer)).toMatchObject({ ok: false, detail: 'the metadata names another issuer' });
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
