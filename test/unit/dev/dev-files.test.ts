// What `dev --save` writes: nothing over what exists, secrets for their owner alone, and a policy that grants what was
// offered and no more, whatever the server calls its tools.

import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { addIgnored } from '../../../src/cli/git-ignore.js';
import {
  type DevFiles,
  findSavedFile,
  HEADER_FILES,
  ignoredFiles,
  type SavedSetup,
  saveDevFiles,
} from '../../../src/dev/dev-files.js';

const NOTHING = { tools: [], prompts: [], templates: [], patterns: [] };

function setup(offered: Partial<SavedSetup['offered']> = {}, header = 'X-Api'): SavedSetup {
  const value = 'a value';
  return {
    server: {
      url: 'http://127.0.0.1:8090/mcp',
      network: 'loopback',
      header: { name: header, value, file: HEADER_FILES.stdio },
    },
    offered: { ...NOTHING, ...offered },
    port: 8080,
  };
}

let folder = '';
let saved = '';
let running: DevFiles;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-saved-'));
  saved = join(folder, 'setup');
  await mkdir(saved);
  const lockFile = join(folder, 'lock');
  writeFileSync(lockFile, 'lock\n');
  running = { configFile: '', policyFile: '', lockFile, auditFile: '' };
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('dev --save', () => {
  it('keeps the .gitignore file that is there, and adds what must not be committed', async () => {
    const file = join(saved, '.gitignore');
    writeFileSync(file, '/dist\nstdio-token');
    await addIgnored(saved, ignoredFiles(setup().server));
    expect(readFileSync(file, 'utf8')).toBe('/dist\nstdio-token\n/audit.jsonl*\n/stdio-token\n');
    await saveDevFiles(saved, running, setup());
    expect(readFileSync(file, 'utf8')).toBe('/dist\nstdio-token\n/audit.jsonl*\n/stdio-token\n');
  });

  it('finds a secret that it would overwrite, and a link that leads nowhere', async () => {
    expect(await findSavedFile(saved)).toBeUndefined();
    const link = join(saved, 'gateway.yaml');
    symlinkSync(join(folder, 'elsewhere'), link);
    expect(await findSavedFile(saved)).toBe(link);
    rmSync(link);
    const token = join(saved, 'stdio-token');
    writeFileSync(token, 'in use');
    expect(await findSavedFile(saved)).toBe(token);
  });

  it.each([
    'stdio-token',
    'gateway.yaml',
    'policies/mcp.policy.yaml',
    'policies/pins/mcp.lock.yaml',
  ])('writes nothing through a link or over a file that came meanwhile: %s', async (name) => {
    const other = join(folder, 'other');
    writeFileSync(other, 'before', { mode: 0o644 });
    await mkdir(join(saved, 'policies', 'pins'), { recursive: true });
    symlinkSync(other, join(saved, name));
    await expect(saveDevFiles(saved, running, setup())).rejects.toMatchObject({ code: 'EEXIST' });
    expect(readFileSync(other, 'utf8')).toBe('before');
  });

  it('leaves the secret to its owner, under any name of a header', async () => {
    const { configFile } = await saveDevFiles(saved, running, setup({}, 'true'));
    expect(statSync(join(saved, 'stdio-token')).mode & 0o777).toBe(0o600);
    expect(parse(readFileSync(configFile, 'utf8')).upstreams.mcp.credentials).toEqual({
      ...{ type: 'static', header: 'true', value: { file: './stdio-token' } },
    });
  });

  it('writes no name into a rule that reads as a pattern', async () => {
    const patterns = ['*', 're:.*', 'x*"]\n      tools: ["*'];
    const { policyFile } = await saveDevFiles(saved, running, setup({ tools: ['read'], patterns }));
    const [rule] = parse(readFileSync(policyFile, 'utf8')).rules;
    expect(rule.what).toEqual({ upstreams: ['mcp'], tools: ['read'], resources: ['**'] });
  });
});
