// Case 84 where plain http was accepted in a private network: names that resolve elsewhere, metadata and redirects that
// lead inside, and the gateway's own listeners. What is accepted is served, and its control says what it is worth.

import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { onMethod } from '../support/hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import { installPrivateNetwork, type PrivateNetwork } from '../support/private-network.js';
import { makeSecret } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { startTestIssuer, startTokenServer, type TestIssuer } from '../support/tokens.js';
import { callStateless } from '../support/wire-client.js';

const WIKI = '10.77.0.5';
const ACCEPTED = ['network: private', 'plaintext: accepted'];
const PINNED_SELDOM = 'pinning: {maxAge: 10m}';

let wikiAddresses: readonly string[] = [WIKI];
let network: PrivateNetwork;
/** What nobody may be led to: on loopback, and so at every address of the private network. */
let victim: Server;
let victimPort = 0;
let victimConnections = 0;

beforeAll(async () => {
  network = installPrivateNetwork({
    'wiki.test': () => wikiAddresses,
    'idp.test': () => ['10.77.0.6'],
    'as.test': () => ['10.77.0.7'],
    'inside.test': () => ['10.77.0.9'],
    'both.test': () => ['10.77.0.6', '93.184.216.34'],
    'self.test': () => ['127.0.0.1'],
  });
  victim = createServer((_request, response) => response.end('{"keys":[]}'));
  victim.on('connection', () => {
    victimConnections += 1;
  });
  await new Promise<void>((resolve) => victim.listen(0, '127.0.0.1', resolve));
  victimPort = (victim.address() as AddressInfo).port;
});
afterAll(() => {
  victim.close();
  network.restore();
});

/** What the log says of a control. */
function controlOf(gateway: RunningGateway, control: string) {
  const lines = gateway
    .log()
    .split('\n')
    .filter((line) => line.includes(`"control":"${control}"`));
  const log = lines.at(-1) ?? '{}';
  return { state: (JSON.parse(log) as { readonly state?: string }).state, log };
}

