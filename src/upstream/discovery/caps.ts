// The bounds of the gateway's own listings: of one, over all its lists, and of all of one upstream in a minute.

import type { ByteAllowance } from '../exchange.js';

/** Caps of one listing, over all its lists. */
export type ListingCaps = {
  readonly maxPages: number;
  readonly maxItems: number;
  readonly maxBytes: number;
};

export const LISTING_CAPS: ListingCaps = {
  maxPages: 1000,
  maxItems: 10_000,
  maxBytes: 8 * 1024 * 1024,
};

const MINUTE_MS = 60_000;

/**
 * Bounds the bytes that the gateway's own listings of one upstream may read per minute, over all client profiles and
 * eras. The server decides how long its lists are and how often they change; without the bound it would decide the cost.
 * `now`: milliseconds since the epoch.
 */
export function createListingAllowance(maxBytes: number, now: () => number): ByteAllowance {
  let sinceMs = now();
  let usedBytes = 0;

  function refill(): void {
    if (now() - sinceMs < MINUTE_MS) return;
    sinceMs = now();
    usedBytes = 0;
  }

  return {
    get isLeft() {
      refill();
      return usedBytes <= maxBytes;
    },
    countBytes(bytes) {
      refill();
      usedBytes += bytes;
    },
  };
}
