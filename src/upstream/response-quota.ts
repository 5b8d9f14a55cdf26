// Bounds the bytes of responses that are buffered until they are complete: one total for all upstreams, of
// which each upstream may use a fraction. A response that exceeds the quota waits, and is refused after a
// time limit. A waiting response that already holds bytes cannot block others forever: the oldest may exceed
// the bound, up to the cap of one response. Because reading, joining and decoding long responses blocks the
// event loop, each upstream also has a byte rate.

import { createRate } from '../state/quota.js';

/** The outcome of waiting for quota. */
export type ReservationOutcome = 'reserved' | 'overloaded';

/** The reservation of one response, or of one event that is being assembled. */
export type BufferReservation = {
  /** Sets the bytes held in total, more or fewer than before; waits if an increase exceeds the quota. */
  reserve(bytes: number): undefined | Promise<ReservationOutcome>;
  /** Releases everything, and ends a wait with `overloaded`. */
  release(): void;
};

export type ResponseBufferQuota = {
  openReservation(upstream: string): BufferReservation;
  /** Bytes held at present. */
  readonly heldBytes: number;
};

export type BufferQuotaBounds = {
  readonly maxBytes?: number;
  /** One upstream may hold the total divided by this. */
  readonly quotaDivisor?: number;
  readonly maxWaitMs?: number;
  /** The rate of one upstream, and its burst. */
  readonly bytesPerSecond?: number;
  readonly burstBytes?: number;
  /** Bytes of each response that do not count against the rate. */
  readonly unmeteredBytes?: number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
};

const MAX_BYTES = 128 * 1024 * 1024;
const QUOTA_DIVISOR = 4;
const MAX_WAIT_MS = 5_000;
/** Two responses of the default cap, which take the event loop 30 to 60 ms each. */
const BYTES_PER_SECOND = 16 * 1024 * 1024;
const BURST_BYTES = 1024 * 1024;
const UNMETERED_BYTES = 256 * 1024;
/** Interval at which reservations that wait for their upstream's rate are retried. Milliseconds. */
const RETRY_INTERVAL_MS = 20;

type Reservation = {
  readonly upstream: string;
  bytes: number;
  waiting:
    | { readonly requestedBytes: number; readonly resolve: (outcome: ReservationOutcome) => void }
    | undefined;
};

/** Creates a quota of which nothing is used. */
export function createResponseBufferQuota({
  maxBytes = MAX_BYTES,
  quotaDivisor = QUOTA_DIVISOR,
  maxWaitMs = MAX_WAIT_MS,
  bytesPerSecond = BYTES_PER_SECOND,
  burstBytes = BURST_BYTES,
  unmeteredBytes = UNMETERED_BYTES,
  now = () => performance.now(),
}: BufferQuotaBounds = {}): ResponseBufferQuota {
  const maxOwnBytes = maxBytes / quotaDivisor;
  const rate = createRate({ burst: burstBytes, perSecond: bytesPerSecond }, now);
  let isRetryScheduled = false;
  /** Reservations that hold bytes, oldest first. */
  const holders = new Set<Reservation>();
  /** Waiting reservations by upstream, in the order in which the upstreams are served. */
  const queues = new Map<string, Set<Reservation>>();
  const heldBy = new Map<string, number>();
  let heldBytes = 0;

  function oldestOf(upstream: string): Reservation | undefined {
    for (const reservation of holders) if (reservation.upstream === upstream) return reservation;
    return undefined;
  }

  const pacedBytes = (bytes: number): number => Math.max(0, bytes - unmeteredBytes);

  function fits(reservation: Reservation, requestedBytes: number): boolean {
    const { upstream } = reservation;
    if (pacedBytes(requestedBytes) > 0 && rate.left(upstream) <= 0) return false;
    const more = requestedBytes - reservation.bytes;
    const upstreamBytes = heldBy.get(upstream) ?? 0;
    const [oldest] = holders;
    if (heldBytes + more > maxBytes && oldest !== undefined && oldest !== reservation) return false;
    return (
      upstreamBytes + more <= maxOwnBytes ||
      upstreamBytes === 0 ||
      oldestOf(upstream) === reservation
    );
  }

  function set(reservation: Reservation, bytes: number): void {
    const { upstream } = reservation;
    const upstreamBytes = (heldBy.get(upstream) ?? 0) + bytes - reservation.bytes;
    if (upstreamBytes > 0) heldBy.set(upstream, upstreamBytes);
    else heldBy.delete(upstream);
    heldBytes += bytes - reservation.bytes;
    const paced = pacedBytes(bytes) - pacedBytes(reservation.bytes);
    if (paced > 0) rate.spend(paced, upstream);
    reservation.bytes = bytes;
    if (bytes > 0) holders.add(reservation);
    else holders.delete(reservation);
  }

  /** Serves upstreams round-robin and, within one, the first that fits. */
  function serve(): void {
    for (let next = nextThatFits(); next !== undefined; next = nextThatFits()) {
      const { upstream, waiting } = next;
      const queue = queues.get(upstream);
      set(next, waiting?.requestedBytes ?? 0);
      dequeue(next);
      waiting?.resolve('reserved');
      // This upstream is served last from now on.
      if (queues.delete(upstream) && queue !== undefined) queues.set(upstream, queue);
    }
  }

  function nextThatFits(): Reservation | undefined {
    for (const queue of queues.values())
      for (const reservation of queue)
        if (
          reservation.waiting !== undefined &&
          fits(reservation, reservation.waiting.requestedBytes)
        )
          return reservation;
    return undefined;
  }

  /** Only time restores an upstream's rate, so waiting reservations are retried at intervals. */
  function scheduleRetry(): void {
    if (isRetryScheduled) return;
    isRetryScheduled = true;
    setTimeout(() => {
      isRetryScheduled = false;
      serve();
      if (queues.size > 0) scheduleRetry();
    }, RETRY_INTERVAL_MS);
  }

  function dequeue(reservation: Reservation): void {
    reservation.waiting = undefined;
    const queue = queues.get(reservation.upstream);
    queue?.delete(reservation);
    if (queue?.size === 0) queues.delete(reservation.upstream);
  }

  function wait(reservation: Reservation, requestedBytes: number): Promise<ReservationOutcome> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        dequeue(reservation);
        resolve('overloaded');
      }, maxWaitMs);
      reservation.waiting = {
        requestedBytes,
        resolve(outcome) {
          clearTimeout(timer);
          resolve(outcome);
        },
      };
      const queue = queues.get(reservation.upstream);
      if (queue === undefined) queues.set(reservation.upstream, new Set([reservation]));
      else queue.add(reservation);
      scheduleRetry();
    });
  }

  return {
    openReservation(upstream) {
      const reservation: Reservation = { upstream, bytes: 0, waiting: undefined };
      return {
        reserve(bytes) {
          const isMore = bytes > reservation.bytes;
          if (isMore && !fits(reservation, bytes)) return wait(reservation, bytes);
          set(reservation, bytes);
          if (!isMore && queues.size > 0) serve();
          return undefined;
        },
        release() {
          const { waiting } = reservation;
          dequeue(reservation);
          set(reservation, 0);
          waiting?.resolve('overloaded');
          if (queues.size > 0) serve();
        },
      };
    },
    get heldBytes() {
      return heldBytes;
    },
  };
}
