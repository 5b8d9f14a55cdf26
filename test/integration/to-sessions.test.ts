// What is special to a client and an upstream of different eras: sessions that are the gateway's own,
// questions that cross, cancelling, notices, pools, and refusals that say why.

import { afterEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { inTurn, jsonBody, onMethod, sessionsOnly, stream } from '../support/hostile-acts.js';
import { type Act, type HostileRequest, type Order, paramsOf } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { ALL_QUESTIONS, askThenAnswer, FORM_QUESTION as FORM, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  bearer,
  callStateless,
  errorOf,
  readUntil,
  requestStateless,
  resultOf,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const EVENTS = 'text/event-stream';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const POLICIES = { open: ALLOW_ALL, questions: grantQuestions() };

describe('a stateless client whose call takes too long in a session', () => {
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 1s, streamIdle: 1s}'],
    prepare: (upstream) => upstream.obey(sessionsOnly),
  });
  afterEach(() => {
    rig.upstream.obey(sessionsOnly);
    rig.upstream.forget();
  });

  it.each<[string, Act]>([
    ['does not begin', { kind: 'hold' }],
    [
      'is a body that does not end',
      {
        ...{ kind: 'chunks', chunks: Array(100).fill(' '), paceMs: 50, ending: 'hold' },
        contentType: 'application/json',
      },
    ],
    [
      'is a stream that falls silent',
      { ...{ kind: 'chunks', chunks: [':\n\n'], ending: 'hold' }, contentType: EVENTS },
    ],
  ])('[Y-05] gets an error where the response %s, and the server learns of it', async (_how, act) => {
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', () => act),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(errorOf(reply)['code']).toBe(1505);
    const sent = rig.upstream.uses()[0]?.id;
    const cancelled = () => rig.upstream.seen().find(({ method }) => method === 'notifications/cancelled')?.message;
    await expect.poll(cancelled, PATIENT).toMatchObject({ params: { requestId: sent } });
  });
});

