// How the messages of one upstream are read by whoever is no exchange: translations and the gateway's own
// listing. They share the event loop and the other thread with every exchange.

import { MAX_JSON_DEPTH, readJson, readJsonText } from '../mcp/json.js';
import type { ReadOutcome } from '../mcp/json-reader.js';

/** Reads so that nobody else is held up. */
export type MessageReader = {
  /** At once, unless the message is large. Never rejects. */
  read(source: Uint8Array | string): ReadOutcome | Promise<ReadOutcome>;
  /** Notes time that was spent on the event loop. */
  spend(ms: number): void;
  /** What must be waited for before more is done. */
  turn(): Promise<void> | undefined;
};

const CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 100_000 };

/** Reads alone, under the usual caps. */
export const DIRECT_MESSAGE_READER: MessageReader = {
  read: (source) =>
    typeof source === 'string' ? readJsonText(source, CAPS) : readJson(source, CAPS),
  spend: () => undefined,
  turn: () => undefined,
};

/** Does each step of some work in its turn. */
export async function runInTurn<T>(
  { spend, turn }: MessageReader,
  all: Iterable<T>,
  step: (one: T) => void,
): Promise<void> {
  for (const one of all) {
    const wait = turn();
    if (wait !== undefined) await wait;
    const startedMs = performance.now();
    step(one);
    spend(performance.now() - startedMs);
  }
}
