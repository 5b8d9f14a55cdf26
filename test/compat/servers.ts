// What servers do with HTTP statuses, sessions and lists that is unusual and can be served.

import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { resultFor } from '../support/hostile-acts.js';
import { type Act, HONEST_TOOLS, type HostileRequest, type Order } from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { INITIALIZE, only, startStdioRig } from '../support/stdio-server.js';
import { errorOf, initialize, type OpenSession, openSession, resultOf, toolNames } from '../support/wire-client.js';
import { untilTestEnds, withStarted } from '../support/with-gateway.js';
import { type CompatRow, type World, withWorld } from './rig.js';

const JSON_TYPE = { 'content-type': 'application/json' };

/** A body, with the id of the request in place of `{id}`. */
function answering(
  request: HostileRequest,
  status: number,
  body: string | undefined,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): Act {
  const text = body?.replace('{id}', JSON.stringify(request.id ?? null));
  return { kind: 'http', status, headers, ...(text === undefined ? {} : { body: text }) };
}

function errorText(id: string | undefined, code: number, message: string): string {
  const member = id === undefined ? '' : `,"id":${id}`;
  return `{"jsonrpc":"2.0"${member},"error":{"code":${code},"message":${JSON.stringify(message)}}}`;
}

type StatusCase = {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the session is gone, so that a ping fails like the call. */
  readonly isLost?: boolean;
};

/** Answers calls as told, and pings of a lost session like the calls. */
function answeringCalls({ status, body, headers, isLost = false }: StatusCase): Order {
  return (request) => {
    const isCall = request.method === 'tools/call';
    if (!isCall && !(isLost && request.method === 'ping')) return undefined;
    const isOwn = isCall || body === undefined;
    return answering(request, status, isOwn ? body : body.replace('{id}', '{id}'), headers);
  };
}

async function callInSession(
  world: World,
  given: StatusCase,
): Promise<{
  readonly reply: Awaited<ReturnType<OpenSession['call']>>;
  readonly session: OpenSession;
}> {
  const session = await world.openSession();
  world.upstream.obey(answeringCalls(given));
  const reply = await session.call('read_record', { id: 'one' });
  world.upstream.repent();
  return { reply, session };
}

async function statusAfter(session: OpenSession): Promise<number> {
  return (await session.call('read_record', { id: 'one' })).status;
}

const STRAY_IDS = ['null', '"server-error"', undefined];

/** The detail of the newest outcome of a call in the audit log. */
async function lastDetail({ gateway }: World): Promise<Json | undefined> {
  const lines = (await gateway.audit()).filter((line) => line['target']?.method === 'tools/call');
  const decision: JsonObject = lines.at(-1)?.['decision'] ?? {};
  return decision['detail'];
}

