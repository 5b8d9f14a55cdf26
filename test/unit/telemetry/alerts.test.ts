// What the alerting rules of config/prometheus promise besides their expressions, which test/system/monitoring/alerts.test.ts
// tries: a section of the runbook for each, names of metrics that exist, and every reason that is a failure.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { REASONS } from '../../../src/policy/reasons.js';
import { METRICS } from '../../../src/telemetry/metric-table.js';
import { alertingRules, RULES } from '../../system/monitoring/rules.js';

const ROOT = join(import.meta.dirname, '../../..');
const COPY = 'helm/files/prometheus/sallyport.rules.yaml';
const RUNBOOK = 'docs/guides/runbook.md';

const text = await readFile(RULES, 'utf8');
const rules = await alertingRules();

describe('the alerting rules', () => {
  it('[R-19] have a section of the runbook each, in their order, and no section is without an alert', async () => {
    const runbook = await readFile(join(ROOT, RUNBOOK), 'utf8');
    expect([...runbook.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual(rules.map(({ alert }) => alert));
    for (const section of runbook.split(/^## /m).slice(1))
      expect(section).toMatch(
        /^(\w+)\n\n- \*\*What it means:\*\* .+\n- \*\*First look:\*\* .+\n- \*\*What to do:\*\* .+\n*$/,
      );
    for (const { alert, annotations } of rules)
      expect(annotations['runbook_url']).toBe(`${RUNBOOK}#${alert.toLowerCase()}`);
  });

  it('[R-19] say how severe it is, what happened, and what that means', () => {
    for (const { labels, annotations } of rules) {
      expect(['critical', 'warning', 'info']).toContain(labels['severity']);
      expect(Object.keys(annotations)).toEqual(['summary', 'description', 'runbook_url']);
    }
  });

  it('[R-19] name metrics and labels that exist', () => {
    const names = new Map<string, readonly string[]>(
      Object.entries(METRICS).map(([name, { labels }]) => [name, labels]),
    );
    const used = rules.flatMap(({ expr }) => [
      ...expr.matchAll(/\b((?:sallyport|mcp)_\w+?)(?:_(?:bucket|count))?(?:\{([^}]*)\})?(?![\w{])/g),
    ]);
    expect(used.length).toBeGreaterThan(rules.length);
    for (const [, name = '', matchers = ''] of used) {
      expect([...names.keys()]).toContain(name);
      for (const [, label] of matchers.matchAll(/(\w+)(?==|!)/g)) expect(names.get(name)).toContain(label);
    }
  });

  it('[R-19] watch every reason that is a failure, and none that is a decision', () => {
    const failures = Object.entries(REASONS).flatMap(([reason, { level }]) => (level === 'error' ? [reason] : []));
    const watchedBy = (alert: string): readonly string[] => {
      const expr = rules.find((rule) => rule.alert === alert)?.expr ?? '';
      return (/sallyport_denials_total\{[^}]*reason=~"([^"]*)"/.exec(expr)?.[1] ?? '').split('|');
    };
    const own = watchedBy('SallyportCallsFail');
    expect(watchedBy('SallyportRefusalsByFailure')).toEqual(own);
    expect([...own, ...watchedBy('SallyportUpstreamErrors')].sort()).toEqual(failures.sort());
  });

  it('[R-19] are the same in the chart', async () => {
    const copy = join(ROOT, COPY);
    if (process.env['UPDATE_REFERENCE'] === '1') {
      await mkdir(dirname(copy), { recursive: true });
      await writeFile(copy, text);
    }
    expect(await readFile(copy, 'utf8')).toBe(text);
  });
});
