// Subscriptions of the stateless era: how many resources one may name, and what becomes of it where a server of an
// endpoint refuses its part.

import { expect } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { onMethod, sseEvent } from '../support/hostile-acts.js';
import type { Act, HostileRequest } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { type Access, openEvents } from '../support/wire-client.js';
import { withStarted } from '../support/with-gateway.js';
import { type CompatRow, withWorld } from './rig.js';

const LISTEN = 'subscriptions/listen';
const MOST = 512;

/** A server that agrees to whatever it is asked for. */
const agree = onMethod(LISTEN, (request: HostileRequest): Act => {
  const params = (request.message?.['params'] ?? {}) as JsonObject;
  const notifications = params['notifications'] ?? {};
  const _meta = { 'io.modelcontextprotocol/subscriptionId': request.id ?? 0 };
  const method = 'notifications/subscriptions/acknowledged';
  const first = { jsonrpc: '2.0', method, params: { notifications, _meta } };
  return { kind: 'chunks', contentType: 'text/event-stream', chunks: [sseEvent(first)], ending: 'hold' };
});

async function acknowledgement(access: Access, notifications: JsonObject): Promise<JsonObject> {
  const reader = await openEvents(access, LISTEN, { notifications });
  const params = (await reader.next())?.['params'] ?? {};
  reader.leave();
  return params as JsonObject;
}

export const rows: readonly CompatRow[] = [
  {
    id: 'subscription-to-hundreds-of-resources',
    area: 'clients',
    source: 'MCP 2026-07-28, subscriptions (subscriptions/listen)',
    given: 'A client subscribes to 512 resources in one request.',
    verdict: 'accepts',
    sees: 'All of them are acknowledged.',
    run: () =>
      withWorld({ order: agree }, async ({ access }) => {
        const resourceSubscriptions = Array.from({ length: MOST }, (_, at) => `memo://documents/${at}`);
        const { notifications } = await acknowledgement(access, { resourceSubscriptions });
        expect(notifications).toEqual({ resourceSubscriptions });
      }),
  },
  {
    id: 'subscription-of-which-a-server-refuses-its-part',
    area: 'clients',
    source: 'MCP 2026-07-28, subscriptions (subscriptions/listen)',
    given: 'A client subscribes at an endpoint of several servers, and at one of them the limit of its rule is spent.',
    verdict: 'changes',
    sees: 'The other servers serve their part, and the acknowledgement has in `_meta` what was left out and why.',
    run: async () => {
      const limited = 'limits: {rate: 1/h, per: subject}';
      const policy = `version: 1
policy: open
rules:
  - {id: left, effect: allow, who: {anyone: true}, what: {upstreams: [left], resources: ["memo://left/**"]}, ${limited}}
  - {id: right, effect: allow, who: {anyone: true}, what: {upstreams: [right], resources: ["memo://right/**"]}}
`;
      await withStarted(
        () => startMergedRig({ policies: { open: policy } }),
        async (rig) => {
          rig.left.obey(agree);
          rig.right.obey(agree);
          const asked = { resourceSubscriptions: ['memo://left/a', 'memo://right/b'] };
          expect((await acknowledgement(rig.access, asked))['notifications']).toEqual(asked);
          const { notifications, _meta } = await acknowledgement(rig.access, asked);
          expect(notifications).toEqual({ resourceSubscriptions: ['memo://right/b'] });
          const error = expect.objectContaining({ code: 1429 });
          const leftOut = { notifications: { resourceSubscriptions: ['memo://left/a'] }, errors: [error] };
          expect((_meta as JsonObject)['dev.sallyport/left-out']).toEqual(leftOut);
        },
      );
    },
  },
];
