// What a session that only the gateway knows has said once and its upstream must be told every time, and
// what is under way in it. What it says is told to the other replicas (session-words.ts). Bounded, a caller
// first: what is forgotten costs a log level or a subscription, never a control, and nothing that is under way.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation.

import type { Leaving } from '../../mcp/leaving.js';
import { LiveTable } from '../../mcp/live-table.js';
import type { JsonObject, RequestId, RpcError } from '../../mcp/message.js';
import type { Principal } from '../../policy/principal.js';

/** How a client answered a question. */
export type ServerRequestReply =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError | undefined };

export type SessionState = {
  logLevel: string | undefined;
  readonly resources: Set<string>;
  /** Told when the resources change. */
  readonly listeners: Set<() => void>;
  /** Requests under way, by their ids. */
  readonly running: LiveTable<RequestId, Pick<Leaving, 'abort'>>;
  /** Questions that wait for the client. */
  readonly waiting: Map<RequestId, (reply: ServerRequestReply) => void>;
};

/**
 * Sessions of one caller that are remembered, and of all; of more the one used least lately in which nothing is
 * under way is forgotten.
 */
export const MAX_SESSIONS_A_CALLER = 1_000;
export const MAX_SESSIONS = 10_000;
/** Subscriptions of one session. */
export const MAX_RESOURCES = 256;

export type SessionStates = {
  /** The notes of a session of this owner, empty for one that is new here. */
  of(session: string, owner: string): SessionState;
  /** The notes of a session that is known here. */
  find(session: string): SessionState | undefined;
  /** Ends what is under way in it, too. */
  forget(session: string): void;
  forgetWhere(isOver: (session: string) => boolean): void;
};

/** Whose a session is: by identity, not by token. */
export function ownerOf({ issuerUrl, subject, client }: Principal): string {
  return JSON.stringify([issuerUrl, subject, client]);
}

type Page = { readonly sessionState: SessionState; readonly owner: string };

/** An empty book. The key is the keyed hash of a session's sealed id. */
export function createSessionStates(): SessionStates {
  // Both in the order of use: the pages of all, and of each owner which are its own.
  const sessionStates = new Map<string, Page>();
  const owned = new Map<string, Set<string>>();

  function takeOut(session: string | undefined): Page | undefined {
    const page = session === undefined ? undefined : sessionStates.get(session);
    if (session === undefined || page === undefined) return undefined;
    sessionStates.delete(session);
    const own = owned.get(page.owner);
    own?.delete(session);
    if (own?.size === 0) owned.delete(page.owner);
    return page;
  }

  /** A caller who opens many forgets its own. */
  function makeCapacity(owner: string): void {
    const own = owned.get(owner);
    if (own !== undefined && own.size >= MAX_SESSIONS_A_CALLER) takeOut(oldestAtRest(own));
    else if (sessionStates.size >= MAX_SESSIONS) takeOut(oldestAtRest(sessionStates.keys()));
  }

  /** A question waits for its answer, whatever else was said meanwhile. */
  function oldestAtRest(sessions: Iterable<string>): string | undefined {
    for (const session of sessions) {
      const sessionState = sessionStates.get(session)?.sessionState;
      if (sessionState !== undefined && isAtRest(sessionState)) return session;
    }
    return undefined;
  }

  function forget(session: string): void {
    for (const leaving of takeOut(session)?.sessionState.running.values() ?? []) leaving.abort();
  }

  return {
    of(session, owner) {
      const sessionState = takeOut(session)?.sessionState ?? emptySessionState();
      makeCapacity(owner);
      sessionStates.set(session, { sessionState, owner });
      owned.set(owner, (owned.get(owner) ?? new Set()).add(session));
      return sessionState;
    },
    find: (session) => sessionStates.get(session)?.sessionState,
    forget,
    forgetWhere(isOver) {
      for (const session of [...sessionStates.keys()]) if (isOver(session)) forget(session);
    },
  };
}

function isAtRest({ listeners, running, waiting }: SessionState): boolean {
  return listeners.size + running.size + waiting.size === 0;
}

function emptySessionState(): SessionState {
  return {
    logLevel: undefined,
    resources: new Set(),
    listeners: new Set(),
    running: new LiveTable(),
    waiting: new Map(),
  };
}
