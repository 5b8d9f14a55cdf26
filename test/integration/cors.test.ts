// What browsers of other origins are told, and what they are not: preflights, readable answers and refusals
// for configured origins, public documents for all, nothing for the rest. No header here lets a request in.
// Source: WHATWG Fetch §3.2; MCP transports (Origin); docs/reference/listeners.md; docs/reference/responses.md.

import { request as ask } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { expectNothingForwarded } from '../support/gateway.js';
import { callStateless, type HeaderLines } from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const ALLOWED = 'https://inspector.example.com';
const FOREIGN = 'https://evil.example';

type Answer = { readonly status: number; readonly headers: Readonly<Record<string, unknown>> };

describe('cross-origin requests', () => {
  let document: string;
  const rig = sharedGateway({ listener: [`allowedOrigins: ["${ALLOWED}"]`] });
  beforeAll(async () => {
    document = `${rig.gateway.publicUrl}/.well-known/oauth-protected-resource/target`;
  });

  /** Says what a browser says, which fetch does not let a program say. */
  function send(url: string, method: string, headers: HeaderLines): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const outgoing = ask(url, { method, agent: false, headers }, (response) => {
        response.resume();
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  }

  function preflight(url: string, origin: string, more: HeaderLines = {}): Promise<Answer> {
    const headers = { origin, 'access-control-request-method': 'POST', ...more };
    return send(url, 'OPTIONS', headers);
  }

  it('[BND-24] a preflight of an allowed origin needs no token, reaches nobody and names what may be sent', async () => {
    rig.upstream.forget();
    const { status, headers } = await preflight(rig.access.url, ALLOWED, {
      'access-control-request-headers':
        'authorization, content-type, dpop, Mcp-Param-Region, mcp-param-, x-evil, mcp-param-a b, mcp-param-\u00e9',
    });
    expect(status).toBe(204);
    expect(headers).toMatchObject({
      'access-control-allow-origin': ALLOWED,
      'access-control-allow-methods': 'POST, GET, DELETE',
      'access-control-allow-headers':
        'authorization, dpop, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, mcp-param-region',
      'access-control-max-age': '600',
      vary: 'Origin',
    });
    expect(headers).not.toHaveProperty('access-control-allow-credentials');
    expectNothingForwarded(rig);
  });

  it.each([FOREIGN, 'null', `${ALLOWED}.evil.example`, `${ALLOWED}:444`, ALLOWED.toUpperCase()])(
    '[BND-25] a preflight of any other origin is a 403 that allows nothing: %s',
    async (origin) => {
      const { status, headers } = await preflight(rig.access.url, origin);
      expect(status).toBe(403);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    },
  );

  it('[BND-25] an unknown path is a 404 for everyone, and a wrong Host a 421', async () => {
    const unknown = `${rig.gateway.publicUrl}/nothing`;
    expect((await preflight(unknown, FOREIGN)).status).toBe(404);
    expect((await preflight(unknown, ALLOWED)).status).toBe(404);
    expect((await preflight(rig.access.url, ALLOWED, { host: 'evil.example' })).status).toBe(421);
    expect((await preflight(document, FOREIGN, { host: 'evil.example' })).status).toBe(421);
  });

  it('[BND-25] an OPTIONS that is no preflight is a method that does not exist', async () => {
    expect((await send(rig.access.url, 'OPTIONS', {})).status).toBe(405);
    expect((await send(rig.access.url, 'OPTIONS', { origin: ALLOWED })).status).toBe(405);
    const two = { 'access-control-request-method': 'POST' };
    expect((await send(rig.access.url, 'OPTIONS', two)).status).toBe(405);
  });

  it('[BND-26] an answer to an allowed origin may be read there, with the headers that clients need', async () => {
    const read = (reply: { readonly headers: Headers }): readonly (string | null)[] =>
      ['allow-origin', 'expose-headers', 'allow-credentials'].map((name) =>
        reply.headers.get(`access-control-${name}`),
      );
    const exposed =
      'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Sallyport-Decision, Retry-After, MCP-Protocol-Version';
    const from = (origin: string, token = rig.access.token) =>
      fetch(rig.access.url, {
        method: 'POST',
        headers: {
          origin,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 0,
          method: 'initialize',
          params: {
            protocolVersion: '2025-11-25',
            capabilities: {},
            clientInfo: { name: 'page', version: '1.0.0' },
          },
        }),
      });
    const good = await from(ALLOWED);
    expect([good.status, ...read(good)]).toEqual([200, ALLOWED, exposed, null]);
    expect(good.headers.get('vary')).toBe('Origin');
    const refused = await from(ALLOWED, 'a.b.c');
    expect([refused.status, ...read(refused)]).toEqual([401, ALLOWED, exposed, null]);
    const own = await from(rig.gateway.publicUrl);
    expect([own.status, ...read(own)]).toEqual([200, rig.gateway.publicUrl, exposed, null]);
    const foreign = await from(FOREIGN);
    expect([foreign.status, ...read(foreign)]).toEqual([403, null, null, null]);
    const plain = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect([plain.status, ...read(plain)]).toEqual([200, null, null, null]);
  });

  it('[BND-26] refusals of the edge may be read by an allowed origin too', async () => {
    const unknown = await send(`${rig.gateway.publicUrl}/nothing`, 'GET', { origin: ALLOWED });
    expect(unknown).toMatchObject({
      status: 404,
      headers: { 'access-control-allow-origin': ALLOWED },
    });
    const odd = { origin: ALLOWED, 'content-type': 'text/plain', 'content-length': '0' };
    expect(await send(rig.access.url, 'POST', odd)).toMatchObject({
      status: 415,
      headers: { 'access-control-allow-origin': ALLOWED },
    });
  });

  it('[BND-27] the documents are public: any page may ask for them and read them', async () => {
    for (const origin of [ALLOWED, FOREIGN, 'null']) {
      const asked = await preflight(document, origin, {
        'access-control-request-method': 'GET',
        'access-control-request-headers': 'mcp-protocol-version',
      });
      expect(asked).toMatchObject({
        status: 204,
        headers: {
          'access-control-allow-origin': '*',
          'access-control-allow-methods': 'GET, HEAD',
          'access-control-allow-headers': expect.stringContaining('mcp-protocol-version'),
        },
      });
      expect(await send(document, 'GET', { origin })).toMatchObject({
        status: 200,
        headers: { 'access-control-allow-origin': '*' },
      });
    }
  });

  it('[BND-27] the documents name every method by which they are read', async () => {
    for (const method of ['GET', 'HEAD']) expect((await fetch(document, { method })).status).toBe(200);
    const refused = await fetch(document, { method: 'PUT' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('[BND-25] an origin that a reload takes away is foreign at the next request', () =>
    withGateway({ listener: [`allowedOrigins: ["${ALLOWED}"]`] }, async (other) => {
      expect((await preflight(other.access.url, ALLOWED)).status).toBe(204);
      const { readFile, writeFile } = await import('node:fs/promises');
      const file = `${other.gateway.folder}/gateway.yaml`;
      const text = await readFile(file, 'utf8');
      await writeFile(file, text.replace(`, allowedOrigins: ["${ALLOWED}"]`, ''));
      await other.gateway.reload();
      expect((await preflight(other.access.url, ALLOWED)).status).toBe(403);
    }));
});
