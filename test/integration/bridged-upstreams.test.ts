// Clients of later eras before a server of HTTP+SSE: sessions over channels, answers that nobody waits for, whose
// a question is, what cannot be carried, and what is left behind.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, UPSTREAM } from '../support/gateway.js';
import { onMethod, sessionsOnly } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import type { LegacySseFront } from '../support/legacy-sse-front.js';
import { openRawSession, type RawSession, sendRaw } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { bearer, post, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const SAMPLING = {
  method: 'sampling/createMessage',
  params: { maxTokens: 1, messages: [{ role: 'user', content: { type: 'text', text: 'x' } }] },
};
const FORM = {
  method: 'elicitation/create',
  params: { message: 'x', requestedSchema: { type: 'object', properties: {} } },
};
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

let front: LegacySseFront;

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, questions: grantQuestions() },
  behindChannels: true,
  prepare: (upstream) => upstream.obey(sessionsOnly),
});
beforeAll(async () => {
  if (rig.front === undefined) throw new Error('nothing serves HTTP+SSE');
  front = rig.front;
});
afterEach(() => {
  front.release();
  rig.upstream.obey(sessionsOnly);
  rig.upstream.forget();
  front.forget();
});

function open(capabilities: object = {}, claims?: Record<string, unknown>): Promise<RawSession> {
  return rig.gateway.token(UPSTREAM, claims).then((token) => openRawSession(rig.access.url, { token, capabilities }));
}

function bodies(method: string): readonly JsonObject[] {
  return front
    .seen()
    .filter(({ body }) => body.includes(`"${method}"`))
    .map(({ body }) => JSON.parse(body) as JsonObject);
}

/** What a handshake declares. */
function capabilitiesIn(handshake: JsonObject | undefined): readonly string[] {
  const params = (handshake?.['params'] ?? {}) as JsonObject;
  return Object.keys((params['capabilities'] ?? {}) as object).sort();
}

async function listen(session: RawSession): Promise<{ text(): string; leave(): void }> {
  const left = new AbortController();
  const headers = { accept: 'text/event-stream', ...session.headers };
  const response = await fetch(rig.access.url, { headers, signal: left.signal });
  expect(response.status).toBe(200);
  let received = '';
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  void (async () => {
    for (;;) {
      const chunk = await reader?.read().catch(() => undefined);
      if (chunk?.value === undefined) return;
      received += decoder.decode(chunk.value, { stream: true });
    }
  })();
  return { text: () => received, leave: () => left.abort() };
}

const findingsOf = async (detector: string): Promise<number> =>
  (await rig.gateway.audit()).filter((line) => JSON.stringify(line['findings'] ?? []).includes(`"${detector}"`)).length;

