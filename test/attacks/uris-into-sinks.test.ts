// A caller that has received untrusted text must not write it into a sink as the URI of a resource, whichever request
// carries the URI: a read, or a subscription of either era.

import { expect, it } from 'vitest';
import { decisionOf, UPSTREAM } from '../support/gateway.js';
import { callStateless, openEvents, openSession, requestStateless } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}}
labels: {${UPSTREAM}: [egress]}
flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]
`;
const uri = 'memo://leak/what-was-read';
const FILTER = { notifications: { resourceSubscriptions: [uri] } };

const rig = sharedGateway({ policies: { open: POLICY } });

it('refuses a URI in a read and in the subscriptions of both eras', async () => {
  const session = await openSession(rig.access);
  await callStateless(rig.access, 'read_record', { id: 'one' });
  rig.upstream.forget();
  const replies = [
    await requestStateless(rig.access, 'resources/read', { uri }),
    await requestStateless(rig.access, 'subscriptions/listen', FILTER),
    await session.request('resources/read', { uri }),
    await session.request('resources/subscribe', { uri }),
    await session.request('resources/unsubscribe', { uri }),
  ];
  expect(replies.map((reply) => decisionOf(reply).reason)).toEqual(replies.map(() => 'tainted-flow'));
  expect(JSON.stringify(rig.upstream.seen().map(({ body }) => body))).not.toContain('leak');
});

it('lets a subscription to lists alone pass', async () => {
  const notifications = { toolsListChanged: true };
  const reader = await openEvents(rig.access, 'subscriptions/listen', { notifications });
  expect(reader.status).toBe(200);
  reader.leave();
});
