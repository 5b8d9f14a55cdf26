// Meets the rate obligations of an allow: one use of each limit, counted for whom the rule says.
// Stops at the first that is used up; asks the store for nothing else. docs/contract.md §4 (`limits`) and §10.

import type { Allow, Deny, RateLimit } from './decision.js';
import type { Principal } from './principal.js';

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

// What remembers that something was used, so that it is used once: proofs of possession, by a keyed hash.
// The port alone; the memories behind it are in state/.

/** True for the first use, false for every other; `unavailable` where nobody can tell, which lets nothing pass. */
export type ReplayOutcome = boolean | 'unavailable';

export type ReplayStore = {
  /**
   * Notes a use. `keyHash` is a keyed hash, never what was used; it need not be remembered past
   * `expiresAtMs` (milliseconds since the epoch). `owner` says whose use it is: where room is bounded, no
   * owner gets all of it. Of uses at the same time exactly one is the first. Never throws or rejects.
   */
  useOnce(
    keyHash: string,
    expiresAtMs: number,
    owner: string,
  ): ReplayOutcome | Promise<ReplayOutcome>;
};

const MS_PER_SECOND = 1000;

/**
 * Takes one use of every rate obligation, in their order. Undefined when all are met; a promise only
 * where the store answers with one. A store that cannot be asked refuses.
 */
export function meetLimits(
  allow: Allow,
  principal: Principal,
  store: LimitStore,
): Deny | undefined | Promise<Deny | undefined> {
  const limits = allow.obligations.flatMap((obligation) =>
    obligation.kind === 'rate' ? [obligation.limit] : [],
  );
  return takeFrom(limits, 0, principal, store);
}

function takeFrom(
  limits: readonly RateLimit[],
  start: number,
  principal: Principal,
  store: LimitStore,
): Deny | undefined | Promise<Deny | undefined> {
  for (let index = start; index < limits.length; index++) {
    const limit = limits[index];
    if (limit === undefined) continue;
    const counted = store.take(limitKey(limit, principal), limit);
    if (counted instanceof Promise) {
      return counted.then(
        (outcome) => denyFor(outcome, limit) ?? takeFrom(limits, index + 1, principal, store),
        () => denyFor('unavailable', limit),
      );
    }
    const deny = denyFor(counted, limit);
    if (deny !== undefined) return deny;
  }
  return undefined;
}

/**
 * Who is counted together under a limit. A client is counted within its issuer, a subject too: equal
 * names of two issuers are two callers. The parts are quoted, so that none can imitate another.
 */
export function limitKey(limit: RateLimit, principal: Principal): string {
  switch (limit.per) {
    case 'rule':
      return JSON.stringify([limit.rule, 'rule']);
    case 'client':
      return JSON.stringify([limit.rule, 'client', principal.issuerUrl, principal.client]);
    case 'subject':
      return JSON.stringify([limit.rule, 'subject', principal.issuerUrl, principal.subject]);
  }
}

function denyFor(counted: LimitOutcome, limit: RateLimit): Deny | undefined {
  if (counted === 'unavailable') {
    return { verdict: 'deny', reason: 'store-unavailable', listed: true, ...ruleOf(limit) };
  }
  if (counted.ok) return undefined;
  const retryAfterSeconds = Math.max(1, Math.ceil(counted.retryAfterMs / MS_PER_SECOND));
  return {
    verdict: 'deny',
    reason: 'rate-limited',
    listed: true,
    ...ruleOf(limit),
    advice: `Try again in ${retryAfterSeconds} seconds.`,
    retryAfterSeconds,
  };
}

/** The rule whose limit it is, which need not be the one that allows. */
function ruleOf({ rule }: RateLimit): { readonly policy: string; readonly rule: string } {
  const slash = rule.indexOf('/');
  return { policy: rule.slice(0, slash), rule: rule.slice(slash + 1) };
}
