// The tasks that callers were given of late, by the server's own id: so that a list, or a word of the server
// about one, can be told by the id that its client knows. One replica's memory, bounded a caller and in all;
// what is not found is not told, and the client, who has the sealed id, asks by it.
// Source: MCP 2025-11-25, tasks (listing, status notifications, related tasks).

import type { Principal } from '../policy/principal.js';
import type { OpenedTask, SessionFacts } from '../protocol/admitted-request.js';
import type { RequestId } from '../protocol/jsonrpc.js';
import { LiveTable } from './live-map.js';

// The questions that were passed on a moment ago, by session and the server's own id, so that a server can
// take one back: its cancellation names its own id, which the client has never seen. One replica's memory,
// bounded; a question that is not found is not cancelled, and its answer then goes to a server that ignores it.
// Source: MCP 2025-11-25, cancellation.

/** Past this many, the oldest are forgotten first. */
const MAX_REMEMBERED = 4096;

type PassedServerRequests = {
  /** `session` is the keyed hash of the session's sealed id; `sealed` the id that the client saw. */
  add(session: string, id: RequestId, sealed: string): void;
  find(session: string, id: RequestId): string | undefined;
};

/** An empty memory. */
export function createPassedServerRequests(): PassedServerRequests {
  const asked = new Map<string, string>();
  return {
    add(session, id, sealed) {
      const [oldest] = asked.keys();
      if (asked.size >= MAX_REMEMBERED && oldest !== undefined) asked.delete(oldest);
      asked.set(keyOf(session, id), sealed);
    },
    find: (session, id) => asked.get(keyOf(session, id)),
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}

/** Tasks of one caller, and of all, past which the oldest are forgotten first. */
export const MAX_TASKS_A_CALLER = 256;
const MAX_TASKS = 10_000;
/** Questions of one task that are known to have been asked. */
const MAX_ASKED_A_TASK = 64;

type Given = { readonly task: OpenedTask; readonly asked: Set<string> };

type GivenTasks = {
  /** Enters a task that has just begun: whatever went by its id before is over. */
  begin(caller: string, task: OpenedTask): void;
  /** Enters a task that its caller has shown. */
  add(caller: string, task: OpenedTask): void;
  find(caller: string, id: string): OpenedTask | undefined;
  /** The questions of a task that were put before; of one that is not known none is remembered. */
  inputRequestsOf(
    caller: string,
    id: string,
  ): { has(requestHash: string): boolean; add(question: string): void };
};

/** An empty memory. */
export function createGivenTasks(maxTasks = MAX_TASKS): GivenTasks {
  const callers = new Map<string, Map<string, Given>>();
  let size = 0;

  function forgetOldest(caller: string, tasks: Map<string, Given>): void {
    const [oldest] = tasks.keys();
    if (oldest !== undefined && tasks.delete(oldest)) size -= 1;
    if (tasks.size === 0) callers.delete(caller);
  }

  function enter(caller: string, given: Given): void {
    const before = callers.get(caller);
    if (before?.delete(given.task.id) === true) size -= 1;
    if (before !== undefined && before.size >= MAX_TASKS_A_CALLER) forgetOldest(caller, before);
    const [oldest] = callers;
    if (size >= maxTasks && oldest !== undefined) forgetOldest(...oldest);
    const tasks = callers.get(caller) ?? new Map<string, Given>();
    callers.set(caller, tasks);
    tasks.set(given.task.id, given);
    size += 1;
  }

  return {
    begin: (caller, task) => enter(caller, { task, asked: new Set() }),
    add(caller, task) {
      const known = callers.get(caller)?.get(task.id);
      if (known?.task.sealed === task.sealed) return;
      enter(caller, { task, asked: known?.asked ?? new Set() });
    },
    find: (caller, id) => callers.get(caller)?.get(id)?.task,
    inputRequestsOf(caller, id) {
      const asked = callers.get(caller)?.get(id)?.asked;
      return {
        has: (requestHash) => asked?.has(requestHash) === true,
        add(requestHash) {
          if (asked !== undefined && asked.size < MAX_ASKED_A_TASK) asked.add(requestHash);
        },
      };
    },
  };
}

// The requests of sessions that are under way and asked for their progress, by session and token: a server may
// tell it on the stream of the session. One replica's memory; forgets a request when it ends, and one that was
// answered by a task when newer ones push it out.
// Source: MCP 2025-11-25, progress; tasks (task progress notifications).

/** How far a request is. Whoever tells progress counts it upwards here. */
type LiveCount = { last: number };

/** Requests whose work goes on after their answer, past which the oldest are forgotten first. */
export const MAX_KEPT = 1024;

type LiveProgress = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the request out again. */
  enter(session: string, token: RequestId, count: LiveCount): () => void;
  /** Keeps a request that was entered, although it is answered: its task goes on. */
  keep(session: string, token: RequestId): void;
  find(session: string, token: RequestId): LiveCount | undefined;
  readonly size: number;
};

