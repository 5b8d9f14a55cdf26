// The queue of the inspection threads. Upstreams take turns, and the callers of an upstream take turns in its turn, so
// that whoever sends much waits for itself. Those whose jobs took more time than their budget has come after all others.

import type { WorkBudget } from './work-budget.js';

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
  /** A job that was returned by `next` has ended after this time. */
  end(queued: QueuedJob<T>, ms: number): void;
  /** A job that was returned by `next` could not run, and is the next of its caller again. */
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

type Options = {
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
export function createFairQueue<T>({ bounds, threads, budget }: Options): FairQueue<T> {
  const maxRunning = Math.max(1, threads - 1);
  /** Both levels are in round-robin order. A line without jobs is kept only while one of its jobs runs. */
  const upstreams = new Map<string, UpstreamLine<T>>();
  const runningByCaller = new Map<string, number>();
  const waiting: Amount = { jobs: 0, chars: 0 };

  function linesOf({ upstream, caller = NOBODY }: QueuedJob<T>): [UpstreamLine<T>, CallerLine<T>] {
    const all = upstreams.get(upstream) ?? { ...nothing(), lines: new Map(), running: 0 };
    const own = all.lines.get(caller) ?? { ...nothing(), queued: [], isRunning: false };
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

  /** The next turn is that of the other upstreams, and in this upstream that of the other callers. */
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
      for (const line of [...upstreams.values(), ...lines, waiting]) Object.assign(line, nothing());
      return left.map(({ job }) => job);
    },
  };
}

function nothing(): Amount {
  return { jobs: 0, chars: 0 };
}
