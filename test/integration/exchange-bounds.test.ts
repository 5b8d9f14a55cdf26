// The bounds of exchanges and streams: how long, how often, of which type, and what is left when they end.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import { openRawChannel } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, type RawSession, sendRaw } from '../support/raw-mcp.js';
import { answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  bearer,
  callStateless,
  errorOf,
  post,
  requestStateless,
  resultOf,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** Notifications of progress that one request may get. */
const MAX_NOTIFICATIONS_PER_SECOND = 100;
const JSON_TYPE = 'application/json';
const CALL = { name: 'read_record', arguments: { id: 'one' } };
const TOKEN = { ...CALL, _meta: { progressToken: 'live' } };

function streamed(chunks: readonly string[], more: Partial<Extract<Act, { kind: 'chunks' }>> = {}) {
  return {
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks,
    ending: 'end',
    ...more,
  } as const;
}

function progress(token: unknown, step: unknown): JsonObject {
  const params = { progressToken: token, progress: step } as JsonObject;
  return { jsonrpc: '2.0', method: 'notifications/progress', params };
}

/** These messages, then the answer. */
function sendFirst(...messages: readonly JsonObject[]) {
  return onMethod('tools/call', (request) =>
    streamed([...messages, resultFor(request, textResult('done'))].map((one) => sseEvent(one))),
  );
}

function endlessProgress(): Act {
  const steps = Array.from({ length: 400 }, (_, step) => sseEvent(progress('live', step)));
  return streamed(steps, { paceMs: 20, ending: 'hold' });
}

describe('the time of an exchange', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 500ms, exchangeMax: 600ms}'],
  });
  afterEach(() => {
    rig.upstream.repent();
    rig.upstream.forget();
  });

  it('[LEG-10, MCP-64] ends in a session whatever it tells, and its server learns of it', async () => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    rig.upstream.obey(onMethod('tools/call', endlessProgress));
    const { messages } = await session.ask(3, 'tools/call', TOKEN);
    expect(messages.length).toBeGreaterThan(1);
    expect(messages.at(-1)).toMatchObject({ id: 3, error: {} });
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
    const cancellations = (): readonly HostileRequest[] =>
      rig.upstream.seen().filter(({ method }) => method === 'notifications/cancelled');
    await expect
      .poll(() => cancellations()[0]?.message, PATIENT)
      .toMatchObject({
        params: { requestId: 3 },
      });
    const last = (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome');
    expect(last?.['decision']).toMatchObject({ action: 'withheld', reasons: ['upstream-timeout'] });
  });

  it('[LEG-10] ends for a stateless client', async () => {
    rig.upstream.obey(onMethod('tools/call', endlessProgress));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, TOKEN._meta);
    expect(errorOf(reply)['code']).toBeDefined();
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
  });

  it('[LEG-10] ends where the answer alone is waited for', async () => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    rig.upstream.obey(onMethod('tools/call', endlessProgress));
    const body = { jsonrpc: '2.0', id: 4, method: 'tools/call', params: TOKEN };
    const headers = { ...session.headers, accept: 'application/json' };
    const response = await sendRaw(rig.access.url, body, { headers });
    expect(response.status).toBe(504);
    await response.text();
  });

  it.each<[string, number, Act, string]>([
    ['does not begin', 11, { kind: 'hold' }, 'application/json, text/event-stream'],
    [
      'is a body that does not end',
      12,
      { ...streamed(Array(100).fill(' '), { paceMs: 50, ending: 'hold' }), contentType: JSON_TYPE },
      'application/json, text/event-stream',
    ],
    ['is waited for alone', 13, endlessProgress(), JSON_TYPE],
  ])('[LEG-10] ends where the answer %s, and its server learns of it', async (_how, id, act, accept) => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    rig.upstream.obey(onMethod('tools/call', () => act));
    const body = { jsonrpc: '2.0', id, method: 'tools/call', params: TOKEN };
    const headers = { ...session.headers, accept };
    const response = await sendRaw(rig.access.url, body, { headers });
    expect(response.status).toBe(504);
    await response.text();
    const cancelled = () =>
      rig.upstream
        .seen()
        .filter(({ method }) => method === 'notifications/cancelled')
        .map(({ body }) => body);
    const named = expect.stringContaining(`"requestId":${id},`);
    await expect.poll(cancelled, PATIENT).toContainEqual(named);
  });

  it('[LEG-10] ends where a broken answer is resumed', async () => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    rig.upstream.obeyOnce(onMethod('tools/call', () => streamed(['id: one\ndata: \n\n'])));
    const { text } = await session.ask(4, 'tools/call', TOKEN);
    const id = /^id: (.*)$/m.exec(text)?.[1] ?? '';
    rig.upstream.obey((request) => (request.httpMethod === 'GET' ? endlessProgress() : undefined));
    const headers = { accept: 'text/event-stream', ...session.headers, 'last-event-id': id };
    const resumed = await (await fetch(rig.access.url, { headers })).text();
    expect(resumed).toContain('"progress":1');
    expect(resumed).toMatch(/"id":4,"error"/);
  });

  it('[LEG-10] does not begin anew for being resumed, and its server learns of its end', async () => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    rig.upstream.obeyOnce(onMethod('tools/call', () => streamed(['id: one\ndata: \n\n'])));
    let { text } = await session.ask(6, 'tools/call', TOKEN);
    rig.upstream.obey((request) =>
      request.httpMethod === 'GET'
        ? streamed([':\n\n', ':\n\n', ':\n\n', 'id: again\ndata: \n\n'], { paceMs: 50 })
        : undefined,
    );
    let resumed = 0;
    for (; resumed < 8 && !text.includes('"error"'); resumed += 1) {
      const id = [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
      const headers = { accept: 'text/event-stream', ...session.headers, 'last-event-id': id };
      text = await (await fetch(rig.access.url, { headers })).text();
    }
    expect(text).toMatch(/"id":6,"error"/);
    const ended = (): readonly string[] =>
      rig.upstream
        .seen()
        .filter(({ method }) => method === 'notifications/cancelled')
        .map(({ body }) => body);
    await expect.poll(ended, PATIENT).toContainEqual(expect.stringContaining('"requestId":6,'));
  });

  it('[LEG-10] leaves the stream of a session alone', async () => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    const notification = {
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: 'late' },
    };
    const silence = Array.from({ length: 60 }, () => ':\n\n');
    rig.upstream.obey((request) =>
      request.httpMethod === 'GET'
        ? streamed([...silence, sseEvent(notification as JsonObject)], { paceMs: 20 })
        : undefined,
    );
    const headers = { accept: 'text/event-stream', ...session.headers };
    const text = await (await fetch(rig.access.url, { headers })).text();
    expect(text).toContain('late');
  });
});

