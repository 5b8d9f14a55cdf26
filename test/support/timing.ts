// How long tests wait, and turns on the event loop.

import type { LoopScheduler } from '../../src/protocol/json/incremental.js';

// How long a test waits for what must come: far longer than it takes, since a busy machine proves nothing.

/** For `expect.poll`. */
export const PATIENT = { timeout: 20_000 } as const;
/** For what takes two seconds at most on a quiet machine. */
export const SOON = { timeout: 10_000, interval: 10 } as const;

// Turns on the event loop for tests: such as nobody ever waits for, and such as are given by the test.

export const FREE_TURNS: LoopScheduler = {
  recordTime: (sinceMs) => sinceMs,
  waitForTurn: () => undefined,
  pace: () => undefined,
};

/** Everybody waits before each step, and goes on in the next turn of the loop; `taken` says who waited. */
export function eachInTurn(): LoopScheduler & { readonly taken: string[] } {
  const taken: string[] = [];
  return {
    taken,
    recordTime: (sinceMs) => sinceMs,
    pace: () => undefined,
    waitForTurn(upstream) {
      taken.push(upstream);
      return new Promise((resolve) => {
        setImmediate(resolve);
      });
    },
  };
}
