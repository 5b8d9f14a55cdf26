// The session of an endpoint: one sealed id over the sessions of its members, their streams as one, their
// questions answered to whoever asked, and its end that of all of them.
// Source: MCP 2025-11-25, session management, transports; docs/reference/state.md#sessions-on-any-replica.

import { afterEach, describe, expect, it } from 'vitest';
import { createGate } from '../support/changing-rig.js';
import { firstTextOf, startMergedRig } from '../support/deployments.js';
import { ALLOW_ALL, settleListings } from '../support/gateway.js';
import { jsonBody, onMethod, sseEvent } from '../support/hostile-acts.js';
import type { Act, HostileRequest, HostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, postStateless, sendRaw } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  bearer,
  errorOf,
  initialize,
  openSession,
  post,
  type Reply,
  readReply,
  requestInSession,
  requestStateless,
  resultOf,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { shared, withStarted } from '../support/with-gateway.js';

const CALL = { name: 'l_read_record', arguments: { id: 'one' } };
const ROOTS = { method: 'roots/list' };
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const GET = { accept: 'text/event-stream' };
const NOT_FOUND: Act = { kind: 'http', status: 404 };

const rig = shared(() => startMergedRig({ policies: { open: ALLOW_ALL, questions: grantQuestions() } }));
afterEach(async () => {
  rig.left.repent();
  rig.right.repent();
  // The gateway lists an upstream again that was unavailable in a test; the next one must not count these requests.
  await expect.poll(() => rig.gateway.metrics(), PATIENT).not.toMatch(/^sallyport_upstream_up\{[^}]*\} 0$/m);
  await settleListings(rig.gateway, [rig.left, rig.right]);
  rig.forget();
});

async function accessOf(sub: string): Promise<Access> {
  return { url: rig.access.url, token: await rig.gateway.token('all', { sub }) };
}

function methodsAt(upstream: HostileUpstream): readonly (string | undefined)[] {
  return upstream.seen().map(({ httpMethod, method }) => method ?? httpMethod);
}

function resumedAt(upstream: HostileUpstream): readonly string[] {
  return upstream.seen().flatMap(({ headers }) => headers['last-event-id'] ?? []);
}

function streamOf(messages: readonly JsonObject[]): Act {
  const chunks = messages.map((message, at) => sseEvent(message, `event-${at}`));
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'hold' };
}

async function readUntil(response: Response, count: number): Promise<readonly string[]> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  const found = (): readonly string[] => text.split('\n\n').filter((one) => one.includes('data:'));
  while (found().length < count) {
    const chunk = await reader?.read();
    if (chunk === undefined || chunk.done) break;
    text += decoder.decode(chunk.value, { stream: true });
  }
  return found();
}

describe('opening', () => {
  it('[MRG-08] gives one session over the sessions of all members', async () => {
    const reply = await initialize(rig.access);
    expect(reply.headers.get('mcp-session-id')).toMatch(/^[\w-]{100,}$/);
    expect(resultOf(reply)).toEqual({
      protocolVersion: '2025-11-25',
      serverInfo: { name: 'all', version: '0.0.0-test' },
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true },
      },
    });
    expect(methodsAt(rig.left)).toEqual(['initialize']);
    expect(methodsAt(rig.right)).toEqual(['initialize']);
  });

  it('[MRG-08] tells every member what all of them need to know, and answers a ping', async () => {
    const session = await openSession(rig.access);
    expect(await session.request('ping')).toMatchObject({ status: 200, message: { result: {} } });
    for (const upstream of [rig.left, rig.right])
      expect(methodsAt(upstream)).toEqual(['initialize', 'notifications/initialized', 'ping']);
    const sessions = [rig.left, rig.right].map((upstream) => upstream.seen().at(-1)?.headers['mcp-session-id']);
    expect(new Set(sessions).size).toBe(2);
    expect(sessions).not.toContain(session.id);
  });

  it('[MRG-06] leaves out a member that is down, and its tools are refused as such', async () => {
    rig.right.obey(() => ({ kind: 'destroy' }));
    const session = await openSession(rig.access);
    rig.right.repent();
    expect(toolNames(await session.request('tools/list'))).toEqual(['l_read_record', 'l_write_record']);
    const reply = await session.call('right_read_record', { id: 'one' });
    expect([reply.status, errorOf(reply)['code']]).toEqual([502, 1502]);
    expect(errorOf(await session.call('right_no_such'))['code']).toBe(-32602);
    expect(rig.right.uses()).toEqual([]);
  });

  it('[MRG-06] fails only where no member answers', async () => {
    for (const upstream of [rig.left, rig.right]) upstream.obey(() => ({ kind: 'destroy' }));
    const reply = await initialize(rig.access);
    expect([reply.status, errorOf(reply)['code']]).toEqual([502, 1502]);
  });
});

