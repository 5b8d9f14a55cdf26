// A page of a list: hidden items are gone, kept ones are the bytes that the upstream sent.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  completeList,
  filterItems,
  type ListInput,
  type ListOutcome,
} from '../../../src/inspection/lists.js';
import { inspectMessage } from '../../../src/inspection/responses.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
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
  it('[I-35] lose hidden items and keep the rest, the cursor and its position, byte for byte', () => {
    const kept = '{"name":"b", "description":"\\u0042 <script>x</script>","inputSchema":{"n":1E2}}';
    const text = `{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"}, ${kept} ,{"name":"c"}],"nextCursor":"p2","ttlMs":5}}`;
    const outcome = filter({ text, value: JSON.parse(text) }, ['b']);
    expect(outcome.text).toBe(
      `{"jsonrpc":"2.0","id":7,"result":{"tools":[${kept}],"nextCursor":"p2","ttlMs":5}}`,
    );
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
    expect(JSON.parse(outcome.text).result.tools.map((one: JsonObject) => one['name'])).toEqual([
      'b',
    ]);
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
    const bare = JSON.parse(
      filter(resultOf({ tools: [] }), [], { hasCacheHints: true }).text,
    ).result;
    expect(bare).toEqual({ tools: [], cacheScope: 'private' });
    const negative = JSON.parse(
      filter(resultOf({ tools: [], ttlMs: 'x' }), [], { hasCacheHints: true }).text,
    ).result;
    expect(negative.ttlMs).toBe(30_000);
    expect(filter(page, []).text).toBe(page.text);
  });

  it('[I-37] are inspected beside their reviewed items, and wholly where items were not reviewed', () => {
    const hostile = { _meta: { note: '<script>x</script>' } };
    const page = resultOf({ tools: [tool('a', { description: '<img src=x>' })], ...hostile });
    const reviewed = filter(page, ['a']);
    expect(reviewed.text).toContain('<img src=x>');
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
