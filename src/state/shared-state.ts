// The state that several replicas share: revocations, ended sessions, single uses, limits and the replica bus.
// Revocations and ended sessions are polled twice a second, and at once on a hint of the store, and kept here, so that
// no request waits for them. A replica whose last poll is older than `maxAgeMs` cannot know who was revoked and refuses
// every caller until a poll succeeds. docs/reference/state.md.

import { EventEmitter } from 'node:events';
import type { LimitOutcome, LimitStore, LimitWindow, ReplayStore } from '../policy/obligations.js';
import { OwnedMap } from './bounds.js';
import { createStoreEpoch, type StoreEpoch } from './epoch.js';
import { createSharedFlows } from './flow-marks.js';
import {
  type AddResult,
  type CounterStore,
  createEndedSessions,
  createMemoryLimits,
  type EndedSessions,
  type FirstUseStore,
  type GatewayState,
  type LiftResult,
  type StoreStatus,
} from './memory.js';
import { createSharedReplicaBus, MAX_MESSAGES_PER_POLL, MAX_QUEUED_MESSAGES } from './replica-bus.js';
import { createRevocationSet, type Revocation, type RevocationSet, STORED_REVOCATION } from './revocations.js';
import { FIRST_USE, LATEST_EXPIRY_MS } from './sealed-token.js';
import { createSharedTable } from './shared-table.js';
import type { EndedSession, StatePorts, StoredRevocations, StoreLink, StoreUpdate } from './store.js';

/** Ended sessions that wait to be published; beyond it the oldest are known to this replica alone. */
const MAX_WAITING = { max: 10_000, maxPerOwner: 1_000 } as const;
/** Polled again each time, because the clocks of stores before and after a failover may differ by this much. */
const MARK_OVERLAP_MS = 10_000;

type SharedEnded = EndedSessions & {
  /** Where the next poll begins. */
  mark(): number;
  note(update: StoreUpdate): void;
  /** Publishes to the store what ended here. */
  publish(link: Pick<StoreLink, 'endSession'>): Promise<void>;
};

/**
 * Sessions that ended at any replica: known here at once, and to the others with their next poll. What cannot be
 * published yet waits. The store learns a keyed hash of their owner. `now` is in milliseconds since the epoch.
 */
function createSharedEnded({ ring, now }: StatePorts): SharedEnded {
  const ended = createEndedSessions();
  /**
   * With the time left when the session ended. One published late is stored as if it had ended now, because other
   * replicas poll from where their last poll stopped and would not see an earlier entry.
   */
  const waiting = new OwnedMap<string, EndedSession>(MAX_WAITING);
  const changes = new EventEmitter<{ elsewhere: [] }>();
  let mark = 0;
  return {
    has: ended.has,
    add(hash, expiresAtMs, caller) {
      const owner = ring.hmac('session-owner', caller);
      ended.add(hash, owner);
      waiting.set(hash, { hash, owner, leftMs: expiresAtMs - now() }, owner);
    },
    onElsewhere: (listener) => void changes.on('elsewhere', listener),
    mark: () => Math.max(0, mark - MARK_OVERLAP_MS),
    note(update) {
      mark = Math.max(mark, update.mark);
      const newlyEnded = update.ended.filter(({ hash }) => !ended.has(hash));
      for (const { hash, owner } of newlyEnded) ended.add(hash, owner);
      if (newlyEnded.length > 0) changes.emit('elsewhere');
    },
    async publish(link) {
      const published = [...waiting.keys()].flatMap((hash) => waiting.get(hash) ?? []);
      await Promise.all(published.map(link.endSession));
      for (const { hash } of published) waiting.delete(hash);
    },
  };
}

type SharedLimitsPorts = {
  readonly link: Pick<StoreLink, 'take'>;
  readonly epoch: Pick<StoreEpoch, 'lostForMs'>;
  /** False while the store is known not to respond: then no request waits for it. */
  readonly isReachable: () => boolean;
  /** Replicas that share the limits, by the newest poll. */
  readonly replicas: () => number;
  /** Called when the store did not respond. */
  readonly onError: (error: unknown) => void;
  /** Keyed hash, so that the store learns no names. */
  readonly hash: (key: string) => string;
};

/**
 * Limits that all replicas count together. While the store is unreachable, a replica counts for itself up to its quota
 * of the limit; what it allowed before counts against that quota. Budgets have no such quota. Never throws or rejects.
 * docs/reference/state.md.
 */
