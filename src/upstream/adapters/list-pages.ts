// Pages of lists as they were told in the other era, by the very bytes that were heard: a page that comes
// again, as nearly every page does, is told again without being read. What is told is a function of what was
// heard, of the method and of the ids alone, so nothing here depends on who asks.

import { type Halves, isJoined, piecesAtId, splitAtId } from '../../protocol/json/json.js';
import type { RequestId } from '../../protocol/jsonrpc.js';
import type { Bytes } from '../../protocol/transport.js';

/** Methods whose answers come again and again. */
const LISTS: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);
const MAX_PAGES = 64;
/** A page larger than this is told anew each time. */
const MAX_PAGE_BYTES = 512 * 1024;

/** What was heard under one id is told under another. */
export type TranslationIds = { readonly source: RequestId; readonly translated: RequestId };

/** A message as it was heard and as it is told, both as text. */
export type TranslatedPage = { readonly source: string; readonly translated: string };

export type TranslatedPages = {
  /** What these bytes are told as; `tellAnew` is asked where that is not known, and says nothing of what is no JSON. */
  translate(
    method: string,
    bytes: Uint8Array,
    ids: TranslationIds,
    translateAnew: () => Promise<TranslatedPage | undefined>,
  ): Bytes | Promise<Bytes>;
};

const encoder = new TextEncoder();

type Kept = { readonly source: Halves; readonly translated: Halves };

/** A memory of one upstream, which keeps the page of each length that came last. */
export function createTranslatedPages(): TranslatedPages {
  const pages = new Map<string, Kept>();
  const keyOf = (method: string, length: number, id: RequestId): string =>
    `${method} ${length - JSON.stringify(id).length}`;

  function recall(method: string, bytes: Uint8Array, ids: TranslationIds): Bytes | undefined {
    const kept = pages.get(keyOf(method, bytes.length, ids.source));
    if (kept === undefined || !isJoined(kept.source, bytes, ids.source, isEqual)) return undefined;
    return piecesAtId(kept.translated, ids.translated);
  }

  function keep(method: string, page: TranslatedPage, ids: TranslationIds): void {
    const source = splitAtId(page.source, ids.source);
    const translated = splitAtId(page.translated, ids.translated);
    if (source === undefined || translated === undefined) return;
    const length = source.head.length + source.tail.length;
    if (length > MAX_PAGE_BYTES) return;
    const key = `${method} ${length}`;
    pages.delete(key);
    pages.set(key, { source, translated });
    const [oldest] = pages.keys();
    if (pages.size > MAX_PAGES && oldest !== undefined) pages.delete(oldest);
  }

  return {
    translate(method, bytes, ids, translateAnew) {
      const isList = LISTS.has(method);
      const known = isList ? recall(method, bytes, ids) : undefined;
      if (known !== undefined) return known;
      return translateAnew().then((page) => {
        if (page === undefined) return bytes;
        if (isList) keep(method, page, ids);
        return encoder.encode(page.translated);
      });
    },
  };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
