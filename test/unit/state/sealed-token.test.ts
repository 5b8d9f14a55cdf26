import { createHash, createPublicKey, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { publicKeyInfoOf, readKeyText } from '../../../src/config/keys.js';
import type { GatewayKey } from '../../../src/config/settings.js';
import {
  NO_SESSION_ID,
  type SessionFacts,
  type SessionTarget,
} from '../../../src/protocol/admitted-request.js';
import { createKeyRing, DIGEST_PURPOSES } from '../../../src/state/keys.js';
import { MAX_SEALED_CHARACTERS, open, SESSION_ID, seal } from '../../../src/state/sealed-token.js';

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
    expect(SESSION_ID.open(ring, alice, SESSION_ID.seal(ring, alice, without, LATER), NOW)).toEqual(
      without,
    );
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
    expect(SESSION_ID.open(ring, alice, SESSION_ID.seal(ring, alice, shows, LATER), NOW)).toEqual(
      shows,
    );
    const plain = { ...session, apps: false };
    expect(SESSION_ID.open(ring, alice, SESSION_ID.seal(ring, alice, plain, LATER), NOW)).toEqual(
      session,
    );
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
