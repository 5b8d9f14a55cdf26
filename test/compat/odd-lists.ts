// Lists of servers in which one item, or the cursor, cannot be read as it stands.

import { expect } from 'vitest';
import { LISTS } from '../../src/protocol/methods.js';
import { startMergedRig } from '../support/deployments.js';
import { ALLOW_ALL, type RunningGateway } from '../support/gateway.js';
import { body, jsonBody, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import type { Act, Order } from '../support/hostile-upstream.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { withGateway, withStarted } from '../support/with-gateway.js';
import { type CompatRow, withWorld } from './rig.js';

/** Members that readers take differently, or that are not JSON, with the clause that names the item. */
const ODD_MEMBERS: readonly (readonly [clause: string, members: string])[] = [
  ['duplicate member names', '"description":"a","description":"b"'],
  ['duplicate member names', '"description":"a","Description":"b"'],
  ['duplicate member names', '"x":{"properties":{"a":{"type":"string"},"a":{"type":"number"}}}'],
  ['a member named __proto__', '"__proto__":{"description":"a"}'],
  ['a member named __proto__', '"x":{"properties":{"__pr\\u006fto__":{}}}'],
  ['half of a surrogate pair in a name', '"x\\ud800":1'],
  ['not valid JSON', '"x":NaN'],
  ['nested deeper than 256 levels', `"x":${'['.repeat(300)}${']'.repeat(300)}`],
];

const FORMS: readonly (readonly [string, (text: string) => Act])[] = [
  ['JSON', (text) => body(text)],
  ['stream', (text) => body(`event: message\ndata: ${text}\n\n`, 'text/event-stream')],
];

type Kind = keyof typeof LISTS;

/** Items that the gateway can read, by kind. */
const GOOD: { readonly [kind in Kind]: JsonObject } = {
  tools: { name: 'good', inputSchema: { type: 'object' } },
  prompts: { name: 'good' },
  templates: { name: 'good', uriTemplate: 'note:{id}' },
  resources: { name: 'good', uri: 'note:good' },
};

/** What the server of HTTP+SSE of these tests, which writes every message again, leaves as it is. */
const REWRITTEN = ODD_MEMBERS.filter(([, members]) => {
  try {
    return JSON.stringify(JSON.parse(`{${members}}`)) === `{${members}}`;
  } catch {
    return false;
  }
});

/** A list of the good item and one for each of the odd members. */
function listing(kind: Kind, form: (text: string) => Act, odds = ODD_MEMBERS): Order {
  const { method, member, name } = LISTS[kind];
  const odd = odds.map(([, members], at) => {
    const named = { ...GOOD[kind], [name]: `note:odd${at}` };
    return JSON.stringify(named).replace('{', `{${members},`);
  });
  const items = [JSON.stringify(GOOD[kind]), ...odd].join(',');
  return onMethod(method, (request) =>
    form(JSON.stringify(resultFor(request, { [member]: ['@'] })).replace('"@"', items)),
  );
}

/** What the audit log says of decisions. */
async function recorded(gateway: RunningGateway): Promise<string> {
  return JSON.stringify((await gateway.audit()).map(({ decision }) => decision));
}

/** A template is named by the policy that allows it. */
const policies = {
  open: ALLOW_ALL.replace('resources: ["**"]', 'resources: ["**"], templates: ["note:{id}"]'),
};
const OFF = 'pinning: {mode: "off"}';
const PINNED = 'pinning: {maxAge: 1h}';

export const rows: readonly CompatRow[] = [
  {
    id: 'list-with-an-item-that-cannot-be-read',
    area: 'servers',
    source: 'RFC 8259 §4, RFC 7493 §2.3',
    given:
      'In one item of a list a member is given twice, in two cases, is named `__proto__`, is not JSON or nests too deeply.',
    verdict: 'mends',
    sees: 'The item is left out, because readers would take it differently, and named with its cause; its siblings are listed and called.',
    run: async () => {
      for (const [form, act] of FORMS)
        for (const kind of Object.keys(LISTS) as Kind[])
          await withWorld({ policies, order: listing(kind, act), upstream: [OFF] }, async (world) => {
            const { member, method } = LISTS[kind];
            const reply = await (await world.openSession()).request(method);
            expect([form, resultOf(reply)[member]]).toEqual([form, [GOOD[kind]]]);
            await expect
              .poll(() => recorded(world.gateway), PATIENT)
              .toContain(`left out: ${member}/1: ${ODD_MEMBERS[0]?.[0] ?? ''}`);
          });
      for (const upstream of [OFF, PINNED])
        await withWorld(
          {
            order: listing('tools', (text) => body(text)),
            upstream: [upstream],
            result: () => textResult('called'),
          },
          async (world) => {
            expect(toolNames(await world.request('tools/list'))).toEqual(['good']);
            expect((await world.call('good')).text).toContain('called');
            for (const [at, [clause]] of ODD_MEMBERS.entries())
              expect(world.gateway.log()).toContain(`tools/${at + 1}: ${clause}`);
          },
        );
    },
  },
  {
    id: 'list-with-an-item-that-cannot-be-read-in-an-aggregate',
    area: 'servers',
    source: 'RFC 8259 §4, MCP 2024-11-05, transports',
    given: 'The same of one backend of an aggregate, over Streamable HTTP and over HTTP+SSE.',
    verdict: 'mends',
    sees: 'The item is left out; everything else of both backends is listed and called.',
    run: async () => {
      for (const behindChannels of [false, true]) {
        await withStarted(
          () =>
            startMergedRig({
              behindChannels,
              prepare: (left) => left.obey(listing('tools', (text) => body(text), REWRITTEN)),
            }),
          async (rig) => {
            const listed = toolNames(await requestStateless(rig.access, 'tools/list'));
            expect(listed).toEqual(['l_good', 'right_read_record', 'right_write_record']);
            expect((await callStateless(rig.access, 'l_good', {})).status).toBe(200);
            for (const [at, [clause]] of REWRITTEN.entries())
              expect(rig.gateway.log()).toContain(`tools/${at + 1}: ${clause}`);
          },
        );
      }
    },
  },
  {
    id: 'list-with-an-item-that-cannot-be-read-over-http-sse',
    area: 'servers',
    source: 'MCP 2024-11-05, transports',
    given: 'The same of a server over HTTP+SSE, which a client lists over HTTP+SSE.',
    verdict: 'mends',
    sees: 'The item is left out, and the list arrives on the stream of the client.',
    run: async () => {
      expect(REWRITTEN.length).toBeGreaterThan(2);
      for (const behindChannels of [true, false]) {
        await withGateway(
          {
            behindChannels,
            prepare: (upstream) => upstream.obey(listing('tools', (text) => body(text), REWRITTEN)),
          },
          async (rig) => {
            const caller = await openChannelCaller(rig.access);
            expect(toolNames(await caller.request('tools/list'))).toEqual(['good']);
            caller.channel.leave();
          },
        );
      }
    },
  },
  {
    id: 'body-behind-a-byte-order-mark',
    area: 'servers',
    source: 'RFC 8259 §8.1',
    given: 'A server writes a byte order mark before each body.',
    verdict: 'mends',
    sees: 'The message without the mark, which parsers of JSON may refuse.',
    run: async () => {
      for (const upstream of [OFF, PINNED]) {
        const marked = (method: string, result: JsonObject): Order =>
          onMethod(method, (request) => body(`\ufeff${JSON.stringify(resultFor(request, result))}`));
        const lists = marked('tools/list', { tools: [GOOD.tools] });
        const calls = marked('tools/call', textResult('called'));
        const order: Order = (request) => lists(request) ?? calls(request);
        await withWorld({ order, upstream: [upstream] }, async (world) => {
          expect(toolNames(await world.request('tools/list'))).toEqual(['good']);
          const session = await world.openSession();
          for (const reply of [await world.call('good'), await session.call('good')]) {
            expect(resultOf(reply)['content']).toEqual(textResult('called')['content']);
            expect(reply.text).not.toContain('\ufeff');
          }
        });
      }
    },
  },
  {
    id: 'cursor-of-another-type',
    area: 'servers',
    source: 'MCP 2025-11-25, pagination',
    given: 'The `nextCursor` of a list is a number, an object, a list or a boolean.',
    verdict: 'mends',
    sees: 'The list without the cursor, which SDK clients would reject; the list ends there, and the cursor is named.',
    run: async () => {
      for (const [nextCursor, type] of [
        [2, 'number'],
        [{ page: 2 }, 'object'],
        [['2'], 'array'],
        [true, 'boolean'],
      ] as const)
        for (const upstream of [OFF, PINNED]) {
          const order = (kind: Kind): Order => {
            const { method, member } = LISTS[kind];
            const page = { [member]: [GOOD[kind]], nextCursor };
            return onMethod(method, (request) => jsonBody(resultFor(request, page)));
          };
          const clause = `nextCursor: expected string, got ${type}`;
          await withWorld(
            { ...(upstream === OFF && { policies }), order: order('tools'), upstream: [upstream] },
            async (world) => {
              const result = resultOf(await world.request('tools/list'));
              expect([result['tools'], result['nextCursor']]).toEqual([[GOOD.tools], undefined]);
              expect((await world.call('good')).status).toBe(200);
              expect(world.gateway.log()).toContain(`tools: ${clause}`);
              await expect.poll(() => recorded(world.gateway), PATIENT).toContain(`left out: tools: ${clause}`);
              if (upstream !== OFF) return;
              for (const kind of ['prompts', 'resources', 'templates'] as const) {
                world.upstream.obey(order(kind));
                const { method, member } = LISTS[kind];
                const page = resultOf(await world.request(method));
                expect([page[member], page['nextCursor']]).toEqual([[GOOD[kind]], undefined]);
              }
            },
          );
        }
    },
  },
];
