// Authenticates a caller: one canonical bearer token, verified with the keys of the one issuer that it names or by
// introspection, for exactly this upstream. Results are cached until the token expires, a short time passes or the
// issuer's keys change, by a digest of the canonical token. What a token is bound to is proved at every request, cached
// or not (presented-token.ts). Fails closed: whatever is not proved is an error.
// RFC 9068 §4, RFC 6750 §2.1, RFC 7662 §2 and §4, RFC 8707 §2.

import { hash } from 'node:crypto';
import type { IssuerSettings, UpstreamSettings } from '../config/settings.js';
import type { Principal } from '../policy/principal.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { BoundedMap } from '../state/bounds.js';
import { type AuthnReason, type ClaimSource, checkClaims, lifetimeOf } from './claims.js';
import type { Introspector } from './introspection.js';
import type { KeySource } from './issuer.js';
import { planVerification, presentedFacts, type SignaturePlan, type Verification, verifySignature } from './jwt.js';
import {
  type AuthnError,
  type BindingDemand,
  type Possession,
  type ProofSubject,
  type ProofVerdict,
  proveBinding,
  readBearer,
} from './presented-token.js';
import { makePrincipal } from './principal.js';

const MAX_ACCEPTED_ENTRIES = 10_000;
const MAX_ACCEPTED_AGE_MS = 5 * 60_000;
/** A refused token costs a verification each time; a short cache blunts a flood of one token. */
const MAX_REFUSED_ENTRIES = 1_000;
const MAX_REFUSED_AGE_MS = 10_000;
/** Requests that may wait for the verification started by another with the same token; each holds its body. */
export const MAX_JOINED = 256;

/**
 * Signatures of unknown tokens that are verified at once, and requests that may wait for it. A flood of bad tokens would
 * otherwise take all processors from the event loop, and end in one turn of it by the hundred.
 */
export const MAX_VERIFYING = 2;
const MAX_WAITING = 1_024;

/** The credentials of a request. Header names are lower-case. */
type Credentials = Possession & {
  readonly repeated: ReadonlySet<string>;
  readonly query: string;
};

/**
 * Whose tokens are accepted, and for which audience. Results are cached by this very object, so pass the frozen one of
 * the configuration, not a copy for each request.
 */
export type ProtectedResource = Pick<UpstreamSettings, 'issuers' | 'audiences' | 'resource'> & {
  /** `none` where absent; a token that is bound must still prove it. */
  readonly binding?: BindingDemand;
};

export type AuthnOutcome = Principal | AuthnError;

export type Authenticator = {
  /**
   * Verifies the caller. Returns at once when the token is cached or obviously invalid, else a promise. Rejects only
   * for a bug, which is a refusal too.
   */
  authenticate(credentials: Credentials, acceptance: ProtectedResource): AuthnOutcome | Promise<AuthnOutcome>;
};

type AuthenticatorPorts = {
  /** By name in the configuration. */
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  readonly keySources: ReadonlyMap<string, KeySource>;
  /** Of the issuers with introspection. */
  readonly introspectors: ReadonlyMap<string, Introspector>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Keyed digests of a token's id under each gateway key, the first of which is safe to record. */
  readonly tokenIds: (bytes: Uint8Array) => readonly [string, ...string[]];
  readonly verifyProof: (subject: ProofSubject) => Promise<ProofVerdict>;
};

/** How long a cached outcome is valid: while the generation is unchanged, and for at most this time. */
type CacheValidity = {
  readonly source: Pick<KeySource, 'generation'>;
  readonly generation: number;
  readonly maxAgeMs: number;
};

type Entry = CacheValidity & { readonly outcome: AuthnOutcome; readonly until: number };

/** What is known of an acceptance before any token is read. */
type AcceptanceContext = {
  readonly id: string;
  readonly issuers: readonly IssuerSettings[];
  /** One of the issuers uses introspection, so that a token may be opaque. */
  readonly mayBeOpaque: boolean;
};

