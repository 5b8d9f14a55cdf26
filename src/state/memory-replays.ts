// Remembers in this process what was used once. Bounded, and it forgets nothing before its time: full of
// uses that still count, it answers `unavailable` rather than forget one that could then be repeated.

import type { ReplayAnswer, ReplayStore } from '../policy/replay-store.js';

/** Uses kept at once; each takes about 150 bytes. */
export const DEFAULT_MAX_USES = 200_000;
/** Uses looked at on each call, so that the table shrinks by itself. */
const SWEEP_PER_USE = 4;
/** Between two looks at a whole table that is full. */
const FULL_SWEEP_EVERY_MS = 1000;

export interface MemoryReplays extends ReplayStore {
  /** Uses that are kept now. */
  readonly size: number;
  useOnce(keyHash: string, expiresAtMs: number): ReplayAnswer;
}

/** Makes the memory of one replica. `now` is in milliseconds since the epoch. */
export function createMemoryReplays(
  now: () => number,
  maxUses: number = DEFAULT_MAX_USES,
): MemoryReplays {
  const uses = new Map<string, number>();
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  /** Oldest first; lives are about equally long, so that those are the ones that have expired. */
  function sweep(nowMs: number, most: number): void {
    let looked = 0;
    for (const [keyHash, expiresAtMs] of uses) {
      if (looked++ >= most) return;
      if (expiresAtMs <= nowMs) uses.delete(keyHash);
    }
  }

  function hasRoom(nowMs: number): boolean {
    if (uses.size < maxUses) return true;
    if (nowMs - sweptAtMs < FULL_SWEEP_EVERY_MS) return false;
    sweptAtMs = nowMs;
    sweep(nowMs, uses.size);
    return uses.size < maxUses;
  }

  return {
    get size() {
      return uses.size;
    },
    useOnce(keyHash, expiresAtMs) {
      const nowMs = now();
      sweep(nowMs, SWEEP_PER_USE);
      const known = uses.get(keyHash);
      if (known !== undefined && known > nowMs) return false;
      if (known === undefined && !hasRoom(nowMs)) return 'unavailable';
      uses.set(keyHash, expiresAtMs);
      return true;
    },
  };
}
