import { describe, expect, it } from 'vitest';
import { createSuggester, errorCode, fullDurationText, nearestCandidate } from '../../../src/text/wording.js';

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

  it('takes a swap of neighbours for one mistake, whichever word has it', () => {
    expect(nearestCandidate('abcd', ['abdc'])).toBe('abdc');
    expect(nearestCandidate('abdc', ['abcd'])).toBe('abcd');
    expect(nearestCandidate('abcd', ['badc'])).toBeUndefined();
  });

  it('is suggested for the first of thousands of unknown words', () => {
    const known = Array.from({ length: 5_000 }, (_, index) => `tool_${index}`);
    const suggest = createSuggester();
    const found = Array.from({ length: 1_000 }, () => suggest('tool_12x', known));
    expect(found.slice(0, 4)).toEqual(Array(4).fill('tool_12'));
    expect(new Set(found.slice(4))).toEqual(new Set([undefined]));
  });
});

describe('errorCode', () => {
  it('[O-50] names an error without its message', () => {
    expect(errorCode(Object.assign(new Error('secret'), { code: 'ECONNREFUSED' }))).toBe('ECONNREFUSED');
    expect(errorCode(new TypeError('secret'))).toBe('TypeError');
    expect(errorCode('secret')).toBe('unknown');
  });
});

describe('a time in words', () => {
  it.each([
    [1, '1 millisecond'],
    [1000, '1 second'],
    [90_000, '90 seconds'],
    [60_000, '1 minute'],
    [600_000, '10 minutes'],
    [8 * 3_600_000, '8 hours'],
    [7 * 86_400_000, '7 days'],
    [130_500, '2 minutes'],
  ])('is in the unit that a person would use: %i', (ms, text) => {
    expect(fullDurationText(ms)).toBe(text);
  });
});
