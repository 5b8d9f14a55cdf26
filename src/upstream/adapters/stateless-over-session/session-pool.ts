// Opens and pools upstream sessions for clients whose era has none. INVARIANT: a session belongs to one
// caller; its key contains issuer, subject and client, and it is never found under another key. The pool is
// bounded, and idle sessions are ended. Also bounds the messages queued to an upstream besides calls:
// responses to server requests, subscriptions and cancellations.
// Source: MCP 2025-11-25, lifecycle, logging and session management; docs/reference/limits.md#what-one-caller-may-use;
// docs/reference/state.md#sessions-on-any-replica.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Caller, ownerKey } from '../../../policy/principal.js';
import type { SessionTarget } from '../../../protocol/admitted-request.js';
import { renderJson } from '../../../protocol/json/request-ids.js';
import { isObject, type JsonObject } from '../../../protocol/jsonrpc.js';
import type { ForwardError } from '../../../protocol/transport.js';
import { isAliveByPing } from '../../../protocol/upstream-status.js';
import { SESSION_VERSIONS } from '../../../protocol/versions/revisions.js';
import { SESSION } from '../../../protocol/versions/session.js';
import { createQuota } from '../../../state/bounds.js';
import {
  type GatewayRequest,
  messageEndpointOf,
  type SessionRef,
  type SessionUpstream,
  upstreamIdOf,
} from '../../client.js';
import {
  COMMON_HEADERS,
  createSendRequest,
  type ExchangeError,
  type ExchangePorts,
  exchange,
  openSession,
  pingSession,
  type ServerSession,
  sessionHeaders,
  setUnheldTimer,
} from '../../exchange.js';
import type { TranslationSettings } from '../session-over-stateless/session-state.js';

/** A session as opened, before it is assigned to its caller. */
type SessionWithoutCaller = Omit<UpstreamSession, 'caller'>;

/** The parameters of the handshake. */
type HandshakeParams = {
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly logLevel: string | undefined;
};

const INITIALIZE_ID = 'sallyport-initialize';
const LOG_LEVEL_ID = 'sallyport-log-level';
/** Bytes of all responses of a handshake. */
const MAX_HANDSHAKE_BYTES = 1024 * 1024;

const FORWARD_ERRORS: { readonly [why in ExchangeError]: ForwardError } = {
  'too-large': 'upstream-protocol',
  unavailable: 'upstream-unavailable',
  timeout: 'upstream-timeout',
  credentials: 'upstream-credentials',
  protocol: 'upstream-protocol',
};

/**
 * Opens a session: `initialize` with what the caller declared and was granted, then
 * `notifications/initialized`, then the log level. Returns the reason if that fails.
 */
export async function openUpstreamSession(
  ports: ExchangePorts,
  { version, capabilities, clientInfo, logLevel }: HandshakeParams,
): Promise<SessionWithoutCaller | ForwardError> {
  const budget = {
    bytesLeft: MAX_HANDSHAKE_BYTES,
    deadlineMs: ports.now() + ports.requestTimeoutMs,
  };
  // No id of the requests that follow in the session, which are those of the pool or of a client.
  const handshake = { version, capabilities, clientInfo, id: INITIALIZE_ID };
  const outcome = await openSession(ports, handshake, SESSION_VERSIONS, budget);
  if (outcome.kind === 'failed') return FORWARD_ERRORS[outcome.why];
  if (outcome.kind !== 'opened') return 'upstream-protocol';
  const session = sessionOf(outcome.session);
  const headers = sessionHeadersOf(session);
  if (logLevel !== undefined && isObject(session.handshake['capabilities'])) {
    const isLogging = isObject(session.handshake['capabilities']['logging']);
    // If the server refuses the level, it keeps its own; what the caller did not ask for is not forwarded.
    const level = {
      ...{ protocol: SESSION, version, params: { level: logLevel }, headers, id: LOG_LEVEL_ID },
    };
    if (isLogging) await exchange(ports, { ...level, method: 'logging/setLevel' }, budget);
  }
  return session;
}

function sessionOf({ version, id, result }: ServerSession): SessionWithoutCaller {
  return { version, target: { kind: 'upstream', id }, handshake: result };
}

/** The headers of a request within a session. */
export function sessionHeadersOf(session: SessionRef): Record<string, string> {
  return sessionHeaders(session.version, upstreamIdOf(session));
}

/** A session as the upstream opened it. */
export type UpstreamSession = {
  readonly version: string;
  readonly target: SessionTarget;
  /** The server's `initialize` result. */
  readonly handshake: JsonObject;
  /** On whose behalf the session was opened and is ended. Without a token. */
  readonly caller: Caller;
};

