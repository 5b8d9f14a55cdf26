// The requests of sessions that are under way and asked for their progress, by session and token: a server may
// tell it on the stream of the session. One replica's memory; forgets a request when it ends.
// Source: MCP 2025-11-25, progress.

import type { RequestId } from '../mcp/message.js';

/** How far a request is. Whoever tells progress counts it upwards here. */
export type LiveCount = { last: number };

export type LiveProgress = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the request out again. */
  enter(session: string, token: RequestId, count: LiveCount): () => void;
  find(session: string, token: RequestId): LiveCount | undefined;
  readonly size: number;
};

/** None under way. */
export function createLiveProgress(): LiveProgress {
  const live = new Map<string, LiveCount>();
  return {
    enter(session, token, count) {
      const key = keyOf(session, token);
      live.set(key, count);
      return () => {
        if (live.get(key) === count) live.delete(key);
      };
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
