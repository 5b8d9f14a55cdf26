// The adapter of stdio servers against hostile clients and hostile servers. With real servers and a gateway in front:
// integration/stdio.test.ts.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLineSplitter, serverEnvironment } from '../../../src/stdio/server-process.js';
import {
  INITIALIZE,
  isGone,
  only,
  type Sent,
  STDIO_TOKEN,
  type StdioRig,
  scriptedCommand,
  startStdioRig,
} from '../../support/stdio-server.js';

const rigs: StdioRig[] = [];

async function start(...options: Parameters<typeof startStdioRig>): Promise<StdioRig> {
  const rig = await startStdioRig(...options);
  rigs.push(rig);
  return rig;
}

afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});

/** What the server prints in place of its answer to a request. */
const PRINTED: readonly (readonly [string, string, string])[] = [
  ['a text cut inside a character', '{"text":"\\ud83d"}', '"result":{"text":"\\ud83d"}'],
  ['a member given twice', '{"a":1,"a":2}', 'malformed response'],
  [
    'a tool with a member given twice',
    '{"tools":[{"name":"a"},{"name":"b","name":"c"}]}',
    '{"tools":[{"name":"a"},"duplicate member names',
  ],
  [
    'a tool with half of a surrogate pair beside one with a member given twice',
    '{"tools":[{"name":"\\ud83d"},{"name":"b","name":"c"}]}',
    '{"name":"\\ud83d"},{"name":"b","name":"c"}',
  ],
];

describe('an answer with', () => {
  it.each(PRINTED)('%s does not leave its request waiting', async (_, result, seen) => {
    const rig = await start();
    const session = await rig.open();
    const text = `{"jsonrpc":"2.0","id":9,"result":${result}}\n`;
    expect((await rig.call(session, 'print', { text }, 9)).text).toContain(seen);
  });
});

describe('[STD-08] several servers at one address', () => {
  it('are each at their path, and what becomes of one concerns no other', async () => {
    const command = scriptedCommand();
    let isReady = false;
    const rig = await start({
      maxSessions: 1,
      servers: new Map([
        ['/one', { label: 'one ', prepare: async () => command }],
        [
          '/two',
          { label: 'two ', prepare: async () => (isReady ? command : { error: 'its variable KEY has no value' }) },
        ],
        ['/none', { label: 'none ', prepare: async () => ({ ...command, command: 'no-such-program' }) }],
      ]),
    });
    const opened = await rig.send({ path: '/one', body: INITIALIZE });
    const session = String(opened.headers['mcp-session-id']);
    const call = (path: string, method: string) =>
      rig.send({ path, session, body: { jsonrpc: '2.0', id: 1, method, params: {} } });

    const refused = await rig.send({ path: '/two', body: INITIALIZE });
    expect([refused.status, refused.text]).toEqual([503, expect.stringContaining('its variable KEY has no value.')]);
    expect(rig.log).toContain('two session 1: not started: its variable KEY has no value');
    const missing = await rig.send({ path: '/none', body: INITIALIZE });
    expect([missing.status, missing.text]).toEqual([502, expect.stringContaining('was not found')]);
    const other = await rig.send({ path: '/mcp', body: INITIALIZE });
    expect([other.status, other.text]).toEqual([404, expect.stringContaining('The paths are /one, /two, /none.')]);
    // A session is one of its server, and so is the limit.
    expect((await call('/two', 'echo')).status).toBe(404);
    isReady = true;
    const late = await rig.send({ path: '/two', body: INITIALIZE });
    expect(late.status).toBe(200);
    const dying = { jsonrpc: '2.0', id: 2, method: 'die', params: {} };
    await rig.send({ path: '/two', session: String(late.headers['mcp-session-id']), body: dying });
    expect(rig.log.join('\n')).toContain('two session 2: ended: it ended with exit code 3');
    expect((await call('/one', 'echo')).status).toBe(200);
    expect((await rig.send({ path: '/two', body: INITIALIZE })).status).toBe(200);
  });
});

/** Until a request that is never answered has reached the server. */
async function untilSilent({ log }: StdioRig): Promise<void> {
  await expect.poll(() => log.join()).toContain('silent');
}

