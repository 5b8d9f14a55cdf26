// A caller at its limit of requests still ends and answers what it has in progress: it cancels calls, replies to servers,
// and ends tasks and sessions. What lets these in is bounded for each caller and for all, and lets in nothing else.
// Source: docs/reference/limits.md#what-one-caller-may-use; MCP 2025-11-25, cancellation and elicitation.

import { connect, type Socket } from 'node:net';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { startMergedRig, tokenOf } from '../support/deployments.js';
import { ALLOW_ALL, type AttackRig, type Era, expectRefusedLines } from '../support/gateway.js';
import { inTurn, onlyIn, onMethod, resultFor, sseEvent, stream, textResult } from '../support/hostile-acts.js';
import type { Act, HostileUpstream, Order } from '../support/hostile-upstream.js';
import { openSessionChannel } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import {
  askStateless,
  beginStateless,
  createTaskServer,
  initializeWithTasks,
  TASK_TOOLS,
} from '../support/mcp-servers.js';
import { ALL_QUESTIONS, connectAsked, connectSdkV2, FORM_QUESTION, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  bearer,
  initialize,
  openSession,
  post,
  requestStateless,
  resultOf,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway, withStarted } from '../support/with-gateway.js';

const MOST = 2;
const LIMITS = `limits: {concurrency: ${8 * MOST}, concurrencyPerCaller: ${MOST}}`;
/** One caller may have every request of the upstream, and with them every connection for calls. */
const ALL_OF_IT = `limits: {concurrency: ${MOST}, concurrencyPerCaller: ${MOST}}`;
const PINNING = 'pinning: {maxAge: 10m}';
/** The least of the reserve that a caller has. */
const RESERVE = 8;
const FLOOD = 300;
const CANCELLED = 'notifications/cancelled';
const HELD = 'write_record';

/** Never answers calls of one tool. */
const holdCalls: Order = onMethod('tools/call', () => ({ kind: 'hold' }), HELD);

function cancellation(requestId: number | string): JsonObject {
  return { jsonrpc: '2.0', method: CANCELLED, params: { requestId } };
}

function callOf(name: string, id: number): JsonObject {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: { id: 'one', text: 'x' } } };
}

const ping = (id: number): JsonObject => ({ jsonrpc: '2.0', id, method: 'ping' });

/** Posts a message; its status, once there is one. */
type Send = (message: JsonObject | string) => Promise<number>;

async function connectTo(era: 'sessions' | 'channels', access: Access): Promise<Send> {
  if (era === 'channels') return (await openSessionChannel(access.url, access.token ?? '')).post;
  const { id } = await openSession(access, ALL_QUESTIONS);
  return inSession(access, id);
}

function inSession(access: Access, session: string, more: Readonly<Record<string, string>> = {}): Send {
  return async (message) => {
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    // What is held ends with the gateway.
    const reply = await post(access, text, { ...sessionHeaders(session), ...more }).catch(() => undefined);
    return reply?.status ?? 0;
  };
}

/** Calls that fill the limit, once the upstream works on them. */
async function fillLimit(send: Send, upstream: HostileUpstream, name = HELD): Promise<readonly Promise<number>[]> {
  const before = upstream.uses().length;
  const calls = Array.from({ length: MOST }, (_, at) => send(callOf(name, 11 + at)));
  await vi.waitFor(() => expect(upstream.uses().length).toBe(before + MOST), PATIENT);
  return calls;
}

function end({ url, token }: Access, session: string): Promise<Response> {
  return fetch(url, { method: 'DELETE', headers: { ...bearer(token), ...sessionHeaders(session) } });
}

/** The same access, once the keys of the issuer are there: on a busy machine they come late. */
async function withKeys(access: Access): Promise<Access> {
  await vi.waitFor(async () => expect((await initialize(access)).status).toBe(200), PATIENT);
  return access;
}

let subjects = 0;

