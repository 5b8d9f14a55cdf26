// Packages of npx and uvx: which one a command names, whether it is one version, and what a start is held to.

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type AskRegistry,
  askRegistry,
  packagesOf,
  pinPackages,
  refusePackage,
  unpinnedIn,
} from '../../../src/stdio/packages.js';

const INTEGRITY = `sha512-${'A'.repeat(86)}==`;
const split = (line: string): readonly string[] => line.split(' ');
const named = (line: string) => packagesOf(split(line)).map(({ name, version }) => [name, version]);

describe('[STD-09] the packages of a command', () => {
  it.each([
    ['npx -y server@1.2.3 /srv', [['server', '1.2.3']]],
    ['npx -y @scope/server --flag', [['@scope/server', undefined]]],
    ['/opt/bin/npx --yes @scope/server@latest', [['@scope/server', undefined]]],
    ['npx -y server@^1.2.0', [['server', undefined]]],
    [
      'npx -y --package=a@1.0.0 -p b@2.0.0-rc.1 run it',
      [
        ['a', '1.0.0'],
        ['b', '2.0.0-rc.1'],
      ],
    ],
    ['npm exec -y -- server@1.2.3', [['server', '1.2.3']]],
    ['npx --registry https://npm.example.com server', [['server', undefined]]],
    ['npx -y github:someone/server', [[undefined, undefined]]],
    ['npx ./server', []],
    ['uvx mcp-server-git==2025.1.14 --repository repo', [['mcp-server-git', '2025.1.14']]],
    ['uvx mcp-server-git@2025.1.14', [['mcp-server-git', '2025.1.14']]],
    ['uvx mcp-server-git>=2025', [['mcp-server-git', undefined]]],
    ['uvx mcp-server-git==2025.*', [['mcp-server-git', undefined]]],
    ['uvx --python 3.12 --from mcp[cli]==1.2.0 mcp', [['mcp[cli]', '1.2.0']]],
    ['uvx --from git+https://git.example.com/x server', [[undefined, undefined]]],
    ['uv tool run server', [['server', undefined]]],
    ['node server.js server', []],
    ['npx', []],
  ])('%s', (line, expected) => {
    expect(named(line)).toEqual(expected);
  });

  it('without an exact version are said, with what to write', () => {
    expect(unpinnedIn(split('npx -y @scope/server@latest'))).toEqual([
      '"@scope/server@latest" names no exact version, so that each start may run another program: write @scope/server@VERSION',
    ]);
    expect(unpinnedIn(split('uvx server'))).toEqual([expect.stringContaining('write server==VERSION')]);
    expect(unpinnedIn(split('npx -y github:someone/server'))).toEqual([expect.stringContaining('write NAME@VERSION')]);
    expect(unpinnedIn(split('npx -y server@1.2.3'))).toEqual([]);
  });

  const WHERE = { cwd: '/', env: {} };
  const answering: AskRegistry = async ({ manager }) =>
    manager === 'npm' ? { version: '1.2.3', integrity: INTEGRITY } : { version: '2025.1' };
  const silent: AskRegistry = async () => ({ error: 'npm does not answer' });

  it('get the version that is told, in their own form, and the integrity of the only one', async () => {
    expect(await pinPackages(split('npx -y server /srv'), WHERE, answering)).toEqual({
      ...{ command: split('npx -y server@1.2.3 /srv'), integrity: INTEGRITY, notes: [] },
    });
    expect(await pinPackages(split('npx --package=a -p b run'), WHERE, answering)).toEqual({
      ...{ command: split('npx --package=a@1.2.3 -p b@1.2.3 run'), notes: [] },
    });
    expect(await pinPackages(split('uvx --from server[x] run'), WHERE, answering)).toEqual({
      ...{ command: split('uvx --from server[x]==2025.1 run'), notes: [] },
    });
    expect(await pinPackages(split('npx -y server'), WHERE, silent)).toEqual({ error: 'npm does not answer' });
    expect(await pinPackages(split('npx -y server@1.0.0'), WHERE, silent)).toMatchObject({
      ...{ command: split('npx -y server@1.0.0'), notes: [expect.stringContaining('no integrity is kept')] },
    });
  });

  it('start only while the registry has what was added', async () => {
    const start = (line: string, ask = answering) => {
      const [command = '', ...args] = split(line);
      return refusePackage({ command, args, ...WHERE }, INTEGRITY, ask);
    };
    expect(await start('npx -y server@1.2.3')).toBeUndefined();
    const other: AskRegistry = async () => ({ version: '1.2.3', integrity: INTEGRITY.replace('A', 'B') });
    expect(await start('npx -y server@1.2.3', other)).toContain('the registry has another server@1.2.3');
    expect(await start('npx -y server@1.2.3', silent)).toBe('its integrity cannot be checked: npm does not answer');
    for (const line of ['npx -y server', 'uvx server==1.2.3', 'node server.js', 'npx -p a@1.0.0 -p b@1.0.0 run'])
      expect(await start(line)).toContain('its command names none');
  });

  it('are asked of the client beside the program, whatever it prints', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-packages-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const ask = async (program: string, script: string, spec = 'server') => {
      await writeFile(join(folder, program), `#!/bin/sh\n${script}\n`);
      await chmod(join(folder, program), 0o755);
      const command = join(folder, program === 'npm' ? 'npx' : 'uvx');
      const [use] = packagesOf([command, spec]);
      if (use === undefined) throw new Error('no package');
      return askRegistry(use, { command, cwd: folder, env: { PATH: '/usr/bin:/bin' } });
    };
    const view = (version: string) => JSON.stringify({ version, 'dist.integrity': INTEGRITY });
    expect(await ask('npm', `[ "$2" = server ] && echo '${view('1.2.3')}'`)).toEqual({
      version: '1.2.3',
      integrity: INTEGRITY,
    });
    expect(await ask('npm', `echo '[${view('1.0.0')},${view('1.1.0')}]'`)).toMatchObject({ version: '1.1.0' });
    const missing = JSON.stringify({ error: { code: 'E404', summary: 'Not Found' } });
    expect(await ask('npm', `echo '${missing}'; exit 1`)).toEqual({
      error: 'npm does not tell the version of server: Not Found',
    });
    expect(await ask('npm', 'echo "no network" >&2; exit 1')).toEqual({
      error: 'npm does not tell the version of server: no network',
    });
    expect(await ask('npm', `echo '${view('$(reboot)')}'`)).toHaveProperty('error');
    expect(await ask('uv', 'read line; echo "# from $line"; echo "My_Server==2025.1.14"', 'my-server')).toEqual({
      version: '2025.1.14',
    });
    await rm(join(folder, 'npm'));
    expect(
      await askRegistry(
        { manager: 'npm', at: 1, before: '', spec: 'x', name: 'x' },
        { command: join(folder, 'npx'), cwd: folder, env: {} },
      ),
    ).toEqual({ error: expect.stringContaining('is not there') });
  });
});
