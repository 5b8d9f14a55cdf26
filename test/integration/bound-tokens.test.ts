// Tokens that are bound to a key, in everything that is more than one POST: sessions, streams, arrays, nonces,
// reloads, and what an upstream may demand. Source: RFC 9449 §7 to §9; RFC 9728 §2; docs/reference/responses.md;
// docs/reference/state.md.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, type AttackRig, expectLoginLine, UPSTREAM } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { initializeMessage, openRawChannel, postMessage } from '../support/http-sse-clients.js';
import { startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';
import { makeProofHolder, type ProofHolder, type ProofOptions } from '../support/tokens.js';
import { type HeaderLines, post, type Reply, SESSION_VERSION, statelessParts } from '../support/wire-client.js';
import { sharedGateway, untilTestEnds, withGateway } from '../support/with-gateway.js';

const CALL = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
const CALL_TEXT = JSON.stringify(CALL.body);
const QUIET = 'pinning: {maxAge: 10m}';

/** A caller with a token of its own that is bound to its key. */
type BoundCaller = {
  readonly token: string;
  headers(method?: string, options?: ProofOptions): Promise<HeaderLines>;
  send(text: string, more?: HeaderLines, options?: ProofOptions): Promise<Reply>;
};

async function makeCaller(
  rig: AttackRig,
  holder: ProofHolder,
  claims: Readonly<Record<string, unknown>> = {},
): Promise<BoundCaller> {
  const { url } = rig.access;
  const token = await rig.gateway.token(UPSTREAM, {
    cnf: { jkt: holder.thumbprint },
    ...claims,
  });
  const headers: BoundCaller['headers'] = async (method = 'POST', options = {}) => ({
    authorization: `DPoP ${token}`,
    dpop: await holder.prove(method, url, { token, ...options }),
  });
  return {
    token,
    headers,
    send: async (text, more = {}, options = {}) =>
      post({ url, token: undefined }, text, { ...more, ...(await headers('POST', options)) }),
  };
}

async function openSession(caller: BoundCaller, version = SESSION_VERSION): Promise<HeaderLines> {
  const params = {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'bound', version: '1.0.0' },
  };
  const reply = await caller.send(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
  expect(reply.status).toBe(200);
  const session = {
    'mcp-session-id': reply.headers.get('mcp-session-id') ?? '',
    'mcp-protocol-version': version,
  };
  const ready = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  expect((await caller.send(ready, session)).status).toBe(202);
  return session;
}

const callText = (id: number): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'read_record', arguments: { id: 'one' } },
  });

