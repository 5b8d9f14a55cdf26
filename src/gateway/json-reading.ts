// Reads messages as JSON: short ones at once; large ones are scanned and parsed on the other thread, and
// only then built here, a part at a time, so that no message holds the event loop for long.

import { LARGE_TEXT_CHARS } from '../inspect/apart.js';
import {
  decodeUtf8,
  type JsonReading,
  MAX_JSON_DEPTH,
  parseScanned,
  readJsonText,
} from '../mcp/json.js';
import { buildJson, type JsonPart } from '../mcp/json-parts.js';
import type { ReadJson, ReadOutcome, ReadTerms } from '../mcp/json-reader.js';
import { scanJson } from '../mcp/json-scan.js';
import type { LoopScheduler } from '../mcp/loop-turns.js';
import type { Json } from '../mcp/message.js';
import type { InspectionWorker } from './inspection-worker.js';

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
        const value = await buildInSlices(text, parts, { turns: loopScheduler, upstream });
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
  { turns: loopScheduler, upstream }: { readonly turns: LoopScheduler; readonly upstream: string },
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
