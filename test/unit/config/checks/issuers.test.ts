// What an issuer may say of its tokens in the gateway file, and what it may not.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { includedScopes } from '../../../../src/config/checks/issuers.js';
import { diagnosticLines, GOOD, lineOf, read } from '../reading.js';

const SECRET_ENV = { KEY: '0123456789abcdef'.repeat(4), CLIENT: 'of the client' };
const ASKED = `introspection: {clientId: gw, clientSecret: {env: CLIENT}}`;

/** The good text, with other members of the issuer in place of its algorithms. */
function issuerWith(...members: readonly string[]): string {
  return GOOD.replace('    algorithms: [ES256]\n', members.map((one) => `    ${one}\n`).join(''));
}

describe('[TOK-16] an issuer', () => {
  it('that is asked about its tokens has its defaults, and its secret', () => {
    const { settings } = read(issuerWith(ASKED), { env: SECRET_ENV });
    expect(settings?.issuers.get('corp')).toMatchObject({
      algorithms: [],
      introspection: {
        clientId: 'gw',
        clientSecret: 'of the client',
        authentication: 'client_secret_basic',
        endpoint: undefined,
        cacheTtlMs: 30_000,
        maxPerSecond: 100,
      },
    });
  });

  it('says how long keys serve, and what scopes include', () => {
    const { settings } = read(
      issuerWith(
        'algorithms: [ES256]',
        'keysMaxAge: 10m',
        'scopeHierarchy: {all: [repo], repo: ["repo:read", "repo:write"]}',
      ),
      { env: SECRET_ENV },
    );
    const corp = settings?.issuers.get('corp');
    expect(corp?.keysMaxAgeMs).toBe(600_000);
    expect({ ...corp?.impliedScopes }).toEqual({
      all: ['repo', 'repo:read', 'repo:write'],
      repo: ['repo:read', 'repo:write'],
    });
  });

  it.each([
    ['no way to verify', issuerWith(), 'the key "algorithms" is missing, or "introspection"'],
    [
      'two ways',
      issuerWith('algorithms: [ES256]', ASKED),
      'by signature or introspected, not both',
    ],
    ['no client', issuerWith('introspection: {}'), 'clientId'],
    [
      'a secret in the file',
      issuerWith('introspection: {clientId: gw, clientSecret: plainly}'),
      'expected a secret reference',
    ],
    [
      'an empty secret',
      issuerWith('introspection: {clientId: gw, clientSecret: {env: NONE}}'),
      'the environment variable "NONE" is not set',
    ],
    [
      'a plain endpoint',
      issuerWith(ASKED.replace('}}', '}, endpoint: "http://idp.example.com/i"}')),
      'plain http is never sent to public addresses',
    ],
    [
      'an endpoint in another network',
      issuerWith(ASKED.replace('}}', '}, endpoint: "https://10.0.0.1/i"}')),
      'this address is not in the network "public"',
    ],
    [
      'the type of proofs',
      issuerWith('algorithms: [ES256]', 'tokenType: dpop+jwt'),
      'no access tokens',
    ],
    [
      'the type of grants',
      issuerWith('algorithms: [ES256]', 'tokenType: application/oauth-id-jag+jwt'),
      'no access tokens',
    ],
    [
      'a pointer that is none',
      issuerWith('algorithms: [ES256]', 'claims: {groups: ["/a~2b"]}'),
      'this is not a JSON Pointer',
    ],
    [
      'a scope that includes itself',
      issuerWith('algorithms: [ES256]', 'scopeHierarchy: {a: [b], b: [c], c: [b]}'),
      'the scope "b" includes itself',
    ],
    [
      'a scope that is none',
      issuerWith('algorithms: [ES256]', 'scopeHierarchy: {"a b": [c]}'),
      'an OAuth scope',
    ],
    ['an empty list', issuerWith('algorithms: [ES256]', 'scopeHierarchy: {a: []}'), 'not be empty'],
  ])('with %s is a mistake', (_title, text, message) => {
    const reading = read(text, { env: SECRET_ENV });
    expect(reading.settings).toBeUndefined();
    const lines = reading.diagnostics.map(lineOf).join('\n');
    expect(lines).toContain(message);
    expect(lines).not.toContain('plainly');
  });

  it('that is asked stands alone among those of an upstream', () => {
    const second = `  other:\n    issuer: https://other.example.com\n    ${ASKED}\n`;
    const text = issuerWith(ASKED)
      .replace('upstreams:\n', `${second}upstreams:\n`)
      .replace('issuers: [corp]', 'issuers: [corp, other]');
    expect(diagnosticLines(text, { env: SECRET_ENV }).join('\n')).toContain(
      'one issuer of an upstream may be introspected, not several',
    );
  });
});

describe('[TOK-13] a hierarchy of scopes', () => {
  const scope = fc.constantFrom('a', 'b', 'c', 'd', 'e');
  const hierarchies = fc
    .dictionary(scope, fc.uniqueArray(scope, { maxLength: 4 }))
    .map((entries) => new Map(Object.entries(entries)));

  it('is closed, grows with its entries, and ends on circles', () => {
    fc.assert(
      fc.property(hierarchies, scope, (hierarchy, start) => {
        const implied = includedScopes(start, hierarchy);
        for (const direct of hierarchy.get(start) ?? []) expect(implied).toContain(direct);
        for (const one of implied) {
          for (const further of includedScopes(one, hierarchy)) expect(implied).toContain(further);
        }
      }),
    );
  });
});
