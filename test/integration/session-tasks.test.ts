// Tasks of 2025-11-25 through the running gateway: wished for by clients, declared by servers, and judged by
// whatever way their results come. Source: MCP 2025-11-25, tasks.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ALLOW_ALL,
  expectNothingForwarded,
  expectRefusedLines,
  expectWithheldLines,
  UPSTREAM,
} from '../support/gateway.js';
import { jsonBody, onMethod, sseEvent } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  createTaskServer,
  initializeWithTasks,
  RELATED,
  SESSION_TASKS,
  sessionTaskOf,
  TASK_TOOLS,
  type TaskServer,
} from '../support/mcp-servers.js';
import { openRawSession, postRaw, type RawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { errorOf, type OpenSession, openSession, type Reply, resultOf } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const SECRET = ['sk', 'live', 'c0Ms4BtV9oZy6Nr1Qx5Df8Aj'].join('_');

let server: TaskServer;
let session: OpenSession;

function text(value: string): JsonObject {
  return { content: [{ type: 'text', text: value }] };
}

function related(id: string): JsonObject {
  return { _meta: { [RELATED]: { taskId: id } } };
}

/** Plays a server that declares these of tasks; `act` comes before. */
function play(act: (request: HostileRequest) => Act | undefined, tasks: JsonObject = SESSION_TASKS) {
  rig.upstream.obey((request) => {
    const own = act(request);
    if (own !== undefined) return own;
    if (request.method === 'initialize') return initializeWithTasks(request, tasks);
    if (request.httpMethod === 'DELETE' || request.method?.startsWith('notifications/') === true)
      return { kind: 'http', status: 202 };
    return server.order(request) ?? undefined;
  });
}

async function begin(from: OpenSession = session, name = 'talk', more: JsonObject = {}) {
  const params = { name, arguments: {}, task: { ttl: 60_000 }, ...more };
  const reply = await from.request('tools/call', params);
  const task = resultOf(reply)['task'] as JsonObject | undefined;
  if (typeof task?.['taskId'] !== 'string') throw new Error(`no task: ${reply.text}`);
  return task['taskId'];
}

/** Events in the answer to a request, the last of them its own. */
function streamOf(request: HostileRequest, before: readonly JsonObject[], outcome: JsonObject): Act {
  const own = { jsonrpc: '2.0', id: request.id ?? 0, ...outcome };
  const chunks = [...before.map((message) => ({ jsonrpc: '2.0', ...message })), own].map((message) =>
    sseEvent(message),
  );
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'end', paceMs: 20 };
}

async function expectNotFound(reply: Reply): Promise<void> {
  expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
  await expectRefusedLines(rig, reply, 'unknown-task');
}

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, questions: grantQuestions('elicitation: [form]') },
  prepare: (upstream) => upstream.offer(() => TASK_TOOLS),
});
beforeEach(async () => {
  server = createTaskServer();
  play(() => undefined);
  session = await openSession(rig.access);
  rig.upstream.forget();
});
afterEach(() => rig.upstream.forget());

describe('what is declared', () => {
  it('[TSK-05] is what the server declares, and nothing of its client', async () => {
    const opened = await openRawSession(rig.access.url, {
      token: rig.access.token ?? '',
      capabilities: { tasks: { list: {}, requests: { elicitation: { create: {} } } } },
    });
    expect(opened.opened.messages.at(-1)).toMatchObject({
      result: { capabilities: { tasks: SESSION_TASKS } },
    });
    const sent = rig.upstream.seen().find(({ method }) => method === 'initialize');
    expect(sent?.body).not.toContain('"tasks"');
  });

  it('[TSK-03] a session without it has no tasks: the wish is taken out, the methods are none', async () => {
    play(() => undefined, {});
    const plain = await openSession(rig.access);
    rig.upstream.obey(
      onMethod('tools/call', (request) => jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result: text('at once') })),
    );
    const params = { name: 'talk', arguments: {}, task: { ttl: 1 } };
    expect(resultOf(await plain.request('tools/call', params))).toEqual(text('at once'));
    expect(rig.upstream.uses().at(-1)?.message?.['params']).not.toHaveProperty('task');
    rig.upstream.forget();
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list']) {
      const reply = await plain.request(method, { taskId: 'x' });
      expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32601]);
      await expectRefusedLines(rig, reply, 'method-forbidden');
    }
    expectNothingForwarded(rig);
  });

  it('[TSK-03] a tool whose approved definition has no tasks is not called as one', async () => {
    const params = { name: 'read_record', arguments: { id: 'one' }, task: {} };
    const reply = await session.request('tools/call', params);
    expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32601]);
    await expectRefusedLines(rig, reply, 'method-forbidden');
    const odd = await session.request('tools/call', { name: 'talk', task: 'yes' });
    expect([odd.status, errorOf(odd)['code']]).toEqual([200, -32602]);
    expectNothingForwarded(rig);
  });

  it('[TSK-03] a task that nobody wished for is no answer', async () => {
    play((request) =>
      request.method === 'tools/call'
        ? jsonBody({
            jsonrpc: '2.0',
            id: request.id ?? 0,
            result: { ...text('x'), task: sessionTaskOf('up-9', {}) },
          })
        : undefined,
    );
    const reply = await session.call('talk');
    await expectWithheldLines(rig, reply, 'upstream-protocol');
    expect(reply.text).not.toContain('up-9');
  });
});

