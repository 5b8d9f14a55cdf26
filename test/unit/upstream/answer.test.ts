// The bytes of an answer come whole and in order, however a server cuts them and whenever they are read.

import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { Pool } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import type { ForwardOutcome, UpstreamAnswer } from '../../../src/mcp/transport.js';
import { createAnswerReader } from '../../../src/upstream/answer.js';

const open: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((close) => close()));
});

/** A server that sends headers at once, and a moment later so many chunks and the end in one packet. */
async function startServer(chunks: number): Promise<Server> {
  const body = Array.from({ length: chunks }, (_, at) => chunkOf(textOf(at))).join('');
  const server = createServer((socket) => {
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

async function ask(server: Server): Promise<UpstreamAnswer> {
  const { port } = server.address() as AddressInfo;
  const pool = new Pool(`http://127.0.0.1:${port}`);
  open.push(() => pool.destroy());
  const outcome = await new Promise<ForwardOutcome>((resolve) => {
    pool.dispatch({ path: '/', method: 'POST', body: '{}' }, createAnswerReader(resolve));
  });
  if (outcome.kind === 'fault') throw new Error(outcome.reason);
  return outcome;
}

describe('an answer that is read as it comes', () => {
  it.each([1, 15, 16, 17, 32, 33, 100])('is whole in %i chunks of one packet', async (chunks) => {
    const answer = await ask(await startServer(chunks));
    let text = '';
    for (;;) {
      const chunk = await answer.next();
      if (chunk === undefined) break;
      text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    }
    expect(text).toBe(Array.from({ length: chunks }, (_, at) => textOf(at)).join(''));
  });
});
