// Revocation through the running gateway: what an administrator revokes is refused from the next request
// on, though it was accepted a moment ago, and what is open ends.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  ADMINS,
  type Admins,
  adminsOf,
  idOf,
  LONG_ANSWERS,
  openSessionStreams,
  openStatelessStreams,
  startMergedRig,
  tokenOf,
} from '../support/deployments.js';
import { expectLoginLine } from '../support/gateway.js';
import { SOON } from '../support/timing.js';
import {
  bearer,
  callStateless,
  type Listening,
  listenOn,
  openSession,
  type Reply,
  requestInSession,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway, withStarted } from '../support/with-gateway.js';

const JSON_TYPE = 'application/json';
const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';

let admins: Admins;

const rig = sharedGateway({ more: ADMINS });
beforeAll(async () => {
  admins = adminsOf(rig.gateway);
});
afterEach(async () => {
  rig.upstream.repent();
  const token = await admins.token('platform');
  const { body } = await admins.ask('GET', '/api/revocations', { token });
  for (const { id } of body.revocations) await admins.ask('DELETE', `/api/revocations/${id}`, { token });
});

const call = (token: string): Promise<Reply> => callStateless(rig.as(token), 'read_record', { id: 'one' });

async function expectRevoked(token: string): Promise<void> {
  rig.upstream.forget();
  const reply = await call(token);
  expect(reply.status).toBe(401);
  expect(reply.headers.get('www-authenticate')).toContain('error="invalid_token"');
  expect(rig.upstream.uses()).toEqual([]);
  await expectLoginLine(rig, reply, 'token-revoked');
}

async function expectEnd(streams: readonly Listening[], reason: string): Promise<void> {
  await expect.poll(() => streams.map((one) => one.isOver()), SOON).toEqual(streams.map(() => true));
  for (const stream of streams) expect(stream.text()).not.toContain('done');
  const reasons = async () => (await rig.gateway.audit()).flatMap((line) => line['decision']?.reasons ?? []);
  await expect.poll(reasons).toContain(reason);
}

describe('a revoked token', () => {
  it('[REV-21] by its own id is refused at once, though it was remembered, and no other is', async () => {
    const [token, other] = [await tokenOf(rig.gateway, 'ada'), await tokenOf(rig.gateway, 'ada')];
    for (const good of [token, token, other]) expect((await call(good)).status).toBe(200);
    const reply = await admins.revoke({ token: { issuer: 'test', jti: idOf(token) } });
    expect(reply.status).toBe(201);
    expect(reply.body.shared).toBe(true);
    expect(reply.text).not.toContain(idOf(token));
    await expectRevoked(token);
    expect((await call(other)).status).toBe(200);
  });

  it('[REV-21] by the digest of the audit log is refused too', async () => {
    const token = await tokenOf(rig.gateway, 'eve');
    await call(token);
    const digest = async () =>
      (await rig.gateway.audit()).find((line) => line['actor']?.sub === 'eve')?.['actor'].token.id;
    await expect.poll(digest).toMatch(/^[\w-]{43}$/);
    expect((await admins.revoke({ token: { digest: await digest() } })).status).toBe(201);
    await expectRevoked(token);
  });

  it('[REV-22] ends its open streams soon, and what the upstream still does', async () => {
    rig.upstream.obey(LONG_ANSWERS);
    const [token, other] = [await tokenOf(rig.gateway, 'ada'), await tokenOf(rig.gateway, 'bob')];
    const stateless = await openStatelessStreams(rig.as(token));
    const { streams } = await openSessionStreams(rig.as(token));
    const [kept] = await openStatelessStreams(rig.as(other));
    await expect.poll(() => stateless[0]?.text()).toContain('working');
    await admins.revoke({ token: { issuer: rig.gateway.issuer.issuer, jti: idOf(token) } });
    await expectEnd([...stateless, ...streams], 'token-revoked');
    expect(kept?.isOver()).toBe(false);
    const calls = rig.upstream.uses().filter(({ method }) => method === 'tools/call');
    await expect.poll(() => calls.map(({ isAborted }) => isAborted)).toEqual([true, true, false]);
  });
});

describe('a revoked token on a channel of HTTP+SSE', () => {
  it('[REV-22] ends the channel soon, and opens none', async () => {
    const token = await tokenOf(rig.gateway, 'ada');
    const open = (): Promise<Response> =>
      fetch(`${rig.access.url}/sse`, {
        headers: { accept: 'text/event-stream', ...bearer(token) },
      });
    const channel = await listenOn(await open());
    await expect.poll(() => channel.text()).toContain('event: endpoint');
    expect(channel.isOver()).toBe(false);
    await admins.revoke({ token: { issuer: 'test', jti: idOf(token) } });
    await expectEnd([channel], 'token-revoked');
    expect((await open()).status).toBe(401);
  });
});