describe('a session with a bound token', () => {
  let holder: ProofHolder;
  let caller: BoundCaller;
  const rig = sharedGateway();
  beforeAll(async () => {
    holder = await makeProofHolder();
    caller = await makeCaller(rig, holder);
  });
  afterEach(async () => {
    rig.upstream.repent();
    await rig.gateway.writePolicy('open', ALLOW_ALL);
    await rig.gateway.reload();
  });

  it('[BND-09] asks for a proof at every request, streams and the end included', async () => {
    const session = await openSession(caller);
    expect((await caller.send(callText(1), session)).status).toBe(200);
    const unproved = { ...session, authorization: `DPoP ${caller.token}` };
    for (const method of ['POST', 'GET', 'DELETE']) {
      const body = method === 'POST' ? { body: callText(2) } : {};
      const type = { 'content-type': 'application/json' };
      for (const headers of [
        unproved,
        { ...session, ...(await caller.headers(method === 'GET' ? 'POST' : 'GET')) },
        { ...session, authorization: `Bearer ${caller.token}` },
      ]) {
        const init = { method, headers: { ...headers, ...type }, ...body };
        const answer = await fetch(rig.access.url, init);
        expect(answer.status, method).toBe(401);
        await expectLoginLine(rig, answer, 'token-binding');
      }
    }
    const stream = await fetch(rig.access.url, {
      headers: { ...session, ...(await caller.headers('GET')), accept: 'text/event-stream' },
    });
    // The honest server has no stream of its own.
    expect([200, 405]).toContain(stream.status);
    await stream.body?.cancel();
    const end = await fetch(rig.access.url, {
      method: 'DELETE',
      headers: { ...session, ...(await caller.headers('DELETE')) },
    });
    expect(end.status).toBe(204);
    expect((await caller.send(callText(3), session)).status).toBe(404);
  });

  it('[BND-10] is of its caller, not of a key: another key of the same caller goes on, another caller does not', async () => {
    const session = await openSession(caller);
    const renewed = await makeCaller(rig, await makeProofHolder());
    expect((await renewed.send(callText(1), session)).status).toBe(200);
    const stranger = await makeCaller(rig, holder, { sub: 'mallory' });
    expect((await stranger.send(callText(2), session)).status).toBe(404);
  });

  it('[BND-09] takes one proof for an array, whose elements are one request', async () => {
    const session = await openSession(caller, '2025-03-26');
    const array = [1, 2, 3].map((id) => JSON.parse(callText(id)) as unknown);
    const proof = await caller.headers();
    const send = (): Promise<Reply> =>
      post({ url: rig.access.url, token: undefined }, JSON.stringify(array), {
        ...session,
        ...proof,
      });
    const reply = await send();
    expect(reply.status).toBe(200);
    expect(reply.messages.filter((message) => 'result' in message)).toHaveLength(3);
    expect((await send()).status).toBe(401);
  });

  it('[BND-09] keeps a stream open over a reload: its proof was judged when it was opened', async () => {
    rig.upstream.obeyOnce(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [
          ...Array.from({ length: 20 }, (_, progress) =>
            sseEvent({
              jsonrpc: '2.0',
              method: 'notifications/progress',
              params: { progressToken: 1, progress },
            }),
          ),
          sseEvent(resultFor(request, textResult('done'))),
        ],
        ending: 'end',
        paceMs: 50,
      })),
    );
    const parts = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
      _meta: { progressToken: 1 },
    });
    const reply = caller.send(JSON.stringify(parts.body), parts.headers);
    await rig.gateway.writePolicy('open', `${ALLOW_ALL}# changed\n`);
    await rig.gateway.reload();
    expect((await reply).text).toContain('done');
  });

  it('[BND-04] what was used before a reload stays used', async () => {
    const headers = { ...CALL.headers, ...(await caller.headers()) };
    const access = { url: rig.access.url, token: undefined };
    expect((await post(access, CALL_TEXT, headers)).status).toBe(200);
    await rig.gateway.writePolicy('open', `${ALLOW_ALL}# changed again\n`);
    await rig.gateway.reload();
    expect((await post(access, CALL_TEXT, headers)).status).toBe(401);
  });
});

describe('nonces', () => {
  let caller: BoundCaller;
  const rig = sharedGateway({ listener: ['dpop: {nonce: required, maxAge: 30s}'] });
  beforeAll(async () => {
    caller = await makeCaller(rig, await makeProofHolder());
  });

  const call = (nonce?: unknown): Promise<Reply> =>
    caller.send(CALL_TEXT, CALL.headers, nonce === undefined ? {} : { claims: { nonce } });

  it('[BND-12] are asked for, given out with every answer, and then do', async () => {
    const refused = await call();
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="use_dpop_nonce"');
    await expectLoginLine(rig, refused, 'token-binding');
    const nonce = refused.headers.get('dpop-nonce') ?? '';
    expect(nonce).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const passed = await call(nonce);
    expect(passed.status).toBe(200);
    expect(passed.headers.get('dpop-nonce')).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect((await call(nonce)).status).toBe(200);
  });

  it.each(['', 'x', 'A'.repeat(43), 7, null])('[BND-12] are ours alone: %j', async (nonce) => {
    const refused = await call(nonce);
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('error="use_dpop_nonce"');
  });

  it('[BND-12] are given to nobody who uses no proofs', async () => {
    const reply = await post(rig.access, CALL_TEXT, CALL.headers);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('dpop-nonce')).toBeNull();
    expect((await post(rig.as('a.b.c'), CALL_TEXT, CALL.headers)).headers.get('dpop-nonce')).toBeNull();
  });
});

