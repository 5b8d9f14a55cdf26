// The keys of people who sign lock files: Ed25519, or ECDSA with P-256 or P-384, as PEM or as a JSON Web Key. A key is
// known by its RFC 7638 thumbprint, which is the same for every encoding of the key. Never writes, prints or quotes a
// private key. RFC 8410, RFC 5480 (keys), RFC 7517, RFC 7638.

import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { readPrivateKey } from './keys.js';

export type PublicSignerKey = {
  /** RFC 7638 thumbprint, SHA-256 in base64url. */
  readonly keyId: string;
  /** SubjectPublicKeyInfo, PEM. */
  readonly publicKey: string;
};

const CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1']);
const EXPECTED = 'expected Ed25519, or ECDSA with P-256 or P-384';

type KeyReading<Key> =
  | { readonly ok: true; readonly key: Key }
  | { readonly ok: false; readonly why: string };

/** Reads a public key, or says what is wrong, as the predicate of a sentence about its source. */
export function readPublicSignerKey(text: string): KeyReading<PublicSignerKey> {
  // Node would take the public part of a private key, which then stands on a machine where it must not be.
  if (readPrivateKey(text) !== undefined) {
    return { ok: false, why: 'holds a private key; name the file of its public key' };
  }
  const key = readPublic(text);
  if (key === undefined) {
    return { ok: false, why: 'holds no public key: expected PEM (PUBLIC KEY), or a JSON Web Key' };
  }
  return isSignerKey(key) ? { ok: true, key: publicPartOf(key) } : wrongKind();
}

/** Reads a private key, or says what is wrong, as the predicate of a sentence about its source. */
export function readPrivateSignerKey(text: string): KeyReading<KeyObject> {
  const key = readPrivateKey(text);
  if (key !== undefined) return isSignerKey(key) ? { ok: true, key } : wrongKind();
  return {
    ok: false,
    why: 'holds no private key: expected PKCS #8 in PEM, or a JSON Web Key',
  };
}

function wrongKind(): { readonly ok: false; readonly why: string } {
  return { ok: false, why: `holds a key of another kind: ${EXPECTED}` };
}

function isJwk(text: string): boolean {
  return text.trimStart().startsWith('{');
}

function readPublic(text: string): KeyObject | undefined {
  if (!isJwk(text) && !text.includes('-----BEGIN PUBLIC KEY-----')) return undefined;
  try {
    return createPublicKey(isJwk(text) ? { key: JSON.parse(text), format: 'jwk' } : text);
  } catch {
    return undefined;
  }
}

function isSignerKey({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): boolean {
  if (asymmetricKeyType === 'ed25519') return true;
  return asymmetricKeyType === 'ec' && CURVES.has(asymmetricKeyDetails?.namedCurve ?? '');
}

/** The public part of a key of either kind. */
export function publicPartOf(key: KeyObject): PublicSignerKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  const { crv, kty, x, y } = publicKey.export({ format: 'jwk' });
  // The members of the thumbprint in lexicographic order, without those that the key does not have (RFC 7638 §3.2).
  const members = JSON.stringify({ crv, kty, x, y });
  const keyId = createHash('sha256').update(members).digest('base64url');
  return { keyId, publicKey: publicKey.export({ format: 'pem', type: 'spki' }).toString() };
}