/** A caller of its own, so that what one test leaves is no other's. */
async function anotherCaller(rig: Pick<AttackRig, 'gateway' | 'as'>): Promise<Access> {
  subjects += 1;
  return withKeys(rig.as(await tokenOf(rig.gateway, `caller ${subjects}`)));
}

type Row = readonly [client: 'sessions' | 'channels', how: string, act: Act];
const SILENT: Act = { kind: 'hold' };
const NOT_BEGUN = 'has not begun to answer';
const ROWS: readonly (readonly [Era, readonly Row[]])[] = [
  [
    'sessions',
    [
      ['sessions', NOT_BEGUN, SILENT],
      ['sessions', 'has begun a stream', stream([], 'hold')],
      [
        'sessions',
        'has begun a body',
        { kind: 'chunks', contentType: 'application/json', chunks: [' '], ending: 'hold' },
      ],
      ['channels', NOT_BEGUN, SILENT],
    ],
  ],
  [
    'stateless',
    [
      ['sessions', NOT_BEGUN, SILENT],
      ['channels', NOT_BEGUN, SILENT],
    ],
  ],
  [
    'channels',
    [
      ['sessions', NOT_BEGUN, SILENT],
      ['channels', NOT_BEGUN, SILENT],
    ],
  ],
];

describe.each(ROWS)('[H-10] a caller at its limit before an upstream of %s', (era, rows) => {
  const rig = sharedGateway({ era: era, upstream: [PINNING, LIMITS] });
  beforeAll(() => rig.front?.hold('tools/call'));
  afterAll(() => {
    rig.front?.cut();
    rig.upstream.disconnect();
  });

  it.each(rows)('cancels in %s a call that the server %s, and has its slot again', async (client, _how, act) => {
    const ofEra = onlyIn(era === 'stateless' ? era : 'sessions');
    rig.upstream.obey(
      rig.front === undefined
        ? inTurn(
            ofEra,
            onMethod('tools/call', () => act, HELD),
          )
        : ofEra,
    );
    const send = await connectTo(client, await anotherCaller(rig));
    const [first] = await fillLimit(send, rig.upstream);
    expect(await send(ping(20))).toBe(503);
    expect(await send(cancellation(11))).toBe(202);
    await expect.poll(() => send(ping(21)), PATIENT).toBeLessThan(300);
    // A cancelled request gets no response.
    expect(await first).toBeLessThan(300);
  });
});

describe('[H-10] a caller at its limit', () => {
  it('of one backend of an endpoint cancels a call there, and ends a session', () =>
    withStarted(
      () => startMergedRig({ upstream: [PINNING, LIMITS] }),
      async (rig) => {
        rig.left.obey(holdCalls);
        const { id } = await openSession(await withKeys(rig.access));
        const other = await openSession(rig.access);
        const send = inSession(rig.access, id);
        await fillLimit(send, rig.left, `l_${HELD}`);
        expect(await send(callOf('l_read_record', 20))).toBe(503);
        expect(await send(callOf('right_read_record', 21))).toBe(200);
        expect((await end(rig.access, other.id)).status).toBe(204);
        expect(await send(cancellation(11))).toBe(202);
        await expect.poll(() => send(callOf('l_read_record', 22)), PATIENT).toBe(200);
        rig.left.disconnect();
      },
    ));
});

function request(method: string, params: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id: `${method} ${Math.random()}`, method, params });
}

/** Asks in each call, and answers it once its client has replied. */
function askInCalls(question: JsonObject): Order {
  const replied = new Map<string, () => void>();
  return (one) => {
    if (one.message !== undefined && one.method === undefined) replied.get(String(one.id))?.();
    if (one.method !== 'tools/call') return undefined;
    const id = `question-${one.index}`;
    const gate = new Promise<void>((resolve) => replied.set(id, resolve));
    const chunks = [{ jsonrpc: '2.0', id, ...question }, resultFor(one, textResult('answered'))];
    return {
      kind: 'chunks',
      contentType: 'text/event-stream',
      chunks: chunks.map((each) => sseEvent(each)),
      ending: 'end',
      gate,
    };
  };
}

