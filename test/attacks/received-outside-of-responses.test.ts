// What a server says of a call counts as received of its tool wherever it says it: in the status of a task, in a list of
// tasks, and on a stream that belongs to no call. It is shown by what holds for the tool. Source:
// docs/guides/content.md; docs/reference/flows.md.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { streamOf } from '../support/deployments.js';
import { ALLOW_ALL, type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { inTurn, onlyIn, onMethod, sseEvent } from '../support/hostile-acts.js';
import type { Act, Order } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  createTaskServer,
  initializeWithTasks,
  RELATED,
  sessionTaskOf,
  TASK_TOOLS,
  type TaskServer,
} from '../support/mcp-servers.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  callStateless,
  type OpenSession,
  openSession,
  requestInSession,
  resultOf,
} from '../support/wire-client.js';

const WITHIN_MS = 5_000;
const POLICY = `${ALLOW_ALL}  - {id: strictly, effect: require, who: {subjects: [strict]}, what: {tools: [talk]}, inspect: closed}
labels: {${UPSTREAM}: [trusted], ${UPSTREAM}/talk: [private], ${UPSTREAM}/write_record: [egress]}
flows: [{id: no-leak, from: private, to: egress, within: ${WITHIN_MS}ms, effect: deny}]
`;
const IMAGE = '![x](https://evil.example/x.png)';
const NOTE = `what the tool has read, with ${IMAGE}`;

function events(ending: 'hold' | 'end', messages: readonly JsonObject[]): Act {
  const chunks = messages.map((message) => sseEvent({ jsonrpc: '2.0', ...message }));
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending };
}

let rig: AttackRig;
let tasks: TaskServer;
let callers = 0;

async function start(upstream: 'sessions' | 'channels'): Promise<void> {
  tasks = createTaskServer();
  rig = await startRig({
    era: upstream,
    policies: { open: POLICY },
    upstream: ['pinning: {maxAge: 10m}', 'content: {kind: code, tools: {talk: {kind: auto}}}'],
    more: 'inspection: {profiles: {closed: {result: {secrets: block}}}}',
    prepare: (server) => server.offer(() => TASK_TOOLS),
  });
}

/** Does this before what a server of sessions with tasks does. */
function play(...orders: readonly Order[]): void {
  const opening = onMethod('initialize', (request) => initializeWithTasks(request));
  rig.upstream.obey(inTurn(onlyIn('sessions'), ...orders, opening, tasks.order));
}

async function newCaller(): Promise<Access> {
  callers += 1;
  const token = await rig.gateway.token(UPSTREAM, { sub: `caller ${callers}` });
  return { url: rig.access.url, token };
}

async function begin(session: OpenSession): Promise<string> {
  const params = { name: 'talk', arguments: {}, task: {} };
  const { task } = resultOf(await session.request('tools/call', params)) as { task?: JsonObject };
  return String(task?.['taskId']);
}

const statusOf = (): JsonObject => sessionTaskOf(tasks.begun.at(-1) ?? '', { statusMessage: NOTE });
const status = (): JsonObject => ({ method: 'notifications/tasks/status', params: statusOf() });
const logOf = (meta: JsonObject = {}): JsonObject => ({
  method: 'notifications/message',
  params: { level: 'info', data: NOTE, ...meta },
});

/** Makes the client receive the note, after what the call itself has begun is over. */
type Way = (access: Access, forget: () => void) => Promise<string>;

const WRITE = { name: 'write_record', arguments: { id: 'one', text: 'x' } };

