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
    const two = await run(helmProgram(), [
      'template',
      'edge',
      CHART,
      ...CLUSTER,
      '--set',
      'replicas=2',
    ]);
    expect(two.code).not.toBe(0);
    expect(two.stderr).toContain('/replicas');
    const unknown = await run(helmProgram(), [
      'template',
      'edge',
      CHART,
      ...CLUSTER,
      '--set',
      'replica=1',
    ]);
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
      const { code, stderr } = await run(helmProgram(), [
        ...['template', 'edge', CHART, ...CLUSTER],
        ...args,
      ]);
      expect(code).not.toBe(0);
      return stderr;
    };
    expect(await refused(...shared)).toContain('gateway.yaml says memory');
    expect(await refused(...shared, ...file, '--set', 'audit.persistence.enabled=true')).toContain(
      '/replicas',
    );
    expect(await refused(...file, '--set', 'state.type=redis')).toContain('existingSecret');
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
