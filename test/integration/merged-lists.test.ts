// Lists of an endpoint: pages over members, names that look alike, definitions that drift, members that come and
// go with the configuration, and what is told to those who listen.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { connectTo, firstTextOf, startMergedRig } from '../support/deployments.js';
import { expectRefusedLines } from '../support/gateway.js';
import { onMethod, sseEvent } from '../support/hostile-acts.js';
import { type Act, HONEST_TOOLS, type HostileRequest } from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  type EventReader,
  errorOf,
  openEvents,
  requestStateless,
  resultOf,
  toolNames,
} from '../support/wire-client.js';
import { shared, withStarted } from '../support/with-gateway.js';

function tool(name: string): JsonObject {
  return { name, description: 'Does one thing.', inputSchema: { type: 'object' } };
}

function manyTools(count: number): readonly JsonObject[] {
  return Array.from({ length: count }, (_, at) => tool(`tool_${String(at).padStart(3, '0')}`));
}

const RULES = `version: 1
policy: open
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}
`;

describe('[MRG-13] a list of many pages', () => {
  const rig = shared(() =>
    startMergedRig({
      prepare(left, right) {
        left.offer(() => manyTools(250));
        right.offer(() => manyTools(120));
      },
    }),
  );

  async function walk(access: Access, era: 'sessions' | 'stateless'): Promise<readonly Json[][]> {
    const caller = await connectTo(era, access);
    const pages: Json[][] = [];
    let cursor: Json | undefined;
    do {
      const reply = await caller.request('tools/list', cursor === undefined ? {} : { cursor });
      pages.push([...toolNames(reply)]);
      cursor = resultOf(reply)['nextCursor'];
    } while (cursor !== undefined);
    return pages;
  }

  it.each(['sessions', 'stateless'] as const)('is whole, each name once, in %s', async (era) => {
    const pages = await walk(rig.access, era);
    expect(pages.map((page) => page.length)).toEqual([200, 120, 50]);
    const names = pages.flat();
    expect(new Set(names).size).toBe(370);
    expect(pages[0]?.[0]).toBe('l_tool_000');
    expect(pages[0]?.[100]).toBe('right_tool_000');
    expect(await walk(rig.access, era)).toEqual(pages);
  });

  it('has cursors of its own, good for one caller and one list', async () => {
    const first = await requestStateless(rig.access, 'tools/list');
    const cursor = resultOf(first)['nextCursor'] ?? '';
    expect(cursor).toMatch(/^[\w-]{60,}$/);
    rig.forget();
    const thief = { ...rig.access, token: await rig.gateway.token('all', { sub: 'thief' }) };
    const refused = [
      await requestStateless(thief, 'tools/list', { cursor }),
      await requestStateless(rig.access, 'prompts/list', { cursor }),
      await requestStateless(rig.access, 'tools/list', { cursor: 'from-100' }),
      await requestStateless(rig.access, 'tools/list', { cursor: '' }),
    ];
    for (const reply of refused) expect(errorOf(reply)['code']).toBe(-32602);
    expect([...rig.left.seen(), ...rig.right.seen()]).toEqual([]);
  });

  it('goes on where a cursor of a member is the empty text', async () => {
    const pageOf = (request: HostileRequest): Act => {
      const params = request.message?.['params'] as JsonObject;
      const isFirst = params['cursor'] === undefined;
      const tools = manyTools(2).slice(isFirst ? 0 : 1, isFirst ? 1 : 2);
      const result = { resultType: 'complete', tools, ...(isFirst ? { nextCursor: '' } : {}) };
      const body = JSON.stringify({ jsonrpc: '2.0', id: request.id, result });
      return { kind: 'http', status: 200, headers: { 'content-type': 'application/json' }, body };
    };
    rig.right.obey(onMethod('tools/list', pageOf));
    rig.left.obey(() => ({ kind: 'destroy' }));
    expect(await walk(rig.access, 'stateless')).toEqual([['right_tool_000'], ['right_tool_001']]);
    rig.left.repent();
    rig.right.repent();
  });
});

