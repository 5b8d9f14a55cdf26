// Starts the built gateway as an operator would, in front of the fixture: files in a folder of its own,
// pins fetched and approved by its own command, a policy that allows everything, inspection with its
// default profile, audit in a file. The route asks for no token, because the suite cannot send one.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { TEMPLATE } from './fixture/content.ts';

const MAIN = join(import.meta.dirname, '../dist/main.js');
/** A minute: other tests run beside. */
const READY_TRIES = 600;
const READY_PAUSE_MS = 100;
const STOP_TIMEOUT_MS = 10_000;
const UNARMED = /^sallyport_controls\{control="([^"]+)",state="(?:degraded|off)"\} (\d+)$/gm;

export type GatewayUnderTest = {
  readonly url: string;
  /** Lines of the audit files so far. */
  countAudited(): Promise<number>;
  /** Kinds of controls of which one is not armed now, by the gateway's own account. */
  listUnarmed(): Promise<readonly string[]>;
  close(): Promise<void>;
};

type Ended = { readonly code: number | null; readonly output: string };

/** Starts it. `node` is the Node that runs it, which need not be the one that runs the suite. */
export async function startGateway(node: string, upstreamUrl: string): Promise<GatewayUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-conformance-'));
  const [data, ops] = [await findFreePort(10_000, 11_000), await findFreePort(11_000, 12_000)];
  const file = join(folder, 'gateway.yaml');
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFile(file, gatewayText(upstreamUrl, data, ops));
  const approval = ['--approve', '--by', 'conformance', '--note', 'the fixture of this run'];
  await runCommand(node, ['pin', 'fetch', '-c', file, ...approval]);
  await writePolicy(node, file, join(folder, 'policies/open.policy.yaml'));
  const child = spawn(node, [MAIN, 'serve', '-c', file], { stdio: 'ignore' });
  try {
    await waitUntilReady(child, `http://127.0.0.1:${ops}/readyz`);
  } catch (error) {
    await stop(child);
    throw error;
  }
  return {
    url: `http://127.0.0.1:${data}/fixture`,
    async countAudited() {
      const files = (await readdir(folder)).filter((name) => name.startsWith('audit-'));
      const texts = await Promise.all(files.map((name) => readFile(join(folder, name), 'utf8')));
      return texts.join('').split('\n').length - 1;
    },
    listUnarmed: () => readUnarmed(`http://127.0.0.1:${ops}/metrics`),
    async close() {
      await stop(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function gatewayText(upstreamUrl: string, data: number, ops: number): string {
  return `version: 1
publicUrl: http://127.0.0.1:${data}
listeners:
  data: {host: 127.0.0.1, port: ${data}}
  ops: {host: 127.0.0.1, port: ${ops}}
upstreams:
  fixture: {url: "${upstreamUrl}", network: loopback, authentication: none}
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

/** Allows everything; what servers may ask of clients too, where this build lets a policy grant it. */
async function writePolicy(node: string, file: string, policy: string): Promise<void> {
  await writeFile(policy, policyText(', sampling: true, elicitation: [form, url], roots: true'));
  const { code } = await ended(spawn(node, [MAIN, 'validate', '-c', file], { stdio: 'pipe' }));
  if (code === 0) return;
  await writeFile(policy, policyText(''));
  await runCommand(node, ['validate', '-c', file]);
}

function policyText(questions: string): string {
  return `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: [fixture], tools: ["*"], prompts: ["*"], resources: ["**"], templates: ["${TEMPLATE}"]${questions}}
`;
}

async function runCommand(node: string, args: readonly string[]): Promise<void> {
  const { code, output } = await ended(spawn(node, [MAIN, ...args], { stdio: 'pipe' }));
  if (code !== 0) throw new Error(`sallyport ${args[0]} ended with ${code}: ${output}`);
}

async function ended(child: ChildProcess): Promise<Ended> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

async function waitUntilReady(child: ChildProcess, url: string): Promise<void> {
  for (let attempt = 0; attempt < READY_TRIES && child.exitCode === null; attempt += 1) {
    const response = await fetch(url).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.status === 200) return;
    await sleep(READY_PAUSE_MS);
  }
  throw new Error('the gateway did not become ready');
}

async function readUnarmed(url: string): Promise<readonly string[]> {
  const text = await (await fetch(url)).text();
  const counts = [...text.matchAll(UNARMED)];
  if (counts.length === 0) throw new Error('the gateway tells of no controls');
  return counts.flatMap(([, control = '', count]) => (count === '0' ? [] : [control]));
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}

/** A port that is free now. Both ranges are below those of other tests and of outgoing connections, which run beside. */
async function findFreePort(from: number, below: number): Promise<number> {
  for (;;) {
    const port = randomInt(from, below);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer().once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
