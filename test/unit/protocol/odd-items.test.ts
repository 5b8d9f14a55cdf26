import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_JSON_DEPTH, readJsonText } from '../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { readMended } from '../../../src/protocol/lone-surrogates.js';
import { LEFT_OUT, MAX_ITEM_DEPTH, readServerJson, withoutOddItems } from '../../../src/protocol/odd-items.js';

const CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 100_000 };

/** An item with this many levels, itself included. */
function item(levels: number): string {
  return `{"name":"n","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
}

function listOf(items: readonly string[], member = 'tools'): string {
  return `{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"]}","${member}":[${items.join()}]}}`;
}

function itemsOf(text: string, member = 'tools'): unknown {
  const reading = readMended(text, (source) => readServerJson(source, CAPS));
  if (!reading.ok) return reading.error;
  const result = (reading.value as JsonObject)['result'] as JsonObject;
  return result[member];
}

const DEEP_ITEM = LEFT_OUT['too-deep'];
const LISTS = ['tools', 'prompts', 'resources', 'resourceTemplates'];

/** Items that cannot be read, with what is wrong with each. */
const ODD: readonly (readonly [keyof typeof LEFT_OUT, string])[] = [
  ['duplicate-key', '{"name":"n","name":"m"}'],
  ['duplicate-key', '{"name":"n","Name":"m"}'],
  ['duplicate-key', '{"name":"n","inputSchema":{"properties":{"a":{},"a":{}}}}'],
  ['duplicate-key', '{"name":"n","na\\u006de":"m"}'],
  ['duplicate-key', '{"name":"n","x\\u0000":1}'],
  ['prototype-member', '{"name":"n","__proto__":{}}'],
  ['prototype-member', '{"name":"n","inputSchema":{"properties":{"__pr\\u006fto__":{}}}}'],
  ['malformed-json', '{"name":"n","default":NaN}'],
  ['malformed-json', '{"name":"n",}'],
  ['malformed-json', '{"name":"a\n"}'],
  ['malformed-json', 'NaN'],
  ['malformed-json', 'undefined'],
  ['malformed-json', '"\\x"'],
  ['lone-surrogate', '{"name":"n","x\\ud800":1}'],
  ['lone-surrogate', '[{"\\ud800":1}]'],
  ['duplicate-key', '{"name":"n","a":"\\ud800","b":1,"b":2}'],
  ['too-deep', item(MAX_ITEM_DEPTH + 1)],
];

describe('an item of a list that cannot be read', () => {
  const fine = item(3);

  it.each(ODD.flatMap(([error, odd]) => LISTS.map((member) => [error, odd, member] as const)))(
    'because of %s is replaced alone: %s in %s',
    (error, odd, member) => {
      const text = listOf([fine, odd, '7', fine], member);
      const parsed = JSON.parse(fine);
      expect(itemsOf(text, member)).toEqual([parsed, LEFT_OUT[error], 7, parsed]);
    },
  );

  it('is replaced whatever is wrong with the others', () => {
    const text = listOf(ODD.map(([, odd]) => odd));
    expect(itemsOf(text)).toEqual(ODD.map(([error]) => LEFT_OUT[error]));
  });

  it('leaves text that is read strictly, whatever stands in the items', () => {
    const piece = fc.constantFrom(
      ...['{', '}', '[', ']', ',', ':', '"a"', '"A"', '"__proto__"', '"\\ud800"', '1', '"', '\\'],
    );
    fc.assert(
      fc.property(fc.array(fc.array(piece), { maxLength: 4 }), (items) => {
        const text = listOf(items.map((pieces) => pieces.join('')));
        const reading = readServerJson(text, CAPS);
        if (!reading.ok) return;
        expect(readJsonText(reading.text, CAPS)).toMatchObject({ ok: true, value: reading.value });
        if (reading.isReduced !== true) expect(reading.text).toBe(text);
      }),
    );
  });
});

describe('an item of a list that is nested too deeply', () => {
  it.each(LISTS)('is replaced alone, in %s', (member) => {
    const fine = item(MAX_ITEM_DEPTH);
    const text = listOf([fine, item(MAX_ITEM_DEPTH + 1), '7', item(100_000), fine], member);
    const parsed = JSON.parse(fine);
    expect(itemsOf(text, member)).toEqual([parsed, DEEP_ITEM, 7, DEEP_ITEM, parsed]);
    expect(itemsOf(listOf([fine], member), member)).toEqual([parsed]);
  });

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
    const beside = listOf([item(400)]).replace('"nextCursor"', '"a":1,"a"');
    expect(itemsOf(beside)).toBe('duplicate-key');
  });

  it('ends for any text, and edits only between brackets', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\a') }), (rest) => {
        const text = listOf([item(300), rest]);
        const edited = withoutOddItems(text);
        expect(edited === undefined || edited.length < text.length).toBe(true);
      }),
    );
  });
});
