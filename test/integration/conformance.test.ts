// What the conformance suite found in the running gateway, held here without it.

import { describe, expect, it } from 'vitest';
import { HONEST_TOOLS } from '../support/hostile-upstream.js';
import {
  bearer,
  errorOf,
  post,
  requestStateless,
  resultOf,
  SESSION_VERSION,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const ANCHORED = {
  name: 'anchored',
  description: 'Names a place in its schema.',
  inputSchema: {
    type: 'object',
    $defs: { row: { $anchor: 'row', type: 'string', maxLength: 3 } },
    properties: { row: { $ref: '#/$defs/row' } },
    required: ['row'],
    additionalProperties: false,
  },
};

describe('what the conformance suite found', () => {
  const rig = sharedGateway({
    prepare: (upstream) => {
      upstream.offer(() => [...HONEST_TOOLS, ANCHORED]);
      upstream.answerCalls((name) => ({ content: [{ type: 'text', text: name }] }));
    },
  });

  it('[N-03] mirroring headers are accepted in a session where they agree, and go no further', async () => {
    const version = { 'mcp-protocol-version': SESSION_VERSION };
    const clientInfo = { name: 'both-eras', version: '1' };
    const params = { protocolVersion: SESSION_VERSION, capabilities: {}, clientInfo };
    const opened = await post(rig.access, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }), {
      ...version,
      'mcp-method': 'initialize',
    });
    expect(opened.status).toBe(200);
    const session = { ...version, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    const call = {
      jsonrpc: '2.0',
      id: 2,
      method: 'tools/call',
      params: { name: 'read_record', arguments: { id: 'one' } },
    };
    const mirrors = { 'mcp-method': 'tools/call', 'mcp-name': 'read_record' };
    const called = await post(rig.access, JSON.stringify(call), { ...session, ...mirrors });
    expect(resultOf(called)['content']).toEqual([{ type: 'text', text: 'read_record' }]);
    const other = { ...session, ...mirrors, 'mcp-name': 'write_record' };
    expect(errorOf(await post(rig.access, JSON.stringify(call), other))).toMatchObject({
      code: -32020,
    });
    const seen = rig.upstream.seen();
    expect(seen.map((request) => request.method)).toEqual(['initialize', 'tools/call']);
    const names = seen.flatMap((request) => Object.keys(request.headers));
    expect(names.filter((name) => name === 'mcp-method' || name === 'mcp-name')).toEqual([]);
    await fetch(rig.access.url, {
      method: 'DELETE',
      headers: { ...session, ...bearer(rig.access.token) },
    });
  });

  it.each([200, 202, 204])(
    '[N-06] a notification that the upstream takes with %s is answered with 202 and no body',
    async (status) => {
      const session = await rig.openSession();
      rig.upstream.obeyOnce((request) =>
        request.method === 'notifications/cancelled' ? { kind: 'http', status, headers: {}, body: '' } : undefined,
      );
      const note = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } };
      const reply = await post(rig.access, JSON.stringify(note), sessionHeaders(session.id));
      expect([reply.status, reply.text]).toEqual([202, '']);
      await session.end();
    },
  );

  it('[N-04] a schema with an anchor is carried and holds', async () => {
    expect(toolNames(await requestStateless(rig.access, 'tools/list', {}))).toContain('anchored');
    const ask = (row: string) => requestStateless(rig.access, 'tools/call', { name: 'anchored', arguments: { row } });
    expect(resultOf(await ask('abc'))).toMatchObject({ content: [{ text: 'anchored' }] });
    expect(resultOf(await ask('abcd'))['isError']).toBe(true);
  });

  it('[N-05] a version that nobody speaks is told those that discovery tells', async () => {
    const discovered = resultOf(await requestStateless(rig.access, 'server/discover', {}));
    const refused = await requestStateless(
      rig.access,
      'server/discover',
      { _meta: { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' } },
      { headers: { 'mcp-protocol-version': '2099-01-01' } },
    );
    expect(refused.status).toBe(400);
    expect(errorOf(refused)).toMatchObject({
      code: -32022,
      data: { supported: discovered['supportedVersions'], requested: '2099-01-01' },
    });
  });
});
