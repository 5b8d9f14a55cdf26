// A TCP port on loopback that was free a moment ago, for programs that cannot listen on 0 and tell.

import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range from which systems take the ports of outgoing connections. */
const FIRST_PORT = 12_000;
const LAST_PORT = 32_000;

/** Finds a port that is free now, where no outgoing connection will take it in between. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT);
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
