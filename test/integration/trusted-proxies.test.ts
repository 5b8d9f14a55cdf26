// Proxies before the gateway: what one that is trusted may say, and how little that is. Source:
// docs/reference/listeners.md#paths; docs/reference/audit.md; docs/reference/attacks.md cases 5 and 8.

import { describe, expect, it } from 'vitest';
import { type AttackRig, decisionOf, linesOf } from '../support/gateway.js';
import { type HeaderLines, post, type Reply, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
const LIES: HeaderLines = {
  'x-forwarded-for': '203.0.113.9, 198.51.100.7',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'https',
  'x-real-ip': '203.0.113.9',
  forwarded: 'for=203.0.113.9;host=evil.example;proto=https',
};

async function recordedAddress(rig: AttackRig, reply: Reply): Promise<unknown> {
  const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 1);
  return line?.['client'].ip;
}

const refused = (rig: AttackRig, headers: HeaderLines): Promise<Reply> =>
  post(rig.as('a.b.c'), JSON.stringify(CALL.body), { ...CALL.headers, ...headers });

describe('forwarding headers', () => {
  const rig = sharedGateway();
  const trusting = sharedGateway({ listener: ['trustedProxies: [127.0.0.1, 198.51.100.0/24]'] });

  it('[BND-28] are believed of nobody unless a proxy is named', async () => {
    expect(await recordedAddress(rig, await refused(rig, LIES))).toBe('127.0.0.1');
  });

  it('[BND-28] name the address of the record where a trusted proxy wrote them, its hops left out', async () => {
    expect(await recordedAddress(trusting, await refused(trusting, LIES))).toBe('203.0.113.9');
    expect(await recordedAddress(trusting, await refused(trusting, {}))).toBe('127.0.0.1');
  });

  it.each([
    ['203.0.113.9, unknown', '127.0.0.1'],
    ['evil\u00e9, 192.0.2.1', '192.0.2.1'],
    ['203.0.113.9, 192.0.2.1', '192.0.2.1'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['<script>', '127.0.0.1'],
  ])('[BND-28] end at the first that is not trusted, or no address: %s', async (value, expected) => {
    const reply = await refused(trusting, { 'x-forwarded-for': value });
    expect(await recordedAddress(trusting, reply)).toBe(expected);
  });

  it('[BND-28] of a trusted proxy change no Host rule, no resource and no challenge', async () => {
    const own = trusting.gateway.publicUrl;
    const reply = await refused(trusting, LIES);
    expect(reply.headers.get('www-authenticate')).toContain(
      `resource_metadata="${own}/.well-known/oauth-protected-resource/target"`,
    );
    const document = `${own}/.well-known/oauth-protected-resource/target`;
    const answer = await fetch(document, { headers: LIES });
    expect(await answer.json()).toMatchObject({ resource: `${own}/target` });
    const good = await post(trusting.access, JSON.stringify(CALL.body), {
      ...CALL.headers,
      ...LIES,
    });
    expect(good.status).toBe(200);
    expect(JSON.stringify(trusting.upstream.uses())).not.toContain('203.0.113.9');
  });
});
