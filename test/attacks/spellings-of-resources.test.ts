// Spellings of a resource that a server reads as one that is denied or blocked. Whatever carries the URI (a read, a
// subscription of either era, a list), in every era, no spelling takes it past a deny rule, a block or a limit; and what
// an allow rule grants does not grow by them: a fragment, a user, an escaped slash or an empty segment is granted where
// the pattern has it.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Pattern } from '../../src/policy/patterns.js';
import { readUri, restrictionsOfUri, restrictsUri, type UriReadings } from '../../src/policy/uris.js';
import type { JsonObject } from '../../src/protocol/jsonrpc.js';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { connectIn, ERA_PAIRS, type EraCaller, startRigOf } from '../support/eras.js';
import { type AttackRig, startRig, UPSTREAM } from '../support/gateway.js';
import { PATIENT } from '../support/timing.js';
import { combinedSpellings, singleSpellings } from '../support/uri-spellings.js';
import { openEvents, requestStateless, resultOf } from '../support/wire-client.js';

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
  const rig = await startRigOf(pair, {
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
    let rig: AttackRig;
    let caller: EraCaller;

    beforeAll(async () => {
      rig = await startVault(upstream);
      caller = await connectIn(client, rig.access);
    });
    afterAll(async () => {
      caller.leave();
      await rig.close();
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
  it('counts it under all of its spellings', async () => {
    const rig = await startVault('stateless');
    try {
      for (const [, uri] of singleSpellings(LIMITED)) await requestStateless(rig.access, 'resources/read', { uri });
      expect(rig.upstream.uses()).toHaveLength(1);
    } finally {
      await rig.close();
    }
  });
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
    const rig = await startRig({
      policies: { some: policy },
      prepare: (server) => server.present({ readResource: (uri) => [{ uri, text: 'One.' }] }),
    });
    try {
      for (const [uri] of uris) await requestStateless(rig.access, 'resources/read', { uri });
      const granted = uris.filter(([, isGranted]) => isGranted).map(([uri]) => uri);
      expect(rig.upstream.uses().map(({ name }) => name)).toEqual(granted);
    } finally {
      await rig.close();
    }
  });
});

/** A text that is no URI is refused, and so is one with more spellings than are looked at. */
function isRefused(patterns: readonly Pattern[], readings: UriReadings | undefined): boolean {
  if (readings === undefined) return true;
  try {
    return restrictsUri(patterns, readings);
  } catch (error) {
    expect(error).toMatchObject({ message: 'the URI has too many spellings' });
    return true;
  }
}

