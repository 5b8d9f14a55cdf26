// Remembers in this process what was used once. Bounded, and it forgets nothing before its time: full of
// uses that still count, it answers `unavailable` rather than forget one that could then be repeated.

import type { ReplayOutcome, ReplayStore } from '../policy/replay-store.js';

/** Uses kept at once; each takes about 150 bytes. */
export const DEFAULT_MAX_USES = 200_000;
/** The part of all uses that one owner may hold. */
export const OWNER_PART = 0.25;
/** Uses looked at on each call, so that the table shrinks by itself. */
const SWEEP_PER_USE = 4;
/** Between two looks at a whole table that is full. */
const FULL_SWEEP_EVERY_MS = 1000;

export interface MemoryReplays extends ReplayStore {
  /** Uses that are kept now. */
  readonly size: number;
  useOnce(keyHash: string, expiresAtMs: number, owner: string): ReplayOutcome;
}

type Use = { readonly expiresAtMs: number; readonly owner: string };

/** Makes the memory of one replica. `now` is in milliseconds since the epoch. */
export function createMemoryReplays(
  now: () => number,
  maxUses: number = DEFAULT_MAX_USES,
): MemoryReplays {
  const uses = new Map<string, Use>();
  const usageByOwner = new Map<string, number>();
  const maxOwnUses = Math.max(1, Math.floor(maxUses * OWNER_PART));
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  /** Oldest first; lives are about equally long, so that those are the ones that have expired. */
  function sweep(nowMs: number, most: number): void {
    let examined = 0;
    for (const [keyHash, use] of uses) {
      if (examined++ >= most) return;
      if (use.expiresAtMs <= nowMs) forget(keyHash, use);
    }
  }

  function forget(keyHash: string, { owner }: Use): void {
    uses.delete(keyHash);
    const left = (usageByOwner.get(owner) ?? 1) - 1;
    if (left === 0) usageByOwner.delete(owner);
    else usageByOwner.set(owner, left);
  }

  function isFull(owner: string): boolean {
    return uses.size >= maxUses || (usageByOwner.get(owner) ?? 0) >= maxOwnUses;
  }

  function hasCapacity(nowMs: number, owner: string): boolean {
    if (!isFull(owner)) return true;
    if (nowMs - sweptAtMs < FULL_SWEEP_EVERY_MS) return false;
    sweptAtMs = nowMs;
    sweep(nowMs, uses.size);
    return !isFull(owner);
  }

  return {
    get size() {
      return uses.size;
    },
    useOnce(keyHash, expiresAtMs, owner) {
      const nowMs = now();
      sweep(nowMs, SWEEP_PER_USE);
      const known = uses.get(keyHash);
      if (known !== undefined && known.expiresAtMs > nowMs) return false;
      if (known !== undefined) forget(keyHash, known);
      if (!hasCapacity(nowMs, owner)) return 'unavailable';
      uses.set(keyHash, { expiresAtMs, owner });
      usageByOwner.set(owner, (usageByOwner.get(owner) ?? 0) + 1);
      return true;
    },
  };
}
