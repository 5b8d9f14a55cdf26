// Ids of questions and events: bound to caller, upstream and session, never taken for one another.

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createReplyClaims } from '../../../src/gateway/ports.js';
import type { EventFacts, ServerRequestFacts } from '../../../src/protocol/admitted-request.js';
import { createKeyRing } from '../../../src/state/keys.js';
import { createMemoryReplays } from '../../../src/state/memory.js';
import { createForwardedRequests } from '../../../src/state/replica-tables.js';
import { STORED_REVOCATION } from '../../../src/state/revocations.js';
import { EVENT_ID, SERVER_REQUEST_ID, SESSION_ID } from '../../../src/state/sealed-token.js';

const ring = createKeyRing([{ id: 'one', bytes: createHash('sha256').update('one').digest() }]);
const NOW = 1_800_000_000_000;
const LATER = NOW + 60_000;
const ALICE = ['github', 'https://idp.example', 'alice', 'cli', 'hash-1'];
const OTHERS = ['jira', 'https://other.example', 'bob', 'web', 'hash-2'].map((other, at) =>
  ALICE.with(at, other),
);
const QUESTION: ServerRequestFacts = { id: 0, method: 'roots/list', name: 'roots' };
const EVENT: EventFacts = {
  upstreamId: 'stream/1 two',
  request: {
    id: '7',
    method: 'tools/call',
    target: { kind: 'tool', name: 'read' },
    maxResultBytes: 10,
    profiles: ['strict'],
  },
};

describe('[Q-07] the id of a question', () => {
  test('opens for its own caller in its own session, until it expires', () => {
    const id = SERVER_REQUEST_ID.seal(ring, ALICE, QUESTION, LATER);
    expect(SERVER_REQUEST_ID.open(ring, ALICE, id, NOW)).toEqual(QUESTION);
    expect(SERVER_REQUEST_ID.open(ring, ALICE, id, LATER)).toBeUndefined();
    for (const other of OTHERS)
      expect(SERVER_REQUEST_ID.open(ring, other, id, NOW)).toBeUndefined();
    expect(SERVER_REQUEST_ID.open(ring, ALICE, `${id}A`, NOW)).toBeUndefined();
  });

  test('is no event, no session, and neither is one of it', () => {
    const id = SERVER_REQUEST_ID.seal(ring, ALICE, QUESTION, LATER);
    const event = EVENT_ID.seal(ring, ALICE, EVENT, LATER) ?? '';
    expect(EVENT_ID.open(ring, ALICE, id, NOW)).toBeUndefined();
    expect(SESSION_ID.open(ring, ALICE, id, NOW)).toBeUndefined();
    expect(SERVER_REQUEST_ID.open(ring, ALICE, event, NOW)).toBeUndefined();
  });
});

describe('[Q-11] the id of an event', () => {
  test('opens for its own caller in its own session, until it expires', () => {
    const id = EVENT_ID.seal(ring, ALICE, EVENT, LATER) ?? '';
    expect(EVENT_ID.open(ring, ALICE, id, NOW)).toEqual(EVENT);
    expect(EVENT_ID.open(ring, ALICE, id, LATER)).toBeUndefined();
    for (const other of OTHERS) expect(EVENT_ID.open(ring, other, id, NOW)).toBeUndefined();
    const plain = { upstreamId: 'x', request: undefined };
    expect(EVENT_ID.open(ring, ALICE, EVENT_ID.seal(ring, ALICE, plain, LATER) ?? '', NOW)).toEqual(
      plain,
    );
  });

  test('is not given where it would not fit a header', () => {
    expect(EVENT_ID.seal(ring, ALICE, { ...EVENT, upstreamId: 'x'.repeat(5000) }, LATER)).toBe(
      undefined,
    );
  });

  test('carries every kind of target and nothing else opens', () => {
    const target = fc.oneof(
      fc.record({ kind: fc.constantFrom('tool' as const, 'prompt' as const), name: fc.string() }),
      fc.record({ kind: fc.constant('resource' as const), uri: fc.string() }),
      fc.record({ kind: fc.constant('template' as const), uriTemplate: fc.string() }),
      fc.constant({ kind: 'none' } as const),
    );
    fc.assert(
      fc.property(target, fc.string({ maxLength: 200 }), (asked, noise) => {
        const request = { ...EVENT.request, id: 1, method: 'm', profiles: [], target: asked };
        const event = { upstreamId: 'u', request: { ...request, maxResultBytes: undefined } };
        expect(
          EVENT_ID.open(ring, ALICE, EVENT_ID.seal(ring, ALICE, event, LATER) ?? '', NOW),
        ).toEqual(event);
        expect(EVENT_ID.open(ring, ALICE, noise, NOW)).toBeUndefined();
      }),
    );
  });
});

