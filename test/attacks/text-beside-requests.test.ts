// A caller that has received untrusted text must not bring it into a sink beside what a request is about: in `_meta`, in
// what its client says of itself, as the reason of a cancellation or as a header. Requests about no item are what every
// client sends as it connects and while it waits, so they go on without such text.

import { describe, expect, it } from 'vitest';
import { connectIn, ERAS, type EraCaller } from '../support/eras.js';
import { ALLOW_ALL, decisionOf, UPSTREAM } from '../support/gateway.js';
import { onMethod } from '../support/hostile-acts.js';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  askStateless,
  beginStateless,
  createTaskServer,
  EXTENSION,
  initializeWithTasks,
  TASK_TOOLS,
} from '../support/mcp-servers.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  callStateless,
  openEvents,
  openSession,
  post,
  type Reply,
  requestStateless,
  resultOf,
  SESSION_VERSION,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const TEXT = 'what-was-read-elsewhere';
const META: JsonObject = {
  _meta: { 'com.example/note': TEXT, baggage: TEXT, progressToken: 7 },
};
/** A stateless client says of itself with each request who it is. */
const STATELESS_META: JsonObject = {
  _meta: {
    ...(META['_meta'] as JsonObject),
    'io.modelcontextprotocol/clientInfo': { name: TEXT, version: TEXT, title: TEXT },
  },
};
const CAPABILITIES: JsonObject = {
  experimental: { [TEXT]: { note: TEXT } },
  roots: { listChanged: true, note: TEXT },
  vendor: TEXT,
};
const CLIENT_INFO = { name: TEXT, version: TEXT, websiteUrl: `https://x.example/${TEXT}` };
const POLICY = `${ALLOW_ALL}labels: {${UPSTREAM}/write_record: [egress, trusted], ${UPSTREAM}/talk: [egress, trusted]}
flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]
`;
const LISTS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];

const rig = sharedGateway(() => {
  const tasks = createTaskServer();
  return {
    policies: { open: POLICY },
    prepare(upstream: HostileUpstream) {
      upstream.offer(() => TASK_TOOLS);
      upstream.obey(tasks.order);
    },
  };
});

const as = async (sub: string): Promise<Access> => rig.as(await rig.gateway.token(UPSTREAM, { sub }));
const received = (): string =>
  rig.upstream
    .seen()
    .map(({ body, rawHeaders }) => body + JSON.stringify(rawHeaders))
    .join('\n');
const taint = async (access: Access): Promise<void> => {
  expect((await callStateless(access, 'read_record', { id: 'one' })).status).toBe(200);
  rig.upstream.forget();
};
const isAnswered = ({ status, text }: Reply): boolean =>
  status === 200 && !text.includes('tainted-flow') && !text.includes('store-unavailable');

describe.each(ERAS)('a client of %s', (era) => {
  const methods = [...LISTS, ...(era === 'stateless' ? ['server/discover'] : ['ping', 'logging/setLevel'])];
  const meta = era === 'stateless' ? STATELESS_META : META;
  const ask = async (caller: EraCaller): Promise<readonly Reply[]> => {
    const replies: Reply[] = [];
    for (const method of methods) replies.push(await caller.request(method, { ...meta, level: 'info' }));
    return replies;
  };

  it('sends the text beside a request about no item only while no flow closes the sink', async () => {
    const access = await as(`list ${era}`);
    const caller = await connectIn(era, access);
    const before = await ask(caller);
    expect(received().split(TEXT).length).toBeGreaterThan(methods.length);
    await taint(access);
    const after = await ask(caller);
    caller.leave();
    expect(after.map(({ status }) => status)).toEqual(before.map(({ status }) => status));
    expect(after.every(isAnswered)).toBe(true);
    expect(rig.upstream.seen().map(({ method }) => method)).toEqual(
      expect.arrayContaining(methods.filter((method) => method !== 'logging/setLevel')),
    );
    expect(received()).not.toContain(TEXT);
  });
});

