// The tables of one replica, in memory only. About sessions and callers: forwarded requests, known tasks, live progress,
// open legacy SSE streams, opened sessions and running response streams. About the backends of aggregates: which of them
// listed a resource to a caller, which lost their session too often, which work on a request, and the pages that callers
// were shown last. Tables whose entries outlive a request are bounded. What is not found is dropped, or the client asks
// again with the sealed id that it holds.
// Source: MCP 2025-11-25, cancellation, progress, tasks (listing, status and progress notifications, related tasks).

import { createHash } from 'node:crypto';
import type { Principal } from '../policy/principal.js';
import type { OpenedTask, SessionFacts } from '../protocol/admitted-request.js';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { ListedPage } from '../protocol/methods.js';
import type { ProgressCount } from '../protocol/params.js';
import type { RememberedInputRequests } from '../protocol/server-requests.js';
import { BoundedMap, OwnedMap } from './bounds.js';

/** Beyond this number the oldest are forgotten first. */
const MAX_FORWARDED_REQUESTS = 4096;

/**
 * Requests that were forwarded recently under a sealed id, by session and the sender's own id, so that their sender can
 * cancel one: server requests, and the requests of legacy SSE clients. One that is not found is not cancelled, and its
 * response is ignored. `session` is the keyed hash of the session's sealed id; `sealed` the id that the recipient got.
 */
export function createForwardedRequests() {
  const forwarded = new BoundedMap<string, string>(MAX_FORWARDED_REQUESTS);
  return {
    add(session: string, id: RequestId, sealed: string): void {
      forwarded.set(keyOf(session, id), sealed);
    },
    find: (session: string, id: RequestId): string | undefined => forwarded.get(keyOf(session, id)),
  };
}

/** Identifies what a session has under an id or a token: 1 and "1" are different (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return keyPrefixOf(session) + JSON.stringify(id);
}

/** What the keys of a session, and of no other, begin with: sealed ids and their hashes have no blanks. */
function keyPrefixOf(session: string): string {
  return `${session} `;
}

/**
 * Creates the table of requests that wait for their responses and have a number as id. Some servers take `1` and `1.0`
 * for one id, and would answer one request in place of the other: so two of one owner may not be in flight together.
 */
export function createNumbersInFlight() {
  const waiting = new Map<string, { readonly literal: string; count: number }>();
  /** Returns what gives the id back; undefined if the number is in flight as it is written otherwise. */
  return (owner: string, id: RequestId, literal: string): (() => void) | undefined => {
    const key = keyOf(owner, id);
    const known = waiting.get(key);
    if (known !== undefined && known.literal !== literal) return undefined;
    const entry = known ?? { literal, count: 0 };
    entry.count += 1;
    waiting.set(key, entry);
    return () => {
      entry.count -= 1;
      if (entry.count === 0) waiting.delete(key);
    };
  };
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
  const addEntry = (caller: string, entry: TaskEntry) => tasks.set(`${caller} ${entry.task.id}`, entry, caller);

  return {
    addCreated: (caller, task) => addEntry(caller, { task, asked: new Set() }),
    add(caller, task) {
      const known = find(caller, task.id);
      if (known?.task.sealed !== task.sealed) addEntry(caller, { task, asked: known?.asked ?? new Set() });
    },
    find: (caller, id) => find(caller, id)?.task,
    inputRequestsOf(caller, id) {
      const asked = find(caller, id)?.asked;
      return {
        has: (requestHash) => asked?.has(requestHash) === true,
        add(requestHash) {
          if (asked !== undefined && asked.size < MAX_INPUT_REQUESTS_PER_TASK) asked.add(requestHash);
        },
      };
    },
  };
}

/** Answered requests whose task goes on, beyond which the oldest are forgotten first. */
export const MAX_KEPT_PROGRESS = 1024;

/**
 * Requests in progress that asked for progress notifications, by session and progress token, because a server may send
 * them on the stream of the session. A request is removed when it ends; one that was answered by a task, when newer
 * ones displace it. `session` is the keyed hash of the sealed id.
 */
