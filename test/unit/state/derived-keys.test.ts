import { createHmac as createNodeHmac, createPublicKey, randomBytes, verify } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHmac, createKeyRing, type KeyRing, type PublicKey } from '../../../src/state/derived-keys.js';

describe('hmac', () => {
  describe('createHmac', () => {
    it('law: is HMAC-SHA-256 (RFC 2104), whatever the key, the text and what was hashed before', () => {
      const text = fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 200 }),
        fc.uint8Array({ maxLength: 300 }),
        fc.nat({ max: 40_000 }).map((length) => 'x'.repeat(length)),
        fc.constantFrom(16_383, 16_384, 16_385).map((length) => new Uint8Array(length)),
      );
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 1, maxLength: 64 }), fc.array(text), (key, texts) => {
          const hmac = createHmac(key);
          for (const one of texts) {
            const expected = createNodeHmac('sha256', key).update(one).digest('base64url');
            expect(hmac(one)).toBe(expected);
          }
        }),
      );
    });

    it('tells keys apart', () => {
      expect(createHmac(randomBytes(32))('a')).not.toBe(createHmac(randomBytes(32))('a'));
    });
  });
});

// The keys that sign assertions: apart from all others, and rotated with the gateway's own.
describe('assertion keys', () => {
  const OLD = { id: 'old', bytes: new Uint8Array(32).fill(1) };
  const NEW = { id: 'new', bytes: new Uint8Array(32).fill(2) };
  const TEXT = Buffer.from('head.claims');

  function isSignedBy({ publicKey }: PublicKey, signature: string): boolean {
    const key = createPublicKey({
      key: { kty: 'OKP', crv: 'Ed25519', x: publicKey },
      format: 'jwk',
    });
    return verify(null, TEXT, key, Buffer.from(signature, 'base64url'));
  }

  function published(ring: KeyRing, keyId: string): PublicKey {
    const found = ring.assertionKeys().find((key) => key.keyId === keyId);
    if (found === undefined) throw new Error('not published');
    return found;
  }

  describe('[CRD-10] the keys of assertions', () => {
    it('are others than those of checkpoints, under other ids', () => {
      const ring = createKeyRing([NEW]);
      const { keyId, signature } = ring.signAssertion(TEXT);
      expect(isSignedBy(published(ring, keyId), signature)).toBe(true);
      const [checkpoint] = ring.publicKeys();
      expect(checkpoint?.keyId).not.toBe(keyId);
      expect(checkpoint && isSignedBy(checkpoint, signature)).toBe(false);
      expect(ring.sign(TEXT).signature).not.toBe(signature);
    });

    it('sign with the first, and are all published while they rotate', () => {
      const before = createKeyRing([OLD]).signAssertion(TEXT);
      const ring = createKeyRing([NEW, OLD]);
      const after = ring.signAssertion(TEXT);
      expect(after.keyId).not.toBe(before.keyId);
      for (const { keyId, signature } of [before, after])
        expect(isSignedBy(published(ring, keyId), signature)).toBe(true);
    });
  });
});
