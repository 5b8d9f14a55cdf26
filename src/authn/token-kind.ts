// Tells by their claims tokens that are not for calling, where their type does not: identity tokens, logout
// tokens, refresh tokens, tokens that name no kind but their own. A guess against the token, never for it.
// RFC 9068 §2.1 and §5, RFC 8725 §3.11 and §3.12; OpenID Connect Core §2, Back-Channel Logout §2.4.

import type { JsonObject } from '../mcp/message.js';
import { own } from './claim-path.js';

/** Only identity tokens (hashes, nonce) and event tokens carry these. */
const FOREIGN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events', 'sub_jwk'];

/** What issuers write into a claim `typ` of access tokens; they write others into other tokens. */
const ACCESS_TYPES: ReadonlySet<unknown> = new Set(['bearer', 'dpop', 'at+jwt', 'jwt']);

function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}

/** True when the claims say that the token is of another kind. */
export function isOtherKind(
  claims: JsonObject,
  facts: { readonly client: string; readonly audience: string; readonly hasScopes: boolean },
): boolean {
  if (FOREIGN_CLAIMS.some((name) => Object.hasOwn(claims, name))) return true;
  const type = own(claims, 'typ');
  if (type !== undefined && !ACCESS_TYPES.has(lower(type))) return true;
  const use = own(claims, 'token_use');
  if (use !== undefined && use !== 'access') return true;
  // An identity token is for the client itself, and grants nothing (OpenID Connect Core §2).
  return facts.audience === facts.client && !facts.hasScopes;
}

/**
 * RFC 7662 §2.2 (`token_type`): a bearer token, said or unsaid, or one that is bound to a key and says to
 * which (RFC 9449 §6.2).
 */
export function checkTokenType(claims: JsonObject): 'token-type' | 'token-binding' | undefined {
  const type = lower(own(claims, 'token_type'));
  if (type === undefined || type === 'bearer') return undefined;
  if (type !== 'dpop') return 'token-type';
  return Object.hasOwn(claims, 'cnf') ? undefined : 'token-binding';
}
