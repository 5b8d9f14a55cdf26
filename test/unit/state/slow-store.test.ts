// A store that is slow when a replica comes back to it. It is one of this process and knows one command.

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRedisLink } from '../../../src/state/redis.js';
import type { StoreLink } from '../../../src/state/store.js';
import { PATIENT } from '../../support/timing.js';

const COMMAND_TIMEOUT_MS = 50;
const TOPIC = '{sallyport}:news';
const SUBSCRIBED = `*3\r\n$9\r\nsubscribe\r\n$${TOPIC.length}\r\n${TOPIC}\r\n:1\r\n`;

let server: Server;
let link: StoreLink;
let subscriptions = 0;
const sockets = new Set<Socket>();
const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);

/** Confirms the first subscription and ends its connection; leaves later ones without a reply. */
function serve(socket: Socket): void {
  sockets.add(socket);
  socket.on('error', () => undefined);
  socket.on('data', (bytes) => {
    const text = String(bytes).toLowerCase();
    if (text.includes('hello')) socket.write("-ERR unknown command 'HELLO'\r\n");
    if (!text.includes('subscribe')) return;
    subscriptions += 1;
    if (subscriptions === 1) socket.write(SUBSCRIBED, () => socket.end());
  });
}

beforeAll(async () => {
  process.on('unhandledRejection', note);
  server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `redis://127.0.0.1:${port}`;
  const settings = { prefix: 'sallyport', commandTimeoutMs: COMMAND_TIMEOUT_MS, maxAgeMs: 1_000 };
  link = openRedisLink({ type: 'redis', url, ...settings });
});
afterAll(async () => {
  process.off('unhandledRejection', note);
  await link?.close();
  for (const socket of sockets) socket.destroy();
  server?.close();
});

describe('a store that does not confirm a subscription after a reconnection', () => {
  it('[REV-15] does not end the process', async () => {
    link.onHint(() => undefined);
    await expect.poll(() => subscriptions, PATIENT).toBeGreaterThan(1);
    await sleep(COMMAND_TIMEOUT_MS * 4);
    expect(unhandled).toEqual([]);
  });
});