function createSharedLimits(ports: SharedLimitsPorts): LimitStore {
  const localLimits = createMemoryLimits();

  /** The quota is at least one use: with more replicas than uses, each allows one. */
  function takeOwn(key: string, { count, windowMs, isSharedOnly }: LimitWindow): LimitOutcome {
    if (isSharedOnly === true) return 'unavailable';
    const ownCount = Math.max(1, Math.floor(count / Math.max(1, ports.replicas())));
    return localLimits.take(key, { count: ownCount, windowMs });
  }

  return {
    take(key, limit) {
      if (!ports.isReachable()) return takeOwn(key, limit);
      return ports.link.take(ports.hash(key), limit).then(
        ({ outcome, epoch }) => {
          if (limit.isSharedOnly === true) {
            const lostForMs = ports.epoch.lostForMs(epoch, limit.windowMs);
            return lostForMs > 0 ? { ok: false, retryAfterMs: lostForMs, isLost: true } : outcome;
          }
          if (outcome.ok) localLimits.take(key, { ...limit, count: Number.MAX_SAFE_INTEGER });
          return outcome;
        },
        (error: unknown) => {
          ports.onError(error);
          return takeOwn(key, limit);
        },
      );
    },
  };
}

/**
 * How long a lift is remembered at most, for replicas that still hold what was lifted. One that has not read the store
 * for `maxAgeMs` serves nobody.
 */
const MAX_LIFT_MS = 30 * 24 * 60 * 60 * 1000;
/** A revocation that expires this soon is not published again, because clocks differ. */
const MIN_PUBLISHED_TTL_MS = 60_000;

type SharedRevocations = {
  readonly known: RevocationSet;
  /** Learns and publishes, unless the store's version is the one seen last. */
  synchronize(version: string): Promise<void>;
  /** Publishes one that is in force here. Never rejects. */
  publish(revocation: Revocation): Promise<AddResult>;
  lift(id: string): Promise<LiftResult>;
  /** How many the store holds that cannot be opened, and so are not in force here. */
  unopened(): number;
};

type Ports = StatePorts & {
  readonly link: StoreLink;
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
};

/**
 * Merges the revocations of a replica with those of the store: what either knows, both know after a poll, and only a
 * lift, which is recorded as long as the revocation lives, removes one. So a store that lost its data is filled again
 * by any replica, and no replica takes the loss for a lift. Empty until the store was read first.
 */
function createSharedRevocations(ports: Ports): SharedRevocations {
  const { ring, now, link, onChange, onError } = ports;
  const known = createRevocationSet(ring, now, onChange);
  /** Made here and not yet confirmed by the store. */
  const unpublished = new Set<string>();
  let seen: string | undefined;
  let unopened = 0;

  function addLocally({ sealed, lifted }: StoredRevocations): void {
    const unknown = [...sealed].filter(([id]) => known.get(id) === undefined && !lifted.has(id));
    const found = unknown.flatMap(([id, text]) => STORED_REVOCATION.open(ring, [id], text, now()) ?? []);
    // One that opens at the beginning of time has expired since.
    unopened = unknown.filter(([id, text]) => STORED_REVOCATION.open(ring, [id], text, 0) === undefined).length;
    const gone = [...lifted].filter((id) => known.remove(id));
    for (const revocation of found) known.add(revocation);
    if (found.length + gone.length > 0) onChange();
  }

  async function publish(revocation: Revocation): Promise<'added' | 'full'> {
    const { id, expiresAtMs } = revocation;
    const sealed = STORED_REVOCATION.seal(ring, [id], revocation, expiresAtMs);
    return link.addRevocation(id, sealed, expiresAtMs - now());
  }

  function shouldPublish({ id, expiresAtMs }: Revocation): boolean {
    return unpublished.has(id) || expiresAtMs - now() > MIN_PUBLISHED_TTL_MS;
  }

  return {
    known,
    unopened: () => unopened,
    async synchronize(version) {
      if (version === seen && unpublished.size === 0) return;
      const stored = await link.revocations();
      addLocally(stored);
      const missing = known.list().filter(({ id }) => !stored.sealed.has(id));
      for (const revocation of missing) if (shouldPublish(revocation)) await publish(revocation);
      unpublished.clear();
      seen = stored.version;
    },
    async publish(revocation) {
      unpublished.add(revocation.id);
      try {
        if ((await publish(revocation)) === 'full') return 'kept';
        unpublished.delete(revocation.id);
        return 'shared';
      } catch (error) {
        onError(error);
        return 'kept';
      }
    },
    async lift(id) {
      const revocation = known.get(id);
      if (revocation === undefined) return 'unknown';
      const restMs = revocation.expiresAtMs - now();
      const leftMs = Math.min(Math.max(restMs, MIN_PUBLISHED_TTL_MS), MAX_LIFT_MS);
      try {
        await link.liftRevocation(id, leftMs);
      } catch (error) {
        onError(error);
        return 'unavailable';
      }
      known.remove(id);
      unpublished.delete(id);
      onChange();
      return 'lifted';
    },
  };
}

