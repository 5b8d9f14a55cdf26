// Since when a shared store has held what it was given. A store that comes back empty looks like one in which nobody has
// received or spent anything, so it begins a new epoch, and what looks back beyond its beginning is not known.
// docs/reference/state.md#when-the-store-comes-back-empty.

import type { StoreUpdate } from './store.js';

export type StoreEpoch = {
  /** Notes what a poll returned. */
  note(epoch: StoreUpdate['epoch']): void;
  /**
   * For how long the store cannot tell what happened within the last `windowMs`, given the id of the epoch that it has
   * now, in milliseconds; 0 if it can.
   */
  lostForMs(id: string, windowMs: number): number;
  /** The same of the epoch that the last poll returned. */
  youngForMs(windowMs: number): number;
};

/**
 * `nowMs` is a monotonic clock. `onUnknown` is called where the store has another epoch than the last poll returned.
 * With `afterLoss: 'degrade'` a young epoch refuses nothing, which is the operator's choice.
 */
export function createStoreEpoch(ports: {
  readonly nowMs: () => number;
  readonly afterLoss: 'refuse' | 'degrade';
  readonly onUnknown: () => void;
}): StoreEpoch {
  const { nowMs, afterLoss, onUnknown } = ports;
  let current: { readonly id: string; readonly beganAtMs: number } | undefined;

  function youngForMs(windowMs: number): number {
    if (current === undefined) return windowMs;
    return Math.max(0, windowMs - (nowMs() - current.beganAtMs));
  }

  return {
    note({ id, ageMs }) {
      if (current?.id !== id) current = { id, beganAtMs: nowMs() - Math.max(0, ageMs) };
    },
    lostForMs(id, windowMs) {
      const isCurrent = current?.id === id;
      if (!isCurrent) onUnknown();
      if (afterLoss === 'degrade') return 0;
      return isCurrent ? youngForMs(windowMs) : windowMs;
    },
    youngForMs,
  };
}
