// Who the upstream is: real handshakes of a running gateway with servers whose certificates a test's own
// authority issues.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { decisionOf, linesOf, type RunningGateway, startTestGateway } from '../support/gateway.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import { makeSecretFiles, type SecretFiles } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { type Authority, type CertifiedKey, makeAuthority, startTlsFront, type TlsFront } from '../support/tls.js';
import { callStateless, type Reply, requestStateless } from '../support/wire-client.js';

let authority: Authority;
let files: SecretFiles;
let ca: string;
let upstream: HostileUpstream;
const closing: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = makeAuthority();
  files = await makeSecretFiles();
  ca = await files.write('ca.pem', authority.cert);
  upstream = await startHostileUpstream();
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await upstream.close();
  await files.close();
});

function pinOf({ spki }: CertifiedKey): string {
  return `"sha256:${createHash('sha256').update(spki).digest('hex')}"`;
}

async function front(own: CertifiedKey, clientCa?: string): Promise<TlsFront> {
  const started = await startTlsFront(upstream.url, own, clientCa);
  closing.push(() => started.close());
  return started;
}

async function gatewayFor(
  { port }: TlsFront,
  tls: string,
  options: { readonly pin?: boolean; readonly more?: readonly string[] } = {},
): Promise<RunningGateway> {
  const gateway = await startTestGateway({
    pin: options.pin ?? true,
    upstreams: [
      {
        name: 'target',
        url: `https://127.0.0.1:${port}/mcp`,
        more: [`tls: {${tls}}`, ...(options.more ?? [])],
      },
    ],
  });
  closing.push(() => gateway.close());
  return gateway;
}

async function call(gateway: RunningGateway): Promise<Reply> {
  const token = await gateway.token('target');
  return callStateless({ url: gateway.url('target'), token }, 'read_record', { id: 'one' });
}

/** A gateway whose upstream is not whom it should be: nothing passes, and the log says why. */
async function expectRefused(server: TlsFront, tls: string, code?: string): Promise<void> {
  const gateway = await gatewayFor(server, tls, { pin: false, more: ['pinning: {mode: off}'] });
  upstream.forget();
  const access = { url: gateway.url('target'), token: await gateway.token('target') };
  const reply = await requestStateless(access, 'server/discover');
  expect(reply.status).toBe(502);
  const lines = await linesOf(gateway, decisionOf(reply).id, 2);
  expect(lines.at(-1)?.['decision'].reasons).toContain('upstream-unavailable');
  expect(upstream.seen()).toEqual([]);
  expect(await gateway.metrics()).toContain('sallyport_upstream_up{upstream="target"} 0');
  if (code === undefined) return;
  expect(gateway.log()).toContain('connection to an upstream failed');
  expect(gateway.log()).toContain(code);
}

describe('the certificate of an upstream', () => {
  it('[CRD-01] is taken where the configured authority issued it for this name', async () => {
    const server = await front(authority.issue());
    const gateway = await gatewayFor(server, `ca: ${ca}`);
    expect((await call(gateway)).status).toBe(200);
  });

  it('[CRD-01] is refused where another authority issued it', async () => {
    const server = await front(makeAuthority('Other Authority').issue());
    await expectRefused(server, `ca: ${ca}`, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });

  it('[CRD-01] is refused where only the system is trusted', async () => {
    const server = await front(authority.issue());
    await expectRefused(server, '', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE');
  });

  it('[CRD-01] is refused where it is for another name', async () => {
    const server = await front(authority.issue({ names: ['other.internal'] }));
    await expectRefused(server, `ca: ${ca}`, 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  it('[CRD-01] is refused where it has expired', async () => {
    const server = await front(authority.issue({ notAfter: new Date(Date.now() - 60_000) }));
    await expectRefused(server, `ca: ${ca}`, 'CERT_HAS_EXPIRED');
  });

  it('[CRD-01] is held to the configured name, whatever the URL says', async () => {
    const server = await front(authority.issue({ names: ['mcp.internal'] }));
    const gateway = await gatewayFor(server, `ca: ${ca}, serverName: mcp.internal`);
    expect((await call(gateway)).status).toBe(200);
    const honest = await front(authority.issue());
    const tls = `ca: ${ca}, serverName: mcp.internal`;
    await expectRefused(honest, tls, 'ERR_TLS_CERT_ALTNAME_INVALID');
  });
});

describe('the pinned key of an upstream', () => {
  it('[CRD-01] lets in the server that has one of them, and no other of the same authority', async () => {
    const [first, second, foreign] = [authority.issue(), authority.issue(), authority.issue()];
    const server = await front(first);
    const pins = `pins: [${pinOf(first)}, ${pinOf(second)}]`;
    const gateway = await gatewayFor(server, `ca: ${ca}, ${pins}`);
    expect((await call(gateway)).status).toBe(200);
    server.show(second);
    await vi.waitFor(async () => expect((await call(gateway)).status).toBe(200), PATIENT);
    server.show(foreign);
    upstream.forget();
    const reply = await call(gateway);
    expect(reply.status).toBe(502);
    expect(upstream.uses()).toEqual([]);
    expect(gateway.log()).toContain('the key of the server is not pinned');
  });
});

describe('the certificate of the gateway', () => {
  it('[CRD-02] is shown to the upstream that asks for it', async () => {
    const own = authority.issue({ commonName: 'sallyport' });
    const server = await front(authority.issue(), authority.cert);
    const cert = await files.write('client.pem', own.cert);
    const key = await files.write('client.key', own.key);
    const gateway = await gatewayFor(server, `ca: ${ca}, cert: ${cert}, key: {file: ${key}}`);
    expect((await call(gateway)).status).toBe(200);
    expect(new Set(server.clients)).toEqual(new Set(['sallyport']));
  });

  it('[CRD-02] is missed by an upstream that gets none', async () => {
    const server = await front(authority.issue(), authority.cert);
    // TLS 1.3 says so after the handshake, in answer to the first request.
    await expectRefused(server, `ca: ${ca}`);
    expect(server.clients).toEqual([]);
  });

  it('[CRD-02] is another from the moment its files are others', async () => {
    const server = await front(authority.issue(), authority.cert);
    const [one, two] = ['one', 'two'].map((commonName) => authority.issue({ commonName }));
    const cert = await files.write('rotated.pem', one?.cert ?? '');
    const key = await files.write('rotated.key', one?.key ?? '');
    const gateway = await gatewayFor(server, `ca: ${ca}, cert: ${cert}, key: {file: ${key}}`);
    expect((await call(gateway)).status).toBe(200);
    await files.write('rotated.key', two?.key ?? '');
    // Half a rotation is a mistake, and the running version stays.
    expect((await gateway.reload()).map(({ rule }) => rule)).toContain('certificate');
    expect((await call(gateway)).status).toBe(200);
    expect(server.clients).not.toContain('two');
    await files.write('rotated.pem', two?.cert ?? '');
    const diagnostics = await gateway.reload();
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect((await call(gateway)).status).toBe(200);
    expect(server.clients).toContain('two');
  });
});
