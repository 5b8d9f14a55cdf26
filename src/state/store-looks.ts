// When a store is looked at: twice a second, sooner on a hint, one thing after the other; and how old the
// newest look is. It does not know what is looked for.

/** Between two looks. With the time of a command this stays below the two seconds that are promised. */
export const POLL_INTERVAL_MS = 500;
/** Hints that come together cost one look. */
const HINTED_AFTER_MS = 20;

export type StorePollerPorts = {
  /** Rejects where the store could not be asked. */
  readonly poll: () => Promise<void>;
  readonly describe: (error: unknown) => string;
  readonly maxAgeMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  /** Told when the newest look became too old, or is fresh again. */
  readonly onPoll: () => void;
};

export type StorePoller = {
  /** Resolves after the first look. */
  start(): Promise<void>;
  /** A look is due. */
  hint(): void;
  /** Runs after what runs now: a look that began before a change may not undo it. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** True while the newest look is older than `maxAgeMs`, and before the first. */
  isStale(): boolean;
  /** What went wrong last, until a look succeeds. */
  lastError(): string | undefined;
  noteError(error: unknown): void;
  close(): Promise<void>;
};

/** Looks that have not begun. */
export function createStorePoller(ports: StorePollerPorts): StorePoller {
  const { nowMs, maxAgeMs } = ports;
  let polledAtMs = Number.NEGATIVE_INFINITY;
  let wasStale = true;
  let lastError: string | undefined = 'not asked yet';
  let tail: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isPolling = false;
  let isHinted = false;
  let isClosed = false;

  const isStale = (): boolean => nowMs() - polledAtMs > maxAgeMs;

  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const next = tail.then(run);
    tail = next.catch(() => undefined);
    return next;
  }

  async function poll(): Promise<void> {
    isPolling = true;
    isHinted = false;
    const startedMs = nowMs();
    try {
      await ports.poll();
      polledAtMs = startedMs;
      lastError = undefined;
    } catch (error) {
      lastError = ports.describe(error);
    }
    isPolling = false;
    if (isStale() === wasStale) return;
    wasStale = !wasStale;
    ports.onPoll();
  }

  async function pollThenWait(): Promise<void> {
    await inTurn(poll);
    schedule();
  }

  function schedule(): void {
    if (isClosed) return;
    const waitMs = isHinted ? HINTED_AFTER_MS : POLL_INTERVAL_MS;
    timer = setTimeout(() => void pollThenWait(), waitMs).unref();
  }

  return {
    start: pollThenWait,
    hint() {
      const isDue = isHinted || timer === undefined;
      isHinted = true;
      // A look under way is followed by another, because of the mark.
      if (isDue || isPolling || isClosed) return;
      clearTimeout(timer);
      schedule();
    },
    inTurn,
    isStale,
    lastError: () => lastError,
    noteError(error) {
      lastError = ports.describe(error);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await tail;
    },
  };
}
