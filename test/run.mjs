// `npm test`: the unit tests and the attacks, from a fresh clone. Installs what is missing, builds, and runs
// the tests. `--all` (`npm run test:all`) adds every other test that Node alone can run, and gives the random
// tests more cases. Any other argument goes to the test runner, and its exit code is ours.

import { join } from 'node:path';
import { prepare, runProgram } from '../src/dev/dependencies.mjs';

const root = join(import.meta.dirname, '..');
const given = process.argv.slice(2);
const isAll = given.includes('--all');
const rest = given.filter((argument) => argument !== '--all');
// A file that is named is run, wherever it is.
const selection = isAll || rest.length > 0 ? rest : ['--project', 'unit', '--project', 'attacks'];

if (isAll) console.info('All tests that Node alone can run: about eight minutes on two cores.');
else if (rest.length === 0)
  console.info(
    'Unit tests and attacks, the random ones with few cases: about three minutes on two cores. ' +
      '`npm run test:all` runs every test.',
  );

const prepared = await prepare(root);
process.exitCode =
  prepared === 0
    ? await runProgram(
        process.execPath,
        [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...selection],
        { cwd: root, env: { ...process.env, ...(isAll ? { SALLYPORT_TESTS: 'all' } : {}) } },
      )
    : prepared;
