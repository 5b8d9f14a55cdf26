// The bytes of an answer come whole and in order, however a server cuts them and whenever they are read.
// The room for answers: bounded for all, a part for each, first come first served in turns; who waits cannot
// block anybody for good, and what is given back is there for the next.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { Pool } from 'undici';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ForwardOutcome, joinPieces, type UpstreamResponse } from '../../../src/protocol/transport.js';
import {
  type BufferReservation,
  createResponseBufferQuota,
  createResponseReader,
  type OpenReservation,
  type ReservationOutcome,
  type ResponseBufferQuota,
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
    pool.dispatch({ path: '/', method: 'POST', body: '{}' }, createResponseReader(resolve, undefined, openReservation));
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

const BOUNDS = { maxBytes: 400, shares: 4, maxWaitMs: 1_000 };
const RATE = { bytesPerSecond: 100, burstBytes: 100, unmeteredBytes: 10 };

describe('the room for answers', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const holding = (held: BufferReservation, bytes: number): Promise<ReservationOutcome | 'at once'> =>
    Promise.resolve(held.reserve(bytes) ?? 'at once');

  it('[PRF-12] is given at once while there is some, and each upstream has its part', async () => {
    const quota = createResponseBufferQuota(BOUNDS);
    expect(quota.openReservation('one').reserve(60)).toBeUndefined();
    const second = quota.openReservation('one');
    const late = holding(second, 60);
    expect(quota.openReservation('two').reserve(100)).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await late).toBe('overloaded');
    expect(quota.heldBytes).toBe(160);
  });

  it('[PRF-12] is given to who waited once it was given back, upstreams in turns', async () => {
    const quota = createResponseBufferQuota({ ...BOUNDS, maxBytes: 100, quotaDivisor: 1 });
    const first = quota.openReservation('zero');
    expect(first.reserve(100)).toBeUndefined();
    const came: string[] = [];
    const entered = ['one', 'one', 'two'].map((upstream, at) => {
      const held = quota.openReservation(upstream);
      void holding(held, 50).then((how) => came.push(`${upstream} ${at} ${how}`));
      return held;
    });
    first.release();
    await vi.advanceTimersByTimeAsync(1);
    expect(came).toEqual(['one 0 reserved', 'two 2 reserved']);
    entered[0]?.release();
    await vi.advanceTimersByTimeAsync(1);
    expect(came).toEqual(['one 0 reserved', 'two 2 reserved', 'one 1 reserved']);
    for (const held of entered) held.release();
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] lets the oldest go on, so that answers that grow cannot all wait for each other', async () => {
    const quota = createResponseBufferQuota({ ...BOUNDS, maxBytes: 100, quotaDivisor: 1 });
    const growing = Array.from({ length: 4 }, () => quota.openReservation('one'));
    for (const held of growing) expect(held.reserve(25)).toBeUndefined();
    const outcomes = growing.map((held) => holding(held, 50));
    const done: number[] = [];
    for (const [at, held] of growing.entries()) {
      expect(await outcomes[at]).not.toBe('overloaded');
      done.push(at);
      held.release();
    }
    expect(done).toEqual([0, 1, 2, 3]);
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] one answer may always have, however large it is', () => {
    const quota = createResponseBufferQuota(BOUNDS);
    expect(quota.openReservation('one').reserve(390)).toBeUndefined();
  });

  it('[PRF-12] is not held by who gave up waiting, nor twice by who holds less than before', async () => {
    const quota = createResponseBufferQuota(BOUNDS);
    const held = quota.openReservation('one');
    expect(held.reserve(100)).toBeUndefined();
    const waiting = quota.openReservation('one');
    const outcome = holding(waiting, 50);
    waiting.release();
    expect(await outcome).toBe('overloaded');
    expect(held.reserve(10)).toBeUndefined();
    expect(quota.heldBytes).toBe(10);
    held.release();
    held.release();
    expect(quota.heldBytes).toBe(0);
  });

  it('[PRF-12] is given at a rate to each upstream, and holds up no other', async () => {
    const quota = createResponseBufferQuota({ maxBytes: 1_000, quotaDivisor: 1, ...RATE });
    expect(quota.openReservation('one').reserve(110)).toBeUndefined();
    const came: string[] = [];
    for (const name of ['second', 'third'])
      void holding(quota.openReservation('one'), 110).then((how) => came.push(`${name} ${how}`));
    expect(quota.openReservation('one').reserve(10)).toBeUndefined();
    expect(quota.openReservation('two').reserve(110)).toBeUndefined();
    await vi.advanceTimersByTimeAsync(100);
    expect(came).toEqual(['second reserved']);
    await vi.advanceTimersByTimeAsync(800);
    expect(came).toEqual(['second reserved']);
    await vi.advanceTimersByTimeAsync(300);
    expect(came).toEqual(['second reserved', 'third reserved']);
  });
});
