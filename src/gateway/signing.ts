// What the gateway signs for others with, and the keys that they verify it by: every key of the ring is
// published, so that keys are rotated by putting the new one first (contract §3, `keys`).

import type { KeyRing, PublicKey } from '../state/key-ring.js';
import type { AssertionSigner } from '../upstream/assertion.js';

/** Signs assertions with the first key. */
export function assertionSigner(ring: KeyRing): AssertionSigner {
  return {
    keyId: ring.assertionKeys()[0]?.keyId ?? '',
    sign: (bytes) => ring.signAssertion(bytes).signature,
  };
}

/** Keys of checkpoints and of assertions, each under its own id. */
export function publishedKeys(ring: KeyRing): readonly PublicKey[] {
  return [...ring.publicKeys(), ...ring.assertionKeys()];
}
