// Counts the requests that run at each upstream, in total and by caller, so that no caller takes all of an upstream's
// concurrency slots from the others. docs/contract.md §3 (`limits.concurrency`, `limits.concurrencyPerCaller`).

import type { ConcurrencyLimit, EdgeRoute } from './routes.js';

/** The concurrency slots that one request holds: at most one of each upstream it involves, all released together. */
type ConcurrencySlots = {
  /** Acquires a slot of the path's own upstream or of a backend; false if none is free for this caller. */
  acquire(caller: string, backend?: string): boolean;
  release(): void;
};

/** The requests that run at one upstream. No caller's count is zero. */
type Running = { total: number; readonly byCaller: Map<string, number> };

/** Counts running requests by upstream, whatever path they came on, and by caller within each upstream. */
export function createConcurrencyLimits(): { forOne(route: EdgeRoute): ConcurrencySlots } {
  const runningAt = new Map<string, Running>();

  function runningOf(upstream: string): Running {
    const known = runningAt.get(upstream);
    if (known !== undefined) return known;
    const running = { total: 0, byCaller: new Map<string, number>() };
    runningAt.set(upstream, running);
    return running;
  }

  return {
    forOne(route) {
      const held: { readonly running: Running; readonly caller: string }[] = [];
      return {
        acquire(caller, upstream = route.upstream) {
          const running = runningOf(upstream);
          for (const one of held) if (one.running === running) return true;
          if (!take(running, caller, route.backends?.get(upstream) ?? route)) return false;
          held.push({ running, caller });
          return true;
        },
        release() {
          for (const { running, caller } of held) giveBack(running, caller);
          held.length = 0;
        },
      };
    },
  };
}

function take(running: Running, caller: string, limit: ConcurrencyLimit): boolean {
  const own = running.byCaller.get(caller) ?? 0;
  if (running.total >= limit.concurrency || own >= limit.concurrencyPerCaller) return false;
  running.total += 1;
  running.byCaller.set(caller, own + 1);
  return true;
}

function giveBack(running: Running, caller: string): void {
  const own = (running.byCaller.get(caller) ?? 1) - 1;
  running.total -= 1;
  if (own === 0) running.byCaller.delete(caller);
  else running.byCaller.set(caller, own);
}
