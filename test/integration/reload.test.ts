// Files that change under a running gateway: applied or rejected soon, whole or not at all.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { canary } from '../support/canary.js';
import { tryStart, UPSTREAM } from '../support/gateway.js';
import { findFreePort } from '../support/processes.js';
import { makeSecret } from '../support/secrets.js';
import { SOON } from '../support/timing.js';
import { bearer, callStateless, post, requestStateless, sessionHeaders, toolNames } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

/** docs/reference/start-and-reload.md#reload. */

function allowing(tool: string): string {
  return `version: 1
policy: open
rules:
  - id: one
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [${tool}]}
`;
}

describe('a change of files', () => {
  const rig = sharedGateway({ policies: { open: allowing('read_record') } });

  const listed = async () => toolNames(await requestStateless(rig.access, 'tools/list'));
  const successful = async (): Promise<number> =>
    Number(/^sallyport_config_last_reload_successful (\d)$/m.exec(await rig.gateway.metrics())?.[1]);
  /** The control as the log has it last and as the metric shows it. */
  const policyControl = async (): Promise<{ state: string; detail: string }> => {
    const line = rig.gateway
      .log()
      .split('\n')
      .findLast((one) => one.includes('"control":"policy"'));
    const { state, detail } = JSON.parse(line ?? '{}');
    expect(await rig.gateway.metrics()).toContain(`sallyport_controls{control="policy",state="${state}"} 1`);
    return { state, detail };
  };
  const reloads = async (result: string) =>
    (await rig.gateway.audit()).filter((line) => line['type'] === 'config.reload' && line['detail'].result === result);

  it('[G-04] of a policy is applied soon of its writing', async () => {
    expect(await listed()).toEqual(['read_record']);
    await rig.gateway.writePolicy('open', allowing('write_record'));
    await expect.poll(listed, SOON).toEqual(['write_record']);
    await expect.poll(async () => (await reloads('applied')).length).toBe(1);
  });

  it('[G-04] adds and removes whole files', async () => {
    await rig.gateway.writePolicy('more', allowing('read_record').replace('policy: open', 'policy: more'));
    await expect.poll(listed, SOON).toEqual(['read_record', 'write_record']);
    await rm(join(rig.gateway.folder, 'policies/more.policy.yaml'));
    await expect.poll(listed, SOON).toEqual(['write_record']);
  });

  it.each([
    ['YAML that does not parse', 'version: 1\npolicy: [open\n'],
    ['a key twice', `${allowing('read_record')}policy: again\n`],
    ['an unknown key', `${allowing('read_record')}extra: true\n`],
    ['a word that is none', allowing('read_record').replace('allow', 'alow')],
    ['an anchor bomb', 'a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n'],
    ['an unknown upstream', allowing('read_record').replace('[target]', '[targets]')],
    ['nothing', ''],
  ])('[G-04] is rejected as a whole, and the old version stays: %s', async (_what, text) => {
    const before = (await reloads('rejected')).length;
    await rig.gateway.writePolicy('open', text);
    await expect.poll(async () => (await reloads('rejected')).length, SOON).toBeGreaterThan(before);
    expect(await listed()).toEqual(['write_record']);
    expect((await fetch(`${rig.gateway.opsUrl}/readyz`)).status).toBe(200);
    expect(await rig.gateway.metrics()).toMatch(/sallyport_config_reloads_total\{result="rejected"\} [1-9]/);
    const log = rig.gateway.log();
    expect(log).toContain('reload rejected');
    expect(log).toMatch(/open\.policy\.yaml[^\n]*"event":"configuration error"/);
    expect(await successful()).toBe(0);
    const rejected = await policyControl();
    expect(rejected.state).toBe('degraded');
    expect(rejected.detail).toMatch(
      /^the last reload was rejected and the previous version stays in force: open\.policy\.yaml:\d+:\d+ \S/,
    );
    // The files are again those in force, which nothing has to be applied for.
    await rig.gateway.writePolicy('open', allowing('write_record'));
    await rig.gateway.reload();
    expect(await successful()).toBe(1);
    expect((await policyControl()).state).toBe('armed');
  });

  it('[G-04] of a lock file that is corrupt is rejected, and its pins stay', async () => {
    const lock = join(rig.gateway.folder, 'policies/pins/target.lock.yaml');
    const good = await readFile(lock, 'utf8');
    for (const bad of [good.replace('Reads a record', 'Reads a card'), good.slice(0, 200), 'x']) {
      const before = (await reloads('rejected')).length;
      await writeFile(lock, bad);
      await expect.poll(async () => (await reloads('rejected')).length, SOON).toBeGreaterThan(before);
      expect(await listed()).toEqual(['write_record']);
    }
    await writeFile(lock, good);
    await rig.gateway.reload();
    await rm(lock);
    await expect.poll(listed, SOON).toEqual([]);
    await writeFile(lock, good);
    await expect.poll(listed, SOON).toEqual(['write_record']);
  });

  it('[G-04] of the gateway file is applied', async () => {
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const good = await readFile(file, 'utf8');
    await writeFile(file, good.replace('issuers: [test]', 'issuers: [test]\n    scopesSupported: [notes:read]'));
    const scopes = async () => {
      const path = '/.well-known/oauth-protected-resource/target';
      const document = (await (await fetch(rig.gateway.publicUrl + path)).json()) as object;
      return 'scopes_supported' in document ? document.scopes_supported : undefined;
    };
    await expect.poll(scopes, SOON).toEqual(['notes:read']);
    await writeFile(file, good);
    await expect.poll(scopes, SOON).toBeUndefined();
    expect(await successful()).toBe(1);
  });

  it('[G-04] adds and removes paths, and changes how large a body may be', async () => {
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const good = await readFile(file, 'utf8');
    const status = async (path: string): Promise<number> =>
      (await post({ url: rig.gateway.publicUrl + path, token: undefined }, '{"a":"b"}')).status;
    const both = async () => [await status('/target'), await status('/elsewhere')];
    expect(await both()).toEqual([401, 404]);
    const added = good.replace('  target:\n', '  target:\n    path: /elsewhere\n');
    await writeFile(file, added);
    await expect.poll(both, SOON).toEqual([404, 401]);
    await writeFile(file, added.replace('path:', 'limits: {maxRequestBytes: 8B}\n    path:'));
    await expect.poll(both, SOON).toEqual([404, 413]);
    await writeFile(file, good);
    await expect.poll(both, SOON).toEqual([401, 404]);
  });

  it('[G-04] that was rejected for want of a file is applied when the file appears', async () => {
    const { folder } = rig.gateway;
    const file = join(folder, 'gateway.yaml');
    const good = await readFile(file, 'utf8');
    const credentials = 'credentials: {type: static, header: x-secret, value: {file: ./late/secret}}';
    const before = (await reloads('rejected')).length;
    const changed = good.replace('  target:\n', `  target:\n    ${credentials}\n`);
    await writeFile(file, changed.replace('policies: {dir: ./policies}', 'policies: {dir: ./late/policies}'));
    await expect.poll(async () => (await reloads('rejected')).length, SOON).toBe(before + 1);
    expect(await listed()).toEqual(['write_record']);
    await mkdir(join(folder, 'late'));
    await writeFile(join(folder, 'late/secret'), makeSecret());
    await expect.poll(async () => (await reloads('rejected')).length, SOON).toBe(before + 2);
    await mkdir(join(folder, 'late/policies'));
    await writeFile(join(folder, 'late/policies/open.policy.yaml'), allowing('read_record'));
    await expect.poll(listed, SOON).toEqual(['read_record']);
    expect(await successful()).toBe(1);
    await writeFile(file, good);
    await expect.poll(listed, SOON).toEqual(['write_record']);
  });

  it('[G-04] ends the streams of an upstream that is gone, soon', async () => {
    const session = await rig.openSession();
    const headers = {
      ...bearer(rig.access.token),
      ...sessionHeaders(session.id),
      accept: 'text/event-stream',
    };
    const stream = await fetch(rig.access.url, { headers });
    expect(stream.status).toBe(200);
    let hasEnded = false;
    const reading = stream.text().then(() => {
      hasEnded = true;
    });
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const good = await readFile(file, 'utf8');
    await writeFile(file, good.replace('  target:\n', '  other:\n'));
    await rm(join(rig.gateway.folder, 'policies/open.policy.yaml'));
    await rig.gateway.writePolicy('open', allowing('"read_*"').replace('[target]', '[other]'));
    await expect.poll(() => hasEnded, { timeout: 4_000, interval: 25 }).toBe(true);
    await reading;
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(404);
  });
});

