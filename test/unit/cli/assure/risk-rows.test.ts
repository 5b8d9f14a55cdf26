// The rows of risks name nothing that is not there, and the page says what they say.

import { existsSync, readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { renderRisksPage } from '../../../../scripts/reference/risks.js';
import { CONTROL_KINDS, RISK_ROWS, type RISK_SOURCES } from '../../../../src/cli/assure/risk-rows.js';

const ROOT = join(import.meta.dirname, '../../../..');
type Surface = {
  readonly gateway: object;
  readonly policy: object;
  readonly controls: { readonly names: readonly string[] };
};
const SURFACE = JSON.parse(readFileSync(join(ROOT, 'test/golden/public-surface.json'), 'utf8')) as Surface;

/** Keys as rows write them: without the number of an alternative. */
function keysOf(keys: object): ReadonlySet<string> {
  return new Set(Object.keys(keys).map((key) => key.replaceAll(/\(\d+\)/g, '')));
}

const GATEWAY_KEYS = keysOf(SURFACE.gateway);
const POLICY_KEYS = keysOf(SURFACE.policy);

function isSetting(setting: string): boolean {
  return setting.startsWith('policy: ') ? POLICY_KEYS.has(setting.slice('policy: '.length)) : GATEWAY_KEYS.has(setting);
}

describe('[E-65] the rows of risks', () => {
  it('are unique, and cover the twelve threats of CoSAI and the ten of OWASP', () => {
    const ids = RISK_ROWS.map(({ source, id }) => `${source} ${id}`);
    expect(new Set(ids).size).toBe(ids.length);
    const count = (source: keyof typeof RISK_SOURCES) => RISK_ROWS.filter((row) => row.source === source).length;
    expect([count('cosai'), count('owasp')]).toEqual([12, 10]);
    expect(count('whitepaper')).toBeGreaterThan(20);
  });

  it('name tests that exist, at least one each', () => {
    const missing = RISK_ROWS.flatMap(({ id, tests }) =>
      tests.filter((name) => !existsSync(join(ROOT, 'test', `${name}.test.ts`))).map((name) => `${id}: ${name}`),
    );
    expect(missing).toEqual([]);
    expect(RISK_ROWS.filter(({ tests }) => tests.length === 0)).toEqual([]);
  });

  it('name keys of the gateway file and of policies that exist', () => {
    const unknown = RISK_ROWS.flatMap(({ id, settings }) =>
      settings.filter((setting) => !isSetting(setting)).map((setting) => `${id}: ${setting}`),
    );
    expect(unknown).toEqual([]);
  });

  it('name every kind of control, and no other', () => {
    const recorded = new Set(SURFACE.controls.names.map((name) => name.split(':', 1)[0]));
    // A rig without a budget, a receiver or a file on a volume has not all of them.
    const known = new Set([...recorded, 'budgets', 'audit-delivery', 'audit-space']);
    expect(new Set<string>(CONTROL_KINDS)).toEqual(known);
  });

  it('have every kind of control in one of them at least', () => {
    const shown = new Set(RISK_ROWS.flatMap(({ controls }) => controls));
    expect(CONTROL_KINDS.filter((kind) => !shown.has(kind))).toEqual([]);
  });

  it('say what they do not cover, and never that something is reached', () => {
    for (const { id, answer, open } of RISK_ROWS) {
      expect(open, id).toMatch(/\w.*\.$/);
      expect(`${answer} ${open}`, id).not.toMatch(/\b(?:level \d|compliant|complies|certified|fully)\b/i);
    }
  });

  it('are the page docs/reference/risks.md', async () => {
    const file = join(ROOT, 'docs/reference/risks.md');
    if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, renderRisksPage());
    expect(await readFile(file, 'utf8')).toBe(renderRisksPage());
  });
});