describe('a task', () => {
  it('[TSK-01] goes by the id that each side knows', async () => {
    const taskId = await begin();
    server.say('up-1', { statusMessage: `with ${SECRET}` });
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const reply = await session.request(method, { taskId });
      expect(resultOf(reply)).toMatchObject({ taskId, status: 'working' });
      expect(reply.text).not.toContain(SECRET);
      expect(reply.text).not.toContain('up-1');
      expect(rig.upstream.seen().at(-1)?.message?.['params']).toEqual({ taskId: 'up-1' });
    }
  });

  it('[TSK-01] its result says whose it is', async () => {
    const taskId = await begin();
    server.bring({ result: { ...text('done'), ...related('up-1') } });
    const reply = await session.request('tasks/result', { taskId });
    expect(resultOf(reply)).toEqual({ ...text('done'), ...related(taskId) });
    server.bring({ result: { ...text('done'), ...related('another') } });
    const other = await session.request('tasks/result', { taskId });
    expect(resultOf(other)).toEqual({ ...text('done'), _meta: {} });
  });

  it.each<[string, JsonObject]>([
    ['a result', { status: 'completed', result: { structuredContent: { sum: 'many' } } }],
    ['an error', { status: 'failed', error: { code: -1, message: 'broke' } }],
    ['questions', { status: 'input_required', inputRequests: { who: { method: 'roots/list', params: {} } } }],
  ])('[TSK-04] its status brings no content that is judged elsewhere: %s', async (_, state) => {
    const taskId = await begin(session, 'compute');
    server.say(server.begun.at(-1) ?? '', state);
    const reply = await session.request('tasks/get', { taskId });
    await expectWithheldLines(rig, reply, 'upstream-protocol');
    expect(reply.text).not.toMatch(/sum|broke|roots/);
  });

  it('[TSK-04, MCP-62] its result is judged as the answer of the call', async () => {
    const taskId = await begin();
    for (const outcome of [
      { result: text(`the key is ${SECRET}`) },
      { error: { code: -32603, message: `broke at ${SECRET}` } },
    ]) {
      server.bring(outcome);
      const reply = await session.request('tasks/result', { taskId });
      expect(reply.status).toBe(200);
      expect(reply.text).not.toContain(SECRET);
    }
    const schematic = await begin(session, 'compute');
    server.bring({ result: { structuredContent: { sum: 'many' } } });
    const withheld = await session.request('tasks/result', { taskId: schematic });
    expect(errorOf(withheld)['code']).toBe(1424);
    await expectWithheldLines(rig, withheld, 'result-invalid');
    server.bring({ result: { task: sessionTaskOf('up-5', {}) } });
    const again = await session.request('tasks/result', { taskId });
    await expectWithheldLines(rig, again, 'upstream-protocol');
  });

  it('[TSK-06] of a tool that is denied is unknown', async () => {
    const token = await rig.gateway.token(UPSTREAM, { sub: 'leaver' });
    const place = await openSession({ url: rig.access.url, token });
    const taskId = await begin(place);
    await rig.gateway.writePolicy(
      'deny',
      `version: 1
policy: deny
rules:
  - {id: d, effect: deny, who: {subjects: [leaver]}, what: {upstreams: ["*"], tools: [talk]}}
`,
    );
    await rig.gateway.reload();
    rig.upstream.forget();
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      const reply = await place.request(method, { taskId });
      expect(errorOf(reply)).toMatchObject({ code: -32602, message: 'Task not found' });
      await expectRefusedLines(rig, reply, 'denied-by-rule');
    }
    expectNothingForwarded(rig);
    const listed = await place.request('tasks/list');
    expect(resultOf(listed)).toEqual({ tasks: [] });
  });
});