const SAMPLING: JsonObject = {
  method: 'sampling/createMessage',
  params: { maxTokens: 1, messages: [{ role: 'user', content: { type: 'text', text: 'x' } }] },
};

type Calling = { call(): Promise<unknown>; close(): Promise<void> };
const CALL = { name: 'read_record', arguments: { id: 'one' } };

async function connectV2(era: '2025' | '2026', { url, token = '' }: Access): Promise<Calling> {
  const { client, close } = await connectSdkV2(url, era, { token }, { capabilities: ALL_QUESTIONS });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { person: 'Ada' } }));
  return { call: () => client.callTool(CALL), close };
}

async function connectV1({ url, token = '' }: Access): Promise<Calling> {
  const { client, close } = await connectAsked(url, token);
  return { call: () => client.callTool(CALL), close };
}

async function connectChannel({ url, token = '' }: Access): Promise<Calling> {
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  const transport = new SSEClientTransport(new URL(`${url}/sse`), { requestInit }) as Transport;
  const { client, close } = await connectAsked(url, token, {}, transport);
  return { call: () => client.callTool(CALL), close };
}

describe('[H-10] calls that wait for replies of a caller at its limit', () => {
  const rig = sharedGateway(() => {
    const policies = { open: ALLOW_ALL, questions: grantQuestions() };
    return { era: 'sessions' as const, policies, upstream: [PINNING, ALL_OF_IT] };
  });

  it.each<[string, (access: Access) => Promise<Calling>, JsonObject]>([
    ['SDK v1', connectV1, FORM_QUESTION],
    ['SDK v2 in a session', (access) => connectV2('2025', access), FORM_QUESTION],
    ['SDK v2 without sessions', (access) => connectV2('2026', access), FORM_QUESTION],
    ['SDK v1 over HTTP+SSE', connectChannel, SAMPLING],
  ])('on %s get them and end', async (_name, connectClient, question) => {
    rig.upstream.obey(inTurn(onlyIn('sessions'), askInCalls(question)));
    const client = await connectClient(rig.access);
    const results = await Promise.all(Array.from({ length: MOST }, () => client.call()));
    const answered = results.filter((result) => JSON.stringify(result).includes('answered'));
    expect(answered).toHaveLength(MOST);
    await client.close();
  });
});

