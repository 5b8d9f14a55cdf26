// compose.yaml: its gateway and demo server run from our own image, with a Redis of this machine and tokens of the
// development issuer in place of Keycloak. The images of the other services cannot be had everywhere, so their files
// are checked without running them.

import { randomBytes } from 'node:crypto';
import { access, cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type DevIssuer, startIssuer } from '../../src/dev/issuer.js';
import { findFreePort, type RedisServer, startRedisServer } from '../support/processes.js';
import { requestStateless } from '../support/wire-client.js';
import { buildImage, IMAGE, MACHINE_FLAGS, ROOT } from './image.js';
import { must, podmanCompose, run } from './programs.js';

type Service = {
  image: string;
  build?: string;
  command?: readonly string[];
  network_mode?: string;
  ports?: readonly string[];
  depends_on?: readonly string[];
  environment?: Record<string, string>;
  volumes?: string[];
};
type Compose = { services: Record<string, Service>; volumes: Record<string, null> };

const READY_TRIES = 300;
const READY_PAUSE_MS = 200;
const PROJECT = `sallyport-compose-${process.pid}`;

let folder: string;
let compose: Compose;
let gatewayText: string;

/** Runs podman-compose on the file in this folder. */
function runCompose(
  args: readonly string[],
  { cwd = folder, env = {} }: { cwd?: string; env?: Readonly<Record<string, string>> } = {},
) {
  const { program, env: own } = podmanCompose();
  return run(program, ['--project-name', PROJECT, ...args], { cwd, env: { ...own, ...env } });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-compose-'));
  compose = parse(await readFile(join(ROOT, 'compose.yaml'), 'utf8')) as Compose;
  gatewayText = await readFile(join(ROOT, 'config/compose/gateway/gateway.yaml'), 'utf8');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the gateway and the demo server of compose.yaml', () => {
  let redis: RedisServer;
  let issuer: DevIssuer;
  let dataUrl: string;

  /** The two services on this machine's network, which stands for the one that all of them share. */
  async function writeFiles(): Promise<void> {
    const [data, ops, demo] = [await findFreePort(), await findFreePort(), await findFreePort()];
    dataUrl = `http://127.0.0.1:${data}`;
    await cp(join(ROOT, 'config'), join(folder, 'config'), { recursive: true });
    const text = gatewayText
      .replaceAll('8080', String(data))
      .replace('9464', String(ops))
      .replace('3001', String(demo))
      .replace('http://127.0.0.1:8081/realms/mcp', issuer.issuer)
      .replace('RS256', 'ES256');
    await writeFile(join(folder, 'config/compose/gateway/gateway.yaml'), text);
    const { 'demo-server': server, gateway } = compose.services;
    if (server === undefined || gateway === undefined) throw new Error('the services are missing');
    const { ports: _ports, build: _serverBuild, ...ownServer } = server;
    const { build: _build, ...ownGateway } = gateway;
    const services = {
      'demo-server': {
        ...ownServer,
        image: IMAGE,
        network_mode: 'host',
        command: ['demo-server', '--port', String(demo)],
      },
      gateway: {
        ...ownGateway,
        image: IMAGE,
        network_mode: 'host',
        depends_on: ['demo-server'],
        environment: { ...gateway.environment, REDIS_URL: redis.url },
      },
    };
    await writeFile(join(folder, 'compose.yaml'), stringify({ services, volumes: compose.volumes }));
    const secret = randomBytes(32).toString('base64');
    await writeFile(join(folder, '.env'), `SALLYPORT_KEY=${secret}\nDEMO_PASSWORD=unused\n`);
    readyUrl = `http://127.0.0.1:${ops}/readyz`;
  }
  let readyUrl: string;

  async function waitUntilReady(): Promise<void> {
    for (let attempt = 0; attempt < READY_TRIES; attempt += 1) {
      const ready = await fetch(readyUrl).catch(() => undefined);
      if (ready?.status === 200) return;
      await sleep(READY_PAUSE_MS);
    }
    const logs = await runCompose(['logs']);
    throw new Error(`the gateway did not become ready: ${logs.stdout}${logs.stderr}`);
  }

  beforeAll(async () => {
    redis = await startRedisServer();
    issuer = await startIssuer({
      users: [{ name: 'alice', groups: [], scopes: [] }],
    });
    await buildImage(folder);
    await writeFiles();
    const flags = MACHINE_FLAGS.map((flag) => `--podman-run-args=${flag}`);
    const started = await runCompose([...flags, 'up', '-d', '--no-build']);
    if (started.code !== 0) throw new Error(`podman-compose: ${started.stdout}${started.stderr}`);
    await waitUntilReady();
  });
  afterAll(async () => {
    await runCompose(['down', '--volumes']);
    await redis?.close();
    await issuer?.close();
  });

  function call(groups: readonly string[], name: string, args: object) {
    const resource = `${dataUrl}/desk`;
    return issuer
      .mint({ resource, subject: 'alice', groups, scopes: ['tickets:read'] })
      .then((token) => requestStateless({ url: resource, token }, 'tools/call', { name, arguments: { ...args } }));
  }

  it('[IN-05] serve an allowed call by the pins in the tree, and refuse another', async () => {
    const ticket = await call(['engineering'], 'get_ticket', { project: 'web', id: 'T-101' });
    expect(JSON.stringify(ticket)).toContain('T-101');
    const finance = await call(['engineering'], 'get_ticket', { project: 'finance', id: 'T-104' });
    expect(JSON.stringify(finance)).toContain('arguments-invalid');
    const stranger = await call(['support'], 'get_ticket', { project: 'web', id: 'T-101' });
    expect(JSON.stringify(stranger)).toContain('-32602');
  });

  it('[IN-05] have a pin of everything that the demo server offers', async () => {
    const file = join(folder, 'config/compose/gateway/gateway.yaml');
    const env = { SALLYPORT_KEY: randomBytes(32).toString('base64'), REDIS_URL: redis.url };
    const args = [join(ROOT, 'dist/main.js'), 'pin', 'verify', '-c', file];
    const verified = await run('node', args, { env });
    expect(verified).toMatchObject({ code: 0, stdout: 'desk: as pinned\n' });
  });

  it('[IN-05] keep an audit log in the volume that verifies', async () => {
    const volume = (await must('podman', ['volume', 'ls', '--quiet'])).match(new RegExp(`^${PROJECT}_audit$`, 'm'));
    const [{ Mountpoint }] = JSON.parse(await must('podman', ['volume', 'inspect', String(volume)])) as [
      { Mountpoint: string },
    ];
    await runCompose(['stop', 'gateway']);
    const main = join(ROOT, 'dist/main.js');
    const { code, stdout } = await run('node', [main, 'audit', 'verify', Mountpoint]);
    expect(stdout).not.toBe('');
    expect(code).toBe(0);
  });
});

