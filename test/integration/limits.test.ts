// Limits of policies and of upstreams, counted by the running gateway.

import { describe, expect, it } from 'vitest';
import { type AttackRig, expectRefusedLines } from '../support/gateway.js';
import { onMethod } from '../support/hostile-acts.js';
import { startTestIssuer } from '../support/tokens.js';
import { callStateless, errorOf, initialize, type Reply, requestStateless, toolNames } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const POLICIES = {
  limited: `version: 1
policy: limited
rules:
  - id: few
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record]}
    limits: {rate: 3/min, per: subject}
  - id: free
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [write_record]}
`,
};

describe('limits', () => {
  const rig = sharedGateway({
    policies: POLICIES,
    upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 2, concurrencyPerCaller: 2, maxRequestBytes: 4KiB}'],
  });

  it('[G-07] of a rule refuse the call that is one too many, for that subject alone', async () => {
    for (let i = 0; i < 3; i += 1)
      expect((await callStateless(rig.access, 'read_record', { id: 'x' })).text).toContain('record x');
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'read_record', { id: 'x' });
    expect(reply.status).toBe(200);
    expect(reply.message?.['result']).toMatchObject({ isError: true });
    await expectRefusedLines(rig, reply, 'rate-limited');
    expect(rig.upstream.uses()).toEqual([]);
    // A new token of the same subject changes nothing; another subject has a count of its own.
    const again = rig.as(await rig.gateway.token('target', { client_id: 'other' }));
    await expectRefusedLines(rig, await callStateless(again, 'read_record', { id: 'x' }), 'rate-limited');
    const bob = rig.as(await rig.gateway.token('target', { sub: 'bob' }));
    expect((await callStateless(bob, 'read_record', { id: 'x' })).text).toContain('record x');
    const free = await callStateless(rig.access, 'write_record', { id: 'x', text: 'y' });
    expect(free.text).toContain('write_record x');
  });

  it('[G-07] change nothing of what is listed', async () => {
    const listed = await requestStateless(rig.access, 'tools/list');
    expect(toolNames(listed)).toEqual(['read_record', 'write_record']);
  });

  it('[G-07] of an upstream refuse with 503 what does not fit beside what runs', async () => {
    rig.upstream.obey(onMethod('tools/call', () => ({ kind: 'hold' })));
    const left = new AbortController();
    const held = [1, 2].map(() =>
      fetch(rig.access.url, {
        method: 'POST',
        signal: left.signal,
        headers: holdingHeaders(rig),
        body: holdingBody(),
      }).catch(() => undefined),
    );
    await expect.poll(() => rig.upstream.uses().length).toBeGreaterThanOrEqual(2);
    const reply = await callStateless(rig.access, 'write_record', { id: 'x', text: 'y' });
    expect(reply.status).toBe(503);
    expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    left.abort();
    await Promise.all(held);
    rig.upstream.repent();
    await expect
      .poll(async () => (await callStateless(rig.access, 'write_record', { id: 'x', text: 'y' })).status)
      .toBe(200);
  });

  it('[G-07] of the request body are exact to the byte', async () => {
    rig.upstream.forget();
    const empty = holdingBody('').length;
    const send = (bytes: number): Promise<Response> =>
      fetch(rig.access.url, {
        method: 'POST',
        headers: holdingHeaders(rig),
        body: holdingBody('y'.repeat(bytes - empty)),
      });
    const tooLong = await send(4 * 1024 + 1);
    expect(tooLong.status).toBe(413);
    expect(await tooLong.text()).not.toContain('target');
    expect(rig.upstream.uses()).toEqual([]);
    expect((await send(4 * 1024)).status).toBe(200);
    expect(rig.upstream.uses()).toHaveLength(1);
  });
});

describe('places of an upstream', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 4}'] });

  it('[H-10] of a caller leave the rest to others: half, where the file says nothing', async () => {
    rig.upstream.obey(onMethod('tools/call', () => ({ kind: 'hold' })));
    const left = new AbortController();
    const held = [1, 2].map(() =>
      fetch(rig.access.url, {
        ...{ method: 'POST', signal: left.signal },
        ...{ headers: holdingHeaders(rig), body: holdingBody() },
      }).catch(() => undefined),
    );
    await expect.poll(() => rig.upstream.uses().length).toBe(2);
    rig.upstream.repent();
    const call = (access = rig.access) => callStateless(access, 'write_record', { id: 'x', text: 'y' });
    const refused = await call();
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    await expectRefusedLines(rig, refused, 'overloaded');
    // A new token makes no other caller of it.
    expect((await call(rig.as(await rig.gateway.token('target', { jti: 'new' })))).status).toBe(503);
    const bob = rig.as(await rig.gateway.token('target', { sub: 'bob' }));
    expect((await call(bob)).status).toBe(200);
    left.abort();
    await Promise.all(held);
    await expect.poll(async () => (await call()).status).toBe(200);
  });
});

describe('sessions of an upstream', () => {
  const rig = sharedGateway({ policies: POLICIES });

  it('[H-10] are opened by a caller at a rate, past which others still open theirs', async () => {
    const [MOST, AT_ONCE] = [3_000, 40];
    let last: Reply | undefined;
    for (let opened = 0; opened < MOST; opened += AT_ONCE)
      for (last of await Promise.all(Array.from({ length: AT_ONCE }, () => initialize(rig.access))))
        expect(last.message).toHaveProperty('result');
    rig.upstream.forget();
    const refused = await initialize(rig.access);
    expect(refused.status).toBe(200);
    expect(errorOf(refused)).toMatchObject({ code: 1429 });
    expect(errorOf(refused)['message']).toMatch(/Try again in \d+ seconds\.$/);
    await expectRefusedLines(rig, refused, 'rate-limited');
    expect(rig.upstream.seen()).toEqual([]);
    const bob = rig.as(await rig.gateway.token('target', { sub: 'bob' }));
    expect((await initialize(bob)).message).toHaveProperty('result');
    // Nothing else is limited with it.
    const call = await callStateless(rig.access, 'write_record', { id: 'x', text: 'y' });
    expect(call.text).toContain('write_record x');
  });
});

function holdingHeaders(rig: AttackRig): Record<string, string> {
  return {
    authorization: `Bearer ${rig.access.token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'write_record',
  };
}

function holdingBody(text = 'y'): string {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'write_record', arguments: { id: 'x', text }, _meta };
  return JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params });
}

describe('limits of callers of two issuers', () => {
  const other = shared(() => startTestIssuer());
  const rig = sharedGateway(() => ({
    policies: POLICIES,
    issuers: [`other: {issuer: "${other.issuer}", network: loopback, algorithms: [ES256]}`],
    upstream: ['pinning: {maxAge: 10m}', 'issuers: [test, other]'],
  }));

  it('[P-62] count callers of one name apart', async () => {
    const resource = rig.access.url;
    const tokens = [await rig.gateway.issuer.mint(resource), await other.mint(resource)];
    for (const token of tokens) {
      for (let use = 0; use < 3; use += 1) {
        const reply = await callStateless(rig.as(token), 'read_record', { id: 'x' });
        expect(reply.text).toContain('record x');
      }
      const over = await callStateless(rig.as(token), 'read_record', { id: 'x' });
      await expectRefusedLines(rig, over, 'rate-limited');
    }
    expect(rig.upstream.uses()).toHaveLength(6);
  });
});
