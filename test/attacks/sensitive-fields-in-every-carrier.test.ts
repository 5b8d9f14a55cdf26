// Sensitive fields of a tool hold in whatever a server says of a call or its task: in the status of the task, in what it
// asks of the client, in what it logs meanwhile, and in members that no revision defines. Source:
// docs/reference/sensitive-fields.md.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectIn, ERAS, type EraCaller } from '../support/eras.js';
import { ALLOW_ALL, type AttackRig, type Era, startRig, UPSTREAM } from '../support/gateway.js';
import { inTurn, jsonBody, onlyIn, onMethod, sseEvent } from '../support/hostile-acts.js';
import { type Act, type HostileRequest, type Order, paramsOf } from '../support/hostile-upstream.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import { isObject, type JsonObject } from '../support/json.js';
import {
  askStateless,
  beginStateless,
  createTaskServer,
  declaring,
  initializeWithTasks,
  RELATED,
  sessionTaskOf,
  TASK_TOOLS,
  type TaskServer,
  taskOf,
} from '../support/mcp-servers.js';
import { openRawSession, type RawSession, sendRaw } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, grantQuestions } from '../support/sdk-clients.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { type Access, openEvents, type Reply, resultOf } from '../support/wire-client.js';

const VALUE = 'C-77-4711-Lovelace';
const DATA = { code: VALUE, place: 'here' };
const TEXT = JSON.stringify(DATA);
const LAST = 'the last message';
const CALL = { name: 'talk', arguments: { id: 'one' } };
const POLICY = `${ALLOW_ALL}sensitive: {${UPSTREAM}/talk: [/structuredContent/code]}
`;
const POLICIES = { open: POLICY, questions: grantQuestions() };

const SAMPLING: JsonObject = {
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: TEXT } }], maxTokens: 9 },
};
const SCHEMA = {
  type: 'object',
  properties: { colour: { type: 'string' }, code: { type: 'string', default: VALUE } },
};
const FORM: JsonObject = {
  method: 'elicitation/create',
  params: { mode: 'form', message: TEXT, requestedSchema: SCHEMA },
};
const LOG: JsonObject = {
  method: 'notifications/message',
  params: { level: 'info', data: { note: TEXT } },
};
const END: JsonObject = { method: 'notifications/message', params: { level: 'info', data: LAST } };

let rig: AttackRig;
let tasks: TaskServer;

function events(ending: 'hold' | 'end', messages: readonly JsonObject[]): Act {
  const chunks = messages.map((message) => sseEvent({ jsonrpc: '2.0', ...message }));
  return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending };
}

function startOn(upstream: Era): Promise<AttackRig> {
  tasks = createTaskServer();
  return startRig({ era: upstream, policies: POLICIES, prepare: (server) => server.offer(() => TASK_TOOLS) });
}

/** What the client has received when the last message is there. */
async function readToLast(response: Response): Promise<string> {
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes(LAST)) break;
  }
  return text;
}

function expectRedacted(text: string): void {
  expect(text).toContain('here');
  expect(text).not.toContain(VALUE);
}

afterEach(() => rig.upstream.forget());

describe('what is said of a task without a session comes without the fields of its tool', () => {
  const ask = (access: Access, method: string, taskId: string) =>
    askStateless(access, method, { taskId }, { sampling: {} });
  const newest = () => tasks.begun.at(-1) ?? '';

  beforeAll(async () => {
    rig = await startOn('stateless');
    rig.upstream.obey(inTurn(onlyIn('stateless'), tasks.order));
  });
  afterAll(() => rig.close());

  it.each<[string, string, JsonObject]>([
    ['its status message', 'tasks/get', { statusMessage: TEXT }],
    ['_meta of its status', 'tasks/get', { _meta: { 'example.org/x': DATA } }],
    ['a member of its status that is not defined', 'tasks/get', { seen: DATA }],
    ['_meta of an acknowledgement', 'tasks/cancel', { _meta: { 'example.org/x': DATA } }],
    ['an input request', 'tasks/get', { status: 'input_required', inputRequests: { a: SAMPLING } }],
  ])('in %s', async (_place, method, state) => {
    const taskId = await beginStateless(rig.access);
    tasks.say(newest(), state);
    expectRedacted((await ask(rig.access, method, taskId)).text);
  });

  it('in its status on a subscription', async () => {
    const taskId = await beginStateless(rig.access);
    const id = 'io.modelcontextprotocol/subscriptionId';
    const meta = { [id]: 'listen-1' };
    rig.upstream.obeyOnce((request) => {
      if (request.method !== 'subscriptions/listen') return undefined;
      const { notifications = {} } = paramsOf(request);
      const acknowledged = {
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications, _meta: meta },
      };
      const status = {
        method: 'notifications/tasks',
        params: { ...taskOf(newest(), { statusMessage: TEXT }), _meta: meta },
      };
      return events('hold', [acknowledged, status]);
    });
    const params = { notifications: { taskIds: [taskId] }, _meta: declaring() };
    const reader = await openEvents(rig.access, 'subscriptions/listen', params);
    await reader.next();
    expectRedacted(JSON.stringify(await reader.next()));
    reader.leave();
  });
});

