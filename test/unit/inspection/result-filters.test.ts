// A page of a list: hidden items are gone, kept ones are the bytes that the upstream sent. A page seen again is recognized
// by its bytes, and only then; what one policy key sees, no other does. The answers to initialize and server/discover:
// only what is carried and approved is told.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inspectMessage } from '../../../src/inspection/responses.js';
import {
  completeHandshake,
  completeList,
  createPageCache,
  filterItems,
  type HandshakeInput,
  type ListInput,
  type ListOutcome,
  type PageCache,
  reduceHandshake,
} from '../../../src/inspection/result-filters.js';
import { findShapeError } from '../../../src/protocol/definition-shape.js';
import type { Json, JsonObject, RequestId } from '../../../src/protocol/jsonrpc.js';
import { profile, resultOf } from './samples.js';

function filter(
  message: { readonly text: string; readonly value: Json },
  visible: readonly string[],
  more: Partial<ListInput> = {},
): Extract<ListOutcome, { kind: 'listed' }> {
  const outcome = filterAny(message, visible, more);
  if (outcome.kind !== 'listed') throw new Error(`withheld: ${outcome.reason}`);
  return outcome;
}

function filterAny(
  message: { readonly text: string; readonly value: Json },
  visible: readonly string[],
  more: Partial<ListInput> = {},
): ListOutcome {
  const page = filterItems({
    ...message,
    kind: 'tools',
    hasCacheHints: false,
    profile,
    listTtlMs: 30_000,
    isReviewed: true,
    digestOf: (_item, itemText) => `digest of ${itemText.length}`,
    isVisible: ({ name }) => visible.includes(name),
    // Most of these definitions have no schemas.
    findShapeError: () => undefined,
    ...more,
  });
  return page.kind === 'withhold' ? page : completeList(page, inspectMessage(page.inspectionInput));
}

const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object' },
  ...more,
});

describe('lists', () => {
  it('lose an item that clients cannot read, and keep its siblings and the place of the fault', () => {
    const page = resultOf({ tools: [tool('a'), tool('b', { title: 7 }), tool('c')] });
    const { text, advertised, visible, findings } = filter(page, ['a', 'b', 'c'], {
      findShapeError,
    });
    expect(JSON.parse(text).result.tools.map(({ name }: { name: string }) => name)).toEqual(['a', 'c']);
    expect([advertised, visible]).toEqual([3, 2]);
    expect(findings).toEqual([
      {
        ...{ detector: 'definition', direction: 'to-client', path: '/result/tools/1/title' },
        ...{ count: 1, action: 'drop' },
      },
    ]);
    // What the caller would not see is not named.
    expect(filter(page, ['a', 'c'], { findShapeError }).findings).toEqual([]);
  });

  it('[I-35] lose hidden items and keep the rest, the cursor and its position, byte for byte', () => {
    const kept = '{"name":"b", "description":"\\u0042 <script>x</script>","inputSchema":{"n":1E2}}';
    const text = `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"}, ${kept} ,{"name":"c"}],"nextCursor":"p2","ttlMs":5}}`;
    const outcome = filter({ text, value: JSON.parse(text) }, ['b']);
    expect(outcome.text).toBe(`{"jsonrpc":"2.0","id":7,"result":{"tools":[${kept}],"nextCursor":"p2","ttlMs":5}}`);
    expect(outcome).toMatchObject({ advertised: 3, visible: 1 });
    expect(outcome.items.map((item) => item.name)).toEqual(['a', 'b', 'c']);
    expect(outcome.items[1]?.digest).toBe(`digest of ${kept.length}`);
  });

  it('[I-35] of which everything is visible leave as the very same text, empty ones too', () => {
    const page = resultOf({ tools: [tool('a'), tool('b')] });
    expect(filter(page, ['a', 'b']).text).toBe(page.text);
    const empty = resultOf({ tools: [], nextCursor: '' });
    expect(filter(empty, []).text).toBe(empty.text);
  });

  it('[I-35] law: whatever is visible, exactly that is listed, in its order', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    fc.assert(
      fc.property(fc.uniqueArray(name), fc.uniqueArray(name), (offered, visible) => {
        const outcome = filter(resultOf({ tools: offered.map((one) => tool(one)) }), visible);
        const listed = JSON.parse(outcome.text).result.tools.map((one: JsonObject) => one['name']);
        expect(listed).toEqual(offered.filter((one) => visible.includes(one)));
      }),
    );
  });

  it('[I-36] never show a name that occurs twice, nor an item without a name', () => {
    const page = resultOf({
      tools: [tool('a'), tool('b'), tool('a', { title: 'other' }), { title: 'x' }, 'y'],
    });
    const outcome = filter(page, ['a', 'b']);
    expect(JSON.parse(outcome.text).result.tools.map((one: JsonObject) => one['name'])).toEqual(['b']);
    expect(outcome).toMatchObject({ advertised: 5, visible: 1 });
  });

  it('[I-36] lose icons that a client would fetch; pictures in the text stay', () => {
    const inline = { icons: [{ src: 'data:image/png;base64,AAAA' }] };
    const page = resultOf({
      tools: [tool('a', { icons: [{ src: 'https://e.example/i.png' }] }), tool('b', inline)],
    });
    const { tools } = JSON.parse(filter(page, ['a', 'b']).text).result;
    expect(tools).toEqual([tool('a'), tool('b', inline)]);
  });

  it('[I-37] of 2026 are private and fresh no longer than the cap; of sessions untouched', () => {
    const page = resultOf({ tools: [], ttlMs: 1e15, cacheScope: 'public' });
    const stateless = JSON.parse(filter(page, [], { hasCacheHints: true }).text).result;
    expect(stateless).toMatchObject({ ttlMs: 30_000, cacheScope: 'private' });
    const bare = JSON.parse(filter(resultOf({ tools: [] }), [], { hasCacheHints: true }).text).result;
    expect(bare).toEqual({ tools: [], cacheScope: 'private' });
    const negative = JSON.parse(filter(resultOf({ tools: [], ttlMs: 'x' }), [], { hasCacheHints: true }).text).result;
    expect(negative.ttlMs).toBe(0);
    expect(filter(page, []).text).toBe(page.text);
  });

  it('[I-37] are inspected beside their reviewed items, and wholly where items were not reviewed', () => {
    const hostile = { _meta: { note: '<script>x</script>' } };
    const page = resultOf({
      tools: [tool('a', { description: '<img src=//e.example>' })],
      ...hostile,
    });
    const reviewed = filter(page, ['a']);
    expect(reviewed.text).toContain('<img src=//e.example>');
    expect(reviewed.text).not.toContain('<script>');
    const unreviewed = filter(page, ['a'], { isReviewed: false });
    expect(unreviewed.text).not.toContain('<img');
    const resources = resultOf({
      resources: [{ uri: 'a://b', name: '![x](https://e.example/p)' }],
    });
    const listed = filter(resources, ['a://b'], { kind: 'resources', isReviewed: false });
    expect(listed.text).not.toContain('![');
  });

  it('[I-36] that are no list of the kind are withheld', () => {
    for (const result of [{}, { tools: {} }, { prompts: [] }, { tools: null }]) {
      expect(filterAny(resultOf(result), [])).toMatchObject({
        kind: 'withhold',
        reason: 'upstream-protocol',
      });
    }
    const templates = resultOf({ resourceTemplates: [{ uriTemplate: 'a://{b}', name: 'n' }] });
    expect(filter(templates, ['a://{b}'], { kind: 'templates' }).visible).toBe(1);
  });
});

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
    expect(decode(Buffer.concat(filtered?.render('another "id"') ?? []))).toBe(page('another "id"', ''));
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

