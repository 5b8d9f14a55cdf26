// Verifies the signature of a token with one key, and what the library can judge besides: type, issuer,
// audience, times. All of these but the signature are judged again by claims.ts, which is the stricter.
// RFC 7515 §5.2, RFC 7519 §7.2.

import { type CryptoKey, errors, jwtVerify } from 'jose';
import type { JsonObject } from '../mcp/message.js';
import { type AuthnReason, CLOCK_TOLERANCE_MS } from './claims.js';
import type { SignaturePlan } from './token.js';

export type SignedToken = {
  readonly token: string;
  readonly plan: SignaturePlan;
  readonly audiences: readonly string[];
};

const CLAIM_REASONS: ReadonlyMap<string, AuthnReason> = new Map([
  ['typ', 'token-type'],
  ['iss', 'token-issuer'],
  ['aud', 'token-audience'],
]);

/** The reason behind an error of jose; undefined when it is no verdict on the token. */
function reasonOf(error: unknown): AuthnReason | undefined {
  if (error instanceof errors.JWTExpired) return 'token-expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    // Other reasons mean that the claim is absent or no number.
    if (error.claim === 'nbf' && error.reason === 'check_failed') return 'token-not-yet-valid';
    return CLAIM_REASONS.get(error.claim) ?? 'token-malformed';
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'token-signature';
  if (error instanceof errors.JOSEAlgNotAllowed) return 'token-signature';
  return error instanceof errors.JOSEError ? 'token-malformed' : undefined;
}

/**
 * The claims of the token once its signature, type, issuer and audience hold, or why they do not.
 * `now` is in milliseconds since the epoch. Rejects only for what is no verdict on the token.
 */
export async function verifySignature(
  { token, plan, audiences }: SignedToken,
  key: CryptoKey,
  now: number,
): Promise<JsonObject | AuthnReason> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [plan.header.alg],
      issuer: plan.issuer.issuer,
      audience: [...audiences],
      ...(plan.issuer.tokenType === 'none' ? {} : { typ: plan.issuer.tokenType }),
      requiredClaims: ['exp', 'iat', 'sub', 'aud', 'iss'],
      clockTolerance: CLOCK_TOLERANCE_MS / 1000,
      currentDate: new Date(now),
    });
    // jose parsed it from JSON, so its members are JSON.
    return payload as JsonObject;
  } catch (error) {
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    return reason;
  }
}
