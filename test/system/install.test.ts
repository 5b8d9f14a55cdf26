// Installing and starting as a new user does: the packed package in an empty folder, `npm run demo` without a
// registry, and its end when npm or the terminal goes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../support/processes.js';
import { ROOT } from './image.js';
import { must, run } from './programs.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-install-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package', () => {
  let installed: string;
  let program: string;

  beforeAll(async () => {
    const home = join(folder, 'home');
    await mkdir(home);
    const packed = await must('npm', ['pack', '--json', '--pack-destination', folder], {
      cwd: ROOT,
    });
    const [{ filename }] = JSON.parse(packed.slice(packed.indexOf('[\n'))) as [{ filename: string }];
    // The dependencies are in the package, in the locked versions: no registry is asked.
    const quiet = ['--offline', '--cache', join(folder, 'cache'), '--no-audit', '--no-fund'];
    await must('npm', ['install', '--prefix', home, ...quiet, join(folder, filename)]);
    installed = join(home, 'node_modules/sallyport');
    program = join(home, 'node_modules/.bin/sallyport');
  });

  it('[IN-04] is installed without a registry or a warning, and runs in an empty folder', async () => {
    const { version, scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    expect((await must(program, ['--version'])).trim()).toBe(version);
    // npm warns of scripts that it would run in an installed package, and packing left this one in place.
    const packed = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
    expect([scripts.prepare, packed.scripts.prepare]).toEqual([expect.stringContaining('prepare.mjs'), undefined]);
    const schema = await must(program, ['schema', 'gateway'], { cwd: folder });
    const shipped = await readFile(join(installed, 'docs/reference/gateway.schema.json'), 'utf8');
    expect(JSON.parse(schema)).toEqual(JSON.parse(shipped));
  });

  it('[IN-04] is linked by npm install -g', async () => {
    const prefix = join(folder, 'global');
    await must('npm', ['install', '-g', '--prefix', prefix, '.'], { cwd: ROOT });
    const linked = join(prefix, 'bin/sallyport');
    expect(await must(linked, ['--version'])).toBe(await must(program, ['--version']));
  });

  it('[IN-04] brings examples that name shipped schemas, and no sources', async () => {
    const entries = await readdir(installed, { recursive: true });
    const examples = entries.filter((name) => /^(?:config|policies)\/.*\.yaml$/.test(name));
    expect(examples).toContain('config/gateway.yaml');
    for (const name of examples) {
      const text = await readFile(join(installed, name), 'utf8');
      const modeline = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text)?.[1];
      if (modeline === undefined) continue;
      const schema = await readFile(resolve(installed, dirname(name), modeline), 'utf8');
      expect(JSON.parse(schema).$id).toMatch(/^urn:sallyport:schema:/);
    }
    const unwanted = /^(?:src|test|scripts|dist\/\.sources|node_modules\/(?:typescript|vitest))(?:\/|$)/;
    expect(entries.filter((name) => unwanted.test(name))).toEqual([]);
    const { code } = await run(program, ['validate', '-c', join(installed, 'config/loopback.yaml')]);
    expect(code).toBe(0);
  });

  it('[IN-04] names no domain and no repository that is not ours', async () => {
    const foreign = /https?:\/\/(?:[\w.-]+\.)?sallyport\.\w|github\.com\/sallyport|npx sallyport/;
    const found: string[] = [];
    const tracked = await must('git', ['ls-files', '-z'], { cwd: ROOT });
    for (const name of tracked.split('\0').filter((one) => /\.(?:md|ya?ml|json|ts|mjs)$/.test(one))) {
      if (name === 'README.md' || name === 'test/system/install.test.ts') continue;
      if (foreign.test(await readFile(join(ROOT, name), 'utf8'))) found.push(name);
    }
    expect(found).toEqual([]);
  });
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
