// Servers that show apps only to hosts that declare the Apps extension: hosts get what was pinned for hosts,
// all others what was pinned for them, in both eras and between them. Without the setting nobody declares it.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { type AttackRig, type RigOptions, startRig, UPSTREAM } from '../support/gateway.js';
import { inTurn, onlyIn, type UpstreamEra } from '../support/hostile-acts.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { APP_CONTENTS, APP_URI, APPS, type AppsServer, createAppsServer, HOST } from '../support/mcp-servers.js';
import {
  type Access,
  errorOf,
  openSession,
  type Reply,
  requestStateless,
  resultOf,
  toolNames,
} from '../support/wire-client.js';

const DECLARED = JSON.stringify(HOST['extensions']);
const ERAS = ['sessions', 'stateless'] as const;
const PAIRS = ERAS.flatMap((client) => ERAS.map((upstream) => [client, upstream] as const));

let rig: AttackRig;
let server: AppsServer;
let close: (() => Promise<void>) | undefined;
afterEach(async () => {
  await close?.();
  close = undefined;
});

/** Starts a server of one era, or of both, and a gateway before it. */
async function start(
  era: UpstreamEra | undefined,
  upstream: readonly string[] = ['apps: true'],
  more: Partial<RigOptions> = {},
): Promise<void> {
  server = createAppsServer();
  const { order } = server;
  rig = await startRig({
    ...more,
    upstream: ['pinning: {maxAge: 10m}', ...upstream],
    prepare: (upstream) => upstream.obey(era === undefined ? order : inTurn(order, onlyIn(era))),
  });
  close = rig.close;
  if (era === undefined) return;
  rig.upstream.obey((request) => onlyIn(era)(request) ?? order(request));
}

type Ask = (method: string, params?: JsonObject) => Promise<Reply>;

/** A client of one era that declares these capabilities. */
async function connect(
  era: UpstreamEra,
  capabilities: JsonObject = {},
  access: Access = rig.access,
): Promise<{ readonly capabilities: unknown; readonly ask: Ask }> {
  if (era === 'sessions') {
    const session = await openSession(access, capabilities);
    return { capabilities: resultOf(session.reply)['capabilities'], ask: session.request };
  }
  const meta = { 'io.modelcontextprotocol/clientCapabilities': capabilities };
  const ask: Ask = (method, params = {}) => requestStateless(access, method, { ...params, _meta: meta });
  return { capabilities: resultOf(await ask('server/discover'))['capabilities'], ask };
}

const textOf = (reply: Reply): unknown => resultOf(reply)['content'];
const callOf = (ask: Ask, args: JsonObject = {}): Promise<Reply> =>
  ask('tools/call', { name: 'forecast', arguments: args });

async function drifts(): Promise<number> {
  return (await rig.gateway.audit()).filter((line) => line['type'] === 'pin.drift').length;
}

