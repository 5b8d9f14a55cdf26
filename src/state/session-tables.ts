// Tables of this replica about sessions and callers, in memory only: passed server requests, given tasks, live
// progress, open legacy SSE streams, opened sessions and running response streams. What outlives its request is
// bounded; what is not found is dropped, or the client asks again with the sealed id that it holds.
// Source: MCP 2025-11-25, cancellation, progress, tasks (listing, status and progress notifications, related tasks).

import type { Principal } from '../policy/principal.js';
import type { OpenedTask, SessionFacts } from '../protocol/admitted-request.js';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { ProgressCount } from '../protocol/params.js';
import type { RememberedInputRequests } from '../protocol/server-requests.js';
import { BoundedMap, OwnedMap } from './bounded-map.js';

/** Beyond this number the oldest are forgotten first. */
const MAX_REMEMBERED = 4096;

/**
 * Server requests that were passed on recently, by session and the server's own id, so that a server can cancel one: it
 * names its own id, which the client has never seen. One that is not found is not cancelled, and the server ignores its
 * reply. `session` is the keyed hash of the session's sealed id; `sealed` the id that the client received.
 */
export function createForwardedServerRequests() {
  const passed = new BoundedMap<string, string>(MAX_REMEMBERED);
  return {
    add(session: string, id: RequestId, sealed: string): void {
      passed.set(keyOf(session, id), sealed);
    },
    find: (session: string, id: RequestId): string | undefined => passed.get(keyOf(session, id)),
  };
}

/** Identifies what a session has under an id or a token: 1 and "1" are different (JSON-RPC 2.0 §4). */
export function keyOf(session: string, id: RequestId): string {
  return keyPrefixOf(session) + JSON.stringify(id);
}

/** What the keys of a session, and of no other, begin with: sealed ids and their hashes have no blanks. */
export function keyPrefixOf(session: string): string {
  return `${session} `;
}

/**
 * A value that is cleared when its entry is removed, because a Map keeps the tables that it has outgrown, with all that
 * they held, until a full garbage collection. For what comes and goes with requests.
 */
type Entered<V> = { value: V | undefined };

/** Enters a value; the returned function removes it, unless another has taken its key. */
function enterInto<V>(table: Map<string, Entered<V>>, key: string, value: V): () => void {
  const entry: Entered<V> = { value };
  table.set(key, entry);
  return () => {
    if (table.get(key) === entry) table.delete(key);
    entry.value = undefined;
  };
}

/** Tasks of one caller, and in total, beyond which the oldest are forgotten first. */
export const MAX_TASKS_PER_CALLER = 256;
const MAX_TASKS = 10_000;
/** Input requests of one task that are remembered as sent. */
const MAX_INPUT_REQUESTS_PER_TASK = 64;

type TaskEntry = { readonly task: OpenedTask; readonly asked: Set<string> };

type KnownTasks = {
  /** Enters a task that has just begun; an earlier one with its id has ended. */
  addCreated(caller: string, task: OpenedTask): void;
  /** Enters a task whose id its caller has sent. */
  add(caller: string, task: OpenedTask): void;
  find(caller: string, id: string): OpenedTask | undefined;
  /** The input requests of a task that were sent before; those of an unknown task are not remembered. */
  inputRequestsOf(caller: string, id: string): RememberedInputRequests;
};

/**
 * The tasks that callers received recently, by the server's own id, so that a list or a notification of the server
 * about one can be passed on under the id that its client knows.
 */
export function createKnownTasks(maxTasks = MAX_TASKS): KnownTasks {
  const tasks = new OwnedMap<string, TaskEntry>({
    max: maxTasks,
    maxPerOwner: MAX_TASKS_PER_CALLER,
  });
  const find = (caller: string, id: string) => tasks.get(`${caller} ${id}`);
  const addEntry = (caller: string, entry: TaskEntry) =>
    tasks.set(`${caller} ${entry.task.id}`, entry, caller);

  return {
    addCreated: (caller, task) => addEntry(caller, { task, asked: new Set() }),
    add(caller, task) {
      const known = find(caller, task.id);
      if (known?.task.sealed !== task.sealed)
        addEntry(caller, { task, asked: known?.asked ?? new Set() });
    },
    find: (caller, id) => find(caller, id)?.task,
    inputRequestsOf(caller, id) {
      const asked = find(caller, id)?.asked;
      return {
        has: (requestHash) => asked?.has(requestHash) === true,
        add(requestHash) {
          if (asked !== undefined && asked.size < MAX_INPUT_REQUESTS_PER_TASK)
            asked.add(requestHash);
        },
      };
    },
  };
}

/** Answered requests whose task goes on, beyond which the oldest are forgotten first. */
export const MAX_KEPT = 1024;

