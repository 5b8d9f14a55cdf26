// The answer to "may this caller still have this?" for everything that outlives a request. A lease asks, in the order of
// admission, whether the token is valid, the caller may use the gateway, the session is open, the upstream is there, and
// what was granted still is. It ends once, with the refusal of the first question that fails; an error while asking is
// such a refusal too. For a held stream, a change of settings asks about upstream and caller first (checkSettings in
// proxy/lease-registry.ts). What a caller then sees is decided by whoever holds the lease.
// Source: docs/decisions/0023-access-lease.md; docs/reference/start-and-reload.md#what-is-in-progress.

import { refuseBlocked } from '../policy/blocks.js';
import { type Refusal, refuseWith } from '../policy/decision.js';
import type { Principal } from '../policy/principal.js';
import { takeTurn } from '../protocol/json/incremental.js';
import { turnsOf } from './message-reading.js';
import type { OpenLease, Snapshot } from './ports.js';
import { refuseAuthn } from './refusals.js';
import type { RequestContext } from './request-context.js';

/** What is asked last: whether the snapshot still allows this to the caller. It may note what it now requires. */
export type Grant = (snapshot: Snapshot, principal: Principal) => Refusal | undefined;

/** A grant that may take its turns on the event loop. Each message of what it is for is decided by itself. */
type SlowGrant = (...asked: Parameters<Grant>) => Asked;
type Asked = Refusal | undefined | Promise<Refusal | undefined>;

export type LeaseTerms = {
  readonly principal: Principal;
  /** The sealed id of the session that this belongs to. */
  readonly session: string | undefined;
  /** Absent where each message is decided by itself. */
  readonly grant?: SlowGrant | undefined;
  /**
   * Whether each change verifies the caller anew, for which an issuer may have to be asked. Streams that are held for
   * hours do without it: there are thousands, and an issuer that is away would close them all.
   */
  readonly isReverified?: boolean;
};

export type AccessLease = {
  /** Why it ended; `undefined` while it stands. */
  ended(): Refusal | undefined;
  /** While the caller is verified anew: resolves once that is known, or the lease is over. */
  pending(): Promise<void> | undefined;
  /** Asks what is known without an issuer; returns why it ended. */
  check(): Refusal | undefined;
  /** Calls the listener when it ends, or at once if it has. */
  onEnd(listener: (reason: Refusal) => void): void;
  /** It is no longer needed and never ends. */
  release(): void;
};

/** The ports that a lease asks. */
export type LeasePorts = 'audit' | 'identity' | 'inspection' | 'leases' | 'sessions' | 'upstreams';

