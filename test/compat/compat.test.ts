// Runs every row of the compatibility table, and keeps the page that is generated from it.

import { readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderCompatibilityPage } from '../../scripts/reference/compatibility.js';
import { AREAS, type CompatRow } from './rig.js';

const PAGE = join(import.meta.dirname, '../../docs/reference/compatibility.md');
const MIN_ROWS = 2;

/** The tables: every file beside this one that exports `rows`. */
async function readRows(): Promise<readonly CompatRow[]> {
  const names = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith('.ts') && name !== 'rig.ts' && !name.endsWith('.test.ts'))
    .sort();
  const tables = await Promise.all(
    names.map(async (name) => {
      const table: { readonly rows: readonly CompatRow[] } = await import(join(import.meta.dirname, name));
      return table.rows;
    }),
  );
  return tables.flat();
}

const rows = await readRows();

const used = AREAS.filter((area) => rows.some((row) => row.area === area));

describe.each(used)('compatibility: %s', (area) => {
  const own = rows.filter((row) => row.area === area);

  it.each(own.map((row) => [row.id, row] as const))('%s', async (_id, row) => {
    await row.run();
  });
});

describe('the compatibility table', () => {
  it('names each row once and says what happens in sentences', () => {
    expect(rows.length).toBeGreaterThan(MIN_ROWS);
    const ids = rows.map(({ id }) => id);
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
    expect(ids.filter((id) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(id))).toEqual([]);
    const unfinished = rows.filter(({ given, sees }) => !given.endsWith('.') || !sees.endsWith('.'));
    expect(unfinished.map(({ id }) => id)).toEqual([]);
  });

  it('docs/reference/compatibility.md is the page of the table', async () => {
    const page = renderCompatibilityPage(rows);
    if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(PAGE, page);
    expect(await readFile(PAGE, 'utf8')).toBe(page);
  });
});
