// What a session that only the gateway knows has said once and its upstream must be told every time, and
// what is under way in it. Bounded: what is forgotten costs a log level or a subscription, never a control.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation.

import type { JsonObject, RequestId, RpcError } from '../../mcp/message.js';

/** How a client answered a question. */
export type QuestionReply =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError | undefined };

export type SessionNotes = {
  logLevel: string | undefined;
  readonly resources: Set<string>;
  /** Told when the resources change. */
  readonly listeners: Set<() => void>;
  /** Requests under way, by their ids. */
  readonly running: Map<RequestId, AbortController>;
  /** Questions that wait for the client. */
  readonly waiting: Map<RequestId, (reply: QuestionReply) => void>;
};

/** Sessions that are remembered; of more than these the one used least lately is forgotten. */
const MAX_SESSIONS = 10_000;
/** Subscriptions of one session. */
export const MAX_RESOURCES = 256;

export type NotesBook = {
  of(session: string): SessionNotes;
  forget(session: string): void;
};

/** An empty book. The key is the keyed hash of a session's sealed id. */
export function createNotesBook(): NotesBook {
  const book = new Map<string, SessionNotes>();
  return {
    of(session) {
      const notes = book.get(session) ?? emptyNotes();
      book.delete(session);
      book.set(session, notes);
      const [oldest] = book.keys();
      if (book.size > MAX_SESSIONS && oldest !== undefined) book.delete(oldest);
      return notes;
    },
    forget(session) {
      const notes = book.get(session);
      book.delete(session);
      for (const controller of notes?.running.values() ?? []) controller.abort();
    },
  };
}

function emptyNotes(): SessionNotes {
  return {
    logLevel: undefined,
    resources: new Set(),
    listeners: new Set(),
    running: new Map(),
    waiting: new Map(),
  };
}
