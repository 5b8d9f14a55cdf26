import { createHmac as createNodeHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHmac } from '../../../src/state/keys.js';

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
