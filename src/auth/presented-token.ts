// How a request presents its token. Reads the one token in canonical encoding, or says why there is none: one in the
// query, in two headers, with whitespace or, in compact form, with padding or spare bits is malformed, so that a
// token has one encoding wherever it is hashed. Once the token is verified, checks that it is presented as its
// binding requires: one bound to a key with a DPoP proof of that key, one bound to a certificate over a connection
// that proved the certificate, an unbound one as a bearer token and only where no binding is demanded. That is
// checked at every request, because a token verified earlier says nothing about who sends it now. A DPoP proof is one
// fresh signature, by the key that the token is bound to, over this method, this resource and this token, used once.
// The resource URL is the configured one and no header contributes to it, so a proxy before the gateway changes
// nothing.
// RFC 6750 §2.1; RFC 9449 §4.2, §4.3, §7 to §9, §11.1, §11.3 and §11.6; RFC 8705 §3; RFC 7800 §3.1; RFC 7516 §3.1;
// RFC 8725 §3.1, §3.10 and §3.11.

import { hash } from 'node:crypto';
import { type CryptoKey, compactVerify, importJWK } from 'jose';
import type { UpstreamSettings } from '../config/settings.js';
import type { ReplayStore } from '../policy/obligations.js';
import { callerKeyOf, type Principal, type ProofError } from '../policy/principal.js';
import type { RefusedToken } from '../policy/record.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { BoundedMap } from '../state/bounds.js';
import type { AuthnReason } from './claims.js';
import { isSecretKey } from './issuer.js';
import { hasCanonicalParts, isCompactJws, readObject } from './jwt.js';

const MAX_TOKEN_BYTES = 8 * 1024;
const SCHEMES = ['bearer', 'dpop'] as const;

/** Shorter tokens could be guessed (RFC 6749 §10.10), and could occur by chance in the text of a message. */
const MIN_OPAQUE_LENGTH = 16;

/** RFC 6750 §2.1, with padding characters at the end only. */
const OPAQUE = /^[A-Za-z0-9._~+/-]+={0,2}$/;

/** Three parts or five: it can be read as a JWS or a JWE, whatever else it may be. */
const COMPACT = /^[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){2}(?:(?:\.[A-Za-z0-9_-]*){2})?$/;

/** How a token is presented: as a bearer, or with a DPoP proof of the key that it is bound to. */
export type TokenScheme = (typeof SCHEMES)[number];

type Bearer = { readonly token: string; readonly scheme: TokenScheme };

/** Names are compared without case, because some frameworks read them so. */
function carriesToken(query: string): boolean {
  if (query === '') return false;
  for (const name of new URLSearchParams(query).keys()) {
    if (name.toLowerCase() === 'access_token') return true;
  }
  return false;
}

/** The scheme of a credential, compared without case (RFC 9110 §11.1); `undefined` for every other scheme. */
function schemeOf(header: string | undefined): TokenScheme | undefined {
  if (header === undefined) return undefined;
  return SCHEMES.find((scheme) => header.slice(0, scheme.length).toLowerCase() === scheme);
}

/** A token that only its issuer can read; one in compact form must still be canonical. */
function isOpaque(token: string): boolean {
  if (token.length < MIN_OPAQUE_LENGTH || !OPAQUE.test(token)) return false;
  return !COMPACT.test(token) || hasCanonicalParts(token);
}

/**
 * Reads the token of a request. `headers` has lower-case names, `repeated` holds those sent more than once, `query` has
 * no `?`. `missing`: no token was sent. `malformed`: not a single canonical compact JWS of at most 8 KiB in a single
 * header, or with two proofs; with `mayBeOpaque` other tokens of that size are accepted too, for their issuer to read.
 */
export function readBearer(
  headers: { readonly [name: string]: string | undefined },
  repeated: ReadonlySet<string>,
  query: string,
  mayBeOpaque = false,
): Bearer | 'missing' | 'malformed' {
  if (carriesToken(query) || repeated.has('authorization') || repeated.has('dpop')) {
    return 'malformed';
  }
  const header = headers['authorization'];
  const scheme = schemeOf(header);
  // Another scheme carries no token, and gets the challenge without an error (RFC 6750 §3.1).
  if (header === undefined || scheme === undefined) return 'missing';
  const tokenStart = scheme.length + 1;
  if (header.length > tokenStart + MAX_TOKEN_BYTES) return 'malformed';
  if (header[scheme.length] !== ' ') return 'malformed';
  const token = header.slice(tokenStart);
  return isCompactJws(token) || (mayBeOpaque && isOpaque(token)) ? { token, scheme } : 'malformed';
}

