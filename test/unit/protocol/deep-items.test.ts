import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEEP_ITEM,
  MAX_ITEM_DEPTH,
  readServerJson,
  withoutDeepItems,
} from '../../../src/protocol/deep-items.js';
import { MAX_JSON_DEPTH } from '../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';

const CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 100_000 };

/** An item with this many levels, itself included. */
function item(levels: number): string {
  return `{"name":"n","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
}

function listOf(items: readonly string[], member = 'tools'): string {
  return `{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"]}","${member}":[${items.join()}]}}`;
}

function itemsOf(text: string, member = 'tools'): unknown {
  const reading = readServerJson(text, CAPS);
  if (!reading.ok) return reading.error;
  const result = (reading.value as JsonObject)['result'] as JsonObject;
  return result[member];
}

describe('an item of a list that is nested too deeply', () => {
  it.each(['tools', 'prompts', 'resources', 'resourceTemplates'])(
    'is replaced alone, in %s',
    (member) => {
      const fine = item(MAX_ITEM_DEPTH);
      const text = listOf([fine, item(MAX_ITEM_DEPTH + 1), '7', item(100_000), fine], member);
      const parsed = JSON.parse(fine);
      expect(itemsOf(text, member)).toEqual([parsed, DEEP_ITEM, 7, DEEP_ITEM, parsed]);
      expect(itemsOf(listOf([fine], member), member)).toEqual([parsed]);
    },
  );

  it.each([
    ['a result that is no list', listOf([item(400)], 'content')],
    ['an error', listOf([item(400)]).replace('"result"', '"error"')],
    ['what stands beside the list', listOf(['7']).replace('"]}"', item(400))],
    ['a list that is in a list', `[${listOf([item(400)])}]`],
  ])('is not looked for in %s', (_, text) => {
    expect(itemsOf(text)).toBe('too-deep');
  });

  it('leaves nothing but valid JSON behind it', () => {
    for (const text of [`{"result":{"tools":[${'['.repeat(1_000_000)}`, `${listOf([item(400)])}]`])
      expect(readServerJson(text, CAPS).ok).toBe(false);
    expect(itemsOf(listOf([item(400), '{"a":1,"a":2}']))).toBe('duplicate-key');
  });

  it('ends for any text, and edits only between brackets', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\a') }), (rest) => {
        const text = listOf([item(300), rest]);
        const edited = withoutDeepItems(text);
        expect(edited === undefined || edited.length < text.length).toBe(true);
      }),
    );
  });
});
