// `npm test`: everything that Node alone can run, from a fresh clone. Installs what is missing, builds,
// and runs the tests; arguments go to the test runner, and its exit code is ours.

import { join } from 'node:path';
import { prepare, runProgram } from '../src/dev/dependencies.mjs';

const root = join(import.meta.dirname, '..');
const prepared = await prepare(root);
process.exitCode =
  prepared === 0
    ? await runProgram(
        process.execPath,
        [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...process.argv.slice(2)],
        { cwd: root },
      )
    : prepared;
