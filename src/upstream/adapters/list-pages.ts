// Caches translated list pages by the exact bytes received, so that a repeated page, as nearly every page is,
// is not parsed and translated again. The translation depends only on the bytes, the method and the ids, so
// nothing in the cache depends on the caller.

import {
  matchesMessage,
  piecesAtId,
  type SplitMessage,
  splitAtId,
} from '../../protocol/json/json.js';
import type { Json, RequestId } from '../../protocol/jsonrpc.js';
import { type Bytes, joinPieces, type UpstreamResponse } from '../../protocol/transport.js';
import { BoundedMap } from '../../state/bounded-map.js';
import { type MessageReader, parseBody } from '../message-reader.js';

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

type CachedTranslation = { readonly source: SplitMessage; readonly translated: SplitMessage };

/** Creates the cache of one upstream. Per method and length it keeps the newest page. */
export function createTranslatedPages(): TranslatedPages {
  const pages = new BoundedMap<string, CachedTranslation>(MAX_PAGES);
  const keyOf = (method: string, length: number, id: RequestId): string =>
    `${method} ${length - JSON.stringify(id).length}`;

  function recall(method: string, bytes: Uint8Array, ids: TranslationIds): Bytes | undefined {
    const cached = pages.get(keyOf(method, bytes.length, ids.source));
    if (cached === undefined || !matchesMessage(cached.source, bytes, ids.source, isEqual))
      return undefined;
    return piecesAtId(cached.translated, ids.translated);
  }

  function store(method: string, page: TranslatedPage, ids: TranslationIds): void {
    const source = splitAtId(page.source, ids.source);
    const translated = splitAtId(page.translated, ids.translated);
    if (source === undefined || translated === undefined) return;
    const length = source.head.length + source.tail.length;
    if (length > MAX_PAGE_BYTES) return;
    pages.set(`${method} ${length}`, { source, translated });
  }

  return {
    translate(method, bytes, ids, translateAnew) {
      const isList = LISTS.has(method);
      const known = isList ? recall(method, bytes, ids) : undefined;
      if (known !== undefined) return known;
      return translateAnew().then((page) => {
        if (page === undefined) return bytes;
        if (isList) store(method, page, ids);
        return encoder.encode(page.translated);
      });
    },
  };
}

/** How the body of one response is translated. */
type BodyTranslation = {
  readonly method: string;
  readonly ids: TranslationIds;
  readonly messageReader: MessageReader | undefined;
  /** Undefined if the message has no translation. */
  translate(text: string, value: Json): string | undefined;
};

/** Reads a complete body and translates its message. What is not JSON stays: the check of the response refuses it. */
export function translatedBody(
  response: UpstreamResponse,
  pages: TranslatedPages,
  { method, ids, messageReader, translate }: BodyTranslation,
): UpstreamResponse['readBody'] {
  return async (maxBytes, withinMs) => {
    const body = await response.readBody(maxBytes, withinMs);
    if (typeof body === 'string') return body;
    const bytes = joinPieces(body);
    return pages.translate(method, bytes, ids, async () => {
      const inbound = await parseBody(bytes, messageReader);
      if (inbound.kind !== 'message' || inbound.value === undefined) return undefined;
      const translated = translate(inbound.text, inbound.value);
      return translated === undefined ? undefined : { source: inbound.text, translated };
    });
  };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
