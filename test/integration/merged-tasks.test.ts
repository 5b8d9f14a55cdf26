// Tasks at an endpoint of several upstreams, in both eras: each goes to the member that began it, for the caller
// that began it, and nowhere else.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { ALLOW_ALL } from '../support/gateway.js';
import { jsonBody } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  askStateless,
  createTaskServer,
  declaring,
  EXTENSION,
  SESSION_TASKS,
  TASK_TOOLS,
  type TaskServer,
} from '../support/mcp-servers.js';
import {
  type Access,
  callStateless,
  errorOf,
  openSession,
  requestStateless,
  resultOf,
} from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

let left: TaskServer;
let right: TaskServer;

/** A server that declares tasks in both eras, and has them. */
function serving(server: TaskServer) {
  return (request: HostileRequest) => {
    const capabilities = { tools: {}, tasks: SESSION_TASKS, extensions: { [EXTENSION]: {} } };
    const info = { name: 'tasks', version: '1' };
    const answer = (result: JsonObject) => jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, result });
    const params = request.message?.['params'] as JsonObject | undefined;
    if (request.method === 'initialize') {
      const protocolVersion = params?.['protocolVersion'] ?? '';
      return answer({ protocolVersion, capabilities, serverInfo: info });
    }
    if (request.method === 'server/discover')
      return answer({ resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities });
    return server.order(request);
  };
}

const rig = shared(() =>
  startMergedRig({
    policies: { open: ALLOW_ALL },
    prepare(one, other) {
      for (const upstream of [one, other]) upstream.offer(() => TASK_TOOLS);
    },
  }),
);
beforeAll(async () => {
  left = createTaskServer('of-left');
  right = createTaskServer('of-right');
  rig.left.obey(serving(left));
  rig.right.obey(serving(right));
});
afterEach(() => rig.forget());

async function accessOf(sub: string): Promise<Access> {
  return { url: rig.access.url, token: await rig.gateway.token('all', { sub }) };
}

describe('[MRG-21] a task of the stateless era at an endpoint', () => {
  async function begin(name: string): Promise<string> {
    const reply = await callStateless(rig.access, name, { id: 'one' }, declaring());
    return String(resultOf(reply)['taskId']);
  }

  it('is declared by the endpoint, and asked for at the member that began it', async () => {
    const discovered = resultOf(await requestStateless(rig.access, 'server/discover'));
    expect(discovered['capabilities']).toMatchObject({ extensions: { [EXTENSION]: {} } });
    const taskId = await begin('right_talk');
    rig.forget();
    const state = { status: 'completed', result: { content: [{ type: 'text', text: 'done' }] } };
    right.say('of-right-1', state);
    const reply = await askStateless(rig.access, 'tasks/get', { taskId });
    expect(resultOf(reply)).toMatchObject({ taskId, ...state });
    expect(rig.left.seen()).toEqual([]);
    expect(rig.right.seen().map(({ headers }) => headers['mcp-name'])).toEqual(['of-right-1']);
  });

  it('is unknown to others, and so is what nobody began', async () => {
    const taskId = await begin('l_talk');
    rig.forget();
    const refused = [
      await askStateless(await accessOf('thief'), 'tasks/get', { taskId }),
      await askStateless(rig.access, 'tasks/cancel', { taskId: `${taskId}A` }),
      await askStateless(rig.access, 'tasks/get', { taskId: 'of-left-1' }),
    ];
    for (const reply of refused) expect(errorOf(reply)['code']).toBe(-32602);
    expect([...rig.left.seen(), ...rig.right.seen()]).toEqual([]);
  });
});

describe('[MRG-21] a task of a session at an endpoint', () => {
  it('is begun, listed with those of other members, and cancelled where it is', async () => {
    const session = await openSession(rig.access);
    expect(resultOf(session.reply)['capabilities']).toMatchObject({ tasks: SESSION_TASKS });
    const begun: string[] = [];
    for (const name of ['l_talk', 'right_talk']) {
      const call = { name, arguments: { id: 'one' }, task: { ttl: 1000 } };
      const task = resultOf(await session.request('tools/call', call))['task'] as JsonObject;
      begun.push(String(task['taskId']));
    }
    const listed = resultOf(await session.request('tasks/list'))['tasks'] as JsonObject[];
    expect(listed.map(({ taskId }) => taskId)).toEqual(expect.arrayContaining(begun));
    rig.forget();
    const reply = await session.request('tasks/cancel', { taskId: begun[1] ?? '' });
    expect(resultOf(reply)).toMatchObject({ taskId: begun[1] });
    expect(rig.left.seen()).toEqual([]);
    expect(rig.right.seen().map(({ method }) => method)).toEqual(['tasks/cancel']);
  });
});
