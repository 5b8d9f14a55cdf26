// `npm run demo`: from a fresh clone to a running demo. Installs what is missing, builds, and starts
// `sallyport dev --demo`; flags such as --exit are passed on, and its exit code is ours.

import { join } from 'node:path';
import { prepare, runProgram } from './dependencies.mjs';

const root = join(import.meta.dirname, '..', '..');

// Ctrl-C reaches the child too (same terminal); waiting for it lets it close its listeners.
process.on('SIGINT', () => undefined);

const prepared = await prepare(root);
process.exitCode =
  prepared === 0
    ? await runProgram(
        process.execPath,
        [join(root, 'dist', 'main.js'), 'dev', '--demo', ...process.argv.slice(2)],
        { cwd: root },
      )
    : prepared;
