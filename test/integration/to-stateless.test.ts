// What is special to a client and an upstream of different eras: sessions that are the gateway's own,
// questions that cross, cancelling, notices, pools, and refusals that say why.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { ALLOW_ALL, expectWithheldLines } from '../support/gateway.js';
import {
  inTurn,
  jsonBody,
  onMethod,
  resultFor,
  sessionsOnly,
  sseEvent,
  statelessOnly,
  stream,
  textResult,
} from '../support/hostile-acts.js';
import { type HostileRequest, paramsOf } from '../support/hostile-upstream.js';
import { isObject, type JsonObject } from '../support/json.js';
import { openRawSession } from '../support/raw-mcp.js';
import { connectAsked, FORM_QUESTION as FORM, grantQuestions } from '../support/sdk-clients.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import {
  bearer,
  errorOf,
  listenOn,
  openSession,
  post,
  type Reply,
  readUntil,
  resultOf,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const POLICIES = { open: ALLOW_ALL, questions: grantQuestions() };

describe('a client of sessions before a stateless upstream', () => {
  const rig = sharedGateway({
    policies: POLICIES,
    prepare: (upstream) => upstream.obey(statelessOnly),
  });
  afterEach(() => {
    rig.upstream.obey(statelessOnly);
    rig.upstream.forget();
  });

  it('[Y-03] has its pings, levels and endings answered here', async () => {
    const session = await rig.openSession();
    rig.upstream.forget();
    expect(resultOf(await session.request('ping'))).toEqual({});
    expect(resultOf(await session.request('logging/setLevel', { level: 'debug' }))).toEqual({});
    expect(rig.upstream.seen()).toEqual([]);
    await session.call('read_record', { id: 'one' });
    const meta = paramsOf(rig.upstream.uses()[0] as HostileRequest)['_meta'];
    expect(meta).toMatchObject({
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/logLevel': 'debug',
      [CAPABILITIES]: {},
    });
    rig.upstream.forget();
    expect((await session.end()).status).toBe(204);
    expect((await session.call('read_record', { id: 'one' })).status).toBe(404);
    expect(rig.upstream.seen()).toEqual([]);
  });

  it('[Y-06] cancels by its notice, and not by leaving', async () => {
    const session = await rig.openSession();
    rig.upstream.forget();
    rig.upstream.obey(
      inTurn(
        statelessOnly,
        onMethod('tools/call', () => ({ kind: 'hold' })),
      ),
    );
    const left = new AbortController();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: CALL });
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const waiting = fetch(rig.access.url, {
      method: 'POST',
      headers: { ...headers, ...bearer(rig.access.token), ...sessionHeaders(session.id) },
      body,
      signal: left.signal,
    }).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    left.abort();
    await waiting;
    await sleep(50);
    expect(rig.upstream.uses()[0]?.isAborted).toBe(false);
    const notification = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 5 },
    };
    expect((await post(rig.access, JSON.stringify(notification), sessionHeaders(session.id))).status).toBe(202);
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, PATIENT).toBe(true);
  });

  /** Asks for a form at the first leg, and tells what was answered at the second. */
  const asksForm = onMethod('tools/call', (request) => {
    const responses = paramsOf(request)['inputResponses'];
    return jsonBody(
      responses === undefined
        ? resultFor(request, {
            resultType: 'input_required',
            inputRequests: { who: FORM },
            requestState: 'state of the server',
          })
        : resultFor(request, {
            content: [{ type: 'text', text: `said ${JSON.stringify(responses)}` }],
          }),
    );
  });

  it('[PRF-03] gets what the upstream sends at once in order, and the end behind it', async () => {
    const session = await rig.openSession();
    const burst = (ending: 'end' | 'destroy') =>
      onMethod('tools/call', (request) => {
        const meta = paramsOf(request)['_meta'] as JsonObject;
        const progressToken = meta['progressToken'] ?? '';
        const steps = [1, 2, 3].map((progress) => {
          const params = { progressToken, progress };
          return sseEvent({ jsonrpc: '2.0', method: 'notifications/progress', params });
        });
        const last = ending === 'end' ? [sseEvent(resultFor(request, textResult('done')))] : [];
        const chunks = [[...steps, ...last].join('')];
        return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending };
      });
    const call = async (ending: 'end' | 'destroy'): Promise<readonly unknown[]> => {
      rig.upstream.obey(inTurn(statelessOnly, burst(ending)));
      const { messages } = await session.call('read_record', { id: 'one' }, { progressToken: 'p' });
      return messages.map(({ params, result }) =>
        isObject(params) ? params['progress'] : result === undefined ? 'error' : 'result',
      );
    };
    expect(await call('end')).toEqual([1, 2, 3, 'result']);
    expect(await call('destroy')).toEqual([1, 2, 3, 'error']);
  });

  it('[Y-05] is asked on its stream, and its answer goes back with the state', async () => {
    const { client, asked, close } = await connectAsked(rig.access.url, rig.access.token ?? '', {
      content: { person: 'Ada' },
    });
    rig.upstream.forget();
    rig.upstream.obey(inTurn(statelessOnly, asksForm));
    const result = await client.callTool(CALL);
    expect(asked.map(({ method }) => method)).toEqual(['elicitation/create']);
    expect(JSON.stringify(result.content)).toContain('Ada');
    const [first, second] = rig.upstream.uses();
    expect(paramsOf(first as HostileRequest)['_meta']).toMatchObject({
      [CAPABILITIES]: { elicitation: {} },
    });
    expect(paramsOf(second as HostileRequest)).toMatchObject({
      ...CALL,
      requestState: 'state of the server',
      inputResponses: { who: { action: 'accept' } },
    });
    expect(second?.id).not.toBe(first?.id);
    await close();
  });

  it('[Y-05] answers with numbers that no double holds, and they go back as they were written', async () => {
    const { id } = await openSession(rig.access, { elicitation: {} });
    rig.upstream.forget();
    rig.upstream.obey(inTurn(statelessOnly, asksForm));
    const headers = { ...sessionHeaders(id), ...bearer(rig.access.token) };
    const call = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: CALL };
    const stream = await listenOn(
      await fetch(rig.access.url, {
        method: 'POST',
        headers: {
          ...headers,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        body: JSON.stringify(call),
      }),
    );
    await expect.poll(() => stream.text(), { timeout: 5_000 }).toContain('elicitation/create');
    const question = /"id":"([^"]+)"/.exec(stream.text())?.[1] ?? '';
    const result = '{"action":"accept","content":{"person":"Ada","account":9007199254740993,"rate":1.10}}';
    const reply = `{"jsonrpc":"2.0","id":${JSON.stringify(question)},"result":${result}}`;
    expect((await post(rig.access, reply, headers)).status).toBe(202);
    await expect.poll(() => rig.upstream.uses().length, { timeout: 5_000 }).toBe(2);
    expect(rig.upstream.uses()[1]?.body).toContain(`"inputResponses":{"who":${result}}`);
  });

  it('[Y-07] that declared nothing is told why it gets no answer', async () => {
    const session = await rig.openSession();
    rig.upstream.obey(inTurn(statelessOnly, asksForm));
    const reply = await session.call('read_record', { id: 'one' });
    expect(reply.status).toBe(200);
    expect(errorOf(reply)['message']).toContain('requires input of a kind');
  });

  it('[Y-07] is told of codes and results that sessions do not have in its own', async () => {
    const session = await rig.openSession();
    const error = { code: -32021, message: 'sampling is needed' };
    rig.upstream.obey(
      inTurn(
        statelessOnly,
        onMethod('tools/call', (request) => jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error }, 400)),
      ),
    );
    const missing = await session.call('read_record', { id: 'one' });
    expect([missing.status, errorOf(missing)['code']]).toEqual([200, -32602]);
    rig.upstream.obey(
      inTurn(
        statelessOnly,
        onMethod('tools/call', (request) => jsonBody(resultFor(request, { resultType: 'task' }))),
      ),
    );
    const task = await session.call('read_record', { id: 'one' });
    expect(errorOf(task)['message']).toContain('kind of result');
  });

  const STATUSES = [[401], [403], [429], [503]] as const;

  it.each([401, 403])(
    '[G-05] is refused where the upstream answers with %s, whatever its JSON says',
    async (status) => {
      const session = await rig.openSession();
      rig.upstream.obey(
        inTurn(
          statelessOnly,
          onMethod('tools/call', (request) => jsonBody(resultFor(request, textResult('said anyway')), status)),
        ),
      );
      const reply = await session.call('read_record', { id: 'one' });
      expect([reply.status, reply.text.includes('said anyway')]).toEqual([502, false]);
      await expectWithheldLines(rig, reply, 'upstream-credentials');
    },
  );

  it.each([429, 503])(
    '[G-05] gets the status %s of its upstream, with the time to wait and the inspected text',
    async (status) => {
      const session = await rig.openSession();
      const secret = makeGithubToken();
      rig.upstream.obey(
        inTurn(
          statelessOnly,
          onMethod('tools/call', (request) => ({
            kind: 'http',
            status,
            headers: { 'content-type': 'application/json', 'retry-after': '7' },
            body: JSON.stringify({
              jsonrpc: '2.0',
              id: request.id ?? 0,
              error: { code: -32000, message: `wait, ${secret}` },
            }),
          })),
        ),
      );
      const reply = await session.call('read_record', { id: 'one' });
      expect([reply.status, reply.headers.get('retry-after')]).toEqual([status, '7']);
      expect(errorOf(reply)['message']).toContain('wait, [redacted:');
      expect(reply.text).not.toContain(secret);
    },
  );

  it.each(['the first leg', 'the retry'])(
    '[G-05] that may be asked is refused where %s is answered with 401',
    async (leg) => {
      const { client, asked, close } = await connectAsked(rig.access.url, rig.access.token ?? '');
      rig.upstream.obey(
        inTurn(
          statelessOnly,
          onMethod('tools/call', (request) => {
            const isRetry = paramsOf(request)['inputResponses'] !== undefined;
            return isRetry === (leg === 'the retry')
              ? jsonBody(resultFor(request, textResult('said anyway')), 401)
              : (asksForm(request) ?? { kind: 'destroy' });
          }),
        ),
      );
      await expect(client.callTool(CALL)).rejects.toThrow('could not authenticate');
      expect(asked.length).toBe(leg === 'the retry' ? 1 : 0);
      await close();
    },
  );

  it.each(STATUSES)('[G-05] has no stream where the upstream answers its subscription with %s', async (status) => {
    const session = await rig.openSession();
    rig.upstream.obey(
      inTurn(
        statelessOnly,
        onMethod('subscriptions/listen', () => jsonBody({ error: 'no' }, status)),
      ),
    );
    const opened = await fetch(rig.access.url, {
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        accept: 'text/event-stream',
      },
    });
    await opened.body?.cancel();
    expect(opened.status).toBe(502);
  });

  it('[Y-09] hears on its stream what a subscription tells, lists and resources', async () => {
    const session = await rig.openSession();
    rig.upstream.forget();
    const listens = onMethod('subscriptions/listen', (request) => {
      const _meta = { 'io.modelcontextprotocol/subscriptionId': request.id ?? 0 };
      const { notifications } = paramsOf(request);
      const uris = (notifications as JsonObject)['resourceSubscriptions'];
      const tagged = (method: string, params: JsonObject) => ({
        jsonrpc: '2.0',
        method,
        params: { ...params, _meta },
      });
      const first = tagged('notifications/subscriptions/acknowledged', {
        notifications: notifications ?? {},
      });
      const updated = tagged('notifications/resources/updated', { uri: 'memo://one' });
      return stream(uris === undefined ? [first] : [first, updated], 'hold');
    });
    rig.upstream.obey(inTurn(statelessOnly, listens));
    const opened = await fetch(rig.access.url, {
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        accept: 'text/event-stream',
      },
    });
    expect(opened.status).toBe(200);
    const received = readUntil(opened, 'resources/updated');
    expect(resultOf(await session.request('resources/subscribe', { uri: 'memo://one' }))).toEqual({});
    const text = await received;
    expect(text).toContain('memo://one');
    expect(text).not.toContain('subscriptionId');
    expect(text).not.toContain('acknowledged');
  });
});

