// Starts the gateway of the bench as a user would: files on disk, a real issuer, pins fetched and
// approved by its own command, every control armed, audit in a file. One policy of the usual size.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { start, stop } from './process.mjs';

/** The build of this checkout; another one can be given. */
export const OWN_DIST = fileURLToPath(new URL('../dist', import.meta.url));
/** The upstream that is always there. */
const MEASURED = 'bench';
const READY_TRIES = 300;
const READY_PAUSE_MS = 100;

/** A port of loopback that nobody listens on. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function configuration({ data, ops, issuer, upstreams }) {
  const lines = Object.entries(upstreams).map(
    ([name, url]) => `  ${name}: {url: "${url}", path: ${pathOf(name)}, network: loopback, issuers: [local]}\n`,
  );
  return `version: 1
publicUrl: http://127.0.0.1:${data}
listeners:
  data: {host: 127.0.0.1, port: ${data}}
  ops: {host: 127.0.0.1, port: ${ops}}
keys: [{file: ./key}]
issuers:
  local: {issuer: "${issuer}", network: loopback, algorithms: [ES256]}
upstreams:
${lines.join('')}${endpointOf(Object.keys(upstreams))}policies: {dir: ./policies}
pins: {dir: ./pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

/** Where there are several upstreams, they are also served together. */
export const ENDPOINT = 'together';

function endpointOf(names) {
  if (names.length < 2) return '';
  const backends = names.map((name) => `${name}: {prefix: ${name}_}`).join(', ');
  return `endpoints:\n  ${ENDPOINT}: {issuers: [local], upstreams: {${backends}}}\n`;
}

const pathOf = (upstream) => (upstream === MEASURED ? '/mcp' : `/${upstream}`);

const policy = (upstreams) => `version: 1
policy: bench
rules:
  - id: everyone-calls
    effect: allow
    who: {anyone: true}
    what: {upstreams: [${upstreams.join(', ')}], tools: ["*"]}
    args: {text: {type: string, maxLength: 2000}}
  - id: no-wipe
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["wipe_*"]}
`;

/**
 * Starts issuer and gateway. `core` pins the gateway; `execArgv` is for a profiler. `dist`: another build.
 * `others`: urls of more upstreams by name, each served under its name.
 */
export async function startGatewayForBench(upstreamUrl, core, execArgv = [], options = {}) {
  const { dist = OWN_DIST, others = {} } = options;
  const upstreams = { [MEASURED]: upstreamUrl, ...others };
  const main = join(dist, 'main.js');
  const { startIssuer } = await import(pathToFileURL(join(dist, 'dev/issuer.js')).href);
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-bench-'));
  const issuer = await startIssuer({ users: [{ name: 'bench', groups: [], scopes: [] }] });
  const [data, ops] = [await freePort(), await freePort()];
  const urlOf = (upstream) => `http://127.0.0.1:${data}${pathOf(upstream)}`;
  const file = join(folder, 'gateway.yaml');
  await mkdir(join(folder, 'policies'));
  await mkdir(join(folder, 'pins'));
  await writeFile(join(folder, 'key'), randomBytes(32).toString('base64'));
  await writeFile(file, configuration({ data, ops, issuer: issuer.issuer, upstreams }));
  await writeFile(join(folder, 'policies/bench.policy.yaml'), policy(Object.keys(upstreams)));
  const pinned = spawnSync(
    process.execPath,
    [main, 'pin', 'fetch', '-c', file, '--approve', '--by', 'bench', '--note', 'bench'],
    { encoding: 'utf8' },
  );
  if (pinned.status !== 0) throw new Error(`pin fetch failed: ${pinned.stderr}`);
  const { child } = await start(main, ['serve', '-c', file], {
    core,
    execArgv,
    expectMessage: false,
    output: 'ignore',
  });
  const tokenOf = (subject, upstream = MEASURED) =>
    issuer.mint({ resource: urlOf(upstream), subject, scopes: [], groups: [] });
  async function close() {
    await stop(child);
    await issuer.close();
    await rm(folder, { recursive: true, force: true });
  }
  const opsUrl = `http://127.0.0.1:${ops}`;
  try {
    await waitUntilReady(`${opsUrl}/readyz`, child);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    child,
    url: urlOf(MEASURED),
    urlOf,
    token: await tokenOf('bench'),
    tokenOf,
    ops: opsUrl,
    close,
  };
}

async function waitUntilReady(url, child) {
  for (let attempt = 0; attempt < READY_TRIES; attempt += 1) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.status === 200) return;
    if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, READY_PAUSE_MS));
  }
  throw new Error(`the gateway did not become ready at ${url}`);
}
