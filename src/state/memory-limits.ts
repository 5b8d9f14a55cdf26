// Limits counted in this process: a window that slides in steps, so that a key costs the same whatever
// its limit. Errs towards refusing: in no span of `windowMs` do more than `count` uses pass. The table is
// bounded; full of keys in use, it refuses new ones rather than forget what was used.

import type { LimitOutcome, LimitStore, LimitWindow } from '../policy/limit-store.js';

/** Parts of a window: a use is forgotten at most one part late. */
const STEPS_PER_WINDOW = 16;
/** One more than a window has, so that its oldest part, which it may still overlap, is kept. */
const SLOTS = STEPS_PER_WINDOW + 1;
/** Idle keys looked at on each use, so that the table shrinks by itself. */
const SWEEP_PER_TAKE = 2;

type Usage = {
  readonly windowMs: number;
  readonly slots: Uint32Array;
  /** Number of the newest step that `slots` holds. */
  step: number;
  total: number;
};

export type MemoryLimitsOptions = {
  /** Most keys that are counted at once. */
  readonly maxKeys?: number;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
};

export interface MemoryLimits extends LimitStore {
  /** Keys that are counted now. */
  readonly size: number;
  take(key: string, limit: LimitWindow): LimitOutcome;
}

/** Keys for 50,000 callers and limits take about 15 MB. */
export const DEFAULT_MAX_KEYS = 50_000;

/** Creates a store for one replica. Answers at once, never throws. */
export function createMemoryLimits(options: MemoryLimitsOptions = {}): MemoryLimits {
  const { maxKeys = DEFAULT_MAX_KEYS, nowMs = () => performance.now() } = options;
  const usages = new Map<string, Usage>();
  let lastFullSweepMs = Number.NEGATIVE_INFINITY;

  function sweep(now: number, most: number): void {
    let examined = 0;
    for (const [key, usage] of usages) {
      if (examined++ >= most) return;
      advance(usage, now);
      if (usage.total === 0) usages.delete(key);
    }
  }

  /** Looks at all keys at most once a second: a full table must not make each call dear. */
  function makeCapacity(now: number): boolean {
    if (usages.size < maxKeys) return true;
    if (now - lastFullSweepMs < 1000) return false;
    lastFullSweepMs = now;
    sweep(now, usages.size);
    return usages.size < maxKeys;
  }

  return {
    get size() {
      return usages.size;
    },
    take(key, limit) {
      const now = nowMs();
      sweep(now, SWEEP_PER_TAKE);
      let usage = usages.get(key);
      // A limit that a reload changed starts anew: its steps are of another length.
      if (usage === undefined || usage.windowMs !== limit.windowMs) {
        if (usage === undefined && !makeCapacity(now)) return 'unavailable';
        usage = startUsage(limit.windowMs, now);
      }
      advance(usage, now);
      // Last touched stands last, so that idle keys come first when sweeping.
      usages.delete(key);
      usages.set(key, usage);
      if (usage.total >= limit.count) {
        return { ok: false, retryAfterMs: waitFor(usage, limit.count, now) };
      }
      const slot = usage.step % SLOTS;
      usage.slots[slot] = (usage.slots[slot] ?? 0) + 1;
      usage.total += 1;
      return { ok: true };
    },
  };
}

function stepMs(usage: { readonly windowMs: number }): number {
  return usage.windowMs / STEPS_PER_WINDOW;
}

function startUsage(windowMs: number, now: number): Usage {
  const step = Math.floor(now / stepMs({ windowMs }));
  return { windowMs, slots: new Uint32Array(SLOTS), step, total: 0 };
}

/** Empties the slots that the window has left. A clock that goes back changes nothing. */
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

/** Milliseconds until so many uses are forgotten that one more fits. */
function waitFor(usage: Usage, count: number, now: number): number {
  let remaining = usage.total;
  for (let age = SLOTS - 1; age >= 0; age--) {
    const step = usage.step - age;
    remaining -= usage.slots[((step % SLOTS) + SLOTS) % SLOTS] ?? 0;
    if (remaining < count) return Math.max(1, (step + SLOTS) * stepMs(usage) - now);
  }
  return usage.windowMs;
}
