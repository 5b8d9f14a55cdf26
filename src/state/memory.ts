// What a gateway remembers of its callers beyond one request: limits, single uses, ended sessions and revocations, as
// one set of ports with two implementations: of a single replica (this file) and of several (shared-state.ts). Every
// lookup returns at once, except limits and single uses of a shared store. docs/reference/state.md.

import { EventEmitter } from 'node:events';
import type { FlowStore } from '../policy/information-flow.js';
import type { LimitOutcome, LimitStore, LimitWindow, ReplayOutcome, ReplayStore } from '../policy/obligations.js';
import type { Principal } from '../policy/principal.js';
import { createQuota, OwnedMap } from './bounds.js';
import { createMemoryFlows } from './flow-marks.js';
import { createLocalReplicaBus, type ReplicaBus } from './replica-bus.js';
import { createRevocationSet, type Revocation, type RevocationSet } from './revocations.js';
import { createMemoryTable, type SharedTable, type TableTerms } from './shared-table.js';
import type { SeenCounter, StatePorts } from './store.js';

/** Beyond these numbers the oldest are forgotten first; each is a keyed hash of 43 characters. */
export const MAX_ENDED = { max: 100_000, maxPerOwner: 10_000 } as const;

export type EndedSessions = {
  /** `hash` is a keyed hash of the sealed id, never the id. Whoever ends many makes only its own be forgotten. */
  add(hash: string, expiresAtMs: number, owner: string): void;
  has(hash: string): boolean;
  /** Calls `listener` when sessions ended at another replica. */
  onElsewhere(listener: () => void): void;
};

/**
 * Remembers ended sessions, because a sealed id is valid until it expires (docs/reference/state.md: the store can only
 * take away). All sessions have the same lifetime, so the oldest, which is forgotten first, is the next to expire.
 */
export function createEndedSessions(): Pick<EndedSessions, 'has'> & {
  add(hash: string, owner: string): void;
} {
  const ended = new OwnedMap<string, true>(MAX_ENDED);
  return {
    add: (hash, owner) => ended.set(hash, true, owner),
    has: (hash) => ended.get(hash) === true,
  };
}

/** Entries examined with each use, so that a table shrinks by itself. */
const SWEEP_PER_USE = 4;
/** Time between two sweeps of all of a full table, so that it does not make each call expensive. */
const FULL_SWEEP_EVERY_MS = 1000;

/** Sweeps a table that must not forget what still counts: `forgetIfOver` decides about one entry. */
function createSweep<V>(
  table: ReadonlyMap<string, V>,
  forgetIfOver: (key: string, value: V, nowMs: number) => void,
): { some(nowMs: number): void; hasCapacity(nowMs: number, isFull: () => boolean): boolean } {
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  function sweep(nowMs: number, most: number): void {
    let examined = 0;
    for (const [key, value] of table) {
      if (examined++ >= most) return;
      forgetIfOver(key, value, nowMs);
    }
  }

  return {
    some: (nowMs) => sweep(nowMs, SWEEP_PER_USE),
    hasCapacity(nowMs, isFull) {
      if (!isFull()) return true;
      if (nowMs - sweptAtMs < FULL_SWEEP_EVERY_MS) return false;
      sweptAtMs = nowMs;
      sweep(nowMs, table.size);
      return !isFull();
    },
  };
}

/** Steps of a window: a use is forgotten at most one step late. */
export const STEPS_PER_WINDOW = 16;
/** One more than a window has, so that its oldest step, which it may still overlap, is kept. */
const SLOTS = STEPS_PER_WINDOW + 1;

type Usage = {
  readonly windowMs: number;
  readonly slots: Uint32Array | Float64Array;
  /** Number of the newest step that `slots` holds. */
  step: number;
  total: number;
};

type MemoryLimitsOptions = {
  /** Most keys that are counted at once. */
  readonly maxKeys?: number;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
};

interface MemoryLimits extends LimitStore {
  /** Keys that are counted now. */
  readonly size: number;
  take(key: string, limit: LimitWindow): LimitOutcome;
}

/** Keys for 50,000 callers and limits take about 15 MB. */
const DEFAULT_MAX_KEYS = 50_000;

/**
 * Counts limits in this process in a window that slides in steps, so that every key costs the same whatever its limit.
 * It errs towards refusing: in no span of `windowMs` are more than `count` uses allowed. The table is bounded and, when
 * full of keys in use, refuses new ones rather than forget uses. Returns at once, never throws.
 */
