// Case 1: one request with both Content-Length and Transfer-Encoding, which two parsers would cut in two.

import { describe, expect, it } from 'vitest';
import { expectEdgeLines, expectNothingForwarded } from '../support/gateway.js';
import { rawPost, sendRaw, statelessParts } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

describe('a request with two lengths', () => {
  const rig = sharedGateway();

  function smuggling(order: 'length first' | 'chunked first'): string {
    const { headers, body } = statelessParts('tools/call', {
      name: 'read_record',
      arguments: { id: 'outer' },
    });
    const inner = rawPost(
      rig.path,
      [`Host: 127.0.0.1:${rig.port}`, `Authorization: Bearer ${rig.access.token}`],
      JSON.stringify(body),
    );
    const lengths = ['Content-Length: 5', 'Transfer-Encoding: chunked'];
    return rawPost(
      rig.path,
      [
        `Host: 127.0.0.1:${rig.port}`,
        `Authorization: Bearer ${rig.access.token}`,
        'Content-Type: application/json',
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        ...(order === 'length first' ? lengths : lengths.toReversed()),
      ],
      `0\r\n\r\n${inner}`,
    );
  }

  it.each(['length first', 'chunked first'] as const)(
    '[X-01] is answered with 400 and the connection is closed (%s)',
    async (order) => {
      const connections = rig.upstream.connections();
      const before = (await rig.gateway.audit()).length;
      const reply = await sendRaw(rig.port, [smuggling(order)]);
      expect(reply.status).toBe(400);
      expect(reply.isClosed).toBe(true);
      expect(reply.text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
      expectNothingForwarded(rig);
      expect(rig.upstream.connections()).toBe(connections);
      // It never became a message: all that is recorded is this refusal.
      const decision = /sallyport-decision: (\S+)/.exec(reply.text)?.[1] ?? '';
      const headers = new Headers({ 'sallyport-decision': decision });
      await expectEdgeLines(rig, { headers }, 'malformed-request');
      const lines = (await rig.gateway.audit()).slice(before);
      expect(lines.filter((line) => line['type'].startsWith('mcp.'))).toHaveLength(2);
    },
  );
});