const statusRows: readonly CompatRow[] = [
  {
    id: 'status-401-403-407-of-a-server',
    area: 'servers',
    source: 'RFC 9110 §15.5, RFC 6750 §3',
    given: 'A server answers 401, 403 or 407, with whatever body.',
    verdict: 'refuses',
    sees: 'It is a fault of the credential of the gateway: 502, with the cause in the log.',
    run: () =>
      withWorld({}, async (world) => {
        for (const status of [401, 403, 407])
          for (const body of [undefined, errorText('{id}', -32001, 'who are you')]) {
            const { reply, session } = await callInSession(world, {
              status,
              ...(body && { body }),
            });
            expect([status, reply.status]).toEqual([status, 502]);
            expect(reply.text).toContain('could not authenticate');
            expect(reply.text).not.toContain('who are you');
            expect(await statusAfter(session)).toBe(200);
          }
        await expect.poll(() => world.gateway.log()).toContain('401 to tools/call');
      }),
  },
  {
    id: 'ttl-that-is-no-time',
    area: 'servers',
    source: 'MCP 2026-07-28, caching',
    given: 'A server of the stateless era gives a list a `ttlMs` that is negative, a fraction or no number.',
    verdict: 'mends',
    sees: 'A `ttlMs` that its SDK accepts: 0 where it is no time, and the whole milliseconds of a fraction.',
    run: () =>
      withWorld({}, async (world) => {
        for (const [ttlMs, kept] of [
          [-5, 0],
          ['soon', 0],
          [12.5, 12],
          [12, 12],
        ] as const) {
          world.upstream.obey((request) =>
            request.method === 'tools/list'
              ? {
                  kind: 'http',
                  status: 200,
                  headers: JSON_TYPE,
                  body: JSON.stringify(resultFor(request, { tools: HONEST_TOOLS, ttlMs, resultType: 'complete' })),
                }
              : undefined,
          );
          const listed = resultOf(await world.request('tools/list'));
          expect([listed['ttlMs'], listed['cacheScope']]).toEqual([kept, 'private']);
        }
      }),
  },
  {
    id: 'status-429-and-503-of-a-server',
    area: 'servers',
    source: 'smart-mcp-proxy/mcpproxy-go#1042, brightdata-mcp#104',
    given: 'A server is busy and says so by 429 or 503 with `Retry-After`, whatever the id.',
    verdict: 'accepts',
    sees: 'Status, text and `Retry-After` reach the client, and the session goes on.',
    run: () =>
      withWorld({}, async (world) => {
        for (const status of [429, 503])
          for (const id of ['{id}', ...STRAY_IDS]) {
            const { reply, session } = await callInSession(world, {
              status,
              body: errorText(id, -32000, 'slow down'),
              headers: { ...JSON_TYPE, 'retry-after': '7' },
            });
            expect([reply.status, reply.headers.get('retry-after')]).toEqual([status, '7']);
            expect(reply.message).toMatchObject({ id: 7, error: { message: 'slow down' } });
            expect(await statusAfter(session)).toBe(200);
          }
        const { reply } = await callInSession(world, {
          status: 429,
          body: 'Too many requests',
          headers: { 'content-type': 'text/plain', 'retry-after': 'soon' },
        });
        expect([reply.status, reply.headers.get('retry-after')]).toEqual([429, null]);
        expect(errorOf(reply)['message']).toBe('Too many requests');
        // Where the client is told another thing, the header would say it of that.
        const other = await callInSession(world, {
          status: 400,
          body: errorText('null', -32000, 'bad'),
          headers: { ...JSON_TYPE, 'retry-after': '7' },
        });
        expect([other.reply.status, other.reply.headers.get('retry-after')]).toEqual([400, null]);
        world.upstream.obey(answeringCalls({ status: 429, body: errorText('{id}', -1, 'slow') }));
        expect((await world.call('read_record', { id: 'one' })).status).toBe(429);
      }),
  },
  {
    id: 'status-4xx-with-an-error-of-the-request',
    area: 'servers',
    source: 'MCP 2026-07-28, agentgateway#3622',
    given: 'A server answers a 4xx with a JSON-RPC error under the id of the request.',
    verdict: 'mends',
    sees: 'It is the answer to the request: 200 in a session, and the session goes on.',
    run: () =>
      withWorld({}, async (world) => {
        for (const status of [400, 404, 405, 409, 413, 422])
          for (const code of [-32601, -32602, -32000]) {
            const body = errorText('{id}', code, `no: ${code}`);
            const { reply, session } = await callInSession(world, { status, body });
            expect([status, code, reply.status]).toEqual([status, code, 200]);
            expect(errorOf(reply)).toMatchObject({ code, message: `no: ${code}` });
            expect(await statusAfter(session)).toBe(200);
          }
        world.upstream.obey(answeringCalls({ status: 404, body: errorText('{id}', -32601, 'unknown') }));
        expect((await world.call('read_record', { id: 'one' })).status).toBe(404);
      }),
  },
  {
    id: 'status-404-with-another-error-in-a-dead-session',
    area: 'servers',
    source: 'MCP 2025-11-25, session management',
    given: 'A server answers 404 with an error under the id of the request, and a ping likewise.',
    verdict: 'refuses',
    sees: 'The session is lost: 404, so that the client opens a new one.',
    run: () =>
      withWorld({}, async (world) => {
        const body = errorText('{id}', -32001, 'Session not found');
        const { reply, session } = await callInSession(world, { status: 404, body, isLost: true });
        expect(reply.status).toBe(404);
        expect(await statusAfter(session)).toBe(404);
      }),
  },
  {
    id: 'status-404-of-a-restarted-server',
    area: 'servers',
    source: 'microsoft/vscode#246685, claude-code#27425, DAWNCR0W/affine-mcp-server#301',
    given: 'A restarted server answers 404 without a body, or with an id that is null or foreign.',
    verdict: 'refuses',
    sees: 'The session is lost: 404, so that the client opens a new one.',
    run: () =>
      withWorld({}, async (world) => {
        const bodies = STRAY_IDS.map((id) => errorText(id, -32001, 'Session not found'));
        for (const body of [undefined, '<p>Cannot POST</p>', ...bodies]) {
          const { reply } = await callInSession(world, { status: 404, ...(body && { body }) });
          expect([body, reply.status]).toEqual([body, 404]);
          expect(reply.text).toContain('Initialize again');
        }
      }),
  },
  {
    id: 'status-400-of-a-restarted-server',
    area: 'servers',
    source: 'microsoft/vscode#246685, agentic-community/mcp-gateway-registry#960',
    given: 'A restarted server answers 400 "No valid session ID provided" to every message.',
    verdict: 'refuses',
    sees: 'A ping fails too, so the session is lost: 404.',
    run: () =>
      withWorld({}, async (world) => {
        for (const id of STRAY_IDS) {
          const body = errorText(id, -32000, 'Bad Request: No valid session ID provided');
          const { reply } = await callInSession(world, { status: 400, body, isLost: true });
          expect([id, reply.status]).toEqual([id, 404]);
        }
      }),
  },
  {
    id: 'status-400-for-one-bad-request',
    area: 'servers',
    source: 'modelcontextprotocol/typescript-sdk, modelcontextprotocol/python-sdk',
    given: 'A server answers 400 to one request, with an id that is null, absent or foreign.',
    verdict: 'mends',
    sees: 'The text is the error of the request, with status 400, and the session goes on.',
    run: () =>
      withWorld({}, async (world) => {
        for (const id of STRAY_IDS) {
          const { reply, session } = await callInSession(world, {
            status: 400,
            body: errorText(id, -32000, 'this one was bad'),
          });
          expect([id, reply.status]).toEqual([id, 400]);
          expect(reply.message).toMatchObject({ id: 7, error: { message: 'this one was bad' } });
          expect(await statusAfter(session)).toBe(200);
        }
        world.upstream.obey(answeringCalls({ status: 409, body: errorText('null', -32000, 'conflict') }));
        const reply = await world.call('read_record', { id: 'one' });
        expect([reply.status, errorOf(reply)['message']]).toEqual([400, 'conflict']);
      }),
  },
  {
    id: 'status-200-with-an-error-of-no-request',
    area: 'servers',
    source: 'JSON-RPC 2.0 §5.1, servers that answer every error with 200',
    given: 'The body of an answer is a JSON-RPC error under no id, or under another.',
    verdict: 'mends',
    sees: 'It is the error of the request, its text inspected; a result under another id is refused.',
    run: () =>
      withWorld({}, async (world) => {
        for (const id of STRAY_IDS) {
          const body = errorText(id, -32700, 'Cannot parse ![x](https://evil.example/x)');
          const { reply, session } = await callInSession(world, { status: 200, body });
          expect(reply.status).toBe(200);
          expect(reply.message).toMatchObject({ id: 7, error: { code: -32700 } });
          expect(errorOf(reply)['message']).toContain('!\\[x]');
          expect(await statusAfter(session)).toBe(200);
        }
        const stray = JSON.stringify({ jsonrpc: '2.0', id: 'other', result: CALLED });
        const { reply } = await callInSession(world, { status: 200, body: stray });
        expect(reply.status).toBe(502);
        expect(reply.text).not.toContain('called');
        await expect.poll(() => world.gateway.log()).toContain('tools/call: the answer is no response to the request');
      }),
  },
  {
    id: 'status-without-a-message',
    area: 'servers',
    source: 'docs/reference/responses.md',
    given: 'A server answers another status without a JSON-RPC error.',
    verdict: 'refuses',
    sees: 'No status of the server reaches the client: 502, with the cause in the audit record.',
    run: () =>
      withWorld({}, async (world) => {
        for (const status of [400, 405, 410, 418, 500, 502, 504]) {
          const { reply, session } = await callInSession(world, { status });
          expect([status, reply.status]).toEqual([status, 502]);
          await expect.poll(() => lastDetail(world)).toBe(`${status} to tools/call`);
          expect(await statusAfter(session)).toBe(200);
        }
      }),
  },
  {
    id: 'status-500-with-an-error-of-the-request',
    area: 'servers',
    source: 'JSON-RPC 2.0 §5.1',
    given: 'A server fails with 500 and says in a JSON-RPC error under the id of the request why.',
    verdict: 'mends',
    sees: 'The inspected text under status 502.',
    run: () =>
      withWorld({}, async (world) => {
        const body = errorText('{id}', -32603, 'disk full');
        const { reply } = await callInSession(world, { status: 500, body });
        expect([reply.status, errorOf(reply)['message']]).toEqual([502, 'disk full']);
      }),
  },
  {
    id: 'server-without-a-get-route',
    area: 'servers',
    source: 'agentgateway#1582, expressjs/express "Cannot GET"',
    given: 'A server has no route for GET and answers 400, 404, 405 or 501.',
    verdict: 'mends',
    sees: 'It is a server without a stream; the session goes on.',
    run: () =>
      withWorld({}, async (world) => {
        for (const status of [400, 404, 405, 501]) {
          const session = await world.openSession();
          world.upstream.obey((request) =>
            request.httpMethod === 'GET'
              ? answering(request, status, '<p>Cannot GET</p>', { 'content-type': 'text/html' })
              : undefined,
          );
          const abort = new AbortController();
          const response = await fetch(world.access.url, {
            signal: abort.signal,
            headers: {
              accept: 'text/event-stream',
              authorization: `Bearer ${world.access.token}`,
              'mcp-session-id': session.id,
              'mcp-protocol-version': '2025-11-25',
            },
          });
          abort.abort();
          expect([status, response.status]).toEqual([status, 200]);
          expect(await statusAfter(session)).toBe(200);
        }
      }),
  },
  {
    id: 'notification-refused-by-a-server',
    area: 'servers',
    source: 'MCP 2025-11-25, transports',
    given: 'A server answers a notification with a JSON-RPC error and a 4xx.',
    verdict: 'accepts',
    sees: '202, because clients give up a connection over a refused notification.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        world.upstream.obey((request) =>
          request.method?.startsWith('notifications/') === true
            ? answering(request, 400, errorText('null', -32601, 'no such thing'))
            : undefined,
        );
        const response = await fetch(world.access.url, {
          method: 'POST',
          headers: {
            ...JSON_TYPE,
            accept: 'application/json, text/event-stream',
            authorization: `Bearer ${world.access.token}`,
            'mcp-session-id': session.id,
            'mcp-protocol-version': '2025-11-25',
          },
          body: JSON.stringify({
            jsonrpc: '2.0',
            method: 'notifications/cancelled',
            params: { requestId: 99 },
          }),
        });
        expect(response.status).toBe(202);
        expect(await statusAfter(session)).toBe(200);
      }),
  },
];

