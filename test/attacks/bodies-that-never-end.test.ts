// Case 10: bodies that never end. They come before anyone is known, so they take no place of an
// upstream from those who are.

import { connect, type Socket } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { expectEdgeLines, linesOf } from '../support/gateway.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, hasCompleteResponse, rawPost, sendRaw } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CONCURRENCY = 4;

describe('bodies that are on their way for ever', () => {
  const sockets: Socket[] = [];
  const rig = sharedGateway({
    upstream: ['pinning: {maxAge: 10m}', `limits: {concurrency: ${CONCURRENCY}}`],
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
  });

  function head(more: readonly string[]): readonly string[] {
    return [`host: 127.0.0.1:${rig.port}`, ...more];
  }

  it('[H-02] hold up no caller', async () => {
    const begun = rawPost(rig.path, head(['content-type: application/json', 'content-length: 100']), '{"jsonrpc"');
    const opened = Array.from({ length: 3 * CONCURRENCY }, async () => {
      const socket = connect(rig.port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => undefined);
      await new Promise<void>((resolve) => socket.write(begun, () => resolve()));
    });
    await Promise.all(opened);
    // Behind them on the same listener: by its answer they have been read.
    await sendRaw(rig.port, [rawPost('/nowhere', head([]), '')], hasCompleteResponse);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(200);
  });

  it('[H-02] are given up, the first begun first, where together they are too much', async () => {
    const [count, size, shared] = [500, 256 * 1024, 64 * 1024 * 1024];
    const begun = rawPost(
      rig.path,
      head(['content-type: application/json', `content-length: ${2 * size}`]),
      'x'.repeat(size),
    );
    const refusals: string[] = [];
    for (let index = 0; index < count; index += 1) {
      const socket = connect(rig.port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (chunk: Buffer) => refusals.push(chunk.toString('latin1')));
      socket.write(begun);
    }
    // What is left fits, and nothing was given up that would have fitted as well.
    const left = shared / size;
    await expect.poll(() => refusals.length, PATIENT).toBeGreaterThanOrEqual(count - left);
    expect(refusals.length).toBeLessThanOrEqual(count - left + 2);
    for (const text of refusals) {
      expect(text).toMatch(/^HTTP\/1\.1 503 /);
      expect(text).toMatch(/\r\nretry-after: 1\r\n/);
      expect(text).toContain('"reason":"overloaded"');
    }
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.status).toBe(200);
  });
});

/** At a gateway of its own: of refusals before authentication only so many a second are recorded. */
describe('requests that the HTTP server itself cannot take', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}'] });

  function head(more: readonly string[]): readonly string[] {
    return [`host: 127.0.0.1:${rig.port}`, ...more];
  }

  it.each([
    ['', 415],
    [';', 415],
    ['json', 415],
    ['"', 415],
  ])('[H-03] with the type %j get the refusal of the edge', async (type, status) => {
    const lines = head([`content-type: ${type}`, 'content-length: 2']);
    const reply = await sendRaw(rig.port, [rawPost(rig.path, lines, '{}')], hasCompleteResponse);
    expect(reply.status).toBe(status);
    expect(reply.text).not.toContain('FST_');
    expect(reply.text).toMatch(/\r\nsallyport-decision: /i);
  });

  it('[H-03] with headers past 16 KiB get it as well, and it is recorded', async () => {
    const lines = head([`x-more: ${'x'.repeat(17 * 1024)}`]);
    const reply = await sendRaw(rig.port, [rawPost(rig.path, lines, '')], hasCompleteResponse);
    expect(reply.status).toBe(431);
    const decision = /\r\nsallyport-decision: (\S+)/.exec(reply.text)?.[1] ?? '';
    const headers = new Headers({ 'sallyport-decision': decision });
    await expectEdgeLines(rig, { headers }, 'headers-too-large');
    const [line] = await linesOf(rig.gateway, decision, 2);
    expect(line?.['target'].upstream).toBe('');
    expect(await rig.gateway.metrics()).toContain(
      'sallyport_denials_total{upstream="_OTHER",stage="edge",reason="headers-too-large",mode="enforce"} 1',
    );
  });
});
