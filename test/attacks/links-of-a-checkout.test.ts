// A checkout of somebody else's contains links to where `init` and `dev --save` would write: a shell profile, a folder
// that others can read, the policies of another gateway. Both refuse before anything is started or written, with the
// name of the link; only the folder that the user names may be one. A link that comes after the first look:
// test/unit/cli/new-files.test.ts.

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildProgram, runSallyport } from '../support/processes.js';
import { PATIENT } from '../support/timing.js';

let root: string;
let checkout: string;
let elsewhere: string;
beforeAll(() => buildProgram());
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sallyport-links-'));
  checkout = join(root, 'checkout');
  elsewhere = join(root, 'elsewhere');
  await mkdir(checkout);
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, 'profile'), 'mine\n');
});
afterEach(() => rm(root, { recursive: true, force: true }));

const INIT = [
  ...['init', '--offline', '--yes', '--url', 'https://tools.example.com/mcp'],
  ...['--issuer', 'https://idp.example.com', '--name', 'desk', '--group', 'staff'],
  ...['--public-url', 'https://mcp.example.com'],
];
/** A command that must not be started. */
const DEV = (started: string) => [
  ...['dev', '--save', '.', '--', process.execPath, '-e'],
  `require('fs').writeFileSync(${JSON.stringify(started)}, '')`,
];

/** What the checkout has, where the link leads, and what of both must be as before. */
const LINKS: readonly (readonly [command: string, path: string, target: string])[] = [
  ['init', 'policies', 'elsewhere'],
  ['init', 'policies/pins', 'elsewhere'],
  ['init', 'policies', 'elsewhere/not there'],
  ['init', 'secrets', 'elsewhere'],
  ['init', 'secrets/sallyport-key', 'elsewhere/key'],
  ['init', 'sallyport.yaml', 'elsewhere/gateway'],
  ['init', '.gitignore', 'elsewhere/profile'],
  ['init', '.gitignore', 'elsewhere/new'],
  ['dev', 'policies', 'elsewhere'],
  ['dev', 'policies/pins', 'elsewhere'],
  ['dev', 'gateway.yaml', 'elsewhere/gateway'],
  ['dev', 'stdio-token', 'elsewhere/token'],
  ['dev', '.gitignore', 'elsewhere/profile'],
];

async function link(path: string, target: string): Promise<void> {
  await mkdir(dirname(join(checkout, path)), { recursive: true });
  await symlink(join(root, target), join(checkout, path));
}

async function expectUntouched(): Promise<void> {
  expect(await readdir(elsewhere)).toEqual(['profile']);
  expect(await readFile(join(elsewhere, 'profile'), 'utf8')).toBe('mine\n');
}

describe('links that a checkout contains', () => {
  it.each(LINKS)('%s refuses %s, which leads to %s, and names it', PATIENT, async (command, path, target) => {
    await link(path, target);
    const before = await readdir(checkout, { recursive: true });
    const started = join(root, 'started');
    const argv = command === 'init' ? INIT : DEV(started);
    const { code, stderr } = await runSallyport(argv, { cwd: checkout });
    expect([code, stderr.includes(`${path} is a link`) || stderr.includes(`is one: ${path}\n`)]).toEqual([2, true]);
    expect(existsSync(started)).toBe(false);
    expect(await readdir(checkout, { recursive: true })).toEqual(before);
    await expectUntouched();
  });

  it('nothing is refused for the folder that the user names, nor for folders and links beside', PATIENT, async () => {
    await mkdir(join(checkout, 'policies', 'pins'), { recursive: true });
    await writeFile(join(checkout, '.gitignore'), '/dist');
    await symlink(elsewhere, join(checkout, 'docs'));
    await symlink(checkout, join(root, 'named'));
    const { code, stderr } = await runSallyport([...INIT, join(root, 'named')], { cwd: root });
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('link')]);
    expect(await readFile(join(checkout, '.gitignore'), 'utf8')).toContain('/dist\n/secrets/\n');
    expect(existsSync(join(checkout, 'policies', 'desk.policy.yaml'))).toBe(true);
    await expectUntouched();
  });
});