async function pidOf(rig: StdioRig, session: string): Promise<number> {
  const { result } = only(await rig.call(session, 'env')) as { result?: { pid: number } };
  return result?.pid ?? 0;
}

describe('[STD-01] a client of the adapter', () => {
  const token = `Bearer ${STDIO_TOKEN}`;
  const refused: readonly (readonly [string, number, NonNullable<Sent['headers']>])[] = [
    ['no token', 401, { authorization: undefined }],
    ['another token', 401, { authorization: `${token}x` }],
    ['the beginning of the token', 401, { authorization: token.slice(0, -1) }],
    ['two tokens', 401, { authorization: [token, token] }],
    ['another scheme', 401, { authorization: `Basic ${STDIO_TOKEN}` }],
    ['the Origin of a web page', 403, { origin: 'https://evil.example' }],
    ['an Origin on loopback', 403, { origin: 'http://127.0.0.1:8090' }],
    ['an empty Origin', 403, { origin: '' }],
    ['the Origin null', 403, { origin: 'null' }],
    ['a rebound Host', 421, { host: 'evil.example' }],
    ['a Host that begins as ours', 421, { host: '127.0.0.1.evil.example' }],
    ['a Host of another port', 421, { host: '127.0.0.1:1' }],
    ['a Host without the port', 421, { host: 'localhost' }],
  ];

  it.each(refused)('is refused with %s, and starts nothing', async (_, status, headers) => {
    const rig = await start();
    const got = await rig.send({ body: INITIALIZE, headers });
    expect(got.status).toBe(status);
    expect(got.headers['mcp-session-id']).toBeUndefined();
    expect(got.text).not.toContain(STDIO_TOKEN);
    expect(rig.ends).toEqual([]);
    const opened = await rig.open();
    // The refused ones took none of the numbers.
    await rig.call(opened, 'die');
    expect(rig.log.join('\n')).toContain('session 1: ended');
  });

  it('is refused by Origin and Host before its token is looked at', async () => {
    const rig = await start();
    const authorization = undefined;
    const headers = { authorization, origin: 'https://evil.example' };
    expect((await rig.send({ body: INITIALIZE, headers })).status).toBe(403);
    const rebound = { authorization, host: 'evil.example' };
    expect((await rig.send({ body: INITIALIZE, headers: rebound })).status).toBe(421);
  });

  it('may call it localhost, 127.0.0.1 or [::1], in capitals too', async () => {
    const rig = await start();
    for (const name of ['localhost', '127.0.0.1', '[::1]', 'LocalHost']) {
      const headers = { host: `${name}:${rig.port}` };
      const got = await rig.send({ body: INITIALIZE, headers });
      expect([name, got.status]).toEqual([name, 200]);
    }
  });

  const wrong: readonly (readonly [string, number, Sent])[] = [
    ['another path', 404, { path: '/', body: INITIALIZE }],
    ['a query', 404, { path: '/mcp?x=1', body: INITIALIZE }],
    ['an absolute target', 404, { path: 'http://evil.example/mcp', body: INITIALIZE }],
    ['another method', 405, { method: 'PUT', body: INITIALIZE }],
    ['a preflight', 405, { method: 'OPTIONS' }],
    ['text', 415, { body: '{}', headers: { 'content-type': 'text/plain' } }],
    ['no JSON', 400, { body: '{' }],
    ['a repeated member', 400, { body: '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"x"}' }],
    ['a batch', 400, { body: `[${JSON.stringify(INITIALIZE)}]` }],
    ['no session', 400, { body: { jsonrpc: '2.0', id: 1, method: 'echo' } }],
    ['an unknown session', 404, { session: 'unknown', body: { ...INITIALIZE, method: 'echo' } }],
    ['a stream without session', 400, { method: 'GET' }],
    ['an end without session', 400, { method: 'DELETE' }],
    ['no event streams', 406, { body: INITIALIZE, headers: { accept: 'application/json' } }],
    ['a body of more than 8 MiB', 413, { body: `"${'x'.repeat(8 * 1024 * 1024)}"` }],
  ];

  it.each(wrong)('is refused with %s', async (_, status, sent) => {
    const rig = await start();
    expect((await rig.send(sent)).status).toBe(status);
    expect(rig.ends).toEqual([]);
  });

  it('answers only what its own session was asked', async () => {
    const rig = await start();
    const [asked, other] = [await rig.open(), await rig.open()];
    const waiting = rig.call(asked, 'ask');
    const reply = { jsonrpc: '2.0', id: 'q1', result: { roots: [] } };
    await expect.poll(async () => (await rig.send({ session: asked, body: { ...reply, id: 'q2' } })).status).toBe(400);
    expect((await rig.send({ session: other, body: reply })).status).toBe(400);
    await expect.poll(async () => (await rig.send({ session: asked, body: reply })).status).toBe(202);
    expect((await waiting).messages).toEqual([
      { jsonrpc: '2.0', id: 'q1', method: 'roots/list' },
      { jsonrpc: '2.0', id: 1, result: { reply: { roots: [] } } },
    ]);
    expect((await rig.send({ session: asked, body: reply })).status).toBe(400);
  });

  it('is told that nobody reads a request of its own, unless a stream is opened for it', async () => {
    const rig = await start({ unreadMs: 20 });
    const unread = await rig.open();
    // What it asks while a list is read is not about the list.
    expect((await rig.call(unread, 'tools/list')).messages).toHaveLength(1);
    const answered = async (at: StdioRig, session: string) => (await at.call(session, 'answered')).messages;
    const error = {
      code: -32603,
      message: 'The client has opened no stream for what the server requests of it.',
    };
    await expect.poll(() => answered(rig, unread)).toMatchObject([{ result: { answered: error } }]);
    const late = { jsonrpc: '2.0', id: 'q2', result: { roots: [] } };
    expect((await rig.send({ session: unread, body: late })).status).toBe(400);
    const stream = await rig.listen(unread);
    await rig.call(unread, 'change');
    await expect.poll(() => stream.text()).toContain('list_changed');
    expect(stream.text()).not.toContain('q2');
    stream.close();
    const patient = await start({ unreadMs: 60_000 });
    const read = await patient.open();
    await patient.call(read, 'tools/list');
    const opened = await patient.listen(read);
    await expect.poll(() => opened.text()).toContain('"q2"');
    expect((await patient.send({ session: read, body: late })).status).toBe(202);
    await expect.poll(() => answered(patient, read)).toMatchObject([{ result: { answered: { roots: [] } } }]);
    opened.close();
  });

  it('is refused an id that is under way, and another version than that of its session', async () => {
    const rig = await start();
    const session = await rig.open();
    const hanging = rig.call(session, 'silence', {}, 7);
    await untilSilent(rig);
    expect((await rig.call(session, 'echo', {}, 7)).status).toBe(400);
    const headers = { 'mcp-protocol-version': '2025-03-26' };
    const body = { jsonrpc: '2.0', id: 8, method: 'echo' };
    expect((await rig.send({ session, body, headers })).status).toBe(400);
    await rig.send({ method: 'DELETE', session });
    expect(only(await hanging)).toMatchObject({ id: 7, error: { code: -32603 } });
  });
});