export function createMemoryLimits(options: MemoryLimitsOptions = {}): MemoryLimits {
  const { maxKeys = DEFAULT_MAX_KEYS, nowMs = () => performance.now() } = options;
  const usages = new Map<string, Usage>();
  const sweep = createSweep(usages, (key, usage, now) => {
    advance(usage, now);
    if (usage.total === 0) usages.delete(key);
  });

  return {
    get size() {
      return usages.size;
    },
    take(key, limit) {
      const now = nowMs();
      sweep.some(now);
      let usage = usages.get(key);
      // A limit that a reload changed starts anew, because its steps have another length.
      if (usage === undefined || usage.windowMs !== limit.windowMs) {
        if (usage === undefined && !sweep.hasCapacity(now, () => usages.size >= maxKeys)) return 'unavailable';
        usage = startUsage(limit, now);
      }
      advance(usage, now);
      // The key moves to the end, so that idle keys come first when sweeping.
      usages.delete(key);
      usages.set(key, usage);
      const { amount = 1 } = limit;
      if (usage.total + amount > limit.count) {
        return { ok: false, retryAfterMs: waitFor(usage, limit.count - amount + 1, now) };
      }
      const slot = usage.step % SLOTS;
      usage.slots[slot] = (usage.slots[slot] ?? 0) + amount;
      usage.total += amount;
      return { ok: true };
    },
  };
}

function stepMs(usage: { readonly windowMs: number }): number {
  return usage.windowMs / STEPS_PER_WINDOW;
}

function startUsage({ windowMs, amount }: LimitWindow, now: number): Usage {
  const step = Math.floor(now / stepMs({ windowMs }));
  // Uses fit into 32 bits, amounts need not.
  const slots = amount === undefined ? new Uint32Array(SLOTS) : new Float64Array(SLOTS);
  return { windowMs, slots, step, total: 0 };
}

/** Empties the slots that have left the window. A clock that goes back changes nothing. */
function advance(usage: Usage, now: number): void {
  const current = Math.floor(now / stepMs(usage));
  const passed = Math.min(current - usage.step, SLOTS);
  for (let offset = 1; offset <= passed; offset++) {
    const slot = (usage.step + offset) % SLOTS;
    usage.total -= usage.slots[slot] ?? 0;
    usage.slots[slot] = 0;
  }
  if (passed > 0) usage.step = current;
}

/** Milliseconds until enough uses are forgotten that one more fits. */
function waitFor(usage: Usage, count: number, now: number): number {
  let remaining = usage.total;
  for (let age = SLOTS - 1; age >= 0; age--) {
    const step = usage.step - age;
    remaining -= usage.slots[((step % SLOTS) + SLOTS) % SLOTS] ?? 0;
    if (remaining < count) return Math.max(1, (step + SLOTS) * stepMs(usage) - now);
  }
  return usage.windowMs;
}

/** Uses kept at once; each takes about 150 bytes. */
const DEFAULT_MAX_USES = 200_000;
/** The fraction of all uses that one owner may hold. */
const OWNER_FRACTION = 0.25;
interface MemoryReplays extends ReplayStore {
  /** Uses that are kept now. */
  readonly size: number;
  useOnce(keyHash: string, expiresAtMs: number, owner: string): ReplayOutcome;
}

type Use = { readonly expiresAtMs: number; readonly owner: string };

/**
 * Remembers single uses of one replica until they expire. When full of uses that still count, it returns `unavailable`
 * rather than forget one that could then be repeated. `now` is in milliseconds since the epoch.
 */
export function createMemoryReplays(now: () => number, maxUses: number = DEFAULT_MAX_USES): MemoryReplays {
  const uses = new Map<string, Use>();
  const quota = createQuota({
    total: maxUses,
    perOwner: Math.max(1, Math.floor(maxUses * OWNER_FRACTION)),
  });
  // Oldest first: lifetimes are about equal, so those are the ones that have expired.
  const sweep = createSweep(uses, (keyHash, use, nowMs) => {
    if (use.expiresAtMs <= nowMs) forget(keyHash, use);
  });

  function forget(keyHash: string, { owner }: Use): void {
    uses.delete(keyHash);
    quota.give(owner);
  }

  return {
    get size() {
      return uses.size;
    },
    useOnce(keyHash, expiresAtMs, owner) {
      const nowMs = now();
      sweep.some(nowMs);
      const known = uses.get(keyHash);
      if (known !== undefined && known.expiresAtMs > nowMs) return false;
      if (known !== undefined) forget(keyHash, known);
      if (!sweep.hasCapacity(nowMs, () => !quota.fits(owner))) return 'unavailable';
      quota.take(owner);
      uses.set(keyHash, { expiresAtMs, owner });
      return true;
    },
  };
}

/** Why a caller is refused although its token was verified. */
type CallerError = 'token-revoked' | 'store-unavailable';

