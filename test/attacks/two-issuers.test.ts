// Case 44: two issuers that share a key id, on one gateway. Each vouches for its own callers and
// upstreams, by its own keys, whatever a token says.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, expectCallPasses, expectLoginRefused, startRig } from '../support/gateway.js';
import { makeSigningKey, startTestIssuer, type TestIssuer } from '../support/tokens.js';
import { callStateless } from '../support/wire-client.js';

describe('[X-44, TOK-15] a token of one of two issuers', () => {
  let rig: AttackRig;
  let other: TestIssuer;
  let stranger: TestIssuer;
  beforeAll(async () => {
    // The other issuer takes the key id of the first as soon as that is known.
    other = await startTestIssuer();
    stranger = await startTestIssuer();
    const options = 'network: loopback, algorithms: [ES256]';
    rig = await startRig({
      issuers: [
        `other: {issuer: "${other.issuer}", ${options}}`,
        `stranger: {issuer: "${stranger.issuer}", ${options}}`,
      ],
      upstream: ['pinning: {maxAge: 10m}', 'issuers: [test, other]'],
    });
    const { kid } = rig.gateway.issuer.currentKey();
    const [first, second] = [await makeSigningKey('ES256', kid), await makeSigningKey('ES256', kid)];
    other.publish([first.publicJwk]);
    stranger.publish([second.publicJwk]);
    keys = { other: first, stranger: second };
  });
  afterAll(async () => {
    await rig.close();
    await Promise.all([other.close(), stranger.close()]);
  });
  let keys: Record<'other' | 'stranger', Awaited<ReturnType<typeof makeSigningKey>>>;

  const named = (issuer: TestIssuer) => ({ claims: { iss: issuer.issuer } });

  it('passes by the keys of the issuer that it names, though both share a key id', async () => {
    const mine = rig.gateway.issuer;
    await expectCallPasses(rig, await mine.mint(rig.access.url));
    await expectCallPasses(rig, await other.mint(rig.access.url, { key: keys.other }));
    const actors = (await rig.gateway.audit())
      .filter((line) => line['type'] === 'mcp.decision')
      .map((line) => line['actor'].iss);
    expect(actors.slice(-2)).toEqual([mine.issuer, other.issuer]);
  });

  it('is refused where the other one signed it', async () => {
    const mine = rig.gateway.issuer;
    const byOther = await mine.mint(rig.access.url, { key: keys.other });
    await expectLoginRefused(rig, byOther, 'token-signature');
    const byMine = await mine.mint(rig.access.url, named(other));
    await expectLoginRefused(rig, byMine, 'token-signature');
  });

  it('is refused where a good issuer of the gateway may not vouch for this upstream', async () => {
    const token = await stranger.mint(rig.access.url, { key: keys.stranger });
    await expectLoginRefused(rig, token, 'token-issuer');
    const masked = await stranger.mint(rig.access.url, { ...named(other), key: keys.stranger });
    await expectLoginRefused(rig, masked, 'token-signature');
  });

  it('is another caller than the same subject of the other, in sessions too', async () => {
    const session = await rig.openSession();
    const token = await other.mint(rig.access.url, { key: keys.other });
    const { sessionHeaders, post } = await import('../support/wire-client.js');
    rig.upstream.forget();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const reply = await post(rig.as(token), body, sessionHeaders(session.id));
    expect(reply.status).toBe(404);
    expect(rig.upstream.seen()).toEqual([]);
    expect((await callStateless(rig.as(token), 'read_record', { id: 'one' })).status).toBe(200);
  });
});
