// A cache of the sessions that callers opened a moment ago, in the memory of one replica.

import type { Principal } from '../policy/principal.js';
import type { SessionFacts } from '../protocol/admitted-request.js';
import { BoundedMap } from './bounds.js';

/**
 * An opened session with the keyed hash of its sealed id, for records. `hashes` are its hashes under every key, any of
 * which may be recorded as ended; `backendSessionHashes` are those of the backend sessions in it.
 */
type OpenedSession = SessionFacts & {
  readonly hash: string;
  readonly hashes: readonly string[];
  readonly backendSessionHashes: readonly string[];
};

const OPENED_SESSION_MS = 60_000;
const MAX_SESSIONS_PER_CALLER = 32;

/** Longer than an opened session is cached: one in use is opened again sooner. */
const COUNTED_MS = 5 * OPENED_SESSION_MS;
/** Of more, those used least lately are not counted. */
const MAX_COUNTED = 50_000;

export type SessionCount = {
  /** A session was opened again. `parts`: the keyed hashes of the sessions in it, which count with it. */
  note(hash: string, version: string, parts: readonly string[]): void;
  forget(hash: string): void;
  /** How many were used within the last minutes, by their revisions. */
  count(): ReadonlyMap<string, number>;
};

/** No replica keeps a list of sessions, because their ids are sealed: this counts those that it has served lately. */
export function createSessionCount(now: () => number): SessionCount {
  const used = new BoundedMap<string, { readonly atMs: number; readonly version: string | undefined }>(MAX_COUNTED);
  return {
    note(hash, version, parts) {
      const isPart = used.has(hash) && used.get(hash)?.version === undefined;
      used.set(hash, { atMs: now(), version: isPart ? undefined : version });
      for (const part of parts) used.set(part, { atMs: now(), version: undefined });
    },
    forget: (hash) => void used.delete(hash),
    count() {
      const counts = new Map<string, number>();
      for (const [hash, { atMs, version }] of used) {
        if (now() - atMs >= COUNTED_MS) used.delete(hash);
        else if (version !== undefined) counts.set(version, (counts.get(version) ?? 0) + 1);
      }
      return counts;
    },
  };
}

type CachedSession = { readonly opened: OpenedSession; readonly expiresAtMs: number };

/**
 * A cache in front of `open`, because a client sends its session id with every request and opening it costs more than
 * all other steps of admission. Keeps only successes, for a minute and for few ids per caller. The key is the caller's
 * own object, so no caller finds another's sessions, and the entries live no longer than the token cache keeps it.
 */
export function createOpenedSessions(
  open: (sealed: string, upstream: string, principal: Principal) => OpenedSession | undefined,
  now: () => number,
): typeof open {
  const known = new WeakMap<Principal, BoundedMap<string, CachedSession>>();
  return (sealed, upstream, principal) => {
    const key = `${upstream} ${sealed}`;
    const sessionsOfPrincipal = known.get(principal) ?? new BoundedMap<string, CachedSession>(MAX_SESSIONS_PER_CALLER);
    const entry = sessionsOfPrincipal.get(key);
    if (entry !== undefined && entry.expiresAtMs > now()) return entry.opened;
    const opened = open(sealed, upstream, principal);
    if (opened === undefined) {
      sessionsOfPrincipal.delete(key);
      return undefined;
    }
    sessionsOfPrincipal.set(key, { opened, expiresAtMs: now() + OPENED_SESSION_MS });
    known.set(principal, sessionsOfPrincipal);
    return opened;
  };
}
