// Adds to a .gitignore what a command keeps out of Git. The folder may be a working copy already, so what others wrote
// there stays.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Appends the entries that the .gitignore of the folder lacks; creates folder and file where they are missing. */
export async function addIgnored(folder: string, entries: readonly string[]): Promise<void> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, '.gitignore');
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const lines = text.split('\n').map((line) => line.trim());
  const missing = entries.filter((entry) => !lines.includes(entry));
  if (missing.length === 0) return;
  const separator = text === '' || text.endsWith('\n') ? '' : '\n';
  await writeFile(file, `${separator}${missing.join('\n')}\n`, { flag: 'a' });
}
