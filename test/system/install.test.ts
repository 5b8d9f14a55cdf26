// Installing and starting in a clone as a new user does: the command that is linked, `npm run demo` without a registry, and
// its end when npm or the terminal goes. release.test.ts installs the packages.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../support/processes.js';
import { ROOT } from './image.js';
import { must, run } from './programs.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-install-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it('[IN-04] is linked by npm install -g', async () => {
  const prefix = join(folder, 'global');
  await must('npm', ['install', '-g', '--prefix', prefix, '.'], { cwd: ROOT });
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  expect((await must(join(prefix, 'bin/sallyport'), ['--version'])).trim()).toBe(version);
});

/** Ends what a failed test has left. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing is left.
  }
}

describe('npm run demo', () => {
  it('[IN-01] says in one line that no registry was reached', async () => {
    const clone = join(folder, 'clone');
    await mkdir(clone);
    for (const name of ['package.json', 'package-lock.json', '.npmrc', 'scripts'])
      await cp(join(ROOT, name), join(clone, name), { recursive: true });
    const nowhere = `http://127.0.0.1:${await findFreePort()}/`;
    const settings = ['--registry', nowhere, '--cache', join(folder, 'cache')];
    const { code, stderr } = await run('npm', ['run', '--silent', 'demo', ...settings], {
      cwd: clone,
    });
    expect(stderr).toBe(
      'Installing the locked dependencies (npm ci).\n' +
        'The dependencies could not be installed: npm could not reach its registry (ECONNREFUSED). ' +
        'Check the network, or the address that "npm config get registry" prints.\n',
    );
    expect(code).toBe(1);
  });

  const started: ChildProcess[] = [];
  afterAll(() => {
    for (const { pid } of started) if (pid !== undefined) endGroup(pid);
  });

  /** Starts a program that runs the demo, and waits until the tour is over. */
  async function startDemo(
    program: string,
    argsFor: (port: string) => readonly string[],
  ): Promise<{ child: ChildProcess; isServed: () => Promise<boolean> }> {
    const port = await findFreePort();
    const options = { cwd: ROOT, stdio: 'pipe', detached: true } as const;
    const child = spawn(program, argsFor(String(port)), options);
    started.push(child);
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    await expect.poll(() => stdout, { timeout: 240_000 }).toContain('Press Ctrl-C');
    const url = `http://127.0.0.1:${port}/desk`;
    return {
      child,
      isServed: () =>
        fetch(url).then(
          () => true,
          () => false,
        ),
    };
  }

  it('[IN-03] ends when npm is killed', async () => {
    const args = (port: string) => ['run', 'demo', '--', '--port', port];
    const { child, isServed } = await startDemo('npm', args);
    expect(await isServed()).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await expect.poll(isServed, { timeout: 20_000 }).toBe(false);
  });

  it('[IN-03] ends when its terminal is closed', async () => {
    const args = (port: string) => ['-qec', `npm run demo -- --port ${port}`, '/dev/null'];
    const { child, isServed } = await startDemo('script', args);
    expect(await isServed()).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await expect.poll(isServed, { timeout: 20_000 }).toBe(false);
  });
});
