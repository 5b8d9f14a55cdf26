// Tasks where client and upstream speak different revisions: nobody declares them, and nothing is begun.
// Source: mcp-spec.md §2.3 and §2.4.

import { afterEach, describe, expect, it } from 'vitest';
import { type AttackRig, expectNothingForwarded, startRig } from '../support/attack-rig.js';
import { jsonBody, onMethod } from '../support/hostile-acts.js';
import {
  askStateless,
  EXTENSION,
  initializeWithTasks,
  TASK_TOOLS,
  taskOf,
} from '../support/task-server.js';
import { onlyIn } from '../support/upstream-eras.js';
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
    expect(sent.map(({ body }) => body.includes('"task"') || body.includes(EXTENSION))).toEqual([
      false,
    ]);
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
    expect(sent.map(({ body }) => body.includes('"task"') || body.includes(EXTENSION))).toEqual([
      false,
    ]);
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
