// Streamed answers of sessions that are on their way, by the session and the id of the request, so that a
// cancellation ends them: a server does not answer what was cancelled, and some keep the stream open all
// the same, which would hold a place of the upstream's concurrency. A caller reaches its own session only.
// Source: MCP 2025-11-25, cancellation.

import { LiveTable } from '../mcp/live-table.js';
import type { RequestId } from '../mcp/message.js';

/** An answer that crosses the cancellation may still come within this time. */
export const CANCEL_GRACE_MS = 1_000;

export type RunningStreams = {
  /** Enters a stream under the sealed session; the returned function takes it out again. */
  enter(session: string, id: RequestId, end: () => void): () => void;
  /** Ends the stream of this request, if it runs, after {@link CANCEL_GRACE_MS}. */
  cancel(session: string, id: RequestId): void;
  /** Ends at once what runs in sessions for which `isOver` holds. */
  endWhere(isOver: (session: string) => boolean): void;
};

/** An empty table. One replica's memory: a session whose calls were spread ends at the idle limit. */
export function createRunningStreams(): RunningStreams {
  const running = new LiveTable<string, { readonly session: string; readonly end: () => void }>();
  return {
    enter(session, id, end) {
      const key = keyOf(session, id);
      const entry = { session, end };
      running.set(key, entry);
      return () => {
        if (running.get(key) === entry) running.delete(key);
      };
    },
    cancel(session, id) {
      const key = keyOf(session, id);
      const entry = running.get(key);
      if (entry === undefined) return;
      // By then another request may run under this id; it is not what was cancelled.
      setTimeout(() => running.get(key) === entry && entry.end(), CANCEL_GRACE_MS).unref();
    },
    endWhere(isOver) {
      for (const { session, end } of running.values()) if (isOver(session)) end();
    },
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
