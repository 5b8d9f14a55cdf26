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
