import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAX_JOINED } from '../../../src/auth/authenticator.js';
import { startTestIssuer, type TestIssuer } from '../../support/tokens.js';
import { ACCEPTANCE, makeAuthenticator, RESOURCE, verdictOf } from './fixture.js';

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
    const respelled = Array.from(
      { length: 15 },
      (_, index) => token.slice(0, -1) + alphabet[last + index + 1],
    );
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
