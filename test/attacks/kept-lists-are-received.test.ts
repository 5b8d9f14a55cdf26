// A list that counts as received counts however it comes: an endpoint shows no page of a backend that hangs from what it
// has kept, since what begins no flow would bring the same text. Source: docs/reference/flows.md.

import { expect, it } from 'vitest';
import { startMergedRig } from '../support/deployments.js';
import { onMethod } from '../support/hostile-acts.js';
import { callStateless, requestStateless } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const WITHIN_MS = 5_000;
const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}}
labels: {left: [private], right: [egress]}
flows: [{id: no-leak, from: private, to: egress, within: ${WITHIN_MS}ms, effect: deny}]
`;
const TEXT = 'what only the left one knows';
const SINK = 'right_write_record';

let aheadMs = 0;
const rig = shared(() =>
  startMergedRig({
    policies: { open: POLICY },
    now: () => Date.now() + aheadMs,
    upstream: ['pinning: {maxAge: 10m}', 'limits: {requestTimeout: 1s}', 'flows: {lists: count}'],
    prepare(left) {
      const resource = { uri: 'memo://one', name: 'one', description: TEXT };
      left.present({ list: (kind) => (kind === 'resources' ? [resource] : []) });
    },
  }),
);

const list = async (): Promise<string> => (await requestStateless(rig.access, 'resources/list')).text;
const write = async (): Promise<string> => (await callStateless(rig.access, SINK, { id: 'one', text: 'x' })).text;

it('closes the flow, or does not bring the text', async () => {
  expect(await list()).toContain(TEXT);
  expect(await write()).toContain('tainted-flow');
  aheadMs += 3 * WITHIN_MS;
  expect(await write()).not.toContain('tainted-flow');
  rig.left.obey(onMethod('resources/list', () => ({ kind: 'hold' })));
  expect(await list()).not.toContain(TEXT);
  expect(await write()).not.toContain('tainted-flow');
}, 30_000);
