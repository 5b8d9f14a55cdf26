import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import {
  chainedEncodings,
  closedMidStream,
  greedyCache,
  gzipBomb,
  informationalFlood,
  jsonBody,
  manyHeaders,
  onMethod,
  progressThenResult,
  redirectTo,
  resultAndError,
  resultFor,
  secondResponseBehind,
  serverRequestInStream,
  shortBody,
  splitStream,
  sseEvent,
  textResult,
  twoContentLengths,
  wrongId,
} from '../../support/hostile-acts.js';
import { type HostileUpstream, startHostileUpstream } from '../../support/hostile-upstream.js';
import { connectSdkV1, connectSdkV2 } from '../../support/sdk-clients.js';

const CALL = {
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: {
    name: 'read_record',
    arguments: { id: 'one' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
};

describe('hostile upstream', () => {
  let upstream: HostileUpstream;
  beforeAll(async () => {
    upstream = await startHostileUpstream();
  });
  afterEach(() => {
    upstream.repent();
    upstream.forget();
  });
  afterAll(() => upstream.close());

  function call(): Promise<Response> {
    return fetch(upstream.url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': 'read_record',
      },
      body: JSON.stringify(CALL),
    });
  }

  it('[D-04] is an honest server to both SDKs when it has no orders', async () => {
    const v1 = await connectSdkV1(upstream.url);
    expect((await v1.client.listTools()).tools).toHaveLength(2);
    await v1.close();
    const v2 = await connectSdkV2(upstream.url, '2026');
    const read = await v2.client.callTool({ name: 'read_record', arguments: { id: 'one' } });
    expect(JSON.stringify(read.content)).toContain('read_record one');
    await v2.close();
  });

  it('[D-04] records headers, bodies, uses, connections and bytes', async () => {
    const before = upstream.bytesReceived();
    await (await call()).text();
    const [seen] = upstream.uses();
    expect(seen).toMatchObject({ method: 'tools/call', name: 'read_record', id: 7 });
    expect(seen?.headers['mcp-name']).toBe('read_record');
    expect(upstream.bytesReceived() - before).toBeGreaterThan(JSON.stringify(CALL).length);
    expect(upstream.connections()).toBeGreaterThan(0);
  });

  it('[D-04] obeys once, then goes back to its standing order', async () => {
    upstream.obeyOnce(onMethod('tools/call', () => redirectTo('http://169.254.169.254/')));
    const first = await call();
    expect([first.status, first.headers.get('location')]).toEqual([302, 'http://169.254.169.254/']);
    expect((await call()).status).toBe(200);
  });

  it('[D-04] answers with a foreign id, with both outcomes, and with a greedy cache', async () => {
    upstream.obeyOnce(wrongId);
    expect(await (await call()).json()).toMatchObject({ id: 'not-yours' });
    upstream.obeyOnce(resultAndError);
    expect(Object.keys((await (await call()).json()) as object)).toEqual(expect.arrayContaining(['result', 'error']));
    upstream.obeyOnce((request) => greedyCache(request, { tools: [] }));
    expect(await (await call()).json()).toMatchObject({
      result: { cacheScope: 'public', ttlMs: 1e15 },
    });
  });

  it('[D-04] shows other definitions from one request to the next', async () => {
    let turn = 0;
    upstream.offer(() => {
      turn += 1;
      return [{ name: `tool_${turn}`, inputSchema: { type: 'object' } }];
    });
    const { client, close } = await connectSdkV1(upstream.url);
    expect((await client.listTools()).tools[0]?.name).toBe('tool_1');
    expect((await client.listTools()).tools[0]?.name).toBe('tool_2');
    await close();
  });

  const message = { jsonrpc: '2.0', id: 7, result: textResult('fine') };
  it.each([
    ['two lengths', twoContentLengths(message)],
    ['a short body', shortBody(message)],
  ] as const)('[D-04] sends bytes that an HTTP client refuses: %s', async (_title, act) => {
    upstream.obeyOnce(() => act);
    await expect(call().then((response) => response.text())).rejects.toThrow();
  });

  it('[D-04] sends what an HTTP client takes: 103 flood, many headers, a second answer', async () => {
    upstream.obeyOnce(() => informationalFlood(20, message));
    expect(await (await call()).json()).toEqual(message);
    upstream.obeyOnce(() => manyHeaders(100, message));
    expect([...(await call()).headers].length).toBeGreaterThan(100);
    upstream.obeyOnce(() => secondResponseBehind(message, { stolen: true }));
    expect(await (await call()).json()).toEqual(message);
    expect((await call()).status).toBe(200);
  });

  it('[D-04] sends a small body that inflates, and encodings in a chain', async () => {
    upstream.obeyOnce(() => gzipBomb(5_000_000));
    const bomb = await call();
    expect(bomb.headers.get('content-encoding')).toBe('gzip');
    expect((await bomb.text()).length).toBe(5_000_000);
    upstream.obeyOnce(() => chainedEncodings(3, message));
    expect((await call()).headers.get('content-encoding')).toBe('gzip, gzip, gzip');
  });

  it('[D-04] splits a stream where it is told', async () => {
    const text = sseEvent(message);
    upstream.obeyOnce(() => splitStream(text, [3, 20, 21]));
    const response = await call();
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const pieces: string[] = [];
    for await (const piece of response.body ?? []) pieces.push(Buffer.from(piece).toString());
    expect(pieces.join('')).toBe(text);
    expect(pieces.length).toBeGreaterThan(1);
  });

  it('[D-04] asks the client in a stream, tells progress in parts, cuts a stream off', async () => {
    upstream.obeyOnce((request) => serverRequestInStream(request, 'sampling/createMessage'));
    expect(await (await call()).text()).toContain('sampling/createMessage');
    upstream.obeyOnce((request) => progressThenResult(request, ['half', 'other half']));
    expect((await (await call()).text()).split('notifications/progress')).toHaveLength(3);
    upstream.obeyOnce(closedMidStream);
    await expect(call().then((response) => response.text())).rejects.toThrow();
  });

  it('[D-04] notices that the other side went away', async () => {
    upstream.obeyOnce(() => ({ kind: 'hold' }));
    const gone = new AbortController();
    const pending = fetch(upstream.url, { method: 'POST', body: '{}', signal: gone.signal });
    await expect.poll(() => upstream.seen().length).toBe(1);
    gone.abort();
    await expect(pending).rejects.toThrow();
    await expect.poll(() => upstream.seen()[0]?.isAborted).toBe(true);
  });

  it('[D-04] lets a test choose what calls answer', async () => {
    const odd: JsonObject = { content: [], structuredContent: { n: 1 } };
    upstream.answerCalls(() => odd);
    const answer = (await (await call()).json()) as { result: JsonObject };
    expect(answer.result['structuredContent']).toEqual({ n: 1 });
    upstream.obeyOnce((request) => jsonBody(resultFor(request, textResult('chosen'))));
    expect(await (await call()).text()).toContain('chosen');
  });
});
