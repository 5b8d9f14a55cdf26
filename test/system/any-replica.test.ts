// Two gateways with one real store before a server without sessions, one of sessions, and both as one
// endpoint: what is said to one of them in a session holds at the other.

import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  askInStream,
  LONG_ANSWERS,
  messagesOf,
  openAt,
  startTwoGateways,
  streamOf,
  type TwoGateways,
} from '../support/deployments.js';
import { writeOpenPolicy } from '../support/gateway.js';
import { inTurn, sessionsOnly } from '../support/hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { type RedisServer, startRedisServer } from '../support/processes.js';
import { ALL_QUESTIONS, askThenAnswer, FORM_QUESTION, grantQuestions } from '../support/sdk-clients.js';
import { CITIES, type SdkV2Server, startInputRequiredServer } from '../support/sdk-servers.js';
import { PATIENT, SOON } from '../support/timing.js';
import {
  type Access,
  bearer,
  callStateless,
  errorOf,
  post,
  requestInSession,
  requestStateless,
  resultOf,
  sessionHeaders,
} from '../support/wire-client.js';

const LEVEL = 'io.modelcontextprotocol/logLevel';
const ECHO = { name: 'echo', arguments: { text: 'x' } };
const README = 'memo://readme';

let redis: RedisServer;
let server: SdkV2Server;
let old: HostileUpstream;
let gateways: TwoGateways;
const waits: string[] = [];

beforeAll(async () => {
  redis = await startRedisServer();
  server = await startInputRequiredServer(waits);
  old = await startHostileUpstream();
  old.obey(sessionsOnly);
  gateways = await startTwoGateways({
    upstreams: [
      { name: 'modern', url: server.url },
      { name: 'old', url: old.url, more: ['pinning: {maxAge: 10m}'] },
    ],
    policies: { open: writeOpenPolicy(['memo://notes/{id}', CITIES]), questions: grantQuestions() },
    env: { REDIS_URL: redis.url },
    more: `state: {type: redis, url: {env: REDIS_URL}, maxAge: 20s, commandTimeout: 300ms}
endpoints: {all: {issuers: [test], upstreams: {modern: {prefix: m_}, old: {prefix: o_}}}}`,
  });
});
afterEach(() => {
  old.obey(sessionsOnly);
  waits.length = 0;
});
afterAll(async () => {
  await gateways?.close();
  await old?.close();
  await server?.close();
  await redis?.close();
});

type Session = { readonly here: Access; readonly there: Access; readonly id: string };

/** A session that was opened at the first gateway. */
async function openBoth(subject: string, upstream = 'modern', capabilities: JsonObject = {}): Promise<Session> {
  const here = await gateways.access(gateways.one, upstream, subject);
  const there = await gateways.access(gateways.other, upstream, subject);
  return { here, there, id: await openAt(here, capabilities) };
}

async function end({ here, id }: Session): Promise<number> {
  const headers = { ...bearer(here.token), ...sessionHeaders(id) };
  return (await fetch(here.url, { method: 'DELETE', headers })).status;
}

function lastMeta(): JsonObject {
  const call = server.seen().findLast(({ body }) => body.includes('"tools/call"'));
  return JSON.parse(call?.body ?? '{}').params?._meta ?? {};
}

/** A call whose server asks first, with the question that came. */
async function askGreeting({ here, id }: Session, name = 'greet_someone') {
  const params = { name, arguments: {} };
  const call = await askInStream(here, id, { id: 9, method: 'tools/call', params });
  await expect.poll(() => messagesOf(call).length, PATIENT).toBe(1);
  const question = messagesOf(call)[0]?.['id'];
  const result = { action: 'accept', content: { name: 'Ada' } };
  return { call, answer: JSON.stringify({ jsonrpc: '2.0', id: question, result }) };
}

