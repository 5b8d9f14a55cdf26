import { createHash, createPublicKey, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { publicKeyInfoOf, readKeyText } from '../../../src/config/keys.js';
import type { GatewayKey } from '../../../src/config/settings.js';
import { createReplyClaims } from '../../../src/gateway/ports.js';
import {
  type EventFacts,
  NO_SESSION_ID,
  type SentRequestFacts,
  type ServerRequestFacts,
  type SessionFacts,
  type SessionTarget,
} from '../../../src/protocol/admitted-request.js';
import { createKeyRing, DIGEST_PURPOSES } from '../../../src/state/keys.js';
import { createMemoryReplays } from '../../../src/state/memory.js';
import { createForwardedRequests } from '../../../src/state/replica-tables.js';
import { STORED_REVOCATION } from '../../../src/state/revocations.js';
import {
  EVENT_ID,
  LEGACY_REQUEST_ID,
  LIST_CURSOR,
  MAX_SEALED_CHARACTERS,
  MAX_STATE_CHARS,
  open,
  REQUEST_STATE,
  SERVER_REQUEST_ID,
  SESSION_ID,
  seal,
} from '../../../src/state/sealed-token.js';

function key(id: string): GatewayKey {
  return { id, bytes: createHash('sha256').update(id).digest() };
}

const ring = createKeyRing([key('one')]);
const NOW = 1_800_000_000_000;
const LATER = NOW + 60_000;
const bound = ['github', 'https://idp.example', 'alice'];

describe('seal', () => {
  it('[S-01] opens what was sealed for the same purpose and bindings, until it expires', () => {
    const sealed = seal(ring, 'session', bound, 'payload', LATER);
    expect(sealed).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(open(ring, 'session', bound, sealed, NOW)).toBe('payload');
    expect(open(ring, 'session', bound, sealed, LATER - 1)).toBe('payload');
    expect(open(ring, 'session', bound, sealed, LATER)).toBeUndefined();
  });

  it('[S-02] no purpose opens what another sealed', () => {
    const purposes = ['session', 'request-state', 'event-id', 'approval', 'session/'];
    for (const made of purposes) {
      const sealed = seal(ring, made, bound, 'p', LATER);
      const openers = purposes.filter((purpose) => open(ring, purpose, bound, sealed, NOW));
      expect(openers).toEqual([made]);
    }
  });

  it('[S-03] opens for exactly the same bindings only, whatever they are', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 12 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 4 }), fc.array(text, { maxLength: 4 }), (a, b) => {
        const sealed = seal(ring, 'session', a, 'x', LATER);
        const same = a.length === b.length && a.every((value, index) => value === b[index]);
        expect(open(ring, 'session', b, sealed, NOW) !== undefined).toBe(same);
      }),
    );
  });

  it('[S-03] does not move bytes between neighbouring bindings, and normalizes nothing', () => {
    const sealed = seal(ring, 'session', ['ab', 'c'], 'x', LATER);
    expect(open(ring, 'session', ['a', 'bc'], sealed, NOW)).toBeUndefined();
    expect(open(ring, 'session', ['abc'], sealed, NOW)).toBeUndefined();
    const composed = seal(ring, 'session', ['\u00e9'], 'x', LATER);
    expect(open(ring, 'session', ['e\u0301'], composed, NOW)).toBeUndefined();
    expect(open(ring, 'session', ['\u00c9'], composed, NOW)).toBeUndefined();
  });

  it('[S-03] refuses bindings that UTF-8 cannot tell apart', () => {
    expect(() => seal(ring, 'session', ['\ud800'], 'x', LATER)).toThrow(RangeError);
    const replacement = seal(ring, 'session', ['\ufffd'], 'x', LATER);
    expect(open(ring, 'session', ['\ud800'], replacement, NOW)).toBeUndefined();
  });

  it('[S-04] does not open with any one bit changed', () => {
    const sealed = Buffer.from(seal(ring, 'session', bound, 'payload', LATER), 'base64url');
    for (let bit = 0; bit < sealed.length * 8; bit += 1) {
      const changed = Buffer.from(sealed);
      const at = bit >> 3;
      changed[at] = (changed[at] ?? 0) ^ (1 << (bit & 7));
      expect(open(ring, 'session', bound, changed.toString('base64url'), NOW)).toBeUndefined();
    }
  });

  it('[S-04] refuses every other spelling of the same bytes, and what is too long or too short', () => {
    const sealed = seal(ring, 'session', bound, 'payloads', LATER);
    const standard = sealed.replaceAll('-', '+').replaceAll('_', '/');
    const spellings = [`${sealed}=`, `${sealed} `, ` ${sealed}`, `${sealed}\n`, `${sealed}.`];
    if (standard !== sealed) spellings.push(standard);
    spellings.push('', 'A', sealed.slice(0, -4), 'A'.repeat(MAX_SEALED_CHARACTERS + 1));
    for (const spelling of spellings) {
      expect(open(ring, 'session', bound, spelling, NOW)).toBeUndefined();
    }
  });

  it('[S-04] never throws, whatever it is shown', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        expect(open(ring, 'session', bound, text, NOW)).toBeUndefined();
      }),
    );
  });

  it('[S-05] the first key seals, all open, and a removed key opens nothing more', () => {
    const old = createKeyRing([key('old')]);
    const both = createKeyRing([key('new'), key('old')]);
    const fresh = createKeyRing([key('new')]);
    const byOld = seal(old, 'session', bound, 'x', LATER);
    const byBoth = seal(both, 'session', bound, 'x', LATER);
    expect(open(both, 'session', bound, byOld, NOW)).toBe('x');
    expect(open(fresh, 'session', bound, byBoth, NOW)).toBe('x');
    expect(open(fresh, 'session', bound, byOld, NOW)).toBeUndefined();
    expect(open(old, 'session', bound, byBoth, NOW)).toBeUndefined();
  });

  it('[S-06] never seals the same value to the same text', () => {
    const many = Array.from({ length: 600 }, () => seal(ring, 'session', bound, 'x', LATER));
    expect(new Set(many).size).toBe(many.length);
    const nonces = many.map((text) => Buffer.from(text, 'base64url').toString('hex', 15, 27));
    expect(new Set(nonces).size).toBe(many.length);
  });
});

