// Gateways as processes of their own, with one real store and one issuer, behind a small balancer that asks them whether
// they are ready: what an operator runs. For the system tests.

import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeKeyText } from '../../src/config/key-material.js';
import { readAudit } from './audit-chain.js';
import { ALLOW_ALL, type AuditLine, fetchPins, UPSTREAM } from './gateway.js';
import {
  buildProgram,
  findFreePort,
  type RedisServer,
  type Served,
  startRedisServer,
  startSallyport,
} from './processes.js';
import { startTestIssuer, type TestIssuer } from './tokens.js';
import type { Access } from './wire-client.js';

export type Forwarder = {
  readonly port: number;
  /** Passes nothing on, as a network that drops packets, and closes nothing. */
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
};

/** Forwards TCP connections to the port that `pick` names; ends them where there is none. */
export async function startForwarder(pick: () => number | undefined): Promise<Forwarder> {
  const open = new Set<Socket>();
  let isFrozen = false;
  const server = createServer((near) => {
    const port = pick();
    if (port === undefined) {
      near.destroy();
      return;
    }
    const far = connect(port, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      if (isFrozen) one.pause();
      one.on('data', (bytes) => void other.write(bytes));
      one.on('end', () => other.end());
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    freeze() {
      isFrozen = true;
      for (const socket of open) socket.pause();
    },
    thaw() {
      isFrozen = false;
      for (const socket of open) socket.resume();
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Replica = {
  readonly served: Served;
  readonly opsUrl: string;
  readonly dataPort: number;
  /** Status and text of the probe; status 0 where nobody answers. */
  readyz(): Promise<readonly [number, string]>;
  audit(): Promise<readonly AuditLine[]>;
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number>;
};

export type Deployment = {
  readonly redis: RedisServer;
  readonly issuer: TestIssuer;
  /** Starts a gateway; `more` are further lines of its file, `redisPort` where it finds the store. */
  start(options?: ReplicaOptions): Promise<Replica>;
  /** Makes the balancer use these, each while it says that it is ready. */
  balance(...replicas: readonly Replica[]): void;
  /** Those that the balancer uses now. */
  inUse(): readonly Replica[];
  access(subject: string): Promise<Access & { readonly token: string }>;
  close(): Promise<void>;
};

export type ReplicaOptions = {
  readonly more?: string;
  /** Further members of `state`, in flow style. */
  readonly state?: string;
  readonly redisPort?: number;
  readonly password?: string;
};

const POLL_EVERY_MS = 100;

async function readinessAt(opsUrl: string): Promise<readonly [number, string]> {
  try {
    const response = await fetch(`${opsUrl}/readyz`, { signal: AbortSignal.timeout(1_000) });
    return [response.status, await response.text()];
  } catch {
    return [0, ''];
  }
}

/** Starts issuer, store and balancer; the upstream is the caller's. */
export async function startDeployment(upstreamUrl: string): Promise<Deployment> {
  await buildProgram();
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-replicas-'));
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFile(join(folder, 'key'), writeKeyText(randomBytes(32)), { mode: 0o600 });
  await writeFile(join(folder, 'policies/open.policy.yaml'), ALLOW_ALL);
  const redis = await startRedisServer();
  const issuer = await startTestIssuer();
  const running = new Set<Replica>();
  let pins: Promise<void> | undefined;
  let balanced: readonly Replica[] = [];
  let ready: readonly Replica[] = [];
  let turn = 0;
  const balancer = await startForwarder(() => {
    turn += 1;
    return ready[turn % ready.length]?.dataPort;
  });
  const publicUrl = `http://127.0.0.1:${balancer.port}`;
  async function poll(): Promise<void> {
    const found = await Promise.all(balanced.map(async (one) => ((await one.readyz())[0] === 200 ? [one] : [])));
    ready = found.flat();
  }
  const timer = setInterval(() => void poll(), POLL_EVERY_MS);

  async function start(options: ReplicaOptions = {}): Promise<Replica> {
    const [data, ops] = [await findFreePort(), await findFreePort()];
    const url = new URL(redis.url);
    if (options.redisPort !== undefined) url.port = String(options.redisPort);
    if (options.password !== undefined) url.password = options.password;
    const file = join(folder, `gateway-${data}.yaml`);
    const audit = join(folder, `audit-of-${data}.jsonl`);
    await mkdir(`${audit}.d`);
    const auditFile = join(`${audit}.d`, 'audit.jsonl');
    await writeFile(
      file,
      `version: 1
publicUrl: ${publicUrl}
listeners: {data: {port: ${data}}, ops: {port: ${ops}}}
keys: [{file: ./key}]
issuers: {test: {issuer: ${JSON.stringify(issuer.issuer)}, network: loopback, algorithms: [ES256]}}
upstreams: {${UPSTREAM}: {url: ${JSON.stringify(upstreamUrl)}, network: loopback, issuers: [test], pinning: {maxAge: 10m}}}
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
audit: {sinks: [{type: file, path: ${JSON.stringify(auditFile)}}]}
state: {type: redis, url: {env: REDIS_URL}, commandTimeout: 300ms, ${options.state ?? 'maxAge: 3s'}}
${options.more ?? ''}
`,
    );
    pins ??= fetchPins(file, { REDIS_URL: url.href });
    await pins;
    const served = startSallyport(['serve', '-c', file], folder, { REDIS_URL: url.href });
    const opsUrl = `http://127.0.0.1:${ops}`;
    const replica: Replica = {
      ...{ served, opsUrl, dataPort: data },
      readyz: () => readinessAt(opsUrl),
      async audit() {
        const text = await readAudit(auditFile);
        return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
      },
      async end(signal) {
        running.delete(replica);
        served.signal(signal);
        return served.ended;
      },
    };
    running.add(replica);
    return replica;
  }

  return {
    ...{ redis, issuer, start },
    balance(...replicas) {
      balanced = replicas;
    },
    inUse: () => ready,
    async access(sub) {
      const url = `${publicUrl}/${UPSTREAM}`;
      return { url, token: await issuer.mint(url, { claims: { sub } }) };
    },
    async close() {
      clearInterval(timer);
      await balancer.close();
      await Promise.allSettled([...running].map((one) => one.end('SIGKILL')));
      await issuer.close();
      await redis.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
