// The header that leads from a response to its lines in the audit log: on everything that was decided, whatever its form,
// and never in the body of a result.

import { beforeAll, describe, expect, it } from 'vitest';
import { connectTo, startMergedRig } from '../support/deployments.js';
import { linesOf } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { openRawSession, postRaw, type RawSession } from '../support/raw-mcp.js';
import {
  bearer,
  callStateless,
  type OpenSession,
  post,
  requestInSession,
  requestStateless,
  sessionHeaders,
} from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const HEADER = 'sallyport-decision';
const CALL = { name: 'read_record', arguments: { id: 'one' } };

describe('[TRC-01] the id of its decision is in a header of every response', () => {
  const rig = sharedGateway();
  let session: OpenSession;
  beforeAll(async () => {
    session = await rig.openSession();
  });

  const authorized = () => bearer(rig.access.token);
  const onStream = onMethod('tools/call', (request) => ({
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [sseEvent(resultFor(request, textResult('streamed')))],
    ending: 'end',
  }));

  const ANSWERED: readonly (readonly [string, number, () => Promise<{ status: number; headers: Headers }>])[] = [
    ['a call without a session', 200, () => callStateless(rig.access, CALL.name, CALL.arguments)],
    ['a call in a session', 200, () => requestInSession(rig.access, session.id, 'tools/call', CALL)],
    ['a list', 200, () => requestStateless(rig.access, 'tools/list')],
    [
      'a response on a stream',
      200,
      async () => {
        rig.upstream.obey(onStream);
        const reply = await callStateless(rig.access, CALL.name, CALL.arguments);
        rig.upstream.repent();
        expect(reply.headers.get('content-type')).toBe('text/event-stream');
        return reply;
      },
    ],
    ['a refused call', 200, () => callStateless(rig.access, 'no_such_tool')],
    ['a call with no token', 401, () => callStateless({ ...rig.access, token: undefined }, CALL.name)],
    ['a body that is no JSON', 400, () => post(rig.access, '{', {})],
    [
      'a notification',
      202,
      () => post(rig.access, '{"jsonrpc":"2.0","method":"notifications/initialized"}', sessionHeaders(session.id)),
    ],
    [
      'the end of a session',
      204,
      async () => {
        const { id } = await rig.openSession();
        return fetch(rig.access.url, { method: 'DELETE', headers: { ...authorized(), ...sessionHeaders(id) } });
      },
    ],
  ];

  it.each(ANSWERED)('%s', async (_what, status, send) => {
    const reply = await send();
    expect(reply.status).toBe(status);
    const id = reply.headers.get(HEADER) ?? '';
    expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    await linesOf(rig.gateway, id, 1);
  });

  it('and the body of a result is that of the upstream, byte for byte', async () => {
    const body =
      '{"jsonrpc" : "2.0", "id":1, "result":{"content":[{"type":"text","text":"x"}], "resultType":"complete"}}';
    rig.upstream.obey(
      onMethod('tools/call', () => ({
        kind: 'http',
        status: 200,
        headers: { 'content-type': 'application/json' },
        body,
      })),
    );
    const reply = await callStateless(rig.access, CALL.name, CALL.arguments);
    rig.upstream.repent();
    expect(reply.text).toBe(body);
  });

  it.each(['/no/such/path', '/.well-known/oauth-protected-resource/target'])(
    'but not where nothing was decided: %s',
    async (path) => {
      const reply = await fetch(new URL(path, rig.access.url));
      await reply.text();
      expect(reply.headers.get(HEADER)).toBeNull();
    },
  );
});

describe('[TRC-01] a response that is made of several decisions', () => {
  const rig = sharedGateway();

  it('of a batch names the batch, and each element says so', async () => {
    const { url, token = '' } = rig.access;
    const session: RawSession = await openRawSession(url, { token, version: '2025-03-26' });
    const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: CALL });
    const answer = await postRaw(url, [call(1), call(2)], { headers: session.headers });
    const id = answer.headers.get(HEADER) ?? '';
    expect(answer.messages).toHaveLength(2);
    await linesOf(rig.gateway, id, 2);
    const parts = (await rig.gateway.audit()).filter((line) => line['decision']?.part_of === id);
    expect(new Set(parts.map((line) => line['decision'].id)).size).toBe(2);
  });
});

describe('[TRC-01] a response of an endpoint', () => {
  const rig = shared(() => startMergedRig({}));

  it('names the request, and each backend says that its decision is a part of it', async () => {
    const caller = await connectTo('stateless', rig.access);
    const listed = await caller.request('tools/list');
    const id = listed.headers.get(HEADER) ?? '';
    const partsOf = async () =>
      (await rig.gateway.audit()).filter(({ type, decision }) => type === 'mcp.decision' && decision?.part_of === id);
    await expect.poll(partsOf).toHaveLength(2);
    expect((await partsOf()).map(({ target }) => target.upstream).sort()).toEqual(['left', 'right']);
  });
});
