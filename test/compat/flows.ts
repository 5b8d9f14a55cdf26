// What flows of policies change of messages that are otherwise passed on.

import { expect } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import { jsonBody, onMethod, resultFor } from '../support/hostile-acts.js';
import { requestStateless, resultOf } from '../support/wire-client.js';
import { type CompatRow, withWorld } from './rig.js';

const FLOW = 'flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]\n';
const policies = {
  open: `${ALLOW_ALL}labels: {u/write_record: [egress, trusted]}\n${FLOW}`,
};
const HEADER = { 'mcp-param-note': 'noted' };

const RESOURCE = { uri: 'memo://one', name: 'First', description: 'Says much.', size: 3 };
const describesResources = onMethod('resources/list', (request) =>
  jsonBody(resultFor(request, { resources: [RESOURCE], ttlMs: 0, cacheScope: 'private' })),
);

export const rows: readonly CompatRow[] = [
  {
    id: 'headers-of-unknown-parameters',
    area: 'messages',
    source: 'MCP 2026-07-28, custom headers; docs/reference/flows.md',
    given:
      'A client sends an `Mcp-Param-*` header that mirrors no argument of the tool, which an intermediary must forward.',
    verdict: 'changes',
    sees: 'It is forwarded, except to a tool that a flow may refuse: there no check reads what it says.',
    run: () =>
      withWorld({ policies }, async ({ access, upstream }) => {
        for (const [name, sent] of [
          ['write_record', undefined],
          ['read_record', 'noted'],
        ] as const) {
          const more = name === 'write_record' ? { text: 'y' } : {};
          const params = { name, arguments: { id: 'x', ...more } };
          await requestStateless(access, 'tools/call', params, { headers: HEADER });
          expect(upstream.uses().at(-1)?.headers['mcp-param-note']).toBe(sent);
        }
      }),
  },
  {
    id: 'resources-of-a-source',
    area: 'servers',
    source: 'docs/reference/flows.md',
    given: 'A server whose results begin a flow names and describes its resources.',
    verdict: 'changes',
    sees: 'They are listed by their URIs, unless `flows: {lists: count}` lets the list itself begin the flow.',
    run: async () => {
      for (const [more, shown] of [
        ['flows: {lists: cut}', { uri: 'memo://one', name: 'memo://one', size: 3 }],
        ['flows: {lists: count}', RESOURCE],
      ] as const) {
        const upstream = ['pinning: {mode: "off"}', more];
        await withWorld({ policies, upstream, order: describesResources }, async (world) => {
          const list = await world.request('resources/list');
          expect(resultOf(list)['resources']).toEqual([shown]);
        });
      }
    },
  },
];