/** Answers one method with a result of its own. */
function resulting(method: string, result: (request: HostileRequest) => Json): Order {
  return (request) =>
    request.method === method
      ? answering(request, 200, JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, result: result(request) }))
      : undefined;
}

function first(...orders: readonly Order[]): Order {
  return (request) => {
    for (const order of orders) {
      const act = order(request);
      if (act !== undefined) return act;
    }
    return undefined;
  };
}

const ALL_KINDS = { tools: {}, prompts: {}, resources: {} };

/** A server of sessions only, with a handshake of its own. */
function handshake(members: JsonObject, session = 's-1'): Order {
  const result = {
    protocolVersion: '2025-11-25',
    capabilities: ALL_KINDS,
    serverInfo: { name: 'odd', version: '1' },
    ...members,
  };
  return first(
    (request) =>
      request.method === 'server/discover'
        ? answering(request, 404, errorText('{id}', -32601, 'Method not found'))
        : undefined,
    (request) =>
      request.method === 'initialize'
        ? answering(request, 200, JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, result }), {
            ...JSON_TYPE,
            'mcp-session-id': session,
          })
        : undefined,
    (request) => (request.method?.startsWith('notifications/') === true ? { kind: 'http', status: 202 } : undefined),
  );
}

const TOOL = { name: 'a', inputSchema: { type: 'object' } };
const CALLED = { content: [{ type: 'text', text: 'called' }] };
const USABLE = first(
  resulting('tools/list', () => ({ tools: [TOOL] })),
  resulting('tools/call', () => CALLED),
  resulting('prompts/list', () => ({ prompts: [] })),
  resulting('resources/templates/list', () => ({ resourceTemplates: [] })),
  resulting('ping', () => ({})),
);

