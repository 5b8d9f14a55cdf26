// The dashboards of config/grafana are what their script makes, in the repository and in the chart. What they ask is
// tried in test/system/monitoring/metrics.test.ts.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { renderDashboards } from '../../../scripts/dashboards/dashboards.js';

const ROOT = join(import.meta.dirname, '../../..');

it.each(['config/grafana', 'helm/files/grafana'])('[R-18] %s has the dashboards as they are made', async (folder) => {
  const made = renderDashboards();
  if (process.env['UPDATE_REFERENCE'] === '1') {
    await mkdir(join(ROOT, folder), { recursive: true });
    for (const [name, text] of made) await writeFile(join(ROOT, folder, name), text);
  }
  expect((await readdir(join(ROOT, folder))).sort()).toEqual([...made.keys()].sort());
  for (const [name, text] of made) expect(await readFile(join(ROOT, folder, name), 'utf8')).toBe(text);
});
