import { defineConfig } from 'vitest/config';

// What Node alone cannot run: helm, promtool, Chromium and the container image. A missing program is a
// failure here; `.ci/run` installs them.
export default defineConfig({
  test: {
    include: ['test/system/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    // What a module is transformed to depends on its text alone: projects and runs share it.
    experimental: { fsModuleCache: true },
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
});
