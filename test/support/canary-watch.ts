// Runs with every test file that goes through a running gateway: at its end no token may have been seen
// where none belongs.

import { afterAll, expect } from 'vitest';
import { canary } from './canary.js';

const WATCHED = /[\\/]test[\\/](?:e2e|integration|attacks|wire|protocol)[\\/]/;

if (WATCHED.test(expect.getState().testPath ?? '')) {
  canary.watchServers();
  // Registered before every hook of the file, and so the last to run.
  afterAll(() => {
    const leaks = canary.leaks();
    // The next file may run in this process too.
    canary.forget();
    expect(leaks).toEqual([]);
  });
}
