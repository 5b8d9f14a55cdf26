// Writes the WWW-Authenticate value of a 401 or 403. Every value comes from the configuration or from
// policy; nothing that a caller sent is in it.
// RFC 6750 §3, RFC 9728 §5.1, RFC 6749 §3.3; MCP 2026-07-28, scope challenge handling.

import type { Reason } from '../policy/reasons.js';

/** Asking for it is the client's own choice, never ours (MCP 2026-07-28, scope challenge handling). */
const NEVER_OFFERED = 'offline_access';

/** RFC 6750 §3.1: no error where no credential was sent. */
function errorFor(reason: Reason): string | undefined {
  if (reason === 'token-missing') return undefined;
  return reason === 'insufficient-scope' ? 'insufficient_scope' : 'invalid_token';
}

/** A quoted-string (RFC 9110 §5.6.4); what may not stand in a header value is left out. */
function quote(value: string): string {
  return `"${value.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`;
}

/**
 * The challenge for a refusal that is rendered as one. `scopes`: for a 401 what the metadata document
 * offers, for a 403 every scope that the operation needs.
 */
export function challengeFor(
  reason: Reason,
  offer: { readonly metadataUrl: string; readonly scopes: readonly string[] },
): string {
  const parts = [`resource_metadata=${quote(offer.metadataUrl)}`];
  const scopes = offer.scopes.filter((scope) => scope !== NEVER_OFFERED);
  if (scopes.length > 0) parts.push(`scope=${quote(scopes.join(' '))}`);
  const error = errorFor(reason);
  if (error !== undefined) parts.push(`error="${error}"`);
  return `Bearer ${parts.join(', ')}`;
}
