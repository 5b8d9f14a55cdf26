// `npm test`: the unit tests and the attacks, from a fresh clone. Installs what is missing, builds, and runs
// the tests. `--all` (`npm run test:all`) adds every other test that Node alone can run, and gives attacks by
// random documents ten times as many. Other arguments go to the test runner, and its exit code is ours.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare, runProgram } from '../scripts/dependencies.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENTS_OF_ALL = '20000';

const given = process.argv.slice(2);
const isAll = given.includes('--all');
const others = given.filter((argument) => argument !== '--all');
const isQuick = !isAll && others.length === 0;

if (isAll) console.info('All tests that Node alone can run: about fifteen minutes on two cores.');
if (isQuick)
  console.info(
    'The unit tests and the attacks, with 2,000 random documents: about eight minutes on two cores.\n' +
      'All tests, with 20,000: npm run test:all',
  );

const prepared = await prepare(ROOT);
process.exitCode =
  prepared === 0
    ? await runProgram(
        process.execPath,
        [
          join(ROOT, 'node_modules', 'vitest', 'vitest.mjs'),
          'run',
          // A file that is named is run wherever it is.
          ...(isQuick ? ['--project', '!rest*'] : others),
        ],
        {
          cwd: ROOT,
          env: isAll ? { ACTIVE_DOCUMENTS: DOCUMENTS_OF_ALL, ...process.env } : process.env,
        },
      )
    : prepared;
