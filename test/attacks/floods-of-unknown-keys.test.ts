// Case 38: a flood of tokens whose keys nobody knows, while the issuer is slow to say so. Those who send
// them wait, or are told to come again; they take no place from callers who are known.

import { describe, expect, it } from 'vitest';
import { makeSigningKey } from '../support/tokens.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const FLOOD = 100;
const CONCURRENCY = 4;

describe('tokens of unknown keys, and a silent issuer', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', `limits: {concurrency: ${CONCURRENCY}}`],
  });

  it('[H-07] hold up no caller who is known', async () => {
    const { issuer } = rig.gateway;
    const key = await makeSigningKey();
    const stranger = rig.as(await issuer.mint(rig.access.url, { key }));
    const asked = [...issuer.hits.values()].reduce((sum, hits) => sum + hits, 0);
    issuer.misbehave('silent', 'keys');
    let answered = 0;
    // Each its own token: equal ones would share one verification.
    const flood = Array.from({ length: FLOOD }, async (_, i) => {
      const claims = { jti: `stranger-${i}` };
      const access = rig.as(await issuer.mint(rig.access.url, { key, claims }));
      const reply = await callStateless(access, 'read_record', { id: 'one' });
      answered += 1;
      return reply.status;
    });
    await expect.poll(() => [...issuer.hits.values()].reduce((sum, hits) => sum + hits, 0)).toBeGreaterThan(asked);
    // Past those that may wait, strangers are sent away at once.
    await expect.poll(() => answered).toBeGreaterThan(0);
    expect(answered).toBeLessThan(FLOOD);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(200);
    expect(answered).toBeLessThan(FLOOD);
    issuer.misbehave('none', 'keys');
    issuer.hangUp();
    expect(new Set(await Promise.all(flood))).toEqual(new Set([503]));
    expect((await callStateless(stranger, 'read_record', { id: 'one' })).status).not.toBe(200);
  });
});