describe('the other services of compose.yaml', () => {
  it('[IN-05] are read by podman-compose, and want the secrets that are in no file', async () => {
    const cwd = await mkdtemp(join(folder, 'plain-'));
    await cp(join(ROOT, 'compose.yaml'), join(cwd, 'compose.yaml'));
    const shownBy = ['--profile', 'monitoring', 'config'];
    const refused = await runCompose(shownBy, { cwd });
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('docs/guides/install.md');
    const env = { SALLYPORT_KEY: 'k', DEMO_PASSWORD: 'p' };
    const shown = parse((await runCompose(shownBy, { cwd, env })).stdout) as Compose;
    expect(Object.keys(shown.services).sort()).toEqual(Object.keys(compose.services).sort());
    // Whatever is not the owner of the network namespace shares it.
    const { 'demo-server': owner, ...others } = compose.services;
    expect(owner?.network_mode).toBeUndefined();
    for (const { network_mode: mode } of Object.values(others)) expect(mode).toBe('service:demo-server');
  });

  it('[IN-05] scrape what the gateway serves', async () => {
    const file = join(ROOT, 'config/compose/prometheus.yaml');
    expect(await must('promtool', ['check', 'config', file])).toContain('SUCCESS');
    const { scrape_configs: jobs } = parse(await readFile(file, 'utf8'));
    const ops = parse(gatewayText).listeners.ops;
    expect(jobs[0].static_configs[0].targets).toEqual([`${ops.host}:${ops.port}`]);
  });

  it('[IN-05] mount the rules and the dashboards where Prometheus and Grafana look for them', async () => {
    const mountsOf = (name: string) =>
      new Map((compose.services[name]?.volumes ?? []).map((volume) => volume.split(':') as [string, string]));
    const read = async (file: string) => parse(await readFile(join(ROOT, 'config/compose', file), 'utf8'));
    const mounted = [...mountsOf('prometheus'), ...mountsOf('grafana')].map(([path]) => join(ROOT, path));
    await Promise.all(mounted.map((path) => access(path)));
    const { rule_files: rules } = await read('prometheus.yaml');
    expect(rules).toEqual([`${mountsOf('prometheus').get('./config/prometheus')}/*.rules.yaml`]);
    const { providers } = await read('grafana/dashboards.yaml');
    expect(providers[0].options.path).toBe(mountsOf('grafana').get('./config/grafana'));
    const { datasources } = await read('grafana/datasources.yaml');
    expect(datasources[0].url).toBe('http://127.0.0.1:9090');
    expect(compose.services['prometheus']?.command?.join()).toContain(':9090');
  });

  it('[IN-05] have a realm that fits the gateway and holds no secret', async () => {
    const realmText = await readFile(join(ROOT, 'config/compose/realm.json'), 'utf8');
    const realm = JSON.parse(realmText);
    const gateway = parse(gatewayText);
    const { environment } = compose.services['keycloak'] ?? {};
    expect(gateway.issuers.keycloak.issuer).toBe(`${environment?.['KC_HOSTNAME']}/realms/${realm.realm}`);
    expect(realmText).toContain(`"included.custom.audience": "${gateway.publicUrl}/desk"`);
    expect(realmText).not.toContain('"secret"');
    const credentials = realm.users.flatMap((user: { credentials: object[] }) => user.credentials);
    const referred = { type: 'password', value: `$\{DEMO_PASSWORD}`, temporary: false };
    expect(credentials).toEqual([referred, referred]);
    // Clients request offline_access, because Keycloak offers it; refused, the login fails.
    for (const user of realm.users) expect(user.realmRoles).toContain('offline_access');
    const [loginClient] = realm.clients;
    expect(loginClient.clientId).toBe('mcp-client');
    expect(loginClient.optionalClientScopes).toContain('offline_access');
    const policy = parse(await readFile(join(ROOT, 'config/compose/gateway/policies/desk.policy.yaml'), 'utf8'));
    const names = (list: { name: string }[]) => list.map(({ name }) => name);
    for (const { who, scopes = [] } of policy.rules) {
      expect(names(realm.groups)).toEqual(expect.arrayContaining(who.groups ?? []));
      expect(names(realm.clientScopes)).toEqual(expect.arrayContaining(scopes));
    }
  });
});
