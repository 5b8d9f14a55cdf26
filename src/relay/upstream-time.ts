// Counts what an exchange spends waiting for the bytes of an upstream's answer, so that the rest of its
// duration is the gateway's own (contract §9, sallyport_overhead_seconds). Changes no byte and no order.

import { amendAnswer } from '../mcp/amended-answer.js';
import type { UpstreamAnswer } from '../mcp/transport.js';
import type { ExchangeRecord } from '../policy/record.js';

/** The same answer, whose waits are added to `record.latency.upstream`, in milliseconds. */
export function countWaits(record: ExchangeRecord, answer: UpstreamAnswer): UpstreamAnswer {
  return amendAnswer(answer, {
    whole: (maxBytes, withinMs) => timed(record, answer.whole(maxBytes, withinMs)),
    next: () => timed(record, answer.next()),
  });
}

/** What is there at once was not waited for. */
function timed<T>(record: ExchangeRecord, outcome: T | Promise<T>): T | Promise<T> {
  return outcome instanceof Promise ? waitFor(record, outcome) : outcome;
}

async function waitFor<T>({ latency }: ExchangeRecord, wait: Promise<T>): Promise<T> {
  const startedMs = performance.now();
  try {
    return await wait;
  } finally {
    latency.upstream += performance.now() - startedMs;
  }
}
