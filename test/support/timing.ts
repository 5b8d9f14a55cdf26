// How long tests wait, and turns on the event loop.

import { vi } from 'vitest';
import type { LoopScheduler } from '../../src/protocol/json/incremental.js';

// How long a test waits for what must come: far longer than it takes, since a busy machine proves nothing.

/** For `expect.poll`. */
export const PATIENT = { timeout: 20_000 } as const;

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

/**
 * Runs work that reads a clock by which each of its steps takes longer than a slice of the event loop may last, on a slow
 * machine and on a fast one. `turns` says how often the loop has served others since.
 */
export async function withSlowClock<Result>(work: (turns: () => number) => Promise<Result>): Promise<Result> {
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    nowMs += 1_000;
    return nowMs;
  });
  let count = 0;
  let next = setImmediate(function turn() {
    count += 1;
    next = setImmediate(turn);
  });
  try {
    return await work(() => count);
  } finally {
    clearImmediate(next);
    clock.mockRestore();
  }
}
