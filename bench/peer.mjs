// Another gateway beside ours in the same run (`--peer PROGRAM`): mcp-proxy 0.4.3, which `cargo install` builds. It has a
// static token, a hidden tool and its audit log, which is all it can do of what ours does in this bench.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './gateway.mjs';

const READY_TRIES = 100;
const READY_PAUSE_MS = 100;
/** It puts the name of the backend before each tool. */
const BACKEND = 'bench';
const SEPARATOR = '/';
/** Of a stream it passes on the result alone, without the ten progress notifications before it. */
const RESULT_BYTES = 900;

const configuration = ({ port, token, upstreamUrl }) => `[proxy]
name = "peer"
separator = "${SEPARATOR}"
[proxy.listen]
host = "127.0.0.1"
port = ${port}
[auth]
type = "bearer"
tokens = ["${token}"]
[[backends]]
name = "${BACKEND}"
transport = "http"
url = "${upstreamUrl}"
hide_tools = ["wipe_*"]
[observability]
audit = true
log_level = "info"
`;

async function waitUntilReady(url, token, child) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  for (let attempt = 0; attempt < READY_TRIES; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`the peer ended with ${child.exitCode}`);
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    if (await fetch(url, { method: 'POST', headers, body }).catch(() => undefined)) return;
    await sleep(READY_PAUSE_MS);
  }
  throw new Error(`the peer did not answer at ${url}`);
}

/** Starts the peer in front of the upstream, on `core`. It speaks the era of sessions only. */
export async function startPeer(program, upstreamUrl, core) {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-peer-'));
  const file = join(folder, 'proxy.toml');
  const [port, token] = [await freePort(), randomBytes(16).toString('hex')];
  await writeFile(file, configuration({ port, token, upstreamUrl }));
  const log = await open(join(folder, 'log'), 'w');
  const command = ['-c', String(core), program, '--config', file];
  const child = spawn('taskset', command, { stdio: ['ignore', log.fd, log.fd] });
  const isOver = new Promise((resolve) => child.once('exit', resolve));
  async function close() {
    child.kill();
    await isOver;
    await log.close();
    await rm(folder, { recursive: true, force: true });
  }
  const url = `http://127.0.0.1:${port}/`;
  try {
    await waitUntilReady(url, token, child);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url,
    token,
    pid: child.pid,
    toolPrefix: `${BACKEND}${SEPARATOR}`,
    needsInitialized: true,
    minStreamBytes: RESULT_BYTES,
    close,
  };
}
