// The room for answers that are kept until they are whole: one number of bytes for all upstreams, of which
// each may take its part. What finds no room waits, and is given up after a while. Who waits with something
// in hand can block nobody for good: the oldest goes on beyond the bound, up to the cap of one answer.

/** What became of somebody who waited for room. */
export type Room = 'held' | 'overloaded';

/** The room of one answer, or of one event that is being put together. */
export type HeldRoom = {
  /** Holds so many bytes in all from now on, more or less than before; waits where there is no room for more. */
  hold(bytes: number): undefined | Promise<Room>;
  /** Gives all of it back. Holds nothing any more, and waits for nothing. */
  release(): void;
};

export type AnswerRoom = {
  enter(upstream: string): HeldRoom;
  /** Bytes that are held now. */
  readonly heldBytes: number;
};

export type RoomBounds = {
  readonly maxBytes?: number;
  /** One upstream may hold this part of all. */
  readonly shares?: number;
  readonly maxWaitMs?: number;
};

const MAX_BYTES = 128 * 1024 * 1024;
const SHARES = 4;
const MAX_WAIT_MS = 5_000;

type Holder = {
  readonly upstream: string;
  bytes: number;
  waiting: { readonly wanted: number; readonly tell: (room: Room) => void } | undefined;
};

/** Room of which nothing is held. */
export function createAnswerRoom({
  maxBytes = MAX_BYTES,
  shares = SHARES,
  maxWaitMs = MAX_WAIT_MS,
}: RoomBounds = {}): AnswerRoom {
  const shareBytes = maxBytes / shares;
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

  function fits(holder: Holder, wanted: number): boolean {
    const { upstream } = holder;
    const more = wanted - holder.bytes;
    const own = heldBy.get(upstream) ?? 0;
    const [oldest] = holders;
    if (heldBytes + more > maxBytes && oldest !== undefined && oldest !== holder) return false;
    return own + more <= shareBytes || own === 0 || oldestOf(upstream) === holder;
  }

  function set(holder: Holder, bytes: number): void {
    const { upstream } = holder;
    const own = (heldBy.get(upstream) ?? 0) + bytes - holder.bytes;
    if (own > 0) heldBy.set(upstream, own);
    else heldBy.delete(upstream);
    heldBytes += bytes - holder.bytes;
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
      waiting?.tell('held');
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

  function leave(holder: Holder): void {
    holder.waiting = undefined;
    const line = lines.get(holder.upstream);
    line?.delete(holder);
    if (line?.size === 0) lines.delete(holder.upstream);
  }

  function wait(holder: Holder, wanted: number): Promise<Room> {
    return new Promise((resolve) => {
      const late = setTimeout(() => {
        leave(holder);
        resolve('overloaded');
      }, maxWaitMs);
      holder.waiting = {
        wanted,
        tell(room) {
          clearTimeout(late);
          resolve(room);
        },
      };
      const line = lines.get(holder.upstream);
      if (line === undefined) lines.set(holder.upstream, new Set([holder]));
      else line.add(holder);
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
          waiting?.tell('overloaded');
          if (lines.size > 0) serve();
        },
      };
    },
    get heldBytes() {
      return heldBytes;
    },
  };
}
