// Who may go on with long work on the event loop: everybody at once as long as little was done, then one
// upstream after the other, each for a short while, with everything else that waits on the loop in between.

import type { LoopScheduler } from '../mcp/loop-turns.js';

/** Work on the loop after which whoever has more of it waits for a turn. */
const SLICE_MS = 10;
/** The part of all time that such work may take without anybody waiting. */
const FREE_PART = 0.5;

type Options = {
  readonly sliceMs?: number;
  /** Runs something once the loop has served what waits; `setImmediate` where absent. */
  readonly later?: (run: () => void) => void;
};

/** The turns of one event loop. */
export function createLoopScheduler({
  sliceMs = SLICE_MS,
  later = soon,
}: Options = {}): LoopScheduler {
  /** In the order of their turns; none is empty. */
  const waiting = new Map<string, (() => void)[]>();
  let usedMs = 0;
  let spentAtMs = 0;
  let isDue = false;

  function begin(): void {
    if (isDue) return;
    isDue = true;
    later(() => {
      isDue = false;
      usedMs = 0;
      const [first] = waiting;
      if (first === undefined) return;
      const [upstream, line] = first;
      waiting.delete(upstream);
      const [next, ...others] = line;
      if (others.length > 0) waiting.set(upstream, others);
      if (waiting.size > 0) begin();
      next?.();
    });
  }

  return {
    spend(sinceMs) {
      const nowMs = performance.now();
      // What was done a while ago holds nobody up any more.
      usedMs = Math.max(0, usedMs - (nowMs - spentAtMs) * FREE_PART) + nowMs - sinceMs;
      spentAtMs = nowMs;
      return nowMs;
    },
    take(upstream) {
      // Nobody overtakes: where others wait, the slice is theirs.
      if (usedMs < sliceMs && waiting.size === 0) return undefined;
      return new Promise((resolve) => {
        const line = waiting.get(upstream);
        if (line === undefined) waiting.set(upstream, [resolve]);
        else line.push(resolve);
        begin();
      });
    },
  };
}

function soon(run: () => void): void {
  setImmediate(run);
}
