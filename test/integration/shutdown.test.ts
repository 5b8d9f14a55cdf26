// The end of a gateway while clients are at work: what is told to whom, what is recorded of what could not end in time,
// and how connections and streams are given back.

import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { openSessionStreams } from '../support/deployments.js';
import { type AuditLine, startRig, UPSTREAM } from '../support/gateway.js';
import { callMessage, openSessionChannel } from '../support/http-sse-clients.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, openSession, type Reply } from '../support/wire-client.js';

const SOON = 'shutdown: {drain: 300ms}';
const READ = { id: 'one' };
/** Time for bytes to arrive; nothing is waited for that must come. */
const TEMPTING_MS = 100;

async function readyz({ gateway }: { readonly gateway: { readonly opsUrl: string } }): Promise<string> {
  return (await fetch(`${gateway.opsUrl}/readyz`)).text();
}

async function outcomes(rig: { readonly gateway: { audit(): Promise<readonly AuditLine[]> } }) {
  const lines = await rig.gateway.audit();
  return lines
    .filter(({ type, target }) => type === 'mcp.outcome' && target?.method === 'tools/call')
    .map(({ result, decision }) => [result.http, decision.reasons]);
}

describe('[E-43] what still runs when the time to finish is over', () => {
  it.each([
    ['a call of the stateless era', 'stateless'],
    ['a call in a session', 'sessions'],
  ] as const)('%s gets a refusal of the gateway, and is not recorded as a failure of the upstream', async (_, era) => {
    const rig = await startRig({ more: SOON });
    const call =
      era === 'stateless'
        ? () => callStateless(rig.access, 'read_record', READ)
        : (
            (session) => () =>
              session.call('read_record', READ)
          )(await openSession(rig.access));
    rig.upstream.obey(({ method }) => (method === 'tools/call' ? { kind: 'hold' } : undefined));
    const running = call();
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    await rig.gateway.gateway.close();
    expectStopping(await running);
    expect(await outcomes(rig)).toEqual([[503, ['gateway-stopping']]]);
    await rig.close();
  });

  it('a call in a session whose client has left is recorded in the same way', async () => {
    const rig = await startRig({ more: SOON });
    const session = await openSession(rig.access);
    rig.upstream.obey(({ method }) => (method === 'tools/call' ? { kind: 'hold' } : undefined));
    const leaving = new AbortController();
    const running = fetch(rig.access.url, {
      ...{ method: 'POST', signal: leaving.signal },
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...{ authorization: `Bearer ${rig.access.token}`, 'mcp-session-id': session.id },
        'mcp-protocol-version': '2025-11-25',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 9,
        method: 'tools/call',
        params: { name: 'read_record', arguments: READ },
      }),
    }).catch(() => undefined);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    leaving.abort();
    await running;
    await rig.gateway.gateway.close();
    expect(await outcomes(rig)).toEqual([[503, ['gateway-stopping']]]);
    await rig.close();
  });

  it('a stream that answers a call ends with that refusal', async () => {
    const rig = await startRig({ more: SOON });
    rig.upstream.obey(({ method }) =>
      method === 'tools/call'
        ? { kind: 'chunks', contentType: 'text/event-stream', chunks: [': working\n\n'], ending: 'hold' }
        : undefined,
    );
    const running = callStateless(rig.access, 'read_record', READ);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    await rig.gateway.gateway.close();
    const reply = await running;
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('"reason":"gateway-stopping"')]);
    expect(await outcomes(rig)).toEqual([[200, ['gateway-stopping']]]);
    await rig.close();
  });

  function expectStopping(reply: Reply): void {
    expect(reply.status).toBe(503);
    expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(reply.headers.get('connection')).toBe('close');
    expect(reply.message?.['error']).toMatchObject({
      code: 1510,
      // It was sent, so nobody knows whether it was carried out.
      message: expect.stringMatching(/^This gateway is stopping .* may have been carried out/),
    });
  }
});

