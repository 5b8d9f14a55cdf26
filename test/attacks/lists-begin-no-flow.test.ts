// A server that is the source of a flow must not bring its text past the labels in what nobody pins: names and
// descriptions of resources, cursors, what it calls itself, `_meta` and members of no revision. And a client that merely
// connects must not find every sink closed.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectIn, ERAS, type EraCaller } from '../support/eras.js';
import { ALLOW_ALL, type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { jsonBody, resultFor, stream } from '../support/hostile-acts.js';
import {
  type Act,
  HONEST_TOOLS,
  type HostileRequest,
  type HostileUpstream,
  paramsOf,
} from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { type Access, callStateless, openEvents, requestStateless, resultOf } from '../support/wire-client.js';
import { withGateway } from '../support/with-gateway.js';

const TEXT = 'do-as-I-say';
const NOTE = { 'com.example/note': TEXT };
const URI = 'memo://one';
const POLICY = `${ALLOW_ALL}labels: {${UPSTREAM}/write_record: [egress, trusted]}
flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]
`;
const LISTS = ['tools/list', 'resources/list', 'resources/templates/list'];
const SERVER = { name: TEXT, version: '1.2.3', title: TEXT, description: TEXT };
const RESOURCE = {
  uri: URI,
  name: TEXT,
  title: TEXT,
  description: TEXT,
  mimeType: 'text/plain',
  size: 3,
  annotations: { audience: ['user'], priority: 1, note: TEXT },
  note: TEXT,
  _meta: NOTE,
};
/** What a client is shown of it. */
const SHOWN = {
  uri: URI,
  name: URI,
  mimeType: 'text/plain',
  size: 3,
  annotations: { audience: ['user'], priority: 1 },
};

/** The results of a server that says something wherever no pin looks. */
const RESULTS: { readonly [method: string]: JsonObject } = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {}, resources: {}, prompts: {}, logging: {}, note: { TEXT } },
    serverInfo: SERVER,
  },
  'server/discover': {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {}, resources: {}, prompts: {} },
  },
  'tools/list': { tools: HONEST_TOOLS },
  'resources/list': { resources: [RESOURCE] },
  'resources/templates/list': { resourceTemplates: [] },
  ping: {},
  'logging/setLevel': {},
};
const CACHE = { ttlMs: 0, cacheScope: 'private' };

function speak(request: HostileRequest): Act | undefined {
  const { method = '', headers, id = 0 } = request;
  if (method === 'prompts/list')
    return jsonBody({ jsonrpc: '2.0', id, error: { code: -32601, message: TEXT, data: TEXT } });
  const known = RESULTS[method];
  if (known === undefined) return undefined;
  const isStateless = headers['mcp-protocol-version'] === '2026-07-28';
  const isList = method.endsWith('/list');
  const meta: Json = { ...NOTE, 'io.modelcontextprotocol/serverInfo': SERVER };
  const own = { _meta: meta, note: TEXT, ...(isList ? { nextCursor: TEXT } : {}) };
  return jsonBody(resultFor(request, { ...known, ...own, ...(isStateless ? CACHE : {}) }));
}

const isStateless = ({ headers }: HostileRequest): boolean => headers['mcp-protocol-version'] === '2026-07-28';

function start(more: readonly string[]): Promise<AttackRig> {
  return startRig({ policies: { open: POLICY }, upstream: ['pinning: {maxAge: 10m}', ...more] });
}

const callers = (rig: AttackRig) => ({
  as: async (sub: string): Promise<Access> => rig.as(await rig.gateway.token(UPSTREAM, { sub })),
  isClosed: async (access: Access): Promise<boolean> =>
    (await callStateless(access, 'write_record', { id: 'x', text: 'y' })).text.includes('tainted-flow'),
});

/** The cursor of the last request for such a page. */
function lastCursor(upstream: HostileUpstream, method: string): Json | undefined {
  const request = upstream.seen().findLast((one) => one.method === method);
  return request && paramsOf(request)['cursor'];
}

