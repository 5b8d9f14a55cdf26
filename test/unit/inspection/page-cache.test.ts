// A page seen again is recognized by its bytes, and only then; what one policy key sees, no other does.

import { describe, expect, it } from 'vitest';
import { createPageCache, type PageCache } from '../../../src/inspection/lists.js';
import type { RequestId } from '../../../src/protocol/jsonrpc.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

function newCache(maxPages = 4, maxBytes = 1_000_000): PageCache {
  const isEqual = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;
  return createPageCache({ maxPages, maxBytes, maxFilteredPages: 2, isEqual });
}

const page = (id: RequestId, list = '"\u00e9"'): string =>
  `{"jsonrpc":"2.0","result":{"tools":[${list}],"id":5},"id":${JSON.stringify(id)}}`;

function keep(cache: PageCache, key: string, id: RequestId, text = page(id)) {
  return cache.keep(key, { bytes: encode(text), text, id }, [{ name: 'a', digest: 'd' }]);
}

describe('the page cache', () => {
  it('[H-05] holds no more bytes than it may, pages and forms together', () => {
    const bytes = encode(page(1)).byteLength;
    const cache = newCache(100, 3 * bytes);
    const facts = { advertised: 1, visible: 1, findings: [] };
    for (const key of ['a', 'b', 'c', 'd']) keep(cache, key, 1);
    const kept = (): readonly string[] =>
      ['a', 'b', 'c', 'd'].filter((key) => cache.find(key, encode(page(1)), 1) !== undefined);
    expect(kept()).toEqual(['b', 'c', 'd']);
    cache.find('d', encode(page(1)), 1)?.keepFiltered('policy', page(1), facts);
    expect(kept()).toEqual(['c', 'd']);
    // What takes the place of a form or a page gives back what that held.
    for (let round = 0; round < 5; round += 1) {
      cache.find('d', encode(page(1)), 1)?.keepFiltered('policy', page(1), facts);
      keep(cache, 'c', 1);
    }
    expect(kept()).toEqual(['c', 'd']);
    expect(keep(newCache(100, bytes / 2), 'a', 1)).toBeDefined();
  });

  it('[I-40] knows a page again under every id, and gives its items and filtered form', () => {
    const cache = newCache();
    const facts = { advertised: 2, visible: 1, findings: [] };
    keep(cache, 'k', 1)?.keepFiltered('policy', page(1, ''), facts);
    const found = cache.find('k', encode(page('another "id"')), 'another "id"');
    expect(found?.items).toEqual([{ name: 'a', digest: 'd' }]);
    const filtered = found?.filtered('policy');
    expect(filtered).toMatchObject(facts);
    expect(decode(Buffer.concat(filtered?.render('another "id"') ?? []))).toBe(
      page('another "id"', ''),
    );
    expect(found?.filtered('other policy')).toBeUndefined();
  });

  it('[I-40] knows no page of which one byte differs, nor one of another key or id', () => {
    const cache = newCache();
    keep(cache, 'k', 1);
    expect(cache.find('k', encode(page(1)), 1)).toBeDefined();
    expect(cache.find('k', encode(page(1, '"\u00e8"')), 1)).toBeUndefined();
    expect(cache.find('k', encode(`${page(1)} `), 1)).toBeUndefined();
    expect(cache.find('k', encode(page(2)), 1)).toBeUndefined();
    expect(cache.find('k', encode(page('1')), 1)).toBeUndefined();
    expect(cache.find('other', encode(page(1)), 1)).toBeUndefined();
  });

  it('[I-40] knows a page that comes in its pieces, and none of which one differs', () => {
    const cache = newCache();
    keep(cache, 'k', 1);
    const text = page(7);
    const at = text.lastIndexOf('7');
    const pieces = (head: string, id: string, tail: string) => [head, id, tail].map(encode);
    const [head, tail] = [text.slice(0, at), text.slice(at + 1)];
    expect(cache.find('k', pieces(head, '7', tail), 7)).toBeDefined();
    expect(cache.find('k', pieces(head, '7', tail), 8)).toBeUndefined();
    expect(cache.find('k', pieces(head, '8', tail), 7)).toBeUndefined();
    expect(cache.find('k', pieces(`${head} `, '7', tail), 7)).toBeUndefined();
    expect(cache.find('k', pieces(head, '7', `${tail} `), 7)).toBeUndefined();
    expect(cache.find('k', [...pieces(head, '7', tail), encode('x')], 7)).toBeUndefined();
    expect(cache.find('k', [encode(text)], 7)).toBeUndefined();
    expect(cache.find('k', [], 7)).toBeUndefined();
  });

  it('[I-40] keeps no page whose id is spelled unusually, and forgets what stood under the key', () => {
    const cache = newCache();
    keep(cache, 'k', 1);
    const text = page(1).replace('"id":1}', '"id":1.0}');
    expect(keep(cache, 'k', 1, text)).toBeUndefined();
    expect(cache.find('k', encode(page(1)), 1)).toBeUndefined();
  });

  it('[I-40] is bounded in pages and in forms of a page', () => {
    const cache = newCache(2);
    for (const key of ['a', 'b', 'c']) keep(cache, key, 1);
    expect(cache.find('a', encode(page(1)), 1)).toBeUndefined();
    const found = cache.find('b', encode(page(1)), 1);
    const facts = { advertised: 0, visible: 0, findings: [] };
    for (const policy of ['x', 'y', 'z']) found?.keepFiltered(policy, page(1), facts);
    expect(found?.filtered('x')).toBeUndefined();
    expect(found?.filtered('z')).toBeDefined();
  });
});
