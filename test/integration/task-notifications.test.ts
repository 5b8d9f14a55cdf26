// What a server says of tasks on the stream of a subscription, through the running gateway.
// Source: the Tasks extension of 2026-07-28, task status notifications.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL, UPSTREAM } from '../support/gateway.js';
import { sseEvent } from '../support/hostile-acts.js';
import type { Act } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { beginStateless, createTaskServer, declaring, TASK_TOOLS, taskOf } from '../support/mcp-servers.js';
import { type Access, callStateless, type EventReader, openEvents } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const ID = 'io.modelcontextprotocol/subscriptionId';
const LISTEN = 'subscriptions/listen';
const NOTIFICATION = 'notifications/tasks';
const SECRET = ['sk', 'live', 'b9Lr3AsU8nYx5Mq0Pw4Ce7Zi'].join('_');

const opened: EventReader[] = [];

function text(value: string): JsonObject {
  return { content: [{ type: 'text', text: value }] };
}

function notificationOf(id: string, state: JsonObject): JsonObject {
  return {
    jsonrpc: '2.0',
    method: NOTIFICATION,
    params: { ...taskOf(id, state), _meta: { [ID]: 'listen-1' } },
  };
}

/** Acknowledges what it was asked for and says these things. */
function sendOnListen(messages: readonly JsonObject[]): void {
  const { order } = createTaskServer();
  rig.upstream.obey((request): Act | undefined => {
    if (request.method !== LISTEN) return order(request);
    const params = request.message?.['params'] as JsonObject;
    const first = {
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: params['notifications'] ?? {}, _meta: { [ID]: 'listen-1' } },
    };
    const chunks = [first, ...messages].map((message) => sseEvent(message));
    return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending: 'hold' };
  });
}

async function listen(taskIds: readonly string[], access: Access = rig.access): Promise<EventReader> {
  const reader = await openEvents(access, LISTEN, {
    notifications: { taskIds },
    _meta: declaring({ elicitation: { form: {} } }),
  });
  opened.push(reader);
  return reader;
}

async function begin(access: Access = rig.access, name = 'talk'): Promise<string> {
  return beginStateless(access, name);
}

const rig = sharedGateway({
  policies: { open: ALLOW_ALL },
  prepare: (upstream) => upstream.offer(() => TASK_TOOLS),
});
beforeEach(() => {
  rig.upstream.offer(() => TASK_TOOLS);
  sendOnListen([]);
});
afterEach(() => {
  for (const reader of opened.splice(0)) reader.leave();
  rig.upstream.forget();
});

function sentFilter(): unknown {
  const sent = rig.upstream.seen().find(({ method }) => method === LISTEN)?.message;
  return (sent?.['params'] as JsonObject | undefined)?.['notifications'];
}

describe('a subscription to tasks', () => {
  it('[TSK-09] names to each side the ids that it knows, and only tasks of its caller', async () => {
    const taskId = await begin();
    const token = await rig.gateway.token(UPSTREAM, { sub: 'another' });
    const theirs = await begin({ url: rig.access.url, token });
    sendOnListen([]);
    const reader = await listen([taskId, theirs, 'up-7']);
    const acknowledged = await reader.next();
    expect(acknowledged?.['params']).toMatchObject({ notifications: { taskIds: [taskId] } });
    expect(sentFilter()).toEqual({ taskIds: ['up-1'] });
  });

  it('[TSK-09] tells of them under those ids, judged as the answer to a look', async () => {
    const taskId = await begin();
    sendOnListen([
      notificationOf('up-1', { statusMessage: `with ${SECRET}` }),
      notificationOf('up-2', { status: 'completed', result: text('of nobody') }),
      { ...notificationOf('up-1', {}), params: taskOf('up-1', { statusMessage: 'untagged' }) },
      notificationOf('up-1', { status: 'working', result: text('early') }),
      notificationOf('up-1', { status: 'completed', result: text(`done with ${SECRET}`) }),
    ]);
    const reader = await listen([taskId]);
    await reader.next();
    const [first, second] = [await reader.next(), await reader.next()];
    expect(first?.['params']).toMatchObject({ taskId, status: 'working' });
    expect(second?.['params']).toMatchObject({ taskId, status: 'completed' });
    expect(JSON.stringify([first, second])).not.toContain(SECRET);
    expect(JSON.stringify([first, second])).not.toContain('up-1');
  });

  it('[TSK-09] withholds a result that does not satisfy its schema, and a question that no rule grants', async () => {
    const taskId = await begin(rig.access, 'compute');
    const question = {
      method: 'elicitation/create',
      params: { message: 'x', requestedSchema: { type: 'object', properties: {} } },
    };
    sendOnListen([
      notificationOf('up-1', { status: 'completed', result: { structuredContent: { sum: 'x' } } }),
      notificationOf('up-1', { status: 'input_required', inputRequests: { a: question } }),
      notificationOf('up-1', { status: 'completed', result: { structuredContent: { sum: 1 } } }),
    ]);
    const reader = await listen([taskId]);
    await reader.next();
    const received = await reader.next();
    expect(received?.['params']).toMatchObject({
      taskId,
      result: { structuredContent: { sum: 1 } },
    });
  });

  it('[TSK-09] ends where its caller may have to do with none of them any more', async () => {
    const token = await rig.gateway.token(UPSTREAM, { sub: 'leaver' });
    const access = { url: rig.access.url, token };
    const taskId = await begin(access);
    sendOnListen([]);
    const reader = await listen([taskId], access);
    await reader.next();
    await rig.gateway.writePolicy(
      'deny',
      `version: 1
policy: deny
rules:
  - {id: d, effect: deny, who: {subjects: [leaver]}, what: {upstreams: ["*"], tools: [talk]}}
`,
    );
    await rig.gateway.reload();
    const farewell = await reader.next();
    expect(farewell).toMatchObject({ id: 'listen-1' });
    expect(await reader.next()).toBeUndefined();
  });

  it('[TSK-09] a notice of a task elsewhere than on such a stream is dropped', async () => {
    const taskId = await begin();
    expect(taskId).toBeDefined();
    rig.upstream.obey((request) =>
      request.method === 'tools/call'
        ? {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: [
              sseEvent(notificationOf('up-1', { status: 'completed', result: text('slipped') })),
              sseEvent({
                jsonrpc: '2.0',
                id: request.id ?? 0,
                result: { resultType: 'complete', ...text('the answer') },
              }),
            ],
            ending: 'end',
          }
        : undefined,
    );
    const reply = await callStateless(rig.access, 'talk', {}, declaring());
    expect(reply.text).not.toContain('slipped');
    expect(reply.text).toContain('the answer');
  });
});
