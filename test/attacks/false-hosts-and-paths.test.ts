// Cases 5 to 9: hosts, paths, origins and forwarding headers that lie about where a request belongs.

import { describe, expect, it } from 'vitest';
import { expectEdgeLines, expectNothingForwarded } from '../support/gateway.js';
import {
  callStateless,
  hasCompleteResponse,
  post,
  type RawReply,
  sendRaw,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a request that lies about where it belongs', () => {
  const rig = sharedGateway();

  const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
  const text = JSON.stringify(parts.body);

  function send(target: string, hosts: readonly string[], more: readonly string[] = []): Promise<RawReply> {
    const head = [
      `POST ${target} HTTP/1.1`,
      ...hosts.map((host) => `Host: ${host}`),
      `Authorization: Bearer ${rig.access.token}`,
      'Content-Type: application/json',
      `Content-Length: ${text.length}`,
      ...Object.entries(parts.headers).map(([name, value]) => `${name}: ${value}`),
      ...more,
      '',
      text,
    ];
    return sendRaw(rig.port, [head.join('\r\n')], hasCompleteResponse);
  }

  const own = (): string => `127.0.0.1:${rig.port}`;

  it('[X-05] is a 421 with a foreign host, and a 400 or 421 with two', async () => {
    for (const host of ['evil.example', `evil.example:${rig.port}`, `127.0.0.1:1`, `x@${own()}`])
      expect([400, 421]).toContain((await send(rig.path, [host])).status);
    expect([400, 421]).toContain((await send(rig.path, [own(), own()])).status);
    expect([400, 421]).toContain((await send(rig.path, [own(), 'evil.example'])).status);
    expect([400, 421]).toContain((await send(rig.path, [])).status);
    expectNothingForwarded(rig);
  });

  it('[X-05] is unknown in absolute form, whatever authority it names', async () => {
    for (const authority of ['evil.example', own()]) {
      const reply = await send(`http://${authority}${rig.path}`, [own()]);
      expect([400, 404, 421]).toContain(reply.status);
    }
    expectNothingForwarded(rig);
  });

  it.each([
    '/%74arget',
    '//target',
    '/target//',
    '/target;a',
    '/x/../target',
    '/./target',
    '/TARGET',
    '/target%00',
    '/target%2f',
    '/target\\',
    '/target#a',
    '/target%zz',
    '*',
    '/',
    '/target/message/',
    '/target/SSE',
  ])('[X-06] is a 404 that names nothing: %s', async (path) => {
    const reply = await send(path, [own()]);
    expect(reply.status).toBe(404);
    expect(reply.text.split('\r\n\r\n')[1]).toBe('');
    expectNothingForwarded(rig);
  });

  it.each(['https://evil.example', 'null', 'http://127.0.0.1', 'http://localhost:1', ''])(
    '[X-07] is a 403 before any token is read, with Origin %j',
    async (origin) => {
      const reply = await send(rig.path, [own()], [`Origin: ${origin}`]);
      expect(reply.status).toBe(403);
      expect(reply.text).not.toMatch(/access-control/i);
      const decision = /sallyport-decision: (\S+)/.exec(reply.text)?.[1] ?? '';
      const headers = new Headers({ 'sallyport-decision': decision });
      await expectEdgeLines(rig, { headers }, 'origin-forbidden');
      const bad = await post(rig.as('x.y.z'), text, { ...parts.headers, 'mcp-name': 'x' });
      expect(bad.status).toBe(401);
      expectNothingForwarded(rig);
    },
  );

  it('[X-08] does not pass on what a client says of its way here', async () => {
    rig.upstream.forget();
    const lies = [
      'x-forwarded-for',
      'x-forwarded-host',
      'x-forwarded-proto',
      'forwarded',
      'x-real-ip',
      'x-user',
      'x-remote-user',
      'via',
      'x-canary',
    ];
    const headers = Object.fromEntries(lies.map((name) => [name, 'canary-of-the-client']));
    const reply = await post(rig.access, text, { ...parts.headers, ...headers });
    expect(reply.status).toBe(200);
    const [seen] = rig.upstream.uses();
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain('canary');
    const lines = await rig.gateway.audit();
    const decision = lines.findLast((line) => line['type'] === 'mcp.decision');
    expect(decision?.['client'].ip).toMatch(/^(::ffff:)?127\.0\.0\.1$/);
    expect(JSON.stringify(lines)).not.toContain('canary');
  });

  it('[X-08] does not follow a Connection header that lists others', async () => {
    rig.upstream.forget();
    const more = ['Connection: keep-alive, authorization, mcp-name', 'Keep-Alive: timeout=1'];
    expect((await send(rig.path, [own()], more)).status).toBe(200);
    expect(rig.upstream.uses()).toHaveLength(1);
  });

  it('[X-09] does not read credentials or names from trailers', async () => {
    rig.upstream.forget();
    const head = [
      `POST ${rig.path} HTTP/1.1`,
      `Host: ${own()}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'Trailer: Authorization, Mcp-Name',
      'MCP-Protocol-Version: 2026-07-28',
      'Mcp-Method: tools/call',
      '',
      `${text.length.toString(16)}\r\n${text}\r\n0`,
      `Authorization: Bearer ${rig.access.token}`,
      'Mcp-Name: read_record',
      '',
      '',
    ];
    const reply = await sendRaw(rig.port, [head.join('\r\n')], hasCompleteResponse);
    expect([400, 401]).toContain(reply.status);
    expectNothingForwarded(rig);
  });

  it('[X-07] passes with the own origin, and with none', async () => {
    expect((await send(rig.path, [own()], [`Origin: http://${own()}`])).status).toBe(200);
    expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
  });
});