describe('a revoked token at an endpoint of several upstreams', () => {
  it('[REV-22] is refused, and its streams end with those of all members', () =>
    withStarted(
      () => startMergedRig({ more: ADMINS }),
      async (merged) => {
        merged.left.obey(LONG_ANSWERS);
        const access = { ...merged.access, token: await merged.gateway.token('all', { sub: 'ada' }) };
        const { streams } = await openSessionStreams(access, 'l_read_record');
        const stateless = await openStatelessStreams(access, 'l_read_record');
        const all = [...streams, ...stateless];
        await expect.poll(() => streams[1]?.text()).toContain('working');
        const jti = idOf(access.token);
        await adminsOf(merged.gateway).revoke({ token: { issuer: 'test', jti } });
        await expect.poll(() => all.map((one) => one.isOver()), SOON).toEqual(all.map(() => true));
        expect((await callStateless(access, 'l_read_record', { id: 'one' })).status).toBe(401);
      },
    ));

  it.each([
    ['GET', 401],
    ['tools/call', 200],
  ])('[REV-22] gets no stream that its upstream opens late: %s is answered with %i', async (what, status) => {
    const token = await tokenOf(rig.gateway, 'ada');
    const access = rig.as(token);
    const { id } = await openSession(access);
    rig.upstream.obey(({ httpMethod, method }) =>
      what === (method ?? httpMethod)
        ? { kind: 'raw', chunks: ['', SSE_HEAD, ': one\n\n'], paceMs: 300, ending: 'hold' }
        : undefined,
    );
    const params = { name: 'read_record', arguments: { id: 'one' } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 8, method: what, params });
    const accept = what === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream';
    const opening = fetch(access.url, {
      headers: { ...bearer(token), ...sessionHeaders(id), accept, 'content-type': JSON_TYPE },
      ...(what === 'GET' ? {} : { method: 'POST', body }),
    });
    await expect.poll(() => rig.upstream.seen().some((one) => what === (one.method ?? one.httpMethod))).toBe(true);
    await admins.revoke({ token: { issuer: 'test', jti: idOf(token) } });
    const response = await opening;
    expect(response.status).toBe(status);
    if (status !== 200) return;
    const stream = await listenOn(response);
    await expect.poll(() => stream.isOver(), { timeout: 2_000 }).toBe(true);
  });
});

describe('a revoked subject', () => {
  it('[REV-23] is refused with every token that it has, of every client or of one', async () => {
    const mint = (client: string, more = {}) => rig.gateway.token('target', { sub: 'ada', client_id: client, ...more });
    const [ide, chat] = [await mint('ide'), await mint('chat')];
    const subject = { issuer: 'test', subject: 'ada' };
    await admins.revoke({ subject: { ...subject, client: 'ide' } });
    await expectRevoked(ide);
    expect((await call(chat)).status).toBe(200);
    await admins.revoke({ subject });
    await expectRevoked(chat);
    expect((await call(await tokenOf(rig.gateway, 'bob'))).status).toBe(200);
  });

  it('[REV-23] is refused as far as clocks may differ, and for as long as its tokens can live', async () => {
    const expires = await admins.revoke({ subject: { issuer: 'test', subject: 'ada' } });
    const lives = Date.parse(expires.body.revocation.expires) - Date.now();
    expect(lives).toBeGreaterThan(3_600_000);
    const now = Math.floor(Date.now() / 1000);
    // It cannot be told from one that was issued before, by an issuer whose clock is ahead.
    await expectRevoked(await rig.gateway.token('target', { sub: 'ada', iat: now + 25 }));
  });
});

describe('a revoked session', () => {
  it('[REV-24] is unknown from then on, and its streams end; its caller is not shut out', async () => {
    rig.upstream.obey(LONG_ANSWERS);
    const token = await tokenOf(rig.gateway, 'ada');
    const access = rig.as(token);
    const { id, streams } = await openSessionStreams(access);
    await expect.poll(() => streams[1]?.text()).toContain('working');
    const digest = async () =>
      (await rig.gateway.audit()).findLast((line) => line['client']?.session)?.['client'].session;
    await expect.poll(digest).toMatch(/^[\w-]{43}$/);
    expect((await admins.revoke({ session: { digest: await digest() } })).status).toBe(201);
    await expectEnd(streams, 'unknown-session');
    rig.upstream.repent();
    expect((await requestInSession(access, id, 'tools/list')).status).toBe(404);
    const next = await openSession(access);
    expect((await next.call('read_record', { id: 'one' })).status).toBe(200);
  });
});

