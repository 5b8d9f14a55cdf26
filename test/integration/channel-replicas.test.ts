// Two gateways with one key before a server of HTTP+SSE: one holds the stream, the other takes the messages.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import { callMessage, initializeMessage, openRawChannel, postMessage } from '../support/http-sse-clients.js';
import { type SseServer, startSseServer } from '../support/sse-server.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';

const POLICY = `version: 1
policy: some
rules:
  - {id: echo, effect: allow, who: {anyone: true}, what: {upstreams: [old], tools: [echo, secret]}}
`;
const SECRET = `ghp_${'Ab3dEf6hIj'.repeat(4).slice(0, 36)}`;

let server: SseServer;
let upstream: HostileUpstream;
let issuer: TestIssuer;
let folder: string;
let one: RunningGateway;
let two: RunningGateway;

const start = (): Promise<RunningGateway> =>
  startTestGateway({
    upstreams: [
      { name: 'old', url: server.url, more: ['transport: http-sse'] },
      { name: 'new', url: upstream.url },
    ],
    policies: { some: POLICY },
    issuerUrl: issuer.issuer,
    more: `keys: [{file: ${JSON.stringify(join(folder, 'key'))}}]`,
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-channels-'));
  await writeFile(join(folder, 'key'), randomBytes(32).toString('hex'), { mode: 0o600 });
  server = await startSseServer(SECRET);
  upstream = await startHostileUpstream();
  issuer = await startTestIssuer();
  one = await start();
  two = await start();
}, 60_000);
afterAll(async () => {
  await one?.close();
  await two?.close();
  await issuer?.close();
  await server?.close();
  await upstream?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('[V-12] another replica', () => {
  it('takes messages for a stream that it does not hold, judged there by their plan', async () => {
    const authorization = `Bearer ${await issuer.mint(one.url('old'))}`;
    const channel = await openRawChannel(`${one.url('old')}/sse`, { authorization });
    const token = await issuer.mint(two.url('old'));
    const address = channel.address.replace(one.publicUrl, two.publicUrl);
    expect((await postMessage(address, token, initializeMessage(0))).status).toBe(202);
    expect(await channel.answer(0)).toMatchObject({ result: { protocolVersion: '2024-11-05' } });
    await postMessage(address, token, callMessage('a', 'echo', { text: 'across' }));
    expect(await channel.answer('a')).toMatchObject({ result: { content: [{ text: 'across' }] } });
    await postMessage(address, token, { jsonrpc: '2.0', id: 'b', method: 'tools/list' });
    const listed = JSON.stringify(await channel.answer('b'));
    expect(listed).toContain('echo');
    expect(listed).not.toContain('hidden');
    await postMessage(address, token, callMessage('c', 'secret'));
    expect(JSON.stringify(await channel.answer('c'))).not.toContain(SECRET);
    server.forget();
    const refused = await postMessage(address, token, callMessage('d', 'hidden'));
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ id: 'd', error: { code: -32602 } });
    expect(server.seen()).toEqual([]);
    channel.leave();
  });

  it('[LEG-08] takes nothing for a stream whose upstream speaks another transport', async () => {
    const authorization = `Bearer ${await issuer.mint(one.url('new'))}`;
    const channel = await openRawChannel(`${one.url('new')}/sse`, { authorization });
    const token = await issuer.mint(two.url('new'));
    const address = channel.address.replace(one.publicUrl, two.publicUrl);
    upstream.forget();
    const refused = await postMessage(address, token, initializeMessage(0));
    expect(refused.status).toBe(404);
    await refused.text();
    expect(upstream.seen().filter(({ body }) => body.includes('"raw"'))).toEqual([]);
    channel.leave();
  });
});
