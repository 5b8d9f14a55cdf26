// What a session that only the gateway knows has said once and its upstream must be told every time, and
// what is under way in it. What it says is told to the other replicas (session-words.ts). Bounded, a caller
// first: what is forgotten costs a log level or a subscription, never a control, and nothing that is under way.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation.

import type { Leaving } from '../../mcp/leaving.js';
import { LiveTable } from '../../mcp/live-table.js';
import type { JsonObject, RequestId, RpcError } from '../../mcp/message.js';
import type { Principal } from '../../policy/principal.js';

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
  readonly running: LiveTable<RequestId, Pick<Leaving, 'abort'>>;
  /** Questions that wait for the client. */
  readonly waiting: Map<RequestId, (reply: QuestionReply) => void>;
};

/**
 * Sessions of one caller that are remembered, and of all; of more the one used least lately in which nothing is
 * under way is forgotten.
 */
export const MAX_SESSIONS_A_CALLER = 1_000;
export const MAX_SESSIONS = 10_000;
/** Subscriptions of one session. */
export const MAX_RESOURCES = 256;

export type NotesBook = {
  /** The notes of a session of this owner, empty for one that is new here. */
  of(session: string, owner: string): SessionNotes;
  /** The notes of a session that is known here. */
  find(session: string): SessionNotes | undefined;
  /** Ends what is under way in it, too. */
  forget(session: string): void;
  forgetWhere(isOver: (session: string) => boolean): void;
};

/** Whose a session is: by identity, not by token. */
export function ownerOf({ issuerUrl, subject, client }: Principal): string {
  return JSON.stringify([issuerUrl, subject, client]);
}

type Page = { readonly notes: SessionNotes; readonly owner: string };

/** An empty book. The key is the keyed hash of a session's sealed id. */
export function createNotesBook(): NotesBook {
  // Both in the order of use: the pages of all, and of each owner which are its own.
  const book = new Map<string, Page>();
  const owned = new Map<string, Set<string>>();

  function takeOut(session: string | undefined): Page | undefined {
    const page = session === undefined ? undefined : book.get(session);
    if (session === undefined || page === undefined) return undefined;
    book.delete(session);
    const own = owned.get(page.owner);
    own?.delete(session);
    if (own?.size === 0) owned.delete(page.owner);
    return page;
  }

  /** A caller who opens many forgets its own. */
  function makeRoom(owner: string): void {
    const own = owned.get(owner);
    if (own !== undefined && own.size >= MAX_SESSIONS_A_CALLER) takeOut(oldestAtRest(own));
    else if (book.size >= MAX_SESSIONS) takeOut(oldestAtRest(book.keys()));
  }

  /** A question waits for its answer, whatever else was said meanwhile. */
  function oldestAtRest(sessions: Iterable<string>): string | undefined {
    for (const session of sessions) {
      const notes = book.get(session)?.notes;
      if (notes !== undefined && isAtRest(notes)) return session;
    }
    return undefined;
  }

  function forget(session: string): void {
    for (const leaving of takeOut(session)?.notes.running.values() ?? []) leaving.abort();
  }

  return {
    of(session, owner) {
      const notes = takeOut(session)?.notes ?? emptyNotes();
      makeRoom(owner);
      book.set(session, { notes, owner });
      owned.set(owner, (owned.get(owner) ?? new Set()).add(session));
      return notes;
    },
    find: (session) => book.get(session)?.notes,
    forget,
    forgetWhere(isOver) {
      for (const session of [...book.keys()]) if (isOver(session)) forget(session);
    },
  };
}

function isAtRest({ listeners, running, waiting }: SessionNotes): boolean {
  return listeners.size + running.size + waiting.size === 0;
}

function emptyNotes(): SessionNotes {
  return {
    logLevel: undefined,
    resources: new Set(),
    listeners: new Set(),
    running: new LiveTable(),
    waiting: new Map(),
  };
}
