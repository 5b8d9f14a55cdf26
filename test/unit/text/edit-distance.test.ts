import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearestCandidate } from '../../../src/text/edit-distance.js';

describe('[C-04] what a mistyped word meant', () => {
  it.each([
    ['ture', ['true', 'false'], 'true'],
    ['upstream', ['upstreams', 'issuers'], 'upstreams'],
    ['publicURL', ['publicUrl', 'policies'], 'publicUrl'],
    ['isuers', ['upstreams', 'issuers'], 'issuers'],
    ['strcit', ['strict', 'off'], 'strict'],
    ['banana', ['upstreams', 'issuers'], undefined],
    ['x'.repeat(65), ['x'.repeat(64)], undefined],
    ['', ['a'], undefined],
  ])('%s of %j: %s', (word, candidates, expected) => {
    expect(nearestCandidate(word, candidates)).toBe(expected);
  });

  it('counts the same in both directions, and nothing for the same word', () => {
    const word = fc.string({ maxLength: 12 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        expect(editDistance(a, b)).toBe(editDistance(b, a));
        expect(editDistance(a, b) === 0).toBe(a === b);
        expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});
