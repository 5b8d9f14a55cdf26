// Sessions that were opened a moment ago, by the caller who opened them: a busy client sends its id with
// every request, and opening a seal costs more than all other steps of admission. Remembers for a minute
// and for few ids a caller; forgets with the caller, whose object lives no longer than its token's cache.

import type { SessionFacts } from '../mcp/admitted.js';
import type { Principal } from '../policy/principal.js';

/**
 * An opened session with the keyed hash of its sealed id, for records; `hashes` are all those by which it
 * may have ended, under every key, and `partHashes` those of the sessions that it holds.
 */
export type OpenedSession = SessionFacts & {
  readonly hash: string;
  readonly hashes: readonly string[];
  readonly backendSessionHashes: readonly string[];
};

const REMEMBERED_MS = 60_000;
const MAX_A_CALLER = 32;

type Entry = { readonly opened: OpenedSession; readonly untilMs: number };

/**
 * A memory in front of `open`, which is asked for what is not remembered. Only successes are kept, and
 * a caller's are never found by another: the key is the caller's own object.
 */
export function createOpenedSessions(
  open: (sealed: string, upstream: string, principal: Principal) => OpenedSession | undefined,
  now: () => number,
): typeof open {
  const known = new WeakMap<Principal, Map<string, Entry>>();
  return (sealed, upstream, principal) => {
    const key = `${upstream} ${sealed}`;
    const own = known.get(principal) ?? new Map<string, Entry>();
    const entry = own.get(key);
    if (entry !== undefined && entry.untilMs > now()) return entry.opened;
    const opened = open(sealed, upstream, principal);
    if (opened === undefined) {
      own.delete(key);
      return undefined;
    }
    if (own.size >= MAX_A_CALLER) own.clear();
    own.set(key, { opened, untilMs: now() + REMEMBERED_MS });
    known.set(principal, own);
    return opened;
  };
}
