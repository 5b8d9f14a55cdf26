// Case 52: scopes are exact tokens, broad ones include only what the configuration says, and a challenge
// names what is needed and nothing that came in.

import { describe, expect, it } from 'vitest';
import {
  decisionOf,
  expectCallPasses,
  expectLoginRefused,
  expectNothingForwarded,
  linesOf,
} from '../support/gateway.js';
import { callStateless, post, sessionHeaders } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: scopes
rules:
  - id: write
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [read_record]}
    scopes: ["tools:write", "tools:read"]
`;
const MEMBERS = [
  'algorithms: [ES256]',
  'scopeHierarchy: {admin: ["tools:all"], "tools:all": ["tools:read", "tools:write"]}',
];

describe('a scope', () => {
  const rig = sharedGateway({
    issuer: MEMBERS,
    policies: { scopes: POLICY },
    upstream: ['pinning: {maxAge: 10m}', 'scopesSupported: ["tools:read"]'],
  });

  it.each([
    'tools:write-all tools:read',
    'tools:read tools:writ',
    'TOOLS:WRITE tools:read',
    'tools:write',
    'tools:read',
    'tools:* *',
    'tools: tools',
    '',
  ])('[X-52] is exact: %j lacks one', async (scope) => {
    rig.upstream.forget();
    const token = await rig.gateway.token('target', { scope });
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect(reply.status).toBe(403);
    // Every scope of the operation, in the order of the rule, whatever the token had.
    expect(reply.headers.get('www-authenticate')).toBe(
      `Bearer resource_metadata="${rig.gateway.publicUrl}/.well-known/oauth-protected-resource/target", scope="tools:write tools:read", error="insufficient_scope"`,
    );
    const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(lines[0]?.['decision'].reasons).toEqual(['insufficient-scope']);
    expectNothingForwarded(rig);
  });

  it.each(['tools:write\ttools:read', 'tools:write\u2003tools:read', 'a"b', 'a\\b', 'a  b', ' a'])(
    '[X-52] is a token of RFC 6749, or the whole is none: %j',
    async (scope) => {
      const token = await rig.gateway.token('target', { scope });
      const reply = await expectLoginRefused(rig, token, 'token-malformed');
      expect(reply.headers.get('www-authenticate')).toContain('scope="tools:read"');
    },
  );

  it.each(['tools:all', 'admin', 'tools:write tools:read', 'other admin', ['tools:all', 'x']])(
    '[TOK-13, MCP-44] that is broad includes what the configuration says: %j',
    async (scope) => {
      const token = await rig.gateway.token('target', { scope });
      await expectCallPasses(rig, token);
      const line = (await rig.gateway.audit()).findLast((one) => one['type'] === 'mcp.decision');
      const stated = typeof scope === 'string' ? scope.split(' ') : scope;
      expect(line?.['actor'].token.scopes).toEqual(stated);
    },
  );

  it('[TOK-13] that is narrow includes nothing', async () => {
    const token = await rig.gateway.token('target', { scope: 'tools:read' });
    expect((await callStateless(rig.as(token), 'read_record', { id: 'one' })).status).toBe(403);
  });

  it('[X-52, TOK-14] that is missing is named in sessions too, and reflects nothing', async () => {
    const token = await rig.gateway.token('target', { scope: 'tools:read' });
    const { openSession } = await import('../support/wire-client.js');
    const session = await openSession(rig.as(token));
    rig.upstream.forget();
    const marker = 'marker-of-the-caller';
    const body = {
      jsonrpc: '2.0',
      id: marker,
      method: 'tools/call',
      params: { name: 'read_record', arguments: { id: marker } },
    };
    const reply = await post(rig.as(token), JSON.stringify(body), {
      ...sessionHeaders(session.id),
      'x-scope': marker,
    });
    expect(reply.status).toBe(403);
    expect(reply.headers.get('www-authenticate')).toContain('scope="tools:write tools:read"');
    expect(JSON.stringify([...reply.headers]) + reply.text).not.toContain(marker);
    expectNothingForwarded(rig);
  });
});
