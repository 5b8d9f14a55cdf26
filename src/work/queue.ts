// The one queue and the one budget of all work beside the event loop. In the queue upstreams take turns, and the callers
// of an upstream take turns in its turn, so that whoever sends much waits for itself. Those whose jobs took more time than
// their budget has come after all others. Inspection on the event loop has a budget too. No thread is known here.
// Source: docs/reference/performance.md rule 10.

import { createRate, type RateBounds } from '../state/bounds.js';

/** How many jobs may wait, and how many characters they may have in total. */
type WaitingBounds = { readonly jobs: number; readonly chars: number };

/** A job and whose it is; without a caller it is the gateway's own. */
export type QueuedJob<T> = {
  readonly job: T;
  readonly upstream: string;
  readonly caller: string | undefined;
  readonly chars: number;
};

export type FairQueue<T> = {
  /** False where too much waits already: in total, of this upstream, or of this caller. */
  add(queued: QueuedJob<T>): boolean;
  /** Removes and returns the next job that may start, which then runs until `end`; `undefined` where none may. */
  next(): QueuedJob<T> | undefined;
  /** Reports that a job that `next` returned has ended after this time. */
  end(queued: QueuedJob<T>, ms: number): void;
  /** Returns a job that `next` had returned and that could not run; it is the next of its caller again. */
  putBack(queued: QueuedJob<T>): void;
  /** Removes and returns all jobs that wait. */
  drain(): readonly T[];
};

/** One upstream may use the bounds divided by this, and one caller half of that; one job is always allowed. */
const UPSTREAM_DIVISOR = 4;
const CALLER_DIVISOR = 2 * UPSTREAM_DIVISOR;
/** The line of jobs without a caller. No caller's key is empty. */
const NOBODY = '';

type Amount = { jobs: number; chars: number };
type CallerLine<T> = Amount & { readonly queued: QueuedJob<T>[]; isRunning: boolean };
type UpstreamLine<T> = Amount & { readonly lines: Map<string, CallerLine<T>>; running: number };

type QueueOptions = {
  readonly bounds: WaitingBounds;
  /** Jobs that may run at once. */
  readonly threads: number;
  /** Of the time on the threads. */
  readonly budget: WorkBudget;
};

/**
 * Creates a queue that keeps the order of each caller's jobs at an upstream and runs one of them at a time. One upstream
 * or caller never occupies all threads, unless there is only one.
 */
