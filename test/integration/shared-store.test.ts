// Replicas behind one address that share a store, in the middle of a change of their key: a proof of possession is
// used once at all of them, and a token is revoked by whichever digest names it. The store is one of this process;
// what a real one does is in test/system.

import { beforeAll, describe, expect, it } from 'vitest';
import { ADMINS, adminsOf, idOf, startTwoGateways } from '../support/deployments.js';
import type { RunningGateway } from '../support/gateway.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { replace } from '../support/seams.js';
import { createFakeStore } from '../support/state.js';
import { PATIENT } from '../support/timing.js';
import { makeProofHolder, type ProofHolder, proofHeaders } from '../support/tokens.js';
import { callStateless, type HeaderLines, post, type Reply, statelessParts } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const store = createFakeStore(Date.now);
replace('redis', { openRedisLink: () => store.link() });

/** Where clients reach both; nothing here listens there. */
const PUBLIC_URL = 'http://127.0.0.1:9';
const RESOURCE = `${PUBLIC_URL}/target`;
const CALL = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });

const upstream = shared(() => startHostileUpstream());
const both = shared(() =>
  startTwoGateways(
    {
      upstreams: [{ name: 'target', url: upstream.url, more: ['pinning: {maxAge: 10m}'] }],
      publicUrl: PUBLIC_URL,
      env: { REDIS_URL: 'redis://127.0.0.1:9' },
      more: `state: {type: redis, url: {env: REDIS_URL}}\n${ADMINS}`,
    },
    true,
  ),
);

describe('a proof at replicas of which each has another key in front', () => {
  let holder: ProofHolder;
  let token: string;
  beforeAll(async () => {
    holder = await makeProofHolder();
    token = await both.issuer.mint(RESOURCE, { claims: { cnf: { jkt: holder.thumbprint } } });
  });

  const prove = (): Promise<HeaderLines> => proofHeaders(holder, { url: RESOURCE, token });
  const send = (gateway: RunningGateway, proof: HeaderLines): Promise<Reply> =>
    post({ url: gateway.url('target'), token: undefined }, JSON.stringify(CALL.body), {
      ...CALL.headers,
      ...proof,
    });

  it('[ACH-08] is good at each, and used at one it is used at the other', async () => {
    const { one, other } = both;
    for (const [first, second] of [
      [one, other],
      [other, one],
    ] as const) {
      const proof = await prove();
      expect((await send(first, proof)).status).toBe(200);
      for (const again of [second, first]) {
        const refused = await send(again, proof);
        expect(refused.status).toBe(401);
        expect(refused.headers.get('www-authenticate')).toContain('invalid_dpop_proof');
      }
    }
  });

  it('[ACH-08] passes at one of both where it comes to both at once', async () => {
    upstream.forget();
    const rounds = 5;
    for (let round = 0; round < rounds; round += 1) {
      const proof = await prove();
      const replies = await Promise.all([send(both.one, proof), send(both.other, proof)]);
      // Each claims it under both keys, so both may lose, and never do both win.
      expect(replies.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
      expect(replies.filter(({ status }) => status === 401).length).toBeGreaterThanOrEqual(1);
    }
    expect(upstream.uses().length).toBeLessThanOrEqual(rounds);
  });
});

describe('a proof while the store is away', () => {
  it('[ACH-08] is refused, on record as a failure of authentication and in one line', async () => {
    const { one } = both;
    const holder = await makeProofHolder();
    const claims = { cnf: { jkt: holder.thumbprint } };
    const token = await both.issuer.mint(RESOURCE, { claims });
    const proof = await proofHeaders(holder, { url: RESOURCE, token });
    store.goDown();
    const refused = await post({ url: one.url('target'), token: undefined }, JSON.stringify(CALL.body), {
      ...CALL.headers,
      ...proof,
    });
    store.comeBack();
    expect([refused.status, refused.message?.['error']]).toMatchObject([503, { code: 1509 }]);
    const id = refused.headers.get('sallyport-decision');
    const lines = async () => (await one.audit()).filter((line) => line['decision']?.id === id);
    await expect.poll(async () => (await lines()).length, PATIENT).toBeGreaterThan(0);
    expect(await lines()).toMatchObject([{ type: 'auth.failure', decision: { reasons: ['store-unavailable'] } }]);
  });
});

describe('a token that is revoked at one of replicas of which each has another key in front', () => {
  const call = (gateway: RunningGateway, token: string): Promise<Reply> =>
    callStateless({ url: gateway.url('target'), token }, 'read_record', { id: 'one' });
  const statuses = async (token: string): Promise<readonly number[]> => {
    const replies = [await call(both.one, token), await call(both.other, token)];
    return replies.map(({ status }) => status);
  };

  it('[REV-12] by its own id is refused at both', async () => {
    const token = await both.issuer.mint(RESOURCE);
    expect(await statuses(token)).toEqual([200, 200]);
    // The issuer that both trust vouches for administrators too.
    const admins = adminsOf({ ...both.one, issuer: both.issuer });
    expect((await admins.revoke({ token: { issuer: 'test', jti: idOf(token) } })).status).toBe(201);
    await expect.poll(() => statuses(token), PATIENT).toEqual([401, 401]);
  });

  it('[REV-01] by the digest that one has recorded is refused at both', async () => {
    const token = await both.issuer.mint(RESOURCE, { claims: { sub: 'eve' } });
    expect(await statuses(token)).toEqual([200, 200]);
    const digestAt = async (gateway: RunningGateway): Promise<string | undefined> =>
      (await gateway.audit()).find((line) => line['actor']?.sub === 'eve')?.['actor'].token.id;
    await expect.poll(() => digestAt(both.one), PATIENT).toMatch(/^[\w-]{43}$/);
    await expect.poll(() => digestAt(both.other), PATIENT).toMatch(/^[\w-]{43}$/);
    const digest = await digestAt(both.one);
    expect(digest).not.toBe(await digestAt(both.other));
    const admins = adminsOf({ ...both.other, issuer: both.issuer });
    expect((await admins.revoke({ token: { digest } })).status).toBe(201);
    await expect.poll(() => statuses(token), PATIENT).toEqual([401, 401]);
  });
});

describe('what a replica asks of the store', () => {
  it('[G-01] is measured, and so are its failures', async () => {
    const counted = async (operation: string, error: string): Promise<boolean> => {
      const labels = `operation="${operation}",error_type="${error}"`;
      const count = new RegExp(`sallyport_store_operation_duration_seconds_count\\{${labels}\\} [1-9]`);
      return count.test(await both.one.metrics());
    };
    await expect.poll(() => counted('poll', ''), PATIENT).toBe(true);
    expect(await counted('useOnce', '')).toBe(true);
    store.goDown();
    await expect.poll(() => counted('poll', 'unavailable'), PATIENT).toBe(true);
    store.comeBack();
  });
});