/** `kept`: in force here, and published to the store as soon as it can be reached. */
export type AddResult = 'shared' | 'kept' | 'full';
export type LiftResult = 'lifted' | 'unknown' | 'unavailable';

export type Revocations = Pick<
  RevocationSet,
  'blockOf' | 'blocksAt' | 'hasSession' | 'isLockedOut' | 'isLoginShut' | 'list' | 'blocks'
> & {
  /** Whether this caller was revoked, or that cannot be checked now. Never waits. */
  checkPrincipal(principal: Principal): CallerError | undefined;
  /** In force here when it returns its promise. */
  add(revocation: Revocation): Promise<AddResult>;
  lift(id: string): Promise<LiftResult>;
  /** Calls `listener` when the result of one of the checks may have changed. */
  onChange(listener: () => void): void;
};

/** `off`: there is no store. */
export type StoreStatus = {
  /** Whether it began so lately that it lacks history which flows and budgets look back on. */
  readonly isYoung?: boolean;
  /** Whether every caller is refused because what was read is too old. */
  readonly refusesCallers?: boolean;
  readonly state: 'armed' | 'degraded' | 'off';
  readonly reason: string;
  /** True while the store cannot be reached. */
  readonly isUnreachable: boolean;
};

/** Remembers the counters of signed lock files beyond the end of the process. */
export type CounterStore = {
  /**
   * Raises counters, by upstream: all of them, or no counter if one is older than what is known. Never lowers one, and
   * returns the highest that are known. Rejects with an error that may be shown where that is not possible.
   */
  raise(counters: ReadonlyMap<string, SeenCounter>): Promise<ReadonlyMap<string, SeenCounter>>;
};

/** Keeps what upstreams offered first beyond the end of the process. Rejects with an error that may be shown. */
export type FirstUseStore = {
  find(upstream: string): Promise<string | undefined>;
  /** Keeps the text, unless another is kept already, and returns the one that is. */
  keep(upstream: string, text: string): Promise<string>;
};

export type GatewayState = {
  readonly limits: LimitStore;
  readonly flows: FlowStore;
  readonly replays: ReplayStore;
  /** Which server requests were replied to; separate from DPoP proofs, so that neither uses up the other's capacity. */
  readonly claimedReplies: ReplayStore;
  /** `undefined` where no store outlives the process. */
  readonly firstUses: FirstUseStore | undefined;
  readonly ended: EndedSessions;
  readonly revocations: Revocations;
  readonly replicaBus: ReplicaBus;
  /** The records of one kind, which all replicas share. Called once for each kind. */
  tableOf<Head, Body>(kind: string, bounds: TableTerms<Head>): SharedTable<Head, Body>;
  /** Returns counters of these upstreams; `undefined` where no store outlives the process. */
  readonly countersOf: ((upstreams: readonly string[]) => CounterStore) | undefined;
  /** `historyMs`: how far back the flows and budgets in force look. */
  status(historyMs?: number): StoreStatus;
  /** Whether requests can be served as far as this state is concerned. */
  isReady(): boolean;
  /** Resolves after the first attempt to read the store, successful or not. */
  start(): Promise<void>;
  close(): Promise<void>;
};

/** What is said of the state of a single replica. */
export const ALONE: StoreStatus = {
  state: 'off',
  reason: 'state.type: memory, which a single replica can use',
  isUnreachable: false,
};

/** The state of a single replica: gone when the process ends. */
export function createMemoryState({ ring, now }: StatePorts): GatewayState {
  const changes = new EventEmitter<{ change: [] }>();
  const known = createRevocationSet(ring, now, () => changes.emit('change'));
  const ended = createEndedSessions();
  return {
    limits: createMemoryLimits(),
    flows: createMemoryFlows(now),
    replays: createMemoryReplays(now),
    claimedReplies: createMemoryReplays(now),
    firstUses: undefined,
    ended: {
      has: ended.has,
      add: (hash, _expiresAtMs, owner) => ended.add(hash, owner),
      onElsewhere: () => undefined,
    },
    revocations: {
      ...known,
      checkPrincipal: (principal) => (known.hasCaller(principal) ? 'token-revoked' : undefined),
      async add(revocation) {
        if (!known.hasCapacity()) return 'full';
        known.add(revocation);
        changes.emit('change');
        return 'shared';
      },
      async lift(id) {
        if (!known.remove(id)) return 'unknown';
        changes.emit('change');
        return 'lifted';
      },
      onChange: (listener) => void changes.on('change', listener),
    },
    replicaBus: createLocalReplicaBus(),
    tableOf: (_kind, bounds) => createMemoryTable(now, bounds),
    countersOf: undefined,
    status: () => ALONE,
    isReady: () => true,
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