/**
 * Requests in progress that asked for progress notifications, by session and progress token, because a server may send
 * them on the stream of the session. A request is removed when it ends; one that was answered by a task, when newer
 * ones displace it. `session` is the keyed hash of the sealed id.
 */
export function createLiveProgress() {
  const live = new Map<string, Entered<ProgressCount>>();
  const kept = new BoundedMap<string, ProgressCount>(MAX_KEPT);
  return {
    /** The returned function removes the request. */
    register(session: string, token: RequestId, count: ProgressCount): () => void {
      const key = keyOf(session, token);
      kept.delete(key);
      return enterInto(live, key, count);
    },
    /** Keeps a request that was entered although it was answered, because its task goes on. */
    keep(session: string, token: RequestId): void {
      const key = keyOf(session, token);
      const count = live.get(key)?.value;
      if (count !== undefined) kept.set(key, count);
    },
    find(session: string, token: RequestId): ProgressCount | undefined {
      const key = keyOf(session, token);
      return live.get(key)?.value ?? kept.get(key);
    },
  };
}

/**
 * The clients' legacy SSE streams that this replica holds, by session, so that responses and refusals reach the stream
 * on which they are awaited. `End` is the stream of one client, `session` the keyed hash of the sealed id.
 */
export function createOpenLegacyStreams<End>() {
  const open = new Map<string, Entered<End>>();
  return {
    /** The returned function removes the stream. */
    register: (session: string, end: End): (() => void) => enterInto(open, session, end),
    /** `undefined` where this replica holds no stream of the session. */
    find: (session: string): End | undefined => open.get(session)?.value,
  };
}

/**
 * An opened session with the keyed hash of its sealed id, for records. `hashes` are its hashes under every key, any of
 * which may be recorded as ended; `backendSessionHashes` are those of the backend sessions in it.
 */
type OpenedSession = SessionFacts & {
  readonly hash: string;
  readonly hashes: readonly string[];
  readonly backendSessionHashes: readonly string[];
};

const REMEMBERED_MS = 60_000;
const MAX_SESSIONS_PER_CALLER = 32;

type Entry = { readonly opened: OpenedSession; readonly expiresAtMs: number };

/**
 * A cache in front of `open`, because a client sends its session id with every request and opening it costs more than
 * all other steps of admission. Keeps only successes, for a minute and for few ids per caller. The key is the caller's
 * own object, so no caller finds another's sessions, and the entries live no longer than the token cache keeps it.
 */
export function createOpenedSessions(
  open: (sealed: string, upstream: string, principal: Principal) => OpenedSession | undefined,
  now: () => number,
): typeof open {
  const known = new WeakMap<Principal, BoundedMap<string, Entry>>();
  return (sealed, upstream, principal) => {
    const key = `${upstream} ${sealed}`;
    const sessionsOfPrincipal =
      known.get(principal) ?? new BoundedMap<string, Entry>(MAX_SESSIONS_PER_CALLER);
    const entry = sessionsOfPrincipal.get(key);
    if (entry !== undefined && entry.expiresAtMs > now()) return entry.opened;
    const opened = open(sealed, upstream, principal);
    if (opened === undefined) {
      sessionsOfPrincipal.delete(key);
      return undefined;
    }
    sessionsOfPrincipal.set(key, { opened, expiresAtMs: now() + REMEMBERED_MS });
    known.set(principal, sessionsOfPrincipal);
    return opened;
  };
}

/** A response that crosses the cancellation may still arrive within this time. */
export const CANCEL_GRACE_MS = 1_000;

/**
 * Streamed responses in progress, by sealed session and request id, so that a cancellation ends them: a server does not
 * answer a cancelled request, and some keep its stream open, which would occupy a slot of the upstream's concurrency. A
 * caller reaches its own sessions only. A stream that another replica holds ends at the idle limit.
 */
export function createRunningStreams() {
  /** Sets, which are emptied: a client may resume one response twice, or send two requests under one id. */
  const running = new Map<string, Set<{ readonly end: () => void }>>();
  return {
    /** Enters a stream; the returned function removes it. */
    register(session: string, id: RequestId, end: () => void): () => void {
      const key = keyOf(session, id);
      const streams = running.get(key) ?? new Set();
      const stream = { end };
      running.set(key, streams.add(stream));
      return () => {
        streams.delete(stream);
        if (streams.size === 0 && running.get(key) === streams) running.delete(key);
      };
    },
    /** Ends the streams of this request, if any run, after {@link CANCEL_GRACE_MS}. */
    cancel(session: string, id: RequestId): void {
      const streams = running.get(keyOf(session, id));
      if (streams === undefined) return;
      // By then another request, which was not cancelled, may run under this id.
      const cancelled = [...streams];
      setTimeout(() => {
        for (const stream of cancelled) if (streams.has(stream)) stream.end();
      }, CANCEL_GRACE_MS).unref();
    },
  };
}