describe.each(PAIRS)('a host of %s before an upstream of %s', (client, upstream) => {
  it('[APP-05] gets what was pinned for hosts, and any other client what was pinned for it', async () => {
    await start(upstream);
    const host = await connect(client, { ...HOST, sampling: {} });
    expect(host.capabilities).toMatchObject({ extensions: { [APPS]: {} } });
    const shown = await host.ask('tools/list');
    expect(toolNames(shown)).toEqual(['forecast', 'refresh']);
    expect(shown.text).toContain('Draws the weather.');
    expect((await host.ask('resources/list')).text).toContain(APP_URI);
    const read = await host.ask('resources/read', { uri: APP_URI });
    expect(resultOf(read)['contents']).toEqual(APP_CONTENTS);
    expect(textOf(await callOf(host.ask, { place: 'Rome' }))).toMatchObject([{ text: 'drawn' }]);

    const other = await connect(client);
    expect(other.capabilities).not.toHaveProperty('extensions');
    const plain = await other.ask('tools/list');
    expect(toolNames(plain)).toEqual(['forecast']);
    expect(plain.text).toContain('Tells the weather in words.');
    expect(textOf(await callOf(other.ask))).toMatchObject([{ text: 'in words' }]);
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast', 'refresh']);
    expect(await drifts()).toBe(0);
  });

  it('[APP-05] has its arguments checked by the schema that was pinned for hosts', async () => {
    await start(upstream);
    const host = await connect(client, HOST);
    rig.upstream.forget();
    expect(resultOf(await callOf(host.ask))['isError']).toBe(true);
    expect(rig.upstream.uses()).toEqual([]);
    expect(resultOf(await callOf((await connect(client)).ask))).not.toHaveProperty('isError', true);
  });

  it('[APP-06] declares nothing where the setting is absent, and is served as any other client', async () => {
    await start(upstream, []);
    const host = await connect(client, { ...HOST, experimental: {} });
    expect(host.capabilities).not.toHaveProperty('extensions');
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast']);
    expect(textOf(await callOf(host.ask))).toMatchObject([{ text: 'in words' }]);
    expect(errorOf(await host.ask('resources/read', { uri: APP_URI }))).not.toEqual({});
    expect(server.declared(rig.upstream.seen())).not.toContain(DECLARED);
    expect(JSON.stringify(rig.upstream.seen())).not.toContain(APPS);
    expect(await drifts()).toBe(0);
  });
});

/** Rules by which everyone may use the tools, and nobody may read the app. */
const NO_APPS = `version: 1
policy: no-apps
rules:
  - id: tools
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}
  - id: no-apps
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], resources: ["ui://**"]}
`;

describe.each(ERAS)('in %s', (era) => {
  it('[APP-06] a declaration that policy forbids is removed: the client gets the plain form', async () => {
    await start(era, ['apps: true'], { policies: { rules: NO_APPS } });
    const host = await connect(era, HOST);
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast']);
    expect(textOf(await callOf(host.ask))).toMatchObject([{ text: 'in words' }]);
    expect(errorOf(await host.ask('resources/read', { uri: APP_URI }))).not.toEqual({});
    expect(JSON.stringify(rig.upstream.seen())).not.toContain(APPS);
  });

  it('[APP-06] only the declaration is carried, in the one form that was listed with', async () => {
    await start(era);
    const settings = { mimeTypes: ['text/x-other', 'text/html;profile=mcp-app'], more: true };
    const capabilities = {
      sampling: {},
      extensions: { 'com.example/x': {}, [APPS]: settings, 'com.example/y': {} },
    };
    const host = await connect(era, capabilities);
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast', 'refresh']);
    expect(server.declared(rig.upstream.seen())).toEqual([DECLARED]);
    expect(JSON.stringify(rig.upstream.seen())).not.toMatch(/sampling|com\.example|x-other/);
  });

  it.each([
    ['without the content of apps', { extensions: { [APPS]: { mimeTypes: ['text/html'] } } }],
    ['without settings', { extensions: { [APPS]: {} } }],
    ['in another case', { extensions: { [APPS.toUpperCase()]: HOST['extensions'] ?? {} } }],
    ['beside its place', { Extensions: HOST['extensions'] ?? {} }],
  ])('[APP-06] a declaration %s is none', async (_, capabilities: JsonObject) => {
    await start(era);
    const host = await connect(era, capabilities);
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast']);
    expect(server.declared(rig.upstream.seen())).not.toContain(DECLARED);
  });

  it('[APP-07] nothing that was not pinned for hosts reaches one, and what changes there is refused to all', async () => {
    await start(era);
    const evil = { name: 'evil', inputSchema: { type: 'object' } };
    server.more.push(evil);
    const host = await connect(era, HOST);
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast', 'refresh']);
    expect(errorOf(await host.ask('tools/call', { name: 'evil' }))['code']).toBe(-32602);
    server.more.push({ name: 'forecast', description: 'Changed.', inputSchema: {} });
    const changed = await host.ask('tools/list');
    expect(toolNames(changed)).toEqual(['refresh']);
    expect(changed.text).not.toContain('Changed.');
    const other = await connect(era);
    expect(toolNames(await other.ask('tools/list'))).toEqual([]);
    expect(errorOf(await callOf(other.ask))['code']).toBe(-32602);
  });
});

