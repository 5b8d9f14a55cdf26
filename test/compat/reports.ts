// Rows from public reports about gateways, servers and clients that lose messages, sessions or members of messages.

import { expect } from 'vitest';
import {
  body,
  inTurn,
  jsonBody,
  onMethod,
  resultFor,
  sessionsOnly,
  statelessOnly,
  stream,
} from '../support/hostile-acts.js';
import type { Act, HostileRequest, Order } from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { callStateless, errorOf, openSession, resultOf, toolNames } from '../support/wire-client.js';
import { type CompatRow, type World, withWorld } from './rig.js';

const OPEN: JsonObject = { type: 'object' };
const READ = { name: 'read_record', description: 'Reads.', inputSchema: OPEN };

async function expectCallWorks(world: World): Promise<void> {
  const reply = await world.call('read_record', { id: 'one' });
  expect([reply.status, reply.text.includes('read_record one')]).toEqual([200, true]);
}

async function expectSessionWorks(world: World): Promise<void> {
  const session = await world.openSession();
  const reply = await session.call('read_record', { id: 'one' });
  expect([reply.status, reply.text.includes('read_record one')]).toEqual([200, true]);
}

/** Answers every notification in this way. */
function onNotification(act: Act): Order {
  return ({ method }) => (method?.startsWith('notifications/') === true ? act : undefined);
}

/** A call that returns exactly this result. */
function answering(result: JsonObject): Order {
  return onMethod('tools/call', (request) => jsonBody(resultFor(request, result)));
}

/** The bytes of the result of a call, without what the stateless era adds. */
async function resultThrough(world: World): Promise<Json> {
  const { resultType: _, ...result } = resultOf(await world.call('read_record', { id: 'one' }));
  return result;
}

function schemaRow(id: string, source: string, given: string, inputSchema: JsonObject, args: JsonObject): CompatRow {
  return {
    id,
    area: 'schemas',
    source,
    given,
    verdict: 'accepts',
    sees: 'The definition is listed as it came, and calls that satisfy it pass.',
    run: () =>
      withWorld({ tools: [{ ...READ, inputSchema }], upstream: ['pinning: {maxAge: 10m}'] }, async (world) => {
        const listed = resultOf(await world.request('tools/list'))['tools'] as JsonObject[];
        expect(listed[0]?.['inputSchema']).toEqual(inputSchema);
        const reply = await world.call('read_record', args);
        expect([reply.status, reply.message]).toEqual([200, expect.objectContaining({ result: expect.anything() })]);
      }),
  };
}

const raw = (head: string, rest: string): Act => ({
  kind: 'raw',
  chunks: [head, rest],
  ending: 'end',
});

/** The same honest answer in unusual HTTP. */
const FRAMINGS: readonly (readonly [string, (request: HostileRequest) => Act])[] = [
  [
    'HTTP/1.0, ended by the close',
    (request) =>
      raw(
        'HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n',
        JSON.stringify(resultFor(request, { content: [{ type: 'text', text: 'ok' }] })),
      ),
  ],
  [
    'HTTP/1.1, ended by the close',
    (request) =>
      raw(
        'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n',
        JSON.stringify(resultFor(request, { content: [{ type: 'text', text: 'ok' }] })),
      ),
  ],
  [
    'early hints first',
    (request) =>
      raw(
        'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n',
        JSON.stringify(resultFor(request, { content: [{ type: 'text', text: 'ok' }] })),
      ),
  ],
  [
    'chunks of one byte',
    (request) => {
      const text = JSON.stringify(resultFor(request, { content: [{ type: 'text', text: 'ok' }] }));
      return {
        kind: 'chunks',
        contentType: 'application/json',
        chunks: [...text],
        ending: 'end',
        paceMs: 0,
      };
    },
  ],
  [
    'a charset',
    (request) =>
      body(
        JSON.stringify(resultFor(request, { content: [{ type: 'text', text: 'ok' }] })),
        'application/json; charset=utf-8',
      ),
  ],
  [
    'comments before the event',
    (request) => ({
      kind: 'chunks',
      contentType: 'text/event-stream',
      chunks: [
        ': ping\n\n',
        ': ping\n\n',
        `data: ${JSON.stringify(resultFor(request, { content: [{ type: 'text', text: 'ok' }] }))}\n\n`,
      ],
      ending: 'end',
    }),
  ],
];

