// An upstream that is down, late or broken: 502 or 504 with the id of the request, or the same error as
// the last event of a stream that has begun; the gateway and the next call are unharmed.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectWithheldLines } from '../support/gateway.js';
import * as acts from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, errorOf, type OpenSession, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const ANSWER: JsonObject = {
  jsonrpc: '2.0',
  id: 1,
  result: { content: [], resultType: 'complete' },
};

const BROKEN: readonly (readonly [string, (request: HostileRequest) => Act])[] = [
  ['a closed connection', () => ({ kind: 'destroy' })],
  ['a body cut short', () => acts.shortBody(ANSWER)],
  ['two lengths', () => acts.twoContentLengths(ANSWER)],
  ['length and chunked', () => acts.lengthAndChunked(ANSWER)],
  ['another protocol', () => acts.switchingProtocols()],
  ['2000 headers', () => acts.manyHeaders(2000, ANSWER)],
  ['HTML', () => acts.body('<h1>stack trace at line 3</h1>', 'text/html')],
  ['HTML as JSON', () => acts.body('<h1>stack trace at line 3</h1>')],
  ['an error page', () => acts.body('<h1>stack trace at line 3</h1>', 'text/html', 500)],
  ['an empty body', () => acts.body('')],
  ['202 without a body', () => ({ kind: 'http', status: 202 })],
  ['a status that loses its body', (request) => withStatus(205, request)],
  ['a status that nobody defines', (request) => withStatus(999, request)],
  ['the answer of somebody else', (request) => acts.wrongId(request)],
  ['a result and an error', (request) => acts.resultAndError(request)],
  ['neither', (request) => acts.neitherResultNorError(request)],
  ['a login page', () => acts.body('Log in', 'text/html', 401)],
  ['an array', () => acts.jsonBody([ANSWER])],
  ['invalid UTF-8', () => acts.body(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', 'latin1'))],
  ['a number for a result', () => acts.jsonBody({ jsonrpc: '2.0', id: 1, result: 1 })],
  ['a stream without an answer', () => acts.stream([])],
];

/** The right answer under a status that is none. */
function withStatus(status: number, request: HostileRequest): Act {
  const { id = 1 } = JSON.parse(request.body) as { id?: number };
  return acts.body(JSON.stringify({ ...ANSWER, id }), 'application/json', status);
}

describe('an upstream that fails', () => {
  let session: OpenSession;
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 1s, maxResponseBytes: 64KiB}'],
  });
  beforeAll(async () => {
    session = await rig.openSession();
  });
  afterEach(() => rig.upstream.repent());

  it.each(BROKEN)('[G-05] is answered with the id of the request: %s', async (_what, act) => {
    rig.upstream.obey(acts.onMethod('tools/call', act));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect([200, 502]).toContain(reply.status);
    expect(reply.message?.['id']).toBe(1);
    expect([1502, 1506, 1507]).toContain(errorOf(reply)['code']);
    expect(reply.text).not.toContain('stack trace');
    expect(reply.text).not.toContain('somebody else');
    if (reply.status === 200) expect(reply.headers.get('content-type')).toContain('text/event-stream');

    const inSession = await session.call('read_record', { id: 'one' });
    expect(inSession.message).toHaveProperty('error');
    expect(inSession.message?.['id']).toBe(7);

    rig.upstream.repent();
    const next = await callStateless(rig.access, 'read_record', { id: 'two' });
    expect(next.message?.['result']).toMatchObject({ content: [{ text: 'read_record two' }] });
  });

  it('[G-05] is 504 when it does not answer in time', async () => {
    rig.upstream.obey(acts.onMethod('tools/call', () => ({ kind: 'hold' })));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(504);
    expect(reply.message?.['id']).toBe(1);
    expect(errorOf(reply)).toMatchObject({ code: 1505 });
    await expectWithheldLines(rig, reply, 'upstream-timeout');
  });

  it('[G-05] is an error as the last event of a stream that has begun', async () => {
    rig.upstream.obey(acts.onMethod('tools/call', (request) => acts.closedMidStream(request)));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' }, { progressToken: 1 });
    expect(reply.status).toBe(200);
    expect(reply.messages).toHaveLength(2);
    expect(reply.messages.at(-1)).toMatchObject({ id: 1, error: { code: expect.any(Number) } });
    const data = errorOf(reply)['data'] as JsonObject;
    expect(data['dev.sallyport/decision']).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  it('[G-05] that sends more than allowed is refused, not cut', async () => {
    rig.upstream.obey(
      acts.onMethod('tools/call', (request) =>
        acts.jsonBody(acts.resultFor(request, acts.textResult('x'.repeat(70 * 1024)))),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.message?.['result']).toMatchObject({ isError: true });
    expect(reply.text).not.toContain('xxx');
    await expectWithheldLines(rig, reply, 'result-too-large');
  });

  it('[G-05] floods with interim answers and is still heard once', async () => {
    rig.upstream.obey(acts.onMethod('tools/call', () => acts.informationalFlood(500, ANSWER)));
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect([200, 502]).toContain(reply.status);
    expect(reply.message?.['id']).toBe(1);
  });

  it('[G-05] cannot put a second answer into the next exchange', async () => {
    const evil = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'evil' }] } };
    rig.upstream.obeyOnce(acts.onMethod('tools/call', () => acts.secondResponseBehind(ANSWER, evil)));
    await callStateless(rig.access, 'read_record', { id: 'one' });
    for (let i = 0; i < 3; i += 1) {
      const reply = await callStateless(rig.access, 'read_record', { id: 'two' });
      expect(reply.text).not.toContain('evil');
    }
  });

  it('[G-05] is 502 when nothing listens there', async () => {
    await rig.upstream.close();
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(502);
    expect(errorOf(reply)).toMatchObject({ code: 1502 });
    expect((await requestStateless(rig.access, 'tools/list')).status).toBe(502);
  });
});
