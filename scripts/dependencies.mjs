// Prepares a fresh clone with only Node and npm: installs the locked dependencies if they are missing or older
// than the lock file, and builds. Plain JavaScript, because it must run without dependencies. Never installs
// anything that the lock file does not name.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';

const MIN_NODE = [20, 19];
const SIGNAL_EXIT_BASE = 128;

/** True if this Node version can run the project. */
export function isSupportedNode(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
}

/** True if npm's last installation is at least as new as the lock file, or has the same versions. */
export function isInstalled(root) {
  const marker = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(marker)) return false;
  const lock = statSync(join(root, 'package-lock.json')).mtimeMs;
  return statSync(marker).mtimeMs >= lock || isSameLock(root, marker);
}

/** A checkout gives files new times; the versions of the installed packages are then compared. */
function isSameLock(root, marker) {
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const present = JSON.parse(readFileSync(marker, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, entry]) =>
      path === '' || entry.optional === true || present[path]?.version === entry.version,
  );
}

/**
 * Runs a program with inherited output and resolves with its exit code, or 128 plus the signal number if a
 * signal ended it. Rejects if the program cannot be started.
 */
export function runProgram(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', ...options });
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      resolve(code ?? SIGNAL_EXIT_BASE + (constants.signals[signal] ?? 0));
    });
  });
}

function npmCommand(env) {
  const script = env['npm_execpath'];
  return script?.endsWith('.js') ? [process.execPath, script] : ['npm'];
}

/** Installs the locked dependencies of a package if they are missing. Resolves with the exit code. */
export async function install(
  root,
  { run = runProgram, env = process.env, say = console.error } = {},
) {
  if (isInstalled(root)) return 0;
  say('Installing the locked dependencies (npm ci) …');
  const [command, ...script] = npmCommand(env);
  const args = [...script, 'ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  return run(command, args, { cwd: root, env: withoutStrictness(env) });
}

/** Removes settings of the running package that npm passes to its children: each package has its own. */
function withoutStrictness(env) {
  const { npm_config_engine_strict: _strict, npm_config_loglevel: _level, ...rest } = env;
  return rest;
}

/**
 * Installs what is missing, then builds. Resolves with 0, or with the exit code of the step that failed.
 * `run` starts a program; it is a parameter so that the order of the steps can be tested.
 */
export async function prepare(
  root,
  { run = runProgram, env = process.env, say = console.error } = {},
) {
  if (!isSupportedNode(process.versions.node)) {
    say(`Node ${MIN_NODE.join('.')} or later is needed; this is ${process.versions.node}.`);
    return 2;
  }
  const installed = await install(root, { run, env, say });
  if (installed !== 0) return installed;
  say('Building …');
  return run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc')], {
    cwd: root,
  });
}