describe('[STD-02] a session', () => {
  it('has a process of its own, which ends with it', async () => {
    const rig = await start();
    const [one, other] = [await rig.open(), await rig.open()];
    const pids = [await pidOf(rig, one), await pidOf(rig, other)];
    expect(new Set(pids).size).toBe(2);
    expect((await rig.send({ method: 'DELETE', session: one })).status).toBe(204);
    expect(await isGone(pids[0] ?? 0)).toBe(true);
    expect((await rig.call(one, 'echo')).status).toBe(404);
    expect((await rig.call(other, 'echo', { a: 1 })).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: { a: 1 } }]);
  });

  it('is ended by force if its process takes no hint, and counts until then', async () => {
    const rig = await start({ way: 'stubborn', maxSessions: 1 });
    const session = await rig.open();
    const pid = await pidOf(rig, session);
    await rig.send({ method: 'DELETE', session });
    const early = await rig.send({ body: INITIALIZE });
    expect([early.status, early.headers['retry-after']]).toEqual([503, '10']);
    expect(await isGone(pid)).toBe(true);
    await expect.poll(async () => (await rig.send({ body: INITIALIZE })).status).toBe(200);
  });

  it('is one of a bounded number', async () => {
    const rig = await start({ maxSessions: 2 });
    const session = await rig.open();
    await rig.open();
    expect((await rig.send({ body: INITIALIZE })).status).toBe(503);
    expect((await rig.call(session, 'echo')).status).toBe(200);
  });

  it('ends when nobody has used it for a while, and not while a stream is open', async () => {
    let nowMs = 0;
    const rig = await start({ idleMs: 1_000, now: () => nowMs });
    const [idle, streaming] = [await rig.open(), await rig.open()];
    const stream = await rig.listen(streaming);
    nowMs = 1_001;
    await expect.poll(() => rig.log.join()).toContain('nobody used the session');
    expect((await rig.call(idle, 'echo')).status).toBe(404);
    expect((await rig.call(streaming, 'echo')).status).toBe(200);
    stream.close();
  });

  it('that was unused for a minute makes place where all are taken', async () => {
    let nowMs = 0;
    const rig = await start({ maxSessions: 1, now: () => nowMs });
    const session = await rig.open();
    nowMs = 59_999;
    expect((await rig.send({ body: INITIALIZE })).status).toBe(503);
    expect((await rig.call(session, 'echo')).status).toBe(200);
    nowMs += 60_000;
    expect((await rig.send({ body: INITIALIZE })).status).toBe(503);
    await expect.poll(async () => (await rig.send({ body: INITIALIZE })).status).toBe(200);
    expect((await rig.call(session, 'echo')).status).toBe(404);
  });

  it('is none where the server refuses to initialize or its client leaves before', async () => {
    const rig = await start({ way: 'refusing', maxSessions: 1 });
    const got = await rig.send({ body: INITIALIZE });
    expect(got.headers['mcp-session-id']).toBeUndefined();
    expect(only(got)['error']).toEqual({ code: -32602, message: 'No.' });
    await expect.poll(() => rig.ends.length).toBe(1);

    const mute = await start({ way: 'mute', maxSessions: 1 });
    const left = new AbortController();
    const send = (): Promise<Response> =>
      fetch(`http://127.0.0.1:${mute.port}/mcp`, {
        method: 'POST',
        body: JSON.stringify(INITIALIZE),
        headers: {
          authorization: `Bearer ${STDIO_TOKEN}`,
          accept: 'application/json, text/event-stream',
          'content-type': 'application/json',
        },
        signal: left.signal,
      });
    const both = [send(), send()];
    // The other one waits.
    expect((await Promise.race(both)).status).toBe(503);
    left.abort();
    const ended = await Promise.allSettled(both);
    expect(ended.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await expect.poll(() => mute.ends.length).toBe(1);
  });

  it('with a server of 2024-11-05 is one of the revision that streamable HTTP came with', async () => {
    const rig = await start({ way: 'old' });
    const got = await rig.send({ body: INITIALIZE });
    expect(only(got)).toMatchObject({ id: 0, result: { protocolVersion: '2025-03-26' } });
    const session = String(got.headers['mcp-session-id']);
    const headers = { 'mcp-protocol-version': '2025-03-26' };
    const body = { jsonrpc: '2.0', id: 1, method: 'echo' };
    expect((await rig.send({ session, body, headers })).status).toBe(200);
  });

  it('gets of the environment what programs need, and what is named', () => {
    const authorities = { NODE_EXTRA_CA_CERTS: '/ca.pem', SSL_CERT_FILE: '/ca.pem', SSL_CERT_DIR: '/ca' };
    const env = { PATH: '/bin', HOME: '/h', ...authorities, SALLYPORT_KEY: 'k', API: 'a', REDIS_URL: 'r' };
    expect(serverEnvironment(env, ['API', 'toString'])).toEqual({
      PATH: '/bin',
      HOME: '/h',
      ...authorities,
      API: 'a',
    });
  });

  it('has no other variable than those', async () => {
    vi.stubEnv('SALLYPORT_TEST_SECRET', 'x');
    const rig = await start();
    const { result } = only(await rig.call(await rig.open(), 'env')) as {
      result?: { env: Record<string, string> };
    };
    vi.unstubAllEnvs();
    expect(Object.keys(result?.env ?? {})).toEqual(['PATH', 'SALLYPORT_STDIO_ADAPTER']);
  });
});