/** True for the error of a caller that could not be verified. */
export function isAuthnError(outcome: AuthnOutcome): outcome is AuthnError {
  return 'reason' in outcome;
}

function acceptedAudiences(acceptance: ProtectedResource, issuer: string): readonly string[] {
  const { audiences, resource } = acceptance;
  return Object.hasOwn(audiences, issuer) ? (audiences[issuer] ?? []) : [resource];
}

/** A refusal that says, for the audit log, what was expected and what the token said of itself. */
function refuse(
  reason: AuthnReason,
  token: string,
  issuers: readonly IssuerSettings[],
  audiences: readonly string[],
): AuthnError {
  const expected = {
    issuer: listOf(issuers.map(({ issuer }) => issuer)),
    audience: listOf(audiences),
    type: listOf(issuers.map(({ tokenType }) => tokenType)),
  };
  return { reason, refusedToken: { expected, presented: presentedFacts(token) } };
}

function inSeconds(ms: number): string {
  return `${Math.round(ms / 1000)}s`;
}

function listOf(values: readonly string[]): string {
  return [...new Set(values)].join(' ');
}

/**
 * What identifies a token without an id, and how it is written where that differs. The signature of a signed token is left
 * out: an ECDSA signature has a second valid form that anyone can compute. Of a token that only its issuer can read the
 * padding counts for nothing, nor which alphabet of base64 it is in: the issuer may read the same in all of them.
 */
function tokenNamesOf(token: string, source: ClaimSource): readonly string[] {
  if (source !== 'introspection') return [token.slice(0, token.lastIndexOf('.'))];
  const name = token.replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_');
  return name === token ? [token] : [name, token];
}

/**
 * Creates the authenticator of one configuration version. A reload creates another with an empty cache; key sources may
 * outlive it.
 */