describe('a silent stream', () => {
  let session: RawSession;
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {keepAlive: 50ms}'],
  });
  beforeAll(async () => {
    session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
  });
  afterEach(() => rig.upstream.repent());

  async function expectKeepAlive(response: Response): Promise<void> {
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = '';
    while (!text.includes('\n:\n') && !text.startsWith(':\n')) {
      const chunk = await reader?.read();
      if (chunk?.value === undefined) throw new Error(`ended: ${text}`);
      text += decoder.decode(chunk.value, { stream: true });
    }
    expect(text).not.toMatch(/^id:/m);
    await reader?.cancel();
  }

  it('[LEG-11] that answers a call says that it lives, before its answer', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        streamed([':\n\n', sseEvent(resultFor(request, textResult('late')))], { paceMs: 400 }),
      ),
    );
    const { text } = await session.ask(1, 'tools/call', CALL);
    expect(text.split(':\n\n').length).toBeGreaterThan(3);
    expect(text).toContain('late');
  });

  it('[LEG-11] of a session, a subscription and a channel says so too', async () => {
    const headers = { accept: 'text/event-stream', ...session.headers };
    await expectKeepAlive(await fetch(rig.access.url, { headers }));
    const parts = statelessParts('subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    const token = bearer(rig.access.token);
    await expectKeepAlive(await sendRaw(rig.access.url, parts.body, { headers: { ...parts.headers, ...token } }));
    const channel = await openRawChannel(`${rig.access.url}/sse`, token);
    await expect.poll(channel.text, PATIENT).toContain('\n\n:\n\n');
    channel.leave();
  });
});

