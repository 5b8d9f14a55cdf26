// Cases 15 and 16: several requests on one connection, and clients that go away.

import { connect } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { onMethod, resultFor, slowBody, textResult } from '../support/hostile-acts.js';
import {
  bearer,
  callStateless,
  type OpenSession,
  rawPost,
  sendRaw,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a connection', () => {
  let session: OpenSession;
  const rig = sharedGateway();
  beforeAll(async () => {
    session = await rig.openSession();
  });
  afterEach(() => rig.upstream.repent());

  function call(id: number, record: string, token: string | undefined): string {
    const { headers, body } = statelessParts('tools/call', { name: 'read_record', arguments: { id: record } }, id);
    const text = JSON.stringify(body);
    return rawPost(
      rig.path,
      [
        `Host: 127.0.0.1:${rig.port}`,
        ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
        'Content-Type: application/json',
        `Content-Length: ${text.length}`,
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
      ],
      text,
    );
  }

  it('[X-15] keeps a refused request and those behind it apart', async () => {
    rig.upstream.forget();
    const { token } = rig.access;
    const bytes =
      call(1, 'one', token) + call(2, 'two', 'x.y.z') + call(3, 'three', token) + call(4, 'four', undefined);
    const reply = await sendRaw(
      rig.port,
      [bytes],
      (text) => (text.match(/HTTP\/1\.1 \d/g) ?? []).length === 4 && text.includes('bearer token is required'),
    );
    const answers = reply.text.split(/(?=HTTP\/1\.1 )/);
    expect(answers.map((answer) => answer.slice(9, 12))).toEqual(['200', '401', '200', '401']);
    expect(answers[0]).toContain('read_record one');
    expect(answers[2]).toContain('read_record three');
    expect(rig.upstream.uses().map(({ message }) => message?.['id'])).toEqual([1, 3]);
  });

  it('[X-16, MCP-19] of a stateless client that goes away cancels the upstream, and is recorded', async () => {
    rig.upstream.forget();
    rig.upstream.obey(onMethod('tools/call', (request) => slowBody(resultFor(request, textResult('x')), 50, 'hold')));
    const socket = connect(rig.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(call(1, 'one', rig.access.token));
    await expect.poll(() => rig.upstream.uses().length).toBe(1);
    socket.destroy();
    await expect.poll(() => rig.upstream.uses()[0]?.isAborted, { timeout: 5_000 }).toBe(true);
    // Nobody is there to be answered and no upstream has failed: it was forwarded, and nothing came of it.
    const last = async () => (await rig.gateway.audit()).findLast((line) => line['target']?.method === 'tools/call');
    await expect.poll(async () => (await last())?.['type']).toBe('mcp.outcome');
    expect(await last()).toMatchObject({
      decision: { verdict: 'allow', action: 'forwarded', reasons: [] },
      result: { status: 'none' },
    });
    rig.upstream.repent();
    const next = await callStateless(rig.access, 'read_record', { id: 'two' });
    expect(next.text).toContain('read_record two');
  });

  it('[X-16, MCP-20] of a session client that goes away cancels nothing', async () => {
    rig.upstream.forget();
    rig.upstream.obey(onMethod('tools/call', (request) => slowBody(resultFor(request, textResult('slow')), 20)));
    const left = new AbortController();
    const calling = fetch(rig.access.url, {
      method: 'POST',
      signal: left.signal,
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read_record","arguments":{"id":"x"}}}',
    }).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length).toBe(1);
    left.abort();
    await calling;
    const outcome = async () =>
      (await rig.gateway.audit()).findLast((line) => line['type'] === 'mcp.outcome' && line['target'].request_id === 9);
    await expect.poll(outcome, { timeout: 5_000 }).toBeDefined();
    expect(rig.upstream.uses()[0]?.isAborted).toBe(false);
    expect((await outcome())?.['result'].status).toBe('ok');
  });
});
