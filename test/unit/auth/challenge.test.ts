import { describe, expect, it } from 'vitest';
import { challengeFor } from '../../../src/auth/challenge.js';

const metadataUrl = 'https://mcp.example.com/.well-known/oauth-protected-resource/notes';

describe('a challenge', () => {
  it('[A-50] names the metadata and the scopes, without an error when no token was sent', () => {
    const scopes = ['notes:read', 'notes:list'];
    expect(challengeFor('token-missing', { metadataUrl, scopes })).toBe(
      'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes", scope="notes:read notes:list"',
    );
  });

  it('[A-50] says invalid_token for every token that was refused, and not why', () => {
    for (const reason of ['token-malformed', 'token-expired', 'token-audience'] as const) {
      expect(challengeFor(reason, { metadataUrl, scopes: ['notes:read'] })).toBe(
        'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes", scope="notes:read", error="invalid_token"',
      );
    }
  });

  it('[A-52] says insufficient_scope with every scope that is needed', () => {
    expect(
      challengeFor('insufficient-scope', { metadataUrl, scopes: ['notes:read', 'notes:write'] }),
    ).toBe(
      'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes", scope="notes:read notes:write", error="insufficient_scope"',
    );
  });

  it('[A-50] offers no offline_access, and no empty scope', () => {
    const offer = { metadataUrl, scopes: ['offline_access'] };
    expect(challengeFor('token-missing', offer)).toBe(
      'Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/notes"',
    );
  });

  it('[A-50] cannot be broken out of by a configured value', () => {
    const offer = { metadataUrl: 'https://h/"\\\r\nx: y', scopes: ['a"b'] };
    expect(challengeFor('token-missing', offer)).toBe(
      'Bearer resource_metadata="https://h/\\"\\\\x: y", scope="a\\"b"',
    );
  });
});
