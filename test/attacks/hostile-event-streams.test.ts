// Cases 64 and 73: event streams that are framed oddly, without end, or full of notices.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { onMethod, resultFor, stream, textResult } from '../support/hostile-acts.js';
import type { Chunk, HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, errorOf, type OpenSession, type Reply, sessionHeaders } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CAP_BYTES = 64 * 1024;

describe('an event stream', () => {
  let session: OpenSession;
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {maxResponseBytes: 64KiB}'],
  });
  beforeAll(async () => {
    session = await rig.openSession();
  });
  afterEach(() => rig.upstream.repent());

  function streamed(chunks: (own: string) => readonly Chunk[]): Promise<Reply> {
    rig.upstream.obey(
      onMethod('tools/call', (request: HostileRequest) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: chunks(JSON.stringify(resultFor(request, textResult('answered')))),
        ending: 'end',
      })),
    );
    return callStateless(rig.access, 'read_record', { id: 'one' });
  }

  it.each([
    ['CR alone', (own: string) => [`event: message\rdata: ${own}\r\r`]],
    ['CRLF cut between its bytes', (own: string) => [`data: ${own}\r`, '\n\r', '\n']],
    ['a byte order mark', (own: string) => [`\ufeffdata: ${own}\n\n`]],
    ['no space behind the colon', (own: string) => [`data:${own}\n\n`]],
    ['an id with NUL', (own: string) => [`id: a\u0000b\ndata: ${own}\n\n`]],
    ['data on several lines', (own: string) => [`data: ${own.slice(0, 17)}\ndata: ${own.slice(17)}\n\n`]],
    ['empty events before', (own: string) => [`data\n\ndata:\n\n: note\n\ndata: ${own}\n\n`]],
    ['events of another name before', (own: string) => [`event: other\ndata: {}\n\ndata: ${own}\n\n`]],
    ['one byte at a time', (own: string) => Array.from(Buffer.from(`data: ${own}\n\n`), (byte) => Buffer.from([byte]))],
  ])('[X-73] is read as the specification says: %s', async (_what, chunks) => {
    const reply = await streamed(chunks);
    expect(reply.message?.['result']).toMatchObject({ content: [{ text: 'answered' }] });
    expect(reply.messages).toHaveLength(1);
  });

  it.each([
    ['no blank line at the end', (own: string) => [`data: ${own}\n`]],
    ['an event that is no JSON', () => ['data: {"jsonrpc":\n\n']],
    ['an event that is an array', (own: string) => [`data: [${own}]\n\n`]],
    ['invalid UTF-8', () => [Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0x0a, 0x0a])]],
    ['lines of one event without end', () => Array(3).fill(`data: ${'x'.repeat(CAP_BYTES / 2)}\n`)],
    ['a line without end', () => [`data: ${'x'.repeat(CAP_BYTES)}`, 'x'.repeat(CAP_BYTES)]],
  ])('[X-73, M-29] ends as an error where it is broken: %s', async (_what, chunks) => {
    const reply = await streamed(chunks);
    const result = reply.message?.['result'] as JsonObject | undefined;
    expect(errorOf(reply)['code'] !== undefined || result?.['isError'] === true).toBe(true);
    expect(reply.text).not.toContain('xxx');
    expect(reply.text).not.toContain('"answered"');
  });

  it('[X-73] cannot have its clients connect again without a pause', async () => {
    const waits = ['0', '999', '1000', '5000', '999', '00'];
    const lines = waits.map((wait) => `retry: ${wait}\n\n`).join('');
    const reply = await streamed((own) => [`${lines}data: ${own}\n\n`]);
    const receivedWaits = [...reply.text.matchAll(/^retry: (.*)$/gm)].map(([, wait]) => wait);
    expect(receivedWaits).toEqual(['1000', '1000', '1000', '5000', '1000', '1000']);
    expect(reply.message?.['result']).toMatchObject({ content: [{ text: 'answered' }] });
  });

  it('[X-73] that nobody asked for cannot either', async () => {
    rig.upstream.obey(({ httpMethod }) =>
      httpMethod === 'GET'
        ? {
            kind: 'chunks',
            contentType: 'text/event-stream',
            chunks: ['retry: 1\n\n'],
            ending: 'end',
          }
        : undefined,
    );
    const opened = await fetch(rig.access.url, {
      headers: {
        ...sessionHeaders(session.id),
        authorization: `Bearer ${rig.access.token}`,
        accept: 'text/event-stream',
      },
    });
    expect(await opened.text()).toContain('retry: 1000\n');
  });

  it('[X-73, M-29] of very many small events ends, and the answer passes', async () => {
    // Comments count towards the bytes that an answer may have in sum.
    const reply = await streamed((own) => [': x\n\n'.repeat(12_000), `data: ${own}\n\n`]);
    expect(reply.message?.['result']).toMatchObject({ content: [{ text: 'answered' }] });
  });

  it('[X-64] of notices that lists changed, on many streams at once, makes few listings', async () => {
    const note = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    rig.upstream.obey(
      onMethod('tools/call', (request) => stream([note, note, note, resultFor(request, textResult('done'))])),
    );
    rig.upstream.forget();
    const replies = await Promise.all(Array.from({ length: 20 }, () => session.call('read_record', { id: 'one' })));
    for (const reply of replies) expect(reply.text).toContain('"done"');
    // Sixty notices; two eras are listed, each no more often than once a second.
    const listings = rig.upstream.seen().filter(({ method }) => method === 'tools/list');
    expect(listings.length).toBeGreaterThan(0);
    expect(listings.length).toBeLessThanOrEqual(12);
  });
});
