// Who may vouch for callers: one key source or introspector an issuer, one authenticator a version. Those
// of issuers that a reload left alone stay, with the keys that they have.

import {
  createIntrospector,
  type Introspector,
  type IntrospectorStatus,
} from '../authn/introspection.js';
import { createKeySource, type KeySource, type KeySourceStatus } from '../authn/keys.js';
import { createProofVerifier } from '../authn/proof.js';
import { createProofNonces, type ProofNonces } from '../authn/proof-nonce.js';
import { refuseRevoked } from '../authn/revoked.js';
import { type Authenticator, createAuthenticator } from '../authn/verify.js';
import type { IssuerSettings, Settings } from '../config/settings.js';
import type { ReplayStore } from '../policy/replay-store.js';
import type { Revocations } from '../state/gateway-state.js';
import type { KeyRing } from '../state/key-ring.js';
import type { FetchJson, PostForm } from '../upstream/guarded-fetch.js';

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
