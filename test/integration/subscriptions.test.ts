// Subscriptions of the stateless era through the running gateway: what of them reaches the upstream, what
// of its stream reaches the client, and what the gateway tells by itself.

import { afterEach, describe, expect, it } from 'vitest';
import { linesOf, UPSTREAM } from '../support/gateway.js';
import { onMethod, sseEvent, stream } from '../support/hostile-acts.js';
import { type Act, HONEST_TOOLS, type HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import {
  type Access,
  bearer,
  callStateless,
  type EventReader,
  errorOf,
  listenOn,
  openEvents,
  openSession,
  requestStateless,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const BEHIND_MS = 5_000;
const ID = 'io.modelcontextprotocol/subscriptionId';
const LISTEN = 'subscriptions/listen';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const TOOLS_CHANGED = 'notifications/tools/list_changed';
const UPDATED = 'notifications/resources/updated';

const POLICY = `version: 1
policy: open
rules:
  - id: tools
    effect: allow
    who: {subjects: [everyone]}
    what: {upstreams: ["*"], tools: ["*"], resources: ["memo://open/**"]}
  - id: resources-alone
    effect: allow
    who: {subjects: [reader]}
    what: {upstreams: ["*"], resources: ["memo://open/**"]}
`;

/** Everything that can be listened to. */
const ALL = {
  toolsListChanged: true,
  promptsListChanged: true,
  resourcesListChanged: true,
  resourceSubscriptions: ['memo://open/one', 'memo://closed/two'],
};

let changes = 0;

/** The upstream offers something that it has never offered before, and somebody looks. */
async function drift(): Promise<void> {
  changes += 1;
  const description = `Changed ${changes} times.`;
  rig.upstream.offer(() => HONEST_TOOLS.map((tool) => ({ ...tool, description })));
  await requestStateless(await accessOf('everyone'), 'tools/list');
}

const opened: EventReader[] = [];

async function accessOf(subject: string): Promise<Access> {
  return { url: rig.access.url, token: await rig.gateway.token(UPSTREAM, { sub: subject }) };
}

async function listen(notifications: JsonObject, subject = 'everyone'): Promise<EventReader> {
  const reader = await openEvents(await accessOf(subject), LISTEN, { notifications });
  opened.push(reader);
  return reader;
}

function tagged(method: string, params: JsonObject = {}, id: string | number = 'listen-1') {
  return { jsonrpc: '2.0', method, params: { ...params, _meta: { [ID]: id } } };
}

/** A stream that acknowledges what it was asked for, then says these things. */
function streamOf(messages: readonly JsonObject[], ending: 'end' | 'hold' | 'destroy' = 'hold') {
  return onMethod(LISTEN, (request: HostileRequest): Act => {
    const params = request.message?.['params'] as JsonObject;
    const first = tagged(ACKNOWLEDGED, { notifications: params['notifications'] ?? {} });
    const chunks = [first, ...messages].map((message) => sseEvent(message));
    return { kind: 'chunks', contentType: 'text/event-stream', chunks, ending };
  });
}

function forwardedFilter(): unknown {
  const sent = rig.upstream.seen().find(({ method }) => method === LISTEN)?.message;
  return (sent?.['params'] as JsonObject | undefined)?.['notifications'];
}

const rig = sharedGateway({ policies: { open: POLICY } });
afterEach(() => {
  for (const reader of opened.splice(0)) reader.leave();
  rig.upstream.repent();
  rig.upstream.forget();
});

describe('what a subscription asks for', () => {
  it('[T-01] is cut to what its caller may listen to, and acknowledged so', async () => {
    rig.upstream.obey(streamOf([]));
    const reader = await listen(ALL);
    expect(reader.status).toBe(200);
    expect(reader.headers.get('x-accel-buffering')).toBe('no');
    const agreed = {
      toolsListChanged: true,
      resourcesListChanged: true,
      resourceSubscriptions: ['memo://open/one'],
    };
    expect(await reader.next()).toEqual(tagged(ACKNOWLEDGED, { notifications: agreed }));
    expect(forwardedFilter()).toEqual(agreed);
  });

  it('[T-01] is nothing of tools for whoever sees none', async () => {
    rig.upstream.obey(streamOf([]));
    const reader = await listen({ toolsListChanged: true, resourcesListChanged: true }, 'reader');
    const acknowledged = await reader.next();
    expect(acknowledged?.['params']).toMatchObject({
      notifications: { resourcesListChanged: true },
    });
    expect(forwardedFilter()).toEqual({ resourcesListChanged: true });
  });

  it('[T-01] leaves byte for byte where all of it is allowed, and without what nobody has read', async () => {
    rig.upstream.obey(streamOf([]));
    await listen({ toolsListChanged: true });
    expect(rig.upstream.seen().at(-1)?.body).toContain('"notifications":{"toolsListChanged":true}');
    rig.upstream.forget();
    await listen({ toolsListChanged: true, other: 'x' });
    expect(forwardedFilter()).toEqual({ toolsListChanged: true });
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a list', []],
    ['a flag that is none', { toolsListChanged: 'yes' }],
    ['a resource that is none', { resourceSubscriptions: [1] }],
  ])('[T-01] is refused when malformed: %s', async (_what, notifications) => {
    const params = notifications === undefined ? {} : { notifications };
    const reply = await requestStateless(await accessOf('everyone'), LISTEN, params as JsonObject);
    expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32602]);
    expect(rig.upstream.seen()).toEqual([]);
  });
});

