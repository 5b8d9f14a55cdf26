// The keys that the gateway derives from its own: one for each purpose, by HKDF-SHA-256 (RFC 5869). The first gateway
// key seals, hashes and signs; all of them open and verify, so that keys can be rotated. A purpose is part of the
// derivation, so a key made for one purpose never serves another. Derived keys are cached, which is safe because
// purposes are constants of the code, never input.

import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  sign,
} from 'node:crypto';
import type { GatewayKey } from '../config/settings.js';

/** Length of a gateway key, in bytes. */
const GATEWAY_KEY_BYTES = 32;

/** Length of the tag by which a sealed value names its key, in bytes. */
export const KEY_TAG_BYTES = 8;

/** INVARIANT: `keys public` derives the same key; the key that it prints verifies the gateway's checkpoints. */
const SIGNING_PURPOSE = 'signing';
/** INVARIANT: upstreams trust what this key signs; it signs nothing but assertions. */
const ASSERTION_PURPOSE = 'assertion';
const TAG_PURPOSE = 'key-tag';

/** DER of a PKCS #8 Ed25519 private key up to its 32-byte seed (RFC 8410 §7). */
const ED25519_PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** Purposes of the keyed digests in audit events; `audit hash` finds a value by each of them. */
export const DIGEST_PURPOSES = ['token-id', 'arguments', 'result', 'session'] as const;

/** A key for authenticated encryption, with the tag that names it. */
type SealingKey = { readonly tag: Buffer; readonly key: KeyObject };

/** The public half of a signing key: raw 32 bytes as base64url. */
export type PublicKey = { readonly keyId: string; readonly publicKey: string };

/** A detached Ed25519 signature (RFC 8032), base64url. */
type Signature = { readonly keyId: string; readonly signature: string };

/** The derived keys of a set of gateway keys. */
export interface KeyRing {
  /** The key that seals for this purpose. */
  sealingKey(purpose: string): SealingKey;
  /** The key with that tag, or `undefined` when no gateway key has it. */
  openingKey(purpose: string, tag: Uint8Array): SealingKey | undefined;
  /** Keyed digest under the first key: HMAC-SHA-256, base64url. */
  hmac(purpose: string, bytes: Uint8Array | string): string;
  /** Keyed digests under every key, in the order of the configuration: for finding a known value. */
  hmacAll(purpose: string, bytes: Uint8Array | string): readonly [string, ...string[]];
  /** Keyed digest under the key with that tag; `undefined` when no gateway key has it. */
  hmacUnder(tag: Uint8Array, purpose: string, bytes: Uint8Array | string): string | undefined;
  /** Signs with the first key. */
  sign(bytes: Uint8Array): Signature;
  /** Signs an assertion with the first gateway key's assertion key. */
  signAssertion(bytes: Uint8Array): Signature;
  /** Public halves of all signing keys, in the order of the configuration. */
  publicKeys(): readonly PublicKey[];
  /** Public halves of the assertion keys, in the same order. */
  assertionKeys(): readonly PublicKey[];
}

type SigningPair = PublicKey & { readonly privateKey: KeyObject };

type DerivedKey = {
  readonly id: string;
  readonly tag: Buffer;
  readonly signing: SigningPair;
  readonly assertion: SigningPair;
  /** By purpose. */
  readonly derived: Map<string, KeyObject>;
  readonly bytes: Uint8Array;
};

function derive(bytes: Uint8Array, purpose: string, length: number): Buffer {
  return Buffer.from(hkdfSync('sha256', bytes, '', `sallyport/1 ${purpose}`, length));
}

function derivePair(bytes: Uint8Array, purpose: string, keyId: string): SigningPair {
  const seed = derive(bytes, purpose, 32);
  const privateKey = createPrivateKey({
    key: Buffer.concat([ED25519_PKCS8_PREFIX, seed]),
    format: 'der',
    type: 'pkcs8',
  });
  const publicKey = createPublicKey(privateKey).export({ format: 'jwk' }).x ?? '';
  return { keyId, publicKey, privateKey };
}

function signWith({ keyId, privateKey }: SigningPair, bytes: Uint8Array): Signature {
  return { keyId, signature: sign(null, bytes, privateKey).toString('base64url') };
}

function publicHalf({ keyId, publicKey }: SigningPair): PublicKey {
  return { keyId, publicKey };
}

function deriveKey(key: GatewayKey): DerivedKey {
  return {
    id: key.id,
    tag: derive(key.bytes, TAG_PURPOSE, KEY_TAG_BYTES),
    signing: derivePair(key.bytes, SIGNING_PURPOSE, key.id),
    assertion: derivePair(key.bytes, ASSERTION_PURPOSE, `${key.id}.assertion`),
    derived: new Map(),
    bytes: key.bytes,
  };
}

/** The key derived for `purpose`, made once. */
function keyFor({ derived, bytes }: DerivedKey, purpose: string): KeyObject {
  const known = derived.get(purpose);
  if (known !== undefined) return known;
  const made = createSecretKey(derive(bytes, purpose, 32));
  derived.set(purpose, made);
  return made;
}

function sealingKeyOf(key: DerivedKey, purpose: string): SealingKey {
  return { tag: key.tag, key: keyFor(key, `seal/${purpose}`) };
}

function digest(key: DerivedKey, purpose: string, bytes: Uint8Array | string): string {
  return createHmac('sha256', keyFor(key, `hmac/${purpose}`))
    .update(bytes)
    .digest('base64url');
}

/**
 * Derives the ring. Purposes must be constants of the code, because derived keys are cached.
 * @throws RangeError when there is no key or one is not 32 bytes: a bug of the caller, because settings are checked
 * before.
 */
export function createKeyRing(keys: readonly GatewayKey[]): KeyRing {
  const derived = keys.map((key) => {
    if (key.bytes.length !== GATEWAY_KEY_BYTES) throw new RangeError('gateway keys are 32 bytes');
    return deriveKey(key);
  });
  const first = derived[0];
  if (first === undefined) throw new RangeError('a key ring needs a key');
  const keyOf = (tag: Uint8Array): DerivedKey | undefined =>
    derived.find((key) => key.tag.equals(tag));
  return {
    sealingKey: (purpose) => sealingKeyOf(first, purpose),
    openingKey(purpose, tag) {
      const key = keyOf(tag);
      return key && sealingKeyOf(key, purpose);
    },
    hmacUnder(tag, purpose, bytes) {
      const key = keyOf(tag);
      return key && digest(key, purpose, bytes);
    },
    hmac: (purpose, bytes) => digest(first, purpose, bytes),
    hmacAll: (purpose, bytes) => [
      digest(first, purpose, bytes),
      ...derived.slice(1).map((key) => digest(key, purpose, bytes)),
    ],
    sign: (bytes) => signWith(first.signing, bytes),
    signAssertion: (bytes) => signWith(first.assertion, bytes),
    publicKeys: () => derived.map(({ signing }) => publicHalf(signing)),
    assertionKeys: () => derived.map(({ assertion }) => publicHalf(assertion)),
  };
}
