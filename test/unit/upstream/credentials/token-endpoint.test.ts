// What an authorization server may issue to the gateway, and what it may not.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tryTokenExchange } from '../../../../src/upstream/credentials/credentials.js';
import {
  checkIssued,
  type TokenRequestContext,
  type TokenResponse,
} from '../../../../src/upstream/credentials/token-endpoint.js';
import { mintJwt } from '../../../support/tokens.js';

const NOW_MS = 1_700_000_000_000;
const RESOURCE = 'https://upstream.example/mcp';
const OWN = 'https://mcp.example.com/upstream';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

function asked(parts: Partial<TokenRequestContext['request']> = {}, subjectToken?: string): TokenRequestContext {
  const request = {
    scopes: [],
    resource: RESOURCE,
    audience: undefined,
    own: { audiences: [OWN], base: 'https://mcp.example.com' },
    ...parts,
  };
  return { request, subjectToken, nowMs: NOW_MS };
}

function answer(parts: Partial<TokenResponse> = {}): TokenResponse {
  return { access_token: 'opaque', token_type: 'bearer', expires_in: 300, ...parts };
}

function jwt(claims: object): TokenResponse {
  return answer({ access_token: mintJwt({ aud: RESOURCE, ...claims }) });
}

describe('[CRD-06] an issued token', () => {
  it('lives as long as the server says, and no longer than itself or an hour', () => {
    const untilOf = (given: TokenResponse): number => {
      const checked = checkIssued(given, asked());
      return checked.kind === 'valid' ? checked.expiresAtMs - NOW_MS : Number.NaN;
    };
    expect(untilOf(answer())).toBe(300_000);
    expect(untilOf(answer({ expires_in: 1e9 }))).toBe(3_600_000);
    expect(untilOf(answer({ expires_in: undefined }))).toBe(60_000);
    expect(untilOf(jwt({ exp: NOW_MS / 1000 + 30 }))).toBe(30_000);
  });

  it.each<[string, TokenResponse, TokenRequestContext, string]>([
    ['scopes', answer({ scope: 'a b' }), asked({ scopes: ['a'] }), 'scopes that were not requested'],
    ['scopes in it', jwt({ scp: ['a', 'b'] }), asked({ scopes: ['a'] }), 'scopes that were not requested'],
    ['an audience', jwt({ aud: 'x' }), asked(), 'another audience'],
    ['one audience of two', jwt({}), asked({ audience: 'api' }), 'another audience'],
    ['our audience', jwt({ aud: [RESOURCE, OWN] }), asked(), 'for this gateway itself'],
    ['an audience under ours', jwt({ aud: [RESOURCE, `${OWN}2`] }), asked(), 'for this gateway itself'],
    ['a type', answer({ token_type: 'dpop' }), asked(), 'not a bearer token'],
    ['an end', answer({ expires_in: 0 }), asked(), 'expired'],
    ['spelling', answer({ access_token: 'a b' }), asked(), 'a header cannot carry'],
    ['kind', answer(), asked({}, 'subject'), 'not an access token'],
  ])('is refused for its %s', (_, given, request, why) => {
    expect(checkIssued(given, request)).toEqual({
      kind: 'invalid',
      why: expect.stringContaining(why),
    });
  });

  it('may have fewer scopes, more audiences, or be unreadable', () => {
    for (const given of [
      answer({ scope: 'a' }),
      jwt({ aud: [RESOURCE, 'https://elsewhere.example'] }),
      answer({ access_token: 'a.b.c' }),
    ]) {
      expect(checkIssued(given, asked({ scopes: ['a', 'b'] })).kind).toBe('valid');
    }
  });

  it('is never one of ours, never the one given, never wider than asked: for any answer', () => {
    const audience = fc.constantFrom(RESOURCE, OWN, 'https://other.example', 'api');
    const scope = fc.constantFrom('a', 'b', 'admin', 'A', '');
    const answers = fc.record({
      aud: fc.option(fc.array(audience), { nil: undefined }),
      scope: fc.option(fc.array(scope), { nil: undefined }),
      isSubject: fc.boolean(),
      type: fc.constantFrom('bearer', 'dpop', 'n_a'),
      issued: fc.constantFrom(ACCESS_TOKEN, 'urn:ietf:params:oauth:token-type:id_token'),
    });
    fc.assert(
      fc.property(answers, ({ aud, scope: scopes, isSubject, type, issued }) => {
        const given = mintJwt({ aud });
        const text = scopes?.join(' ');
        const checked = checkIssued(
          {
            access_token: given,
            token_type: type,
            expires_in: 60,
            issued_token_type: issued,
            ...(text === undefined ? {} : { scope: text }),
          },
          asked({ scopes: ['a', 'b'] }, isSubject ? given : 'another'),
        );
        if (checked.kind === 'invalid') return;
        expect(aud).toContain(RESOURCE);
        expect(aud).not.toContain(OWN);
        expect(isSubject).toBe(false);
        expect([type, issued]).toEqual(['bearer', ACCESS_TOKEN]);
        for (const one of (text ?? '').split(' ')) expect(['a', 'b', '']).toContain(one);
      }),
    );
  });
});

describe('[E-64] a try of token exchange', () => {
  const TOKEN = { access_token: 'issued', token_type: 'bearer', expires_in: 60, issued_token_type: ACCESS_TOKEN };

  async function tryWith(status: number, body: object) {
    const sent: string[] = [];
    const failure = await tryTokenExchange(
      {
        type: 'token-exchange',
        actor: undefined,
        request: {
          server: { kind: 'token-endpoint', url: 'https://as.example/token' },
          ...{ network: 'public', plaintext: undefined, clientId: 'gateway', audience: undefined },
          authentication: { method: 'client_secret_post', secret: 'the-secret' },
          ...asked().request,
        },
      },
      {
        now: () => NOW_MS,
        requestTimeoutMs: 1_000,
        guardedFetch: {
          fetchJson: () => Promise.reject(new Error('nothing is discovered')),
          postForm(_, form) {
            sent.push(form.body);
            const bytes = Buffer.from(JSON.stringify(body));
            return Promise.resolve({ ok: true, status, contentType: 'application/json', bytes });
          },
        },
      },
    );
    expect(sent).toEqual([expect.stringContaining('subject_token=sallyport-validate')]);
    return failure;
  }

  it.each([
    ['the subject token is refused', 400, { error: 'invalid_request' }, undefined],
    ['the grant is refused', 400, { error: 'invalid_grant' }, undefined],
    ['the client is not known', 401, { error: 'invalid_client' }, 'the token endpoint refused with invalid_client'],
    ['the resource is not known', 400, { error: 'invalid_target' }, 'the token endpoint refused with invalid_target'],
    ['a text is taken for a token', 200, TOKEN, 'the token endpoint exchanged a text that is no token'],
  ])('where %s', async (_, status, body, failure) => {
    expect(await tryWith(status, body)).toBe(failure);
  });
});
