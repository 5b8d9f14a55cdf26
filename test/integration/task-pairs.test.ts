// Tasks where client and upstream speak different revisions: nobody declares them, and nothing is begun. A wish
// for one is recorded, and the call runs without; a tool that runs as a task alone is refused, and says why.
// Source: docs/reference/protocol.md#a-session-in-front-of-a-stateless-upstream;
// docs/reference/protocol.md#a-stateless-client-in-front-of-a-session-upstream; MCP 2025-11-25, tasks (tool-level
// negotiation, task support and handling).

import { afterEach, describe, expect, it } from 'vitest';
import { type AttackRig, expectNothingForwarded, expectRefusedLines, startRig } from '../support/gateway.js';
import { jsonBody, onlyIn, onMethod } from '../support/hostile-acts.js';
import type { Order } from '../support/hostile-upstream.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { askStateless, EXTENSION, initializeWithTasks, TASK_TOOLS, taskOf } from '../support/mcp-servers.js';
import { errorOf, openSession, requestStateless, resultOf } from '../support/wire-client.js';

let rig: AttackRig;
afterEach(() => rig?.close());

const TASK_CALL = { name: 'talk', arguments: {} };

describe('a stateless client before an upstream of sessions', () => {
  it('[TSK-05] sees no tasks, begins none, and has none', async () => {
    const only = onlyIn('sessions');
    rig = await startRig({
      prepare(upstream) {
        upstream.offer(() => TASK_TOOLS);
        upstream.obey(only);
      },
    });
    rig.upstream.obey((request) => {
      const { id = 0, method } = request;
      if (method === 'initialize') return only(request) ?? initializeWithTasks(request);
      if (method?.startsWith('notifications/') === true) return { kind: 'http', status: 202 };
      if (method !== 'tools/call') return only(request);
      const result = { content: [{ type: 'text', text: 'at once' }] };
      return only(request) ?? jsonBody({ jsonrpc: '2.0', id, result });
    });
    const discovered = resultOf(await requestStateless(rig.access, 'server/discover'));
    expect(discovered['capabilities']).not.toHaveProperty('extensions');
    expect(discovered['capabilities']).not.toHaveProperty('tasks');
    const called = await askStateless(rig.access, 'tools/call', { ...TASK_CALL, task: { ttl: 1 } });
    expect(resultOf(called)).toMatchObject({ content: [{ text: 'at once' }] });
    const sent = rig.upstream.seen().filter(({ method }) => method === 'tools/call');
    expect(sent.map(({ body }) => body.includes('"task"') || body.includes(EXTENSION))).toEqual([false]);
    rig.upstream.forget();
    const looked = await askStateless(rig.access, 'tasks/get', { taskId: 'up-1' });
    expect(errorOf(looked)).toMatchObject({ code: -32602, message: 'Task not found' });
    expectNothingForwarded(rig);
  });
});

