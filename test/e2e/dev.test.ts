// The first ten minutes of a user: the built program puts itself in front of a server, prints a token to
// paste, and both a pasted token and a login of an SDK work; the tour ends with what it announced.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createWalkProvider, finishWalk } from '../support/oauth-clients.js';
import {
  buildProgram,
  findFreePort,
  runSallyport,
  type Served,
  startSallyport,
} from '../support/processes.js';
import { connectSdkV1, createTransportV1 } from '../support/sdk-clients.js';
import { type Everything, startEverything } from '../support/sdk-servers.js';

/** The tour and a start with pins take seconds, and several times that on a busy machine. */
const LONG = 120_000;

/** A port that no other suite on this machine takes for the default too. */
const onFreePort = async (): Promise<string[]> => ['--port', String(await findFreePort())];

let folder: string;
let everything: Everything;
let running: Served | undefined;

beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-e2e-dev-'));
  everything = await startEverything();
});
afterAll(async () => {
  running?.signal('SIGKILL');
  await everything?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

describe('dev', () => {
  it(
    '[E-36] serves an upstream to a pasted token and to a login, and ends with 143',
    async () => {
      const upstream = ['--upstream', everything.url];
      const dev = startSallyport(['dev', ...upstream, ...(await onFreePort())], folder);
      running = dev;
      await expect.poll(dev.stdout, { timeout: LONG / 2 }).toContain('Press Ctrl-C');
      expect((await fetch(/^metrics +(\S+)/m.exec(dev.stdout())?.[1] ?? '')).status).toBe(200);
      const printed = (word: string): string =>
        new RegExp(`^${word} +(\\S+)`, 'm').exec(dev.stdout())?.[1] ?? '';
      const [url, token] = [printed('endpoint'), printed('token')];
      const text = dev.stdout();
      const configuration = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
      expect(JSON.parse(configuration)).toEqual({
        mcpServers: {
          mcp: { type: 'http', url, headers: { Authorization: `Bearer ${token}` } },
        },
      });

      const pasted = await connectSdkV1(url, { token });
      const { tools } = await pasted.client.listTools();
      expect(tools.length).toBeGreaterThan(10);
      await pasted.close();

      const provider = createWalkProvider();
      await expect(connectSdkV1(url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
      await finishWalk(provider, createTransportV1(url, { provider }));
      const { client, close } = await connectSdkV1(url, { provider });
      const sum = await client.callTool({ name: 'get-sum', arguments: { a: 20, b: 22 } });
      expect(JSON.stringify(sum.content)).toContain('42');
      await close();

      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);
    },
    LONG,
  );

  it(
    '[E-36] takes the tour, and says that every outcome was as announced',
    async () => {
      const tour = ['dev', '--demo', '--exit', ...(await onFreePort())];
      const { code, stdout } = await runSallyport(tour, { cwd: folder });
      expect(stdout).toMatch(/^✓ (\d+) of \1 outcomes as announced$/m);
      expect(code).toBe(0);
    },
    LONG,
  );

  it('[E-36] wants to know which upstream', async () => {
    const { code, stderr } = await runSallyport(['dev']);
    expect(code).toBe(2);
    expect(stderr).toContain('--upstream URL');
  });
});
