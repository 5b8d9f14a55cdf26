// The keys of a run, what the gateway signs with them, and the public keys by which others verify it. Every key of the
// ring is published, so that keys are rotated by putting the new one first (docs/contract.md §3, `keys`).

import { randomBytes } from 'node:crypto';
import { KEY_BYTES, readKeyText, writeKeyText } from '../config/keys.js';
import type { GatewayKey, Settings } from '../config/settings.js';
import type { KeyRing, PublicKey } from '../state/keys.js';
import type { AssertionSigner } from '../upstream/credentials/credentials.js';

/**
 * The configured keys or, on loopback without any, one that is generated for the run and never stored (docs/contract.md
 * §3). Anywhere else the configuration check refuses missing keys. Returns at least one.
 */
export function keysOf({ keys }: Pick<Settings, 'keys'>): readonly GatewayKey[] {
  if (keys.length > 0) return keys;
  const newKey = readKeyText(writeKeyText(randomBytes(KEY_BYTES)));
  if (newKey === undefined) throw new Error('a key that was made cannot be read');
  return [newKey];
}

/** Signs assertions with the first key. */
export function assertionSigner(ring: KeyRing): AssertionSigner {
  return {
    keyId: ring.assertionKeys()[0]?.keyId ?? '',
    sign: (bytes) => ring.signAssertion(bytes).signature,
  };
}

/** The public keys for checkpoints and for assertions, each under its own id. */
export function publishedKeys(ring: KeyRing): readonly PublicKey[] {
  return [...ring.publicKeys(), ...ring.assertionKeys()];
}