describe('what a client takes', () => {
  let session: RawSession;
  const rig = sharedGateway({ policies: { open: ALLOW_ALL, questions: grantQuestions() } });
  beforeAll(async () => {
    session = await openRawSession(rig.access.url, {
      token: rig.access.token ?? '',
      capabilities: { sampling: {} },
    });
  });
  afterEach(() => {
    rig.upstream.repent();
    rig.upstream.forget();
  });

  const ask = (accept: string): Promise<Response> => {
    const body = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: CALL };
    return sendRaw(rig.access.url, body, { headers: { ...session.headers, accept } });
  };

  it.each(['application/json', 'application/*', '*/*, text/event-stream;q=0'])(
    '[LEG-12] %s gets the answer alone, as JSON',
    async (accept) => {
      rig.upstream.obey(sendFirst(progress('live', 1)));
      const response = await ask(accept);
      expect(response.headers.get('content-type')).toBe('application/json');
      expect(await response.json()).toMatchObject({ id: 5, result: textResult('done') });
    },
  );

  it('[LEG-12] is nothing where it cancels what is answered alone, and the upstream is released', async () => {
    rig.upstream.obey(onMethod('tools/call', () => streamed([':\n\n'], { ending: 'hold' })));
    const answer = ask('application/json');
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const params = { requestId: 5 };
    const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params };
    expect((await post(rig.access, JSON.stringify(note), session.headers)).status).toBe(202);
    const response = await answer;
    expect([response.status, await response.text()]).toEqual([202, '']);
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
  });

  it('[LEG-12] is not asked where it takes no stream, and its server learns that', async () => {
    const question = {
      id: 'q',
      method: 'sampling/createMessage',
      params: { messages: [], maxTokens: 1 },
    };
    rig.upstream.obey(onMethod('tools/call', (request) => askThenAnswer(request, [question], 5)));
    const response = await ask('application/json');
    expect(await response.json()).toMatchObject({ id: 5, result: {} });
    await expect.poll(() => answersTo(rig.upstream).get('q'), PATIENT).toMatchObject({ error: { code: -32601 } });
  });

  it.each(['*/*', 'text/event-stream, application/json', 'text/*, application/json'])(
    '[LEG-12] %s gets a stream where there is one',
    async (accept) => {
      rig.upstream.obey(sendFirst());
      const response = await ask(accept);
      expect(response.headers.get('content-type')).toBe('text/event-stream');
      await response.text();
    },
  );

  it('[LEG-12] is nothing that is sent here: 406, and nothing reaches the upstream', async () => {
    for (const accept of ['text/html', 'application/json;q=0', 'image/*']) {
      const response = await ask(accept);
      expect([accept, response.status]).toEqual([accept, 406]);
      expect(await response.json()).toMatchObject({ id: 5, error: { code: -32600 } });
    }
    const listen = await requestStateless(
      rig.access,
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      { headers: { accept: 'application/json' } },
    );
    expect(listen.status).toBe(406);
    const headers = { ...session.headers, accept: 'application/json' };
    expect((await fetch(rig.access.url, { headers })).status).toBe(406);
    const old = { ...bearer(rig.access.token), accept: 'application/json' };
    expect((await fetch(`${rig.access.url}/sse`, { headers: old })).status).toBe(406);
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('[LEG-12] is not asked of a notification, which has no answer', async () => {
    const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const reply = await post(rig.access, JSON.stringify(note), {
      ...session.headers,
      accept: 'text/plain',
    });
    expect(reply.status).toBe(202);
  });
});

