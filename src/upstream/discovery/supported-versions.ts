// Records which eras one upstream speaks, when each was last verified, and which to probe next. An era whose
// listing fails is removed only if the upstream says that it does not speak it; until then its listing ages.
// MCP 2026-07-28, versioning (an upstream may speak one era or both).

import type { SpokenVersions } from '../../protocol/versions/detection.js';
import { LISTED_ERAS, type ListedEra, perListedEra } from '../../protocol/versions/revisions.js';
import { SESSION } from '../../protocol/versions/session.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import type { EraOutcome } from './lists.js';
import type { ListingError } from './request.js';

/** The interval at which an era that is not spoken is probed again. Milliseconds. */
export const PROBE_INTERVAL_MS = 600_000;

type EraState = {
  /** When the last complete listing was verified; `undefined` while the era is not known to be spoken. */
  verifiedAtMs: number | undefined;
  versions: readonly string[];
  /** When the era was last found not to be spoken. */
  lastUnsupportedAtMs: number | undefined;
};

export type SpokenEras = { readonly [era in ListedEra]: EraState };

export function createSpokenEras(): SpokenEras {
  const unknown = { verifiedAtMs: undefined, versions: [], lastUnsupportedAtMs: undefined };
  return perListedEra<EraState>(() => ({ ...unknown }));
}

/** True for an era that was listed and not removed since. */
export function isKnown(eras: SpokenEras, era: ListedEra): boolean {
  return eras[era].verifiedAtMs !== undefined;
}

/** True if the upstream is known to speak any era. */
export function isAnyKnown(eras: SpokenEras): boolean {
  return LISTED_ERAS.some((era) => isKnown(eras, era));
}

/** The eras to list now: those spoken, and the others at the probe interval. */
export function dueEras(eras: SpokenEras, nowMs: number): readonly ListedEra[] {
  return LISTED_ERAS.filter((era) => {
    const { lastUnsupportedAtMs } = eras[era];
    if (isKnown(eras, era) || lastUnsupportedAtMs === undefined || !isAnyKnown(eras)) return true;
    return nowMs - lastUnsupportedAtMs >= PROBE_INTERVAL_MS;
  });
}

/** True if at least one era is spoken and every spoken era was verified within `maxAgeMs`. */
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
  return {
    sessions: eras[SESSION.listedEra].versions,
    stateless: eras[STATELESS.listedEra].versions,
  };
}

/** Records the outcome of a listing. Returns true if an era that was spoken is gone. */
export function recordOutcome(
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
      state.lastUnsupportedAtMs = undefined;
      return false;
    case 'not-spoken': {
      const wasKnown = isKnown(eras, era);
      state.verifiedAtMs = undefined;
      state.versions = [];
      state.lastUnsupportedAtMs = nowMs;
      return wasKnown;
    }
    case 'failed':
      return false;
  }
}

/**
 * Why a finished round failed in this era, or `undefined` if it did not. Not speaking an era is no failure
 * while the upstream speaks the other.
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
      // The other era responds and this one never did: treat it as not spoken. An upstream that was only
      // overloaded is probed again with the next listing.
      if (outcome.why !== 'unavailable') eras[era].lastUnsupportedAtMs = nowMs;
      return undefined;
  }
}
