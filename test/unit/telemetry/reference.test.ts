import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  renderAuditPage,
  renderMetricsPage,
  renderOcsfPage,
  renderReasonsPage,
} from '../../../scripts/reference/observability.js';
import { renderTroubleshootingPage } from '../../../scripts/reference/troubleshooting.js';
import { REASONS } from '../../../src/policy/reasons.js';
import { METRIC_NAMES } from '../../../src/telemetry/metric-table.js';

const FOLDER = join(import.meta.dirname, '../../../docs');

describe('the reference pages', () => {
  it.each([
    ['reference/metrics.md', renderMetricsPage()],
    ['reference/reasons.md', renderReasonsPage()],
    ['reference/audit.md', renderAuditPage()],
    ['reference/ocsf.md', renderOcsfPage()],
    ['guides/troubleshooting.md', renderTroubleshootingPage()],
  ])('[O-90] docs/%s says what the code says', async (name, text) => {
    const file = join(FOLDER, name);
    if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, text);
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  it('[O-90] they leave nothing out', () => {
    for (const name of METRIC_NAMES) expect(renderMetricsPage()).toContain(`| \`${name}\` |`);
    for (const name of Object.keys(REASONS)) {
      expect(renderReasonsPage()).toContain(`| \`${name}\` |`);
      expect(renderTroubleshootingPage()).toContain(`### \`${name}\`\n`);
    }
  });
});
