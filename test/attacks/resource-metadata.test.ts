// Case 53 and mapped audiences: what the gateway says of itself comes from its configuration, whatever a
// request says; and where tokens carry another audience than the resource, everyone can see it.

import { describe, expect, it } from 'vitest';
import { expectCallPasses, expectLoginRefused } from '../support/gateway.js';
import { hasCompleteResponse, sendRaw } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const MAPPED = 'api://target';

describe('the metadata of a resource', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', `audiences: {test: ["${MAPPED}"]}`],
  });

  const PATH = '/.well-known/oauth-protected-resource/target';

  it.each([
    ['Host', 'evil.example', 421],
    ['X-Forwarded-Host', 'evil.example', 200],
    ['Forwarded', 'host=evil.example;proto=https', 200],
    ['X-Forwarded-Proto', 'https', 200],
    // Whoever may call, every page may read where tokens come from.
    ['Origin', 'https://evil.example', 200],
  ])('[X-53] is made without %s', async (name, value, status) => {
    const host = name === 'Host' ? [] : [`Host: 127.0.0.1:${rig.port}`];
    const request = [`GET ${PATH} HTTP/1.1`, ...host, `${name}: ${value}`, '', ''].join('\r\n');
    const reply = await sendRaw(rig.port, [request], hasCompleteResponse);
    expect(reply.status).toBe(status);
    expect(reply.text).not.toContain('evil.example');
    if (status !== 200) return;
    const [, body = ''] = reply.text.split('\r\n\r\n');
    expect(JSON.parse(body)).toMatchObject({
      resource: rig.access.url,
      authorization_servers: [rig.gateway.issuer.issuer],
      bearer_methods_supported: ['header'],
    });
  });

  it('[X-40, TOK-05] names the resource, while a mapped audience, exactly, is what opens it', async () => {
    await expectCallPasses(rig, await rig.gateway.token('target', { aud: MAPPED }));
    const wrong = [rig.access.url, `${MAPPED}/`, 'api://TARGET', [MAPPED, rig.access.url], 'api:'];
    for (const aud of wrong) {
      await expectLoginRefused(rig, await rig.gateway.token('target', { aud }), 'token-audience');
    }
  });

  it('[TOK-05] is contradicted openly: the log at start and the controls name who and where', async () => {
    const lines = rig.gateway
      .log()
      .split('\n')
      .filter((line) => line.includes('audience:target'))
      .map((line) => JSON.parse(line));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: 'warn',
      control: 'audience:target',
      state: 'degraded',
    });
    expect(lines[0].detail).toContain('test');
    expect(await rig.gateway.metrics()).toContain('sallyport_controls{control="audience",state="degraded"} 1');
  });
});

describe('an audience that is not mapped', () => {
  it('[TOK-05] is armed', () =>
    withGateway({}, async (rig) => {
      expect(await rig.gateway.metrics()).toContain('sallyport_controls{control="audience",state="armed"} 1');
    }));
});