/** What of a request can prove a binding. Where a member is missing, a token that needs it is refused. */
export type Possession = {
  readonly headers: { readonly [name: string]: string | undefined };
  readonly httpMethod?: string;
  /** The URL that a proof must name, from the configuration. */
  readonly uri?: string;
  /** Thumbprint of the client certificate that the connection proved (`x5t#S256`). */
  readonly clientCertificate?: string | undefined;
  /** The proof was verified with the enclosing request, of which this is a part, and may not be used again. */
  readonly isProofUsed?: boolean | undefined;
};

/** A failed authentication; `proof` is present where the challenge must name a DPoP error. */
export type AuthnError = {
  readonly reason: AuthnReason;
  readonly proof?: ProofError;
  readonly refusedToken?: RefusedToken;
  /** One clause for the log that says what was wrong. */
  readonly detail?: string;
};

/** The binding that an upstream demands of tokens. */
export type BindingDemand = UpstreamSettings['binding'];

type BindingTerms = {
  readonly demand: BindingDemand;
  readonly verifyProof: (subject: ProofSubject) => Promise<ProofVerdict>;
};

const UNPROVED: AuthnError = { reason: 'token-binding' };
const NO_PROOF: AuthnError = { reason: 'token-binding', proof: 'invalid_token' };
const BAD_PROOF: AuthnError = { reason: 'token-binding', proof: 'invalid_dpop_proof' };
const NO_NONCE: AuthnError = { reason: 'token-binding', proof: 'use_dpop_nonce' };
const STORE_UNAVAILABLE: AuthnError = { reason: 'store-unavailable' };

function meetsDemand(demand: BindingDemand, { boundTo }: Principal['token']): boolean {
  switch (demand) {
    case 'none':
      return true;
    case 'any':
      return boundTo !== undefined;
    case 'dpop':
      return boundTo?.proofKey !== undefined;
    case 'mtls':
      return boundTo?.certificate !== undefined;
  }
}

function proofErrorOf(verdict: Exclude<ProofVerdict, 'valid'>): AuthnError {
  switch (verdict) {
    case 'unavailable':
      return STORE_UNAVAILABLE;
    case 'use_dpop_nonce':
      return NO_NONCE;
    case 'invalid_dpop_proof':
      return BAD_PROOF;
  }
}

/** Why the token may not be presented with this scheme, or `undefined`. No proof is read. */
function findMismatch({ token }: Principal, scheme: Bearer['scheme'], demand: BindingDemand): AuthnError | undefined {
  const hasProofKey = token.boundTo?.proofKey !== undefined;
  if ((scheme === 'dpop') === hasProofKey && meetsDemand(demand, token)) return undefined;
  const concernsProofs = hasProofKey || scheme === 'dpop' || demand === 'dpop';
  return concernsProofs ? NO_PROOF : UNPROVED;
}

/**
 * Returns the principal where its token is presented as it must be, else why not. Returns at once unless a proof has to
 * be verified.
 */
export function proveBinding(
  principal: Principal,
  bearer: Bearer,
  possession: Possession,
  bindingTerms: BindingTerms,
): Principal | AuthnError | Promise<Principal | AuthnError> {
  const mismatch = findMismatch(principal, bearer.scheme, bindingTerms.demand);
  if (mismatch !== undefined) return mismatch;
  const { certificate, proofKey } = principal.token.boundTo ?? {};
  if (certificate !== undefined && certificate !== possession.clientCertificate) return UNPROVED;
  if (proofKey === undefined || possession.isProofUsed === true) return principal;
  const { httpMethod, uri, headers } = possession;
  if (httpMethod === undefined || uri === undefined) return NO_PROOF;
  const { token } = bearer;
  const owner = callerKeyOf(principal);
  return bindingTerms
    .verifyProof({ proof: headers['dpop'], method: httpMethod, uri, token, proofKey, owner })
    .then((verdict) => (verdict === 'valid' ? principal : proofErrorOf(verdict)));
}

