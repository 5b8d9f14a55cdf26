import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { renderChartReadme } from '../../../scripts/reference/chart.js';
import { meaningsOf, pendingKeys } from '../../../src/config/restart.js';
import { makeAuthority } from '../../support/tls.js';
import { GOOD, settingsOf } from '../../unit/config/reading.js';
import { helmProgram, must, run } from '../programs.js';
import {
  CHART,
  containerOf,
  find,
  notes,
  podOf,
  type Resource,
  refusal,
  template,
  valueSets,
  workloadOf,
} from './rendering.js';

const SHARED = ['--set', 'state.type=redis,state.redis.existingSecret=store'];
const CLAIM = ['--set', 'audit.persistence.enabled=true'];
const EXISTING_CLAIM = [...CLAIM, '--set', 'audit.persistence.existingClaim=mine'];
const FILE_SINK = 'audit: {sinks: [{type: file, path: /var/lib/sallyport/audit.jsonl}]}';
const LISTENERS = 'listeners: {data: {host: 0.0.0.0, port: 9000}, ops: {host: 0.0.0.0, port: 9100}}';

/** A gateway file as a value of the chart. Without a line about audit it has the usual one. */
function gatewayFile(...lines: readonly string[]): readonly string[] {
  const audit = lines.some((line) => line.startsWith('audit:')) ? [] : [FILE_SINK];
  const text = ['version: 1', 'publicUrl: https://mcp.example.com', ...audit, ...lines].join('\n');
  return ['--set-json', `config=${JSON.stringify({ 'gateway.yaml': text })}`];
}

/** Every port that anybody is told of, by what tells of it. */
function portsOf(resources: readonly Resource[]): Record<string, unknown> {
  const container = containerOf(resources);
  const services = resources.filter(({ kind }) => kind === 'Service');
  const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'];
  return {
    container: container.ports,
    services: services.map(({ spec }) => spec.ports),
    probes: probes.map((probe) => container[probe].httpGet.port),
    ingress: find(resources, 'NetworkPolicy')['spec'].ingress,
  };
}

