// Cases 74 and 47 on HTTP+SSE: an upstream that sends its clients elsewhere, sessions in addresses, and who
// may use them.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ALLOW_ALL, type RunningGateway, startTestGateway } from '../support/gateway.js';
import {
  callMessage,
  initializeMessage,
  openRawChannel,
  postMessage,
  type RawChannel,
} from '../support/http-sse-clients.js';
import { type SseServer, startSseServer } from '../support/sse-server.js';
import { PATIENT } from '../support/timing.js';

const PREFIX = '/outer';

let server: SseServer;
let gateway: RunningGateway;
let token: string;
let elsewhere: Server;
let elsewhereOrigin: string;
let hits = 0;

const bearer = (own = token): Record<string, string> => ({ authorization: `Bearer ${own}` });
/** As an outer proxy would pass it on. */
const inner = (address: string): string => address.replace(PREFIX, '');
const open = (more: Readonly<Record<string, string>> = {}): Promise<RawChannel> =>
  openRawChannel(`${gateway.url('old')}/sse`, { ...bearer(), ...more });

beforeAll(async () => {
  elsewhere = createServer((_request, response) => {
    hits += 1;
    response.writeHead(202).end();
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  elsewhereOrigin = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
  server = await startSseServer();
  gateway = await startTestGateway({
    upstreams: [{ name: 'old', url: server.url, more: ['transport: http-sse', 'pinning: {maxAge: 10m}'] }],
    policies: { open: ALLOW_ALL },
    publicPath: PREFIX,
  });
  token = await gateway.token('old');
  await vi.waitFor(async () => expect(await gateway.metrics()).toMatch(/sallyport_upstream_up\{[^}]*\} 1/), PATIENT);
  server.forget();
}, 60_000);
afterEach(() => {
  server.beginWith(undefined);
  server.forget();
});
afterAll(async () => {
  await gateway.close();
  await server.close();
  elsewhere.close();
});

describe('an endpoint event', () => {
  const first = (data: string): string => `event: endpoint\ndata: ${data}\n\n`;

  it.each([
    ['of another origin', () => first(`${elsewhereOrigin}/post`)],
    ['of another host, without a scheme', () => first('//evil.example/post')],
    ['of another scheme', () => first(server.origin.replace('http:', 'https:'))],
    ['with credentials', () => first(server.origin.replace('//', '//name:word@'))],
    ['that is no address', () => first('http://[')],
    ['that is a script', () => first('javascript:alert(1)')],
    ['that is endless', () => first(`/${'x'.repeat(9000)}`)],
    ['that comes second', () => `event: message\ndata: {}\n\n${first('/post')}`],
  ])('[V-07] [X-74] %s is a fault of the upstream', async (_name, events) => {
    server.beginWith(events());
    const before = hits;
    const channel = await open();
    expect(channel.status).toBe(502);
    expect(channel.text()).not.toMatch(/event:|evil|post/);
    const id = /"id":"([0-9a-f-]{36})"/.exec(channel.text())?.[1];
    expect(id).toBeDefined();
    const reasonsOf = async (): Promise<unknown> =>
      (await gateway.audit()).find((line) => line['type'] === 'mcp.outcome' && line['decision'].id === id)?.['decision']
        .reasons;
    await expect.poll(reasonsOf, PATIENT).toEqual(['upstream-protocol']);
    expect(hits).toBe(before);
    expect(server.seen().filter(({ httpMethod }) => httpMethod === 'POST')).toEqual([]);
  });

  it('[V-07] [X-74] of another origin makes the upstream unlistable, and nothing is sent there', async () => {
    const lying = await startSseServer();
    lying.beginWith(first(`${elsewhereOrigin}/post`));
    const other = await startTestGateway({
      upstreams: [{ name: 'old', url: lying.url, more: ['transport: http-sse'] }],
      pin: false,
    });
    const before = hits;
    await expect.poll(() => other.metrics(), PATIENT).toMatch(/^sallyport_upstream_up\{[^}]*\} 0$/m);
    await expect.poll(() => lying.seen().length, PATIENT).toBeGreaterThan(0);
    expect(hits).toBe(before);
    expect(lying.seen().every(({ httpMethod }) => httpMethod === 'GET')).toBe(true);
    await other.close();
    await lying.close();
  });

  it('[V-08] names the public address, whatever headers say', async () => {
    const channel = await open({ 'x-forwarded-prefix': '/evil', 'x-forwarded-host': 'evil' });
    const start = `${gateway.publicUrl}${PREFIX}/old/message?session=`;
    expect(channel.address.slice(0, start.length)).toBe(start);
    expect(channel.address.slice(start.length)).toMatch(/^[A-Za-z0-9_-]{60,}$/);
    channel.leave();
  });
});

