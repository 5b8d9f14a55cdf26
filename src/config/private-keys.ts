// Judges the private keys and certificates that a gateway file names: that they can be read, that they are
// of a kind that can be used, and that they belong together. Never quotes any of it.
// RFC 5958 and RFC 7517 (private keys), RFC 7518 §3.1 and RFC 8037 (algorithms), RFC 7468 (PEM).

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

const MIN_RSA_BITS = 2048;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const CURVES: ReadonlySet<string> = new Set(['prime256v1', 'secp384r1', 'secp521r1']);

/** What is wrong with a key for `private_key_jwt`, or `undefined`. */
export function findClientKeyError(text: string): string | undefined {
  const key = readPrivateKey(text);
  if (key === undefined) return 'this secret is no private key: PKCS #8 in PEM, or a JSON Web Key';
  return isSigningKey(key)
    ? undefined
    : 'this key cannot sign: RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519';
}

/** What is wrong with the key of a client certificate, or `undefined`. */
export function findTlsKeyError(text: string): string | undefined {
  return readPem(text) === undefined ? 'this secret is no private key in PEM' : undefined;
}

/** The certificates of a PEM file, or `undefined` where one cannot be read or none is there. */
export function readCertificates(
  text: string,
): readonly [X509Certificate, ...X509Certificate[]] | undefined {
  try {
    const [first, ...rest] = (text.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    return first === undefined ? undefined : [first, ...rest];
  } catch {
    return undefined;
  }
}

/** True where the key is that of the certificate. */
export function isKeyOf(key: string, certificate: X509Certificate): boolean {
  const read = readPem(key);
  return read !== undefined && certificate.checkPrivateKey(read);
}

function readPrivateKey(text: string): KeyObject | undefined {
  if (!text.trimStart().startsWith('{')) return readPem(text);
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