describe('the id of a session', () => {
  const alice = ['github', 'https://idp.example', 'alice', 'cli'];
  const session: SessionFacts = {
    version: '2025-11-25',
    target: { kind: 'upstream', id: 'abc' },
    allowedServerRequests: ['sampling', 'elicitation/url'],
  };

  it('[S-07] gives back the session to the same principal at the same upstream', () => {
    const id = SESSION_ID.seal(ring, alice, session, LATER);
    expect(SESSION_ID.open(ring, alice, id, NOW)).toEqual(session);
    const without = { ...session, target: NO_SESSION_ID };
    expect(SESSION_ID.open(ring, alice, SESSION_ID.seal(ring, alice, without, LATER), NOW)).toEqual(without);
  });

  it.each<SessionTarget>([
    { kind: 'upstream', id: 'gateway' },
    { kind: 'upstream', id: '["gateway"]' },
    { kind: 'gateway' },
    { kind: 'legacy-sse', messageEndpoint: '/message?sessionId=1' },
    { kind: 'bridged' },
    { kind: 'aggregate', sessions: new Map([['left', 'sealed']]) },
  ])('[S-07] gives back how the session reaches its upstream: $kind', (target) => {
    const id = SESSION_ID.seal(ring, alice, { ...session, target }, LATER);
    expect(SESSION_ID.open(ring, alice, id, NOW)?.target).toEqual(target);
  });

  it('[APP-05] remembers whether its client shows apps', () => {
    const shows = { ...session, apps: true };
    expect(SESSION_ID.open(ring, alice, SESSION_ID.seal(ring, alice, shows, LATER), NOW)).toEqual(shows);
    const plain = { ...session, apps: false };
    expect(SESSION_ID.open(ring, alice, SESSION_ID.seal(ring, alice, plain, LATER), NOW)).toEqual(session);
  });

  it.each([
    ['upstream', alice.with(0, 'jira')],
    ['issuer', alice.with(1, 'https://idp.example/')],
    ['subject', alice.with(2, 'mallory')],
    ['client', alice.with(3, 'other')],
    ['subject and client swapped', alice.with(2, 'cli').with(3, 'alice')],
  ])('[S-07] is unknown to another %s', (_what, other) => {
    const id = SESSION_ID.seal(ring, alice, session, LATER);
    expect(SESSION_ID.open(ring, other, id, NOW)).toBeUndefined();
  });

  it('[S-07] ends when it expires', () => {
    const id = SESSION_ID.seal(ring, alice, session, LATER);
    expect(SESSION_ID.open(ring, alice, id, LATER)).toBeUndefined();
  });
});