describe('a session over a channel', () => {
  it('[LEG-02] is in the version of its client, and of channels towards its server', async () => {
    const session = await open();
    expect(session.opened.messages[0].result.protocolVersion).toBe('2025-11-25');
    const [asked] = bodies('initialize');
    expect(asked).toMatchObject({ params: { protocolVersion: '2024-11-05' } });
    const posted = front.seen().filter(({ httpMethod }) => httpMethod === 'POST');
    expect(posted.flatMap(({ headers }) => Object.keys(headers))).not.toContain('mcp-session-id');
    expect(JSON.stringify(posted)).not.toContain(session.id);
  });

  it('[LEG-03] is not cancelled by leaving: its answer is recorded, and the session goes on', async () => {
    const session = await open();
    front.hold('tools/call');
    const left = new AbortController();
    const body = { jsonrpc: '2.0', id: 21, method: 'tools/call', params: CALL };
    const waiting = sendRaw(rig.access.url, body, { headers: session.headers, signal: left.signal }).then((response) =>
      response.text(),
    );
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    left.abort();
    await expect(waiting).rejects.toThrow();
    front.release();
    const outcome = async () =>
      (await rig.gateway.audit()).find(
        (line) =>
          line['type'] === 'mcp.outcome' && line['target']?.request_id === 21 && line['result']?.status === 'ok',
      );
    await expect.poll(outcome, PATIENT).toBeDefined();
    expect(bodies('notifications/cancelled')).toEqual([]);
    expect((await session.ask(22, 'tools/call', CALL)).text).toContain('read_record one');
    expect(rig.upstream.uses()).toHaveLength(2);
  });

  it('[LEG-03] gets no ids of events, as its server has none, and cannot be resumed', async () => {
    const session = await open();
    const { text } = await session.ask(23, 'tools/call', CALL);
    expect(text).toContain('read_record one');
    expect(text).not.toMatch(/^id:/m);
    const headers = { accept: 'text/event-stream', ...session.headers, 'last-event-id': '1-1' };
    expect((await fetch(rig.access.url, { headers })).status).toBe(404);
  });

  it('[LEG-09] gives every message of a call once and in order, before its answer', async () => {
    const session = await open();
    front.hold('tools/call');
    const waiting = session.ask(25, 'tools/call', { ...CALL, _meta: { progressToken: 'steps' } });
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    for (const progress of [1, 2, 3, 4, 5, 6]) {
      const params = { progressToken: 'steps', progress };
      front.say({ jsonrpc: '2.0', method: 'notifications/progress', params });
    }
    front.release();
    const { messages } = await waiting;
    expect(messages.map(({ params }) => params?.progress)).toEqual([1, 2, 3, 4, 5, 6, undefined]);
    expect(messages.at(-1)).toMatchObject({ id: 25, result: {} });
  });

  it('[LEG-04] cancels by its notice', async () => {
    const session = await open();
    front.hold('tools/call');
    const waiting = session.ask(23, 'tools/call', CALL);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const notification = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 23 },
    };
    const posted = await post(rig.access, JSON.stringify(notification), session.headers);
    expect(posted.status).toBe(202);
    expect((await waiting).messages.filter(({ result }) => result !== undefined)).toEqual([]);
    expect(bodies('notifications/cancelled')).toMatchObject([{ params: { requestId: 23 } }]);
  });

  it('[LEG-04] tells on its stream what belongs to no request, and drops what answers none', async () => {
    const session = await open();
    const stream = await listen(session);
    const before = await findingsOf('foreign-message');
    front.say({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    front.say({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: 'x' },
    });
    front.say({ jsonrpc: '2.0', id: 99, result: { forged: true } });
    await expect.poll(stream.text, PATIENT).toContain('notifications/message');
    await expect.poll(stream.text, PATIENT).toContain('notifications/tools/list_changed');
    expect(stream.text()).not.toContain('forged');
    stream.leave();
    await expect.poll(() => findingsOf('foreign-message'), PATIENT).toBeGreaterThan(before);
  });

  it('[LEG-05] is asked in the call that waits, and its answer goes back by the id of the server', async () => {
    const session = await open(ALL_QUESTIONS);
    rig.upstream.obey(
      (request) =>
        onMethod('tools/call', (call) => askThenAnswer(call, [{ id: 'q1', ...SAMPLING }], 5))(request) ??
        sessionsOnly(request),
    );
    const { messages } = await session.ask(24, 'tools/call', CALL);
    expect(messages.map(({ method }) => method)).toEqual(['sampling/createMessage', undefined]);
    expect(messages[0].id).not.toBe('q1');
    const result = { model: 'm', role: 'assistant', content: { type: 'text', text: 'y' } };
    const answer = { jsonrpc: '2.0', id: messages[0].id, result };
    expect((await post(rig.access, JSON.stringify(answer), session.headers)).status).toBe(202);
    await expect.poll(() => answersTo(rig.upstream).get('q1'), PATIENT).toMatchObject({ result });
  });

  it('[LEG-05] asks a stateless client by a result, and goes on with its answer', async () => {
    rig.upstream.obey(
      (request) =>
        onMethod('tools/call', (call) => askThenAnswer(call, [{ id: 'q2', ...SAMPLING }], 5))(request) ??
        sessionsOnly(request),
    );
    const _meta = { [CAPABILITIES]: { sampling: {} } };
    const asked = resultOf(await requestStateless(rig.access, 'tools/call', { ...CALL, _meta }));
    expect(asked['resultType']).toBe('input_required');
    const [key = ''] = Object.keys(asked['inputRequests'] as JsonObject);
    const answer = { model: 'm', role: 'assistant', content: { type: 'text', text: 'z' } };
    const again = { ...CALL, _meta, inputResponses: { [key]: answer } };
    const params = { ...again, requestState: String(asked['requestState']) };
    const done = await requestStateless(rig.access, 'tools/call', params, { id: 2 });
    expect(resultOf(done)['content']).toEqual([{ type: 'text', text: 'answered' }]);
    await expect.poll(() => answersTo(rig.upstream).get('q2'), PATIENT).toMatchObject({ result: answer });
  });

  it('[LEG-05] has no elicitation: it is not declared, and refused where it comes all the same', async () => {
    const session = await open(ALL_QUESTIONS);
    const [asked] = bodies('initialize');
    expect(capabilitiesIn(asked)).toEqual(['roots', 'sampling']);
    rig.upstream.obey(
      (request) =>
        onMethod('tools/call', (call) => askThenAnswer(call, [{ id: 'q3', ...FORM }], 5))(request) ??
        sessionsOnly(request),
    );
    const { messages } = await session.ask(25, 'tools/call', CALL);
    expect(messages.map(({ method }) => method)).toEqual([undefined]);
    await expect.poll(() => answersTo(rig.upstream).get('q3'), PATIENT).toMatchObject({ error: { code: -32601 } });
    const refused = (await rig.gateway.audit()).filter(
      (line) => line['target']?.name === 'elicitation/form' && line['type'] === 'mcp.outcome',
    );
    expect(refused.at(-1)?.['decision']).toMatchObject({ verdict: 'deny', action: 'refused' });
  });

  it('[LEG-05] refuses a question where nobody can tell whose it is, and says why', async () => {
    const session = await open(ALL_QUESTIONS);
    front.hold('tools/call');
    const calls = [31, 32].map((id) => session.ask(id, 'tools/call', CALL));
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(2);
    front.say({ jsonrpc: '2.0', id: 'whose', ...SAMPLING });
    await expect
      .poll(() => answersTo(rig.upstream).get('whose'), PATIENT)
      .toMatchObject({ error: { message: expect.stringContaining('more than one') } });
    front.release();
    for (const { text } of await Promise.all(calls)) expect(text).not.toContain('createMessage');
  });

  it('[LEG-02] begins no tasks, which came later, and has none', async () => {
    const session = await open();
    const called = await session.ask(61, 'tools/call', { ...CALL, task: { ttl: 1000 } });
    expect(called.text).toContain('read_record one');
    expect(rig.upstream.uses()[0]?.body).not.toContain('"task"');
    const { messages } = await session.ask(62, 'tasks/list');
    expect(messages).toMatchObject([{ id: 62, error: { code: -32601 } }]);
    expect(bodies('tasks/list')).toEqual([]);
  });

  it('[LEG-02] is refused an answer that readers of JSON do not read alike', async () => {
    const session = await open();
    front.hold('tools/call');
    const waiting = session.ask(42, 'tools/call', CALL);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    front.sayText('{"jsonrpc":"2.0","id":42,"id":43,"result":{"content":[]}}');
    expect((await waiting).messages).toMatchObject([{ id: 42, error: {} }]);
  });

  it('[LEG-04] refuses a second request under an id that is under way', async () => {
    const session = await open();
    front.hold('tools/call');
    const first = session.ask(41, 'tools/call', CALL);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const second = await session.ask(41, 'tools/call', CALL);
    expect(second.messages).toMatchObject([{ id: 41, error: { code: -32600 } }]);
    front.release();
    expect((await first).text).toContain('read_record one');
    expect(rig.upstream.uses()).toHaveLength(1);
  });
});

