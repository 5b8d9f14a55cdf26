// A TCP port on loopback that was free a moment ago, for programs that cannot listen on 0 and tell.

import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

/** Takes a free port, lets it go, and returns its number. Another process may take it in between. */
export function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