describe('a session', () => {
  it('[MRG-09] whose client has left before it was given is ended at every member', async () => {
    const { passed, open } = createGate();
    rig.right.obey(onMethod('initialize', () => ({ kind: 'honest', after: passed })));
    const gone = new AbortController();
    const clientInfo = { name: 'hasty', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
    const { url, token } = rig.access;
    const asked = sendRaw(url, body, { headers: bearer(token), signal: gone.signal });
    // The gateway may look at a member's tools at any time, in a session of its own that it keeps.
    const both = (method: string): boolean =>
      [rig.left, rig.right].every((upstream) => methodsAt(upstream).includes(method));
    await expect.poll(() => both('initialize'), PATIENT).toBe(true);
    gone.abort();
    await expect(asked).rejects.toThrow();
    // Time enough for the gateway to see that its client has left.
    for (let turn = 0; turn < 50; turn += 1) await rig.gateway.metrics();
    open();
    await expect.poll(() => both('DELETE'), PATIENT).toBe(true);
  });

  it('[MRG-09] is unknown to other callers, to members, and after its end', async () => {
    const session = await openSession(rig.access);
    const stolen = await requestInSession(await accessOf('thief'), session.id, 'tools/list');
    expect(stolen.status).toBe(404);
    const left = { url: rig.gateway.url('left'), token: await rig.gateway.token('left') };
    expect((await requestInSession(left, session.id, 'tools/list')).status).toBe(404);
    const own = await openSession(left);
    expect((await requestInSession(rig.access, own.id, 'tools/list')).status).toBe(404);
    rig.forget();
    expect((await session.end()).status).toBe(204);
    expect(methodsAt(rig.left)).toEqual(['DELETE']);
    expect(methodsAt(rig.right)).toEqual(['DELETE']);
    expect((await session.request('tools/list')).status).toBe(404);
    expect((await session.end()).status).toBe(404);
  });

  /** The member on the right has lost every session that it has opened so far. */
  function loseRight(answer: (request: HostileRequest) => Act = () => NOT_FOUND): void {
    const kept = new Set<string>();
    rig.right.obey((request) => {
      const id = request.headers['mcp-session-id'];
      if (request.method === 'notifications/initialized' && id !== undefined) kept.add(id);
      return id === undefined || kept.has(id) ? undefined : answer(request);
    });
    rig.forget();
  }

  it('[MRG-09] goes on with another session of a member that has lost its own', async () => {
    const session = await openSession(rig.access);
    loseRight();
    expect(toolNames(await session.request('tools/list'))).toHaveLength(4);
    const opening = ['initialize', 'notifications/initialized'];
    expect(methodsAt(rig.right)).toEqual(['tools/list', ...opening, 'tools/list']);
    expect(firstTextOf(await session.call('right_read_record', { id: 'one' }))).toBe('read_record one');
    expect(methodsAt(rig.left)).toEqual(['tools/list']);
    const sessions = new Set(rig.right.seen().map(({ headers }) => headers['mcp-session-id']));
    rig.forget();
    await session.end();
    expect(methodsAt(rig.right)).toEqual(['DELETE']);
    expect([...sessions].at(-1)).toBe(rig.right.seen()[0]?.headers['mcp-session-id']);
  });

  it('[MRG-09] repeats a call that the lost session did not let in, once for all that wait', async () => {
    const session = await openSession(await accessOf('caller of one'));
    loseRight();
    const calls = ['one', 'two', 'three'].map((id) => session.call('right_read_record', { id }));
    const texts = (await Promise.all(calls)).map(firstTextOf);
    expect(texts).toEqual(['read_record one', 'read_record two', 'read_record three']);
    expect(methodsAt(rig.right).filter((method) => method === 'initialize')).toHaveLength(1);
  });

  it('[MRG-09] repeats no call that may have been executed', async () => {
    const session = await openSession(await accessOf('careful caller'));
    const error = { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'No session' } };
    loseRight(() => jsonBody(error, 400));
    const reply = await session.call('right_read_record', { id: 'one' });
    expect([reply.status, errorOf(reply)['message']]).toEqual([
      200,
      expect.stringMatching(/may have been executed, so it was not retried/),
    ]);
    expect(rig.right.uses()).toHaveLength(1);
    expect((await session.call('right_read_record', { id: 'one' })).text).toContain('read_record');
  });

  it('[MRG-09] disturbs no call of another member', async () => {
    const session = await openSession(await accessOf('patient caller'));
    const gate = createGate();
    const chunks = [': begun\n\n', sseEvent({ jsonrpc: '2.0', id: 7, result: { content: [] } })];
    rig.left.obey(({ method }) => {
      if (method !== 'tools/call') return undefined;
      return {
        ...{ kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'end' },
        gate: gate.passed,
      };
    });
    loseRight();
    const slow = session.call('l_read_record', { id: 'one' });
    await expect.poll(() => methodsAt(rig.left), PATIENT).toEqual(['tools/call']);
    expect((await session.call('right_read_record', { id: 'one' })).status).toBe(200);
    gate.open();
    expect(resultOf(await slow)).toEqual({ content: [] });
    expect(methodsAt(rig.left)).toEqual(['tools/call']);
  });

  it('[MRG-09] goes on without a member that keeps no session, and with it once it does', async () => {
    const session = await openSession(await accessOf('patient'));
    rig.right.obey(({ headers }) => (headers['mcp-session-id'] === undefined ? undefined : NOT_FOUND));
    const names = toolNames(await session.request('tools/list'));
    expect(names).toEqual(['l_read_record', 'l_write_record']);
    expect((await session.call('right_read_record', { id: 'one' })).status).toBe(502);
    expect((await session.call('l_read_record', { id: 'one' })).status).toBe(200);
    rig.right.repent();
    expect((await session.call('right_read_record', { id: 'one' })).status).toBe(200);
  });

  it('[MRG-10] refuses what belongs to nobody in particular, and says why', async () => {
    const session = await openSession(rig.access);
    rig.forget();
    const params = { progressToken: 'p', progress: 1 };
    const note = { jsonrpc: '2.0', method: 'notifications/progress', params };
    const reply = await post(rig.access, JSON.stringify(note), sessionHeaders(session.id));
    // A notification is dropped; the record has the reason.
    expect([reply.status, reply.text]).toEqual([202, '']);
    // The gateway may be listing by itself again, because an earlier test made a backend unavailable.
    const methods = [...methodsAt(rig.left), ...methodsAt(rig.right)];
    expect(methods).not.toContain('notifications/progress');
  });

  it('[MRG-10] carries an array of its revision, each element to its member', async () => {
    const hello = {
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: {
        protocolVersion: '2025-03-26',
        capabilities: {},
        clientInfo: { name: 'old', version: '1' },
      },
    };
    const opened = await post(rig.access, JSON.stringify(hello));
    expect(resultOf(opened)['protocolVersion']).toBe('2025-03-26');
    const session = opened.headers.get('mcp-session-id') ?? '';
    const call = (id: number, name: string): JsonObject => ({
      ...{ jsonrpc: '2.0', id, method: 'tools/call' },
      params: { name, arguments: { id: 'x' } },
    });
    const array = JSON.stringify([call(1, 'l_read_record'), call(2, 'right_read_record')]);
    const reply = await post(rig.access, array, { 'mcp-session-id': session });
    expect(reply.messages.map(({ id }) => id)).toEqual([1, 2]);
    expect(rig.left.uses()).toHaveLength(1);
    expect(rig.right.uses()).toHaveLength(1);
  });
});

