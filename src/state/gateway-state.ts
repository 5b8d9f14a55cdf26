// What a gateway remembers of its callers beyond one request: limits, single uses, ended sessions and
// revocations, as one set of ports with two makers, of one replica (below) and of several (shared-state.ts).
// Everything that a request asks is answered at once, but for limits and single uses of a shared store.
// Contract §10.

import type { LimitStore } from '../policy/limit-store.js';
import type { Principal } from '../policy/principal.js';
import type { ReplayStore } from '../policy/replay-store.js';
import { createEndedSessions, type EndedSessions } from './ended-sessions.js';
import type { KeyRing } from './key-ring.js';
import { createMemoryLimits } from './memory-limits.js';
import { createMemoryReplays } from './memory-replays.js';
import { createLocalReplicaBus, type ReplicaBus } from './replica-words.js';
import type { Revocation } from './revocation.js';
import { createRevocationSet } from './revocation-set.js';

/** Why a caller that was verified is refused all the same. */
export type CallerError = 'token-revoked' | 'store-unavailable';

/** `kept`: in force here, and told to the store as soon as it can be reached. */
export type Added = 'shared' | 'kept' | 'full';
export type Lifted = 'lifted' | 'unknown' | 'unavailable';

export type Revocations = {
  /** Whether this caller was revoked, or nobody can tell. Never waits. */
  checkPrincipal(principal: Principal): CallerError | undefined;
  /** Whether this caller is known to be revoked, however old that knowledge is. */
  isRevoked(principal: Principal): boolean;
  /** Whether a session was revoked, by its keyed digests under every key. */
  hasSession(digests: readonly string[]): boolean;
  /** In force here when it returns its promise. */
  add(revocation: Revocation): Promise<Added>;
  lift(id: string): Promise<Lifted>;
  /** Those in force, the newest first. */
  list(): readonly Revocation[];
  /** Tells of every change of what `judge` and `hasSession` answer. */
  onChange(listener: () => void): void;
};

/** `off`: there is no store. */
export type StoreStatus = {
  readonly state: 'armed' | 'degraded' | 'off';
  readonly reason: string;
  /** True while the store cannot be asked. */
  readonly isUnreachable: boolean;
};

export type GatewayState = {
  readonly limits: LimitStore;
  readonly replays: ReplayStore;
  /** Which questions of servers were answered; apart from proofs, so that neither takes the other's room. */
  readonly answeredRequests: ReplayStore;
  readonly ended: EndedSessions;
  readonly revocations: Revocations;
  readonly replicaBus: ReplicaBus;
  status(): StoreStatus;
  /** Resolves when the store was asked for the first time, whether or not it answered. */
  start(): Promise<void>;
  close(): Promise<void>;
};

export type StatePorts = {
  readonly ring: KeyRing;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

const ALONE: StoreStatus = {
  state: 'off',
  reason: 'state is in memory: one replica alone',
  isUnreachable: false,
};

/** The state of one replica: gone when the process ends. */
export function createMemoryState({ ring, now }: StatePorts): GatewayState {
  const known = createRevocationSet(ring, now);
  const listeners: (() => void)[] = [];
  const emitChange = (): void => {
    for (const follow of listeners) follow();
  };
  return {
    limits: createMemoryLimits(),
    replays: createMemoryReplays(now),
    answeredRequests: createMemoryReplays(now),
    ended: createEndedSessions(now),
    revocations: {
      checkPrincipal: (principal) => (known.hasCaller(principal) ? 'token-revoked' : undefined),
      isRevoked: known.hasCaller,
      hasSession: known.hasSession,
      async add(revocation) {
        if (!known.hasCapacity()) return 'full';
        known.add(revocation);
        emitChange();
        return 'shared';
      },
      async lift(id) {
        if (!known.remove(id)) return 'unknown';
        emitChange();
        return 'lifted';
      },
      list: known.list,
      onChange: (listener) => void listeners.push(listener),
    },
    replicaBus: createLocalReplicaBus(),
    status: () => ALONE,
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
