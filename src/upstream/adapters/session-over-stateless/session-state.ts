// The state of sessions that only the gateway knows, because their upstream is stateless: the log level and
// subscriptions that every request must carry, and what is under way. Changes, cancellations and replies to
// server requests are sent to the other replicas, so that a session behaves the same on each of them;
// requests and streams stay on the replica that runs them. Bounded, per caller first: eviction can cost a log
// level or a subscription, but never a control, and never anything that is under way.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation; docs/contract.md §10.

import { randomUUID } from 'node:crypto';
import type { JsonObject, RequestId, RpcError } from '../../../protocol/jsonrpc.js';
import type { DisconnectController } from '../../../protocol/transport.js';
import { OwnedMap } from '../../../state/bounded-map.js';

/** A client's reply to a server request. */
export type ServerRequestReply =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError | undefined };

export type SessionState = {
  logLevel: string | undefined;
  readonly resources: Set<string>;
  /** Called when the resources change. */
  readonly listeners: Set<() => void>;
  /** Requests under way, by id. */
  readonly running: Map<RequestId, Pick<DisconnectController, 'abort'>>;
  /** Server requests waiting for the client's reply, by id. */
  readonly waiting: Map<RequestId, (reply: ServerRequestReply) => void>;
};

/**
 * The number of sessions kept per caller and in total; beyond it the least recently used session with nothing
 * under way is evicted.
 */
export const MAX_SESSIONS_PER_CALLER = 1_000;
export const MAX_SESSIONS = 10_000;
/** Subscriptions per session. */
export const MAX_RESOURCES = 256;

export type SessionStates = {
  /** The state of a session of this owner; empty if it is new on this replica. */
  getOrCreate(session: string, owner: string): SessionState;
  /** The state of a session that is known on this replica. */
  find(session: string): SessionState | undefined;
  /** Removes the session's state and aborts its requests under way. */
  forget(session: string): void;
  forgetWhere(isOver: (session: string) => boolean): void;
};

/**
 * Creates an empty table. The key is the keyed hash of the sealed session id. INVARIANT: a caller that opens many
 * sessions evicts its own; none with something under way, such as a server request that waits for its reply.
 */
export function createSessionStates(): SessionStates {
  const sessionStates = new OwnedMap<string, SessionState>({
    max: MAX_SESSIONS,
    maxPerOwner: MAX_SESSIONS_PER_CALLER,
    mayForget: isIdle,
  });

  function forget(session: string): void {
    const running = [...(sessionStates.get(session)?.running.values() ?? [])];
    sessionStates.delete(session);
    for (const runningRequest of running) runningRequest.abort();
  }

  return {
    getOrCreate(session, owner) {
      const sessionState = sessionStates.get(session) ?? emptySessionState();
      sessionStates.set(session, sessionState, owner);
      return sessionState;
    },
    find: (session) => sessionStates.get(session),
    forget,
    forgetWhere(isOver) {
      for (const session of [...sessionStates.keys()]) if (isOver(session)) forget(session);
    },
  };
}

function isIdle({ listeners, running, waiting }: SessionState): boolean {
  return listeners.size + running.size + waiting.size === 0;
}

function emptySessionState(): SessionState {
  return {
    logLevel: undefined,
    resources: new Set(),
    listeners: new Set(),
    running: new Map(),
    waiting: new Map(),
  };
}

/** A change of a session's state. */
export type SessionChange =
  | { readonly kind: 'log-level'; readonly level: string }
  | { readonly kind: 'subscribed'; readonly uri: string }
  | { readonly kind: 'unsubscribed'; readonly uri: string }
  | { readonly kind: 'cancelled'; readonly id: RequestId }
  | { readonly kind: 'answered'; readonly id: RequestId; readonly reply: ServerRequestReply };

/** `session` is the keyed hash of the sealed session id, `owner` the caller it belongs to. */
export type SessionMessage = {
  readonly session: string;
  readonly owner: string;
  readonly news: SessionChange;
};

/** Exchanges session messages with the other replicas. */
export type SessionBus = {
  /** The name of this replica. */
  readonly self: string;
  /** `nobody`: that replica no longer runs, or the message is too long. */
  send(
    replica: string,
    message: SessionMessage,
  ): Promise<DeliveryError | 'delivered' | 'undeliverable'>;
  /**
   * Delivers to every replica, including this one ({@link receiveSessionMessage}), in one order; or to none.
   */
  publish(message: SessionMessage): Promise<DeliveryError | 'delivered'>;
};