describe('a stateless client before an upstream of sessions', () => {
  const rig = sharedGateway({
    policies: POLICIES,
    prepare: (upstream) => upstream.obey(sessionsOnly),
  });
  afterEach(() => {
    rig.upstream.obey(sessionsOnly);
    rig.upstream.forget();
  });

  const initialized = (): number => rig.upstream.seen().filter(({ method }) => method === 'initialize').length;

  it('[Y-04] has one session for its calls, however many come at a time', async () => {
    const access: Access = rig.as(await rig.gateway.token('target', { sub: 'many' }));
    const replies = await Promise.all([1, 2, 3, 4].map(() => callStateless(access, 'read_record', { id: 'x' })));
    for (const reply of replies) {
      expect(reply.message?.['id']).toBe(1);
      expect(reply.text).toContain('read_record x');
    }
    expect(initialized()).toBe(1);
    const ids = rig.upstream.uses().map(({ id }) => id);
    expect(new Set(ids).size).toBe(4);
  });

  it('[Y-04] gets another when it is lost, and only what does nothing twice is asked again', async () => {
    const access: Access = rig.as(await rig.gateway.token('target', { sub: 'loser' }));
    await callStateless(access, 'read_record', { id: 'x' });
    rig.upstream.forget();
    const lost = (method: string): Order =>
      onMethod(method, (request) =>
        jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error: { code: -32001, message: 'gone' } }, 404),
      );
    // A 404 with an error under the request's id is a lost session only where a ping in it fails too.
    rig.upstream.obeyOnce(lost('tools/list'));
    rig.upstream.obeyOnce(lost('ping'));
    expect(resultOf(await requestStateless(access, 'tools/list'))['tools']).toHaveLength(2);
    expect(initialized()).toBe(1);
    rig.upstream.obeyOnce(lost('tools/call'));
    rig.upstream.obeyOnce(lost('ping'));
    const refused = await callStateless(access, 'read_record', { id: 'x' });
    expect(errorOf(refused)['message']).toContain('was lost');
    expect(rig.upstream.uses()).toHaveLength(1);
    expect((await callStateless(access, 'read_record', { id: 'x' })).text).toContain('read_record x');
    expect(initialized()).toBe(2);
  });

  it('[Y-04] ends the session whose handshake its upstream did not let it finish', async () => {
    const access: Access = rig.as(await rig.gateway.token('target', { sub: 'unfinished' }));
    rig.upstream.openNextSessionAs('half-open');
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('notifications/initialized', () => jsonBody({ error: 'no' }, 400)),
      ),
    );
    expect((await callStateless(access, 'read_record', { id: 'x' })).status).toBe(502);
    const ended = (): unknown[] =>
      rig.upstream
        .seen()
        .filter(({ httpMethod }) => httpMethod === 'DELETE')
        .map(({ headers }) => headers['mcp-session-id']);
    await expect.poll(ended, PATIENT).toEqual(['half-open']);
  });

  it.each([
    [401, 1507],
    [403, 1507],
    [429, 1502],
    [503, 1502],
  ])('[G-05] has no subscription where the stream is answered with %s', async (status, code) => {
    rig.upstream.obey(
      inTurn(sessionsOnly, ({ httpMethod }) => (httpMethod === 'GET' ? jsonBody({ error: 'no' }, status) : undefined)),
    );
    const reply = await requestStateless(rig.access, 'subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    expect([reply.status, errorOf(reply)['code']]).toEqual([502, code]);
  });

  it('[Y-06] cancels by leaving', async () => {
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', () => ({ kind: 'hold' })),
      ),
    );
    const left = new AbortController();
    const { headers, body } = statelessParts('tools/call', CALL);
    const waiting = fetch(rig.access.url, {
      method: 'POST',
      headers: {
        ...headers,
        ...bearer(rig.access.token),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(body),
      signal: left.signal,
    }).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const [sent] = rig.upstream.uses();
    left.abort();
    await waiting;
    const cancelled = () => rig.upstream.seen().find(({ method }) => method === 'notifications/cancelled');
    await expect.poll(cancelled, PATIENT).toBeDefined();
    expect(paramsOf(cancelled() as HostileRequest)['requestId']).toBe(sent?.id);
    expect(cancelled()?.headers['mcp-session-id']).toBe(sent?.headers['mcp-session-id']);
    await expect.poll(() => sent?.isAborted, PATIENT).toBe(true);
  });

  it('[Y-05] is asked by a result, and its answer goes on with the very call', async () => {
    let finish: (() => void) | undefined;
    rig.upstream.obey(
      inTurn(sessionsOnly, (request) => {
        if (request.message?.['id'] === 'from-the-server') finish?.();
        return request.method === 'tools/call'
          ? askThenAnswer(request, [{ id: 'from-the-server', ...FORM }], 100)
          : undefined;
      }),
    );
    const answered = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const meta = { [CAPABILITIES]: ALL_QUESTIONS };
    const asked = await callStateless(rig.access, 'read_record', { id: 'one' }, meta);
    const { requestState, inputRequests } = resultOf(asked);
    expect(Object.values(inputRequests as JsonObject)).toEqual([FORM]);
    const [key = ''] = Object.keys(inputRequests as JsonObject);
    const response = { action: 'accept', content: { person: 'Ada' } };
    const again = {
      ...CALL,
      inputResponses: { [key]: response },
      requestState: requestState ?? '',
      _meta: meta,
    };
    const thief = rig.as(await rig.gateway.token('target', { sub: 'mallory' }));
    expect(errorOf(await requestStateless(thief, 'tools/call', again))['code']).toBe(-32602);
    const done = await requestStateless(rig.access, 'tools/call', again, { id: 2 });
    await answered;
    const reply = rig.upstream.seen().find(({ message }) => message?.['id'] === 'from-the-server');
    expect(reply?.message).toMatchObject({ result: response });
    expect(done.message).toMatchObject({ id: 2, result: { resultType: 'complete' } });
    expect(rig.upstream.uses()).toHaveLength(1);
    const twice = await requestStateless(rig.access, 'tools/call', again, { id: 3 });
    expect(errorOf(twice)['message']).toContain('has ended');
  });

  it('[Y-05] that declared nothing is not asked, and its call goes on', async () => {
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', (request) => askThenAnswer(request, [{ id: 'from-the-server', ...FORM }], 5)),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.messages).toHaveLength(1);
    expect(resultOf(reply)['resultType']).toBe('complete');
    const replyOf = () => rig.upstream.seen().find(({ message }) => message?.['id'] === 'from-the-server')?.message;
    await expect.poll(replyOf, PATIENT).toMatchObject({ error: { code: -32601 } });
    const found = async () => (await rig.gateway.audit()).flatMap((line) => line['findings'] ?? []);
    await expect
      .poll(found, PATIENT)
      .toContainEqual(expect.objectContaining({ detector: 'server-request', action: 'drop' }));
  });

  it('[Y-05] has its server’s pings answered, and none recorded as dropped', async () => {
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', (request) => askThenAnswer(request, [{ id: 'ping-1', method: 'ping' }], 5)),
      ),
    );
    const access: Access = rig.as(await rig.gateway.token('target', { sub: 'pinged' }));
    expect(resultOf(await callStateless(access, 'read_record', { id: 'one' }))).toBeDefined();
    const pong = () => rig.upstream.seen().find(({ message }) => message?.['id'] === 'ping-1')?.message;
    await expect.poll(pong, PATIENT).toMatchObject({ result: {} });
    const outcome = async () =>
      (await rig.gateway.audit()).find((line) => line['type'] === 'mcp.outcome' && line['actor']?.sub === 'pinged');
    await expect.poll(outcome, PATIENT).toMatchObject({ findings: [] });
  });

  it('[Y-05] gets a demand for a visit as a question', async () => {
    const data = {
      elicitations: [{ mode: 'url', elicitationId: 'e1', url: 'https://example.com/a', message: 'Visit.' }],
    };
    rig.upstream.obey(
      inTurn(
        sessionsOnly,
        onMethod('tools/call', (request) =>
          jsonBody({
            jsonrpc: '2.0',
            id: request.id ?? 0,
            error: { code: -32042, message: 'visit', data },
          }),
        ),
      ),
    );
    const asked = await callStateless(rig.access, 'read_record', { id: 'one' }, { [CAPABILITIES]: ALL_QUESTIONS });
    const [question] = Object.values((resultOf(asked)['inputRequests'] ?? {}) as JsonObject);
    expect(question).toEqual({
      method: 'elicitation/create',
      params: { mode: 'url', url: 'https://example.com/a', message: 'Visit.' },
    });
  });

  it('[Y-09] listens in a session of its own, which ends with the subscription', async () => {
    rig.upstream.obey(
      inTurn(sessionsOnly, (request) =>
        request.httpMethod === 'GET'
          ? stream(
              [
                {
                  jsonrpc: '2.0',
                  method: 'notifications/resources/updated',
                  params: { uri: 'memo://one' },
                },
              ],
              'hold',
            )
          : undefined,
      ),
    );
    const params = {
      notifications: { toolsListChanged: true, resourceSubscriptions: ['memo://one'] },
    };
    const { headers, body } = statelessParts('subscriptions/listen', params, 'listening');
    const left = new AbortController();
    const opened = await fetch(rig.access.url, {
      method: 'POST',
      headers: {
        ...headers,
        ...bearer(rig.access.token),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(body),
      signal: left.signal,
    });
    const text = await readUntil(opened, 'resources/updated');
    expect(text).toContain('acknowledged');
    expect(text).toContain('"io.modelcontextprotocol/subscriptionId":"listening"');
    const subscribed = () => rig.upstream.seen().find(({ method }) => method === 'resources/subscribe');
    await expect.poll(subscribed, PATIENT).toBeDefined();
    left.abort();
    const ended = () => rig.upstream.seen().find(({ httpMethod }) => httpMethod === 'DELETE');
    await expect.poll(ended, PATIENT).toBeDefined();
    expect(ended()?.headers['mcp-session-id']).toBe(subscribed()?.headers['mcp-session-id']);
  });
});