describe('[MRG-19] the places of a member', () => {
  it('are its own, whoever asks: by its path, by the endpoint, in an array', () =>
    withStarted(
      () =>
        startMergedRig({
          policies: { open: ALLOW_ALL },
          upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 1}'],
        }),
      async (small) => {
        const session = await openRawSession(small.access.url, {
          token: small.access.token ?? '',
          version: '2025-03-26',
        });
        small.left.obey(onMethod('tools/call', () => ({ kind: 'hold' })));
        const gone = new AbortController();
        const params = { name: 'read_record', arguments: { id: 'held' } };
        const own = { token: await small.gateway.token('left'), signal: gone.signal };
        const held = postStateless(small.gateway.url('left'), 'tools/call', params, own);
        await expect.poll(() => small.left.uses().length, PATIENT).toBe(1);
        const call = (id: number, name: string): JsonObject => ({
          ...{ jsonrpc: '2.0', id, method: 'tools/call' },
          params: { name, arguments: { id: 'x' } },
        });
        const array = JSON.stringify([call(1, 'l_read_record'), call(2, 'right_read_record')]);
        const reply = await post(small.access, array, session.headers);
        expect(reply.messages.map((message) => [message['id'], errorOf({ message })['code']])).toEqual([
          [1, 1503],
          [2, undefined],
        ]);
        const listed = await requestInSession(small.access, session.id ?? '', 'tools/list');
        expect(toolNames(listed)).toEqual(['right_read_record', 'right_write_record']);
        gone.abort();
        await expect(held).rejects.toThrow();
      },
    ));
});

