// Sessions with an upstream that the gateway opens for clients who have none. A session belongs to one
// caller: its key names issuer, subject and client, and nobody finds one under another key. Bounded, and
// ended when nobody has used it for a while.
// Source: MCP 2025-11-25, lifecycle and session management; docs/contract.md §10 (never shared between principals).

import type { Caller } from '../../../policy/principal.js';
import { isObject, type JsonObject } from '../../../protocol/jsonrpc.js';
import type { ForwardError } from '../../../protocol/transport.js';
import {
  FIRST_VERSION_WITH_HEADER,
  SESSION_VERSIONS,
} from '../../../protocol/versions/revisions.js';
import {
  type CallPorts,
  callUpstream,
  type ListingError,
  notifyUpstream,
} from '../../discovery/request.js';
import type { TranslationSettings } from '../session-over-stateless/adapter.js';

import { ownerOf } from '../session-over-stateless/session-state.js';

// Opens a session of the gateway's own with an upstream, for a caller whose era has none: initialize with
// what that caller declared and was granted, then initialized, then the level of its log.
// Source: MCP 2025-11-25, lifecycle; logging.

/** A session as it was opened, before anybody is said to own it. */
type Opened = Omit<UpstreamSession, 'caller'>;

/** What a session is opened with. */
type SessionTerms = {
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly logLevel: string | undefined;
};

/** Bytes of a handshake. */
const MAX_HANDSHAKE_BYTES = 1024 * 1024;
/** Visible ASCII (MCP 2025-11-25, session management). */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;

const FORWARD_ERRORS: { readonly [why in ListingError]: ForwardError } = {
  'too-large': 'upstream-protocol',
  unavailable: 'upstream-unavailable',
  timeout: 'upstream-timeout',
  credentials: 'upstream-credentials',
  protocol: 'upstream-protocol',
};

/** Opens one, or says why there is none. */
export async function openUpstreamSession(
  ports: CallPorts,
  { version, capabilities, clientInfo, logLevel }: SessionTerms,
): Promise<Opened | ForwardError> {
  const budget = {
    bytesLeft: MAX_HANDSHAKE_BYTES,
    deadlineMs: ports.now() + ports.requestTimeoutMs,
  };
  const params = { protocolVersion: version, capabilities, clientInfo };
  const call = { era: '2025', version, method: 'initialize', params, headers: {} } as const;
  const response = await callUpstream(ports, call, budget);
  if (response.kind === 'failed') return FORWARD_ERRORS[response.why];
  const session =
    response.kind === 'result' ? readOpened(response.result, response.headers) : undefined;
  if (session === undefined) return 'upstream-protocol';
  const headers = headersIn(session);
  const notified = await notifyUpstream(ports, headers, 'notifications/initialized', budget);
  if (notified.kind === 'failed') return FORWARD_ERRORS[notified.why];
  if (notified.kind === 'refused') return 'upstream-protocol';
  if (logLevel !== undefined && isObject(session.handshake['capabilities'])) {
    const isLogging = isObject(session.handshake['capabilities']['logging']);
    // A server that will not set it logs as it likes; what nobody asked for is not passed on.
    const level = { era: '2025', version, params: { level: logLevel }, headers } as const;
    if (isLogging) await callUpstream(ports, { ...level, method: 'logging/setLevel' }, budget);
  }
  return session;
}

/** The session that a handshake opened; `undefined` where its answer is none that is carried. */
export function readOpened(
  result: JsonObject,
  headers: { readonly [name: string]: string | undefined },
): Opened | undefined {
  const version = result['protocolVersion'];
  const id = headers['mcp-session-id'];
  if (typeof version !== 'string' || !SESSION_VERSIONS.includes(version)) return undefined;
  if (!isObject(result['capabilities'])) return undefined;
  if (id !== undefined && !SESSION_ID.test(id)) return undefined;
  return { version, upstreamSession: id, handshake: result };
}

