// What goes wrong on bridged channels: servers that end a channel with its handshake or ask without end, and
// clients that initialize twice or read nothing. Nobody else suffers from any of them, and nothing is left.

import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { UPSTREAM } from '../support/gateway.js';
import { jsonBody, onlyIn, resultFor, sessionsOnly } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { callMessage, initializeMessage, openChannelCaller, postMessage } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { RESPONSE } from '../support/legacy-sse-front.js';
import { openRawSession } from '../support/raw-mcp.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, initialize } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** Sessions with an HTTP+SSE upstream that one caller may have. */
const MAX_LEGACY_SSE_SESSIONS_PER_CALLER = 64;
const CALL = { name: 'read_record', arguments: { id: 'one' } };
const APP = 'ui://weather/view.html';
const TOOL: JsonObject = {
  name: 'weather',
  inputSchema: { type: 'object' },
  _meta: { ui: { resourceUri: APP } },
};
const MIB = 1024 * 1024;

describe('a client of HTTP+SSE before an upstream of sessions', () => {
  let text = 'approved';
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {maxResponseBytes: 1MiB}'],
    prepare: (upstream) => {
      upstream.offer(() => [...HONEST_TOOLS, TOOL]);
      upstream.obey((request) =>
        request.method === 'resources/read' && request.name === APP
          ? jsonBody(resultFor(request, { contents: [{ uri: APP, text }] }))
          : onlyIn('sessions')(request),
      );
    },
  });
  afterEach(() => {
    rig.upstream.answerCalls(() => ({ content: [] }));
    rig.upstream.forget();
  });

  it('[LEG-01] gets one answer to a request whose result is withheld', async () => {
    const { channel, request } = await openChannelCaller(rig.access);
    text = 'another';
    await request('resources/read', { uri: APP });
    // The channel goes on in order, so what came for the first request stands before the second.
    await request('tools/list');
    const own = channel.text().split('"id":1,').length - 1;
    expect(own).toBe(1);
    channel.leave();
  });

  it('[LEG-06] initializes once, so that no session is left behind', async () => {
    const { channel } = await openChannelCaller(rig.access);
    const handshakes = () => rig.upstream.seen().filter(({ method }) => method === 'initialize');
    expect(handshakes()).toHaveLength(1);
    await postMessage(channel.address, rig.access.token, initializeMessage(7));
    expect(await channel.answer(7)).toMatchObject({ error: { code: -32600 } });
    expect(handshakes()).toHaveLength(1);
    channel.leave();
  });

  it('[LEG-06] that reads nothing is asked for no more than it may leave unread', async () => {
    const socket = connect(rig.port, '127.0.0.1');
    let head = '';
    socket.on('data', (bytes: Buffer) => {
      head += bytes.toString('latin1');
      if (head.includes('/message?session=')) socket.pause();
    });
    socket.write(
      [
        `GET ${rig.path}/sse HTTP/1.1`,
        `host: 127.0.0.1:${rig.port}`,
        `authorization: Bearer ${rig.access.token}`,
        'accept: text/event-stream',
        '',
        '',
      ].join('\r\n'),
    );
    await expect.poll(() => head, PATIENT).toContain('/message?session=');
    const address = /data: (\S+session=\S+)/.exec(head)?.[1] ?? '';
    const post = (message: JsonObject) => postMessage(address, rig.access.token, message);
    expect((await post(initializeMessage(0))).status).toBe(202);
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const block = { type: 'text', text: 'word '.repeat(MIB / 10) };
    rig.upstream.answerCalls(() => ({ content: [block] }));
    let id = 0;
    const callOnce = async () => {
      id += 1;
      return (await post(callMessage(id, 'read_record', { id: 'one' }))).status;
    };
    // What the kernel takes for both ends is no more than a few of these. Large answers are read beside the
    // event loop, so the calls that are taken run ahead of what is known to be left unread.
    await expect.poll(callOnce, PATIENT).toBe(503);
    const asked = rig.upstream.uses().length;
    expect((await post(callMessage(100, 'no_such_tool'))).status).toBeGreaterThanOrEqual(400);
    expect(rig.upstream.uses()).toHaveLength(asked);
    socket.destroy();
  });
});

describe('an upstream of HTTP+SSE', () => {
  const rig = sharedGateway({
    behindChannels: true,
    prepare: (upstream) => upstream.obey(sessionsOnly),
  });
  afterEach(() => {
    rig.front?.release();
    rig.front?.dieAfterHandshake(false);
    rig.front?.forget();
    rig.upstream.forget();
  });

  it('[LEG-05] is answered a few of its own requests at a time, and the rest not at all', async () => {
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    rig.front?.hold('tools/call');
    rig.front?.hold(RESPONSE);
    const waiting = session.ask(9, 'tools/call', CALL);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    rig.front?.forget();
    for (let ping = 0; ping < 200; ping += 1) rig.front?.say({ jsonrpc: '2.0', id: `ping-${ping}`, method: 'ping' });
    rig.front?.release('tools/call');
    // Said behind the pings, so that all of them were read; and no response to one has arrived yet.
    expect((await waiting).text).toContain('read_record one');
    rig.front?.release(RESPONSE);
    const pongs = (id: string): number => rig.front?.seen().filter(({ body }) => body.includes(`"${id}`)).length ?? 0;
    // Answers leave in order, so whatever is to be answered is answered before this.
    const askLast = (): number => {
      rig.front?.say({ jsonrpc: '2.0', id: 'last', method: 'ping' });
      return pongs('last');
    };
    await expect.poll(askLast, PATIENT).toBeGreaterThan(0);
    expect(pongs('ping-')).toBeGreaterThan(0);
    expect(pongs('ping-')).toBeLessThan(10);
  });

  it('[LEG-06] that ends a channel with its handshake has opened no session', async () => {
    rig.front?.dieAfterHandshake(true);
    const { status, headers } = await initialize(rig.access);
    expect([status, headers.get('mcp-session-id')]).toEqual([502, null]);
    rig.front?.dieAfterHandshake(false);
    const session = await openRawSession(rig.access.url, { token: rig.access.token ?? '' });
    expect((await session.ask(1, 'tools/call', CALL)).text).toContain('read_record one');
  });

  it('[LEG-02] serves as many stateless callers as come, whatever one caller may have', async () => {
    const callers = Array.from({ length: MAX_LEGACY_SSE_SESSIONS_PER_CALLER + 6 }, (_, at) => `caller-${at}`);
    const reported: string[] = [];
    for (const sub of [...callers, ...callers]) {
      const access = { ...rig.access, token: await rig.gateway.token(UPSTREAM, { sub }) };
      reported.push((await callStateless(access, 'read_record', { id: 'one' })).text);
    }
    expect(reported.filter((text) => !text.includes('read_record one'))).toEqual([]);
  });
});
