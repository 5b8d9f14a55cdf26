// Cases 11, 20 and 28: bodies in another encoding, another character set or of another type.

import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { expectEdgeLines, expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import { post, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a body that is not plain JSON in UTF-8', () => {
  const rig = sharedGateway();

  const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'MARK' } });
  const text = JSON.stringify(parts.body);

  it.each([
    ['gzip', gzipSync(text)],
    ['br', brotliCompressSync(text)],
    ['deflate', deflateSync(text)],
    ['gzip, gzip', gzipSync(gzipSync(text))],
    ['unknown', Buffer.from(text)],
    ['identity, gzip', gzipSync(text)],
  ])('[X-11] is a 415 and is not inflated: %s', async (encoding, body) => {
    const headers = { ...parts.headers, 'content-encoding': encoding };
    const reply = await post(rig.access, body, headers);
    expect(reply.status).toBe(415);
    await expectEdgeLines(rig, reply, 'unsupported-media-type');
    expectNothingForwarded(rig);
  });

  it.each([
    'text/plain',
    'text/plain;charset=utf-8',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/vnd.api+json',
    'text/html',
  ])('[X-28] is a 415 with type %s', async (type) => {
    const reply = await post(rig.access, text, { ...parts.headers, 'content-type': type });
    expect(reply.status).toBe(415);
    await expectEdgeLines(rig, reply, 'unsupported-media-type');
    expectNothingForwarded(rig);
  });

  it.each([
    'application/json; charset=utf-16',
    'application/json; charset=utf-7',
    'application/json; charset=utf-8; charset=utf-16',
  ])('[X-28] is read as UTF-8 with type %s, and forwarded with a type of our own', async (type) => {
    rig.upstream.forget();
    const headers = { ...parts.headers, 'content-type': type };
    expect((await post(rig.access, text, headers)).status).toBe(200);
    expect(rig.upstream.uses().at(-1)?.headers['content-type']).toBe('application/json');
    rig.upstream.forget();
    const utf16 = await post(rig.access, Buffer.from(text, 'utf16le'), headers);
    expect(utf16.status).toBe(400);
    expectNothingForwarded(rig);
  });

  const before = text.slice(0, text.indexOf('MARK'));
  const after = text.slice(text.indexOf('MARK') + 4);

  it.each([
    ['a lone surrogate, escaped', Buffer.from(`${before}\\ud800${after}`)],
    ['invalid UTF-8', Buffer.concat([Buffer.from(before), Buffer.from([0xff]), Buffer.from(after)])],
    ['an overlong form', Buffer.concat([Buffer.from(before), Buffer.from([0xc0, 0xaf]), Buffer.from(after)])],
    ['a surrogate in UTF-8', Buffer.concat([Buffer.from(before), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from(after)])],
    ['a byte order mark', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)])],
    ['UTF-16', Buffer.from(text, 'utf16le')],
    ['nothing', Buffer.alloc(0)],
    ['HTML', Buffer.from('<html></html>')],
    ['JSON with a comment', Buffer.from(`${text}//x`)],
    ['two values', Buffer.from(`${text}${text}`)],
    ['a trailing comma', Buffer.from(text.replace(/}$/, ',}'))],
    ['NaN', Buffer.from(`${before}"${after.slice(0, 0)}x": NaN`)],
    ['a control character in a string', Buffer.from(`${before}\u0001${after}`)],
    ['a text', Buffer.from('"text"')],
    ['a number', Buffer.from('1')],
    ['null', Buffer.from('null')],
  ])('[X-20] is a 400: %s', async (_what, body) => {
    const reply = await post(rig.access, body, parts.headers);
    expect(reply.status).toBe(400);
    const lines = await linesFor(reply);
    expect(lines).toBeGreaterThan(0);
    expectNothingForwarded(rig);
  });

  async function linesFor(reply: Awaited<ReturnType<typeof post>>): Promise<number> {
    const error = reply.message?.['error'] as { code?: number } | undefined;
    const reason = error?.code === -32700 ? 'malformed-json' : 'invalid-message';
    return (await expectRefusedLines(rig, reply, reason)).length;
  }
});
