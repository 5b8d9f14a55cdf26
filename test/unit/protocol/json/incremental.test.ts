// Large JSON is built from parts of bounded work, and comes out as JSON.parse would have made it.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildJson, divideJson, type JsonPart } from '../../../../src/protocol/json/incremental.js';
import type { Json } from '../../../../src/protocol/jsonrpc.js';

function build(text: string, part: JsonPart): { readonly value: Json; readonly steps: number } {
  const building = buildJson(text, part);
  for (let steps = 1; ; steps += 1) {
    const step = building.next();
    if (step.done === true) return { value: step.value, steps };
  }
}

function sizesIn(text: string, part: JsonPart): readonly number[] {
  if ('parts' in part) return part.parts.flatMap((one) => sizesIn(text, one.part));
  const slice = text.slice(part.start, part.end);
  return [(slice.match(/:1|1,/g) ?? []).length];
}

describe('JSON that is built in parts', () => {
  it('[PRF-11] law: is what JSON.parse makes of it, members in their order', () => {
    const json = fc.json({ maxDepth: 6, noUnicodeString: false });
    const bounds = fc.record({
      maxValues: fc.integer({ min: 1, max: 6 }),
      maxChars: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(json, bounds, fc.constantFrom(undefined, 1), (source, by, blanks) => {
        const text = JSON.stringify(JSON.parse(source), undefined, blanks);
        if (text.includes('"__proto__"')) return;
        const { value } = build(text, divideJson(text, by));
        expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['a flat array', `[${'1,'.repeat(9999)}1]`],
    ['a flat object', `{${Array.from({ length: 10_000 }, (_, at) => `"k${at}":1`).join(',')}}`],
    ['a deep one', `${'['.repeat(60)}${'1,'.repeat(9999)}1${']'.repeat(60)}`],
    ['small ones in a row', `[${'{"a":1},'.repeat(9999)}{"a":1}]`],
  ])('[PRF-11] has no part of more values than a part may have: %s', (_what, text) => {
    const maxValues = 500;
    const part = divideJson(text, { maxValues, maxChars: text.length });
    expect(Math.max(...sizesIn(text, part))).toBeLessThanOrEqual(2 * maxValues);
    expect(build(text, part).steps).toBeGreaterThan(10);
  });
});
