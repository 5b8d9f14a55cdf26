import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// What Node alone can run, in projects. `npm test` runs all but `rest` and `rest-alone`; `npm run test:all` runs them
// too. test/system needs other programs too, which CONTRIBUTING.md lists: `npm run test:system`.
const UNIT = ['test/*.test.ts', 'test/unit/**/*.test.ts'];
const ATTACKS = ['test/attacks/**/*.test.ts'];
const SYSTEM = 'test/system/**';

/** Tests that replace modules of ours, which no other test may see. */
const MOCKING = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join('test', name))
  .filter((file) => /vi\.mock\(|support\/(?:seams|held-jobs)\.js'/.test(readFileSync(file, 'utf8')));
/** Modules are made replaceable before anything loads them. */
const setupFiles = ['test/support/seams.ts'];
/** The record of the tour counts from one, so it needs modules that nobody has used. */
const ALONE = [...MOCKING, 'test/golden.test.ts'];
const isQuick = (file: string) => /^test\/(?:(?:unit|attacks)\/|[^/]*$)/.test(file);
const ALONE_QUICK = ALONE.filter(isQuick);
/** Clients and servers of SDKs keep connections for as long as their process lives. */
const isEndToEnd = (file: string) => file.startsWith('test/e2e/');
const ALONE_REST = [...ALONE.filter((file) => !isQuick(file) && !isEndToEnd(file)), 'test/e2e/**/*.test.ts'];

export default defineConfig({
  test: {
    setupFiles: [...['canary-watch', 'recheck-watch', 'generated-inputs'].map((name) => `test/support/${name}.ts`)],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // What a module is transformed to depends on its text alone: projects and runs share it.
    experimental: { fsModuleCache: true },
    pool: 'forks',
    maxWorkers: 2,
    // What must come is waited for with patience; a busy machine is no failure.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      // These share the modules that a process has loaded: loading them took longer than testing.
      {
        extends: true,
        test: { name: 'unit', include: UNIT, exclude: ALONE, isolate: false },
      },
      {
        extends: true,
        test: { name: 'attacks', include: ATTACKS, exclude: ALONE, isolate: false },
      },
      { extends: true, test: { name: 'alone', include: ALONE_QUICK, setupFiles } },
      {
        extends: true,
        test: {
          name: 'rest',
          include: ['test/**/*.test.ts'],
          exclude: [...UNIT, ...ATTACKS, ...ALONE_REST, SYSTEM],
          isolate: false,
        },
      },
      { extends: true, test: { name: 'rest-alone', include: ALONE_REST, setupFiles } },
    ],
  },
});
