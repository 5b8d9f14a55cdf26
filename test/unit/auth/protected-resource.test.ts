import { describe, expect, it } from 'vitest';
import { PROOF_ALGORITHMS } from '../../../src/auth/presented-token.js';
import { challengeFor, metadataDocument, metadataPaths, metadataUrl } from '../../../src/auth/protected-resource.js';

const ISSUERS = new Map([
  ['corp', { issuer: 'https://idp.example.com' }],
  ['partner', { issuer: 'https://partner.example/t1' }],
  ['unused', { issuer: 'https://unused.example' }],
]);

describe('protected resource metadata', () => {
  it('[A-53] is made of the configuration alone', () => {
    const upstream = {
      resource: 'https://mcp.example.com/github',
      issuers: ['corp', 'partner'],
      scopesSupported: ['github:read', 'offline_access'],
      binding: 'none',
    } as const;
    expect(metadataDocument(upstream, ISSUERS, false)).toBe(
      '{"resource":"https://mcp.example.com/github","authorization_servers":["https://idp.example.com","https://partner.example/t1"],"scopes_supported":["github:read"],"bearer_methods_supported":["header"],"dpop_signing_alg_values_supported":["ES256","ES384","ES512","EdDSA","Ed25519","PS256","PS384","PS512","RS256","RS384","RS512"]}',
    );
  });

  it('[A-53] names no scopes where none are configured', () => {
    const upstream = {
      resource: 'https://mcp.example.com/a',
      issuers: ['corp'],
      scopesSupported: [],
      binding: 'mtls',
    } as const;
    expect(JSON.parse(metadataDocument(upstream, ISSUERS, false))).toEqual({
      resource: 'https://mcp.example.com/a',
      authorization_servers: ['https://idp.example.com'],
      bearer_methods_supported: ['header'],
    });
  });

  it.each([
    ['none', false, { algorithms: true }],
    ['none', true, { algorithms: true, certificates: true }],
    ['any', false, { algorithms: true, required: true }],
    ['any', true, { algorithms: true, certificates: true }],
    ['dpop', true, { algorithms: true, certificates: true, required: true }],
    ['mtls', true, { certificates: true }],
  ] as const)(
    '[BND-11] says what tokens may and must be bound to: %s, certificates %s',
    (binding, takesCertificates, expected) => {
      const upstream = { resource: 'https://h/a', issuers: ['corp'], scopesSupported: [], binding };
      const {
        resource: _r,
        authorization_servers: _a,
        bearer_methods_supported: _b,
        ...members
      } = JSON.parse(metadataDocument(upstream, ISSUERS, takesCertificates));
      const wanted = {
        algorithms: { dpop_signing_alg_values_supported: PROOF_ALGORITHMS },
        certificates: { tls_client_certificate_bound_access_tokens: true },
        required: { dpop_bound_access_tokens_required: true },
      };
      const named = Object.keys(expected) as (keyof typeof wanted)[];
      expect(members).toEqual(Object.assign({}, ...named.map((name) => wanted[name])));
    },
  );

  it('[A-54] is answered where RFC 9728 inserts the path', () => {
    const publicUrl = new URL('https://mcp.example.com');
    expect(metadataPaths(publicUrl, '/github')).toEqual(['/.well-known/oauth-protected-resource/github']);
    expect(metadataUrl(publicUrl, '/github')).toBe(
      'https://mcp.example.com/.well-known/oauth-protected-resource/github',
    );
  });

  it('[A-54] is answered with and without the path of the public URL', () => {
    for (const spelling of ['https://example.com/mcp', 'https://example.com/mcp/']) {
      const publicUrl = new URL(spelling);
      expect(metadataPaths(publicUrl, '/github')).toEqual([
        '/.well-known/oauth-protected-resource/mcp/github',
        '/.well-known/oauth-protected-resource/github',
      ]);
      expect(metadataUrl(publicUrl, '/github')).toBe(
        'https://example.com/.well-known/oauth-protected-resource/mcp/github',
      );
    }
  });
});

/** What is offered where unbound tokens are enough. */
const BEARER = {
  metadataUrl: 'https://mcp.example.com/.well-known/oauth-protected-resource/notes',
  ...({ demand: 'none', takesCertificates: false, usesProofs: false, proof: undefined } as const),
};

describe('a challenge', () => {
  it('[A-50] names the metadata and the scopes, without an error when no token was sent', () => {
    const scopes = ['notes:read', 'notes:list'];
    expect(challengeFor('token-missing', { ...BEARER, scopes })).toBe(
      'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes", scope="notes:read notes:list"',
    );
  });

  it('[A-50] says invalid_token for every token that was refused, and not why', () => {
    for (const reason of ['token-malformed', 'token-expired', 'token-audience'] as const) {
      expect(challengeFor(reason, { ...BEARER, scopes: ['notes:read'] })).toBe(
        'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes", scope="notes:read", error="invalid_token"',
      );
    }
  });

  it('[A-52] says insufficient_scope with every scope that is needed', () => {
    expect(
      challengeFor('insufficient-scope', {
        ...BEARER,
        scopes: ['notes:read', 'notes:write'],
      }),
    ).toBe(
      'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes", scope="notes:read notes:write", error="insufficient_scope"',
    );
  });

  it('[A-50] offers no offline_access, and no empty scope', () => {
    const offer = { ...BEARER, scopes: ['offline_access'] };
    expect(challengeFor('token-missing', offer)).toBe(
      'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes"',
    );
  });

  it('[A-50] cannot be broken out of by a configured value', () => {
    const offer = { ...BEARER, metadataUrl: 'https://h/"\\\r\nx: y', scopes: ['a"b'] };
    expect(challengeFor('token-missing', offer)).toBe(
      'Bearer resource_metadata="https://h/\\"\\\\x: y", scope="a\\"b"',
    );
  });
});
