// What is left when clients go away: of calls, streams, channels and sessions that they abandon nothing stays open
// at the upstream, and nothing in the gateway's count of open streams.

import { afterEach, describe, expect, it } from 'vitest';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { stream } from '../support/hostile-acts.js';
import type { HostileRequest } from '../support/hostile-upstream.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import { sendRaw } from '../support/raw-mcp.js';
import { PATIENT } from '../support/timing.js';
import { bearer, post, SESSION_VERSION, sessionHeaders, statelessParts } from '../support/wire-client.js';
import { sharedGateway, withStarted } from '../support/with-gateway.js';

const CALL = { name: 'read_record', arguments: { id: 'one' } };
const CLIENTS = 5;
const BOTH = 'application/json, text/event-stream';

let gone: AbortController;

const rig = sharedGateway();
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

/** Every call, stream and subscription is held open by the upstream. */
function holdAll(): void {
  rig.upstream.obey((request) =>
    request.method === 'tools/call' || request.method === 'subscriptions/listen' || request.httpMethod === 'GET'
      ? stream([], 'hold')
      : undefined,
  );
}

const heldNow = (): readonly HostileRequest[] =>
  rig.upstream
    .seen()
    .filter(
      ({ method, httpMethod, isAborted }) =>
        !isAborted && (httpMethod === 'GET' || method === 'tools/call' || method === 'subscriptions/listen'),
    );

