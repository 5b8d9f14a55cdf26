// Case 49, over time: what a connection proved to authorities of clients that are gone since. The connection
// stays open and its proof does not; a certificate of the listener that is renewed changes nothing.

import { hash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as ask } from 'node:https';
import { connect } from 'node:tls';
import { expect, it } from 'vitest';
import { linesOf, writeFilesBeside } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import { startHostileUpstream } from '../support/hostile-upstream.js';
import { makeAuthority } from '../support/tls.js';
import { statelessParts } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const CALL = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
const BODY = JSON.stringify(CALL.body);
const authority = makeAuthority();
const server = authority.issue();
const client = authority.issue();
const OWN_TLS = 'tls: {cert: ./own.crt, key: {file: ./own.key}, clientCa: ./ca.crt}';

const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1 } };
const SLOW = onMethod('tools/call', (request) => ({
  kind: 'chunks',
  contentType: 'text/event-stream',
  chunks: [...Array.from({ length: 30 }, () => sseEvent(progress)), sseEvent(resultFor(request, textResult('done')))],
  ending: 'end',
  paceMs: 50,
}));

const upstream = shared(() => startHostileUpstream());
const gateway = sharedGateway(() => ({
  tls: { ...server, clientCa: authority.cert },
  ops: [OWN_TLS],
  files: { 'own.crt': server.cert, 'own.key': server.key, 'ca.crt': authority.cert },
  upstreams: [{ name: 'target', url: upstream.url, more: ['pinning: {maxAge: 10m}'] }],
}));

/** One connection, kept by its client for as long as the gateway keeps it. */
async function openConnection(url: string) {
  const { hostname, port } = new URL(url);
  const { cert, key } = client;
  const socket = connect({ host: hostname, port: Number(port), ca: authority.cert, cert, key });
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  await once(socket, 'secureConnect');
  return {
    socket,
    write(part: string): void {
      text = '';
      socket.write(part);
    },
    /** The head of the next answer. */
    async head(): Promise<string> {
      await expect.poll(() => text, { timeout: 5_000, interval: 10 }).toContain('\r\n\r\n');
      return text.split('\r\n\r\n', 1)[0] ?? '';
    },
    /** The next answer in chunks, to its end. */
    async body(): Promise<string> {
      await expect.poll(() => text, { timeout: 10_000, interval: 10 }).toMatch(/\r\n0\r\n\r\n$/);
      return text;
    },
  };
}

function callText(token: string): string {
  const { host, pathname } = new URL(gateway.url('target'));
  const headers = {
    host,
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...CALL.headers,
    'content-length': String(Buffer.byteLength(BODY)),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `POST ${pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${BODY}`;
}

async function renew(clientCa: string, own = server): Promise<void> {
  await writeFilesBeside(gateway.folder, { tls: { ...own, clientCa } });
  const diagnostics = await gateway.reload();
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
}

it('[X-49, ACH-02] a connection that was busy all the time proves nothing to other authorities', async () => {
  const cnf = { 'x5t#S256': hash('sha256', client.der, 'base64url') };
  const call = callText(await gateway.token('target', { cnf }));
  const { socket, write, head, body } = await openConnection(gateway.url('target'));

  /** A call that is under way while the certificates change, so that its connection is never idle. */
  async function callDuring(change: () => Promise<void>): Promise<void> {
    upstream.forget();
    upstream.obeyOnce(SLOW);
    write(call);
    await expect.poll(() => upstream.uses().length, { timeout: 5_000 }).toBe(1);
    await change();
    expect(await body()).toContain('done');
    upstream.forget();
  }

  await callDuring(() => renew(authority.cert, authority.issue()));
  write(call);
  expect(await head()).toContain('HTTP/1.1 200');

  await callDuring(() => renew(makeAuthority().cert));
  write(call);
  const answer = await head();
  expect(answer).toContain('HTTP/1.1 401');
  expect(answer.toLowerCase()).toContain('connection: close');
  const id = /sallyport-decision: (\S+)/i.exec(answer)?.[1] ?? '';
  const [line] = await linesOf(gateway, id, 1);
  expect(line).toMatchObject({ type: 'auth.failure', decision: { reasons: ['token-binding'] } });
  expect(upstream.uses()).toEqual([]);
  await expect.poll(() => socket.closed).toBe(true);
});

it('[ACH-02] the listener of metrics ends the connections of clients whose authority is gone', async () => {
  const url = `${gateway.opsUrl.replace('http:', 'https:')}/metrics`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const { cert, key } = client;
  const status = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      ask(url, { agent, ca: authority.cert, cert, key }, (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode));
      })
        .on('error', reject)
        .end();
    });
  const { socket, write, head } = await openConnection(url);
  const scrape = 'GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n';
  write(scrape);
  expect(await head()).toContain('HTTP/1.1 200');
  expect(await status()).toBe(200);
  const closed = once(socket, 'close');
  await writeFilesBeside(gateway.folder, {
    files: { 'ca.crt': makeAuthority().cert },
  });
  await gateway.reload();
  await closed;
  expect(await status().catch(() => status())).toBe(403);
  agent.destroy();
});
