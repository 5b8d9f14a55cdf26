// Tables of this replica about the backends of aggregates, in memory only: which of them listed a resource to a caller,
// which lost their session too often, which work on a request, and the pages that callers were shown last. What
// outlives its request is bounded.
// Source: MCP 2025-11-25, cancellation.

import { createHash } from 'node:crypto';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { ListedPage } from '../protocol/listings.js';
import { BoundedMap } from './bounded-map.js';
import { keyOf, keyPrefixOf } from './session-tables.js';

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
  const known = new BoundedMap<string, ListedEntry>(Number.POSITIVE_INFINITY, maxUris);

  /** Enters the URIs, in a new entry where the caller would exceed its own bound. */
  function enter(key: string, uris: readonly string[], upstream: string): ListedEntry {
    const own = known.get(key) ?? emptyShown();
    const more = uris.filter((uri) => !own.listers.has(uri)).length;
    const shown = own.listers.size + more > maxUrisACaller ? emptyShown() : own;
    for (const uri of uris)
      shown.listers.set(uri, (shown.listers.get(uri) ?? new Set()).add(upstream));
    // Counts the caller too: most lists are empty, and the number of callers is not bounded.
    known.set(key, shown, shown.listers.size + 1);
    return shown;
  }

  return {
    note(key, { upstream, uris, cursor, nextCursor }) {
      const kept = uris.filter((uri) => uri.length <= MAX_URI_CHARS).slice(0, maxUrisACaller);
      const shown = enter(key, kept, upstream);
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

/** Losses within the window that end the session; after further ones the backend is left out. */
const MAX_LOSSES = 3;
const WINDOW_MS = 60_000;
/** Beyond this number of callers and backends, the oldest are forgotten first. */
const MAX_KNOWN = 10_000;

/**
 * Counts how often a backend recently lost its session with a caller. An occasional loss ends the caller's session, so
 * that it is opened again with all backends; a backend that keeps losing it is left out, or it would take the others
 * with it. `key` names caller, aggregate and backend.
 */
export function createLostBackends(now: () => number) {
  const known = new BoundedMap<string, readonly number[]>(MAX_KNOWN);
  const recent = (key: string): readonly number[] =>
    (known.get(key) ?? []).filter((atMs) => now() - atMs < WINDOW_MS);
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
    find: (session: string, id: RequestId): readonly string[] => [
      ...new Set(running.get(keyOf(session, id))),
    ],
    /** Calls `run`, once for each session, when no backend works on a request of the session: maybe at once. */
    whenIdle(session: string, run: () => void): void {
      if (isIdle(session)) run();
      else if (!waiting.has(session)) waiting.set(session, run);
    },
  };
}

const MAX_CHARS_A_PAGE = 256 * 1024;
const MAX_CHARS_A_CALLER = 1024 * 1024;
const MAX_CHARS = 16 * 1024 * 1024;

type KeptPage = { readonly text: string; readonly atMs: number };
type CallerPages = { readonly pages: Map<string, KeptPage>; chars: number };

type KeptPages = {
  keep(caller: string, key: string, text: string): void;
  /** The page, unless it is older than this. */
  recall(caller: string, key: string, maxAgeMs: number): string | undefined;
};

/**
 * The list pages that callers of aggregates saw last, used while a backend does not respond. Bounded: a caller who fills it
 * loses its own pages first. `now` is in milliseconds.
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
      if (text.length > MAX_CHARS_A_PAGE) return;
      while (own.chars + text.length > MAX_CHARS_A_CALLER) forgetOldest(own);
      own.pages.set(key, { text, atMs: now() });
      own.chars += text.length;
      chars += text.length;
      callers.delete(caller);
      callers.set(caller, own);
      for (const [other, { chars: theirs }] of callers) {
        if (chars <= MAX_CHARS) break;
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