describe('[MRG-11] a question of a member', () => {
  async function askedAt(method: string, params: JsonObject) {
    const { url, token = '' } = rig.access;
    const session = await openRawSession(url, { token, capabilities: ALL_QUESTIONS });
    rig.forget();
    return { session, ...(await session.ask(9, method, params)) };
  }

  it('comes with its answer, and what is answered reaches that member alone', async () => {
    rig.left.obey(onMethod('tools/call', (request) => askThenAnswer(request, [{ id: 'q', ...ROOTS }])));
    const { session, messages } = await askedAt('tools/call', CALL);
    const [question] = messages;
    expect(question).toMatchObject(ROOTS);
    const answer = { jsonrpc: '2.0', id: question?.['id'], result: { roots: [] } };
    const other = await openSession(rig.access);
    const stray = await post(rig.access, JSON.stringify(answer), sessionHeaders(other.id));
    expect(stray.status).toBe(400);
    const reply = await post(rig.access, JSON.stringify(answer), session.headers);
    expect(reply.status).toBe(202);
    await expect.poll(() => answersTo(rig.left).get('q'), PATIENT).toMatchObject({ id: 'q' });
    expect(answersTo(rig.right).size).toBe(0);
  });

  it('passes in the middle of a list, which then ends as the last event', async () => {
    const tools = { tools: [] };
    rig.right.obey(
      onMethod('tools/list', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [
          sseEvent({ jsonrpc: '2.0', id: 'q', ...ROOTS }),
          sseEvent({ jsonrpc: '2.0', id: request.id ?? 0, result: tools }),
        ],
        ending: 'end',
      })),
    );
    const { messages } = await askedAt('tools/list', {});
    expect(messages).toHaveLength(2);
    expect(messages[0]).toMatchObject(ROOTS);
    expect(toolNames({ message: messages[1] })).toEqual(['l_read_record', 'l_write_record']);
  });
});