describe('a client of sessions before a stateless upstream', () => {
  it('[TSK-05] sees no tasks, begins none, and gets none', async () => {
    const only = onlyIn('stateless');
    rig = await startRig({
      prepare(upstream) {
        upstream.offer(() => TASK_TOOLS);
        upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'at once' }] }));
        upstream.obey(only);
      },
    });
    const declared = { tools: {}, tasks: { requests: { tools: { call: {} } } } };
    rig.upstream.obey(
      (request) =>
        only(request) ??
        onMethod('server/discover', ({ id }) => {
          const capabilities = { ...declared, extensions: { [EXTENSION]: {} } };
          const cache = { ttlMs: 0, cacheScope: 'private' };
          const result = {
            resultType: 'complete',
            supportedVersions: ['2026-07-28'],
            capabilities,
            ...cache,
          };
          return jsonBody({ jsonrpc: '2.0', id: id ?? 0, result });
        })(request),
    );
    const session = await openSession(rig.access);
    expect(resultOf(session.reply)['capabilities']).toEqual({ tools: { listChanged: true } });
    const called = await session.request('tools/call', { ...TASK_CALL, task: { ttl: 1 } });
    expect(resultOf(called)).toMatchObject({ content: [{ text: 'at once' }] });
    const sent = rig.upstream.seen().filter(({ method }) => method === 'tools/call');
    expect(sent.map(({ body }) => body.includes('"task"') || body.includes(EXTENSION))).toEqual([false]);
    rig.upstream.forget();
    for (const method of ['tasks/get', 'tasks/list']) {
      const reply = await session.request(method, { taskId: 'x' });
      expect(errorOf(reply)['code']).toBe(-32601);
    }
    expectNothingForwarded(rig);
    rig.upstream.obey(
      (request) =>
        only(request) ??
        onMethod('tools/call', ({ id }) =>
          jsonBody({
            jsonrpc: '2.0',
            id: id ?? 0,
            result: { resultType: 'task', ...taskOf('up-9', {}) },
          }),
        )(request),
    );
    const reply = await session.call('talk');
    expect(errorOf(reply)['code']).toBe(-32603);
    expect(reply.text).not.toContain('up-9');
  });
});

const REQUIRED: JsonObject = {
  name: 'ponder',
  inputSchema: { type: 'object' },
  execution: { taskSupport: 'required' },
};
const PONDER = { name: 'ponder', arguments: {} };
const AT_ONCE = { content: [{ type: 'text', text: 'at once' }] };
const BOTH_SAY = /as a task.*not translated between protocol revisions/;

/** Sessions of a server that has tasks, or has not; plain calls are answered at once. */
function sessionServer(capabilities: JsonObject): Order {
  const only = onlyIn('sessions');
  return (request) => {
    const refused = only(request);
    if (refused !== undefined) return refused;
    const { id, method } = request;
    if (id === undefined) return { kind: 'http', status: request.httpMethod === 'GET' ? 405 : 202 };
    if (method === 'initialize') {
      const serverInfo = { name: 'tasks', version: '1' };
      const result = { protocolVersion: '2025-11-25', capabilities, serverInfo };
      return jsonBody({ jsonrpc: '2.0', id, result });
    }
    const result = method === 'tools/list' ? { tools: [...TASK_TOOLS, REQUIRED] } : AT_ONCE;
    return jsonBody({ jsonrpc: '2.0', id, result });
  };
}

async function startSessions(capabilities: JsonObject): Promise<void> {
  const order = sessionServer(capabilities);
  rig = await startRig({ prepare: (upstream) => upstream.obey(order) });
}

/** Paths of the wishes that were recorded with the newest outcome of a call. */
async function wishes(): Promise<readonly unknown[]> {
  const outcomes = async () =>
    (await rig.gateway.audit()).filter(
      (line) => line['type'] === 'mcp.outcome' && line['target']?.method === 'tools/call',
    );
  await expect.poll(async () => (await outcomes()).length).toBeGreaterThan(0);
  const findings = (await outcomes()).at(-1)?.['findings'] as readonly JsonObject[];
  return findings.filter(({ detector }) => detector === 'task-wish').map(({ path }) => path);
}

const DECLARED_TASKS = { tools: {}, tasks: { requests: { tools: { call: {} } } } };