/** The headers of a request within a session. */
export function headersIn({
  version,
  upstreamSession,
}: Pick<UpstreamSession, 'version' | 'upstreamSession'>): Record<string, string> {
  const headers: Record<string, string> = {};
  if (version >= FIRST_VERSION_WITH_HEADER) headers['mcp-protocol-version'] = version;
  if (upstreamSession !== undefined) headers['mcp-session-id'] = upstreamSession;
  return headers;
}

/** A session as the upstream opened it. */
export type UpstreamSession = {
  readonly version: string;
  readonly upstreamSession: string | undefined;
  /** What the server said of itself. */
  readonly handshake: JsonObject;
  /** Who opened it: on whose behalf it is ended. Without a token. */
  readonly caller: Caller;
};

/** A session at work. Ids within it are the gateway's own, and unique. */
export type PooledSession = UpstreamSession & {
  readonly key: string;
  nextId(): number;
  /** Ends one use; a session in use is not ended for being idle. */
  release(): void;
};

export type SessionPool = {
  /** The session of this key, opened where there is none. */
  take(
    key: string,
    open: () => Promise<UpstreamSession | ForwardError>,
  ): Promise<PooledSession | ForwardError>;
  /** The upstream no longer knows it: the next one who asks gets another. */
  forget(session: PooledSession): void;
  /** Ends all of them. */
  close(): void;
};

type PoolSettings = {
  readonly maxSessions: number;
  readonly idleMs: number;
  readonly now: () => number;
  /** Tells the upstream that a session is over. */
  readonly end: (session: UpstreamSession) => void;
};

type Entry = {
  readonly opening: Promise<UpstreamSession | ForwardError>;
  session: UpstreamSession | undefined;
  uses: number;
  usedAtMs: number;
  lastId: number;
};

/** The handshake takes the first. */
const FIRST_ID = 1;
const SWEEPS_AN_IDLE_TIME = 2;

/** An empty pool. */
export function createSessionPool(settings: PoolSettings): SessionPool {
  const { maxSessions, idleMs, now } = settings;
  const entries = new Map<string, Entry>();
  const sweeping = setInterval(sweep, Math.max(idleMs / SWEEPS_AN_IDLE_TIME, 1));
  sweeping.unref();

  function endEntry(key: string, entry: Entry): void {
    if (entries.get(key) === entry) entries.delete(key);
    if (entry.session !== undefined) settings.end(entry.session);
  }

  function sweep(): void {
    for (const [key, entry] of entries) {
      if (entry.uses === 0 && now() - entry.usedAtMs >= idleMs) endEntry(key, entry);
    }
  }

  /** Makes room for one more: of those that nobody uses the one that rested longest goes. */
  function makeCapacity(): boolean {
    if (entries.size < maxSessions) return true;
    for (const [key, entry] of entries) {
      if (entry.uses > 0) continue;
      endEntry(key, entry);
      return true;
    }
    return false;
  }

  function enter(key: string, open: () => Promise<UpstreamSession | ForwardError>): Entry {
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
    async take(key, open) {
      let entry = entries.get(key);
      if (entry === undefined) {
        if (!makeCapacity()) return 'upstream-unavailable';
        entry = enter(key, open);
      } else {
        // The last in the order of the map is the one used last.
        entries.delete(key);
        entries.set(key, entry);
      }
      const taken = entry;
      taken.uses += 1;
      const session = await taken.opening;
      taken.usedAtMs = now();
      if (typeof session === 'string') {
        if (entries.get(key) === taken) entries.delete(key);
        return session;
      }
      taken.session = session;
      return pooled(key, session, taken, now);
    },
    forget(session) {
      const entry = entries.get(session.key);
      if (entry?.session?.upstreamSession === session.upstreamSession) entries.delete(session.key);
    },
    close() {
      clearInterval(sweeping);
      for (const [key, entry] of entries) endEntry(key, entry);
    },
  };
}