describe('what comes on the stream', () => {
  it('[T-02, MCP-21] passes where it was asked for, and is dropped and recorded where not', async () => {
    const secret = ['sk', 'live', 'a8Kq2ZrT7mXw4Lp9Nv3Bd6Yh'].join('_');
    rig.upstream.obey(
      streamOf([
        tagged('notifications/prompts/list_changed'),
        tagged(TOOLS_CHANGED, {}, 'another'),
        { jsonrpc: '2.0', method: TOOLS_CHANGED },
        tagged('notifications/progress', { progressToken: 1, progress: 1 }),
        tagged('notifications/message', { level: 'info', data: 'x' }),
        { jsonrpc: '2.0', id: 'ask', method: 'elicitation/create', params: {} },
        tagged(UPDATED, { uri: 'memo://closed/two' }),
        tagged(UPDATED, { uri: 'memo://open/other' }),
        tagged(UPDATED, { uri: 'memo://open/one/part', title: secret }),
        tagged(TOOLS_CHANGED, { note: secret }),
        {
          jsonrpc: '2.0',
          id: 'listen-1',
          result: { resultType: 'complete', _meta: { [ID]: 'listen-1' } },
        },
      ]),
    );
    const reader = await listen({ ...ALL, promptsListChanged: false });
    await reader.next();
    const updated = await reader.next();
    expect(updated).toMatchObject({ method: UPDATED, params: { uri: 'memo://open/one/part' } });
    expect(JSON.stringify(updated)).not.toContain(secret);
    // In the gateway's own words: nothing of what else came with it.
    expect(await reader.next()).toEqual(tagged(TOOLS_CHANGED));
    expect(await reader.next()).toEqual({
      jsonrpc: '2.0',
      id: 'listen-1',
      result: { resultType: 'complete', _meta: { [ID]: 'listen-1' } },
    });
    expect(await reader.next()).toBeUndefined();
    const found = async () =>
      (await rig.gateway.audit()).findLast(
        (line) => line['type'] === 'mcp.outcome' && line['target'].method === LISTEN,
      )?.['findings'];
    await expect
      .poll(found, PATIENT)
      .toContainEqual(expect.objectContaining({ detector: 'unasked-notice', action: 'drop' }));
  });

  it('[T-02] is nothing before the acknowledgement', async () => {
    rig.upstream.obey(
      onMethod(LISTEN, () => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [tagged(TOOLS_CHANGED), tagged(ACKNOWLEDGED, { notifications: { toolsListChanged: true } })].map(
          (message) => sseEvent(message),
        ),
        ending: 'hold',
      })),
    );
    const reader = await listen({ toolsListChanged: true });
    expect(await reader.next()).toMatchObject({ method: ACKNOWLEDGED });
  });

  it('[T-02] ends as a refusal where it is no protocol', async () => {
    rig.upstream.obey(streamOf([{ jsonrpc: '2.0', id: 'listen-1', result: { resultType: 'input_required' } }]));
    const reader = await listen({ toolsListChanged: true });
    await reader.next();
    expect(await reader.next()).toMatchObject({ id: 'listen-1', error: { code: 1506 } });
    expect(await reader.next()).toBeUndefined();
  });

  it('[T-05] ends bare when the upstream breaks off', async () => {
    rig.upstream.obey(streamOf([], 'destroy'));
    const reader = await listen({ toolsListChanged: true });
    await reader.next();
    expect(await reader.next()).toBeUndefined();
  });
});

