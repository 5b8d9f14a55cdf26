import { createHash, createPublicKey, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { publicKeyInfoOf, readKeyText } from '../../../src/config/key-material.js';
import type { GatewayKey } from '../../../src/config/settings.js';
import { createReplyClaims } from '../../../src/gateway/ports.js';
import type { Principal } from '../../../src/policy/principal.js';
import {
  NO_SESSION_ID,
  type SentRequestFacts,
  type SessionFacts,
  type SessionTarget,
} from '../../../src/protocol/admitted-request.js';
import { createKeyRing, DIGEST_PURPOSES } from '../../../src/state/derived-keys.js';
import { createMemoryReplays } from '../../../src/state/memory.js';
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
  TASK_ID,
  UPSTREAM_CURSOR,
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

/** A kind as a gateway seals and opens it at a time. */
const at = <Kind>(kind: (keys: typeof ring, now: () => number) => Kind, nowMs = NOW): Kind => kind(ring, () => nowMs);
const ALICE = { issuerUrl: 'https://idp.example', subject: 'alice', client: 'cli' };
const SESSION: SessionFacts = {
  version: '2025-11-25',
  target: { kind: 'upstream', id: 'abc' },
  allowedServerRequests: ['sampling', 'elicitation/url'],
};

type Changes = Partial<
  typeof ALICE & { upstream: string; hash: string; method: string; target: string; params: string }
>;

/** Everything that a kind may be bound to. */
function scopeOf({
  upstream = 'github',
  hash = 'hash-1',
  method = 'm',
  target = 't',
  params = '{}',
  ...who
}: Changes = {}) {
  const principal = { ...ALICE, ...who } as Principal;
  return { upstream, principal, session: { ...SESSION, hash }, method, target, params };
}

const REQUEST = {
  id: '7',
  method: 'tools/call',
  target: { kind: 'tool', name: 'read' },
  maxResultBytes: 10,
  profiles: ['strict'],
} as const;
const [HOUR, DAY] = [60 * 60 * 1000, 24 * 60 * 60 * 1000];
const CALLER: readonly Changes[] = [
  { upstream: 'jira' },
  { issuerUrl: 'https://idp.example/' },
  { subject: 'mallory' },
  { client: 'other' },
  { subject: 'cli', client: 'alice' },
];
const IN_SESSION: readonly Changes[] = [...CALLER, { hash: 'hash-2' }];

type Kind = (
  keys: typeof ring,
  now: () => number,
) => {
  seal(payload: unknown, scope: ReturnType<typeof scopeOf>): string | undefined;
  open(sealed: string, scope: ReturnType<typeof scopeOf>): unknown;
};
type Row = readonly [id: string, kind: Kind, payload: unknown, ttlMs: number, others: readonly Changes[]];
const KINDS = [
  ...[SESSION_ID, SERVER_REQUEST_ID, EVENT_ID, LEGACY_REQUEST_ID],
  ...[REQUEST_STATE, LIST_CURSOR, UPSTREAM_CURSOR, TASK_ID],
] as readonly Kind[];

describe.each([
  ['S-07', SESSION_ID, SESSION, DAY, CALLER],
  ['Q-07', SERVER_REQUEST_ID, { id: 0, method: 'roots/list', name: 'roots' }, 2 * HOUR, IN_SESSION],
  ['Q-11', EVENT_ID, { upstreamId: 'stream/1 two', request: REQUEST }, DAY, IN_SESSION],
  ['V-13', LEGACY_REQUEST_ID, { ...REQUEST, allowedServerRequests: ['sampling'], sentAt: 1234 }, DAY, IN_SESSION],
  ['T-09', REQUEST_STATE, 'state', HOUR / 4, [...CALLER, { method: 'x' }, { target: 'x' }, { params: '[]' }]],
  ['MRG-13', LIST_CURSOR, new Map([['a', '']]), HOUR, [...CALLER, { method: 'x' }]],
  ['L-14', UPSTREAM_CURSOR, 'c', 2 ** 48 - 1 - NOW, [{ upstream: 'jira' }, { method: 'x' }]],
  ['TSK-01', TASK_ID, { id: 't', era: '2026', tool: 'read', maxResultBytes: 1, profiles: [] }, 7 * DAY, CALLER],
] as readonly Row[])('[%s] what is sealed of a kind', (_id, kind, payload, ttlMs, others) => {
  const sealed = at(kind).seal(payload, scopeOf()) ?? '';

  it('opens for its own scope until it expires, and for no other', () => {
    expect(at(kind, NOW + ttlMs - 1).open(sealed, scopeOf())).toEqual(payload);
    expect(at(kind, NOW + ttlMs).open(sealed, scopeOf())).toBeUndefined();
    for (const other of others) expect(at(kind).open(sealed, scopeOf(other))).toBeUndefined();
    for (const text of [`${sealed}A`, '']) expect(at(kind).open(text, scopeOf())).toBeUndefined();
  });

  it('is of no other kind', () => {
    const opened = KINDS.filter((other) => at(other).open(sealed, scopeOf()) !== undefined);
    expect(opened).toEqual([kind]);
  });
});

describe('what clients and servers carry', () => {
  const sameKey = createKeyRing([{ id: 'one', bytes: new Uint8Array(32).fill(7) }]);
  const ADA = { upstream: 'up', subject: 'ada', client: 'desk', hash: 'hash' };
  const read = { id: 1, method: 'tools/call', target: { kind: 'tool', name: 'read' }, maxResultBytes: 10 };

  it.each([
    [
      SESSION_ID,
      { version: 'v', target: { kind: 'aggregate', sessions: new Map([['a', 'b']]) } },
      [
        'AVkf0QzB9_Xx________WWvHvZAGVDiwQbE7V5MhKyboLUcg7qAjjyITCVqFT7Uh8V_K5UYGowTTX7ox',
        'ylyrb7p7r623Fbm2JCi7BRb45aU0mUoyFBozR3mt-k6ZVD4SVpKAVFO3_wJOJc8QhyKW',
      ].join(''),
    ],
    [
      SERVER_REQUEST_ID,
      { id: 0, method: 'roots/list', name: 'roots' },
      [
        'AVkf0QzB9_Xx________UgJhahWbeWgIOi07nVGgBghwWo9YRgX28BMxBUa43xEXeMRXVHWnW3BVb6a2',
        'wrXN5xzCmgWypgGhKy7qH29M_2iMiEY9n2nxdw',
      ].join(''),
    ],
    [
      EVENT_ID,
      { upstreamId: 'u' },
      ['AVkf0QzB9_Xx________bEphNMx5sd_4p46jzDDw0Tzfs_iG3q3GRJbmPy5cwQAWozJ4-oP7QkRkwjeP', 'uQ'].join(''),
    ],
    [
      LEGACY_REQUEST_ID,
      { ...read, profiles: ['strict'], allowedServerRequests: [], sentAt: 1 },
      [
        'AVkf0QzB9_Xx________8f7oAHwgjcq-icY4jIVlFGMWURseditEznJo4iKd2wkx68SnwysQvEuUuQqP',
        '4pvUPvOw1w2MyiuAUoQwPh6Zem2jW6aD_QvWVfzSJ8EIAH1qazMpoHCNJggXo-jlfwZ1oSGdHn9m5MV4',
        'vsREDnoBSpfAnLcot4Ew_MSuXPD9ZPZcIaggqw0Qj8xpe2D-aAVTrCuN6Y9z-D8KCS-fXU4eYJ7VGAhY',
        '44rRahuFBstV5i95',
      ].join(''),
    ],
    [REQUEST_STATE, 'state', ['AVkf0QzB9_Xx________yArZsnlHlOfsuB2VinVxeyusBGgLk8b7w3m9VMPRsyiDorM'].join('')],
    [UPSTREAM_CURSOR, 'c', ['AVkf0QzB9_Xx________RUN_ZRuyHdtTdQ0L6TheGhaROakwszVbMAdndtEPpw'].join('')],
    [
      LIST_CURSOR,
      new Map([['a', 'b']]),
      ['AVkf0QzB9_Xx________rHvPd68FelrTneqmJwricnVkweZTzTH_Z2V02YaIipwFpmyN1kkC'].join(''),
    ],
    [
      TASK_ID,
      { id: 't', era: '2026', tool: 'read', maxResultBytes: 10, profiles: [] },
      [
        'AVkf0QzB9_Xx________sTHNIBJlt6FS4X8dykNi6Bu7mSFMEvXMlurV4fmkGdDoYOIOTFOj2Fg_cnMt',
        'gT4v-eZib6n-VUXXXAcxG-pqtmhuKehhQ50d0kAwojQGTYeIKUrg3xYfFSQ8oBCEev0AJcYy',
      ].join(''),
    ],
  ] as readonly (readonly [Kind, unknown, string])[])(
    '[S-07] opens as an earlier version sealed it: %#',
    (kind, payload, sealed) => {
      const lists = kind === UPSTREAM_CURSOR || kind === LIST_CURSOR;
      const about = lists ? { method: 'tools/list' } : { method: 'tools/call', target: 'read' };
      expect(kind(sameKey, () => NOW).open(sealed, scopeOf({ ...ADA, ...about }))).toEqual(payload);
    },
  );
});

describe('the id of a session', () => {
  const reopened = (session: SessionFacts) => at(SESSION_ID).open(at(SESSION_ID).seal(session, scopeOf()), scopeOf());

  it.each<SessionTarget>([
    NO_SESSION_ID,
    { kind: 'upstream', id: 'gateway' },
    { kind: 'upstream', id: '["gateway"]' },
    { kind: 'gateway' },
    { kind: 'legacy-sse', messageEndpoint: '/message?sessionId=1' },
    { kind: 'bridged' },
    { kind: 'aggregate', sessions: new Map([['left', 'sealed']]) },
  ])('[S-07] gives back how the session reaches its upstream: $kind', (target) => {
    expect(reopened({ ...SESSION, target })).toEqual({ ...SESSION, target });
  });

  it('[APP-05] remembers whether its client shows apps', () => {
    expect(reopened({ ...SESSION, apps: true })).toEqual({ ...SESSION, apps: true });
    expect(reopened({ ...SESSION, apps: false })).toEqual(SESSION);
  });
});

describe('the id of an event', () => {
  const ids = at(EVENT_ID);

  test('[Q-11] is not given where it would not fit a header', () => {
    expect(ids.seal({ upstreamId: 'x'.repeat(5000), request: REQUEST }, scopeOf())).toBe(undefined);
  });

  test('[Q-11] carries every kind of target and nothing else opens', () => {
    const target = fc.oneof(
      fc.record({ kind: fc.constantFrom('tool' as const, 'prompt' as const), name: fc.string() }),
      fc.record({ kind: fc.constant('resource' as const), uri: fc.string() }),
      fc.record({ kind: fc.constant('template' as const), uriTemplate: fc.string() }),
      fc.constant({ kind: 'none' } as const),
    );
    fc.assert(
      fc.property(target, fc.string({ maxLength: 200 }), (asked, noise) => {
        const event = { upstreamId: 'u', request: { ...REQUEST, maxResultBytes: undefined, target: asked } };
        expect(ids.open(ids.seal(event, scopeOf()) ?? '', scopeOf())).toEqual(event);
        expect(ids.open(noise, scopeOf())).toBeUndefined();
      }),
    );
    const plain = { upstreamId: 'x', request: undefined };
    expect(ids.open(ids.seal(plain, scopeOf()) ?? '', scopeOf())).toEqual(plain);
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

describe('[T-09] request state', () => {
  const states = at(REQUEST_STATE);

  test('opens to the same bytes, whatever they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 500 }), (state) => {
        expect(states.open(states.seal(state, scopeOf()) ?? '', scopeOf())).toBe(state);
      }),
    );
  });

  test('has a longest length', () => {
    for (const character of ['\u{10000}', 'x', '\u0001', '\ud800']) {
      const longest = character.repeat(MAX_STATE_CHARS / character.length);
      expect(states.open(states.seal(longest, scopeOf()) ?? '', scopeOf())).toBe(longest);
      expect(states.seal(`${longest}x`, scopeOf())).toBeUndefined();
    }
  });
});

test('[MRG-13] a cursor over members opens to what was sealed, the empty text too', () => {
  const cursors = at(LIST_CURSOR);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 16 }), (entries) => {
      const given = new Map(entries);
      expect(cursors.open(cursors.seal(given, scopeOf()), scopeOf())).toEqual(given);
    }),
  );
});

describe('[V-12] the id of a request to a server of HTTP+SSE', () => {
  const ids = at(LEGACY_REQUEST_ID);
  const SENT: SentRequestFacts = { ...REQUEST, allowedServerRequests: ['sampling'], sentAt: 1234 };

  it('holds the plan of its answer, whole', () => {
    for (const sent of [
      { ...SENT, id: '1', maxResultBytes: undefined, profiles: [] },
      { ...SENT, method: 'resources/read', target: { kind: 'resource', uri: 'a://b' } as const },
      { ...SENT, method: 'tools/list', target: { kind: 'none' } as const, allowedServerRequests: [] },
    ])
      expect(ids.open(ids.seal(sent, scopeOf()) ?? '', scopeOf())).toEqual(sent);
  });

  it('opens whenever it is made, whatever its characters', () => {
    for (const length of [2_000, 5_000, 7_900, 10_000]) {
      const sealed = ids.seal({ ...SENT, id: '語'.repeat(length) }, scopeOf());
      const opened = sealed && ids.open(sealed, scopeOf());
      expect([length, sealed === undefined]).toEqual([length, opened === undefined]);
    }
    expect(ids.seal({ ...SENT, id: 'x'.repeat(10_000) }, scopeOf())).toBeUndefined();
  });
});
