// A TCP port on loopback that was free a moment ago, for programs that cannot listen on 0 and tell.

import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range from which systems take the ports of outgoing connections. */
const FIRST_PORT = 12_000;
/** Each worker of the test runner takes ports of its own, because a port is opened a while after it was found. */
const PORTS_A_WORKER = 2_500;
const WORKERS = 8;
/** Most of what a worker may give; it begins anew then. */
const MAX_GIVEN = PORTS_A_WORKER / 2;

const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS;
const first = FIRST_PORT + worker * PORTS_A_WORKER;
const given = new Set<number>();

/** Finds a port that is free now, where no outgoing connection will take it in between. */
export async function findFreePort(): Promise<number> {
  if (given.size > MAX_GIVEN) given.clear();
  for (;;) {
    const port = randomInt(first, first + PORTS_A_WORKER);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
