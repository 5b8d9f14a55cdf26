// Budgets of time for expensive inspection: each upstream and each caller has its own, which is refilled every second.

/**
 * The time that inspection may take, per upstream, per caller and in total. Work without a caller (the gateway's own
 * listings) is charged to its upstream alone.
 */
export type WorkBudget = {
  hasLeft(upstream: string, caller?: string): boolean;
  /** Records time that was spent, in milliseconds. What is left may become negative. */
  spend(upstream: string, ms: number, caller?: string): void;
};

/** A budget of `burstMs` at the start, refilled by this many milliseconds a second up to `burstMs`. */
type Rate = { readonly burstMs: number; readonly msASecond: number };

type Options = {
  readonly each?: Rate;
  /** By default half of what an upstream has, so that no caller uses up the budget of an upstream. */
  readonly eachCaller?: Rate;
  readonly all?: Rate;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
};

const RATE_PER_UPSTREAM: Rate = { burstMs: 30, msASecond: 50 };
const TOTAL_RATE: Rate = { burstMs: 50, msASecond: 150 };
/** Above this number, budgets that are full again are forgotten: they are those that a new one would be. */
const MAX_BUDGETS = 1_000;

type Budget = { ms: number; atMs: number };

/** Creates the budget of the event loop, or one of other rates. */
export function createWorkBudget({
  each = RATE_PER_UPSTREAM,
  eachCaller = { burstMs: each.burstMs / 2, msASecond: each.msASecond / 2 },
  all = TOTAL_RATE,
  now = () => performance.now(),
}: Options = {}): WorkBudget {
  const total: Budget = { ms: all.burstMs, atMs: now() };
  const upstreams = new Map<string, Budget>();
  const callers = new Map<string, Budget>();

  function budgetIn(budgets: Map<string, Budget>, key: string, rate: Rate): Budget {
    const known = budgets.get(key);
    if (known !== undefined) return known;
    if (budgets.size >= MAX_BUDGETS) forgetFull(budgets, rate);
    const left = { ms: rate.burstMs, atMs: now() };
    budgets.set(key, left);
    return left;
  }

  function forgetFull(budgets: Map<string, Budget>, rate: Rate): void {
    for (const [key, left] of budgets)
      if (refill(left, rate, now()) === rate.burstMs) budgets.delete(key);
  }

  return {
    hasLeft(upstream, caller) {
      const atMs = now();
      return (
        refill(total, all, atMs) > 0 &&
        refill(budgetIn(upstreams, upstream, each), each, atMs) > 0 &&
        (caller === undefined ||
          refill(budgetIn(callers, caller, eachCaller), eachCaller, atMs) > 0)
      );
    },
    spend(upstream, ms, caller) {
      if (ms === 0) return;
      total.ms -= ms;
      budgetIn(upstreams, upstream, each).ms -= ms;
      if (caller !== undefined) budgetIn(callers, caller, eachCaller).ms -= ms;
    },
  };
}

function refill(left: Budget, { burstMs, msASecond }: Rate, atMs: number): number {
  left.ms = Math.min(burstMs, left.ms + ((atMs - left.atMs) * msASecond) / 1000);
  left.atMs = atMs;
  return left.ms;
}
