// What one caller's channels may hold of what all channels of an upstream may: whoever reads nothing, or comes
// back for nothing, fills its own share, and the answers of others have room. Counts, and holds nothing.
// Source: contract §10 (never shared between principals).

import type { Ledger } from './mailbox.js';

/** A part of a ledger. What is taken of it is taken of the whole. */
export type OwnerLedger = Ledger & {
  /** True where half of it is taken: nothing is held any more that was told already. */
  readonly isHalfTaken: boolean;
};

/** The share of one caller, of at most `maxBytes`. */
export function ownerLedgerOf(total: Ledger, maxBytes: number): OwnerLedger {
  let ownLeft = maxBytes;
  const left = (): number => Math.min(ownLeft, total.bytesLeft);
  return {
    get bytesLeft() {
      return left();
    },
    set bytesLeft(next) {
      const change = next - left();
      ownLeft += change;
      total.bytesLeft += change;
    },
    get isHalfTaken() {
      return ownLeft < maxBytes / 2;
    },
  };
}
