// What the data listener does around the pipeline: it refuses in the gateway's own words whatever never becomes a
// request of an upstream, reports that, and sends a response byte for byte.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createDataServer, type DataServer } from '../../../src/http/data-server.js';
import type { EdgeRefusal } from '../../../src/http/request-checks.js';
import type { Incoming, Outgoing } from '../../../src/protocol/transport.js';
import { PATIENT } from '../../support/timing.js';
import { hasCompleteResponse, rawPost, sendRaw } from '../../support/wire-client.js';

/** In place of those of the listener, for which no test can wait. */
const SHORT = { headersTimeout: 100, connectionsCheckingInterval: 20 };

vi.mock('fastify', async (load) => {
  const real = await load<typeof import('fastify')>();
  const fastify = (options: { readonly http: object }): unknown =>
    real.default({ ...options, requestTimeout: 200, http: { ...options.http, ...SHORT } });
  return { ...real, default: fastify };
});

const HOST = '127.0.0.1';
const JSON_TYPE = { 'content-type': 'application/json' };

type Handle = (incoming: Incoming, outgoing: Outgoing) => Promise<void>;
type Reported = { readonly refusal: EdgeRefusal; readonly id: string; readonly address: string };

const open: DataServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close(0);
});

async function listen(handle: Handle, serves: () => boolean = () => true) {
  const reported: Reported[] = [];
  const hosts = new Set<string>();
  const tables = {
    routes: new Map([['/one', { upstream: 'one', maxRequestBytes: 64, concurrency: 10, concurrencyPerCaller: 10 }]]),
    documents: new Map([['/document', '{"of":"all"}']]),
    hosts,
    origins: new Set<string>(),
    refusesForwarded: () => false,
    addressOf: (peer: string) => peer,
  };
  const server = createDataServer({
    tables: () => tables,
    isStarting: () => !serves(),
    handle,
    reportRefusal: (refusal, id, address) => void reported.push({ refusal, id, address }),
  });
  open.push(server);
  const port = await server.listen(HOST, 0);
  hosts.add(`${HOST}:${port}`);
  const lines = (...more: readonly string[]) => [`host: ${HOST}:${port}`, ...more];
  const call = (body: string, ...more: readonly string[]): string => {
    const length = `content-length: ${body.length}`;
    return rawPost('/one', lines('content-type: application/json', length, ...more), body);
  };
  const ask = (bytes: string, until = hasCompleteResponse) => sendRaw(port, [bytes], until);
  return { server, port, reported, lines, call, ask };
}

/** A connection that stays open, and all that came on it. */
function talk(port: number) {
  const socket = connect(port, HOST);
  let text = '';
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  return { socket, received: () => text };
}

const never: Handle = async () => expect.unreachable();
const answer = (text: string): Handle => {
  return async (_incoming, outgoing) => outgoing.send(200, JSON_TYPE, text);
};

