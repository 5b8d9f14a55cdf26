// What claims say: kinds of tokens that their type does not tell, groups and where they stand, scopes and
// what they include, chains of actors.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClaimSource, checkClaims, claimAt } from '../../../src/auth/claims.js';
import { makePrincipal } from '../../../src/auth/principal.js';
import type { IssuerSettings } from '../../../src/config/settings.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { RESOURCE } from './fixture.js';

const NOW_S = 1_900_000_000;
const ISSUER: IssuerSettings = {
  name: 'corp',
  issuer: 'https://idp.example.com',
  network: 'public',
  algorithms: ['ES256'],
  tokenType: 'JWT',
  maxLifetimeMs: 3_600_000,
  keysMaxAgeMs: 3_600_000,
  introspection: undefined,
  claims: { client: ['client_id', 'azp'], scope: ['scope', 'scp'], groups: ['groups'] },
  impliedScopes: {},
  traceContext: 'replaced',
};
const GOOD = {
  iss: ISSUER.issuer,
  sub: 'alice',
  aud: RESOURCE,
  client_id: 'ide',
  scope: 'notes:read',
  iat: NOW_S,
  exp: NOW_S + 600,
  jti: 'one',
};

type Changes = {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly source?: ClaimSource;
  readonly names?: Partial<IssuerSettings['claims']>;
  readonly audiences?: readonly string[];
};

function factsOf({ claims = {}, source = 'jwt', names = {}, audiences = [RESOURCE] }: Changes) {
  const stated = Object.fromEntries(
    Object.entries({ ...GOOD, ...claims }).filter(([, value]) => value !== undefined),
  ) as JsonObject;
  const issuer = { ...ISSUER, claims: { ...ISSUER.claims, ...names } };
  return checkClaims(stated, { issuer, source, audiences, now: NOW_S * 1000 });
}

function groupsOf(claims: Readonly<Record<string, unknown>>, ...groups: readonly string[]) {
  const names = groups.length === 0 ? {} : { groups };
  const facts = factsOf({ claims, names });
  return typeof facts === 'string' ? facts : facts.groups;
}

describe('[TOK-06] a token of a type that tells nothing', () => {
  it.each([
    ['a nonce', { nonce: 'n' }],
    ['the hash of an access token', { at_hash: 'h' }],
    ['the hash of a code', { c_hash: 'h' }],
    ['events', { events: {} }],
    ['the kind ID', { typ: 'ID' }],
    ['the kind Refresh', { typ: 'Refresh' }],
    ['a kind that is no text', { typ: 1 }],
    ['the use of an identity token', { token_use: 'id' }],
    ['the use of a refresh token', { token_use: 'refresh_token' }],
  ])('is refused for %s', (_title, claims) => {
    expect(factsOf({ claims })).toBe('token-type');
    expect(factsOf({ claims, source: 'introspection' })).toBe('token-type');
  });

  it('is refused where it is for its own client and grants nothing', () => {
    const claims = { aud: 'ide', scope: undefined };
    expect(factsOf({ claims, audiences: ['ide'] })).toBe('token-type');
    expect(factsOf({ claims: { aud: 'ide' }, audiences: ['ide'] })).toMatchObject({
      client: 'ide',
    });
  });

  it.each([
    { typ: 'Bearer' },
    { token_use: 'access' },
    { token_use: 'access_token' },
    { auth_time: 1, acr: '1', amr: ['pwd'] },
    { groups: null, scp: null },
  ])('passes with what access tokens carry: %j', (claims) => {
    expect(factsOf({ claims })).toMatchObject({ subject: 'alice' });
  });

  it('needs no identifier, where one of its own type does', () => {
    expect(factsOf({ claims: { jti: undefined } })).toMatchObject({ tokenId: undefined });
    expect(factsOf({ claims: { jti: undefined }, source: 'at+jwt' })).toBe('token-malformed');
    expect(factsOf({ claims: { nonce: 'n' }, source: 'at+jwt' })).toMatchObject({ tokenId: 'one' });
  });
});

