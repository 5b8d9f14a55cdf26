// Runs with every test file: laws are tried with the same generated inputs in each run, so that a red run is caused by a
// change. `SEED=7 npm test` tries others.

import fc from 'fast-check';

fc.configureGlobal({ seed: Number(process.env['SEED'] ?? 20) });
