// Turns on the event loop for tests: such as nobody ever waits for, and such as are given by the test.

import type { LoopScheduler } from '../../src/protocol/json/incremental.js';

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
