import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { findFreePort } from '../support/processes.js';
import { buildImage, IMAGE, MACHINE_FLAGS, ROOT } from './image.js';
import { must, run } from './programs.js';

const READY_TRIES = 150;
const READY_PAUSE_MS = 200;
const NAME = `sallyport-test-${process.pid}`;
const RUN_FLAGS = [
  ...MACHINE_FLAGS,
  '--network=host',
  '--read-only',
  '--cap-drop=all',
  '--security-opt=no-new-privileges',
];

let folder: string;
let dataPort: number;
let opsPort: number;
let upstream: Awaited<ReturnType<typeof startDemoUpstream>>;

async function writeFiles(): Promise<void> {
  for (const name of ['config', 'policies', 'pins', 'secrets', 'audit']) await mkdir(join(folder, name));
  await writeFile(join(folder, 'secrets/key'), randomBytes(32).toString('base64'));
  await chmod(join(folder, 'secrets/key'), 0o644);
  await chmod(join(folder, 'audit'), 0o777);
  await chmod(folder, 0o755);
  await writeFile(
    join(folder, 'config/gateway.yaml'),
    `version: 1
publicUrl: http://127.0.0.1:${dataPort}
listeners:
  data: {host: 127.0.0.1, port: ${dataPort}}
  ops: {host: 127.0.0.1, port: ${opsPort}}
keys: [{file: /run/secrets/sallyport/key}]
issuers: {local: {issuer: "http://127.0.0.1:9", network: loopback, algorithms: [ES256]}}
upstreams:
  tickets: {url: "${upstream.url}", network: loopback, issuers: [local]}
policies: {dir: /etc/sallyport/policies}
pins: {dir: /etc/sallyport/pins}
audit: {sinks: [{type: file, path: /var/lib/sallyport/audit.jsonl}]}
shutdown: {delay: 1s}
startup: {wait: 1s}
`,
  );
}

async function waitUntilReady(): Promise<void> {
  for (let attempt = 0; attempt < READY_TRIES; attempt += 1) {
    const ready = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => undefined);
    if (ready?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, READY_PAUSE_MS));
  }
  const logs = await run('podman', ['logs', NAME]);
  throw new Error(`the container did not become ready: ${logs.stdout}${logs.stderr}`);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-container-'));
  upstream = await startDemoUpstream({ port: 0 });
  dataPort = await findFreePort();
  opsPort = await findFreePort();
  await buildImage(folder);
  await writeFiles();
  const mounts = ['config', 'policies', 'pins'].flatMap((name) => [
    '-v',
    `${folder}/${name}:/etc/sallyport/${name}:ro`,
  ]);
  await must('podman', [
    'run',
    '-d',
    '--name',
    NAME,
    ...RUN_FLAGS,
    ...mounts,
    '-v',
    `${folder}/secrets:/run/secrets/sallyport:ro`,
    '-v',
    `${folder}/audit:/var/lib/sallyport`,
    IMAGE,
  ]);
  await waitUntilReady();
});

afterAll(async () => {
  await run('podman', ['rm', '-f', NAME]);
  await upstream?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

describe('the container image', () => {
  it('[R-10] serves as a user without a name, on a read-only root, without capabilities', async () => {
    const inspected = JSON.parse(await must('podman', ['inspect', NAME]))[0];
    expect(inspected.Config.User).toBe('65532:65532');
    expect(inspected.HostConfig.ReadonlyRootfs).toBe(true);
    expect(inspected.EffectiveCaps ?? []).toEqual([]);
  });

  it('[R-11] challenges a caller without a token and names its metadata', async () => {
    const response = await fetch(`http://127.0.0.1:${dataPort}/tickets`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain(
      `resource_metadata="http://127.0.0.1:${dataPort}/.well-known/oauth-protected-resource/tickets"`,
    );
    expect(upstream.seen().filter((seen) => seen.method === 'ping')).toEqual([]);
  });

  it('[R-12] is healthy by a command of its own, since there is no shell', async () => {
    const healthy = await run('podman', ['exec', NAME, '/nodejs/bin/node', '/app/dist/main.js', 'healthcheck']);
    // The port is another than by default, and in the gateway file alone.
    expect([healthy.stderr, healthy.code]).toEqual(['', 0]);
    const shell = await run('podman', ['exec', NAME, 'sh', '-c', 'true']);
    expect(shell.code).not.toBe(0);
    const dead = await run('podman', [
      'exec',
      NAME,
      '/nodejs/bin/node',
      '/app/dist/main.js',
      'healthcheck',
      '--port',
      '9',
    ]);
    expect(dead.code).toBe(1);
  });

  it('[R-13] drains and ends at SIGTERM, leaving a chain that verifies', async () => {
    await must('podman', ['stop', '-t', '20', NAME]);
    const inspected = JSON.parse(await must('podman', ['inspect', NAME]))[0];
    expect(inspected.State.ExitCode).toBe(143);
    const verified = await run('node', [join(ROOT, 'dist/main.js'), 'audit', 'verify', join(folder, 'audit')]);
    expect(verified.stderr + verified.stdout).not.toBe('');
    expect(verified.code).toBe(0);
  });
});
