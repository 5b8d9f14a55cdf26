import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MAX_JOINED, MAX_VERIFYING } from '../../../src/auth/authenticator.js';
import { type MintOptions, makeSigningKey, startTestIssuer, type TestIssuer } from '../../support/tokens.js';
import { ACCEPTANCE, makeAuthenticator, RESOURCE, verdictOf } from './fixture.js';

let issuer: TestIssuer;
let other: TestIssuer;
let authenticator: ReturnType<typeof makeAuthenticator>;
const seconds = () => Math.floor(Date.now() / 1000);

beforeAll(async () => {
  issuer = await startTestIssuer();
  other = await startTestIssuer({ key: await makeSigningKey('ES256', issuer.currentKey().kid) });
  authenticator = makeAuthenticator([
    issuer.settings(),
    other.settings({ name: 'partner' }),
    issuer.settings({ name: 'legacy', tokenType: 'JWT' }),
  ]);
});

afterAll(async () => {
  await authenticator.close();
  await Promise.all([issuer.close(), other.close()]);
});

type Case = readonly [title: string, verdict: string, options: () => MintOptions];

const claims = (changed: Record<string, unknown>) => () => ({ claims: changed });
const header = (changed: Record<string, unknown>) => () => ({ header: changed });

const AUDIENCES: readonly Case[] = [
  ['[A-40] takes the exact resource', 'ok', claims({})],
  ['[A-40] takes an array of the exact resource alone', 'ok', claims({ aud: [RESOURCE] })],
  ...[
    `${RESOURCE}/`,
    `${RESOURCE}x`,
    RESOURCE.slice(0, -1),
    RESOURCE.toUpperCase(),
    'https://MCP.example.com/notes',
    'https://mcp.example.com:443/notes',
    'https://mcp.example.com',
    `${RESOURCE}#x`,
    ` ${RESOURCE}`,
    '',
    [],
    [RESOURCE, 'https://other.example'],
    [RESOURCE, RESOURCE],
    [[RESOURCE]],
    { [RESOURCE]: true },
    null,
    undefined,
  ].map((aud): Case => [`[A-40] refuses the audience ${JSON.stringify(aud)}`, 'token-audience', claims({ aud })]),
];

const TYPES: readonly Case[] = [
  ['[A-41] takes at+jwt in any case', 'ok', header({ typ: 'AT+JWT' })],
  ['[A-41] takes application/at+jwt', 'ok', header({ typ: 'application/at+jwt' })],
  ...['JWT', 'dpop+jwt', 'oauth-id-jag+jwt', 'at+jwt ', 'x/at+jwt', '', 1, null, undefined].map(
    (typ): Case => [`[A-41] refuses the type ${JSON.stringify(typ)}`, 'token-type', header({ typ })],
  ),
];

const TIMES: readonly Case[] = [
  ['[A-42] refuses a token without exp', 'token-malformed', claims({ exp: undefined })],
  ['[A-42] refuses exp as a string', 'token-malformed', claims({ exp: String(2e9) })],
  ['[A-42] refuses exp in ten years', 'token-lifetime', () => ({ claims: { exp: seconds() + 3e8 } })],
  ['[A-42] refuses a token without iat', 'token-malformed', claims({ iat: undefined })],
  [
    '[A-42] refuses a token whose end is a second ago, without tolerance',
    'token-expired',
    () => ({ claims: { iat: seconds() - 60, exp: seconds() - 1 } }),
  ],
  [
    '[A-42] takes the longest lifetime with a minute of rounding',
    'ok',
    () => ({ claims: { iat: seconds(), exp: seconds() + 3660 } }),
  ],
  ['[A-42] refuses a second more', 'token-lifetime', () => ({ claims: { iat: seconds(), exp: seconds() + 3661 } })],
  [
    '[A-42] takes a clock that is ten seconds ahead',
    'ok',
    () => ({ claims: { iat: seconds() + 10, nbf: seconds() + 10 } }),
  ],
  ['[A-42] refuses iat in the future', 'token-not-yet-valid', () => ({ claims: { iat: seconds() + 90 } })],
  ['[A-42] refuses nbf in the future', 'token-not-yet-valid', () => ({ claims: { nbf: seconds() + 90 } })],
  ['[A-42] refuses nbf that is no number', 'token-malformed', claims({ nbf: '0' })],
];