/** Starts with pins and expects the good tool to be listed and called. */
async function expectUsable(
  order: Order,
  check?: (world: World) => Promise<void>,
  members: readonly string[] = [],
): Promise<void> {
  const upstream = ['limits: {requestTimeout: 2s}', ...members];
  await withWorld({ order, upstream }, async (world) => {
    const session = await world.openSession();
    const listed = await session.request('tools/list');
    expect(toolNames(listed)).toEqual(['a']);
    const reply = await session.call('a');
    expect(reply.status).toBe(200);
    expect(reply.text).toContain('called');
    await check?.(world);
  });
}

function refusing(method: string, act: (request: HostileRequest) => Act): Order {
  return (request) => (request.method === method ? act(request) : undefined);
}

const METHOD_NOT_FOUND = errorText('{id}', -32601, 'Method not found');

const listRows: readonly CompatRow[] = [
  {
    id: 'server-of-2024-11-05-over-streamable-http',
    area: 'servers',
    source: 'vercel-labs/fx#994, java-sdk#1088, Kuadrant/mcp-gateway#354',
    given: 'A server over Streamable HTTP negotiates 2024-11-05.',
    verdict: 'mends',
    sees: 'It is served as one of 2025-03-26, whose messages it has.',
    run: () =>
      expectUsable(first(handshake({ protocolVersion: '2024-11-05' }), USABLE), async (world) => {
        const { reply } = await world.openSession();
        expect(resultOf(reply)['protocolVersion']).toBe('2025-03-26');
      }),
  },
  {
    id: 'server-of-an-unknown-revision',
    area: 'servers',
    source: 'MCP 2025-11-25, lifecycle',
    given: 'A server negotiates a revision that nobody knows.',
    verdict: 'refuses',
    sees: 'The handshake is 502, and log and audit record name the revision.',
    run: () =>
      withWorld({ order: first(handshake({ protocolVersion: '2023-01-01' }), USABLE) }, async (world) => {
        expect((await initialize(world.access)).status).toBe(502);
        await expect.poll(() => world.gateway.log()).toContain('protocolVersion: 2023-01-01 is not supported');
      }),
  },
  {
    id: 'server-that-refuses-an-id-used-before',
    area: 'servers',
    source: 'MCP 2025-11-25, base protocol, requests; mcp-server-git of the Python SDK 2 over stdio',
    given: 'A server with tools, prompts and resources refuses an id that its session has used.',
    verdict: 'accepts',
    sees: 'Every list is read and the tools are called: each request of the gateway has its own id.',
    run: () => {
      const used = new Map<string, string>();
      const refusesRepeatedIds: Order = ({ id, method = '', headers, ...rest }) => {
        if (!method.endsWith('/list')) return undefined;
        const key = `${headers['mcp-session-id']} ${JSON.stringify(id)}`;
        const earlier = used.get(key) ?? method;
        used.set(key, earlier);
        return earlier === method
          ? undefined
          : answering({ id, method, headers, ...rest }, 400, errorText('null', -32600, 'Repeated'));
      };
      let sessions = 0;
      const opening: Order = (request) => {
        if (request.method !== 'initialize') return undefined;
        sessions += 1;
        return handshake({}, `s-${sessions}`)(request);
      };
      return expectUsable(first(opening, refusesRepeatedIds, handshake({}), USABLE));
    },
  },
  {
    id: 'list-of-a-kind-refused',
    area: 'servers',
    source: 'google-labs-code/stitch-sdk#367, claude-code#77106, arabold/docs-mcp-server#226',
    given: 'A server declares prompts and answers `prompts/list` with an error, or not at all.',
    verdict: 'accepts',
    sees: 'Its tools are listed and called; "method not found" is an empty kind, whatever the status.',
    run: async () => {
      const answers: readonly (readonly [isEmpty: boolean, Order])[] = [
        [true, refusing('prompts/list', (request) => answering(request, 404, METHOD_NOT_FOUND))],
        [true, refusing('prompts/list', (request) => answering(request, 400, METHOD_NOT_FOUND))],
        [true, refusing('prompts/list', (request) => answering(request, 200, METHOD_NOT_FOUND))],
        [false, refusing('prompts/list', (request) => answering(request, 200, errorText('{id}', -32603, 'broken')))],
        [false, refusing('prompts/list', (request) => answering(request, 500, undefined))],
        [false, refusing('prompts/list', () => ({ kind: 'hold' }))],
        [false, resulting('prompts/list', () => ({ prompts: 'none' }))],
      ];
      for (const [isEmpty, answer] of answers)
        await expectUsable(first(answer, handshake({}), USABLE), async ({ gateway }) => {
          const says = gateway.log().includes('the list of prompts is unavailable');
          expect(says).toBe(!isEmpty);
          const metrics = await gateway.metrics();
          expect(/sallyport_controls\{control="pins",[^}]*\} 1/.test(metrics) || !isEmpty).toBe(true);
        });
    },
  },
  {
    id: 'list-of-a-kind-refused-from-the-start',
    area: 'servers',
    source: 'docs/reference/definitions.md; docs/reference/responses.md',
    given: 'A list of a server, of which definitions are approved, fails in the first listing.',
    verdict: 'accepts',
    sees: 'Its definitions are unavailable and not removed; the others are used.',
    run: async () => {
      let listings = 0;
      let broken = true;
      const prompt = { name: 'summary', description: 'Summarizes.' };
      const failing: Order = (request) => {
        if (request.method === 'initialize') listings += 1;
        // The first listing is that of the pins.
        return broken && request.method === 'prompts/list' && listings > 1
          ? answering(request, 200, errorText('{id}', -32603, 'broken'))
          : undefined;
      };
      const offering = resulting('prompts/list', () => ({ prompts: [prompt] }));
      await expectUsable(first(failing, offering, handshake({}), USABLE), async ({ gateway, openSession }) => {
        expect(gateway.log()).toContain('the list of prompts is unavailable');
        expect(gateway.log()).not.toContain('removed');
        const session = await openSession();
        expect((await session.request('prompts/get', { name: 'summary' })).status).toBe(503);
        broken = false;
        const listed = resultOf(await session.request('prompts/list'))['prompts'];
        expect(listed).toEqual([prompt]);
        expect((await session.request('prompts/get', { name: 'summary' })).status).toBe(200);
        const types = (await gateway.audit()).map(({ type }) => type);
        expect(types).not.toContain('pin.drift');
      });
    },
  },
  {
    id: 'app-resource-that-cannot-be-read',
    area: 'servers',
    source: 'MCP Apps extension, `_meta.ui.resourceUri`',
    given: 'A tool refers to a `ui://` resource that its server cannot read, or does not have.',
    verdict: 'accepts',
    sees: 'The tools are listed and called; the resource is named in the log, and is unavailable.',
    run: async () => {
      const tool = { ...TOOL, _meta: { ui: { resourceUri: 'ui://a/view' } } };
      const listing = resulting('tools/list', () => ({ tools: [tool] }));
      const cases: readonly (readonly [Order, note: string])[] = [
        [
          refusing('resources/read', (request) => answering(request, 500, undefined)),
          'ui://a/view: 500 to resources/read',
        ],
        [refusing('resources/read', () => ({ kind: 'destroy' })), 'the resources of apps are unavailable'],
      ];
      for (const [order, note] of cases)
        await expectUsable(first(order, listing, handshake({}), USABLE), async ({ gateway }) => {
          await expect.poll(() => gateway.log()).toContain(note);
        });
    },
  },
  {
    id: 'list-with-odd-items',
    area: 'servers',
    source: 'mcpproxy and ToolHive, "one bad tool, all tools lost"',
    given: 'A list has items without a name, with an empty one, or that are no objects.',
    verdict: 'mends',
    sees: 'They are left out and named in the log; their siblings are listed and called.',
    run: () =>
      expectUsable(
        first(
          resulting('tools/list', () => ({
            tools: [{ description: 'x' }, { ...TOOL, name: '' }, 7, null, TOOL],
          })),
          handshake({}),
          USABLE,
        ),
        async ({ gateway }) => {
          expect(gateway.log()).toContain('tools/0: no name');
          expect(gateway.log()).toContain('tools/2: expected object, got number');
        },
      ),
  },
  {
    id: 'list-with-repetitions',
    area: 'servers',
    source: 'MCP 2025-11-25, pagination',
    given: 'A server gives a definition twice, and two that differ under one name, over pages that repeat.',
    verdict: 'mends',
    sees: 'The identical one counts once; of those that differ none is shown, and they are named.',
    run: () =>
      expectUsable(
        first(
          resulting('tools/list', () => ({
            tools: [TOOL, { ...TOOL, name: 'b' }, { ...TOOL, name: 'b', description: 'x' }, TOOL],
            nextCursor: 'again',
          })),
          handshake({}),
          USABLE,
        ),
        async ({ gateway }) => {
          await expect.poll(() => gateway.log()).toContain('tools: b is given twice with different definitions');
        },
        ['pinning: {mode: "off"}'],
      ),
  },
  {
    id: 'null-in-optional-members-of-a-server',
    area: 'servers',
    source: 'gensecaihq/Wazuh-MCP-Server#75, Hmbown/Codewhale#5336',
    given: 'A server writes `nextCursor: null` and `instructions: null`.',
    verdict: 'accepts',
    sees: 'Null counts as absence in what the gateway reads.',
    run: () =>
      expectUsable(
        first(
          resulting('tools/list', () => ({ tools: [TOOL], nextCursor: null })),
          handshake({ instructions: null }),
          USABLE,
        ),
      ),
  },
  {
    id: 'list-of-a-client-fails',
    area: 'servers',
    source: 'docs/reference/responses.md',
    given: 'The list that a client requests fails at the server.',
    verdict: 'refuses',
    sees: 'The error says which list it is and why.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        world.upstream.obey(refusing('prompts/list', (request) => answering(request, 418, 'tea')));
        const reply = await session.request('prompts/list');
        expect(reply.status).toBe(502);
        expect(errorOf(reply)['message']).toMatch(/^The list of prompts is not available\. .*invalid/);
      }),
  },
  {
    id: 'event-that-is-no-message',
    area: 'servers',
    source: 'servers that keep streams alive by data, such as `data: ping`',
    given: 'A stream has events whose data is no JSON-RPC message.',
    verdict: 'mends',
    sees: 'They are skipped and counted; the response arrives.',
    run: () =>
      withWorld({}, async (world) => {
        for (const data of ['ping', '{}', '{"type":"ping"}', '"ping"', '1', 'null']) {
          const session = await world.openSession();
          world.upstream.obey((request) =>
            request.method === 'tools/call'
              ? {
                  kind: 'chunks',
                  contentType: 'text/event-stream',
                  chunks: [
                    `data: ${data}\n\n`,
                    `data: ${JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, result: CALLED })}\n\n`,
                  ],
                  ending: 'end',
                }
              : undefined,
          );
          const reply = await session.call('read_record', { id: 'one' });
          expect([data, reply.text.includes('called')]).toEqual([data, true]);
          expect(reply.text).not.toContain('ping');
          world.upstream.repent();
        }
      }),
  },
];