describe('a channel that ends', () => {
  it('[LEG-06] breaks its calls off, and its session is unknown from then on', async () => {
    const session = await open();
    front.hold('tools/call');
    const waiting = session.ask(51, 'tools/call', CALL);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    front.cut();
    expect((await waiting).messages).toMatchObject([{ id: 51, error: {} }]);
    expect((await session.ask(52, 'tools/call', CALL)).status).toBe(404);
    const next = await open();
    front.release();
    expect((await next.ask(53, 'tools/call', CALL)).status).toBe(200);
  });

  it('[LEG-06] ends with its session, and with the pooled one that a lost call had', async () => {
    const before = front.channels();
    const session = await open();
    expect(front.channels()).toBe(before + 1);
    const { status } = await fetch(rig.access.url, { method: 'DELETE', headers: session.headers });
    expect(status).toBe(204);
    await expect.poll(() => front.channels(), PATIENT).toBe(before);
  });

  it('[LEG-07] cancels the call of a stateless client that leaves', async () => {
    front.hold('tools/call');
    const left = new AbortController();
    const headers = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': CALL.name,
      ...bearer(rig.access.token),
    };
    const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', [CAPABILITIES]: {} };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...CALL, _meta } };
    const waiting = sendRaw(rig.access.url, body, { headers, signal: left.signal }).then((response) => response.text());
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const sent = rig.upstream.uses()[0]?.id;
    left.abort();
    await expect(waiting).rejects.toThrow();
    await expect
      .poll(() => bodies('notifications/cancelled'), PATIENT)
      .toMatchObject([{ params: { requestId: sent } }]);
  });
});

describe('a session that nobody uses', () => {
  it('[LEG-06] is ended, and its channel with it', () =>
    withGateway(
      {
        behindChannels: true,
        upstream: ['pinning: {maxAge: 10m}', 'limits: {streamIdle: 300ms}'],
        prepare: (upstream) => upstream.obey(sessionsOnly),
      },
      async (short) => {
        const session = await openRawSession(short.access.url, { token: short.access.token ?? '' });
        expect((await session.ask(1, 'tools/call', CALL)).status).toBe(200);
        await expect.poll(() => short.front?.channels(), PATIENT).toBe(0);
        expect((await session.ask(2, 'tools/call', CALL)).status).toBe(404);
      },
    ));
});