describe('what comes on the stream of a session', () => {
  it('[T-02] is no change of a list of which its caller may see nothing', async () => {
    const access = await accessOf('reader');
    const { id } = await openSession(access);
    const changes = ['tools', 'prompts', 'resources'].map((list) => ({
      ...{ jsonrpc: '2.0', method: `notifications/${list}/list_changed` },
    }));
    rig.upstream.obey(({ httpMethod }) => (httpMethod === 'GET' ? stream(changes, 'hold') : undefined));
    const headers = {
      accept: 'text/event-stream',
      ...bearer(access.token),
      ...sessionHeaders(id),
    };
    const listening = await listenOn(await fetch(access.url, { headers }));
    await expect.poll(listening.text, PATIENT).toContain('resources/list_changed');
    expect(listening.text()).not.toMatch(/(?:tools|prompts)\/list_changed/);
    listening.leave();
  });
});

describe('what the gateway tells by itself', () => {
  it('[T-03] is drift, once, to who asked for it', async () => {
    rig.upstream.obey(streamOf([]));
    const tools = await listen({ toolsListChanged: true });
    const resources = await listen({ resourcesListChanged: true }, 'reader');
    for (const reader of [tools, resources]) await reader.next();
    await drift();
    expect(await tools.next()).toEqual(tagged(TOOLS_CHANGED));
    expect(await resources.next()).toEqual(tagged('notifications/resources/list_changed'));
  });

  it.each([
    ['404', { kind: 'http', status: 404 }],
    ['405', { kind: 'http', status: 405 }],
    ['an unknown method', undefined],
  ] as const)('[T-04] is all there is where the upstream answers %s', async (_what, act) => {
    if (act !== undefined) rig.upstream.obey(onMethod(LISTEN, () => act));
    const reader = await listen(ALL);
    expect(await reader.next()).toEqual(
      tagged(ACKNOWLEDGED, {
        notifications: { toolsListChanged: true, resourcesListChanged: true },
      }),
    );
    await drift();
    expect(await reader.next()).toEqual(tagged(TOOLS_CHANGED));
  });

  it('[T-04] goes on where the upstream agreed to nothing and ended', async () => {
    rig.upstream.obey(
      onMethod(LISTEN, (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [
          sseEvent(tagged(ACKNOWLEDGED, { notifications: {} })),
          sseEvent({ jsonrpc: '2.0', id: request.id ?? 0, result: { resultType: 'complete' } }),
        ],
        ending: 'end',
      })),
    );
    const reader = await listen({ toolsListChanged: true });
    expect(await reader.next()).toEqual(tagged(ACKNOWLEDGED, { notifications: { toolsListChanged: true } }));
    await drift();
    expect(await reader.next()).toEqual(tagged(TOOLS_CHANGED));
  });

  it('[T-04] is no substitute for an upstream that refuses or is down', async () => {
    const error = { code: -32603, message: 'Subscription limit reached' };
    rig.upstream.obey(
      onMethod(LISTEN, (request) => ({
        kind: 'http',
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: request.id ?? 0, error }),
      })),
    );
    const refused = await requestStateless(await accessOf('everyone'), LISTEN, {
      notifications: { toolsListChanged: true },
    });
    expect([refused.status, errorOf(refused)]).toEqual([200, error]);
    rig.upstream.obey(onMethod(LISTEN, () => ({ kind: 'destroy' })));
    const down = await requestStateless(await accessOf('everyone'), LISTEN, {
      notifications: { toolsListChanged: true },
    });
    expect([down.status, errorOf(down)['code']]).toEqual([502, 1502]);
  });
});

