// Starts the reference server "everything" over streamable HTTP as a child process on a free port.
// It speaks the session era. The child is ended by its own process object, never by name.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from './free-port.js';

export type Everything = { readonly url: string; readonly pid: number; close(): Promise<void> };

const START_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
const MAX_ATTEMPTS = 3;

const entry = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);

/** True once the endpoint answers anything at all; a GET without a session is a 400 there. */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { headers: { accept: 'text/event-stream' } });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

async function waitUntilReady(child: ChildProcess, url: string): Promise<boolean> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline && child.exitCode === null) {
    if (await answers(url)) return child.exitCode === null;
    await sleep(POLL_MS);
  }
  return false;
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Starts the server and waits until it answers. Tries another port when the first was taken. */
export async function startEverything(): Promise<Everything> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const port = await findFreePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    const child = spawn(process.execPath, [entry, 'streamableHttp'], {
      env: { PATH: process.env['PATH'], PORT: String(port) },
      stdio: 'ignore',
    });
    if (await waitUntilReady(child, url)) {
      return { url, pid: child.pid ?? 0, close: () => endChild(child) };
    }
    await endChild(child);
  }
  throw new Error('server-everything did not start');
}
