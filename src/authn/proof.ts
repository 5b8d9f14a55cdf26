// Judges a proof of possession: one fresh signature, by the key that the token is bound to, over this
// method, this resource and this token, and used once. The resource is the configured one; no header has
// any part in it, so a proxy before the gateway changes nothing.
// RFC 9449 §4.2, §4.3, §7 and §11.1; RFC 8725 §3.1, §3.10 and §3.11.

import { hash } from 'node:crypto';
import { type CryptoKey, compactVerify, importJWK } from 'jose';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import type { ProofError } from '../policy/principal.js';
import type { ReplayStore } from '../policy/replay-store.js';
import { isCompactJws } from './bearer.js';
import { PROOF_ALGORITHMS, type ProofKey, readProofKey } from './proof-key.js';
import type { ProofNonces } from './proof-nonce.js';
import { createGenerationCache } from './token-cache.js';

/** How far a client's clock may be ahead. */
export const PROOF_AHEAD_MS = 5_000;
const MAX_PROOF_BYTES = 4 * 1024;
const MAX_ID_LENGTH = 256;
const MAX_URI_LENGTH = 2 * 1024;
/** Clients keep their key for long, and importing one costs as much as using it. */
const MAX_IMPORTED_KEYS = 2_000;

/** What a proof must be about. */
export type ProofSubject = {
  readonly proof: string | undefined;
  readonly method: string;
  /** The URL of the resource as clients know it, without query. */
  readonly uri: string;
  readonly token: string;
  /** Thumbprint of the key that the token is bound to. */
  readonly proofKey: string;
};

/** `unavailable`: whether it was used before cannot be told now. */
export type ProofVerdict = 'good' | 'unavailable' | Exclude<ProofError, 'invalid_token'>;

export type ProofPorts = {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Keyed digests under every key of the gateway. */
  readonly hmacAll: (purpose: string, text: string) => readonly string[];
  readonly replays: ReplayStore;
  /** Present where every proof must carry one of these. */
  readonly nonces: ProofNonces | undefined;
  /** How old a proof may be. */
  readonly maxAgeMs: number;
};

type Claims = {
  readonly id: string;
  readonly issuedAtMs: number;
  readonly nonce: Json | undefined;
};

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Makes the judge. It rejects only for a bug. */
export function createProofVerifier(
  ports: ProofPorts,
): (subject: ProofSubject) => Promise<ProofVerdict> {
  const imported = createGenerationCache<CryptoKey>(MAX_IMPORTED_KEYS);

  async function keyOf({ jwk, thumbprint }: ProofKey, alg: string): Promise<CryptoKey | undefined> {
    const name = alg + thumbprint;
    const known = imported.get(name);
    if (known !== undefined) return known;
    try {
      const key = (await importJWK({ ...jwk }, alg)) as CryptoKey;
      imported.set(name, key);
      return key;
    } catch {
      // A point that lies on no curve.
      return undefined;
    }
  }

  /** The claims under a good signature of the right key. */
  async function verify({ proof, proofKey }: ProofSubject): Promise<JsonObject | undefined> {
    if (proof === undefined || proof.length > MAX_PROOF_BYTES || !isCompactJws(proof)) {
      return undefined;
    }
    const head = readHead(proof);
    // Whoever brings another key is refused before anything is verified with it.
    if (head === undefined || head.key.thumbprint !== proofKey) return undefined;
    const key = await keyOf(head.key, head.alg);
    if (key === undefined) return undefined;
    try {
      const { payload } = await compactVerify(proof, key, { algorithms: [head.alg] });
      return parseObject(payload);
    } catch {
      return undefined;
    }
  }

  function readClaims(claims: JsonObject, subject: ProofSubject): Claims | undefined {
    const { jti, iat, nonce } = claims;
    if (!isAbout(claims, subject)) return undefined;
    if (typeof jti !== 'string' || jti === '' || jti.length > MAX_ID_LENGTH) return undefined;
    if (typeof iat !== 'number') return undefined;
    const issuedAtMs = iat * 1000;
    const ageMs = ports.now() - issuedAtMs;
    if (ageMs > ports.maxAgeMs || ageMs < -PROOF_AHEAD_MS) return undefined;
    return { id: jti, issuedAtMs, nonce };
  }

  function hasNonce(nonce: Json | undefined): boolean {
    if (ports.nonces === undefined) return true;
    return typeof nonce === 'string' && ports.nonces.isFresh(nonce);
  }

  /** Replicas may stand at different steps of a change of keys: a use counts under each that they share. */
  async function useOnce(id: string, owner: string, expiresAtMs: number): Promise<ProofVerdict> {
    // Ids are unique within a key alone; the thumbprint is of fixed length.
    const use = owner + id;
    for (const keyHash of ports.hmacAll('dpop-jti', use)) {
      const isFirst = await ports.replays.useOnce(keyHash, expiresAtMs, owner);
      if (isFirst === 'unavailable') return 'unavailable';
      if (!isFirst) return 'invalid_dpop_proof';
    }
    return 'good';
  }

  return async (subject) => {
    const payload = await verify(subject);
    const claims = payload && readClaims(payload, subject);
    if (claims === undefined) return 'invalid_dpop_proof';
    if (!hasNonce(claims.nonce)) return 'use_dpop_nonce';
    return useOnce(claims.id, subject.proofKey, claims.issuedAtMs + ports.maxAgeMs + 1);
  };
}

function readHead(proof: string): { readonly alg: string; readonly key: ProofKey } | undefined {
  const [headPart = ''] = proof.split('.', 1);
  const head = parseObject(Buffer.from(headPart, 'base64url'));
  if (head === undefined || Object.hasOwn(head, 'crit') || Object.hasOwn(head, 'b64')) {
    return undefined;
  }
  const { typ, alg, jwk } = head;
  if (typ !== 'dpop+jwt' || typeof alg !== 'string') return undefined;
  if (!PROOF_ALGORITHMS.includes(alg)) return undefined;
  const key = readProofKey(jwk, alg);
  return key && { alg, key };
}

function parseObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(UTF8.decode(bytes));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isAbout({ htm, htu, ath }: JsonObject, { method, uri, token }: ProofSubject): boolean {
  return htm === method && isSameUri(htu, uri) && ath === hash('sha256', token, 'base64url');
}

/** Compares in normal form, without query and fragment (RFC 9449 §4.3; RFC 3986 §6.2.2 and §6.2.3). */
function isSameUri(written: Json | undefined, uri: string): boolean {
  if (written === uri) return true;
  if (typeof written !== 'string' || written.length > MAX_URI_LENGTH) return false;
  if (!URL.canParse(written)) return false;
  const { origin, pathname, username, password } = new URL(written);
  return username === '' && password === '' && origin + pathname === uri;
}