/** Time between two polls. With the time of a command this stays below the two seconds that are promised. */
const POLL_INTERVAL_MS = 500;
/** Delay after a hint, so that hints arriving together cost one poll. */
const HINTED_AFTER_MS = 20;

type StorePollerPorts = {
  /** Rejects where the store could not be reached. */
  readonly poll: () => Promise<void>;
  readonly describe: (error: unknown) => string;
  readonly maxAgeMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  /** Called when the newest poll became too old, or is fresh again. */
  readonly onPoll: () => void;
};

type StorePoller = {
  /** Resolves after the first poll. */
  start(): Promise<void>;
  /** Makes a poll due. */
  hint(): void;
  /** Runs after what runs now, because a poll that began before a change must not undo it. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** True while the newest poll is older than this, and before the first. */
  isOlderThan(ms: number): boolean;
  /** The same for `maxAgeMs`. */
  isStale(): boolean;
  /** Whether a poll has succeeded since the start. */
  hasSucceeded(): boolean;
  /** The last error, until a poll succeeds. */
  lastError(): string | undefined;
  noteError(error: unknown): void;
  close(): Promise<void>;
};

/** Schedules the polls: twice a second, sooner on a hint, never two at once. It does not know what is polled. */
function createStorePoller(ports: StorePollerPorts): StorePoller {
  const { nowMs, maxAgeMs } = ports;
  let polledAtMs = Number.NEGATIVE_INFINITY;
  let wasStale = true;
  let lastError: string | undefined = 'not asked yet';
  let tail: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isPolling = false;
  let isHinted = false;
  let isClosed = false;

  const isOlderThan = (ms: number): boolean => nowMs() - polledAtMs > ms;
  const isStale = (): boolean => isOlderThan(maxAgeMs);

  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const next = tail.then(run);
    tail = next.catch(() => undefined);
    return next;
  }

  async function poll(): Promise<void> {
    isPolling = true;
    isHinted = false;
    const startedMs = nowMs();
    try {
      await ports.poll();
      polledAtMs = startedMs;
      lastError = undefined;
    } catch (error) {
      lastError = ports.describe(error);
    }
    isPolling = false;
    if (isStale() === wasStale) return;
    wasStale = !wasStale;
    ports.onPoll();
  }

  async function pollThenWait(): Promise<void> {
    await inTurn(poll);
    schedule();
  }

  function schedule(): void {
    if (isClosed) return;
    const waitMs = isHinted ? HINTED_AFTER_MS : POLL_INTERVAL_MS;
    timer = setTimeout(() => void pollThenWait(), waitMs).unref();
  }

  return {
    start: pollThenWait,
    hint() {
      const isDue = isHinted || timer === undefined;
      isHinted = true;
      // A poll in progress is followed by another soon, because `isHinted` is set.
      if (isDue || isPolling || isClosed) return;
      clearTimeout(timer);
      schedule();
    },
    inTurn,
    isOlderThan,
    isStale,
    hasSucceeded: () => polledAtMs !== Number.NEGATIVE_INFINITY,
    lastError: () => lastError,
    noteError(error) {
      lastError = ports.describe(error);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await tail;
    },
  };
}

/** Far longer than a gateway runs without a start or a reload, each of which writes the counters again. */
const COUNTERS_LEFT_MS = 400 * 24 * 60 * 60 * 1000;

/**
 * Counters of signed lock files that all replicas share. The store learns keyed hashes of the names of upstreams; those
 * under an older gateway key are still found.
 */
function createSharedCounters({
  ring,
  link,
  upstreams,
}: Pick<StatePorts, 'ring'> & {
  readonly link: Pick<StoreLink, 'raiseCounters' | 'describe'>;
  readonly upstreams: readonly string[];
}): CounterStore {
  const hashes = (upstream: string) => ring.hmacAll('lock-counter', upstream);
  return {
    async raise(counters) {
      const raised = new Map([...counters].map(([name, seen]) => [hashes(name)[0], seen] as const));
      const stored = await link
        .raiseCounters(raised, COUNTERS_LEFT_MS)
        .catch((error: unknown) => Promise.reject(new Error(link.describe(error))));
      const found = upstreams.flatMap((name) => {
        const seen = hashes(name).flatMap((hash) => stored.get(hash) ?? []);
        const [highest] = seen.sort((one, other) => other.counter - one.counter);
        return highest === undefined ? [] : [[name, highest] as const];
      });
      return new Map(found);
    },
  };
}

