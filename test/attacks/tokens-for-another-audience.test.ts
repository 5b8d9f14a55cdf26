// Case 40: a token for another resource, or for one whose name only resembles ours.

import { describe, expect, it } from 'vitest';
import { expectLoginLine, expectNothingForwarded } from '../support/gateway.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a token for another audience', () => {
  const rig = sharedGateway();

  const WRONG: readonly (readonly [string, (ours: string) => unknown])[] = [
    ['another resource', () => 'https://other.example/mcp'],
    ['the gateway without the path', (ours) => new URL(ours).origin],
    ['a prefix', (ours) => ours.slice(0, -1)],
    ['a suffix', (ours) => `${ours}x`],
    ['a trailing slash', (ours) => `${ours}/`],
    ['another case', (ours) => ours.replace('target', 'Target')],
    ['another scheme', (ours) => ours.replace('http:', 'https:')],
    ['an encoded letter', (ours) => ours.replace('/target', '/%74arget')],
    ['a fragment', (ours) => `${ours}#`],
    ['ours among others', (ours) => [ours, 'https://other.example/mcp']],
    ['an empty list', () => []],
    ['a list in a list', (ours) => [[ours]]],
    ['a number', () => 1],
    ['nothing', () => undefined],
    ['an empty text', () => ''],
    ['everything', () => '*'],
  ];

  it.each(WRONG)('[X-40, MCP-40] is a 401: %s', async (_name, audience) => {
    const token = await rig.gateway.token('target', { aud: audience(rig.access.url) });
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toContain('error="invalid_token"');
    await expectLoginLine(rig, reply, 'token-audience', 'token-malformed');
    expectNothingForwarded(rig);
  });

  it('[X-40] passes for exactly ours, alone or in a list of one', async () => {
    for (const aud of [rig.access.url, [rig.access.url]]) {
      const token = await rig.gateway.token('target', { aud });
      const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
      expect(reply.status).toBe(200);
    }
  });
});
