// The flood: calls with tokens that were never signed, each another one, at a given rate. Driven over IPC.

import { randomBytes } from 'node:crypto';
import { Client } from 'undici';

const CONNECTIONS = 8;
const TICK_MS = 10;

/** A good token with another signature of the right length: it must be verified to be refused. */
function spoil(token) {
  const parts = token.split('.');
  return `${parts[0]}.${parts[1]}.${randomBytes(64).toString('base64url')}`;
}

process.on('message', async ({ url, token, ms, perSecond }) => {
  const { origin, pathname } = new URL(url);
  const clients = Array.from({ length: CONNECTIONS }, () => new Client(origin));
  const counts = { refused: 0, others: 0 };
  const underWay = [];
  const startedMs = performance.now();
  let sent = 0;
  while (performance.now() - startedMs < ms) {
    const due = ((performance.now() - startedMs) * perSecond) / 1000;
    for (; sent < due; sent += 1) {
      const call = clients[sent % CONNECTIONS].request({
        path: pathname,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${spoil(token)}`,
        },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      });
      underWay.push(
        call.then(async ({ statusCode, body }) => {
          await body.dump();
          counts[statusCode === 401 || statusCode === 429 ? 'refused' : 'others'] += 1;
        }),
      );
    }
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
  }
  await Promise.all(underWay);
  await Promise.all(clients.map((client) => client.destroy()));
  process.send(counts);
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
