// Which members of an endpoint work on a request of a session, so that what its client says of it reaches them
// alone: a cancellation, whose text may say what was asked. One replica's memory, as long as the requests run;
// a caller reaches its own session only.
// Source: MCP 2025-11-25, cancellation.

import type { RequestId } from '../mcp/message.js';

export type RunningParts = {
  /** Enters a member under the sealed session; the returned function takes it out again. */
  enter(session: string, id: RequestId, upstream: string): () => void;
  /** The members that work on this request; none where nothing is known of it. */
  find(session: string, id: RequestId): readonly string[];
};

/** An empty table. */
export function createRunningParts(): RunningParts {
  const running = new Map<string, Set<{ readonly upstream: string }>>();
  return {
    enter(session, id, upstream) {
      const key = keyOf(session, id);
      const parts = running.get(key) ?? new Set();
      // Two requests under one id, which no client should send, are two.
      const part = { upstream };
      parts.add(part);
      running.set(key, parts);
      return () => {
        parts.delete(part);
        if (parts.size === 0 && running.get(key) === parts) running.delete(key);
      };
    },
    find(session, id) {
      const parts = running.get(keyOf(session, id)) ?? [];
      return [...new Set([...parts].map(({ upstream }) => upstream))];
    },
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
