// Reads messages as JSON. Short texts are parsed at once; large ones are scanned on the worker thread and their values
// are built on the event loop in slices, so that no message blocks the loop for long. Also the scheduler by which
// upstreams share the event loop for such work.

import { isAscii } from 'node:buffer';
import { LARGE_TEXT_CHARS } from '../../inspection/jobs.js';
import {
  buildJson,
  type JsonPart,
  type LoopScheduler,
  type ReadJson,
  type ReadOptions,
  type ReadOutcome,
} from '../../protocol/json/incremental.js';
import {
  decodeUtf8,
  type JsonReading,
  MAX_JSON_DEPTH,
  parseScanned,
  readJsonText,
} from '../../protocol/json/json.js';
import { scanJson } from '../../protocol/json/scan.js';
import type { Json } from '../../protocol/jsonrpc.js';
import { createRate } from '../../state/quota.js';
import type { InspectionWorker } from './worker.js';

/** More values than this take too long to parse at once: up to three microseconds each. */
const MAX_VALUES_AT_ONCE = 10_000;

/** Creates a reader over a worker. Without a worker thread the event loop does all the work. */
export function createJsonReading(
  worker: InspectionWorker,
  loopScheduler: LoopScheduler,
): ReadJson {
  async function readOnWorker(
    text: string,
    { upstream, caller, maxValues }: ReadOptions,
  ): Promise<ReadOutcome> {
    const end = await worker.run({ kind: 'read', input: { text, maxValues } }, upstream, caller);
    switch (end.kind) {
      case 'read': {
        const { outcome } = end;
        if (!outcome.ok) return outcome;
        const { suspectNumbers, values, parts } = outcome;
        const value = await buildInSlices(text, parts, { loopScheduler, upstream });
        return { ok: true, text, suspectNumbers, values, value };
      }
      case 'unavailable':
        return readOnLoop(text, maxValues);
      case 'full':
        return { ok: false, error: 'overloaded' };
      case 'died':
      case 'message':
      case 'request':
      case 'definitions':
        return { ok: false, error: 'internal' };
    }
  }

  return (source, readOptions) => {
    const text = decode(source);
    if (text === undefined) return { ok: false, error: 'malformed-json' };
    if (text.length > LARGE_TEXT_CHARS) return readOnWorker(text, readOptions);
    const { maxValues } = readOptions;
    if (text.length <= MAX_VALUES_AT_ONCE) return readOnLoop(text, maxValues);
    const scanned = scanJson(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
    if (scanned.error !== undefined) return { ok: false, error: scanned.error };
    if (scanned.values > MAX_VALUES_AT_ONCE) return readOnWorker(text, readOptions);
    return parseScanned(text, scanned, source);
  };
}

/** Decodes UTF-8. Decoding ASCII, which nearly all texts are, as one-byte text takes half the time. */
function decode(source: Uint8Array | string): string | undefined {
  if (typeof source === 'string') return source;
  return isAscii(source) ? Buffer.prototype.latin1Slice.call(source) : decodeUtf8(source);
}

/** Builds the value of a large text in slices. */
export async function buildInSlices(
  text: string,
  parts: JsonPart,
  { loopScheduler, upstream }: { readonly loopScheduler: LoopScheduler; readonly upstream: string },
): Promise<Json> {
  const building = buildJson(text, parts);
  for (;;) {
    await loopScheduler.waitForTurn(upstream);
    const startedMs = performance.now();
    const step = building.next();
    loopScheduler.recordTime(startedMs);
    if (step.done === true) return step.value;
  }
}

function readOnLoop(text: string, maxValues: number): JsonReading {
  return readJsonText(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
}

/** Time spent on the loop, in milliseconds, after which further work has to wait. */
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

/** What a turn counts at least: not all that is done in one is measured. */
const MIN_TURN_MS = 0.25;

type Options = {
  readonly sliceMs?: number;
  readonly streamBytesPerSecond?: number;
  /** Runs a function after the event loop has served its pending events; `setImmediate` by default. */
  readonly later?: (run: () => void) => void;
};

/**
 * Schedules long work on the event loop: immediately as long as little was done, then one piece at a time of the upstream
 * that has used the least time, with pending events served in between.
 */
export function createLoopScheduler({
  sliceMs = SLICE_MS,
  streamBytesPerSecond = STREAM_BYTES_PER_SECOND,
  later = afterPendingEvents,
}: Options = {}): LoopScheduler {
  const streamRate = createRate(
    { burst: STREAM_BURST_BYTES, perSecond: streamBytesPerSecond },
    () => performance.now(),
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
