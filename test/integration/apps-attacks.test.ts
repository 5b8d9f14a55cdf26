// Ways past the pins of two faces: a server that swaps what it offers, a client that declares where it should
// not, a setting and rules that change under open sessions, and reviews of what only hosts are offered.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runCommand } from '../support/commands.js';
import { startMergedRig } from '../support/deployments.js';
import { type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { inTurn, onlyIn, type UpstreamEra } from '../support/hostile-acts.js';
import type { Order } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { APP_CONTENTS, APP_URI, APPS, createAppsServer, HOST } from '../support/mcp-servers.js';
import {
  type Access,
  errorOf,
  openSession,
  post,
  type Reply,
  requestStateless,
  resultOf,
  STATELESS_VERSION,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';

const ERAS = ['sessions', 'stateless'] as const;
const PAIRS = ERAS.flatMap((client) => ERAS.map((upstream) => [client, upstream] as const));
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

let rig: AttackRig;
let server: ReturnType<typeof createAppsServer>;
let close: (() => Promise<void>) | undefined;
afterEach(async () => {
  await close?.();
  close = undefined;
});

async function start(era: UpstreamEra, maxAge = '10m'): Promise<void> {
  server = createAppsServer();
  rig = await startRig({
    upstream: [`pinning: {maxAge: ${maxAge}}`, 'apps: true'],
    prepare: (upstream) => upstream.obey(inTurn(server.order, onlyIn(era))),
  });
  close = rig.close;
}

type Ask = (method: string, params?: JsonObject) => Promise<Reply>;

async function connect(era: UpstreamEra, capabilities: JsonObject = {}, access: Access = rig.access): Promise<Ask> {
  if (era === 'sessions') return (await openSession(access, capabilities)).request;
  const meta = { [CAPABILITIES]: capabilities };
  return (method, params = {}) => requestStateless(access, method, { ...params, _meta: meta });
}

async function setApps(folder: string, from: string, to: string): Promise<void> {
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, (await readFile(file, 'utf8')).replaceAll(from, to));
  const diagnostics = await rig.gateway.reload();
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
}

describe.each(PAIRS)('a server that swaps its faces: a client of %s, an upstream of %s', (client, upstream) => {
  it('[APP-07] shows nobody the form of the others, though a page of it was kept', async () => {
    await start(upstream);
    const host = await connect(client, HOST);
    const plain = await connect(client);
    expect(toolNames(await host('tools/list'))).toEqual(['forecast', 'refresh']);
    expect(toolNames(await plain('tools/list'))).toEqual(['forecast']);
    server.swap();
    // The tool for apps alone has one form, which is approved.
    expect(toolNames(await plain('tools/list'))).toEqual(['refresh']);
    expect(toolNames(await host('tools/list'))).toEqual([]);
    expect(toolNames(await plain('tools/list'))).toEqual(['refresh']);
    server.swap();
    expect(toolNames(await host('tools/list'))).toEqual(['forecast', 'refresh']);
    expect(toolNames(await plain('tools/list'))).toEqual(['forecast']);
  });
});

describe('a client that declares where it should not', () => {
  it.each(ERAS)('[APP-06] tells nothing within a session before an upstream of %s', async (era) => {
    await start(era);
    const { id } = await openSession(rig.access);
    rig.upstream.forget();
    const listRequest = (params: JsonObject): string =>
      JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params });
    const meta = { [CAPABILITIES]: HOST };
    const complete = { ...meta, 'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION };
    for (const params of [{ _meta: meta }, { _meta: complete }])
      expect((await post(rig.access, listRequest(params), sessionHeaders(id))).status).toBe(400);
    await post(rig.access, listRequest({ capabilities: HOST }), sessionHeaders(id));
    expect(server.declared(rig.upstream.seen()).join()).not.toContain(APPS);
  });

  it('[APP-06] tells nothing within an array', async () => {
    await start('sessions');
    const opened = await post(
      rig.access,
      JSON.stringify({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: {
          protocolVersion: '2025-03-26',
          capabilities: HOST,
          clientInfo: { name: 'a', version: '1' },
        },
      }),
    );
    const id = opened.headers.get('mcp-session-id') ?? '';
    const headers = { ...sessionHeaders(id), 'mcp-protocol-version': '2025-03-26' };
    const ask = (params: JsonObject) => ({ jsonrpc: '2.0', id: 1, method: 'tools/list', params });
    const listed = await post(rig.access, JSON.stringify([ask({})]), headers);
    expect([listed.status, listed.text]).toEqual([200, expect.stringContaining('forecast')]);
    const smuggled = await post(rig.access, JSON.stringify([ask({ _meta: { [CAPABILITIES]: HOST } })]), headers);
    expect(smuggled.text).not.toContain('Draws');
  });

  it.each(ERAS)('[APP-06] is refused where it declares twice, in %s', async (era) => {
    await start(era);
    rig.upstream.forget();
    const settings = JSON.stringify(HOST['extensions']).slice(1, -1);
    const capabilities = `{"extensions":{${settings},${settings}}}`;
    const text =
      era === 'sessions'
        ? `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":${capabilities},"clientInfo":{"name":"a","version":"1"}}}`
        : `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","${CAPABILITIES}":${capabilities}}}}`;
    const headers: Record<string, string> =
      era === 'sessions' ? {} : { 'mcp-protocol-version': STATELESS_VERSION, 'mcp-method': 'tools/list' };
    expect((await post(rig.access, text, headers)).status).toBe(400);
    expect(rig.upstream.seen()).toEqual([]);
  });
});

