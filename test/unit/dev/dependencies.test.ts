import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isBuilt, isInstalled, prepare, type Run, runProgram } from '../../../scripts/dependencies.mjs';
import { refuseNode } from '../../../scripts/node-version.mjs';

let root: string;
let commands: string[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sallyport-clone-'));
  commands = [];
  writeLock('1.0.0');
});
afterEach(() => rmSync(root, { recursive: true }));

function writeLock(version: string): void {
  const packages = { '': {}, 'node_modules/thing': { version } };
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
}

/** What npm leaves behind, at a time given in seconds before now. */
function writeMarker(version: string, secondsAgo: number): void {
  const file = join(root, 'node_modules', '.package-lock.json');
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  writeFileSync(file, JSON.stringify({ packages: { 'node_modules/thing': { version } } }));
  const time = Date.now() / 1000 - secondsAgo;
  utimesSync(file, time, time);
}

function recorder(codes: Readonly<Record<string, number>> = {}) {
  return (_command: string, args: readonly string[]): Promise<number> => {
    const step = args.includes('ci') ? 'install' : 'build';
    commands.push(step);
    return Promise.resolve(codes[step] ?? 0);
  };
}

describe('a fresh clone', () => {
  it('[D-12] is installed, then built', async () => {
    expect(await prepare(root, { run: recorder(), say: () => undefined })).toBe(0);
    expect(commands).toEqual(['install', 'build']);
  });

  it('[D-12] is not installed again when everything is there', async () => {
    writeMarker('1.0.0', -5);
    expect(await prepare(root, { run: recorder(), say: () => undefined })).toBe(0);
    expect(commands).toEqual(['build']);
  });

  it('[D-12] is installed again when the lock names another version since', () => {
    writeMarker('0.9.0', 3_600);
    expect(isInstalled(root)).toBe(false);
    writeMarker('1.0.0', 3_600);
    expect(isInstalled(root)).toBe(true);
  });

  it('[D-12] is not built again while the build is of its sources, and nothing wrote there since', async () => {
    writeMarker('1.0.0', -5);
    mkdirSync(join(root, 'src'));
    const write = (name: string, text: string) => writeFileSync(join(root, name), text);
    write('src/main.ts', 'export {};');
    write('src/scan.wat', '(module)');
    const run: Run = async () => {
      commands.push('build');
      mkdirSync(join(root, 'dist'), { recursive: true });
      write('dist/main.js', 'export {};');
      return 0;
    };
    const changes: readonly (() => void)[] = [
      () => write('src/main.ts', 'export const a = 1;'),
      () => write('tsconfig.json', '{}'),
      () => rmSync(join(root, 'dist/main.js')),
      () => utimesSync(join(root, 'dist/main.js'), Date.now() / 1000 + 5, Date.now() / 1000 + 5),
      () => utimesSync(join(root, 'src/main.ts'), 1, 1),
    ];
    const built: boolean[] = [];
    for (const change of [() => undefined, ...changes]) {
      await prepare(root, { run, say: () => undefined });
      expect([isBuilt(root), isBuilt(`${root}/`)]).toEqual([true, true]);
      change();
      built.push(isBuilt(root));
    }
    // Times of sources prove nothing: a copy of other sources may be older.
    expect(built).toEqual([true, false, false, false, false, true]);
    expect(commands).toHaveLength(5);
  });

  it('[D-12] is built again after a build that failed', async () => {
    writeMarker('1.0.0', -5);
    for (const code of [1, 0]) await prepare(root, { run: recorder({ build: code }), say: () => undefined });
    expect(commands).toEqual(['build', 'build']);
  });

  it('[D-12] stops at the step that fails, with its code', async () => {
    const run = recorder({ install: 7 });
    expect(await prepare(root, { run, say: () => undefined })).toBe(7);
    expect(commands).toEqual(['install']);
  });

  it('[D-12] says in one line that npm did not reach its registry, and what else went wrong in full', async () => {
    const printed: string[] = [];
    const failing = (stderr: string) =>
      prepare(root, {
        run: (_command, _args, { onStderr }) => {
          onStderr?.(stderr);
          return Promise.resolve(1);
        },
        say: (line) => printed.push(line),
      });
    const refused = 'npm error code ECONNREFUSED\nnpm error errno ECONNREFUSED\nnpm error FetchError: a\n';
    expect(await failing(refused)).toBe(1);
    expect(printed).toEqual([
      'Installing the locked dependencies (npm ci).',
      'The dependencies could not be installed: npm could not reach its registry (ECONNREFUSED). Check the network, or the address that "npm config get registry" prints.',
    ]);
    await failing('npm error code EUSAGE\nnpm error The lock file is out of date.\n');
    expect(printed.at(-1)).toBe(
      'npm error code EUSAGE\nnpm error The lock file is out of date.\nThe dependencies could not be installed: npm ci failed with exit code 1.',
    );
  });

  it('[IN-04] is installed by itself, also for `npm install -g .`', async () => {
    const given: unknown[] = [];
    const env = {
      npm_config_global: 'true',
      npm_config_prefix: '/opt',
      npm_config_cache: '/tmp/c',
    };
    await prepare(root, {
      run: (_command, _args, options) => {
        given.push(options.env);
        return Promise.resolve(0);
      },
      env,
      say: () => undefined,
    });
    expect(given[0]).toMatchObject({
      npm_config_cache: '/tmp/c',
      npm_config_ignore_scripts: 'true',
    });
    expect(given[0]).not.toHaveProperty('npm_config_global');
    expect(given[0]).not.toHaveProperty('npm_config_prefix');
  });

  it('[D-12] says which Node it needs', () => {
    expect(refuseNode('20.18.3')).toBe('Sallyport needs Node 20.19 or later; this is Node 20.18.3.');
    expect(refuseNode('18.20.4')).toContain('Node 18.20.4');
    expect(refuseNode('20.19.0')).toBeUndefined();
    expect(refuseNode('24.0.0')).toBeUndefined();
  });

  it('[D-12] passes on how a program ended', async () => {
    const node = process.execPath;
    expect(await runProgram(node, ['-e', 'process.exit(3)'], { cwd: root })).toBe(3);
    const killed = ['-e', 'process.kill(process.pid, "SIGTERM")'];
    expect(await runProgram(node, killed, { cwd: root })).toBe(143);
    let stderr = '';
    const onStderr = (text: string): void => {
      stderr += text;
    };
    await runProgram(node, ['-e', 'console.error("written")'], { cwd: root, onStderr });
    expect(stderr).toBe('written\n');
  });
});
