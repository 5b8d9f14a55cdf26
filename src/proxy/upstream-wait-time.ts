// Counts what an exchange spends waiting for the bytes of an upstream's answer, so that the rest of its
// duration is the gateway's own (docs/contract.md §9, sallyport_overhead_seconds). Changes no byte and no order.

import type { RequestRecord } from '../policy/record.js';
import type { UpstreamResponse } from '../protocol/transport.js';

/** The same answer, whose waits are added to `record.latency.upstream`, in milliseconds. */
export function countWaits(record: RequestRecord, response: UpstreamResponse): UpstreamResponse {
  return new CountedResponse(record, response);
}

/** A class: closures for each exchange would outlive it. */
class CountedResponse implements UpstreamResponse {
  readonly kind = 'answer';
  readonly status: number;
  readonly headers: UpstreamResponse['headers'];
  readonly #record: RequestRecord;
  readonly #response: UpstreamResponse;

  constructor(record: RequestRecord, response: UpstreamResponse) {
    this.status = response.status;
    this.headers = response.headers;
    this.#record = record;
    this.#response = response;
  }

  readBody(maxBytes: number, withinMs: number): ReturnType<UpstreamResponse['readBody']> {
    return this.#timed(this.#response.readBody(maxBytes, withinMs));
  }

  next(): ReturnType<UpstreamResponse['next']> {
    return this.#timed(this.#response.next());
  }

  hold(bytes: number): ReturnType<NonNullable<UpstreamResponse['hold']>> {
    return this.#response.hold?.(bytes);
  }

  release(): void {
    this.#response.release();
  }

  abort(): void {
    this.#response.abort();
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