describe('a session before a stateless upstream, at replicas with a store', () => {
  it('[Y-12] has one log level', async () => {
    const { there, here, id } = await openBoth('leveller');
    await requestInSession(here, id, 'logging/setLevel', { level: 'debug' });
    const level = async () => {
      await requestInSession(there, id, 'tools/call', ECHO);
      return lastMeta()[LEVEL];
    };
    await expect.poll(level, SOON).toBe('debug');
    await requestInSession(there, id, 'logging/setLevel', { level: 'error' });
    const back = async () => {
      await requestInSession(here, id, 'tools/call', ECHO);
      return lastMeta()[LEVEL];
    };
    await expect.poll(back, SOON).toBe('error');
  });

  it('[Y-12] keeps what was said last, however soon and wherever it was said', async () => {
    for (let turn = 0; turn < 5; turn += 1) {
      const { there, here, id } = await openBoth('hasty');
      await requestInSession(here, id, 'logging/setLevel', { level: 'debug' });
      await requestInSession(there, id, 'logging/setLevel', { level: 'error' });
      await requestInSession(here, id, 'resources/subscribe', { uri: README });
      await requestInSession(there, id, 'resources/unsubscribe', { uri: README });
      await sleep(100);
      const levels = [];
      for (const access of [here, there]) {
        await requestInSession(access, id, 'tools/call', ECHO);
        levels.push(lastMeta()[LEVEL]);
      }
      expect(levels).toEqual(['error', 'error']);
      await streamOf(there, id);
      const listening = server.seen().findLast(({ body }) => body.includes('subscriptions/listen'));
      expect(listening?.body).not.toContain(README);
    }
  });

  it('[Y-12] hears on its stream what was subscribed to elsewhere, until that was given up', async () => {
    const { here, there, id } = await openBoth('listener');
    const stream = await streamOf(here, id);
    await requestInSession(there, id, 'resources/subscribe', { uri: README });
    await expect
      .poll(() => {
        server.notify.resourceUpdated(README);
        return stream.text();
      }, SOON)
      .toContain(README);
    await requestInSession(there, id, 'resources/unsubscribe', { uri: README });
    const isSilent = async () => {
      await sleep(50);
      const before = stream.text().length;
      server.notify.resourceUpdated(README);
      await sleep(50);
      return stream.text().length === before;
    };
    await expect.poll(isSilent, SOON).toBe(true);
    expect(stream.isOver()).toBe(false);
  });

  it('[Y-12] has a call cancelled wherever it runs', async () => {
    const { here, there, id } = await openBoth('canceller');
    const params = { name: 'wait', arguments: {} };
    const waiting = requestInSession(here, id, 'tools/call', params);
    await expect.poll(() => waits, PATIENT).toEqual(['begun']);
    const notification = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 7 },
    };
    expect((await post(there, JSON.stringify(notification), sessionHeaders(id))).status).toBe(202);
    await expect.poll(() => waits, SOON).toEqual(['begun', 'given up']);
    await waiting;
  });

  it.each([
    ['modern', 'greet_someone'],
    ['all', 'm_greet_someone'],
  ])('[Y-12] has its answer brought to whoever asked, once, and by its owner alone: %s', async (upstream, name) => {
    const session = await openBoth('asked', upstream, ALL_QUESTIONS);
    const { there, id } = session;
    const { call, answer } = await askGreeting(session, name);
    const thief = await gateways.access(gateways.other, upstream, 'mallory');
    expect((await post(thief, answer, sessionHeaders(id))).status).toBe(404);
    expect((await post(there, answer, sessionHeaders(id))).status).toBe(202);
    await expect.poll(() => call.text(), SOON).toContain('Hello Ada, after leg:1.');
    await expect.poll(() => call.isOver(), PATIENT).toBe(true);
    expect(messagesOf(call)).toHaveLength(2);
  });

  it('[Y-12] has the refusal of an answer told to whoever asked, so that nobody waits in vain', async () => {
    const session = await openBoth('asked', 'modern', ALL_QUESTIONS);
    const { there, id } = session;
    const { call, answer } = await askGreeting(session);
    const leaking = answer.replace('"Ada"', JSON.stringify(there.token));
    expect((await post(there, leaking, sessionHeaders(id))).status).toBe(400);
    await expect.poll(() => call.text(), SOON).toContain('was not answered');
    expect(call.text()).not.toContain(there.token);
  });

  it('[Y-12] shows the store nothing of what is said in it', async () => {
    const { here, id } = await openBoth('secretive');
    const dump = async () => {
      const keys = await redis.command('KEYS', '*');
      const names = [...keys.matchAll(/\{sallyport\}:words:[\w-]+/g)].map(([name]) => name);
      return (await Promise.all(names.map((name) => redis.command('ZRANGE', name, '0', '-1')))).join();
    };
    const seen: string[] = [];
    for (let turn = 0; turn < 20; turn += 1) {
      const asked = requestInSession(here, id, 'resources/subscribe', {
        uri: `memo://plans/${turn}`,
      });
      seen.push(await dump());
      await asked;
      seen.push(await dump());
    }
    expect(seen.some((text) => text.length > 100)).toBe(true);
    expect(seen.join()).not.toContain('plans');
    expect(seen.join()).not.toContain(id);
  });
});

