// Enforces the limits of an allow: takes one use of each rate, charges each budget, and stops at the first that is
// exhausted without asking the store for anything else. Also defines the ports of the stores that count uses;
// state/ implements them. A store can only restrict: it refuses, or reports that it is unavailable.
// docs/contract.md §4 (`limits`) and §10.

import type { Allow, Budget, Deny, Obligation, RateLimit } from './decision.js';
import type { Principal } from './principal.js';

export type LimitWindow = {
  readonly count: number;
  readonly windowMs: number;
  /** How much of `count` is taken: a whole number, 1 if absent. */
  readonly amount?: number;
  /** Counted in the shared store or not at all: while it cannot be reached, no replica allows a share of its own. */
  readonly isSharedOnly?: boolean;
};

/** `unavailable`: the store could not be reached, and nothing may be concluded. */
export type LimitOutcome =
  | { readonly ok: true }
  | { readonly ok: false; readonly retryAfterMs: number }
  | 'unavailable';

export interface LimitStore {
  /** Counts the amount under the key, unless more than `count` would then fall within the last `windowMs` milliseconds. */
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

/** What is taken under one key of the store, and how it is refused. */
type Charge = {
  readonly key: string;
  readonly window: LimitWindow;
  readonly rule: string;
  /** The name of the budget that is charged. */
  readonly budget?: string;
};

/**
 * Takes one use of every rate obligation and charges every budget, in their order. Undefined if all are met; a promise
 * only if the store returns one. A store that is unavailable is a refusal. What was charged is not returned.
 */
export function enforceLimits(
  allow: Allow,
  principal: Principal,
  store: LimitStore,
): Deny | undefined | Promise<Deny | undefined> {
  const charges = allow.obligations.flatMap((obligation): Charge[] => {
    if (obligation.kind === 'budget') return [budgetCharge(obligation, principal)];
    if (obligation.kind !== 'rate') return [];
    const { limit } = obligation;
    return [{ key: limitKey(limit, principal), window: limit, rule: limit.rule }];
  });
  return countAgainst(charges, 0, store);
}

/** Budgets are counted in millionths, so that sums are exact; a fraction of one counts as one. */
const UNITS = 1_000_000;

function budgetCharge(
  { budget, rule, cost }: Extract<Obligation, { kind: 'budget' }>,
  principal: Principal,
): Charge {
  const { name, max, windowMs } = budget;
  // A cost beyond every budget is refused whatever was spent, and no store needs to count so far.
  const amount = Math.ceil(Math.min(cost, max + 1) * UNITS);
  return {
    key: budgetKey(budget, principal),
    window: { count: max * UNITS, windowMs, amount, isSharedOnly: true },
    rule,
    budget: name,
  };
}

function countAgainst(
  charges: readonly Charge[],
  start: number,
  store: LimitStore,
): Deny | undefined | Promise<Deny | undefined> {
  for (let index = start; index < charges.length; index++) {
    const charge = charges[index];
    if (charge === undefined) continue;
    const counted = store.take(charge.key, charge.window);
    if (counted instanceof Promise) {
      return counted.then(
        (outcome) => denyFor(outcome, charge) ?? countAgainst(charges, index + 1, store),
        () => denyFor('unavailable', charge),
      );
    }
    const deny = denyFor(counted, charge);
    if (deny !== undefined) return deny;
  }
  return undefined;
}

/** The key under which a budget is charged: the same for all rules that name it. */
function budgetKey({ name, per }: Budget, { issuerUrl, client, subject }: Principal): string {
  switch (per) {
    case 'all':
      return JSON.stringify(['budget', name, 'all']);
    case 'client':
      return JSON.stringify(['budget', name, 'client', issuerUrl, client]);
    case 'subject':
      return JSON.stringify(['budget', name, 'subject', issuerUrl, subject]);
  }
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

function denyFor(counted: LimitOutcome, charge: Charge): Deny | undefined {
  if (counted === 'unavailable') {
    return { verdict: 'deny', reason: 'store-unavailable', listed: true, ...ruleOf(charge) };
  }
  if (counted.ok) return undefined;
  const refused = {
    verdict: 'deny',
    reason: 'rate-limited',
    listed: true,
    ...ruleOf(charge),
  } as const;
  const { budget, window } = charge;
  if (budget !== undefined && (window.amount ?? 1) > window.count) {
    return { ...refused, advice: `This call costs more than the whole budget "${budget}".` };
  }
  const retryAfterSeconds = Math.max(1, Math.ceil(counted.retryAfterMs / MS_PER_SECOND));
  const again = `Try again in ${retryAfterSeconds} seconds.`;
  const advice = budget === undefined ? again : `The budget "${budget}" is spent. ${again}`;
  return { ...refused, advice, retryAfterSeconds };
}

/** The rule that the limit belongs to, which need not be the one that allows. */
function ruleOf({ rule }: Charge): { readonly policy: string; readonly rule: string } {
  const slash = rule.indexOf('/');
  return { policy: rule.slice(0, slash), rule: rule.slice(slash + 1) };
}
