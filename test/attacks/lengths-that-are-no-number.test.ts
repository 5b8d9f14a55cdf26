// Cases 2 and 3: lengths and transfer encodings that two parsers read differently.

import { describe, expect, it } from 'vitest';
import { expectNothingForwarded, linesOf } from '../support/gateway.js';
import { hasCompleteResponse, sendRaw, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a request whose length is not one number', () => {
  const rig = sharedGateway();

  const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
  const text = JSON.stringify(parts.body);
  const size = text.length;
  const chunked = `${size.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

  async function send(framing: readonly string[], body: string, version = '1.1'): Promise<number> {
    const head = [
      `POST ${rig.path} HTTP/${version}`,
      `Host: 127.0.0.1:${rig.port}`,
      `Authorization: Bearer ${rig.access.token}`,
      'Content-Type: application/json',
      ...Object.entries(parts.headers).map(([name, value]) => `${name}: ${value}`),
      ...framing,
      '',
      '',
    ];
    const reply = await sendRaw(rig.port, [head.join('\r\n') + body], hasCompleteResponse);
    return reply.status;
  }

  it.each([
    ['two equal', [`Content-Length: ${size}`, `Content-Length: ${size}`]],
    ['two different', ['Content-Length: 1', `Content-Length: ${size}`]],
    ['a list', [`Content-Length: ${size}, ${size}`]],
    ['signed', [`Content-Length: +${size}`]],
    ['negative', ['Content-Length: -1']],
    ['empty', ['Content-Length: ']],
    ['hexadecimal', [`Content-Length: 0x${size.toString(16)}`]],
    ['with a space before the colon', [`Content-Length : ${size}`]],
    ['folded', [`Content-Length:\r\n ${size}`]],
  ])('[X-02] is a 400: %s', async (_what, framing) => {
    expect(await send(framing, text)).toBe(400);
    expectNothingForwarded(rig);
  });

  it.each([
    ['xchunked', '1.1'],
    ['chunked, chunked', '1.1'],
    ['chunked, identity', '1.1'],
    ['identity', '1.1'],
    ['gzip, chunked', '1.1'],
    ['\x0bchunked', '1.1'],
    ['chunked', '1.0'],
  ])('[X-03] is refused: Transfer-Encoding %j on HTTP/%s', async (encoding, version) => {
    const status = await send([`Transfer-Encoding: ${encoding}`], chunked, version);
    expect([400, 415, 501]).toContain(status);
    expectNothingForwarded(rig);
  });

  it('[X-03] is no message where its coding is unknown, and is recorded so', async () => {
    const head = [
      `POST ${rig.path} HTTP/1.1`,
      `Host: 127.0.0.1:${rig.port}`,
      'Transfer-Encoding: gzip, chunked',
      '',
      '',
    ];
    const reply = await sendRaw(rig.port, [head.join('\r\n') + chunked], hasCompleteResponse);
    expect(reply.status).toBe(400);
    expect(reply.text).toContain('-32600');
    const id = /^sallyport-decision: (\S+)/im.exec(reply.text)?.[1] ?? '';
    const lines = await linesOf(rig.gateway, id, 2);
    expect(lines[1]?.['decision']).toMatchObject({ stage: 'edge', reasons: ['invalid-message'] });
    expect(lines[1]?.['result'].http).toBe(400);
  });

  it.each([
    ['GET', 'Content-Length: 2', '{}'],
    ['DELETE', 'Content-Length: 2', '{}'],
    ['GET', 'Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n'],
  ])('[H-03] that must have none is too large: %s with %s', async (method, framing, body) => {
    const head = [
      `${method} ${rig.path} HTTP/1.1`,
      `Host: 127.0.0.1:${rig.port}`,
      `Authorization: Bearer ${rig.access.token}`,
      framing,
      '',
      '',
    ];
    const reply = await sendRaw(rig.port, [head.join('\r\n') + body], hasCompleteResponse);
    expect(reply.status).toBe(413);
    const id = /^sallyport-decision: (\S+)/im.exec(reply.text)?.[1] ?? '';
    const lines = await linesOf(rig.gateway, id, 2);
    expect(lines.map((line) => line['decision'].reasons)).toEqual([['body-too-large'], ['body-too-large']]);
    expect(lines[1]?.['result'].http).toBe(413);
    expectNothingForwarded(rig);
  });

  it('[X-02, X-03] passes with one length, and in chunks', async () => {
    expect(await send([`Content-Length: ${size}`], text)).toBe(200);
    expect(await send(['Transfer-Encoding: chunked'], chunked)).toBe(200);
  });
});
