// The keys that the gateway derives from its own: one for each purpose, by HKDF-SHA-256 (RFC 5869). The first gateway
// key seals, hashes and signs; all of them open and verify, so that keys can be rotated. A purpose is part of the
// derivation, so a key made for one purpose never serves another. Derived keys are cached, which is safe because
// purposes are constants of the code, never input.

import {
  createHmac as createNodeHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  sign,
} from 'node:crypto';
import type { GatewayKey } from '../config/settings.js';

/** The keyed digest of bytes or of text in UTF-8, as base64url. */
type Hmac = (bytes: Uint8Array | string) => string;

/** Sizes of SHA-256, in bytes. */
const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/** Longer texts are not copied; a character of text may take three bytes. */
const MAX_COPIED_BYTES = 16 * 1024;
const MAX_BYTES_A_CHAR = 3;

/**
 * HMAC-SHA-256 with one key of at most 64 bytes, for many short texts: two one-shot hashes over kept buffers take a
 * third of the time of an object per digest. Longer texts use node:crypto's HMAC. Hashed text is erased. RFC 2104 §2;
 * FIPS 198-1.
 */
export function createHmac(key: Uint8Array): Hmac {
  const secret = createSecretKey(key);
  const inner = Buffer.alloc(BLOCK_BYTES + MAX_COPIED_BYTES);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);
  for (let at = 0; at < BLOCK_BYTES; at++) {
    inner[at] = (key[at] ?? 0) ^ INNER_PAD;
    outer[at] = (key[at] ?? 0) ^ OUTER_PAD;
  }

  function copy(bytes: Uint8Array | string): number {
    if (typeof bytes === 'string') return inner.write(bytes, BLOCK_BYTES);
    inner.set(bytes, BLOCK_BYTES);
    return bytes.byteLength;
  }

  return (bytes) => {
    const maxBytes = typeof bytes === 'string' ? bytes.length * MAX_BYTES_A_CHAR : bytes.byteLength;
    if (maxBytes > MAX_COPIED_BYTES) {
      return createNodeHmac('sha256', secret).update(bytes).digest('base64url');
    }
    const length = copy(bytes);
    const once = hash('sha256', inner.subarray(0, BLOCK_BYTES + length), 'binary');
    inner.fill(0, BLOCK_BYTES, BLOCK_BYTES + length);
    outer.write(once, BLOCK_BYTES, 'binary');
    return hash('sha256', outer, 'base64url');
  };
}

/** Headers by which the receiver of a message knows who sent it (Standard Webhooks). */
export type WebhookSigner = (id: string, body: string, nowMs: number) => Readonly<Record<string, string>>;

/** Signs messages with a key that both sides have: HMAC-SHA-256 as base64. */
export function webhookSigner(key: Uint8Array): WebhookSigner {
  const hmac = createHmac(key);
  return (id, body, nowMs) => {
    const timestamp = String(Math.floor(nowMs / MS_PER_SECOND));
    const digest = Buffer.from(hmac(`${id}.${timestamp}.${body}`), 'base64url').toString('base64');
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${digest}` };
  };
}
const MS_PER_SECOND = 1_000;

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
  readonly sealing: Map<string, SealingKey>;
  readonly hashing: Map<string, Hmac>;
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
    sealing: new Map(),
    hashing: new Map(),
    bytes: key.bytes,
  };
}

function sealingKeyOf(key: DerivedKey, purpose: string): SealingKey {
  const cached = key.sealing.get(purpose);
  if (cached !== undefined) return cached;
  const created = {
    tag: key.tag,
    key: createSecretKey(derive(key.bytes, `seal/${purpose}`, 32)),
  };
  key.sealing.set(purpose, created);
  return created;
}

function hashingKeyOf(key: DerivedKey, purpose: string): Hmac {
  const cached = key.hashing.get(purpose);
  if (cached !== undefined) return cached;
  const made = createHmac(derive(key.bytes, `hmac/${purpose}`, 32));
  key.hashing.set(purpose, made);
  return made;
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
  const keyOf = (tag: Uint8Array): DerivedKey | undefined => derived.find((key) => key.tag.equals(tag));
  return {
    sealingKey: (purpose) => sealingKeyOf(first, purpose),
    openingKey(purpose, tag) {
      const key = keyOf(tag);
      return key && sealingKeyOf(key, purpose);
    },
    hmacUnder(tag, purpose, bytes) {
      const key = keyOf(tag);
      return key && hashingKeyOf(key, purpose)(bytes);
    },
    hmac: (purpose, bytes) => hashingKeyOf(first, purpose)(bytes),
    hmacAll: (purpose, bytes) => [
      hashingKeyOf(first, purpose)(bytes),
      ...derived.slice(1).map((key) => hashingKeyOf(key, purpose)(bytes)),
    ],
    sign: (bytes) => signWith(first.signing, bytes),
    signAssertion: (bytes) => signWith(first.assertion, bytes),
    publicKeys: () => derived.map(({ signing }) => publicHalf(signing)),
    assertionKeys: () => derived.map(({ assertion }) => publicHalf(assertion)),
  };
}