describe('[MRG-11] a result of the stateless era that asks first', () => {
  const params = { ...CALL, _meta: { [CAPABILITIES]: { elicitation: { form: {} } } } };
  const requestedSchema = { type: 'object', properties: { who: { type: 'string' } } };
  const form = { mode: 'form', message: 'Who?', requestedSchema };

  it('is answered at the same member, whose state opens for nobody else', async () => {
    rig.left.obey(
      onMethod('tools/call', (request) => {
        const given = request.message?.['params'] as JsonObject;
        const result =
          given['requestState'] === undefined
            ? {
                resultType: 'input_required',
                inputRequests: { a: { method: 'elicitation/create', params: form } },
                requestState: 'its own',
              }
            : { resultType: 'complete', content: [{ type: 'text', text: given['requestState'] }] };
        return jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
      }),
    );
    const asked = resultOf(await requestStateless(rig.access, 'tools/call', params));
    expect(asked['inputRequests']).toMatchObject({ a: { method: 'elicitation/create' } });
    const answered = {
      ...params,
      requestState: asked['requestState'] ?? '',
      inputResponses: { a: { action: 'accept', content: { who: 'Ada' } } },
    };
    expect(firstTextOf(await requestStateless(rig.access, 'tools/call', answered))).toBe('its own');
    rig.forget();
    const elsewhere = { ...answered, name: 'right_read_record' };
    const refused = await requestStateless(rig.access, 'tools/call', elsewhere);
    expect(errorOf(refused)['code']).toBe(-32602);
    expect([...rig.left.uses(), ...rig.right.uses()]).toEqual([]);
  });
});

describe('[MRG-12] the stream of a session', () => {
  const log = (data: string): JsonObject => ({
    ...{ jsonrpc: '2.0', method: 'notifications/message' },
    params: { level: 'info', data },
  });
  const open = (session: string, more: Record<string, string> = {}): Promise<Response> =>
    fetch(rig.access.url, {
      headers: {
        ...GET,
        authorization: `Bearer ${rig.access.token}`,
        ...sessionHeaders(session),
        ...more,
      },
    });

  it('is one of all members, and goes on after an event at the member that it came from', async () => {
    const session = await openSession(rig.access);
    rig.left.obey(({ httpMethod }) => (httpMethod === 'GET' ? streamOf([log('left')]) : undefined));
    rig.right.obey(({ httpMethod }) => (httpMethod === 'GET' ? streamOf([log('right')]) : undefined));
    const response = await open(session.id);
    expect(response.status).toBe(200);
    const events = await readUntil(response, 2);
    expect(events.join()).toContain('"left"');
    expect(events.join()).toContain('"right"');
    await response.body?.cancel().catch(() => undefined);
    const ofRight = events.find((event) => event.includes('"right"')) ?? '';
    const id = /^id: (.+)$/m.exec(ofRight)?.[1] ?? '';
    rig.forget();
    const resumed = await open(session.id, { 'last-event-id': id });
    expect(resumed.status).toBe(200);
    await readUntil(resumed, 1);
    await expect
      .poll(() => rig.right.seen().map(({ headers }) => headers['last-event-id']), PATIENT)
      .toEqual(['event-0']);
    await expect
      .poll(() => rig.left.seen().map(({ headers }) => headers['last-event-id']), PATIENT)
      .toEqual([undefined]);
    await resumed.body?.cancel().catch(() => undefined);
    const other = await openSession(rig.access);
    expect((await open(other.id, { 'last-event-id': id })).status).toBe(404);
  });

  it('resumes the answer of a member that broke off, alone', async () => {
    const session = await openSession(rig.access);
    const priming = 'id: answer-0\nretry: 250\ndata: \n\n';
    const chunks = (text: string): Act => ({
      ...{ kind: 'chunks', contentType: 'text/event-stream', chunks: [text], ending: 'end' },
    });
    rig.left.obey(({ method, httpMethod }) => {
      if (method === 'tools/call') return chunks(priming);
      const result = { content: [{ type: 'text', text: 'late' }] };
      return httpMethod === 'GET' ? chunks(sseEvent({ jsonrpc: '2.0', id: 7, result })) : undefined;
    });
    const broken = await session.call('l_read_record', { id: 'one' });
    const id = /^id: (.+)$/m.exec(broken.text)?.[1] ?? '';
    rig.forget();
    const resumed = await readReply(await open(session.id, { 'last-event-id': id }));
    expect(firstTextOf(resumed)).toBe('late');
    expect(resumedAt(rig.left)).toEqual(['answer-0']);
    expect(resumedAt(rig.right)).toEqual([]);
  });

  it('opens though a member has none of its own, and ends with the session', async () => {
    const session = await openSession(rig.access);
    const response = await open(session.id);
    expect(response.status).toBe(200);
    const ended: Promise<Reply> = readReply(response);
    await session.end();
    expect((await ended).status).toBe(200);
  });
});
