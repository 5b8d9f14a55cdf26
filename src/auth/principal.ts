// The only file that makes a principal: from the facts of a verified token or, on loopback with `authentication: none`,
// an anonymous one. A principal is deeply frozen, because the token cache returns the same one for many requests.
// RFC 9068 §2.2; docs/reference/authorization.md.

import type { IssuerSettings } from '../config/settings.js';
import type { Confirmation, Principal, PrincipalFacts } from '../policy/principal.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import type { ClaimFacts } from './claims.js';

/** Deeper claims are refused: no rule could read them, and freezing must be bounded. */
const MAX_CLAIM_DEPTH = 16;

type Unbranded = {
  [Key in keyof Principal as Key extends string ? Key : never]: Principal[Key];
};

/** INVARIANT: the only cast to Principal. Its callers pass verified facts, or none are required. */
function brand(parts: Unbranded): Principal {
  return Object.freeze(parts) as Principal;
}

/** False when something is nested deeper than `depth`. */
function freezeDeep(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (depth === 0) return false;
  Object.freeze(value);
  return Object.values(value).every((member) => freezeDeep(member, depth - 1));
}

/** The scopes together with all that they imply; the same list where they imply nothing more. */
function widen(scopes: readonly string[], implied: IssuerSettings['impliedScopes']): readonly string[] {
  const all = new Set(scopes);
  for (const scope of scopes) {
    if (!Object.hasOwn(implied, scope)) continue;
    for (const narrower of implied[scope] ?? []) all.add(narrower);
  }
  return all.size === new Set(scopes).size ? scopes : [...all];
}

/**
 * Makes the principal of a verified token. `tokenIds` are the keyed digests of its id: the one that records carry, then
 * those under older keys. Undefined when the claims are nested too deeply.
 */
export function makePrincipal(
  issuer: Pick<IssuerSettings, 'name' | 'issuer' | 'impliedScopes'>,
  facts: ClaimFacts,
  claims: JsonObject,
  [tokenId, ...formerIds]: readonly [string, ...string[]],
): Principal | undefined {
  // Without a prototype, so that no policy reads a claim that the issuer did not write.
  const copy: JsonObject = Object.assign(Object.create(null), claims);
  if (!freezeDeep(copy, MAX_CLAIM_DEPTH)) return undefined;
  const scopes = widen(facts.scopes, issuer.impliedScopes);
  const isUnknown = facts.groups === 'unknown';
  return brand({
    issuer: issuer.name,
    issuerUrl: issuer.issuer,
    subject: facts.subject,
    client: facts.client,
    groups: Object.freeze(isUnknown ? [] : facts.groups),
    ...(isUnknown ? { areGroupsUnknown: true } : {}),
    scopes: Object.freeze(scopes),
    ...(scopes === facts.scopes ? {} : { statedScopes: Object.freeze(facts.scopes) }),
    claims: copy,
    actors: Object.freeze(facts.actors),
    token: Object.freeze({
      id: tokenId,
      formerIds: Object.freeze(formerIds),
      audience: facts.audience,
      expiresAt: facts.expiresAt,
      issuedAt: facts.issuedAt,
      ...bindingOf(facts.boundTo),
    }),
  });
}

/** A token bound to both a key and a certificate has to prove both; records name the key. */
function bindingOf(boundTo: Confirmation | undefined): Pick<Principal['token'], 'binding' | 'boundTo'> {
  if (boundTo === undefined) return { binding: 'none' };
  const binding = boundTo.proofKey === undefined ? 'mtls' : 'dpop';
  return { binding, boundTo: Object.freeze(boundTo) };
}

/** The caller of an upstream that requires no token. It never expires and has no rights of its own. */
export function anonymousPrincipal(upstream: { readonly resource: string }): Principal {
  return brand({
    issuer: 'none',
    issuerUrl: 'none',
    subject: 'anonymous',
    client: 'anonymous',
    groups: Object.freeze([]),
    scopes: Object.freeze([]),
    claims: Object.freeze(Object.create(null)),
    actors: Object.freeze([]),
    token: Object.freeze({
      id: 'none',
      formerIds: Object.freeze([]),
      audience: upstream.resource,
      expiresAt: Number.POSITIVE_INFINITY,
      issuedAt: undefined,
      binding: 'none' as const,
    }),
  });
}

/**
 * A caller that nobody has verified, for decisions that are only explained, tested or replayed. INVARIANT: only the
 * commands of cli/policy, which send nothing and get it from process.ts, may use it, and the page of the console that
 * explains a recorded decision, which shows it as text and decides nothing by it.
 */
export function supposePrincipal(facts: PrincipalFacts): Principal {
  const claims = Object.assign(Object.create(null), facts.claims);
  return brand({ ...facts, claims });
}