describe('a server that is the source of a flow', () => {
  let rig: AttackRig;
  beforeAll(async () => {
    rig = await start([]);
    rig.upstream.obey(speak);
  });
  afterAll(() => rig.close());

  describe.each(ERAS)('to a client of %s', (era) => {
    let caller: EraCaller;
    let access: Access;
    beforeAll(async () => {
      access = await callers(rig).as(`client of ${era}`);
      caller = await connectIn(era, access);
    });
    afterAll(() => caller.leave());

    it('says nothing in handshakes, lists and empty results, which close nothing', async () => {
      const texts = [JSON.stringify(caller.opened)];
      const methods = era === 'stateless' ? LISTS : [...LISTS, 'ping', 'logging/setLevel'];
      for (const method of [...methods, 'prompts/list']) {
        const reply = await caller.request(method, method.startsWith('log') ? { level: 'info' } : {});
        expect([200, 404]).toContain(reply.status);
        texts.push(reply.text);
      }
      expect(texts.filter((text) => text.includes(TEXT))).toEqual([]);
      expect(await callers(rig).isClosed(access)).toBe(false);
    });

    it('has its resources shown by their URIs, and its tools as they were approved', async () => {
      expect(resultOf(await caller.request('resources/list'))['resources']).toEqual([SHOWN]);
      expect(resultOf(await caller.request('tools/list'))['tools']).toEqual(HONEST_TOOLS);
    });

    it('gets its own cursors back, and clients carry no other', async () => {
      for (const method of LISTS) {
        const { nextCursor = null } = resultOf(await caller.request(method));
        await caller.request(method, { cursor: nextCursor });
        expect(lastCursor(rig.upstream, method)).toBe(TEXT);
        rig.upstream.forget();
        expect((await caller.request(method, { cursor: TEXT })).text).toContain('-32602');
        expect(rig.upstream.seen()).toEqual([]);
      }
    });
  });

  it('closes the sink by what it says on a subscription, but not by accepting it', async () => {
    const { as, isClosed } = callers(rig);
    const access = await as('subscriber');
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    rig.upstream.obeyOnce((request) => {
      if (request.method !== 'subscriptions/listen' || !isStateless(request)) return undefined;
      const subscriptionId = { 'io.modelcontextprotocol/subscriptionId': request.id ?? 0 };
      const message = (name: string, params: JsonObject) => ({
        jsonrpc: '2.0',
        method: `notifications/${name}`,
        params: { ...params, _meta: { ...subscriptionId, ...NOTE } },
      });
      const notifications = { resourceSubscriptions: [URI] };
      const act = stream(
        [message('subscriptions/acknowledged', { notifications }), message('resources/updated', { uri: URI })],
        'hold',
      );
      return act.kind === 'chunks' ? { ...act, gate } : act;
    });
    const notifications = { resourceSubscriptions: [URI] };
    const reader = await openEvents(access, 'subscriptions/listen', { notifications });
    const accepted = JSON.stringify(await reader.next());
    expect(accepted).toContain('acknowledged');
    expect(accepted).not.toContain(TEXT);
    expect(await isClosed(access)).toBe(false);
    release();
    expect(JSON.stringify(await reader.next())).toContain(TEXT);
    await expect.poll(() => isClosed(access), PATIENT).toBe(true);
    reader.leave();
  });
});

describe('with flows: {lists: count}', () => {
  let rig: AttackRig;
  beforeAll(async () => {
    rig = await start(['flows: {lists: count}']);
    rig.upstream.obey(speak);
  });
  afterAll(() => rig.close());

  it.each(ERAS)('a list is delivered whole to a client of %s, and counts', async (era) => {
    const { as, isClosed } = callers(rig);
    // The second caller is shown the page that was kept of the first.
    for (const sub of [`first of ${era}`, `second of ${era}`]) {
      const access = await as(sub);
      const caller = await connectIn(era, access);
      expect(JSON.stringify(caller.opened)).not.toContain(TEXT);
      expect(await isClosed(access)).toBe(false);
      expect((await caller.request('resources/list')).text).toContain(TEXT);
      expect(await isClosed(access)).toBe(true);
      caller.leave();
    }
  });
});

it('leaves lists and handshakes of other servers as they are', () =>
  withGateway({ upstream: ['pinning: {maxAge: 10m}'] }, async (rig) => {
    rig.upstream.obey(speak);
    const list = await requestStateless(rig.access, 'resources/list');
    expect(resultOf(list)['nextCursor']).toBe(TEXT);
    expect(resultOf(list)['_meta']).toMatchObject(NOTE);
    expect(list.text).toContain(`"description":"${TEXT}"`);
  }));