function shake(result: Json, more: Partial<HandshakeInput> = {}) {
  const reduced = reduceHandshake({
    ...resultOf(result),
    method: 'initialize',
    profile,
    carriedVersions: ['2025-06-18', '2025-11-25'],
    instructions: undefined,
    listTtlMs: 30_000,
    filterCapabilities: (capabilities) => ('tools' in capabilities ? { tools: {} } : {}),
    ...more,
  });
  return reduced.kind === 'withhold' ? reduced : completeHandshake(reduced, inspectMessage(reduced.inspectionInput));
}

function resultIn(outcome: ReturnType<typeof shake>) {
  if (outcome.kind !== 'passed') throw new Error(`withheld: ${outcome.reason}`);
  return JSON.parse(outcome.text).result;
}

const initialize = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
};

describe('handshakes', () => {
  it('[I-38] with nothing to change leave as they came', () => {
    const outcome = shake(initialize);
    expect(outcome).toMatchObject({
      kind: 'passed',
      text: resultOf(initialize).text,
      hadOtherInstructions: false,
    });
  });

  it('[I-38] lose capabilities that are not carried', () => {
    const capabilities = { tools: { listChanged: true }, tasks: {}, experimental: { a: {} } };
    expect(resultIn(shake({ ...initialize, capabilities })).capabilities).toEqual({ tools: {} });
    expect(resultIn(shake({ protocolVersion: '2025-11-25', serverInfo: {} })).capabilities).toEqual({});
  });

  it('[I-39] keep instructions only where they are the approved ones, to the letter', () => {
    const instructions = 'Use the tools well. <b onclick=x>As reviewed.</b>';
    const approved = shake({ ...initialize, instructions }, { instructions });
    expect(resultIn(approved).instructions).toBe(instructions);
    const other = shake({ ...initialize, instructions: `${instructions} ` }, { instructions });
    expect(resultIn(other)).not.toHaveProperty('instructions');
    expect(other).toMatchObject({ hadOtherInstructions: true });
    expect(resultIn(shake({ ...initialize, instructions }))).not.toHaveProperty('instructions');
  });

  it('[I-38] naming no version that is carried are withheld; others are dropped from the list', () => {
    const reason = { kind: 'withhold', reason: 'upstream-protocol' };
    expect(shake({ ...initialize, protocolVersion: '2024-11-05' })).toMatchObject(reason);
    expect(shake({ ...initialize, protocolVersion: 1 })).toMatchObject(reason);
    const discover = { method: 'server/discover', carriedVersions: ['2026-07-28'] } as const;
    const result = {
      supportedVersions: ['2027-01-01', '2026-07-28'],
      capabilities: {},
      ttlMs: 1e9,
      cacheScope: 'public',
    };
    expect(resultIn(shake(result, discover))).toMatchObject({
      supportedVersions: ['2026-07-28'],
      cacheScope: 'private',
      ttlMs: 30_000,
    });
    expect(shake({ ...result, supportedVersions: ['2027-01-01'] }, discover)).toMatchObject(reason);
    expect(shake({ ...result, supportedVersions: 'x' }, discover)).toMatchObject(reason);
  });

  it('[I-38] are inspected besides: texts, icons and metadata of a server are content too', () => {
    const serverInfo = {
      name: 'x',
      version: '1',
      title: 'a <script>b()',
      icons: [{ src: 'https://e.example/i.svg' }],
    };
    const info = resultIn(shake({ ...initialize, serverInfo })).serverInfo;
    expect(info).toEqual({ name: 'x', version: '1', title: 'a &lt;script>b()' });
  });
});