/** Algorithms of proofs, all asymmetric, each with one kind of key. Published in metadata and challenges. */
export const PROOF_ALGORITHMS: readonly string[] = [
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ...['PS256', 'PS384', 'PS512', 'RS256', 'RS384', 'RS512'],
];

/** The public members of a key, in the order that its thumbprint requires. */
type ProofKey = {
  readonly jwk: Readonly<Record<string, string>>;
  readonly thumbprint: string;
};

const BASE64URL = /^[A-Za-z0-9_-]+$/;

/** Length of a coordinate by curve, in bytes: RFC 7518 §6.2.1.2 requires leading zeros to be written. */
const CURVES: Readonly<Record<string, { readonly curve: string; readonly bytes: number }>> = {
  ES256: { curve: 'P-256', bytes: 32 },
  ES384: { curve: 'P-384', bytes: 48 },
  ES512: { curve: 'P-521', bytes: 66 },
};
const ED25519_BYTES = 32;
const MIN_RSA_BYTES = 256;
const MAX_RSA_BYTES = 512;
/** A long exponent makes each verification expensive; 65537 is what is used in practice. */
const MAX_EXPONENT_BYTES = 4;

/**
 * Reads the key in a proof's header and its thumbprint, by which alone a token identifies it; `undefined` for a key
 * whose kind, size or algorithm may not sign proofs. Other members of the key are not read. RFC 7517 §4; RFC 7518 §6;
 * RFC 7638 §3; RFC 8037 §2.
 */
export function readProofKey(jwk: Json | undefined, algorithm: string): ProofKey | undefined {
  if (!isObject(jwk) || isSecretKey(jwk)) return undefined;
  const members = readKeyMembers(jwk, algorithm);
  if (members === undefined) return undefined;
  return { jwk: members, thumbprint: hash('sha256', JSON.stringify(members), 'base64url') };
}

/** INVARIANT: members are in lexicographic order, because the thumbprint is computed over them. */
function readKeyMembers(jwk: JsonObject, algorithm: string): Readonly<Record<string, string>> | undefined {
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

/** Reads canonical base64url of the given number of bytes. */
function readBytes(value: Json | undefined, minBytes: number, maxBytes: number): string | undefined {
  if (typeof value !== 'string' || value.length > maxBytes * 2 || !BASE64URL.test(value)) {
    return undefined;
  }
  const bytes = Buffer.from(value, 'base64url');
  if (bytes.byteLength < minBytes || bytes.byteLength > maxBytes) return undefined;
  return bytes.toString('base64url') === value ? value : undefined;
}

/** A nonce is issued for this time, and accepted for the same time again. */
const NONCE_STEP_MS = 120_000;

export type ProofNonces = {
  /** The nonce to use now. */
  current(): string;
  /** True for the nonce of this step or of the one before. */
  isFresh(nonce: string): boolean;
};

type NoncePorts = {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Keyed digests under every key of the gateway, newest first. */
  readonly hmacAll: (purpose: string, text: string) => readonly string[];
};

/**
 * Creates the nonces that proofs must carry where the configuration demands them: keyed digests of the time, so that
 * replicas with the same keys agree on them and none is stored. No proof can be signed in advance with a nonce that
 * does not exist yet. RFC 9449 §8, §9 and §11.3.
 */
export function createProofNonces({ now, hmacAll }: NoncePorts): ProofNonces {
  let currentNonces: { readonly step: number; readonly fresh: readonly string[] } | undefined;

  function fresh(): readonly string[] {
    const step = Math.floor(now() / NONCE_STEP_MS);
    if (currentNonces?.step !== step) {
      const noncesOf = (each: number): readonly string[] => hmacAll('dpop-nonce', String(each));
      currentNonces = { step, fresh: [...noncesOf(step), ...noncesOf(step - 1)] };
    }
    return currentNonces.fresh;
  }

  return {
    current: () => fresh()[0] ?? '',
    isFresh: (nonce) => fresh().includes(nonce),
  };
}

/** How far a client's clock may be ahead. */
const PROOF_AHEAD_MS = 5_000;
const MAX_PROOF_BYTES = 4 * 1024;
const MAX_PROOF_ID_LENGTH = 256;
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
  /** The caller, whose uses are counted together: it may have many keys. */
  readonly owner: string;
};