describe('createKeyRing', () => {
  it('[S-08] derives a different digest for each purpose and each key, and the same one again', () => {
    const both = createKeyRing([key('one'), key('two')]);
    const digests = DIGEST_PURPOSES.flatMap((purpose) => both.hmacAll(purpose, 'value'));
    expect(new Set(digests).size).toBe(DIGEST_PURPOSES.length * 2);
    expect(both.hmac('token-id', 'value')).toBe(ring.hmac('token-id', 'value'));
    expect(both.hmac('token-id', Buffer.from('value'))).toBe(digests[0]);
  });

  it('[S-09] signs so that the published public key verifies', () => {
    const { signature, keyId } = ring.sign(Buffer.from('text'));
    const published = ring.publicKeys()[0];
    expect(published?.keyId).toBe(keyId);
    const publicKey = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: published?.publicKey ?? '' },
      format: 'jwk',
    });
    const bytes = Buffer.from(signature, 'base64url');
    expect(verify(null, Buffer.from('text'), publicKey, bytes)).toBe(true);
    expect(verify(null, Buffer.from('texT'), publicKey, bytes)).toBe(false);
  });

  it('[S-09] publishes the key that `keys public` prints', () => {
    const bytes = Buffer.alloc(32, 3);
    const gatewayKey = readKeyText(bytes.toString('hex'));
    if (gatewayKey === undefined) throw new Error('not a key');
    const [published] = createKeyRing([gatewayKey]).publicKeys();
    const { id, jwk } = publicKeyInfoOf(gatewayKey);
    expect(published).toEqual({ keyId: id, publicKey: jwk.x });
  });

  it('[S-08] refuses to be made of no key or a short one', () => {
    expect(() => createKeyRing([])).toThrow(RangeError);
    expect(() => createKeyRing([{ id: 'x', bytes: new Uint8Array(16) }])).toThrow(RangeError);
  });
});

// Ids of questions and events: bound to caller, upstream and session, never taken for one another.
describe('sealed values', () => {
  const ring = createKeyRing([{ id: 'one', bytes: createHash('sha256').update('one').digest() }]);
  const NOW = 1_800_000_000_000;
  const LATER = NOW + 60_000;
  const ALICE = ['github', 'https://idp.example', 'alice', 'cli', 'hash-1'];
  const OTHERS = ['jira', 'https://other.example', 'bob', 'web', 'hash-2'].map((other, at) => ALICE.with(at, other));
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
      for (const other of OTHERS) expect(SERVER_REQUEST_ID.open(ring, other, id, NOW)).toBeUndefined();
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
      expect(EVENT_ID.open(ring, ALICE, EVENT_ID.seal(ring, ALICE, plain, LATER) ?? '', NOW)).toEqual(plain);
    });

    test('is not given where it would not fit a header', () => {
      expect(EVENT_ID.seal(ring, ALICE, { ...EVENT, upstreamId: 'x'.repeat(5000) }, LATER)).toBe(undefined);
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
          expect(EVENT_ID.open(ring, ALICE, EVENT_ID.seal(ring, ALICE, event, LATER) ?? '', NOW)).toEqual(event);
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
});

describe('request state', () => {
  const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
  const BINDING = [...['github', 'https://idp.example.com', 'ada', 'editor'], ...['tools/call', 'tool read', 'digest']];
  const NOW = 1_000_000;

  describe('the sealed state of a dialogue', () => {
    test('[T-09] opens to the same bytes, whatever they are', () => {
      fc.assert(
        fc.property(fc.string({ unit: 'grapheme', maxLength: 500 }), (state) => {
          const sealed = REQUEST_STATE.seal(ring, BINDING, state, NOW + 1) ?? '';
          expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW)).toBe(state);
        }),
      );
    });

    test('[T-09, MCP-25] does not open late, nor under any other binding', () => {
      const sealed = REQUEST_STATE.seal(ring, BINDING, 'state', NOW + 1) ?? '';
      expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW)).toBe('state');
      expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW + 1)).toBeUndefined();
      for (const at of BINDING.keys())
        expect(REQUEST_STATE.open(ring, BINDING.with(at, 'other'), sealed, NOW)).toBeUndefined();
    });

    test('[T-09] is no other kind of sealed value, and has a longest length', () => {
      const session = { version: '2025-11-25', target: NO_SESSION_ID, stripped: [] };
      const sealed = SESSION_ID.seal(ring, BINDING, session, NOW + 1);
      expect(REQUEST_STATE.open(ring, BINDING, sealed, NOW)).toBeUndefined();
      for (const character of ['\u{10000}', 'x', '\u0001', '\ud800']) {
        const longest = character.repeat(MAX_STATE_CHARS / character.length);
        const kept = REQUEST_STATE.seal(ring, BINDING, longest, NOW + 1) ?? '';
        expect(REQUEST_STATE.open(ring, BINDING, kept, NOW)).toBe(longest);
        expect(REQUEST_STATE.seal(ring, BINDING, `${longest}x`, NOW + 1)).toBeUndefined();
      }
    });
  });
});

