// What every revision asks of the HTTP around a message, through a running gateway: docs/reference/protocol.md, rows
// 1 to 4, 22, 34, 36 to 38, 41 and 45.

import { afterEach, describe, expect, it } from 'vitest';
import { expectNothingForwarded } from '../support/gateway.js';
import { onMethod, resultFor, sseEvent, textResult } from '../support/hostile-acts.js';
import {
  bearer,
  callStateless,
  errorOf,
  initialize,
  post,
  rawPost,
  requestInSession,
  SESSION_VERSION,
  sendRaw,
  sessionHeaders,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway, withGateway } from '../support/with-gateway.js';

const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'scopesSupported: [notes:read]'] });
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

const NOTE = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
const call = { name: 'read_record', arguments: { id: 'one' } };

/** Reads one event stream until `isEnough` holds of its text, and says what had come by then. */
async function readUntil(response: Response, isEnough: (text: string) => boolean): Promise<string> {
  const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
  const decoder = new TextDecoder();
  let text = '';
  while (!isEnough(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel();
  return text;
}

describe('an HTTP request', () => {
  it('[MCP-01] of a foreign origin is 403 in every era, and the upstream sees nothing', async () => {
    const headers = { origin: 'http://evil.example' };
    const { headers: own, body } = statelessParts('tools/call', call);
    const replies = [
      await post(rig.access, JSON.stringify(body), { ...own, ...headers }),
      await post(rig.access, NOTE, headers),
      await post(rig.as(undefined), NOTE, headers),
    ];
    expect(replies.map((reply) => reply.status)).toEqual([403, 403, 403]);
    expectNothingForwarded(rig);
  });

  it('[MCP-02] that names a foreign host is refused on loopback, ours is served', async () => {
    const lines = (host: string) => [
      `Host: ${host}`,
      `Authorization: Bearer ${rig.access.token}`,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      `Content-Length: ${NOTE.length}`,
      'Connection: close',
    ];
    const foreign = await sendRaw(rig.port, [rawPost(rig.path, lines('evil.example'), NOTE)]);
    expect(foreign.status).toBe(421);
    expectNothingForwarded(rig);
    const ours = await sendRaw(rig.port, [rawPost(rig.path, lines(`127.0.0.1:${rig.port}`), NOTE)]);
    // A notice without a session: the protocol's refusal, so the host was not what was wrong.
    expect(ours.status).toBe(400);
  });

  it('[MCP-03] with a notice is answered with 202 and nothing', async () => {
    const session = await rig.openSession();
    const reply = await post(rig.access, NOTE, sessionHeaders(session.id));
    expect([reply.status, reply.text]).toEqual([202, '']);
  });

  it.each(['GET', 'DELETE'])('[MCP-04] %s without a session is 405', async (method) => {
    const headers = {
      ...bearer(rig.access.token),
      accept: 'text/event-stream',
      'mcp-protocol-version': '2026-07-28',
    };
    const response = await fetch(rig.access.url, { method, headers });
    expect(response.status).toBe(405);
    expectNothingForwarded(rig);
  });

  it('[MCP-34] of a session without its id is 400', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const reply = await post(rig.access, body, { 'mcp-protocol-version': SESSION_VERSION });
    expect(reply.status).toBe(400);
    expectNothingForwarded(rig);
  });

  it('[MCP-36] of a session with a version that is none is 400; without one it counts as the session’s', async () => {
    const session = await rig.openSession();
    const bad = await requestInSession(
      rig.access,
      session.id,
      'tools/list',
      {},
      {
        'mcp-protocol-version': '2025-13-99',
      },
    );
    expect(bad.status).toBe(400);
    const absent = await requestInSession(
      rig.access,
      session.id,
      'tools/list',
      {},
      {
        'mcp-protocol-version': '',
      },
    );
    expect(absent.status).toBe(200);
  });
});

describe('a request without a token', () => {
  const LISTEN = statelessParts('subscriptions/listen', {
    notifications: { toolsListChanged: true },
  });

  it.each([
    ['POST', { method: 'POST', body: NOTE, headers: { 'content-type': 'application/json' } }],
    ['GET', { method: 'GET', headers: { accept: 'text/event-stream' } }],
    ['DELETE', { method: 'DELETE', headers: { 'mcp-session-id': 'any' } }],
    [
      'listen',
      {
        method: 'POST',
        body: JSON.stringify(LISTEN.body),
        headers: { 'content-type': 'application/json', ...LISTEN.headers },
      },
    ],
  ])('[MCP-37] is 401 with metadata and scopes: %s', async (_what, init) => {
    const response = await fetch(rig.access.url, init as RequestInit);
    const challenge = response.headers.get('www-authenticate') ?? '';
    expect(response.status).toBe(401);
    expect(challenge).toContain(
      `resource_metadata="${rig.gateway.publicUrl}/.well-known/oauth-protected-resource${rig.path}"`,
    );
    expect(challenge).toContain('scope="notes:read"');
    expectNothingForwarded(rig);
  });

  it('[MCP-41] is not let in by one in the query, which is in no log', async () => {
    const token = rig.access.token ?? '';
    const access = { url: `${rig.access.url}?access_token=${token}`, token: undefined };
    const { headers, body } = statelessParts('tools/call', call);
    const reply = await post(access, JSON.stringify(body), headers);
    expect(reply.status).toBe(401);
    expectNothingForwarded(rig);
    const written = rig.gateway.log() + JSON.stringify(await rig.gateway.audit());
    expect(written.length).toBeGreaterThan(0);
    expect(written).not.toContain(token.split('.')[2]);
  });

  it('[MCP-45] is never told to ask for offline_access', async () => {
    const url = `${rig.gateway.publicUrl}/.well-known/oauth-protected-resource${rig.path}`;
    const document = await (await fetch(url)).text();
    const challenged = await post(rig.as(undefined), NOTE);
    expect(JSON.parse(document)).toMatchObject({ scopes_supported: ['notes:read'] });
    expect(document).not.toContain('offline_access');
    expect(challenged.headers.get('www-authenticate')).not.toContain('offline_access');
  });
});

describe('the metadata of a resource', () => {
  it('[MCP-38] stands at the inserted path, also behind a prefix, and names resource and issuers', () =>
    withGateway({ publicPath: '/outer' }, async (prefixed) => {
      const { publicUrl, issuer } = prefixed.gateway;
      for (const path of [`/outer${prefixed.path}`, prefixed.path]) {
        const response = await fetch(`${publicUrl}/.well-known/oauth-protected-resource${path}`);
        expect(response.status).toBe(200);
        expect(await response.json()).toMatchObject({
          resource: `${publicUrl}/outer${prefixed.path}`,
          authorization_servers: [issuer.issuer],
        });
      }
    }));
});

describe('a streamed answer', () => {
  it('[MCP-22] is not buffered: its first event and a comment come before the last is written', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        // The answer itself never comes: what is read was passed on while the stream was open.
        chunks: [
          ': alive\n\n',
          sseEvent({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: 'p', progress: 1 },
          }),
        ],
        ending: request.name === 'read_record' ? 'hold' : 'end',
      })),
    );
    const { headers, body } = statelessParts('tools/call', {
      ...call,
      _meta: { progressToken: 'p' },
    });
    const response = await fetch(rig.access.url, {
      method: 'POST',
      headers: {
        ...bearer(rig.access.token),
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(body),
    });
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    const text = await readUntil(response, (so) => so.includes('notifications/progress'));
    expect(text).toMatch(/^:/m);
    expect(text).toContain('notifications/progress');
  });

  it('[MCP-22] of a session is not buffered either', async () => {
    const session = await rig.openSession();
    rig.upstream.obey(
      onMethod('tools/call', (request) => ({
        kind: 'chunks',
        contentType: 'text/event-stream',
        chunks: [':\n\n', sseEvent(resultFor(request, textResult('streamed')))],
        ending: 'hold',
      })),
    );
    const reply = await fetch(rig.access.url, {
      method: 'POST',
      headers: {
        ...bearer(rig.access.token),
        ...sessionHeaders(session.id),
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
    });
    expect(reply.headers.get('x-accel-buffering')).toBe('no');
    expect(await readUntil(reply, (so) => so.includes('streamed'))).toContain('streamed');
  });
});

describe('an unknown version', () => {
  it('[MCP-36] at the handshake is answered with one that is carried', async () => {
    const reply = await post(
      rig.access,
      JSON.stringify({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: {
          protocolVersion: '1999-01-01',
          capabilities: {},
          clientInfo: { name: 'wire-client', version: '1.0.0' },
        },
      }),
    );
    expect(reply.message?.['result']).toMatchObject({ protocolVersion: SESSION_VERSION });
    const next = await initialize(rig.access);
    expect(next.status).toBe(200);
    expect(errorOf(await callStateless(rig.access, 'read_record', { id: 'one' }))).toEqual({});
  });
});
