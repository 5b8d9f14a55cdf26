// What waits, in order for each upstream, while the upstreams take turns: one that sends much waits for itself.
// Source: performance, what follows 10.

/** How many may wait, and how many characters they may have together. */
export type WaitingBounds = { readonly jobs: number; readonly chars: number };

export type FairQueue<T> = {
  /** False where too much waits already, of all or of this upstream. */
  add(waiting: T, upstream: string, chars: number): boolean;
  /** Takes what is next; `undefined` where nothing waits. */
  next(): T | undefined;
};

/** What one upstream may have waiting is this part of all; one always may. */
const QUOTA_DIVISOR = 4;

type Entry<T> = { readonly waiting: T; readonly chars: number };
type Line<T> = { readonly entries: Entry<T>[]; chars: number };

/** A queue in which nothing waits. */
export function createFairQueue<T>(bounds: WaitingBounds): FairQueue<T> {
  /** In the order of their turns; none is empty. */
  const lines = new Map<string, Line<T>>();
  let jobs = 0;
  let chars = 0;

  function hasCapacity({ entries, chars: own }: Line<T>, more: number): boolean {
    if (jobs >= bounds.jobs || chars + more > bounds.chars) return false;
    if (entries.length === 0) return true;
    return (
      entries.length < bounds.jobs / QUOTA_DIVISOR && own + more <= bounds.chars / QUOTA_DIVISOR
    );
  }

  return {
    add(waiting, upstream, more) {
      const line = lines.get(upstream) ?? { entries: [], chars: 0 };
      if (!hasCapacity(line, more)) return false;
      line.entries.push({ waiting, chars: more });
      line.chars += more;
      jobs += 1;
      chars += more;
      lines.set(upstream, line);
      return true;
    },
    next() {
      const [first] = lines;
      if (first === undefined) return undefined;
      const [upstream, line] = first;
      lines.delete(upstream);
      const entry = line.entries.shift();
      if (entry === undefined) return undefined;
      if (line.entries.length > 0) lines.set(upstream, line);
      line.chars -= entry.chars;
      jobs -= 1;
      chars -= entry.chars;
      return entry.waiting;
    },
  };
}