describe('[TOK-08] a claim that is null', () => {
  it('is absent, so that the next name counts', () => {
    const names = { groups: ['roles', 'groups'], client: ['client_id', 'azp'] };
    const claims = { roles: null, groups: ['eng'], client_id: null, azp: 'ide', scope: null };
    expect(factsOf({ claims, names })).toMatchObject({ client: 'ide', groups: ['eng'], scopes: [] });
    const others = {
      jti: null,
      nbf: null,
      nonce: null,
      typ: null,
      token_use: null,
      token_type: null,
    };
    const none = { tokenId: undefined, actors: [], boundTo: undefined };
    expect(factsOf({ claims: { ...others, _claim_names: null } })).toMatchObject(none);
    expect(factsOf({ claims: { ...others, iat: null }, source: 'introspection' })).toMatchObject(none);
    const actors = [{ subject: 'agent' }];
    expect(factsOf({ claims: { act: { sub: 'agent', iss: null } } })).toMatchObject({ actors });
  });

  it.each([{ cnf: null }, { act: null }, { act: { sub: 'agent', act: null } }])(
    'does not free a token of what restricts it: %j',
    (claims) => expect(factsOf({ claims })).toMatch(/^token-/),
  );

  it.each([{ sub: null }, { aud: null }, { exp: null }, { sub: 'a\ud800' }, { client_id: '\udfff' }])(
    'is missing where it is required, and so is a name that UTF-8 cannot write: %j',
    (claims) => expect(factsOf({ claims })).toMatch(/^token-/),
  );
});

