import { describe, expect, it } from 'vitest';
import { metadataDocument, metadataPaths, metadataUrl } from '../../../src/edge/metadata.js';

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
    };
    expect(metadataDocument(upstream, ISSUERS)).toBe(
      '{"resource":"https://mcp.example.com/github","authorization_servers":["https://idp.example.com","https://partner.example/t1"],"scopes_supported":["github:read"],"bearer_methods_supported":["header"]}',
    );
  });

  it('[A-53] names no scopes where none are configured', () => {
    const upstream = {
      resource: 'https://mcp.example.com/a',
      issuers: ['corp'],
      scopesSupported: [],
    };
    expect(JSON.parse(metadataDocument(upstream, ISSUERS))).toEqual({
      resource: 'https://mcp.example.com/a',
      authorization_servers: ['https://idp.example.com'],
      bearer_methods_supported: ['header'],
    });
  });

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
