// Sessions with an upstream that the gateway opens for clients who have none. A session belongs to one
// caller: its key names issuer, subject and client, and nobody finds one under another key. Bounded, and
// ended when nobody has used it for a while.
// Source: MCP 2025-11-25, lifecycle and session management; contract §10 (never shared between principals).

import type { JsonObject } from '../../mcp/message.js';
import type { ForwardError } from '../../mcp/transport.js';
import type { Caller } from '../../policy/caller.js';

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

export type PoolSettings = {
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