function pooled(
  key: string,
  session: UpstreamSession,
  entry: Entry,
  now: () => number,
): PooledSession {
  let isReleased = false;
  return {
    ...session,
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

// How much may be on its way to an upstream of sessions besides calls: answers to its questions, subscriptions,
// cancellations. Each waits for a connection and is held until it has left; a caller's share is never everyone's.
// Source: docs/contract.md §3 (limits).

/** Messages under way, of one caller and of all, and their bytes. */
export const MAX_OUTBOUND_PER_CALLER = 1_024;
const MAX_OUTBOUND = 8_192;
export const MAX_OUTBOUND_BYTES_PER_CALLER = 4 * 1024 * 1024;
const MAX_OUTBOUND_BYTES = 64 * 1024 * 1024;
/** What the gateway itself answers in one caller's sessions; a server that asks faster goes unanswered. */
export const MAX_OWN_A_CALLER = 16;

type Usage = { count: number; bytes: number };

/** A message: whose, how long, and whether it is the gateway's own answer. */
type OutboundMessage = {
  readonly owner: string;
  readonly bytes: number;
  readonly isOwn: boolean;
};

type OutboundQueue = {
  /** Takes a place, which the returned function gives back; `undefined` where there is none. */
  enter(message: OutboundMessage): (() => void) | undefined;
};

/** Nothing under way. */
export function createOutboundQueue(): OutboundQueue {
  const all: Usage = { count: 0, bytes: 0 };
  const usageByOwner = new Map<string, Usage>();

  function take(usage: Usage, count: number, bytes: number): void {
    usage.count += count;
    usage.bytes += bytes;
  }

  return {
    enter({ owner, bytes, isOwn }) {
      const own = usageByOwner.get(owner) ?? { count: 0, bytes: 0 };
      const maxOwn = isOwn ? MAX_OWN_A_CALLER : MAX_OUTBOUND_PER_CALLER;
      const hasCapacity =
        fits(own, bytes, maxOwn, MAX_OUTBOUND_BYTES_PER_CALLER) &&
        fits(all, bytes, MAX_OUTBOUND, MAX_OUTBOUND_BYTES);
      if (!hasCapacity) return undefined;
      usageByOwner.set(owner, own);
      for (const usage of [own, all]) take(usage, 1, bytes);
      return () => {
        for (const usage of [own, all]) take(usage, -1, -bytes);
        if (own.count === 0) usageByOwner.delete(owner);
      };
    },
  };
}

/** One alone may be as long as a request may: it was taken from a client within its limit. */
function fits(usage: Usage, bytes: number, maxCount: number, maxBytes: number): boolean {
  return usage.count === 0 || (usage.count < maxCount && usage.bytes + bytes <= maxBytes);
}

/**
 * Says something in a caller's session; what is answered is not read. False where too much is on its way: then it
 * is not said. `isOwn`: an answer of the gateway's own, which may go unsaid.
 */
export type SendInSession = (
  session: Pick<UpstreamSession, 'version' | 'upstreamSession'>,
  by: Caller,
  message: JsonObject,
  isOwn?: boolean,
) => boolean;

/** Says things to one upstream. */
export function createSessionSender({
  client,
  requestTimeoutMs: timeoutMs,
}: Pick<TranslationSettings, 'client' | 'requestTimeoutMs'>): SendInSession {
  const outboundQueue = createOutboundQueue();
  return (session, by, message, isOwn = false) => {
    const body = JSON.stringify(message);
    const bytes = Buffer.byteLength(body);
    const leave = outboundQueue.enter({ owner: ownerOf(by.principal), bytes, isOwn });
    if (leave === undefined) return false;
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headersIn(session),
    };
    void client.request({ by, method: 'POST', headers, body, timeoutMs }).then((outcome) => {
      leave();
      if (outcome.kind === 'answer') outcome.release();
    });
    return true;
  };
}
