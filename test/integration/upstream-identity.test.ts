// The assertion that tells an upstream who calls, verified as the upstream would: with the keys that the
// gateway publishes and nothing else.

import { createRemoteJWKSet, decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { decisionOf, linesOf } from '../support/gateway.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, openSession, post, readReply, statelessParts } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const HEADER = 'sallyport-assertion';

describe('the assertion', () => {
  const rig = sharedGateway({ upstream: ['identity: {}', 'pinning: {maxAge: 10m}'] });
  afterEach(() => rig.upstream.forget());

  function verify(request: HostileRequest | undefined): Promise<{ readonly payload: JWTPayload }> {
    const keys = createRemoteJWKSet(new URL('/.well-known/sallyport/jwks.json', rig.gateway.publicUrl));
    return jwtVerify(request?.headers[HEADER] ?? '', keys, {
      typ: 'sallyport-assertion+jwt',
      algorithms: ['EdDSA'],
      issuer: rig.gateway.publicUrl,
      audience: rig.upstream.url,
      requiredClaims: ['sub', 'sub_iss', 'client_id', 'jti', 'iat', 'exp'],
    });
  }

  it('[CRD-10] tells who calls, for which decision, for a minute', async () => {
    const token = await rig.gateway.token('target', {
      sub: 'bob',
      client_id: 'app',
      act: { sub: 'agent', act: { sub: 'tool', iss: 'https://tools.example' } },
    });
    const reply = await callStateless(rig.as(token), 'read_record', { id: 'one' });
    expect(reply.status).toBe(200);
    const { payload } = await verify(rig.upstream.uses()[0]);
    const { iat = 0, exp = 0, jti, ...claims } = payload;
    expect(exp - iat).toBe(60);
    expect(claims).toEqual({
      iss: rig.gateway.publicUrl,
      aud: rig.upstream.url,
      sub: 'bob',
      sub_iss: rig.gateway.issuer.issuer,
      client_id: 'app',
      decision: jti,
      act: { sub: 'agent', act: { sub: 'tool', iss: 'https://tools.example' } },
    });
    const lines = await linesOf(rig.gateway, String(jti), 2);
    expect(lines[0]).toMatchObject({ actor: { sub: 'bob', client_id: 'app' } });
    expect(JSON.stringify(lines)).not.toContain(token.split('.')[2]);
  });

  it('[CRD-10] goes along with every request of a caller, under an id of its own', async () => {
    const token = await rig.gateway.token('target', { sub: 'carol' });
    const session = await openSession(rig.as(token));
    await session.call('read_record', { id: 'one' });
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${token}`, 'mcp-session-id': session.id };
    await fetch(rig.access.url, { headers, signal: gone.signal });
    gone.abort();
    await session.end();
    await vi.waitFor(
      () => expect(rig.upstream.seen().some(({ httpMethod }) => httpMethod === 'DELETE')).toBe(true),
      PATIENT,
    );
    const seen = rig.upstream.seen();
    const payloads = (await Promise.all(seen.map(verify))).map(({ payload }) => payload);
    expect(new Set(payloads.map(({ sub }) => sub))).toEqual(new Set(['carol']));
    expect(new Set(payloads.map(({ jti }) => jti)).size).toBe(seen.length);
    expect(new Set(seen.map(({ httpMethod }) => httpMethod))).toEqual(new Set(['POST', 'GET', 'DELETE']));
  });

  it('[CRD-10] of what the gateway asks for itself has the gateway as subject', async () => {
    await rig.gateway.approvePins();
    const listed = rig.upstream.seen();
    expect(listed.length).toBeGreaterThan(1);
    // The command has no key of the run's own: who it is for can be read, and is verified elsewhere.
    const claims = listed.map(({ headers }) => JSON.parse(atob(headers[HEADER]?.split('.')[1] ?? '')) as JWTPayload);
    for (const claim of claims) {
      expect(claim).toMatchObject({ sub: rig.gateway.publicUrl, client_id: 'sallyport' });
    }
  });

  it('[CRD-10] is signed by a key that signs nothing else', async () => {
    await callStateless(rig.access, 'read_record', { id: 'one' });
    const { kid } = decodeProtectedHeader(rig.upstream.uses()[0]?.headers[HEADER] ?? '');
    const audit = await rig.gateway.audit();
    const started = audit.find(({ detail }) => detail?.event === 'started');
    const response = await fetch(new URL('/.well-known/sallyport/jwks.json', rig.gateway.publicUrl));
    const { keys } = (await response.json()) as {
      readonly keys: readonly { readonly kid: string; readonly x: string }[];
    };
    const published = keys.find((key) => key.kid === kid);
    expect(published).toBeDefined();
    expect(published?.x).not.toBe(started?.['detail'].public_key);
  });

  it.each(['Sallyport-Assertion', 'sallyport-assertion', 'SALLYPORT-ASSERTION'])(
    '[CRD-10] [CRD-11] replaces what a client sends under its name: %s',
    async (name) => {
      const { headers, body } = statelessParts('tools/call', {
        name: 'read_record',
        arguments: { id: 'one' },
      });
      const reply = await post(rig.access, JSON.stringify(body), { ...headers, [name]: 'forged' });
      expect(reply.status).toBe(200);
      const request = rig.upstream.uses()[0];
      expect(request?.rawHeaders.filter(([sent]) => sent.toLowerCase() === HEADER)).toHaveLength(1);
      await verify(request);
    },
  );

  it('[CRD-13] is a control of its own', async () => {
    const armed = 'sallyport_controls{control="upstream-identity",state="armed"} 1';
    const off = 'sallyport_controls{control="upstream-credentials",state="off"} 1';
    const metrics = await rig.gateway.metrics();
    expect(metrics).toContain(armed);
    expect(metrics).toContain(off);
  });

  it('[CRD-10] is not there where nothing is sent on', async () => {
    const response = await fetch(rig.access.url, { method: 'POST' });
    const reply = await readReply(response);
    expect(reply.status).toBeGreaterThanOrEqual(400);
    expect(rig.upstream.seen()).toEqual([]);
    expect(decisionOf(reply).id).not.toBe('');
  });
});

describe('an assertion under another name', () => {
  it('[CRD-10] is as long as configured, under the configured header', () =>
    withGateway(
      {
        upstream: ['identity: {header: X-Caller, ttl: 5s}', 'pinning: {maxAge: 10m}'],
      },
      async (rig) => {
        await callStateless(rig.access, 'read_record', { id: 'one' });
        const sent = rig.upstream.uses()[0]?.headers ?? {};
        expect(sent[HEADER]).toBeUndefined();
        const [, claims = ''] = (sent['x-caller'] ?? '').split('.');
        const { iat, exp } = JSON.parse(atob(claims)) as { iat: number; exp: number };
        expect(exp - iat).toBe(5);
      },
    ));
});
