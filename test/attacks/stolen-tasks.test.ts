// docs/reference/attacks.md case 81: the id of a task of one caller, used by another, changed, from elsewhere or too
// late. All of them are one answer, and the upstream sees nothing.
// Source: the Tasks extension (error handling); MCP 2025-11-25, tasks (security); docs/reference/attacks.md case 81.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startTwoUpstreams, type TwoUpstreams } from '../support/deployments.js';
import { decisionOf, expectNothingForwarded, expectRefusedLines, UPSTREAM } from '../support/gateway.js';
import {
  askStateless,
  beginStateless,
  createTaskServer,
  declaring,
  initializeWithTasks,
  TASK_TOOLS,
} from '../support/mcp-servers.js';
import { type Access, errorOf, openSession, type Reply, requestStateless, resultOf } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

/** A task is known for so long after the server has let it go. */
const TASK_GRACE_MS = 60 * 60 * 1000;
const UPDATE = { inputResponses: {} };
const METHODS: readonly (readonly [string, object])[] = [
  ['tasks/get', {}],
  ['tasks/update', UPDATE],
  ['tasks/cancel', {}],
];

let other: Access;

/** An answer without what differs from request to request. */
function shapeOf(reply: Reply): string {
  return `${reply.status} ${reply.text.replace(decisionOf(reply).id, 'DECISION')}`;
}

function changed(id: string): string {
  const at = Math.floor(id.length / 2);
  return id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1);
}

const rig = sharedGateway({ prepare: (upstream) => upstream.offer(() => TASK_TOOLS) });
beforeAll(async () => {
  other = {
    url: rig.access.url,
    token: await rig.gateway.token(UPSTREAM, { sub: 'somebody-else' }),
  };
});
afterEach(() => rig.upstream.forget());

describe('in 2026', () => {
  it.each(METHODS)('[TSK-02, MCP-61] another caller has no such task: %s', async (method, more) => {
    const server = createTaskServer();
    rig.upstream.obey(server.order);
    const taskId = await beginStateless(rig.access);
    rig.upstream.forget();
    const stolen = await askStateless(other, method, { taskId, ...more });
    expect([stolen.status, errorOf(stolen)['code']]).toEqual([200, -32602]);
    expect(errorOf(stolen)['message']).toBe('Task not found');
    const [decision] = await expectRefusedLines(rig, stolen, 'unknown-task');
    expect(decision?.['target']).toMatchObject({ method, kind: 'task', name: null });
    for (const wrong of [changed(taskId), 'up-1', 'x', taskId.slice(0, -4)]) {
      const forged = await askStateless(rig.access, method, { taskId: wrong, ...more });
      expect(shapeOf(forged)).toBe(shapeOf(stolen));
    }
    expectNothingForwarded(rig);
    const good = await askStateless(rig.access, method, { taskId, ...more });
    expect(resultOf(good)['resultType']).toBe('complete');
    expect(rig.upstream.seen().at(-1)?.headers['mcp-name']).toBe('up-1');
  });

  it('[TSK-02] nor may another client of the same subject look', async () => {
    const server = createTaskServer();
    rig.upstream.obey(server.order);
    const taskId = await beginStateless(rig.access);
    rig.upstream.forget();
    const token = await rig.gateway.token(UPSTREAM, { client_id: 'another-client' });
    const reply = await askStateless({ url: rig.access.url, token }, 'tasks/get', { taskId });
    expect(errorOf(reply)['code']).toBe(-32602);
    expectNothingForwarded(rig);
  });

  it('[TSK-02] a header that names another task than the body is a mismatch', async () => {
    const server = createTaskServer();
    rig.upstream.obey(server.order);
    const [taskId, second] = [await beginStateless(rig.access), await beginStateless(rig.access)];
    rig.upstream.forget();
    const headers = { 'mcp-name': second };
    const reply = await requestStateless(rig.access, 'tasks/get', { taskId, _meta: declaring() }, { headers });
    expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32020]);
    expectNothingForwarded(rig);
  });

  it('[TSK-03] a client that has not declared tasks is told which capability it lacks', async () => {
    const server = createTaskServer();
    rig.upstream.obey(server.order);
    const taskId = await beginStateless(rig.access);
    rig.upstream.forget();
    for (const [method, more] of METHODS) {
      const reply = await requestStateless(rig.access, method, { taskId, ...more });
      expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32021]);
      expect(errorOf(reply)['data']).toMatchObject({
        requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
      });
    }
    const notifications = { taskIds: [taskId] };
    const listening = await requestStateless(rig.access, 'subscriptions/listen', { notifications });
    expect([listening.status, errorOf(listening)['code']]).toEqual([400, -32021]);
    expectNothingForwarded(rig);
  });
});

