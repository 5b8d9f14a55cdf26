// Counts what an exchange spends waiting for the bytes of an upstream's answer, so that the rest of its
// duration is the gateway's own (contract §9, sallyport_overhead_seconds). Changes no byte and no order.

import type { UpstreamAnswer } from '../mcp/transport.js';
import type { ExchangeRecord } from '../policy/record.js';

/** The same answer, whose waits are added to `record.latency.upstream`, in milliseconds. */
export function countWaits(record: ExchangeRecord, answer: UpstreamAnswer): UpstreamAnswer {
  return new CountedAnswer(record, answer);
}

/** A class: closures for each exchange would outlive it. */
class CountedAnswer implements UpstreamAnswer {
  readonly kind = 'answer';
  readonly status: number;
  readonly headers: UpstreamAnswer['headers'];
  readonly #record: ExchangeRecord;
  readonly #answer: UpstreamAnswer;

  constructor(record: ExchangeRecord, answer: UpstreamAnswer) {
    this.status = answer.status;
    this.headers = answer.headers;
    this.#record = record;
    this.#answer = answer;
  }

  whole(maxBytes: number, withinMs: number): ReturnType<UpstreamAnswer['whole']> {
    return this.#timed(this.#answer.whole(maxBytes, withinMs));
  }

  next(): ReturnType<UpstreamAnswer['next']> {
    return this.#timed(this.#answer.next());
  }

  hold(bytes: number): ReturnType<NonNullable<UpstreamAnswer['hold']>> {
    return this.#answer.hold?.(bytes);
  }

  release(): void {
    this.#answer.release();
  }

  abort(): void {
    this.#answer.abort();
  }

  /** What is there at once was not waited for. */
  #timed<T>(outcome: T | Promise<T>): T | Promise<T> {
    if (!(outcome instanceof Promise)) return outcome;
    const { latency } = this.#record;
    const startedMs = performance.now();
    const count = (): void => {
      latency.upstream += performance.now() - startedMs;
    };
    return outcome.then(
      (value) => {
        count();
        return value;
      },
      (error: unknown) => {
        count();
        throw error;
      },
    );
  }
}
