import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

// What Node alone can run, in projects. `npm test` runs all but `rest`; `npm run test:all` runs that too.
// test/system needs other programs too, which CONTRIBUTING.md lists: `npm run test:system`.
const UNIT = ['test/*.test.ts', 'test/unit/**/*.test.ts'];
const ATTACKS = ['test/attacks/**/*.test.ts'];

/** Tests that replace modules of ours, which no other test may see. */
function mocking(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join(folder, name))
    .filter((file) => readFileSync(file, 'utf8').includes('vi.mock('));
}
/** The record of the tour counts from one, so it needs modules that nobody has used. */
const ALONE = [...mocking('test/unit'), ...mocking('test/attacks'), 'test/golden.test.ts'];

export default defineConfig({
  test: {
    setupFiles: ['test/support/canary-watch.ts', 'test/support/recheck-watch.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
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
      { extends: true, test: { name: 'alone', include: ALONE } },
      {
        extends: true,
        test: {
          name: 'rest',
          include: ['test/**/*.test.ts'],
          exclude: [...UNIT, ...ATTACKS, 'test/system/**'],
        },
      },
    ],
  },
});
