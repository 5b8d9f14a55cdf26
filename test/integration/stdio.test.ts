// The reference server on stdio, behind the adapter on a Unix socket, behind a gateway: clients of every era use it as
// if it spoke HTTP itself.

import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVERYTHING_TEMPLATES, type RunningGateway, startTestGateway, writeOpenPolicy } from '../support/gateway.js';
import { connectAsked, connectSdkV1, connectSdkV2, grantQuestions } from '../support/sdk-clients.js';
import { STDIO_TOKEN, type StdioRig, startStdioRig } from '../support/stdio-server.js';
import { requestStateless } from '../support/wire-client.js';
import { withGateway } from '../support/with-gateway.js';

const entry = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');

let folder: string;
let adapter: StdioRig;
let gateway: RunningGateway;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-stdio-'));
  const socket = join(folder, 'server.sock');
  const command = {
    command: process.execPath,
    args: [entry, 'stdio'],
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '' },
  };
  adapter = await startStdioRig({ command, address: { socket }, maxSessions: 12 });
  gateway = await startTestGateway({
    upstreams: [
      {
        name: 'everything',
        url: 'http://localhost/mcp',
        more: [
          `socket: ${JSON.stringify(socket)}`,
          'credentials: {type: static, header: Authorization, value: {env: STDIO_HEADER}}',
        ],
      },
    ],
    env: { STDIO_HEADER: `Bearer ${STDIO_TOKEN}` },
    policies: { open: writeOpenPolicy(EVERYTHING_TEMPLATES), questions: grantQuestions() },
  });
});
afterAll(async () => {
  await gateway?.close();
  await adapter?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

const url = (): string => gateway.url('everything');
const access = async (): Promise<{ token: string }> => ({
  token: await gateway.token('everything'),
});

describe('[STD-05] a stdio server behind adapter and gateway', () => {
  it.each([
    ['SDK v1', async () => connectSdkV1(url(), await access())],
    ['SDK v2 in a session', async () => connectSdkV2(url(), '2025', await access())],
    ['SDK v2, stateless', async () => connectSdkV2(url(), '2026', await access())],
  ] as const)('serves %s over its Unix socket', async (_, connect) => {
    const { client, close } = await connect();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('get-sum');
    const sum = await client.callTool({ name: 'get-sum', arguments: { a: 20, b: 22 } });
    expect(JSON.stringify(sum.content)).toContain('42');
    const { contents } = await client.readResource({ uri: 'demo://resource/dynamic/text/1' });
    expect(JSON.stringify(contents)).toContain('Resource 1');
    await close();
  });

  it('reports progress to a client of a session', async () => {
    const { client, close } = await connectSdkV1(url(), await access());
    const progress: number[] = [];
    await client.callTool(
      { name: 'trigger-long-running-operation', arguments: { duration: 0.3, steps: 3 } },
      undefined,
      { onprogress: (one) => progress.push(one.progress) },
    );
    expect(progress).toEqual([1, 2, 3]);
    await close();
  });

  it('asks the client in the middle of a call', async () => {
    const asked = await connectAsked(url(), (await access()).token, { text: 'of the model' });
    const result = await asked.client.callTool({
      name: 'trigger-sampling-request',
      arguments: { prompt: 'Say it.', maxTokens: 10 },
    });
    expect(JSON.stringify(result.content)).toContain('of the model');
    expect(asked.asked.map(({ method }) => method)).toContain('sampling/createMessage');
    await asked.close();
  });

  it('adapter.ends the process of a session that its client adapter.ends', async () => {
    const before = adapter.ends.length;
    const { transport, close } = await connectSdkV1(url(), await access());
    await transport.terminateSession();
    await close();
    await expect.poll(() => adapter.ends.slice(before).map(({ how }) => how)).toContain('the client ended the session');
  });
});

describe('[STD-05] a gateway', () => {
  it('is 502 for a socket where nobody listens', () =>
    withGateway(
      {
        pin: false,
        upstreams: [
          {
            name: 'gone',
            url: 'http://localhost/mcp',
            more: ['socket: ./gone.sock', 'pinning: {mode: off}'],
          },
        ],
      },
      async (missing) => {
        const reply = await requestStateless(
          { url: missing.url('gone'), token: await missing.token('gone') },
          'tools/list',
        );
        expect(reply.status).toBeGreaterThanOrEqual(502);
        // The path is relative to the gateway file.
        expect(missing.log()).toContain('ENOENT');
      },
    ));
});
