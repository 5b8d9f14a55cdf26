// Fails calls to an upstream that hangs at once, so that each does not wait for its whole timeout. It opens only when a
// caller's request has timed out, a ping of the gateway's own times out too, and nothing else has answered meanwhile:
// what one caller makes slow, and whatever an upstream answers, opens it for nobody, nor does a token endpoint that is slow.
// Further pings close it, and so does whatever the upstream answers between them.

/** Milliseconds between the pings while it is open; the last repeats. */
const PAUSES_MS = [1_000, 2_000, 5_000, 10_000] as const;
const LONGEST_PAUSE_MS = 10_000;

export type Breaker = {
  /** While `isOpen`, requests of callers are not sent. A plain value, because every request reads it. */
  readonly status: { readonly isOpen: boolean };
  /** A request of a caller was not answered in time. */
  noteTimeout(): void;
  /** It was listed, so it answers. */
  noteListed(): void;
  /** Pings no more. */
  close(): void;
};

type BreakerPorts = {
  /** Resolves with false only if nothing answered in time, with undefined if none was sent. Never rejects. */
  readonly ping: () => Promise<boolean | undefined>;
  /** How many responses have come from the upstream so far, to whomever. */
  readonly countResponses: () => number;
  readonly onChange: (isOpen: boolean) => void;
};

export function createBreaker({ ping, countResponses, onChange }: BreakerPorts): Breaker {
  const status = { isOpen: false };
  let isPinging = false;
  let isClosed = false;
  let failures = 0;
  /** How many responses had come when the last ping began. */
  let seen = 0;
  let timer: NodeJS.Timeout | undefined;

  function set(next: boolean): void {
    if (status.isOpen === next) return;
    status.isOpen = next;
    onChange(next);
  }

  async function probe(): Promise<void> {
    isPinging = true;
    const before = status.isOpen ? seen : countResponses();
    seen = countResponses();
    const answer = before !== seen || (await ping());
    isPinging = false;
    if (isClosed) return;
    const isAnswered = answer === true || countResponses() !== seen || (answer === undefined && !status.isOpen);
    set(!isAnswered);
    if (isAnswered) {
      failures = 0;
      return;
    }
    timer = setTimeout(() => void probe(), PAUSES_MS[failures] ?? LONGEST_PAUSE_MS).unref();
    failures += 1;
  }

  return {
    status,
    noteTimeout() {
      if (status.isOpen || isPinging || isClosed) return;
      void probe();
    },
    noteListed() {
      if (!status.isOpen) return;
      clearTimeout(timer);
      failures = 0;
      set(false);
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      set(false);
    },
  };
}
