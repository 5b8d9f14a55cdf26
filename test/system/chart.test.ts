import { copyFile, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { helmProgram, must, run } from './programs.js';

const CHART = fileURLToPath(new URL('../../helm', import.meta.url));
const CLUSTER = ['--kube-version', '1.31.0'];

type Resource = {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly [key: string]: unknown;
};

async function template(...args: string[]): Promise<readonly Resource[]> {
  const text = await must(helmProgram(), ['template', 'edge', CHART, ...CLUSTER, ...args]);
  return parseAllDocuments(text).map((document) => document.toJS() as Resource);
}

/** What helm says of a chart that it does not render. */
async function refusal(...args: string[]): Promise<string> {
  const outcome = await run(helmProgram(), ['template', 'edge', CHART, ...CLUSTER, ...args]);
  expect(outcome.code).not.toBe(0);
  return outcome.stderr;
}

/** The notes that an installation prints, which helm renders for no command that needs no cluster. */
async function notes(...args: string[]): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'sallyport-chart-'));
  try {
    await cp(CHART, copy, { recursive: true });
    await copyFile(join(CHART, 'templates/NOTES.txt'), join(copy, 'notes.txt'));
    const shown = 'kind: Notes\nmetadata: {name: notes}\ntext: {{ tpl (.Files.Get "notes.txt") . | toJson }}\n';
    await writeFile(join(copy, 'templates/notes.yaml'), shown);
    const only = ['--show-only', 'templates/notes.yaml'];
    const text = await must(helmProgram(), ['template', 'edge', copy, ...CLUSTER, ...only, ...args]);
    const [shownNotes] = parseAllDocuments(text).map((document) => document.toJS() as Resource);
    return String(shownNotes?.['text']);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** A gateway file as a value of the chart. */
function gatewayFile(...lines: readonly string[]): readonly string[] {
  const text = ['version: 1', 'publicUrl: https://mcp.example.com', ...lines].join('\n');
  return ['--set-json', `config=${JSON.stringify({ 'gateway.yaml': text })}`];
}

const LISTENERS = 'listeners: {data: {host: 0.0.0.0, port: 9000}, ops: {host: 0.0.0.0, port: 9100}}';

/** Every port that anybody is told of, by what tells of it. */
function portsOf(resources: readonly Resource[]): Record<string, unknown> {
  const [container] = podOf(resources)['containers'] as unknown as readonly Record<
    string,
    // biome-ignore lint/suspicious/noExplicitAny: a manifest is read by its members
    any
  >[];
  const services = resources.filter(({ kind }) => kind === 'Service');
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'];
  const policy = find(resources, 'NetworkPolicy') as { spec?: { ingress: unknown } };
  return {
    container: container?.['ports'],
    services: services.map(({ spec }) => (spec as { ports: unknown }).ports),
    probes: probes.map((probe) => container?.[probe].httpGet.port),
    ingress: policy.spec?.ingress,
  };
}

function podOf(resources: readonly Resource[]): Record<string, never> {
  // biome-ignore lint/suspicious/noExplicitAny: a manifest is read by its members
  const deployment: any = find(resources, 'Deployment');
  return deployment.spec.template.spec;
}

function find(resources: readonly Resource[], kind: string): Resource {
  const found = resources.find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no ${kind} rendered`);
  return found;
}

describe('the chart', () => {
  it('[R-01] passes helm lint, strictly', async () => {
    await must(helmProgram(), ['lint', '--strict', CHART]);
  });

  it('[R-02] runs as nobody, on a read-only root, without capabilities or an API token', async () => {
    const pod = podOf(await template());
    expect(pod['automountServiceAccountToken']).toBe(false);
    expect(pod['securityContext']).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    const [container] = pod['containers'] as unknown as readonly Record<string, unknown>[];
    expect(container?.['securityContext']).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container).toMatchObject({
      readinessProbe: { httpGet: { path: '/readyz' } },
      livenessProbe: { httpGet: { path: '/livez' } },
    });
  });

  it('[R-03] takes configuration, policies and pins from ConfigMaps and the key from an existing Secret', async () => {
    const resources = await template(
      '--set-string',
      'policies.a\\.policy\\.yaml=version: 1',
      '--set',
      'key.existingSecret=mine',
    );
    const maps = resources
      .filter((resource) => resource.kind === 'ConfigMap')
      .map((resource) => resource.metadata.name);
    expect(maps).toEqual(['edge-config', 'edge-policies', 'edge-pins']);
    expect(resources.some((resource) => resource.kind === 'Secret')).toBe(false);
    const pod = podOf(resources);
    expect(pod['volumes']).toContainEqual({
      name: 'key',
      secret: { secretName: 'mine', defaultMode: 0o440, items: [{ key: 'key', path: 'key' }] },
    });
  });

  it('[R-04] refuses a second replica while state is in memory, and an unknown value', async () => {
    const two = await run(helmProgram(), ['template', 'edge', CHART, ...CLUSTER, '--set', 'replicas=2']);
    expect(two.code).not.toBe(0);
    expect(two.stderr).toContain('/replicas');
    const unknown = await run(helmProgram(), ['template', 'edge', CHART, ...CLUSTER, '--set', 'replica=1']);
    expect(unknown.code).not.toBe(0);
  });

  it('[REV-32] allows more replicas with a store that all of them reach, and an audit file for each', async () => {
    const gateway = [
      'version: 1',
      'state: {type: redis, url: {env: REDIS_URL}}',
      'publicUrl: https://mcp.example.com',
    ].join('\\n');
    const shared = [
      ...['--set', 'replicas=3', '--set', 'state.type=redis'],
      ...['--set', 'state.redis.existingSecret=store'],
    ];
    const file = ['--set-json', `config={"gateway.yaml":"${gateway}"}`];
    const resources = await template(...shared, ...file);
    expect(find(resources, 'Deployment')).toMatchObject({ spec: { replicas: 3 } });
    expect(JSON.stringify(find(resources, 'Deployment'))).not.toContain('Recreate');
    const [container] = podOf(resources)['containers'] as unknown as readonly object[];
    expect(container).toMatchObject({
      env: [{ name: 'REDIS_URL', valueFrom: { secretKeyRef: { name: 'store', key: 'url' } } }],
    });
    const refused = async (...args: string[]) => {
      const { code, stderr } = await run(helmProgram(), [...['template', 'edge', CHART, ...CLUSTER], ...args]);
      expect(code).not.toBe(0);
      return stderr;
    };
    expect(await refused(...shared)).toContain('gateway.yaml says memory');
    expect(await refused(...shared, ...file, '--set', 'audit.persistence.enabled=true')).toContain('/replicas');
    expect(await refused(...file, '--set', 'state.type=redis')).toContain('existingSecret');
  });

  it('[R-06] tells everybody the ports that the gateway file has its listeners on', async () => {
    const ports = ['--set', 'service.port=9000', '--set', 'metrics.port=9100'];
    const resources = await template(...gatewayFile(LISTENERS), ...ports);
    expect(portsOf(resources)).toEqual({
      container: [
        { name: 'http', containerPort: 9000 },
        { name: 'metrics', containerPort: 9100 },
      ],
      services: [
        [{ name: 'http', port: 9000, targetPort: 'http' }],
        [{ name: 'metrics', port: 9100, targetPort: 'metrics' }],
      ],
      probes: ['metrics', 'metrics', 'metrics'],
      ingress: [{ ports: [{ port: 'http' }] }, { ports: [{ port: 'metrics' }] }],
    });
  });

  it('[R-06] renders nothing where the values and the gateway file have different ports', async () => {
    expect(await refusal('--set', 'service.port=9000')).toContain(
      'service.port is 9000, but gateway.yaml has listeners.data.port 8080',
    );
    expect(await refusal('--set', 'metrics.port=9100')).toContain(
      'metrics.port is 9100, but gateway.yaml has listeners.ops.port 9464',
    );
    // What the file does not say is the default of the gateway, however little it says.
    const bare = ['', 'listeners: {}', 'listeners: {data: {host: 0.0.0.0}}', 'listeners:'];
    for (const lines of bare) {
      await template(...gatewayFile(lines));
      expect(await refusal(...gatewayFile(lines), '--set', 'service.port=8081')).toContain('listeners.data.port 8080');
    }
    expect(await refusal(...gatewayFile(LISTENERS))).toContain('listeners.data.port 9000');
    const free = gatewayFile('listeners: {ops: {port: 0}}');
    expect(await refusal(...free)).toContain('listeners.ops.port 0');
    expect(await refusal(...gatewayFile('listeners: {data: ['))).toContain('gateway.yaml cannot be read');
  });

  it('[R-06] says of a gateway file that it cannot read what that must say', async () => {
    const mine = ['--set', 'existingConfigMaps.config=mine,service.port=9000,metrics.port=9100'];
    const resources = await template(...mine);
    expect(portsOf(resources)).toMatchObject({
      container: [{ containerPort: 9000 }, { containerPort: 9100 }],
    });
    const printed = await notes(...mine);
    expect(printed).toContain('NOT CHECKED: the chart cannot read the ConfigMap mine.');
    expect(printed).toContain('data: {host: 0.0.0.0, port: 9000}, ops: {host: 0.0.0.0, port: 9100}');
    expect(await notes()).not.toMatch(/NOT CHECKED|listeners/);
    const local = await notes(...gatewayFile('listeners: {ops: {host: 0.0.0.0}}'));
    expect(local).toContain('WARNING: gateway.yaml has listeners.data.host 127.0.0.1');
    expect(local).not.toContain('listeners.ops.host');
  });

  it('[R-06] probes the ops listener as it speaks', async () => {
    const tls = 'listeners: {ops: {tls: {cert: ./ops.crt, key: {env: OPS_KEY}}}}';
    const secure = await template(...gatewayFile(tls), ...['--set', 'metrics.serviceMonitor.enabled=true']);
    const [container] = podOf(secure)['containers'] as unknown as readonly object[];
    expect(container).toMatchObject({
      readinessProbe: { httpGet: { path: '/readyz', scheme: 'HTTPS' } },
      livenessProbe: { httpGet: { scheme: 'HTTPS' } },
    });
    expect(find(secure, 'ServiceMonitor')).toMatchObject({
      spec: { endpoints: [{ scheme: 'https' }] },
    });
    const [plain] = podOf(await template())['containers'] as unknown as readonly object[];
    expect(plain).toMatchObject({ readinessProbe: { httpGet: { scheme: 'HTTP' } } });
  });

  it('[R-07] replaces the pod, and does not add one, where two would write one audit file', async () => {
    const strategyOf = async (...args: string[]): Promise<unknown> =>
      find(await template(...args), 'Deployment')['spec'];
    const shared = [
      ...['--set', 'state.type=redis', '--set', 'state.redis.existingSecret=store'],
      ...gatewayFile('state: {type: redis, url: {env: REDIS_URL}}'),
    ];
    const recreate = { strategy: { type: 'Recreate' } };
    expect(await strategyOf()).toMatchObject(recreate);
    expect(await strategyOf('--set', 'audit.persistence.enabled=true')).toMatchObject(recreate);
    const claimed = [...shared, '--set', 'audit.persistence.enabled=true'];
    expect(await strategyOf(...claimed)).toMatchObject(recreate);
    const existing = [...claimed, '--set', 'audit.persistence.existingClaim=mine'];
    expect(await strategyOf(...existing)).toMatchObject(recreate);
    // A file of its own in each pod: one may come before the other goes.
    expect(await strategyOf(...shared)).not.toHaveProperty('strategy');
  });

  it('[R-05] renders every optional part', async () => {
    const resources = await template(
      '--set',
      'audit.persistence.enabled=true',
      '--set',
      'metrics.serviceMonitor.enabled=true',
    );
    expect(resources.map((resource) => resource.kind).sort()).toEqual(
      [
        'ConfigMap',
        'ConfigMap',
        'ConfigMap',
        'Deployment',
        'NetworkPolicy',
        'PersistentVolumeClaim',
        'Service',
        'Service',
        'ServiceMonitor',
      ].sort(),
    );
  });
});
