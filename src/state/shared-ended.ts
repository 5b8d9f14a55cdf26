// Sessions that ended at any replica. Known here at once, to the others with their next look; what the
// store could not be told waits until it can.

import { createEndedSessions, type EndedSessions } from './ended-sessions.js';
import type { StoreLink, StoreUpdate } from './store-link.js';

/** Ended sessions that wait for the store; past it the oldest are known here alone. */
const MAX_WAITING = 10_000;
/** Looked at again each time: clocks of a store that failed over may differ by so much. */
const MARK_OVERLAP_MS = 10_000;

export type SharedEnded = EndedSessions & {
  /** Where the next look begins. */
  mark(): number;
  note(update: StoreUpdate): void;
  /** Tells the store of what ended here. */
  publish(link: Pick<StoreLink, 'endSession'>): Promise<void>;
};

/** None. `now` is in milliseconds since the epoch. */
export function createSharedEnded(now: () => number): SharedEnded {
  const ended = createEndedSessions(now);
  /**
   * With what was left when it ended: told late, it stands in the store as if it had ended now. Others look
   * from where their last look ended, and would not see what is put before that.
   */
  const waiting = new Map<string, number>();
  const listeners: (() => void)[] = [];
  let mark = 0;
  return {
    has: ended.has,
    add(hash, expiresAtMs) {
      ended.add(hash, expiresAtMs);
      const [oldest] = waiting.keys();
      if (waiting.size >= MAX_WAITING && oldest !== undefined) waiting.delete(oldest);
      waiting.set(hash, expiresAtMs - now());
    },
    onElsewhere: (listener) => void listeners.push(listener),
    mark: () => Math.max(0, mark - MARK_OVERLAP_MS),
    note(update) {
      mark = Math.max(mark, update.mark);
      const newlyEnded = update.ended.filter(({ hash }) => !ended.has(hash));
      for (const { hash, leftMs } of newlyEnded) ended.add(hash, now() + leftMs);
      if (newlyEnded.length > 0) for (const follow of listeners) follow();
    },
    async publish(link) {
      const published = [...waiting];
      await Promise.all(published.map(([hash, leftMs]) => link.endSession(hash, leftMs)));
      for (const [hash] of published) waiting.delete(hash);
    },
  };
}