describe('a request that cannot be read', () => {
  it.each([
    ['a head that does not end', 'POST /one HTTP/1.1\r\nhost: x\r\n', 408, 'request-timeout'],
    ['a head of 17 KiB', `x: ${'x'.repeat(17 * 1024)}`, 431, 'headers-too-large'],
    ['no HTTP', 'nothing of the kind\r\n\r\n', 400, 'malformed-request'],
  ])('[H-03] is refused and reported: %s', async (_what, text, status, reason) => {
    const { ask, reported, port } = await listen(never);
    const bytes = text.startsWith('x:') ? rawPost('/one', [`host: ${port}`, text], '') : text;
    const reply = await ask(bytes, () => false);
    expect([reply.status, reply.isClosed]).toEqual([status, true]);
    expect(reported).toMatchObject([{ refusal: { status, reason, upstream: undefined }, address: HOST }]);
    expect(reply.text).toContain(`\r\nsallyport-decision: ${reported[0]?.id}\r\n`);
    expect(reply.text).toContain('\r\nconnection: close\r\n');
    expect(hasCompleteResponse(reply.text)).toBe(true);
    expect(reply.text).not.toMatch(/FST_|statusCode/);
  });

  it('[H-02, H-03] is refused where its body does not end', async () => {
    const { ask, reported, lines } = await listen(never);
    const head = lines('content-type: application/json', 'content-length: 60');
    const reply = await ask(rawPost('/one', head, '{'), () => false);
    expect(reply.status).toBe(408);
    expect(reported.map(({ refusal }) => refusal.reason)).toEqual(['request-timeout']);
  });

  it('[H-03] was none on a connection that stayed silent', async () => {
    const { port, reported } = await listen(never);
    const silent = connect(port, HOST);
    silent.resume();
    await once(silent, 'close');
    expect(reported).toEqual([]);
  });

  it('[H-03] writes nothing into the response before it', async () => {
    const { port, call, reported } = await listen(async (_incoming, outgoing) => {
      outgoing.open(200, { 'content-type': 'text/event-stream' });
      await outgoing.write(':\n\n');
    });
    const { socket, received } = talk(port);
    socket.write(call('{}'));
    await expect.poll(received, PATIENT).toContain(':\n\n');
    socket.write('nothing of the kind\r\n\r\n');
    await once(socket, 'close');
    expect(received().match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(reported.map(({ refusal }) => refusal.status)).toEqual([400]);
  });

  it('[H-03, X-15] is not refused in place of the response to a request before it', async () => {
    const running: string[] = [];
    const { port, call, reported } = await listen(async ({ id }) => void running.push(id));
    const { socket, received } = talk(port);
    socket.write(call('{}'));
    await expect.poll(() => running.length, PATIENT).toBe(1);
    socket.write('nothing of the kind\r\n\r\n');
    await once(socket, 'close');
    expect(received()).toBe('');
    expect(reported.map(({ refusal }) => refusal.reason)).toEqual(['malformed-request']);
  });

  it.each([
    ['ends early', 'content-length: 60', '{', true],
    ['does not end', 'content-length: 60', '{', false],
    ['is not chunked as it should be', 'transfer-encoding: chunked', 'nothing\r\n', false],
  ])('[H-03] has one refusal where it was refused before its body, which %s', async (_how, framing, body, ends) => {
    const { port, lines, reported } = await listen(never);
    const { socket, received } = talk(port);
    socket.write(rawPost('/one', lines('content-type: text/plain', framing), ''));
    await expect.poll(received, PATIENT).toContain('HTTP/1.1 415 ');
    if (ends) socket.end(body);
    else socket.write(body);
    await once(socket, 'close');
    expect(received().match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(reported.map(({ refusal }) => refusal.reason)).toEqual(['unsupported-media-type']);
  });

  it('[H-03] is refused and reported after a refused request that was read to its end', async () => {
    const { port, lines, reported } = await listen(never);
    const { socket, received } = talk(port);
    socket.write(rawPost('/one', lines('content-type: text/plain', 'content-length: 2'), '{}'));
    await expect.poll(received, PATIENT).toContain('HTTP/1.1 415 ');
    socket.write('nothing of the kind\r\n\r\n');
    await once(socket, 'close');
    expect(received()).toContain('HTTP/1.1 400 ');
    expect(reported.map(({ refusal }) => refusal.status)).toEqual([415, 400]);
  });
});

describe('a connection that is closed', () => {
  /** A client that goes on sending after the server has ended its side, as one does that has not read yet. */
  function talkOn(port: number) {
    const socket = connect({ port, host: HOST, allowHalfOpen: true });
    const errors: Error[] = [];
    let text = '';
    socket.on('error', (error) => errors.push(error));
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    return { socket, errors, received: () => text };
  }

  it.each([
    ['a body that is too long', 'content-length: 1000000', 413],
    ['a length that is none', 'content-length: 1e3', 400],
    ['a head of 17 KiB', `x: ${'x'.repeat(17 * 1024)}`, 431],
  ])('[H-03] is not reset while its client sends more: %s', async (_what, line, status) => {
    const { port, lines } = await listen(never);
    const { socket, errors, received } = talkOn(port);
    const ended = once(socket, 'end');
    socket.write(rawPost('/one', lines('content-type: application/json', line), 'x'.repeat(100)));
    await ended;
    expect(received()).toContain(`HTTP/1.1 ${status} `);
    for (let part = 0; part < 3; part += 1) await new Promise((resolve) => socket.write('x'.repeat(1_000), resolve));
    const closed = once(socket, 'close');
    socket.end();
    await closed;
    expect(errors).toEqual([]);
  });

  it('[H-03] answers the request that was to be the last, whatever comes behind it', async () => {
    const running: (() => void)[] = [];
    const { port, call, reported } = await listen(async (_incoming, outgoing) => {
      await new Promise<void>((resolve) => running.push(resolve));
      outgoing.send(200, JSON_TYPE, '{}');
    });
    const { socket, received } = talk(port);
    const closed = once(socket, 'close');
    socket.write(call('{}', 'connection: close') + call('{}'));
    await expect.poll(() => reported.length, PATIENT).toBe(1);
    for (const finish of running) finish();
    await closed;
    expect(received()).toContain('HTTP/1.1 200 ');
    expect(received().match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect([running.length, reported[0]?.refusal.status]).toEqual([1, 400]);
  });

  it('[H-03] is refused and reported where it is to be a tunnel', async () => {
    const { ask, lines, reported } = await listen(never);
    const reply = await ask(['CONNECT example.com:443 HTTP/1.1', ...lines(), '', ''].join('\r\n'), () => false);
    expect([reply.status, reply.isClosed]).toEqual([404, true]);
    expect(reported).toMatchObject([{ refusal: { status: 404 }, address: HOST }]);
  });
});

describe('a tunnel that was refused', () => {
  /** The client has read the refusal and leaves its side of the connection open. */
  async function refuseTunnel() {
    const { server, port } = await listen(never);
    const socket = connect({ port, host: HOST, allowHalfOpen: true });
    socket.on('error', () => undefined);
    socket.resume();
    socket.write('CONNECT example.com:443 HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'end');
    return { server, socket };
  }

  it('[H-03] may be reset by its client: the error is caught', async () => {
    const uncaught: Error[] = [];
    const note = (error: Error): void => void uncaught.push(error);
    process.on('uncaughtException', note);
    const { server, socket } = await refuseTunnel();
    socket.resetAndDestroy();
    // It ends once the connection is gone.
    await server.close(60_000);
    process.off('uncaughtException', note);
    expect(uncaught).toEqual([]);
  });

  it('[E-35] is cut off when a drain has lasted long enough', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const { server, socket } = await refuseTunnel();
      const closed = server.close(100);
      await vi.advanceTimersByTimeAsync(100);
      await closed;
      expect(socket.writable).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a header after thousands of others', () => {
  it.each([
    ['a second Host', 'host: elsewhere', 421],
    ['a page', 'origin: https://elsewhere.example', 403],
    ['a content encoding', 'content-encoding: gzip', 415],
    ['a length', 'content-length: 65', 413],
    ['a transfer encoding', 'transfer-encoding: gzip, chunked', 400],
  ])('[X-03, H-03] is checked like any other: %s', async (_what, line, status) => {
    const { ask, lines } = await listen(never);
    const others = Array<string>(2_500).fill('a:');
    const head = lines('content-type: application/json', ...others, line);
    expect((await ask(rawPost('/one', head, ''))).status).toBe(status);
  });
});

describe('a request that Fastify would answer by itself', () => {
  it.each([
    ['OPTIONS *', 404],
    ['POST *', 404],
    ['POST http://127.0.0.1/one', 404],
    ['POST /%zz', 404],
    ['POST /%6fne', 404],
    ['POST /one#x', 404],
    ['HEAD /nothing', 404],
    ['PROPFIND /nothing', 404],
    ['PROPFIND /one', 405],
    ['HEAD /one', 405],
    ['PUT /document', 405],
  ])('[X-06, H-03] is refused as the checks say: %s', async (line, status) => {
    const { ask, lines } = await listen(never);
    const reply = await ask([`${line} HTTP/1.1`, ...lines(), '', ''].join('\r\n'));
    expect(reply.status).toBe(status);
    const [head = '', body] = reply.text.split('\r\n\r\n');
    expect(body).toBe('');
    expect(head).toContain('\r\ncontent-length: 0');
    expect(head).not.toMatch(/content-type|connection: close/i);
  });

  it('[H-03] is checked like any other with an expectation that nobody knows', async () => {
    const { ask, call, reported } = await listen(answer('{}'));
    expect((await ask(call('{}', 'expect: more'))).status).toBe(200);
    expect((await ask(call('x'.repeat(65), 'expect: more'))).status).toBe(413);
    expect(reported.map(({ refusal }) => refusal.reason)).toEqual(['body-too-large']);
  });

  it('[X-05, H-03] is refused and reported where it has no Host', async () => {
    const { ask, reported } = await listen(never);
    const reply = await ask(rawPost('/one', [], ''));
    expect(reply.status).toBe(400);
    expect(reported).toMatchObject([{ refusal: { reason: 'host-forbidden', upstream: 'one' } }]);
  });

  it('[H-03] has the type of its body compared by nobody else', async () => {
    const types = ['application/json;', 'Application/JSON ; charset="UTF-8";', '\tapplication/json'];
    const { ask, lines } = await listen(answer('{}'));
    for (const type of types) {
      const head = lines(`content-type: ${type}`, 'content-length: 2');
      expect([type, (await ask(rawPost('/one', head, '{}'))).status]).toEqual([type, 200]);
    }
    const ending = ['DELETE /one HTTP/1.1', ...lines('content-type: ;'), '', ''].join('\r\n');
    expect((await ask(ending)).status).toBe(200);
  });

  it('[E-35] is refused while the listener closes, and reported', async () => {
    const running: (() => void)[] = [];
    const { server, port, call, reported } = await listen(async (_incoming, outgoing) => {
      await new Promise<void>((resolve) => running.push(resolve));
      outgoing.send(200, JSON_TYPE, '{}');
    });
    const { socket, received } = talk(port);
    socket.write(call('{}'));
    await expect.poll(() => running.length, PATIENT).toBe(1);
    const closed = server.close(60_000);
    socket.write(call('{}'));
    await expect.poll(() => reported.length, PATIENT).toBe(1);
    const ended = once(socket, 'close');
    for (const finish of running) finish();
    await Promise.all([ended, closed]);
    const [, first, second] = received().split('HTTP/1.1 ');
    expect([first?.slice(0, 3), second?.slice(0, 3)]).toEqual(['200', '503']);
    expect(second).toContain(`"id":"${reported[0]?.id}"`);
    expect(second).toMatch(/\r\nconnection: close\r\n/i);
  });

  it('[H-03] is refused as that of a gateway that is starting before it serves', async () => {
    const { ask, call, reported } = await listen(never, () => false);
    const reply = await ask(call('{}'));
    expect(reply.status).toBe(503);
    expect(reply.text).toMatch(/\r\nretry-after: 5\r\n/);
    expect(reply.text).toContain('"code":1511');
    expect((await ask('nothing of the kind\r\n\r\n')).status).toBe(400);
    expect(reported.map(({ refusal }) => refusal.reason)).toEqual(['gateway-starting', 'malformed-request']);
  });
});

describe('a pipeline that fails', () => {
  it('[H-03] is a refusal of its own before the response begins, and cuts it off after', async () => {
    let begins = false;
    const { ask, call, reported } = await listen(async (_incoming, outgoing) => {
      if (begins) outgoing.open(200, { 'content-type': 'text/event-stream' });
      // Until the headers are on their way.
      if (begins) await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
      throw new Error('a secret');
    });
    const reply = await ask(call('{}'));
    expect([reply.status, reply.text.includes('"code":-32603')]).toEqual([500, true]);
    expect(reply.text).not.toContain('secret');
    expect(reported).toMatchObject([{ refusal: { reason: 'internal', upstream: 'one' } }]);
    begins = true;
    const cut = await ask(call('{}'), () => false);
    expect([cut.status, cut.isClosed]).toEqual([200, true]);
    expect(cut.text).not.toContain('\r\n0\r\n\r\n');
  });

  it('[H-03] to send anything gets no empty success', async () => {
    let isOver = false;
    const { ask, call, server } = await listen(async () => {
      isOver = true;
    });
    const reply = ask(call('{}'));
    await expect.poll(() => isOver, PATIENT).toBe(true);
    await server.close(1);
    expect((await reply).text).toBe('');
  });

  it('[H-03] with a header that cannot be sent can still refuse', async () => {
    const { ask, call } = await listen(async (_incoming, outgoing) => {
      expect(() => outgoing.send(200, { 'x-bad': 'a\nb', 'x-more': 'c' }, '{}')).toThrow();
      outgoing.send(500, JSON_TYPE, '{"error":1}');
    });
    const reply = await ask(call('{}'));
    expect(reply.status).toBe(500);
    expect(reply.text).toContain('{"error":1}');
    expect(reply.text).not.toMatch(/x-bad|x-more/);
  });
});

describe('a complete response', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  it.each([
    ['text', '{"é":1}'],
    ['bytes', bytes('{"é":1}')],
    ['pieces', [bytes('{"é"'), bytes(':1}')]],
  ])('[W-02, D-14] leaves as it was made: %s', async (_what, body) => {
    const { ask, call } = await listen(async (_incoming, outgoing) => {
      outgoing.addHeader('x-first', '1');
      outgoing.send(200, { ...JSON_TYPE, 'mcp-session-id': 'a' }, body);
    });
    const { text } = await ask(call('{}'));
    const [head = '', rest = ''] = text.split('\r\n\r\n');
    expect(head.split('\r\n').slice(0, 6)).toEqual([
      'HTTP/1.1 200 OK',
      'x-first: 1',
      expect.stringMatching(/^sallyport-decision: [0-9a-f-]{36}$/),
      'content-type: application/json',
      'mcp-session-id: a',
      'content-length: 8',
    ]);
    expect(Buffer.from(rest, 'latin1').toString()).toBe('{"é":1}');
  });

  it('[W-02] without a body has no type, and with 204 no length', async () => {
    const statuses = [202, 204];
    const { ask, call } = await listen(async (_incoming, outgoing) => {
      outgoing.send(statuses.shift() ?? 0, {}, '');
    });
    const accepted = await ask(call('{}'));
    expect(accepted.text).toMatch(/^HTTP\/1\.1 202 Accepted\r\nsallyport-decision: \S+\r\ncontent-length: 0\r\n/);
    expect(accepted.text).not.toMatch(/content-type/i);
    const empty = await ask(call('{}'), (text) => text.endsWith('\r\n\r\n'));
    expect(empty.text).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
    expect(empty.text).not.toMatch(/content-(?:type|length)/i);
  });

  it('[W-10] to HEAD has the length of the document and not the document', async () => {
    const { ask, lines } = await listen(never);
    const request = ['HEAD /document HTTP/1.1', ...lines('connection: close'), '', ''];
    const reply = await ask(request.join('\r\n'), () => false);
    expect(reply.status).toBe(200);
    expect(reply.text).toMatch(/\r\ncontent-length: 12\r\n/);
    expect(reply.text.split('\r\n\r\n')[1]).toBe('');
  });
});
