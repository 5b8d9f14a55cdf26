// What is known of the eras of one upstream: which it speaks, when each was verified, which to ask.
// An era that fails is only forgotten when the upstream says so; until then its listing ages.
// MCP 2026-07-28, versioning (an upstream may speak one era or both).

import type { ListedEra } from '../../protocol/listings.js';
import type { EraOutcome } from './lists.js';
import type { ListingError } from './request.js';

export const LISTED_ERAS = ['2025', '2026'] as const satisfies readonly ListedEra[];

/** How often an upstream is asked whether it has come to speak an era that it did not. */
export const PROBE_INTERVAL_MS = 600_000;

/** Versions that the upstream speaks and that are carried here. */
export type SpokenVersions = {
  readonly sessions: readonly string[];
  readonly stateless: readonly string[];
};

type EraState = {
  /** Of the last complete listing; `undefined` while the era is not known to be spoken. */
  verifiedAtMs: number | undefined;
  versions: readonly string[];
  /** When the era was last found not spoken. */
  silentAtMs: number | undefined;
};

export type SpokenEras = { readonly [era in ListedEra]: EraState };

export function createSpokenEras(): SpokenEras {
  const unknown = { verifiedAtMs: undefined, versions: [], silentAtMs: undefined };
  return { '2025': { ...unknown }, '2026': { ...unknown } };
}

/** True for an era that was listed and not given up since. */
export function isKnown(eras: SpokenEras, era: ListedEra): boolean {
  return eras[era].verifiedAtMs !== undefined;
}

/** True where the upstream is known to speak any era. */
export function isAnyKnown(eras: SpokenEras): boolean {
  return LISTED_ERAS.some((era) => isKnown(eras, era));
}

/** The eras to ask now: those spoken, and from time to time the others. */
export function dueEras(eras: SpokenEras, nowMs: number): readonly ListedEra[] {
  return LISTED_ERAS.filter((era) => {
    const { silentAtMs } = eras[era];
    if (isKnown(eras, era) || silentAtMs === undefined || !isAnyKnown(eras)) return true;
    return nowMs - silentAtMs >= PROBE_INTERVAL_MS;
  });
}

/** True when every era that is spoken was verified within `maxAgeMs`, and at least one is. */
export function areVerified(eras: SpokenEras, nowMs: number, maxAgeMs: number): boolean {
  let isAny = false;
  for (const era of LISTED_ERAS) {
    const { verifiedAtMs } = eras[era];
    if (verifiedAtMs === undefined) continue;
    if (nowMs - verifiedAtMs > maxAgeMs) return false;
    isAny = true;
  }
  return isAny;
}

export function spokenVersions(eras: SpokenEras): SpokenVersions | undefined {
  if (!isAnyKnown(eras)) return undefined;
  return { sessions: eras['2025'].versions, stateless: eras['2026'].versions };
}

/** Enters what came of asking. True where an era that was spoken is gone. */
export function enterOutcome(
  eras: SpokenEras,
  era: ListedEra,
  outcome: EraOutcome,
  nowMs: number,
): boolean {
  const state = eras[era];
  switch (outcome.kind) {
    case 'listed':
      state.verifiedAtMs = outcome.listing.verifiedAtMs;
      state.versions = outcome.listing.protocolVersions;
      state.silentAtMs = undefined;
      return false;
    case 'not-spoken': {
      const wasKnown = isKnown(eras, era);
      state.verifiedAtMs = undefined;
      state.versions = [];
      state.silentAtMs = nowMs;
      return wasKnown;
    }
    case 'failed':
      return false;
  }
}

/**
 * Why a finished round is a failure in this era, or `undefined` where it is none. That an upstream does
 * not speak an era is no failure while it speaks the other.
 */
export function failureOf(
  eras: SpokenEras,
  era: ListedEra,
  outcome: EraOutcome,
  nowMs: number,
): ListingError | undefined {
  switch (outcome.kind) {
    case 'listed':
      return undefined;
    case 'not-spoken':
      return isAnyKnown(eras) ? undefined : 'protocol';
    case 'failed':
      if (outcome.isSpoken || isKnown(eras, era) || !isAnyKnown(eras)) return outcome.why;
      // The other era answers and this one never did: not spoken, for all that anybody can tell.
      eras[era].silentAtMs = nowMs;
      return undefined;
  }
}
