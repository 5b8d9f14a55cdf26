import { defineConfig } from 'vitest/config';

// What Node alone can run, in projects. `npm test` runs all but `rest`; `npm run test:all` runs
// that too. test/system needs Redis, Chromium, promtool, helm and buildah: `npm run test:system`.
const UNIT = ['test/*.test.ts', 'test/unit/**/*.test.ts'];
const ATTACKS = ['test/attacks/**/*.test.ts'];
/** These replace modules of ours, which others must not see. */
const BROKEN = ['test/attacks/76-broken-inspector.test.ts'];

export default defineConfig({
  test: {
    setupFiles: ['test/support/canary-watch.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    // What must come is waited for with patience; a busy machine is no failure.
    expect: { poll: { timeout: 10_000 } },
    projects: [
      // These share the modules that a process has loaded: loading them took longer than testing.
      { extends: true, test: { name: 'unit', include: UNIT, isolate: false } },
      {
        extends: true,
        test: { name: 'attacks', include: ATTACKS, exclude: BROKEN, isolate: false },
      },
      { extends: true, test: { name: 'broken', include: BROKEN } },
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