describe('a tool that runs as a task alone', () => {
  it('[TSK-11] of a server of sessions is refused to a stateless client, and nothing is sent', async () => {
    await startSessions(DECLARED_TASKS);
    for (const ask of [askStateless, requestStateless]) {
      const reply = await ask(rig.access, 'tools/call', PONDER);
      expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
      expect(errorOf(reply)['message']).toMatch(BOTH_SAY);
      await expectRefusedLines(rig, reply, 'method-forbidden');
    }
    expectNothingForwarded(rig);
  });

  it('[TSK-11] of a server of sessions is refused to a client of HTTP+SSE', async () => {
    await startSessions(DECLARED_TASKS);
    const caller = await openChannelCaller(rig.access);
    const reply = await caller.request('tools/call', PONDER);
    expect(errorOf(reply)['code']).toBe(-32602);
    expect(errorOf(reply)['message']).toMatch(BOTH_SAY);
    expect(rig.upstream.uses()).toEqual([]);
    caller.channel.leave();
  });

  it('[TSK-11] is none where its server has not declared tasks', async () => {
    await startSessions({ tools: {} });
    const reply = await requestStateless(rig.access, 'tools/call', PONDER);
    expect(resultOf(reply)).toMatchObject(AT_ONCE);
  });

  it('[TSK-11] of a server of its own revision is called as its client wishes', async () => {
    await startSessions(DECLARED_TASKS);
    const session = await openSession(rig.access);
    expect(resultOf(await session.request('tools/call', PONDER))).toMatchObject(AT_ONCE);
  });

  it('[TSK-11] of a stateless server is refused to a client of sessions with the reason', async () => {
    const only = onlyIn('stateless');
    const demand = onMethod('tools/call', ({ id }) => {
      const requiredCapabilities = { extensions: { [EXTENSION]: {} } };
      const error = { code: -32021, message: 'No.', data: { requiredCapabilities } };
      return jsonBody({ jsonrpc: '2.0', id: id ?? 0, error }, 400);
    });
    rig = await startRig({
      prepare(upstream) {
        upstream.offer(() => TASK_TOOLS);
        upstream.obey((request) => only(request) ?? demand(request));
      },
    });
    const session = await openSession(rig.access);
    for (const params of [TASK_CALL, { ...TASK_CALL, task: {} }]) {
      const reply = await session.request('tools/call', params);
      expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32601]);
      expect(errorOf(reply)['message']).toMatch(BOTH_SAY);
    }
  });
});

describe('a wish that the server need not grant', () => {
  const EXTENSION_PATH = expect.stringMatching(/clientCapabilities\/extensions\//);

  it('[TSK-11] is recorded where the upstream is one of sessions, and the call runs', async () => {
    await startSessions(DECLARED_TASKS);
    const declared = await askStateless(rig.access, 'tools/call', TASK_CALL);
    expect(resultOf(declared)).toMatchObject(AT_ONCE);
    expect(await wishes()).toEqual([EXTENSION_PATH]);
    await requestStateless(rig.access, 'tools/call', { ...TASK_CALL, task: { ttl: 1 } });
    await expect.poll(wishes).toEqual(['/params/task']);
    await requestStateless(rig.access, 'tools/call', TASK_CALL);
    await expect.poll(wishes).toEqual([]);
  });

  it('[TSK-11] is recorded where the upstream is stateless, and the call runs', async () => {
    const only = onlyIn('stateless');
    rig = await startRig({
      prepare(upstream) {
        upstream.offer(() => TASK_TOOLS);
        upstream.answerCalls(() => AT_ONCE);
        upstream.obey(only);
      },
    });
    const session = await openSession(rig.access);
    const called = await session.request('tools/call', { ...TASK_CALL, task: { ttl: 1 } });
    expect(resultOf(called)).toMatchObject(AT_ONCE);
    expect(await wishes()).toEqual(['/params/task']);
    expect(rig.upstream.uses().map(({ body }) => body.includes('"task"'))).toEqual([false]);
    await session.request('tools/call', TASK_CALL);
    await expect.poll(wishes).toEqual([]);
  });

  it('[TSK-11] is not recorded where it is carried', async () => {
    await startSessions(DECLARED_TASKS);
    const session = await openSession(rig.access);
    await session.request('tools/call', { ...TASK_CALL, task: { ttl: 1 } });
    expect(await wishes()).toEqual([]);
    expect(rig.upstream.uses().map(({ body }) => body.includes('"task"'))).toEqual([true]);
  });
});
