// Two gateways with one key and no store before one server on SDK v2 that knows no sessions, and before one
// that knows nothing else: what the second does in a session that the first has opened, and what it refuses.
// Source: docs/reference/state.md#sessions-on-any-replica; MCP 2025-11-25, session management; MCP 2026-07-28,
// multi-round-trip requests.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { askInStream, messagesOf, openAt, startTwoGateways, streamOf } from '../support/deployments.js';
import { writeOpenPolicy } from '../support/gateway.js';
import { inTurn, sessionsOnly } from '../support/hostile-acts.js';
import { type Act, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { ALL_QUESTIONS, askThenAnswer, connectSdkV2, FORM_QUESTION, grantQuestions } from '../support/sdk-clients.js';
import { CITIES, startInputRequiredServer } from '../support/sdk-servers.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  callStateless,
  errorOf,
  post,
  type Reply,
  requestInSession,
  requestStateless,
  resultOf,
  sessionHeaders,
} from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const LEVEL = 'io.modelcontextprotocol/logLevel';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const waits: string[] = [];

const server = shared(() => startInputRequiredServer(waits));
const old = shared(() => startHostileUpstream());
const gateways = shared(async () => {
  old.obey(sessionsOnly);
  return startTwoGateways({
    upstreams: [
      { name: 'modern', url: server.url },
      { name: 'old', url: old.url, more: ['pinning: {maxAge: 10m}'] },
    ],
    policies: {
      open: writeOpenPolicy(['memo://notes/{id}', CITIES]),
      questions: grantQuestions(),
    },
  });
});

/** A caller with a session of its own, opened at the first gateway. */
async function openBoth(
  subject: string,
  capabilities: JsonObject = {},
): Promise<{ readonly here: Access; readonly there: Access; readonly session: string }> {
  const here = await gateways.access(gateways.one, 'modern', subject);
  const there = await gateways.access(gateways.other, 'modern', subject);
  return { here, there, session: await openAt(here, capabilities) };
}

