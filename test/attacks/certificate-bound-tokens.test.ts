// Case 49: a token that is bound to a client certificate, over a connection that did not prove it. Real TLS
// with a test authority; no header can stand in for what a connection proves.

import { hash } from 'node:crypto';
import { request as ask, type RequestOptions } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { beforeEach, describe, expect, it } from 'vitest';
import { linesOf, writeFilesBeside } from '../support/gateway.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { PATIENT } from '../support/timing.js';
import { type Authority, type CertifiedKey, makeAuthority } from '../support/tls.js';
import { makeProofHolder } from '../support/tokens.js';
import { type HeaderLines, statelessParts } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const CALL = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
const TEXT = JSON.stringify(CALL.body);

type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

const thumbprintOf = ({ der }: CertifiedKey): string => hash('sha256', der, 'base64url');

let authority: Authority;
let stranger: Authority;
let alice: CertifiedKey;
let mallory: CertifiedKey;

const upstream = shared(async () => {
  [authority, stranger] = [makeAuthority(), makeAuthority()];
  [alice, mallory] = [authority.issue(), authority.issue()];
  return startHostileUpstream();
});
const gateway = sharedGateway(() => {
  const { cert, key } = authority.issue();
  const quiet = 'pinning: {maxAge: 10m}';
  return {
    tls: { cert, key, clientCa: authority.cert },
    upstreams: [
      { name: 'target', url: upstream.url, more: [quiet] },
      { name: 'strict', url: upstream.url, more: [quiet, 'binding: mtls'] },
      { name: 'either', url: upstream.url, more: [quiet, 'binding: any'] },
    ],
  };
});
beforeEach(() => upstream.forget());

/** One request over a connection of its own, with this certificate or none. */
function send(
  url: string,
  headers: HeaderLines,
  client?: Pick<CertifiedKey, 'cert' | 'key'>,
  options: RequestOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = ask(
      url,
      {
        method: 'POST',
        agent: false,
        ca: authority.cert,
        ...(client === undefined ? {} : { cert: client.cert, key: client.key }),
        headers: {
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
          ...CALL.headers,
          ...headers,
        },
        ...options,
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(options.method === 'GET' ? undefined : TEXT);
  });
}

const boundTo = (client: CertifiedKey, name = 'target'): Promise<string> =>
  gateway.token(name, { cnf: { 'x5t#S256': thumbprintOf(client) } });
const bearer = (token: string): HeaderLines => ({ authorization: `Bearer ${token}` });

async function expectRefused(answer: Answer): Promise<void> {
  expect(answer.status).toBe(401);
  expect(answer.headers['www-authenticate']).toContain('error="invalid_token"');
  const id = String(answer.headers['sallyport-decision']);
  const [line] = await linesOf(gateway, id, 1);
  expect(line).toMatchObject({ type: 'auth.failure', decision: { reasons: ['token-binding'] } });
  expect(upstream.uses()).toEqual([]);
}

describe('[X-49] a token that is bound to a certificate', () => {
  it('[BND-16] passes over a connection that proved it, and is on record as bound', async () => {
    const token = await boundTo(alice);
    expect((await send(gateway.url('target'), bearer(token), alice)).status).toBe(200);
    const lines = await gateway.audit();
    expect(lines.some((line) => line['actor']?.token?.binding === 'mtls')).toBe(true);
    const [seen] = upstream.uses();
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain(token);
  });

  it('[BND-17] is refused without a certificate and with another one, known before or not', async () => {
    const token = await boundTo(alice);
    const url = gateway.url('target');
    await expectRefused(await send(url, bearer(token)));
    await expectRefused(await send(url, bearer(token), mallory));
    expect((await send(url, bearer(token), alice)).status).toBe(200);
    upstream.forget();
    await expectRefused(await send(url, bearer(token)));
    await expectRefused(await send(url, bearer(token), mallory));
  });

  it('[BND-17] is refused with a certificate that no authority of ours signed', async () => {
    const own = stranger.issue();
    const token = await boundTo(own);
    const url = gateway.url('target');
    await expectRefused(await send(url, bearer(token), own));
    const expired = authority.issue({ notAfter: new Date(Date.now() - 60_000) });
    await expectRefused(await send(url, bearer(await boundTo(expired)), expired));
  });

  it('[BND-18] is refused where a header says what the connection did not prove', async () => {
    const token = await boundTo(alice);
    const pem = encodeURIComponent(alice.cert);
    const der = alice.der.toString('base64');
    for (const lie of [
      { 'x-forwarded-client-cert': `Cert="${pem}"` },
      { 'x-ssl-client-cert': pem, 'x-ssl-client-verify': 'SUCCESS' },
      { 'client-cert': `:${der}:`, 'client-cert-chain': `:${der}:` },
      { 'x-client-cert': der, 'x-forwarded-tls-client-cert': der },
    ] as readonly HeaderLines[]) {
      await expectRefused(await send(gateway.url('target'), { ...bearer(token), ...lie }));
    }
  });

  it('[BND-17] is refused by the scheme of proofs', async () => {
    const token = await boundTo(alice);
    const url = gateway.url('target');
    const proof = await (await makeProofHolder()).prove('POST', url, { token });
    const headers = { authorization: `DPoP ${token}`, dpop: proof };
    await expectRefused(await send(url, headers, alice));
  });

  it('[BND-19] has to prove both where it names a key and a certificate', async () => {
    const holder = await makeProofHolder();
    const url = gateway.url('target');
    const cnf = { jkt: holder.thumbprint, 'x5t#S256': thumbprintOf(alice) };
    const token = await gateway.token('target', { cnf });
    const proved = async (): Promise<HeaderLines> => ({
      authorization: `DPoP ${token}`,
      dpop: await holder.prove('POST', url, { token }),
    });
    expect((await send(url, await proved(), alice)).status).toBe(200);
    upstream.forget();
    await expectRefused(await send(url, await proved()));
    await expectRefused(await send(url, await proved(), mallory));
    await expectRefused(await send(url, bearer(token), alice));
  });

  it('[BND-20] is what an upstream may demand: nothing else passes there', async () => {
    const url = gateway.url('strict');
    expect((await send(url, bearer(await boundTo(alice, 'strict')), alice)).status).toBe(200);
    upstream.forget();
    await expectRefused(await send(url, bearer(await gateway.token('strict')), alice));
    const holder = await makeProofHolder();
    const token = await gateway.token('strict', { cnf: { jkt: holder.thumbprint } });
    const dpop = await holder.prove('POST', url, { token });
    await expectRefused(await send(url, { authorization: `DPoP ${token}`, dpop }, alice));
  });

  it('[BND-20] passes beside tokens with proofs where any binding will do', async () => {
    const url = gateway.url('either');
    expect((await send(url, bearer(await boundTo(alice, 'either')), alice)).status).toBe(200);
    const holder = await makeProofHolder();
    const token = await gateway.token('either', { cnf: { jkt: holder.thumbprint } });
    const dpop = await holder.prove('POST', url, { token });
    expect((await send(url, { authorization: `DPoP ${token}`, dpop })).status).toBe(200);
    upstream.forget();
    await expectRefused(await send(url, bearer(await gateway.token('either'))));
    const { headers } = await send(url, {});
    expect(headers['www-authenticate']).toMatch(/^Bearer resource_metadata="[^"]+", DPoP resource_/);
  });

  it('[BND-20] an unbound token passes with or without a certificate where none is demanded', async () => {
    const url = gateway.url('target');
    const token = await gateway.token('target');
    for (const client of [undefined, alice]) expect((await send(url, bearer(token), client)).status).toBe(200);
  });

  it('[BND-20] metadata says what may and what must be bound, and needs no certificate', async () => {
    const at = (name: string): string => `${gateway.publicUrl}/.well-known/oauth-protected-resource/${name}`;
    const read = async (name: string): Promise<unknown> =>
      JSON.parse((await send(at(name), {}, undefined, { method: 'GET' })).text);
    expect(await read('target')).toMatchObject({
      tls_client_certificate_bound_access_tokens: true,
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256']),
    });
    expect(await read('strict')).not.toHaveProperty('dpop_signing_alg_values_supported');
  });
});