/** Answers in another encoding than was asked for. */
function encoded(request: HostileRequest, status: number, more: Readonly<Record<string, string>> = {}): Act {
  const text = `{"jsonrpc":"2.0","id":${JSON.stringify(request.id ?? null)},"result":{"content":[]}}`;
  const headers = { ...JSON_TYPE, 'content-encoding': 'gzip', ...more };
  return { kind: 'http', status, headers, body: gzipSync(text) };
}

const transportRows: readonly CompatRow[] = [
  {
    id: 'handshake-with-everything',
    area: 'servers',
    source: 'MCP 2025-11-25, lifecycle',
    given: 'A server describes itself at length and announces more than the gateway supports.',
    verdict: 'changes',
    sees: 'The description passes byte for byte; `listChanged` is declared, and what would be refused is left out.',
    run: () => {
      const serverInfo = {
        ...{ name: 's', title: 'A <b>server</b> & more', version: '1.0.0-rc.1+build' },
        description: 'Reads `Promise<object>` from https://example.com/a?b=c, [docs](https://example.com).',
        websiteUrl: 'https://example.com/?utm_source=mcp',
        vendor: { answer: 42.0 },
      };
      const given = {
        ...{ experimental: { 'vendor/x': {} }, logging: {}, prompts: {} },
        ...{ completions: {}, resources: { subscribe: true }, tools: { listChanged: false } },
      };
      const order = first(handshake({ serverInfo, capabilities: given, vendor: [1] }), USABLE);
      return withWorld({ order }, async ({ access }) => {
        const { text } = await initialize(access);
        expect(text).toContain(`"serverInfo":${JSON.stringify(serverInfo)}`);
        expect(text).toContain('"vendor":[1]');
        const kept = {
          ...{ logging: {}, prompts: { listChanged: true }, completions: {} },
          ...{ resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } },
        };
        expect(text).toContain(`"capabilities":${JSON.stringify(kept)}`);
      });
    },
  },
  {
    id: 'redirect-of-a-server',
    area: 'servers',
    source: 'mcptools#69, RFC 9110 §15.4',
    given: 'A server redirects a call.',
    verdict: 'refuses',
    sees: 'No redirect is followed; the log names the target without its query, the client does not see it.',
    run: () =>
      withWorld({}, async (world) => {
        for (const status of [301, 302, 307, 308]) {
          const { reply, session } = await callInSession(world, {
            status,
            headers: { location: 'https://elsewhere.example/mcp?key=hidden' },
          });
          expect([status, reply.status]).toEqual([status, 502]);
          expect(reply.text).not.toContain('elsewhere');
          expect(await statusAfter(session)).toBe(200);
        }
        await expect.poll(() => world.gateway.log()).toContain('redirect to https://elsewhere.example/mcp');
        expect(world.gateway.log()).not.toContain('hidden');
      }),
  },
  {
    id: 'encoded-answers-of-a-server',
    area: 'servers',
    source: 'RFC 9110 §8.4 and §12.5.3',
    given: 'A server compresses its answers although only `identity` was accepted.',
    verdict: 'refuses',
    sees: 'A result cannot be read; an error still means what its status says, and a receipt is one.',
    run: () =>
      withWorld({}, async (world) => {
        const cases: readonly (readonly [sent: number, seen: number])[] = [
          ...([
            [200, 502],
            [401, 502],
            [429, 429],
            [503, 503],
            [500, 502],
            [404, 404],
          ] as const),
        ];
        for (const [sent, seen] of cases) {
          const session = await world.openSession();
          world.upstream.obeyOnce((request) =>
            request.method === 'tools/call' ? encoded(request, sent, { 'retry-after': '7' }) : undefined,
          );
          const reply = await session.call('read_record', { id: 'one' });
          expect([sent, reply.status]).toEqual([sent, seen]);
          const retryAfter = reply.headers.get('retry-after');
          if (seen === 429 || seen === 503) expect(retryAfter).toBe('7');
        }
        await expect.poll(() => world.gateway.log()).toContain('content-encoding: gzip');
        await expect.poll(() => world.gateway.log()).toContain('401 to tools/call');
        const session = await world.openSession();
        world.upstream.obeyOnce((request) =>
          request.method === 'tools/call'
            ? {
                ...{
                  kind: 'http',
                  status: 200,
                  headers: { ...JSON_TYPE, 'content-encoding': 'Identity' },
                },
                body: JSON.stringify({ jsonrpc: '2.0', id: request.id ?? null, result: CALLED }),
              }
            : undefined,
        );
        expect((await session.call('read_record', { id: 'one' })).text).toContain('called');
      }),
  },
  {
    id: 'pages-that-repeat',
    area: 'servers',
    source: 'MCP 2025-11-25, pagination',
    given: 'A list has one page behind ever new cursors, or a cursor that leads back to itself.',
    verdict: 'mends',
    sees: 'The walk ends at the page that is repeated, and its items count once.',
    run: async () => {
      for (const isNew of [true, false]) {
        let pages = 0;
        const endless = resulting('tools/list', () => {
          pages += 1;
          return { tools: [TOOL], nextCursor: isNew ? `page-${pages}` : 'page' };
        });
        await expectUsable(first(endless, handshake({}), USABLE), () => {
          expect(pages).toBeLessThan(20);
          return Promise.resolve();
        });
      }
    },
  },
  {
    id: 'stdio-server-with-a-byte-order-mark',
    area: 'servers',
    source: 'RFC 8259 §8.1',
    given: 'A stdio server writes a byte order mark before its first line.',
    verdict: 'mends',
    sees: 'The mark is left out and the server is served.',
    run: async () => {
      await expectStdioServed('marked');
    },
  },
  {
    id: 'stdio-server-of-2024-10-07',
    area: 'servers',
    source: 'MCP 2024-10-07, which the SDKs accept',
    given: 'A stdio server negotiates the first revision of all.',
    verdict: 'mends',
    sees: 'It is served as one of 2025-03-26.',
    run: async () => {
      const reply = await expectStdioServed('oldest');
      expect(reply['protocolVersion']).toBe('2025-03-26');
    },
  },
  {
    id: 'backend-that-lost-its-session',
    area: 'servers',
    source: 'agentgateway#3622',
    given: 'One backend of an endpoint restarts and has lost its session.',
    verdict: 'mends',
    sees: 'The gateway opens another session with it and repeats what it did not let in; the session of the client stays.',
    run: () =>
      withStarted(
        () => startMergedRig(),
        async (rig) => {
          const session = await openSession(rig.access);
          const opened = new Set<string>();
          rig.right.obey((request) => {
            const id = request.headers['mcp-session-id'];
            if (request.method === 'notifications/initialized' && id !== undefined) opened.add(id);
            return id === undefined || opened.has(id) ? undefined : { kind: 'http', status: 404 };
          });
          const reply = await session.call('right_read_record', { id: 'one' });
          expect(reply.text).toContain('read_record one');
          expect(toolNames(await session.request('tools/list'))).toHaveLength(4);
          expect(rig.right.uses()).toHaveLength(2);
        },
      ),
  },
];