function answerTo(id: unknown, result: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** The `_meta` of the last call that reached the server. */
function lastMeta(): JsonObject {
  const call = server.seen().findLast(({ body }) => body.includes('"tools/call"'));
  return JSON.parse(call?.body ?? '{}').params?._meta ?? {};
}

describe('a session without an upstream session, at another replica than its own', () => {
  it.each<[string, JsonObject, string]>([
    ['ping', {}, '{}'],
    ['tools/list', {}, '"echo"'],
    ['tools/call', { name: 'echo', arguments: { text: 'there' } }, '"there"'],
    ['prompts/list', {}, '"greet"'],
    ['prompts/get', { name: 'greet', arguments: { name: 'desk' } }, 'Greet desk.'],
    ['resources/list', {}, 'memo://readme'],
    ['resources/templates/list', {}, 'memo://notes/{id}'],
    ['resources/read', { uri: 'memo://notes/7' }, 'Note 7.'],
    [
      'completion/complete',
      { ref: { type: 'ref/resource', uri: CITIES }, argument: { name: 'name', value: 'Ber' } },
      'Berlin',
    ],
    ['logging/setLevel', { level: 'info' }, '{}'],
    ['resources/subscribe', { uri: 'memo://readme' }, '{}'],
    ['resources/unsubscribe', { uri: 'memo://readme' }, '{}'],
  ])('[Y-10] is served: %s', async (method, params, part) => {
    const { there, session } = await openBoth('ada');
    const reply = await requestInSession(there, session, method, params);
    expect([reply.status, JSON.stringify(resultOf(reply))]).toEqual([200, expect.stringContaining(part)]);
  });

  it('[Y-10] works for an official client whose requests go to either in turn', async () => {
    const { here, there } = await openBoth('round-robin');
    let turns = 0;
    const either: typeof fetch = (_url, init) => {
      turns += 1;
      const { url, token } = turns % 2 === 0 ? here : there;
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${token}`);
      return fetch(url, { ...init, headers });
    };
    const client = new Client({ name: 'spread', version: '1.0.0' });
    const transport = new StreamableHTTPClientTransport(new URL(here.url), { fetch: either });
    await client.connect(transport as Transport);
    for (let turn = 0; turn < 3; turn += 1) {
      await client.ping();
      expect((await client.listTools()).tools.length).toBeGreaterThan(5);
      const sum = await client.callTool({ name: 'add', arguments: { a: turn, b: 3 } });
      expect(sum.structuredContent).toEqual({ sum: turn + 3 });
      const received: unknown[] = [];
      const slow = { name: 'slow', arguments: { steps: 2 } };
      await client.callTool(slow, undefined, {
        onprogress: ({ message }) => received.push(message),
      });
      expect(received).toEqual(['step 1', 'step 2']);
      expect((await client.readResource({ uri: 'memo://readme' })).contents).toHaveLength(1);
    }
    expect(turns).toBeGreaterThan(14);
    await client.close();
  });

  it('[Y-10] has its stream there, and hears there what it has subscribed to there', async () => {
    const { there, session } = await openBoth('listener');
    const stream = await streamOf(there, session);
    const uri = 'memo://readme';
    expect((await requestInSession(there, session, 'resources/subscribe', { uri })).status).toBe(200);
    await expect
      .poll(() => {
        server.notify.resourceUpdated(uri);
        return stream.text();
      }, PATIENT)
      .toContain(uri);
  });

  it('[Y-10] is still its owner’s alone', async () => {
    const { session } = await openBoth('ada');
    const thief = await gateways.access(gateways.other, 'modern', 'mallory');
    expect((await requestInSession(thief, session, 'ping')).status).toBe(404);
  });
});

describe('without a store another replica', () => {
  it('[Y-11] refuses the answer to a question that it did not put, and the call goes on where it runs', async () => {
    const { here, there, session } = await openBoth('asked', ALL_QUESTIONS);
    const params = { name: 'greet_someone', arguments: {} };
    const call = await askInStream(here, session, { id: 9, method: 'tools/call', params });
    await expect.poll(() => messagesOf(call).length, PATIENT).toBe(1);
    const answer = answerTo(messagesOf(call)[0]?.['id'], {
      action: 'accept',
      content: { name: 'Ada' },
    });
    const refused = await post(there, answer, sessionHeaders(session));
    expect([refused.status, errorOf(refused)['code']]).toEqual([409, 1433]);
    expect(errorOf(refused)['message']).toContain('on another replica');
    const outcome = async () => {
      const lines = await gateways.other.audit();
      return lines.findLast(({ type }) => type === 'mcp.outcome')?.['decision'];
    };
    await expect.poll(outcome, PATIENT).toMatchObject({ reasons: ['asked-elsewhere'] });
    expect((await requestInSession(there, session, 'ping')).status).toBe(200);
    expect((await post(here, answer, sessionHeaders(session))).status).toBe(202);
    await expect.poll(() => call.text(), PATIENT).toContain('Hello Ada, after leg:1.');
    // Nobody waits for it any more, here neither.
    expect((await post(here, answer, sessionHeaders(session))).status).toBe(409);
  });

  it('[Y-12] keeps a log level and subscriptions to itself', async () => {
    const { here, there, session } = await openBoth('leveller');
    await requestInSession(here, session, 'logging/setLevel', { level: 'debug' });
    const call = { name: 'echo', arguments: { text: 'x' } };
    await requestInSession(here, session, 'tools/call', call);
    expect(lastMeta()[LEVEL]).toBe('debug');
    await requestInSession(there, session, 'tools/call', call);
    expect(lastMeta()[LEVEL]).toBeUndefined();
  });
});

const ACCEPTED = { action: 'accept' as const, content: { name: 'Ada' } };

/** An official client of sessions that answers every question; its faults are told. */
async function connectAsked(
  generation: 'v1' | 'v2',
  { url, token = '' }: Access,
  through: typeof fetch,
  report: (error: string) => void,
) {
  if (generation === 'v2') {
    const capabilities = { elicitation: { form: {} } };
    const access = { token, fetch: through };
    const { client } = await connectSdkV2(url, '2025', access, { capabilities });
    client.setRequestHandler('elicitation/create', () => ACCEPTED);
    client.onerror = ({ message }) => report(message);
    return client;
  }
  const options = { capabilities: { elicitation: {} } };
  const client = new Client({ name: 'asked', version: '1.0.0' }, options);
  client.setRequestHandler(ElicitRequestSchema, () => ACCEPTED);
  client.onerror = ({ message }) => report(message);
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch: through });
  await client.connect(transport as Transport);
  return client;
}

describe('an official client of sessions whose answer reached a replica that did not ask', () => {
  it.each(['v1', 'v2'] as const)('[Y-11] keeps its session, and learns why: %s', async (generation) => {
    const here = await gateways.access(gateways.one, 'modern', generation);
    const there = await gateways.access(gateways.other, 'modern', generation);
    const statuses: number[] = [];
    const answersElsewhere: typeof fetch = async (_url, init) => {
      const isAnswer = String(init?.body).includes('"action":"accept"');
      const { url, token } = isAnswer ? there : here;
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${token}`);
      const reply = await fetch(url, { ...init, headers });
      if (isAnswer) statuses.push(reply.status);
      return reply;
    };
    const errors: string[] = [];
    const client = await connectAsked(generation, here, answersElsewhere, (error) => errors.push(error));
    const greeting = { name: 'greet_someone', arguments: {} };
    const timeout = { timeout: 1_000 };
    const call =
      client instanceof Client ? client.callTool(greeting, undefined, timeout) : client.callTool(greeting, timeout);
    await expect(call).rejects.toThrow(/timed out/iu);
    expect(statuses).toEqual([409]);
    expect(errors.join()).toMatch(/409|on another replica/u);
    await client.ping();
    expect(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })).toMatchObject({
      structuredContent: { sum: 3 },
    });
    await client.close();
  });
});

