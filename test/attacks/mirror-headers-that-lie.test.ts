// Cases 30, 31, 33 and 35: the headers of the stateless era that are missing, repeated, malformed or lie.

import { describe, expect, it } from 'vitest';
import { expectNothingForwarded, expectRefusedLines } from '../support/gateway.js';
import type { HostileUpstream } from '../support/hostile-upstream.js';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import {
  errorOf,
  hasCompleteResponse,
  post,
  rawPost,
  requestStateless,
  sendRaw,
  statelessParts,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

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

/** Schemas whose annotations the specification forbids (case 34). */
const INVALID: readonly JsonObject[] = [
  { type: 'string', 'x-mcp-header': 'A\r\nX-Evil: 1' },
  { type: 'string', 'x-mcp-header': '' },
  { type: 'number', 'x-mcp-header': 'A' },
  { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } },
  { oneOf: [{ type: 'string', 'x-mcp-header': 'A' }] },
];

describe('headers that mirror a body', () => {
  const rig = sharedGateway(() => {
    const invalid = INVALID.map((schema, i) => ({
      name: `invalid_${i}`,
      inputSchema: { type: 'object', properties: { a: schema } },
    }));
    const twice = {
      name: 'twice',
      inputSchema: {
        type: 'object',
        properties: {
          a: { type: 'string', 'x-mcp-header': 'Same' },
          b: { type: 'string', 'x-mcp-header': 'SAME' },
        },
      },
    };
    return {
      prepare: (upstream: HostileUpstream) => {
        upstream.offer(() => [...HONEST_TOOLS, MIRRORED, twice, ...invalid]);
        upstream.answerCalls((name) => ({ content: [{ type: 'text', text: name }] }));
      },
    };
  });

  const call = { name: 'read_record', arguments: { id: 'one' } };

  it.each([
    ['no method', { 'mcp-method': '' }],
    ['another method', { 'mcp-method': 'tools/list' }],
    ['a list of methods', { 'mcp-method': 'tools/call, tools/list' }],
    ['another case', { 'mcp-method': 'Tools/Call' }],
    ['no version', { 'mcp-protocol-version': '' }],
  ])('[X-30] is 400 with -32020: %s', async (_what, headers) => {
    const reply = await requestStateless(rig.access, 'tools/call', call, { headers });
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32020 });
    await expectRefusedLines(rig, reply, 'header-mismatch');
    expectNothingForwarded(rig);
  });

  it.each(['mcp-method', 'mcp-name', 'mcp-protocol-version'])(
    '[X-30] is 400 when it is sent twice: %s',
    async (twice) => {
      const { headers, body } = statelessParts('tools/call', call);
      const text = JSON.stringify(body);
      const all = { ...headers, [`${twice} `]: '' };
      const lines = Object.entries(all).map(([name, value]) =>
        name.endsWith(' ') ? `${twice}: ${(headers as Record<string, string>)[twice]}` : `${name}: ${value}`,
      );
      const reply = await sendRaw(
        rig.port,
        [
          rawPost(
            rig.path,
            [
              `Host: 127.0.0.1:${rig.port}`,
              `Authorization: Bearer ${rig.access.token}`,
              'Content-Type: application/json',
              `Content-Length: ${text.length}`,
              ...lines,
            ],
            text,
          ),
        ],
        hasCompleteResponse,
      );
      expect(reply.status).toBe(400);
      expect(reply.text).toContain('-32020');
      expectNothingForwarded(rig);
    },
  );

  const encoded = (bytes: string): string => `=?base64?${Buffer.from(bytes).toString('base64')}?=`;

  it.each([
    ['not base64', '=?base64?***?='],
    ['without padding', '=?base64?cmVhZF9yZWNvcmQ?='.replace('?=', 'x?=')],
    ['with spare bits', '=?base64?cmVhZF9yZWNvcmR=?='],
    ['with a line end', encoded('read_record\r\nx-evil: 1')],
    ['with NUL', encoded('read_record\u0000')],
    ['base64url', `=?base64?${Buffer.from('a?>b').toString('base64url')}?=`],
  ])('[X-31] is refused and copied nowhere: %s', async (_what, header) => {
    const reply = await requestStateless(rig.access, 'tools/call', call, {
      headers: { 'mcp-name': header },
    });
    expect(reply.status).toBe(400);
    expect(JSON.stringify([...reply.headers])).not.toContain('evil');
    expectNothingForwarded(rig);
  });

  it('[X-31] a name with a line end is refused though header and body agree', async () => {
    const name = 'read_record\r\nx-evil: 1';
    const reply = await requestStateless(
      rig.access,
      'tools/call',
      { name, arguments: {} },
      { headers: { 'mcp-name': encoded(name) } },
    );
    expect(reply.status).toBe(400);
    expectNothingForwarded(rig);
  });

  it('[X-32] passes a good name in base64 as it was sent', async () => {
    const header = encoded('read_record');
    const reply = await requestStateless(rig.access, 'tools/call', call, {
      headers: { 'mcp-name': header },
    });
    expect(reply.status).toBe(200);
    expect(rig.upstream.uses().at(-1)?.headers['mcp-name']).toBe(header);
    rig.upstream.forget();
  });

  it.each([
    ['a session version over a stateless body', '2025-11-25'],
    ['an unknown version', '2027-01-01'],
    ['the oldest', '2024-11-05'],
  ])('[X-33] is 400: %s', async (_what, version) => {
    const reply = await requestStateless(rig.access, 'tools/call', call, {
      headers: { 'mcp-protocol-version': version },
    });
    expect(reply.status).toBe(400);
    expectNothingForwarded(rig);
    const parts = statelessParts('tools/call', call);
    const body = JSON.stringify(parts.body).replace('2026-07-28', version);
    expect((await post(rig.access, body, parts.headers)).status).toBe(400);
    const both = { ...parts.headers, 'mcp-protocol-version': version };
    expect((await post(rig.access, body, both)).status).toBe(400);
    expectNothingForwarded(rig);
  });

  it.each([
    ['missing', {}],
    ['another value', { 'mcp-param-region': 'us', 'mcp-param-limit': '5' }],
    ['another number', { 'mcp-param-region': 'eu', 'mcp-param-limit': '6' }],
    ['a second reading of the number', { 'mcp-param-region': 'eu', 'mcp-param-limit': '0x5' }],
  ])('[X-35] is 400 with -32020 where a parameter header is %s', async (_what, headers) => {
    const reply = await requestStateless(
      rig.access,
      'tools/call',
      { name: 'query', arguments: { region: 'eu', limit: 5 } },
      { headers },
    );
    expect(reply.status).toBe(400);
    expect(errorOf(reply)).toMatchObject({ code: -32020 });
    await expectRefusedLines(rig, reply, 'header-mismatch');
    expectNothingForwarded(rig);
  });

  it('[X-35] passes where they agree, and is refused where the argument is not there', async () => {
    const headers = { 'mcp-param-region': 'eu', 'mcp-param-limit': '5.0' };
    const args = { region: 'eu', limit: 5 };
    const good = await requestStateless(rig.access, 'tools/call', { name: 'query', arguments: args }, { headers });
    expect(good.text).toContain('"query"');
    expect(rig.upstream.uses().at(-1)?.headers).toMatchObject(headers);
    rig.upstream.forget();
    const extra = await requestStateless(rig.access, 'tools/call', { name: 'query', arguments: {} }, { headers });
    expect(extra.status).toBe(400);
    expectNothingForwarded(rig);
  });

  it('[X-34, MCP-50] tools with annotations that may not be are neither listed nor callable', async () => {
    const listed = await requestStateless(rig.access, 'tools/list');
    expect(listed.text).toContain('"query"');
    expect(listed.text).not.toMatch(/invalid_\d|twice/);
    rig.upstream.forget();
    for (const name of ['twice', ...INVALID.map((_, i) => `invalid_${i}`)]) {
      const reply = await requestStateless(rig.access, 'tools/call', { name, arguments: {} });
      await expectRefusedLines(rig, reply, 'tool-invalid');
    }
    expect(rig.upstream.uses()).toEqual([]);
  });
});
