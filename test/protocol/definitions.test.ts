// What is asked of definitions: lists that depend on nothing but rights, in one order, hints that loosen
// nothing, schemas that stay small and stay here. docs/reference/protocol.md, rows 29, 30, 48, 51, 52 and 56.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { expectRefusedLines } from '../support/gateway.js';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, errorOf, initialize, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const READERS = `version: 1
policy: readers
rules:
  - id: what-says-that-it-reads
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["read_*"], resources: ["**"]}
  - id: nothing-that-may-destroy
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    when: tool.annotations.destructiveHint
`;
const NAMES = ['zeta', 'alpha', 'mid', 'beta'];

function named(names: readonly string[]): JsonObject[] {
  return names.map((name) => ({ name, inputSchema: { type: 'object' } }));
}

describe('a list', () => {
  const rig = sharedGateway({ prepare: (upstream) => upstream.offer(() => named(NAMES)) });
  afterEach(() => rig.upstream.offer(() => named(NAMES)));

  it('[MCP-29] is the same for one caller on another connection, after whatever was asked before', async () => {
    const first = await requestStateless(rig.access, 'tools/list');
    await callStateless(rig.access, 'zeta');
    await initialize(rig.access);
    const headers = { connection: 'close', 'user-agent': 'somebody-else/1.0' };
    const second = await requestStateless(rig.access, 'tools/list', {}, { headers });
    expect(toolNames(first)).toEqual(NAMES);
    expect(second.text).toBe(first.text);
  });

  it('[MCP-30] keeps its order though the upstream shuffles', async () => {
    const orders = [
      ['beta', 'mid', 'alpha', 'zeta'],
      ['mid', 'zeta', 'beta', 'alpha'],
    ];
    for (const order of orders) {
      rig.upstream.offer(() => named(order));
      expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(NAMES);
      const session = await rig.openSession();
      expect(toolNames(await session.request('tools/list'))).toEqual(NAMES);
    }
  });

  it('[MCP-30] is in the order of the upstream, byte for byte, where that stays', async () => {
    const { message } = await requestStateless(rig.access, 'tools/list');
    expect(JSON.stringify(message)).toContain(JSON.stringify(named(NAMES)));
  });
});

describe('a page', () => {
  it('[MCP-55] that is empty keeps its cursor, the empty one too', () =>
    withGateway({}, async (rig) => {
      rig.upstream.obey(
        onMethod('tools/list', (request) =>
          jsonBody(resultFor(request, { tools: [], nextCursor: '', ttlMs: 0, cacheScope: 'private' })),
        ),
      );
      const replies = [
        await requestStateless(rig.access, 'tools/list'),
        await (await rig.openSession()).request('tools/list'),
      ];
      expect(replies.map((reply) => resultOf(reply)['nextCursor'])).toEqual(['', '']);
      rig.upstream.forget();
      await requestStateless(rig.access, 'tools/list', { cursor: '' });
      expect(rig.upstream.seen()[0]?.message).toMatchObject({ params: { cursor: '' } });
    }));
});

describe('annotations', () => {
  it('[MCP-48] loosen nothing: a hint to be harmless opens no tool', () =>
    withGateway(
      {
        policies: { readers: READERS },
        prepare: (upstream) =>
          upstream.offer(() => [
            { ...HONEST_TOOLS[0], annotations: { readOnlyHint: true, destructiveHint: false } },
            { ...HONEST_TOOLS[1], annotations: { readOnlyHint: true, destructiveHint: false } },
          ]),
      },
      async (rig) => {
        expect(toolNames(await requestStateless(rig.access, 'tools/list'))).toEqual(['read_record']);
        rig.upstream.forget();
        const reply = await callStateless(rig.access, 'write_record', { id: 'one', text: 'two' });
        await expectRefusedLines(rig, reply, 'no-matching-allow');
        expect(rig.upstream.uses()).toEqual([]);
      },
    ));
});

describe('a hostile schema', () => {
  let canary: ReturnType<typeof createServer>;
  let hits = 0;
  afterAll(async () => {
    await new Promise<void>((resolve) => canary.close(() => resolve()));
  });
  const rig = sharedGateway(async () => {
    canary = createServer((_request, response) => {
      hits += 1;
      response.end('{}');
    });
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve));
    const remote = `http://127.0.0.1:${(canary.address() as AddressInfo).port}/schema.json`;
    return {
      prepare: (upstream: HostileUpstream) =>
        upstream.offer(() => [
          ...HONEST_TOOLS,
          {
            name: 'remote',
            inputSchema: { type: 'object', properties: { a: { $ref: remote } } },
          },
          {
            name: 'looping',
            inputSchema: {
              type: 'object',
              properties: { a: { $ref: '#/$defs/b' } },
              $defs: { b: doubling(40) },
            },
          },
        ]),
    };
  });

  /** A schema whose definitions each name the next one twice: small to write, endless to follow. */
  function doubling(depth: number): JsonObject {
    const $defs: Record<string, JsonObject> = {};
    for (let at = 0; at < depth; at += 1) {
      const next = { $ref: `#/$defs/b/$defs/s${at + 1}` };
      $defs[`s${at}`] = { anyOf: [next, next] };
    }
    $defs[`s${depth}`] = { type: 'string' };
    return { $ref: '#/$defs/b/$defs/s0', $defs } as JsonObject;
  }

  it('[MCP-51] that points elsewhere is not followed, and its tool is neither listed nor callable', async () => {
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).not.toContain('remote');
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'remote', { a: 1 });
    await expectRefusedLines(rig, reply, 'tool-invalid');
    expect(rig.upstream.uses()).toEqual([]);
    expect(hits).toBe(0);
  });

  it('[MCP-52] that multiplies is refused before it costs anything, and the honest tools work', async () => {
    expect(toolNames(await requestStateless(rig.access, 'tools/list'))).not.toContain('looping');
    rig.upstream.forget();
    const reply = await callStateless(rig.access, 'looping', { a: 'x' });
    await expectRefusedLines(rig, reply, 'tool-invalid');
    expect(rig.upstream.uses()).toEqual([]);
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).text).toContain('one');
  });
});

describe('a resource that does not exist', () => {
  it('[MCP-56] is -32602 without state, and -32002 in a session', () =>
    withGateway({}, async (rig) => {
      const params = { uri: 'memo://none' };
      const modern = await requestStateless(rig.access, 'resources/read', params);
      const legacy = await (await rig.openSession()).request('resources/read', params);
      expect([errorOf(modern)['code'], errorOf(legacy)['code']]).toEqual([-32602, -32002]);
    }));
});
