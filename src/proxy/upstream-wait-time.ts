// Measures how long a request waits for the bytes of its upstream's response, so that the rest of its duration
// can be reported as the gateway's own (docs/contract.md §9, sallyport_overhead_seconds). Changes no byte and no
// order.

import type { RequestRecord } from '../policy/record.js';
import type { UpstreamResponse } from '../protocol/transport.js';

/** Wraps a response so that its waits are added to `record.latency.upstream`, in milliseconds. */
export function measureWaits(record: RequestRecord, response: UpstreamResponse): UpstreamResponse {
  return new TimedResponse(record, response);
}

/** A class, because closures made for each request would outlive it. */
class TimedResponse implements UpstreamResponse {
  readonly kind = 'response';
  readonly status: number;
  readonly headers: UpstreamResponse['headers'];
  readonly openedSession: UpstreamResponse['openedSession'];
  readonly #record: RequestRecord;
  readonly #response: UpstreamResponse;

  constructor(record: RequestRecord, response: UpstreamResponse) {
    this.status = response.status;
    this.headers = response.headers;
    this.openedSession = response.openedSession;
    this.#record = record;
    this.#response = response;
  }

  readBody(maxBytes: number, withinMs: number): ReturnType<UpstreamResponse['readBody']> {
    return this.#timed(this.#response.readBody(maxBytes, withinMs));
  }

  next(): ReturnType<UpstreamResponse['next']> {
    return this.#timed(this.#response.next());
  }

  reserveBuffer(bytes: number): ReturnType<NonNullable<UpstreamResponse['reserveBuffer']>> {
    return this.#response.reserveBuffer?.(bytes);
  }

  release(): void {
    this.#response.release();
  }

  abort(): void {
    this.#response.abort();
  }

  /** Counts only promises; a value that is available at once was not waited for. */
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