async function openStreams(): Promise<number> {
  const metrics = await rig.gateway.metrics();
  return Number(/^sallyport_open_streams\{[^}]*\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

/** Sends it, and does not wait for its end. */
function begin(url: string, init: RequestInit): void {
  void fetch(url, { ...init, signal: gone.signal }).then(
    (response) => response.text().catch(() => undefined),
    () => undefined,
  );
}

describe('[LEG-06] when its clients leave', () => {
  it('streams that they held open leave no connection to the upstream behind', async () => {
    gone = new AbortController();
    const session = await rig.openSession();
    await session.call('read_record', { id: 'one' });
    rig.upstream.forget();
    holdAll();
    const before = rig.upstream.connections();
    for (let client = 0; client < CLIENTS; client += 1) {
      const headers = { ...bearer(rig.access.token), ...sessionHeaders(session.id) };
      begin(rig.access.url, { headers: { ...headers, accept: 'text/event-stream' } });
    }
    await expect.poll(() => heldNow().length, PATIENT).toBe(CLIENTS);
    gone.abort();
    await expect.poll(() => heldNow().length, PATIENT).toBe(0);
    await expect.poll(openStreams, PATIENT).toBe(0);
    rig.upstream.repent();
    // On the connection that the first call had: any other was accepted before. A stream may have taken the connection of
    // a notification.
    await session.call('read_record', { id: 'one' });
    expect(rig.upstream.connections() - before).toBeLessThanOrEqual(CLIENTS);
  });

  it('a stateless call and a subscription free their upstream requests', async () => {
    holdAll();
    gone = new AbortController();
    for (let client = 0; client < CLIENTS; client += 1) {
      for (const [method, params] of [
        ['tools/call', CALL],
        ['subscriptions/listen', { notifications: { toolsListChanged: true } }],
      ] as const) {
        const { headers, body } = statelessParts(method, params);
        const all = { ...headers, ...bearer(rig.access.token) };
        void sendRaw(rig.access.url, body, { headers: all, signal: gone.signal }).then(
          (response) => response.text().catch(() => undefined),
          () => undefined,
        );
      }
    }
    await expect.poll(() => heldNow().length, PATIENT).toBe(2 * CLIENTS);
    await expect.poll(openStreams, PATIENT).toBe(CLIENTS);
    gone.abort();
    await expect.poll(() => heldNow().length, PATIENT).toBe(0);
    await expect.poll(openStreams, PATIENT).toBe(0);
  });

  it('the streams of sessions are closed here and there, and the ended session is unknown', async () => {
    gone = new AbortController();
    const sessions = await Promise.all(Array.from({ length: CLIENTS }, () => rig.openSession()));
    holdAll();
    for (const { id } of sessions) {
      const headers = { ...bearer(rig.access.token), ...sessionHeaders(id) };
      begin(rig.access.url, { headers: { ...headers, accept: 'text/event-stream' } });
    }
    await expect.poll(() => heldNow().length, PATIENT).toBe(CLIENTS);
    await expect.poll(openStreams, PATIENT).toBe(CLIENTS);
    const [first] = sessions;
    await first?.end();
    await expect.poll(() => heldNow().length, PATIENT).toBe(CLIENTS - 1);
    gone.abort();
    await expect.poll(() => heldNow().length, PATIENT).toBe(0);
    await expect.poll(openStreams, PATIENT).toBe(0);
    expect((await first?.call('read_record', { id: 'one' }))?.status).toBe(404);
  });

  it('channels take their calls, streams and upstream sessions along', async () => {
    holdAll();
    const callers = await Promise.all(Array.from({ length: CLIENTS }, () => openChannelCaller(rig.access)));
    const opened = new Set(rig.upstream.seen().flatMap(({ headers }) => headers['mcp-session-id'] ?? []));
    for (const caller of callers) void caller.request('tools/call', CALL).catch(() => undefined);
    await expect.poll(() => heldNow().length, PATIENT).toBe(2 * CLIENTS);
    await expect.poll(openStreams, PATIENT).toBe(CLIENTS);
    for (const { channel } of callers) channel.leave();
    await expect.poll(() => heldNow().length, PATIENT).toBe(0);
    await expect.poll(openStreams, PATIENT).toBe(0);
    const ended = (): number =>
      new Set(
        rig.upstream
          .seen()
          .filter(({ httpMethod }) => httpMethod === 'DELETE')
          .map(({ headers }) => headers['mcp-session-id']),
      ).size;
    await expect.poll(ended, PATIENT).toBe(CLIENTS);
    expect(opened.size).toBeGreaterThanOrEqual(CLIENTS);
  });
});

describe('[LEG-06] the session that an upstream opens', () => {
  const INITIALIZE = JSON.stringify({
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: {
      protocolVersion: SESSION_VERSION,
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    },
  });
  const isInitialize = ({ method }: HostileRequest): boolean => method === 'initialize';
  const endedNow = (): readonly (string | undefined)[] =>
    rig.upstream
      .seen()
      .filter(({ httpMethod }) => httpMethod === 'DELETE')
      .map(({ headers }) => headers['mcp-session-id']);

  it('is ended where the client left before the answer came', async () => {
    let answer: () => void = () => undefined;
    const after = new Promise<void>((resolve) => {
      answer = resolve;
    });
    rig.upstream.openNextSessionAs('opened-for-nobody');
    rig.upstream.obey((request) => (isInitialize(request) ? { kind: 'honest', after } : undefined));
    gone = new AbortController();
    const headers = {
      'content-type': 'application/json',
      accept: BOTH,
      ...bearer(rig.access.token),
    };
    begin(rig.access.url, { method: 'POST', headers, body: INITIALIZE });
    await expect.poll(() => rig.upstream.seen().some(isInitialize), PATIENT).toBe(true);
    gone.abort();
    // Answered after the client's connection has closed, because both are events of one loop.
    await openStreams();
    answer();
    await expect.poll(endedNow, PATIENT).toEqual(['opened-for-nobody']);
  });

  it('is ended where the client is refused the answer', async () => {
    const headers = { 'content-type': 'application/json', 'mcp-session-id': 'refused' };
    rig.upstream.obeyOnce((request) =>
      isInitialize(request) ? { kind: 'http', status: 200, headers, body: '{}' } : undefined,
    );
    expect((await post(rig.access, INITIALIZE)).message).toHaveProperty('error');
    await expect.poll(endedNow, PATIENT).toEqual(['refused']);
  });
});

it('[G-01] a client that leaves before its server answers has left, and its server has not failed', async () => {
  const { token } = rig.access;
  const old = [{ name: 'old', url: rig.upstream.url, more: ['transport: http-sse'] }];
  await withStarted(
    () => startTestGateway({ upstreams: old, pin: false }),
    async (channels) => {
      const session = await rig.openSession();
      gone = new AbortController();
      rig.upstream.obey(({ method, httpMethod }) =>
        method === 'tools/call' || httpMethod === 'GET' ? { kind: 'hold' } : undefined,
      );
      const accept = 'text/event-stream';
      begin(rig.access.url, { headers: { ...bearer(token), ...sessionHeaders(session.id), accept } });
      await expect.poll(() => heldNow().length, PATIENT).toBe(1);
      const { headers, body } = statelessParts('tools/call', CALL);
      const typed = { 'content-type': 'application/json', accept: BOTH };
      begin(rig.access.url, {
        ...{ method: 'POST', body: JSON.stringify(body) },
        headers: { ...headers, ...bearer(token), ...typed },
      });
      begin(`${channels.url('old')}/sse`, { headers: { ...bearer(await channels.token('old')), accept } });
      const begun = async () => (await channels.audit()).filter(({ type }) => type === 'mcp.decision').length;
      await expect.poll(() => heldNow().length, PATIENT).toBeGreaterThan(2);
      await expect.poll(begun, PATIENT).toBe(1);
      const left = async (gateway: RunningGateway) =>
        [...(await gateway.metrics()).matchAll(/^sallyport_client_disconnects_total\{[^}]*\} (\d+)$/gm)].reduce(
          (sum, [, count]) => sum + Number(count),
          0,
        );
      const before = await left(rig.gateway);
      gone.abort();
      await expect.poll(() => left(rig.gateway), PATIENT).toBe(before + 2);
      await expect.poll(() => left(channels), PATIENT).toBe(1);
      for (const gateway of [rig.gateway, channels]) {
        expect(await gateway.metrics()).not.toMatch(/_operation_duration_\w+\{[^}]*upstream-unavailable/);
        const reasons = (await gateway.audit()).flatMap(({ decision }) => decision?.reasons ?? []);
        expect(reasons).not.toContain('upstream-unavailable');
        expect(gateway.log()).not.toContain('upstream-unavailable');
      }
    },
  );
});