describe('TLS of the data listener', () => {
  const port = (): number => Number(new URL(gateway.publicUrl).port);

  function shake(options: object): Promise<string> {
    return new Promise((resolve) => {
      const socket: TLSSocket = connect({ port: port(), host: '127.0.0.1', ca: authority.cert, ...options }, () => {
        resolve(`${socket.getProtocol()} ${socket.alpnProtocol}`);
        socket.destroy();
      });
      socket.on('error', () => resolve('refused'));
    });
  }

  it('[BND-21] speaks 1.2 and 1.3, HTTP/1.1 alone, and no weak cipher', async () => {
    expect(await shake({ ALPNProtocols: ['h2', 'http/1.1'] })).toBe('TLSv1.3 http/1.1');
    const old = { maxVersion: 'TLSv1.2', minVersion: 'TLSv1' };
    expect(await shake({ ...old, ALPNProtocols: ['http/1.1'] })).toBe('TLSv1.2 http/1.1');
    expect(await shake({ ALPNProtocols: ['h2'] })).toBe('refused');
    const weak = 'DEFAULT@SECLEVEL=0';
    expect(await shake({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: weak })).toBe('refused');
    for (const ciphers of ['AES128-SHA', 'ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES128-SHA256'])
      expect(await shake({ ...old, ciphers }), ciphers).toBe('refused');
  });

  it('[BND-21] answers no plain HTTP', async () => {
    await expect(fetch(gateway.url('target').replace('https:', 'http:'))).rejects.toThrow();
  });

  it('[BND-22] takes up a renewed certificate by itself, and keeps the old one beside a bad file', async () => {
    const serial = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect({ port: port(), host: '127.0.0.1', ca: authority.cert }, () => {
          resolve(socket.getPeerCertificate().serialNumber);
          socket.destroy();
        });
        socket.on('error', reject);
      });
    const before = await serial();
    const renewed = authority.issue();
    await writeFilesBeside(gateway.folder, { tls: renewed });
    await expect.poll(serial, PATIENT).not.toBe(before);
    const kept = await serial();
    await writeFilesBeside(gateway.folder, { tls: { ...renewed, key: alice.key } });
    expect((await gateway.reload()).map(({ message }) => message)).toContain(
      'the file "./data.key" holds a private key that is not that of the certificate',
    );
    await sleep(50);
    expect(await serial()).toBe(kept);
    await writeFilesBeside(gateway.folder, { tls: renewed });
    const errors = (await gateway.reload()).filter(({ severity }) => severity === 'error');
    expect(errors).toEqual([]);
    expect(gateway.log()).not.toContain('PRIVATE KEY');
  });

  it('[BND-22] says that it is armed, and what would need a restart', async () => {
    const metrics = await gateway.metrics();
    expect(metrics).toContain('sallyport_controls{control="tls",state="armed"} 1');
    const expires = /^sallyport_certificate_expiry_timestamp_seconds\{use="(listener(?:-ca)?)",name="data"\} (\S+)$/gm;
    const found = [...metrics.matchAll(expires)];
    expect(found.map(([, use]) => use)).toEqual(['listener', 'listener-ca']);
    for (const [, , atSeconds] of found) expect(Number(atSeconds)).toBeGreaterThan(Date.now() / 1000);
  });
});
