// Decides who calls: one canonical bearer token, verified with the keys of the one issuer that it
// names, for exactly this upstream. Verified tokens are remembered until they expire, five minutes
// pass or the issuer's keys change; nothing is looked up by a spelling that another could share.
// What a token is bound to is proved at every request, remembered or not (binding.ts).
// It fails closed: what is not proved is a fault. RFC 9068 §4, RFC 6750 §2.1, RFC 8707 §2.

import { hash } from 'node:crypto';
import { type CryptoKey, errors, jwtVerify } from 'jose';
import type { IssuerSettings, UpstreamSettings } from '../config/settings.js';
import type { JsonObject } from '../mcp/message.js';
import type { Principal } from '../policy/principal.js';
import { readBearer } from './bearer.js';
import { type AuthnFault, type BindingDemand, type Possession, proveBinding } from './binding.js';
import { type AuthnReason, CLOCK_TOLERANCE_MS, judgeClaims } from './claims.js';
import type { KeySource } from './keys.js';
import { makePrincipal } from './principal.js';
import type { ProofSubject, ProofVerdict } from './proof.js';
import { planVerification, type TokenPlan } from './token.js';
import { createGenerationCache } from './token-cache.js';

const MAX_ACCEPTED_ENTRIES = 10_000;
const MAX_ACCEPTED_AGE_MS = 5 * 60_000;
/** A refused token costs a verification each time; a short memory blunts a flood of one token. */
const MAX_REFUSED_ENTRIES = 1_000;
const MAX_REFUSED_AGE_MS = 10_000;

/** What of a request speaks for its caller. Names of headers are lower-case. */
export type Credentials = Possession & {
  readonly repeated: ReadonlySet<string>;
  readonly query: string;
};

/**
 * Whose tokens are accepted, and for which audience. Verdicts are remembered for this very object, so
 * pass the frozen one of the configuration, not a copy for each request.
 */
export type Acceptance = Pick<UpstreamSettings, 'issuers' | 'audiences' | 'resource'> & {
  /** `none` where absent; a token that is bound must prove it all the same. */
  readonly binding?: BindingDemand;
};

export type AuthnOutcome = Principal | AuthnFault;

export type Authenticator = {
  /**
   * Verifies the caller. Answers at once when the token is remembered or plainly bad, else by promise.
   * Rejects only for a bug; that is a refusal too.
   */
  authenticate(
    credentials: Credentials,
    acceptance: Acceptance,
  ): AuthnOutcome | Promise<AuthnOutcome>;
};

export type AuthenticatorPorts = {
  /** By name in the configuration. */
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  readonly keySources: ReadonlyMap<string, KeySource>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Keyed digests of a token's id under each gateway key, the first of which is safe to record. */
  readonly tokenIds: (bytes: Uint8Array) => readonly [string, ...string[]];
  readonly judgeProof: (subject: ProofSubject) => Promise<ProofVerdict>;
};

type Entry = {
  readonly outcome: AuthnOutcome;
  readonly until: number;
  readonly source: KeySource;
  readonly generation: number;
};

type Verification = {
  readonly token: string;
  readonly plan: TokenPlan;
  readonly audiences: readonly string[];
};

/** True for the fault of a caller that could not be verified. */
export function isFault(outcome: AuthnOutcome): outcome is AuthnFault {
  return 'reason' in outcome;
}

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

/** The claims of the token once its signature, type, issuer and audience hold. */
async function verifySignature(
  { token, plan, audiences }: Verification,
  key: CryptoKey,
  now: number,
): Promise<JsonObject | AuthnReason> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [plan.header.alg],
      issuer: plan.issuer.issuer,
      audience: [...audiences],
      typ: plan.issuer.tokenType,
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

function acceptedAudiences(acceptance: Acceptance, issuer: string): readonly string[] {
  const { audiences, resource } = acceptance;
  return Object.hasOwn(audiences, issuer) ? (audiences[issuer] ?? []) : [resource];
}

function isPlan(plan: TokenPlan | AuthnReason): plan is TokenPlan {
  return typeof plan !== 'string';
}

/**
 * Makes the authenticator of one configuration: after a reload another is made, which remembers
 * nothing. Key sources may outlive it.
 */
