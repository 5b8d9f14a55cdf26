import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renderExitCodesPage } from '../../../scripts/reference/exit-codes.js';
import { EXIT_CODES, exitCodesOf } from '../../../src/cli/exit-codes.js';

const FOLDER = join(import.meta.dirname, '../../..');

it('[C-20] the page of exit codes says what the help of the commands says', async () => {
  const file = join(FOLDER, 'docs/guides/exit-codes.md');
  const text = renderExitCodesPage();
  if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, text);
  expect(await readFile(file, 'utf8')).toBe(text);
});

it('[C-20] the table names commands that exist, and every command has 0 and 2', async () => {
  const record = await readFile(join(FOLDER, 'test/golden/public-surface.json'), 'utf8');
  const { commands } = JSON.parse(record) as { commands: Record<string, unknown> };
  const unknown = Object.keys(EXIT_CODES).filter((name) => !(`sallyport ${name}` in commands));
  expect(unknown).toEqual([]);
  for (const name of Object.keys(commands)) {
    const codes = exitCodesOf(name.replace(/^sallyport ?/, '')).map(([code]) => code);
    expect(codes).toEqual(expect.arrayContaining(['0', '2']));
    expect(codes).toEqual([...codes].sort((one, other) => Number(one) - Number(other)));
  }
});
