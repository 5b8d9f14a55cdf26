// Case 81, sessions: an id that belongs to somebody else is as unknown as one that never was.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTwoUpstreams, type TwoUpstreams } from '../support/deployments.js';
import { expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import {
  type Access,
  bearer,
  type OpenSession,
  openSession,
  type Reply,
  readReply,
  requestInSession,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe("a session in another caller's hands", () => {
  let session: OpenSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
    rig.upstream.forget();
  });

  const call = { name: 'read_record', arguments: { id: 'one' } };

  /** The refusal without what is its own in each: the id of the decision. */
  function shape(reply: Reply): unknown {
    const headers = Object.fromEntries(reply.headers);
    const { date: _date, 'sallyport-decision': id = '', ...rest } = headers;
    return { status: reply.status, headers: rest, text: reply.text.replace(id, 'ID') };
  }

  const THIEVES: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
    ['another subject', { sub: 'mallory' }],
    ['another client of the same subject', { client_id: 'other-client' }],
    ['a subject in another case', { sub: 'Alice' }],
    ['a subject with a space', { sub: 'alice ' }],
  ];

  it.each(THIEVES)('[X-81, MCP-33] is a 404 like an unknown one: %s', async (_name, claims) => {
    const thief = rig.as(await rig.gateway.token('target', claims));
    const stolen = await requestInSession(thief, session.id, 'tools/call', call);
    const unknown = await requestInSession(thief, 'never-was', 'tools/call', call);
    expect(stolen.status).toBe(404);
    expect(shape(stolen)).toEqual(shape(unknown));
    await expectRefusedLines(rig, stolen, 'unknown-session');
    await expectRefusedLines(rig, unknown, 'unknown-session');
    expectNothingForwarded(rig);
  });

  async function withMethod(method: 'GET' | 'DELETE', access: Access, id: string): Promise<Reply> {
    const headers = { ...bearer(access.token), ...sessionHeaders(id), accept: 'text/event-stream' };
    return readReply(await fetch(access.url, { method, headers }));
  }

  it.each(['GET', 'DELETE'] as const)('[X-81] cannot be read or ended: %s', async (method) => {
    const thief = rig.as(await rig.gateway.token('target', { sub: 'mallory' }));
    const stolen = await withMethod(method, thief, session.id);
    expect(stolen.status).toBe(404);
    expect(shape(stolen)).toEqual(shape(await withMethod(method, thief, 'never-was')));
    expectNothingForwarded(rig);
    expect((await session.call('read_record', { id: 'mine' })).status).toBe(200);
    rig.upstream.forget();
  });

  it('[X-81] is not opened by an id that was changed, cut, or is the one of the upstream', async () => {
    const last = session.id.slice(-1) === 'A' ? 'B' : 'A';
    const inner = rig.upstream.seen().find(({ headers }) => 'mcp-session-id' in headers);
    const ids = [
      `${session.id.slice(0, -1)}${last}`,
      session.id.slice(0, -4),
      `${session.id}AAAA`,
      session.id.toLowerCase(),
      inner?.headers['mcp-session-id'] ?? 'none',
    ].filter((id) => id !== session.id);
    for (const id of ids) {
      const reply = await requestInSession(rig.access, id, 'tools/call', call);
      expect(reply.status).toBe(404);
    }
    expectNothingForwarded(rig);
  });

  it('[X-81] never shows the id of the upstream', async () => {
    await session.call('read_record', { id: 'one' });
    const inner = rig.upstream.uses().at(-1)?.headers['mcp-session-id'] ?? '';
    expect(inner).toMatch(/^[0-9a-f]{24}$/);
    expect(session.id).not.toContain(inner);
    expect(JSON.stringify(await rig.gateway.audit())).not.toContain(inner);
    expect(JSON.stringify(await rig.gateway.audit())).not.toContain(session.id);
    expect(rig.gateway.log()).not.toContain(session.id);
    rig.upstream.forget();
  });

  it('[X-81] stays with its owner when the token is renewed', async () => {
    const renewed = rig.as(await rig.gateway.token('target', { scope: 'notes:read' }));
    expect((await requestInSession(renewed, session.id, 'tools/call', call)).status).toBe(200);
  });

  it('[X-81, MCP-33] is unknown to its owner too once it has ended', async () => {
    const own = await rig.openSession();
    expect((await own.end()).status).toBe(204);
    rig.upstream.forget();
    const reply = await own.call('read_record', { id: 'one' });
    expect(reply.status).toBe(404);
    await expectRefusedLines(rig, reply, 'unknown-session');
    expectNothingForwarded(rig);
  });

  it('[X-81] is unknown in another spelling', async () => {
    const bytes = Buffer.from(session.id, 'base64url');
    const spellings = [`${session.id}=`, bytes.toString('hex'), ` ${bytes.toString('base64')}==`];
    for (const id of spellings) {
      const reply = await requestInSession(rig.access, id, 'tools/call', call);
      expect(reply.status).toBe(404);
    }
    expectNothingForwarded(rig);
  });
});

describe('a session of another upstream', () => {
  let both: TwoUpstreams | undefined;
  afterAll(() => both?.close());

  it('[X-81] is unknown, though the caller is the same', async () => {
    both = await startTwoUpstreams();
    const own = await openSession(both.one);
    const call = { name: 'read_record', arguments: { id: 'one' } };
    expect((await requestInSession(both.one, own.id, 'tools/call', call)).status).toBe(200);
    expect((await requestInSession(both.two, own.id, 'tools/call', call)).status).toBe(404);
    expect(both.seenByTwo().some(({ method }) => method === 'tools/call')).toBe(false);
  });
});
