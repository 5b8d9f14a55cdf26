import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  renderAuditPage,
  renderMetricsPage,
  renderReasonsPage,
} from '../../../scripts/reference/observability.js';
import { REASONS } from '../../../src/policy/reasons.js';
import { METRIC_NAMES } from '../../../src/telemetry/metric-table.js';

const FOLDER = join(import.meta.dirname, '../../../docs/reference');

describe('the reference pages', () => {
  it.each([
    ['metrics.md', renderMetricsPage()],
    ['reasons.md', renderReasonsPage()],
    ['audit.md', renderAuditPage()],
  ])('[O-90] docs/reference/%s says what the code says', async (name, text) => {
    const file = join(FOLDER, name);
    if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, text);
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  it('[O-90] they leave nothing out', () => {
    for (const name of METRIC_NAMES) expect(renderMetricsPage()).toContain(`| \`${name}\` |`);
    for (const name of Object.keys(REASONS))
      expect(renderReasonsPage()).toContain(`| \`${name}\` |`);
  });
});
