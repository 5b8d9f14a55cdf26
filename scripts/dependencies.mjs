// Prepares a fresh clone with only Node and npm: installs the locked dependencies if they are missing or older
// than the lock file, and builds unless the build is of these very sources. Plain JavaScript, because it must run without
// dependencies. Never installs anything that the lock file does not name.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join, relative } from 'node:path';
import { refuseNode } from './node-version.mjs';

const SIGNAL_EXIT_BASE = 128;
/** Codes in npm's error output that mean that the registry was not reached. */
const UNREACHABLE =
  /^npm (?:ERR!|error) code (E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|HOSTUNREACH|NETUNREACH|RR_SOCKET_TIMEOUT)|E50[0-9])$/m;

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
    ([path, entry]) => path === '' || entry.optional === true || present[path]?.version === entry.version,
  );
}

/** Says of which sources `dist/` is; no part of the package. */
const BUILD_MARKER = '.sources';
/** What a build depends on besides the sources: its options, and the version of the compiler. */
const BUILT_FROM = ['tsconfig.json', 'package.json', 'package-lock.json'];

function filesBelow(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

/** Of the sources, and of the files with these names. */
export function digestOfSources(root, names = BUILT_FROM) {
  const digest = createHash('sha256');
  const below = existsSync(join(root, 'src')) ? filesBelow(join(root, 'src')) : [];
  for (const file of [...names.map((name) => join(root, name)).filter(existsSync), ...below.sort()])
    digest.update(`${relative(root, file)}\0${statSync(file).size}\0`).update(readFileSync(file));
  return digest.digest('hex');
}

/** True if `dist/` is the build of the sources as they are, and nothing has been written there since. */
export function isBuilt(root) {
  const dist = join(root, 'dist');
  const marker = join(dist, BUILD_MARKER);
  if (!existsSync(marker) || readFileSync(marker, 'utf8') !== digestOfSources(root)) return false;
  const built = filesBelow(dist);
  const madeAt = statSync(marker).mtimeMs;
  const compiled = filesBelow(join(root, 'src')).filter((file) => file.endsWith('.ts'));
  const wanted = compiled.map((file) => join(dist, relative(join(root, 'src'), file).replace(/ts$/, 'js')));
  return built.every((file) => statSync(file).mtimeMs <= madeAt) && wanted.every((file) => built.includes(file));
}

/**
 * Runs a program with inherited output and resolves with its exit code, or 128 plus the signal number if a
 * signal ended it. `onStderr` gets what it writes to standard error instead. Rejects if the program cannot be started.
 */
export function runProgram(command, args, { onStderr, ...options }) {
  return new Promise((resolve, reject) => {
    const stderr = onStderr === undefined ? 'inherit' : 'pipe';
    const child = spawn(command, args, { stdio: ['inherit', 'inherit', stderr], ...options });
    child.stderr?.setEncoding('utf8').on('data', onStderr);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve(code ?? SIGNAL_EXIT_BASE + (constants.signals[signal] ?? 0));
    });
  });
}

function npmCommand(env) {
  const script = env['npm_execpath'];
  return script?.endsWith('.js') ? [process.execPath, script] : ['npm'];
}

/** Installs the locked dependencies of a package if they are missing. Resolves with the exit code. */
export async function install(root, { run = runProgram, env = process.env, say = console.error } = {}) {
  if (isInstalled(root)) return 0;
  say('Installing the locked dependencies (npm ci).');
  const [command, ...script] = npmCommand(env);
  const args = [...script, 'ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund'];
  let stderr = '';
  const code = await run(command, args, {
    cwd: root,
    env: installEnvironment(env),
    onStderr: (text) => {
      stderr += text;
    },
  });
  if (code !== 0) say(describeFailure(stderr, code));
  return code;
}

/** One line where the registry was not reached; otherwise what npm wrote, and a line after it. */
function describeFailure(stderr, code) {
  const [, cause] = UNREACHABLE.exec(stderr) ?? [];
  return cause === undefined
    ? `${stderr.trimEnd()}\nThe dependencies could not be installed: npm ci failed with exit code ${code}.`
    : `The dependencies could not be installed: npm could not reach its registry (${cause}). Check the network, or the address that "npm config get registry" prints.`;
}

/** What npm passes to scripts of its own command line and package, which do not concern another installation. */
const OUTER =
  /^npm_config_(?:engine_strict|loglevel|global|location|prefix|local_prefix|global_prefix|allow_scripts|json|pack_destination)$/;

/**
 * Scripts are left out: `prepare` is this one, and no dependency needs any. Retries wait a second, not ten: without a
 * network the answer should not take minutes.
 */
function installEnvironment(env) {
  const own = Object.entries(env).filter(([name]) => !OUTER.test(name));
  return {
    npm_config_fetch_retry_mintimeout: '1000',
    npm_config_fetch_retry_maxtimeout: '5000',
    ...Object.fromEntries(own),
    npm_config_ignore_scripts: 'true',
  };
}

/**
 * Installs what is missing, then builds if the build is not that of the sources. Resolves with 0, or with the exit code of the step that failed.
 * `run` starts a program; it is a parameter so that the order of the steps can be tested.
 */
export async function prepare(root, { run = runProgram, env = process.env, say = console.error } = {}) {
  const refusal = refuseNode();
  if (refusal !== undefined) {
    say(refusal);
    return 2;
  }
  const installed = await install(root, { run, env, say });
  if (installed !== 0) return installed;
  return isBuilt(root) ? 0 : build(root, { run, say });
}

async function build(root, { run, say }) {
  say('Building.');
  const sources = digestOfSources(root);
  const code = await run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc')], { cwd: root });
  // A source that changed meanwhile may be in the build or not.
  if (code === 0 && existsSync(join(root, 'dist')) && digestOfSources(root) === sources)
    writeFileSync(join(root, 'dist', BUILD_MARKER), sources);
  return code;
}
