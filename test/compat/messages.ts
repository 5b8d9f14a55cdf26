// Rows about single messages of clients and servers: names, null, characters, ids, headers and sizes.

import { expect } from 'vitest';
import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { body, jsonBody, onMethod, resultFor, textResult } from '../support/hostile-acts.js';
import { errorOf, resultOf, toolNames } from '../support/wire-client.js';
import { type CompatRow, withWorld } from './rig.js';

const OPEN_TOOL = {
  name: 'run',
  description: 'Runs.',
  inputSchema: { type: 'object', properties: { env: { type: 'object' } } },
};

export const rows: readonly CompatRow[] = [
  {
    id: 'argument-names-in-two-cases',
    area: 'messages',
    source: 'RFC 8259 §4 (HTTP_PROXY beside http_proxy)',
    given: 'Arguments have two members whose names differ only in case, and no rule reads them.',
    verdict: 'accepts',
    sees: 'The server gets them byte for byte.',
    run: () =>
      withWorld({ tools: [OPEN_TOOL], result: () => textResult('ok') }, async (world) => {
        const env = { HTTP_PROXY: 'p', http_proxy: 'q', a: [{ Mg: 1, MG: 2 }] };
        const reply = await world.call('run', { env });
        expect([reply.status, errorOf(reply)]).toEqual([200, {}]);
        expect(world.upstream.uses().at(-1)?.body).toContain(JSON.stringify(env));
      }),
  },
  {
    id: 'result-names-in-two-cases',
    area: 'messages',
    source: 'RFC 8259 §4 (chemical symbols)',
    given: 'Structured content and `_meta` have names that differ only in case.',
    verdict: 'accepts',
    sees: 'The client gets them byte for byte.',
    run: () => {
      const result: JsonObject = {
        content: [{ type: 'text', text: 'ok' }],
        structuredContent: { CO: 1, Co: 2 },
        _meta: { 'vendor/Id': 1, 'vendor/id': 2 },
      };
      return withWorld(
        { order: onMethod('tools/call', (request) => jsonBody(resultFor(request, result))) },
        async (world) => {
          const { resultType: _, ...received } = resultOf(
            await world.call('read_record', { id: 'one' }),
          );
          expect(received).toEqual(result);
        },
      );
    },
  },
  {
    id: 'property-names-in-two-cases',
    area: 'definitions',
    source: 'RFC 8259 §4 (the flags -A and -a)',
    given: 'A tool declares two properties whose names differ only in case.',
    verdict: 'accepts',
    sees: 'Every tool is listed, this one with both properties.',
    run: () => {
      const properties = { '-A': { type: 'string' }, '-a': { type: 'string' } };
      const tool = {
        name: 'ls',
        description: 'Lists.',
        inputSchema: { type: 'object', properties },
      };
      return withWorld(
        {
          tools: [OPEN_TOOL, tool],
          upstream: ['pinning: {maxAge: 10m}'],
          result: () => textResult('ok'),
        },
        async (world) => {
          expect(toolNames(await world.request('tools/list'))).toEqual(['run', 'ls']);
          const reply = await world.call('ls', { '-A': 'x', '-a': 'y' });
          expect([reply.status, errorOf(reply)]).toEqual([200, {}]);
        },
      );
    },
  },
  {
    id: 'protocol-names-in-two-cases',
    area: 'messages',
    source: 'CVE-2026-27896',
    given: 'A result has a member of the protocol beside one whose name differs only in case.',
    verdict: 'refuses',
    sees: 'A gateway error: parsers disagree on which of the two is meant.',
    run: () =>
      withWorld(
        {
          order: onMethod('tools/call', (request) =>
            body(
              JSON.stringify(resultFor(request, { content: [] })).replace(
                '"content":[]',
                '"content":[{"type":"text","text":"a","Text":"b"}]',
              ),
            ),
          ),
        },
        async (world) => {
          expect((await world.call('read_record', { id: 'one' })).status).toBe(502);
        },
      ),
  },
  {
    id: 'lone-surrogate-in-arguments',
    area: 'messages',
    source: 'microsoft/playwright-mcp#1410, anomalyco/opencode#17758',
    given: 'A client sends a text that was cut inside a character, as half of a surrogate pair.',
    verdict: 'refuses',
    sees: 'An error under the id of the request that says what a lone surrogate is.',
    run: () =>
      withWorld({}, async (world) => {
        const session = await world.openSession();
        const reply = await session.call('read_record', { id: 'cut \ud83d' });
        const { code, message } = errorOf(reply);
        expect([reply.status, code]).toEqual([200, -32602]);
        expect(message).toContain('surrogate');
      }),
  },
];
