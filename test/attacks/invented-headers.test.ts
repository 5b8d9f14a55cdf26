// Cases 8 and 9, extended both ways: what passes is listed, header by header. Nothing that a client invents
// reaches the upstream, and nothing that an upstream sends besides reaches the client.

import { describe, expect, it } from 'vitest';
import { expectEdgeLines, expectNothingForwarded } from '../support/gateway.js';
import { callStateless, openSession, post, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const CANARY = 'canary-3f9a';

const INVENTED: readonly string[] = [
  ...['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'],
  ...['x-user', 'x-remote-user', 'remote-user', 'x-authenticated-user', 'x-original-url'],
  ...['cookie', 'proxy-authorization', 'x-api-key', 'dpop', 'referer', 'origin-agent-cluster'],
  ...['via', 'traceparent', 'tracestate', 'baggage', 'x-request-id', 'accept-language'],
  ...['sallyport-assertion', 'sallyport-decision', 'mcp-session-id', 'last-event-id', 'te'],
  ...['if-none-match', 'cache-control', 'x-http-method-override', 'user-agent', 'priority'],
];

/** All that a request to an upstream may carry; the values of the last three come from the message. */
const TO_UPSTREAM: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'content-type', 'accept', 'accept-encoding'],
  ...['user-agent', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'],
]);

/** All that an answer to a client may carry. */
const TO_CLIENT: ReadonlySet<string> = new Set([
  ...['content-type', 'content-length', 'connection', 'keep-alive', 'date', 'transfer-encoding'],
  ...['mcp-session-id', 'cache-control', 'x-accel-buffering', 'vary', 'sallyport-decision'],
]);

const FROM_UPSTREAM: Readonly<Record<string, string | readonly string[]>> = {
  'set-cookie': [`id=${CANARY}; Path=/`, `b=${CANARY}`],
  server: CANARY,
  'x-powered-by': CANARY,
  'www-authenticate': `Bearer resource_metadata="https://${CANARY}.example"`,
  'proxy-authenticate': CANARY,
  location: `https://${CANARY}.example/`,
  link: `<https://${CANARY}.example>; rel=preload`,
  refresh: `0; url=https://${CANARY}.example`,
  'access-control-allow-origin': '*',
  'strict-transport-security': `max-age=1; ${CANARY}`,
  'content-security-policy': CANARY,
  'alt-svc': `h2="${CANARY}:443"`,
  'sallyport-decision': CANARY,
  'mcp-param-x': CANARY,
  etag: `"${CANARY}"`,
  trailer: CANARY,
};

describe('headers of a request', () => {
  const rig = sharedGateway();

  it.each(INVENTED)('[CRD-11] do not go along: %s', async (name) => {
    rig.upstream.forget();
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
    });
    await post(rig.access, JSON.stringify(body), { ...headers, [name]: CANARY });
    const seen = rig.upstream.seen();
    expect(JSON.stringify(seen.map(({ rawHeaders }) => rawHeaders))).not.toContain(CANARY);
    for (const { rawHeaders } of seen)
      for (const [sent] of rawHeaders) expect(TO_UPSTREAM).toContain(sent.toLowerCase());
  });

  it('[CRD-11] of a session, its stream and its end are as few', async () => {
    rig.upstream.forget();
    const session = await openSession(rig.access);
    await session.call('read_record', { id: 'one' });
    const gone = new AbortController();
    const own = Object.fromEntries(
      INVENTED.filter((name) => !['mcp-session-id', 'last-event-id', 'te'].includes(name)).map((name) => [
        name,
        CANARY,
      ]),
    );
    const headers = {
      ...own,
      authorization: `Bearer ${rig.access.token}`,
      'mcp-session-id': session.id,
    };
    await fetch(rig.access.url, { headers, signal: gone.signal });
    gone.abort();
    await fetch(rig.access.url, { method: 'DELETE', headers });
    const seen = rig.upstream.seen();
    expect(new Set(seen.map(({ httpMethod }) => httpMethod))).toContain('DELETE');
    expect(JSON.stringify(seen.map(({ rawHeaders }) => rawHeaders))).not.toContain(CANARY);
    for (const { rawHeaders } of seen)
      for (const [sent] of rawHeaders) expect(TO_UPSTREAM).toContain(sent.toLowerCase());
  });
});

describe('headers of an answer', () => {
  const rig = sharedGateway();

  async function answerWith(status: number): Promise<Headers> {
    rig.upstream.obeyOnce((request) =>
      request.method === 'tools/call'
        ? {
            kind: 'http',
            status,
            headers: { ...FROM_UPSTREAM, 'content-type': 'application/json' },
            body: JSON.stringify({
              jsonrpc: '2.0',
              id: request.id ?? null,
              result: { resultType: 'complete', content: [{ type: 'text', text: 'fine' }] },
            }),
          }
        : undefined,
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).not.toContain(CANARY);
    return reply.headers;
  }

  it.each([200, 400, 401, 403, 404, 500, 503])('[CRD-11] are not passed on with status %d', async (status) => {
    const headers = await answerWith(status);
    for (const [name, value] of headers) {
      expect(TO_CLIENT).toContain(name);
      expect(value).not.toContain(CANARY);
    }
  });

  it('[CRD-11] never carry a challenge of the upstream', async () => {
    const headers = await answerWith(401);
    expect(headers.get('www-authenticate')).toBeNull();
  });
});

describe('where nobody authenticates', () => {
  const rig = sharedGateway({ upstream: ['pinning: {maxAge: 10m}', 'authentication: none'] });

  const callWith = (headers: Readonly<Record<string, string>>) => {
    const { headers: own, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'one' },
    });
    return post(rig.as(undefined), JSON.stringify(body), { ...own, ...headers });
  };

  // It came from this machine, and on behalf of whom nobody knows.
  it.each(INVENTED.slice(0, 5))('[H-06, X-08] a request that a proxy passed on is refused: %s', async (name) => {
    rig.upstream.forget();
    const reply = await callWith({ [name]: 'for=192.0.2.1' });
    expect(reply.status).toBe(421);
    await expectEdgeLines(rig, reply, 'host-forbidden');
    expectNothingForwarded(rig);
  });

  it('[H-06] any other passes', async () => {
    expect((await callWith({})).message).toHaveProperty('result');
  });
});
