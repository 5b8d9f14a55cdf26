// Which members of an endpoint listed a resource to a caller, as this replica saw it: of several that may serve
// a URI, it tells whose it is. It knows only where every one of them has shown its whole list, or a server
// could claim what another has not shown yet. Bounded, a caller first; what is forgotten is ambiguous again, and
// then refused.

import { createHash } from 'node:crypto';
import type { RequestId } from '../protocol/jsonrpc.js';

/**
 * URIs of one caller, past which all of its own are forgotten: half a memory would point to the wrong server. Of
 * all callers, who count as a URI each, past which the one that asked least lately is forgotten.
 */
const MAX_URIS_A_CALLER = 10_000;
const MAX_URIS = 50_000;
/** Longer URIs are not remembered. */
const MAX_URI_CHARS = 2_048;

/** A page of one member's list: where it was asked to go on, and where it says that it goes on. */
type ListedPage = {
  readonly upstream: string;
  readonly uris: readonly string[];
  readonly cursor: string | undefined;
  readonly nextCursor: string | undefined;
};

type ListedResources = {
  /** `key` names caller and endpoint. */
  note(key: string, page: ListedPage): void;
  /** Of these members, those that listed the URI; none where one of them has not shown its whole list. */
  recall(key: string, uri: string, backends: readonly string[]): readonly string[];
};

type Shown = {
  readonly listers: Map<string, Set<string>>;
  /** Members whose list was shown from its first page to its last. */
  readonly complete: Set<string>;
  /** Where those go on, by a digest, that were shown from the first page on without a gap. */
  readonly begun: Map<string, string>;
};

/** An empty memory. */
export function createListedResources({
  maxUris = MAX_URIS,
  maxUrisACaller = MAX_URIS_A_CALLER,
} = {}): ListedResources {
  // In the order of use.
  const known = new Map<string, Shown>();
  let count = 0;

  function forget(key: string): void {
    const shown = known.get(key);
    if (shown !== undefined) count -= sizeOf(shown);
    known.delete(key);
  }

  /** How many of these are new to what a caller was shown. */
  function countNew(key: string, uris: readonly string[]): number {
    const listers = known.get(key)?.listers;
    return uris.filter((uri) => listers?.has(uri) !== true).length;
  }

  function shownTo(key: string): Shown {
    const shown = known.get(key) ?? emptyShown();
    if (!known.delete(key)) count += 1;
    known.set(key, shown);
    return shown;
  }

  /** What a caller was shown, with room for a page: who lists too much forgets its own, and no other caller's. */
  function capacityFor(key: string, uris: readonly string[]): Shown {
    const own = known.get(key)?.listers.size ?? 0;
    if (own + countNew(key, uris) > maxUrisACaller) forget(key);
    const shown = shownTo(key);
    const needed = countNew(key, uris);
    for (const other of known.keys()) {
      // Its own is the last.
      if (other === key || count + needed <= maxUris) break;
      forget(other);
    }
    return shown;
  }

  function add({ listers }: Shown, uri: string, upstream: string): void {
    const listed = listers.get(uri) ?? new Set();
    if (listed.size === 0) count += 1;
    listers.set(uri, listed.add(upstream));
  }

  return {
    note(key, { upstream, uris, cursor, nextCursor }) {
      const kept = uris.filter((uri) => uri.length <= MAX_URI_CHARS).slice(0, maxUrisACaller);
      const shown = capacityFor(key, kept);
      for (const uri of kept) add(shown, uri, upstream);
      const isNext = cursor === undefined || shown.begun.get(upstream) === digestOf(cursor);
      shown.begun.delete(upstream);
      // What was not kept, here or by another replica, leaves a gap.
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

function emptyShown(): Shown {
  return { listers: new Map(), complete: new Set(), begun: new Map() };
}

/** Cursors are as long as their servers like. */
function digestOf(cursor: string): string {
  return createHash('sha256').update(cursor).digest('base64');
}

/** Callers count too: most lists are empty, and there is no end of callers. */
function sizeOf({ listers }: Shown): number {
  return listers.size + 1;
}

// How often a member of an endpoint lost its part of a caller's session of late. Once in a while that ends the
// session, so that it is opened anew with all members; a member that loses it again and again is left out
// instead, or it would take the others with it.

/** Losses within the window that are told; further ones are the member's own affair. */
const MAX_LOSSES = 3;
const WINDOW_MS = 60_000;
/** Past this many callers and members, the oldest are forgotten first. */
const MAX_KNOWN = 10_000;

type LostBackends = {
  /** Notes a loss that is told. */
  note(key: string): void;
  /** Whether it has happened too often to be told again. */
  isFrequent(key: string): boolean;
};

/** An empty memory. `key` names caller, endpoint and member. */
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

// Which members of an endpoint work on a request of a session, so that what its client says of it reaches them
// alone: a cancellation, whose text may say what was asked. One replica's memory, as long as the requests run;
// a caller reaches its own session only.
// Source: MCP 2025-11-25, cancellation.

type RunningBackends = {
  /** Enters a member under the sealed session; the returned function takes it out again. */
  enter(session: string, id: RequestId, upstream: string): () => void;
  /** The members that work on this request; none where nothing is known of it. */
  find(session: string, id: RequestId): readonly string[];
};

/** An empty table. */
export function createRunningBackends(): RunningBackends {
  // Plain values only: nothing here holds on to a request.
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
      // Two requests under one id, which no client should send, are two.
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

/** The ids 1 and "1" are two (JSON-RPC 2.0 §4). */
function keyOf(session: string, id: RequestId): string {
  return `${session} ${JSON.stringify(id)}`;
}