describe('the API of revocations', () => {
  const order = { note: 'why', subject: { issuer: 'test', subject: 'nobody' } };

  it('[REV-25] shows who revoked what, when and why, and nothing secret', async () => {
    const token = await tokenOf(rig.gateway, 'ada');
    await admins.ask('POST', '/api/revocations', {
      token: await admins.token('leads', 'lea'),
      body: { note: 'found in a log', token: { issuer: 'test', jti: idOf(token) } },
    });
    const list = await admins.ask('GET', '/api/revocations', { token: await admins.token('sec') });
    expect(list.status).toBe(200);
    expect(list.body.revocations).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        kind: 'token',
        issuer: rig.gateway.issuer.issuer,
        digest: expect.stringMatching(/^[\w-]{43}$/),
        by: 'lea',
        note: 'found in a log',
        at: expect.stringMatching(/Z$/),
        expires: expect.stringMatching(/Z$/),
      },
    ]);
    expect(list.text).not.toContain(idOf(token));
  });

  it('[REV-26] lets reviewers revoke, admins lift, viewers look, and others nothing', async () => {
    const ask = async (group: Parameters<Admins['token']>[0], method: string, path = '') =>
      (
        await admins.ask(method, `/api/revocations${path}`, {
          token: await admins.token(group),
          ...(method === 'POST' ? { body: order } : {}),
        })
      ).status;
    const { body } = await admins.revoke(order);
    const lift = `/${body.revocation.id}`;
    expect([await ask('eng', 'GET'), await ask('eng', 'POST')]).toEqual([403, 403]);
    expect([await ask('sec', 'GET'), await ask('sec', 'POST')]).toEqual([200, 403]);
    expect([await ask('leads', 'POST'), await ask('leads', 'DELETE', lift)]).toEqual([201, 403]);
    expect([await ask('platform', 'DELETE', lift), await ask('platform', 'DELETE', lift)]).toEqual([...[204, 404]]);
    const asCaller = await admins.ask('GET', '/api/revocations', { token: rig.access.token ?? '' });
    expect(asCaller.status).toBe(401);
    expect((await admins.ask('POST', '/api/revocations', { body: order })).status).toBe(401);
  });

  it('[REV-26] takes no order that a page of another origin could send', async () => {
    const token = await admins.token('leads');
    const send = (headers: Readonly<Record<string, string>>) =>
      admins.ask('POST', '/api/revocations', { token, body: order, headers });
    expect((await send({ origin: 'https://evil.example' })).status).toBe(403);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx'])
      expect((await send({ 'content-type': type })).status).toBe(415);
    const list = await admins.ask('GET', '/api/revocations', { token });
    expect(list.body.revocations).toEqual([]);
  });

  it.each([
    ['no JSON', '{'],
    ['a list', '[]'],
    ['no reason', { subject: order.subject }],
    ['an empty reason', { ...order, note: ' ' }],
    ['a reason of two lines', { ...order, note: 'a\nb' }],
    ['two things', { ...order, session: { digest: 'x'.repeat(43) } }],
    ['nothing', { note: 'why' }],
    ['an unknown thing', { note: 'why', user: 'x' }],
    ['an unknown issuer', { note: 'why', subject: { issuer: 'other', subject: 'x' } }],
    ['an unknown member', { note: 'why', subject: { ...order.subject, iss: 'x' } }],
    ['a digest that is none', { note: 'why', session: { digest: 'x'.repeat(42) } }],
    ['an id and a digest', { note: 'why', token: { digest: 'x'.repeat(43), jti: 'y' } }],
    ['a prototype', '{"note":"why","__proto__":{"digest":"x"}}'],
  ])('[REV-27] refuses an order with %s', async (_, body) => {
    const reply = await admins.ask('POST', '/api/revocations', {
      token: await admins.token('leads'),
      body,
    });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toEqual(expect.any(String));
  });

  it('[REV-27] reads no body that is too large', async () => {
    const token = await admins.token('leads');
    const body = { ...order, note: 'x'.repeat(20_000) };
    expect((await admins.ask('POST', '/api/revocations', { token, body })).status).toBe(413);
  });

  it('[REV-28] records every action, whom it was about, and by whom', async () => {
    const { body } = await admins.revoke({
      note: 'ssn 536-22-8745 was in a ticket',
      subject: { issuer: 'test', subject: 'mallory' },
    });
    const lines = async () =>
      (await rig.gateway.audit()).filter(
        (line) => line['type'] === 'admin.action' && line['detail'].revocation === body.revocation.id,
      );
    await expect.poll(async () => (await lines()).length).toBe(1);
    expect((await lines())[0]).toMatchObject({
      actor: { sub: 'root' },
      detail: {
        action: 'revoke',
        status: 201,
        kind: 'subject',
        issuer: rig.gateway.issuer.issuer,
        subject: 'mallory',
      },
    });
  });

  it('[REV-29] refuses an administrator who was revoked', async () => {
    const token = await admins.token('platform', 'gone');
    const list = () => admins.ask('GET', '/api/revocations', { token });
    expect((await list()).status).toBe(200);
    await admins.revoke({ subject: { issuer: 'test', subject: 'gone' } });
    expect((await list()).status).toBe(401);
  });
});
