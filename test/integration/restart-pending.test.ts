// Keys that take effect at a start only, changed under a running gateway: everything else is applied all the same.

import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { canary } from '../support/canary.js';
import { decisionOf, tryStart } from '../support/gateway.js';
import { findFreePort } from '../support/processes.js';
import { makeSecret } from '../support/secrets.js';
import { PATIENT, SOON } from '../support/timing.js';
import { callStateless, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

/** docs/reference/start-and-reload.md#reload. */

const OPEN = `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [read_record, write_record]}
`;

function denying(tool: string): string {
  return `version: 1
policy: emergency
rules:
  - id: stop
    effect: deny
    who: {anyone: true}
    what: {upstreams: [target], tools: [${tool}]}
`;
}

const KEY = randomBytes(32).toString('hex');
const OTHER_KEY = randomBytes(32).toString('hex');
const STORE = `redis://:${makeSecret()}@127.0.0.1:1`;

type Under = { readonly gateway: { metrics(): Promise<string>; log(): string; readonly folder: string } };

async function controlOf({ gateway }: Under): Promise<{ state: string; detail: string }> {
  const line = gateway
    .log()
    .split('\n')
    .findLast((one) => one.includes('"control":"configuration"'));
  const { state, detail = '' } = JSON.parse(line ?? '{}');
  return { state, detail };
}

async function metricOf({ gateway }: Under, metric: string): Promise<string | undefined> {
  return new RegExp(`^${metric}(?:\\{.*\\})? (\\d+)$`, 'm').exec(await gateway.metrics())?.[1];
}

async function hashesOf({ gateway }: Under): Promise<readonly (string | undefined)[]> {
  const metrics = await gateway.metrics();
  return ['info', 'files_info'].map(
    (name) => new RegExp(`^sallyport_config_${name}\\{config_hash="([0-9a-f]*)"`, 'm').exec(metrics)?.[1],
  );
}

describe('while a key waits for a restart', () => {
  const rig = sharedGateway({
    policies: { open: OPEN },
    env: { STORE },
    more: 'keys: [{file: ./gateway.key}]\n',
    files: { 'gateway.key': KEY },
  });
  const file = () => join(rig.gateway.folder, 'gateway.yaml');
  const policy = (name: string) => join(rig.gateway.folder, `policies/${name}.policy.yaml`);
  const listed = async () => toolNames(await requestStateless(rig.access, 'tools/list'));
  let good = '';

  beforeEach(async () => {
    good ||= await readFile(file(), 'utf8');
    await writeFile(file(), good);
    await writeFile(join(rig.gateway.folder, 'gateway.key'), KEY);
    await rm(policy('emergency'), { force: true });
    await rm(policy('more'), { force: true });
    await rig.gateway.reload();
    expect(await controlOf(rig)).toEqual({ state: 'armed', detail: '' });
  });

  it.each([
    ['publicUrl', (text: string) => text.replace(/^publicUrl: .*$/m, 'publicUrl: http://127.0.0.1:1')],
    ['listeners.data', (text: string) => text.replace(/(data: \{host: [^,]*, port: )\d+/, '$11')],
    ['listeners.ops', (text: string) => text.replace(/(ops: \{host: [^,]*, port: )\d+/, '$11')],
    ['state', (text: string) => `${text}state: {type: redis, url: {env: STORE}}\n`],
    ['audit', (text: string) => text.replace('audit: {', 'audit: {checkpoint: {every: 60s}, ')],
    ['admin', (text: string) => `${text}admin: {breakGlass: {token: {file: ./gateway.key}}}\n`],
    ['metrics', (text: string) => `${text}metrics: {toolLabel: true}\n`],
  ])('[G-18] an emergency deny is in force soon, and the key is named: %s', async (key, change) => {
    expect(await listed()).toEqual(['read_record', 'write_record']);
    await writeFile(file(), change(good));
    await writeFile(policy('emergency'), denying('read_record'));
    await expect.poll(listed, SOON).toEqual(['write_record']);
    await expect.poll(async () => (await controlOf(rig)).detail, SOON).toContain(`until a restart: ${key}`);
    expect((await controlOf(rig)).state).toBe('degraded');
    expect(await metricOf(rig, 'sallyport_config_restart_pending')).toBe('1');
    expect(await metricOf(rig, 'sallyport_config_last_reload_successful')).toBe('1');
    const [inForce, files] = await hashesOf(rig);
    expect(inForce).not.toBe(files);
    expect((await fetch(`${rig.gateway.opsUrl}/readyz`)).status).toBe(200);
    // The key is put back: nothing waits any more.
    await writeFile(file(), good);
    await expect.poll(() => controlOf(rig), SOON).toEqual({ state: 'armed', detail: '' });
    expect(await metricOf(rig, 'sallyport_config_restart_pending')).toBe('0');
    const [healed, healedFiles] = await hashesOf(rig);
    expect(healed).toBe(healedFiles);
    expect(await listed()).toEqual(['write_record']);
  });

  it('[G-18] a changed file of a gateway key is named, and the old key stays in use until it is put back', async () => {
    await writeFile(join(rig.gateway.folder, 'gateway.key'), OTHER_KEY);
    await expect.poll(async () => (await controlOf(rig)).detail, SOON).toContain('until a restart: keys');
    const [inForce, files] = await hashesOf(rig);
    expect(inForce).not.toBe(files);
    await writeFile(join(rig.gateway.folder, 'gateway.key'), KEY);
    await expect.poll(() => controlOf(rig), SOON).toEqual({ state: 'armed', detail: '' });
  });

  it('[G-18] several keys are named together, and an invalid change is rejected whole and leaves them as they were', async () => {
    const both = `${good.replace('audit: {', 'audit: {checkpoint: {every: 60s}, ')}metrics: {toolLabel: true}\n`;
    await writeFile(file(), both);
    await expect.poll(async () => (await controlOf(rig)).detail, SOON).toContain('until a restart: audit, metrics');
    await writeFile(policy('emergency'), denying('no_such_tool'));
    await writeFile(file(), `${both}nonsense: true\n`);
    await expect.poll(() => metricOf(rig, 'sallyport_config_last_reload_successful'), SOON).toBe('0');
    expect(await listed()).toEqual(['read_record', 'write_record']);
    expect((await controlOf(rig)).detail).toContain('until a restart: audit, metrics');
    expect(await metricOf(rig, 'sallyport_config_restart_pending')).toBe('1');
  });

  it('[G-18] the audit says what is in force, what the files are, and what waits', async () => {
    await writeFile(file(), `${good}metrics: {toolLabel: true}\n`);
    await rig.gateway.reload();
    const [inForce, files] = await hashesOf(rig);
    const detail = { result: 'applied', config: inForce, files_config: files, pending: 'metrics' };
    await expect
      .poll(async () => (await rig.gateway.audit()).filter(({ type }) => type === 'config.reload'), PATIENT)
      .toContainEqual(
        expect.objectContaining({
          detail: expect.objectContaining(detail),
          gateway: expect.objectContaining({ config: inForce }),
        }),
      );
  });

  it.each([
    [
      'a require rule for reviewers that nobody can be yet',
      `  - id: ask
    effect: require
    who: {anyone: true}
    what: {upstreams: [target], tools: [write_record]}
    approval: {by: reviewer}
`,
      (text: string) => `${text}admin: {breakGlass: {token: {file: ./gateway.key}}}\n`,
    ],
    [
      'a require rule with a limit that replicas are to share',
      `  - id: ask
    effect: require
    who: {anyone: true}
    what: {upstreams: [target], tools: [write_record]}
    limits: {rate: 5/min, per: subject}
`,
      (text: string) => `${text}state: {type: redis, url: {env: STORE}}\n`,
    ],
  ])('[G-18] a new rule that needs the key is closed and named: %s', async (_what, rule, change) => {
    // In this order: a rule that is in force before the key waits is not new.
    await writeFile(file(), change(good));
    await writeFile(policy('more'), `version: 1\npolicy: more\nrules:\n${rule}`);
    await expect.poll(async () => (await controlOf(rig)).detail, SOON).toContain('closed until then: more/ask');
    expect(await listed()).toEqual(['read_record', 'write_record']);
    const refused = await callStateless(rig.access, 'write_record', { id: 'one', text: 'two' });
    expect(decisionOf(refused).reason).toBe('restart-pending');
    expect(refused.text).toContain('when the gateway is restarted');
    expect(rig.upstream.uses()).toEqual([]);
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).text).not.toContain('restart-pending');
    rig.upstream.forget();
    // It stays closed whatever else changes meanwhile.
    await writeFile(policy('emergency'), denying('read_record'));
    await expect.poll(listed, SOON).toEqual(['write_record']);
    const again = await callStateless(rig.access, 'write_record', { id: 'one', text: 'two' });
    expect(decisionOf(again).reason).toBe('restart-pending');
  });

  it('[G-18] a new allow rule that needs the key grants nothing, and one in force before stays', async () => {
    const limited = (tool: string): string => `version: 1
policy: more
rules:
  - id: some
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [${tool}]}
    limits: {rate: 50/min, per: subject}
`;
    await writeFile(policy('open'), OPEN.replace('[read_record, write_record]', '[read_record]'));
    try {
      await writeFile(policy('more'), limited('write_record'));
      await rig.gateway.reload();
      expect(await listed()).toEqual(['read_record', 'write_record']);
      await writeFile(file(), `${good}state: {type: redis, url: {env: STORE}}\n`);
      await expect.poll(async () => (await controlOf(rig)).detail, SOON).toContain('until a restart: state');
      expect(await listed()).toEqual(['read_record', 'write_record']);
      await writeFile(policy('more'), limited('"write_*"'));
      await expect.poll(listed, SOON).toEqual(['read_record']);
      expect((await controlOf(rig)).detail).toContain('closed until then: more/some');
      await writeFile(file(), good);
      await expect.poll(listed, SOON).toEqual(['read_record', 'write_record']);
    } finally {
      await writeFile(policy('open'), OPEN);
    }
  });
});

describe('secrets in files', () => {
  it('[G-19] are read again when Kubernetes replaces them, and keep their value when they are lost', async () => {
    const [one, two] = [makeSecret(), makeSecret()];
    const credentials = 'credentials: {type: static, header: x-secret, value: {file: ./mount/secret}}';
    await withGateway({ policies: { open: OPEN } }, async (rig) => {
      const { folder } = rig.gateway;
      const file = join(folder, 'gateway.yaml');
      const good = await readFile(file, 'utf8');
      // As a Secret is mounted: names that lead through `..data` to a folder that is replaced as a whole.
      const mount = join(folder, 'mount');
      const write = async (version: string, secret: string): Promise<void> => {
        await mkdir(join(mount, version), { recursive: true });
        await writeFile(join(mount, version, 'secret'), secret);
        await symlink(version, join(mount, '..new'));
        await rename(join(mount, '..new'), join(mount, '..data'));
      };
      await write('..one', one);
      await symlink('..data/secret', join(mount, 'secret'));
      await writeFile(file, good.replace('  target:\n', `  target:\n    ${credentials}\n`));
      const sent = async (): Promise<string | undefined> => {
        await callStateless(rig.access, 'read_record', { id: 'one' });
        return rig.upstream.uses().at(-1)?.headers['x-secret']?.toString();
      };
      await expect.poll(sent, SOON).toBe(one);
      await write('..two', two);
      await expect.poll(sent, SOON).toBe(two);
      await rm(join(mount, '..data'));
      await rig.gateway.writePolicy('emergency', denying('write_record'));
      await expect
        .poll(async () => toolNames(await requestStateless(rig.access, 'tools/list')), SOON)
        .toEqual(['read_record']);
      expect(await sent()).toBe(two);
      const lost = await controlOf(rig);
      expect(lost.state).toBe('degraded');
      expect(lost.detail).toContain(`cannot be read any more, and what they held stays in force: ${mount}/secret`);
      await write('..three', one);
      await expect.poll(sent, SOON).toBe(one);
      expect(await controlOf(rig)).toEqual({ state: 'armed', detail: '' });
    });
  });
});

describe('a start while keys wait', () => {
  it('[G-18] takes all of them', () =>
    withGateway({ policies: { open: OPEN } }, async (rig) => {
      const { folder, opsUrl } = rig.gateway;
      const file = join(folder, 'gateway.yaml');
      const [data, ops] = [await findFreePort(), await findFreePort()];
      canary.watchGateway(data, ops);
      const text = (await readFile(file, 'utf8'))
        .replaceAll(`:${rig.port}`, `:${data}`)
        .replace(`port: ${rig.port}`, `port: ${data}`)
        .replace(`port: ${new URL(opsUrl).port}`, `port: ${ops}`)
        .replace(/^audit:.*$/m, 'audit: {sinks: [{type: stdout, durability: handed-over}]}');
      await writeFile(file, text);
      await expect
        .poll(async () => (await controlOf(rig)).detail, SOON)
        .toContain('publicUrl, listeners.data, listeners.ops, audit');
      const started = await tryStart({ file });
      if (started.kind !== 'started') throw new Error('the gateway did not start');
      try {
        const metrics = await (await fetch(`http://127.0.0.1:${ops}/metrics`)).text();
        const other = { gateway: { ...rig.gateway, metrics: async () => metrics } };
        const [inForce, files] = await hashesOf(other);
        expect(inForce).toBe(files);
        // Between the two gateways the drift shows.
        expect(await hashesOf(rig)).toEqual([expect.not.stringMatching(String(inForce)), files]);
      } finally {
        await started.gateway.close();
      }
    }));
});
