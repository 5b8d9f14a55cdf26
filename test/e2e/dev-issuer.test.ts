// From a users file to a call: a client of the official SDK is sent to the login page of the development issuer, a person
// types a password there, and the gateway takes the token. What the gateway says of such an issuer, and what it refuses.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startIssuer } from '../../src/dev/issuer.js';
import { hashPassword } from '../../src/dev/passwords.js';
import { openKeyFile, peopleOf, writeUser } from '../../src/dev/users-file.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { createWalkProvider } from '../support/oauth-clients.js';
import { buildProgram, findFreePort, runSallyport, startSallyport } from '../support/processes.js';
import { connectSdkV1, createTransportV1 } from '../support/sdk-clients.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const PASSWORD = ['typed', 'by', 'alice'].join('-');
const CHEAP = { logCost: 10, blockSize: 8, parallel: 1 };
const LONG = 120_000;

let folder: string;
let usersFile: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-dev-issuer-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const issuer = shared(async () => {
  usersFile = join(folder, 'users.yaml');
  await writeUser(usersFile, { name: 'alice', hash: await hashPassword(PASSWORD, CHEAP), groups: ['eng'] });
  const opened = await openKeyFile(join(folder, 'key.pem'));
  if ('why' in opened) throw new Error(opened.why);
  return startIssuer({ users: peopleOf(usersFile, Date.now, () => undefined), key: opened.key });
});
const upstream = shared(() => startHostileUpstream());
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'dev', url: upstream.url }],
  issuerUrl: issuer.issuer,
}));

it('[A-65] a client of the SDK registers, a person logs in on the page, and the client calls and refreshes', async () => {
  const url = gateway.url('dev');
  const provider = createWalkProvider({ redirectUrl: 'http://127.0.0.1:9/callback', refreshes: true });
  await expect(connectSdkV1(url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
  const { authorizationUrl } = provider.facts();
  if (authorizationUrl === undefined) throw new Error('the client asked for no login');
  expect(await (await fetch(authorizationUrl)).text()).toContain(`<code>${url}</code>`);
  const typed = new URLSearchParams({ user: 'alice', password: PASSWORD });
  const answer = await fetch(authorizationUrl, { method: 'POST', body: typed });
  const back = new URL((answer.headers.get('refresh') ?? '').replace('0; url=', ''));
  await createTransportV1(url, { provider }).finishAuth(back.searchParams.get('code') ?? '');
  const { client, close } = await connectSdkV1(url, { provider });
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('read_record');
  await close();
  const { tokens, client: registered } = provider.facts();
  expect(decodeJwt(tokens?.access_token ?? '')).toMatchObject({ sub: 'alice', aud: url, groups: ['eng'] });
  const refresh = async () => {
    const form = { grant_type: 'refresh_token', refresh_token: tokens?.refresh_token ?? '' };
    const body = new URLSearchParams({ ...form, client_id: registered?.client_id ?? '' });
    return (await fetch(`${issuer.issuer}/token`, { method: 'POST', body })).status;
  };
  // Who is taken out of the file refreshes no more.
  const text = await readFile(usersFile, 'utf8');
  await writeFile(usersFile, 'users:\n');
  expect(await refresh()).toBe(400);
  await writeFile(usersFile, text);
  expect(await refresh()).toBe(200);
});

it(
  '[A-68] serve shows that the issuer is for development, loads nothing of it, and takes no token of it for others',
  async () => {
    await buildProgram();
    const config = join(folder, 'config');
    await mkdir(join(config, 'policies'), { recursive: true });
    const [data, ops] = [await findFreePort(), await findFreePort()];
    const textFor = (publicUrl: string) => `version: 1
publicUrl: ${publicUrl}
listeners: {data: {host: 127.0.0.1, port: ${data}}, ops: {host: 127.0.0.1, port: ${ops}}}
keys: [{file: ./key}]
issuers: {dev: {issuer: "${issuer.issuer}", network: loopback, algorithms: [ES256]}}
upstreams: {dev: {url: "${upstream.url}", network: loopback, issuers: [dev]}}
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
`;
    const key = await runSallyport(['keys', 'new']);
    await writeFile(join(config, 'key'), key.stdout, { mode: 0o600 });
    await writeFile(join(config, 'policies/none.policy.yaml'), 'version: 1\npolicy: none\nrules: []\n');
    await writeFile(join(config, 'public.yaml'), textFor('https://mcp.example.com'));
    await writeFile(join(config, 'near.yaml'), textFor(`http://127.0.0.1:${data}`));
    const refused = await runSallyport(['serve', '-c', 'public.yaml'], { cwd: config });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('it is a development issuer')]);
    const coverage = join(folder, 'loaded');
    const served = startSallyport(['serve', '-c', 'near.yaml'], config, { NODE_V8_COVERAGE: coverage });
    await vi.waitFor(() => expect(served.stderr()).toMatch(/authn:dev.*development issuer/s), { timeout: LONG / 2 });
    served.signal('SIGTERM');
    await served.ended;
    const texts = await Promise.all((await readdir(coverage)).map((name) => readFile(join(coverage, name), 'utf8')));
    const loaded = new Set(texts.flatMap((text) => text.match(/file:\/\/[^"]*\/dist\/[^"]*/g) ?? []));
    expect([...loaded].filter((path) => path.endsWith('/dist/gateway/gateway.js'))).toHaveLength(1);
    expect([...loaded].filter((path) => /\/dist\/(?:dev\/|cli\/dev)/.test(path))).toEqual([]);
  },
  LONG,
);