/** A session in use. Request ids in it are the gateway's own and unique. */
export type PooledSession = UpstreamSession & {
  readonly key: string;
  nextId(): number;
  /** Ends one use. A session in use is never ended for being idle. */
  release(): void;
};

export type SessionPool = {
  /** Returns the session with this key, opening it if there is none. */
  acquire(key: string, open: () => Promise<UpstreamSession | ForwardError>): Promise<PooledSession | ForwardError>;
  /** Removes a session that the upstream has lost, so that the next request opens another. */
  forget(session: PooledSession): void;
  /** Ends all sessions, those too that are still being opened; waits a bounded time. No session is opened again. */
  close(): Promise<void>;
};

type PoolSettings = {
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly now: () => number;
  /** Ends a session at the upstream. */
  readonly end: (session: UpstreamSession) => Promise<void>;
};

type Entry = {
  readonly opening: Promise<UpstreamSession | ForwardError>;
  session: UpstreamSession | undefined;
  uses: number;
  usedAtMs: number;
  lastId: number;
};

/** The handshake uses the first id. */
const FIRST_ID = 1;
const SWEEPS_PER_IDLE_TIME = 2;
/** How long closing waits for the ends of sessions. Milliseconds. */
const CLOSE_WITHIN_MS = 1_000;

/** Creates an empty pool. */
export function createSessionPool(settings: PoolSettings): SessionPool {
  const { maxSessions, idleMs, now } = settings;
  const entries = new Map<string, Entry>();
  const sweeping = setInterval(sweep, Math.max(idleMs / SWEEPS_PER_IDLE_TIME, 1));
  sweeping.unref();
  let isClosed = false;

  async function endEntry(key: string, entry: Entry): Promise<void> {
    if (entries.get(key) === entry) entries.delete(key);
    const session = entry.session ?? (await entry.opening);
    if (typeof session !== 'string') await settings.end(session);
  }

  function sweep(): void {
    for (const [key, entry] of entries) {
      if (entry.uses === 0 && now() - entry.usedAtMs >= idleMs) void endEntry(key, entry);
    }
  }

  /** Ends the unused session that was used least recently if the pool is full; false if all are in use. */
  function evictIdle(): boolean {
    if (entries.size < maxSessions) return true;
    for (const [key, entry] of entries) {
      if (entry.uses > 0) continue;
      void endEntry(key, entry);
      return true;
    }
    return false;
  }

  function addEntry(key: string, open: () => Promise<UpstreamSession | ForwardError>): Entry {
    const entry: Entry = {
      opening: open(),
      session: undefined,
      uses: 0,
      usedAtMs: now(),
      lastId: FIRST_ID,
    };
    entries.set(key, entry);
    return entry;
  }

  return {
    async acquire(key, open) {
      if (isClosed) return 'upstream-unavailable';
      let entry = entries.get(key);
      if (entry === undefined) {
        if (!evictIdle()) return 'upstream-unavailable';
        entry = addEntry(key, open);
      } else {
        // INVARIANT: the map is ordered by last use.
        entries.delete(key);
        entries.set(key, entry);
      }
      const acquired = entry;
      acquired.uses += 1;
      const session = await acquired.opening;
      acquired.usedAtMs = now();
      if (typeof session === 'string') {
        if (entries.get(key) === acquired) entries.delete(key);
        return session;
      }
      if (isClosed) return 'upstream-unavailable';
      acquired.session = session;
      return createPooledSession(key, session, acquired, now);
    },
    forget(session) {
      const entry = entries.get(session.key);
      if (entry?.session?.target === session.target) entries.delete(session.key);
    },
    async close() {
      isClosed = true;
      clearInterval(sweeping);
      const ending = Promise.allSettled([...entries].map((entry) => endEntry(...entry)));
      await Promise.race([ending, sleep(CLOSE_WITHIN_MS, undefined, { ref: false })]);
    },
  };
}

function createPooledSession(
  key: string,
  { version, target, handshake, caller }: UpstreamSession,
  entry: Entry,
  now: () => number,
): PooledSession {
  let isReleased = false;
  // No copy with further members, which would have a hidden class of its own for each request.
  return {
    version,
    target,
    handshake,
    caller,
    key,
    nextId() {
      entry.lastId += 1;
      return entry.lastId;
    },
    release() {
      if (isReleased) return;
      isReleased = true;
      entry.uses -= 1;
      entry.usedAtMs = now();
    },
  };
}

/** Messages under way, per caller and in total, and their bytes. */
export const MAX_OUTBOUND_PER_CALLER = 1_024;
const MAX_OUTBOUND = 8_192;
export const MAX_OUTBOUND_BYTES_PER_CALLER = 4 * 1024 * 1024;
const MAX_OUTBOUND_BYTES = 64 * 1024 * 1024;
/** The gateway's own responses under way per caller; a server that asks faster gets no response. */
export const MAX_OWN_RESPONSES_PER_CALLER = 16;

