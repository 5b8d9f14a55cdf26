// The commands of docs/guides/writing-policies.md, in their order and in an empty folder, with the program and the
// example as `npm pack` packs them.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildProgram } from '../support/processes.js';
import { readGuide, runScript, scriptOf } from './guide-commands.js';
import { must } from './programs.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let folder: string;
beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-policies-'));
  await must('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT });
  const packed = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  await must('npm', ['install', '--global', '--prefix', 'prefix', packed], { cwd: folder });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('[POL-10] the guide about policies', () => {
  it('writes, tests, explains, replays and shadows a policy', async () => {
    const blocks = await readGuide('writing-policies.md');
    expect(blocks.length).toBeGreaterThan(6);
    const cwd = await mkdtemp(join(folder, 'empty-'));
    const prefix = join(folder, 'prefix');
    const printed = await runScript(scriptOf(blocks), { cwd, prefix, env: {} });
    const guide = await readFile(join(ROOT, 'docs/guides/writing-policies.md'), 'utf8');
    const [, shown = ''] = /```text\n([\s\S]*?)```/.exec(guide) ?? [];
    for (const part of shown.split('…\n')) expect(printed).toContain(part);
    expect(printed).toContain('recorded: deny: arguments-invalid\n');
    expect(printed).toMatch(
      /would change: 1 × finn .* deny: denied-by-rule by finance\/no-large-refunds/,
    );
    expect(printed).toContain('exit code 1: decisions would change');
    expect(printed).toContain('policy: "support"');
    expect(printed).toContain('tighter.policy.yaml:3:7 warning this policy is not enforced');
  });
});
