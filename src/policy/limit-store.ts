// The port through which limits are counted. settle/ asks it, state/ implements it; types only.
// A store can only take away: it says no, or that it could not be asked.

export type LimitWindow = { readonly count: number; readonly windowMs: number };

/** `unavailable`: the store could not be asked, and nothing may be concluded. */
export type LimitOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly retryAfterMs: number }
  | 'unavailable';

export interface LimitStore {
  /** Counts one use under the key, unless `count` uses fell within the last `windowMs`. */
  take(key: string, limit: LimitWindow): LimitOutcome | Promise<LimitOutcome>;
}
