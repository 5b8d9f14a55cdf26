// The state of sessions that only the gateway knows, because their upstream is stateless: the log level and
// subscriptions that every request must carry, and what is under way. Changes, cancellations and replies to
// server requests are sent to the other replicas, so that a session behaves the same on each of them;
// requests and streams stay on the replica that runs them. Bounded, per caller first: eviction can cost a log
// level or a subscription, but never a control, and never anything that is under way. Also the GET stream of such a
// session: one subscription at the upstream, replaced whenever the session's subscriptions change.
// Source: MCP 2025-11-25, logging, resources (subscriptions), cancellation, transports (listening for messages);
// MCP 2026-07-28, subscriptions; docs/reference/state.md#sessions-on-any-replica.

import { randomUUID } from 'node:crypto';
import type { Caller } from '../../../policy/principal.js';
import type { Json, RequestId, RpcError } from '../../../protocol/jsonrpc.js';
import { isEventStream } from '../../../protocol/sse.js';
import type {
  DisconnectController,
  DisconnectSignal,
  ForwardOutcome,
  UpstreamResponse,
} from '../../../protocol/transport.js';
import { errorOfStatus } from '../../../protocol/upstream-status.js';
import { OwnedMap } from '../../../state/bounds.js';
import type { SessionUpstream } from '../../client.js';
import {
  bodyResponse,
  type MessageReader,
  type OutboundItem,
  type OutboundItems,
  type ReadBounds,
  readMessages,
  streamResponse,
} from '../../response-messages.js';
import { gatewayForm, type RequestEnvelope, toSessionNotification } from '../message-translation.js';

/** A client's reply to a server request. */
export type ServerRequestReply =
  /** `text`: the result as JSON, as the client wrote it, because its numbers may be ones that no double holds. */
  { readonly kind: 'result'; readonly text: string } | { readonly kind: 'error'; readonly error: RpcError | undefined };

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
  send(replica: string, message: SessionMessage): Promise<DeliveryError | 'delivered' | 'undeliverable'>;
  /**
   * Delivers to every replica, including this one ({@link receiveSessionMessage}), in one order; or to none.
   */
  publish(message: SessionMessage): Promise<DeliveryError | 'delivered'>;
};