describe('a stateless client whose call waits in a session with its upstream', () => {
  it('[Y-11] is told at the other replica to call again, and may answer where the call waits', async () => {
    old.obey(
      inTurn(sessionsOnly, (request) =>
        request.method === 'tools/call'
          ? askThenAnswer(request, [{ id: 'from-the-server', ...FORM_QUESTION }], 500)
          : undefined,
      ),
    );
    const here = await gateways.access(gateways.one, 'old', 'ada');
    const there = await gateways.access(gateways.other, 'old', 'ada');
    const meta = { 'io.modelcontextprotocol/clientCapabilities': ALL_QUESTIONS };
    const asked = resultOf(await callStateless(here, 'read_record', { id: 'one' }, meta));
    const [key = ''] = Object.keys((asked['inputRequests'] ?? {}) as JsonObject);
    const again = {
      name: 'read_record',
      arguments: { id: 'one' },
      inputResponses: { [key]: { action: 'accept', content: { person: 'Ada' } } },
      requestState: asked['requestState'] ?? '',
      _meta: meta,
    };
    const refused = await requestStateless(there, 'tools/call', again);
    expect([refused.status, errorOf(refused)['code']]).toEqual([409, 1433]);
    const done = await requestStateless(here, 'tools/call', again);
    expect(resultOf(done)['resultType']).toBe('complete');
  });
});

describe('a session that ended at one replica', () => {
  it.each(['modern', 'old', 'all'])('[REV-33] ends its open streams at the other soon: %s', async (upstream) => {
    const session = await openBoth('ender', upstream);
    const { there, id } = session;
    const bystander = await openBoth('bystander', upstream);
    const other = await streamOf(bystander.there, bystander.id);
    const stream = await streamOf(there, id);
    expect(await end(session)).toBe(204);
    await expect.poll(() => stream.isOver(), SOON).toBe(true);
    expect((await requestInSession(there, id, 'tools/list')).status).toBe(404);
    expect(other.isOver()).toBe(false);
    expect(await end(bystander)).toBe(204);
  });

  it('[REV-33] ends the answers that are on their way there, and what waits for the client', async () => {
    old.obey(inTurn(sessionsOnly, LONG_ANSWERS));
    const direct = await openBoth('ender', 'old');
    const params = { name: 'read_record', arguments: { id: 'one' }, _meta: { progressToken: 1 } };
    const long = await askInStream(direct.there, direct.id, {
      id: 8,
      method: 'tools/call',
      params,
    });
    await expect.poll(() => long.text(), PATIENT).toContain('working');
    const translated = await openBoth('ender', 'modern', ALL_QUESTIONS);
    const { call } = await askGreeting({ ...translated, here: translated.there });
    expect([await end(direct), await end(translated)]).toEqual([204, 204]);
    await expect.poll(() => [long.isOver(), call.isOver()], SOON).toEqual([true, true]);
  });

  it('[REV-33] gives up there what its upstream does for it', async () => {
    const session = await openBoth('ender');
    const params = { name: 'wait', arguments: {} };
    const waiting = requestInSession(session.there, session.id, 'tools/call', params);
    await expect.poll(() => waits, PATIENT).toEqual(['begun']);
    expect(await end(session)).toBe(204);
    await expect.poll(() => waits, SOON).toEqual(['begun', 'given up']);
    await waiting;
  });
});

