// What callers hold open: the registry of streams, which bounds them per caller and upstream and in total and announces
// list changes on them, and the registry of access leases, which passes on what may end them. Also the check whether a
// new version leaves a lease its upstream and its caller.

import type { AggregateSettings, IssuerSettings, Settings } from '../config/settings.js';
import { type Refusal, refuseWith } from '../policy/decision.js';
import type { Emit } from '../policy/events.js';
import { ownerKey, type Principal } from '../policy/principal.js';
import { type LoopScheduler, runInTurns } from '../protocol/json/incremental.js';
import type { Change, OpenLease, OpenStream, StreamReservation } from '../proxy/ports.js';
import { createQuota } from '../state/bounds.js';

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
  /** How many changes there have been; the end of a session is none. */
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

/** Where a caller is admitted: at an upstream, at an aggregate, or at the upstream through the aggregate. */
type Place = Pick<OpenLease, 'upstream' | 'aggregate'>;
type LeaseHolder = Place & Pick<OpenLease, 'principal'>;

/**
 * The refusal that ends a lease made under `before` once `next` is in force: its upstream is gone, or its caller might
 * not be admitted as the same principal. Verifies no token and reads no rule, because what may be sent on a stream is
 * checked message by message. Source: docs/reference/start-and-reload.md#what-is-in-progress.
 */
export function checkSettings(holder: LeaseHolder, before: Settings, next: Settings): Refusal | undefined {
  if (accessSettingsOf(holder, next) === undefined) return refuseWith('upstream-unavailable');
  const accessTerms = accessTermsOf(holder, next);
  const isSame = accessTerms !== undefined && accessTerms === accessTermsOf(holder, before);
  return isSame ? undefined : refuseWith('token-issuer');
}

/** What the settings require of this caller's tokens; `undefined` where its issuer is no longer accepted. */
function accessTermsOf(holder: LeaseHolder, settings: Settings): string | undefined {
  const { principal } = holder;
  const access = accessSettingsOf(holder, settings);
  if (access === undefined || access.authentication === 'none') return access?.authentication;
  const { issuers, resource, audiences, binding } = access;
  if (!issuers.includes(principal.issuer)) return undefined;
  const issuer = settings.issuers.get(principal.issuer);
  const isProvedByCertificate = principal.token.boundTo?.certificate !== undefined;
  return JSON.stringify([
    ...[resource, audiences[principal.issuer], binding, issuer && tokenRulesOf(issuer)],
    isProvedByCertificate && settings.listeners.data.tls?.clientCa,
  ]);
}

/** The settings by which callers are admitted there: through an aggregate its own, while the upstream is a backend. */
export function accessSettingsOf(
  { upstream, aggregate }: Place,
  { upstreams, aggregates }: Settings,
): Omit<AggregateSettings, 'backends' | 'scopesSupported'> | undefined {
  if (aggregate === undefined) return upstreams.get(upstream) ?? aggregates.get(upstream);
  const viaAggregate = upstreams.has(upstream) ? aggregates.get(aggregate.name) : undefined;
  return viaAggregate?.backends.some((one) => one.upstream === upstream) ? viaAggregate : undefined;
}

/** How keys are fetched and how introspection is called decide nothing about a token and are left out. */
function tokenRulesOf({ introspection, ...issuer }: IssuerSettings): unknown {
  const { network: _n, plaintext: _p, keysMaxAgeMs: _k, ...rules } = issuer;
  return [rules, introspection !== undefined];
}

/** For each caller and upstream. Idle streams are cheap but not free, so one caller must not use up the total. */
export const MAX_STREAMS_A_CALLER = 64;
const MAX_STREAMS = 10_000;

export type StreamRegistry = {
  /** Counts a stream before it is opened; `undefined` if its caller, or all together, have as many as allowed. */
  reserve(upstream: string, principal: Principal): StreamReservation | undefined;
  /** Announces on every stream of an upstream that a list changed. */
  announce(upstream: string, method: string): void;
  /** Ends every stream. */
  endAll(): void;
  readonly size: number;
};

/** A change is announced on so many streams at once, and on further ones in slices of the event loop. */
export const ANNOUNCED_AT_ONCE = 200;

export function createStreamRegistry(emit: Emit, loopScheduler: LoopScheduler): StreamRegistry {
  const open = new Map<OpenStream, string>();
  const quota = createQuota({ total: MAX_STREAMS, perOwner: MAX_STREAMS_A_CALLER });
  /** The changes that are being announced in slices, and whether they came again meanwhile. */
  const underWay = new Map<string, boolean>();

  /** An upstream may change something every second, which takes less time than telling ten thousand streams. */
  async function announceInSlices(upstream: string, method: string, streams: readonly OpenStream[]): Promise<void> {
    await runInTurns({ upstream, loopScheduler }, streams, (stream) => {
      if (open.has(stream)) stream.announce(method);
    });
  }

  function announce(upstream: string, method: string): void {
    const key = `${upstream} ${method}`;
    if (underWay.has(key)) {
      underWay.set(key, true);
      return;
    }
    const streams: OpenStream[] = [];
    for (const [stream, streamUpstream] of open) if (streamUpstream === upstream) streams.push(stream);
    for (const stream of streams.slice(0, ANNOUNCED_AT_ONCE)) stream.announce(method);
    if (streams.length <= ANNOUNCED_AT_ONCE) return;
    underWay.set(key, false);
    void announceInSlices(upstream, method, streams.slice(ANNOUNCED_AT_ONCE)).finally(() => {
      const isAgain = underWay.get(key) === true;
      underWay.delete(key);
      if (isAgain) announce(upstream, method);
    });
  }

  return {
    reserve(upstream, principal) {
      const holder = ownerKey(principal, upstream);
      if (!quota.take(holder)) return undefined;
      let stream: OpenStream | undefined;
      let isReleased = false;
      return {
        open(opened) {
          stream = opened;
          open.set(opened, upstream);
          emit('streaming', { upstream, delta: 1 });
        },
        release() {
          if (isReleased) return;
          isReleased = true;
          if (stream !== undefined && open.delete(stream)) emit('streaming', { upstream, delta: -1 });
          quota.give(holder);
        },
      };
    },
    announce,
    endAll() {
      for (const stream of [...open.keys()]) stream.end();
    },
    get size() {
      return quota.used;
    },
  };
}
