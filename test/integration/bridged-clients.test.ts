// Clients of HTTP+SSE before upstreams of later eras: their answers come on the channel, questions and progress
// cross, and what was opened for a channel ends with it.

import { afterEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL, UPSTREAM } from '../support/gateway.js';
import {
  jsonBody,
  onlyIn,
  onMethod,
  progressThenResult,
  resultFor,
  stream,
  type UpstreamEra,
} from '../support/hostile-acts.js';
import type { HostileRequest, Order } from '../support/hostile-upstream.js';
import { type ChannelCaller, openChannelCaller, openRawChannel, postMessage } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { ALL_QUESTIONS, answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { bearer, errorOf, resultOf, sessionHeaders } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const SAMPLING = {
  method: 'sampling/createMessage',
  params: { maxTokens: 1, messages: [{ role: 'user', content: { type: 'text', text: 'x' } }] },
};
const SAMPLED = { model: 'm', role: 'assistant', content: { type: 'text', text: 'told' } };

const ERAS: readonly UpstreamEra[] = ['sessions', 'stateless'];

describe.each(ERAS)('a client of HTTP+SSE before an upstream of %s', (era) => {
  const left: ChannelCaller[] = [];
  const rig = sharedGateway({
    policies: { open: ALLOW_ALL, questions: grantQuestions() },
    prepare: (upstream) => upstream.obey(onlyIn(era)),
  });
  afterEach(() => {
    for (const { channel } of left.splice(0)) channel.leave();
    rig.upstream.obey(onlyIn(era));
    rig.upstream.forget();
  });

  async function open(capabilities: JsonObject = {}): Promise<ChannelCaller> {
    const caller = await openChannelCaller(rig.access, capabilities);
    left.push(caller);
    return caller;
  }

  function obey(order: Order): void {
    rig.upstream.obey((request) => order(request) ?? onlyIn(era)(request));
  }

  const messagesOf = ({ channel }: ChannelCaller): readonly JsonObject[] =>
    channel
      .text()
      .split('\n\n')
      .filter((event) => event.startsWith('event: message'))
      .map((event) => JSON.parse(event.split('\ndata: ')[1] ?? '') as JsonObject);

  const asked = (caller: ChannelCaller, method: string): JsonObject | undefined =>
    messagesOf(caller).find((message) => message['method'] === method);

  it('[LEG-01] opens a session in the version of channels, at its own path or by probing', async () => {
    const caller = await open();
    expect(caller.opened).toMatchObject({ result: { protocolVersion: '2024-11-05' } });
    const [handshake] = rig.upstream
      .seen()
      .filter(({ method }) => method === 'initialize' || method === 'server/discover');
    expect(handshake?.body).not.toContain('2024-11-05');
    const probe = await openRawChannel(rig.access.url, bearer(rig.access.token));
    expect(probe.status).toBe(200);
    expect(new URL(probe.address).pathname).toBe(`${rig.path}/message`);
    probe.leave();
  });

  it('[LEG-01] is told to initialize first', async () => {
    const channel = await openRawChannel(`${rig.access.url}/sse`, bearer(rig.access.token));
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect((await postMessage(channel.address, rig.access.token, message)).status).toBe(202);
    expect(await channel.answer(1)).toMatchObject({
      error: { message: expect.stringContaining('Initialize first') },
    });
    expect(rig.upstream.seen().filter(({ httpMethod }) => httpMethod === 'POST')).toEqual([]);
    channel.leave();
  });

  it('[LEG-01] gets progress under its own token, then the answer, without ids of events', async () => {
    const caller = await open();
    obey(onMethod('tools/call', (request) => progressThenResult(request, ['half', 'whole'])));
    const params = { ...CALL, _meta: { progressToken: 'mine' } };
    expect(resultOf(await caller.request('tools/call', params))['content']).toBeDefined();
    const notifications = messagesOf(caller).filter(({ method }) => method === 'notifications/progress');
    expect(notifications.map(({ params: sent }) => sent)).toMatchObject([
      { progressToken: 'mine', progress: 1 },
      { progressToken: 'mine', progress: 2 },
    ]);
    expect(caller.channel.text()).not.toMatch(/^id: /m);
  });

  it('[LEG-01] is told on its channel that its upstream has failed', async () => {
    const caller = await open();
    obey(onMethod('tools/call', () => ({ kind: 'destroy' })));
    const reply = await caller.request('tools/call', CALL);
    expect(errorOf(reply)).toMatchObject({ code: expect.any(Number) });
    const reasons = async (): Promise<unknown[]> =>
      (await rig.gateway.audit())
        .filter((line) => line['type'] === 'mcp.outcome' && line['client'].era === '2024')
        .flatMap((line) => line['decision'].reasons);
    await expect.poll(reasons, PATIENT).toContain('upstream-unavailable');
  });

  it('[LEG-05] is asked on its channel, and its answer reaches the server', async () => {
    const caller = await open(ALL_QUESTIONS);
    const isAnswered = (request: HostileRequest): boolean => request.body.includes('inputResponses');
    obey(
      onMethod('tools/call', (request) => {
        if (era === 'sessions') return askThenAnswer(request, [{ id: 'q1', ...SAMPLING }], 50);
        const question = { resultType: 'input_required', inputRequests: { who: SAMPLING } };
        return jsonBody(resultFor(request, isAnswered(request) ? { content: [] } : question));
      }),
    );
    const done = caller.request('tools/call', CALL);
    await expect.poll(() => asked(caller, SAMPLING.method), PATIENT).toBeDefined();
    const id = asked(caller, SAMPLING.method)?.['id'];
    expect(id).not.toBe('q1');
    const { address } = caller.channel;
    const answer = { jsonrpc: '2.0', id, result: SAMPLED };
    expect((await postMessage(address, rig.access.token, answer)).status).toBe(202);
    expect(resultOf(await done)['content']).toBeDefined();
    const body = (): string | undefined => rig.upstream.uses().find(isAnswered)?.body;
    if (era === 'stateless') await expect.poll(body, PATIENT).toContain('"told"');
    else await expect.poll(() => answersTo(rig.upstream).get('q1'), PATIENT).toMatchObject({ result: SAMPLED });
  });

  it('[LEG-05] declares no elicitation, which came later, and is never asked one', async () => {
    const caller = await open(ALL_QUESTIONS);
    const form = { message: 'x', requestedSchema: { type: 'object', properties: {} } };
    obey(
      onMethod('tools/call', (request) => {
        const question = { method: 'elicitation/create', params: form };
        if (era === 'sessions') return askThenAnswer(request, [{ id: 'q2', ...question }], 5);
        const result = { resultType: 'input_required', inputRequests: { who: question } };
        return jsonBody(resultFor(request, result));
      }),
    );
    await caller.request('tools/call', CALL);
    expect(JSON.stringify(rig.upstream.seen().map(({ body }) => body))).not.toMatch(/elicitation\\*":\{/);
    expect(asked(caller, 'elicitation/create')).toBeUndefined();
  });

  it('[LEG-04] cancels by its notice', async () => {
    const caller = await open();
    obey(onMethod('tools/call', () => ({ ...stream([], 'hold') })));
    void caller.request('tools/call', CALL).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    expect((await caller.notify('notifications/cancelled', { requestId: 1 })).status).toBe(202);
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
  });

  it('[LEG-06] leaves nothing behind: its calls are broken off, and its session is ended', async () => {
    const caller = await open();
    const { address } = caller.channel;
    obey(onMethod('tools/call', () => ({ ...stream([], 'hold') })));
    void caller.request('tools/call', CALL).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    caller.channel.leave();
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
    const own = rig.upstream.uses()[0]?.headers['mcp-session-id'];
    const ends = (): number =>
      rig.upstream
        .seen()
        .filter(({ httpMethod, headers }) => httpMethod === 'DELETE' && headers['mcp-session-id'] === own).length;
    await expect.poll(ends, PATIENT).toBe(era === 'sessions' ? 1 : 0);
    const again = { jsonrpc: '2.0', id: 9, method: 'tools/list' };
    expect((await postMessage(address, rig.access.token, again)).status).toBe(404);
  });

  it('[LEG-04] hears what the server says to its session', async () => {
    if (era === 'stateless') return;
    obey((request) =>
      request.httpMethod === 'GET'
        ? stream([{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }], 'hold')
        : undefined,
    );
    const caller = await open();
    await expect.poll(() => asked(caller, 'notifications/tools/list_changed'), PATIENT).toBeDefined();
    const [opened] = rig.upstream.seen().filter(({ httpMethod }) => httpMethod === 'GET');
    expect(opened?.headers['mcp-session-id']).toBeDefined();
    caller.channel.leave();
    await expect.poll(() => opened?.isAborted, PATIENT).toBe(true);
  });

  it('[LEG-08] cannot be used at the paths of sessions, nor a session on a channel', async () => {
    const caller = await open();
    const sealed = new URL(caller.channel.address).search.replace('?session=', '');
    rig.upstream.forget();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...bearer(rig.access.token),
    };
    const onMain = await fetch(rig.access.url, {
      method: 'POST',
      headers: { ...headers, ...sessionHeaders(sealed) },
      body,
    });
    expect(onMain.status).toBe(404);
    const session = await rig.openSession();
    rig.upstream.forget();
    const address = `${rig.access.url}/message?session=${session.id}`;
    expect((await fetch(address, { method: 'POST', headers, body })).status).toBe(404);
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('[LEG-08] is recorded in its own era, with one outcome an exchange', async () => {
    const token = await rig.gateway.token(UPSTREAM, { sub: `recorded-${era}` });
    const caller = await openChannelCaller({ url: rig.access.url, token });
    left.push(caller);
    await caller.request('tools/call', CALL);
    const lines = async (): Promise<readonly unknown[]> =>
      (await rig.gateway.audit())
        .filter((line) => line['actor']?.sub === `recorded-${era}`)
        .filter((line) => line['target']?.method === 'tools/call')
        .map((line) => [line['type'], line['client'].era, line['decision'].action]);
    await expect.poll(lines, PATIENT).toEqual([
      ['mcp.decision', '2024', 'forwarded'],
      ['mcp.outcome', '2024', 'forwarded'],
    ]);
  });
});