/** Opens a session with a stdio server behind its adapter, calls it, and returns what it answered to the handshake. */
async function expectStdioServed(way: 'marked' | 'oldest'): Promise<JsonObject> {
  const rig = await untilTestEnds(startStdioRig({ way }));
  const { result } = only(await rig.send({ body: INITIALIZE }));
  const session = await rig.open();
  expect(only(await rig.call(session, 'echo', { text: 'one' }))['result']).toEqual({
    text: 'one',
  });
  return result as JsonObject;
}

const ODD_URIS: readonly string[] = [
  'postgres://user@host:5432/db',
  'note:x',
  'note:',
  'urn:isbn:0451450523',
  'mailto:a@b.example',
  'git+ssh://host/path.git',
  'ldap://[2001:db8::7]/c=GB',
  'file:////server/share',
  'repo://acme//x',
  'repo://acme/a%2fb%20c',
  'repo://acme/a/../%7Eb',
];

const uriRows: readonly CompatRow[] = [
  {
    id: 'uris-of-every-shape',
    area: 'servers',
    source: 'RFC 3986 §3',
    given: 'Resources have URIs with a user, an empty segment, an escaped slash, no authority or dot segments.',
    verdict: 'accepts',
    sees: 'They are listed and read under a pattern that covers them, and reach the server byte for byte.',
    run: () =>
      withWorld(
        {
          order: first(
            handshake({}),
            USABLE,
            resulting('resources/list', () => ({
              resources: ODD_URIS.map((uri) => ({ uri, name: 'one' })),
            })),
            resulting('resources/read', ({ name = '' }) => ({
              contents: [{ uri: name, text: 'read' }],
            })),
          ),
        },
        async (world) => {
          const session = await world.openSession();
          const listed = resultOf(await session.request('resources/list'))['resources'];
          expect((listed as JsonObject[]).map(({ uri }) => uri)).toEqual(ODD_URIS);
          for (const uri of ODD_URIS) {
            const reply = await session.request('resources/read', { uri });
            expect(resultOf(reply)['contents']).toEqual([{ uri, text: 'read' }]);
          }
          expect(world.upstream.uses().map(({ name }) => name)).toEqual(ODD_URIS);
        },
      ),
  },
];

export const rows: readonly CompatRow[] = [...statusRows, ...listRows, ...transportRows, ...uriRows];
