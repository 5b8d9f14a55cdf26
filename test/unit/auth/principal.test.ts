import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AuthnOutcome, isAuthnError } from '../../../src/auth/authenticator.js';
import { anonymousPrincipal } from '../../../src/auth/principal.js';
import type { Principal } from '../../../src/policy/principal.js';
import { startTestIssuer, type TestIssuer } from '../../support/tokens.js';
import { ACCEPTANCE, makeAuthenticator, RESOURCE } from './fixture.js';

let issuer: TestIssuer;
let authenticator: ReturnType<typeof makeAuthenticator>;

beforeAll(async () => {
  issuer = await startTestIssuer({ alg: 'RS256' });
  authenticator = makeAuthenticator([issuer.settings(), issuer.settings({ name: 'legacy', tokenType: 'JWT' })]);
});

afterAll(async () => {
  await authenticator.close();
  await issuer.close();
});

function expectPrincipal(outcome: AuthnOutcome): Principal {
  if (isAuthnError(outcome)) throw new Error(outcome.reason);
  return outcome;
}

async function principalOf(claims: Record<string, unknown>): Promise<Principal> {
  return expectPrincipal(await authenticator.ask(await issuer.mint(RESOURCE, { claims })));
}

describe('a principal', () => {
  it('[A-25] carries what the token proves, by the names of the configuration', async () => {
    const exp = Math.floor(Date.now() / 1000) + 300;
    const principal = await principalOf({
      exp,
      sub: 'alice',
      client_id: 'ide',
      scope: 'tools:write-all notes:read',
      groups: ['eng', 'ops'],
      act: { sub: 'agent', iss: 'https://a.example', act: { sub: 'scheduler' } },
      department: 'r&d',
    });
    expect(principal).toMatchObject({
      issuer: 'corp',
      issuerUrl: issuer.issuer,
      subject: 'alice',
      client: 'ide',
      groups: ['eng', 'ops'],
      scopes: ['tools:write-all', 'notes:read'],
      actors: [{ issuer: 'https://a.example', subject: 'agent' }, { subject: 'scheduler' }],
      token: { audience: RESOURCE, expiresAt: exp * 1000, binding: 'none' },
    });
    expect(principal.claims['department']).toBe('r&d');
  });

  it('[A-52] holds scopes as exact tokens, in one string or a list', async () => {
    const spaced = await principalOf({ scope: 'tools:write-all' });
    expect(spaced.scopes).toEqual(['tools:write-all']);
    const listed = await principalOf({ scope: undefined, scp: ['a:b', 'c'] });
    expect(listed.scopes).toEqual(['a:b', 'c']);
    expect((await principalOf({ scope: undefined })).scopes).toEqual([]);
  });

  it('[A-26] names its token by a keyed digest: the same for one token id, never the token', async () => {
    const first = await principalOf({ jti: 'one' });
    const again = await principalOf({ jti: 'one', nonce: 'x' });
    const second = await principalOf({ jti: 'two' });
    expect(again.token.id).toBe(first.token.id);
    expect(second.token.id).not.toBe(first.token.id);
    const unnamed = { header: { typ: 'JWT' }, claims: { jti: undefined } };
    const bare = await authenticator.ask(await issuer.mint(RESOURCE, unnamed), {
      ...ACCEPTANCE,
      issuers: ['legacy'],
    });
    expect(expectPrincipal(bare).token.id).toMatch(/^[\w-]{43}$/);
  });

  it('[A-27] is frozen to the depth of its claims', async () => {
    const principal = await principalOf({ address: { city: ['x'] } });
    const { address } = principal.claims as { address: { city: string[] } };
    expect(Object.isFrozen(principal) && Object.isFrozen(principal.token)).toBe(true);
    expect(Object.isFrozen(principal.groups) && Object.isFrozen(principal.scopes)).toBe(true);
    expect(() => address.city.push('y')).toThrow(TypeError);
  });

  it('[A-27] has no claim that the issuer did not write', async () => {
    const { claims } = await principalOf({});
    expect(claims['constructor']).toBeUndefined();
    expect(claims['toString']).toBeUndefined();
  });

  it('[A-27] is refused when its claims are nested past sixteen levels', async () => {
    let nested: unknown = 'x';
    for (let depth = 0; depth < 20; depth += 1) nested = [nested];
    const token = await issuer.mint(RESOURCE, { claims: { nested } });
    expect(await authenticator.verdict(token)).toBe('token-malformed');
  });

  it('[A-28] is anonymous, without rights and without end, where no token is asked for', () => {
    expect(anonymousPrincipal({ resource: 'http://127.0.0.1:8080/demo' })).toMatchObject({
      issuer: 'none',
      subject: 'anonymous',
      client: 'anonymous',
      groups: [],
      scopes: [],
      token: {
        id: 'none',
        audience: 'http://127.0.0.1:8080/demo',
        expiresAt: Number.POSITIVE_INFINITY,
        binding: 'none',
      },
    });
  });
});