describe('[TOK-08] the name of a claim', () => {
  const CLAIMS = {
    realm_access: { roles: ['deep'] },
    'realm_access.roles': ['dotted'],
    'https://example.com/roles': ['spaced'],
    resource_access: { 'a/b~c': { roles: ['escaped'] } },
    '': { '': ['empty'] },
    roles: ['plain'],
  };

  it.each([
    ['/realm_access/roles', ['deep']],
    ['realm_access.roles', ['dotted']],
    ['https://example.com/roles', ['spaced']],
    ['/resource_access/a~1b~0c/roles', ['escaped']],
    ['//', ['empty']],
    ['roles', ['plain']],
    ['/roles/0', undefined],
    ['/realm_access/missing', undefined],
    ['/realm_access/roles/0', undefined],
    ['constructor', undefined],
    ['/realm_access/constructor/name', undefined],
    ['/https:~1~1example.com~1roles', ['spaced']],
  ])('%s leads to one place', (name, found) => {
    expect(claimAt(CLAIMS, name)).toEqual(found);
  });

  it('that is a pointer leads where its steps lead, whatever they hold', () => {
    const step = fc.string({ maxLength: 8 });
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
        const claims = steps.reduceRight<unknown>(
          (value, name) => Object.fromEntries([[name, value]]),
          'here',
        ) as JsonObject;
        const pointer = steps.map((one) => `/${one.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
        expect(claimAt(claims, pointer)).toBe('here');
      }),
    );
  });

  it('that is first present counts, for scopes and clients as well', () => {
    const names = { scope: ['/app/scopes', 'scp'], client: ['/app/id', 'azp'] };
    const claims = { app: { id: 'deep', scopes: 'a b' }, scp: 'c', azp: 'flat' };
    expect(factsOf({ claims, names })).toMatchObject({ client: 'deep', scopes: ['a', 'b'] });
    const flat = { app: undefined, scp: ['c'], azp: 'flat' };
    expect(factsOf({ claims: flat, names })).toMatchObject({ client: 'flat', scopes: ['c'] });
    expect(groupsOf({ roles: ['a'] }, 'groups', 'roles')).toEqual(['a']);
  });
});

describe('[TOK-09] groups', () => {
  const SOURCES = { _claim_sources: { src1: { endpoint: 'https://graph.example/me' } } };

  it('are unknown where the token leaves them to another source', () => {
    const claims = { _claim_names: { groups: 'src1' }, ...SOURCES };
    expect(groupsOf(claims)).toBe('unknown');
    expect(groupsOf({ ...claims, roles: ['a'] }, 'groups', 'roles')).toBe('unknown');
    expect(groupsOf({ ...claims, roles: ['a'] }, 'roles', 'groups')).toEqual(['a']);
    expect(groupsOf(claims, 'roles')).toEqual([]);
    expect(groupsOf({ hasgroups: true })).toBe('unknown');
    expect(groupsOf({ hasgroups: true }, 'roles')).toEqual([]);
  });

  it('are what the token says where it says both', () => {
    expect(groupsOf({ groups: ['a'], _claim_names: { groups: 'src1' } })).toEqual(['a']);
  });

  it.each([{ _claim_names: 'groups' }, { _claim_names: ['groups'] }, { groups: ['a', 1] }, { groups: [''] }])(
    'are no guess: %j',
    (claims) => {
      expect(groupsOf(claims)).toBe('token-malformed');
    },
  );
});

describe('[TOK-07] a chain of actors', () => {
  const chain = (depth: number): unknown =>
    depth === 0 ? undefined : { sub: `actor-${depth}`, act: chain(depth - 1) };
  const strip = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

  it('is read whole, the current one first', () => {
    const act = { sub: 'a', iss: 'https://a.example', act: { sub: 'b', act: { sub: 'c' } } };
    expect(factsOf({ claims: { act } })).toMatchObject({
      actors: [{ issuer: 'https://a.example', subject: 'a' }, { subject: 'b' }, { subject: 'c' }],
    });
    const through = {
      sub: 'a',
      client_id: 'ide',
      act: { sub: 'b', azp: 'chat', act: { sub: 'c', azp: 1 } },
    };
    expect(factsOf({ claims: { act: through } })).toMatchObject({
      actors: [{ subject: 'a', client: 'ide' }, { subject: 'b', client: 'chat' }, { subject: 'c' }],
    });
    expect(factsOf({ claims: { act: strip(chain(8)) } })).toMatchObject({ subject: 'alice' });
  });

  it.each([
    'a',
    [],
    {},
    { sub: '' },
    { sub: 1 },
    { sub: 'a\nb' },
    { sub: 'a', iss: '' },
    { sub: 'a', act: 'b' },
    { sub: 'a', act: { iss: 'https://b.example' } },
    strip(chain(9)),
  ])('that is malformed or too long refuses the token: %j', (act) => {
    expect(factsOf({ claims: { act } })).toBe('token-malformed');
  });
});

describe('[TOK-13] scopes', () => {
  const scopesOf = (scope: string, impliedScopes: IssuerSettings['impliedScopes']) => {
    const facts = factsOf({ claims: { scope } });
    if (typeof facts === 'string') throw new Error(facts);
    const principal = makePrincipal({ ...ISSUER, impliedScopes }, facts, {}, ['id']);
    return { scopes: principal?.scopes, stated: principal?.statedScopes };
  };

  it('include what the hierarchy says, and what the token said stays known', () => {
    const implied = { repo: ['repo:read', 'repo:write'] };
    expect(scopesOf('repo notes', implied)).toEqual({
      scopes: ['repo', 'notes', 'repo:read', 'repo:write'],
      stated: ['repo', 'notes'],
    });
    expect(scopesOf('repo:read', implied)).toEqual({ scopes: ['repo:read'], stated: undefined });
    expect(scopesOf('constructor', implied)).toEqual({
      scopes: ['constructor'],
      stated: undefined,
    });
  });
});

describe('[REV-02] since when a token is', () => {
  it('is what it says, and nothing where an answer of its issuer does not say', () => {
    expect(factsOf({})).toMatchObject({ issuedAt: NOW_S * 1000 });
    const unsaid = factsOf({ source: 'introspection', claims: { iat: undefined } });
    expect(unsaid).toMatchObject({ subject: 'alice', issuedAt: undefined });
  });
});
