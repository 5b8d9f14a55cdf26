// Starts the reference server "everything" over streamable HTTP as a child process on a free port.
// It speaks the session era. The child is ended by its own process object, never by name.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { canary } from './canary.js';
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

/**
 * What another process receives can be seen on the way alone: passes all bytes on, and keeps those that go
 * there.
 */
async function startTap(to: number): Promise<{ readonly port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    const there = connect(to, '127.0.0.1');
    let received = '';
    client.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    client.once('close', () => canary.recordSeen('a request to server-everything', received));
    for (const [socket, other] of [
      [client, there],
      [there, client],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on('error', () => other.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
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
      const tap = await startTap(port);
      return {
        url: `http://127.0.0.1:${tap.port}/mcp`,
        pid: child.pid ?? 0,
        async close() {
          await tap.close();
          await endChild(child);
        },
      };
    }
    await endChild(child);
  }
  throw new Error('server-everything did not start');
}