const HEADERS: readonly Case[] = [
  ['[A-39] refuses jku', 'token-malformed', header({ jku: 'https://evil.example/keys' })],
  ['[A-39] refuses x5u', 'token-malformed', header({ x5u: 'https://evil.example/cert' })],
  ['[A-39] refuses x5c', 'token-malformed', header({ x5c: ['MIIB'] })],
  ['[A-39] refuses jwk', 'token-malformed', () => ({ header: { jwk: issuer.currentKey().publicJwk } })],
  ['[A-43] refuses b64 that is critical', 'token-malformed', header({ b64: true, crit: ['b64'] })],
  ['[A-38] refuses a key id past 256 characters', 'token-malformed', header({ kid: 'k'.repeat(257) })],
  ['[A-38] refuses a key id that is no string', 'token-malformed', header({ kid: 7 })],
  ['takes x5t, which only names a certificate', 'ok', header({ x5t: 'AAAA' })],
];

const CLAIMS: readonly Case[] = [
  ['[A-24] refuses a token without sub', 'token-malformed', claims({ sub: undefined })],
  ['[A-24] refuses an empty sub', 'token-malformed', claims({ sub: '' })],
  ['[A-24] refuses a sub with a line break', 'token-malformed', claims({ sub: 'alice\nadmin' })],
  ['[A-24] refuses a token without a client', 'token-malformed', claims({ client_id: undefined })],
  ['[A-24] refuses a client that is no string', 'token-malformed', claims({ client_id: ['a'] })],
  ['takes the second name of the client claim', 'ok', claims({ client_id: undefined, azp: 'a' })],
  ['[A-44] refuses a token without iss', 'token-issuer', claims({ iss: undefined })],
  ['[A-44] refuses another spelling of iss', 'token-issuer', () => ({ claims: { iss: `${issuer.issuer}/` } })],
  ['[A-48] refuses a DPoP-bound token', 'token-binding', claims({ cnf: { jkt: 'x' } })],
  ['[A-49] refuses a certificate-bound token', 'token-binding', claims({ cnf: { 'x5t#S256': 'x' } })],
  ['[A-48] refuses any confirmation claim', 'token-binding', claims({ cnf: null })],
  ['[A-52] refuses a tab in scope', 'token-malformed', claims({ scope: 'notes:read\tnotes:write' })],
  ['[A-52] refuses a Unicode space in scope', 'token-malformed', claims({ scope: 'a\u2003b' })],
  ['[A-52] refuses an empty scope token', 'token-malformed', claims({ scope: 'a  b' })],
  ['[A-52] refuses a quotation mark in scope', 'token-malformed', claims({ scope: 'a"b' })],
  ['[A-52] refuses a scope list with other things', 'token-malformed', claims({ scope: ['a', 1] })],
  ['takes an empty scope', 'ok', claims({ scope: '' })],
  ['refuses groups that are not strings', 'token-malformed', claims({ groups: [{ name: 'eng' }] })],
  ['refuses an actor without a subject', 'token-malformed', claims({ act: { iss: 'x' } })],
];

describe('a token is verified', () => {
  for (const [title, verdict, options] of [...AUDIENCES, ...TYPES, ...TIMES, ...HEADERS, ...CLAIMS]) {
    it(title, async () => {
      expect(await authenticator.verdict(await issuer.mint(RESOURCE, options()))).toBe(verdict);
    });
  }

  it('[A-40] compares with the audiences of the configuration, when it maps some', async () => {
    const mapped = { ...ACCEPTANCE, audiences: { corp: ['api://notes'] } };
    const fits = await issuer.mint('api://notes');
    expect(await authenticator.verdict(fits, mapped)).toBe('ok');
    expect(await authenticator.verdict(await issuer.mint(RESOURCE), mapped)).toBe('token-audience');
    const none = { ...ACCEPTANCE, audiences: { corp: [] } };
    expect(await authenticator.verdict(await issuer.mint(RESOURCE), none)).toBe('token-audience');
  });

  it('[A-41] takes another type where the issuer is configured for it, and only there', async () => {
    const legacy = { ...ACCEPTANCE, issuers: ['legacy'] };
    const token = await issuer.mint(RESOURCE, { header: { typ: 'JWT' } });
    expect(await authenticator.verdict(token, legacy)).toBe('ok');
    expect(await authenticator.verdict(await issuer.mint(RESOURCE), legacy)).toBe('token-type');
  });

  it('[A-37] refuses alg none in every spelling, with and without a signature', async () => {
    for (const alg of ['none', 'nOnE', 'NONE', '']) {
      const head = { alg, typ: 'at+jwt', kid: issuer.currentKey().kid };
      const signed = issuer.mintUnsigned(RESOURCE, head, new Uint8Array(64));
      expect(await authenticator.verdict(signed)).toBe('token-signature');
      const bare = issuer.mintUnsigned(RESOURCE, head, new Uint8Array(0));
      expect(await authenticator.verdict(bare)).toBe('token-malformed');
    }
  });

  it('[A-37] refuses HS256 with the public key as its secret', async () => {
    const token = await issuer.mintWithPublicKeyAsSecret(RESOURCE);
    expect(await authenticator.verdict(token)).toBe('token-signature');
  });

  it('[A-43] refuses an encrypted token', async () => {
    expect(await authenticator.verdict('eyJh.AAAA.AAAA.AAAA.AAAA')).toBe('token-malformed');
  });

  it('[A-44] judges by the keys of the issuer that is named, though both share a key id', async () => {
    const both = { ...ACCEPTANCE, issuers: ['corp', 'partner'] };
    expect(other.currentKey().kid).toBe(issuer.currentKey().kid);
    const forged = await issuer.mint(RESOURCE, { key: other.currentKey() });
    expect(await authenticator.verdict(forged, both)).toBe('token-signature');
    const foreign = await other.mint(RESOURCE);
    expect(await authenticator.verdict(foreign, both)).toBe('ok');
    expect(await authenticator.verdict(foreign)).toBe('token-issuer');
  });

  it('[A-37] refuses a token whose claims or signature were changed', async () => {
    const [head = '', body = '', signature = ''] = (await issuer.mint(RESOURCE)).split('.');
    const stated = JSON.parse(Buffer.from(body, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...stated, sub: 'root' })).toString('base64url');
    expect(await authenticator.verdict(`${head}.${forged}.${signature}`)).toBe('token-signature');
    const flipped = (signature.startsWith('A') ? 'B' : 'A') + signature.slice(1);
    expect(await authenticator.verdict(`${head}.${body}.${flipped}`)).toBe('token-signature');
  });

  it('refuses parts that are not JSON objects', async () => {
    const part = (text: string | Uint8Array) => Buffer.from(text).toString('base64url');
    const invalidUtf8 = Buffer.from('{"alg":"ES256\xff"}', 'latin1');
    for (const head of [part('[1]'), part('null'), part('{'), part(invalidUtf8), part('\ufeff{}')]) {
      expect(await authenticator.verdict(`${head}.${part('{}')}.AAAA`)).toBe('token-malformed');
    }
  });

  it('refuses every token where no issuer is accepted', async () => {
    const lonely = { ...ACCEPTANCE, issuers: ['nobody'] };
    expect(await authenticator.verdict(await issuer.mint(RESOURCE), lonely)).toBe('token-issuer');
  });
});