/** None under way. */
export function createLiveProgress(): LiveProgress {
  const live = new LiveTable<string, LiveCount>();
  const kept = new Set<string>();
  return {
    enter(session, token, count) {
      const key = progressKeyOf(session, token);
      live.set(key, count);
      kept.delete(key);
      return () => {
        if (live.get(key) === count && !kept.has(key)) live.delete(key);
      };
    },
    keep(session, token) {
      const [oldest] = kept;
      if (kept.size >= MAX_KEPT && oldest !== undefined) {
        kept.delete(oldest);
        live.delete(oldest);
      }
      kept.add(progressKeyOf(session, token));
    },
    find: (session, token) => live.get(progressKeyOf(session, token)),
    get size() {
      return live.size;
    },
  };
}

/** The tokens 1 and "1" are two. */
function progressKeyOf(session: string, token: RequestId): string {
  return `${session} ${JSON.stringify(token)}`;
}

// The clients' ends of the channels of HTTP+SSE that this replica holds, by session, so that answers and refusals
// reach the stream on which they are awaited. One replica's memory; forgets a channel when it ends.

/** `End` is the stream of one client. */
type OpenLegacyStreams<End> = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the channel out again. */
  enter(session: string, end: End): () => void;
  /** `undefined` where no channel of this session is held here. */
  find(session: string): End | undefined;
  readonly size: number;
};

/** No channels. */
export function createOpenLegacyStreams<End>(): OpenLegacyStreams<End> {
  const open = new Map<string, End>();
  return {
    enter(session, end) {
      open.set(session, end);
      return () => {
        if (open.get(session) === end) open.delete(session);
      };
    },
    find: (session) => open.get(session),
    get size() {
      return open.size;
    },
  };
}

// Sessions that were opened a moment ago, by the caller who opened them: a busy client sends its id with
// every request, and opening a seal costs more than all other steps of admission. Remembers for a minute
// and for few ids a caller; forgets with the caller, whose object lives no longer than its token's cache.

/**
 * An opened session with the keyed hash of its sealed id, for records; `hashes` are all those by which it
 * may have ended, under every key, and `partHashes` those of the sessions that it holds.
 */
type OpenedSession = SessionFacts & {
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

// Streamed answers of sessions that are on their way, by the session and the id of the request, so that a
// cancellation ends them: a server does not answer what was cancelled, and some keep the stream open all
// the same, which would hold a place of the upstream's concurrency. A caller reaches its own session only.
// Source: MCP 2025-11-25, cancellation.

/** An answer that crosses the cancellation may still come within this time. */
export const CANCEL_GRACE_MS = 1_000;

type RunningStreams = {
  /** Enters a stream under the sealed session; the returned function takes it out again. */
  enter(session: string, id: RequestId, end: () => void): () => void;
  /** Ends the stream of this request, if it runs, after {@link CANCEL_GRACE_MS}. */
  cancel(session: string, id: RequestId): void;
  /** Ends at once what runs in sessions for which `isOver` holds. */
  endWhere(isOver: (session: string) => boolean): void;
};

/** An empty table. One replica's memory: a session whose calls were spread ends at the idle limit. */
export function createRunningStreams(): RunningStreams {
  const running = new LiveTable<string, { readonly session: string; readonly end: () => void }>();
  return {
    enter(session, id, end) {
      const key = keyOf(session, id);
      const entry = { session, end };
      running.set(key, entry);
      return () => {
        if (running.get(key) === entry) running.delete(key);
      };
    },
    cancel(session, id) {
      const key = keyOf(session, id);
      const entry = running.get(key);
      if (entry === undefined) return;
      // By then another request may run under this id; it is not what was cancelled.
      setTimeout(() => running.get(key) === entry && entry.end(), CANCEL_GRACE_MS).unref();
    },
    endWhere(isOver) {
      for (const { session, end } of running.values()) if (isOver(session)) end();
    },
  };
}

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
