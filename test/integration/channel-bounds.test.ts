// How long a client of HTTP+SSE waits for a server of HTTP+SSE: no longer than an exchange may take, and how many
// of its requests may wait at once.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, type RunningGateway, startTestGateway } from '../support/gateway.js';
import { callMessage, type OpenedChannel, openSessionChannel, type RawChannel } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';
import { shared } from '../support/with-gateway.js';

/** Requests of one stream that may wait for their responses. */
const MAX_PENDING_RESPONSES = 1024;
const EXCHANGE_MAX_MS = 600;
/** Long enough for whatever is late to have come. */
const LATE_MS = 2 * EXCHANGE_MAX_MS;
const BATCH = 32;

let short: RunningGateway;
let long: RunningGateway;
let narrow: RunningGateway;

const start = (limits: string): Promise<RunningGateway> =>
  startTestGateway({
    upstreams: [{ name: 'old', url: server.url, more: ['transport: http-sse', `limits: {${limits}}`] }],
    policies: { open: ALLOW_ALL },
  });

const server = shared(() => startSseServer());
beforeAll(async () => {
  short = await start('requestTimeout: 500ms, exchangeMax: 600ms');
  long = await start('exchangeMax: 10m, concurrency: 2000, concurrencyPerCaller: 2000');
  narrow = await start('concurrency: 8, concurrencyPerCaller: 2');
}, 60_000);
afterEach(() => server.forget());
afterAll(async () => {
  await short?.close();
  await long?.close();
  await narrow?.close();
});

async function open(gateway: RunningGateway): Promise<OpenedChannel> {
  return openSessionChannel(gateway.url('old'), await gateway.token('old'));
}

const outcomes = async (): Promise<readonly JsonObject[]> =>
  (await short.audit()).filter((line) => line['type'] === 'mcp.outcome') as JsonObject[];

/** The id under which the server knows the call of a tool. */
function sealedIdOf(tool: string): string {
  const sent = server.seen().find(({ body }) => body.includes(`"${tool}"`));
  return (JSON.parse(sent?.body ?? '{}') as { id: string }).id;
}

/** The calls that the server got, which is also listed meanwhile. */
const callsSeen = () => server.seen().filter(({ body }) => body.includes('"tools/call"'));

const countOf = (channel: RawChannel, id: string): number =>
  channel.text().split(`"id":${JSON.stringify(id)}`).length - 1;

describe('[LEG-10] what a server of HTTP+SSE never answers', () => {
  it('is refused on the channel after its time, on record, and its server learns of it', async () => {
    const { channel, post } = await open(short);
    const before = server.cancelled();
    expect(await post(callMessage('never', 'wait'))).toBe(202);
    expect(await channel.answer('never')).toMatchObject({ error: {} });
    await expect.poll(() => server.cancelled(), PATIENT).toBe(before + 1);
    // The server learns of it before the outcome is in the file.
    await expect
      .poll(async () => (await outcomes()).at(-1), PATIENT)
      .toMatchObject({
        target: { method: 'tools/call', name: 'wait' },
        decision: { action: 'withheld', reasons: ['upstream-timeout'] },
      });
    const [posted] = (await outcomes()).slice(-2);
    expect(posted).toMatchObject({ decision: { action: 'forwarded' }, result: { http: 202 } });
    channel.leave();
  });

  it('is not answered by what comes later', async () => {
    const { channel, post } = await open(short);
    await post(callMessage('late', 'wait'));
    const id = sealedIdOf('wait');
    await channel.answer('late');
    const late = { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'too late' }] } };
    server.say(`event: message\ndata: ${JSON.stringify(late)}\n\n`);
    const dropped = async (): Promise<string> => JSON.stringify((await short.audit()).slice(-4));
    await post(callMessage('after', 'echo', { text: 'after' }));
    await channel.answer('after');
    expect(channel.text()).not.toContain('too late');
    expect(countOf(channel, 'late')).toBe(1);
    channel.leave();
    await expect.poll(dropped, PATIENT).toContain('foreign-message');
  });

  it('is nothing where an answer came or nobody wants one any more', async () => {
    const { channel, post } = await open(short);
    await post(callMessage('echo', 'echo', { text: 'soon' }));
    await channel.answer('echo');
    await post(callMessage('gone', 'wait'));
    const params = { requestId: 'gone' };
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    await sleep(LATE_MS);
    expect([countOf(channel, 'echo'), countOf(channel, 'gone')]).toEqual([1, 0]);
    channel.leave();
  });

  it('is no more than a channel may owe: what is posted past that is refused', async () => {
    const { channel, post } = await open(long);
    for (let posted = 0; posted < MAX_PENDING_RESPONSES; posted += BATCH) {
      const batch = Array.from({ length: BATCH }, (_, at) => callMessage(posted + at + 1, 'wait'));
      expect(new Set(await Promise.all(batch.map(post)))).toEqual(new Set([202]));
    }
    server.forget();
    expect(await post(callMessage('over', 'echo', { text: 'over' }))).toBe(503);
    expect(callsSeen()).toEqual([]);
    const params = { requestId: MAX_PENDING_RESPONSES };
    await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    expect(await post(callMessage('room', 'echo', { text: 'room' }))).toBe(202);
    expect(await channel.answer('room')).toMatchObject({ result: {} });
    channel.leave();
  }, 60_000);

  it('takes a place among the requests that its caller may have in flight, until it has its answer', async () => {
    const { channel, post } = await open(narrow);
    const wait = (id: string): Promise<number> => post(callMessage(id, 'wait'));
    expect(await wait('one')).toBe(202);
    for (const id of ['two', 'three', 'four']) {
      expect(await post(callMessage(id, 'echo', { text: id }))).toBe(202);
      expect(await channel.answer(id)).toMatchObject({ result: {} });
    }
    const params = { requestId: 'one' };
    expect(await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })).toBe(202);
    expect([await wait('five'), await wait('six')]).toEqual([202, 202]);
    server.forget();
    expect(await post(callMessage('over', 'echo', { text: 'over' }))).toBe(503);
    expect(callsSeen()).toEqual([]);
    channel.leave();
    await expect
      .poll(async () => {
        const next = await open(narrow);
        const statuses = [await next.post(callMessage('a', 'wait')), await next.post(callMessage('b', 'wait'))];
        next.channel.leave();
        return statuses;
      }, PATIENT)
      .toEqual([202, 202]);
  });
});