export function createLiveProgress<Count extends ProgressCount = ProgressCount>() {
  const live = new Map<string, Entered<Count>>();
  const kept = new BoundedMap<string, Count>(MAX_KEPT_PROGRESS);
  /** Sets, which are emptied. */
  const bySession = new Map<string, Set<Count>>();

  function enterSession(session: string, count: Count): () => void {
    const counts = bySession.get(session) ?? new Set();
    bySession.set(session, counts.add(count));
    return () => {
      counts.delete(count);
      if (counts.size === 0 && bySession.get(session) === counts) bySession.delete(session);
    };
  }

  return {
    /** The returned function removes the request. */
    register(session: string, token: RequestId | undefined, count: Count): () => void {
      const leaveSession = enterSession(session, count);
      if (token === undefined) return leaveSession;
      const key = keyOf(session, token);
      kept.delete(key);
      const leave = enterInto(live, key, count);
      return () => {
        leave();
        leaveSession();
      };
    },
    inProgress: (session: string): readonly Count[] => [...(bySession.get(session) ?? [])],
    /** Keeps a request that was entered although it was answered, because its task goes on. */
    keep(session: string, token: RequestId): void {
      const key = keyOf(session, token);
      const count = live.get(key)?.value;
      if (count !== undefined) kept.set(key, count);
    },
    find(session: string, token: RequestId): Count | undefined {
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

/** A response that is waited for or streamed. */
type CancellableResponse = {
  /** Called at once when its request is cancelled. */
  readonly note?: () => void;
  /** Called when it has not arrived a while later. */
  readonly end: () => void;
};

/** A response that crosses the cancellation may still arrive within this time. */
export const CANCEL_GRACE_MS = 1_000;

/**
 * Streamed responses in progress, by sealed session and request id, so that a cancellation ends them: a server does not
 * answer a cancelled request, and some keep its stream open, which would occupy a slot of the upstream's concurrency. A
 * caller reaches its own sessions only. A stream that another replica holds ends at the idle limit.
 */
export function createRunningStreams() {
  /** Sets, which are emptied: a client may resume one response twice, or send two requests under one id. */
  const running = new Map<string, Set<CancellableResponse>>();
  return {
    /** Enters a stream; the returned function removes it. */
    register(session: string, id: RequestId, stream: CancellableResponse): () => void {
      const key = keyOf(session, id);
      const streams = running.get(key) ?? new Set();
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
      for (const { note } of cancelled) note?.();
      setTimeout(() => {
        for (const stream of cancelled) if (streams.has(stream)) stream.end();
      }, CANCEL_GRACE_MS).unref();
    },
  };
}

/**
 * URIs remembered per caller; beyond it all of the caller's are forgotten, because a partial memory could point to the
 * wrong backend. In total, where a caller counts as one URI too, the least recently used caller is forgotten.
 */
const MAX_URIS_PER_CALLER = 10_000;
const MAX_URIS = 50_000;
/** Longer URIs are not remembered. */
const MAX_URI_CHARS = 2_048;

type ListedResources = {
  /** `key` names the caller and the aggregate. */
  note(key: string, page: ListedPage): void;
  /** Of these backends, those that listed the URI; empty where one of them has not shown its complete list. */
  recall(key: string, uri: string, backends: readonly string[]): readonly string[];
};

type ListedEntry = {
  readonly listers: Map<string, Set<string>>;
  /** Backends whose list was shown from its first page to its last. */
  readonly complete: Set<string>;
  /** For backends whose pages were shown from the first one without a gap: the digest of the next cursor. */
  readonly begun: Map<string, string>;
};

/**
 * Remembers which backends listed a resource to a caller, to find the one that serves a URI. It returns a result only
 * where every backend has shown its complete list, because a server could otherwise claim what another has not shown
 * yet. A forgotten URI is ambiguous again, and then refused.
 */
export function createListedResources({
  maxUris = MAX_URIS,
  maxUrisPerCaller = MAX_URIS_PER_CALLER,
} = {}): ListedResources {
  const known = new BoundedMap<string, ListedEntry>(Number.POSITIVE_INFINITY, maxUris);

  /** Enters the URIs, in a new entry where the caller would exceed its own bound. */
  function enter(key: string, uris: readonly string[], upstream: string): ListedEntry {
    const own = known.get(key) ?? emptyListedEntry();
    const more = uris.filter((uri) => !own.listers.has(uri)).length;
    const entry = own.listers.size + more > maxUrisPerCaller ? emptyListedEntry() : own;
    for (const uri of uris) entry.listers.set(uri, (entry.listers.get(uri) ?? new Set()).add(upstream));
    // Counts the caller too: most lists are empty, and the number of callers is not bounded.
    known.set(key, entry, entry.listers.size + 1);
    return entry;
  }

  return {
    note(key, { upstream, uris, cursor, nextCursor }) {
      const kept = uris.filter((uri) => uri.length <= MAX_URI_CHARS).slice(0, maxUrisPerCaller);
      const entry = enter(key, kept, upstream);
      const isNext = cursor === undefined || entry.begun.get(upstream) === cursorDigest(cursor);
      entry.begun.delete(upstream);
      // URIs that were not kept, or pages seen by another replica, leave a gap.
      if (!isNext || kept.length < uris.length) return;
      if (nextCursor === undefined) entry.complete.add(upstream);
      else entry.begun.set(upstream, cursorDigest(nextCursor));
    },
    recall(key, uri, backends) {
      const entry = known.get(key);
      if (entry === undefined || !backends.every((backend) => entry.complete.has(backend))) return [];
      return backends.filter((backend) => entry.listers.get(uri)?.has(backend) === true);
    },
  };
}

function emptyListedEntry(): ListedEntry {
  return { listers: new Map(), complete: new Set(), begun: new Map() };
}

/** A digest, because servers choose the length of their cursors. */
function cursorDigest(cursor: string): string {
  return createHash('sha256').update(cursor).digest('base64');
}

/** Losses within the window that end the session; after further ones the backend is left out. */
const MAX_LOSSES = 3;
const LOSS_WINDOW_MS = 60_000;
/** Beyond this number of callers and backends, the oldest are forgotten first. */
const MAX_LOST_BACKENDS = 10_000;

/**
 * Counts how often a backend recently lost its session with a caller. An occasional loss ends the caller's session, so
 * that it is opened again with all backends; a backend that keeps losing it is left out, or it would take the others
 * with it. `key` names caller, aggregate and backend.
 */
export function createLostBackends(now: () => number) {
  const known = new BoundedMap<string, readonly number[]>(MAX_LOST_BACKENDS);
  const recent = (key: string): readonly number[] =>
    (known.get(key) ?? []).filter((atMs) => now() - atMs < LOSS_WINDOW_MS);
  return {
    /** Notes a loss that ends the session. */
    note: (key: string): void => void known.set(key, [...recent(key), now()]),
    /** Whether it has happened too often to end the session again. */
    isFrequent: (key: string): boolean => recent(key).length >= MAX_LOSSES,
  };
}

/**
 * The backends that work on a request of a sealed session, so that a cancellation, whose reason may quote the request,
 * reaches only them. A caller reaches its own sessions only.
 */
export function createRunningBackends() {
  // Plain values only, so that no request is kept alive.
  const running = new Map<string, readonly string[]>();
  /** By session; nearly always empty. */
  const waiting = new Map<string, () => void>();

  function isIdle(session: string): boolean {
    const prefix = keyPrefixOf(session);
    for (const key of running.keys()) if (key.startsWith(prefix)) return false;
    return true;
  }

  function leave(key: string, upstream: string): void {
    const backends = running.get(key) ?? [];
    const remaining = backends.toSpliced(backends.indexOf(upstream), 1);
    if (remaining.length === 0) running.delete(key);
    else running.set(key, remaining);
    for (const [session, run] of waiting) {
      if (!key.startsWith(keyPrefixOf(session)) || !isIdle(session)) continue;
      waiting.delete(session);
      run();
    }
  }

  return {
    /** Enters a backend; the returned function removes it. */
    enter(session: string, id: RequestId, upstream: string): () => void {
      const key = keyOf(session, id);
      // Two requests with the same id, which no client should send, are counted separately.
      running.set(key, [...(running.get(key) ?? []), upstream]);
      let isIn = true;
      return () => {
        if (isIn) leave(key, upstream);
        isIn = false;
      };
    },
    /** The backends that work on this request; empty where none is known. */
    find: (session: string, id: RequestId): readonly string[] => [...new Set(running.get(keyOf(session, id)))],
    /** Calls `run`, once for each session, when no backend works on a request of the session: maybe at once. */
    whenIdle(session: string, run: () => void): void {
      if (isIdle(session)) run();
      else if (!waiting.has(session)) waiting.set(session, run);
    },
  };
}

const MAX_KEPT_PAGE_CHARS = 256 * 1024;
const MAX_KEPT_CHARS_PER_CALLER = 1024 * 1024;
const MAX_KEPT_CHARS = 16 * 1024 * 1024;

type KeptPage = { readonly text: string; readonly atMs: number };
type CallerPages = { readonly pages: Map<string, KeptPage>; chars: number };

type KeptPages = {
  keep(caller: string, key: string, text: string): void;
  /** The page, unless it is older than this. */
  recall(caller: string, key: string, maxAgeMs: number): string | undefined;
};

/**
 * The list pages that callers of aggregates saw last, used while a backend does not respond. Bounded: a caller who
 * fills it loses its own pages first. `now` is in milliseconds.
 */
export function createKeptPages(now: () => number): KeptPages {
  /** Ordered by when a page was last stored, the oldest first; so are the pages of each caller. */
  const callers = new Map<string, CallerPages>();
  let chars = 0;

  function forgetPage(own: CallerPages, key: string): void {
    const kept = own.pages.get(key)?.text.length ?? 0;
    own.pages.delete(key);
    own.chars -= kept;
    chars -= kept;
  }

  function forgetOldest(own: CallerPages): void {
    const [oldest] = own.pages.keys();
    if (oldest !== undefined) forgetPage(own, oldest);
  }

  return {
    keep(caller, key, text) {
      const own = callers.get(caller) ?? { pages: new Map(), chars: 0 };
      forgetPage(own, key);
      if (text.length > MAX_KEPT_PAGE_CHARS) return;
      while (own.chars + text.length > MAX_KEPT_CHARS_PER_CALLER) forgetOldest(own);
      own.pages.set(key, { text, atMs: now() });
      own.chars += text.length;
      chars += text.length;
      callers.delete(caller);
      callers.set(caller, own);
      for (const [other, { chars: theirs }] of callers) {
        if (chars <= MAX_KEPT_CHARS) break;
        callers.delete(other);
        chars -= theirs;
      }
    },
    recall(caller, key, maxAgeMs) {
      const kept = callers.get(caller)?.pages.get(key);
      return kept !== undefined && now() - kept.atMs <= maxAgeMs ? kept.text : undefined;
    },
  };
}