describe('a rule that names uses of tasks', () => {
  it('[TSK-08] leaves a list without the tasks that may not be listed', async () => {
    const token = await rig.gateway.token(UPSTREAM, { sub: 'unlisted' });
    const place = await openSession({ url: rig.access.url, token });
    const taskId = await begin(place);
    await rig.gateway.writePolicy(
      'deny',
      `version: 1
policy: deny
rules:
  - {id: d, effect: deny, who: {subjects: [unlisted]}, what: {upstreams: ["*"], tasks: [list]}}
`,
    );
    await rig.gateway.reload();
    expect(resultOf(await place.request('tasks/list'))).toEqual({ tasks: [] });
    expect(resultOf(await place.request('tasks/get', { taskId }))['taskId']).toBe(taskId);
  });
});

describe('a list of tasks', () => {
  it('[TSK-08] shows those of its caller, under the ids that the caller has', async () => {
    const token = await rig.gateway.token(UPSTREAM, { sub: 'another' });
    const theirs = await openSession({ url: rig.access.url, token });
    server = createTaskServer('listed');
    const [mine, other] = [await begin(), await begin(theirs)];
    server.say('listed-1', { statusMessage: `with ${SECRET}` });
    const listed = await session.request('tasks/list');
    const tasks = resultOf(listed)['tasks'] as readonly JsonObject[];
    expect(tasks.map(({ taskId }) => taskId)).toEqual([mine]);
    expect(listed.text).not.toContain(SECRET);
    expect(listed.text).not.toContain('listed-');
    const others = resultOf(await theirs.request('tasks/list'))['tasks'] as readonly JsonObject[];
    expect(others.map(({ taskId }) => taskId)).toEqual([other]);
    await expectNotFound(await session.request('tasks/get', { taskId: other }));
  });
});

describe('how tasks stand', () => {
  it('[TSK-04] is one text to its reader: a secret in two of them is found', async () => {
    server = createTaskServer('split');
    await begin();
    await begin();
    const [head, tail] = [SECRET.slice(0, 16), SECRET.slice(16)];
    server.say('split-1', { statusMessage: head });
    server.say('split-2', { statusMessage: tail });
    const listed = await session.request('tasks/list');
    expect(resultOf(listed)['tasks']).toHaveLength(2);
    expect(listed.text).not.toContain(tail);
  });
});

