// Streams that are open for long: what they rest on may go while they run, the rule, the session or the
// token, and they go with it, though their client takes nothing more. A message is judged by what holds
// when it comes.

import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL, type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import type { Order } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  type Access,
  bearer,
  type Listening,
  listenOn,
  openSession,
  rawPost,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';

/** Streams that one caller may hold open. */
const MAX_STREAMS_A_CALLER = 64;
const SSN = ['SSN 536', '22', '8745'].join('-');
const STEP_MS = 50;
const STEPS = 200;
const PROFILES = `inspection:
  profiles:
    default: {request: {secrets: block}, result: {secrets: redact, pii: "off", activeContent: neutralize, invisible: strip, injection: flag}}
    careful: {request: {secrets: block}, result: {secrets: redact, pii: redact, activeContent: neutralize, invisible: strip, injection: flag}}
`;
const DENIED = `${ALLOW_ALL}  - {id: no, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
`;
const CAREFUL = `${ALLOW_ALL}  - id: careful
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    inspect: careful
`;

/** Tells of its progress for ten seconds, then answers. */
function longCall(message: string): Order {
  return onMethod('tools/call', (request) => ({
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [
      ...Array.from({ length: STEPS }, (_, progress) =>
        sseEvent({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: 1, progress, message },
        }),
      ),
      sseEvent(resultFor(request, textResult('done'))),
    ],
    ending: 'end',
    paceMs: STEP_MS,
  }));
}

const PARTS = statelessParts('tools/call', {
  name: 'read_record',
  arguments: { id: 'one' },
  _meta: { progressToken: 1 },
});

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

async function listenTo(url: string, init: RequestInit): Promise<Listening> {
  return listenOn(await fetch(url, init));
}

describe('a long stream', () => {
  let rig: AttackRig;
  let startedAt = 0;
  beforeAll(async () => {
    // Tokens are verified by this clock, and end by timers: a slow start does not refuse one that ends soon.
    startedAt = Date.now();
    rig = await startRig({ more: PROFILES, now: () => startedAt });
  });
  afterEach(async () => {
    rig.upstream.repent();
    await rig.gateway.writePolicy('open', ALLOW_ALL);
    await rig.gateway.reload();
  });
  afterAll(() => rig.close());

  const startCall = () =>
    listenTo(rig.access.url, {
      method: 'POST',
      headers: {
        ...bearer(rig.access.token),
        ...PARTS.headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(PARTS.body),
    });

  it('[H-04] ends with the rule that allowed it', async () => {
    rig.upstream.obey(longCall('working'));
    const stream = await startCall();
    await expect.poll(stream.text).toContain('working');
    await rig.gateway.writePolicy('open', DENIED);
    await rig.gateway.reload();
    await expect.poll(stream.isOver, { timeout: 2_000 }).toBe(true);
    expect(stream.text()).toContain('-32602');
    expect(rig.upstream.uses().at(-1)?.isAborted).toBe(true);
  });

  it('[H-04] goes on over a reload that leaves its rule, judged by what then holds', async () => {
    rig.upstream.obey(longCall(SSN));
    const stream = await startCall();
    await expect.poll(stream.text).toContain(SSN);
    await rig.gateway.writePolicy('open', CAREFUL);
    await rig.gateway.reload();
    await expect.poll(stream.text).toContain('[redacted:');
    expect(stream.isOver()).toBe(false);
    const [, redacted = ''] = stream.text().split('[redacted:', 2);
    await expect.poll(() => stream.text().split('[redacted:').length).toBeGreaterThan(5);
    expect(redacted).not.toContain(SSN);
    expect(stream.text().split('[redacted:').slice(1).join('')).not.toContain(SSN);
    stream.leave();
  });

  it('[H-04] ends with its session', async () => {
    const session = await rig.openSession();
    const headers = {
      ...bearer(rig.access.token),
      ...sessionHeaders(session.id),
      accept: 'text/event-stream',
    };
    const stream = await listenTo(rig.access.url, { headers });
    await session.end();
    await expect.poll(stream.isOver, { timeout: 2_000 }).toBe(true);
  });

  it('[G-80] takes no room from others: a caller holds its share of streams, and no more', async () => {
    const open = async (access: Access, session: string): Promise<Response> =>
      fetch(access.url, {
        headers: {
          ...bearer(access.token),
          ...sessionHeaders(session),
          accept: 'text/event-stream',
        },
      });
    const session = await rig.openSession();
    const held: Response[] = [];
    while (held.length < MAX_STREAMS_A_CALLER) held.push(await open(rig.access, session.id));
    expect(new Set(held.map(({ status }) => status))).toEqual(new Set([200]));
    const refused = await open(rig.access, session.id);
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain('"overloaded"');
    const bob = rig.as(await rig.gateway.token(UPSTREAM, { sub: 'bob', iat: seconds(startedAt) }));
    const other = await openSession(bob);
    held.push(await open(bob, other.id));
    expect(held.at(-1)?.status).toBe(200);
    await held[0]?.body?.cancel();
    await expect
      .poll(async () => {
        const again = await open(rig.access, session.id);
        held.push(again);
        return again.status;
      })
      .toBe(200);
    for (const { body } of held) await body?.cancel().catch(() => undefined);
    await session.end();
    await other.end();
  });

  it.each(['streams of a session', 'subscriptions'])(
    '[G-80] takes no room from others: %s that are opened at the same time count too',
    async (what) => {
      const times = { sub: what, iat: seconds(startedAt) };
      const caller = rig.as(await rig.gateway.token(UPSTREAM, times));
      const session = await openSession(caller);
      const accept = 'application/json, text/event-stream';
      const listen = statelessParts('subscriptions/listen', {
        notifications: { toolsListChanged: true },
      });
      const open = (): Promise<Response> =>
        what === 'subscriptions'
          ? fetch(caller.url, {
              method: 'POST',
              headers: {
                ...bearer(caller.token),
                ...listen.headers,
                'content-type': 'application/json',
                accept,
              },
              body: JSON.stringify(listen.body),
            })
          : fetch(caller.url, {
              headers: { ...bearer(caller.token), ...sessionHeaders(session.id), accept },
            });
      const opened = await Promise.all(Array.from({ length: MAX_STREAMS_A_CALLER + 8 }, () => open()));
      const statuses = opened.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(MAX_STREAMS_A_CALLER);
      expect(statuses.filter((status) => status === 503)).toHaveLength(8);
      for (const { body } of opened) await body?.cancel().catch(() => undefined);
      await session.end();
    },
  );

  it('[H-04] ends with its token, though nobody reads it', async () => {
    rig.upstream.obey(longCall('x'.repeat(200_000)));
    const times = { iat: seconds(startedAt), exp: seconds(Date.now()) + 2 };
    const token = await rig.gateway.token(UPSTREAM, times);
    const lines = [
      `host: 127.0.0.1:${rig.port}`,
      `authorization: Bearer ${token}`,
      'content-type: application/json',
      'accept: application/json, text/event-stream',
      ...Object.entries(PARTS.headers).map(([name, value]) => `${name}: ${value}`),
    ];
    const body = JSON.stringify(PARTS.body satisfies JsonObject);
    const socket = connect(rig.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.pause();
    socket.write(rawPost(rig.path, [...lines, `content-length: ${body.length}`], body));
    const expired = async () =>
      (await rig.gateway.audit()).filter(
        (line) => line['type'] === 'mcp.outcome' && line['decision'].reasons.includes('token-expired'),
      );
    await expect.poll(async () => (await expired()).length, { timeout: 8_000 }).toBe(1);
    socket.destroy();
  });
});
