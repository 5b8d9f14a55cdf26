// Pages of lists as they were told in the other era, by the very bytes that were heard: a page that comes
// again, as nearly every page does, is told again without being read. What is told is a function of what was
// heard, of the method and of the ids alone, so nothing here depends on who asks.

import type { Bytes } from '../../mcp/body.js';
import { type Halves, isJoined, piecesAtId, splitAtId } from '../../mcp/id-halves.js';
import type { RequestId } from '../../mcp/message.js';

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
export type TellingIds = { readonly heard: RequestId; readonly told: RequestId };

/** A message as it was heard and as it is told, both as text. */
export type Telling = { readonly heard: string; readonly told: string };

export type ToldPages = {
  /** What these bytes are told as; `tellAnew` is asked where that is not known, and says nothing of what is no JSON. */
  tell(
    method: string,
    bytes: Uint8Array,
    ids: TellingIds,
    tellAnew: () => Promise<Telling | undefined>,
  ): Bytes | Promise<Bytes>;
};

const encoder = new TextEncoder();

type Kept = { readonly heard: Halves; readonly told: Halves };

/** A memory of one upstream, which keeps the page of each length that came last. */
export function createToldPages(): ToldPages {
  const pages = new Map<string, Kept>();
  const keyOf = (method: string, length: number, id: RequestId): string =>
    `${method} ${length - JSON.stringify(id).length}`;

  function recall(method: string, bytes: Uint8Array, ids: TellingIds): Bytes | undefined {
    const kept = pages.get(keyOf(method, bytes.length, ids.heard));
    if (kept === undefined || !isJoined(kept.heard, bytes, ids.heard, isEqual)) return undefined;
    return piecesAtId(kept.told, ids.told);
  }

  function keep(method: string, telling: Telling, ids: TellingIds): void {
    const heard = splitAtId(telling.heard, ids.heard);
    const told = splitAtId(telling.told, ids.told);
    if (heard === undefined || told === undefined) return;
    const length = heard.head.length + heard.tail.length;
    if (length > MAX_PAGE_BYTES) return;
    const key = `${method} ${length}`;
    pages.delete(key);
    pages.set(key, { heard, told });
    const [oldest] = pages.keys();
    if (pages.size > MAX_PAGES && oldest !== undefined) pages.delete(oldest);
  }

  return {
    tell(method, bytes, ids, tellAnew) {
      const isList = LISTS.has(method);
      const known = isList ? recall(method, bytes, ids) : undefined;
      if (known !== undefined) return known;
      return tellAnew().then((telling) => {
        if (telling === undefined) return bytes;
        if (isList) keep(method, telling, ids);
        return encoder.encode(telling.told);
      });
    },
  };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