describe('in a session', () => {
  it.each(['tasks/get', 'tasks/result', 'tasks/cancel'])(
    '[TSK-02] another caller, and another era, has no such task: %s',
    async (method) => {
      const server = createTaskServer('mine');
      rig.upstream.obey((request) =>
        request.method === 'initialize' ? initializeWithTasks(request) : server.order(request),
      );
      const session = await openSession(rig.access);
      const called = await session.request('tools/call', { name: 'talk', task: {} });
      const { taskId } = resultOf(called)['task'] as { taskId: string };
      expect(taskId).not.toContain('mine');
      const stateless = await beginStateless(rig.access);
      const theirs = await openSession(other);
      rig.upstream.forget();
      const stolen = await theirs.request(method, { taskId });
      expect([stolen.status, errorOf(stolen)['code']]).toEqual([200, -32602]);
      await expectRefusedLines(rig, stolen, 'unknown-task');
      for (const wrong of [changed(taskId), 'mine-1', stateless])
        expect(shapeOf(await session.request(method, { taskId: wrong }))).toBe(shapeOf(stolen));
      const crossed = await askStateless(rig.access, 'tasks/get', { taskId });
      expect(errorOf(crossed)['code']).toBe(-32602);
      expectNothingForwarded(rig);
      await session.request(method, { taskId });
      expect(rig.upstream.seen().at(-1)?.message?.['params']).toMatchObject({ taskId: 'mine-1' });
    },
  );
});

describe('too late', () => {
  it('[TSK-02] a task is unknown like any other, whatever its server still knows', async () => {
    let lateMs = 0;
    await withGateway(
      {
        prepare: (upstream) => upstream.offer(() => TASK_TOOLS),
        upstream: ['authentication: none', 'pinning: {maxAge: 24h}'],
        now: () => Date.now() + lateMs,
      },
      async (late) => {
        const anyone = late.as(undefined);
        late.upstream.obey(createTaskServer().order);
        const taskId = await beginStateless(anyone);
        lateMs = 60_000 + TASK_GRACE_MS - 30_000;
        expect(resultOf(await askStateless(anyone, 'tasks/get', { taskId }))['taskId']).toBe(taskId);
        lateMs += 60_000;
        late.upstream.forget();
        const reply = await askStateless(anyone, 'tasks/get', { taskId });
        expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
        await expectRefusedLines(late, reply, 'unknown-task');
        expect(late.upstream.seen().some(({ method }) => method === 'tasks/get')).toBe(false);
      },
    );
  });
});

describe('of another upstream', () => {
  let both: TwoUpstreams | undefined;
  afterAll(() => both?.close());

  it('[TSK-02] a task is unknown, though the caller is the same', async () => {
    both = await startTwoUpstreams((upstream) => {
      upstream.offer(() => TASK_TOOLS);
      upstream.obey(createTaskServer().order);
    });
    const { one, two } = both;
    const taskId = await beginStateless(one);
    expect(resultOf(await askStateless(one, 'tasks/get', { taskId }))['taskId']).toBe(taskId);
    const reply = await askStateless(two, 'tasks/get', { taskId });
    expect([reply.status, errorOf(reply)['code']]).toEqual([200, -32602]);
    expect(both.seenByTwo().some(({ method }) => method === 'tasks/get')).toBe(false);
  });
});
