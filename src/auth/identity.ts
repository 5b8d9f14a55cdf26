// Authentication of one configuration version: a key source or introspector per issuer, and the authenticator over
// them. Those of issuers that a reload left unchanged are kept, with the keys that they hold. The login follows RFC
// 9449 §4.3, §8.2 and §9.

import type { IssuerSettings, Settings, UpstreamSettings } from '../config/settings.js';
import type { ReplayStore } from '../policy/obligations.js';
import type { Principal } from '../policy/principal.js';
import type { Incoming, Outgoing } from '../protocol/transport.js';
import { accessSettingsOf } from './access-settings.js';
import {
  type Authenticator,
  type AuthnOutcome,
  createAuthenticator,
  isAuthnError,
  refuseRevoked,
} from './authenticator.js';
import { createIntrospector, type Introspector, type IntrospectorStatus } from './introspection.js';
import { createKeySource, type KeySource, type KeySourceStatus } from './issuer.js';
import { createProofNonces, createProofVerifier, type ProofNonces } from './presented-token.js';
import { anonymousPrincipal } from './principal.js';

export type Identity = {
  readonly authenticator: Authenticator;
  /**
   * For the admin listener: a caller known to be revoked, or whose subject is blocked, is refused there too, but a store
   * that cannot be read locks out no administrator, who may need to see why or to revoke.
   */
  readonly adminAuthenticator: Authenticator;
  /** By the issuer's name. */
  readonly keySources: ReadonlyMap<string, KeySource>;
  readonly introspectors: ReadonlyMap<string, Introspector>;
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  /** To be called periodically: fetches keys and discovers endpoints before they are needed. */
  keepFresh(): void;
  /** The state of each issuer; `lastSuccessAt` refers to its keys, in milliseconds since the epoch. */
  statuses(): ReadonlyMap<string, IntrospectorStatus & Partial<KeySourceStatus>>;
  /** Whether nobody can tell a person at this issuer: it gives each client another subject, and no claim is named instead. */
  hidesPersons(issuer: string): boolean;
  /** Present where every DPoP proof must carry a nonce. */
  readonly proofNonces: ProofNonces | undefined;
};

/** The revocations and blocks in force. */
type CallerChecks = {
  checkPrincipal(principal: Principal): 'token-revoked' | 'store-unavailable' | undefined;
  isLockedOut(principal: Principal): boolean;
  /** The id of the block that covers the caller. */
  blockOf(principal: Principal): string | undefined;
};

type IdentityPorts = Parameters<typeof createIntrospector>[2] & {
  readonly ring: { hmacAll(purpose: string, bytes: Uint8Array | string): readonly [string, ...string[]] };
  readonly revocations: Pick<CallerChecks, 'checkPrincipal' | 'isLockedOut'>;
  /** Outlives every version: a proof used before a reload stays used. */
  readonly replays: ReplayStore;
  /** Called with what of an issuer's documents is left out, one clause each. */
  readonly onLeftOut: (issuer: string, clauses: readonly string[]) => void;
  /** Whether others than this machine reach the gateway, which then takes no tokens of a development issuer. */
  readonly refusesDevelopment?: boolean;
};

/** Builds the identity of a version; `before` is that of the version being replaced. */
export function buildIdentity(settings: Settings, ports: IdentityPorts, before?: Identity): Identity {
  const { now, ring, replays, revocations } = ports;
  const { dpop } = settings.listeners.data;
  const keySources = new Map<string, KeySource>();
  const introspectors = new Map<string, Introspector>();
  for (const issuer of settings.issuers.values()) {
    const { name, introspection } = issuer;
    if (introspection === undefined) keySources.set(name, keySourceFor(issuer, ports, before));
    else introspectors.set(name, introspectorFor(issuer, introspection, ports, before));
  }
  const proofNonces = dpop.nonce === 'required' ? createProofNonces({ now, hmacAll: ring.hmacAll }) : undefined;
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
      revocations.isLockedOut(principal) ? 'token-revoked' : undefined,
    ),
    keySources,
    introspectors,
    issuers: settings.issuers,
    proofNonces,
    keepFresh() {
      for (const [, source] of all) source.keepFresh();
    },
    statuses: () => new Map(all.map(([name, source]) => [name, source.status()])),
    hidesPersons(name) {
      const source = keySources.get(name) ?? introspectors.get(name);
      return source?.status().isPairwise === true && settings.issuers.get(name)?.login?.match === undefined;
    },
  };
}

