// The requests of sessions that are under way and asked for their progress, by session and token: a server may
// tell it on the stream of the session. One replica's memory; forgets a request when it ends, and one that was
// answered by a task when newer ones push it out.
// Source: MCP 2025-11-25, progress; tasks (task progress notifications).

import { LiveTable } from '../mcp/live-table.js';
import type { RequestId } from '../mcp/message.js';

/** How far a request is. Whoever tells progress counts it upwards here. */
export type LiveCount = { last: number };

/** Requests whose work goes on after their answer, past which the oldest are forgotten first. */
export const MAX_KEPT = 1024;

export type LiveProgress = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the request out again. */
  enter(session: string, token: RequestId, count: LiveCount): () => void;
  /** Keeps a request that was entered, although it is answered: its task goes on. */
  keep(session: string, token: RequestId): void;
  find(session: string, token: RequestId): LiveCount | undefined;
  readonly size: number;
};

/** None under way. */
export function createLiveProgress(): LiveProgress {
  const live = new LiveTable<string, LiveCount>();
  const kept = new Set<string>();
  return {
    enter(session, token, count) {
      const key = keyOf(session, token);
      live.set(key, count);
      kept.delete(key);
      return () => {
        if (live.get(key) === count && !kept.has(key)) live.delete(key);
      };
    },
    keep(session, token) {
      const [oldest] = kept;
      if (kept.size >= MAX_KEPT && oldest !== undefined) {
        kept.delete(oldest);
        live.delete(oldest);
      }
      kept.add(keyOf(session, token));
    },
    find: (session, token) => live.get(keyOf(session, token)),
    get size() {
      return live.size;
    },
  };
}

/** The tokens 1 and "1" are two. */
function keyOf(session: string, token: RequestId): string {
  return `${session} ${JSON.stringify(token)}`;
}