/** Makes a lease for what was just allowed, and asks what has changed since its request came. */
export function createLease(call: RequestContext<LeasePorts>, terms: LeaseTerms): AccessLease {
  const { incoming, ports } = call;
  const { upstream, aggregate } = incoming;
  const { principal, session, grant, isReverified = false } = terms;
  let refusal: Refusal | undefined;
  let listener: ((reason: Refusal) => void) | undefined;
  let isOver = false;
  /** Counts verifications, of which only the newest decides. */
  let round = 0;
  let pending: Promise<void> | undefined;
  /** The last grant that takes its turns; those before it decide nothing. */
  let newest: Promise<Refusal | undefined> | undefined;
  let resume = (): void => undefined;

  function release(): void {
    if (isOver) return;
    isOver = true;
    round += 1;
    leave();
    stopExpiry();
    resume();
  }

  function end(reason: Refusal | undefined): void {
    if (reason === undefined || isOver) return;
    refusal = reason;
    release();
    listener?.(reason);
  }

  function fail(error: unknown): void {
    ports.audit.report(error, incoming.id);
    end(refuseWith('internal'));
  }

  function endIf(check: () => Asked): void {
    try {
      const asked = check();
      if (asked instanceof Promise) endLater(asked);
      else end(asked);
    } catch (error) {
      fail(error);
    }
  }

  function endLater(asked: Promise<Refusal | undefined>): void {
    newest = asked;
    asked.then((reason) => {
      if (newest === asked) end(reason);
    }, fail);
  }

  function checkAccess(currentPrincipal: Principal): Asked {
    const refusalOfSession = checkSession(call, session, currentPrincipal);
    if (refusalOfSession !== undefined) return refusalOfSession;
    const snapshot = ports.upstreams.snapshot(upstream);
    if (snapshot === undefined) return refuseWith('upstream-unavailable');
    return snapshot.block === undefined ? grant?.(snapshot, currentPrincipal) : refuseBlocked(snapshot.block);
  }

  async function verifyAgain(): Promise<void> {
    round += 1;
    const currentRound = round;
    pending ??= new Promise((resolve) => {
      resume = () => {
        pending = undefined;
        resolve();
      };
    });
    const verified = await authenticateAgain(call);
    // A change is passed to all leases at once, and what one of them grants may take long to decide.
    await takeTurn(turnsOf(call), () => {
      if (currentRound !== round) return;
      endIf(() => ('kind' in verified ? verified : checkAccess(verified)));
      resume();
    });
  }

  const lease: OpenLease = {
    upstream,
    aggregate,
    principal,
    session,
    end,
    checkSession: () => endIf(() => checkSession(call, session, principal)),
    onChange(change) {
      if (isOver) return;
      if (isReverified) verifyAgain().catch(fail);
      else endIf(() => change(lease) ?? checkAccess(principal));
    },
  };
  const leave = ports.leases.register(lease);
  const stopExpiry = startTimer(principal.token.expiresAt - Date.now(), () => end(refuseWith('token-expired')));
  // The end of a session is no change that is counted.
  lease.checkSession();
  if (!isOver && ports.leases.countChanges() !== call.changesAtStart) verifyAgain().catch(fail);
  return {
    ended: () => refusal,
    pending: () => pending,
    check() {
      endIf(() => checkAccess(principal));
      return refusal;
    },
    onEnd(notify) {
      if (refusal === undefined) listener = notify;
      else notify(refusal);
    },
    release,
  };
}

/** Verifies the caller under the settings now in force. Its proof of possession was used when the request came. */
export async function authenticateAgain({
  incoming,
  outgoing,
  ports,
}: Pick<RequestContext<'identity'>, 'incoming' | 'outgoing' | 'ports'>): Promise<Principal | Refusal> {
  const outcome = await ports.identity.authenticate({ ...incoming, isProofUsed: true }, outgoing);
  return 'reason' in outcome ? refuseAuthn(outcome) : outcome;
}

/** The refusal of a session that has ended or was revoked, or is not this caller's; of a backend also the aggregate's. */
export function checkSession(
  { incoming, ports }: RequestContext<'sessions'>,
  session: string | undefined,
  principal: Principal,
): Refusal | undefined {
  if (session === undefined) return undefined;
  const { upstream, aggregate } = incoming;
  const isOpen = (sealed: string, at: string): boolean => ports.sessions.open(sealed, at, principal) !== undefined;
  const isWithin = aggregate?.session === undefined || isOpen(aggregate.session, aggregate.name);
  return isWithin && isOpen(session, upstream) ? undefined : refuseWith('unknown-session');
}

/** The longest timer that Node supports; the expiry of a caller without a token lies beyond it. */
const MAX_TIMER_MS = 2_147_483_647;
/** Most responses end before, and Node handles many timers of one length better than of many. */
const FIRST_TIMER_MS = 1_000;

/** Clamps a delay, in milliseconds, to what a timer supports. */
export function timerMs(ms: number): number {
  return Math.max(0, Math.min(ms, MAX_TIMER_MS));
}

/** Calls `onDue` after the delay unless the returned function is called. */
export function startTimer(ms: number, onDue: () => void): () => void {
  const startRest = (): void => {
    timer = setTimeout(onDue, timerMs(ms - FIRST_TIMER_MS));
  };
  let timer = setTimeout(ms > FIRST_TIMER_MS ? startRest : onDue, timerMs(Math.min(ms, FIRST_TIMER_MS)));
  return () => clearTimeout(timer);
}