/** Far longer than a gateway runs without a start or a reload, each of which reads it and so prolongs it. */
const FIRST_USE_LEFT_MS = 400 * 24 * 60 * 60 * 1000;

/**
 * What upstreams offered first, for all replicas: sealed and bound to the upstream, so that the store can neither choose
 * what is trusted nor exchange it. What it loses is trusted anew. docs/reference/state.md.
 */
function createSharedFirstUses({
  ring,
  now,
  link,
}: StatePorts & { readonly link: Pick<StoreLink, 'keepFirst' | 'describe'> }): FirstUseStore {
  const keepFirst = (hash: string, text?: string): Promise<string | undefined> =>
    link
      .keepFirst(hash, text, FIRST_USE_LEFT_MS)
      .catch((error: unknown) => Promise.reject(new Error(link.describe(error))));

  async function find(upstream: string): Promise<string | undefined> {
    // Kept under the first key of its time.
    for (const hash of ring.hmacAll('first-use', upstream)) {
      const sealed = await keepFirst(hash);
      if (sealed === undefined) continue;
      const text = FIRST_USE.open(ring, [upstream], sealed, now());
      if (text === undefined) throw new Error('the store holds what this gateway did not seal');
      return text;
    }
    return undefined;
  }

  return {
    find,
    async keep(upstream, text) {
      const sealed = FIRST_USE.seal(ring, [upstream], text, LATEST_EXPIRY_MS);
      if (sealed === undefined) throw new Error('it is too long for the store');
      const [hash] = ring.hmacAll('first-use', upstream);
      await keepFirst(hash, sealed);
      return (await find(upstream)) ?? text;
    },
  };
}

/** Polls within which a message enqueued a moment ago is read, because a queue is bounded. */
const MAX_POLLS_PER_MESSAGE = MAX_QUEUED_MESSAGES / MAX_MESSAGES_PER_POLL + 1;

/** The rest of `maxAge` is left to balancers, so that they have taken a replica out before it refuses callers. */
const READY_FRACTION = 2 / 3;

type SharedStatePorts = StatePorts & {
  readonly link: StoreLink;
  /** How old the newest poll may be. */
  readonly maxAgeMs: number;
  /** What of flows and budgets holds until a store that began empty covers their windows. */
  readonly afterLoss?: 'refuse' | 'degrade';
  /** `strict`: not ready once callers will soon be refused because the newest poll is too old. */
  readonly readiness?: 'lenient' | 'strict';
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
};

