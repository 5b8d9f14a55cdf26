// The gateway's own keys (text form, id, public part), the keys of people who sign lock files, and checks on the
// private keys and certificates that a gateway file names. Never writes, prints or quotes a private key; the id and
// the public part of a key do not reveal it. HKDF-SHA256 (RFC 5869), Ed25519 (RFC 8032), public parts as JWK (RFC
// 8037 §2); RFC 5958, RFC 5480, RFC 8410 and RFC 7517 (keys), RFC 7638 (thumbprints), RFC 7518 §3.1 and RFC 8037
// (algorithms), RFC 7468 (PEM).

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  X509Certificate,
} from 'node:crypto';
import type { GatewayKey } from './settings.js';

export const KEY_BYTES = 32;
const KEY_PREFIX = 'sallyport-key-1:';
const PUBLIC_PREFIX = 'sallyport-public-1:';
const ID_BYTES = 8;
/** PKCS #8 wrapping of a raw Ed25519 seed (RFC 8410 §7). */
const PKCS8_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The text that `keys new` prints for 32 random bytes. */
export function writeKeyText(bytes: Uint8Array): string {
  return `${KEY_PREFIX}${Buffer.from(bytes).toString('base64url')}`;
}

/**
 * Reads a gateway key from the text that `keys new` printed, or from 32 bytes as hex, base64 or
 * base64url. Surrounding white space is ignored. `undefined` for any other text.
 */
export function readKeyText(text: string): GatewayKey | undefined {
  const bytes = readKeyBytes(text);
  return bytes && { id: keyIdOf(publicBytesOf(signingKeyOf(bytes))), bytes };
}

/** The bytes alone, without the id that is derived from them. */
export function readKeyBytes(text: string): Uint8Array | undefined {
  const trimmed = text.trim();
  return decodeKey(trimmed.startsWith(KEY_PREFIX) ? trimmed.slice(KEY_PREFIX.length) : trimmed);
}

/**
 * The configured gateway keys or, on loopback without any, one that is generated for the run and never stored
 * (docs/reference/configuration.md). Anywhere else the configuration check refuses missing keys. Returns at least one.
 */
export function gatewayKeys({ keys }: { readonly keys: readonly GatewayKey[] }): readonly GatewayKey[] {
  if (keys.length > 0) return keys;
  const newKey = readKeyText(writeKeyText(randomBytes(KEY_BYTES)));
  if (newKey === undefined) throw new Error('a key that was made cannot be read');
  return [newKey];
}

function decodeKey(body: string): Uint8Array | undefined {
  if (/^[0-9a-fA-F]{64}$/.test(body)) return new Uint8Array(Buffer.from(body, 'hex'));
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(body)) return undefined;
  const bytes = Buffer.from(body, 'base64url');
  return bytes.byteLength === KEY_BYTES ? new Uint8Array(bytes) : undefined;
}

