// Caches translated list pages by the exact bytes received, so that a repeated page, as nearly every page is,
// is not parsed and translated again. The translation depends only on the bytes, the method and the ids, so
// nothing in the cache depends on the caller.

import {
  matchesMessage,
  piecesAtId,
  type SplitMessage,
  splitAtId,
} from '../../protocol/json/json.js';
import type { RequestId } from '../../protocol/jsonrpc.js';
import type { Bytes } from '../../protocol/transport.js';

/** Methods whose responses are usually repeated. */
const LISTS: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);
const MAX_PAGES = 64;
/** A larger page is translated each time. */
const MAX_PAGE_BYTES = 512 * 1024;

/** The request id in the received message and the one in its translation. */
export type TranslationIds = { readonly source: RequestId; readonly translated: RequestId };

/** A message as received and as translated, both as text. */
export type TranslatedPage = { readonly source: string; readonly translated: string };

export type TranslatedPages = {
  /**
   * Translates these bytes; `translateAnew` is called if the page is not cached, and returns undefined if the
   * bytes are not JSON or have no translation. They are then returned unchanged.
   */
  translate(
    method: string,
    bytes: Uint8Array,
    ids: TranslationIds,
    translateAnew: () => Promise<TranslatedPage | undefined>,
  ): Bytes | Promise<Bytes>;
};

const encoder = new TextEncoder();

type Kept = { readonly source: SplitMessage; readonly translated: SplitMessage };

/** Creates the cache of one upstream. Per method and length it keeps the newest page. */
export function createTranslatedPages(): TranslatedPages {
  const pages = new Map<string, Kept>();
  const keyOf = (method: string, length: number, id: RequestId): string =>
    `${method} ${length - JSON.stringify(id).length}`;

  function recall(method: string, bytes: Uint8Array, ids: TranslationIds): Bytes | undefined {
    const kept = pages.get(keyOf(method, bytes.length, ids.source));
    if (kept === undefined || !matchesMessage(kept.source, bytes, ids.source, isEqual))
      return undefined;
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
