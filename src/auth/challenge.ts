// Writes the WWW-Authenticate value of a 401 or 403. Every value comes from the configuration or from policy, never
// from the request.
// RFC 6750 §3, RFC 9449 §7.1, RFC 9728 §5.1, RFC 6749 §3.3; MCP 2026-07-28, scope challenge handling.

import type { ProofError } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import type { TokenScheme } from './bearer.js';
import { PROOF_ALGORITHMS } from './dpop.js';
import type { BindingDemand } from './token-binding.js';

/** Whether to request it is the client's choice, never the server's (MCP 2026-07-28, scope challenge handling). */
const NEVER_OFFERED = 'offline_access';

const SCHEME_NAMES: Readonly<Record<TokenScheme, string>> = { bearer: 'Bearer', dpop: 'DPoP' };

export type ChallengeOffer = {
  readonly metadataUrl: string;
  /** For a 401 the scopes in the metadata document, for a 403 every scope that the operation needs. */
  readonly scopes: readonly string[];
  /** Absent: unbound bearer tokens are required. */
  readonly possession?: {
    /** What tokens must be bound to. */
    readonly demand: BindingDemand;
    /** Client certificates are requested, so that a bearer token may be bound to one. */
    readonly takesCertificates: boolean;
    /** The request used DPoP, or had to. */
    readonly usesProofs: boolean;
    readonly proof: ProofError | undefined;
  };
};

/** RFC 6750 §3.1: no error where no credential was sent. */
function errorFor(reason: Reason): string | undefined {
  if (reason === 'token-missing') return undefined;
  return reason === 'insufficient-scope' ? 'insufficient_scope' : 'invalid_token';
}

/** A quoted-string (RFC 9110 §5.6.4); characters not allowed in a header value are left out. */
function quote(value: string): string {
  return `"${value.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`;
}

/** The accepted schemes, the one that the error belongs to first. */
function schemesOf({ possession }: ChallengeOffer): readonly TokenScheme[] {
  if (possession === undefined) return ['bearer'];
  const { demand, takesCertificates, usesProofs } = possession;
  switch (demand) {
    case 'none':
      return [usesProofs ? 'dpop' : 'bearer'];
    case 'any':
      if (!takesCertificates) return ['dpop'];
      return usesProofs ? ['dpop', 'bearer'] : ['bearer', 'dpop'];
    case 'dpop':
      return ['dpop'];
    case 'mtls':
      return ['bearer'];
  }
}

/** The challenge of a refusal that is rendered as 401 or 403. */
export function challengeFor(reason: Reason, offer: ChallengeOffer): string {
  const shared = [`resource_metadata=${quote(offer.metadataUrl)}`];
  const scopes = offer.scopes.filter((scope) => scope !== NEVER_OFFERED);
  if (scopes.length > 0) shared.push(`scope=${quote(scopes.join(' '))}`);
  const error = offer.possession?.proof ?? errorFor(reason);
  return schemesOf(offer)
    .map((scheme, index) => {
      const parts = [...shared];
      if (error !== undefined && index === 0) parts.push(`error="${error}"`);
      if (scheme === 'dpop') parts.push(`algs=${quote(PROOF_ALGORITHMS.join(' '))}`);
      return `${SCHEME_NAMES[scheme]} ${parts.join(', ')}`;
    })
    .join(', ');
}