describe('a flood of unknown tokens', () => {
  it('[PRF-14] is verified a few at a time, in the order in which they came', async () => {
    let running = 0;
    let most = 0;
    const real = crypto.subtle.verify.bind(crypto.subtle);
    const verify = vi.spyOn(crypto.subtle, 'verify').mockImplementation(async (...given) => {
      running += 1;
      most = Math.max(most, running);
      const outcome = await real(...given);
      running -= 1;
      return outcome;
    });
    const tokens = await Promise.all(
      Array.from({ length: 10 }, (_, at) => issuer.mint(RESOURCE, { claims: { jti: `new ${at}` } })),
    );
    const ended: number[] = [];
    const outcomes = await Promise.all(
      tokens.map(async (token, at) => {
        const outcome = await authenticator.verdict(token);
        ended.push(at);
        return outcome;
      }),
    );
    expect(outcomes).toEqual(tokens.map(() => 'ok'));
    expect(verify).toHaveBeenCalledTimes(tokens.length);
    expect(most).toBe(MAX_VERIFYING);
    expect(ended.at(-1)).toBeGreaterThanOrEqual(tokens.length - MAX_VERIFYING);
    verify.mockRestore();
  });
});

describe('verified tokens', () => {
  const MINUTE_MS = 60_000;
  let issuer: TestIssuer;
  const closers: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    issuer = await startTestIssuer();
  });

  afterAll(async () => {
    for (const close of closers) await close();
    await issuer.close();
  });

  function make() {
    const authenticator = makeAuthenticator([issuer.settings()]);
    closers.push(authenticator.close);
    return authenticator;
  }

  describe('a verified token', () => {
    it('[A-34] is remembered, and answered without a promise', async () => {
      const { ask } = make();
      const token = await issuer.mint(RESOURCE);
      const first = ask(token);
      expect(first).toBeInstanceOf(Promise);
      const principal = await first;
      expect(ask(token)).toBe(principal);
    });

    it('[A-34] is verified once for many who ask at once', async () => {
      const { ask } = make();
      const token = await issuer.mint(RESOURCE);
      const [one, other] = await Promise.all([ask(token), ask(token)]);
      // Two verifications would have made two principals.
      expect(one).toBe(other);
      expect(verdictOf(one)).toBe('ok');
    });

    it('[ACH-05] has so many waiting for its verdict and no more, and then lets all of them in', async () => {
      const { ask } = make();
      const token = await issuer.mint(RESOURCE);
      const waiting = Array.from({ length: 1 + MAX_JOINED }, () => ask(token));
      expect(ask(token)).toEqual({ reason: 'keys-unavailable' });
      const verdicts = await Promise.all(waiting);
      expect(new Set(verdicts.map(verdictOf))).toEqual(new Set(['ok']));
      expect(verdictOf(await ask(token))).toBe('ok');
      const other = await issuer.mint(RESOURCE);
      expect((await Promise.all([ask(other), ask(other)])).map(verdictOf)).toEqual(['ok', 'ok']);
    });

    it('[A-35] is remembered for one upstream alone', async () => {
      const { verdict } = make();
      const token = await issuer.mint(RESOURCE);
      expect(await verdict(token)).toBe('ok');
      const other = { ...ACCEPTANCE, resource: `${RESOURCE}/other` };
      expect(await verdict(token, other)).toBe('token-audience');
      const closed = { ...ACCEPTANCE, issuers: [] };
      expect(await verdict(token, closed)).toBe('token-issuer');
    });

    it('[A-35] is forgotten by the authenticator of the next configuration', async () => {
      const token = await issuer.mint(RESOURCE);
      expect(await make().verdict(token)).toBe('ok');
      expect(make().ask(token)).toBeInstanceOf(Promise);
    });

    it('[A-36] is not remembered past its end', async () => {
      const { verdict, clock } = make();
      const iat = Math.floor(Date.now() / 1000);
      const token = await issuer.mint(RESOURCE, { claims: { iat, exp: iat + 60 } });
      expect(await verdict(token)).toBe('ok');
      clock.offsetMs = 61_000;
      expect(await verdict(token)).toBe('token-expired');
    });

    it('[A-36] is verified again after five minutes', async () => {
      const { ask, clock } = make();
      const token = await issuer.mint(RESOURCE, {
        claims: { exp: Math.floor(Date.now() / 1000) + 3000 },
      });
      await ask(token);
      clock.offsetMs = 4 * MINUTE_MS;
      expect(ask(token)).not.toBeInstanceOf(Promise);
      clock.offsetMs = 5 * MINUTE_MS;
      expect(ask(token)).toBeInstanceOf(Promise);
    });

    it('[A-46] has one entry: its other spellings are refused before any is looked up', async () => {
      const { authenticate, ask } = make();
      const token = await issuer.mint(RESOURCE);
      await ask(token);
      const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
      const last = alphabet.indexOf(token.slice(-1));
      // An ES256 signature leaves four spare bits in its last character.
      const respelled = Array.from({ length: 15 }, (_, index) => token.slice(0, -1) + alphabet[last + index + 1]);
      for (const spelling of [...respelled, `${token}=`, `${token} `, token.replace('.', '.\n')]) {
        const headers = { authorization: `Bearer ${spelling}` };
        const outcome = authenticate({ headers, repeated: new Set(), query: '' }, ACCEPTANCE);
        expect(outcome).toEqual({ reason: 'token-malformed' });
      }
    });
  });

  describe('a refused token', () => {
    it('is remembered for ten seconds', async () => {
      const { ask, clock } = make();
      const token = await issuer.mint(`${RESOURCE}x`);
      await ask(token);
      expect(ask(token)).toMatchObject({ reason: 'token-audience' });
      clock.offsetMs = 10_000;
      expect(ask(token)).toBeInstanceOf(Promise);
    });

    it('that is only too early is not remembered', async () => {
      const { ask } = make();
      const iat = Math.floor(Date.now() / 1000) + 40;
      const token = await issuer.mint(RESOURCE, { claims: { iat } });
      expect(await ask(token)).toMatchObject({ reason: 'token-not-yet-valid' });
      expect(ask(token)).toBeInstanceOf(Promise);
    });

    it('comes with what was expected and what it says of itself, and nothing else of it', async () => {
      const { ask } = make();
      const accepted = { issuer: issuer.settings().issuer, audience: RESOURCE, type: 'at+jwt' };
      const elsewhere = await ask(await issuer.mint(`${RESOURCE}x`));
      expect(elsewhere).toEqual({
        reason: 'token-audience',
        refusedToken: { expected: accepted, presented: { ...accepted, audience: `${RESOURCE}x` } },
      });
      const stranger = await issuer.mint(RESOURCE, { claims: { iss: 'https://other.example' } });
      expect(await ask(stranger)).toEqual({
        reason: 'token-issuer',
        refusedToken: {
          expected: accepted,
          presented: { ...accepted, issuer: 'https://other.example' },
        },
      });
      const typed = await issuer.mint(RESOURCE, { header: { typ: 'id+jwt' } });
      expect(await ask(typed)).toMatchObject({
        reason: 'token-type',
        refusedToken: { presented: { type: 'id+jwt' } },
      });
      // Nothing can be said of what is no JWT.
      expect(await ask('opaque')).toEqual({ reason: 'token-malformed' });
    });
  });
});