describe('what a server tells on the way', () => {
  let session: RawSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
  });
  afterEach(() => {
    rig.upstream.repent();
    rig.upstream.forget();
  });

  async function receivedOf(...messages: readonly JsonObject[]): Promise<readonly JsonObject[]> {
    rig.upstream.obey(sendFirst(...messages));
    return (await session.ask(6, 'tools/call', TOKEN)).messages.slice(0, -1);
  }

  const countOf = async (detector: string): Promise<number> =>
    (await rig.gateway.audit())
      .filter((line) => line['type'] === 'mcp.outcome')
      .flatMap((line) => (line['findings'] ?? []) as JsonObject[])
      .filter((finding) => finding['detector'] === detector)
      .reduce((sum, { count }) => sum + Number(count), 0);

  it('[LEG-13] passes as progress only forwards, and only under the token of its request', async () => {
    const before = await countOf('stale-progress');
    const passed = await receivedOf(
      progress('live', 1),
      progress('live', 1),
      progress('live', 0.5),
      progress('other', 2),
      progress(7, 3),
      progress('live', 'far'),
      progress('live', 1.5),
    );
    expect(passed).toEqual([progress('live', 1), progress('live', 1.5)]);
    await expect.poll(() => countOf('stale-progress'), PATIENT).toBe(before + 5);
  });

  it('[LEG-13] passes no progress that nobody asked for', async () => {
    rig.upstream.obey(sendFirst(progress('live', 1)));
    const { messages } = await session.ask(7, 'tools/call', CALL);
    expect(messages).toHaveLength(1);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.messages).toHaveLength(1);
    expect(resultOf(reply)).toMatchObject(textResult('done'));
  });

  it('[LEG-13] passes on the stream of the session while its request is under way, and no longer', async () => {
    const left = new AbortController();
    const steps = [progress('live', 1), progress('live', 2)];
    rig.upstream.obey((request) => {
      if (request.method === 'tools/call')
        return streamed([':\n\n', sseEvent(resultFor(request, textResult('done')))], {
          paceMs: 300,
        });
      if (request.httpMethod !== 'GET') return undefined;
      return streamed([sseEvent(steps[0] as JsonObject), sseEvent(steps[1] as JsonObject)], {
        paceMs: 600,
        ending: 'hold',
      });
    });
    const call = session.ask(8, 'tools/call', TOKEN);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const before = await countOf('stale-progress');
    const headers = { accept: 'text/event-stream', ...session.headers };
    const stream = await fetch(rig.access.url, { headers, signal: left.signal });
    const chunk = await stream.body?.getReader().read();
    expect(new TextDecoder().decode(chunk?.value)).toContain('"progress":1');
    await call;
    await expect.poll(() => rig.upstream.seen().filter(({ httpMethod }) => httpMethod === 'GET').length).toBe(1);
    setTimeout(() => left.abort(), 800);
    await expect.poll(() => countOf('stale-progress'), PATIENT).toBe(before + 1);
  });

  it('[LEG-13, MCP-60] passes no more notices in a second than a reader could take', async () => {
    const flood = Array.from({ length: 4 * MAX_NOTIFICATIONS_PER_SECOND }, (_, step) => step + 1);
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        streamed([
          flood.map((step) => sseEvent(progress('live', step))).join(''),
          sseEvent(resultFor(request, textResult('done'))),
        ]),
      ),
    );
    const before = await countOf('notice-flood');
    const { messages } = await session.ask(9, 'tools/call', TOKEN);
    expect(messages.length).toBeGreaterThan(MAX_NOTIFICATIONS_PER_SECOND);
    // A second may end while they come.
    expect(messages.length).toBeLessThanOrEqual(2 * MAX_NOTIFICATIONS_PER_SECOND + 1);
    expect(messages.at(-1)).toMatchObject({ result: {} });
    await expect.poll(() => countOf('notice-flood'), PATIENT).toBeGreaterThan(before);
  });
});
