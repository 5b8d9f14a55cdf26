// Gateways as containers run them: each in a namespace of process ids of its own, where every one of them
// is process 1, on one folder. Two at once, one after a kill, and the rollout of the chart (`Recreate`).

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listFilesOf } from '../../src/audit/folder.js';
import { writeKeyText } from '../../src/config/key-material.js';
import { readAudit, verifyFolder } from '../support/audit-chain.js';
import { buildProgram, findFreePort } from '../support/processes.js';

const MAIN = join(import.meta.dirname, '../../dist/main.js');
const STARTED = { timeout: 60_000, interval: 100 };

type Container = {
  readonly outer: ChildProcess;
  readonly ended: Promise<unknown>;
  stdout(): string;
  stderr(): string;
};

let folder: string;
let audit: string;
let containers: Container[];

beforeAll(() => buildProgram());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-namespaces-'));
  audit = join(folder, 'audit.jsonl');
  containers = [];
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFile(join(folder, 'key'), writeKeyText(randomBytes(32)), { mode: 0o600 });
  await writeFile(
    join(folder, 'policies/none.policy.yaml'),
    'version: 1\npolicy: none\nrules:\n  - {id: none, effect: allow, who: {groups: [x]}, what: {upstreams: [one], tools: ["*"]}}\n',
  );
});
afterEach(async () => {
  for (const { outer, ended } of containers) {
    outer.kill('SIGKILL');
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
});

/** Starts a gateway as process 1 of a namespace; killing the outer process kills it. */
async function startContainer(): Promise<Container> {
  const [data, ops] = [await findFreePort(), await findFreePort()];
  const file = join(folder, `gateway-${data}.yaml`);
  await writeFile(
    file,
    `version: 1
publicUrl: http://127.0.0.1:${data}
listeners: {data: {port: ${data}}, ops: {port: ${ops}}}
keys: [{file: ./key}]
issuers: {test: {issuer: "http://127.0.0.1:9", network: loopback, algorithms: [ES256]}}
upstreams: {one: {url: "http://127.0.0.1:9/mcp", network: loopback, issuers: [test]}}
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
shutdown: {delay: 0s}
`,
  );
  const isRoot = process.getuid?.() === 0;
  const outer = spawn(
    'unshare',
    [
      ...(isRoot ? [] : ['--user', '--map-root-user']),
      ...['--pid', '--fork', '--mount-proc', '--kill-child'],
      ...[process.execPath, MAIN, 'serve', '-c', file],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const out = { stdout: '', stderr: '' };
  outer.stdout.on('data', (chunk) => {
    out.stdout += String(chunk);
  });
  outer.stderr.on('data', (chunk) => {
    out.stderr += String(chunk);
  });
  const container: Container = {
    outer,
    ended: once(outer, 'close'),
    stdout: () => out.stdout,
    stderr: () => out.stderr,
  };
  containers.push(container);
  return container;
}

const isServing = (container: Container) => (): boolean => container.stderr().includes('ops listening');

async function serving(): Promise<Container> {
  const container = await startContainer();
  await expect.poll(isServing(container), STARTED).toBe(true);
  return container;
}

/** Ends the gateway as a kubelet does; the outer process passes no signal on. */
async function terminate({ outer, ended }: Container): Promise<void> {
  const children = await readFile(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8');
  process.kill(Number(children.trim()), 'SIGTERM');
  await ended;
}

async function instances(): Promise<number> {
  const lines = (await readAudit(audit)).trimEnd().split('\n');
  return new Set(lines.map((line) => (JSON.parse(line) as { gateway: { run: string } }).gateway.run)).size;
}

describe('gateways in namespaces of their own', () => {
  it('[R-14] two at once write a file each, and the audit says that there were two', async () => {
    const one = await serving();
    const two = await serving();
    await terminate(one);
    await terminate(two);
    expect(await instances()).toBe(2);
    expect(await listFilesOf(audit)).toHaveLength(2);
    const verdict = await verifyFolder(folder);
    expect(verdict.faults).toEqual([]);
    expect(verdict.unsigned.lines).toBe(0);
    expect(verdict.twoWriters).toHaveLength(1);
  });

  it('[R-14] after a kill the next one starts at once, and names what it found', async () => {
    const one = await serving();
    one.outer.kill('SIGKILL');
    await one.ended;
    const two = await serving();
    await terminate(two);
    expect(await instances()).toBe(2);
    const verdict = await verifyFolder(folder);
    expect([verdict.faults, verdict.twoWriters]).toEqual([[], []]);
  });

  it('[R-14] one after the other, as in a rollout by Recreate, follow each other', async () => {
    const one = await serving();
    await terminate(one);
    await terminate(await serving());
    const verdict = await verifyFolder(folder);
    expect([verdict.faults, verdict.unchecked, verdict.twoWriters, verdict.unsigned.lines]).toEqual([[], [], [], 0]);
  });
});