describe('a call that was given up while its server waits for an answer', () => {
  it.each([
    ['by a notice', false],
    ['by the end of its session', true],
  ])('[Y-06] ends, with its stream: %s', async (_how, isEnd) => {
    const { here, session } = await openBoth('left', ALL_QUESTIONS);
    const params = { name: 'greet_someone', arguments: {} };
    const call = await askInStream(here, session, { id: 9, method: 'tools/call', params });
    await expect.poll(() => messagesOf(call).length, PATIENT).toBe(1);
    const notification = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 9 },
    };
    const headers = { ...sessionHeaders(session), authorization: `Bearer ${here.token}` };
    if (isEnd) await fetch(here.url, { method: 'DELETE', headers });
    else await post(here, JSON.stringify(notification), sessionHeaders(session));
    await expect.poll(() => call.isOver(), { timeout: 5_000, interval: 20 }).toBe(true);
  });
});

describe('a session that ends before its upstream has begun to answer', () => {
  /** Begins with a status, and goes on when the session has ended. */
  const LATE: Act = {
    kind: 'raw',
    chunks: ['HTTP/1.1 200 OK\r\n', 'content-type: text/event-stream\r\n\r\n', ': on\n\n'],
    paceMs: 400,
    ending: 'hold',
  };

  it.each(['GET', 'tools/call'])('[REV-33] leaves no stream behind: %s', async (late) => {
    const access = await gateways.access(gateways.one, 'old', 'early-leaver');
    const session = await openAt(access);
    old.obey(
      inTurn(sessionsOnly, ({ httpMethod, method }) => (httpMethod === late || method === late ? LATE : undefined)),
    );
    const call = { name: 'read_record', arguments: { id: 'one' } };
    const stream = (
      late === 'GET' ? streamOf(access, session) : askInStream(access, session, { id: 9, method: late, params: call })
    ).catch(String);
    const isAsked = () => old.seen().some(({ httpMethod, method }) => httpMethod === late || method === late);
    await expect.poll(isAsked, PATIENT).toBe(true);
    const headers = { ...sessionHeaders(session), authorization: `Bearer ${access.token}` };
    expect((await fetch(access.url, { method: 'DELETE', headers })).status).toBe(204);
    const opened = await stream;
    if (typeof opened === 'string') expect(opened).toContain('404');
    else await expect.poll(() => opened.isOver(), { timeout: 3_000 }).toBe(true);
    old.obey(sessionsOnly);
    old.forget();
  });
});