describe('[MRG-14, MCP-49] names of two members that look alike', () => {
  const rig = shared(() =>
    startMergedRig({
      policies: { open: RULES },
      upstream: ['pinning: {maxAge: 1s}'],
      endpoint: 'issuers: [test], upstreams: {left: {prefix: git_}, right: {prefix: github_}}',
      prepare(left, right) {
        left.offer(() => [tool('status')]);
        right.offer(() => [tool('search')]);
      },
    }),
  );

  it.each([
    ['once their separators are left out', 'hub_search', 'search'],
    ['once a look-alike letter is read as what it looks like', 'hub_se\u0430rch', 'search'],
    ['in another case', 'hub_SEARCH', 'search'],
  ])('%s are hidden, both, and recorded so', async (_, ofLeft, ofRight) => {
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['git_status', 'github_search']);
    rig.left.offer(() => [tool('status'), tool(ofLeft)]);
    await rig.gateway.approvePins();
    const diagnostics = await rig.gateway.reload();
    expect(diagnostics.map(({ severity, message }) => [severity, message])).toEqual([
      ['warning', `names that look alike: ${JSON.stringify(`git_${ofLeft}`)} of left, "github_${ofRight}" of right`],
    ]);
    const listed = async () => toolNames(await requestStateless(rig.access, 'tools/list'));
    await expect.poll(listed, PATIENT).toEqual(['git_status']);
    rig.forget();
    const reply = await requestStateless(rig.access, 'tools/call', { name: `github_${ofRight}` });
    expect(errorOf(reply)['code']).toBe(-32602);
    const [line] = await expectRefusedLines({ ...rig, gateway: rig.gateway } as never, reply, 'tool-shadowed');
    expect(line?.['target']).toMatchObject({ upstream: 'right', name: ofRight });
    expect(rig.right.uses()).toEqual([]);
    await expect
      .poll(() => rig.gateway.metrics(), PATIENT)
      .toMatch(/sallyport_controls\{control="endpoint",state="degraded"\} 1/);
    // On its own path nothing stands beside it.
    const own = { url: rig.gateway.url('right'), token: await rig.gateway.token('right') };
    expect(toolNames(await requestStateless(own, 'tools/list'))).toEqual(['search']);
    rig.left.offer(() => [tool('status')]);
    await rig.gateway.approvePins();
    await rig.gateway.reload();
    await expect.poll(listed, PATIENT).toHaveLength(2);
  });
});

describe('[MRG-06] a member that cannot be listed', () => {
  it('is shown as down, by the controls and by the metrics', () =>
    withStarted(
      () =>
        startMergedRig({
          policies: { open: RULES },
          upstream: ['pinning: {maxAge: 1s}'],
        }),
      async (rig) => {
        rig.right.obey(() => ({ kind: 'destroy' }));
        const metrics = () => rig.gateway.metrics();
        await expect.poll(metrics, PATIENT).toContain('sallyport_upstream_up{upstream="right"} 0');
        await expect.poll(metrics, PATIENT).toContain('sallyport_controls{control="endpoint",state="degraded"} 1');
        // What the gateway asks for itself is no request of a client.
        expect(await metrics()).toMatch(/sallyport_upstream_listings_total\{upstream="right",result="failed"\} [1-9]/);
        expect(await metrics()).not.toContain('mcp_client_operation_duration_seconds_count{upstream="right"');
        rig.right.repent();
        await expect.poll(metrics, PATIENT).toContain('sallyport_controls{control="endpoint",state="armed"} 1');
        // What is demanded of tokens is shown for an endpoint as for an upstream.
        expect(await rig.gateway.metrics()).toMatch(/sallyport_controls\{control="binding",state="(?:off|armed)"\} 3/);
      },
    ));
});

describe('[MRG-14] a gateway whose pins show such names', () => {
  it('does not start, and says which', async () => {
    const started = startMergedRig({
      endpoint: 'issuers: [test], upstreams: {left: {prefix: git_}, right: {prefix: github_}}',
      prepare(left, right) {
        left.offer(() => [tool('hub_search')]);
        right.offer(() => [tool('search')]);
      },
    });
    await expect(started).rejects.toThrow(/names that look alike: .*git_hub_search.* of left/);
  });
});