describe('replicas in the middle of a rotation of their key', () => {
  it('[Y-12] know one session, and its questions, by whichever key it was sealed', async () => {
    const rotating = await startTwoGateways(
      {
        upstreams: [{ name: 'modern', url: server.url }],
        policies: {
          open: writeOpenPolicy(['memo://notes/{id}', CITIES]),
          questions: grantQuestions(),
        },
        env: { REDIS_URL: redis.url },
        more: 'state: {type: redis, url: {env: REDIS_URL}}',
      },
      true,
    );
    try {
      for (const [requesting, answering] of [
        [rotating.one, rotating.other],
        [rotating.other, rotating.one],
      ] as const) {
        const here = await rotating.access(requesting, 'modern', 'ada');
        const there = await rotating.access(answering, 'modern', 'ada');
        // Opened where it is answered: under the other key than the question.
        const session = { here, there, id: await openAt(there, ALL_QUESTIONS) };
        const { call, answer } = await askGreeting(session);
        expect((await post(there, answer, sessionHeaders(session.id))).status).toBe(202);
        await expect.poll(() => call.text(), SOON).toContain('Hello Ada');
        await requestInSession(here, session.id, 'logging/setLevel', { level: 'debug' });
        await sleep(100);
        await requestInSession(there, session.id, 'tools/call', ECHO);
        expect(lastMeta()[LEVEL]).toBe('debug');
      }
    } finally {
      await rotating.close();
    }
  });
});

describe('while the store is away', () => {
  it('[Y-12] a session behind a channel of HTTP+SSE, which no other replica serves, needs none', async () => {
    const { url, token } = await gateways.access(gateways.one, 'modern', 'old-timer');
    const client = new Client({ name: 'v1', version: '1.0.0' });
    const headers = bearer(token);
    const transport = new SSEClientTransport(new URL(`${url}/sse`), { requestInit: { headers } });
    await client.connect(transport as Transport);
    await redis.stop();
    try {
      await client.setLoggingLevel('debug');
      await client.callTool(ECHO);
      expect(lastMeta()[LEVEL]).toBe('debug');
    } finally {
      await redis.start();
      await client.close();
    }
    const { there, id } = await openBoth('after');
    const ping = async () => (await requestInSession(there, id, 'logging/setLevel', { level: 'info' })).status;
    await expect.poll(ping, PATIENT).toBe(200);
  });

  it('[Y-11] what the other replicas must know is refused, and what they need not is served', async () => {
    const session = await openBoth('asked', 'modern', ALL_QUESTIONS);
    const { here, there, id } = session;
    const { call, answer } = await askGreeting(session);
    await redis.stop();
    const level = { level: 'debug' };
    const refused = await requestInSession(there, id, 'logging/setLevel', level);
    expect([refused.status, errorOf(refused)['code']]).toEqual([503, 1509]);
    expect((await post(there, answer, sessionHeaders(id))).status).toBe(503);
    expect(resultOf(await requestInSession(there, id, 'tools/call', ECHO))['content']).toBeDefined();
    expect(lastMeta()[LEVEL]).toBeUndefined();
    // Where the call runs nobody else is needed.
    expect((await post(here, answer, sessionHeaders(id))).status).toBe(202);
    await expect.poll(() => call.text(), PATIENT).toContain('Hello Ada');
    await redis.start();
    const later = async () => (await requestInSession(there, id, 'logging/setLevel', level)).status;
    await expect.poll(later, PATIENT).toBe(200);
  });
});
