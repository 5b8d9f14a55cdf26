// What `dev` says of a server that it cannot use: one sentence for what came back, from real connections.

import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { WantedServer } from '../../../src/cli/dev-servers.js';
import { targetOfUrl } from '../../../src/cli/dev-target.js';
import { findFreePort } from '../../support/processes.js';
import { makeAuthority, startTlsFront } from '../../support/tls.js';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function serve(handler: RequestListener): Promise<string> {
  const server: Server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answering(status: number, headers: Record<string, string> = {}): RequestListener {
  return (request, response) => {
    request.resume();
    response.writeHead(status, headers).end(headers['content-type'] === undefined ? '' : 'text');
  };
}

type HttpOptions = Partial<Extract<WantedServer, { kind: 'http' }>>;

function explain(url: string, options: HttpOptions = {}): Promise<string | undefined> {
  return targetOfUrl({ kind: 'http', name: 'mcp', url, ...options }).explain('');
}

describe('[E-40] a server that cannot be used', () => {
  it('is known as one of HTTP+SSE by the stream that it opens', async () => {
    const url = await serve((request, response) => {
      request.resume();
      if (request.method !== 'GET') response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open');
    });
    expect(await explain(`${url}/sse`)).toBe(`${url}/sse speaks HTTP+SSE; add --transport http-sse`);
  });

  it('is quoted where it says why, without secrets', async () => {
    const url = await serve((request, response) => {
      request.resume();
      response
        .writeHead(403, { 'content-type': 'text/plain' })
        .end('\nAccess is only allowed at localhost\u001b[2J\nmore');
    });
    expect(await explain(`${url}/mcp`)).toBe(
      `${url}/mcp answered 403 to the request that opens a session; it says: Access is only allowed at localhost\\u{1b}[2J`,
    );
  });

  const html = { 'content-type': 'text/html; charset=utf-8' };
  it.each([
    ['404 at another path', 404, {}, '/', '/ answered 404; is the path /mcp?'],
    ['404 at /mcp', 404, {}, '/mcp', '/mcp answered 404; what is the path of its MCP endpoint?'],
    [
      '401 with a challenge',
      401,
      { 'www-authenticate': 'Bearer' },
      '/mcp',
      "/mcp answered 401: it wants credentials; try --header 'Authorization: Bearer TOKEN'",
    ],
    ['401', 401, {}, '/mcp', '/mcp answered 401 to the request that opens a session'],
    ['405', 405, {}, '/mcp', '/mcp answered 405 to POST; an HTTP+SSE server needs --transport http-sse'],
    ['500', 500, {}, '/mcp', '/mcp answered 500 to the request that opens a session'],
    ['a page', 200, html, '/', '/ answered 200 with text/html, a web page; is the path /mcp?'],
    ['no type', 200, {}, '/mcp', '/mcp answered 200 with no content type, which is not MCP; is the path /mcp?'],
    [
      'a redirect',
      301,
      { location: 'https://other.example/mcp?secret=1' },
      '/mcp',
      '/mcp answered 301: it redirects to https://other.example/mcp, and redirects are not followed; give that URL',
    ],
  ])('is explained by %s', async (_, status, headers, path, expected) => {
    const origin = await serve(answering(status, headers));
    expect(await explain(`${origin}${path}?key=not-shown`)).toBe(`${origin}${expected}`);
  });

  it('is explained by the header that it does not accept, whose value is not shown', async () => {
    const origin = await serve(answering(403));
    const header = { name: 'X-Api-Key', value: 'not-shown-either' };
    expect(await explain(`${origin}/mcp`, { header })).toBe(
      `${origin}/mcp answered 403: it does not accept the header X-Api-Key that was given`,
    );
  });

  it('is explained by the words of an error without a code', async () => {
    expect(await explain('http://127.0.0.1:1/mcp')).toBe('http://127.0.0.1:1/mcp cannot be reached (bad port)');
  });

  it('is explained by the connection', async () => {
    const port = await findFreePort();
    expect(await explain(`http://127.0.0.1:${port}/mcp`)).toBe(
      `http://127.0.0.1:${port}/mcp refused the connection; is the server running, and is this its port?`,
    );
    expect(await explain('http://no-such-host.invalid/mcp')).toBe(
      'http://no-such-host.invalid/mcp cannot be reached: the name no-such-host.invalid does not resolve',
    );
  });

  it('is explained by its certificate, or by the lack of one', async () => {
    const plain = await serve(answering(200, { 'content-type': 'application/json' }));
    const front = await startTlsFront(`${plain}/mcp`, makeAuthority().issue());
    closing.push(() => front.close());
    expect(await explain(`https://127.0.0.1:${front.port}/mcp`)).toContain('has a certificate that is not trusted (');
    expect(await explain(`${plain.replace('http:', 'https:')}/mcp`)).toContain('does not speak TLS (');
    const closer = createTcpServer((socket) => {
      // An alert of TLS. The connection stays open, because a client that is still sending could lose the alert.
      socket
        .on('error', () => undefined)
        .resume()
        .write('\x15\x03\x01\x00\x02\x02\x46');
    });
    await new Promise<void>((resolve) => closer.listen(0, '127.0.0.1', resolve));
    closing.push(() => new Promise((resolve) => closer.close(resolve)));
    const { port } = closer.address() as AddressInfo;
    expect(await explain(`http://127.0.0.1:${port}/mcp`)).toContain('does not speak HTTP (');
  });

  it.each([
    [
      '{"status":"ok","version":"1.2","secret":"not-shown"}',
      '/',
      'a JSON object with "status", "version", "secret", which is not an answer of MCP; is the path /mcp?',
    ],
    ['[]', '/mcp', 'a JSON list, which is not an answer of MCP; what is the path of its MCP endpoint?'],
    ['<p>', '/', 'text that is not JSON, which is not an answer of MCP; is the path /mcp?'],
    [`{"${'k'.repeat(100_000)}":1}`, '/', 'text that is not JSON, which is not an answer of MCP; is the path /mcp?'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":-32601}}', '/', 'the JSON-RPC error -32601'],
  ])('is explained by JSON that is no session: %.40s', async (body, path, expected) => {
    const origin = await serve((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    expect(await explain(`${origin}${path}`)).toBe(
      `${origin}${path} answered 200 with application/json to the request initialize: ${expected}`,
    );
  });

  it('is not explained where what came back is fine', async () => {
    const result = { protocolVersion: '2025-11-25', capabilities: {} };
    const origin = await serve((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
    });
    expect(await explain(`${origin}/mcp`)).toBeUndefined();
    const stream = await serve((request, response) => {
      const isGet = request.method === 'GET';
      response.writeHead(isGet ? 200 : 405, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      if (!isGet) response.end();
    });
    expect(await explain(`${stream}/sse`, { transport: 'http-sse' })).toBeUndefined();
  });
});
