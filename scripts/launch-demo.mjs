// `npm run demo`: from a fresh clone to a running demo. Installs what is missing, builds, and starts
// `sallyport dev --demo` with the given flags, such as --exit, whose exit code it returns.

import { join } from 'node:path';
import { prepare, runProgram } from './dependencies.mjs';

const root = join(import.meta.dirname, '..');

// Ctrl-C also reaches the child (same terminal); waiting for the child lets it close its listeners.
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
