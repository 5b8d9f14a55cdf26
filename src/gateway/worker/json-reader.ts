// Reads messages as JSON: short ones at once; large ones are scanned and parsed on the other thread, and
// only then built here, a part at a time, so that no message holds the event loop for long.

import { LARGE_TEXT_CHARS } from '../../inspection/jobs.js';
import {
  buildJson,
  type JsonPart,
  type LoopScheduler,
  type ReadJson,
  type ReadOutcome,
  type ReadTerms,
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
import type { InspectionWorker } from './worker.js';

/** More values than this take too long to parse at once: up to three microseconds each. */
const MAX_VALUES_AT_ONCE = 10_000;

/** Reading with the help of a worker. Where there is no other thread, the loop does all of it. */
export function createJsonReading(
  worker: InspectionWorker,
  loopScheduler: LoopScheduler,
): ReadJson {
  async function readApart(text: string, { upstream, maxValues }: ReadTerms): Promise<ReadOutcome> {
    const end = await worker.run({ kind: 'read', input: { text, maxValues } }, upstream);
    switch (end.kind) {
      case 'read': {
        const { outcome } = end;
        if (!outcome.ok) return outcome;
        const { suspectNumbers, values, parts } = outcome;
        const value = await buildInSlices(text, parts, { loopScheduler, upstream });
        return { ok: true, text, suspectNumbers, values, value };
      }
      case 'unavailable':
        return readAtOnce(text, maxValues);
      case 'full':
        return { ok: false, error: 'overloaded' };
      case 'died':
      case 'message':
      case 'request':
        return { ok: false, error: 'internal' };
    }
  }

  return (source, terms) => {
    const text = typeof source === 'string' ? source : decodeUtf8(source);
    if (text === undefined) return { ok: false, error: 'malformed-json' };
    if (text.length > LARGE_TEXT_CHARS) return readApart(text, terms);
    const { maxValues } = terms;
    if (text.length <= MAX_VALUES_AT_ONCE) return readAtOnce(text, maxValues);
    const scanned = scanJson(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
    if (scanned.error !== undefined) return { ok: false, error: scanned.error };
    if (scanned.values > MAX_VALUES_AT_ONCE) return readApart(text, terms);
    return parseScanned(text, scanned);
  };
}

/** The value of large text, a part at a time. */
export async function buildInSlices(
  text: string,
  parts: JsonPart,
  { loopScheduler, upstream }: { readonly loopScheduler: LoopScheduler; readonly upstream: string },
): Promise<Json> {
  const building = buildJson(text, parts);
  for (;;) {
    await loopScheduler.take(upstream);
    const startedMs = performance.now();
    const step = building.next();
    loopScheduler.spend(startedMs);
    if (step.done === true) return step.value;
  }
}

function readAtOnce(text: string, maxValues: number): JsonReading {
  return readJsonText(text, { maxDepth: MAX_JSON_DEPTH, maxValues });
}

// Who may go on with long work on the event loop: everybody at once as long as little was done, then one
// upstream after the other, each for a short while, with everything else that waits on the loop in between.

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