describe('over HTTP+SSE', () => {
  it('[APP-05] an upstream of it is listed for hosts on a channel of their own', async () => {
    await start(undefined, ['apps: true'], { behindChannels: true });
    for (const era of ERAS) {
      const host = await connect(era, HOST);
      expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast', 'refresh']);
      const read = await host.ask('resources/read', { uri: APP_URI });
      expect(resultOf(read)['contents']).toEqual(APP_CONTENTS);
      const other = await connect(era);
      expect(toolNames(await other.ask('tools/list'))).toEqual(['forecast']);
    }
    expect(await drifts()).toBe(0);
  });

  it.each(ERAS)('[APP-06] a client of it declares nothing before an upstream of %s', async (era) => {
    await start(era);
    const caller = await openChannelCaller(rig.access, HOST);
    expect(toolNames(await caller.request('tools/list'))).toEqual(['forecast']);
    expect(server.declared(rig.upstream.seen())).not.toContain(DECLARED);
    caller.channel.leave();
  });
});

describe('at an endpoint', () => {
  it('[APP-05] each member is told what the client declares, and the client what any of them has', async () => {
    server = createAppsServer();
    const merged = await startMergedRig({
      upstream: ['pinning: {maxAge: 10m}', 'apps: true'],
      prepare: (left) => left.obey(server.order),
    });
    close = merged.close;
    for (const era of ERAS) {
      const host = await connect(era, HOST, merged.access);
      expect(host.capabilities).toMatchObject({ extensions: { [APPS]: {} } });
      const shown = toolNames(await host.ask('tools/list'));
      expect(shown).toEqual(expect.arrayContaining(['l_forecast', 'l_refresh']));
      const read = await host.ask('resources/read', { uri: APP_URI });
      expect(resultOf(read)['contents']).toEqual(APP_CONTENTS);
      const other = await connect(era, {}, merged.access);
      expect(other.capabilities).not.toHaveProperty('extensions');
      expect(toolNames(await other.ask('tools/list'))).not.toContain('l_refresh');
    }
  });
});

describe('with the setting', () => {
  it('[APP-05] both forms of a definition stand in the lock file', async () => {
    await start(undefined);
    const file = join(rig.gateway.folder, `policies/pins/${UPSTREAM}.lock.yaml`);
    const lock = await readFile(file, 'utf8');
    expect(lock).toContain('Draws the weather.');
    expect(lock).toContain('Tells the weather in words.');
    expect(lock).toMatch(/^resources:\n {2}"ui:\/\/forecast\/view\.html":\n {4}status: approved$/m);
  });

  it('[APP-05] a server of both eras is served in both', async () => {
    await start(undefined);
    for (const era of ERAS) {
      const host = await connect(era, HOST);
      expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast', 'refresh']);
      const other = await connect(era);
      expect(toolNames(await other.ask('tools/list'))).toEqual(['forecast']);
    }
    expect(await drifts()).toBe(0);
  });

  it('[APP-08] a session that was opened with the declaration ends with the setting', async () => {
    await start('sessions');
    const host = await connect('sessions', HOST);
    const other = await connect('sessions');
    expect(toolNames(await host.ask('tools/list'))).toEqual(['forecast', 'refresh']);
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('apps: true', 'apps: false'));
    const diagnostics = await rig.gateway.reload();
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    expect((await host.ask('tools/list')).status).toBe(404);
    await expect.poll(async () => toolNames(await other.ask('tools/list'))).toEqual(['forecast']);
    const again = await connect('sessions', HOST);
    expect(toolNames(await again.ask('tools/list'))).toEqual(['forecast']);
  });
});