describe('once a flow closes the sink', () => {
  it('opens sessions without what the client says of itself', async () => {
    const access = await as('handshake');
    await taint(access);
    const params = {
      protocolVersion: SESSION_VERSION,
      capabilities: CAPABILITIES,
      clientInfo: CLIENT_INFO,
      ...META,
    };
    const message = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
    const reply = await post(access, JSON.stringify(message));
    expect([reply.status, reply.headers.get('mcp-session-id')]).toEqual([200, expect.anything()]);
    expect(received()).toContain('"initialize"');
    expect(received()).not.toContain(TEXT);
  });

  it('asks of tasks and of subscriptions without it, and refuses what is sent to the tool', async () => {
    const access = await as('tasks');
    const taskId = await beginStateless(access);
    await taint(access);
    const declared = { ...CAPABILITIES, extensions: { [EXTENSION]: { note: TEXT } } };
    const meta = { 'io.modelcontextprotocol/clientCapabilities': declared };
    const beside = { _meta: { ...(STATELESS_META['_meta'] as JsonObject), ...meta } };
    for (const method of ['tasks/get', 'tasks/cancel'])
      expect(isAnswered(await requestStateless(access, method, { taskId, ...beside }))).toBe(true);
    const notifications = { toolsListChanged: true, taskIds: [taskId] };
    const listening = { notifications, ...beside };
    (await openEvents(access, 'subscriptions/listen', listening)).leave();
    const inputResponses = { note: { action: 'accept', content: { note: TEXT } } };
    const update = await askStateless(access, 'tasks/update', { taskId, inputResponses });
    expect(decisionOf(update).reason).toBe('tainted-flow');
    expect(received()).toContain('"subscriptions/listen"');
    expect(received()).not.toContain(TEXT);
  });

  it('asks of tasks of a session without it, and takes no task id that it was not given', async () => {
    const access = await as('tasks of a session');
    rig.upstream.obeyOnce(onMethod('initialize', (request) => initializeWithTasks(request)));
    const session = await openSession(access);
    const call = { name: 'talk', arguments: { id: 'one' }, task: {} };
    const { task } = resultOf(await session.request('tools/call', call));
    const { taskId = '' } = task as JsonObject;
    await taint(access);
    const beside = { reason: TEXT, ...META };
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list'])
      expect(isAnswered(await session.request(method, { taskId, ...beside }))).toBe(true);
    expect(received()).toContain('"tasks/result"');
    const related = { 'io.modelcontextprotocol/related-task': { taskId: TEXT, note: TEXT } };
    expect(isAnswered(await session.request('ping', { _meta: related }))).toBe(true);
    expect(received()).not.toContain(TEXT);
    rig.upstream.forget();
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel']) {
      expect((await session.request(method, { taskId: TEXT })).text).toContain('Task not found');
      if (method !== 'tasks/result')
        expect((await askStateless(access, method, { taskId: TEXT })).text).toContain('not found');
    }
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('notifies without it', async () => {
    const access = await as('notifications');
    const { id } = await openSession(access);
    await taint(access);
    const notifications: readonly (readonly [string, JsonObject])[] = [
      ['notifications/cancelled', { requestId: 3, reason: TEXT, ...META }],
      ['notifications/progress', { progressToken: 7, progress: 1, message: TEXT, ...META }],
      ['notifications/initialized', META],
    ];
    for (const [method, params] of notifications) {
      const body = JSON.stringify({ jsonrpc: '2.0', method, params });
      expect((await post(access, body, sessionHeaders(id))).status).toBe(202);
    }
    for (const [method] of notifications) await expect.poll(() => received(), PATIENT).toContain(`"${method}"`);
    expect(received()).not.toContain(TEXT);
  });

  it('lists in an array of messages without it', async () => {
    const access = await as('array');
    const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: CLIENT_INFO };
    const opened = await post(access, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    await taint(access);
    const messages = LISTS.map((method, id) => ({ jsonrpc: '2.0', id, method, params: META }));
    const reply = await post(access, JSON.stringify(messages), session);
    expect(isAnswered(reply)).toBe(true);
    expect(received()).not.toContain(TEXT);
  });

  it('takes no cursor that is not of the list', async () => {
    const access = await as('cursor');
    await taint(access);
    for (const method of LISTS) {
      const reply = await requestStateless(access, method, { cursor: TEXT });
      expect(reply.text).toContain('-32602');
    }
    expect(received()).not.toContain(TEXT);
  });
});

it('sends no header of an argument that the tool does not have to a sink, tainted or not', async () => {
  const access = await as('headers');
  const headers = { 'mcp-param-note': TEXT };
  const call = (name: string, args: JsonObject) =>
    requestStateless(access, 'tools/call', { name, arguments: args }, { headers });
  rig.upstream.forget();
  expect(isAnswered(await call('write_record', { id: 'x', text: 'y' }))).toBe(true);
  expect(received()).not.toContain(TEXT);
  // Elsewhere an intermediary forwards it.
  expect(isAnswered(await call('read_record', { id: 'one' }))).toBe(true);
  expect(received()).toContain(TEXT);
});
