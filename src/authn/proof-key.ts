// The key that a proof of possession brings along: a public key of a kind, a size and an algorithm that
// are allowed, and its thumbprint, by which alone a token knows it. Whatever else the key says of itself
// is not read.
// RFC 9449 §4.2 and §11.6; RFC 7517 §4; RFC 7518 §6; RFC 7638 §3; RFC 8037 §2.

import { hash } from 'node:crypto';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';

/** What proofs may be signed with: asymmetric, each with one kind of key. Offered in metadata and challenges. */
export const PROOF_ALGORITHMS: readonly string[] = [
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ...['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'],
];

/** The public members of a key, in the order in which its thumbprint has them. */
export type ProofKey = {
  readonly jwk: Readonly<Record<string, string>>;
  readonly thumbprint: string;
};

/** Members that make a key private or secret (RFC 7518 §6.2.2, §6.3.2 and §6.4). */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Bytes of a coordinate, by curve: RFC 7518 §6.2.1.2 wants every one of them written. */
const CURVES: Readonly<Record<string, { readonly curve: string; readonly bytes: number }>> = {
  ES256: { curve: 'P-256', bytes: 32 },
  ES384: { curve: 'P-384', bytes: 48 },
  ES512: { curve: 'P-521', bytes: 66 },
};
const ED25519_BYTES = 32;
const MIN_RSA_BYTES = 256;
const MAX_RSA_BYTES = 512;
/** A long exponent makes each verification dear; everyone uses 65537. */
const MAX_EXPONENT_BYTES = 4;

/** The key for this algorithm, or `undefined` for one that may not sign proofs. */
export function readProofKey(jwk: Json | undefined, algorithm: string): ProofKey | undefined {
  if (!isObject(jwk) || SECRET_MEMBERS.some((member) => Object.hasOwn(jwk, member)))
    return undefined;
  const members = readMembers(jwk, algorithm);
  if (members === undefined) return undefined;
  return { jwk: members, thumbprint: hash('sha256', JSON.stringify(members), 'base64url') };
}

/** INVARIANT: members stand in lexicographic order, which is what the thumbprint is made of. */
function readMembers(
  jwk: JsonObject,
  algorithm: string,
): Readonly<Record<string, string>> | undefined {
  const kty = jwk['kty'];
  if (Object.hasOwn(CURVES, algorithm)) return kty === 'EC' ? readEc(jwk, algorithm) : undefined;
  if (algorithm === 'EdDSA' || algorithm === 'Ed25519') {
    return kty === 'OKP' ? readEd25519(jwk) : undefined;
  }
  return kty === 'RSA' && PROOF_ALGORITHMS.includes(algorithm) ? readRsa(jwk) : undefined;
}

function readEc(jwk: JsonObject, algorithm: string): Readonly<Record<string, string>> | undefined {
  const expected = CURVES[algorithm];
  if (expected === undefined || jwk['crv'] !== expected.curve) return undefined;
  const x = readBytes(jwk['x'], expected.bytes, expected.bytes);
  const y = readBytes(jwk['y'], expected.bytes, expected.bytes);
  if (x === undefined || y === undefined) return undefined;
  return { crv: expected.curve, kty: 'EC', x, y };
}

function readEd25519(jwk: JsonObject): Readonly<Record<string, string>> | undefined {
  const x = readBytes(jwk['x'], ED25519_BYTES, ED25519_BYTES);
  if (jwk['crv'] !== 'Ed25519' || x === undefined) return undefined;
  return { crv: 'Ed25519', kty: 'OKP', x };
}

function readRsa(jwk: JsonObject): Readonly<Record<string, string>> | undefined {
  const e = readBytes(jwk['e'], 1, MAX_EXPONENT_BYTES);
  const n = readBytes(jwk['n'], MIN_RSA_BYTES, MAX_RSA_BYTES);
  // A leading zero would make a short modulus look long.
  if (e === undefined || n === undefined || Buffer.from(n, 'base64url')[0] === 0) return undefined;
  return { e, kty: 'RSA', n };
}

/** Base64url in its one spelling, of so many bytes. */
function readBytes(
  value: Json | undefined,
  minBytes: number,
  maxBytes: number,
): string | undefined {
  if (typeof value !== 'string' || value.length > maxBytes * 2 || !BASE64URL.test(value)) {
    return undefined;
  }
  const bytes = Buffer.from(value, 'base64url');
  if (bytes.byteLength < minBytes || bytes.byteLength > maxBytes) return undefined;
  return bytes.toString('base64url') === value ? value : undefined;
}
