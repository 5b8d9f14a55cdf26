// Case 47: the client's token reaches nothing behind the gateway, and stands in no record of it,
// wherever the client puts it.

import { beforeAll, describe, expect, it } from 'vitest';
import { expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import { callStateless, post, requestInSession, requestStateless, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe("the client's token", () => {
  let token: string;
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'arguments: any'] });
  beforeAll(async () => {
    token = await rig.gateway.token('target');
    rig.upstream.forget();
  });

  /** The token, its signature, and its claims: each would be enough to find it again. */
  function traces(): readonly string[] {
    const [head = '', claims = '', signature = ''] = token.split('.');
    return [signature, `${head}.${claims}`.slice(0, 80), claims.slice(20, 60)];
  }

  async function expectNoTrace(): Promise<void> {
    const seen = JSON.stringify(rig.upstream.seen().map(({ url, rawHeaders, body }) => ({ url, rawHeaders, body })));
    const audit = JSON.stringify(await rig.gateway.audit());
    const metrics = await rig.gateway.metrics();
    for (const trace of traces()) {
      expect(seen).not.toContain(trace);
      expect(audit).not.toContain(trace);
      expect(rig.gateway.log()).not.toContain(trace);
      expect(metrics).not.toContain(trace);
    }
  }

  it('[X-47, MCP-42] does not go along with calls, lists, sessions, streams and their ends', async () => {
    await callStateless(rig.as(token), 'read_record', { id: 'one' });
    await requestStateless(rig.as(token), 'tools/list');
    await requestStateless(rig.as(token), 'server/discover');
    const { openSession } = await import('../support/wire-client.js');
    const session = await openSession(rig.as(token));
    await session.call('read_record', { id: 'one' });
    await session.request('tools/list');
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${token}`, 'mcp-session-id': session.id };
    const stream = await fetch(rig.access.url, { headers, signal: gone.signal });
    expect(stream.status).toBe(200);
    gone.abort();
    await session.end();
    expect(rig.upstream.seen().length).toBeGreaterThan(6);
    expect(rig.upstream.seen().filter(({ headers: sent }) => 'authorization' in sent)).toEqual([]);
    await expectNoTrace();
  });

  it.each([
    ['cookie', (value: string) => ({ cookie: `session=${value}` })],
    ['x-api-key', (value: string) => ({ 'x-api-key': value })],
    ['proxy-authorization', (value: string) => ({ 'proxy-authorization': `Bearer ${value}` })],
    ['x-forwarded-access-token', (value: string) => ({ 'x-forwarded-access-token': value })],
    ['mcp-param-token', (value: string) => ({ 'mcp-param-token': value })],
    ['traceparent', (value: string) => ({ traceparent: value })],
  ])('[X-47] does not go along in another header: %s', async (_name, headersFor) => {
    const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'one' } });
    await post(rig.as(token), JSON.stringify(parts.body), {
      ...parts.headers,
      ...headersFor(token),
    });
    await expectNoTrace();
  });

  const PLACES: readonly (readonly [string, (value: string) => string])[] = [
    ['an argument', (value) => `"arguments":{"id":"${value}"}`],
    ['a part of an argument', (value) => `"arguments":{"id":"see ${value} there"}`],
    ['the name of an argument', (value) => `"arguments":{"id":"one","${value}":1}`],
    ['a deep argument', (value) => `"arguments":{"id":"one","x":[{"y":["Bearer ${value}"]}]}`],
    ['_meta', (value) => `"arguments":{"id":"one"},"x":"${value}"`],
    [
      'an argument with escapes',
      (value) =>
        `"arguments":{"id":"${value.replace(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`)}"}`,
    ],
    ['an argument with escaped dots', (value) => `"arguments":{"id":"${value.replaceAll('.', '\\u002e')}"}`],
  ];

  it.each(PLACES)('[X-47] is refused in the body: %s', async (_name, place) => {
    rig.upstream.forget();
    const parts = statelessParts('tools/call', { name: 'read_record', arguments: { id: 'MARK' } });
    const text = JSON.stringify(parts.body);
    expect(text).toContain('"arguments":{"id":"MARK"}');
    const body = text.replace('"arguments":{"id":"MARK"}', () => place(token));
    const reply = await post(rig.as(token), body, parts.headers);
    expect(reply.status).toBe(200);
    await expectRefusedLines(rig, reply, 'arguments-content');
    expectNothingForwarded(rig);
    await expectNoTrace();
  });

  it('[X-47] is refused in _meta, in a name, in a URI and in a session too', async () => {
    const session = await rig.openSession();
    rig.upstream.forget();
    const own = rig.access.token ?? '';
    const replies = [
      await callStateless(rig.as(token), 'read_record', { id: 'one' }, { note: token }),
      await requestStateless(rig.as(token), 'resources/read', { uri: `memo://${token}` }),
      await requestInSession(rig.access, session.id, 'tools/call', {
        name: 'read_record',
        arguments: { id: own },
      }),
      await requestInSession(rig.access, session.id, 'tools/list', { _meta: { note: own } }),
      await requestInSession(rig.access, session.id, 'tools/list', { cursor: own }),
    ];
    for (const reply of replies) expect(reply.message?.['result'] ?? {}).not.toHaveProperty('tools');
    expectNothingForwarded(rig);
    await expectNoTrace();
  });

  it('[X-47] leaves no trace where it is refused', async () => {
    const bad = await rig.gateway.token('target', { aud: 'https://other.example' });
    token = bad;
    await callStateless(rig.as(bad), 'read_record', { id: 'one' });
    await callStateless({ url: `${rig.access.url}?access_token=${bad}`, token: undefined }, 'x');
    await expectNoTrace();
  });
});
