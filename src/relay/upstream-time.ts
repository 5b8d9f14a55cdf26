// Counts what an exchange spends waiting for the bytes of an upstream's answer, so that the rest of its
// duration is the gateway's own (contract §9, sallyport_overhead_seconds). Changes no byte and no order.

import type { UpstreamAnswer } from '../mcp/transport.js';
import type { ExchangeRecord } from '../policy/record.js';

/** The same answer, whose waits are added to `record.latency.upstream`, in milliseconds. */
export function countWaits(record: ExchangeRecord, answer: UpstreamAnswer): UpstreamAnswer {
  async function timed<T>(wait: Promise<T>): Promise<T> {
    const startedMs = performance.now();
    try {
      return await wait;
    } finally {
      record.latency.upstream += performance.now() - startedMs;
    }
  }
  return {
    ...answer,
    whole: (maxBytes, withinMs) => timed(answer.whole(maxBytes, withinMs)),
    next: () => timed(answer.next()),
  };
}