describe('what changes', () => {
  const rig = shared(() => startMergedRig({ policies: { open: RULES } }));
  afterEach(() => {
    rig.left.repent();
    rig.right.repent();
    rig.left.offer(() => HONEST_TOOLS);
    rig.forget();
  });

  it('[MRG-16] a subscription is acknowledged once and carries the notices of all members', async () => {
    const id = 'io.modelcontextprotocol/subscriptionId';
    const tagged = (method: string, params: JsonObject = {}): JsonObject => ({
      ...{ jsonrpc: '2.0', method },
      params: { ...params, _meta: { [id]: 'listen-1' } },
    });
    const streamOf = (updates: readonly JsonObject[]) =>
      onMethod('subscriptions/listen', (request): Act => {
        const params = request.message?.['params'] as JsonObject;
        const first = tagged('notifications/subscriptions/acknowledged', {
          notifications: params['notifications'] ?? {},
        });
        const chunks = [first, ...updates].map((one) => sseEvent(one));
        return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'hold' };
      });
    const updated = (uri: string) => tagged('notifications/resources/updated', { uri });
    rig.left.obey(streamOf([updated('memo://left')]));
    rig.right.obey(streamOf([updated('memo://right')]));
    const notifications = {
      toolsListChanged: true,
      resourceSubscriptions: ['memo://left', 'memo://right'],
    };
    const reader: EventReader = await openEvents(rig.access, 'subscriptions/listen', {
      notifications,
    });
    const first = await reader.next();
    expect(first).toEqual(tagged('notifications/subscriptions/acknowledged', { notifications }));
    const updates = [await reader.next(), await reader.next()];
    expect(updates).toEqual(expect.arrayContaining([updated('memo://left'), updated('memo://right')]));
    rig.left.offer(() => [...HONEST_TOOLS, tool('fresh')]);
    await requestStateless(rig.access, 'tools/list');
    expect((await reader.next())?.['method']).toBe('notifications/tools/list_changed');
    reader.leave();
    const aborted = async () =>
      [...rig.left.seen(), ...rig.right.seen()].filter(
        ({ method, isAborted }) => method === 'subscriptions/listen' && isAborted,
      ).length;
    await expect.poll(aborted, PATIENT).toBe(2);
  });

  it('[MRG-17] a member that a reload takes out is gone, with its stream, and so is an endpoint', async () => {
    const file = join(rig.gateway.folder, 'gateway.yaml');
    const before = await readFile(file, 'utf8');
    const caller = await connectTo('sessions', rig.access);
    const stream = await fetch(rig.access.url, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${rig.access.token}`,
        'mcp-session-id': caller.session?.id ?? '',
        'mcp-protocol-version': '2025-11-25',
      },
    });
    const ended = stream.text();
    await writeFile(file, before.replace('left: {prefix: l_}, ', ''));
    expect(await rig.gateway.reload()).toEqual([]);
    expect(toolNames(await caller.request('tools/list'))).toEqual(['right_read_record', 'right_write_record']);
    expect(errorOf(await caller.call('l_read_record', { id: 'x' }))['code']).toBe(-32602);
    await writeFile(file, before.replace(/endpoints:\n.*\n/, ''));
    expect(await rig.gateway.reload()).toEqual([]);
    expect((await requestStateless(rig.access, 'tools/list')).status).toBe(404);
    await ended;
    await writeFile(file, before);
    expect(await rig.gateway.reload()).toEqual([]);
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toHaveLength(4);
  });

  it('[MRG-05] a resource that several may serve is read where it was listed, else refused', async () => {
    const read = () => requestStateless(rig.access, 'resources/read', { uri: 'memo://one' });
    const refused = await read();
    expect(errorOf(refused)['message']).toContain('Several servers');
    expect([...rig.left.uses(), ...rig.right.uses()]).toEqual([]);
    const list = (uris: readonly string[]) =>
      onMethod('resources/list', (request): Act => {
        const resources = uris.map((uri) => ({ uri, name: 'one' }));
        const result = { resultType: 'complete', resources };
        const body = JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, result });
        return { kind: 'http', status: 200, headers: { 'content-type': 'application/json' }, body };
      });
    rig.right.obey(list(['memo://one']));
    // Who is alone to show a list may claim what another has.
    rig.left.obey(() => ({ kind: 'destroy' }));
    await requestStateless(rig.access, 'resources/list');
    expect(errorOf(await read())['message']).toContain('Several servers');
    rig.left.obey(list([]));
    await requestStateless(rig.access, 'resources/list');
    expect((await read()).text).toContain('One.');
    expect(rig.right.uses()).toHaveLength(1);
    rig.left.obey(list(['memo://one']));
    await requestStateless(rig.access, 'resources/list');
    expect(errorOf(await read())['message']).toContain('Several servers');
    expect(rig.left.uses()).toEqual([]);
  });

  it('[MRG-15] a definition that drifts at one member is hidden there alone', async () => {
    const [first, ...rest] = HONEST_TOOLS;
    rig.left.offer(() => [{ ...first, description: 'Other.' }, ...rest]);
    const listed = async () => toolNames(await requestStateless(rig.access, 'tools/list'));
    expect(await listed()).toEqual(['l_write_record', 'right_read_record', 'right_write_record']);
    rig.forget();
    const params = { name: 'l_read_record', arguments: { id: 'one' } };
    const reply = await requestStateless(rig.access, 'tools/call', params);
    expect(errorOf(reply)['code']).toBe(-32602);
    const [line] = await expectRefusedLines(rig, reply, 'tool-changed');
    expect(line?.['target']).toMatchObject({ upstream: 'left', endpoint: 'all' });
    expect(rig.left.uses()).toEqual([]);
    const other = { name: 'right_read_record', arguments: { id: 'one' } };
    expect(firstTextOf(await requestStateless(rig.access, 'tools/call', other))).toBe('read_record one');
  });
});
