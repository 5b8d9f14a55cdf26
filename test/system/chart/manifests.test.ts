// What the chart renders for each set of values in `values/`: the whole of it as a golden file, valid manifests, and a
// gateway file that the program accepts with the files that the pod mounts. With UPDATE_GOLDEN=1 the files are written.

import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startShipped } from '../../support/shipped-files.js';
import { run } from '../programs.js';
import { environmentOf, mountPod } from './mounts.js';
import {
  CHART,
  containerOf,
  find,
  parseManifests,
  podOf,
  type Resource,
  templateExample,
  templateText,
  valueSets,
  workloadOf,
} from './rendering.js';
import { findMistakes, KUBERNETES_VERSIONS } from './schemas.js';

const GOLDEN = join(import.meta.dirname, 'golden');
const MAIN = join(import.meta.dirname, '../../../dist/main.js');

const sets = await valueSets();
const rendered = new Map<string, string>();
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-manifests-'));
  for (const [name, file] of sets) rendered.set(name, await templateText('-f', file));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

function manifestsOf(name: string): readonly Resource[] {
  return parseManifests(rendered.get(name) ?? '');
}

/** The manifests with the names of the dashboards for their texts, which chart.test.ts compares. */
async function withoutDashboards(manifests: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, string>> {
  const folder = join(CHART, 'files/grafana');
  const texts = new Map<string, string>();
  for (const file of await readdir(folder))
    texts.set(file, (await readFile(join(folder, file), 'utf8')).replaceAll(/^(?=.)/gm, '    ').trimEnd());
  const shorten = (text: string): string =>
    [...texts].reduce((rest, [file, long]) => rest.replaceAll(long, () => `    (${file})`), text);
  return new Map([...manifests].map(([name, text]) => [name, shorten(text)]));
}

describe('the manifests of twelve sets of values', () => {
  it('[R-08] are rendered as before', async () => {
    const compared = await withoutDashboards(rendered);
    if (process.env['UPDATE_GOLDEN'] === '1') {
      await mkdir(GOLDEN, { recursive: true });
      for (const [name, text] of compared) await writeFile(join(GOLDEN, `${name}.yaml`), text);
    }
    expect((await readdir(GOLDEN)).sort()).toEqual(sets.map(([name]) => `${name}.yaml`));
    expect(sets.length).toBeGreaterThanOrEqual(12);
    for (const [name, text] of compared) expect(text, name).toBe(await readFile(join(GOLDEN, `${name}.yaml`), 'utf8'));
  });

  it.each(KUBERNETES_VERSIONS)('[R-08] are valid for Kubernetes %s and the CRDs', (version) => {
    const mistakes = sets.flatMap(([name]) => manifestsOf(name).flatMap((one) => findMistakes(one, version)));
    expect(mistakes).toEqual([]);
    // The check itself sees what is wrong.
    const route = find(manifestsOf('http-route'), 'HTTPRoute');
    expect(findMistakes({ ...route, spec: { ...route['spec'], parentRef: [] } }, version)).not.toEqual([]);
    const service = find(manifestsOf('least'), 'Service');
    expect(findMistakes({ ...service, spec: { ...service['spec'], ports: [{ port: '80' }] } }, version)).not.toEqual(
      [],
    );
  });

  it('[R-08] mount what their gateway files name, which `sallyport validate` accepts', async () => {
    const accepted = new Map<string, string>();
    for (const [name] of sets) {
      const resources = manifestsOf(name);
      const gatewayFiles = resources.filter(({ data }) => data?.['gateway.yaml'] !== undefined);
      // What all of it depends on: one check is enough where only other objects differ.
      const key = JSON.stringify([gatewayFiles.map(({ data }) => data), containerOf(resources).volumeMounts]);
      if (gatewayFiles.length > 0) accepted.set(key, name);
    }
    const checkOf = async (name: string): Promise<void> => {
      const resources = manifestsOf(name);
      await mountPod(resources, join(folder, name));
      const file = join(folder, name, 'etc/sallyport/config/gateway.yaml');
      const checked = await run('node', [MAIN, 'validate', '-c', file], { env: environmentOf(resources) });
      expect([name, checked]).toEqual([name, { ...checked, code: 0 }]);
    };
    await Promise.all([...accepted.values()].map(checkOf));
    expect(accepted.size).toBeGreaterThanOrEqual(6);
  });

  it('[R-02] hold every container of the chart to the same restrictions', () => {
    for (const [name] of sets) {
      const resources = manifestsOf(name);
      const pods = [podOf(resources).spec, find(resources, 'Pod')['spec']];
      for (const pod of pods) {
        expect(pod).toMatchObject({
          automountServiceAccountToken: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        });
        expect(pod.containers[0].securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
      for (const account of resources.filter(({ kind }) => kind === 'ServiceAccount'))
        expect(account).toMatchObject({ automountServiceAccountToken: false });
    }
  });

  it('[R-08] send callers to the replicas alone, by ports that the pods have', () => {
    for (const [name] of sets) {
      const resources = manifestsOf(name);
      const pod = podOf(resources);
      const ports = pod.spec.containers[0].ports.map((port: { name: string }) => port.name);
      const labels = Object.entries(pod.metadata.labels);
      const selectors = resources.filter(({ kind }) => kind === 'Service').map(({ spec }) => spec.selector);
      selectors.push(workloadOf(resources)['spec'].selector.matchLabels);
      for (const selector of selectors) {
        expect(labels).toEqual(expect.arrayContaining(Object.entries(selector)));
        expect(find(resources, 'Pod').metadata.labels).not.toMatchObject(selector);
      }
      for (const { spec } of resources.filter(({ kind }) => kind === 'Service'))
        for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort);
    }
  });

  it('[R-09] start: the release of the example serves, and the command of `helm test` says so', async () => {
    const resources = parseManifests(await templateExample());
    for (const version of KUBERNETES_VERSIONS)
      expect(resources.flatMap((one) => findMistakes(one, version))).toEqual([]);
    const target = join(folder, 'started');
    await mountPod(resources, target);
    const shipped = { root: target, env: environmentOf(resources), close: async () => undefined };
    const gateway = await startShipped(shipped, 'etc/sallyport/config/gateway.yaml');
    const args: string[] = find(resources, 'Pod')['spec'].containers[0].args;
    // The addresses of the cluster, for those of this machine.
    const here = args.map((arg) =>
      arg
        .replace('http://edge-metrics:9464', gateway.opsUrl)
        .replace('http://edge:8080', gateway.url(''))
        .replace('mcp.example.com', new URL(gateway.url('')).host),
    );
    expect(here.filter((arg) => arg.startsWith('http'))).toEqual([
      `${gateway.opsUrl}/readyz`,
      gateway.url('/.well-known/oauth-protected-resource/tickets'),
    ]);
    try {
      expect(await run('node', [MAIN, ...here])).toEqual({ code: 0, stdout: '', stderr: '' });
      const client = await gateway.connect('/tickets', { groups: ['support'], scope: 'tickets:read' });
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name).sort()).toEqual(['get_ticket', 'list_tickets']);
    } finally {
      await gateway.close();
    }
    expect(await run('node', [MAIN, ...here])).toMatchObject({ code: 1 });
  });
});
