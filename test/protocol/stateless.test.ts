// What the stateless era asks of headers, envelope, versions and methods, through a running gateway:
// docs/reference/protocol.md, rows 5 to 17 and 59.

import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, describe, expect, it } from 'vitest';
import { expectNothingForwarded } from '../support/gateway.js';
import { onMethod, resultFor, stream, textResult } from '../support/hostile-acts.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import { isObject, type JsonObject } from '../support/json.js';
import {
  callStateless,
  errorOf,
  type HeaderLines,
  post,
  type Reply,
  requestStateless,
  resultOf,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const META = 'io.modelcontextprotocol/';
const UNICODE = 'zähler_Δ';
const MIRRORED: JsonObject = {
  name: 'query',
  inputSchema: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      limit: { type: 'integer', 'x-mcp-header': 'Limit' },
    },
  },
};
const DENY_WRITES = `version: 1
policy: no-writes
rules:
  - id: no-writes
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record]}
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}
`;

const rig = sharedGateway({
  policies: { rules: DENY_WRITES },
  prepare: (upstream) => {
    upstream.offer(() => [...HONEST_TOOLS, MIRRORED, { name: UNICODE, inputSchema: { type: 'object' } }]);
    upstream.answerCalls((name) => textResult(name));
  },
});
afterEach(() => {
  rig.upstream.obey(() => undefined);
  rig.upstream.forget();
});

const call = { name: 'read_record', arguments: { id: 'one' } };

/** `read_record` with these headers in place of the good ones. */
const callWith = (headers: HeaderLines, params: JsonObject = call): Promise<Reply> =>
  requestStateless(rig.access, 'tools/call', params, { headers });

function expectMismatch(reply: Reply): void {
  expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32020]);
  expectNothingForwarded(rig);
}

describe('headers that mirror the body', () => {
  it('[MCP-05] name the version of the body, or the request is refused', async () => {
    expectMismatch(await callWith({ 'mcp-protocol-version': '2025-11-25' }));
  });

  it.each(['mcp-method', 'mcp-name'])('[MCP-06] are all there: without %s', async (name) => {
    expectMismatch(await callWith({ [name]: '' }));
  });

  it('[MCP-07] say what the body says: a list in the header, a denied call in the body', async () => {
    const params = { name: 'write_record', arguments: { id: 'one', text: 'two' } };
    expectMismatch(await callWith({ 'mcp-method': 'tools/list' }, params));
    expectMismatch(await callWith({ 'mcp-name': 'read_record' }, params));
  });

  it('[MCP-08] are compared in case, their names are not, and blanks around them are none', async () => {
    expectMismatch(await callWith({ 'mcp-method': 'TOOLS/CALL' }));
    expectMismatch(await callWith({ 'mcp-name': 'Read_Record' }));
    const { headers, body } = statelessParts('tools/call', call);
    const shouted = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), `  ${value}\t`]),
    );
    const reply = await post(rig.access, JSON.stringify(body), shouted);
    expect(resultOf(reply)).toMatchObject(textResult('read_record'));
  });

  it('[MCP-09] are decoded from base64 before they are compared, and refused where that is malformed', async () => {
    const encoded = Buffer.from(UNICODE).toString('base64');
    const params = { name: UNICODE, arguments: {} };
    const good = await callWith({ 'mcp-name': `=?base64?${encoded}?=` }, params);
    expect(resultOf(good)).toMatchObject(textResult(UNICODE));
    rig.upstream.forget();
    const short = encoded.replace(/=+$/, '');
    expect(short).not.toBe(encoded);
    expectMismatch(await callWith({ 'mcp-name': `=?base64?${short}?=` }, params));
    expectMismatch(await callWith({ 'mcp-name': '=?base64?@@@@?=' }, params));
  });

  it.each<[string, JsonObject, HeaderLines, boolean]>([
    ['equal', { region: 'eu', limit: 42 }, { region: 'eu', limit: '42' }, true],
    ['equal as numbers', { region: 'eu', limit: 42 }, { region: 'eu', limit: '42.0' }, true],
    ['nothing on either side', {}, {}, true],
    ['one omitted', { region: 'eu', limit: 42 }, { region: 'eu' }, false],
    ['one altered', { region: 'eu' }, { region: 'us' }, false],
    ['a header for nothing', {}, { region: 'eu' }, false],
  ])('[MCP-10] of parameters are there where a value is, and equal it: %s', async (_what, args, own, isGood) => {
    const headers = Object.fromEntries(Object.entries(own).map(([name, value]) => [`mcp-param-${name}`, value]));
    const reply = await callWith(headers, { name: 'query', arguments: args });
    if (!isGood) return expectMismatch(reply);
    expect(resultOf(reply)).toMatchObject(textResult('query'));
  });

  it('[MCP-10] are not asked for where the value is null: the schema speaks then', async () => {
    const reply = await callWith({}, { name: 'query', arguments: { region: null } });
    expect(resultOf(reply)).toMatchObject({ isError: true });
    expectNothingForwarded(rig);
  });

  it('[MCP-11] of parameters that nobody knows go on as they came', async () => {
    const reply = await callWith({ 'mcp-param-unknown': 'kept' });
    expect(resultOf(reply)).toMatchObject(textResult('read_record'));
    expect(rig.upstream.uses()[0]?.headers['mcp-param-unknown']).toBe('kept');
  });

  it('[MCP-12] are believed under no other version, and under none', async () => {
    const { headers, body } = statelessParts('tools/call', call);
    const params = { ...call };
    const bare = JSON.stringify({ ...body, params });
    for (const version of ['', '2025-06-18']) {
      const reply = await post(rig.access, bare, { ...headers, 'mcp-protocol-version': version });
      expect(reply.status).toBe(400);
      expectNothingForwarded(rig);
    }
  });
});

