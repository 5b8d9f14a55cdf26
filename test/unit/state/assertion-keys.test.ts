// The keys that sign assertions: apart from all others, and rotated with the gateway's own.

import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { KeyRing } from '../../../src/state/keys.js';
import { createKeyRing, type PublicKey } from '../../../src/state/keys.js';

const OLD = { id: 'old', bytes: new Uint8Array(32).fill(1) };
const NEW = { id: 'new', bytes: new Uint8Array(32).fill(2) };
const TEXT = Buffer.from('head.claims');

function isSignedBy({ publicKey }: PublicKey, signature: string): boolean {
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
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
