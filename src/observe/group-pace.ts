// Decides when the next group of audit lines begins: as soon as all that is ready has been asked for, or,
// where many wait for each write, a moment later, so that a busy gateway writes few large groups instead
// of many small ones, each of which costs a call of the system. Holds nobody longer than that moment.

/** Where many wait for one write, the next begins no sooner than this after it. */
export const GROUP_EVERY_MS = 4;
/** So many waiters of one group make a gateway busy. */
export const MANY_WAITERS = 4;

export type GroupPace = {
  /** One more waits for the next group. */
  join(): void;
  /** Resolves when the next group may begin; undefined where it may at once. */
  untilDue(): Promise<void> | undefined;
  /** A group begins: whoever joins from now on waits for the next. */
  begin(): void;
};

/** The pace of one sink. `monotonicMs` is a clock that never jumps. */
export function createGroupPace(monotonicMs: () => number): GroupPace {
  let waiters = 0;
  let isBusy = false;
  let begunMs = Number.NEGATIVE_INFINITY;
  return {
    join() {
      waiters += 1;
    },
    untilDue() {
      const pauseMs = begunMs + GROUP_EVERY_MS - monotonicMs();
      if (!isBusy || pauseMs <= 0) return undefined;
      return new Promise((resolve) => {
        setTimeout(resolve, pauseMs);
      });
    },
    begin() {
      isBusy = waiters >= MANY_WAITERS;
      waiters = 0;
      begunMs = monotonicMs();
    },
  };
}