/** INVARIANT: state/derived-keys.ts derives the same signing key. */
function signingKeyOf(bytes: Uint8Array): KeyObject {
  const seed = hkdfSync('sha256', bytes, '', 'sallyport/1 signing', KEY_BYTES);
  const der = Buffer.concat([PKCS8_ED25519, Buffer.from(seed)]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

function publicBytesOf(signing: KeyObject): Uint8Array {
  const jwk = createPublicKey(signing).export({ format: 'jwk' });
  return new Uint8Array(Buffer.from(jwk.x ?? '', 'base64url'));
}

function keyIdOf(publicBytes: Uint8Array): string {
  return createHash('sha256')
    .update(publicBytes)
    .digest('hex')
    .slice(0, ID_BYTES * 2);
}

type PublicKeyInfo = {
  readonly id: string;
  /** One line, in the form that `audit verify --key` accepts. */
  readonly text: string;
  readonly jwk: {
    readonly kty: 'OKP';
    readonly crv: 'Ed25519';
    readonly x: string;
    readonly kid: string;
    readonly use: 'sig';
    readonly alg: 'EdDSA';
  };
};

/** The public part of a gateway key. */
export function publicKeyInfoOf(key: GatewayKey): PublicKeyInfo {
  const x = Buffer.from(publicBytesOf(signingKeyOf(key.bytes))).toString('base64url');
  const jwk = { kty: 'OKP', crv: 'Ed25519', x, kid: key.id, use: 'sig', alg: 'EdDSA' } as const;
  return { id: key.id, text: `${PUBLIC_PREFIX}${x}`, jwk };
}

const MIN_RSA_BITS = 2048;
const NO_PRIVATE_KEY = 'holds no private key: expected PKCS #8 in PEM, or a JSON Web Key';
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

/** What is wrong with a key, as the predicate of a sentence about its source: for `private_key_jwt`, or `undefined`. */
export function findClientKeyError(text: string): string | undefined {
  const key = readPrivateKey(text);
  if (key === undefined) return NO_PRIVATE_KEY;
  return isSigningKey(key)
    ? undefined
    : 'holds a key that cannot sign: expected RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519';
}

/** The same for the key of a client certificate. */
export function findTlsKeyError(text: string): string | undefined {
  return readPem(text) === undefined ? 'holds no private key in PEM' : undefined;
}

/** The certificates of a PEM text; `undefined` if there is none or one cannot be read. */
export function readCertificates(text: string): readonly [X509Certificate, ...X509Certificate[]] | undefined {
  try {
    const [first, ...rest] = (text.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    return first === undefined ? undefined : [first, ...rest];
  } catch {
    return undefined;
  }
}

/** True if the private key belongs to the certificate. */
export function isKeyOf(key: string, certificate: X509Certificate): boolean {
  const read = readPem(key);
  return read !== undefined && certificate.checkPrivateKey(read);
}

/** A private key in PEM or as a JSON Web Key; `undefined` if the text is neither. */
function readPrivateKey(text: string): KeyObject | undefined {
  if (!isJwk(text)) return readPem(text);
  try {
    return createPrivateKey({ key: JSON.parse(text), format: 'jwk' });
  } catch {
    return undefined;
  }
}

function readPem(text: string): KeyObject | undefined {
  try {
    return createPrivateKey(text);
  } catch {
    return undefined;
  }
}

function isSigningKey({ asymmetricKeyType: kind, asymmetricKeyDetails: details }: KeyObject) {
  if (kind === 'ed25519') return true;
  if (kind === 'rsa') return (details?.modulusLength ?? 0) >= MIN_RSA_BITS;
  return kind === 'ec' && CURVES.has(details?.namedCurve ?? '');
}

export type PublicSignerKey = {
  /** RFC 7638 thumbprint, SHA-256 in base64url. */
  readonly keyId: string;
  /** SubjectPublicKeyInfo, PEM. */
  readonly publicKey: string;
};

const SIGNER_CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1']);
const EXPECTED = 'expected Ed25519, or ECDSA with P-256 or P-384';

type KeyReading<Key> = { readonly ok: true; readonly key: Key } | { readonly ok: false; readonly why: string };

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
  return { ok: false, why: NO_PRIVATE_KEY };
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
  return asymmetricKeyType === 'ec' && SIGNER_CURVES.has(asymmetricKeyDetails?.namedCurve ?? '');
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

const WEBHOOK_SECRET = /^(?:whsec_)?([A-Za-z0-9+/]{32,86}={0,2})$/;
const MIN_WEBHOOK_SECRET_BYTES = 24;
const MAX_WEBHOOK_SECRET_BYTES = 64;

/** The bytes of a key that messages of a webhook are signed with, as Standard Webhooks writes it. */
export function readWebhookSecret(text: string): Uint8Array | undefined {
  const [, written] = WEBHOOK_SECRET.exec(text.trim()) ?? [];
  if (written === undefined) return undefined;
  const bytes = Buffer.from(written, 'base64');
  const isLong = bytes.byteLength >= MIN_WEBHOOK_SECRET_BYTES && bytes.byteLength <= MAX_WEBHOOK_SECRET_BYTES;
  return isLong ? new Uint8Array(bytes) : undefined;
}