describe('an upstream that demands bound tokens', () => {
  let caller: BoundCaller;
  const rig = sharedGateway({ upstream: [QUIET, 'binding: dpop', 'scopesSupported: [notes:read]'] });
  beforeAll(async () => {
    caller = await makeCaller(rig, await makeProofHolder());
  });

  it('[BND-13] takes them with their proof, and no other token', async () => {
    expect((await caller.send(CALL_TEXT, CALL.headers)).status).toBe(200);
    rig.upstream.forget();
    const refused = await post(rig.access, CALL_TEXT, CALL.headers);
    expect(refused.status).toBe(401);
    expect(refused.text).toBe('Proof of possession for the token is missing or invalid.');
    await expectLoginLine(rig, refused, 'token-binding');
    expect(rig.upstream.uses()).toEqual([]);
  });

  it('[BND-14] says so in its challenge and in its metadata', async () => {
    const document = `${rig.gateway.publicUrl}/.well-known/oauth-protected-resource/target`;
    const offer = `DPoP resource_metadata="${document}", scope="notes:read"`;
    const algs = 'algs="ES256 ES384 ES512 EdDSA Ed25519 PS256 PS384 PS512 RS256 RS384 RS512"';
    const challenge = async (token: string | undefined): Promise<string | null> =>
      (await post(rig.as(token), CALL_TEXT, CALL.headers)).headers.get('www-authenticate');
    expect(await challenge(undefined)).toBe(`${offer}, ${algs}`);
    expect(await challenge(rig.access.token)).toBe(`${offer}, error="invalid_token", ${algs}`);
    expect(await (await fetch(document)).json()).toMatchObject({
      dpop_bound_access_tokens_required: true,
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256', 'EdDSA']),
    });
  });

  it('[BND-15] is armed in the table of controls', async () => {
    const armed = 'sallyport_controls{control="binding",state="armed"} 1';
    await expect.poll(() => rig.gateway.metrics(), PATIENT).toContain(armed);
  });
});

describe('the paths of HTTP+SSE', () => {
  it('[BND-09] are each named by the proofs of their requests', async () => {
    const server = await untilTestEnds(startSseServer());
    await withGateway(
      {
        upstreams: [{ name: 'old', url: server.url, more: ['transport: http-sse', 'binding: dpop'] }],
      },
      async (running) => {
        const url = running.url('old');
        const holder = await makeProofHolder();
        const token = await running.token('old', { cnf: { jkt: holder.thumbprint } });
        const prove = async (method: string, path: string): Promise<HeaderLines> => ({
          authorization: `DPoP ${token}`,
          dpop: await holder.prove(method, `${url}${path}`, { token }),
        });
        expect((await fetch(`${url}/sse`, { headers: await prove('GET', '') })).status).toBe(401);
        const channel = await openRawChannel(`${url}/sse`, await prove('GET', '/sse'));
        expect(channel.status).toBe(200);
        const hello = initializeMessage(1);
        const wrong = await prove('POST', '/sse');
        expect((await postMessage(channel.address, undefined, hello, wrong)).status).toBe(401);
        const right = await prove('POST', '/message');
        expect((await postMessage(channel.address, undefined, hello, right)).status).toBe(202);
        expect(await channel.answer(1)).toHaveProperty('result');
        channel.leave();
      },
    );
  });
});

describe('the challenge of a scope', () => {
  it('[BND-14] is of the scheme that the caller uses', async () => {
    const policy = `version: 1
policy: scoped
rules:
  - {id: read, effect: allow, who: {anyone: true}, what: {upstreams: [target], tools: [read_record]}, scopes: [notes:admin]}
`;
    await withGateway({ policies: { scoped: policy } }, async (rig) => {
      const caller = await makeCaller(rig, await makeProofHolder());
      const reply = await caller.send(CALL_TEXT, CALL.headers);
      expect(reply.status).toBe(403);
      expect(reply.headers.get('www-authenticate')).toMatch(
        /^DPoP resource_metadata="[^"]+", scope="notes:admin", error="insufficient_scope", algs="/,
      );
      const plain = await post(rig.access, CALL_TEXT, CALL.headers);
      expect(plain.headers.get('www-authenticate')).toMatch(/^Bearer .*error="insufficient_scope"$/);
    });
  });
});
