// What is done to one member of an endpoint reaches all of the session, and what one member does reaches none
// of the others.
// Source: docs/reference/state.md; MCP 2025-11-25, pagination, resources.

import { afterEach, describe, expect, it } from 'vitest';
import { ADMINS, adminsOf, connectTo, LONG_ANSWERS, startMergedRig } from '../support/deployments.js';
import { writeOpenPolicy } from '../support/gateway.js';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import type { HostileUpstream, Order } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  type Access,
  bearer,
  errorOf,
  listenOn,
  openSession,
  requestInSession,
  requestStateless,
  resultOf,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const TEMPLATE = 'users://{id}';
const URI = 'users://42';
const PATIENCE = { timeout: 2_000, interval: 20 };

const rig = shared(() =>
  startMergedRig({
    more: ADMINS,
    policies: { open: writeOpenPolicy([TEMPLATE]) },
    prepare: (left) => left.obey(listing({ 'resources/templates/list': templates })),
  }),
);
afterEach(() => {
  rig.left.obey(listing({ 'resources/templates/list': templates }));
  rig.right.repent();
  rig.forget();
});

const templates: JsonObject = { resourceTemplates: [{ uriTemplate: TEMPLATE, name: 'user' }] };

function listing(results: Readonly<Record<string, JsonObject>>): Order {
  return (request) => {
    const result = results[request.method ?? ''];
    return result === undefined ? undefined : jsonBody(resultFor(request, result));
  };
}

async function openStreams(access: Access) {
  const { id } = await openSession(access);
  const headers = { ...bearer(access.token), ...sessionHeaders(id) };
  const both = 'application/json, text/event-stream';
  const call = (name: string) => ({
    ...{ jsonrpc: '2.0', id: name, method: 'tools/call' },
    params: { name, arguments: { id: 'one' }, _meta: { progressToken: 1 } },
  });
  const ask = (name: string) =>
    fetch(access.url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: both },
      body: JSON.stringify(call(name)),
    });
  const own = fetch(access.url, { headers: { ...headers, accept: 'text/event-stream' } });
  const streams = [
    await listenOn(await own),
    await listenOn(await ask('l_read_record')),
    await listenOn(await ask('right_read_record')),
  ];
  return { id, streams };
}

describe('[MRG-23] a session of an endpoint', () => {
  it('is revoked as a whole by what the records say of one member, with the streams of all', async () => {
    for (const upstream of [rig.left, rig.right]) upstream.obey(LONG_ANSWERS);
    const access = { url: rig.access.url, token: await rig.gateway.token('all', { sub: 'bea' }) };
    const { id, streams } = await openStreams(access);
    await expect.poll(() => streams[2]?.text()).toContain('working');
    const recorded = (await rig.gateway.audit()).findLast(
      ({ actor, target, client }) => actor?.sub === 'bea' && target?.upstream === 'left' && client?.session,
    );
    const digest: string = recorded?.['client'].session;
    const done = await adminsOf(rig.gateway).revoke({ session: { digest } });
    expect(done.status).toBe(201);
    await expect.poll(() => streams.map((stream) => stream.isOver()), PATIENCE).toEqual([true, true, true]);
    for (const upstream of [rig.left, rig.right]) upstream.repent();
    rig.forget();
    // However often it is tried: a member that lost its part is another thing.
    for (let time = 0; time < 6; time += 1) {
      const listed = await requestInSession(access, id, 'tools/list');
      expect([listed.status, errorOf(listed)['code']]).toEqual([404, 1404]);
    }
    expect([...rig.left.seen(), ...rig.right.seen()]).toEqual([]);
    const next = await openSession(access);
    expect(toolNames(await next.request('tools/list'))).toHaveLength(4);
  });
});

describe('[MRG-24] a member', () => {
  const [one, other] = [['read_record'], ['write_record']];

  async function pagesOf(upstream: HostileUpstream, nextCursor: string): Promise<void> {
    const reply = await requestStateless(rig.access, 'tools/list');
    const tools = resultOf(reply)['tools'] as readonly JsonObject[];
    const prefix = upstream === rig.left ? 'l_' : 'right_';
    const named = (names: readonly string[] = []) =>
      names.flatMap((name) => {
        const tool = tools.find((each) => each['name'] === prefix + name);
        return tool === undefined ? [] : [{ ...tool, name }];
      });
    upstream.obey(
      onMethod('tools/list', (request) => {
        const params = request.message?.['params'] as JsonObject | undefined;
        const isFirst = params?.['cursor'] === undefined;
        return jsonBody(resultFor(request, isFirst ? { tools: named(one), nextCursor } : { tools: named(other) }));
      }),
    );
  }

  it('ends its own list alone by a cursor that is too long', async () => {
    await pagesOf(rig.right, 'next');
    await pagesOf(rig.left, 'x'.repeat(300_000));
    const caller = await connectTo('sessions', rig.access);
    const first = await caller.request('tools/list');
    const cursor = resultOf(first)['nextCursor'] ?? '';
    const second = await caller.request('tools/list', { cursor });
    expect([toolNames(first), toolNames(second)]).toEqual([
      ['l_read_record', 'right_read_record'],
      ['right_write_record'],
    ]);
  });

  it('is not read in the place of one whose template gives what it lists', async () => {
    const read = () => requestStateless(rig.access, 'resources/read', { uri: URI });
    await requestStateless(rig.access, 'resources/list');
    await read();
    expect([rig.left.uses().length, rig.right.uses().length]).toEqual([1, 0]);
    rig.right.obey(listing({ 'resources/list': { resources: [{ uri: URI, name: 'mine' }] } }));
    await requestStateless(rig.access, 'resources/list');
    expect(errorOf(await read())['message']).toContain('Several servers');
    expect([rig.left.uses().length, rig.right.uses().length]).toEqual([1, 0]);
  });
});
