// The tables of one replica, in memory only, by session or caller and by id: one kind for what runs, from which each entry
// is removed by whoever entered it, and one for what happened recently, which is bounded and forgets the oldest. What is
// not found is dropped, or the client asks again with the sealed id that it holds.
// Source: MCP 2025-11-25, cancellation, progress.

import type { RequestId } from '../protocol/jsonrpc.js';
import type { ProgressCount } from '../protocol/params.js';
import { OwnedMap } from './bounds.js';

/**
 * A value that is cleared when its entry is removed, because a Map keeps the tables that it has outgrown, with all that
 * they held, until a full garbage collection.
 */
type Entry<T> = { value: T | undefined };

export type RunningTable<T> = {
  /** Enters a value, under an id if it has one; the returned function removes it. */
  enter(session: string, id: RequestId | undefined, value: T): () => void;
  /** The values under an id, the oldest first: a client may send two requests under one. 1 and "1" are different. */
  find(session: string, id: RequestId | undefined): readonly T[];
  /** The values of a session under every id. */
  of(session: string): readonly T[];
  /** Calls `run`, once for each session, when the session has no value: maybe at once. */
  whenIdle(session: string, run: () => void): void;
};

const NOTHING: readonly never[] = Object.freeze([]);

/** Creates a table of what runs. It is as large as what runs. */
export function createRunningTable<T>(): RunningTable<T> {
  /** Of every session that has a value. A set or map that was emptied is not used again. */
  const sessions = new Map<string, Map<RequestId | undefined, Set<Entry<T>>>>();
  /** Nearly always empty. */
  const waiting = new Map<string, () => void>();
  function valuesOf(entries: Iterable<Entry<T>>): readonly T[] {
    const values: T[] = [];
    for (const { value } of entries) values.push(value as T);
    return values;
  }

  function removeSession(session: string): void {
    sessions.delete(session);
    const run = waiting.get(session);
    waiting.delete(session);
    run?.();
  }

  return {
    enter(session, id, value) {
      const entry: Entry<T> = { value };
      const ids = sessions.get(session) ?? new Map<RequestId | undefined, Set<Entry<T>>>();
      const entries = ids.get(id) ?? new Set<Entry<T>>();
      sessions.set(session, ids.set(id, entries.add(entry)));
      return () => {
        if (!entries.delete(entry)) return;
        entry.value = undefined;
        if (entries.size === 0) ids.delete(id);
        if (ids.size === 0) removeSession(session);
      };
    },
    find(session, id) {
      const entries = sessions.get(session)?.get(id);
      return entries === undefined ? NOTHING : valuesOf(entries);
    },
    of: (session) => [...(sessions.get(session)?.values() ?? [])].flatMap(valuesOf),
    whenIdle(session, run) {
      if (!sessions.has(session)) run();
      else if (!waiting.has(session)) waiting.set(session, run);
    },
  };
}

export type RecentTable<T> = {
  /** Enters the newest entry of all, and of its owner. */
  set(owner: string, id: RequestId, value: T, weight?: number): void;
  find(owner: string, id: RequestId): T | undefined;
  delete(owner: string, id: RequestId): void;
};

/**
 * Creates a table of what happened recently. Beyond `maxPerOwner` an owner forgets its own oldest entry, beyond `max` the
 * oldest of all goes first; both count entries, or what they weigh.
 */
export function createRecentTable<T>({
  max,
  maxPerOwner = max,
}: {
  max: number;
  maxPerOwner?: number;
}): RecentTable<T> {
  const entries = new OwnedMap<string, T>({ max, maxPerOwner });
  // Owners are JSON or have no blanks, so that no two pairs have one key.
  const keyOf = (owner: string, id: RequestId): string => `${owner} ${JSON.stringify(id)}`;
  return {
    set: (owner, id, value, weight) => entries.set(keyOf(owner, id), value, owner, weight),
    find: (owner, id) => entries.get(keyOf(owner, id)),
    delete: (owner, id) => entries.delete(keyOf(owner, id)),
  };
}

/**
 * Creates the claims of ids that are numbers. Some servers take `1` and `1.0` for one id, and would answer one request in
 * place of the other: so two of one owner may not be in flight together.
 */
export function createNumbersInFlight() {
  const waiting = createRunningTable<string>();
  /** Returns what gives the id back; undefined if the number is in flight as it is written otherwise. */
  return (owner: string, id: RequestId, literal: string): (() => void) | undefined =>
    waiting.find(owner, id).some((other) => other !== literal) ? undefined : waiting.enter(owner, id, literal);
}

/** Answered requests whose task goes on, beyond which the oldest are forgotten first. */
export const MAX_KEPT_PROGRESS = 1024;

/**
 * Creates the table of requests in progress that asked for progress notifications, by progress token, because a server
 * may send them on the stream of the session. A request is removed when it ends; one that was answered by a task, when
 * newer ones displace it. `session` is the keyed hash of the sealed id.
 */
export function createLiveProgress<Count extends ProgressCount = ProgressCount>() {
  const live = createRunningTable<Count>();
  const kept = createRecentTable<Count>({ max: MAX_KEPT_PROGRESS });
  return {
    /** The returned function removes the request. */
    register(session: string, token: RequestId | undefined, count: Count): () => void {
      if (token !== undefined) kept.delete(session, token);
      return live.enter(session, token, count);
    },
    inProgress: live.of,
    /** Keeps a request that was entered although it was answered, because its task goes on. */
    keep(session: string, token: RequestId): void {
      const count = live.find(session, token).at(-1);
      if (count !== undefined) kept.set(session, token, count);
    },
    find: (session: string, token: RequestId): Count | undefined =>
      live.find(session, token).at(-1) ?? kept.find(session, token),
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
 * Creates the table of responses in progress, so that a cancellation ends them: a server does not answer a cancelled
 * request, and some keep its stream open, which would occupy a slot of the upstream's concurrency. A caller reaches its
 * own sessions only. A stream that another replica holds ends at the idle limit.
 */
export function createRunningResponses() {
  const running = createRunningTable<CancellableResponse>();
  return {
    register: running.enter,
    /** Ends the responses to this request, if any are awaited, after {@link CANCEL_GRACE_MS}. */
    cancel(session: string, id: RequestId): void {
      const cancelled = running.find(session, id);
      if (cancelled.length === 0) return;
      for (const { note } of cancelled) note?.();
      setTimeout(() => {
        // By then another request, which was not cancelled, may run under this id.
        const left = running.find(session, id);
        for (const response of cancelled) if (left.includes(response)) response.end();
      }, CANCEL_GRACE_MS).unref();
    },
  };
}
