// Checks that a verified token is presented as its binding requires: a token bound to a key with a DPoP proof of that
// key, one bound to a certificate over a connection that proved the certificate, an unbound one as a bearer token and
// only where no binding is demanded. This is checked at every request, because a token verified earlier says nothing
// about who sends it now.
// RFC 9449 §7.1 and §7.2; RFC 8705 §3; RFC 7800 §3.1.

import type { UpstreamSettings } from '../config/settings.js';
import { callerKeyOf, type Principal, type ProofError } from '../policy/principal.js';
import type { RefusedToken } from '../policy/record.js';
import type { Bearer } from './bearer.js';
import type { AuthnReason } from './claims.js';
import type { ProofSubject, ProofVerdict } from './dpop.js';

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

export type BindingTerms = {
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
