// Enforces the rate obligations of an allow: takes one use of each limit, and stops at the first that is
// exhausted without asking the store for anything else. Also defines the ports of the stores that count uses;
// state/ implements them. A store can only restrict: it refuses, or reports that it is unavailable.
// docs/contract.md §4 (`limits`) and §10.

import type { Allow, Deny, RateLimit } from './decision.js';
import type { Principal } from './principal.js';

export type LimitWindow = { readonly count: number; readonly windowMs: number };

/** `unavailable`: the store could not be reached, and nothing may be concluded. */
export type LimitOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly retryAfterMs: number }
  | 'unavailable';

export interface LimitStore {
  /** Counts one use under the key, unless `count` uses fell within the last `windowMs` milliseconds. */
  take(key: string, limit: LimitWindow): LimitOutcome | Promise<LimitOutcome>;
}

/** True for the first use, false for every other; `unavailable` if that cannot be determined, which is a refusal. */
export type ReplayOutcome = boolean | 'unavailable';

/** Remembers that something was used, so that it is accepted only once: proofs of possession, by a keyed hash. */
export type ReplayStore = {
  /**
   * Records a use. `keyHash` is a keyed hash, never the value that was used; it may be forgotten after
   * `expiresAtMs` (milliseconds since the epoch). `owner` identifies whose use it is: where capacity is
   * bounded, no owner can take all of it. Of concurrent uses exactly one is the first. Never throws or
   * rejects.
   */
  useOnce(
    keyHash: string,
    expiresAtMs: number,
    owner: string,
  ): ReplayOutcome | Promise<ReplayOutcome>;
};

const MS_PER_SECOND = 1000;

/**
 * Takes one use of every rate obligation, in their order. Undefined if all are met; a promise only if the
 * store returns one. A store that is unavailable is a refusal.
 */
export function enforceLimits(
  allow: Allow,
  principal: Principal,
  store: LimitStore,
): Deny | undefined | Promise<Deny | undefined> {
  const limits = allow.obligations.flatMap((obligation) =>
    obligation.kind === 'rate' ? [obligation.limit] : [],
  );
  return countAgainst(limits, 0, principal, store);
}

function countAgainst(
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
        (outcome) => denyFor(outcome, limit) ?? countAgainst(limits, index + 1, principal, store),
        () => denyFor('unavailable', limit),
      );
    }
    const deny = denyFor(counted, limit);
    if (deny !== undefined) return deny;
  }
  return undefined;
}

/**
 * The key under which uses of a limit are counted together. Clients and subjects are counted within their
 * issuer: equal names of two issuers are two callers. The parts are quoted, so that none can imitate another.
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

/** The rule that the limit belongs to, which need not be the one that allows. */
function ruleOf({ rule }: RateLimit): { readonly policy: string; readonly rule: string } {
  const slash = rule.indexOf('/');
  return { policy: rule.slice(0, slash), rule: rule.slice(slash + 1) };
}
