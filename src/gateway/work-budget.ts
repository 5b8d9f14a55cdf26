// How much time on the event loop the closer looks of one upstream may take, and those of all together: so
// much a second. Whoever has used it up goes to the other thread until it has come back.

export type WorkBudget = {
  hasLeft(upstream: string): boolean;
  /** Notes time that was spent, in milliseconds. What is left may fall below nothing. */
  spend(upstream: string, ms: number): void;
};

/** `burstMs` is there at the beginning, and comes back at `msASecond`. */
type Rate = { readonly burstMs: number; readonly msASecond: number };

type Options = {
  readonly each?: Rate;
  readonly all?: Rate;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
};

const EACH: Rate = { burstMs: 30, msASecond: 50 };
const ALL: Rate = { burstMs: 50, msASecond: 150 };

type Left = { ms: number; atMs: number };

/** A budget of which nothing was spent. */
export function createWorkBudget({
  each = EACH,
  all = ALL,
  now = () => performance.now(),
}: Options = {}): WorkBudget {
  const total: Left = { ms: all.burstMs, atMs: now() };
  const ofEach = new Map<string, Left>();

  function leftOf(upstream: string): Left {
    const known = ofEach.get(upstream);
    if (known !== undefined) return known;
    const left = { ms: each.burstMs, atMs: now() };
    ofEach.set(upstream, left);
    return left;
  }

  return {
    hasLeft(upstream) {
      const atMs = now();
      return refill(total, all, atMs) > 0 && refill(leftOf(upstream), each, atMs) > 0;
    },
    spend(upstream, ms) {
      total.ms -= ms;
      leftOf(upstream).ms -= ms;
    },
  };
}

function refill(left: Left, { burstMs, msASecond }: Rate, atMs: number): number {
  left.ms = Math.min(burstMs, left.ms + ((atMs - left.atMs) * msASecond) / 1000);
  left.atMs = atMs;
  return left.ms;
}
