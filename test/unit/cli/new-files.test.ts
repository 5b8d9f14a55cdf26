// Files that a command creates: links that come after it has looked are not followed.

import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeNewFiles } from '../../../src/cli/new-files.js';
import { savedPaths } from '../../../src/dev/files.js';

let root: string;
let checkout: string;
let elsewhere: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'sallyport-links-'));
  [checkout, elsewhere] = [join(root, 'checkout'), join(root, 'elsewhere')];
  await mkdir(checkout);
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, 'profile'), 'mine\n');
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe('a link in the folder', () => {
  it.each(['policies', 'policies/pins', '.gitignore'])(
    'is not followed where it came after the first look: %s',
    async (path) => {
      const target = path === '.gitignore' ? 'elsewhere/profile' : 'elsewhere';
      await mkdir(dirname(join(checkout, path)), { recursive: true });
      await symlink(join(root, target), join(checkout, path));
      const files = savedPaths(['mcp'], ['upstream-header', 'stdio-token']).map((file) => ({
        path: file,
        text: 'new',
        isSecret: false,
      }));
      const error = await writeNewFiles(checkout, files, ['/audit.jsonl*']);
      expect(error).toBe(`${join(checkout, path)} is a link`);
      expect(await readdir(checkout)).not.toContain('gateway.yaml');
      expect(await readdir(checkout)).not.toContain('stdio-token');
      expect(await readdir(elsewhere)).toEqual(['profile']);
      expect(await readFile(join(elsewhere, 'profile'), 'utf8')).toBe('mine\n');
    },
  );
});