describe('[H-10] what lets messages in past the limit', () => {
  let access: Access;
  let id: string;
  let send: Send;
  const tasks = createTaskServer();
  const order: Order = (one) => {
    if (one.method === 'initialize') return initializeWithTasks(one);
    if (one.method?.startsWith('notifications/') === true) return { kind: 'http', status: 202 };
    return holdCalls(one) ?? tasks.order(one);
  };
  const rig = sharedGateway({
    upstream: [PINNING, LIMITS],
    prepare: (upstream) => upstream.offer(() => [...TASK_TOOLS]),
  });
  afterAll(() => rig.upstream.disconnect());
  beforeEach(async () => {
    rig.upstream.obey(order);
    access = await anotherCaller(rig);
    ({ id } = await openSession(access));
    send = inSession(access, id);
  });

  it('is there for the ends and the answers of tasks, subscriptions and sessions', async () => {
    const stateless = await beginStateless(access);
    const begun = await post(
      access,
      request('tools/call', { name: 'talk', arguments: {}, task: {} }),
      sessionHeaders(id),
    );
    const { taskId } = (resultOf(begun)['task'] ?? {}) as { readonly taskId?: string };
    await fillLimit(send, rig.upstream);
    const own = { taskId: taskId ?? '' };
    expect(await send(request('tasks/get', own))).toBe(503);
    expect(await send(request('tasks/cancel', own))).toBe(200);
    expect(await send(request('resources/unsubscribe', { uri: 'memo://one' }))).not.toBe(503);
    expect((await askStateless(access, 'tasks/get', { taskId: stateless })).status).toBe(503);
    expect((await askStateless(access, 'tasks/update', { taskId: stateless, inputResponses: {} })).status).toBe(200);
    expect((await askStateless(access, 'tasks/cancel', { taskId: stateless })).status).toBe(200);
    expect((await end(access, id)).status).toBe(204);
  });

  it('is no way for requests, however they are sent', async () => {
    await fillLimit(send, rig.upstream);
    rig.upstream.forget();
    const late = `{"params":{"name":"read_record","arguments":{"id":"one"}},"jsonrpc":"2.0","id":5,"method":"tools/call"}`;
    const refused = await post(access, late, sessionHeaders(id));
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    await expectRefusedLines(rig, refused, 'overloaded');
    for (const method of ['ping', 'tools/list', 'resources/subscribe'])
      expect([method, await send(request(method, { uri: 'memo://one' }))]).toEqual([method, 503]);
    expect((await requestStateless(access, 'tools/list')).status).toBe(503);
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('takes an array of notifications, and none that has a request besides', async () => {
    rig.upstream.repent();
    const older = await openOlder(access);
    rig.upstream.obey(holdCalls);
    await fillLimit(older, rig.upstream);
    rig.upstream.forget();
    expect(await older(JSON.stringify([cancellation(1), callOf('read_record', 6)]))).toBe(503);
    expect(rig.upstream.seen()).toEqual([]);
    expect(await older(JSON.stringify([cancellation(1), cancellation(2)]))).toBe(202);
  });

  it('is bounded for a caller, and leaves the slots and the reserve of others alone', async () => {
    const other = await anotherCaller(rig);
    const theirs = inSession(other, (await openSession(other)).id);
    await fillLimit(send, rig.upstream);
    rig.upstream.forget();
    rig.upstream.obey((one) => (one.body.includes('flood') ? SILENT : order(one)));
    const slow = Array.from({ length: 100 }, () => openSocket(rig, access, id, '{"jsonrpc":"2.0"', 500));
    const statuses: number[] = [];
    const flood = Array.from({ length: FLOOD }, (_, at) => {
      const text = JSON.stringify(cancellation(`flood ${at}`));
      return openSocket(rig, access, id, text).on('data', (data: Buffer) => {
        statuses.push(Number(/^HTTP\/1\.1 (\d+)/.exec(String(data))?.[1]));
      });
    });
    const unknown = Array.from({ length: 50 }, (_, at) => send({ jsonrpc: '2.0', id: `nobody ${at}`, result: {} }));
    await expect.poll(() => statuses.length, PATIENT).toBe(FLOOD - RESERVE);
    expect(new Set(statuses)).toEqual(new Set([503]));
    for (const status of await Promise.all(unknown)) expect(status).toBeGreaterThanOrEqual(400);
    expect(rig.upstream.seen().map(({ method }) => method)).toEqual(Array(RESERVE).fill(CANCELLED));
    // Others have all that is theirs.
    await fillLimit(theirs, rig.upstream);
    expect(await theirs(ping(20))).toBe(503);
    expect(await theirs(cancellation(11))).toBe(202);
    for (const socket of [...slow, ...flood]) socket.destroy();
  }, 60_000);
});

/** A session of the revision that has arrays. */
async function openOlder(access: Access): Promise<Send> {
  const version = '2025-03-26';
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'older', version: '1' } };
  const opened = await post(access, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
  return inSession(access, opened.headers.get('mcp-session-id') ?? '', { 'mcp-protocol-version': version });
}

/** Posts a body on a connection of its own; one that is shorter than it says never ends. */
function openSocket(
  { port, path }: AttackRig,
  { token }: Access,
  session: string,
  body: string,
  length = body.length,
): Socket {
  const headers = {
    ...{ host: `127.0.0.1:${port}`, 'content-type': 'application/json', 'content-length': String(length) },
    ...{ accept: 'application/json, text/event-stream', ...bearer(token), ...sessionHeaders(session) },
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  return socket;
}
