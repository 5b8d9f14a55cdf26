// The room for answers that are kept until they are whole: one number of bytes for all upstreams, of which
// each may take its part. What finds no room waits, and is given up after a while. Who waits with something
// in hand can block nobody for good: the oldest goes on beyond the bound, up to the cap of one answer.
// Reading, joining and decoding long answers holds the event loop, so each upstream also has a rate of bytes.

/** What became of somebody who waited for room. */
export type ReservationOutcome = 'held' | 'overloaded';

/** The room of one answer, or of one event that is being put together. */
export type BufferReservation = {
  /** Holds so many bytes in all from now on, more or less than before; waits where there is no room for more. */
  hold(bytes: number): undefined | Promise<ReservationOutcome>;
  /** Gives all of it back. Holds nothing any more, and waits for nothing. */
  release(): void;
};

export type ResponseBufferQuota = {
  enter(upstream: string): BufferReservation;
  /** Bytes that are held now. */
  readonly heldBytes: number;
};

export type BufferQuotaBounds = {
  readonly maxBytes?: number;
  /** One upstream may hold this part of all. */
  readonly quotaDivisor?: number;
  readonly maxWaitMs?: number;
  /** What one upstream may ask for per second, and at once. */
  readonly bytesPerSecond?: number;
  readonly burstBytes?: number;
  /** What each answer may hold outside that rate. */
  readonly unpacedBytes?: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
};

const MAX_BYTES = 128 * 1024 * 1024;
const QUOTA_DIVISOR = 4;
const MAX_WAIT_MS = 5_000;
/** Eight answers of the default cap: about a fifth of the event loop's time. */
const BYTES_PER_SECOND = 64 * 1024 * 1024;
const BURST_BYTES = 8 * 1024 * 1024;
const UNPACED_BYTES = 256 * 1024;
/** How often those who wait for their upstream's rate are served. */
const PACE_MS = 20;

type Allowance = { bytes: number; atMs: number };

type Holder = {
  readonly upstream: string;
  bytes: number;
  waiting:
    | { readonly wanted: number; readonly resolve: (outcome: ReservationOutcome) => void }
    | undefined;
};

/** Room of which nothing is held. */
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
  const allowances = new Map<string, Allowance>();
  let isPacing = false;
  /** Who holds something, oldest first. */
  const holders = new Set<Holder>();
  /** Who waits, in the order of their upstreams' turns. */
  const lines = new Map<string, Set<Holder>>();
  const heldBy = new Map<string, number>();
  let heldBytes = 0;

  function oldestOf(upstream: string): Holder | undefined {
    for (const holder of holders) if (holder.upstream === upstream) return holder;
    return undefined;
  }

  /** What an upstream may still ask for now. One long answer may leave less than nothing. */
  function allowanceOf(upstream: string): Allowance {
    const atMs = now();
    const left = allowances.get(upstream) ?? { bytes: burstBytes, atMs };
    left.bytes = Math.min(burstBytes, left.bytes + ((atMs - left.atMs) * bytesPerSecond) / 1000);
    left.atMs = atMs;
    allowances.set(upstream, left);
    return left;
  }

  const pacedBytes = (bytes: number): number => Math.max(0, bytes - unpacedBytes);

  function fits(holder: Holder, wanted: number): boolean {
    const { upstream } = holder;
    if (pacedBytes(wanted) > 0 && allowanceOf(upstream).bytes <= 0) return false;
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
    if (paced > 0) allowanceOf(upstream).bytes -= paced;
    holder.bytes = bytes;
    if (bytes > 0) holders.add(holder);
    else holders.delete(holder);
  }

  /** Upstreams take turns; within one, whoever came first and fits. */
  function serve(): void {
    for (let next = nextThatFits(); next !== undefined; next = nextThatFits()) {
      const { upstream, waiting } = next;
      const line = lines.get(upstream);
      set(next, waiting?.wanted ?? 0);
      leave(next);
      waiting?.resolve('held');
      // Its upstream comes last from now on.
      if (lines.delete(upstream) && line !== undefined) lines.set(upstream, line);
    }
  }

  function nextThatFits(): Holder | undefined {
    for (const line of lines.values())
      for (const holder of line)
        if (holder.waiting !== undefined && fits(holder, holder.waiting.wanted)) return holder;
    return undefined;
  }

  /** Time alone gives an upstream its rate back, so those who wait are looked at again and again. */
  function pace(): void {
    if (isPacing) return;
    isPacing = true;
    setTimeout(() => {
      isPacing = false;
      serve();
      if (lines.size > 0) pace();
    }, PACE_MS);
  }

  function leave(holder: Holder): void {
    holder.waiting = undefined;
    const line = lines.get(holder.upstream);
    line?.delete(holder);
    if (line?.size === 0) lines.delete(holder.upstream);
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
      const line = lines.get(holder.upstream);
      if (line === undefined) lines.set(holder.upstream, new Set([holder]));
      else line.add(holder);
      pace();
    });
  }

  return {
    enter(upstream) {
      const holder: Holder = { upstream, bytes: 0, waiting: undefined };
      return {
        hold(bytes) {
          const isMore = bytes > holder.bytes;
          if (isMore && !fits(holder, bytes)) return wait(holder, bytes);
          set(holder, bytes);
          if (!isMore && lines.size > 0) serve();
          return undefined;
        },
        release() {
          const { waiting } = holder;
          leave(holder);
          set(holder, 0);
          waiting?.resolve('overloaded');
          if (lines.size > 0) serve();
        },
      };
    },
    get heldBytes() {
      return heldBytes;
    },
  };
}
