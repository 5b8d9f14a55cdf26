// Case 51: an issuer whose keys cannot be had, or are something else. Nobody is let in on a guess, and
// nobody is sent to log in again for it.

import { describe, expect, it } from 'vitest';
import { expectLoginLine, expectNothingForwarded } from '../support/gateway.js';
import { type Misbehaviour, startTestIssuer } from '../support/tokens.js';
import { callStateless } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

describe.each(['down', 'error', 'html', 'huge', 'redirect', 'wrong-issuer', 'foreign-keys'] satisfies Misbehaviour[])(
  'an issuer that is %s from the start',
  (how) => {
    const issuer = shared(() => startTestIssuer());
    const rig = sharedGateway(() => {
      issuer.misbehave(how);
      return { issuerUrl: issuer.issuer };
    });

    it('[X-51, MCP-46] makes calls wait with 503, not log in again with 401', async () => {
      const token = await issuer.mint(rig.access.url);
      const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
      expect(reply.status).toBe(503);
      expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(reply.headers.get('www-authenticate')).toBeNull();
      await expectLoginLine(rig, reply, 'keys-unavailable');
      expectNothingForwarded(rig);
      const probes = ['livez', 'readyz'].map(async (path) => (await fetch(`${rig.gateway.opsUrl}/${path}`)).status);
      expect(await Promise.all(probes)).toEqual([200, 503]);
      await expect
        .poll(() => rig.gateway.metrics(), { interval: 100 })
        .toContain('sallyport_controls{control="authn",state="degraded"} 1');
    });
  },
);

describe('an issuer that changes under a running gateway', () => {
  const rig = sharedGateway();

  it('[X-51] serves on with the keys it had while it is down', async () => {
    const good = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(good.status).toBe(200);
    rig.gateway.issuer.misbehave('down');
    const fresh = rig.as(await rig.gateway.token('target', { sub: 'bob' }));
    expect((await callStateless(fresh, 'read_record', { id: 'one' })).status).toBe(200);
    rig.gateway.issuer.misbehave('none');
  });

  it('[X-51] is followed when it rotates its keys', async () => {
    await rig.gateway.issuer.rotate();
    const fresh = rig.as(await rig.gateway.token('target', { sub: 'carol' }));
    expect((await callStateless(fresh, 'read_record', { id: 'one' })).status).toBe(200);
  });
});
