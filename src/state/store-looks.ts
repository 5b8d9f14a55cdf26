// When a store is looked at: twice a second, sooner on a hint, one thing after the other; and how old the
// newest look is. It does not know what is looked for.

/** Between two looks. With the time of a command this stays below the two seconds that are promised. */
export const LOOK_EVERY_MS = 500;
/** Hints that come together cost one look. */
const HINTED_AFTER_MS = 20;

export type LooksPorts = {
  /** Rejects where the store could not be asked. */
  readonly look: () => Promise<void>;
  readonly describe: (error: unknown) => string;
  readonly maxAgeMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs: () => number;
  /** Told when the newest look became too old, or is fresh again. */
  readonly onTurn: () => void;
};

export type StoreLooks = {
  /** Resolves after the first look. */
  start(): Promise<void>;
  /** A look is due. */
  hint(): void;
  /** Runs after what runs now: a look that began before a change may not undo it. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /** True while the newest look is older than `maxAgeMs`, and before the first. */
  isStale(): boolean;
  /** What went wrong last, until a look succeeds. */
  fault(): string | undefined;
  noteFault(error: unknown): void;
  close(): Promise<void>;
};

/** Looks that have not begun. */
export function createStoreLooks(ports: LooksPorts): StoreLooks {
  const { nowMs, maxAgeMs } = ports;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let wasStale = true;
  let fault: string | undefined = 'not asked yet';
  let tail: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;
  let isHinted = false;
  let isClosed = false;

  const isStale = (): boolean => nowMs() - lookedAtMs > maxAgeMs;

  function inTurn<T>(run: () => Promise<T>): Promise<T> {
    const next = tail.then(run);
    tail = next.catch(() => undefined);
    return next;
  }

  async function look(): Promise<void> {
    isLooking = true;
    isHinted = false;
    const startedMs = nowMs();
    try {
      await ports.look();
      lookedAtMs = startedMs;
      fault = undefined;
    } catch (error) {
      fault = ports.describe(error);
    }
    isLooking = false;
    if (isStale() === wasStale) return;
    wasStale = !wasStale;
    ports.onTurn();
  }

  async function lookThenWait(): Promise<void> {
    await inTurn(look);
    schedule();
  }

  function schedule(): void {
    if (isClosed) return;
    const waitMs = isHinted ? HINTED_AFTER_MS : LOOK_EVERY_MS;
    timer = setTimeout(() => void lookThenWait(), waitMs).unref();
  }

  return {
    start: lookThenWait,
    hint() {
      const isDue = isHinted || timer === undefined;
      isHinted = true;
      // A look under way is followed by another, because of the mark.
      if (isDue || isLooking || isClosed) return;
      clearTimeout(timer);
      schedule();
    },
    inTurn,
    isStale,
    fault: () => fault,
    noteFault(error) {
      fault = ports.describe(error);
    },
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await tail;
    },
  };
}
