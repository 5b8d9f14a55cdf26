// The bytes of an answer come whole and in order, however a server cuts them and whenever they are read.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { Pool } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import type { ForwardOutcome, UpstreamResponse } from '../../../src/protocol/transport.js';
import { joinPieces } from '../../../src/protocol/transport.js';
import {
  createResponseBufferQuota,
  type ResponseBufferQuota,
} from '../../../src/upstream/response-quota.js';
import {
  createResponseReader,
  type OpenReservation,
} from '../../../src/upstream/response-reader.js';

const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

/** A server that sends headers at once, and a moment later so many chunks and the end in one packet. */
async function startServer(chunks: number): Promise<Server> {
  const body = Array.from({ length: chunks }, (_, at) => chunkOf(textOf(at))).join('');
  const server = createServer((socket) => {
    // Who gives up resets the connection.
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      setTimeout(() => socket.write(`${body}0\r\n\r\n`), 20);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  open.push(async () => server.close());
  return server;
}

const textOf = (at: number): string => `<${at}>`;
const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

async function ask(server: Server, openReservation?: OpenReservation): Promise<UpstreamResponse> {
  const { port } = server.address() as AddressInfo;
  const pool = new Pool(`http://127.0.0.1:${port}`);
  open.push(() => pool.destroy());
  const outcome = await new Promise<ForwardOutcome>((resolve) => {
    pool.dispatch(
      { path: '/', method: 'POST', body: '{}' },
      createResponseReader(resolve, undefined, openReservation),
    );
  });
  if (outcome.kind === 'error') throw new Error(outcome.reason);
  return outcome;
}

describe('an answer that is read as it comes', () => {
  it.each([1, 15, 16, 17, 32, 33, 100])('is whole in %i chunks of one packet', async (chunks) => {
    const response = await ask(await startServer(chunks));
    let text = '';
    for (;;) {
      const chunk = await response.next();
      if (chunk === undefined) break;
      text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    }
    expect(text).toBe(Array.from({ length: chunks }, (_, at) => textOf(at)).join(''));
  });
});

describe('an answer that is kept until it is whole', () => {
  const CHUNKS = 40_000;

  async function askIn(quota: ResponseBufferQuota): Promise<UpstreamResponse> {
    return ask(await startServer(CHUNKS), () => quota.openReservation('one'));
  }

  it('[PRF-12] holds room from some length on, until it is let go', async () => {
    const quota = createResponseBufferQuota();
    const response = await askIn(quota);
    const complete = await response.readBody(8 * 1024 * 1024, 5_000);
    if (typeof complete === 'string') throw new Error(complete);
    expect(Buffer.from(joinPieces(complete)).toString()).toBe(
      Array.from({ length: CHUNKS }, (_, at) => textOf(at)).join(''),
    );
    expect(quota.heldBytes).toBeGreaterThanOrEqual(joinPieces(complete).byteLength);
    response.release();
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] waits for room, and is given up where there is none', async () => {
    const quota = createResponseBufferQuota({ maxBytes: 1024, quotaDivisor: 1, maxWaitMs: 50 });
    const other = quota.openReservation('one');
    expect(other.reserve(1024)).toBeUndefined();
    expect(await (await askIn(quota)).readBody(8 * 1024 * 1024, 5_000)).toBe('overloaded');
    const waiting = (await askIn(quota)).readBody(8 * 1024 * 1024, 5_000);
    setImmediate(() => other.release());
    expect(await waiting).toBeInstanceOf(Uint8Array);
  });

  it.each([
    ['past its cap', 100_000, 'too-large'],
    ['past its time', 8 * 1024 * 1024, 'upstream-timeout'],
  ])('[PRF-12] holds nothing once it is given up %s', async (_how, maxBytes, why) => {
    const quota = createResponseBufferQuota();
    const response = await askIn(quota);
    expect(await response.readBody(maxBytes, why === 'upstream-timeout' ? 0 : 5_000)).toBe(why);
    expect(quota.heldBytes).toBe(0);
  });
});
