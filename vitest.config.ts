import { defineConfig } from 'vitest/config';

// What Node alone can run, in three projects. `npm test` runs `unit` and `attacks`; `npm run test:all` runs
// the rest too. test/system needs Redis, Chromium, promtool, helm and buildah: `npm run test:system`.
const UNIT = ['test/*.test.ts', 'test/unit/**/*.test.ts'];
const ATTACKS = ['test/attacks/**/*.test.ts'];

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
      // Unit tests share the modules that a process has loaded: loading took longer than testing.
      { extends: true, test: { name: 'unit', include: UNIT, isolate: false } },
      { extends: true, test: { name: 'attacks', include: ATTACKS } },
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
