// What a client without the right token sees, to the byte: challenges, and the document they point to.

import { beforeAll, describe, expect, it } from 'vitest';
import { callStateless, type Reply, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICIES = {
  scoped: `version: 1
policy: scoped
rules:
  - id: read
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record]}
    scopes: [notes:read]
  - id: write
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [write_record]}
    scopes: [notes:read, notes:write]
`,
};

describe('challenges', () => {
  let document: string;
  const rig = sharedGateway({
    policies: POLICIES,
    upstream: ['pinning: {maxAge: 10m}', 'scopesSupported: [notes:read]'],
  });
  beforeAll(async () => {
    document = `${rig.gateway.publicUrl}/.well-known/oauth-protected-resource/target`;
  });

  /** Status, challenge and body, with what differs from run to run named. */
  function seen(reply: Reply): readonly unknown[] {
    return [
      reply.status,
      reply.headers.get('www-authenticate')?.replace(document, 'DOCUMENT'),
      reply.headers.get('content-type'),
      reply.text,
    ];
  }

  it('[G-09] without a token name the document and the scopes, and no error', async () => {
    expect(seen(await callStateless(rig.as(undefined), 'read_record'))).toEqual([
      401,
      'Bearer resource_metadata="DOCUMENT", scope="notes:read"',
      'text/plain; charset=utf-8',
      'A bearer token is required.',
    ]);
  });

  it('[G-09] with a bad token say so', async () => {
    expect(seen(await callStateless(rig.as('a.b.c'), 'read_record'))).toEqual([
      401,
      'Bearer resource_metadata="DOCUMENT", scope="notes:read", error="invalid_token"',
      'text/plain; charset=utf-8',
      'The token is malformed.',
    ]);
  });

  it('[G-09] of an expired token say so', async () => {
    const now = Math.floor(Date.now() / 1000);
    const token = await rig.gateway.token('target', { iat: now - 600, exp: now - 300 });
    expect(seen(await callStateless(rig.as(token), 'read_record'))).toEqual([
      401,
      'Bearer resource_metadata="DOCUMENT", scope="notes:read", error="invalid_token"',
      'text/plain; charset=utf-8',
      'The token has expired.',
    ]);
  });

  it('[G-09, MCP-43] for a missing scope name every scope that the call needs', async () => {
    const token = await rig.gateway.token('target', { scope: 'notes:read' });
    rig.upstream.forget();
    const args = { id: 'one', text: 'x' };
    expect(seen(await callStateless(rig.as(token), 'write_record', args))).toEqual([
      403,
      'Bearer resource_metadata="DOCUMENT", scope="notes:read notes:write", error="insufficient_scope"',
      'text/plain; charset=utf-8',
      'The token lacks a required scope.',
    ]);
    expect(rig.upstream.uses()).toEqual([]);
    expect((await callStateless(rig.as(token), 'read_record', args)).status).toBe(200);
  });

  it.each(['notes:write-all notes:read', 'NOTES:WRITE notes:read', 'notes notes:read'])(
    '[G-09] know scopes exactly: %s',
    async (scope) => {
      const token = await rig.gateway.token('target', { scope });
      const reply = await callStateless(rig.as(token), 'write_record', { id: 'one', text: 'x' });
      expect(reply.status).toBe(403);
      expect(reply.headers.get('www-authenticate')).not.toContain('write-all');
    },
  );

  it('[G-09] lists show what only a scope keeps from the caller', async () => {
    const token = await rig.gateway.token('target', { scope: '' });
    const reply = await requestStateless(rig.as(token), 'tools/list');
    expect(reply.text).toContain('write_record');
  });

  it('[G-10] the document of RFC 9728 is the configuration and nothing else', async () => {
    for (const headers of [
      {},
      { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example;proto=https' },
      { 'x-forwarded-proto': 'https', 'x-original-host': 'evil.example' },
    ]) {
      const answer = await fetch(document, { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toBe('application/json');
      expect(await answer.json()).toEqual({
        resource: `${rig.gateway.publicUrl}/target`,
        authorization_servers: [rig.gateway.issuer.issuer],
        scopes_supported: ['notes:read'],
        bearer_methods_supported: ['header'],
        dpop_signing_alg_values_supported: [
          ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
          ...['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'],
        ],
      });
    }
    // One trailing slash reaches the same document, whose resource has none.
    const slashed = await fetch(`${document}/`);
    expect(slashed.status).toBe(200);
    expect(await slashed.json()).toMatchObject({ resource: `${rig.gateway.publicUrl}/target` });
    for (const ending of ['//', '%2F', '/x'])
      expect([ending, (await fetch(`${document}${ending}`)).status]).toEqual([ending, 404]);
    expect((await fetch(document.replace('/target', ''))).status).toBe(404);
    expect((await fetch(document, { method: 'POST' })).status).toBe(405);
  });
});
