// The questions that were passed on a moment ago, by session and the server's own id, so that a server can
// take one back: its cancellation names its own id, which the client has never seen. One replica's memory,
// bounded; a question that is not found is not cancelled, and its answer then goes to a server that ignores it.
// Source: MCP 2025-11-25, cancellation.

import type { RequestId } from '../mcp/message.js';

/** Past this many, the oldest are forgotten first. */
const MAX_REMEMBERED = 4096;

export type PassedServerRequests = {
  /** `session` is the keyed hash of the session's sealed id; `sealed` the id that the client saw. */
  add(session: string, id: RequestId, sealed: string): void;
  find(session: string, id: RequestId): string | undefined;
};

/** An empty memory. */
export function createPassedServerRequests(): PassedServerRequests {
  const asked = new Map<string, string>();
  return {
    add(session, id, sealed) {
      const [oldest] = asked.keys();
      if (asked.size >= MAX_REMEMBERED && oldest !== undefined) asked.delete(oldest);
      asked.set(keyOf(session, id), sealed);
    },
    find: (session, id) => asked.get(keyOf(session, id)),
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
