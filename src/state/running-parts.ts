// Which members of an endpoint work on a request of a session, so that what its client says of it reaches them
// alone: a cancellation, whose text may say what was asked. One replica's memory, as long as the requests run;
// a caller reaches its own session only.
// Source: MCP 2025-11-25, cancellation.

import type { RequestId } from '../mcp/message.js';

export type RunningBackends = {
  /** Enters a member under the sealed session; the returned function takes it out again. */
  enter(session: string, id: RequestId, upstream: string): () => void;
  /** The members that work on this request; none where nothing is known of it. */
  find(session: string, id: RequestId): readonly string[];
};

/** An empty table. */
export function createRunningBackends(): RunningBackends {
  // Plain values only: nothing here holds on to a request.
  const running = new Map<string, readonly string[]>();

  function leave(key: string, upstream: string): void {
    const backends = running.get(key) ?? [];
    const left = backends.toSpliced(backends.indexOf(upstream), 1);
    if (left.length === 0) running.delete(key);
    else running.set(key, left);
  }

  return {
    enter(session, id, upstream) {
      const key = keyOf(session, id);
      // Two requests under one id, which no client should send, are two.
      running.set(key, [...(running.get(key) ?? []), upstream]);
      let isIn = true;
      return () => {
        if (isIn) leave(key, upstream);
        isIn = false;
      };
    },
    find: (session, id) => [...new Set(running.get(keyOf(session, id)))],
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
