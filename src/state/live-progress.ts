// The requests of sessions that are under way and asked for their progress, by session and token: a server may
// tell it on the stream of the session. The token of a request that became a task lives on with the task.
// One replica's memory; forgets a request when it ends, and of deferred ones the oldest first.
// Source: MCP 2025-11-25, progress; tasks (progress).

import type { RequestId } from '../mcp/message.js';

/** How far a request is. Whoever tells progress counts it upwards here. */
export type LiveCount = { last: number };

export type LiveProgress = {
  /**
   * `session` is the keyed hash of the sealed id. The returned function takes the request out again; one that
   * `mayDefer` is then held among the deferred.
   */
  enter(session: string, token: RequestId, count: LiveCount, mayDefer: boolean): () => void;
  /** Of a request that is under way, or was deferred. */
  find(session: string, token: RequestId): LiveCount | undefined;
  findDeferred(session: string, token: RequestId): LiveCount | undefined;
  readonly size: number;
};

/** Tokens of deferred requests that are held. */
export const MAX_DEFERRED = 4096;

/** None under way. */
export function createLiveProgress(): LiveProgress {
  const live = new Map<string, LiveCount>();
  const deferred = new Map<string, LiveCount>();

  function defer(key: string, count: LiveCount): void {
    deferred.delete(key);
    const [oldest] = deferred.keys();
    if (deferred.size >= MAX_DEFERRED && oldest !== undefined) deferred.delete(oldest);
    deferred.set(key, count);
  }

  return {
    enter(session, token, count, mayDefer) {
      const key = keyOf(session, token);
      live.set(key, count);
      return () => {
        if (mayDefer) defer(key, count);
        if (live.get(key) === count) live.delete(key);
      };
    },
    find(session, token) {
      const key = keyOf(session, token);
      return live.get(key) ?? deferred.get(key);
    },
    findDeferred: (session, token) => deferred.get(keyOf(session, token)),
    get size() {
      return live.size + deferred.size;
    },
  };
}

/** The tokens 1 and "1" are two. */
function keyOf(session: string, token: RequestId): string {
  return `${session} ${JSON.stringify(token)}`;
}