describe('a setting that changes', () => {
  it('[APP-08] off and on again: what was declared meanwhile was not, and what stands is verified anew', async () => {
    await start('sessions');
    const host = await connect('sessions', HOST);
    await setApps(rig.gateway.folder, 'apps: true', 'apps: false');
    const meanwhile = await connect('sessions', HOST);
    await setApps(rig.gateway.folder, 'apps: false', 'apps: true');
    await expect.poll(async () => toolNames(await host('tools/list'))).toEqual(['forecast', 'refresh']);
    expect(toolNames(await meanwhile('tools/list'))).toEqual(['forecast']);
    expect(errorOf(await meanwhile('resources/read', { uri: APP_URI }))).not.toEqual({});
    const read = await host('resources/read', { uri: APP_URI });
    expect(resultOf(read)['contents']).toEqual(APP_CONTENTS);
  });

  it('[APP-08] takes the session of an endpoint with it, whose client then begins anew', async () => {
    server = createAppsServer();
    const merged = await startMergedRig({
      upstream: ['pinning: {maxAge: 10m}', 'apps: true'],
      prepare: (left) => left.obey(server.order),
    });
    close = merged.close;
    rig = { gateway: merged.gateway } as AttackRig;
    const host = await connect('sessions', HOST, merged.access);
    expect(toolNames(await host('tools/list'))).toContain('l_refresh');
    await setApps(merged.gateway.folder, 'apps: true', 'apps: false');
    expect((await host('tools/list')).status).toBe(404);
    const again = await connect('sessions', HOST, merged.access);
    await expect.poll(async () => toolNames(await again('tools/list'))).toContain('l_forecast');
    expect(toolNames(await again('tools/list'))).not.toContain('l_refresh');
  });
});

const NO_APPS = `version: 1
policy: open
rules:
  - id: tools
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
`;

describe.each(ERAS)('rules that change, in %s', (era) => {
  it('[APP-06] no client becomes a host once its caller may read no app', async () => {
    await start(era);
    const ask = await connect(era, HOST);
    expect(toolNames(await ask('tools/list'))).toEqual(['forecast', 'refresh']);
    await rig.gateway.writePolicy('open', NO_APPS);
    expect(await rig.gateway.reload()).toEqual([]);
    expect(errorOf(await ask('resources/read', { uri: APP_URI }))).not.toEqual({});
    const later = await connect(era, HOST);
    expect(toolNames(await later('tools/list'))).toEqual(['forecast']);
  });
});

