// What the gateway is compared with: the same framework and client with no control at all. One parse of
// the request, `pool.dispatch`, a hijacked reply. Everything above its cost is the price of security.

import fastify from 'fastify';
import { Pool } from 'undici';

const upstream = new URL(process.argv[2]);
const pool = new Pool(upstream.origin, { connections: 100, pipelining: 1 });
const app = fastify({ logger: false });
app.removeAllContentTypeParsers();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));

app.post('/mcp', (request, reply) => {
  reply.hijack();
  JSON.parse(request.body);
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  for (const name of ['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name']) {
    if (request.headers[name] !== undefined) headers[name] = request.headers[name];
  }
  const response = reply.raw;
  pool.dispatch(
    { path: upstream.pathname, method: 'POST', headers, body: request.body },
    {
      onRequestStart() {},
      onResponseStart(_controller, status, answered) {
        const kept = {};
        for (const name of ['content-type', 'content-length', 'mcp-session-id']) {
          if (answered[name] !== undefined) kept[name] = answered[name];
        }
        response.writeHead(status, kept);
      },
      onResponseData(_controller, chunk) {
        response.write(chunk);
      },
      onResponseEnd() {
        response.end();
      },
      onResponseError() {
        response.destroy();
      },
    },
  );
});

await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.({ port: app.server.address().port });
process.on('disconnect', () => process.exit(0));
