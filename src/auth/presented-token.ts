// How a request presents its token. Reads the one token in canonical encoding, or says why there is none: one in the
// query, in two headers, with whitespace or, in compact form, with padding or spare bits is malformed, so that a token
// has one encoding wherever it is hashed. Once the token is verified, checks that it is presented as its binding
// requires: one bound to a key with a DPoP proof of that key, one bound to a certificate over a connection that proved
// the certificate, an unbound one as a bearer token and only where no binding is demanded. That is checked at every
// request, because a token verified earlier says nothing about who sends it now.
// RFC 6750 §2.1; RFC 9449 §7.1 and §7.2; RFC 8705 §3; RFC 7800 §3.1; RFC 7516 §3.1.

import type { UpstreamSettings } from '../config/settings.js';
import { callerKeyOf, type Principal, type ProofError } from '../policy/principal.js';
import type { RefusedToken } from '../policy/record.js';
import type { AuthnReason } from './claims.js';
import type { ProofSubject, ProofVerdict } from './dpop.js';
import { hasCanonicalParts, isCompactJws } from './jwt.js';

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

export type Bearer = { readonly token: string; readonly scheme: TokenScheme };

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
const UNKNOWN: AuthnError = { reason: 'store-unavailable' };

function meets(demand: BindingDemand, { boundTo }: Principal['token']): boolean {
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
      return UNKNOWN;
    case 'use_dpop_nonce':
      return NO_NONCE;
    case 'invalid_dpop_proof':
      return BAD_PROOF;
  }
}

/** Why the token may not be presented with this scheme, or `undefined`. No proof is read. */
function findMismatch(
  { token }: Principal,
  scheme: Bearer['scheme'],
  demand: BindingDemand,
): AuthnError | undefined {
  const hasProofKey = token.boundTo?.proofKey !== undefined;
  if ((scheme === 'dpop') === hasProofKey && meets(demand, token)) return undefined;
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
