// Cases 38, 39, 41 to 46: tokens whose header leads elsewhere, whose kind, times or issuer are wrong, or
// that are one token in another spelling.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AttackRig, expectLoginLine, expectNothingForwarded, startRig, UPSTREAM } from '../support/gateway.js';
import { makeSigningKey } from '../support/tokens.js';
import { bearer, callStateless, post, sessionHeaders, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** Refused logins that are written; the others are only counted. */
const AUTH_FAILURES_PER_SECOND = 50;
const HOUR_S = 3600;
const WRITTEN_EVERY_MS = 1000 / AUTH_FAILURES_PER_SECOND;

describe('a token that is not for calling this', () => {
  const rig = sharedGateway();

  async function expectRefused(token: string): Promise<void> {
    // Refused logins past a rate are counted and not written; each of these must be seen written.
    rig.passTime(WRITTEN_EVERY_MS);
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect(reply.status).toBe(401);
    expect(reply.headers.get('www-authenticate')).toContain('error="invalid_token"');
    await expectLoginLine(
      rig,
      reply,
      'token-malformed',
      'token-signature',
      'token-type',
      'token-issuer',
      'token-expired',
      'token-not-yet-valid',
      'token-lifetime',
      'token-binding',
    );
    expectNothingForwarded(rig);
  }

  const mint = (options: Parameters<typeof rig.gateway.issuer.mint>[1]): Promise<string> =>
    rig.gateway.issuer.mint(rig.access.url, options);

  it.each(['../../dev/null', "' OR 1=1 --", 'https://evil.example/keys', 'x'.repeat(300), 'unknown-key', ''])(
    '[X-38] a key id is only a name: %j',
    async (kid) => {
      await expectRefused(await mint({ header: { kid } }));
    },
  );

  it('[X-38] unknown key ids do not make the gateway ask its issuer again and again', async () => {
    const asked = (): number => rig.gateway.issuer.hits.get('/keys') ?? 0;
    const before = asked();
    for (let i = 0; i < 20; i += 1) await expectRefused(await mint({ header: { kid: `new-${i}` } }));
    expect(asked() - before).toBeLessThanOrEqual(1);
  });

  it.each(['jku', 'x5u', 'jwk', 'x5c', 'crit', 'b64'])(
    '[X-39, X-43] a header that brings or changes the key is refused: %s',
    async (member) => {
      const key = await makeSigningKey('ES256', rig.gateway.issuer.currentKey().kid);
      const values: Record<string, unknown> = {
        jku: 'https://evil.example/keys',
        x5u: 'https://evil.example/cert',
        jwk: key.publicJwk,
        x5c: ['MIIB'],
        crit: ['exp'],
        b64: true,
      };
      const header = { [member]: values[member] };
      if (member !== 'crit') await expectRefused(await mint({ header, key }));
      const unsigned = { alg: 'ES256', typ: 'at+jwt', kid: key.kid, ...header };
      await expectRefused(rig.gateway.issuer.mintUnsigned(rig.access.url, unsigned, randomBytes(64)));
    },
  );

  it.each(['JWT', 'dpop+jwt', 'id_token', 'logout+jwt', 'at+jwt2', undefined])(
    '[X-41, MCP-47] only access tokens call: typ %s',
    async (typ) => {
      await expectRefused(await mint({ header: { typ } }));
    },
  );

  const now = (): number => Math.floor(Date.now() / 1000);
  it.each([
    ['no exp', () => ({ exp: undefined })],
    ['exp as a text', () => ({ exp: String(now() + 60) })],
    ['exp in ten years', () => ({ exp: now() + 10 * 365 * 24 * HOUR_S })],
    ['exp in the past', () => ({ iat: now() - 700, exp: now() - 120 })],
    ['exp as infinity', () => ({ exp: 1e300 })],
    ['iat in the future', () => ({ iat: now() + HOUR_S, exp: now() + HOUR_S + 60 })],
    ['nbf in the future', () => ({ nbf: now() + HOUR_S })],
    ['nbf as a text', () => ({ nbf: 'x' })],
    ['no iat', () => ({ iat: undefined })],
    ['no subject', () => ({ sub: undefined })],
    ['a subject that is a list', () => ({ sub: ['alice'] })],
    ['no client', () => ({ client_id: undefined })],
    ['a key that it is bound to', () => ({ cnf: { jkt: 'x' } })],
    ['another issuer', () => ({ iss: 'https://evil.example' })],
    ['the issuer with a slash', () => ({ iss: `${rig.gateway.issuer.issuer}/` })],
    ['scopes that are an object', () => ({ scope: { a: 1 } })],
    ['scopes with a tab', () => ({ scope: 'notes:read\tnotes:write' })],
  ])('[X-42, MCP-39] claims are what they must be: %s', async (_what, claims) => {
    await expectRefused(await mint({ claims: claims() }));
  });

  it('[X-43] five parts are no token here', async () => {
    const [a = '', b = '', c = ''] = (rig.access.token ?? '').split('.');
    await expectRefused([a, '', b, c, c].join('.'));
    await expectRefused([a, b].join('.'));
  });

  it('[X-44] the key of another issuer does not sign for this one', async () => {
    const key = await makeSigningKey('ES256', rig.gateway.issuer.currentKey().kid);
    await expectRefused(await mint({ key }));
    await expectRefused(await mint({ key: await makeSigningKey('RS256') }));
  });

  it('[X-45] a token past 8 KiB is refused unread', async () => {
    const token = await mint({ claims: { padding: 'x'.repeat(9 * 1024) } });
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect([401, 431]).toContain(reply.status);
    expectNothingForwarded(rig);
  });

  it('[X-46] another spelling of a good token is refused, before and after the good one', async () => {
    const token = await mint({});
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = letters.indexOf(token.slice(-1));
    const spellings = [
      `${token.slice(0, -1)}${letters[last ^ 1]}`,
      `${token}=`,
      `${token}.`,
      `${token.slice(0, 20)} ${token.slice(20)}`,
      token.replace(/\./, '..'),
    ];
    for (const spelling of spellings) await expectRefused(spelling);
    const good = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect(good.status).toBe(200);
    rig.upstream.forget();
    for (const spelling of spellings) await expectRefused(spelling);
  });
});

describe('a token that ends', () => {
  let rig: AttackRig;
  let startedAt = 0;
  beforeAll(async () => {
    // For this clock no token ever ends: what ends streams are their timers, however long it took to open them.
    startedAt = Date.now();
    rig = await startRig({ now: () => startedAt });
  });
  afterAll(() => rig.close());

  const mint = (): Promise<string> =>
    rig.gateway.token(UPSTREAM, {
      iat: Math.floor(startedAt / 1000),
      exp: Math.floor(Date.now() / 1000) + 2,
    });

  it('[X-42] an open stream ends with the token that opened it', async () => {
    const session = await rig.openSession();
    const token = await mint();
    const stream = await fetch(rig.access.url, {
      headers: { ...bearer(token), ...sessionHeaders(session.id), accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    await stream.text();
  });

  it('[X-42] the stream of an answer ends with the token too', async () => {
    const token = await mint();
    rig.upstream.obey((request) =>
      request.method === 'tools/call'
        ? {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: [': open\n\n'],
            ending: 'hold',
          }
        : undefined,
    );
    const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
    const reply = await post(rig.as(token), JSON.stringify(parts.body), parts.headers);
    expect(reply.status).toBe(200);
    expect(reply.messages).toEqual([]);
    const outcome = async () => (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome');
    await expect.poll(async () => (await outcome())?.['decision'].reasons).toContain('token-expired');
    expect(rig.upstream.uses().at(-1)?.isAborted).toBe(true);
    rig.upstream.repent();
  }, 15_000);
});