describe('a client of sessions, and a tool whose arguments are mirrored in headers', () => {
  const TOOL = {
    name: 'read_record',
    description: 'Reads a record.',
    inputSchema: {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    },
  };
  const rig = sharedGateway({
    prepare(upstream) {
      upstream.obey(statelessOnly);
      upstream.offer(() => [TOOL]);
    },
  });

  /** As a server reads a header (MCP 2026-07-28, transports, value encoding). */
  function decode(header: string | undefined): string | undefined {
    const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(header ?? '') ?? [];
    return encoded === undefined ? header : Buffer.from(encoded, 'base64').toString('utf8');
  }

  it('[Y-08] has the headers written, which its client does not know, so that each reads as it was', async () => {
    const session = await rig.openSession();
    for (const region of ['north', 'Gr\u00fc\u00dfe', ' led', 'two\nlines', '=?base64?eA==?=', '']) {
      rig.upstream.forget();
      const reply = await session.call('read_record', { region });
      expect(resultOf(reply)).toHaveProperty('content');
      const [sent] = rig.upstream.uses();
      const header = sent?.headers['mcp-param-region'];
      expect(header).toMatch(/^[\x20-\x7e]*$/);
      expect(decode(header)).toBe(region);
      expect(paramsOf(sent as HostileRequest)['arguments']).toEqual({ region });
    }
  });

  it('[PRF-02] gets a list that came before as it got it then, and no longer once a byte of it differs', async () => {
    const session = await rig.openSession();
    const list = async (id: number | string): Promise<Reply> => {
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' });
      return post(rig.access, body, sessionHeaders(session.id));
    };
    const first = await list(1);
    expect(toolNames(first)).toEqual(['read_record']);
    for (const id of [2, 'two', 40, 1])
      expect((await list(id)).text).toBe(first.text.replace('"id":1', `"id":${JSON.stringify(id)}`));
    // As long as before, and not what was approved.
    rig.upstream.offer(() => [{ ...TOOL, description: 'Finds a record.' }]);
    expect(toolNames(await list(1))).toEqual([]);
  });
});

describe('an upstream that changes its era', () => {
  it('[Y-03] ends the sessions of the other, so that their clients open new ones', () =>
    withGateway(
      {
        upstream: ['pinning: {maxAge: 1s}'],
        prepare: (upstream) => upstream.obey(sessionsOnly),
      },
      async (rig) => {
        const raw = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
        expect((await raw.ask(1, 'tools/call', CALL)).status).toBe(200);
        rig.upstream.obey(statelessOnly);
        await expect
          .poll(async () => (await raw.ask(2, 'tools/call', CALL)).status, {
            timeout: 20_000,
            interval: 200,
          })
          .toBe(404);
      },
    ));
});
