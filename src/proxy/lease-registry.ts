// The leases of what callers hold open, to which the gateway passes on what may end them: a new version, a revocation or a
// block, the end of a session. Each lease decides for itself (access-lease.ts).

import { refuseWith } from '../policy/decision.js';
import type { Change, OpenLease } from './ports.js';

export type LeaseRegistry = {
  /** Registers a lease until the returned function is called. */
  register(lease: OpenLease): () => void;
  /**
   * Passes a change to every lease, which ends with the refusal that the change returns, or else asks its other
   * questions. One that verifies its caller anew does that instead of asking the change.
   */
  emit(change: Change): void;
  /** Ends the leases of a session, or of an aggregate's session, that ended here. */
  endSession(sealed: string): void;
  /** Ends the leases whose session has ended, after sessions ended at another replica. */
  checkSessions(): void;
  /** How many changes there have been; the end of a session does not count. */
  countChanges(): number;
};

type LeaseEntry = { lease: OpenLease | undefined };

/**
 * The leases of a gateway. That all are compared when a session ends costs less than an index by session, which every
 * streamed response would pay for.
 */
export function createLeaseRegistry(): LeaseRegistry {
  // The lease of an entry is cleared, because a Set keeps the tables that it has outgrown, with all that they held,
  // until a full garbage collection.
  const entries = new Set<LeaseEntry>();
  let changes = 0;
  return {
    register(lease) {
      const entry: LeaseEntry = { lease };
      entries.add(entry);
      return () => {
        entries.delete(entry);
        entry.lease = undefined;
      };
    },
    emit(change) {
      changes += 1;
      for (const { lease } of [...entries]) lease?.onChange(change);
    },
    endSession(sealed) {
      for (const { lease } of [...entries])
        if (lease?.session === sealed || lease?.aggregate?.session === sealed) lease.end(refuseWith('unknown-session'));
    },
    checkSessions() {
      checkInBatches([...entries]);
    },
    countChanges: () => changes,
  };
}

/** Opening a sealed session takes long enough that thousands of them would block the event loop. */
const LEASES_PER_BATCH = 100;

function checkInBatches(entries: readonly LeaseEntry[]): void {
  for (const { lease } of entries.slice(0, LEASES_PER_BATCH)) lease?.checkSession();
  const remaining = entries.slice(LEASES_PER_BATCH);
  if (remaining.length > 0) setImmediate(checkInBatches, remaining);
}
