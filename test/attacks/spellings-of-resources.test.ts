// Spellings of a resource that a server reads as one that is denied or blocked. Whatever carries the URI (a read, a
// subscription of either era, a list), in every era, no spelling takes it past a deny rule, a block or a limit; and what
// an allow rule grants does not grow by them: a fragment, a user, an escaped slash or an empty segment is granted where
// the pattern has it. Spellings in combination: test/unit/policy/uri-spellings.test.ts.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { connectIn, ERA_PAIRS, type EraCaller } from '../support/eras.js';
import { type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { singleSpellings } from '../support/uri-spellings.js';
import { openEvents, requestStateless, resultOf } from '../support/wire-client.js';
import { shared, withGateway, withStarted } from '../support/with-gateway.js';

const OPEN = 'memo://vault/open/one';
const DENIED = 'memo://vault/keys/root';
const DENIED_BELOW = 'memo://vault/shut/door/one';
const BLOCKED = 'memo://vault/held/one';
const LIMITED = 'memo://vault/slow/one';
const POLICY = `version: 1
policy: some
rules:
  - id: everything
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], resources: ["**", "**#**"]}
  - id: not-the-keys
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], resources: ["${DENIED}", "memo://vault/shut/**"]}
  - id: slowly
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], resources: ["${LIMITED}"]}
    limits: {rate: 1/h, per: subject}
`;

const SPELLINGS = [DENIED, DENIED_BELOW, BLOCKED].flatMap((uri) => [
  uri,
  ...singleSpellings(uri).map(([, spelt]) => spelt),
]);

async function startVault(pair: (typeof ERA_PAIRS)[number][1]): Promise<AttackRig> {
  const rig = await startRig({
    era: pair,
    policies: { some: POLICY },
    more: ADMINS,
    prepare(server) {
      server.present({
        list: (kind) => (kind === 'resources' ? [OPEN, ...SPELLINGS].map((uri) => ({ uri, name: 'one' })) : []),
        readResource: (uri) => [{ uri, text: 'What it holds.' }],
      });
    },
  });
  const block = { target: 'resource', upstream: UPSTREAM, name: BLOCKED };
  // A busy machine may not have the keys of administrators at once, which is 503.
  const revoke = async (): Promise<void> => expect((await adminsOf(rig.gateway).revoke({ block })).status).toBe(201);
  await vi.waitFor(revoke, PATIENT);
  return rig;
}

/** The URIs that reached the server in any request. */
function urisSeen(rig: AttackRig): readonly unknown[] {
  return rig.upstream.seen().flatMap(({ message }) => {
    const params = message?.['params'] as JsonObject | undefined;
    const filter = params?.['notifications'] as JsonObject | undefined;
    const subscribed = (filter?.['resourceSubscriptions'] ?? []) as readonly unknown[];
    return [...(params?.['uri'] === undefined ? [] : [params['uri']]), ...subscribed];
  });
}

describe.each(ERA_PAIRS)(
  'a resource that is denied or blocked, for a client of %s before an upstream of %s',
  (client, upstream) => {
    let caller: EraCaller;

    const rig = shared(() => startVault(upstream));
    beforeAll(async () => {
      caller = await connectIn(client, rig.access);
    });
    afterAll(async () => {
      caller.leave();
    });

    it('is read under none of its spellings, and others are', async () => {
      rig.upstream.forget();
      const contents = resultOf(await caller.request('resources/read', { uri: OPEN }))['contents'];
      expect(contents).toEqual([{ uri: OPEN, text: 'What it holds.' }]);
      for (const uri of SPELLINGS) await caller.request('resources/read', { uri });
      expect(urisSeen(rig)).toEqual([OPEN]);
    });

    it('is subscribed to under none of its spellings', async () => {
      rig.upstream.forget();
      if (client === 'stateless') {
        const resourceSubscriptions = [OPEN, ...SPELLINGS];
        const params = { notifications: { resourceSubscriptions } };
        (await openEvents(rig.access, 'subscriptions/listen', params)).leave();
        expect(urisSeen(rig).filter((uri) => uri !== OPEN)).toEqual([]);
        return;
      }
      for (const uri of [OPEN, ...SPELLINGS])
        for (const method of ['resources/subscribe', 'resources/unsubscribe']) await caller.request(method, { uri });
      expect(urisSeen(rig).filter((uri) => uri !== OPEN)).toEqual([]);
    });

    it('is listed under none of its spellings', async () => {
      const listed = resultOf(await caller.request('resources/list'))['resources'];
      expect((listed as JsonObject[]).map(({ uri }) => uri)).toEqual([OPEN]);
    });
  },
);

describe('a limit of one resource', () => {
  it('counts it under all of its spellings', () =>
    withStarted(
      () => startVault('stateless'),
      async (rig) => {
        for (const [, uri] of singleSpellings(LIMITED)) await requestStateless(rig.access, 'resources/read', { uri });
        expect(rig.upstream.uses()).toHaveLength(1);
      },
    ));
});

describe('what a pattern grants', () => {
  const CASES = {
    'memo://open/**': [
      [`memo://open/a/b`, true],
      [`memo://open/a#b`, false],
      [`memo://open/a?b`, true],
      [`memo://user@open/a`, false],
      [`memo://open/a%2Fb`, false],
      [`memo://open/a//b`, false],
      [`memo://open/a/`, true],
      [`memo://open/a%20b`, true],
    ],
    'memo://open/**#**': [
      [`memo://open/a#b`, true],
      [`memo://open/a#`, true],
      [`memo://open/a//b#c`, false],
    ],
    'memo://*@open/**': [[`memo://user@open/a`, true]],
    'memo://open/*%2F*': [[`memo://open/a%2fb`, true]],
    'memo://open//**': [[`memo://open//b`, true]],
    '**': [
      [`memo://user@open//a%2fb`, true],
      [`memo://open/a#b`, false],
    ],
    're:memo://open/.*': [
      [`memo://open/a`, true],
      [`memo://open/a#b`, false],
      [`memo://open/a%2fb`, false],
    ],
  } as const;

  it.each(Object.entries(CASES))('under %s', async (pattern, uris) => {
    const policy = `version: 1
policy: some
rules:
  - id: some
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"], resources: ["${pattern}"]}
`;
    await withGateway(
      {
        policies: { some: policy },
        prepare: (server) => server.present({ readResource: (uri) => [{ uri, text: 'One.' }] }),
      },
      async (rig) => {
        for (const [uri] of uris) await requestStateless(rig.access, 'resources/read', { uri });
        const granted = uris.filter(([, isGranted]) => isGranted).map(([uri]) => uri);
        expect(rig.upstream.uses().map(({ name }) => name)).toEqual(granted);
      },
    );
  });
});