export function createAuthenticator(ports: AuthenticatorPorts): Authenticator {
  const accepted = createGenerationCache<Entry>(MAX_ACCEPTED_ENTRIES);
  const refused = createGenerationCache<Entry>(MAX_REFUSED_ENTRIES);
  const inFlight = new Map<string, Promise<AuthnOutcome>>();
  const acceptanceIds = new WeakMap<Acceptance, string>();
  let lastAcceptanceId = 0;

  /** INVARIANT: what one acceptance let in is never an answer for another. */
  function keyFor(token: string, acceptance: Acceptance): string {
    let id = acceptanceIds.get(acceptance);
    if (id === undefined) {
      lastAcceptanceId += 1;
      id = String(lastAcceptanceId);
      acceptanceIds.set(acceptance, id);
    }
    // The digest is of fixed length, so what stands behind it cannot be confused with it.
    return hash('sha256', token, 'base64') + id;
  }

  function recall(cacheKey: string): AuthnOutcome | undefined {
    const entry = accepted.get(cacheKey) ?? refused.get(cacheKey);
    if (entry === undefined || entry.until <= ports.now()) return undefined;
    return entry.source.generation() === entry.generation ? entry.outcome : undefined;
  }

  function remember(
    cacheKey: string,
    outcome: AuthnOutcome,
    origin: Pick<Entry, 'source' | 'generation'>,
  ): void {
    const now = ports.now();
    if (!isFault(outcome)) {
      const until = Math.min(outcome.token.expiresAt, now + MAX_ACCEPTED_AGE_MS);
      accepted.set(cacheKey, { outcome, until, ...origin });
    } else if (outcome.reason !== 'token-not-yet-valid') {
      refused.set(cacheKey, { outcome, until: now + MAX_REFUSED_AGE_MS, ...origin });
    }
  }

  /** A principal, when the signature and every claim hold. */
  async function judge(verification: Verification, key: CryptoKey): Promise<AuthnOutcome> {
    const { token, plan, audiences } = verification;
    const now = ports.now();
    const claims = await verifySignature(verification, key, now);
    if (typeof claims === 'string') return { reason: claims };
    const facts = judgeClaims(claims, { issuer: plan.issuer, audiences, now });
    if (typeof facts === 'string') return { reason: facts };
    // A token id is unique within its issuer alone (RFC 7519 §4.1.7).
    const named = facts.tokenId === undefined ? token : `${plan.issuer.issuer}\n${facts.tokenId}`;
    const ids = ports.tokenIds(Buffer.from(named));
    return makePrincipal(plan.issuer, facts, claims, ids) ?? { reason: 'token-malformed' };
  }

  async function verify(cacheKey: string, verification: Verification): Promise<AuthnOutcome> {
    const { header, issuer } = verification.plan;
    const source = ports.keySources.get(issuer.name);
    if (source === undefined) return { reason: 'keys-unavailable' };
    const lookup = await source.keysFor(header);
    switch (lookup.kind) {
      case 'unavailable':
        return { reason: 'keys-unavailable' };
      case 'unknown':
        return { reason: 'token-signature' };
      case 'key': {
        const outcome = await judge(verification, lookup.key);
        remember(cacheKey, outcome, { source, generation: lookup.generation });
        return outcome;
      }
    }
  }

  function plan(token: string, acceptance: Acceptance): TokenPlan | AuthnReason {
    const issuers = acceptance.issuers.flatMap((name) => ports.issuers.get(name) ?? []);
    return planVerification(token, issuers);
  }

  /** Whose token it is, whoever sends it. */
  function verifyToken(
    token: string,
    acceptance: Acceptance,
  ): AuthnOutcome | Promise<AuthnOutcome> {
    const cacheKey = keyFor(token, acceptance);
    const known = recall(cacheKey) ?? inFlight.get(cacheKey);
    if (known !== undefined) return known;
    const planned = plan(token, acceptance);
    if (!isPlan(planned)) return { reason: planned };
    const audiences = acceptedAudiences(acceptance, planned.issuer.name);
    const verdict = verify(cacheKey, { token, plan: planned, audiences }).finally(() =>
      inFlight.delete(cacheKey),
    );
    inFlight.set(cacheKey, verdict);
    return verdict;
  }

  return {
    authenticate(credentials, acceptance) {
      const presented = readBearer(credentials.headers, credentials.repeated, credentials.query);
      if (presented === 'missing') return { reason: 'token-missing' };
      if (presented === 'malformed') return { reason: 'token-malformed' };
      const terms = { demand: acceptance.binding ?? 'none', judgeProof: ports.judgeProof };
      const prove = (outcome: AuthnOutcome): AuthnOutcome | Promise<AuthnOutcome> =>
        isFault(outcome) ? outcome : proveBinding(outcome, presented, credentials, terms);
      const outcome = verifyToken(presented.token, acceptance);
      return outcome instanceof Promise ? outcome.then(prove) : prove(outcome);
    },
  };
}