/** What the translations of one upstream's messages, in either direction, are created with. */
export type TranslationSettings = {
  readonly client: SessionUpstream;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly messageReader?: MessageReader | undefined;
  /** Sent to upstreams in `clientInfo`. */
  readonly gatewayVersion: string;
  readonly sessionBus: SessionBus;
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
      if (sessionState.resources.has(change.uri) || sessionState.resources.size >= MAX_RESOURCES) return;
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
  const sessionState = needsKnownSession ? sessionStates.find(session) : sessionStates.getOrCreate(session, owner);
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

  async function withQuota<T>({ owner }: SessionMessage, deliver: () => Promise<T>): Promise<T | 'overloaded'> {
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
export function localSessionBus({ self }: Pick<SessionBus, 'self'>, sessionStates: SessionStates): SessionBus {
  return {
    self,
    send: () => Promise.resolve('undeliverable'),
    publish(message) {
      receiveSessionMessage(sessionStates, message);
      return Promise.resolve('delivered');
    },
  };
}

type StreamDependencies = ReadBounds & {
  readonly client: Pick<SessionUpstream, 'subscribe'>;
  readonly caller: Caller;
  readonly envelope: RequestEnvelope;
  readonly readableOf: (uris: Iterable<string>) => Promise<readonly string[]>;
};

const LISTEN_ID = 1;

/**
 * Opens the stream of a session: the response to its GET. If the upstream has no subscriptions, it has no stream (405),
 * and the client gets only what the gateway itself observes.
 */
export async function listenForSession(
  dependencies: StreamDependencies,
  sessionState: SessionState,
  signal: DisconnectSignal,
): Promise<ForwardOutcome> {
  if (signal.aborted) return { kind: 'error', reason: 'upstream-unavailable' };
  const stop = new AbortController();
  const end = (): void => stop.abort();
  signal.addEventListener('abort', end, { once: true });
  // The signal may be that of a client that opens many such streams, one after the other.
  stop.signal.addEventListener('abort', () => signal.removeEventListener('abort', end), {
    once: true,
  });
  const first = await subscribe(dependencies, sessionState, stop.signal);
  if (first.kind === 'error') {
    end();
    return first;
  }
  if (!isEventStream(first.response)) {
    const { status } = first.response;
    first.response.release();
    end();
    const reason = errorOfStatus(status);
    if (reason !== undefined) return { kind: 'error', reason };
    return bodyResponse(status >= 500 ? status : 405);
  }
  return streamResponse(relaySubscriptions(dependencies, sessionState, first, stop), {
    release: end,
    abort: end,
  });
}

type Subscribed =
  | {
      readonly kind: 'subscribed';
      readonly response: UpstreamResponse;
      readonly isSuperseded: () => boolean;
    }
  | Extract<ForwardOutcome, { readonly kind: 'error' }>;

/**
 * Subscribes to the session's current resources that the caller may still read. When they change the subscription is
 * ended, but not before it was answered, so that any number of changes meanwhile costs only one more request.
 */
async function subscribe(
  { client, caller, envelope, readableOf }: StreamDependencies,
  sessionState: SessionState,
  signal: DisconnectSignal,
): Promise<Subscribed> {
  let isOutdated = false;
  let hasResponse = false;
  const controller = new AbortController();
  const end = (): void => {
    sessionState.listeners.delete(resubscribe);
    signal.removeEventListener('abort', end);
    controller.abort();
  };
  function resubscribe(): void {
    isOutdated = true;
    if (hasResponse) end();
  }
  sessionState.listeners.add(resubscribe);
  signal.addEventListener('abort', end, { once: true });
  const notifications: Record<string, Json> = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
  };
  // A copy, because the resources may change while they are decided about.
  const uris = await readableOf([...sessionState.resources]);
  if (uris.length > 0) notifications['resourceSubscriptions'] = uris;
  const form = gatewayForm('subscriptions/listen', LISTEN_ID, { notifications }, envelope);
  const outcome = await client.subscribe(form, caller, controller.signal);
  hasResponse = true;
  if (isOutdated || outcome.kind === 'error') end();
  if (outcome.kind === 'error') return outcome;
  return { kind: 'subscribed', response: outcome, isSuperseded: () => isOutdated };
}

async function* relaySubscriptions(
  dependencies: StreamDependencies,
  sessionState: SessionState,
  first: Extract<Subscribed, { readonly kind: 'subscribed' }>,
  stop: AbortController,
): OutboundItems {
  let current = first;
  try {
    for (;;) {
      yield* relaySubscription(current, dependencies);
      if (!current.isSuperseded() || stop.signal.aborted) return;
      const next = await subscribe(dependencies, sessionState, stop.signal);
      if (next.kind === 'error') return yield next;
      current = next;
    }
  } finally {
    // The upstream may have ended it; the session's listener must be removed in any case.
    stop.abort();
  }
}

async function* relaySubscription(
  { response, isSuperseded }: Extract<Subscribed, { readonly kind: 'subscribed' }>,
  bounds: ReadBounds,
): OutboundItems {
  for await (const inbound of readMessages(response, bounds)) {
    // A subscription that was replaced by another ends with an error of its own.
    if (inbound.kind === 'error' && isSuperseded()) return;
    const outbound = inbound.kind === 'message' ? notificationOf(inbound.text, inbound.value) : inbound;
    if (outbound !== undefined) yield outbound;
  }
}

/** What cannot be read is passed on as it is: the check of the session's stream drops and records it. */
function notificationOf(text: string, value: Json | undefined): OutboundItem | undefined {
  const translated = value === undefined ? text : toSessionNotification(text, value);
  return translated === undefined ? undefined : { kind: 'message', text: translated };
}