describe('[E-43] calls of a client of HTTP+SSE', () => {
  it.each(['channels', 'sessions'] as const)(
    'at an upstream of %s are answered meanwhile, or else refused on the stream and recorded',
    async (era) => {
      const rig = await startRig({ more: 'shutdown: {drain: 10m}', era });
      let answer = (): void => undefined;
      let release = (): void => undefined;
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const { channel, post } = await openSessionChannel(rig.access.url, rig.access.token ?? '');
      rig.upstream.obey(({ method, message }) => {
        if (method !== 'tools/call') return undefined;
        return { kind: 'honest', after: JSON.stringify(message).includes('slow') ? released : answered };
      });
      await post(callMessage(1, 'read_record', { id: 'quick' }));
      await post(callMessage(2, 'read_record', { id: 'slow' }));
      await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(2);
      const ended = rig.gateway.gateway.shutDown(0);
      await expect.poll(() => readyz(rig), PATIENT).toContain('stopping');
      answer();
      expect(await channel.answer(1)).toHaveProperty('result.content');
      rig.gateway.gateway.hurry();
      const refused = await channel.answer(2);
      expect(refused['error']).toMatchObject({
        code: 1510,
        message: expect.stringContaining('may have been carried out'),
      });
      await ended;
      release();
      const stopped = (await outcomes(rig)).filter(([, reasons]) => reasons.includes('gateway-stopping'));
      expect(stopped).toHaveLength(1);
      await rig.close();
    },
  );
});

describe('[E-43] a gateway that is told to end', () => {
  it('is not ready, serves for its delay, tells connections to close, and then ends streams in order', async () => {
    const rig = await startRig({ more: SOON });
    const [stream] = (await openSessionStreams(rig.access)).streams;
    const ended = rig.gateway.gateway.shutDown(1_500);
    const probe = await fetch(`${rig.gateway.opsUrl}/readyz`);
    expect([probe.status, await probe.text()]).toEqual([503, 'not ready\nthe gateway is stopping\n']);
    expect((await fetch(`${rig.gateway.opsUrl}/livez`)).status).toBe(200);
    const reply = await callStateless(rig.access, 'read_record', READ);
    expect([reply.status, reply.headers.get('connection')]).toEqual([200, 'close']);
    expect(stream?.isOver()).toBe(false);
    await ended;
    await expect.poll(() => [stream?.isOver(), stream?.isCut()], PATIENT).toEqual([true, false]);
    expect((await rig.gateway.audit()).flatMap(({ decision }) => decision?.reasons ?? [])).toEqual([]);
    await rig.close();
  });

  it('ends at once when it is told again', async () => {
    const rig = await startRig({ more: 'shutdown: {drain: 10m}' });
    rig.upstream.obey(({ method }) => (method === 'tools/call' ? { kind: 'hold' } : undefined));
    const running = callStateless(rig.access, 'read_record', READ);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const ended = rig.gateway.gateway.shutDown(600_000);
    rig.gateway.gateway.hurry();
    await ended;
    expect((await running).status).toBe(503);
    await rig.close();
  });

  it('refuses what comes on an open connection with a text of its own', async () => {
    const rig = await startRig();
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    rig.upstream.obey(({ method }) => (method === 'tools/call' ? { kind: 'honest', after: answered } : undefined));
    const running = callStateless(rig.access, 'read_record', READ);
    await expect.poll(() => rig.upstream.uses().length, PATIENT).toBe(1);
    const socket = connect(rig.port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    const closed = once(socket, 'close');
    socket.write(`POST /${UPSTREAM} HTTP/1.1\r\n`);
    await sleep(TEMPTING_MS);
    const ended = rig.gateway.gateway.close();
    await expect.poll(() => readyz(rig), PATIENT).toContain('stopping');
    socket.end(`host: 127.0.0.1:${rig.port}\r\ncontent-length: 0\r\n\r\n`);
    await closed;
    expect(text).toMatch(/^HTTP\/1\.1 503 .*retry-after: 1\r\n.*"code":1510,"message":"[^"]*did not carry out/s);
    answer();
    expect((await running).status).toBe(200);
    await ended;
    await rig.close();
  });
});
