// What a session that only the gateway knows has said once and its upstream must be told every time, and
// what is under way in it. What it says is told to the other replicas (session-words.ts). Bounded: what is forgotten costs a log level or a subscription, never a control.
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
  /** The notes of a session, empty for one that is new here. */
  of(session: string): SessionNotes;
  /** The notes of a session that is known here. */
  find(session: string): SessionNotes | undefined;
  /** Ends what is under way in it, too. */
  forget(session: string): void;
  forgetWhere(isOver: (session: string) => boolean): void;
};

/** An empty book. The key is the keyed hash of a session's sealed id. */
export function createNotesBook(): NotesBook {
  const book = new Map<string, SessionNotes>();

  function forget(session: string): void {
    const notes = book.get(session);
    book.delete(session);
    for (const controller of notes?.running.values() ?? []) controller.abort();
  }

  return {
    find: (session) => book.get(session),
    forget,
    forgetWhere(isOver) {
      for (const session of [...book.keys()]) if (isOver(session)) forget(session);
    },
    of(session) {
      const notes = book.get(session) ?? emptyNotes();
      book.delete(session);
      book.set(session, notes);
      const [oldest] = book.keys();
      if (book.size > MAX_SESSIONS && oldest !== undefined) book.delete(oldest);
      return notes;
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