// Most of the time is spent in helm, which runs beside itself.
describe.concurrent('the chart', () => {
  it('[R-01] passes helm lint, strictly, without a remark on any set of values', async () => {
    const helm = helmProgram();
    await must(helm, ['lint', '--strict', CHART]);
    for (const [name, file] of (await valueSets()).filter(([name]) => /claims|monitoring|tls/.test(name))) {
      const { code, stdout, stderr } = await run(helm, ['lint', '--strict', CHART, '-f', file]);
      expect([name, code, stderr, stdout]).toEqual([
        name,
        0,
        '',
        expect.not.stringMatching(/\[(INFO|WARNING|ERROR)\]/),
      ]);
    }
  });

  it('[R-17] describes every value in its README', async () => {
    const file = join(CHART, 'README.md');
    const text = renderChartReadme(await readFile(join(CHART, 'values.yaml'), 'utf8'));
    if (process.env['UPDATE_REFERENCE'] === '1') await writeFile(file, text);
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  it('[R-17] has a schema for every value, and refuses others at every level', async () => {
    type Schema = { readonly properties?: Readonly<Record<string, Schema>>; readonly additionalProperties?: unknown };
    const schema = JSON.parse(await readFile(join(CHART, 'values.schema.json'), 'utf8')) as Schema;
    const values = parse(await readFile(join(CHART, 'values.yaml'), 'utf8')) as object;
    const missing: string[] = [];
    const compare = (map: object, { properties, additionalProperties }: Schema, path: string): void => {
      if (properties === undefined) return;
      if (additionalProperties !== false) missing.push(`${path} admits others`);
      for (const [key, value] of Object.entries(map)) {
        const own = properties[key];
        if (own === undefined) missing.push(`${path}.${key}`);
        else if (typeof value === 'object' && value !== null) compare(value, own, `${path}.${key}`);
      }
      const named = Object.keys(properties).filter((key) => !(key in map) && key !== 'global');
      missing.push(...named.map((key) => `values.yaml has no ${path}.${key}`));
    };
    compare(values, schema, '');
    expect(missing).toEqual([]);
    for (const unknown of ['replica=1', 'service.prot=1', 'probes.startup.path=/x', 'metrics.serviceMonitor.label=x'])
      expect(await refusal('--set', unknown)).toContain('additional properties');
  });

  it('[R-03] takes configuration, policies and pins from ConfigMaps and the keys from an existing Secret', async () => {
    const resources = await template(
      ...['--set-string', 'policies.a\\.policy\\.yaml=version: 1'],
      ...['--set', 'key.existingSecret=mine,key.items={key,old}'],
    );
    const maps = resources.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
    expect(maps).toEqual(['edge-config', 'edge-policies', 'edge-pins']);
    expect(resources.some(({ kind }) => kind === 'Secret')).toBe(false);
    const items = ['key', 'old'].map((key) => ({ key, path: key }));
    expect(podOf(resources).spec.volumes).toContainEqual({
      name: 'key',
      secret: { secretName: 'mine', defaultMode: 0o440, items },
    });
  });

  it.each([
    [
      'a key that is not mounted',
      [...gatewayFile('keys: [{file: /run/secrets/sallyport/old}]')],
      'gateway.yaml reads the key /run/secrets/sallyport/old, but key.items mounts only: key',
    ],
    [
      'a certificate that is not mounted',
      [...gatewayFile('listeners: {ops: {tls: {cert: /etc/sallyport/tls/ops/tls.crt, key: {env: K}}}}')],
      'gateway.yaml reads /etc/sallyport/tls/ops/, but tls.ops names no Secret',
    ],
    [
      'a Secret that nobody reads',
      ['--set', 'tls.data=mine'],
      'gateway.yaml reads nothing in /etc/sallyport/tls/data/',
    ],
    [
      'an audit file beside the gateway file',
      [...gatewayFile('audit: {sinks: [{type: file, path: ./audit.jsonl}]}')],
      'the audit file ./audit.jsonl of gateway.yaml is beside it, where nothing can be written',
    ],
    [
      'a key beside the gateway file',
      [...gatewayFile('keys: [{file: ./secrets/key}]')],
      'reads the key ./secrets/key beside it, where only the files of config are',
    ],
    [
      'policies that are mounted elsewhere',
      [...gatewayFile('policies: {dir: ./policies}')],
      'gateway.yaml must say policies: {dir: /etc/sallyport/policies}, where the chart mounts them, not ./policies',
    ],
    [
      'pins that would not be found',
      [...gatewayFile('policies: {dir: /etc/sallyport/policies}'), '--set-string', 'pins.a\\.lock\\.yaml=x'],
      'gateway.yaml must say pins: {dir: /etc/sallyport/pins}, where the chart mounts them',
    ],
    [
      'policies of a ConfigMap that are not read',
      [...gatewayFile('pins: {dir: /etc/sallyport/pins}'), '--set', 'existingConfigMaps.policies=mine'],
      'gateway.yaml must say policies: {dir: /etc/sallyport/policies}',
    ],
    ['the default audit file', [...gatewayFile('audit: {}')], 'where nothing can be written'],
    ['a console that does not open', ['--set', 'admin.enabled=true'], 'gateway.yaml has no admin'],
    ['no gateway file', ['--set-json', 'config={"gateway.yaml":null,"a.yaml":"x"}'], 'config has no gateway.yaml'],
    ['a route without a gateway', ['--set', 'httpRoute.enabled=true'], '/httpRoute/parentRefs'],
    [
      'a path that nobody strips',
      ['--set', 'ingress.enabled=true', ...gatewayFile().map((one) => one.replace('.com', '.com/mcp'))],
      'publicUrl has the path /mcp',
    ],
    ['two authorities', ['--set', 'ca.existingSecret=a,ca.existingConfigMap=b'], '/ca'],
    ['two replicas on one claim', [...SHARED, ...EXISTING_CLAIM, '--set', 'replicas=2'], '/replicas'],
    [
      'replicas by load on one claim',
      [...SHARED, ...EXISTING_CLAIM, '--set', 'autoscaling.enabled=true'],
      '/autoscaling',
    ],
  ])('[R-06] renders nothing with %s, and says why', async (_what, args, text) => {
    expect(await refusal(...args)).toContain(text);
  });

  it('[R-04] has two replicas with a shared store, and one without', async () => {
    const replicas = async (...args: string[]) => workloadOf(await template(...args))['spec'].replicas;
    expect(await replicas()).toBe(1);
    expect(await replicas(...SHARED)).toBe(2);
    expect(await replicas(...SHARED, ...CLAIM)).toBe(2);
    expect(await replicas(...SHARED, ...EXISTING_CLAIM)).toBe(1);
    expect(await replicas(...SHARED, '--set', 'replicas=5')).toBe(5);
    expect(await replicas(...SHARED, '--set', 'replicas=0')).toBe(0);
    expect(await refusal('--set', 'replicas=2')).toContain('/replicas');
    expect(await refusal('--set', 'autoscaling.enabled=true')).toContain('/autoscaling');
    expect(await refusal('--set', 'state.type=redis')).toContain('existingSecret');
    const scaled = await template(...SHARED, '--set', 'autoscaling.enabled=true');
    expect(workloadOf(scaled)['spec']).not.toHaveProperty('replicas');
    expect(find(scaled, 'HorizontalPodAutoscaler')['spec']).toMatchObject({
      scaleTargetRef: { kind: 'Deployment', name: 'edge' },
      minReplicas: 2,
    });
  });

  it('[REV-32] names the shared store to the gateway where its file does not, strictly ready where there are several', async () => {
    const stateOf = async (...args: string[]) => {
      const resources = await template(...args);
      expect(containerOf(resources).env).toContainEqual({
        name: 'REDIS_URL',
        valueFrom: { secretKeyRef: { name: 'store', key: 'url' } },
      });
      const text: string = find(resources, 'ConfigMap', 'edge-config')['data']['gateway.yaml'];
      return parse(text)['state'];
    };
    const added = { type: 'redis', url: { env: 'REDIS_URL' } };
    expect(await stateOf(...SHARED)).toEqual({ ...added, readiness: 'strict' });
    expect(await stateOf(...SHARED, ...CLAIM)).toEqual({ ...added, readiness: 'strict' });
    expect(await stateOf(...SHARED, '--set', 'autoscaling.enabled=true')).toEqual({ ...added, readiness: 'strict' });
    expect(await stateOf(...SHARED, '--set', 'replicas=1')).toEqual(added);
    const own = gatewayFile('state: {type: redis, url: {env: REDIS_URL}, prefix: mine}');
    expect(await stateOf(...SHARED, ...own)).toEqual({ ...added, prefix: 'mine' });
    expect(await notes(...SHARED, ...own)).toContain('does not say readiness: strict');
    expect(await notes(...SHARED)).not.toContain('readiness');
    expect(await refusal(...own)).toContain('state.type is memory, but gateway.yaml says redis');
    expect(await refusal(...SHARED, ...gatewayFile('state: {type: memory}'))).toContain('gateway.yaml says memory');
    // Nothing can be added behind the end of a document.
    expect(await refusal(...SHARED, ...gatewayFile('...'))).toContain('gateway.yaml says memory');
  });

  it('[R-06] tells everybody the ports that the gateway file has its listeners on', async () => {
    const ports = ['--set', 'ports.data=9000,ports.ops=9100,service.port=80'];
    const resources = await template(...gatewayFile(LISTENERS), ...ports);
    expect(portsOf(resources)).toEqual({
      container: [
        { name: 'http', containerPort: 9000 },
        { name: 'metrics', containerPort: 9100 },
      ],
      services: [
        [{ name: 'http', port: 80, targetPort: 'http' }],
        [{ name: 'metrics', port: 9100, targetPort: 'metrics' }],
      ],
      probes: ['metrics', 'metrics', 'metrics'],
      ingress: [{ ports: [{ port: 'http' }] }, { ports: [{ port: 'metrics' }] }],
    });
  });

  it('[R-06] renders nothing where the values and the gateway file have different ports', async () => {
    expect(await refusal('--set', 'ports.data=9000')).toContain(
      'ports.data is 9000, but gateway.yaml has listeners.data.port 8080',
    );
    expect(await refusal('--set', 'ports.ops=9100')).toContain(
      'ports.ops is 9100, but gateway.yaml has listeners.ops.port 9464',
    );
    // What the file does not say is the default of the gateway, however little it says.
    const bare = ['listeners:', 'listeners: {data: {host: 0.0.0.0}}'];
    for (const lines of bare) {
      await template(...gatewayFile(lines));
      expect(await refusal(...gatewayFile(lines), '--set', 'ports.data=8081')).toContain('listeners.data.port 8080');
    }
    expect(await refusal(...gatewayFile(LISTENERS))).toContain('listeners.data.port 9000');
    expect(await refusal(...gatewayFile('listeners: {ops: {port: 0}}'))).toContain('listeners.ops.port 0');
    // The console has a port only if it is configured.
    await template('--set', 'ports.admin=9999');
    const console = gatewayFile('admin: {breakGlass: {token: {env: T}}}');
    expect(await refusal(...console, '--set', 'ports.admin=9999')).toContain('listeners.admin.port 9090');
    for (const broken of ['listeners: {data: [', '- a'])
      expect(await refusal(...gatewayFile(broken))).toContain('gateway.yaml cannot be read');
  });

  it('[R-06] says of a gateway file that it cannot read what that must say', async () => {
    const mine = ['--set', 'existingConfigMaps.config=mine,ports.data=9000,ports.ops=9100'];
    const resources = await template(...mine);
    expect(portsOf(resources)).toMatchObject({ container: [{ containerPort: 9000 }, { containerPort: 9100 }] });
    expect(podOf(resources).metadata).not.toHaveProperty('annotations');
    const printed = await notes(...mine);
    expect(printed).toContain('NOT CHECKED: the chart cannot read the ConfigMap mine.');
    expect(printed).toContain('data: {host: 0.0.0.0, port: 9000}, ops: {host: 0.0.0.0, port: 9100}');
    expect(printed).toContain('Restart the pods yourself');
    expect(await notes(...mine, ...SHARED)).toContain('{type: redis, url: {env: REDIS_URL}, readiness: strict}');
    expect(await notes()).not.toMatch(/NOT CHECKED|listeners/);
    const local = await notes(...gatewayFile('listeners: {ops: {host: 0.0.0.0}}'));
    expect(local).toContain('WARNING: gateway.yaml has listeners.data.host 127.0.0.1');
    expect(local).not.toContain('listeners.ops.host');
  });

  it('[R-06] probes the ops listener as it speaks, /livez for what depends on nothing else', async () => {
    const tls = 'listeners: {ops: {tls: {cert: ./ops.crt, key: {env: OPS_KEY}}}}';
    const secure = await template(...gatewayFile(tls), ...['--set', 'metrics.serviceMonitor.enabled=true']);
    const probes = (scheme: string) => ({
      startupProbe: { httpGet: { path: '/livez', port: 'metrics', scheme }, timeoutSeconds: 5, failureThreshold: 60 },
      readinessProbe: { httpGet: { path: '/readyz', port: 'metrics', scheme }, timeoutSeconds: 5 },
      livenessProbe: { httpGet: { path: '/livez', port: 'metrics', scheme }, timeoutSeconds: 5 },
    });
    expect(containerOf(secure)).toMatchObject(probes('HTTPS'));
    expect(find(secure, 'ServiceMonitor')).toMatchObject({ spec: { endpoints: [{ scheme: 'https' }] } });
    expect(containerOf(await template())).toMatchObject(probes('HTTP'));
  });

  it('[R-07] replaces the pod, and does not add one, where two would write one audit file', async () => {
    const specOf = async (...args: string[]) => workloadOf(await template(...args))['spec'];
    const recreate = { strategy: { type: 'Recreate' } };
    expect(await specOf()).toMatchObject(recreate);
    expect(await specOf(...EXISTING_CLAIM)).toMatchObject(recreate);
    expect(await specOf(...SHARED, ...EXISTING_CLAIM)).toMatchObject(recreate);
    // A file of its own in each pod: one may come before the other goes.
    const rolling = { strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } };
    expect(await specOf(...SHARED)).toMatchObject(rolling);
    // A claim of its own for each replica, which outlives it.
    expect(await specOf(...SHARED, ...CLAIM)).toMatchObject({
      podManagementPolicy: 'Parallel',
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      volumeClaimTemplates: [{ metadata: { name: 'audit' } }],
    });
  });

  it('[R-07] waits for the end of a pod as long as the gateway takes', async () => {
    const graceOf = async (...args: string[]) => podOf(await template(...args)).spec.terminationGracePeriodSeconds;
    const { delayMs, drainMs } = settingsOf(GOOD).shutdown;
    expect(await graceOf()).toBe((delayMs + drainMs) / 1000 + 10);
    expect(await graceOf(...gatewayFile('shutdown: {delay: 0s, drain: 5m}'))).toBe(310);
    expect(await graceOf(...gatewayFile('shutdown: {drain: 500ms}'))).toBe(16);
    expect(await graceOf(...gatewayFile('shutdown: {drain: 1h}'), '--set', 'terminationGracePeriodSeconds=90')).toBe(
      90,
    );
    expect(await graceOf('--set', 'existingConfigMaps.config=mine')).toBe(60);
  });

  it('[R-15] replaces pods where a change would wait for a restart, and nowhere else', async () => {
    const authority = makeAuthority();
    const [one, other] = [authority.issue(), authority.issue()];
    const secret = (): string => randomBytes(32).toString('base64');
    const around = {
      env: { KEY: secret(), NEXT: secret(), T: secret(), OTHER: secret() },
      files: {
        ...{ '/etc/one.crt': one.cert, '/etc/one.key': one.key, '/etc/ca.crt': authority.cert },
        ...{ '/etc/other.crt': other.cert, '/etc/other.key': other.key },
      },
    };
    const BASE = `version: 1
publicUrl: https://mcp.example.com
listeners: {data: {port: 8080, tls: {cert: /etc/one.crt, key: {file: /etc/one.key}}}}
keys: [{env: KEY}]
issuers: {corp: {issuer: "https://idp.example.com", algorithms: [ES256]}}
upstreams: {a: {url: "https://a.example.com/mcp", issuers: [corp]}}
policies: {dir: /etc/sallyport/policies}
pins: {dir: /etc/sallyport/pins}
metrics: {maxSeries: 5000}
state: {type: memory}
admin: {breakGlass: {token: {env: T}}}
audit: {sinks: [{type: file, path: /var/lib/sallyport/audit.jsonl}]}
`;
    const rows: readonly (readonly [string, string, readonly string[]])[] = [
      ['https://mcp.example.com', 'https://mcp.example.org', ['publicUrl']],
      ['[{env: KEY}]', '[{env: NEXT}, {env: KEY}]', ['keys']],
      ['maxSeries: 5000', 'maxSeries: 9000', ['metrics']],
      ['{port: 8080,', '{port: 8080, host: 10.0.0.1,', ['listeners.data']],
      ['one.crt,', 'one.crt, clientCa: /etc/ca.crt,', ['listeners.data']],
      [', tls: {cert: /etc/one.crt, key: {file: /etc/one.key}}', '', ['listeners.data']],
      ['{data:', '{ops: {host: 10.0.0.1}, data:', ['listeners.ops']],
      ['{data:', '{admin: {host: 10.0.0.1}, data:', ['listeners.admin']],
      ['{env: T}', '{env: OTHER}', ['admin']],
      ['admin: {breakGlass: {token: {env: T}}}\n', '', ['admin']],
      ['audit.jsonl}]', 'audit.jsonl}], retain: 90d', ['audit']],
      ['{data:', '{data: &data', []],
      ['one.crt, key: {file: /etc/one.key}', 'other.crt, key: {file: /etc/other.key}', []],
      ['https://a.example.com/', 'https://b.example.com/', []],
      ['{port: 8080,', '{allowedOrigins: [https://c.example.com], port: 8080,', []],
      ['{type: memory}', '{ type:  memory } # for now', []],
      ['metrics:', 'inspection: {profiles: {}}\nshutdown: {drain: 30s}\nmetrics:', []],
    ];
    const sum = async (text: string, ...args: string[]): Promise<string> => {
      const config = `config=${JSON.stringify({ 'gateway.yaml': text })}`;
      return podOf(await template('--set-json', config, ...args)).metadata.annotations['checksum/restart-only'];
    };
    const before = await sum(BASE);
    const [inForce, seen] = [meaningsOf(settingsOf(BASE, around)), new Set<string>()];
    for (const [from, to, expected] of rows) {
      const text = BASE.replace(from, to);
      expect(text).not.toBe(BASE);
      const pending = pendingKeys({ meanings: inForce }, { meanings: meaningsOf(settingsOf(text, around)) });
      expect([to, pending]).toEqual([to, expected]);
      expect([to, (await sum(text)) !== before]).toEqual([to, expected.length > 0]);
      for (const key of expected) seen.add(key);
    }
    // Another type of state is another value of the chart, so it has no row.
    expect([...seen, 'state'].sort()).toEqual(Object.keys(inForce).sort());
    const files = ['--set-string', 'policies.a\\.policy\\.yaml=version: 1,pins.a\\.lock\\.yaml=x'];
    expect(await sum(BASE, ...files)).toBe(before);
    const shared = BASE.replace('state: {type: memory}\n', '');
    expect(await sum(shared, ...SHARED)).not.toBe(before);
    expect(await sum(shared, ...SHARED)).not.toBe(await sum(shared, ...SHARED, '--set', 'replicas=1'));
  });

  it('[R-16] closes what the pods may reach, but for DNS and what the values name', async () => {
    const policyOf = async (...args: string[]) => find(await template(...args), 'NetworkPolicy')['spec'];
    expect(await refusal('--set-json', 'networkPolicy.egress=[]')).toContain(
      'networkPolicy.egress names no destination',
    );
    expect(await refusal('--set', 'networkPolicy.egress=everything')).toContain('/networkPolicy/egress');
    expect((await policyOf()).policyTypes).toEqual(['Ingress']);
    const redis = { to: [{ podSelector: { matchLabels: { app: 'redis' } } }], ports: [{ port: 6379 }] };
    const closed = await policyOf('--set-json', `networkPolicy.egress=${JSON.stringify([redis])}`);
    expect(closed.policyTypes).toEqual(['Ingress', 'Egress']);
    const dns = [
      { port: 53, protocol: 'UDP' },
      { port: 53, protocol: 'TCP' },
    ];
    expect(closed.egress).toMatchObject([{ ports: dns, to: [{ namespaceSelector: {} }] }, redis]);
    const own = await policyOf('--set-json', `networkPolicy={"egress":${JSON.stringify([redis])},"dns":[]}`);
    expect(own.egress).toEqual([redis]);
    expect((await template('--set', 'networkPolicy.enabled=false')).map(({ kind }) => kind)).not.toContain(
      'NetworkPolicy',
    );
    // Where peers are named, the pod of `helm test` is one of them.
    const tester = { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'sallyport-test' } } };
    const named = await policyOf('--set-json', 'networkPolicy.ingressFrom=[{"podSelector":{}}]');
    expect(named.ingress).toMatchObject([{ from: [{ podSelector: {} }, tester] }, { ports: [{ port: 'metrics' }] }]);
  });

  it('[R-05] says in its notes what becomes of audit lines', async () => {
    const stdout = gatewayFile('audit: {sinks: [{type: stdout, durability: handed-over}]}');
    const printed = {
      emptyDir: await notes(),
      claims: await notes(...SHARED, ...CLAIM),
      small: await notes(...CLAIM, '--set', 'audit.persistence.size=10G'),
      unbounded: await notes(...CLAIM, ...gatewayFile()),
      mine: await notes(...EXISTING_CLAIM),
      stdout: await notes(...SHARED, ...stdout),
      idle: await notes(...CLAIM, ...stdout),
    };
    expect(printed.emptyDir).toContain('WARNING: audit files are in the pods and lost with them');
    expect(printed.emptyDir).toContain('exceed 2Gi, which is 24 hours at 10 calls per second');
    expect(printed.claims).toContain('one of 50Gi for each replica');
    expect(printed.claims).not.toMatch(/WARNING: .*(audit|claim)/);
    expect(printed.small).toContain('for 30d, but a claim is full after 6 days');
    expect(printed.unbounded).toContain('no audit.retain, so files are never removed');
    expect(printed.mine).toContain('Audit files are on the claim mine.');
    expect(printed.stdout).toContain('Audit lines go to the output of the pods alone');
    expect(printed.stdout).not.toMatch(/WARNING: .*(audit|claim)/);
    expect(printed.idle).toContain('gateway.yaml has no sink of type file');
  });

  it('[R-05] says in its notes how many replicas there are and why', async () => {
    expect(await notes()).toContain('one replica, because state is in memory');
    expect(await notes(...SHARED)).toContain('Replicas: 2.');
    expect(await notes(...SHARED, ...EXISTING_CLAIM)).toContain('replicas cannot share the claim mine');
    expect(await notes(...SHARED, '--set', 'autoscaling.enabled=true')).toContain('2 to 6 replicas');
    const console = gatewayFile('admin: {breakGlass: {token: {env: T}}}');
    expect(await notes(...console)).toContain('kubectl port-forward deployment/edge 9090');
    expect(await notes(...console, '--set', 'admin.enabled=true')).toContain('listeners.admin.host 127.0.0.1');
    expect(await notes('--set', 'networkPolicy.enabled=false')).toContain('WARNING: without a NetworkPolicy');
    expect(await notes()).toContain('helm test edge -n mcp');
  });

  it('[R-05] has a claim by default that lasts as long as the gateway file keeps audit files', async () => {
    const values = parse(await readFile(join(CHART, 'values.yaml'), 'utf8'));
    const retained = /^(\d+)d$/.exec(parse(values.config['gateway.yaml']).audit.retain)?.[1];
    const size = /^(\d+)Gi$/.exec(values.audit.persistence.size)?.[1];
    const [callsPerSecond, bytesPerCall, secondsADay] = [10, 1800, 86_400];
    expect(Number(size) * 2 ** 30).toBeGreaterThan(Number(retained) * secondsADay * callsPerSecond * bytesPerCall);
  });

  it('[R-05] takes rules and dashboards from its files as they are, and adds those of the values', async () => {
    const resources = await template(
      ...['--set', 'metrics.prometheusRule.enabled=true,metrics.dashboards.enabled=true'],
      ...['--set-json', 'metrics.prometheusRule.groups=[{"name":"mine","rules":[]}]'],
      ...['--set-json', 'metrics.dashboards.files={"mine.json":"{}"}'],
    );
    const rules = parse(await readFile(join(CHART, 'files/prometheus/sallyport.rules.yaml'), 'utf8'));
    expect(find(resources, 'PrometheusRule')['spec'].groups).toEqual([...rules.groups, { name: 'mine', rules: [] }]);
    for (const file of await readdir(join(CHART, 'files/grafana'))) {
      const text = await readFile(join(CHART, 'files/grafana', file), 'utf8');
      const map = find(resources, 'ConfigMap', `edge-dashboard-${file.replace('.json', '')}`);
      expect(JSON.parse(map['data'][file])).toEqual(JSON.parse(text));
    }
    expect(find(resources, 'ConfigMap', 'edge-dashboard-mine')['data']).toEqual({ 'mine.json': '{}\n' });
  });

  it('[R-05] routes callers to the host of publicUrl where no other is named', async () => {
    const resources = await template(
      ...['--set', 'ingress.enabled=true,httpRoute.enabled=true'],
      ...['--set-json', 'httpRoute.parentRefs=[{"name":"public"}]'],
    );
    expect(find(resources, 'Ingress')['spec'].rules).toMatchObject([
      { host: 'mcp.example.com', http: { paths: [{ path: '/', pathType: 'Prefix' }] } },
    ]);
    expect(find(resources, 'HTTPRoute')['spec']).toMatchObject({ hostnames: ['mcp.example.com'] });
    const tls = gatewayFile(
      'listeners: {data: {host: 0.0.0.0, tls: {cert: a.crt, key: {env: K}}}, ops: {host: 0.0.0.0}}',
    );
    expect(await notes('--set', 'ingress.enabled=true', ...tls)).toContain('WARNING: the listener data speaks TLS');
    expect(await notes('--set', 'ingress.enabled=true')).not.toContain('speaks TLS');
  });

  it('[R-07] changes nothing in the claims of a StatefulSet that its user does not change for them', async () => {
    const claims = async (...args: string[]) =>
      workloadOf(await template(...CLAIM, ...args))['spec'].volumeClaimTemplates;
    const labels = 'commonLabels.team=a,commonAnnotations.team=a,podLabels.team=a,image.tag=v9';
    expect(await claims('--set', labels)).toEqual(await claims());
  });

  it('[R-05] lets no label of its user take the place of those that it selects by', async () => {
    const mine = 'app\\.kubernetes\\.io/name=other';
    const resources = await template('--set', `commonLabels.${mine},podLabels.${mine},service.labels.${mine}`);
    for (const { kind, metadata } of resources.filter((one) => one.kind !== 'Pod'))
      expect([kind, metadata.labels['app.kubernetes.io/name']]).toEqual([kind, 'sallyport']);
    expect(podOf(resources).metadata.labels['app.kubernetes.io/name']).toBe('sallyport');
  });
});
