// Bounds the bytes of responses that are buffered until they are complete: one total for all upstreams, of
// which each upstream may use a fraction. A response that exceeds the quota waits, and is refused after a
// time limit. A waiting response that already holds bytes cannot block others forever: the oldest may exceed
// the bound, up to the cap of one response. Because reading, joining and decoding long responses blocks the
// event loop, each upstream also has a byte rate.

import { createRate } from '../state/quota.js';

/** The outcome of waiting for quota. */
export type ReservationOutcome = 'held' | 'overloaded';

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
  readonly unpacedBytes?: number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
};

const MAX_BYTES = 128 * 1024 * 1024;
const QUOTA_DIVISOR = 4;
const MAX_WAIT_MS = 5_000;
/** Two responses of the default cap, which take the event loop 30 to 60 ms each. */
const BYTES_PER_SECOND = 16 * 1024 * 1024;
const BURST_BYTES = 1024 * 1024;
const UNPACED_BYTES = 256 * 1024;
/** Interval at which reservations that wait for their upstream's rate are retried. Milliseconds. */
const PACE_MS = 20;

type Holder = {
  readonly upstream: string;
  bytes: number;
  waiting:
    | { readonly wanted: number; readonly resolve: (outcome: ReservationOutcome) => void }
    | undefined;
};

/** Creates a quota of which nothing is used. */
export function createResponseBufferQuota({
  maxBytes = MAX_BYTES,
  quotaDivisor = QUOTA_DIVISOR,
  maxWaitMs = MAX_WAIT_MS,
  bytesPerSecond = BYTES_PER_SECOND,
  burstBytes = BURST_BYTES,
  unpacedBytes = UNPACED_BYTES,
  now = () => performance.now(),
}: BufferQuotaBounds = {}): ResponseBufferQuota {
  const maxOwnBytes = maxBytes / quotaDivisor;
  const rate = createRate({ burst: burstBytes, perSecond: bytesPerSecond }, now);
  let isPacing = false;
  /** Reservations that hold bytes, oldest first. */
  const holders = new Set<Holder>();
  /** Waiting reservations by upstream, in the order in which the upstreams are served. */
  const queues = new Map<string, Set<Holder>>();
  const heldBy = new Map<string, number>();
  let heldBytes = 0;

  function oldestOf(upstream: string): Holder | undefined {
    for (const holder of holders) if (holder.upstream === upstream) return holder;
    return undefined;
  }

  const pacedBytes = (bytes: number): number => Math.max(0, bytes - unpacedBytes);

  function fits(holder: Holder, wanted: number): boolean {
    const { upstream } = holder;
    if (pacedBytes(wanted) > 0 && rate.left(upstream) <= 0) return false;
    const more = wanted - holder.bytes;
    const own = heldBy.get(upstream) ?? 0;
    const [oldest] = holders;
    if (heldBytes + more > maxBytes && oldest !== undefined && oldest !== holder) return false;
    return own + more <= maxOwnBytes || own === 0 || oldestOf(upstream) === holder;
  }

  function set(holder: Holder, bytes: number): void {
    const { upstream } = holder;
    const own = (heldBy.get(upstream) ?? 0) + bytes - holder.bytes;
    if (own > 0) heldBy.set(upstream, own);
    else heldBy.delete(upstream);
    heldBytes += bytes - holder.bytes;
    const paced = pacedBytes(bytes) - pacedBytes(holder.bytes);
    if (paced > 0) rate.spend(paced, upstream);
    holder.bytes = bytes;
    if (bytes > 0) holders.add(holder);
    else holders.delete(holder);
  }

  /** Serves upstreams round-robin and, within one, the first that fits. */
  function serve(): void {
    for (let next = nextThatFits(); next !== undefined; next = nextThatFits()) {
      const { upstream, waiting } = next;
      const line = queues.get(upstream);
      set(next, waiting?.wanted ?? 0);
      leave(next);
      waiting?.resolve('held');
      // This upstream is served last from now on.
      if (queues.delete(upstream) && line !== undefined) queues.set(upstream, line);
    }
  }

  function nextThatFits(): Holder | undefined {
    for (const line of queues.values())
      for (const holder of line)
        if (holder.waiting !== undefined && fits(holder, holder.waiting.wanted)) return holder;
    return undefined;
  }

  /** Only time restores an upstream's rate, so waiting reservations are retried at intervals. */
  function pace(): void {
    if (isPacing) return;
    isPacing = true;
    setTimeout(() => {
      isPacing = false;
      serve();
      if (queues.size > 0) pace();
    }, PACE_MS);
  }

  function leave(holder: Holder): void {
    holder.waiting = undefined;
    const line = queues.get(holder.upstream);
    line?.delete(holder);
    if (line?.size === 0) queues.delete(holder.upstream);
  }

  function wait(holder: Holder, wanted: number): Promise<ReservationOutcome> {
    return new Promise((resolve) => {
      const late = setTimeout(() => {
        leave(holder);
        resolve('overloaded');
      }, maxWaitMs);
      holder.waiting = {
        wanted,
        resolve(outcome) {
          clearTimeout(late);
          resolve(outcome);
        },
      };
      const line = queues.get(holder.upstream);
      if (line === undefined) queues.set(holder.upstream, new Set([holder]));
      else line.add(holder);
      pace();
    });
  }

  return {
    openReservation(upstream) {
      const holder: Holder = { upstream, bytes: 0, waiting: undefined };
      return {
        reserve(bytes) {
          const isMore = bytes > holder.bytes;
          if (isMore && !fits(holder, bytes)) return wait(holder, bytes);
          set(holder, bytes);
          if (!isMore && queues.size > 0) serve();
          return undefined;
        },
        release() {
          const { waiting } = holder;
          leave(holder);
          set(holder, 0);
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
