// The search for leaked tokens finds what is planted, in every form and place that it is meant for, and
// nothing where there is nothing.

import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createCanary, findPart, partsOf } from '../../support/canary.js';

const part = (bytes: number): string => randomBytes(bytes).toString('base64url');
const token = `${part(30)}.${part(90)}.${part(64)}`;
const signature = token.split('.')[2] ?? '';
const parts = partsOf(token);

describe('the search for a token', () => {
  it.each([
    ['itself', token],
    ['in a header', `authorization: Bearer ${token}`],
    ['sixteen characters of its signature', `x=${signature.slice(20, 36)}&`],
    ['its signature in the other alphabet', signature.replaceAll('-', '+').replaceAll('_', '/')],
    ['percent escapes', [...token].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')],
    ['JSON escapes', [...token].map((c) => `\\u00${c.charCodeAt(0).toString(16)}`).join('')],
    ['hex', Buffer.from(token).toString('hex')],
    ...[0, 1, 2].map((at) => [
      `base64 at place ${at}`,
      Buffer.from(`${'a'.repeat(at)}Bearer ${token}!`).toString('base64'),
    ]),
  ])('[REV-40] finds %s', (_, text) => {
    expect(findPart(parts, `before ${text} after`)).toBeDefined();
  });

  it('[REV-40] finds an opaque token', () => {
    const opaque = part(32);
    expect(findPart(partsOf(opaque), `token=${opaque}`)).toBeDefined();
  });

  it('[REV-40] finds nothing in other texts', () => {
    const other = `${part(30)}.${part(90)}.${part(64)}`;
    for (const text of [other, signature.slice(0, 15), token.split('.')[0] ?? '', 'x'.repeat(500)])
      expect(findPart(parts, text)).toBeUndefined();
    const none = partsOf(`${part(30)}.${part(90)}.${'A'.repeat(86)}`);
    expect(findPart(none, 'A'.repeat(100))).toBeUndefined();
  });
});

describe('what is watched', () => {
  const servers: Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });

  async function serve(answer: string): Promise<number> {
    const server = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(400).end(answer));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }

  async function send(port: number, init: RequestInit = {}, query = ''): Promise<void> {
    await (await fetch(`http://127.0.0.1:${port}/x${query}`, init)).text();
  }

  it.each<[string, RequestInit, string]>([
    ['header', { headers: { 'x-anything': token } }, ''],
    ['query', {}, `?access_token=${token}`],
    ['body', { method: 'POST', body: `{"a":"${token}"}` }, ''],
  ])('[REV-40] is a %s that any server but a gateway or an issuer receives', async (_, init, query) => {
    const canary = createCanary();
    canary.watchServers();
    canary.recordToken(token);
    const [upstream, issuer, gateway] = [await serve(''), await serve(''), await serve('')];
    canary.watchIssuer(issuer);
    canary.watchGateway(gateway);
    await send(issuer, init, query);
    await send(gateway, init, query);
    await send(upstream, { headers: { authorization: `Bearer ${part(64)}` } });
    expect(canary.leaks()).toEqual([]);
    await send(upstream, init, query);
    expect(canary.leaks()).toHaveLength(1);
    expect(canary.leaks()[0]?.where).toContain(String(upstream));
  });

  it('[REV-40] is what a gateway answers, logs or writes', async () => {
    const canary = createCanary();
    canary.watchServers();
    canary.recordToken(token);
    const gateway = await serve(`{"error":"bad token ${signature.slice(8, 40)}"}`);
    canary.watchGateway(gateway);
    canary.recordSeen('the log', 'nothing');
    expect(canary.leaks()).toEqual([]);
    await send(gateway);
    canary.recordSeen('the audit', `{"token":"${token}"}`);
    await expect
      .poll(() =>
        canary
          .leaks()
          .map(({ where }) => where)
          .sort(),
      )
      .toEqual(['an answer of the gateway', 'the audit']);
  });
});
