// The least proxy there is: it sends on what comes, both ways, as it comes, and changes nothing but its
// own name in Host to that of the server. What it loses, no proxy could keep.

import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Starts it on a free port of loopback in front of an endpoint. */
export async function startPassThrough(target: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { hostname, port, pathname } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const { host: _own, ...headers } = incoming.headers;
    const isForeign = incoming.headers.host !== `127.0.0.1:${ownPort()}`;
    const host = isForeign ? incoming.headers.host : `${hostname}:${port}`;
    const { method } = incoming;
    const options = { hostname, port, path: pathname, method, headers: { ...headers, host } };
    const upstream = ask(options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    upstream.once('error', () => outgoing.destroy());
    outgoing.once('close', () => upstream.destroy());
    incoming.pipe(upstream);
  });
  const ownPort = (): number => (server.address() as AddressInfo).port;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${ownPort()}${pathname}`,
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
