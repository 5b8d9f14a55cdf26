// Arguments that are left out, dropped or coerced, for clients and upstreams of each era: whichever way a call takes, its
// rules read the same defaults, and the server gets the same arguments.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectIn, ERA_PAIRS, type EraCaller } from '../support/eras.js';
import { decisionOf, UPSTREAM } from '../support/gateway.js';
import { paramsOf } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { sharedGateway } from '../support/with-gateway.js';

const TOOLS: readonly JsonObject[] = ['erase', 'say', 'spend', 'divide', 'mend'].map((name) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: {
    type: 'object',
    properties: {
      mode: { type: 'string', default: 'delete' },
      size: { type: 'integer', default: 90 },
      note: { type: 'string', default: 'plain' },
      ratio: { type: 'number', default: 0 },
    },
    required: ['mode'],
  },
}));

const WHAT = `who: {anyone: true}, what: {tools:`;
const BUDGET = 'max: 100, per: subject, within: 1h';
const POLICY = `version: 1
policy: some
rules:
  - {id: all, effect: allow, ${WHAT} [erase, spend, divide, mend]}}
  - {id: said, effect: allow, ${WHAT} [say]}, args: {note: {const: plain}}}
  - {id: never, effect: deny, ${WHAT} [erase]}, when: 'args.mode == "delete"'}
  - {id: absent, effect: deny, ${WHAT} [say]}, when: '!has(args.size)'}
  - {id: spent, effect: require, ${WHAT} [spend]}, limits: {budget: {name: a, ${BUDGET}, cost: 'has(args.size) ? args.size : 1.0'}}}
  - {id: shared, effect: require, ${WHAT} [divide]}, limits: {budget: {name: b, ${BUDGET}, cost: 'has(args.ratio) ? 1.0 / args.ratio : 1.0'}}}
  - {id: few, effect: deny, ${WHAT} [mend]}, when: 'args.size > 5.0 && args.size < 90.0'}
`;

type Row = readonly [tool: string, args: JsonObject, outcome: string | JsonObject];

/** In this order, for one caller: what the server gets, or why it gets nothing. */
const ROWS: readonly Row[] = [
  ['erase', {}, 'denied-by-rule'],
  ['erase', { mode: 'read' }, { mode: 'read' }],
  ['say', { size: 1 }, { size: 1 }],
  ['say', { size: 1, note: 'other' }, 'arguments-invalid'],
  ['say', {}, 'denied-by-rule'],
  ['spend', {}, {}],
  ['spend', { size: 11 }, 'rate-limited'],
  ['spend', { size: 9 }, { size: 9 }],
  // A cost that the default makes infinite is an error, whatever it is without.
  ['divide', {}, 'policy-error'],
  ['divide', { ratio: 1 }, { ratio: 1 }],
  ['mend', { size: '6' }, 'denied-by-rule'],
  ['mend', { task_progress: ['x'], size: '5' }, { size: 5 }],
  ['mend', { size: 'x' }, 'arguments-invalid'],
  ['mend', { task_progress: 1, other: 1 }, 'arguments-invalid'],
];

describe.each(ERA_PAIRS)(
  'arguments as rules read them, for a client of %s before an upstream of %s',
  (client, upstream) => {
    let caller: EraCaller;
    const rig = sharedGateway({
      era: upstream,
      policies: { some: POLICY },
      prepare(server) {
        server.offer(() => TOOLS);
        server.answerCalls(() => ({ content: [{ type: 'text', text: 'done' }] }));
      },
      upstream: ['pinning: {maxAge: 1h}', 'arguments: {coerce: true, drop: [task_progress]}'],
    });
    beforeAll(async () => {
      caller = await connectIn(client, rig.as(await rig.gateway.token(UPSTREAM)));
    });
    afterAll(async () => {
      caller.leave();
    });

    it('are refused or forwarded alike', async () => {
      for (const [name, args, outcome] of ROWS) {
        rig.upstream.forget();
        const reply = await caller.request('tools/call', { name, arguments: args });
        const [use] = rig.upstream.uses();
        const got = use === undefined ? decisionOf(reply).reason : paramsOf(use)['arguments'];
        expect([name, args, got]).toEqual([name, args, outcome]);
      }
    });
  },
);
