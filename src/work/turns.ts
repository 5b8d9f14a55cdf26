// Shares the event loop among upstreams: messages and events, each of them small, are handled in turns. What is large in
// itself goes to a worker thread.

import type { LoopScheduler } from '../protocol/json/incremental.js';
import { createRate } from '../state/bounds.js';

/** How long work may use the event loop before further work has to wait. Milliseconds. */
const SLICE_MS = 10;
/** The fraction of elapsed time that such work may use without waiting. */
const UNTHROTTLED_FRACTION = 0.5;

/**
 * The bytes that all long-lived streams of one upstream may bring in a second, and its burst. Ordinary servers
 * send a small fraction of that; at this rate the costliest events take about a tenth of the event loop's time.
 */
const STREAM_BYTES_PER_SECOND = 4 * 1024 * 1024;
const STREAM_BURST_BYTES = 1024 * 1024;
/** Interval at which a stream that waits for its upstream's rate checks whether it was closed. */
const CLOSED_CHECK_MS = 500;

/** The least time that a turn is charged, because not all of its work is measured. */
const MIN_TURN_MS = 0.25;

type SchedulerOptions = {
  readonly sliceMs?: number;
  readonly streamBytesPerSecond?: number;
  /** Runs a function after the event loop has served its pending events; `setImmediate` by default. */
  readonly later?: (run: () => void) => void;
};

/**
 * Schedules long work on the event loop: immediately while little time was used, then one piece at a time, always of the
 * upstream that has used the least time, with pending events served in between.
 */
export function createLoopScheduler({
  sliceMs = SLICE_MS,
  streamBytesPerSecond = STREAM_BYTES_PER_SECOND,
  later = afterPendingEvents,
}: SchedulerOptions = {}): LoopScheduler {
  const streamRate = createRate({ burst: STREAM_BURST_BYTES, perSecond: streamBytesPerSecond }, () =>
    performance.now(),
  );
  /** No entry is empty. */
  const waiting = new Map<string, (() => void)[]>();
  /** The time that each upstream has used: one that waits again starts no lower than the one whose turn was last. */
  const usedBy = new Map<string, number>();
  let lowestMs = 0;
  /** Whose turn it is, and the time that was used in it. */
  let holder: string | undefined;
  let turnMs = 0;
  let usedMs = 0;
  let spentAtMs = 0;
  let isDue = false;

  const usedOf = (upstream: string): number => usedBy.get(upstream) ?? 0;

  function endTurn(): void {
    if (holder === undefined) return;
    usedBy.set(holder, usedOf(holder) + Math.max(turnMs, MIN_TURN_MS));
    holder = undefined;
  }

  /** Gives the turn to the upstream that has used least: whoever does much in one turn waits longer for the next. */
  function beginTurn(): (() => void) | undefined {
    endTurn();
    for (const upstream of waiting.keys())
      if (holder === undefined || usedOf(upstream) < usedOf(holder)) holder = upstream;
    if (holder === undefined) return undefined;
    lowestMs = Math.max(lowestMs, usedOf(holder));
    turnMs = 0;
    const line = waiting.get(holder);
    const next = line?.shift();
    if (line?.length === 0) waiting.delete(holder);
    return next;
  }

  function scheduleNext(): void {
    if (isDue) return;
    isDue = true;
    later(() => {
      isDue = false;
      usedMs = 0;
      const next = beginTurn();
      if (waiting.size > 0) scheduleNext();
      next?.();
    });
  }

  return {
    pace(upstream, bytes, isClosed) {
      const waitMs = (-streamRate.left(upstream) / streamBytesPerSecond) * 1000;
      streamRate.spend(bytes, upstream);
      return waitMs > 0 ? waitUnlessClosed(waitMs, isClosed) : undefined;
    },
    recordTime(sinceMs) {
      const nowMs = performance.now();
      // Earlier work no longer counts.
      usedMs = Math.max(0, usedMs - (nowMs - spentAtMs) * UNTHROTTLED_FRACTION) + nowMs - sinceMs;
      spentAtMs = nowMs;
      turnMs += nowMs - sinceMs;
      return nowMs;
    },
    waitForTurn(upstream) {
      // If others are waiting, the slice belongs to the first of them.
      if (usedMs < sliceMs && waiting.size === 0) {
        endTurn();
        return undefined;
      }
      return new Promise((resolve) => {
        const line = waiting.get(upstream);
        if (line === undefined) {
          waiting.set(upstream, [resolve]);
          usedBy.set(upstream, Math.max(usedOf(upstream), lowestMs));
        } else line.push(resolve);
        scheduleNext();
      });
    },
  };
}

async function waitUnlessClosed(waitMs: number, isClosed: () => boolean): Promise<void> {
  for (let leftMs = waitMs; leftMs > 0 && !isClosed(); leftMs -= CLOSED_CHECK_MS)
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(leftMs, CLOSED_CHECK_MS)).unref();
    });
}

function afterPendingEvents(run: () => void): void {
  setImmediate(run);
}
