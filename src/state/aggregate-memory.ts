// What one replica remembers of the backends of aggregates: which of them listed a resource to a caller, which lose their
// sessions too often, and the pages that callers were shown last, for when a backend does not respond. Bounded for each
// caller and in all.

import { createHash } from 'node:crypto';
import type { ListedPage } from '../protocol/methods.js';
import { BoundedMap } from './bounds.js';
import { createRecentTable } from './replica-tables.js';

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
 * with it. `caller` names the caller and the aggregate.
 */
export function createLostBackends(now: () => number) {
  const losses = createRecentTable<readonly number[]>({ max: MAX_LOST_BACKENDS });
  return {
    /** False if it has happened too often to end the session again. */
    note(caller: string, backend: string): boolean {
      const recent = (losses.find(caller, backend) ?? []).filter((atMs) => now() - atMs < LOSS_WINDOW_MS);
      if (recent.length >= MAX_LOSSES) return false;
      losses.set(caller, backend, [...recent, now()]);
      return true;
    },
  };
}

const MAX_KEPT_PAGE_CHARS = 256 * 1024;
/** Of one caller, who forgets its own oldest pages first, and of all. */
const KEPT_CHARS = { maxPerOwner: 1024 * 1024, max: 16 * 1024 * 1024 };

/** Keeps the list pages that callers of aggregates saw last. `now` is in milliseconds. */
export function createKeptPages(now: () => number) {
  const pages = createRecentTable<{ readonly text: string; readonly atMs: number }>(KEPT_CHARS);
  return {
    keep(caller: string, key: string, text: string): void {
      // The older one is no longer the last, even where this one is too long.
      pages.delete(caller, key);
      if (text.length <= MAX_KEPT_PAGE_CHARS) pages.set(caller, key, { text, atMs: now() }, Math.max(1, text.length));
    },
    /** The page, unless it is older than this. */
    recall(caller: string, key: string, maxAgeMs: number): string | undefined {
      const page = pages.find(caller, key);
      return page !== undefined && now() - page.atMs <= maxAgeMs ? page.text : undefined;
    },
  };
}
