// Starts and ends the programs of a run: those that end by themselves, and servers that are waited for.
// Every child is ended by its own process object, or with the group that it leads.

import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const READY_WITHIN_MS = 60_000;
const READY_PAUSE_MS = 100;
const RUN_WITHIN_MS = 300_000;
const END_WITHIN_MS = 5_000;

/** Whether a program can be started at all. */
export function isInstalled(command, args) {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

/** What a program prints in one line, without the line end. */
export function firstLine(command, args) {
  return spawnSync(command, args, { encoding: 'utf8' }).stdout.split('\n', 1)[0].trim();
}

/** Runs a program to its end; rejects with what it printed when it fails or takes too long. */
export async function run(command, args, options = {}) {
  const ended = await runToEnd(command, args, options);
  if (ended.code === 0) return ended.stdout;
  const said = `${ended.stderr}${ended.stdout}`.trim().split('\n').slice(-20).join('\n');
  throw new Error(`${command} ended with ${ended.code}: ${said}`);
}

/** Runs a program to its end, whatever its exit code. `onStderr` sees all that was said so far. */
export function runToEnd(command, args, { env = {}, cwd, input, onStderr } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), RUN_WITHIN_MS);
    const out = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      out.stderr += text;
      onStderr?.(out.stderr);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, ...out });
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** Starts a server and waits until `url` answers anything at all. */
export async function serve(command, args, { env = {}, url, withinMs = READY_WITHIN_MS, hasChildren = false }) {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own, so that what it starts ends with it.
    detached: hasChildren,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    said = `${said}${text}`.slice(-2_000);
  });
  const deadline = Date.now() + withinMs;
  while (Date.now() < deadline && child.exitCode === null) {
    if (await answers(url)) return { close: () => end(child, hasChildren) };
    await sleep(READY_PAUSE_MS);
  }
  await end(child, hasChildren);
  throw new Error(`${command} did not answer at ${url}: ${said}`);
}

async function answers(url) {
  try {
    const response = await fetch(url, { headers: { accept: 'text/event-stream' } });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

function end(child, isGroup) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const tell = (signal) => (isGroup ? process.kill(-child.pid, signal) : child.kill(signal));
    const timer = setTimeout(() => tell('SIGKILL'), END_WITHIN_MS);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    tell('SIGTERM');
  });
}

/** A port of loopback that was free a moment ago. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