describe('a session in an address', () => {
  it('[V-09] [X-47] stands in no log, metric, record or error, nor does the token behind it', async () => {
    const channel = await open();
    const address = inner(channel.address);
    const sealed = new URL(address).searchParams.get('session') ?? '';
    expect((await postMessage(address, token, initializeMessage(1))).status).toBe(202);
    await channel.answer(1);
    await postMessage(address, token, callMessage(2, 'echo', { text: 'x' }));
    await channel.answer(2);
    const unknown = await postMessage(`${address.slice(0, -6)}AAAAAA`, token, initializeMessage(3));
    expect(unknown.status).toBe(404);
    const errors = [await unknown.text()];
    const noToken = await postMessage(address, undefined, initializeMessage(4));
    expect(noToken.status).toBe(401);
    errors.push(await noToken.text(), String([...noToken.headers]));
    const inQuery = await postMessage(`${address}&access_token=${token}`, token, {});
    expect(inQuery.status).toBe(401);
    errors.push(await inQuery.text());
    const posted = server.seen().find(({ httpMethod }) => httpMethod === 'POST');
    const own = new URL(posted?.url ?? '', server.origin).searchParams.get('sessionId') ?? '';
    expect(own).not.toBe('');
    channel.leave();
    const kept = [JSON.stringify(await gateway.audit()), gateway.log(), await gateway.metrics(), ...errors].join('\n');
    for (const secret of [sealed, sealed.slice(40, 80), own]) expect(kept).not.toContain(secret);
    expect(channel.text()).not.toContain(own);
    expect(JSON.stringify(server.seen())).not.toContain(token.split('.')[2]);
    expect(JSON.stringify(server.seen())).not.toContain(sealed);
  });

  it('[V-10] [X-81] is unknown in the hands of everyone else', async () => {
    const channel = await open();
    const address = inner(channel.address);
    const thief = await gateway.token('old', { sub: 'mallory' });
    const shapeOf = async (response: Response): Promise<unknown> => ({
      status: response.status,
      text: (await response.text()).replace(/[0-9a-f-]{36}/, 'ID'),
    });
    server.forget();
    const stolen = await shapeOf(await postMessage(address, thief, initializeMessage(1)));
    expect(stolen).toMatchObject({ status: 404 });
    const url = address.replace(/session=.*/, '');
    const unknown = await postMessage(`${url}session=never-was`, thief, initializeMessage(1));
    expect(await shapeOf(unknown)).toEqual(stolen);
    for (const query of ['', 'session=', `session=${'A'.repeat(80)}&x=1`]) {
      expect((await postMessage(url + query, token, initializeMessage(1))).status).toBe(400);
    }
    const two = await postMessage(address, token, initializeMessage(1), { 'mcp-session-id': 'x' });
    expect(two.status).toBe(400);
    const newer = await postMessage(address, token, initializeMessage(1), {
      'mcp-protocol-version': '2026-07-28',
    });
    expect(newer.status).toBe(400);
    const array = await postMessage(address, token, [initializeMessage(1)]);
    expect(array.status).toBe(400);
    expect(server.seen()).toEqual([]);
    channel.leave();
    // With its stream the session has ended.
    await expect.poll(async () => (await postMessage(address, token, initializeMessage(1))).status, PATIENT).toBe(404);
  });

  it('[V-11] has its paths and methods, and every one of them asks for a token', async () => {
    const at = gateway.url('old');
    const ask = (path: string, method: string, headers = bearer()): Promise<Response> =>
      fetch(at + path, {
        method,
        headers: { ...headers, accept: 'application/json', 'content-type': 'application/json' },
        ...(method === 'POST' ? { body: JSON.stringify(initializeMessage(1)) } : {}),
      });
    for (const [path, method] of [
      ['/sse', 'GET'],
      ['/message', 'POST'],
      ['', 'POST'],
      ['', 'GET'],
    ] as const) {
      const refused = await ask(path, method, {});
      expect([path, refused.status]).toEqual([path, 401]);
      expect(refused.headers.get('www-authenticate')).toContain('resource_metadata=');
    }
    for (const [path, method, allow] of [
      ['/sse', 'POST', 'GET'],
      ['/message', 'GET', 'POST'],
      ['/message', 'DELETE', 'POST'],
    ] as const) {
      const refused = await ask(path, method);
      expect([path, refused.status, refused.headers.get('allow')]).toEqual([path, 405, allow]);
      expect(await refused.text()).not.toMatch(/-3202[0-2]|-32601/);
    }
    for (const path of ['/sse/', '/SSE', '/message/x']) {
      expect((await ask(path, 'GET')).status).toBe(404);
    }
    expect(server.seen()).toEqual([]);
  });

  it('[V-13] gets each answer once, and none that was not asked for in it', async () => {
    const channel = await open();
    const address = inner(channel.address);
    await postMessage(address, token, initializeMessage('own'));
    await channel.answer('own');
    const sent = JSON.parse(server.seen().find(({ body }) => body !== '')?.body ?? '{}');
    expect(sent.id).not.toContain('own');
    const answer = (id: unknown): string =>
      `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: { forged: true } })}\n\n`;
    // Answered before.
    server.say(answer(sent.id));
    const other = await open();
    // On the newest stream: the id of the other session, ids of nobody, then one word that passes.
    server.say(answer(sent.id) + answer('own') + answer(1));
    const log = {
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: 'last' },
    };
    server.say(`event: message\ndata: ${JSON.stringify(log)}\n\n`);
    await expect.poll(() => other.text(), PATIENT).toContain('last');
    expect(other.text() + channel.text()).not.toContain('forged');
    const findings = async (): Promise<string> => JSON.stringify(await gateway.audit());
    other.leave();
    await expect.poll(findings, PATIENT).toContain('foreign-message');
    channel.leave();
  });
});