describe('[STD-03] a server', () => {
  it('that dies leaves no request unanswered, and no session', async () => {
    const rig = await start();
    const session = await rig.open();
    const stream = await rig.listen(session);
    const hanging = rig.call(session, 'silence', {}, 'a');
    await untilSilent(rig);
    const dying = await rig.call(session, 'die', {}, 'b');
    expect(only(dying)).toMatchObject({ id: 'b', error: { code: -32603 } });
    expect(only(await hanging)).toMatchObject({ id: 'a', error: { code: -32603 } });
    expect((await rig.call(session, 'echo')).status).toBe(404);
    expect(rig.ends).toEqual([{ how: 'it ended with exit code 3', lastLines: ['silent', 'out of order'] }]);
    stream.close();
  });

  it('that is not there answers with 502, and is named', async () => {
    const command = { command: 'no-such-program', args: [], cwd: process.cwd(), env: {} };
    const rig = await start({ command });
    const got = await rig.send({ body: INITIALIZE });
    expect([502, 503]).toContain(got.status);
    await expect.poll(() => rig.ends.length).toBe(1);
    expect(rig.ends[0]?.how).toBe('the command "no-such-program" was not found');
  });

  it('that writes lines which are no messages is heard out', async () => {
    const rig = await start();
    const session = await rig.open();
    expect((await rig.call(session, 'garbage')).messages).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
    expect(rig.log).toHaveLength(3);
    expect(rig.log[0]).toContain('not a JSON-RPC message: Listening on stdio');
  });

  it('that answers at length is read to the end of each answer', async () => {
    const rig = await start();
    const session = await rig.open();
    const text = 'x'.repeat(1_500_000);
    const got = await Promise.all(['a', 'b', 'c', 'd'].map((id) => rig.call(session, 'echo', { text }, id)));
    expect(got.map((one) => only(one)['id'])).toEqual(['a', 'b', 'c', 'd']);
    expect(got.map(({ text: { length } }) => length > text.length)).toEqual(Array(4).fill(true));
  });

  it('that sends a malformed response has its request answered', async () => {
    const rig = await start();
    const got = await rig.call(await rig.open(), 'malformed');
    expect(only(got)).toMatchObject({ id: 1, error: { message: /malformed/ } });
  });

  it.each([
    ['never ends a line', 'endless', 'it wrote a line of more than 16777216 bytes'],
    ['writes nothing but garbage', 'babble', 'it wrote 1000 lines that are not JSON-RPC messages'],
  ])('that %s is ended', async (_, method, how) => {
    const rig = await start();
    const session = await rig.open();
    expect(only(await rig.call(session, method))['error']).toMatchObject({ code: -32603 });
    expect(rig.ends.map((end) => end.how)).toEqual([how]);
    expect((await rig.call(session, 'echo')).status).toBe(404);
    expect(rig.log.length).toBeLessThan(50);
  });

  it('is told that the id of its request is too long, and its client is not asked', async () => {
    const rig = await start();
    expect((await rig.call(await rig.open(), 'longId')).messages).toEqual([
      { jsonrpc: '2.0', id: 1, result: { reply: expect.objectContaining({ code: -32603 }) } },
    ]);
  });

  it('has its lines put together however they arrive', () => {
    const text = `${'x'.repeat(3_000)}\n\ny\n${'z'.repeat(4_096)}\nrest`;
    for (const size of [1, 7, 4_096, text.length]) {
      const lines: string[] = [];
      const split = createLineSplitter(4_096, (line) => lines.push(line.toString()));
      for (let at = 0; at < text.length; at += size) {
        expect(split(Buffer.from(text.slice(at, at + size)))).toBe(true);
      }
      expect(lines).toEqual(text.split('\n').slice(0, -1));
      expect(split(Buffer.from('x'.repeat(4_093)))).toBe(false);
    }
  });

  it('has its standard error shown, labelled, safe and bounded', async () => {
    const rig = await start();
    await rig.call(await rig.open(), 'stderr');
    await expect.poll(() => rig.log.length).toBeGreaterThan(200);
    expect(rig.log.length).toBeLessThan(210);
    expect(rig.log[0]).toMatch(/^session 1: stderr: \\u\{1b\}\[31mred y+…$/);
    expect(rig.log[0]?.length).toBeLessThan(1_100);
    expect(rig.log.at(-1)).toContain('too many lines');
  });

  it('that does not read is refused more, and the others go on', async () => {
    const rig = await start();
    const [deaf, other] = [await rig.open(), await rig.open()];
    const requested = rig.send({ session: deaf, body: { jsonrpc: '2.0', id: 'open', method: 'ask' } });
    await rig.call(deaf, 'deaf');
    const body = { jsonrpc: '2.0', method: 'notifications/x', params: { text: 'x'.repeat(4e6) } };
    const statuses: number[] = [];
    for (let i = 0; i < 5; i += 1) statuses.push((await rig.send({ session: deaf, body })).status);
    expect(statuses.at(-1)).toBe(503);
    // What it has read so far may wait for these.
    const reply = { jsonrpc: '2.0', id: 'q1', result: {} };
    expect((await rig.send({ session: deaf, body: reply })).status).toBe(202);
    const params = { requestId: 'open' };
    const cancellation = { jsonrpc: '2.0', method: 'notifications/cancelled', params };
    expect((await rig.send({ session: deaf, body: cancellation })).status).toBe(202);
    await requested;
    // They too are bounded; and a reply that was not passed on may be sent again.
    const long = { ...cancellation, params: { ...params, reason: 'x'.repeat(4e6) } };
    for (let i = 0; i < 4; i += 1) statuses.push((await rig.send({ session: deaf, body: long })).status);
    expect(statuses.at(-1)).toBe(503);
    expect((await rig.call(other, 'echo')).status).toBe(200);
  });
});

describe('[STD-04] a message of the server', () => {
  it('about a request stands before its response, which is then a stream', async () => {
    const rig = await start();
    const session = await rig.open();
    const params = { _meta: { progressToken: 'p' } };
    const got = await rig.call(session, 'progress', params);
    expect(got.headers['content-type']).toBe('text/event-stream');
    expect(got.messages.map(({ method, id }) => method ?? id)).toEqual(['notifications/progress', 1]);
  });

  it('about no request waits for the stream of the session', async () => {
    const rig = await start();
    const session = await rig.open();
    expect((await rig.call(session, 'change')).messages).toHaveLength(1);
    const stream = await rig.listen(session);
    await expect.poll(stream.text).toContain('notifications/tools/list_changed');
    const second = await rig.send({ method: 'GET', session });
    expect(second.status).toBe(409);
    stream.close();
    await expect
      .poll(async () => {
        const again = await rig.listen(session).catch(() => undefined);
        again?.close();
        return again !== undefined;
      })
      .toBe(true);
  });

  it('of thousands does not wait without bound', async () => {
    const rig = await start();
    const session = await rig.open();
    // With two requests under way none of them is the one that a message is about.
    const hanging = rig.call(session, 'silence', {}, 'h');
    await untilSilent(rig);
    const got = await rig.call(session, 'flood');
    expect(got.messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    await rig.send({ method: 'DELETE', session });
    expect((await hanging).status).toBe(502);
  });

  it('ends the stream of a request that its client cancels', async () => {
    const rig = await start();
    const session = await rig.open();
    const hanging = rig.call(session, 'silence', {}, 5);
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } };
    await untilSilent(rig);
    expect((await rig.send({ session, body: cancel })).status).toBe(202);
    expect((await hanging).messages).toEqual([]);
  });
});