/** Why nothing was sent: the bus is unavailable, or too much of this owner's is under way. */
type DeliveryError = 'unavailable' | 'overloaded';

/** Messages of one owner under way: a quarter of what may be queued for a replica. */
export const MAX_MESSAGES_PER_OWNER = 64;
/** Messages of one owner that may wait: a client may subscribe to all resources of a session at once. */
export const MAX_WAITING_PER_OWNER = MAX_RESOURCES;

/** Creates a name that is hard to guess and identifies this replica, which alone can continue what it names. */
export function createReplicaScopedId({ self }: Pick<SessionBus, 'self'>): string {
  return `${self}.${randomUUID()}`;
}

/** The replica that created this name. */
export function replicaOf(name: RequestId): string {
  return String(name).split('.', 1)[0] ?? '';
}

/** Applies a change that was made on this or another replica. */
export function applySessionChange(sessionState: SessionState, change: SessionChange): void {
  switch (change.kind) {
    case 'log-level':
      sessionState.logLevel = change.level;
      return;
    case 'subscribed':
      if (sessionState.resources.has(change.uri) || sessionState.resources.size >= MAX_RESOURCES)
        return;
      sessionState.resources.add(change.uri);
      notifyListeners(sessionState);
      return;
    case 'unsubscribed':
      if (sessionState.resources.delete(change.uri)) notifyListeners(sessionState);
      return;
    case 'cancelled': {
      const running = sessionState.running.get(change.id);
      // Deferred so that the relay sees the cancellation first: a cancelled request gets no error response.
      if (running !== undefined) setImmediate(() => running.abort());
      return;
    }
    case 'answered':
      sessionState.waiting.get(change.id)?.(change.reply);
  }
}

function notifyListeners({ listeners }: SessionState): void {
  for (const notify of listeners) notify();
}

/** Applies a session message; cancellations and replies only where the session is already known. */
export function receiveSessionMessage(
  sessionStates: SessionStates,
  { session, owner, news: change }: SessionMessage,
): void {
  const needsKnownSession = change.kind === 'cancelled' || change.kind === 'answered';
  const sessionState = needsKnownSession
    ? sessionStates.find(session)
    : sessionStates.getOrCreate(session, owner);
  if (sessionState !== undefined) applySessionChange(sessionState, change);
}

/** One owner's messages: the number under way, and those waiting. */
type OwnerQueue = { inProgress: number; readonly waiting: (() => void)[] };

/**
 * Limits each owner's messages under way, because all owners share a replica's queue. Further messages wait,
 * and are refused if too many of the same owner wait already.
 */
export function limitSessionBus({ self, send, publish }: SessionBus): SessionBus {
  const queues = new Map<string, OwnerQueue>();

  /** True at once if there is capacity, a promise if the message must wait, false if too many wait. */
  function acquire(queue: OwnerQueue): boolean | Promise<void> {
    if (queue.inProgress < MAX_MESSAGES_PER_OWNER) {
      queue.inProgress += 1;
      return true;
    }
    if (queue.waiting.length >= MAX_WAITING_PER_OWNER) return false;
    return new Promise((resolve) => queue.waiting.push(resolve));
  }

  function release(owner: string, queue: OwnerQueue): void {
    const resolveNext = queue.waiting.shift();
    if (resolveNext !== undefined) resolveNext();
    else queue.inProgress -= 1;
    if (queue.inProgress === 0) queues.delete(owner);
  }

  async function withQuota<T>(
    { owner }: SessionMessage,
    deliver: () => Promise<T>,
  ): Promise<T | 'overloaded'> {
    const queue = queues.get(owner) ?? { inProgress: 0, waiting: [] };
    queues.set(owner, queue);
    const turn = acquire(queue);
    if (turn === false) return 'overloaded';
    if (turn instanceof Promise) await turn;
    try {
      return await deliver();
    } finally {
      release(owner, queue);
    }
  }

  return {
    self,
    send: (replica, message) => withQuota(message, () => send(replica, message)),
    publish: (message) => withQuota(message, () => publish(message)),
  };
}

/** A bus for a session that no other replica serves. */
export function localSessionBus(
  { self }: Pick<SessionBus, 'self'>,
  sessionStates: SessionStates,
): SessionBus {
  return {
    self,
    send: () => Promise.resolve('undeliverable'),
    publish(message) {
      receiveSessionMessage(sessionStates, message);
      return Promise.resolve('delivered');
    },
  };
}
