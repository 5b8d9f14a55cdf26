// A process that a stdio server started in a session of its own, orphaned by the process between them: no group and no
// parent leads to it. It ends with the adapter all the same, and nothing else of the machine does.

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram, findFreePort, startSallyport } from '../support/processes.js';
import { connectSdkV1 } from '../support/sdk-clients.js';
import { isGone } from '../support/stdio-server.js';

const LONG = 120_000;
let folder: string;
beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-left-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('what a stdio server started', () => {
  it.each([
    ['in a session of its own', 'setsid sleep 300 & echo $! > PID'],
    ['in a session of its own, orphaned', '(setsid sh -c "echo \\$\\$ > PID; exec sleep 300" &)'],
    ['with streams of its own', '(setsid sh -c "echo \\$\\$ > PID; exec sleep 300" <&- >&- 2>&- &)'],
  ])(
    'ends with the adapter: %s',
    async (name, command) => {
      const pidFile = join(folder, `${name.replaceAll(/\W/g, '-')}.pid`);
      const port = await findFreePort();
      const script = `${command.replace('PID', `'${pidFile}'`)}; sleep 300`;
      const bystander = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' });
      const served = startSallyport(['stdio', '--listen', `127.0.0.1:${port}`, '--', 'sh', '-c', script], folder);
      try {
        await expect.poll(served.stdout, { timeout: LONG / 2 }).toContain('token ');
        const token = /^token +(\S+)$/m.exec(served.stdout())?.[1] ?? '';
        void connectSdkV1(`http://127.0.0.1:${port}/mcp`, { token }).catch(() => undefined);
        const pid = async () => Number(await readFile(pidFile, 'utf8').catch(() => '0'));
        await expect.poll(pid, { timeout: LONG / 4 }).toBeGreaterThan(0);
        const held = await pid();
        served.signal('SIGTERM');
        expect(await served.ended).toBe(143);
        expect(await isGone(held)).toBe(true);
        expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
      } finally {
        served.signal('SIGKILL');
        bystander.kill('SIGKILL');
      }
    },
    LONG,
  );
});