const FOR_ADA = `${NO_APPS}  - id: apps
    effect: allow
    who: {subjects: [ada]}
    what: {upstreams: ["*"], resources: ["ui://**"]}
`;

it.each(ERAS)('[APP-06] one caller is a host and the next is not, in %s', async (era) => {
  await start(era);
  await rig.gateway.writePolicy('open', FOR_ADA);
  await rig.gateway.reload();
  for (const subject of ['ada', 'bob', 'ada', 'bob']) {
    const access = rig.as(await rig.gateway.token(UPSTREAM, { sub: subject }));
    const ask = await connect(era, HOST, access);
    const shown = subject === 'ada' ? ['forecast', 'refresh'] : ['forecast'];
    expect(toolNames(await ask('tools/list'))).toEqual(shown);
  }
});

/** From now on the upstream has nothing for whoever declares the extension. */
function failHosts(): void {
  const failing: Order = ({ message = {} }) =>
    JSON.stringify(message).includes(APPS) ? { kind: 'http', status: 503 } : undefined;
  rig.upstream.obey(inTurn(server.order, failing, onlyIn('stateless')));
}

it('[APP-05] one face that cannot be listed makes the upstream stale for both, and down', async () => {
  await start('stateless', '2s');
  failHosts();
  const call = { name: 'forecast', arguments: { place: 'Rome' } };
  for (const capabilities of [{}, HOST]) {
    const ask = await connect('stateless', capabilities);
    const refused = async () => (await ask('tools/call', call)).text;
    await expect.poll(refused, { timeout: 6_000, interval: 200 }).toContain('pins-stale');
  }
  const up = async () => /^sallyport_upstream_up\{[^}]*\} ([01])$/m.exec(await rig.gateway.metrics())?.[1];
  for (let look = 0; look < 15; look += 1) {
    expect(await up()).toBe('0');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});

/** The command with these words, against the files of the rig. */
async function pin(word: string, ...rest: readonly string[]) {
  const { folder } = rig.gateway;
  const ended = await runCommand(['pin', word, '-c', join(folder, 'gateway.yaml'), ...rest], { cwd: folder });
  return { code: ended.code, out: ended.stdout, err: ended.stderr };
}

describe('a review of what hosts alone are offered', () => {
  const REDRAWN = {
    name: 'forecast',
    description: 'Draws the weather anew.',
    inputSchema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    _meta: { ui: { resourceUri: APP_URI } },
  };

  it('[APP-07] shows what it was for hosts, and its approval leaves the other form approved', async () => {
    await start('stateless', '2s');
    expect(await pin('verify')).toMatchObject({ code: 0, out: 'target: as pinned\n' });
    server.more.push(REDRAWN);
    const shown = await pin('diff', '--details');
    expect([shown.code, shown.out]).toEqual([0, expect.stringContaining('Draws the weather.')]);
    expect(shown.out).not.toContain('Tells the weather');
    expect((await pin('verify')).code).toBe(1);
    const fetched = await pin('fetch');
    const digest = /pending tool forecast (sha256:[0-9a-f]{64})/.exec(fetched.out)?.[1] ?? '';
    const by = ['--digest', digest, '--by', 'reviewer'];
    expect(await pin('approve', UPSTREAM, 'forecast', ...by)).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^note: .* is no longer approved, .* does not offer it\n/),
    });
    expect((await pin('verify')).code).toBe(0);
    await rig.gateway.reload();
    const host = await connect('stateless', HOST);
    await expect.poll(async () => (await host('tools/list')).text, { timeout: 5_000 }).toContain('anew');
    const plain = await connect('stateless');
    expect((await plain('tools/list')).text).toContain('Tells the weather');
  });

  it('[APP-07] is none, and writes nothing, where one face cannot be listed', async () => {
    await start('stateless');
    const file = join(rig.gateway.folder, `policies/pins/${UPSTREAM}.lock.yaml`);
    const before = await readFile(file, 'utf8');
    failHosts();
    for (const word of ['fetch', 'verify', 'diff']) expect((await pin(word)).code).toBe(2);
    expect(await readFile(file, 'utf8')).toBe(before);
  });
});
