// Rows about single messages of clients and servers: names, null, characters, ids, headers and sizes.

import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { decisionOf, linesOf } from '../support/gateway.js';
import { body, jsonBody, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import {
  callStateless,
  errorOf,
  post,
  type Reply,
  resultOf,
  sessionHeaders,
  statelessParts,
  toolNames,
} from '../support/wire-client.js';
import { type CompatRow, withWorld } from './rig.js';

const OPEN_TOOL = {
  name: 'run',
  description: 'Runs.',
  inputSchema: { type: 'object', properties: { env: { type: 'object' } } },
};

export const rows: readonly CompatRow[] = [
  {
    id: 'argument-names-in-two-cases',
    area: 'messages',
    source: 'RFC 8259 §4 (HTTP_PROXY beside http_proxy)',
    given: 'Arguments have two members whose names differ only in case, and no rule reads them.',
    verdict: 'accepts',
    sees: 'The server gets them byte for byte.',
    run: () =>
      withWorld({ tools: [OPEN_TOOL], result: () => textResult('ok') }, async (world) => {
        const env = { HTTP_PROXY: 'p', http_proxy: 'q', a: [{ Mg: 1, MG: 2 }] };
        const reply = await world.call('run', { env });
        expect([reply.status, errorOf(reply)]).toEqual([200, {}]);
        expect(world.upstream.uses().at(-1)?.body).toContain(JSON.stringify(env));
      }),
  },
  {
    id: 'result-names-in-two-cases',
    area: 'messages',
    source: 'RFC 8259 §4 (chemical symbols)',
    given: 'Structured content and `_meta` have names that differ only in case.',
    verdict: 'accepts',
    sees: 'The client gets them byte for byte.',
    run: () => {
      const result: JsonObject = {
        content: [{ type: 'text', text: 'ok' }],
        structuredContent: { CO: 1, Co: 2 },
        _meta: { 'vendor/Id': 1, 'vendor/id': 2 },
      };
      return withWorld(
        { order: onMethod('tools/call', (request) => jsonBody(resultFor(request, result))) },
        async (world) => {
          const { resultType: _, ...received } = resultOf(await world.call('read_record', { id: 'one' }));
          expect(received).toEqual(result);
        },
      );
    },
  },
  {
    id: 'property-names-in-two-cases',
    area: 'definitions',
    source: 'RFC 8259 §4 (the flags -A and -a)',
    given: 'A tool declares two properties whose names differ only in case.',
    verdict: 'accepts',
    sees: 'Every tool is listed, this one with both properties.',
    run: () => {
      const properties = { '-A': { type: 'string' }, '-a': { type: 'string' } };
      const tool = {
        name: 'ls',
        description: 'Lists.',
        inputSchema: { type: 'object', properties },
      };
      return withWorld(
        {
          tools: [OPEN_TOOL, tool],
          upstream: ['pinning: {maxAge: 10m}'],
          result: () => textResult('ok'),
        },
        async (world) => {
          expect(toolNames(await world.request('tools/list'))).toEqual(['run', 'ls']);
          const reply = await world.call('ls', { '-A': 'x', '-a': 'y' });
          expect([reply.status, errorOf(reply)]).toEqual([200, {}]);
        },
      );
    },
  },
  {
    id: 'protocol-names-in-two-cases',
    area: 'messages',
    source: 'CVE-2026-27896',
    given: 'A result has a member of the protocol beside one whose name differs only in case.',
    verdict: 'refuses',
    sees: 'A gateway error: parsers disagree on which of the two is meant.',
    run: () =>
      withWorld(
        {
          order: onMethod('tools/call', (request) =>
            body(
              JSON.stringify(resultFor(request, { content: [] })).replace(
                '"content":[]',
                '"content":[{"type":"text","text":"a","Text":"b"}]',
              ),
            ),
          ),
        },
        async (world) => {
          expect((await world.call('read_record', { id: 'one' })).status).toBe(502);
        },
      ),
  },
  {
    id: 'lone-surrogate-in-arguments',
    area: 'messages',
    source: 'microsoft/playwright-mcp#1410, anomalyco/opencode#17758',
    given: 'A client sends a text that was cut inside a character, as half of a surrogate pair.',
    verdict: 'refuses',
    sees: 'An error under the id of the request that says what a lone surrogate is.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        const reply = await session.call('read_record', { id: 'cut \ud83d' });
        const { code, message } = errorOf(reply);
        expect([reply.status, code]).toEqual([200, -32602]);
        expect(message).toContain('surrogate');
      }),
  },
  {
    id: 'lone-surrogate-in-a-result',
    area: 'messages',
    source: 'RFC 8259 §8.2',
    given: 'A server cuts the texts of a result inside a character, so that half of a surrogate pair is left.',
    verdict: 'mends',
    sees: 'The client gets U+FFFD in its place, and a finding that says where.',
    run: () =>
      withWorld({ result: () => textResult('cut \ud83d') }, async (world) => {
        const { content, _meta } = resultOf(await world.call('read_record', { id: 'one' }));
        expect(content).toEqual([{ type: 'text', text: 'cut \ufffd' }]);
        expect(JSON.stringify(_meta)).toContain('lone-surrogate');
      }),
  },
  {
    id: 'lone-surrogate-in-a-uri-or-name',
    area: 'messages',
    source: 'RFC 7493 §2.1',
    given: 'A block of a result has half of a surrogate pair in its URI, and structured content has it in a name.',
    verdict: 'changes',
    sees: 'The block and the member are left out and named in the findings; all else arrives.',
    run: () => {
      const result: JsonObject = {
        content: [
          { type: 'resource_link', name: 'a', uri: 'file:///\ud83d' },
          { type: 'text', text: 'ok' },
        ],
        structuredContent: { '\ud83d': 1, ok: 2 },
      };
      return withWorld({ result: () => result }, async (world) => {
        const reply = resultOf(await world.call('read_record', { id: 'one' }));
        expect(reply['content']).toEqual([{ type: 'text', text: 'ok' }]);
        expect(reply['structuredContent']).toEqual({ ok: 2 });
        expect(JSON.stringify(reply['_meta'])).toContain('"/result/content/0"');
      });
    },
  },
  {
    id: 'lone-surrogate-in-the-id-of-an-answer',
    area: 'messages',
    source: 'JSON-RPC 2.0 §5',
    given: 'A server answers under an id that has half of a surrogate pair.',
    verdict: 'refuses',
    sees: 'A gateway error; the record says what is wrong with the answer.',
    run: () =>
      withWorld(
        {
          order: onMethod('tools/call', (request) =>
            jsonBody({ ...resultFor(request, textResult('ok')), id: '\ud83d' }),
          ),
        },
        async (world) => {
          expect((await world.call('read_record', { id: 'one' })).status).toBe(502);
        },
      ),
  },
  {
    id: 'null-in-optional-members-of-clients',
    area: 'clients',
    source: 'MonkeyCode#1268, mcp.el#85',
    given: 'A client sends `params`, `arguments`, `_meta`, a cursor or a progress token that is null.',
    verdict: 'mends',
    sees: 'The request is served as if the member were absent, and the server never sees it.',
    run: () =>
      withWorld({}, async (world) => {
        const { id } = await world.openSession();
        const send = (rest: string): Promise<Reply> =>
          post(world.access, `{"jsonrpc":"2.0","id":1,${rest}}`, sessionHeaders(id));
        for (const rest of [
          '"method":"tools/list","params":null',
          '"method":"tools/list","params":{"cursor":null,"_meta":null}',
          '"method":"tools/list","params":{"_meta":{"progressToken":null}}',
          '"method":"ping","params":null',
        ]) {
          const reply = await send(rest);
          expect([rest, reply.status, errorOf(reply)]).toEqual([rest, 200, {}]);
        }
        for (const { body: text } of world.upstream.seen()) expect(text).not.toContain('null');
      }),
  },
  {
    id: 'ids-that-are-any-number',
    area: 'messages',
    source: 'JSON-RPC 2.0 §4 (UnixNano as id, in clients written in Go)',
    given: 'A client sends ids and progress tokens that are fractions, or whole numbers beyond 2^53.',
    verdict: 'accepts',
    sees: 'The server gets them as they came, the answer or refusal has the same number, and the audit log has it as text beyond 2^53.',
    run: () =>
      withWorld(
        {
          upstream: ['pinning: {maxAge: 10m}'],
          order: onMethod('tools/call', ({ body: sent }) => {
            const id = /"id":([^,]+),/.exec(sent)?.[1] ?? '';
            return body(`{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`);
          }),
        },
        async (world) => {
          const session = await world.openSession();
          for (const [id, recorded] of [
            ['1732789123456789123', '1732789123456789123'],
            ['1.5', 1.5],
            ['17.0', 17],
          ] as const) {
            const send = (name: string): Promise<Reply> => {
              const params = `{"name":"${name}","arguments":{"id":"one"},"_meta":{"progressToken":${id}}}`;
              const text = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`;
              return post(world.access, text, sessionHeaders(session.id));
            };
            const reply = await send('read_record');
            expect([reply.status, errorOf(reply)]).toEqual([200, {}]);
            expect(reply.text).toContain(`"id":${id},`);
            expect(world.upstream.uses().at(-1)?.body).toContain(`"progressToken":${id}}`);
            const refused = await send('unknown');
            expect(refused.text).toMatch(new RegExp(`"id":${id.replace('.0', '')}[,}]`));
            const [line] = await linesOf(world.gateway, decisionOf(refused).id, 1);
            expect(line?.['target']).toMatchObject({ request_id: recorded });
          }
        },
      ),
  },
  {
    id: 'null-params-of-servers',
    area: 'servers',
    source: 'JSON-RPC 2.0 §4.2 (libraries that write null for absent params)',
    given: 'A server sends a notification with `params` that is null.',
    verdict: 'mends',
    sees: 'The message reaches the client without the member.',
    run: () =>
      withWorld(
        {
          order: onMethod('tools/call', (request) => {
            const notification = {
              jsonrpc: '2.0',
              method: 'notifications/tools/list_changed',
              params: null,
            };
            const answer = resultFor(request, textResult('ok'));
            const events = [notification, answer].map((one) => `data: ${JSON.stringify(one)}\n\n`);
            return body(events.join(''), 'text/event-stream');
          }),
        },
        async (world) => {
          const session = await world.openSession();
          const reply = await session.request('tools/call', {
            name: 'read_record',
            arguments: { id: 'one' },
          });
          expect(reply.status).toBe(200);
          expect(reply.text).toContain('"ok"');
          expect(reply.text).toContain('notifications/tools/list_changed');
          expect(reply.text).not.toContain('null');
        },
      ),
  },
  {
    id: 'null-in-required-members-of-clients',
    area: 'clients',
    source: 'JSON-RPC 2.0 §5.1, MonkeyCode#1268',
    given: 'A client sends null where the revision requires a member.',
    verdict: 'refuses',
    sees: 'A JSON-RPC error -32602 under its id: status 200 in a session, 400 in the stateless era.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        const params = { name: null };
        const inSession = await session.request('tools/call', params);
        expect([inSession.status, errorOf(inSession)['code']]).toEqual([200, -32602]);
        const level = await session.request('logging/setLevel', { level: null });
        expect([level.status, errorOf(level)['code']]).toEqual([200, -32602]);
        const stateless = await world.request('tools/call', params);
        expect([stateless.status, errorOf(stateless)['code']]).toEqual([400, -32602]);
      }),
  },
  {
    id: 'notification-that-is-not-forwarded',
    area: 'clients',
    source: 'MCP 2025-11-25, transports (sending messages to the server)',
    given:
      'A client in a session sends a notification that the protocol does not know, no rule grants, or whose params are invalid.',
    verdict: 'accepts',
    sees: 'Status 202, so that the client stays; the notification is not forwarded, and recorded as refused.',
    run: () =>
      withWorld({}, async (world) => {
        const { id } = await world.openSession();
        world.upstream.forget();
        for (const message of [
          { method: 'notifications/roots/list_changed' },
          { method: 'notifications/vendor/x' },
          // Of a task, 2025-11-25 lets a client cancel without a request id.
          { method: 'notifications/cancelled', params: { reason: 'stopped' } },
          { method: 'notifications/cancelled', params: { requestId: { id: 1 } } },
        ]) {
          const text = JSON.stringify({ jsonrpc: '2.0', ...message });
          const reply = await post(world.access, text, sessionHeaders(id));
          expect([reply.status, reply.text]).toEqual([202, '']);
          const [line] = await linesOf(world.gateway, decisionOf(reply).id, 2);
          expect(line?.['decision']).toMatchObject({ action: 'refused' });
          const dead = await post(world.access, text, sessionHeaders('dead'));
          expect(dead.status).toBe(404);
        }
        expect(world.upstream.seen()).toEqual([]);
      }),
  },
  {
    id: 'initialize-with-a-dead-session',
    area: 'clients',
    source: 'diegosouzapw/OmniRoute#5957, claude-code#27425',
    given: 'A client sends initialize with the id of a session that has ended.',
    verdict: 'refuses',
    sees: 'Status 404, by which clients forget the session, and not 400.',
    run: () =>
      withWorld({}, async (world) => {
        const text = JSON.stringify({
          ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
          params: { protocolVersion: '2025-11-25', capabilities: {} },
        });
        const reply = await post(world.access, text, { 'mcp-session-id': 'stale' });
        expect(reply.status).toBe(404);
      }),
  },
  {
    id: 'mirror-headers-in-a-session',
    area: 'clients',
    source: 'MCP 2026-07-28, transports (validation by intermediaries)',
    given: 'A client of both eras sends `Mcp-Method` and `Mcp-Name` in a session, without a version header.',
    verdict: 'accepts',
    sees: 'The call passes where they equal the body; one that differs is refused with 400.',
    run: () =>
      withWorld({}, async (world) => {
        const { id } = await world.openSession();
        const params = { name: 'read_record', arguments: { id: 'one' } };
        const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
        const send = (headers: Record<string, string>): Promise<Reply> =>
          post(world.access, text, { 'mcp-session-id': id, ...headers });
        const mirrors = { 'mcp-method': 'tools/call', 'mcp-name': 'read_record' };
        expect((await send(mirrors)).text).toContain('read_record one');
        expect((await send({ ...mirrors, 'mcp-name': 'write_record' })).status).toBe(400);
      }),
  },
  {
    id: 'mirrored-arguments-in-a-session',
    area: 'clients',
    source: 'MCP 2026-07-28, custom headers',
    given: 'A client of both eras sends `Mcp-Param-*` headers with a call in a session.',
    verdict: 'accepts',
    sees: 'The call passes where each equals its argument, and the server gets no such header; one that differs is refused with 400.',
    run: async () => {
      const region = { type: 'string', 'x-mcp-header': 'Area' };
      const tool = {
        ...OPEN_TOOL,
        inputSchema: { type: 'object', properties: { region, id: { type: 'integer' } } },
      };
      for (const upstream of ['pinning: {mode: "off"}', 'pinning: {maxAge: 10m}'])
        await withWorld({ tools: [tool], upstream: [upstream] }, async (world) => {
          world.upstream.answerCalls(() => textResult('called'));
          const { id } = await world.openSession();
          const params = { name: 'run', arguments: { region: 'eu', id: 7 } };
          const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
          const send = (headers: Record<string, string>): Promise<Reply> =>
            post(world.access, text, { 'mcp-session-id': id, ...headers });
          for (const mirrors of [
            { 'Mcp-Param-Area': 'eu' },
            { 'mcp-param-area': 'eu', 'mcp-param-id': '7' },
            { 'mcp-param-area': '=?base64?ZXU=?=' },
          ]) {
            world.upstream.forget();
            expect((await send(mirrors)).text).toContain('called');
            expect(JSON.stringify(world.upstream.uses()[0]?.headers)).not.toContain('mcp-param');
          }
          world.upstream.forget();
          for (const others of [
            { 'mcp-param-area': 'us' },
            { 'mcp-param-area': 'EU' },
            { 'mcp-param-area': 'eu', 'mcp-param-id': '8' },
            { 'mcp-param-other': 'eu' },
            { 'mcp-param-area': '=?base64?ZXU?=' },
          ]) {
            const reply = await send(others);
            expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32020]);
          }
          expect(world.upstream.uses()).toEqual([]);
        });
    },
  },
  {
    id: 'prototype-member-in-arguments',
    area: 'clients',
    source: 'RFC 8259 §4',
    given: 'Arguments have a member `__proto__`.',
    verdict: 'refuses',
    sees: 'An error that names the member: parsers disagree on whether it is one.',
    run: () =>
      withWorld({}, async (world) => {
        const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: '1' } });
        const text = JSON.stringify(parts.body);
        for (const name of ['__proto__', '__pr\\u006fto__']) {
          const sent = text.replace('"id":"1"', `"id":"1","${name}":{}`);
          const reply = await post(world.access, sent, parts.headers);
          expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32600]);
          expect(errorOf(reply)['message']).toContain('"__proto__"');
        }
        expect(world.upstream.uses()).toEqual([]);
      }),
  },
  {
    id: 'json-with-parameters',
    area: 'clients',
    source: 'RFC 8259 §11, envoyproxy/ai-gateway#2568',
    given: 'A client sends JSON as `application/json` with any parameter.',
    verdict: 'accepts',
    sees: 'The body is read as JSON in UTF-8; bytes that are something else are malformed.',
    run: () =>
      withWorld({}, async (world) => {
        const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'é' } });
        for (const parameter of ['charset=utf8', 'odata=verbose', 'charset="UTF-8"; q=1', '']) {
          const type = { 'content-type': `application/json; ${parameter}` };
          const reply = await post(world.access, JSON.stringify(parts.body), {
            ...parts.headers,
            ...type,
          });
          expect([parameter, reply.status]).toEqual([parameter, 200]);
        }
      }),
  },
  {
    id: 'path-with-a-trailing-slash',
    area: 'clients',
    source: 'exa-mcp-server#340, claude-ai-mcp#299',
    given: 'A client writes a slash behind the path of an endpoint, or of its metadata document.',
    verdict: 'accepts',
    sees: 'The same endpoint and the same document, whose resource has no slash; `//` and `%2F` stay unknown.',
    run: () =>
      withWorld({}, async (world) => {
        const { access, gateway } = world;
        const call = (url: string): Promise<Reply> => callStateless({ ...access, url }, 'read_record', { id: 'one' });
        expect((await call(`${access.url}/`)).text).toContain('read_record one');
        expect((await call(`${access.url}//`)).status).toBe(404);
        expect((await call(`${access.url}%2F`)).status).toBe(404);
        const { origin, pathname } = new URL(access.url);
        const document = `${origin}/.well-known/oauth-protected-resource${pathname}`;
        const [plain, slashed] = await Promise.all(
          [document, `${document}/`].map(async (url) => (await fetch(url)).text()),
        );
        expect(slashed).toBe(plain);
        const unknown = await callStateless({ url: `${access.url}/`, token: 'x' }, 'read_record');
        expect(unknown.status).toBe(401);
        expect(unknown.headers.get('www-authenticate')).toContain(`${pathname}"`);
        expect(gateway).toBeDefined();
      }),
  },
  {
    id: 'null-in-lists-of-servers',
    area: 'servers',
    source: 'gensecaihq/Wazuh-MCP-Server#75, Hmbown/Codewhale#5336',
    given: 'A list or a handshake has null in an optional member, such as `nextCursor` or `instructions`.',
    verdict: 'mends',
    sees: 'The list without these members, which SDK clients reject; pins are of what the server said.',
    run: () => {
      const tool = { ...OPEN_TOOL, title: null, annotations: null };
      return withWorld(
        {
          order: onMethod('tools/list', (request) => jsonBody(resultFor(request, { tools: [tool], nextCursor: null }))),
        },
        async (world) => {
          const session = await world.openSession();
          const { resultType: _, ...result } = resultOf(await session.request('tools/list'));
          expect(result).toEqual({ tools: [OPEN_TOOL] });
        },
      );
    },
  },
  {
    id: 'body-of-four-mebibytes',
    area: 'clients',
    source: 'uploads of screenshots (SDK servers take 4 MiB)',
    given: 'A client sends a call of nearly 4 MiB, such as a screenshot in base64.',
    verdict: 'accepts',
    sees: 'The call passes byte for byte; a body over the limit is 413.',
    run: () =>
      withWorld({}, async (world) => {
        const parts = (bytes: number) =>
          statelessParts('tools/call', {
            name: 'read_record',
            arguments: { id: randomBytes((bytes * 3) / 4).toString('base64') },
          });
        const small = parts(4 * 1024 * 1024 - 4096);
        const passed = await post(world.access, JSON.stringify(small.body), small.headers);
        expect(passed.status).toBe(200);
        expect(world.upstream.uses().at(-1)?.body).toBe(JSON.stringify(small.body));
        const large = parts(4 * 1024 * 1024);
        const refused = await post(world.access, JSON.stringify(large.body), large.headers);
        expect(refused.status).toBe(413);
      }),
  },
];