describe('spellings in combination', () => {
  it.each([DENIED, 'memo://vault/keys', 'memo://vault/keys/root?id=7'])(
    'a restriction of %s holds for all of them',
    async (uri) => {
      const patterns = restrictionsOfUri(uri);
      await fc.assert(
        fc.asyncProperty(combinedSpellings(uri), (spelt) => {
          const readings = readUri(spelt);
          expect([spelt, isRefused(patterns, readings)]).toEqual([spelt, true]);
          return Promise.resolve();
        }),
        { numRuns: 3000 },
      );
    },
  );

  it.each([
    ['memo://vault/my%20key', 'memo://vault/my+key'],
    ['memo://vault/my+key', 'memo://vault/my%20key'],
    ['memo://vault/caf%C3%A9', 'memo://vault/cafe%CC%81'],
    ['memo://vault/cafe%CC%81', 'memo://vault/caf%C3%A9'],
    ['memo://vault/fix', 'memo://vault/%EF%AC%81x'],
    ['memo://vault/key%3Fx', 'memo://vault/key%3Fx%20'],
    ['file:///C:/keys/root', 'file:///c:/keys/root'],
    ['file:///C:/keys/root', 'file:///C:/../keys/root'],
    ['file:///C:/keys/root', 'file:///c%7C/keys/root'],
    ['file:///keys/root', 'file://host/keys/root'],
    ['memo://vault/x?id=7', 'memo://vault/x?ID=7'],
    ['memo://vault/x?id=7', 'memo://vault/x?a=1;id=7'],
    ['memo://vault/x?id=7', 'memo://vault/x??id=7'],
    ['memo://vault/x?id=7', 'memo://vault/x?id=7%20'],
  ])('a restriction of %s holds for %s', (denied, uri) => {
    expect(isRefused(restrictionsOfUri(denied), readUri(uri))).toBe(true);
  });

  it.each([
    `https://a.example/${'%E6%97%A5%E6%9C%AC'.repeat(400)}`,
    `https://a.example/search/${'a+b%20c/'.repeat(500)}?q=${'x;y&'.repeat(200)}#z`,
    `file:///C:/Users/me/${'Caf%C3%A9%20Noir/'.repeat(200)}a..b/c.`,
    `db://host:5432/${'t;v=1/'.repeat(400)}row.`,
    `https://a.example:8443/authorize/?to=https%3A%2F%2Fb.example%2F%3Fx%3D1%2526y%253D2&scope=a+b&state=${'Ab3_'.repeat(1900)}#z`,
    `https://s3.a.example/b/My%20Docs/Caf%C3%A9+Menu%20%282024%29.pdf?Signature=${'ab12'.repeat(1900)}`,
    'https://user@host.a.example:8443/a;b=1/c%2Fd/e//f/?q=%E6%97%A5+x%20y#z',
    `data:text/plain;base64,${'QUJD+/'.repeat(1350)}`,
  ])('no restriction of another one holds for a long URI (row %#)', (uri) => {
    const readings = readUri(uri);
    expect(readings && restrictsUri(restrictionsOfUri(DENIED), readings)).toBe(false);
  });

  it.each([
    ['memo://vault/', 'e%CC%81+%20;v/'],
    ['file://h/C:/', '+%20./'],
    ['memo://u@vault:80/', '%20./'],
    ['memo://vault/', '%EF%B7%BA'],
    ['memo://vault/', '%2525252e%2525252e/'],
    ['file://u@H:8/C:/', 'e%CC%81+%20;v=%252e./..//'],
    ['https://u@a.example/x?', '%25252525'],
    ['memo://vault/', '::$DATA'],
  ])('reading a hostile URI is little work: %s%s…', (start, unit) => {
    const uri = (start + unit.repeat(8192)).slice(0, 8190).replace(/%.?$/, '');
    const readings = readUri(uri);
    let read: readonly string[] = [];
    try {
      read = readings?.cores().withHost ?? [];
    } catch (error) {
      expect(error).toMatchObject({ message: 'the URI has too many spellings' });
    }
    expect(read.join('').length).toBeLessThan(40 * uri.length);
  });

  it('a restriction of a resource holds for no other one', () => {
    const others = ['memo://vault/keys/root2', 'memo://vault/keys', 'memo://vault/keys/root/x'];
    const patterns = restrictionsOfUri(DENIED);
    for (const other of [
      ...others,
      'memo://vault/key',
      'note://vault/keys/root',
      'memo://keys/root',
      'memo://vault/keys/..root',
      'memo://vault/keys/root...x',
      'memo://vault/keys/root:DATA',
    ]) {
      const readings = readUri(other);
      expect([other, readings && restrictsUri(patterns, readings)]).toEqual([other, false]);
    }
    const file = readUri('file:///srv/keys/root');
    expect(file && restrictsUri(restrictionsOfUri('file:///keys/root'), file)).toBe(false);
    const parameter = restrictionsOfUri('memo://vault/x?id=7');
    for (const [other, isHeld] of [
      ['memo://vault/x', false],
      ['memo://vault/x?id=8', false],
      ['memo://vault/x?a=1&id=%37', true],
    ] as const) {
      const readings = readUri(other);
      expect([other, readings && restrictsUri(parameter, readings)]).toEqual([other, isHeld]);
    }
  });
});
