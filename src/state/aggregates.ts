// Tables of this replica about the backends of aggregates, in memory only: which of them listed a resource to a caller,
// which lost their session too often, and which work on a request. What outlives its request is bounded.
// Source: MCP 2025-11-25, cancellation.

import { createHash } from 'node:crypto';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { ListedPage } from '../protocol/listings.js';

/**
 * URIs remembered per caller; beyond it all of the caller's are forgotten, because a partial memory could point to the
 * wrong backend. In total, where a caller counts as one URI too, the least recently used caller is forgotten.
 */
const MAX_URIS_A_CALLER = 10_000;
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
  maxUrisACaller = MAX_URIS_A_CALLER,
} = {}): ListedResources {
  // In the order of use.
  const known = new Map<string, ListedEntry>();
  let count = 0;

  function forget(key: string): void {
    const entry = known.get(key);
    if (entry !== undefined) count -= sizeOf(entry);
    known.delete(key);
  }

  /** How many of these URIs were not shown to the caller before. */
  function countNew(key: string, uris: readonly string[]): number {
    const listers = known.get(key)?.listers;
    return uris.filter((uri) => listers?.has(uri) !== true).length;
  }

  function entryFor(key: string): ListedEntry {
    const shown = known.get(key) ?? emptyShown();
    if (!known.delete(key)) count += 1;
    known.set(key, shown);
    return shown;
  }

  /**
   * Returns the caller's entry with capacity for a page. A caller over its bound loses only its own entries; the total
   * bound drops the least recently used callers.
   */
  function entryWithCapacity(key: string, uris: readonly string[]): ListedEntry {
    const own = known.get(key)?.listers.size ?? 0;
    if (own + countNew(key, uris) > maxUrisACaller) forget(key);
    const shown = entryFor(key);
    const needed = countNew(key, uris);
    for (const other of known.keys()) {
      // The caller's own entry is the last.
      if (other === key || count + needed <= maxUris) break;
      forget(other);
    }
    return shown;
  }

  function add({ listers }: ListedEntry, uri: string, upstream: string): void {
    const listed = listers.get(uri) ?? new Set();
    if (listed.size === 0) count += 1;
    listers.set(uri, listed.add(upstream));
  }

  return {
    note(key, { upstream, uris, cursor, nextCursor }) {
      const kept = uris.filter((uri) => uri.length <= MAX_URI_CHARS).slice(0, maxUrisACaller);
      const shown = entryWithCapacity(key, kept);
      for (const uri of kept) add(shown, uri, upstream);
      const isNext = cursor === undefined || shown.begun.get(upstream) === digestOf(cursor);
      shown.begun.delete(upstream);
      // URIs that were not kept, or pages seen by another replica, leave a gap.
      if (!isNext || kept.length < uris.length) return;
      if (nextCursor === undefined) shown.complete.add(upstream);
      else shown.begun.set(upstream, digestOf(nextCursor));
    },
    recall(key, uri, backends) {
      const shown = known.get(key);
      if (shown === undefined || !backends.every((backend) => shown.complete.has(backend)))
        return [];
      return backends.filter((backend) => shown.listers.get(uri)?.has(backend) === true);
    },
  };
}

function emptyShown(): ListedEntry {
  return { listers: new Map(), complete: new Set(), begun: new Map() };
}

/** A digest, because servers choose the length of their cursors. */
function digestOf(cursor: string): string {
  return createHash('sha256').update(cursor).digest('base64');
}

/** Counts the caller too: most lists are empty, and the number of callers is not bounded. */
function sizeOf({ listers }: ListedEntry): number {
  return listers.size + 1;
}

/** Losses within the window that end the session; after further ones the backend is left out. */
const MAX_LOSSES = 3;
const WINDOW_MS = 60_000;
/** Beyond this number of callers and backends, the oldest are forgotten first. */
const MAX_KNOWN = 10_000;

type LostBackends = {
  /** Notes a loss that ends the session. */
  note(key: string): void;
  /** Whether it has happened too often to end the session again. */
  isFrequent(key: string): boolean;
};

/**
 * Counts how often a backend recently lost its session with a caller. An occasional loss ends the caller's session, so
 * that it is opened again with all backends; a backend that keeps losing it is left out, or it would take the others
 * with it. `key` names caller, aggregate and backend.
 */
export function createLostBackends(now: () => number): LostBackends {
  const known = new Map<string, readonly number[]>();
  const recent = (key: string): readonly number[] =>
    (known.get(key) ?? []).filter((atMs) => now() - atMs < WINDOW_MS);
  return {
    note(key) {
      const losses = [...recent(key), now()];
      known.delete(key);
      known.set(key, losses);
      const [oldest] = known.keys();
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    },
    isFrequent: (key) => recent(key).length >= MAX_LOSSES,
  };
}

type RunningBackends = {
  /** Enters a backend under the sealed session; the returned function removes it. */
  enter(session: string, id: RequestId, upstream: string): () => void;
  /** The backends that work on this request; empty where none is known. */
  find(session: string, id: RequestId): readonly string[];
};

/**
 * The backends that work on a request of a session, so that a cancellation, whose reason may quote the request, reaches
 * only them. A caller reaches its own sessions only.
 */
export function createRunningBackends(): RunningBackends {
  // Plain values only, so that no request is kept alive.
  const running = new Map<string, readonly string[]>();

  function leave(key: string, upstream: string): void {
    const backends = running.get(key) ?? [];
    const left = backends.toSpliced(backends.indexOf(upstream), 1);
    if (left.length === 0) running.delete(key);
    else running.set(key, left);
  }

  return {
    enter(session, id, upstream) {
      const key = keyOf(session, id);
      // Two requests with the same id, which no client should send, are counted separately.
      running.set(key, [...(running.get(key) ?? []), upstream]);
      let isIn = true;
      return () => {
        if (isIn) leave(key, upstream);
        isIn = false;
      };
    },
    find: (session, id) => [...new Set(running.get(keyOf(session, id)))],
  };
}

/** The ids 1 and "1" are different (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