describe('how a stream ends', () => {
  it('[T-05] with its client, which frees the upstream at once', async () => {
    rig.upstream.obey(streamOf([]));
    const reader = await listen({ toolsListChanged: true });
    await reader.next();
    const request = rig.upstream.seen().find(({ method }) => method === LISTEN);
    expect(request?.isAborted).toBe(false);
    reader.leave();
    await expect.poll(() => request?.isAborted, PATIENT).toBe(true);
  });

  it('[T-05] with its token', async () => {
    rig.upstream.obey(streamOf([]));
    // The token still holds when the request is verified, however late that is; the stream ends by a timer.
    rig.passTime(-BEHIND_MS);
    const expiry = Math.floor(Date.now() / 1000) + 2;
    const token = await rig.gateway.token(UPSTREAM, { sub: 'everyone', exp: expiry });
    const access = { url: rig.access.url, token };
    const reader = await openEvents(access, LISTEN, { notifications: { toolsListChanged: true } });
    await reader.next();
    expect(await reader.next()).toMatchObject({
      id: 'listen-1',
      result: { resultType: 'complete' },
    });
    expect(await reader.next()).toBeUndefined();
    expect(Date.now()).toBeGreaterThanOrEqual(expiry * 1000 - 50);
    const request = rig.upstream.seen().find(({ method }) => method === LISTEN);
    await expect.poll(() => request?.isAborted, PATIENT).toBe(true);
    rig.passTime(BEHIND_MS);
  });

  it('[T-05] with the last rule that allowed something of it', async () => {
    rig.upstream.obey(streamOf([]));
    const reader = await listen({ resourceSubscriptions: ['memo://open/one'] }, 'reader');
    await reader.next();
    await rig.gateway.writePolicy('open', POLICY.replace('[reader]', '[somebody-else]'));
    await rig.gateway.reload();
    expect(await reader.next()).toMatchObject({ result: { resultType: 'complete' } });
    expect(await reader.next()).toBeUndefined();
    await rig.gateway.writePolicy('open', POLICY);
    await rig.gateway.reload();
  });

  it('[T-05] and is on record, allowed and forwarded', async () => {
    rig.upstream.obey(streamOf([]));
    const reader = await listen({ toolsListChanged: true });
    await reader.next();
    reader.leave();
    const line = async () =>
      (await rig.gateway.audit()).findLast((one) => one['type'] === 'mcp.outcome' && one['target'].method === LISTEN);
    await expect.poll(async () => (await line())?.['result'].http, PATIENT).toBe(200);
    const lines = await linesOf(rig.gateway, (await line())?.['decision'].id ?? '', 2);
    expect(lines.map((one) => one['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
    expect(lines[0]?.['decision']).toMatchObject({ verdict: 'allow', action: 'forwarded' });
  });
});

describe('open streams', () => {
  it('[T-05] end as a refusal where no acknowledgement comes in time', () =>
    withGateway(
      {
        policies: { open: POLICY },
        upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 1s}'],
      },
      async (hasty) => {
        hasty.upstream.obey(
          onMethod(LISTEN, () => ({
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: [':\n\n'],
            ending: 'hold',
          })),
        );
        const token = await hasty.gateway.token(UPSTREAM, { sub: 'everyone' });
        const access = { url: hasty.access.url, token };
        const reader = await openEvents(access, LISTEN, { notifications: { toolsListChanged: true } });
        expect(await reader.next()).toMatchObject({ id: 'listen-1', error: { code: 1505 } });
        expect(await reader.next()).toBeUndefined();
      },
    ));

  it('[T-05] take no place of a call', () =>
    withGateway(
      {
        policies: { open: POLICY },
        upstream: ['pinning: {maxAge: 10m}', 'limits: {concurrency: 2}'],
      },
      async (small) => {
        small.upstream.obey(streamOf([]));
        const token = await small.gateway.token(UPSTREAM, { sub: 'everyone' });
        const access = { url: small.access.url, token };
        const readers: EventReader[] = [];
        for (let i = 0; i < 4; i += 1) {
          const reader = await openEvents(access, LISTEN, {
            notifications: { toolsListChanged: true },
          });
          await reader.next();
          readers.push(reader);
        }
        const reply = await callStateless(access, 'read_record', { id: 'one' });
        expect([reply.status, reply.text.includes('read_record one')]).toEqual([200, true]);
        for (const reader of readers) reader.leave();
      },
    ));
});
