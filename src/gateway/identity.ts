// Who may vouch for callers: one key source or introspector an issuer, one authenticator a version. Those
// of issuers that a reload left alone stay, with the keys that they have.

import {
  type Authenticator,
  type AuthnOutcome,
  createAuthenticator,
  isAuthnError,
  refuseRevoked,
} from '../auth/authenticator.js';
import { createProofNonces, createProofVerifier, type ProofNonces } from '../auth/dpop.js';
import {
  createIntrospector,
  type Introspector,
  type IntrospectorStatus,
} from '../auth/introspection.js';
import { createKeySource, type KeySource, type KeySourceStatus } from '../auth/jwks.js';
import type { IssuerSettings, Settings, UpstreamSettings } from '../config/settings.js';
import type { ReplayStore } from '../policy/limits.js';
import type { Incoming, Outgoing } from '../protocol/transport.js';
import type { KeyRing } from '../state/keys.js';

import type { Revocations } from '../state/memory.js';
import type { FetchJson, PostForm } from '../upstream/safe-fetch.js';

export type Identity = {
  readonly authenticator: Authenticator;
  /**
   * For the admin listener: whoever is known to be revoked is refused there too, but what the store cannot
   * tell shuts nobody out who would see why, or revoke.
   */
  readonly adminAuthenticator: Authenticator;
  /** By name of the issuer. */
  readonly keySources: ReadonlyMap<string, KeySource>;
  readonly introspectors: ReadonlyMap<string, Introspector>;
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  /** To be called now and then: fetches keys and looks for endpoints ahead of need. */
  keepFresh(): void;
  /** How each issuer stands; `lastSuccessAt` is of its keys, in milliseconds since the epoch. */
  statuses(): ReadonlyMap<string, IntrospectorStatus & Partial<KeySourceStatus>>;
  /** Where every proof of possession must carry a nonce. */
  readonly proofNonces: ProofNonces | undefined;
};

type IdentityPorts = {
  readonly fetchJson: FetchJson;
  readonly postForm: PostForm;
  readonly now: () => number;
  readonly ring: KeyRing;
  readonly revocations: Pick<Revocations, 'checkPrincipal' | 'isRevoked'>;
  /** Outlives every version: what was used before a reload stays used. */
  readonly replays: ReplayStore;
};

/** Builds the identity of a version; `before` is that of the version that it replaces. */
export function buildIdentity(
  settings: Settings,
  ports: IdentityPorts,
  before?: Identity,
): Identity {
  const { now, ring, replays, revocations } = ports;
  const { dpop } = settings.listeners.data;
  const keySources = new Map<string, KeySource>();
  const introspectors = new Map<string, Introspector>();
  for (const issuer of settings.issuers.values()) {
    const { name, introspection } = issuer;
    if (introspection === undefined) keySources.set(name, keySourceFor(issuer, ports, before));
    else introspectors.set(name, introspectorFor(issuer, introspection, ports, before));
  }
  const proofNonces =
    dpop.nonce === 'required' ? createProofNonces({ now, hmacAll: ring.hmacAll }) : undefined;
  const authenticator = createAuthenticator({
    issuers: settings.issuers,
    keySources,
    introspectors,
    now,
    tokenIds: (bytes) => ring.hmacAll('token-id', bytes),
    verifyProof: createProofVerifier({
      now,
      hmacAll: ring.hmacAll,
      replays,
      nonces: proofNonces,
      maxAgeMs: dpop.maxAgeMs,
    }),
  });
  const all = [...keySources, ...introspectors];
  return {
    authenticator: refuseRevoked(authenticator, revocations.checkPrincipal),
    adminAuthenticator: refuseRevoked(authenticator, (principal) =>
      revocations.isRevoked(principal) ? 'token-revoked' : undefined,
    ),
    keySources,
    introspectors,
    issuers: settings.issuers,
    proofNonces,
    keepFresh() {
      for (const [, source] of all) source.keepFresh();
    },
    statuses: () => new Map(all.map(([name, source]) => [name, source.status()])),
  };
}

function keySourceFor(
  issuer: IssuerSettings,
  { fetchJson, now }: IdentityPorts,
  before: Identity | undefined,
): KeySource {
  const kept = before?.keySources.get(issuer.name);
  const old = before?.issuers.get(issuer.name);
  if (kept !== undefined && old !== undefined && keyFacts(old) === keyFacts(issuer)) return kept;
  const source = createKeySource(issuer, { fetchJson, now });
  // A warm start: the first caller should not wait for keys. Its failure shows in the controls.
  void source.refresh();
  return source;
}

/** What the keys of an issuer depend on: with any other change they serve on. */
function keyFacts({ issuer, network, algorithms, keysMaxAgeMs }: IssuerSettings): string {
  return JSON.stringify([issuer, network, algorithms, keysMaxAgeMs]);
}

function introspectorFor(
  issuer: IssuerSettings,
  introspection: NonNullable<IssuerSettings['introspection']>,
  ports: IdentityPorts,
  before: Identity | undefined,
): Introspector {
  const kept = before?.introspectors.get(issuer.name);
  const isSame = JSON.stringify(before?.issuers.get(issuer.name)) === JSON.stringify(issuer);
  if (kept !== undefined && isSame) return kept;
  const introspector = createIntrospector(issuer, introspection, ports);
  introspector.keepFresh();
  return introspector;
}

// One login at an upstream: what of the request speaks for its caller, which URL a proof of possession must
// name (the configured one, whatever Host and forwarding headers say), and which nonce the next must carry.
// RFC 9449 §4.3, §8.2 and §9.

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

/** The paths of HTTP+SSE below the upstream's own (docs/contract.md §2). */
function legacySsePathOf(legacySsePath: 'events' | 'message'): string {
  return legacySsePath === 'events' ? 'sse' : 'message';
}
