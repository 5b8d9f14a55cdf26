import { describe, expect, it } from 'vitest';
import {
  metadataDocument,
  metadataPaths,
  metadataUrl,
} from '../../../src/http/protected-resource-metadata.js';

const ISSUERS = new Map([
  ['corp', { issuer: 'https://idp.example.com' }],
  ['partner', { issuer: 'https://partner.example/t1' }],
  ['unused', { issuer: 'https://unused.example' }],
]);

const SUPPORT = { proofAlgorithms: ['ES256'], takesCertificates: false };

describe('protected resource metadata', () => {
  it('[A-53] is made of the configuration alone', () => {
    const upstream = {
      resource: 'https://mcp.example.com/github',
      issuers: ['corp', 'partner'],
      scopesSupported: ['github:read', 'offline_access'],
      binding: 'none',
    } as const;
    expect(metadataDocument(upstream, ISSUERS, SUPPORT)).toBe(
      '{"resource":"https://mcp.example.com/github","authorization_servers":["https://idp.example.com","https://partner.example/t1"],"scopes_supported":["github:read"],"bearer_methods_supported":["header"],"dpop_signing_alg_values_supported":["ES256"]}',
    );
  });

  it('[A-53] names no scopes where none are configured', () => {
    const upstream = {
      resource: 'https://mcp.example.com/a',
      issuers: ['corp'],
      scopesSupported: [],
      binding: 'mtls',
    } as const;
    expect(JSON.parse(metadataDocument(upstream, ISSUERS, SUPPORT))).toEqual({
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
      const support = { ...SUPPORT, takesCertificates };
      const {
        resource: _r,
        authorization_servers: _a,
        bearer_methods_supported: _b,
        ...members
      } = JSON.parse(metadataDocument(upstream, ISSUERS, support));
      const wanted = {
        algorithms: { dpop_signing_alg_values_supported: ['ES256'] },
        certificates: { tls_client_certificate_bound_access_tokens: true },
        required: { dpop_bound_access_tokens_required: true },
      };
      const named = Object.keys(expected) as (keyof typeof wanted)[];
      expect(members).toEqual(Object.assign({}, ...named.map((name) => wanted[name])));
    },
  );

  it('[A-54] is answered where RFC 9728 inserts the path', () => {
    const publicUrl = new URL('https://mcp.example.com');
    expect(metadataPaths(publicUrl, '/github')).toEqual([
      '/.well-known/oauth-protected-resource/github',
    ]);
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