describe('sealed cursor', () => {
  const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
  const BINDING = ['all', 'i', 's', 'c', 'tools/list'];

  describe('[MRG-13] a cursor over members', () => {
    it('opens to what was sealed, the empty text too', () => {
      const cursors = fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 16 });
      fc.assert(
        fc.property(cursors, (entries) => {
          const given = new Map(entries);
          const sealed = LIST_CURSOR.seal(ring, BINDING, given, 100);
          expect(LIST_CURSOR.open(ring, BINDING, sealed, 99)).toEqual(given);
        }),
      );
    });

    it('opens for nobody else, nowhere else and not for ever', () => {
      const sealed = LIST_CURSOR.seal(ring, BINDING, new Map([['a', '']]), 100);
      for (const at of BINDING.keys()) expect(LIST_CURSOR.open(ring, BINDING.with(at, 'x'), sealed, 1)).toBeUndefined();
      expect(LIST_CURSOR.open(ring, BINDING, sealed, 100)).toBeUndefined();
      expect(LIST_CURSOR.open(ring, BINDING, `${sealed}A`, 1)).toBeUndefined();
      expect(LIST_CURSOR.open(ring, BINDING, '', 1)).toBeUndefined();
    });
  });
});

describe('sealed request id', () => {
  const ring = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
  const PLACE = ['old', 'https://issuer.example', 'alice', 'app', 'hash-of-one'];
  const SENT: SentRequestFacts = {
    id: 1,
    method: 'tools/call',
    target: { kind: 'tool', name: 'echo' },
    maxResultBytes: 1000,
    profiles: ['strict'],
    allowedServerRequests: ['sampling'],
    sentAt: 1234,
  };
  const LATER = 10_000;

  describe('the id of a request to a server of HTTP+SSE', () => {
    it('[V-12] holds the plan of its answer, whole', () => {
      for (const sent of [
        SENT,
        { ...SENT, id: '1', maxResultBytes: undefined, profiles: [] },
        { ...SENT, method: 'resources/read', target: { kind: 'resource', uri: 'a://b' } as const },
        {
          ...SENT,
          method: 'tools/list',
          target: { kind: 'none' } as const,
          allowedServerRequests: [],
        },
      ]) {
        const sealed = LEGACY_REQUEST_ID.seal(ring, PLACE, sent, LATER) ?? '';
        expect(LEGACY_REQUEST_ID.open(ring, PLACE, sealed, 0)).toEqual(sent);
      }
    });

    it('[V-13] opens for its caller, upstream and session alone, in its time, for its purpose', () => {
      const sealed = LEGACY_REQUEST_ID.seal(ring, PLACE, SENT, LATER) ?? '';
      for (const at of PLACE.keys())
        expect(LEGACY_REQUEST_ID.open(ring, PLACE.with(at, 'other'), sealed, 0)).toBeUndefined();
      expect(LEGACY_REQUEST_ID.open(ring, PLACE, sealed, LATER + 1)).toBeUndefined();
      expect(LEGACY_REQUEST_ID.open(ring, PLACE, `${sealed}A`, 0)).toBeUndefined();
      expect(SERVER_REQUEST_ID.open(ring, PLACE, sealed, 0)).toBeUndefined();
    });

    it('[V-12] opens whenever it is made, whatever its characters', () => {
      for (const length of [2_000, 5_000, 7_900]) {
        const sealed = LEGACY_REQUEST_ID.seal(ring, PLACE, { ...SENT, id: '語'.repeat(length) }, LATER);
        const opened = sealed && LEGACY_REQUEST_ID.open(ring, PLACE, sealed, 0);
        expect([length, sealed === undefined]).toEqual([length, opened === undefined]);
      }
    });

    it('[V-12] is not made where it would grow too long', () => {
      expect(LEGACY_REQUEST_ID.seal(ring, PLACE, { ...SENT, id: 'x'.repeat(10_000) }, LATER)).toBeUndefined();
    });
  });
});
