import { defineConfig } from 'vitest/config';

// What Node alone cannot run: helm, promtool, Chromium and the container image. A missing program is a
// failure here; `.ci/run` installs them.
export default defineConfig({
  test: {
    include: ['test/system/**/*.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
  },
});
