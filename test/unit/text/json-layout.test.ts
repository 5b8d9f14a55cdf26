import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { layOutJson } from '../../../src/text/json-layout.js';

const as = (token: string): string => token;

describe('layOutJson', () => {
  it.each([
    ['{}', '{}'],
    ['[ ]', '[]'],
    [
      '{"a":1e400,"b":[1,{"c":[]},"x, {\\"y"]}',
      '{\n  "a": 1e400,\n  "b": [\n    1,\n    {\n      "c": []\n    },\n    "x, {\\"y"\n  ]\n}',
    ],
    ['"\\\\"', '"\\\\"'],
  ])('lays out %s', (text, laidOut) => {
    expect(layOutJson(text, as)).toBe(laidOut);
  });

  it('changes nothing but blanks between tokens', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value);
        const laidOut = layOutJson(text, as);
        expect(JSON.stringify(JSON.parse(laidOut))).toBe(text);
        expect(laidOut).toBe(JSON.stringify(value, null, 2));
      }),
    );
  });

  it('takes a long text and a deep one', () => {
    const long = JSON.stringify('x\\"'.repeat(500_000));
    expect(layOutJson(long, as)).toBe(long);
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    expect(layOutJson(deep, as).length).toBeLessThan(100 * deep.length);
  });
});