function keySourceFor(
  issuer: IssuerSettings,
  { fetchJson, now, onLeftOut, refusesDevelopment }: IdentityPorts,
  before: Identity | undefined,
): KeySource {
  const previous = before?.keySources.get(issuer.name);
  const old = before?.issuers.get(issuer.name);
  if (previous !== undefined && old !== undefined && keySettingsOf(old) === keySettingsOf(issuer)) return previous;
  const source = createKeySource(issuer, {
    fetchJson,
    now,
    refusesDevelopment,
    onLeftOut: (clauses) => onLeftOut(issuer.name, clauses),
  });
  // Fetched ahead, so that the first caller need not wait for keys. A failure shows in the controls.
  void source.refresh();
  return source;
}

/** The settings that the keys of an issuer depend on; after any other change the key source is kept. */
function keySettingsOf(settings: IssuerSettings): string {
  const { issuer, network, plaintext, algorithms, keysMaxAgeMs } = settings;
  return JSON.stringify([issuer, network, plaintext, algorithms, keysMaxAgeMs]);
}

function introspectorFor(
  issuer: IssuerSettings,
  introspection: NonNullable<IssuerSettings['introspection']>,
  ports: IdentityPorts,
  before: Identity | undefined,
): Introspector {
  const previous = before?.introspectors.get(issuer.name);
  const isSame = JSON.stringify(before?.issuers.get(issuer.name)) === JSON.stringify(issuer);
  if (previous !== undefined && isSame) return previous;
  const introspector = createIntrospector(issuer, introspection, ports);
  introspector.keepFresh();
  return introspector;
}

/** A caller that was verified but is blocked is known, unlike one that could not be verified. */
type CallerOutcome =
  | AuthnOutcome
  | { readonly reason: 'blocked'; readonly blocked: { readonly principal: Principal; readonly id: string } }
  | { readonly reason: 'upstream-unavailable' };

/** Creates the port that verifies callers, under the settings and the identity that are current at each call. */
export function createIdentityPort(
  settings: () => Settings,
  identity: () => Identity,
  { blockOf }: Pick<CallerChecks, 'blockOf'>,
) {
  function refuseBlocked(outcome: AuthnOutcome): CallerOutcome {
    if (isAuthnError(outcome)) return outcome;
    const id = blockOf(outcome);
    return id === undefined ? outcome : { reason: 'blocked', blocked: { principal: outcome, id } };
  }

  return {
    authenticate(incoming: Incoming, outgoing: Pick<Outgoing, 'addHeader'>): CallerOutcome | Promise<CallerOutcome> {
      const access = accessSettingsOf(incoming, settings());
      // A reload may have removed the upstream since the request came, or taken it out of the aggregate.
      if (access === undefined) return { reason: 'upstream-unavailable' };
      if (access.authentication === 'none') return anonymousPrincipal(access);
      const outcome = authenticateCaller(identity(), access, incoming, outgoing);
      return outcome instanceof Promise ? outcome.then(refuseBlocked) : refuseBlocked(outcome);
    },
  };
}

/**
 * Verifies the caller of a request and, where the caller uses DPoP, adds the nonce for its next proof to the response.
 * The URL that a proof must name is the configured one, whatever Host and forwarding headers say.
 */
function authenticateCaller(
  { authenticator, proofNonces }: Identity,
  upstream: Pick<UpstreamSettings, 'resource' | 'issuers' | 'audiences' | 'binding'>,
  incoming: Incoming,
  outgoing: Pick<Outgoing, 'addHeader'>,
): AuthnOutcome | Promise<AuthnOutcome> {
  const { headers, repeated, query, httpMethod, clientCertificate, isProofUsed } = incoming;
  const uri = `${upstream.resource}${suffixOf(incoming)}`;
  const outcome = authenticator.authenticate(
    { headers, repeated, query, httpMethod, clientCertificate, isProofUsed, uri },
    upstream,
  );
  if (proofNonces === undefined || isProofUsed === true) return outcome;
  const addProofNonce = (resolved: AuthnOutcome): AuthnOutcome => {
    if (usesProofs(resolved)) outgoing.addHeader('dpop-nonce', proofNonces.current());
    return resolved;
  };
  return outcome instanceof Promise ? outcome.then(addProofNonce) : addProofNonce(outcome);
}

function usesProofs(outcome: AuthnOutcome): boolean {
  return isAuthnError(outcome) ? outcome.proof !== undefined : outcome.token.binding === 'dpop';
}

/** What of the requested path follows the upstream's own (docs/reference/listeners.md#paths). */
function suffixOf({ legacySsePath, hasTrailingSlash }: Incoming): string {
  switch (legacySsePath) {
    case 'events':
      return '/sse';
    case 'message':
      return '/message';
    case undefined:
      return hasTrailingSlash === true ? '/' : '';
  }
}
