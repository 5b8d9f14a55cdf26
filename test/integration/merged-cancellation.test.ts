// What a client says of a request that it takes back at an endpoint: the member that works on it is told, with
// the reason; who else is told, where nobody knows whose it was, learns no more than the id.
// Source: MCP 2025-11-25, cancellation.

import { afterEach, describe, expect, it } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { stream, textResult } from '../support/hostile-acts.js';
import type { HostileUpstream, Order } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  type OpenSession,
  openSession,
  post,
  type Reply,
  requestInSession,
  sessionHeaders,
} from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const CANCELLED = 'notifications/cancelled';
/** Names a thing of one member that no other is to hear of. */
const REASON = 'The merger with Example Corp. is off.';
/** What every request of a test client has. */
const ID = 7;

const rig = shared(() => startMergedRig());
afterEach(() => {
  rig.left.repent();
  rig.right.repent();
  rig.forget();
});

/** The params of the cancellations that a member was told. */
function cancellationsOf(upstream: HostileUpstream): readonly (JsonObject | undefined)[] {
  const cancellations = upstream.seen().filter(({ method }) => method === CANCELLED);
  return cancellations.map(({ message }) => message?.['params'] as JsonObject | undefined);
}

/** Begins to answer, and never ends. */
function works(method: string): Order {
  return (request) => (request.method === method ? stream([], 'hold') : undefined);
}

async function cancel(session: OpenSession, params: JsonObject): Promise<Reply> {
  const note = { jsonrpc: '2.0', method: CANCELLED, params };
  return post(rig.access, JSON.stringify(note), sessionHeaders(session.id));
}

/** Sends a request, and cancels it once these members work on it. */
async function cancelAmid(
  session: OpenSession,
  request: { readonly method: string; readonly params: JsonObject },
  members: readonly HostileUpstream[],
): Promise<void> {
  for (const member of members) member.obey(works(request.method));
  rig.forget();
  const answer = requestInSession(rig.access, session.id, request.method, request.params);
  const isAsked = (member: HostileUpstream): boolean => member.seen().some(({ method }) => method === request.method);
  await expect.poll(() => members.every(isAsked)).toBe(true);
  expect((await cancel(session, { requestId: ID, reason: REASON })).status).toBe(202);
  // The server says no more: the gateway ends what is still open.
  await answer;
}

const callOf = (name: string) => ({
  method: 'tools/call',
  params: { name, arguments: { id: 'one' } },
});

describe('a request that is cancelled at an endpoint', () => {
  it('[MRG-25] is cancelled where it runs, with the reason, and nobody else hears of it', async () => {
    const session = await openSession(rig.access);
    await cancelAmid(session, callOf('l_read_record'), [rig.left]);
    expect(cancellationsOf(rig.left)).toEqual([{ requestId: ID, reason: REASON }]);
    expect(cancellationsOf(rig.right)).toEqual([]);
    rig.left.repent();
    await cancelAmid(session, callOf('right_read_record'), [rig.right]);
    expect(cancellationsOf(rig.left)).toEqual([]);
    expect(cancellationsOf(rig.right)).toEqual([{ requestId: ID, reason: REASON }]);
  });

  it('[MRG-25] is cancelled where it runs, also once its stream was resumed', async () => {
    const session = await openSession(rig.access);
    const priming = 'id: answer-0\nretry: 250\ndata: \n\n';
    rig.left.obey(({ method, httpMethod }) => {
      if (httpMethod === 'GET') return stream([], 'hold');
      if (method !== 'tools/call') return undefined;
      return {
        ...{ kind: 'chunks', contentType: 'text/event-stream', chunks: [priming], ending: 'end' },
      };
    });
    const broken = await session.call('l_read_record', { id: 'one' });
    const id = /^id: (.+)$/m.exec(broken.text)?.[1] ?? '';
    rig.forget();
    const headers = {
      ...{ accept: 'text/event-stream', authorization: `Bearer ${rig.access.token}` },
      ...{ ...sessionHeaders(session.id), 'last-event-id': id },
    };
    const resumed = fetch(rig.access.url, { headers });
    await expect.poll(() => rig.left.seen().length).toBe(1);
    expect((await cancel(session, { requestId: ID, reason: REASON })).status).toBe(202);
    expect(cancellationsOf(rig.left)).toEqual([{ requestId: ID, reason: REASON }]);
    expect(cancellationsOf(rig.right)).toEqual([]);
    await (await resumed).text();
  });

  it('[MRG-25] is cancelled at every member where each works on it', async () => {
    const session = await openSession(rig.access);
    const list = { method: 'tools/list', params: {} };
    await cancelAmid(session, list, [rig.left, rig.right]);
    for (const member of [rig.left, rig.right])
      expect(cancellationsOf(member)).toEqual([{ requestId: ID, reason: REASON }]);
  });

  it('[MRG-25] is told to all by its id alone once nobody knows whose it was', async () => {
    const session = await openSession(rig.access);
    rig.left.answerCalls(() => textResult('done'));
    await session.call('l_read_record', { id: 'one' });
    rig.forget();
    const odd = { note: REASON, _meta: { 'com.example/why': REASON } };
    expect((await cancel(session, { reason: REASON, requestId: ID, ...odd })).status).toBe(202);
    for (const member of [rig.left, rig.right]) expect(cancellationsOf(member)).toEqual([{ requestId: ID }]);
  });

  it('[MRG-25] is not cancelled by the same id in another session, or of another type', async () => {
    const session = await openSession(rig.access);
    const other = await openSession(rig.access);
    rig.left.obey(works('tools/call'));
    rig.forget();
    const { method, params } = callOf('l_read_record');
    const answer = requestInSession(rig.access, session.id, method, params);
    await expect.poll(() => rig.left.uses().length).toBe(1);
    await cancel(other, { requestId: ID, reason: REASON });
    await cancel(session, { requestId: String(ID), reason: REASON });
    for (const member of [rig.left, rig.right])
      expect(cancellationsOf(member)).toEqual([{ requestId: ID }, { requestId: String(ID) }]);
    await cancel(session, { requestId: ID, reason: REASON });
    expect(cancellationsOf(rig.left)).toContainEqual({ requestId: ID, reason: REASON });
    await answer;
  });
});