/** A message with its owner and size. `isFromGateway`: a response of the gateway's own. */
type OutboundMessage = {
  readonly owner: string;
  readonly bytes: number;
  readonly isFromGateway: boolean;
};

type OutboundQueue = {
  /** Takes a slot, which the returned function gives back; `undefined` if none is free. */
  acquireSlot(message: OutboundMessage): (() => void) | undefined;
};

/**
 * Creates an empty queue. Each message waits for a connection and counts until it is sent; the limits per
 * caller keep one caller from using up the total.
 */
export function createOutboundQueue(): OutboundQueue {
  const messages = createQuota({ total: MAX_OUTBOUND, perOwner: MAX_OUTBOUND_PER_CALLER });
  // A single message may be of any size, because the request limits already bounded it.
  const sizes = createQuota({
    total: MAX_OUTBOUND_BYTES,
    perOwner: MAX_OUTBOUND_BYTES_PER_CALLER,
  });
  return {
    acquireSlot({ owner, bytes, isFromGateway }) {
      if (isFromGateway && messages.usedBy(owner) >= MAX_OWN_RESPONSES_PER_CALLER) return undefined;
      if (!messages.take(owner)) return undefined;
      if (sizes.take(owner, bytes))
        return () => {
          messages.give(owner);
          sizes.give(owner, bytes);
        };
      messages.give(owner);
      return undefined;
    },
  };
}

/**
 * Sends a message in a caller's session; the response is not read. Returns false, without sending, if too
 * much is queued. A text is sent as it is. `isFromGateway`: a response of the gateway's own, which may be dropped.
 */
export type SendInSession = (
  session: SessionRef,
  caller: Caller,
  message: JsonObject | string,
  isFromGateway?: boolean,
) => boolean;

/** Creates the sender for one upstream. */
export function createSessionSender({
  client,
  requestTimeoutMs: timeoutMs,
}: Pick<TranslationSettings, 'client' | 'requestTimeoutMs'>): SendInSession {
  const outboundQueue = createOutboundQueue();
  return (session, caller, message, isOwn = false) => {
    const body = typeof message === 'string' ? message : renderJson(message);
    const bytes = Buffer.byteLength(body);
    const leave = outboundQueue.acquireSlot({
      owner: ownerKey(caller.principal),
      bytes,
      isFromGateway: isOwn,
    });
    if (leave === undefined) return false;
    void postInSession(client, session, { caller, body, timeoutMs }).then(leave);
    return true;
  };
}

/** Numbers pings, so that two under way in one session have ids of their own. */
let lastPing = 0;
/** A pong is short; a server that sends more has not answered. */
const MAX_PONG_BYTES = 64 * 1024;

/**
 * Whether the server answers a ping in the session. A server of legacy SSE answers on its stream, which others read, so
 * there the status of the POST must do. Never rejects.
 */
export async function pingInSession(
  client: Pick<SessionUpstream, 'request'>,
  session: SessionRef,
  caller: Caller,
  timeoutMs: number,
): Promise<boolean> {
  lastPing += 1;
  const id = `sallyport-ping-${lastPing}`;
  const target = messageEndpointOf(session);
  if (target === undefined) {
    const request = createSendRequest(client, caller);
    const ports = { request, now: Date.now, setTimer: setUnheldTimer, requestTimeoutMs: timeoutMs };
    const call = { version: session.version, headers: sessionHeadersOf(session), id };
    return pingSession(ports, call, { bytesLeft: MAX_PONG_BYTES, deadlineMs: Date.now() + timeoutMs });
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' });
  const outcome = await client.request({ caller, method: 'POST', target, headers: COMMON_HEADERS, body, timeoutMs });
  if (outcome.kind === 'error') return false;
  outcome.release();
  return isAliveByPing(outcome.status, undefined, outcome.status < FIRST_REFUSAL);
}

const FIRST_REFUSAL = 300;

/** Posts a message in a session; the response is not read. A legacy SSE session has a message endpoint of its own. */
export async function postInSession(
  client: Pick<SessionUpstream, 'request'>,
  session: SessionRef,
  { caller, body = '', timeoutMs }: Pick<GatewayRequest, 'caller' | 'body' | 'timeoutMs'>,
): Promise<void> {
  const target = messageEndpointOf(session);
  const own = target === undefined ? sessionHeadersOf(session) : {};
  const headers = { ...COMMON_HEADERS, ...own };
  const method = 'POST';
  const outcome = await client.request({ caller, method, target, headers, body, timeoutMs, isOneWay: true });
  if (outcome.kind === 'response') outcome.release();
}