/** `unavailable`: whether the proof was used before cannot be checked now. */
export type ProofVerdict = 'valid' | 'unavailable' | Exclude<ProofError, 'invalid_token'>;

type ProofPorts = NoncePorts & {
  readonly replays: ReplayStore;
  /** Present where every proof must carry a nonce. */
  readonly nonces: ProofNonces | undefined;
  /** How old a proof may be, in milliseconds. */
  readonly maxAgeMs: number;
};

type ProofClaims = {
  readonly id: string;
  readonly issuedAtMs: number;
  readonly nonce: Json | undefined;
};

/** Creates the verifier. It rejects only for a bug. */
export function createProofVerifier(ports: ProofPorts): (proofSubject: ProofSubject) => Promise<ProofVerdict> {
  const imported = new BoundedMap<string, CryptoKey>(MAX_IMPORTED_KEYS);

  async function keyOf({ jwk, thumbprint }: ProofKey, alg: string): Promise<CryptoKey | undefined> {
    const name = alg + thumbprint;
    const known = imported.use(name);
    if (known !== undefined) return known;
    try {
      const key = (await importJWK({ ...jwk }, alg)) as CryptoKey;
      imported.set(name, key);
      return key;
    } catch {
      // For example, a point that is not on the curve.
      return undefined;
    }
  }

  /** The claims, if the signature is valid and by the right key. */
  async function verify({ proof, proofKey }: ProofSubject): Promise<JsonObject | undefined> {
    if (proof === undefined || proof.length > MAX_PROOF_BYTES || !isCompactJws(proof)) {
      return undefined;
    }
    const head = readProofHead(proof);
    // Another key is refused before anything is verified with it.
    if (head === undefined || head.key.thumbprint !== proofKey) return undefined;
    const key = await keyOf(head.key, head.alg);
    if (key === undefined) return undefined;
    try {
      const { payload } = await compactVerify(proof, key, { algorithms: [head.alg] });
      return readObject(payload);
    } catch {
      return undefined;
    }
  }

  function readProofClaims(claims: JsonObject, proofSubject: ProofSubject): ProofClaims | undefined {
    const { jti, iat, nonce } = claims;
    if (!matchesSubject(claims, proofSubject)) return undefined;
    if (typeof jti !== 'string' || jti === '' || jti.length > MAX_PROOF_ID_LENGTH) return undefined;
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

  /**
   * ProofClaims the proof's id under every key, because replicas may be at different steps of a key rotation and share at
   * least one key.
   */
  async function registerProof(
    id: string,
    { proofKey, owner }: ProofSubject,
    expiresAtMs: number,
  ): Promise<ProofVerdict> {
    // Ids are unique only within a key; the thumbprint has a fixed length, so the two parts are unambiguous.
    const use = proofKey + id;
    for (const keyHash of ports.hmacAll('dpop-jti', use)) {
      const isFirst = await ports.replays.useOnce(keyHash, expiresAtMs, owner);
      if (isFirst === 'unavailable') return 'unavailable';
      if (!isFirst) return 'invalid_dpop_proof';
    }
    return 'valid';
  }

  return async (proofSubject) => {
    const payload = await verify(proofSubject);
    const claims = payload && readProofClaims(payload, proofSubject);
    if (claims === undefined) return 'invalid_dpop_proof';
    if (!hasNonce(claims.nonce)) return 'use_dpop_nonce';
    return registerProof(claims.id, proofSubject, claims.issuedAtMs + ports.maxAgeMs + 1);
  };
}

function readProofHead(proof: string): { readonly alg: string; readonly key: ProofKey } | undefined {
  const [headPart = ''] = proof.split('.', 1);
  const head = readObject(Buffer.from(headPart, 'base64url'));
  if (head === undefined || Object.hasOwn(head, 'crit') || Object.hasOwn(head, 'b64')) {
    return undefined;
  }
  const { typ, alg, jwk } = head;
  if (typ !== 'dpop+jwt' || typeof alg !== 'string') return undefined;
  if (!PROOF_ALGORITHMS.includes(alg)) return undefined;
  const key = readProofKey(jwk, alg);
  return key && { alg, key };
}

function matchesSubject({ htm, htu, ath }: JsonObject, { method, uri, token }: ProofSubject): boolean {
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