export function createFairQueue<T>({ bounds, threads, budget }: QueueOptions): FairQueue<T> {
  const maxRunning = Math.max(1, threads - 1);
  /** Both levels are in round-robin order. A line without jobs is kept only while one of its jobs runs. */
  const upstreams = new Map<string, UpstreamLine<T>>();
  const runningByCaller = new Map<string, number>();
  const waiting: Amount = { jobs: 0, chars: 0 };

  function linesOf({ upstream, caller = NOBODY }: QueuedJob<T>): [UpstreamLine<T>, CallerLine<T>] {
    const all = upstreams.get(upstream) ?? { ...noAmount(), lines: new Map(), running: 0 };
    const own = all.lines.get(caller) ?? { ...noAmount(), queued: [], isRunning: false };
    upstreams.set(upstream, all);
    all.lines.set(caller, own);
    return [all, own];
  }

  function fits(more: number, all: UpstreamLine<T>, own: CallerLine<T>, isOwned: boolean): boolean {
    return (
      waiting.jobs < bounds.jobs &&
      waiting.chars + more <= bounds.chars &&
      isWithinShare(all, more, UPSTREAM_DIVISOR) &&
      (!isOwned || isWithinShare(own, more, CALLER_DIVISOR))
    );
  }

  function isWithinShare({ jobs, chars }: Amount, more: number, divisor: number): boolean {
    return jobs === 0 || (jobs < bounds.jobs / divisor && chars + more <= bounds.chars / divisor);
  }

  function count({ chars }: QueuedJob<T>, amounts: readonly Amount[], sign: 1 | -1): void {
    for (const amount of amounts) {
      amount.jobs += sign;
      amount.chars += sign * chars;
    }
  }

  function forgetIfOver({ upstream, caller = NOBODY }: QueuedJob<T>): void {
    const [all, own] = [upstreams.get(upstream), upstreams.get(upstream)?.lines.get(caller)];
    if (all === undefined || own === undefined || own.jobs > 0 || own.isRunning) return;
    all.lines.delete(caller);
    if (all.lines.size === 0) upstreams.delete(upstream);
  }

  function mayStart({ upstream, caller }: QueuedJob<T>, isWithinBudget: boolean): boolean {
    const running = caller === undefined ? 0 : (runningByCaller.get(caller) ?? 0);
    return running < maxRunning && budget.hasLeft(upstream, caller) === isWithinBudget;
  }

  function findIn(all: UpstreamLine<T>, isWithinBudget: boolean): QueuedJob<T> | undefined {
    if (all.running >= maxRunning) return undefined;
    for (const { queued, isRunning } of all.lines.values()) {
      const [first] = queued;
      if (first !== undefined && !isRunning && mayStart(first, isWithinBudget)) return first;
    }
    return undefined;
  }

  function findNext(isWithinBudget: boolean): QueuedJob<T> | undefined {
    for (const all of upstreams.values()) {
      const found = findIn(all, isWithinBudget);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function setRunning(queued: QueuedJob<T>, change: 1 | -1): void {
    const [all, own] = linesOf(queued);
    own.isRunning = change === 1;
    all.running += change;
    const { caller } = queued;
    if (caller === undefined) return;
    const running = (runningByCaller.get(caller) ?? 0) + change;
    if (running === 0) runningByCaller.delete(caller);
    else runningByCaller.set(caller, running);
  }

  /** Moves the upstream to the end of the queue, and the caller to the end of those of the upstream. */
  function passTurn({ upstream, caller = NOBODY }: QueuedJob<T>): void {
    const all = upstreams.get(upstream);
    const own = all?.lines.get(caller);
    if (all === undefined || own === undefined) return;
    all.lines.delete(caller);
    all.lines.set(caller, own);
    upstreams.delete(upstream);
    upstreams.set(upstream, all);
  }

  return {
    add(queued) {
      const [all, own] = linesOf(queued);
      if (!fits(queued.chars, all, own, queued.caller !== undefined)) {
        forgetIfOver(queued);
        return false;
      }
      own.queued.push(queued);
      count(queued, [waiting, all, own], 1);
      return true;
    },
    next() {
      const queued = findNext(true) ?? findNext(false);
      if (queued === undefined) return undefined;
      const [all, own] = linesOf(queued);
      own.queued.shift();
      count(queued, [waiting, all, own], -1);
      setRunning(queued, 1);
      passTurn(queued);
      return queued;
    },
    end(queued, ms) {
      setRunning(queued, -1);
      forgetIfOver(queued);
      budget.spend(queued.upstream, ms, queued.caller);
    },
    putBack(queued) {
      setRunning(queued, -1);
      const [all, own] = linesOf(queued);
      own.queued.unshift(queued);
      count(queued, [waiting, all, own], 1);
    },
    drain() {
      const lines = [...upstreams.values()].flatMap((all) => [...all.lines.values()]);
      const left = lines.flatMap(({ queued }) => queued.splice(0));
      for (const line of [...upstreams.values(), ...lines, waiting]) Object.assign(line, noAmount());
      return left.map(({ job }) => job);
    },
  };
}

function noAmount(): Amount {
  return { jobs: 0, chars: 0 };
}

/**
 * The time that inspection may take, per upstream, per caller and in total. Work without a caller (the gateway's own
 * listings) is charged to its upstream alone.
 */
export type WorkBudget = {
  hasLeft(upstream: string, caller?: string): boolean;
  /** Records time that was spent, in milliseconds. What is left may become negative. */
  spend(upstream: string, ms: number, caller?: string): void;
};

type BudgetOptions = {
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
}: BudgetOptions = {}): WorkBudget {
  const total = createRate(all, now);
  const perUpstream = createRate(each, now);
  const perCaller = createRate(eachCaller, now);
  return {
    hasLeft: (upstream, caller) =>
      total.left() > 0 && perUpstream.left(upstream) > 0 && (caller === undefined || perCaller.left(caller) > 0),
    spend(upstream, ms, caller) {
      if (ms === 0) return;
      total.spend(ms);
      perUpstream.spend(ms, upstream);
      if (caller !== undefined) perCaller.spend(ms, caller);
    },
  };
}
