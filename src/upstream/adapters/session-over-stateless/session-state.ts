// What a translated session tells the other replicas, so that it is one session whichever of them a request
// reaches: how much of the log it wants, which resources it listens to, what it gives up, and answers to
// questions that another replica has put. Requests and streams themselves stay where they run.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation; docs/contract.md §10.

import { randomUUID } from 'node:crypto';
import type { Principal } from '../../../policy/principal.js';
import type { JsonObject, RequestId, RpcError } from '../../../protocol/jsonrpc.js';
import type { Leaving } from '../../../protocol/transport.js';
import { LiveTable } from '../../../state/live-map.js';

// What a session that only the gateway knows has said once and its upstream must be told every time, and
// what is under way in it. What it says is told to the other replicas (session-words.ts). Bounded, a caller
// first: what is forgotten costs a log level or a subscription, never a control, and nothing that is under way.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation.

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

/** What is said of a session. */
export type SessionChange =
  | { readonly kind: 'log-level'; readonly level: string }
  | { readonly kind: 'subscribed'; readonly uri: string }
  | { readonly kind: 'unsubscribed'; readonly uri: string }
  | { readonly kind: 'cancelled'; readonly id: RequestId }
  | { readonly kind: 'answered'; readonly id: RequestId; readonly reply: ServerRequestReply };

/** `session` is the keyed hash of its sealed id, `owner` whose it is. */
export type SessionMessage = {
  readonly session: string;
  readonly owner: string;
  readonly news: SessionChange;
};

/** The way to the other replicas. */
export type SessionBus = {
  /** The name of this replica. */
  readonly self: string;
  /** `nobody`: that replica runs no more, or the word is too long. */
  send(replica: string, message: SessionMessage): Promise<Unspread | 'told' | 'nobody'>;
  /** Every replica hears it, this one too ({@link receiveSessionMessage}), and all in one order; or none does. */
  publish(message: SessionMessage): Promise<Unspread | 'told'>;
};

/** Why nobody was told: for now it cannot be, or too much of this owner's is on its way. */
type Unspread = 'unavailable' | 'overloaded';

/** Words of one owner that are on their way at a time: a quarter of what may wait for a replica. */
export const MAX_MESSAGES_PER_OWNER = 64;
/** Words that wait to be on their way: a client may subscribe to all that a session can at once. */
export const MAX_WAITING_AN_OWNER = MAX_RESOURCES;

/** A name that is hard to guess, of something that this replica alone can go on with. */
export function nameHere({ self }: Pick<SessionBus, 'self'>): string {
  return `${self}.${randomUUID()}`;
}

/** The replica in whose hands the thing of this name is. */
export function replicaOf(name: RequestId): string {
  return String(name).split('.', 1)[0] ?? '';
}

/** Notes what was said of a session, here or elsewhere. */
export function applySessionChange(sessionState: SessionState, news: SessionChange): void {
  switch (news.kind) {
    case 'log-level':
      sessionState.logLevel = news.level;
      return;
    case 'subscribed':
      if (sessionState.resources.has(news.uri) || sessionState.resources.size >= MAX_RESOURCES)
        return;
      sessionState.resources.add(news.uri);
      notifyListeners(sessionState);
      return;
    case 'unsubscribed':
      if (sessionState.resources.delete(news.uri)) notifyListeners(sessionState);
      return;
    case 'cancelled': {
      const running = sessionState.running.get(news.id);
      // Whoever tells the answer learns first that it is wanted no more: what was cancelled gets no error.
      if (running !== undefined) setImmediate(() => running.abort());
      return;
    }
    case 'answered':
      sessionState.waiting.get(news.id)?.(news.reply);
  }
}

function notifyListeners({ listeners }: SessionState): void {
  for (const changed of listeners) changed();
}

/** Notes a word, of here or of another replica. What needs something of here is noted only where it is. */
export function receiveSessionMessage(
  sessionStates: SessionStates,
  { session, owner, news }: SessionMessage,
): void {
  const isOfHere = news.kind === 'cancelled' || news.kind === 'answered';
  const sessionState = isOfHere ? sessionStates.find(session) : sessionStates.of(session, owner);
  if (sessionState !== undefined) applySessionChange(sessionState, news);
}

/** One owner's words: those on their way, and whoever waits to say more. */
type Line = { underWay: number; readonly waiting: (() => void)[] };

/**
 * The same words, of which nobody has more than its share on the way: what waits for a replica is everyone's
 * room. Who says more waits for its turn, and is refused where too many of its own wait already.
 */
export function limitSessionBus({ self, send, publish }: SessionBus): SessionBus {
  const lines = new Map<string, Line>();

  /** At once where there is room on the way; false where there is none to wait. */
  function enter(line: Line): boolean | Promise<void> {
    if (line.underWay < MAX_MESSAGES_PER_OWNER) {
      line.underWay += 1;
      return true;
    }
    if (line.waiting.length >= MAX_WAITING_AN_OWNER) return false;
    return new Promise((handOver) => line.waiting.push(handOver));
  }

  function leave(owner: string, line: Line): void {
    const handOver = line.waiting.shift();
    if (handOver !== undefined) handOver();
    else line.underWay -= 1;
    if (line.underWay === 0) lines.delete(owner);
  }

  async function within<T>(
    { owner }: SessionMessage,
    deliver: () => Promise<T>,
  ): Promise<T | 'overloaded'> {
    const line = lines.get(owner) ?? { underWay: 0, waiting: [] };
    lines.set(owner, line);
    const turn = enter(line);
    if (turn === false) return 'overloaded';
    if (turn instanceof Promise) await turn;
    try {
      return await deliver();
    } finally {
      leave(owner, line);
    }
  }

  return {
    self,
    send: (replica, message) => within(message, () => send(replica, message)),
    publish: (message) => within(message, () => publish(message)),
  };
}

/** The words about a session that no other replica serves. */
export function localSessionBus(
  { self }: Pick<SessionBus, 'self'>,
  sessionStates: SessionStates,
): SessionBus {
  return {
    self,
    send: () => Promise.resolve('nobody'),
    publish(message) {
      receiveSessionMessage(sessionStates, message);
      return Promise.resolve('told');
    },
  };
}