const FAITHFUL: JsonObject = {
  content: [
    { type: 'text', text: 'ok', _meta: { 'vendor.example/x': null } },
    { type: 'resource', resource: { uri: 'memo://a', mimeType: 'text/plain', text: 'A' } },
    { type: 'resource_link', uri: 'memo://b', name: 'b' },
    { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' },
    { type: 'vendor_block', payload: { depth: [1, [2, null]] } },
  ],
  structuredContent: { nothing: null, deep: [{ a: [] }], big: 12345678901234 },
  _meta: { 'vendor.example/trace': { ids: [1, 2, 3] } },
};

const NAMES = ['a.b.c', 'ns/tool', '7zip', 'Ärger', '名前', 'a-b_c', 'x'.repeat(64), 'with blank'];

export const rows: readonly CompatRow[] = [
  {
    id: 'upstream-of-an-older-session-revision',
    area: 'servers',
    source: 'Kuadrant/mcp-gateway#1436, supergateway#156, 1mcp-app/agent#528',
    given: 'A server knows sessions only, and a client is stateless.',
    verdict: 'accepts',
    sees: 'Clients of both eras list and call.',
    run: () =>
      withWorld({ order: sessionsOnly }, async (world) => {
        await expectCallWorks(world);
        await expectSessionWorks(world);
      }),
  },
  {
    id: 'stateless-upstream-behind-sessions',
    area: 'servers',
    source: 'Kuadrant/mcp-gateway#1483, rwlove/home-ops#13627',
    given: 'A server is stateless, and a client opens a session.',
    verdict: 'accepts',
    sees: 'Clients of both eras list and call.',
    run: () =>
      withWorld({ order: statelessOnly }, async (world) => {
        await expectCallWorks(world);
        await expectSessionWorks(world);
      }),
  },
  ...FRAMINGS.map(([name, act], at): CompatRow => {
    return {
      id: `framing-${at + 1}`,
      area: 'servers',
      source: 'Kuadrant/mcp-gateway#281, envoyproxy/ai-gateway#2568',
      given: `A server answers in unusual HTTP: ${name}.`,
      verdict: 'accepts',
      sees: 'The result passes.',
      run: () =>
        withWorld({ order: onMethod('tools/call', act) }, async (world) => {
          const reply = await world.call('read_record', { id: 'one' });
          expect([reply.status, resultOf(reply)['content']]).toEqual([200, [{ type: 'text', text: 'ok' }]]);
        }),
    };
  }),
  {
    id: 'notification-answered-by-200-or-204',
    area: 'servers',
    source: 'helidon-mcp#97, awslabs/mcp#483, mcp-go#717, WordPress/mcp-adapter#125',
    given: 'A server answers a notification with 200, 202 or 204, with a body or without.',
    verdict: 'accepts',
    sees: 'The session opens and works.',
    run: async () => {
      const acts: readonly Act[] = [
        { kind: 'http', status: 200 },
        { kind: 'http', status: 204 },
        jsonBody({}, 200),
        jsonBody({ jsonrpc: '2.0', result: {} }, 202),
        body('Accepted', 'text/plain', 202),
      ];
      await withWorld({}, async (world) => {
        for (const act of acts) {
          world.upstream.obey(onNotification(act));
          await expectSessionWorks(world);
        }
      });
    },
  },
  {
    id: 'ping-of-a-server-in-a-stream',
    area: 'servers',
    source: 'microsoft/playwright-mcp#1293',
    given: 'A server pings its client in the stream of a call.',
    verdict: 'accepts',
    sees: 'The ping is answered, and the result follows.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        world.upstream.obey(
          onMethod('tools/call', (request) =>
            stream([
              { jsonrpc: '2.0', id: 'beat', method: 'ping' },
              resultFor(request, { content: [{ type: 'text', text: 'ok' }] }),
            ]),
          ),
        );
        const reply = await session.call('read_record', { id: 'one' });
        expect(reply.text).toContain('"ok"');
        await expect
          .poll(() => world.upstream.seen().some(({ message }) => message?.['id'] === 'beat' && 'result' in message))
          .toBe(true);
      }),
  },
  {
    id: 'session-lost-by-a-restart',
    area: 'servers',
    source: 'punkpeye/mcp-remote#106, sparfenyuk/mcp-proxy#149, mastra#15160',
    given: 'A server was restarted and answers the id of its old session with 404.',
    verdict: 'accepts',
    sees: 'The client gets 404 for its own session, and opens another one.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        world.upstream.obeyOnce(onMethod('tools/call', () => ({ kind: 'http', status: 404 })));
        world.upstream.obeyOnce(onMethod('ping', () => ({ kind: 'http', status: 404 })));
        expect((await session.call('read_record', { id: 'one' })).status).toBe(404);
        await expectSessionWorks(world);
      }),
  },
  {
    id: 'page-behind-an-empty-cursor',
    area: 'servers',
    source: 'PrefectHQ/fastmcp#5025, MCPJam/inspector#4462',
    given: 'A server pages its list with an empty string as the cursor.',
    verdict: 'accepts',
    sees: 'The page behind it is read too.',
    run: () =>
      withWorld(
        {
          order: onMethod('tools/list', (request) => {
            const params = request.message?.['params'] as JsonObject | undefined;
            const isSecond = params?.['cursor'] === '';
            const page = isSecond ? { tools: [{ ...READ, name: 'second' }] } : { tools: [READ], nextCursor: '' };
            return jsonBody(resultFor(request, { ...page, ttlMs: 0, cacheScope: 'private' }));
          }),
          upstream: ['pinning: {maxAge: 10m}'],
        },
        async (world) => {
          const reply = await world.call('second', {});
          expect(errorOf(reply)['message']).toBe('Unknown tool');
          expect(resultOf(await world.request('tools/list'))).toHaveProperty('nextCursor', '');
          expect(toolNames(await world.request('tools/list', { cursor: '' }))).toEqual(['second']);
        },
      ),
  },
  schemaRow(
    'recursive-reference',
    'anthropics/claude-code#77106, google-labs-code/stitch-sdk#367',
    'A schema refers to itself.',
    {
      type: 'object',
      properties: { tree: { $ref: '#/$defs/node' } },
      $defs: {
        node: {
          type: 'object',
          properties: {
            name: { type: 'string' },
            kids: { type: 'array', items: { $ref: '#/$defs/node' } },
          },
        },
      },
    },
    { tree: { name: 'a', kids: [{ name: 'b', kids: [] }] } },
  ),
  schemaRow(
    'declared-draft-07',
    'anthropics/claude-code#90549, sourcebot#1547',
    'A schema declares draft-07.',
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] } },
    },
    { pair: ['a', 1] },
  ),
  schemaRow(
    'unknown-keywords',
    'oh-my-pi#126',
    'A schema has keywords that JSON Schema does not define, such as `nullable`.',
    { type: 'object', properties: { a: { type: 'string', nullable: true, 'x-order': 1 } } },
    { a: 'x' },
  ),
  {
    id: 'unusual-tool-names',
    area: 'definitions',
    source: 'dcc-mcp-core#261, copilot-cli#1879, context-forge#2534',
    given: 'Tools have names with dots, slashes, blanks, digits first or other alphabets.',
    verdict: 'accepts',
    sees: 'They are listed and called under these names.',
    run: () =>
      withWorld(
        {
          tools: NAMES.map((name) => ({ ...READ, name })),
          result: () => ({ content: [{ type: 'text', text: 'ok' }] }),
        },
        async (world) => {
          expect(toolNames(await world.request('tools/list'))).toEqual(NAMES);
          for (const name of NAMES) {
            const reply = await callStateless(world.access, name, {});
            expect([name, resultOf(reply)['content']]).toEqual([name, [{ type: 'text', text: 'ok' }]]);
          }
        },
      ),
  },
  {
    id: 'members-and-blocks-of-every-kind',
    area: 'messages',
    source: 'gridctl#848, mcp-mux#206, muster#972, stacklok/toolhive#5859',
    given: 'A result has structured content, vendor members, `null`, links, images and unknown blocks.',
    verdict: 'accepts',
    sees: 'All of it arrives as it was sent.',
    run: () =>
      withWorld({ order: answering(FAITHFUL) }, async (world) => {
        expect(await resultThrough(world)).toEqual(FAITHFUL);
      }),
  },
  {
    id: 'numbers-beyond-doubles',
    area: 'messages',
    source: 'RFC 8259 §6',
    given: 'A result has numbers that a double cannot hold.',
    verdict: 'accepts',
    sees: 'The digits arrive as they were sent.',
    run: () =>
      withWorld(
        {
          order: onMethod('tools/call', (request) =>
            body(
              JSON.stringify(resultFor(request, { content: [], structuredContent: { n: 'NUMBERS' } })).replace(
                '"NUMBERS"',
                '[9007199254740993,1.10,1e400,0.1000000000000000055]',
              ),
            ),
          ),
        },
        async (world) => {
          const reply = await world.call('read_record', { id: 'one' });
          expect(reply.text).toContain('[9007199254740993,1.10,1e400,0.1000000000000000055]');
        },
      ),
  },
  {
    id: 'output-schema-of-an-error',
    area: 'schemas',
    source: 'IBM/mcp-context-forge#4202',
    given: 'A tool with an output schema returns an error result without structured content.',
    verdict: 'accepts',
    sees: 'The error arrives; the schema is for results.',
    run: () =>
      withWorld(
        {
          tools: [
            {
              ...READ,
              outputSchema: {
                type: 'object',
                properties: { n: { type: 'number' } },
                required: ['n'],
              },
            },
          ],
          result: () => ({ content: [{ type: 'text', text: 'no such record' }], isError: true }),
          upstream: ['pinning: {maxAge: 10m}'],
        },
        async (world) => {
          expect(await resultThrough(world)).toMatchObject({
            content: [{ type: 'text', text: 'no such record' }],
            isError: true,
          });
        },
      ),
  },
  {
    id: 'capability-of-elicitation-in-other-words',
    area: 'clients',
    source: 'docker/docker-agent#1574',
    given: 'A client declares elicitation with members that no revision defines.',
    verdict: 'accepts',
    sees: 'The session opens.',
    run: () =>
      withWorld({}, async (world) => {
        const capabilities = { elicitation: { Form: {}, URL: {} } };
        const session = await openSession(world.access, capabilities);
        expect((await session.call('read_record', { id: 'one' })).status).toBe(200);
      }),
  },
  {
    id: 'call-without-arguments',
    area: 'clients',
    source: 'mcpproxy-go#427, cline#10553',
    given: 'A client calls a tool without the member `arguments`.',
    verdict: 'accepts',
    sees: 'The call is forwarded as it came.',
    run: () =>
      withWorld({ tools: [READ], result: () => ({ content: [{ type: 'text', text: 'ok' }] }) }, async (world) => {
        const reply = await world.request('tools/call', { name: 'read_record' });
        expect([reply.status, resultOf(reply)['content']]).toEqual([200, [{ type: 'text', text: 'ok' }]]);
        expect(world.upstream.uses().at(-1)?.body).not.toContain('arguments');
      }),
  },
  {
    id: 'metadata-of-the-resource',
    area: 'clients',
    source: 'RFC 9728, anthropics/claude-code#52871, exa-mcp-server#340',
    given: 'A client without a token looks for the authorization server.',
    verdict: 'accepts',
    sees: 'The challenge names the metadata, which name the exact resource.',
    run: () =>
      withWorld({}, async ({ access, gateway }) => {
        const response = await fetch(access.url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{}',
        });
        const challenge = response.headers.get('www-authenticate') ?? '';
        const url = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '';
        expect([response.status, url]).toEqual([401, `${gateway.publicUrl}/.well-known/oauth-protected-resource/u`]);
        expect(await (await fetch(url)).json()).toMatchObject({ resource: access.url });
      }),
  },
  {
    id: 'error-wrapped-in-an-error',
    area: 'servers',
    source: 'WordPress/mcp-adapter#104',
    given: 'A server wraps a JSON-RPC error into another one without a code.',
    verdict: 'refuses',
    sees: 'It is no JSON-RPC response: 502, and the log names the member.',
    run: () =>
      withWorld(
        {
          order: inTurn(
            () => undefined,
            onMethod('tools/call', (request) =>
              jsonBody({
                jsonrpc: '2.0',
                id: request.id ?? 0,
                error: { error: { code: -32603, message: 'inner' } },
              }),
            ),
          ),
        },
        async (world) => {
          expect((await world.call('read_record', { id: 'one' })).status).toBe(502);
        },
      ),
  },
];
