import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { publicKeyInfoOf, readKeyText, writeKeyText } from '../../../src/config/key-material.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';

const bytes = Uint8Array.from({ length: 32 }, (_, index) => index);

describe('[C-12] the gateway key', () => {
  it('is read from each of its spellings, as one key', () => {
    const buffer = Buffer.from(bytes);
    const texts = [
      writeKeyText(bytes),
      `${writeKeyText(bytes)}\n`,
      buffer.toString('hex'),
      buffer.toString('hex').toUpperCase(),
      buffer.toString('base64'),
      buffer.toString('base64url'),
    ];
    const keys = texts.map(readKeyText);
    for (const key of keys) expect(key).toEqual(keys[0]);
    expect(keys[0]?.bytes).toEqual(bytes);
    expect(writeKeyText(bytes)).toMatch(/^sallyport-key-1:[A-Za-z0-9_-]{43}$/);
  });

  it.each([
    ['nothing', ''],
    ['31 bytes', Buffer.alloc(31).toString('base64')],
    ['33 bytes', Buffer.alloc(33).toString('hex')],
    ['words', 'correct horse battery staple'],
    ['another version', writeKeyText(bytes).replace('key-1', 'key-2')],
    ['two lines', `${writeKeyText(bytes)}\n${writeKeyText(bytes)}`],
  ])('is not read from %s', (_, text) => expect(readKeyText(text)).toBeUndefined());

  it('has an id that follows from its public part alone', () => {
    const key = readKeyText(writeKeyText(bytes));
    if (key === undefined) throw new Error('no key');
    expect(key.id).toMatch(/^[0-9a-f]{16}$/);
    const part = publicKeyInfoOf(key);
    expect(part.text).toBe(`sallyport-public-1:${part.jwk.x}`);
    expect(part.jwk.kid).toBe(key.id);
    expect(JSON.stringify(part)).not.toContain(Buffer.from(bytes).toString('base64url'));
  });

  it('publishes what verifies the signatures of the gateway', () => {
    const key = readKeyText(writeKeyText(bytes));
    if (key === undefined) throw new Error('no key');
    const { keyId, signature } = createKeyRing([key]).sign(Buffer.from('checkpoint'));
    const { x } = publicKeyInfoOf(key).jwk;
    const open = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const signed = Buffer.from(signature, 'base64url');
    expect(verify(null, Buffer.from('checkpoint'), open, signed)).toBe(true);
    expect(keyId).toBe(key.id);
  });
});
