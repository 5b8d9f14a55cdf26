// `npm run demo`: from a fresh clone to a running demo. Installs what is missing, builds, and runs
// `sallyport demo` with the given flags, such as --exit or --scene NAME, in this process: a signal to it, or the end of npm,
// leaves nothing behind.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { refuseNode } from './node-version.mjs';

const PARENT_CHECK_MS = 500;

/** The process id of the npm that runs this script through a shell; `undefined` where there is no shell, or no ps. */
function findNpm() {
  if (process.env.npm_lifecycle_event === undefined) return undefined;
  try {
    const columns = ['-o', 'ppid=', '-o', 'comm=', '-p', String(process.ppid)];
    const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] };
    const [parent, name] = execFileSync('ps', columns, options).trim().split(/\s+/);
    return /(?:^|\/)(?:ba|da|a|z)?sh$/.test(name) ? Number(parent) : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** A killed npm signals neither its shell nor this script, which therefore looks whether both are still there. */
function endWithNpm() {
  const parent = process.ppid;
  const npm = findNpm();
  const timer = setInterval(() => {
    if (process.ppid === parent && (npm === undefined || isAlive(npm))) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, PARENT_CHECK_MS);
  timer.unref();
}

async function launch() {
  const { prepare } = await import('./dependencies.mjs');
  const prepared = await prepare(fileURLToPath(new URL('..', import.meta.url)));
  if (prepared !== 0) {
    process.exitCode = prepared;
    return;
  }
  const main = new URL('../dist/main.js', import.meta.url);
  process.argv = [process.execPath, fileURLToPath(main), 'demo', ...process.argv.slice(2)];
  await import(main.href);
}

const refusal = refuseNode();
if (refusal === undefined) {
  endWithNpm();
  void launch();
} else {
  console.error(refusal);
  process.exitCode = 2;
}
