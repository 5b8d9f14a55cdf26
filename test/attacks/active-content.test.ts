import { expect, it } from 'vitest';
import { tryDocuments } from '../support/active-trial.js';
it('old', () => {
  const n = Number(process.env['N'] ?? 2000);
  const seed = Number(process.env['SEED'] ?? 1);
  const t0 = Date.now();
  const t = tryDocuments(seed, n, Number(process.env['MAXF'] ?? 20));
  const by: Record<string, number> = {};
  for (const f of t.faults) { const k = f.split('\n')[0] ?? ''; by[k] = (by[k] ?? 0) + 1; }
  console.log(Date.now() - t0, 'ms', { ...t, faults: t.faults.length }, Object.entries(by).sort((a, b) => b[1] - a[1]).slice(0, 30));
  console.log(t.faults.slice(0, Number(process.env['SHOW'] ?? 6)).join('\n'));
  expect(1).toBe(1);
});
