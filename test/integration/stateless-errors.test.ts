// The errors of an upstream of the stateless era as a client gets them: each with the status and the code
// that the era has for it, so that a client of two eras never takes them for those of another.

import { Client, type StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, it } from 'vitest';
import { jsonBody, onMethod, redirectTo } from '../support/hostile-acts.js';
import type { Act } from '../support/hostile-upstream.js';
import type { Json, JsonObject } from '../support/json.js';
import { createTransportV2 } from '../support/sdk-clients.js';
import { callStateless, errorOf, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

function failWith(error: JsonObject, status: number, method = 'tools/call'): void {
  rig.upstream.obey(
    onMethod(method, (request) => jsonBody({ jsonrpc: '2.0', id: request.id ?? 0, error: error as Json }, status)),
  );
}

const rig = sharedGateway();
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

describe('an error of the upstream', () => {
  it.each<[string, number, number, number]>([
    ['a header mismatch', -32020, 200, 400],
    ['a capability that is missing', -32021, 400, 400],
    ['a capability that is missing, as a success', -32021, 200, 400],
    ['a method that is unknown', -32601, 200, 404],
    ['params that are wrong', -32602, 200, 200],
    ['params that are wrong, as 400', -32602, 400, 400],
    ['params that are wrong, as 404', -32602, 404, 200],
    ['a fault of its own', -32603, 500, 502],
  ])('[T-12] keeps its code and has its status: %s', async (_what, code, came, status) => {
    const error = {
      code,
      message: 'Said by the server.',
      data: { requiredCapabilities: { sampling: {} } },
    };
    failWith(error, came);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect([reply.status, errorOf(reply)]).toEqual([status, error]);
  });

  it('[T-12] has the code of this era, and offers what is policed', async () => {
    failWith({ code: -32002, message: 'Resource not found' }, 200);
    expect(errorOf(await callStateless(rig.access, 'read_record', { id: 'one' }))).toEqual({
      code: -32602,
      message: 'Resource not found',
    });
    const data = { supported: ['2026-07-28', '2031-01-01'], requested: '2026-07-28' };
    failWith({ code: -32022, message: 'Unsupported protocol version', data }, 400);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect([reply.status, errorOf(reply)['data']]).toEqual([400, { ...data, supported: ['2026-07-28'] }]);
  });

  it('[T-12] of session eras, which asks for a visit, passes nowhere', async () => {
    const elicitations = [{ mode: 'url', url: 'https://example.com/', message: 'Visit.' }];
    failWith({ code: -32042, message: 'Visit first', data: { elicitations } }, 200);
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(reply.text).not.toContain('example.com');
  });

  it('[T-12] that comes as a result has the status of one', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        jsonBody(
          {
            jsonrpc: '2.0',
            id: request.id ?? 0,
            result: { resultType: 'complete', content: [{ type: 'text', text: 'Here.' }] },
          },
          404,
        ),
      ),
    );
    const reply = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect([reply.status, reply.text.includes('Here.')]).toEqual([200, true]);
  });
});

describe('a client of two eras', () => {
  async function connect(): Promise<Client> {
    const client = new Client({ name: 'both', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    const transport: StreamableHTTPClientTransport = createTransportV2(rig.access.url, {
      token: rig.access.token ?? '',
    });
    await client.connect(transport);
    return client;
  }

  function spokenEras(): readonly (string | undefined)[] {
    return rig.upstream.seen().map(({ method }) => method);
  }

  it('[T-13] speaks the newer', async () => {
    const client = await connect();
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    expect(spokenEras()).not.toContain('initialize');
    await client.close();
  });

  it.each<[string, Act]>([
    ['breaks off', { kind: 'destroy' }],
    ['is down', { kind: 'http', status: 503 }],
    ['redirects', redirectTo('https://example.com/')],
    ['answers with a page', { kind: 'http', status: 404, headers: { 'content-type': 'text/html' }, body: '<p>' }],
    ['refuses the gateway', { kind: 'http', status: 401 }],
    ['answers with nothing', { kind: 'http', status: 200, headers: { 'content-type': 'application/json' } }],
  ])('[T-13] does not fall back where the upstream %s', async (_what, act) => {
    rig.upstream.obey(onMethod('server/discover', () => act));
    await expect(connect()).rejects.toThrow();
    expect(spokenEras()).not.toContain('initialize');
    const refused = await requestStateless(rig.access, 'server/discover');
    expect(refused.status).toBeGreaterThanOrEqual(500);
    expect(errorOf(refused)['code']).toBeDefined();
  });

  it('[T-13] is told of what is carried where it asks for something else', async () => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2031-01-01' };
    const reply = await requestStateless(
      rig.access,
      'server/discover',
      { _meta: meta },
      { headers: { 'mcp-protocol-version': '2031-01-01' } },
    );
    expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32022]);
    expect((errorOf(reply)['data'] as JsonObject)['supported']).toContain('2026-07-28');
  });
});
