import { defineConfig } from 'vitest/config';

// One config for both suites: `npm test` runs unit, integration, e2e and attacks with Node alone;
// `npm run test:system` selects test/system, which needs Redis, Chromium, promtool, helm and buildah.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/canary-watch.ts'],
    exclude: ['test/system/**', '**/node_modules/**'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    // Tests that cross sockets and disks meet a busy machine in CI: one more try, which the report names.
    retry: process.env['CI'] === 'true' ? 1 : 0,
    // What must come is waited for with patience; a busy machine is no failure.
    expect: { poll: { timeout: 10_000 } },
  },
});