describe('the envelope of a request', () => {
  /** `read_record` with a changed `_meta`. */
  function callWithMeta(change: (meta: Record<string, unknown>) => void): Promise<Reply> {
    const { headers, body } = statelessParts('tools/call', call);
    const params = isObject(body['params']) ? body['params'] : {};
    const meta: Record<string, unknown> = { ...(isObject(params['_meta']) ? params['_meta'] : {}) };
    change(meta);
    const changed = JSON.stringify({ ...body, params: { ...params, _meta: meta } });
    return post(rig.access, changed, headers);
  }

  it('[MCP-13] of a version that nobody carries is -32022 with what is carried', async () => {
    const version = '2999-01-01';
    const { headers, body } = statelessParts('tools/call', call);
    const text = JSON.stringify(body).replaceAll('2026-07-28', version);
    const reply = await post(rig.access, text, { ...headers, 'mcp-protocol-version': version });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32022, data: { requested: version } });
    expect((errorOf(reply)['data'] as JsonObject)['supported']).toContain('2026-07-28');
    expectNothingForwarded(rig);
  });

  it.each(['protocolVersion', 'clientCapabilities'])('[MCP-14] has %s in _meta, or is refused', async (member) => {
    const reply = await callWithMeta((meta) => delete meta[META + member]);
    expect([reply.status, errorOf(reply)['code']]).toEqual([400, -32602]);
    expectNothingForwarded(rig);
  });

  it('[MCP-14] need not say who the client is', async () => {
    const reply = await callWithMeta((meta) => delete meta[`${META}clientInfo`]);
    expect(resultOf(reply)).toMatchObject(textResult('read_record'));
  });

  it.each(['ping', 'initialize', 'logging/setLevel', 'resources/subscribe', 'no/such'])(
    '[MCP-15] of the method %s, which is not of this era, is 404 with -32601',
    async (method) => {
      const reply = await requestStateless(rig.access, method);
      expect([reply.status, errorOf(reply)['code']]).toEqual([404, -32601]);
      expectNothingForwarded(rig);
    },
  );

  it('[MCP-16] of server/discover is answered, with versions that are policed', async () => {
    rig.upstream.obey(
      onMethod('server/discover', (request) =>
        stream([
          resultFor(request, {
            supportedVersions: ['2026-07-28', '2031-01-01'],
            capabilities: { tools: {} },
            ttlMs: 0,
            cacheScope: 'private',
          }),
        ]),
      ),
    );
    const reply = await requestStateless(rig.access, 'server/discover');
    expect(reply.status).toBe(200);
    expect(resultOf(reply)['supportedVersions']).not.toContain('2031-01-01');
    expect(resultOf(reply)['supportedVersions']).toContain('2026-07-28');
  });
});

describe('results that the gateway makes', () => {
  const RESULT_SCHEMA = {
    type: 'object',
    required: ['resultType', 'content', 'isError'],
    properties: {
      resultType: { const: 'complete' },
      isError: { const: true },
      content: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['type', 'text'],
          properties: { type: { const: 'text' }, text: { type: 'string' } },
        },
      },
    },
  };

  it('[MCP-17] say of which type they are', async () => {
    const validate = new Ajv2020().compile(RESULT_SCHEMA);
    const refused = await callStateless(rig.access, 'read_record', { id: 42 });
    expect(validate(resultOf(refused)), JSON.stringify(validate.errors)).toBe(true);
    expect(rig.upstream.uses()).toEqual([]);
  });
});

describe('log messages', () => {
  it('[MCP-59] pass where the request asked for them, and nowhere else', async () => {
    rig.upstream.obey(
      onMethod('tools/call', (request) =>
        stream([
          {
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'info', data: 'said by the server' },
          },
          resultFor(request, textResult('done')),
        ]),
      ),
    );
    const unasked = await callStateless(rig.access, 'read_record', { id: 'one' });
    expect(resultOf(unasked)).toMatchObject(textResult('done'));
    expect(unasked.text).not.toContain('said by the server');
    const asked = await callStateless(rig.access, 'read_record', { id: 'one' }, { [`${META}logLevel`]: 'info' });
    expect(asked.text).toContain('said by the server');
  });
});
