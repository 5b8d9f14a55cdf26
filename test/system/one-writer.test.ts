// Gateways as containers run them: each in a namespace of process ids of its own, where every one of them
// is process 1, on one folder. Two at once, one after a kill, and the rollout of the chart (`Recreate`).

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { leasePath } from '../../src/audit/writer-lease.js';
import { writeKeyText } from '../../src/config/key-material.js';
import { verifyChain } from '../support/audit-chain.js';
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

const isServing = (container: Container) => (): boolean => container.stdout().includes('ops listening');

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

async function chain(): Promise<readonly string[]> {
  return (await readFile(audit, 'latin1')).trimEnd().split('\n');
}

async function instances(): Promise<number> {
  const lines = (await chain()).map((line) => JSON.parse(line) as { gateway: { instance: string } });
  return new Set(lines.map(({ gateway }) => gateway.instance)).size;
}

describe('gateways in namespaces of their own', () => {
  it('[R-14] the second waits, says who writes, and ends with 1; the first goes on', async () => {
    const one = await serving();
    const lease = JSON.parse(await readFile(leasePath(audit), 'utf8')) as {
      instance: string;
      process: { pid: number };
    };
    // Each of them is process 1, as in a container.
    expect(lease.process.pid).toBe(1);
    const two = await startContainer();
    await two.ended;
    expect(two.outer.exitCode).toBe(1);
    expect(two.stdout()).toBe('');
    expect(two.stderr()).toContain(`another gateway writes the audit file`);
    expect(two.stderr()).toContain(`instance ${lease.instance}`);
    expect(await instances()).toBe(1);
    await terminate(one);
    expect(verifyChain(await chain()).faults).toEqual([]);
    await expect(readFile(leasePath(audit))).rejects.toThrow('ENOENT');
  });

  it('[R-14] after a kill the next one goes on within the wait', async () => {
    const one = await serving();
    one.outer.kill('SIGKILL');
    await one.ended;
    expect(JSON.parse(await readFile(leasePath(audit), 'utf8'))).toHaveProperty('instance');
    const two = await serving();
    await terminate(two);
    expect(await instances()).toBe(2);
    expect(verifyChain(await chain()).faults).toEqual([]);
  });

  it('[R-14] a rollout by Recreate: the next one starts when the one before has ended', async () => {
    const one = await serving();
    const two = await startContainer();
    await expect.poll(two.stderr, STARTED).toContain('waiting for the audit file');
    expect(isServing(two)()).toBe(false);
    await terminate(one);
    await expect.poll(isServing(two), STARTED).toBe(true);
    await terminate(two);
    expect(await instances()).toBe(2);
    const verdict = verifyChain(await chain());
    expect(verdict.faults).toEqual([]);
    expect(verdict.unsigned.lines).toBe(0);
  });
});
