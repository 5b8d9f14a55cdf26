// What a translated session tells the other replicas, so that it is one session whichever of them a request
// reaches: how much of the log it wants, which resources it listens to, what it gives up, and answers to
// questions that another replica has put. Requests and streams themselves stay where they run.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation; contract §10.

import { randomUUID } from 'node:crypto';
import type { RequestId } from '../../mcp/message.js';
import {
  MAX_RESOURCES,
  type ServerRequestReply,
  type SessionState,
  type SessionStates,
} from './session-notes.js';

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
export type Unspread = 'unavailable' | 'overloaded';

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