describe('a start that waits', () => {
  it('[G-04] applies what changed meanwhile, and watches what the gateway file then names', () =>
    withGateway({ policies: { open: allowing('read_record') } }, async (rig) => {
      const { folder, opsUrl, issuer } = rig.gateway;
      const [data, ops] = [await findFreePort(), await findFreePort()];
      canary.watchGateway(data, ops);
      const text = (await readFile(join(folder, 'gateway.yaml'), 'utf8'))
        .replaceAll(`:${rig.port}`, `:${data}`)
        .replace(`port: ${rig.port}`, `port: ${data}`)
        .replace(`port: ${new URL(opsUrl).port}`, `port: ${ops}`)
        .replace(/^audit:.*$/m, 'audit: {sinks: [{type: stdout, durability: handed-over}]}');
      const file = join(folder, 'second.yaml');
      await writeFile(file, text);
      let begin = (): void => undefined;
      let reach = (): void => undefined;
      const isBegun = new Promise<void>((resolve) => {
        begin = resolve;
      });
      const isReached = new Promise<void>((resolve) => {
        reach = resolve;
      });
      const starting = tryStart({
        file,
        // The first line of the audit: the start waits for it.
        writeStdout() {
          reach();
          return isBegun;
        },
      });
      expect(await Promise.race([isReached, starting])).toBeUndefined();
      const policy = join(folder, 'other', 'open.policy.yaml');
      await mkdir(join(folder, 'other'));
      await writeFile(policy, allowing('read_record'));
      await writeFile(file, text.replace('policies: {dir: ./policies}', 'policies: {dir: ./other}'));
      begin();
      const started = await starting;
      if (started.kind !== 'started') throw new Error('the gateway did not start');
      try {
        const url = `http://127.0.0.1:${data}/${UPSTREAM}`;
        const access = { url, token: await issuer.mint(url) };
        const listed = async () => toolNames(await requestStateless(access, 'tools/list'));
        expect(await listed()).toEqual(['read_record']);
        await writeFile(policy, allowing('write_record'));
        await expect.poll(listed, SOON).toEqual(['write_record']);
      } finally {
        await started.gateway.close();
      }
    }));
});