export function createAuthenticator(ports: AuthenticatorPorts): Authenticator {
  const accepted = new BoundedMap<string, Entry>(MAX_ACCEPTED_ENTRIES);
  const refused = new BoundedMap<string, Entry>(MAX_REFUSED_ENTRIES);
  const inFlight = new Map<string, Promise<AuthnOutcome>>();
  const contexts = new WeakMap<ProtectedResource, AcceptanceContext>();
  /** Requests that wait for their turn to be verified, in the order in which they came. */
  const waiting: (() => void)[] = [];
  let verifying = 0;
  let lastAcceptanceId = 0;
  let joined = 0;

  function contextFor(acceptance: ProtectedResource): AcceptanceContext {
    const known = contexts.get(acceptance);
    if (known !== undefined) return known;
    lastAcceptanceId += 1;
    const issuers = acceptance.issuers.flatMap((name) => ports.issuers.get(name) ?? []);
    const mayBeOpaque = issuers.some((issuer) => issuer.introspection !== undefined);
    const acceptanceContext = { id: String(lastAcceptanceId), issuers, mayBeOpaque };
    contexts.set(acceptance, acceptanceContext);
    return acceptanceContext;
  }

  /**
   * INVARIANT: a cached result of one acceptance is never used for another. The digest has a fixed length, so it cannot
   * be confused with the id that follows.
   */
  function keyFor(token: string, { id }: AcceptanceContext): string {
    return hash('sha256', token, 'base64') + id;
  }

  function freshOutcome(entry: Entry | undefined): AuthnOutcome | undefined {
    if (entry === undefined || entry.until <= ports.now()) return undefined;
    return entry.source.generation() === entry.generation ? entry.outcome : undefined;
  }

  function findCached(cacheKey: string): AuthnOutcome | undefined {
    return freshOutcome(accepted.use(cacheKey)) ?? freshOutcome(refused.use(cacheKey));
  }

  function cacheVerification(cacheKey: string, outcome: AuthnOutcome, validity: CacheValidity): void {
    const now = ports.now();
    if (!isAuthnError(outcome)) {
      const until = Math.min(outcome.token.expiresAt, now + validity.maxAgeMs);
      accepted.set(cacheKey, { outcome, until, ...validity });
    } else if (outcome.reason !== 'token-not-yet-valid') {
      const maxAgeMs = Math.min(MAX_REFUSED_AGE_MS, validity.maxAgeMs);
      refused.set(cacheKey, { outcome, until: now + maxAgeMs, ...validity });
    }
  }

  /** The refusal with the lifetime of the token and the maximum. */
  function withLifetime(
    { reason, refusedToken }: AuthnError,
    { maxLifetimeMs }: IssuerSettings,
    claims: JsonObject,
  ): AuthnError {
    const maximum = inSeconds(maxLifetimeMs);
    const lifetime = inSeconds(lifetimeOf(claims, ports.now()));
    return {
      reason,
      refusedToken: {
        expected: { ...refusedToken?.expected, lifetime: maximum },
        presented: { ...refusedToken?.presented, lifetime },
      },
      detail: `lifetime ${lifetime}, maximum ${maximum}`,
    };
  }

  /** The principal, when every claim passes that the signature or the introspection response vouches for. */
  function principalOf(
    { token, plan: { issuer }, audiences }: Verification,
    claims: JsonObject,
    source: ClaimSource,
  ): AuthnOutcome {
    const facts = checkClaims(claims, { issuer, source, audiences, now: ports.now() });
    if (facts === 'token-lifetime') return withLifetime(refuse(facts, token, [issuer], audiences), issuer, claims);
    if (typeof facts === 'string') return refuse(facts, token, [issuer], audiences);
    // A token id is unique only within its issuer (RFC 7519 §4.1.7).
    const names = facts.tokenId === undefined ? tokenNamesOf(token, source) : [`${issuer.issuer}\n${facts.tokenId}`];
    const [name = '', written] = names;
    const ids = ports.tokenIds(Buffer.from(name));
    const formerIds = written === undefined ? [] : ports.tokenIds(Buffer.from(written));
    return (
      makePrincipal(issuer, facts, claims, [...ids, ...formerIds]) ??
      refuse('token-malformed', token, [issuer], audiences)
    );
  }

  /** Runs the work once it is its turn; `undefined` where too many wait already. */
  async function inTurn<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (verifying < MAX_VERIFYING) verifying += 1;
    else if (waiting.length >= MAX_WAITING) return undefined;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Whoever is next takes over the place.
      const next = waiting.shift();
      if (next === undefined) verifying -= 1;
      else next();
    }
  }

  async function verifyByKey(cacheKey: string, verification: Verification<SignaturePlan>): Promise<AuthnOutcome> {
    const { header, issuer, source: claimSource } = verification.plan;
    const source = ports.keySources.get(issuer.name);
    if (source === undefined) return { reason: 'keys-unavailable' };
    const lookup = await source.keysFor(header);
    switch (lookup.kind) {
      case 'unavailable':
        return { reason: 'keys-unavailable' };
      case 'unknown':
        return refuse('token-signature', verification.token, [issuer], verification.audiences);
      case 'keys': {
        const { keys } = lookup;
        const claims = await inTurn(() => verifySignature(verification, keys, ports.now()));
        if (claims === undefined) return { reason: 'keys-unavailable' };
        const outcome =
          typeof claims === 'string'
            ? refuse(claims, verification.token, [issuer], verification.audiences)
            : principalOf(verification, claims, claimSource);
        const { generation } = lookup;
        cacheVerification(cacheKey, outcome, { source, generation, maxAgeMs: MAX_ACCEPTED_AGE_MS });
        return outcome;
      }
    }
  }

  async function verifyByIntrospection(cacheKey: string, verification: Verification): Promise<AuthnOutcome> {
    const { issuer } = verification.plan;
    const source = ports.introspectors.get(issuer.name);
    if (source === undefined) return { reason: 'keys-unavailable' };
    const response = await source.introspect(verification.token);
    const maxAgeMs = issuer.introspection?.cacheTtlMs ?? 0;
    const validity = { source, generation: source.generation(), maxAgeMs };
    switch (response.kind) {
      case 'unavailable':
        return { reason: 'keys-unavailable' };
      case 'inactive': {
        const { token, audiences } = verification;
        const outcome = refuse('token-signature', token, [issuer], audiences);
        cacheVerification(cacheKey, outcome, validity);
        return outcome;
      }
      case 'active': {
        const outcome = principalOf(verification, response.claims, 'introspection');
        if (!isAuthnError(outcome)) source.noteGood(verification.token);
        cacheVerification(cacheKey, outcome, validity);
        return outcome;
      }
    }
  }

  function verify(cacheKey: string, verification: Verification): Promise<AuthnOutcome> {
    const { plan } = verification;
    return plan.kind === 'signature'
      ? verifyByKey(cacheKey, { ...verification, plan })
      : verifyByIntrospection(cacheKey, verification);
  }

  /** Waits for the verification that another request started. Bounded, because neither sender is known yet. */
  function joinVerification(verdict: Promise<AuthnOutcome>): AuthnOutcome | Promise<AuthnOutcome> {
    if (joined >= MAX_JOINED) return { reason: 'keys-unavailable' };
    joined += 1;
    return verdict.finally(() => {
      joined -= 1;
    });
  }

  /** Verifies the token alone, without the proof of its binding. */
  function verifyToken(
    token: string,
    acceptance: ProtectedResource,
    context: AcceptanceContext,
  ): AuthnOutcome | Promise<AuthnOutcome> {
    const cacheKey = keyFor(token, context);
    const known = findCached(cacheKey);
    if (known !== undefined) return known;
    const running = inFlight.get(cacheKey);
    if (running !== undefined) return joinVerification(running);
    const plan = planVerification(token, context.issuers);
    if (typeof plan === 'string') {
      const audiences = context.issuers.flatMap(({ name }) => acceptedAudiences(acceptance, name));
      return refuse(plan, token, context.issuers, audiences);
    }
    const audiences = acceptedAudiences(acceptance, plan.issuer.name);
    const verdict = verify(cacheKey, { token, plan, audiences }).finally(() => inFlight.delete(cacheKey));
    inFlight.set(cacheKey, verdict);
    return verdict;
  }

  return {
    authenticate(credentials, acceptance) {
      const { headers, repeated, query } = credentials;
      const admission = contextFor(acceptance);
      const presented = readBearer(headers, repeated, query, admission.mayBeOpaque);
      if (presented === 'missing') return { reason: 'token-missing' };
      if (presented === 'malformed') return { reason: 'token-malformed' };
      const bindingTerms = { demand: acceptance.binding ?? 'none', verifyProof: ports.verifyProof };
      const prove = (outcome: AuthnOutcome): AuthnOutcome | Promise<AuthnOutcome> =>
        isAuthnError(outcome) ? outcome : proveBinding(outcome, presented, credentials, bindingTerms);
      const outcome = verifyToken(presented.token, acceptance, admission);
      return outcome instanceof Promise ? outcome.then(prove) : prove(outcome);
    },
  };
}

/**
 * The same authenticator, but callers for whom `check` returns a reason are refused. Nothing is cached here, so a
 * cached result is checked again at every request.
 */
export function refuseRevoked(
  inner: Authenticator,
  check: (principal: Principal) => AuthnReason | undefined,
): Authenticator {
  function refuse(outcome: AuthnOutcome): AuthnOutcome {
    if (isAuthnError(outcome)) return outcome;
    const reason = check(outcome);
    return reason === undefined ? outcome : { reason };
  }
  return {
    authenticate(credentials, acceptance) {
      const outcome = inner.authenticate(credentials, acceptance);
      return outcome instanceof Promise ? outcome.then(refuse) : refuse(outcome);
    },
  };
}