describe('[Q-17] questions that were asked', () => {
  test('are found by session and id, by type too, and the oldest are forgotten', () => {
    const asked = createForwardedRequests();
    asked.add('s', 1, 'one');
    expect(asked.find('s', 1)).toBe('one');
    expect(asked.find('s', '1')).toBeUndefined();
    expect(asked.find('t', 1)).toBeUndefined();
    for (let id = 2; id < 5000; id += 1) asked.add('s', id, 'more');
    expect(asked.find('s', 1)).toBeUndefined();
    expect(asked.find('s', 4999)).toBe('more');
  });
});

describe('[Q-07] the answer to a question', () => {
  const place = (claim: ReturnType<typeof createReplyClaims>, id: string, caller = 'caller') =>
    claim(
      `sealed in ${id}`,
      { version: '2025-11-25', hash: `hash of ${id}`, target: { kind: 'upstream', id } },
      caller,
    );

  test('is the first on one replica alone, where they share a store', async () => {
    const store = createMemoryReplays(() => NOW);
    const [one, other] = [1, 2].map(() => createReplyClaims(ring, () => NOW, store));
    if (one === undefined || other === undefined) throw new Error('two were made');
    const claims = [place(one, 'up'), place(other, 'up'), place(one, 'up')];
    expect((await Promise.all(claims)).sort()).toEqual([false, false, true]);
  });

  test('leaves room for those of other callers, however many sessions its caller has', async () => {
    const claim = createReplyClaims(
      ring,
      () => NOW,
      createMemoryReplays(() => NOW, 8),
    );
    const claims = ['one', 'two', 'three'].map((id) => place(claim, id, 'greedy'));
    expect(await Promise.all(claims)).toEqual([true, true, 'unavailable']);
    expect(await place(claim, 'four', 'modest')).toBe(true);
  });

  test('is none where nobody can tell', async () => {
    const replica = createReplyClaims(ring, () => NOW, { useOnce: () => 'unavailable' });
    expect(await place(replica, 'up')).toBe('unavailable');
  });
});

describe('[REV-11] a revocation in the store', () => {
  test('opens as an earlier version sealed it: an upgrade lifts none', () => {
    const revocation = {
      ...{ id: 'id', revoked: { kind: 'session', digest: 'd' }, by: 'root', note: 'n' },
      ...{ atMs: 1, expiresAtMs: 2_000 },
    };
    const sealed = [
      'AVkf0QzB9_XxAAAAAAfQb7xnbCr5OWkU9ed4gWYLcHH6QOAxNf-8IAHKf1HH8fNUwixFcv',
      '_LcVCFfHUtn04vDz8weyObBgOp357whNU4fz76HLQW1MuI8klDGhrHl4JqyBH4oXLgVTfY',
      'u3N-N15MaEFnDZ0SZL7WlgVW8bpXiAF9Uubeq62SZeOmEhGvk-m3Zojs',
    ].join('');
    const sameKey = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
    expect(STORED_REVOCATION.open(sameKey, ['id'], sealed, 0)).toEqual(revocation);
    expect(STORED_REVOCATION.open(sameKey, ['other'], sealed, 0)).toBeUndefined();
    expect(STORED_REVOCATION.open(sameKey, ['id'], sealed, 2_000)).toBeUndefined();
  });
});
