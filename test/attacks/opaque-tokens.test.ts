// Cases 38, 40 to 42, 46 and 47 for tokens that only their issuer can read: what it does not vouch for is
// refused, what it cannot answer waits, and a flood of them does not become a flood of questions.

import { afterEach, describe, expect, it } from 'vitest';
import {
  expectCallPasses,
  expectLoginLine,
  expectLoginRefused,
  expectNothingForwarded,
  expectRefusedLines,
} from '../support/gateway.js';
import { makeSecret } from '../support/secrets.js';
import type { Misbehaviour } from '../support/tokens.js';
import { callStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const MAX_PER_SECOND = 20;
/** After an outage nothing is asked for this long, and what was answered is kept no longer. */
const OUTAGE_PAUSE_MS = 1_000;
const ISSUER = [
  `introspection: {clientId: gateway, clientSecret: {env: CLIENT}, cacheTtl: 1s, maxPerSecond: ${MAX_PER_SECOND}}`,
];

describe('a token that only its issuer can read', () => {
  const secret = makeSecret();
  const good = makeSecret();
  const rig = sharedGateway({ issuer: ISSUER, env: { CLIENT: secret } });
  afterEach(() => rig.gateway.issuer.misbehave('none'));

  const asked = (): number => rig.gateway.issuer.hits.get('/introspect') ?? 0;

  /** Answers about every token: good claims, changed. */
  function say(changed: Readonly<Record<string, unknown>> = {}): void {
    rig.gateway.issuer.answerAbout(() => {
      const exp = Math.floor(Date.now() / 1000) + 60;
      const claims = { sub: 'alice', client_id: 'ide', aud: rig.access.url, exp, scope: 'a' };
      return { active: true, ...claims, act: { sub: 'agent' }, ...changed };
    });
  }

  it('[X-41, TOK-01] calls where its issuer vouches for it, and is recorded as its caller', async () => {
    say();
    const reply = await expectCallPasses(rig, good);
    const line = (await rig.gateway.audit()).findLast((one) => one['type'] === 'mcp.decision');
    expect(line?.['actor']).toMatchObject({
      iss: rig.gateway.issuer.issuer,
      sub: 'alice',
      client_id: 'ide',
      act: [{ iss: null, sub: 'agent' }],
    });
    expect(reply.text).not.toContain(good);
  });

  it.each([
    ['not active', { active: false }, 'token-signature'],
    ['for another resource', { aud: 'https://other.example/mcp' }, 'token-audience'],
    ['for nothing', { aud: undefined }, 'token-audience'],
    ['of another issuer', { iss: 'https://other.example' }, 'token-issuer'],
    ['without an end', { exp: undefined }, 'token-malformed'],
    ['that has ended', { exp: 1 }, 'token-expired'],
    ['for ten years', { exp: 4_000_000_000 }, 'token-lifetime'],
    ['for refreshing', { token_type: 'refresh_token' }, 'token-type'],
    ['for a client to read', { nonce: 'n' }, 'token-type'],
    ['bound to a key', { cnf: { jkt: 'x' } }, 'token-binding'],
    ['without a subject', { sub: undefined }, 'token-malformed'],
    ['with a chain of actors that is none', { act: 'agent' }, 'token-malformed'],
  ] as const)('[X-40, X-41, X-42] is a 401: %s', async (_title, changed, reason) => {
    say(changed);
    await expectLoginRefused(rig, makeSecret(), reason);
  });

  it('[X-44, TOK-04] is shown to no issuer where it names a stranger', async () => {
    say();
    const before = asked();
    const foreign = await rig.gateway.token('target', { iss: 'https://other.example' });
    await expectLoginRefused(rig, foreign, 'token-issuer');
    expect(asked()).toBe(before);
  });

  it.each(['x'.repeat(15), 'x'.repeat(9000), `${makeSecret()}, x`, `${makeSecret()}\u00e9`])(
    '[X-45, X-46, TOK-10] is not asked about where it is no token (case %#)',
    async (token) => {
      say();
      const before = asked();
      const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
      expect([401, 431]).toContain(reply.status);
      expect(asked()).toBe(before);
    },
  );

  it.each(['down', 'error', 'html', 'huge', 'redirect'] satisfies Misbehaviour[])(
    '[X-51, TOK-03] is a 503 while its issuer is %s',
    async (how) => {
      say();
      rig.gateway.issuer.misbehave(how, 'introspection');
      rig.upstream.forget();
      const reply = await callStateless(rig.as(makeSecret()), 'read_record', { id: 'one' });
      expect(reply.status).toBe(503);
      expect(reply.headers.get('www-authenticate')).toBeNull();
      await expectLoginLine(rig, reply, 'keys-unavailable');
      expectNothingForwarded(rig);
      rig.gateway.issuer.misbehave('none');
      rig.passTime(OUTAGE_PAUSE_MS);
      expect((await callStateless(rig.as(good), 'read_record', { id: 'one' })).status).toBe(200);
    },
  );

  // That each of these outages degrades the control is tested beside it (test/unit/auth/introspection.test.ts).
  it('[X-51, TOK-03] is told by the controls while its issuer is out', async () => {
    const state = (name: string): string => `sallyport_controls{control="authn",state="${name}"} 1`;
    say();
    rig.gateway.issuer.misbehave('down', 'introspection');
    await callStateless(rig.as(makeSecret()), 'read_record', { id: 'one' });
    await expect.poll(() => rig.gateway.metrics()).toContain(state('degraded'));
    rig.gateway.issuer.misbehave('none');
    rig.passTime(OUTAGE_PAUSE_MS);
    await expectCallPasses(rig, makeSecret());
    await expect.poll(() => rig.gateway.metrics()).toContain(state('armed'));
    for (const error of ['', 'unavailable'])
      expect(await rig.gateway.metrics()).toMatch(
        new RegExp(`sallyport_introspection_duration_seconds_count\\{issuer="test",error_type="${error}"\\} [1-9]`),
      );
  });

  it('[X-38, TOK-02] floods ask no more than the rate, and who is known goes on', async () => {
    say();
    await expect.poll(async () => (await callStateless(rig.as(good), 'read_record', { id: 'one' })).status).toBe(200);
    rig.gateway.issuer.answerAbout((token) =>
      token === good
        ? {
            active: true,
            sub: 'alice',
            client_id: 'ide',
            aud: rig.access.url,
            exp: Math.floor(Date.now() / 1000) + 60,
          }
        : { active: false },
    );
    const [before, startedAt] = [asked(), Date.now()];
    const statuses = new Set<number>();
    for (let round = 0; round < 10; round += 1) {
      const flood = Array.from({ length: 20 }, () => callStateless(rig.as(makeSecret()), 'read_record', { id: 'one' }));
      for (const { status } of await Promise.all(flood)) statuses.add(status);
      expect((await callStateless(rig.as(good), 'read_record', { id: 'one' })).status).toBe(200);
    }
    const seconds = (Date.now() - startedAt) / 1000;
    expect(asked() - before).toBeLessThanOrEqual(MAX_PER_SECOND * (1 + seconds));
    expect([...statuses].sort()).toEqual([401, 503]);
  });

  it('[X-47] stands in no record, goes nowhere, and neither does the secret of the gateway', async () => {
    say();
    const canary = makeSecret();
    await expect.poll(async () => (await callStateless(rig.as(canary), 'read_record', { id: 'one' })).status).toBe(200);
    rig.upstream.forget();
    const reply = await callStateless(rig.as(canary), 'read_record', { id: `see ${canary}` });
    await expectRefusedLines(rig, reply, 'arguments-content');
    expectNothingForwarded(rig);
    const written = [
      JSON.stringify(await rig.gateway.audit()),
      rig.gateway.log(),
      await rig.gateway.metrics(),
      JSON.stringify(rig.upstream.seen()),
    ].join('\n');
    for (const trace of [canary, good, secret]) expect(written).not.toContain(trace);
  });
});