describe('a plaintext upstream', () => {
  let upstream: HostileUpstream;
  let gateway: RunningGateway;
  let call: () => ReturnType<typeof callStateless>;
  beforeAll(async () => {
    upstream = await startHostileUpstream();
    const url = upstream.url.replace('127.0.0.1', 'wiki.test');
    gateway = await startTestGateway({
      upstreams: [{ name: 'wiki', url, more: [...ACCEPTED, PINNED_SELDOM] }],
    });
    const access = { url: gateway.url('wiki'), token: await gateway.token('wiki') };
    call = () => callStateless(access, 'read_record', { id: 'one' });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  it('[A-12] is served where it was accepted, at its private address', async () => {
    expect((await call()).status).toBe(200);
    expect(new Set(network.dialled())).toEqual(new Set([WIKI]));
    const control = controlOf(gateway, 'upstream-connection:wiki');
    expect(control.state).toBe('degraded');
    expect(control.log).toContain('plain http in a private network');
    expect(control.log).toContain('"level":"warn"');
  });

  it.each([
    ['a public address', ['93.184.216.34']],
    ['loopback', ['127.0.0.1']],
    ['a metadata address', ['169.254.169.254']],
    ['another metadata address', ['fd00:ec2::254']],
    ['carrier-grade NAT', ['100.100.100.200']],
    ['its own and a public address', [WIKI, '93.184.216.34']],
    ['its own and a metadata address', [WIKI, '169.254.169.254']],
    ['no address', []],
  ])('[A-12] [X-14] is not followed to %s', async (_, addresses) => {
    upstream.obeyOnce(onMethod('tools/call', () => ({ kind: 'destroy' })));
    expect((await call()).status).toBe(502);
    wikiAddresses = addresses;
    const before = network.dialled().length;
    upstream.forget();
    const reply = await call();
    wikiAddresses = [WIKI];
    expect(reply.status).toBe(502);
    expect(upstream.uses()).toEqual([]);
    expect(network.dialled()).toHaveLength(before);
    expect((await call()).status).toBe(200);
  });
});

describe('a plaintext issuer', () => {
  /** Where the metadata of the issuer says that its keys are; the honest place where absent. */
  const LEADS: readonly (readonly [string, () => string])[] = [
    ['another private address', () => `http://10.77.0.9:${victimPort}/keys`],
    ['another port of its host', () => `http://idp.test:${victimPort}/keys`],
    ['its host by https', () => `https://idp.test:${victimPort}/keys`],
    ['a private address by https', () => `https://10.77.0.9:${victimPort}/keys`],
    ['a private name by https', () => `https://inside.test:${victimPort}/keys`],
    ['loopback', () => `http://127.0.0.1:${victimPort}/keys`],
    ['a metadata address', () => 'http://169.254.169.254/latest/meta-data/'],
    ['another metadata address', () => 'http://[fd00:ec2::254]/keys'],
    ['a file', () => 'file:///etc/passwd'],
  ];
  const issuers: TestIssuer[] = [];
  let upstream: HostileUpstream;
  let gateway: RunningGateway;
  const statusOf = async (index: number): Promise<number> => {
    const token = await issuers[index]?.mint(gateway.url('wiki'));
    const access = { url: gateway.url('wiki'), token };
    return (await callStateless(access, 'read_record', { id: 'one' })).status;
  };
  const HONEST = LEADS.length;
  const REDIRECTS = HONEST + 1;
  const REBINDS = HONEST + 2;

  beforeAll(async () => {
    for (const [, lead] of LEADS) {
      const issuer = await startTestIssuer({ host: 'idp.test' });
      issuer.describe({ jwks_uri: lead() });
      issuers.push(issuer);
    }
    issuers.push(await startTestIssuer({ host: 'idp.test' }));
    const redirecting = await startTestIssuer({ host: 'idp.test' });
    redirecting.misbehave('redirect');
    issuers.push(redirecting, await startTestIssuer({ host: 'both.test' }));
    upstream = await startHostileUpstream();
    const names = issuers.map((_, index) => `i${index}`);
    gateway = await startTestGateway({
      upstreams: [{ name: 'wiki', url: upstream.url, more: [`issuers: [${names.join(', ')}]`] }],
      issuers: issuers.map(
        ({ issuer }, index) => `i${index}: {issuer: "${issuer}", ${ACCEPTED.join(', ')}, algorithms: [ES256]}`,
      ),
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
    for (const issuer of issuers) await issuer.close();
  });

  it('[A-12] is believed where it was accepted, and its control says what that is worth', async () => {
    expect(await statusOf(HONEST)).toBe(200);
    const control = controlOf(gateway, `authn:i${HONEST}`);
    expect(control.state).toBe('degraded');
    expect(control.log).toContain('whoever controls the private network can mint tokens');
  });

  it.each(LEADS.map(([where], index) => [where, index] as const))(
    '[A-12] [MCP-65] is not followed to %s',
    async (_where, index) => {
      expect(await statusOf(index)).toBe(503);
      expect(issuers[index]?.hits.get('/keys')).toBeUndefined();
      expect(victimConnections).toBe(0);
      expect(network.dialled()).not.toContain('10.77.0.9');
    },
  );

  it('[A-12] [X-14] is not followed in a redirect', async () => {
    expect(await statusOf(REDIRECTS)).toBe(503);
    expect(controlOf(gateway, `authn:i${REDIRECTS}`).log).toContain('redirected to');
  });

  it('[A-12] is not asked where its name has a public address too', async () => {
    expect(await statusOf(REBINDS)).toBe(503);
    expect(issuers[REBINDS]?.hits.size).toBe(0);
  });

  it('[A-12] sends no token to an introspection endpoint elsewhere', async () => {
    const issuer = await startTestIssuer({ host: 'idp.test' });
    const opaque = makeSecret();
    const options = {
      upstreams: [{ name: 'wiki', url: upstream.url }],
      issuerUrl: issuer.issuer,
      issuer: [...ACCEPTED, 'introspection: {clientId: gateway, clientSecret: {env: CLIENT}}'],
      env: { CLIENT: makeSecret() },
      pin: false,
    };
    issuer.describe({ introspection_endpoint: `http://10.77.0.9:${victimPort}/introspect` });
    const led = await startTestGateway(options);
    const access = { url: led.url('wiki'), token: opaque };
    expect((await callStateless(access, 'read_record', { id: 'one' })).status).toBe(503);
    await led.close();
    expect(victimConnections).toBe(0);
    issuer.describe({});
    const honest = await startTestGateway(options);
    const other = { url: honest.url('wiki'), token: opaque };
    expect((await callStateless(other, 'read_record', { id: 'one' })).status).toBe(401);
    expect(issuer.hits.get('/introspect')).toBe(1);
    await honest.close();
    await issuer.close();
  });
});

describe('a plaintext authorization server', () => {
  it('[A-12] issues credentials for an upstream where it was accepted, and the control says so', async () => {
    const server = await startTokenServer();
    const upstream = await startHostileUpstream();
    const request = [
      `type: client-credentials, tokenEndpoint: "${server.url.replace('127.0.0.1', 'as.test')}"`,
      `${ACCEPTED.join(', ')}, clientId: gateway, clientSecret: {env: CLIENT}, audience: wiki`,
    ].join(', ');
    const gateway = await startTestGateway({
      upstreams: [
        {
          name: 'wiki',
          url: upstream.url,
          more: [`credentials: {${request}}`, `pinning: {maxAge: 10m, credentials: {${request}}}`],
        },
      ],
      env: { CLIENT: makeSecret() },
    });
    const access = { url: gateway.url('wiki'), token: await gateway.token('wiki') };
    expect((await callStateless(access, 'read_record', { id: 'one' })).status).toBe(200);
    expect(server.issued.length).toBeGreaterThan(0);
    expect(network.dialled()).toContain('10.77.0.7');
    await expect
      .poll(() => controlOf(gateway, 'upstream-credentials:wiki'), PATIENT)
      .toMatchObject({ state: 'degraded', log: expect.stringContaining('plain http') });
    await gateway.close();
    await upstream.close();
    await server.close();
  });
});

describe('a sidecar', () => {
  it('[A-12] beside a public publicUrl is served, and its controls are degraded', async () => {
    const upstream = await startHostileUpstream();
    const options = {
      upstreams: [{ name: 'wiki', url: upstream.url }],
      more: 'keys: [{env: KEY}]',
      env: { KEY: '0123456789abcdef'.repeat(4) },
    };
    const inside = await startTestGateway(options);
    expect(controlOf(inside, 'upstream-connection:wiki').state).toBe('armed');
    await inside.close();
    const beside = await startTestGateway({ ...options, publicUrl: 'https://mcp.example.com' });
    const connection = controlOf(beside, 'upstream-connection:wiki');
    expect(connection.state).toBe('degraded');
    expect(connection.log).toContain('on loopback beside a public publicUrl');
    await expect
      .poll(() => controlOf(beside, 'authn:test'), PATIENT)
      .toMatchObject({ state: 'degraded', log: expect.stringContaining('can mint tokens') });
    await beside.close();
    await upstream.close();
  });
});

describe('the gateway itself', () => {
  it('[A-13] is connected to by no name, as an upstream or as an issuer', async () => {
    const upstream = await startHostileUpstream();
    const gateway = await startTestGateway({ upstreams: [{ name: 'wiki', url: upstream.url }] });
    const ports = new Map(gateway.gateway.listening.map(({ listener, port }) => [listener, port]));
    const file = join(gateway.folder, 'gateway.yaml');
    const text = (await readFile(file, 'utf8'))
      .replace(
        'issuers:\n',
        `issuers:\n  mirror: {issuer: "http://self.test:${ports.get('ops')}", network: loopback, algorithms: [ES256]}\n`,
      )
      .replace(
        'upstreams:\n',
        `upstreams:\n  loop: {url: "http://self.test:${ports.get('data')}/wiki", network: loopback, issuers: [test]}\n`,
      );
    await writeFile(file, text);
    await gateway.reload();
    await expect
      .poll(() => gateway.log(), PATIENT)
      .toMatch(/"event":"connection to an upstream failed"|that of a listener of this gateway/);
    expect(gateway.log()).toContain('the address is that of a listener of this gateway');
    await expect
      .poll(() => controlOf(gateway, 'authn:mirror'), PATIENT)
      .toMatchObject({
        state: 'degraded',
        log: expect.stringContaining('leads to a listener of this gateway'),
      });
    expect((await gateway.audit()).filter((line) => line['type'] === 'auth.failure')).toEqual([]);
    await gateway.close();
    await upstream.close();
  });
});