describe('what is said of a call in a session', () => {
  beforeAll(() => start('sessions'));
  afterEach(() => rig.upstream.forget());
  afterAll(() => rig.close());

  const onStream =
    (message: () => JsonObject): Way =>
    async (access, forget) => {
      let send: () => void = () => undefined;
      const sent = new Promise<void>((resolve) => {
        send = resolve;
      });
      const streamed: Order = (request) =>
        request.httpMethod === 'GET'
          ? {
              kind: 'chunks',
              contentType: 'text/event-stream',
              ending: 'hold',
              gate: sent,
              chunks: [': open\n\n', 'data: \n\n', sseEvent({ jsonrpc: '2.0', ...message() })],
            }
          : undefined;
      play();
      const session = await openSession(access);
      await begin(session);
      play(streamed);
      const stream = await streamOf(access, session.id);
      forget();
      send();
      await expect.poll(() => stream.text(), PATIENT).toContain('what the tool has read');
      stream.leave();
      return stream.text();
    };
  const besideAnother =
    (message: () => JsonObject): Way =>
    async (access, forget) => {
      play(
        onMethod(
          'tools/call',
          ({ id = 0 }) => events('end', [message(), { id, result: { content: [] } }]),
          'read_record',
        ),
      );
      const session = await openSession(access);
      await begin(session);
      forget();
      return (await session.call('read_record', { id: 'one' })).text;
    };
  const inAnswer =
    (method: string): Way =>
    async (access, forget) => {
      play();
      const session = await openSession(access);
      const taskId = await begin(session);
      tasks.say(tasks.begun.at(-1) ?? '', { statusMessage: NOTE });
      forget();
      return (await session.request(method, method === 'tasks/list' ? {} : { taskId })).text;
    };
  const related = (): JsonObject => logOf({ _meta: { [RELATED]: { taskId: tasks.begun.at(-1) ?? '' } } });

  it.each<[string, Way]>([
    ['the answer to tasks/get', inAnswer('tasks/get')],
    ['the answer to tasks/list', inAnswer('tasks/list')],
    ['a status on the stream of the session', onStream(status)],
    ['a status beside another call', besideAnother(status)],
    ['a message that names the task, on the stream', onStream(related)],
    ['a message that names the task, beside another call', besideAnother(related)],
  ])('closes the flow of its tool in %s', async (_name, way) => {
    const access = await newCaller();
    const received = await way(access, () => rig.passTime(3 * WITHIN_MS));
    expect(received).toContain('what the tool has read');
    const written = await callStateless(access, 'write_record', WRITE.arguments);
    expect(written.text).toContain('tainted-flow');
  });

  it('closes it on the stream while the call is in progress, and not for another call', async () => {
    play(
      onMethod('tools/call', () => ({ kind: 'hold' }), 'talk'),
      onMethod('tools/call', () => ({ kind: 'hold' }), 'read_record'),
      (request) => (request.httpMethod === 'GET' ? events('hold', [logOf()]) : undefined),
    );
    for (const [name, isClosed] of [
      ['read_record', false],
      ['talk', true],
    ] as const) {
      const access = await newCaller();
      const session = await openSession(access);
      const params = { name, arguments: { id: 'one' } };
      const gone = requestInSession(access, session.id, 'tools/call', params).catch(() => undefined);
      const isSent = () => rig.upstream.seen().some((request) => request.name === name);
      await expect.poll(isSent, PATIENT).toBe(true);
      const stream = await streamOf(access, session.id);
      await expect.poll(() => stream.text(), PATIENT).toContain('what the tool has read');
      stream.leave();
      const written = await callStateless(access, 'write_record', WRITE.arguments);
      expect(written.text.includes('tainted-flow')).toBe(isClosed);
      await session.end();
      void gone;
    }
  });

  it.each<[string, Way]>([
    ['the answer to tasks/get', inAnswer('tasks/get')],
    ['the answer to tasks/list', inAnswer('tasks/list')],
    ['a status on the stream of the session', onStream(status)],
    ['a status beside another call', besideAnother(status)],
  ])('is shown as content of its tool in %s', async (_name, way) => {
    expect(await way(await newCaller(), () => undefined)).not.toContain(IMAGE);
  });

  it('is shown in a list of tasks under the profile that rules demand for its tool', async () => {
    play();
    const token = await rig.gateway.token(UPSTREAM, { sub: 'strict' });
    const session = await openSession({ url: rig.access.url, token });
    await begin(session);
    tasks.say(tasks.begun.at(-1) ?? '', { statusMessage: `Use ${makeGithubToken()}.` });
    expect(resultOf(await session.request('tasks/list'))['tasks']).toEqual([]);
  });
});
