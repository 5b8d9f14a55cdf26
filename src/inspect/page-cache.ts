// Pages of lists that were seen before: a page whose bytes are those of the last time, but for the
// JSON-RPC id, keeps its digests and, for each policy key, its filtered form. A key must name whatever the
// filtered form depends on (upstream, era, cursor; policy, pins and principal); nothing is kept for others.
// Source: contract §6 (results that depend on the caller); MCP 2026-07-28, caching.

import type { Bytes, Pieces } from '../mcp/body.js';
import { type Halves, type IsEqual, isJoined, piecesAtId, splitAtId } from '../mcp/id-halves.js';
import type { RequestId } from '../mcp/message.js';
import type { Finding } from '../policy/record.js';
import type { ListItem } from './filter-list.js';

/** A filtered page as one policy key sees it. */
export type FilteredPage = {
  readonly advertised: number;
  readonly visible: number;
  readonly findings: readonly Finding[];
  /** What to send, with this id. */
  render(id: RequestId): Pieces;
};

export interface CachedPage {
  readonly items: readonly ListItem[];
  filtered(policyKey: string): FilteredPage | undefined;
  /** Keeps the filtered text of this page, which must hold the id that the page came with. */
  keepFiltered(
    policyKey: string,
    text: string,
    facts: Pick<FilteredPage, 'advertised' | 'visible' | 'findings'>,
  ): void;
}

export interface PageCache {
  /** The page kept under the key, if these bytes are its bytes but for the id. */
  find(key: string, bytes: Bytes, id: RequestId): CachedPage | undefined;
  /** Keeps a page; undefined where its id is spelled unusually and it cannot be recognized again. */
  keep(
    key: string,
    page: { readonly bytes: Uint8Array; readonly text: string; readonly id: RequestId },
    items: readonly ListItem[],
  ): CachedPage | undefined;
}

export type PageCacheOptions = {
  readonly maxPages: number;
  /** Pages and forms together; past it the pages unused longest go. One larger page is not kept. */
  readonly maxBytes: number;
  /** Filtered forms of one page. */
  readonly maxForms: number;
  readonly isEqual: IsEqual;
};

type Kept = { readonly halves: Halves; readonly page: CachedPage; bytes: number };

/** A cache within `maxPages` and `maxBytes` that drops the page unused longest. */
export function createPageCache(options: PageCacheOptions): PageCache {
  const pages = new Map<string, Kept>();
  let totalBytes = 0;

  function drop(key: string): void {
    totalBytes -= pages.get(key)?.bytes ?? 0;
    pages.delete(key);
  }

  function makeCapacity(): void {
    for (const key of pages.keys()) {
      if (pages.size <= options.maxPages && totalBytes <= options.maxBytes) return;
      drop(key);
    }
  }

  /** Counts what a page holds besides, where it still is in the cache. */
  function grow(key: string, kept: Kept, bytes: number): void {
    kept.bytes += bytes;
    if (pages.get(key) !== kept) return;
    totalBytes += bytes;
    makeCapacity();
  }

  return {
    find(key, bytes, id) {
      const kept = pages.get(key);
      if (kept === undefined || !isJoined(kept.halves, bytes, id, options.isEqual))
        return undefined;
      pages.delete(key);
      pages.set(key, kept);
      return kept.page;
    },
    keep(key, { bytes, text, id }, items) {
      const halves = splitAtId(text, id);
      drop(key);
      if (halves === undefined || !isJoined(halves, bytes, id, options.isEqual)) return undefined;
      const page = createPage(items, id, options.maxForms, (more) => grow(key, kept, more));
      const kept: Kept = { halves, page, bytes: 0 };
      pages.set(key, kept);
      grow(key, kept, bytes.byteLength);
      return page;
    },
  };
}

function createPage(
  items: readonly ListItem[],
  id: RequestId,
  maxForms: number,
  grow: (bytes: number) => void,
): CachedPage {
  const forms = new Map<string, FilteredPage & { readonly bytes: number }>();

  function drop(policyKey: string): void {
    grow(-(forms.get(policyKey)?.bytes ?? 0));
    forms.delete(policyKey);
  }

  return {
    items,
    filtered: (policyKey) => forms.get(policyKey),
    keepFiltered(policyKey, text, facts) {
      const halves = splitAtId(text, id);
      if (halves === undefined) return;
      drop(policyKey);
      const bytes = halves.head.byteLength + halves.tail.byteLength;
      forms.set(policyKey, { ...facts, bytes, render: (other) => piecesAtId(halves, other) });
      const [oldest] = forms.keys();
      if (forms.size > maxForms && oldest !== undefined) drop(oldest);
      grow(bytes);
    },
  };
}