describe('what is said of a task', () => {
  it('[TSK-09] reaches its caller under the id that the caller has, or nobody', async () => {
    const taskId = await begin(session, 'talk', { _meta: { progressToken: 'p' } });
    const status = (id: string, state: JsonObject) => ({
      method: 'notifications/tasks/status',
      params: sessionTaskOf(id, state),
    });
    const progress = (id: string, step: number, progressToken = 'p') => ({
      method: 'notifications/progress',
      params: { progressToken, progress: step, ...related(id) },
    });
    play((request) =>
      request.method === 'tasks/result'
        ? streamOf(
            request,
            [
              status('up-1', { statusMessage: `with ${SECRET}` }),
              status('up-77', {}),
              progress('up-1', 1),
              progress('up-1', 1, 'another'),
              progress('up-77', 2),
            ],
            { result: text('done') },
          )
        : undefined,
    );
    const reply = await session.request('tasks/result', { taskId });
    expect(reply.messages.map(({ method }) => method)).toEqual([
      'notifications/tasks/status',
      'notifications/progress',
      'notifications/progress',
      undefined,
    ]);
    expect(reply.messages[0]?.['params']).toMatchObject({ taskId });
    expect(reply.messages[1]?.['params']).toMatchObject(related(taskId));
    expect(reply.messages[2]?.['params']).toMatchObject({ _meta: {} });
    expect(reply.text).not.toContain(SECRET);
    expect(reply.text).not.toContain('up-');
  });

  it('[TSK-09] a question belongs to the task that its client knows, and so does its answer', async () => {
    const raw: RawSession = await openRawSession(rig.access.url, {
      token: rig.access.token ?? '',
      capabilities: ALL_QUESTIONS,
    });
    const created = await raw.ask(1, 'tools/call', { name: 'talk', task: {} });
    const { taskId } = resultOf({ message: created.messages.at(-1) })['task'] as { taskId: string };
    const question = {
      id: 'q1',
      method: 'elicitation/create',
      params: {
        message: 'Which colour?',
        requestedSchema: { type: 'object', properties: { colour: { type: 'string' } } },
        ...related('up-1'),
      },
    };
    play((request) =>
      request.method === 'tasks/result'
        ? streamOf(request, [question], { result: { ...text('done'), ...related('up-1') } })
        : undefined,
    );
    const { messages } = await raw.ask(2, 'tasks/result', { taskId });
    const [asked, own] = messages;
    expect(asked).toMatchObject({ method: 'elicitation/create', params: related(taskId) });
    expect(own).toMatchObject({ id: 2, result: related(taskId) });
    const answer = { action: 'accept', content: { colour: 'red' }, ...related(taskId) };
    await postRaw(rig.access.url, { jsonrpc: '2.0', id: asked?.['id'], result: answer }, { headers: raw.headers });
    const came = () => answersTo(rig.upstream).get('q1');
    await expect.poll(came, PATIENT).toBeDefined();
    expect(came()).toMatchObject({ result: related('up-1') });
    // A question is answered once: the forged answer is that of the next one.
    const again = await raw.ask(3, 'tasks/result', { taskId });
    const forged = {
      jsonrpc: '2.0',
      id: again.messages[0]?.['id'],
      result: { ...answer, ...related('forged') },
    };
    await postRaw(rig.access.url, forged, { headers: raw.headers });
    await expect.poll(came, PATIENT).toMatchObject({ result: related('') });
  });
});

describe('a resumed stream', () => {
  /** What the client gets on the stream that it resumes, after the first broke off behind an event. */
  async function resume(method: string, params: JsonObject, result: JsonObject): Promise<string> {
    play((request) => {
      if (request.method === method)
        return {
          kind: 'chunks',
          contentType: 'text/event-stream',
          chunks: ['id: e1\ndata:\n\n'],
          ending: 'destroy',
          paceMs: 20,
        };
      if (request.httpMethod !== 'GET') return undefined;
      const chunks = [sseEvent({ jsonrpc: '2.0', id: 7, result })];
      return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'end' };
    });
    const broken = await session.request(method, params);
    const event = /^id: (.+)$/m.exec(broken.text)?.[1];
    expect(event).toBeDefined();
    const resumed = await fetch(rig.access.url, {
      headers: {
        authorization: `Bearer ${rig.access.token}`,
        accept: 'text/event-stream',
        'mcp-session-id': session.id,
        'mcp-protocol-version': '2025-11-25',
        'last-event-id': event ?? '',
      },
    });
    return resumed.text();
  }
  const CALL = { name: 'talk', arguments: {} };
  const task = sessionTaskOf('up-7', { statusMessage: SECRET });

  it('[TSK-01] [TSK-04] brings the result of a task as it would have come', async () => {
    const taskId = await begin();
    const result = { ...text(SECRET), ...related('up-1') };
    const received = await resume('tasks/result', { taskId }, result);
    expect(received).toContain(taskId);
    expect(received).not.toContain(SECRET);
    expect(received).not.toContain('up-1');
  });

  it('[TSK-01] [TSK-04] brings the task that a call became, as its first stream would have', async () => {
    const received = await resume('tools/call', { ...CALL, task: { ttl: 60_000 } }, { task });
    expect(received).not.toContain('up-7');
    expect(received).not.toContain(SECRET);
    const taskId = /"taskId":"([^"]+)"/.exec(received)?.[1];
    const asked = await session.request('tasks/get', { taskId: taskId ?? '' });
    expect(resultOf(asked)).toMatchObject({ taskId, status: 'working' });
    expect(rig.upstream.seen().at(-1)?.message?.['params']).toEqual({ taskId: 'up-7' });
  });

  it('[TSK-03] brings no task that nobody requested', async () => {
    const received = await resume('tools/call', CALL, { task });
    expect(received).not.toContain('up-7');
    expect(received).toContain('"error"');
  });
});