describe('what is said of a task of a session comes without the fields of its tool', () => {
  let session: RawSession;
  let taskId: string;

  /** Of the tool with sensitive fields, and of another one. */
  async function begin(name: string): Promise<string> {
    const params = { name, arguments: { id: 'one' }, task: {} };
    const reply = await session.ask(1, 'tools/call', params);
    return String(reply.messages.at(-1)?.result.task.taskId);
  }

  beforeAll(async () => {
    rig = await startOn('sessions');
    rig.upstream.obey(
      inTurn(
        onlyIn('sessions'),
        onMethod('initialize', (request) => initializeWithTasks(request)),
        tasks.order,
      ),
    );
    session = await openRawSession(rig.access.url, {
      token: rig.access.token ?? '',
      capabilities: ALL_QUESTIONS,
    });
    taskId = await begin('talk');
    tasks.say(tasks.begun.at(-1) ?? '', { statusMessage: TEXT, _meta: { x: DATA }, seen: DATA });
  });
  afterAll(() => rig.close());

  it.each(['tasks/get', 'tasks/cancel'])('in the answer to %s', async (method) => {
    expectRedacted((await session.ask(2, method, { taskId })).text);
  });

  it('in a list, and there in its own place alone', async () => {
    await begin('compute');
    tasks.say(tasks.begun.at(-1) ?? '', { statusMessage: `${TEXT} of another tool` });
    const { text, messages } = await session.ask(2, 'tasks/list');
    const listed: readonly JsonObject[] = messages.at(-1)?.result.tasks;
    expectRedacted(JSON.stringify(listed[0]));
    expect(listed[1]?.['statusMessage']).toBe(`${TEXT} of another tool`);
    expect(text).toContain('[redacted:sensitive');
  });

  it('in a notification of its status', async () => {
    const params = sessionTaskOf(tasks.begun[0] ?? '', { statusMessage: TEXT });
    rig.upstream.obeyOnce(
      onMethod('tools/call', (request) =>
        events('end', [
          { method: 'notifications/tasks/status', params },
          { id: request.id ?? 0, result: { content: [] } },
        ]),
      ),
    );
    const other = { name: 'read_record', arguments: { id: 'one' } };
    expectRedacted((await session.ask(3, 'tools/call', other)).text);
  });

  it('in what names it, on the stream of the session', async () => {
    const meta = { [RELATED]: { taskId: tasks.begun[0] ?? '' } };
    const params = { ...(SAMPLING['params'] as JsonObject), _meta: meta };
    rig.upstream.obeyOnce(({ httpMethod }) =>
      httpMethod === 'GET' ? events('hold', [{ ...SAMPLING, id: 'q', params }, END]) : undefined,
    );
    const gone = new AbortController();
    const headers = { ...session.headers, accept: 'text/event-stream' };
    const { signal } = gone;
    expectRedacted(await readToLast(await fetch(rig.access.url, { headers, signal })));
    gone.abort();
  });
});

/** Has the server send a message while it works on the call, and returns all that the client received. */
type Way = (message: JsonObject, call?: JsonObject) => Promise<string>;

function sends(order: (request: HostileRequest) => Act | undefined): void {
  rig.upstream.obey(inTurn(onlyIn('sessions'), order));
}

async function openCapable(): Promise<RawSession> {
  const { url, token = '' } = rig.access;
  return openRawSession(url, { token, capabilities: ALL_QUESTIONS });
}

const besideResponse: Way = async (message, call = CALL) => {
  sends(onMethod('tools/call', () => events('hold', [message, END])));
  const { headers } = await openCapable();
  const gone = new AbortController();
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call };
  const { signal } = gone;
  const text = await readToLast(await sendRaw(rig.access.url, body, { headers, signal }));
  gone.abort();
  return text;
};

const onSessionStream: Way = async (message, call = CALL) => {
  const hold: Order = (request) => {
    if (request.method === 'tools/call') return events('hold', []);
    return request.httpMethod === 'GET' ? events('hold', [message, END]) : undefined;
  };
  sends(hold);
  const { headers } = await openCapable();
  const gone = new AbortController();
  const { signal } = gone;
  rig.upstream.forget();
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call };
  sendRaw(rig.access.url, body, { headers, signal }).catch(() => undefined);
  const isThere = () => rig.upstream.seen().some(({ method }) => method === 'tools/call');
  await expect.poll(isThere, PATIENT).toBe(true);
  const accept = 'text/event-stream';
  const response = await fetch(rig.access.url, { headers: { ...headers, accept }, signal });
  const text = await readToLast(response);
  gone.abort();
  return text;
};

const onChannel: Way = async (message, call = CALL) => {
  sends(onMethod('tools/call', () => events('end', [message, END])));
  const { channel, request } = await openChannelCaller(rig.access, { sampling: {} });
  request('tools/call', call).catch(() => undefined);
  await expect.poll(channel.text, PATIENT).toContain(LAST);
  channel.leave();
  return channel.text();
};

