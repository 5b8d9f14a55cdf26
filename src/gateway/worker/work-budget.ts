// Budgets of time for expensive inspection: each upstream and each caller has its own, which is refilled every second.

import { createRate, type RateBounds } from '../../state/quota.js';

/**
 * The time that inspection may take, per upstream, per caller and in total. Work without a caller (the gateway's own
 * listings) is charged to its upstream alone.
 */
export type WorkBudget = {
  hasLeft(upstream: string, caller?: string): boolean;
  /** Records time that was spent, in milliseconds. What is left may become negative. */
  spend(upstream: string, ms: number, caller?: string): void;
};

type Options = {
  /** In milliseconds of work. */
  readonly each?: RateBounds;
  /** By default half of what an upstream has, so that no caller uses up the budget of an upstream. */
  readonly eachCaller?: RateBounds;
  readonly all?: RateBounds;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
};

const RATE_PER_UPSTREAM: RateBounds = { burst: 30, perSecond: 50 };
const TOTAL_RATE: RateBounds = { burst: 50, perSecond: 150 };

/** Creates the budget of the event loop, or one of other rates. */
export function createWorkBudget({
  each = RATE_PER_UPSTREAM,
  eachCaller = { burst: each.burst / 2, perSecond: each.perSecond / 2 },
  all = TOTAL_RATE,
  now = () => performance.now(),
}: Options = {}): WorkBudget {
  const total = createRate(all, now);
  const perUpstream = createRate(each, now);
  const perCaller = createRate(eachCaller, now);
  return {
    hasLeft: (upstream, caller) =>
      total.left() > 0 &&
      perUpstream.left(upstream) > 0 &&
      (caller === undefined || perCaller.left(caller) > 0),
    spend(upstream, ms, caller) {
      if (ms === 0) return;
      total.spend(ms);
      perUpstream.spend(ms, upstream);
      if (caller !== undefined) perCaller.spend(ms, caller);
    },
  };
}
