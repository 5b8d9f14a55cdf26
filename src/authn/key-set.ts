// Reads a JSON Web Key Set into keys that may verify access tokens, one entry an algorithm and key id.
// Symmetric, private, weak, encryption and ambiguous keys are left out; it fetches nothing.
// RFC 7517 §4 and §5; RFC 7518 §3; RFC 8725 §3.1 and §3.5.

import { type CryptoKey, importJWK, type JWK } from 'jose';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';

const MAX_KEYS = 100;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;

/** The algorithms that can be configured, with the one kind of key that each takes. */
const KINDS: ReadonlyMap<string, string> = new Map([
  ['ES256', 'EC P-256'],
  ['ES384', 'EC P-384'],
  ['ES512', 'EC P-521'],
  ['EdDSA', 'OKP Ed25519'],
  ['Ed25519', 'OKP Ed25519'],
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) => [alg, 'RSA'] as const),
]);

const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Keys by algorithm, then by key id; a key without an id stands under `undefined`. */
export type KeySet = ReadonlyMap<string, ReadonlyMap<string | undefined, CryptoKey>>;

export type KeySetReading =
  | {
      readonly ok: true;
      readonly keys: KeySet;
      /** Names what this set holds: two readings of one set agree. */
      readonly fingerprint: string;
    }
  | { readonly ok: false; readonly detail: string };

function kindOf(jwk: JsonObject): string {
  return jwk['kty'] === 'RSA' ? 'RSA' : `${String(jwk['kty'])} ${String(jwk['crv'])}`;
}

/** The key says itself that it is for something else (RFC 7517 §4.2, §4.3). */
function isForVerifying(jwk: JsonObject): boolean {
  const { use, key_ops: operations } = jwk;
  if (use !== undefined && use !== 'sig') return false;
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'));
}

function isCandidate(jwk: Json): jwk is JsonObject {
  if (!isObject(jwk)) return false;
  const { kid } = jwk;
  if (kid !== undefined && typeof kid !== 'string') return false;
  if (PRIVATE_MEMBERS.some((member) => Object.hasOwn(jwk, member))) return false;
  return isForVerifying(jwk);
}

/** Which of two keys of one id was meant cannot be known, so neither is used. */
function withoutDuplicates(jwks: readonly JsonObject[]): readonly JsonObject[] {
  const seen = new Map<Json | undefined, number>();
  for (const jwk of jwks) seen.set(jwk['kid'], (seen.get(jwk['kid']) ?? 0) + 1);
  return jwks.filter((jwk) => seen.get(jwk['kid']) === 1);
}

function isStrong(key: CryptoKey): boolean {
  const { modulusLength } = key.algorithm as { readonly modulusLength?: number };
  if (modulusLength === undefined) return true;
  return modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS;
}

/** Only the members that a public key is made of are handed on: what else stands there is not ours. */
function publicMembers(jwk: JsonObject): JWK {
  const members: Record<string, string> = {};
  for (const name of ['kty', 'crv', 'x', 'y', 'n', 'e']) {
    const value = jwk[name];
    if (typeof value === 'string') members[name] = value;
  }
  return members as JWK;
}

async function importKey(jwk: JsonObject, algorithm: string): Promise<CryptoKey | undefined> {
  if (KINDS.get(algorithm) !== kindOf(jwk)) return undefined;
  if (jwk['alg'] !== undefined && jwk['alg'] !== algorithm) return undefined;
  try {
    const key = await importJWK(publicMembers(jwk), algorithm);
    return key instanceof Uint8Array || !isStrong(key) ? undefined : key;
  } catch {
    return undefined;
  }
}

type Draft = {
  readonly keys: Map<string, Map<string | undefined, CryptoKey>>;
  readonly used: string[];
};

async function addKey(draft: Draft, jwk: JsonObject, algorithms: readonly string[]): Promise<void> {
  const kid = typeof jwk['kid'] === 'string' ? jwk['kid'] : undefined;
  for (const algorithm of algorithms) {
    const key = await importKey(jwk, algorithm);
    if (key === undefined) continue;
    const byId = draft.keys.get(algorithm) ?? new Map<string | undefined, CryptoKey>();
    draft.keys.set(algorithm, byId.set(kid, key));
    draft.used.push(JSON.stringify([algorithm, kid ?? null, publicMembers(jwk)]));
  }
}

/**
 * Reads `document` for the given algorithms. Fails when it is no key set, holds more than 100 keys,
 * or not one that may be used. Keys that may not be used are left out without failing the others.
 */
export async function readKeySet(
  document: Json,
  algorithms: readonly string[],
): Promise<KeySetReading> {
  const entries = isObject(document) ? document['keys'] : undefined;
  if (!Array.isArray(entries)) return { ok: false, detail: 'the key set is not a key set' };
  if (entries.length > MAX_KEYS) return { ok: false, detail: 'the key set holds too many keys' };
  const draft: Draft = { keys: new Map(), used: [] };
  for (const jwk of withoutDuplicates(entries.filter(isCandidate))) {
    await addKey(draft, jwk, algorithms);
  }
  const { keys, used } = draft;
  if (used.length === 0) return { ok: false, detail: 'the key set holds no key that may be used' };
  return { ok: true, keys, fingerprint: used.sort().join('\n') };
}

/**
 * The key that a token's header names. Without a key id the algorithm must have exactly one key:
 * trying several would let a token choose (RFC 8725 §3.1).
 */
export function selectKey(
  keys: KeySet,
  header: { readonly kid?: string; readonly alg: string },
): CryptoKey | undefined {
  const byId = keys.get(header.alg);
  if (byId === undefined) return undefined;
  if (header.kid !== undefined) return byId.get(header.kid);
  if (byId.size !== 1) return undefined;
  return byId.values().next().value;
}
