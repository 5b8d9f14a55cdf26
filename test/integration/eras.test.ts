// The two eras on one endpoint: each is served whatever the upstream speaks, and what is not carried is refused
// by the table of methods, with its capabilities taken out of what both sides declare.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectRefusedLines } from '../support/gateway.js';
import { jsonBody, onMethod, serverRequestInStream, sessionsOnly, statelessOnly } from '../support/hostile-acts.js';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  bearer,
  callStateless,
  errorOf,
  initialize,
  type OpenSession,
  post,
  requestInSession,
  requestStateless,
  resultOf,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe.each([
  ['sessions', sessionsOnly],
  ['stateless', statelessOnly],
] as const)('an upstream that speaks %s only', (era, order) => {
  const rig = sharedGateway({ prepare: (upstream: HostileUpstream) => upstream.obey(order) });

  it('[G-11] serves its own era', async () => {
    if (era === 'sessions') {
      const session = await rig.openSession();
      expect((await session.call('read_record', { id: 'one' })).text).toContain('read_record one');
    } else {
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.text).toContain('read_record one');
    }
  });

  it('[G-11] serves the other era too, and names what may be used there', async () => {
    if (era === 'sessions') {
      const discovered = await requestStateless(rig.access, 'server/discover');
      expect(resultOf(discovered)['supportedVersions']).toEqual(['2026-07-28']);
      const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(reply.text).toContain('read_record one');
    } else {
      const session = await rig.openSession();
      expect(resultOf(session.reply)['protocolVersion']).toBe('2025-11-25');
      expect((await session.call('read_record', { id: 'one' })).text).toContain('read_record one');
    }
  });

  it('[G-11] refuses a version of no era, naming those that it carries', async () => {
    rig.upstream.forget();
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
    const headers = { 'mcp-protocol-version': '2099-01-01' };
    const reply = await requestStateless(rig.access, 'tools/list', { _meta: meta }, { headers });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32022 });
    const data = errorOf(reply)['data'] as JsonObject;
    expect(data['supported']).toEqual(['2026-07-28']);
    await expectRefusedLines(rig, reply, 'unsupported-version');
    expect(rig.upstream.seen()).toEqual([]);
  });
});

describe('what is not carried', () => {
  let session: OpenSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
    rig.upstream.forget();
  });
  afterEach(() => rig.upstream.repent());

  it.each(['sampling/createMessage', 'elicitation/create', 'roots/list', 'made/up', 'constructor', '__proto__'])(
    '[G-12] is refused by the table of methods: %s',
    async (method) => {
      const stateless = await requestStateless(rig.access, method);
      expect(stateless.status).toBe(404);
      expect(errorOf(stateless)).toMatchObject({ code: -32601 });
      const inSession = await session.request(method);
      expect(inSession.status).toBe(200);
      expect(errorOf(inSession)).toMatchObject({ code: -32601 });
      expect(rig.upstream.seen()).toEqual([]);
    },
  );

  it('[G-12] an event id of nobody is a 404, and a 400 on a message', async () => {
    const answer = await fetch(rig.access.url, {
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        accept: 'text/event-stream',
        'last-event-id': '1',
      },
    });
    expect(answer.status).toBe(404);
    await answer.text();
    const reply = await session.request('tools/list', {}, { 'last-event-id': '1' });
    expect(reply.status).toBe(400);
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('[G-12] arrays and answers are a 400, members of input invalid params', async () => {
    const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
    const batch = JSON.stringify([parts.body]);
    expect((await post(rig.access, batch, parts.headers)).status).toBe(400);
    expect((await post(rig.access, batch, sessionHeaders(session.id))).status).toBe(400);
    const answer = JSON.stringify({ jsonrpc: '2.0', id: 1, result: {} });
    expect((await post(rig.access, answer, parts.headers)).status).toBe(400);
    const params = { name: 'read_record', arguments: { id: 'one' }, requestState: 'x' };
    expect((await requestStateless(rig.access, 'tools/call', params)).status).toBe(400);
    for (const member of [{ inputResponses: {} }, { requestState: 'x' }]) {
      const reply = await session.request('tools/call', { name: 'read_record', ...member });
      expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
    }
    expect(rig.upstream.seen()).toEqual([]);
  });

  it.each(['sampling/createMessage', 'elicitation/create', 'roots/list'])(
    '[G-12] a request of the server in a stream is answered -32601 and recorded: %s',
    async (method) => {
      rig.upstream.forget();
      rig.upstream.obey(onMethod('tools/call', (request) => serverRequestInStream(request, method)));
      const reply = await session.call('read_record', { id: 'one' });
      expect(reply.messages).toHaveLength(1);
      expect(reply.text).not.toContain(method);
      expect(reply.text).toContain('after the question');
      const answered = () => rig.upstream.seen().find(({ message }) => message?.['id'] === 'from-the-server');
      await expect.poll(answered).toBeDefined();
      expect(answered()?.message).toMatchObject({ error: { code: -32601 } });
      const found = async () =>
        (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome')?.['findings'];
      await expect.poll(found).toContainEqual(expect.objectContaining({ detector: 'server-request', action: 'drop' }));
      const stateless = await callStateless(rig.access, 'read_record', { id: 'one' });
      expect(stateless.text).not.toContain(method);
      rig.upstream.repent();
      rig.upstream.forget();
    },
  );

  it('[G-12] its capabilities reach neither side', async () => {
    const offered = {
      sampling: {},
      elicitation: { form: {} },
      roots: { listChanged: true },
      tasks: { requests: {} },
    };
    rig.upstream.obeyOnce(
      onMethod('initialize', (request) =>
        jsonBody({
          jsonrpc: '2.0',
          id: request.id ?? 0,
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {}, tasks: { list: {} }, experimental: { odd: {} } },
            serverInfo: { name: 'x', version: '1' },
          },
        }),
      ),
    );
    const reply = await initialize(rig.access, offered);
    const sent = rig.upstream.seen().find(({ method }) => method === 'initialize');
    const params = sent?.message?.['params'] as JsonObject;
    for (const name of Object.keys(offered)) expect(params['capabilities']).not.toHaveProperty(name);
    const result = reply.message?.['result'] as JsonObject;
    expect(result['capabilities']).not.toHaveProperty('tasks');
    expect(result['capabilities']).toHaveProperty('tools');

    const meta = { 'io.modelcontextprotocol/clientCapabilities': offered };
    await callStateless(rig.access, 'read_record', { id: 'one' }, meta);
    const body = rig.upstream.uses().at(-1)?.body ?? '';
    for (const name of Object.keys(offered)) expect(body).not.toContain(`"${name}"`);
  });

  it('[G-13] a session keeps its version', async () => {
    rig.upstream.forget();
    for (const [version, code] of [
      ['2025-06-18', -32020],
      ['2024-11-05', -32602],
      ['1999-01-01', -32602],
    ] as const) {
      const reply = await requestInSession(
        rig.access,
        session.id,
        'tools/list',
        {},
        {
          'mcp-protocol-version': version,
        },
      );
      expect(reply.status).toBe(400);
      expect(errorOf(reply)).toMatchObject({ code });
    }
    const none = await post(rig.access, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
    expect(none.status).toBe(400);
    expect(rig.upstream.seen()).toEqual([]);
  });
});