/** The state of a replica among others. Before `start` has read the store, every caller is refused. */
export function createSharedState(ports: SharedStatePorts): GatewayState {
  const { ring, now, link, maxAgeMs, nowMs = () => performance.now() } = ports;
  const { afterLoss = 'refuse', readiness = 'lenient' } = ports;
  const changes = new EventEmitter<{ change: [] }>();
  const emitChange = (): void => void changes.emit('change');
  let replicas = 1;

  const ended = createSharedEnded({ ring, now });
  const poller = createStorePoller({
    poll,
    describe: link.describe,
    maxAgeMs,
    nowMs,
    onPoll: emitChange,
  });
  const { noteError } = poller;
  const epoch = createStoreEpoch({ nowMs, afterLoss, onUnknown: poller.hint });
  const isReachable = (): boolean => poller.lastError() === undefined;
  const revocations = createSharedRevocations({
    ...{ ring, now, link },
    onChange: emitChange,
    onError: noteError,
  });
  const { known } = revocations;

  const replicaBus = createSharedReplicaBus({
    ...{ ring, now, link },
    isReachable,
    pollUntil: (isReceived) => poller.inTurn(() => pollUntil(isReceived)),
    onError: noteError,
  });

  async function pollFrom(mark: number): Promise<StoreUpdate> {
    const update = await replicaBus.poll((messages) => link.poll(replicaBus.self, { mark, ...messages }));
    ended.note(update);
    epoch.note(update.epoch);
    // In a further poll, so that this one ends however many messages arrive meanwhile.
    if (replicaBus.mayBeMore()) poller.hint();
    return update;
  }

  /** Reads messages until `isReceived` holds. */
  async function pollUntil(isReceived: () => boolean): Promise<void> {
    for (let polls = 0; polls < MAX_POLLS_PER_MESSAGE && !isReceived(); polls += 1) {
      await pollFrom(ended.mark());
      if (!replicaBus.mayBeMore()) return;
    }
  }

  async function poll(): Promise<void> {
    await ended.publish(link);
    let update = await pollFrom(ended.mark());
    while (update.hasMore) update = await pollFrom(update.mark);
    replicas = update.replicas;
    await revocations.synchronize(update.version);
  }

  const replayStore: ReplayStore = {
    useOnce(keyHash, expiresAtMs) {
      if (!isReachable()) return 'unavailable';
      return link.useOnce(keyHash, expiresAtMs - now()).catch((error: unknown) => {
        noteError(error);
        return 'unavailable';
      });
    },
  };

  return {
    limits: createSharedLimits({
      link,
      epoch,
      isReachable,
      replicas: () => replicas,
      onError: noteError,
      hash: (key) => ring.hmac('limit', key),
    }),
    flows: createSharedFlows({
      ...{ ring, now, link, epoch },
      isReachable,
      onError: noteError,
    }),
    replays: replayStore,
    // The two cannot collide, because their hashes are made under different purposes.
    claimedReplies: replayStore,
    firstUses: createSharedFirstUses({ ring, now, link }),
    ended,
    replicaBus,
    tableOf: (kind, bounds) => createSharedTable(kind, { ring, now, link, isReachable }, bounds),
    countersOf: (upstreams) => createSharedCounters({ ring, link, upstreams }),
    revocations: {
      ...known,
      checkPrincipal(principal) {
        if (known.hasCaller(principal)) return 'token-revoked';
        return poller.isStale() ? 'store-unavailable' : undefined;
      },
      add(revocation) {
        if (!known.hasCapacity()) return Promise.resolve('full');
        known.add(revocation);
        emitChange();
        return poller.inTurn(() => revocations.publish(revocation));
      },
      lift: (id) => poller.inTurn(() => revocations.lift(id)),
      onChange: (listener) => void changes.on('change', listener),
    },
    status(historyMs = 0) {
      const youngForMs = poller.hasSucceeded() ? epoch.youngForMs(historyMs) : 0;
      const gap = { youngForMs, untilMs: now() + youngForMs, afterLoss };
      return statusOf(link, poller, gap, revocations.unopened());
    },
    isReady: () => poller.hasSucceeded() && (readiness === 'lenient' || !poller.isOlderThan(maxAgeMs * READY_FRACTION)),
    async start() {
      link.onHint(poller.hint);
      await link.opened();
      await poller.start();
    },
    async close() {
      await poller.close();
      await link.close();
    },
  };
}

/** What a store that began empty lacks of the history that flows and budgets look back on. */
type Gap = {
  readonly youngForMs: number;
  readonly untilMs: number;
  readonly afterLoss: 'refuse' | 'degrade';
};

/** `unopened`: how many revocations of the store are not in force here. */
function statusOf(
  { isPrivate }: StoreLink,
  poller: StorePoller,
  { youngForMs, untilMs, afterLoss }: Gap,
  unopened: number,
): StoreStatus {
  const storeError = poller.lastError();
  const isUnreachable = storeError !== undefined;
  const degraded = (reason: string): StoreStatus => ({ state: 'degraded', reason, isUnreachable });
  if (poller.isStale()) {
    const within = poller.hasSucceeded() ? 'within state.maxAge' : 'since the start';
    const why = `callers are refused because revocations could not be read from the store ${within}: ${storeError ?? 'no error'}`;
    return { ...degraded(why), refusesCallers: true };
  }
  if (isUnreachable) return degraded(`the store cannot be reached: ${storeError}`);
  if (unopened > 0) {
    const what = `revocations and blocks in the store that cannot be opened, and are not enforced here: ${unopened}`;
    return degraded(
      `${what}; they were sealed with a key that is not among "keys", or by another version of Sallyport`,
    );
  }
  if (youngForMs > 0) {
    const meanwhile =
      afterLoss === 'refuse'
        ? 'requests that need more of it are refused. If this is the first start on this store, or a gap is preferred to refusals, set state.afterLoss: degrade until then, and restart'
        : 'flows and budgets hold only for what it has counted since. Remove state.afterLoss: degrade then';
    const began = `the store began empty, as it does at the first start and after a loss, and has the history of all flows and budgets from ${new Date(untilMs).toISOString()} on`;
    return { ...degraded(`${began}; until then ${meanwhile}`), isYoung: true };
  }
  if (!isPrivate) return degraded('the connection to the store is not encrypted');
  return { state: 'armed', reason: '', isUnreachable };
}