describe.each<[string, Era, Way]>([
  ['beside the response', 'sessions', besideResponse],
  ['on the stream of the session', 'sessions', onSessionStream],
  ['on a channel of HTTP+SSE', 'channels', onChannel],
  ['on a channel before a server with sessions', 'sessions', onChannel],
])('what a server sends %s during a call comes without the fields of the tool', (...row) => {
  const [, upstream, way] = row;
  beforeAll(async () => {
    rig = await startOn(upstream);
  });
  afterAll(() => rig.close());

  it.each<[string, JsonObject]>([
    ['in a request for a completion', { ...SAMPLING, id: 'q' }],
    ['in a log message', LOG],
    [
      'in a member that is not defined',
      { method: LOG['method'] ?? '', params: { level: 'info', data: 'x', seen: DATA } },
    ],
  ])('%s', async (_place, message) => {
    expectRedacted(await way(message));
  });

  it('in data of a request for a completion', async () => {
    const result = { type: 'tool_result', toolUseId: 'u', content: [], structuredContent: DATA };
    const params = { messages: [{ role: 'user', content: [result] }], maxTokens: 9 };
    expectRedacted(await way({ ...SAMPLING, id: 'q', params }));
  });

  it('and during a call of another tool whole', async () => {
    const text = await way(LOG, { name: 'read_record', arguments: { id: 'one' } });
    expect(text).toContain(VALUE);
  });
});

// A channel of HTTP+SSE has no forms.
describe('a form of a session, and what it is filled in with', () => {
  beforeAll(async () => {
    rig = await startOn('sessions');
  });
  afterAll(() => rig.close());

  it.each<[string, Way]>([
    ['beside the response', besideResponse],
    ['on the stream of the session', onSessionStream],
  ])('comes %s without the fields of the tool', async (_where, way) => {
    const text = await way({ ...FORM, id: 'q' });
    expectRedacted(text);
    expect(text).toContain('"code":{"type":"string"}');
  });
});

describe.each(ERAS)('in an answer of %s, members that no revision defines', (era) => {
  let caller: EraCaller;
  beforeAll(async () => {
    rig = await startOn(era);
    caller = await connectIn(era, rig.access);
  });
  afterAll(async () => {
    caller.leave();
    await rig.close();
  });

  /** What the client receives of this answer to a call. */
  async function received(answer: JsonObject): Promise<Reply> {
    const { result } = answer;
    const complete = isObject(result) ? { result: { resultType: 'complete', ...result } } : {};
    rig.upstream.obey(
      inTurn(
        onlyIn(era === 'channels' ? 'sessions' : era),
        onMethod('tools/call', ({ id = 0 }) => jsonBody({ jsonrpc: '2.0', id, ...answer, ...complete })),
      ),
    );
    return caller.request('tools/call', CALL);
  }

  const block = { type: 'text', text: 'x' };
  it.each<[string, JsonObject]>([
    ['a text', { result: { content: [], note: TEXT } }],
    ['data', { result: { content: [], note: DATA } }],
    ['data within data', { result: { content: [], foo: { bar: [DATA] } } }],
    ['the field itself', { result: { content: [], code: VALUE, place: 'here' } }],
    ['the field itself in _meta', { result: { content: [], _meta: { code: VALUE, x: 'here' } } }],
    ['a member of a block', { result: { content: [{ ...block, seen: DATA }] } }],
    ['a name', { result: { content: [], seen: DATA, also: { [VALUE]: 1 } } }],
    [
      'a member of an embedded resource',
      {
        result: {
          content: [{ type: 'resource', resource: { uri: 'a:b', text: 'x', seen: DATA } }],
        },
      },
    ],
  ])('come without the fields as %s', async (_what, answer) => {
    expectRedacted((await received(answer)).text);
  });

  it.each<[string, JsonObject]>([
    ['an error', { error: { code: 1, message: 'no', seen: DATA } }],
    ['the envelope', { result: { content: [] }, seen: DATA }],
  ])('do not come in %s', async (_what, answer) => {
    expect((await received(answer)).text).toContain('upstream-protocol');
  });

  it.each<[string, string, string]>([
    ['a secret', `A token: ${makeGithubToken()}`, 'secret:github-token'],
    ['an image that is loaded', '![see](https://example.com/see?what=1)', 'active:image'],
    ['what nobody sees', 'see \u{e0041}\u{e0042}\u{e0043}', 'invisible'],
  ])('are searched for %s', async (_what, text, detector) => {
    const reply = await received({ result: { content: [], note: text, foo: { bar: [text] } } });
    expect(reply.text).not.toContain(JSON.stringify(text));
    expect(JSON.stringify(resultOf(reply)['_meta'])).toContain(detector);
  });

  it('leave what the protocol defines as it is, whatever it is called', async () => {
    const link = { type: 'resource_link', uri: 'a:b', name: 'code', title: 'code', seen: { a: 1 } };
    const result = { content: [link], _meta: { progressToken: 'code' } };
    expect(resultOf(await received({ result }))).toMatchObject(result);
  });
});