describe('the stream of a session before a stateless upstream', () => {
  it('[Y-09] outlives subscriptions that follow each other faster than its upstream answers', async () => {
    const { here, session } = await openBoth('hasty');
    const stream = await streamOf(here, session);
    const uris = Array.from({ length: 12 }, (_, index) => `memo://notes/${index}`);
    for (let turn = 0; turn < 3; turn += 1) {
      const method = turn === 1 ? 'resources/unsubscribe' : 'resources/subscribe';
      await Promise.all(uris.map((uri) => requestInSession(here, session, method, { uri })));
    }
    await expect
      .poll(() => {
        server.notify.resourceUpdated('memo://notes/11');
        return stream.isOver() || stream.text().includes('memo://notes/11');
      }, PATIENT)
      .toBe(true);
    expect(stream.isOver()).toBe(false);
  });

  it('[Y-09] ends at once with its session', async () => {
    const { here, session } = await openBoth('ender');
    const stream = await streamOf(here, session);
    const headers = { ...sessionHeaders(session), authorization: `Bearer ${here.token}` };
    expect((await fetch(here.url, { method: 'DELETE', headers })).status).toBe(204);
    await expect.poll(() => stream.isOver(), PATIENT).toBe(true);
    // Not cut off as is a client that takes nothing more.
    expect(stream.isCut()).toBe(false);
  });
});

describe('a stateless client before an upstream of sessions', () => {
  it('[Y-10] is served by either replica, each with a session of its own', async () => {
    old.forget();
    for (const gateway of [gateways.one, gateways.other, gateways.one]) {
      const access = await gateways.access(gateway, 'old', 'both');
      expect((await requestStateless(access, 'server/discover')).status).toBe(200);
      expect(resultOf(await requestStateless(access, 'tools/list'))['tools']).toHaveLength(2);
      const called = await callStateless(access, 'read_record', { id: 'x' });
      expect(called.text).toContain('read_record x');
    }
    const opened = old.seen().filter(({ method }) => method === 'initialize');
    expect(opened).toHaveLength(2);
  });
});

describe('the state of a call that waits at one replica', () => {
  const CALL = { name: 'read_record', arguments: { id: 'one' } };
  const META = { [CAPABILITIES]: ALL_QUESTIONS };

  async function ask(access: Access): Promise<JsonObject> {
    old.obey(
      inTurn(sessionsOnly, (request) =>
        request.method === 'tools/call'
          ? askThenAnswer(request, [{ id: 'from-the-server', ...FORM_QUESTION }], 1_000)
          : undefined,
      ),
    );
    const asked = resultOf(await callStateless(access, 'read_record', { id: 'one' }, META));
    const [key = ''] = Object.keys((asked['inputRequests'] ?? {}) as JsonObject);
    return {
      ...CALL,
      inputResponses: { [key]: { action: 'accept', content: { person: 'Ada' } } },
      requestState: asked['requestState'] ?? '',
      _meta: META,
    };
  }

  const again = (access: Access, params: JsonObject): Promise<Reply> =>
    requestStateless(access, 'tools/call', params, { id: 2 });

  it('[Y-11] is refused at the other with a reason, and good where it waits', async () => {
    const here = await gateways.access(gateways.one, 'old', 'ada');
    const there = await gateways.access(gateways.other, 'old', 'ada');
    const params = await ask(here);
    const refused = await again(there, params);
    expect([refused.status, errorOf(refused)['code']]).toEqual([409, 1433]);
    expect(refused.message?.['id']).toBe(2);
    expect(errorOf(refused)['message']).toContain('on another replica');
    expect((await again(here, params)).message).toMatchObject({
      id: 2,
      result: { resultType: 'complete' },
    });
    const [lost] = [await again(here, params)];
    expect([lost.status, errorOf(lost)['message']]).toEqual([409, expect.stringContaining('has ended')]);
    old.obey(sessionsOnly);
  });

  it('[Y-11] is told as what it is by an official client', async () => {
    const here = await gateways.access(gateways.one, 'old', 'eve');
    const there = await gateways.access(gateways.other, 'old', 'eve');
    let isAsked = false;
    const either: typeof fetch = (_url, init) => {
      const { url, token } = isAsked ? there : here;
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${token}`);
      return fetch(url, { ...init, headers });
    };
    await ask(here);
    const { client, close } = await connectSdkV2(
      here.url,
      '2026',
      { token: here.token ?? '', fetch: either },
      { capabilities: { elicitation: { form: {} } } },
    );
    client.setRequestHandler('elicitation/create', () => {
      isAsked = true;
      return { action: 'accept', content: { person: 'Eve' } };
    });
    await expect(client.callTool(CALL)).rejects.toThrow('on another replica');
    expect(isAsked).toBe(true);
    await close();
    old.obey(sessionsOnly);
  });
});
