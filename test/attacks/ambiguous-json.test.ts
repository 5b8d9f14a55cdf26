// Cases 18, 19, 21, 23, 24 and 27: JSON that parsers, languages and later readers take for something else.

import { beforeAll, describe, expect, it } from 'vitest';
import { expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import { body, onMethod } from '../support/hostile-acts.js';
import {
  callStateless,
  errorOf,
  type OpenSession,
  post,
  requestStateless,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('JSON that is not what it seems', () => {
  let session: OpenSession;
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'arguments: any'] });
  beforeAll(async () => {
    session = await rig.openSession();
    rig.upstream.forget();
  });

  const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'MARK' } });
  const good = JSON.stringify(parts.body);

  function send(from: string, to: string): ReturnType<typeof post> {
    expect(good).toContain(from);
    return post(
      rig.access,
      good.replace(from, () => to),
      parts.headers,
    );
  }

  it.each([
    '{"id":"x","__proto__":{"polluted":1}}',
    '{"id":"x","constructor":{"prototype":{"polluted":1}}}',
    '{"id":"x","a":{"__proto__":{"polluted":1}}}',
    '{"__proto__":{"id":"x"}}',
  ])('[X-18] changes no prototype: %s', async (args) => {
    rig.upstream.forget();
    const reply = await send('{"id":"MARK"}', args);
    expect([200, 400]).toContain(reply.status);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain('polluted');
    // A required argument that stands on a prototype alone is not there.
    if (args.startsWith('{"__proto__"')) expect(rig.upstream.uses()).toEqual([]);
    rig.upstream.forget();
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf'])(
    '[X-18] knows no tool, prompt or session of the name %s',
    async (name) => {
      const call = await callStateless(rig.access, name);
      expect(errorOf(call)).toMatchObject({
        code: -32602,
        message: 'Unknown tool. Request the list again.',
      });
      const prompt = await requestStateless(rig.access, 'prompts/get', { name });
      expect(errorOf(prompt)).toMatchObject({ code: -32602 });
      expectNothingForwarded(rig);
    },
  );

  it('[X-19] refuses depth and number of members before anything reads them', async () => {
    const deep = '['.repeat(300_000) + ']'.repeat(300_000);
    const many = Array.from({ length: 60_000 }, (_, i) => `"k${i}":1`).join();
    const bodies = [deep, good.replace('"MARK"', `${'['.repeat(2000)}${']'.repeat(2000)}`)];
    for (const body of bodies) {
      const reply = await post(rig.access, body, parts.headers);
      expect([400, 413]).toContain(reply.status);
    }
    const wide = await send('"id":"MARK"', `"id":"x",${many}`);
    expect([200, 400, 413]).toContain(wide.status);
    rig.upstream.forget();
    const next = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(next.text).toContain('read_record one');
    rig.upstream.forget();
  });

  it.each(['9007199254740993', '1e400', '-1e400', '0.1e-400', '123456789012345678901234567890'])(
    '[X-21] passes a number that doubles cannot hold where nothing reads it: %s',
    async (number) => {
      const text = `{"id":"x","n":[${number}]}`;
      expect((await send('{"id":"MARK"}', text)).status).toBe(200);
      expect(rig.upstream.uses()[0]?.body).toContain(text);
      rig.upstream.forget();
      await send('"MARK"', number);
      expectNothingForwarded(rig);
    },
  );

  it('[X-21] passes numbers as they were written', async () => {
    const text = '{"id":"x","n":1.0,"m":1e2,"z":-0.50}';
    expect((await send('{"id":"MARK"}', text)).status).toBe(200);
    expect(rig.upstream.uses()[0]?.body).toContain(text);
    rig.upstream.forget();
  });

  it.each(['null', '{}', '[]', 'true', '1e1000', '1e999999999', `1${'0'.repeat(4096)}`])(
    '[X-23] refuses an id that is neither a text nor a number within bounds: %s',
    async (id) => {
      const reply = await send('"id":1', `"id":${id}`);
      expect(reply.status).toBe(400);
      expectNothingForwarded(rig);
    },
  );

  const answerWith = (id: string): void =>
    rig.upstream.obeyOnce(
      onMethod('tools/call', () =>
        body(
          `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","content":[{"type":"text","text":"own"}]}}`,
        ),
      ),
    );

  it.each([
    ['1732789123456789123', '1732789123456789123'],
    ['1732789123456789123', '1732789123456789.1230e3'],
    ['1', '1.0'],
    ['1.0', '1e0'],
    ['-0', '0'],
    ['1e400', '10e399'],
  ])('[X-23] knows the answer to %s under %s', async (asked, answered) => {
    answerWith(answered);
    const reply = await send('"id":1', `"id":${asked}`);
    expect(reply.status).toBe(200);
    expect(reply.text).toContain(`"id":${answered},`);
    expect(reply.text).toContain('own');
    expect(rig.upstream.uses()[0]?.body).toContain(`"id":${asked}`);
    rig.upstream.forget();
  });

  it.each([
    ['1732789123456789123', '1732789123456789124'],
    ['1732789123456789123', '1732789123456789100'],
    ['1732789123456789123', '"1732789123456789123"'],
    ['1732789123456789123', '"\\ud8001732789123456789123"'],
    ['9007199254740992', '9007199254740993'],
    ['1', '1.00000000000000000001'],
    ['0', '1e-999'],
    ['1e400', '1e401'],
    ['1', '1e999999999'],
  ])('[X-23] takes for the answer to %s none under %s', async (asked, answered) => {
    answerWith(answered);
    const reply = await send('"id":1', `"id":${asked}`);
    expect(reply.status).toBe(502);
    expect(reply.text).not.toContain('own');
    expect(reply.text).toContain(`"id":${asked},`);
    rig.upstream.forget();
  });

  it('[X-23] echoes ids as they came, and keeps those of two callers apart', async () => {
    const bob = rig.as(await rig.gateway.token('target', { sub: 'bob' }));
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        requestStateless(
          i % 2 === 0 ? rig.access : bob,
          'tools/call',
          { name: 'read_record', arguments: { id: `r${i}` } },
          { id: i < 20 ? 1 : `one-${i}` },
        ),
      ),
    );
    for (const [i, reply] of replies.entries()) {
      expect(reply.message?.['id']).toBe(i < 20 ? 1 : `one-${i}`);
      expect(reply.text).toContain(`read_record r${i}"`);
    }
    rig.upstream.forget();
  });

  it.each(['tools/Call', 'tools/call ', ' tools/call', 'TOOLS/CALL', 'tools/call\u0000', 'tools\u2044call'])(
    '[X-24] knows methods exactly: %j',
    async (method) => {
      const text = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: { name: 'read_record', arguments: { id: 'x' } },
      });
      const reply = await post(rig.access, text, sessionHeaders(session.id));
      expect([200, 400]).toContain(reply.status);
      expect(errorOf(reply)['code']).toBeLessThan(0);
      const stateless = await send('"method":"tools/call"', `"method":${JSON.stringify(method)}`);
      expect([400, 404]).toContain(stateless.status);
      expectNothingForwarded(rig);
    },
  );

  it('[X-24] decodes before it compares: an escaped method is that method', async () => {
    const reply = await send('"method":"tools/call"', '"method":"\\u0074ools\\/call"');
    expect(reply.status).toBe(200);
    expect(rig.upstream.uses()).toHaveLength(1);
    rig.upstream.forget();
  });

  it.each([
    ['a name that is a list', '"name":"read_record"', '"name":["read_record"]'],
    ['a name that is an object', '"name":"read_record"', '"name":{"a":1}'],
    ['a name that is null', '"name":"read_record"', '"name":null'],
    ['no name', '"name":"read_record"', '"x":1'],
    ['an empty name', '"name":"read_record"', '"name":""'],
    ['arguments that are a list', '{"id":"MARK"}', '["x"]'],
    ['arguments that are a text', '{"id":"MARK"}', '"x"'],
    ['_meta that is a list', '"_meta":{', '"_meta":[],"x":{'],
    ['another jsonrpc', '"jsonrpc":"2.0"', '"jsonrpc":"1.0"'],
    ['no jsonrpc', '"jsonrpc":"2.0",', ''],
    ['an unknown member of the envelope', '"jsonrpc":"2.0"', '"jsonrpc":"2.0","result":{}'],
  ])('[X-27] is refused before any rule is asked: %s', async (_what, from, to) => {
    const reply = await send(from, to);
    expect(reply.status).toBe(400);
    const [line] = await expectRefusedLines(
      rig,
      reply,
      errorOf(reply)['code'] === -32020 ? 'header-mismatch' : 'invalid-message',
    );
    expect(line?.['decision'].rule).toBeNull();
    expectNothingForwarded(rig);
  });

  it('[X-27] arguments that the approved schema does not allow are refused', async () => {
    for (const args of [{ id: 1 }, {}, { id: ['x'] }, { id: { a: 1 } }]) {
      const reply = await callStateless(rig.access, 'read_record', args as never);
      expect(reply.message?.['result']).toMatchObject({ isError: true });
      await expectRefusedLines(rig, reply, 'arguments-invalid');
    }
    expectNothingForwarded(rig);
  });
});
