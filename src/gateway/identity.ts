// Who may vouch for callers: one key source an issuer, one authenticator a version. Key sources of
// issuers that a reload left alone stay, with the keys that they have.

import { createKeySource, type KeySource } from '../authn/keys.js';
import { createProofJudge } from '../authn/proof.js';
import { createProofNonces, type ProofNonces } from '../authn/proof-nonce.js';
import { refuseRevoked } from '../authn/revoked.js';
import { type Authenticator, createAuthenticator } from '../authn/verify.js';
import type { IssuerSettings, Settings } from '../config/settings.js';
import type { ReplayStore } from '../policy/replay-store.js';
import type { Revocations } from '../state/gateway-state.js';
import type { KeyRing } from '../state/key-ring.js';
import type { FetchJson } from '../upstream/guarded-fetch.js';

export type Identity = {
  readonly authenticator: Authenticator;
  /**
   * For the admin listener: whoever is known to be revoked is refused there too, but what the store cannot
   * tell shuts nobody out who would see why, or revoke.
   */
  readonly adminAuthenticator: Authenticator;
  /** By name of the issuer. */
  readonly keySources: ReadonlyMap<string, KeySource>;
  readonly issuers: ReadonlyMap<string, IssuerSettings>;
  /** Where every proof of possession must carry a nonce. */
  readonly proofNonces: ProofNonces | undefined;
};

type IdentityPorts = {
  readonly fetchJson: FetchJson;
  readonly now: () => number;
  readonly ring: KeyRing;
  readonly revocations: Pick<Revocations, 'judge' | 'isRevoked'>;
  /** Outlives every version: what was used before a reload stays used. */
  readonly replays: ReplayStore;
};

/** Builds the identity of a version; `before` is that of the version that it replaces. */
export function buildIdentity(
  settings: Settings,
  ports: IdentityPorts,
  before?: Identity,
): Identity {
  const { fetchJson, now, ring, replays, revocations } = ports;
  const { dpop } = settings.listeners.data;
  const keySources = new Map<string, KeySource>();
  for (const issuer of settings.issuers.values()) {
    const kept = isSame(before?.issuers.get(issuer.name), issuer)
      ? before?.keySources.get(issuer.name)
      : undefined;
    const source = kept ?? createKeySource(issuer, { fetchJson, now });
    // A warm start: the first caller should not wait for keys. Its failure shows in the controls.
    if (kept === undefined) void source.refresh();
    keySources.set(issuer.name, source);
  }
  const proofNonces =
    dpop.nonce === 'required' ? createProofNonces({ now, hmacAll: ring.hmacAll }) : undefined;
  const authenticator = createAuthenticator({
    issuers: settings.issuers,
    keySources,
    now,
    tokenIds: (bytes) => ring.hmacAll('token-id', bytes),
    judgeProof: createProofJudge({
      now,
      hmac: ring.hmac,
      replays,
      nonces: proofNonces,
      maxAgeMs: dpop.maxAgeMs,
    }),
  });
  return {
    authenticator: refuseRevoked(authenticator, revocations.judge),
    adminAuthenticator: refuseRevoked(authenticator, (principal) =>
      revocations.isRevoked(principal) ? 'token-revoked' : undefined,
    ),
    keySources,
    issuers: settings.issuers,
    proofNonces,
  };
}

function isSame(one: IssuerSettings | undefined, other: IssuerSettings): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
