// One login at an upstream: what of the request speaks for its caller, which URL a proof of possession must
// name (the configured one, whatever Host and forwarding headers say), and which nonce the next must carry.
// RFC 9449 §4.3, §8.2 and §9.

import { type AuthnOutcome, isAuthnError } from '../authn/verify.js';
import type { UpstreamSettings } from '../config/settings.js';
import type { Incoming, Outgoing } from '../mcp/transport.js';
import type { Identity } from './identity.js';

/** Verifies the caller, and tells it the nonce of its next proof where it uses proofs. */
export function login(
  { authenticator, proofNonces }: Identity,
  upstream: Pick<UpstreamSettings, 'resource' | 'issuers' | 'audiences' | 'binding'>,
  incoming: Incoming,
  outgoing: Pick<Outgoing, 'also'>,
): AuthnOutcome | Promise<AuthnOutcome> {
  const { headers, repeated, query, httpMethod, clientCertificate, isProofUsed, legacySsePath } =
    incoming;
  const uri =
    legacySsePath === undefined
      ? upstream.resource
      : `${upstream.resource}/${legacySsePathOf(legacySsePath)}`;
  const outcome = authenticator.authenticate(
    { headers, repeated, query, httpMethod, clientCertificate, isProofUsed, uri },
    upstream,
  );
  if (proofNonces === undefined || isProofUsed === true) return outcome;
  const addProofNonce = (late: AuthnOutcome): AuthnOutcome => {
    if (usesProofs(late)) outgoing.also('dpop-nonce', proofNonces.current());
    return late;
  };
  return outcome instanceof Promise ? outcome.then(addProofNonce) : addProofNonce(outcome);
}

function usesProofs(outcome: AuthnOutcome): boolean {
  return isAuthnError(outcome) ? outcome.proof !== undefined : outcome.token.binding === 'dpop';
}

/** The paths of HTTP+SSE below the upstream's own (contract §2). */
function legacySsePathOf(legacySsePath: 'events' | 'message'): string {
  return legacySsePath === 'events' ? 'sse' : 'message';
}
